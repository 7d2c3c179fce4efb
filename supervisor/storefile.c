/*
 * How a saved policy is changed: read under a lock, whole new text beside it, renamed over it. A
 * reader sees the old text or the new one; a full disk leaves the old one.
 */
#include "supervisor/escape.h"
#include "supervisor/policyscan.h"
#include "supervisor/store.h"
#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

struct edit {
	const char *file;
	char *dir;	  /* owned */
	const char *name; /* in file */
	int dirfd, lock;
	bool no_place;	 /* the directory is not there, and can't be made */
	struct buf text; /* as it stands */
	struct policy_error *error;
};

static int fault(struct edit *e, const char *what)
{
	struct buf text = {0};
	escape_add_str(&text, e->file);
	buf_addf(&text, ": %s", what);
	snprintf(e->error->text, sizeof(e->error->text), "%s", buf_str(&text));
	buf_free(&text);
	return -EINVAL;
}

static int fault_errno(struct edit *e, int number)
{
	fault(e, strerror(number));
	return -number;
}

static int fault_place(struct edit *e, int number)
{
	e->no_place = true;
	struct buf text = {0};
	buf_addf(&text, "%s; XDG_CONFIG_HOME can name another place", strerror(number));
	fault(e, buf_str(&text));
	buf_free(&text);
	return -number;
}

static void edit_end(struct edit *e)
{
	if (e->lock >= 0)
		close(e->lock);
	if (e->dirfd >= 0)
		close(e->dirfd);
	free(e->dir);
	buf_free(&e->text);
}

static int open_dir(struct edit *e)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	e->dirfd = outfile_open(e->dir, flags, 0);
	int made = e->dirfd == -ENOENT ? store_make_path(e->dir) : 0;
	if (made)
		return fault_place(e, -made);
	if (e->dirfd == -ENOENT)
		e->dirfd = outfile_open(e->dir, flags, 0);
	if (e->dirfd < 0)
		return fault_errno(e, -e->dirfd);
	struct stat st;
	if (fstat(e->dirfd, &st) < 0)
		return fault_errno(e, errno);
	return st.st_uid == geteuid() ? 0 : fault(e, "its directory belongs to another user");
}

static int fault_lock(struct edit *e, int err)
{
	struct buf text = {0};
	/* What is in the lock's place can be removed; a disk that is full or read-only can't. */
	bool wrong = err == -EPERM || err == -ELOOP || err == -EINVAL;
	buf_addf(&text, "%s/.lock: %s%s", e->dir, ownfile_strerror(err),
		 wrong ? "; remove it" : "");
	int r = fault(e, buf_str(&text));
	buf_free(&text);
	return err == -EPERM ? r : err; /* a rule's no is another thing */
}

static int take_lock(struct edit *e)
{
	e->lock = ownfile_open_at(e->dirfd, ".lock", O_RDWR | O_CREAT);
	if (e->lock < 0)
		return fault_lock(e, e->lock);
	while (flock(e->lock, LOCK_EX) < 0)
		if (errno != EINTR)
			return fault_errno(e, errno);
	return 0;
}

/* Locks and reads. To be ended with edit_end(), also after an error. */
static int edit_open(struct edit *e, const char *file, struct policy_error *error)
{
	*e = (struct edit){.file = file, .dirfd = -1, .lock = -1, .error = error};
	error->text[0] = '\0';
	const char *slash = strrchr(file, '/');
	if (file[0] != '/')
		return fault(e, "expected an absolute path");
	e->name = slash + 1;
	e->dir = strndup(file, slash == file ? 1 : (size_t)(slash - file));
	int r = e->dir ? open_dir(e) : -ENOMEM;
	if (r == 0)
		r = take_lock(e);
	if (r < 0)
		return r;
	r = policyfile_read(file, POLICYFILE_OURS, &e->text, error);
	return r == -ENOENT ? 0 : r;
}

/* And checks: a broken file is nobody's to change but the user's. */
static int edit_begin(struct edit *e, const char *file, struct policy_error *error)
{
	int r = edit_open(e, file, error);
	return r < 0 ? r : policyfile_check(file, buf_str(&e->text), e->text.len, error);
}

static int write_new(int dirfd, const char *name, const struct buf *text)
{
	int fd AUTOCLOSE =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	int r = buf_write_to(fd, buf_str(text), text->len);
	return r < 0 ? r : fsync(fd) < 0 ? -errno : 0;
}

