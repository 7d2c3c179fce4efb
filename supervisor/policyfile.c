#include "supervisor/policyfile.h"

#include "supervisor/escape.h"
#include "supervisor/glob.h"
#include "supervisor/policyscan.h"
#include "supervisor/presets.h"
#include "tracer/outfile.h"
#include "tracer/path.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- symlinks ---- */

struct walk {
	struct buf out;	   /* what is resolved; no trailing slash */
	struct buf rest;   /* what is not yet */
	struct buf seen;   /* the symlinks on the way, each with its NUL */
	struct buf *plain; /* a path whose components are no symlinks, as found before; or NULL */
	unsigned links;
	bool as_written; /* all of it */
	bool missing;	 /* the last component was not there: take the rest as it is written */
};

static void pop(struct walk *w)
{
	while (w->out.len && w->out.data[w->out.len - 1] != '/')
		w->out.len--;
	if (w->out.len)
		w->out.len--;
	if (w->out.data)
		w->out.data[w->out.len] = '\0';
	w->missing = false;
}

/* out names a symlink: replace it by its target. */
static int follow(struct walk *w, size_t parent_len)
{
	char target[PATH_MAX];
	ssize_t n = readlink(buf_str(&w->out), target, sizeof(target));
	if (n < 0)
		return -errno;
	if (n == sizeof(target))
		return -ENAMETOOLONG;
	if (++w->links > PATH_LINKS_MAX)
		return -ELOOP;
	buf_add(&w->seen, buf_str(&w->out), w->out.len + 1);
	struct buf rest = {0};
	buf_add(&rest, target, (size_t)n);
	buf_add_char(&rest, '/');
	buf_add(&rest, buf_str(&w->rest), w->rest.len);
	buf_free(&w->rest);
	w->rest = rest;
	w->out.len = n && target[0] == '/' ? 0 : parent_len;
	w->out.data[w->out.len] = '\0';
	return 0;
}

static bool is_self(const char *path)
{
	return strcmp(path, "/proc/self") == 0 || strcmp(path, "/proc/thread-self") == 0;
}

/* Rules of one text lie together, mostly: what was looked at for the last one is not again. */
static bool is_plain(const struct walk *w)
{
	const struct buf *p = w->plain;
	return p && p->len >= w->out.len && !memcmp(p->data, w->out.data, w->out.len) &&
	       (p->len == w->out.len || p->data[w->out.len] == '/');
}

static void note_plain(struct walk *w)
{
	if (!w->plain)
		return;
	buf_reset(w->plain);
	buf_add(w->plain, w->out.data, w->out.len);
	if (buf_error(w->plain))
		buf_free(w->plain); /* what is not known is looked at */
}

static int enter(struct walk *w, const char *name, size_t n)
{
	size_t parent_len = w->out.len;
	buf_add_char(&w->out, '/');
	buf_add(&w->out, name, n);
	if (buf_error(&w->out) < 0)
		return buf_error(&w->out);
	if (w->missing || w->as_written)
		return 0;
	if (is_self(w->out.data))
		return -EOPNOTSUPP;
	if (is_plain(w))
		return 0;
	struct stat st;
	if (lstat(w->out.data, &st) < 0) {
		/* What can't be looked at from here can't be resolved by anybody below us either.
		 */
		w->missing = true;
		return errno == ENAMETOOLONG ? -ENAMETOOLONG : 0;
	}
	if (S_ISLNK(st.st_mode))
		return follow(w, parent_len);
	note_plain(w);
	return 0;
}

static int walk_all(struct walk *w)
{
	while (w->rest.len) {
		char name[NAME_MAX + 1];
		size_t skip = strspn(w->rest.data, "/");
		size_t n = strcspn(w->rest.data + skip, "/");
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		memcpy(name, w->rest.data + skip, n);
		buf_drop(&w->rest, skip + n);
		int r = 0;
		if (n == 2 && memcmp(name, "..", 2) == 0)
			pop(w);
		else if (n > 1 || (n == 1 && name[0] != '.'))
			r = enter(w, name, n);
		if (r < 0)
			return r;
	}
	return buf_error(&w->rest);
}

/* *ret_links: see struct rule; the caller's to free. *w says how, and is used up. */
static int canonical(const char *absolute, struct walk *w, char **ret, char **ret_links,
		     size_t *ret_links_len)
{
	if (absolute[0] != '/')
		return -EINVAL;
	buf_add_str(&w->rest, absolute);
	int r = buf_error(&w->rest);
	if (r == 0)
		r = walk_all(w);
	if (r == 0 && w->out.len == 0)
		buf_add_char(&w->out, '/');
	buf_free(&w->rest);
	if (r == 0)
		r = buf_error(&w->seen);
	char *path = r == 0 ? buf_take(&w->out) : NULL;
	buf_free(&w->out);
	if (!path) {
		buf_free(&w->seen);
		return r < 0 ? r : -ENOMEM;
	}
	*ret = path;
	*ret_links_len = w->seen.len;
	*ret_links = w->seen.len ? buf_take(&w->seen) : NULL;
	return 0;
}

int policyfile_canonical_links(const char *absolute, char **ret, char **ret_links,
			       size_t *ret_links_len)
{
	struct walk w = {0};
	*ret_links = NULL;
	*ret_links_len = 0;
	return canonical(absolute, &w, ret, ret_links, ret_links_len);
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
	struct policy_faults *faults; /* NULL: the first one ends it */
	struct buf plain;	      /* see struct walk */
};

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
	for (; *s; s++) {
		if (strchr("*?\\", *s))
			buf_add_char(out, '\\');
		buf_add_char(out, *s);
	}
}

