#include "supervisor/policyfile.h"

#include "supervisor/escape.h"
#include "supervisor/glob.h"
#include "supervisor/policyscan.h"
#include "supervisor/presets.h"
#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- symlinks ---- */

int policyfile_canonical_links(const char *absolute, char **ret, char **ret_links,
			       size_t *ret_links_len)
{
	struct pathwalk w = {.once = true};
	*ret_links = NULL;
	*ret_links_len = 0;
	int r = pathwalk_resolve(&w, absolute, false);
	size_t len = w.links.len;
	char *path AUTOFREE = r == 0 ? buf_take(&w.out) : NULL;
	char *links AUTOFREE = path && len ? buf_take(&w.links) : NULL;
	pathwalk_release(&w);
	if (r == 0 && (!path || (len && !links)))
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret = TAKE_PTR(path);
	*ret_links = TAKE_PTR(links);
	*ret_links_len = len;
	return 0;
}

int policyfile_canonical(const char *absolute, char **ret)
{
	size_t len;
	char *links AUTOFREE = NULL;
	return policyfile_canonical_links(absolute, ret, &links, &len);
}

/* ---- one rule's path ---- */

struct reader {
	struct policy *policy;
	struct policyscan_where where;
	enum rule_source source;
	const struct policy_vars *vars;
	struct policy_error *error;
	struct policy_faults *faults;	       /* NULL: the first one ends it */
	struct pathwalk *walk;		       /* where this text's paths lead */
	struct buf full, literal, path, given; /* of the rule being read */
};

static void release(struct reader *rd)
{
	buf_free(&rd->full);
	buf_free(&rd->literal);
	buf_free(&rd->path);
	buf_free(&rd->given);
}

/* Left out, by the rules of the text's source. Positive, so that no error is mistaken for it. */
#define LEFT_OUT 1

static int missing(struct reader *rd, unsigned col, const char *what, const char *name, size_t n)
{
	if (rd->source == RULE_PRESET)
		return LEFT_OUT;
	return policyscan_fault(rd->error, &rd->where, col, "%s%.*s", what, (int)n, name);
}

