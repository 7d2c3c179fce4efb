#include "supervisor/whose.h"

#include <stdlib.h>

#define KEPT 16

struct whose {
	struct known {
		struct tracee_name who;
		uint32_t turn; /* 0: nobody */
		struct identity as;
	} known[KEPT];
};

struct whose *whose_new(void)
{
	return calloc(1, sizeof(struct whose));
}

void whose_free(struct whose *w)
{
	free(w);
}

int whose_is(struct whose *w, struct tracee_name who, uint32_t turn, bool anew,
	     struct identity *ret)
{
	struct known *k = &w->known[who.gen % KEPT];
	bool same = turn && k->turn == turn && k->who.tid == who.tid && k->who.gen == who.gen;
	if (!same || anew) {
		k->turn = 0;
		int err = identity_of(who.tid, &k->as);
		if (err)
			return err;
		k->who = who;
		k->turn = turn;
	}
	identity_copy(ret, &k->as);
	return 0;
}
