#include "agent/offer.h"

#include "agent/interrupt.h"
#include "agent/trust.h"
#include "supervisor/escape.h"
#include "supervisor/linediff.h"
#include "supervisor/proposal.h"
#include "supervisor/sha256.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The whole text the first time, later what changed of it. */
static void show(const struct proposal *p)
{
	struct buf out = {0};
	escape_add_str(&out, p->file);
	buf_addf(&out, "%s:\n", p->accepted ? " has changed since you accepted it" : " proposes");
	linediff(buf_str(&p->old), buf_str(&p->text), &out);
	fputs(buf_str(&out), stdout);
	buf_free(&out);
}

static bool confirm(void)
{
	char *line = NULL;
	size_t cap = 0;
	fputs("Use these rules in this project? [y/N] ", stdout);
	fflush(stdout);
	while (interrupt_wait_input(STDIN_FILENO) == -EINTR)
		if (interrupt_any())
			return false;
	bool yes = getline(&line, &cap, stdin) > 0 && (line[0] == 'y' || line[0] == 'Y') &&
		   strchr("\n", line[1]);
	free(line);
	clearerr(stdin);
	return yes;
}

static int decide(const struct session *s, const struct proposal *p)
{
	char name[SHA256_HEX];
	struct policy_error why = {0};
	sha256_hex(buf_str(&p->text), p->text.len, name);
	if (trust_was_refused(s, name))
		return 0;
	show(p);
	if (!confirm()) {
		/* Without memory of it, it is offered again: no harm. */
		if (!interrupt_any())
			(void)trust_refuse(s, name);
		return 0;
	}
	if (!proposal_accept(p, &why))
		return 1;
	printf("not saved: %s\n", why.text);
	return 0;
}

int offer_proposal(const struct session *s)
{
	struct proposal p;
	struct policy_error why = {0};
	if (proposal_open(session_store(s), session_project(s), &p, &why))
		return 0; /* the session, which needs it more, told it */
	bool usable = p.exists && !p.fault.text[0] && proposal_is_new(&p);
	int changed = usable ? decide(s, &p) : 0;
	proposal_release(&p);
	return changed;
}
