#include "supervisor/policymergecli.h"

#include "supervisor/policymerge.h"
#include "supervisor/replaypartial.h"
#include "tracer/traceinput.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* What the inputs are: the first one says so for all. */
struct merging {
	struct policycli *c;
	struct policymerge *policies;	/* owned */
	struct replaypartial *partials; /* owned */
	size_t texts, results;		/* inputs of each kind */
};

static void release(struct merging *m)
{
	policymerge_free(m->policies);
	replaypartial_free(m->partials);
}

static int say(struct merging *m, const char *sentence, int r)
{
	snprintf(m->c->error.text, sizeof(m->c->error.text), "%s", sentence);
	return r;
}

/* The rest of the input as one text. */
static int read_text(struct merging *m, struct traceinput *in, struct buf *text)
{
	char *line;
	size_t n;
	int r;
	text->max = POLICYFILE_SIZE_MAX;
	while ((r = traceinput_line(in, &line, &n)) > 0 && !text->failed) {
		buf_add(text, line, n);
		buf_add_char(text, '\n');
	}
	if (r >= 0 && text->failed)
		r = buf_error(text);
	if (r == -EFBIG || r == -E2BIG)
		return say(m, "a policy has at most 1 MiB", r);
	return r < 0 ? say(m, traceinput_trouble(r), r) : 0;
}

static int add_policy(struct merging *m, struct traceinput *in)
{
	struct buf text = {0};
	int r = read_text(m, in, &text);
	if (r == 0)
		r = policymerge_add(m->policies, traceinput_name(in), buf_str(&text), text.len,
				    &m->c->error);
	buf_free(&text);
	m->texts++;
	return r;
}

static int add_results(struct merging *m, struct traceinput *in)
{
	struct trace_error e = {""};
	int r = replaypartial_read(m->partials, in, &e);
	m->results++;
	return r < 0 && e.text[0] ? say(m, e.text, r) : r;
}

static int add_input(struct merging *m, const char *file)
{
	struct traceinput *in;
	int r = traceinput_open(file, &in);
	if (r < 0) {
		/* The same sentence as for any policy that can't be read. */
		struct buf none = {0};
		int again = policyfile_read(file, POLICYFILE_NAMED, &none, &m->c->error);
		buf_free(&none);
		return again < 0 ? again : say(m, traceinput_trouble(r), r);
	}
	r = replaypartial_is(in) ? add_results(m, in) : add_policy(m, in);
	traceinput_close(in);
	if (r == 0 && m->texts && m->results)
		return say(m,
			   "policies and results of replays are two things, and can't be merged "
			   "with each other",
			   -EINVAL);
	return r;
}

static int write_out(struct merging *m)
{
	struct buf out = {0};
	bool stayed;
	if (m->results && replaypartial_write(m->partials, &out, &stayed))
		out.failed = true;
	if (!m->results)
		policymerge_write(m->policies, &out);
	return policycli_put(&out);
}

int policymergecli(struct policycli *c, int argc, char **argv)
{
	struct merging m = {.c = c};
	if (!argc)
		return policycli_usage("merge takes files, or - for stdin", NULL);
	int r = policymerge_new(&m.policies);
	if (r == 0)
		r = replaypartial_new(&m.partials);
	for (int i = 0; r == 0 && i < argc; i++)
		r = add_input(&m, argv[i]);
	int status = r == 0		? write_out(&m)
		     : c->error.text[0] ? policycli_trouble(c->error.text)
					: policycli_trouble(strerror(-r));
	release(&m);
	return status;
}
