#include "supervisor/policyaccept.h"

#include "supervisor/escape.h"
#include "supervisor/linediff.h"
#include "supervisor/proposal.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int say_file(const struct proposal *o, const char *what)
{
	struct buf line = {0};
	escape_add_str(&line, o->file);
	buf_addf(&line, ": %s\n", what);
	return policycli_put(&line);
}

/* The whole text the first time, then what changed of it. */
static int show(struct policycli *c, const struct proposal *o)
{
	struct buf out = {0};
	struct policy *p;
	linediff(buf_str(&o->old), buf_str(&o->text), &out);
	int status = policycli_put(&out);
	if (status || !o->exists || policy_new(&p) < 0)
		return status;
	if (!policyfile_parse(p, o->file, buf_str(&o->text), o->text.len, RULE_PROJECT, &c->vars,
			      &c->error))
		policycli_warn_sensitive(c, p, 0);
	policy_free(p);
	return status;
}

static int decide(struct policycli *c, const struct proposal *o)
{
	const char *question = !o->exists ? "the file is gone: stop using what you accepted of it?"
			       : o->accepted ? "use it in this project as it is now?"
					     : "use these rules in this project?";
	int status = show(c, o);
	if (!status)
		status = policycli_confirm(c, question);
	if (status == POLICYCLI_NO)
		say_file(o, "not accepted");
	if (status)
		return status;
	if (proposal_accept(o, &c->error) < 0)
		return policycli_trouble(c->error.text);
	return say_file(o, o->exists ? "accepted" : "no longer used");
}

int policyaccept(struct policycli *c, int argc, char **argv)
{
	struct proposal o;
	if (argc)
		return policycli_usage("accept takes no argument, not", argv[0]);
	if (proposal_open(&c->store, &c->project, &o, &c->error) < 0)
		return policycli_trouble(c->error.text);
	int status;
	if (o.fault.text[0]) {
		fprintf(stderr, "warder: %s: it can't be accepted\n", o.fault.text);
		status = POLICYCLI_NO;
	} else if (!o.exists && !o.accepted) {
		status = say_file(&o, "there is no such file, and nothing to accept");
		status = status ? status : POLICYCLI_NO;
	} else if (o.exists && !proposal_is_new(&o)) {
		status = say_file(&o, "accepted already");
	} else {
		status = decide(c, &o);
	}
	proposal_release(&o);
	return status;
}