/* n bytes of glob text that has no wildcards, as the name that it means. */
static void add_unescaped(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n)
			i++;
		buf_add_char(out, s[i]);
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

/* The absolute glob text: literal directories resolved, the rest as written. */
static int resolve(struct reader *rd, unsigned col, const char *text, bool *ret_glob,
		   struct rule *ret)
{
	size_t n = strlen(text);
	size_t wild = glob_first_wild(text, n);
	struct buf literal = {0}, out = {0};
	struct walk w = {.plain = &rd->plain, .as_written = rd->vars->as_written};
	add_unescaped(&literal, text, wild);
	char *real AUTOFREE = NULL;
	int r = buf_error(&literal);
	if (r == 0)
		r = canonical_fault(
			rd, col,
			canonical(buf_str(&literal), &w, &real, &ret->links, &ret->links_len));
	buf_free(&literal);
	if (r < 0)
		return r;
	*ret_glob = wild < n;
	if (*ret_glob) {
		add_escaped(&out, real[1] ? real : "");
		buf_add_char(&out, '/');
		buf_add_str(&out, text + wild);
	} else {
		buf_add_str(&out, real);
	}
	ret->path = buf_take(&out);
	if (ret->path)
		return 0;
	free(TAKE_PTR(ret->links));
	return -ENOMEM;
}

/* From the word to rule->path and kind; LEFT_OUT where the rule does not apply here. */
static int resolve_word(struct reader *rd, const struct policyscan_word *w, bool exact,
			struct rule *rule)
{
	const char *text = w->text, *base = NULL;
	int r = expand_base(rd, w->col, &text, &base);
	if (r != 0)
		return r;
	struct buf full = {0};
	add_escaped(&full, base);
	if (*text && *text != '/')
		buf_add_char(&full, '/');
	buf_add_str(&full, text);
	bool glob = false;
	r = buf_error(&full);
	if (r == 0)
		r = resolve(rd, w->col, buf_str(&full), &glob, rule);
	buf_free(&full);
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

static int add_rule(struct reader *rd, const struct policyscan_line *l)
{
	const struct policyscan_word *w = &l->word[l->path];
	struct rule rule = {.effect = l->effect,
			    .source = rd->source,
			    .access = l->access,
			    .sensitive = l->kind == POLICYSCAN_SENSITIVE};
	int r = resolve_word(rd, w, l->exact, &rule);
	if (r != 0)
		return r == LEFT_OUT ? 0 : r;
	char *path AUTOFREE = rule.path;
	char *links AUTOFREE = rule.links;
	(void)links; /* clang counts a cleanup as no use */
	char *raw AUTOFREE = strndup(w->raw, w->raw_len);
	if (!raw)
		return -ENOMEM;
	rule.given = strcmp(raw, path) != 0 ? raw : NULL;
	set_origin(rd, &rule);
	r = policy_add(rd->policy, &rule);
	if (r == -EINVAL)
		return policyscan_fault(rd->error, &rd->where, w->col,
					"expected at most %d components and no .. in a pattern",
					GLOB_PARTS_MAX);
	return r;
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
	rd.where.line = 1;
	rd.error->text[0] = '\0';
	int r = add_text(&rd, text, n);
	buf_free(&rd.plain);
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

static int read_all(int fd, struct buf *out)
{
	char block[16384];
	for (;;) {
		ssize_t n = read(fd, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return buf_error(out);
		buf_add(out, block, (size_t)n);
		if (out->failed) /* a file may be longer than anybody would wait for */
			return buf_error(out);
	}
}

int policyfile_read(const char *file, bool nofollow, struct buf *ret,
		    struct policy_error *ret_error)
{
	/* Our own file: O_NONBLOCK, a FIFO in its place must not hold us. One that the user names
	 * may be a pipe, as in --policy <(...), and is waited for. */
	int fd AUTOCLOSE = nofollow ? outfile_open(file, O_RDONLY | O_NONBLOCK, 0)
				    : open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd == -ELOOP && nofollow)
		return file_fault(ret_error, file, "expected a file, not a symlink"), -ELOOP;
	if (fd < 0)
		return file_errno(ret_error, file, nofollow ? -fd : errno);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return file_errno(ret_error, file, errno);
	if (nofollow ? !S_ISREG(st.st_mode) : S_ISDIR(st.st_mode))
		return file_fault(ret_error, file, "expected a regular file");
	return policyfile_read_fd(fd, file, ret, ret_error);
}

int policyfile_read_fd(int fd, const char *name, struct buf *ret, struct policy_error *ret_error)
{
	ret->max = POLICYFILE_SIZE_MAX;
	int r = read_all(fd, ret);
	if (r == -EFBIG)
		return file_fault(ret_error, name, "expected at most 1 MiB");
	return r < 0 ? file_errno(ret_error, name, -r) : 0;
}

int policyfile_load(struct policy *p, const char *file, enum rule_source source,
		    const struct policy_vars *vars, struct policy_error *ret_error)
{
	struct buf text = {0};
	int r = policyfile_read(file, false, &text, ret_error);
	if (r == 0)
		r = policyfile_parse(p, file, buf_str(&text), text.len, source, vars, ret_error);
	buf_free(&text);
	return r;
}
