#include "supervisor/whose.h"

#include <stdlib.h>
#include <string.h>

#define KEPT 16

struct whose {
	struct known {
		struct tracee_name who;
		uint32_t turn; /* 0: nobody */
	} known[KEPT];
	struct identity as[KEPT]; /* 64 KiB that are not touched before they are needed */
};

struct whose *whose_new(void)
{
	struct whose *w = malloc(sizeof(*w));
	if (w)
		memset(w->known, 0, sizeof(w->known));
	return w;
}

void whose_free(struct whose *w)
{
	free(w);
}

int whose_is(struct whose *w, struct tracee_name who, uint32_t turn, bool anew,
	     struct identity *ret)
{
	struct known *k = &w->known[who.gen % KEPT];
	struct identity *as = &w->as[who.gen % KEPT];
	bool same = turn && k->turn == turn && k->who.tid == who.tid && k->who.gen == who.gen;
	if (!same || anew) {
		k->turn = 0;
		int err = identity_of(who.tid, as);
		if (err)
			return err;
		k->who = who;
		k->turn = turn;
	}
	identity_copy(ret, as);
	return 0;
}