static const char *env_value(char *const *env, const char *name, size_t n)
{
	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static bool is_name(const char *s, size_t n, const char *name)
{
	return strlen(name) == n && memcmp(s, name, n) == 0;
}

/* $NAME or ${NAME} at the start of *text, which then stands behind it. */
static int expand_variable(struct reader *rd, unsigned col, const char **text, const char **ret)
{
	bool braces = (*text)[1] == '{';
	const char *name = *text + (braces ? 2 : 1);
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
	if (n == 0 || (braces && name[n] != '}'))
		return policyscan_fault(rd->error, &rd->where, col,
					"expected a variable such as $HOME (a $ itself: \\$)");
	*text = name + n + (braces ? 1 : 0);
	if (**text && **text != '/')
		return policyscan_fault(rd->error, &rd->where, col,
					"expected / or the end of the name after the variable");
	if (is_name(name, n, "TMPDIR") && !rd->vars->tmpdir)
		return LEFT_OUT;
	const char *value = is_name(name, n, "TMPDIR") ? rd->vars->tmpdir
			    : is_name(name, n, "HOME") ? rd->vars->home
						       : env_value(rd->vars->env, name, n);
	if (!value)
		return missing(rd, col, "not set: $", name, n);
	if (value[0] != '/')
		return missing(rd, col, "expected an absolute path in $", name, n);
	*ret = value;
	return 0;
}

static int expand_home(struct reader *rd, unsigned col, const char **text, const char **ret)
{
	if ((*text)[1] && (*text)[1] != '/')
		return policyscan_fault(rd->error, &rd->where, col,
					"expected ~/ (a file that starts with ~: ./~)");
	if (!rd->vars->home)
		return missing(rd, col, "there is no home directory for ~", "", 0);
	++*text;
	*ret = rd->vars->home;
	return 0;
}

static int expand_base(struct reader *rd, unsigned col, const char **text, const char **ret)
{
	switch (**text) {
	case '/':
		*ret = "";
		return 0;
	case '~':
		return expand_home(rd, col, text, ret);
	case '$':
		return expand_variable(rd, col, text, ret);
	default:
		if (!rd->vars->project)
			return missing(rd, col,
				       "expected an absolute path: there is no project here that "
				       "a relative one could start from",
				       "", 0);
		*ret = rd->vars->project;
		return 0;
	}
}

static void add_escaped(struct buf *out, const char *s)
{
	for (;; s++) {
		size_t n = strcspn(s, "*?\\");
		buf_add(out, s, n);
		s += n;
		if (!*s)
			return;
		buf_add_char(out, '\\');
		buf_add_char(out, *s);
	}
}

/* n bytes of glob text that has no wildcards, as the name that it means. */
static void add_unescaped(struct buf *out, const char *s, size_t n)
{
	const char *end = s + n;
	while (s < end) {
		const char *escape = memchr(s, '\\', (size_t)(end - s));
		if (!escape || escape + 1 == end)
			escape = end;
		buf_add(out, s, (size_t)(escape - s));
		s = escape;
		if (s < end) {
			buf_add_char(out, s[1]);
			s += 2;
		}
	}
}

static int canonical_fault(struct reader *rd, unsigned col, int r)
{
	if (r == -EOPNOTSUPP)
		return policyscan_fault(rd->error, &rd->where, col,
					"/proc/self is another thing to every process; name /proc");
	if (r == -ELOOP || r == -ENAMETOOLONG)
		return policyscan_fault(rd->error, &rd->where, col, "can't follow this path: %s",
					strerror(-r));
	return r;
}

/* rd->full, the absolute glob text: literal directories resolved, the rest as written. Loans. */
static int resolve(struct reader *rd, unsigned col, bool *ret_glob, struct rule *ret)
{
	const char *text = buf_str(&rd->full);
	struct pathwalk *w = rd->walk;
	size_t wild = glob_first_wild(text, rd->full.len);
	buf_reset(&rd->literal);
	add_unescaped(&rd->literal, text, wild);
	int r = buf_error(&rd->literal);
	if (r == 0)
		r = canonical_fault(
			rd, col, pathwalk_resolve(w, buf_str(&rd->literal), rd->vars->as_written));
	if (r < 0)
		return r;
	ret->links = w->links.len ? w->links.data : NULL;
	ret->links_len = w->links.len;
	ret->path = w->out.data;
	*ret_glob = wild < rd->full.len;
	if (!*ret_glob)
		return 0;
	buf_reset(&rd->path);
	add_escaped(&rd->path, w->out.len > 1 ? w->out.data : "");
	buf_add_char(&rd->path, '/');
	buf_add_str(&rd->path, text + wild);
	ret->path = rd->path.data;
	return buf_error(&rd->path);
}

/* From the word to rule->path and kind; LEFT_OUT where the rule does not apply here. */
static int resolve_word(struct reader *rd, const struct policyscan_word *w, bool exact,
			struct rule *rule)
{
	const char *text = w->text, *base = NULL;
	int r = expand_base(rd, w->col, &text, &base);
	if (r != 0)
		return r;
	buf_reset(&rd->full);
	add_escaped(&rd->full, base);
	if (*text && *text != '/')
		buf_add_char(&rd->full, '/');
	buf_add_str(&rd->full, text);
	bool glob = false;
	r = buf_error(&rd->full);
	if (r == 0)
		r = resolve(rd, w->col, &glob, rule);
	rule->kind =
		glob ? (exact ? RULE_GLOB_EXACT : RULE_GLOB) : (exact ? RULE_EXACT : RULE_TREE);
	return r;
}

/* ---- lines ---- */

static void set_origin(const struct reader *rd, struct rule *rule)
{
	bool line = rd->source == RULE_LINE, answer = rd->source == RULE_ANSWER;
	rule->origin = (char *)(line ? "command line" : answer ? "answer" : rd->where.name);
	rule->line = line || answer ? 0 : rd->where.line;
}

static int add_rule_about(struct reader *rd, const struct policyscan_line *l,
			  const struct policyscan_word *w)
{
	struct rule rule = {.effect = l->effect,
			    .source = rd->source,
			    .access = l->access,
			    .sensitive = l->kind == POLICYSCAN_SENSITIVE};
	int r = resolve_word(rd, w, l->exact, &rule);
	if (r != 0)
		return r == LEFT_OUT ? 0 : r;
	buf_reset(&rd->given);
	buf_add(&rd->given, w->raw, w->raw_len);
	if (buf_error(&rd->given))
		return buf_error(&rd->given);
	rule.given = strcmp(rd->given.data, rule.path) != 0 ? rd->given.data : NULL;
	set_origin(rd, &rule);
	if (w != &l->word[l->path] && policy_has(rd->policy, &rule))
		return 0; /* the variable names what it is without it */
	r = policy_add(rd->policy, &rule);
	if (r == -EINVAL)
		return policyscan_fault(rd->error, &rd->where, w->col,
					"expected at most %d components and no .. in a pattern",
					GLOB_PARTS_MAX);
	return r;
}

/* Where a program looks first, if the variable is set (XDG Base Directory Specification). */
static const struct base_directory {
	const char *path, *variable;
} base_directories[] = {
	{"~/.config", "$XDG_CONFIG_HOME"},
	{"~/.cache", "$XDG_CACHE_HOME"},
	{"~/.local/share", "$XDG_DATA_HOME"},
	{"~/.local/state", "$XDG_STATE_HOME"},
};

/* A preset means a program's files, wherever the user has it keep them: both places. */
static int add_rule_elsewhere(struct reader *rd, const struct policyscan_line *l)
{
	const struct policyscan_word *w = &l->word[l->path];
	struct buf text = {0};
	int r = 0;
	for (size_t i = 0; i < ARRAY_LEN(base_directories); i++) {
		size_t n = strlen(base_directories[i].path);
		if (strncmp(w->text, base_directories[i].path, n) != 0 ||
		    (w->text[n] && w->text[n] != '/'))
			continue;
		buf_addf(&text, "%s%s", base_directories[i].variable, w->text + n);
		struct policyscan_word there = *w;
		there.text = text.data;
		there.raw = text.data;
		there.raw_len = text.len;
		r = buf_error(&text) ? buf_error(&text) : add_rule_about(rd, l, &there);
		break;
	}
	buf_free(&text);
	return r;
}

static int add_rule(struct reader *rd, const struct policyscan_line *l)
{
	int r = add_rule_about(rd, l, &l->word[l->path]);
	return r == 0 && rd->source == RULE_PRESET ? add_rule_elsewhere(rd, l) : r;
}

static int add_presets(struct reader *rd, const struct policyscan_line *l)
{
	if (rd->source == RULE_PRESET)
		return policyscan_fault(rd->error, &rd->where, l->word[0].col,
					"a preset can't use another");
	for (size_t i = l->path; i < l->words; i++) {
		struct policy_error error;
		const char *name = l->word[i].text;
		int r = rd->policy ? preset_add(rd->policy, name, rd->vars, &error)
				   : preset_check(name, &error);
		if (r == -ENOENT)
			return policyscan_fault(rd->error, &rd->where, l->word[i].col, "%s",
						error.text);
		if (r < 0) {
			*rd->error = error;
			return r;
		}
		if (rd->policy && policy_len(rd->policy) > POLICYFILE_RULES_MAX)
			return policyscan_fault(rd->error, &rd->where, l->word[i].col,
						"expected at most %d rules", POLICYFILE_RULES_MAX);
	}
	return 0;
}

static int add_line(struct reader *rd, const char *text, size_t n)
{
	if (n > POLICYFILE_LINE_MAX)
		return policyscan_fault(rd->error, &rd->where, POLICYFILE_LINE_MAX + 1,
					"expected a line of at most %d bytes", POLICYFILE_LINE_MAX);
	struct policyscan_line l;
	int r = policyscan_line(&rd->where, text, n, rd->source == RULE_PRESET, &l, rd->error);
	if (r < 0)
		return r;
	if (l.kind == POLICYSCAN_USE)
		r = add_presets(rd, &l);
	else if (rd->policy && l.kind != POLICYSCAN_BLANK)
		r = add_rule(rd, &l);
	policyscan_release(&l);
	if (r < 0 && r != -ENOMEM && !rd->error->text[0])
		return policyscan_fault(rd->error, &rd->where, 1, "can't follow this path: %s",
					strerror(-r));
	return r;
}

/* A fault of one line ends the reading, unless all are wanted. Not where there is too much. */
static int note_fault(struct reader *rd, int r)
{
	struct policy_faults *f = rd->faults;
	if (r != -EINVAL || !f)
		return r;
	if (f->len++ < POLICYFILE_FAULTS_MAX)
		buf_addf(&f->lines, "%s\n", rd->error->text);
	rd->error->text[0] = '\0';
	if (f->lines.failed)
		return -ENOMEM;
	return rd->policy && policy_len(rd->policy) > POLICYFILE_RULES_MAX ? -EINVAL : 0;
}

static int add_text(struct reader *rd, const char *text, size_t n)
{
	if (n > POLICYFILE_SIZE_MAX)
		return policyscan_fault(rd->error, &rd->where, 1,
					"expected a text of at most %u bytes", POLICYFILE_SIZE_MAX);
	int r = 0;
	for (size_t at = 0; r == 0 && at < n; rd->where.line++) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = (end ? (size_t)(end - text) : n) - at;
		r = note_fault(rd, add_line(rd, text + at, len));
		at += len + 1;
	}
	return r;
}