static int edit_commit(struct edit *e, const struct buf *text)
{
	if (text->len > POLICYFILE_SIZE_MAX)
		return fault(e, "it would grow beyond 1 MiB");
	char temporary[64];
	snprintf(temporary, sizeof(temporary), ".new.%d", (int)getpid());
	unlinkat(e->dirfd, temporary,
		 0); /* of a crashed process that had our pid; we hold the lock */
	int r = write_new(e->dirfd, temporary, text);
	if (r == 0 && renameat(e->dirfd, temporary, e->dirfd, e->name) < 0)
		r = -errno;
	if (r < 0) {
		unlinkat(e->dirfd, temporary, 0);
		return fault_errno(e, -r);
	}
	fsync(e->dirfd); /* the rename is done either way */
	return 0;
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

static int edit_remove(struct edit *e)
{
	if (unlinkat(e->dirfd, e->name, 0) < 0 && errno != ENOENT)
		return fault_errno(e, errno);
	fsync(e->dirfd); /* gone either way */
	return 0;
}

int store_replace(const char *file, const struct buf *old, const struct buf *text,
		  struct policy_error *ret_error)
{
	struct edit e;
	int r = edit_open(&e, file, ret_error);
	if (r == 0 && !is_same(&e.text, old)) {
		fault(&e, "it was changed meanwhile; nothing was saved");
		r = -EBUSY;
	}
	if (r == 0)
		r = text ? edit_commit(&e, text) : edit_remove(&e);
	edit_end(&e);
	return r;
}

/* ---- lines ---- */

struct lines {
	const char *at, *end;
	unsigned number;
};

static bool next_line(struct lines *l, const char **ret, size_t *ret_n)
{
	if (l->at >= l->end)
		return false;
	const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));
	const char *stop = newline ? newline : l->end;
	*ret = l->at;
	*ret_n = (size_t)(stop - l->at);
	l->at = stop + 1;
	l->number++;
	return true;
}

static bool has_line(const struct buf *text, const struct buf *rule)
{
	struct lines l = {.at = buf_str(text), .end = buf_str(text) + text->len};
	const char *line;
	size_t n;
	while (next_line(&l, &line, &n)) {
		if (n < rule->len || memcmp(line, rule->data, rule->len) != 0)
			continue;
		size_t blank = rule->len;
		while (blank < n && (line[blank] == ' ' || line[blank] == '\t'))
			blank++;
		if (blank == n || (blank > rule->len && line[blank] == '#'))
			return true;
	}
	return false;
}

/* The text with the line at its end; unchanged where it says so already. */
static int add_line(struct edit *e, struct buf *text, const struct buf *line, const char *comment)
{
	int r = buf_error(line);
	if (r == 0 && !has_line(text, line)) {
		if (text->len && text->data[text->len - 1] != '\n')
			buf_add_char(text, '\n');
		buf_add(text, line->data, line->len);
		if (comment) {
			buf_add_str(text, "  # ");
			escape_add_str(text, comment);
		}
		buf_add_char(text, '\n');
		r = buf_error(text);
	}
	/* What was written must read back: a comment, too, could be too long for a line. */
	if (r == 0)
		r = policyfile_check(e->file, buf_str(text), text->len, e->error);
	return r;
}

static int commit_if_changed(struct edit *e, const struct buf *text)
{
	if (text->len == e->text.len && memcmp(buf_str(text), buf_str(&e->text), text->len) == 0)
		return 0;
	return edit_commit(e, text);
}

static int append(const char *file, const struct buf *line, const char *comment,
		  struct policy_error *ret_error)
{
	struct edit e;
	struct buf text = {0};
	int r = edit_begin(&e, file, ret_error);
	if (r == 0) {
		buf_add(&text, buf_str(&e.text), e.text.len);
		r = add_line(&e, &text, line, comment);
	}
	if (r == 0)
		r = commit_if_changed(&e, &text);
	buf_free(&text);
	edit_end(&e);
	return r;
}

int store_append_rule(const char *file, const struct rule *rule, const char *comment,
		      struct policy_error *ret_error)
{
	struct buf line = {0};
	policy_format_rule(&line, rule);
	int r = append(file, &line, comment, ret_error);
	buf_free(&line);
	return r;
}

int store_append_use(const char *file, const char *preset, const char *comment,
		     struct policy_error *ret_error)
{
	struct buf line = {0};
	buf_addf(&line, "use %s", preset);
	int r = append(file, &line, comment, ret_error);
	buf_free(&line);
	return r;
}

/* What becomes of a line's rule: its accesses afterwards; 0 removes the line. */
struct change {
	const char *path;
	uint32_t access;
	const struct rule
		*instead; /* put: rules of the same kind and another effect; NULL: forget */
};

