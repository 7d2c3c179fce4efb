#include "supervisor/policycli.h"

#include "supervisor/escape.h"
#include "supervisor/presets.h"
#include "supervisor/proposal.h"
#include "supervisor/reach.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

const char *policycli_file(const struct policycli *c)
{
	return c->for_project ? c->project_file : c->user_file;
}

int policycli_usage(const char *what, const char *word)
{
	struct buf text = {0};
	size_t n = strlen(what);
	const char *end = word ? "';" : n && what[n - 1] == '?' ? "" : ";";
	if (word)
		escape_add_str(&text, word);
	fprintf(stderr, "warder policy: %s%s%s%s see warder policy --help\n", what,
		word ? " '" : "", buf_str(&text), end);
	buf_free(&text);
	return POLICYCLI_USAGE;
}

int policycli_trouble(const char *sentence)
{
	fprintf(stderr, "warder: %s\n", sentence);
	return POLICYCLI_TROUBLE;
}

int policycli_put(struct buf *out)
{
	int status = POLICYCLI_FINE;
	bool bad = buf_error(out) < 0 || fwrite(buf_str(out), 1, out->len, stdout) != out->len ||
		   fflush(stdout) != 0;
	if (bad)
		status = policycli_trouble("could not write to stdout");
	buf_free(out);
	return status;
}

/* ---- what is there ---- */

void policycli_release(struct policycli *c)
{
	store_release(&c->store);
	project_release(&c->project);
	free(c->cwd);
	free(c->user_file);
	free(c->project_file);
}

int policycli_open(struct policycli *c)
{
	int r = store_open(environ, &c->store, &c->error);
	if (r < 0)
		return policycli_trouble(c->error.text);
	const char *homes[] = {c->store.home, NULL};
	c->cwd = getcwd(NULL, 0);
	r = c->cwd ? project_find(c->cwd, c->project_dir, homes, &c->project) : -errno;
	if (r < 0)
		return policycli_trouble(c->cwd ? "the project directory can't be found"
						: "the current directory can't be found");
	c->user_file = store_user_policy(&c->store);
	c->project_file = store_project_policy(&c->store, &c->project);
	c->vars = (struct policy_vars){
		.home = c->store.home, .project = c->project.dir, .env = environ};
	return c->user_file && c->project_file ? POLICYCLI_FINE
					       : policycli_trouble("out of memory");
}

/* A file that is not there has no rules. 0, or -errno with c->error. */
static int load(struct policycli *c, struct policy *p, const char *file, enum rule_source source)
{
	int r = policyfile_load(p, file, source, &c->vars, &c->error);
	return r == -ENOENT ? 0 : r;
}

/* What a run would say about it is not said here: `accept` does. */
static int load_proposal(struct policycli *c, struct policy *p)
{
	struct proposal o;
	char *note = NULL;
	int r = proposal_open(&c->store, &c->project, &o, &c->error);
	if (r < 0)
		return r;
	r = proposal_apply(&o, p, &c->vars, &note, &c->error);
	free(note);
	proposal_release(&o);
	return r;
}

int policycli_load_saved(struct policycli *c, struct policy *p)
{
	int r = load(c, p, c->user_file, RULE_USER);
	if (r == 0)
		r = load(c, p, c->project_file, RULE_PROJECT);
	return r < 0 ? r : load_proposal(c, p);
}

int policycli_load_presets(struct policycli *c, struct policy *p)
{
	char *note AUTOFREE = NULL;
	int r = preset_add(p, "system", &c->vars, &c->error);
	if (r == 0)
		r = preset_add(p, "tmp", &c->vars, &c->error);
	if (r == 0)
		r = preset_add_project(p, &c->project, &c->vars, &note, &c->error);
	if (r == 0)
		r = store_protect(&c->store, p);
	if (r == 0 && note)
		fprintf(stderr, "warder: %s\n", note);
	return r;
}

int policycli_read(struct policycli *c, const char *file, struct buf *ret)
{
	if (strcmp(file, "-") == 0)
		return policyfile_read_fd(STDIN_FILENO, "stdin", ret, &c->error);
	return policyfile_read(file, POLICYFILE_NAMED, ret, &c->error);
}

/* ---- asking ---- */

/* A line of the terminal; true: it begins with y. */
static bool read_yes(int tty)
{
	char line[64];
	ssize_t n;
	do
		n = read(tty, line, sizeof line);
	while (n < 0 && errno == EINTR);
	return n > 0 && (line[0] == 'y' || line[0] == 'Y');
}

int policycli_confirm(const struct policycli *c, const char *question)
{
	if (c->yes)
		return POLICYCLI_FINE;
	int tty AUTOCLOSE = getenv("CI") ? -1 : open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (tty < 0)
		return policycli_trouble(
			"nobody can be asked here, and nothing was saved; --yes saves it unasked");
	struct buf line = {0};
	buf_addf(&line, "warder: %s [y/N] ", question);
	fflush(stdout);
	tcflush(tty, TCIFLUSH);
	bool yes = write(tty, buf_str(&line), line.len) == (ssize_t)line.len && read_yes(tty);
	buf_free(&line);
	return yes ? POLICYCLI_FINE : POLICYCLI_NO;
}

static void warn_rule(const struct policy *marks, const struct rule *r)
{
	bool itself = policy_sensitive_for(marks, r->path, r->access);
	size_t count = 0;
	const struct rule *below = itself ? NULL : reach_sensitive(marks, r, &count);
	struct buf line = {0};
	if (!itself && !below)
		return;
	policy_format_rule(&line, r);
	buf_add_str(&line, itself ? " is on the sensitive list"
				  : " opens what is on the sensitive list: ");
	if (below)
		policy_format_path(&line, below->path,
				   below->kind == RULE_GLOB || below->kind == RULE_GLOB_EXACT);
	if (count > 1)
		buf_addf(&line, " and %zu more", count - 1);
	fprintf(stderr, "warder: %s\n", buf_str(&line));
	buf_free(&line);
}

void policycli_warn_sensitive(struct policycli *c, const struct policy *p, unsigned after_line)
{
	struct policy *marks;
	if (policy_new(&marks) < 0)
		return;
	bool known = preset_add(marks, "system", &c->vars, &c->error) == 0;
	for (size_t i = 0; known && i < policy_len(p); i++) {
		const struct rule *r = policy_at(p, i);
		if (r->effect == EFFECT_ALLOW && !r->sensitive && r->source != RULE_PRESET &&
		    r->line > after_line)
			warn_rule(marks, r);
	}
	policy_free(marks);
}
