#include "supervisor/policyimport.h"

#include "supervisor/escape.h"
#include "supervisor/landlockconfig.h"
#include "supervisor/linediff.h"
#include "supervisor/llimport.h"
#include "supervisor/policychange.h"
#include "supervisor/policyscan.h"
#include "tracer/util.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct import {
	struct policycli *c;
	const char *name; /* of the input, as messages have it */
	struct buf text;  /* owned; policy lines to add */
	struct buf old;	  /* owned; the saved policy */
	struct buf new;	  /* owned; as it would be */
	void *known;	  /* owned; a tree of the lines of `new`, plain; see tsearch(3) */
	size_t added;
};

static void release(struct import *m)
{
	buf_free(&m->text);
	buf_free(&m->old);
	buf_free(&m->new);
	tdestroy(m->known, free);
}

/* ---- the input, as policy lines ---- */

static int from_landlockconfig(struct import *m, const struct buf *input)
{
	struct landlockconfig config;
	struct buf unsaid = {0}, from = {0};
	char day[16] = "";
	struct tm tm;
	time_t now = time(NULL);
	int r = landlockconfig_parse(m->name, buf_str(input), input->len, &config, &m->c->error);
	if (r < 0)
		return r;
	if (gmtime_r(&now, &tm))
		strftime(day, sizeof day, "%Y-%m-%d", &tm);
	buf_addf(&from, "%s imported from ", day);
	escape_add_str(&from, m->name);
	r = llimport(&config,
		     &(struct llimport_how){
			     .cwd = m->c->cwd, .home = m->c->store.home, .comment = buf_str(&from)},
		     &m->text, &unsaid);
	for (const char *at = buf_str(&unsaid); *at;) {
		size_t n = strcspn(at, "\n");
		fprintf(stderr, "warder: not taken: %.*s\n", (int)n, at);
		at += n + 1;
	}
	buf_free(&unsaid);
	buf_free(&from);
	landlockconfig_release(&config);
	return r;
}

static int read_lines(struct import *m)
{
	struct buf input = {0};
	int r = policycli_read(m->c, m->name, &input);
	if (r == 0 && landlockconfig_is(buf_str(&input), input.len)) {
		r = from_landlockconfig(m, &input);
	} else if (r == 0) {
		r = policyfile_check(m->name, buf_str(&input), input.len, &m->c->error);
		if (r == 0)
			buf_add(&m->text, buf_str(&input), input.len);
	}
	buf_free(&input);
	return r < 0 ? r : buf_error(&m->text);
}

/* ---- what is new of it ---- */

static bool is_relative(const char *raw)
{
	return !strchr("/~$", raw[0]) && strncmp(raw, "\"/", 2) && strncmp(raw, "\"~", 2) &&
	       strncmp(raw, "\"$", 2);
}

/* A path of the project, in a policy that is for every project. */
static void add_absolute(const struct import *m, const struct policyscan_word *w, struct buf *out)
{
	bool quoted = w->raw[0] == '"';
	const char *rest = w->raw + quoted;
	size_t n = w->raw_len - quoted;
	policy_format_path(out, m->c->project.dir, false);
	if (n == 1 && rest[0] == '.')
		return;
	if (n > 1 && rest[0] == '.' && rest[1] == '/') {
		rest += 2;
		n -= 2;
	}
	buf_add_char(out, '/');
	buf_add_str(out, quoted ? "\"" : "");
	buf_add(out, rest, n);
}

/* The line without its comment and with single blanks: what two that say the same have alike. */
static void add_plain(const struct import *m, const struct policyscan_line *l, struct buf *out)
{
	bool everywhere = !m->c->for_project && l->kind == POLICYSCAN_RULE;
	for (size_t i = 0; i < l->words; i++) {
		buf_add_str(out, i ? " " : "");
		if (i == l->path && everywhere && is_relative(l->word[i].raw))
			add_absolute(m, &l->word[i], out);
		else
			buf_add(out, l->word[i].raw, l->word[i].raw_len);
	}
}

