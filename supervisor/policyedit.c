/*
 * The editor works on FILE.edit beside the policy. It takes the policy's place when it reads well;
 * until then it stays, and the next `edit` goes on with it: nothing that was typed is lost.
 */
#include "supervisor/policyedit.h"

#include "supervisor/escape.h"
#include "supervisor/linediff.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static const struct buf nothing;

struct edited {
	struct buf old;	 /* the policy as it stands */
	struct buf text; /* as it was edited */
	char *draft;	 /* FILE.edit */
	bool resumed;
};

static void release(struct edited *e)
{
	buf_free(&e->old);
	buf_free(&e->text);
	free(e->draft);
}

/* A file of ours that may not be there. */
static int read_ours(struct policycli *c, const char *file, struct buf *ret, bool *ret_there)
{
	int r = policyfile_read(file, true, ret, &c->error);
	*ret_there = r == 0;
	return r == -ENOENT ? 0 : r;
}

static int begin(struct policycli *c, struct edited *e)
{
	struct buf name = {0};
	bool there;
	buf_addf(&name, "%s.edit", policycli_file(c));
	e->draft = buf_take(&name);
	int r = e->draft ? read_ours(c, policycli_file(c), &e->old, &there) : -ENOMEM;
	if (r == 0)
		r = read_ours(c, e->draft, &e->text, &e->resumed);
	if (r == 0 && !e->resumed)
		r = store_replace(e->draft, &nothing, &e->old, &c->error);
	return r;
}

static const char *editor(void)
{
	const char *names[] = {"VISUAL", "EDITOR"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (getenv(names[i]) && *getenv(names[i]))
			return getenv(names[i]);
	return "vi";
}

/* As git does: the words of the variable are the shell's, the file is one word. */
static int run_editor(const char *file)
{
	struct buf script = {0};
	buf_addf(&script, "%s \"$1\"", editor());
	char *argv[] = {"sh", "-c", (char *)buf_str(&script), "sh", (char *)file, NULL};
	void (*quit)(int) = signal(SIGINT, SIG_IGN);
	pid_t pid = buf_error(&script) ? -1 : fork();
	if (!pid) {
		signal(SIGINT, SIG_DFL);
		execv("/bin/sh", argv);
		_exit(127);
	}
	int status = -1;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, quit);
	buf_free(&script);
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

static int keep(const struct edited *e, const char *what)
{
	struct buf name = {0};
	escape_add_str(&name, e->draft);
	fprintf(stderr,
		"warder: %s; the policy is unchanged, and your text is in %s: warder policy edit "
		"goes on with it\n",
		what, buf_str(&name));
	buf_free(&name);
	return POLICYCLI_NO;
}

/* An editor may write in place, or a new file: what the name holds now. */
static int read_edited(struct policycli *c, struct edited *e)
{
	buf_free(&e->text);
	e->text = (struct buf){0};
	int r = policyfile_read(e->draft, true, &e->text, &c->error);
	if (r == 0)
		r = policyfile_check(policycli_file(c), buf_str(&e->text), e->text.len, &c->error);
	return r;
}

static int finish(struct policycli *c, struct edited *e)
{
	struct buf out = {0};
	bool changed = linediff(buf_str(&e->old), buf_str(&e->text), &out);
	if (changed && store_replace(policycli_file(c), &e->old, &e->text, &c->error) < 0) {
		buf_free(&out);
		return keep(e, c->error.text);
	}
	unlink(e->draft); /* its text is the policy now */
	if (!changed)
		buf_add_str(&out, "nothing was changed\n");
	return policycli_put(&out);
}

int policyedit(struct policycli *c, int argc, char **argv)
{
	struct edited e = {0};
	if (argc)
		return policycli_usage("edit takes no argument, not", argv[0]);
	if (begin(c, &e) < 0) {
		release(&e);
		return policycli_trouble(c->error.text);
	}
	if (e.resumed)
		fprintf(stderr, "warder: going on with the text of an edit that was not saved\n");
	int ended = run_editor(e.draft), status;
	if (ended) {
		char what[64];
		snprintf(what, sizeof what, "the editor ended with status %d", ended);
		status = keep(&e, what);
	} else if (read_edited(c, &e) < 0) {
		status = keep(&e, c->error.text);
	} else {
		status = finish(c, &e);
	}
	release(&e);
	return status;
}