static int say_memory(struct policy_error *error, int r)
{
	if (r == -ENOMEM)
		snprintf(error->text, sizeof(error->text), "out of memory");
	else if (r < 0 && !error->text[0])
		snprintf(error->text, sizeof(error->text), "%s", strerror(-r));
	return r;
}

static int read_text(struct reader rd, const char *text, size_t n)
{
	struct pathwalk own = {0};
	rd.walk = rd.vars && rd.vars->walk ? rd.vars->walk : &own;
	rd.where.line = 1;
	rd.error->text[0] = '\0';
	int r = add_text(&rd, text, n);
	pathwalk_release(&own);
	release(&rd);
	return say_memory(rd.error, r);
}

int policyfile_parse(struct policy *p, const char *name, const char *text, size_t n,
		     enum rule_source source, const struct policy_vars *vars,
		     struct policy_error *ret_error)
{
	struct reader rd = {.policy = p,
			    .where = {.name = name},
			    .source = source,
			    .vars = vars,
			    .error = ret_error};
	size_t before = policy_len(p);
	int r = read_text(rd, text, n);
	if (r < 0)
		policy_truncate(p, before);
	return r;
}

int policyfile_check(const char *name, const char *text, size_t n, struct policy_error *ret_error)
{
	struct reader rd = {.where = {.name = name}, .source = RULE_USER, .error = ret_error};
	return read_text(rd, text, n);
}