static uint32_t remaining(const struct change *c, const struct rule *old)
{
	bool same_path = strcmp(old->path, c->path) == 0 ||
			 (!c->instead && old->given && strcmp(old->given, c->path) == 0);
	if (old->source == RULE_PRESET || !same_path || !(old->access & c->access))
		return old->access;
	if (!c->instead)
		return 0;
	if (old->kind != c->instead->kind || old->effect == c->instead->effect)
		return old->access;
	return old->access & ~c->access;
}

static const struct rule *rule_of_line(const struct policy *p, unsigned line)
{
	for (size_t i = 0; i < policy_len(p); i++)
		if (policy_at(p, i)->source == RULE_USER && policy_at(p, i)->line == line)
			return policy_at(p, i);
	return NULL;
}

static void add_narrowed(struct buf *out, const struct rule *old, uint32_t access)
{
	struct rule narrowed = *old;
	narrowed.access = access;
	policy_format_rule(out, &narrowed);
}

static void rewrite(const struct edit *e, const struct policy *rules, const struct change *c,
		    struct buf *out, size_t *ret_changed)
{
	struct lines l = {.at = buf_str(&e->text), .end = buf_str(&e->text) + e->text.len};
	const char *line;
	size_t n;
	*ret_changed = 0;
	while (next_line(&l, &line, &n)) {
		const struct rule *old = rule_of_line(rules, l.number);
		uint32_t access = old ? remaining(c, old) : 0;
		if (!old || access == old->access) {
			buf_add(out, line, n);
			buf_add_char(out, '\n');
			continue;
		}
		++*ret_changed;
		if (!access)
			continue;
		add_narrowed(out, old, access);
		buf_add_char(out, '\n');
	}
}

/* A forbid is not overruled by another rule, and so does not give way to one either. */
static int check_forbids(struct edit *e, const struct policy *rules, const struct change *c)
{
	if (!c->instead || c->instead->effect == EFFECT_FORBID)
		return 0;
	for (size_t i = 0; i < policy_len(rules); i++) {
		const struct rule *r = policy_at(rules, i);
		if (r->effect != EFFECT_FORBID || remaining(c, r) == r->access)
			continue;
		struct buf text = {0};
		escape_add_str(&text, e->file);
		buf_addf(&text, ":%u: ", r->line);
		policy_format_rule(&text, r);
		buf_add_str(&text, ": no other rule overrides it, and nothing was saved");
		snprintf(e->error->text, sizeof(e->error->text), "%s", buf_str(&text));
		buf_free(&text);
		return -EPERM;
	}
	return 0;
}

static int change_lines(struct edit *e, const struct change *c, const struct policy_vars *vars,
			struct buf *out, size_t *ret_changed)
{
	struct policy *rules;
	int r = policy_new(&rules);
	if (r < 0)
		return r;
	r = policyfile_parse(rules, e->file, buf_str(&e->text), e->text.len, RULE_USER, vars,
			     e->error);
	if (r == 0)
		r = check_forbids(e, rules, c);
	if (r == 0) {
		rewrite(e, rules, c, out, ret_changed);
		r = buf_error(out);
	}
	policy_free(rules);
	return r;
}

int store_put_rule(const char *file, const struct rule *rule, const char *comment,
		   const struct policy_vars *vars, size_t *ret_changed,
		   struct policy_error *ret_error)
{
	struct change c = {.path = rule->path, .access = rule->access, .instead = rule};
	struct edit e;
	struct buf text = {0}, line = {0};
	size_t changed = 0;
	policy_format_rule(&line, rule);
	int r = edit_begin(&e, file, ret_error);
	if (r == 0)
		r = change_lines(&e, &c, vars, &text, &changed);
	if (r == 0)
		r = add_line(&e, &text, &line, comment);
	if (r == 0)
		r = commit_if_changed(&e, &text);
	if (r == 0 && ret_changed)
		*ret_changed = changed;
	buf_free(&line);
	buf_free(&text);
	edit_end(&e);
	return r;
}

int store_forget(const char *file, const char *path, uint32_t access,
		 const struct policy_vars *vars, size_t *ret_removed,
		 struct policy_error *ret_error)
{
	struct change c = {.path = path, .access = access};
	struct edit e;
	struct buf text = {0};
	size_t removed = 0;
	int r = edit_begin(&e, file, ret_error);
	if (r == -ENOENT || e.no_place)
		r = 0; /* not even a directory */
	else if (r == 0)
		r = change_lines(&e, &c, vars, &text, &removed);
	if (r == 0 && removed)
		r = edit_commit(&e, &text);
	if (r == 0)
		*ret_removed = removed;
	buf_free(&text);
	edit_end(&e);
	return r;
}
