/*
 * The editor works on FILE.edit beside the policy. It takes the policy's place when it reads well;
 * until then it stays, with the policy that it was made from in FILE.edit.base, and the next `edit`
 * goes on with it: nothing that was typed is lost. Where the policy was changed since, going on
 * would drop rules that nobody saw in the editor: the text is put aside, and the edit begins anew.
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

#define USUAL_EDITOR "vi"
#define NEED_NONE    "warder policy allow, deny and forget need none"

struct edited {
	struct buf old;	 /* the policy as it stands */
	struct buf text; /* as it was edited */
	char *draft;	 /* FILE.edit */
	char *base;	 /* FILE.edit.base */
	bool resumed;
};

static void release(struct edited *e)
{
	buf_free(&e->old);
	buf_free(&e->text);
	free(e->draft);
	free(e->base);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

/* A file of ours that may not be there. */
static int read_ours(struct policycli *c, const char *file, struct buf *ret, bool *ret_there)
{
	bool policy = !strcmp(file, policycli_file(c));
	int r = policyfile_read(file, policy ? POLICYFILE_OURS : POLICYFILE_DRAFT, ret, &c->error);
	*ret_there = r == 0;
	return r == -ENOENT ? 0 : r;
}

static int write_ours(struct policycli *c, const char *file, const struct buf *text)
{
	if (unlink(file) < 0 && errno != ENOENT) {
		snprintf(c->error.text, sizeof(c->error.text), "%s", strerror(errno));
		return -errno;
	}
	return store_replace(file, &nothing, text, &c->error);
}

static int begin_anew(struct policycli *c, struct edited *e)
{
	int r = write_ours(c, e->base, &e->old);
	return r < 0 ? r : write_ours(c, e->draft, &e->old);
}

static void drop(const struct edited *e)
{
	unlink(e->draft);
	unlink(e->base);
}

/* The first of FILE.edit.1, .2 ... that nobody has; what is there is another edit's text. */
static int put_aside(struct policycli *c, const struct edited *e)
{
	int r = -EEXIST;
	struct buf name = {0}, shown = {0};
	for (unsigned i = 1; r == -EEXIST && i < 1000; i++) {
		buf_reset(&name);
		buf_addf(&name, "%s.%u", e->draft, i);
		r = buf_error(&name);
		if (r == 0 && link(e->draft, buf_str(&name)) < 0)
			r = -errno;
	}
	escape_add_str(&shown, r == 0 ? buf_str(&name) : e->draft);
	if (r == 0)
		fprintf(stderr,
			"warder: the policy was changed since an edit that was not saved: its text "
			"is in %s now, and this edit begins with the policy as it is\n",
			buf_str(&shown));
	else
		snprintf(c->error.text, sizeof(c->error.text),
			 "%s: this text of an edit that was not saved can't be put aside (%s): "
			 "move it away",
			 buf_str(&shown), strerror(-r));
	buf_free(&name);
	buf_free(&shown);
	return r;
}

/* There is a text of an earlier edit. */
static int go_on(struct policycli *c, struct edited *e)
{
	struct buf base = {0};
	bool known;
	int r = read_ours(c, e->base, &base, &known);
	bool current = known && is_same(&base, &e->old);
	bool untouched = is_same(&e->text, known ? &base : &e->old);
	buf_free(&base);
	if (r < 0)
		return r;
	e->resumed = current && !untouched;
	if (e->resumed)
		fprintf(stderr, "warder: going on with the text of an edit that was not saved\n");
	if (current)
		return 0;
	r = untouched ? 0 : put_aside(c, e);
	return r < 0 ? r : begin_anew(c, e);
}

static char *beside(const char *file, const char *end)
{
	struct buf name = {0};
	buf_addf(&name, "%s%s", file, end);
	return buf_take(&name);
}

static int begin(struct policycli *c, struct edited *e)
{
	bool there;
	e->draft = beside(policycli_file(c), ".edit");
	e->base = beside(policycli_file(c), ".edit.base");
	int r = e->draft && e->base ? read_ours(c, policycli_file(c), &e->old, &there) : -ENOMEM;
	if (r == 0)
		r = read_ours(c, e->draft, &e->text, &there);
	if (r < 0)
		return r;
	return there ? go_on(c, e) : begin_anew(c, e);
}

/* NULL: the user has not said. */
static const char *chosen_editor(void)
{
	const char *names[] = {"VISUAL", "EDITOR"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (getenv(names[i]) && *getenv(names[i]))
			return getenv(names[i]);
	return NULL;
}

static bool has_terminal(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* As git does: the words of the variable are the shell's, the file is one word. */
static int run_editor(const char *file)
{
	struct buf script = {0};
	buf_addf(&script, "%s \"$1\"", chosen_editor() ? chosen_editor() : USUAL_EDITOR);
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

static int keep_text(const struct edited *e, const char *what, const char *next)
{
	struct buf name = {0};
	escape_add_str(&name, e->draft);
	fprintf(stderr, "warder: %s, and your text is in %s: warder policy edit %s\n", what,
		buf_str(&name), next);
	buf_free(&name);
	return POLICYCLI_NO;
}

static int keep(const struct edited *e, const char *what)
{
	struct buf all = {0};
	buf_addf(&all, "%s; the policy is unchanged", what);
	int status = keep_text(e, buf_str(&all), "goes on with it");
	buf_free(&all);
	return status;
}

/* It was changed while the editor was open: the next edit puts this text aside. */
static int keep_behind(const struct edited *e, const char *what)
{
	return keep_text(e, what, "puts it aside and begins with the policy as it is now");
}

/* The editor was not there, or gave up: what was not touched needs no keeping. */
static int give_up(struct policycli *c, struct edited *e, int ended)
{
	char what[64];
	bool there;
	snprintf(what, sizeof what, "the editor ended with status %d", ended);
	buf_free(&e->text);
	e->text = (struct buf){0};
	if (read_ours(c, e->draft, &e->text, &there) < 0 || (there && !is_same(&e->text, &e->old)))
		return keep(e, what);
	drop(e);
	fprintf(stderr, "warder: %s%s; the policy is unchanged\n", what,
		ended == 127	  ? " (is $VISUAL or $EDITOR a program that is there?)"
		: !has_terminal() ? " (there is no terminal: " NEED_NONE ")"
				  : "");
	return POLICYCLI_NO;
}

/* One error is said with what becomes of the text; of several each has its line before that. */
static int say_faults(struct policycli *c, const struct policy_faults *f)
{
	struct buf more = {0};
	const char *line = buf_str(&f->lines);
	size_t n = strcspn(line, "\n");
	if (f->len == 1) {
		snprintf(c->error.text, sizeof c->error.text, "%.*s", (int)n, line);
		return -EINVAL;
	}
	for (; *line; line += n + 1) {
		n = strcspn(line, "\n");
		fprintf(stderr, "warder: %.*s\n", (int)n, line);
	}
	policyfile_faults_add_more(f, &more);
	fprintf(stderr, "%s%s", more.len ? "warder: " : "", buf_str(&more));
	buf_free(&more);
	snprintf(c->error.text, sizeof c->error.text, "%zu errors", f->len);
	return -EINVAL;
}

/* An editor may write in place, or a new file: what the name holds now. */
static int read_edited(struct policycli *c, struct edited *e)
{
	struct policy_faults faults = {0};
	buf_free(&e->text);
	e->text = (struct buf){0};
	int r = policyfile_read(e->draft, POLICYFILE_DRAFT, &e->text, &c->error);
	if (r == 0)
		r = policyfile_faults(NULL, policycli_file(c), buf_str(&e->text), e->text.len,
				      RULE_USER, NULL, &faults, &c->error);
	if (r == 0 && faults.len)
		r = say_faults(c, &faults);
	policyfile_faults_release(&faults);
	return r;
}

/* What is new of it and opens sensitive things. Paths that can't be resolved are said by the next
 * run. */
static void warn(struct policycli *c, const struct edited *e)
{
	struct policy *old = NULL, *all = NULL, *new = NULL;
	struct policy_error ignored;
	const char *name = policycli_file(c);
	int r = policy_new(&old) || policy_new(&all) || policy_new(&new) ? -ENOMEM : 0;
	if (r == 0)
		r = policyfile_parse(old, name, buf_str(&e->old), e->old.len, RULE_USER, &c->vars,
				     &ignored);
	if (r == 0)
		r = policyfile_parse(all, name, buf_str(&e->text), e->text.len, RULE_USER, &c->vars,
				     &ignored);
	for (size_t i = 0; r == 0 && i < policy_len(all); i++)
		if (!policy_has(old, policy_at(all, i)))
			r = policy_add(new, policy_at(all, i));
	if (r == 0)
		policycli_warn_sensitive(c, new, 0);
	policy_free(old);
	policy_free(all);
	policy_free(new);
}

static int finish(struct policycli *c, struct edited *e)
{
	struct buf out = {0};
	bool changed = linediff(buf_str(&e->old), buf_str(&e->text), &out);
	int r = changed ? store_replace(policycli_file(c), &e->old, &e->text, &c->error) : 0;
	if (r < 0) {
		buf_free(&out);
		return r == -EBUSY ? keep_behind(e, c->error.text) : keep(e, c->error.text);
	}
	drop(e); /* its text is the policy now */
	if (changed)
		warn(c, e);
	else
		buf_add_str(&out, "nothing was changed\n");
	return policycli_put(&out);
}

int policyedit(struct policycli *c, int argc, char **argv)
{
	struct edited e = {0};
	if (argc)
		return policycli_usage("edit takes no argument, not", argv[0]);
	if (!chosen_editor() && !has_terminal())
		return policycli_trouble("there is no terminal for " USUAL_EDITOR ": " NEED_NONE
					 "; or set VISUAL to an editor that needs none");
	if (begin(c, &e) < 0) {
		release(&e);
		return policycli_trouble(c->error.text);
	}
	int ended = run_editor(e.draft), status;
	if (ended)
		status = give_up(c, &e, ended);
	else if (read_edited(c, &e) < 0)
		status = keep(&e, c->error.text);
	else
		status = finish(c, &e);
	release(&e);
	return status;
}