int policyfile_faults(struct policy *p, const char *name, const char *text, size_t n,
		      enum rule_source source, const struct policy_vars *vars,
		      struct policy_faults *ret, struct policy_error *ret_error)
{
	struct reader rd = {.policy = p,
			    .where = {.name = name},
			    .source = source,
			    .vars = vars,
			    .faults = ret,
			    .error = ret_error};
	*ret = (struct policy_faults){0};
	int r = read_text(rd, text, n);
	return r == -EINVAL && ret->len ? 0 : r; /* without one the text as a whole is none */
}

void policyfile_faults_release(struct policy_faults *f)
{
	buf_free(&f->lines);
	f->len = 0;
}

void policyfile_faults_add_more(const struct policy_faults *f, struct buf *out)
{
	size_t more = f->len > POLICYFILE_FAULTS_MAX ? f->len - POLICYFILE_FAULTS_MAX : 0;
	if (more)
		buf_addf(out, "and %zu more error%s\n", more, more == 1 ? "" : "s");
}

int policyfile_parse_line(struct policy *p, const char *line, enum rule_source source,
			  const struct policy_vars *vars, struct policy_error *ret_error)
{
	return policyfile_parse(p, "rule", line, strlen(line), source, vars, ret_error);
}

/* ---- files ---- */

static int file_fault(struct policy_error *error, const char *file, const char *what)
{
	struct buf text = {0};
	escape_add_str(&text, file);
	buf_addf(&text, ": %s", what);
	snprintf(error->text, sizeof(error->text), "%s", buf_str(&text));
	buf_free(&text);
	return -EINVAL;
}

static int file_errno(struct policy_error *error, const char *file, int e)
{
	file_fault(error, file, strerror(e));
	return -e;
}

int policyfile_fail(struct policy_error *e, int err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return err;
}