/* Calls back with each rule of a text. */
static int each_line(struct import *m, const struct buf *text,
		     int (*take)(struct import *, const struct buf *plain, const char *comment,
				 size_t n))
{
	struct policyscan_where where = {.name = m->name, .line = 1};
	int r = 0;
	for (size_t at = 0; r == 0 && at < text->len; where.line++) {
		const char *line = text->data + at, *end = text->data + text->len;
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		size_t n = (size_t)((newline ? newline : end) - line);
		struct policyscan_line l;
		struct buf plain = {0};
		r = policyscan_line(&where, line, n, false, &l, &m->c->error);
		if (r < 0)
			return r;
		if (l.kind != POLICYSCAN_BLANK) {
			const struct policyscan_word *last = &l.word[l.words - 1];
			const char *behind = last->raw + last->raw_len;
			add_plain(m, &l, &plain);
			r = buf_error(&plain);
			if (r == 0)
				r = take(m, &plain, behind, (size_t)(line + n - behind));
		}
		buf_free(&plain);
		policyscan_release(&l);
		at += n + 1;
	}
	return r;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* 1: it is new, and known from now on; 0: it was known; -ENOMEM. */
static int note_line(struct import *m, const struct buf *plain)
{
	if (tfind(buf_str(plain), &m->known, by_text))
		return 0;
	char *line AUTOFREE = strdup(buf_str(plain));
	if (!line || !tsearch(line, &m->known, by_text))
		return -ENOMEM;
	TAKE_PTR(line);
	return 1;
}

static int take_old(struct import *m, const struct buf *plain, const char *comment, size_t n)
{
	(void)comment;
	(void)n;
	int r = note_line(m, plain);
	return r < 0 ? r : 0;
}

static int take_line(struct import *m, const struct buf *plain, const char *comment, size_t n)
{
	const char *hash = memchr(comment, '#', n);
	int r = note_line(m, plain);
	if (r <= 0)
		return r;
	if (m->new.len && m->new.data[m->new.len - 1] != '\n')
		buf_add_char(&m->new, '\n');
	buf_add(&m->new, plain->data, plain->len);
	if (hash) {
		buf_add_str(&m->new, "  ");
		escape_add(&m->new, hash, n - (size_t)(hash - comment));
	}
	buf_add_char(&m->new, '\n');
	m->added++;
	return buf_error(&m->new);
}

static int plan(struct import *m)
{
	const char *file = policycli_file(m->c);
	int r = policyfile_read(file, POLICYFILE_OURS, &m->old, &m->c->error);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = policyfile_check(file, buf_str(&m->old), m->old.len, &m->c->error);
	m->new.max = POLICYFILE_SIZE_MAX;
	buf_add(&m->new, buf_str(&m->old), m->old.len);
	if (r == 0)
		r = each_line(m, &m->old, take_old);
	if (r == 0)
		r = each_line(m, &m->text, take_line);
	if (r == -EFBIG)
		snprintf(m->c->error.text, sizeof(m->c->error.text),
			 "the policy would grow beyond 1 MiB; warder policy merge joins rules");
	if (r == 0) /* what is written must read back */
		r = policyfile_check(file, buf_str(&m->new), m->new.len, &m->c->error);
	return r;
}

/* ---- saving ---- */

static void warn(struct import *m)
{
	unsigned old_lines = 0;
	struct policy *p;
	struct policy_error ignored;
	if (policy_new(&p) < 0)
		return;
	for (size_t i = 0; i < m->old.len; i++)
		old_lines += m->old.data[i] == '\n';
	/* Paths that can't be resolved are said when the policy is read the next time. */
	if (!policyfile_parse(p, m->name, buf_str(&m->new), m->new.len, RULE_USER, &m->c->vars,
			      &ignored))
		policycli_warn_sensitive(m->c, p, old_lines);
	policy_free(p);
}

static int save(struct import *m)
{
	struct buf question = {0}, diff = {0};
	const char *file = policycli_file(m->c);
	linediff(buf_str(&m->old), buf_str(&m->new), &diff);
	int status = policycli_put(&diff);
	if (status)
		return status;
	warn(m);
	buf_addf(&question, "save %s in ", m->added == 1 ? "this" : "these");
	escape_add_str(&question, file);
	buf_add_char(&question, '?');
	status = policycli_confirm(m->c, buf_str(&question));
	buf_free(&question);
	if (status == POLICYCLI_NO)
		fprintf(stderr, "warder: nothing was saved\n");
	if (!status && store_replace(file, &m->old, &m->new, &m->c->error) < 0)
		status = policycli_trouble(m->c->error.text);
	return status;
}

int policyimport(struct policycli *c, int argc, char **argv)
{
	struct import m = {.c = c};
	int status;
	if (argc != 1)
		return policycli_usage(argc ? "import takes one file, not also"
					    : "import takes a file, or - for stdin",
				       argc ? argv[1] : NULL);
	m.name = argv[0];
	int r = read_lines(&m);
	if (r == 0)
		r = plan(&m);
	if (r < 0) {
		if (!c->error.text[0])
			snprintf(c->error.text, sizeof(c->error.text), "%s", strerror(-r));
		fprintf(stderr, "warder: %s\n", c->error.text);
		status = r == -EINVAL ? POLICYCLI_NO : POLICYCLI_TROUBLE;
	} else if (!m.added) {
		struct buf line = {0};
		buf_add_str(&line, "nothing new: the policy says all of it already\n");
		status = policycli_put(&line);
	} else {
		status = save(&m);
	}
	release(&m);
	return status;
}