void policyfile_add_plain(struct buf *out, const char *path)
{
	const size_t begin = out->len;
	for (size_t n; *path; path += n) {
		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n && !(n == 1 && path[0] == '.')) {
			buf_add_char(out, '/');
			buf_add(out, path, n);
		}
	}
	if (out->len == begin)
		buf_add_char(out, '/');
}

enum policyfile_place policyfile_place(enum rule_source source)
{
	if (source == RULE_USER || source == RULE_PROJECT)
		return POLICYFILE_SAVED;
	return source == RULE_ANSWER ? POLICYFILE_OURS : POLICYFILE_NAMED;
}

/* A descriptor or -errno. */
static int open_file(const char *file, enum policyfile_place place)
{
	int wait = place == POLICYFILE_NAMED ? 0 : O_NONBLOCK;

	if (place == POLICYFILE_OURS || place == POLICYFILE_DRAFT)
		return ownfile_open(file, O_RDONLY);
	if (place == POLICYFILE_PROPOSED)
		return outfile_open(file, O_RDONLY | wait, 0);
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | wait);
	return fd < 0 ? -errno : fd;
}

/* What is wrong with what was opened; NULL: nothing. */
static const char *fault_of(const struct stat *st, enum policyfile_place place)
{
	if (place == POLICYFILE_NAMED ? S_ISDIR(st->st_mode) : !S_ISREG(st->st_mode))
		return "expected a regular file";
	if (place == POLICYFILE_SAVED && st->st_uid && st->st_uid != geteuid())
		return "it belongs to another user";
	if ((place == POLICYFILE_SAVED || place == POLICYFILE_OURS) &&
	    (st->st_mode & (S_IWGRP | S_IWOTH)))
		return "others may write to it: look at what it says, then chmod go-w it";
	return NULL;
}

static int open_fault(struct policy_error *error, const char *file, int err)
{
	if (err == -ELOOP)
		return file_fault(error, file, "expected a file, not a symlink"), err;
	if (err == -EINVAL)
		return file_fault(error, file, "expected a regular file");
	if (err == -EPERM) /* a rule's no is another thing */
		return file_fault(error, file, ownfile_strerror(err));
	return file_errno(error, file, -err);
}

int policyfile_read(const char *file, enum policyfile_place place, struct buf *ret,
		    struct policy_error *ret_error)
{
	int fd AUTOCLOSE = open_file(file, place);
	struct stat st;

	if (fd == -ENXIO) /* a socket, say */
		fd = -EINVAL;
	if (fd < 0)
		return open_fault(ret_error, file, fd);
	if (fstat(fd, &st) < 0)
		return file_errno(ret_error, file, errno);
	const char *fault = fault_of(&st, place);
	if (fault)
		return file_fault(ret_error, file, fault);
	return policyfile_read_fd(fd, file, ret, ret_error);
}

int policyfile_read_fd(int fd, const char *name, struct buf *ret, struct policy_error *ret_error)
{
	ret->max = POLICYFILE_SIZE_MAX;
	int r = buf_read_from(fd, ret);
	if (r == -EFBIG)
		return file_fault(ret_error, name, "expected at most 1 MiB");
	return r < 0 ? file_errno(ret_error, name, -r) : 0;
}

void policyfile_add_remedy(const char *file, enum rule_source source, struct policy_error *e)
{
	size_t n = strlen(file), end = strlen(e->text);
	bool placed = !strncmp(e->text, file, n) && strspn(e->text + n, ":123456789") > 1;
	if (placed && (source == RULE_USER || source == RULE_PROJECT))
		snprintf(e->text + end, sizeof(e->text) - end, "; to mend it: warder policy %sedit",
			 source == RULE_PROJECT ? "--project " : "");
}

int policyfile_load(struct policy *p, const char *file, enum rule_source source,
		    const struct policy_vars *vars, struct policy_error *ret_error)
{
	struct buf text = {0};
	int r = policyfile_read(file, policyfile_place(source), &text, ret_error);
	if (r == 0)
		r = policyfile_parse(p, file, buf_str(&text), text.len, source, vars, ret_error);
	if (r == -EINVAL)
		policyfile_add_remedy(file, source, ret_error);
	buf_free(&text);
	return r;
}
