#include "agent/toolchange.h"

#include "agent/diff.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The file as it was when it was read. */
struct before {
	struct buf text;
	struct stat st;
	bool exists;
	bool known; /* the text was read, whole */
};

/* ---- what is there ---- */

/* 0 or -errno. What is no regular file is opened by nobody: *ret->st tells. */
static int look(const char *path, struct before *ret)
{
	if (stat(path, &ret->st))
		return errno == ENOENT ? 0 : -errno;
	ret->exists = true;
	if (toolwork_not_a_file(&ret->st))
		return 0;
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &ret->st))
		return -errno;
	ret->text.max = TOOLCHANGE_FILE_MAX;
	int err = buf_read_from(fd, &ret->text);
	ret->known = !err;
	return err;
}

/* ---- what will be ---- */

/* A line before the answer's: {"preview": "diff"}. Nobody's loss where it can't be told. */
static void tell(const struct toolwork *t, const struct buf *diff)
{
	struct buf line = {0};
	struct jsonw w;
	if (t->preview_fd < 0 || !diff->len)
		return;
	jsonw_init(&w, &line);
	jsonw_begin_object(&w);
	jsonw_key(&w, "preview");
	jsonw_bytes(&w, buf_str(diff), diff->len);
	jsonw_end_object(&w);
	buf_add_char(&line, '\n');
	if (!buf_error(&line))
		(void)buf_write_to(t->preview_fd, line.data, line.len);
	buf_free(&line);
}

static int preview(const struct toolwork *t, const struct before *b, const char *text, size_t n,
		   struct diff_count *ret)
{
	struct buf diff = {0};
	int err = diff_write(&diff, buf_str(&b->text), b->text.len, text, n, TOOLCHANGE_PREVIEW_MAX,
			     ret);
	if (!err)
		tell(t, &diff);
	buf_free(&diff);
	return err;
}

/* ---- writing ---- */

/* mkdir -p of the path's parents; the ones made are written into the array that is open in w. */
static int make_parents(struct jsonw *w, const char *path)
{
	AUTOFREE
	char *dir = strdup(path);
	if (!dir)
		return -ENOMEM;
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (!mkdir(dir, 0777))
			jsonw_str(w, dir);
		else if (errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

/*
 * In place, so that a grant for exactly this path is enough and the file keeps its mode and owner.
 * Emptied only when it is known to be the one that was read.
 */
static int open_for_writing(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
	return fd < 0 ? -errno : fd;
}

static int open_with_parents(struct jsonw *w, const char *path, const char **ret_operation)
{
	*ret_operation = "open";
	int fd = open_for_writing(path);
	if (fd != -ENOENT)
		return fd;
	*ret_operation = "mkdir";
	jsonw_key(w, "made_dirs");
	jsonw_begin_array(w);
	int err = make_parents(w, path);
	jsonw_end_array(w);
	if (err)
		return err;
	*ret_operation = "open";
	return open_for_writing(path);
}

/* Somebody wrote to it while the question waited: what was shown is not what would happen. */
static bool is_another(const struct before *b, const struct stat *now)
{
	const struct stat *was = &b->st;
	if (!b->exists)
		return now->st_size;
	return b->known &&
	       (was->st_ino != now->st_ino || was->st_dev != now->st_dev ||
		was->st_size != now->st_size || was->st_mtim.tv_sec != now->st_mtim.tv_sec ||
		was->st_mtim.tv_nsec != now->st_mtim.tv_nsec);
}

/* NULL, or what failed, with *ret_error. */
static const char *put_text(int fd, const char *text, size_t n, int *ret_error)
{
	const char *operation = NULL;
	int err = 0;
	if (ftruncate(fd, 0)) {
		operation = "truncate";
		err = -errno;
	} else {
		err = buf_write_to(fd, text, n);
		operation = err ? "write" : NULL;
	}
	/* Network file systems and quotas speak up only here. */
	if (close(fd) && errno != EINTR && !operation) {
		operation = "close";
		err = -errno;
	}
	*ret_error = -err;
	return operation;
}

/* False: the answer says why not. */
static bool replace(const struct toolwork *t, const struct before *b, const char *text, size_t n)
{
	const char *operation;
	struct stat now;
	int error = 0;
	int fd AUTOCLOSE = open_with_parents(t->w, t->path, &operation);
	if (fd < 0) {
		toolwork_error(t->w, operation, -fd);
		return false;
	}
	if (fstat(fd, &now) || toolwork_not_a_file(&now)) {
		toolwork_refuse(t->w, "This is no regular file.");
		return false;
	}
	if (is_another(b, &now)) {
		toolwork_refuse(t->w, "The file was changed meanwhile; nothing was written. Read "
				      "it again.");
		return false;
	}
	operation = put_text(TAKE_FD(fd), text, n, &error);
	if (operation)
		toolwork_error(t->w, operation, error);
	return !operation;
}

static void write_count(struct jsonw *w, const struct diff_count *n)
{
	jsonw_kint(w, "added", (int64_t)n->added);
	jsonw_kint(w, "removed", (int64_t)n->removed);
}

static const char *not_writable(const struct stat *st)
{
	return S_ISDIR(st->st_mode) ? "This is a directory." : toolwork_not_a_file(st);
}

/* ---- write_file ---- */

void toolchange_write(const struct toolwork *t)
{
	const char *content = json_get_str(t->args, "content");
	size_t n = strlen(content);
	struct diff_count count = {0};
	struct before before = {0};
	/* A file that can't be read can be written all the same. */
	(void)look(t->path, &before);
	bool told = before.known || !before.exists;
	if (before.exists && not_writable(&before.st))
		toolwork_refuse(t->w, not_writable(&before.st));
	else if (told && preview(t, &before, content, n, &count))
		toolwork_error(t->w, "diff", ENOMEM);
	else if (replace(t, &before, content, n)) {
		jsonw_kint(t->w, "bytes", (int64_t)n);
		jsonw_kbool(t->w, "created", !before.exists);
		if (told)
			write_count(t->w, &count);
	}
	buf_free(&before.text);
}

/* ---- edit_file ---- */

#define LINES_TOLD 5

static size_t line_of(const struct buf *text, const char *at)
{
	size_t line = 1;
	for (const char *p = text->data; p < at; p++)
		line += *p == '\n';
	return line;
}

static const char *find(const struct buf *text, const char *from, const char *old)
{
	return memmem(from, text->len - (size_t)(from - text->data), old, strlen(old));
}

static void refuse_several(struct jsonw *w, const struct buf *text, const char *first,
			   const char *old)
{
	struct buf words = {0}, lines = {0};
	size_t n = 0;
	for (const char *at = first; at; at = find(text, at + 1, old))
		if (++n <= LINES_TOLD)
			buf_addf(&lines, "%s%zu", n > 1 ? ", " : "", line_of(text, at));
	buf_addf(&words,
		 "old_string is there %zu times (lines %s%s). Nothing was written; give more of "
		 "the text around the one that is meant.",
		 n, buf_str(&lines), n > LINES_TOLD ? ", ..." : "");
	toolwork_refuse(w, buf_str(&words));
	buf_free(&words);
	buf_free(&lines);
}

static void refuse_absent(struct jsonw *w, const struct buf *text, const char *old)
{
	bool dos = text->len && memmem(text->data, text->len, "\r\n", 2) && strchr(old, '\n') &&
		   !strstr(old, "\r\n");
	toolwork_refuse(w, dos ? "old_string is not in the file, whose lines end in \\r\\n. "
				 "Nothing was written."
			       : "old_string is not in the file. Nothing was written; read it and "
				 "copy the text exactly, spaces and tabs too.");
}

/* Where old_string is, the one time; NULL: the answer says why not. */
static const char *find_only(struct jsonw *w, const struct buf *text, const char *old)
{
	const char *at = text->len ? find(text, text->data, old) : NULL;
	if (!at) {
		refuse_absent(w, text, old);
		return NULL;
	}
	if (find(text, at + 1, old)) {
		refuse_several(w, text, at, old);
		return NULL;
	}
	return at;
}

static void write_edit(const struct toolwork *t, const struct before *b, const struct buf *after,
		       const struct diff_count *count)
{
	struct diff_count again;
	struct buf diff = {0};
	int err = diff_write(&diff, buf_str(&b->text), b->text.len, buf_str(after), after->len,
			     TOOLCHANGE_ANSWER_MAX, &again);
	jsonw_kint(t->w, "bytes", (int64_t)after->len);
	write_count(t->w, count);
	if (!err) {
		jsonw_key(t->w, "diff");
		jsonw_bytes(t->w, buf_str(&diff), diff.len);
	}
	buf_free(&diff);
}

static void edit(const struct toolwork *t, const struct before *b)
{
	const char *old = json_get_str(t->args, "old_string");
	const char *new = json_get_str(t->args, "new_string");
	const char *at = find_only(t->w, &b->text, old);
	struct diff_count count = {0};
	struct buf after = {.max = 2 * TOOLCHANGE_FILE_MAX};
	if (!at)
		return;
	size_t head = (size_t)(at - b->text.data);
	buf_add(&after, b->text.data, head);
	buf_add_str(&after, new);
	buf_add(&after, at + strlen(old), b->text.len - head - strlen(old));
	if (buf_error(&after))
		toolwork_error(t->w, "edit", -buf_error(&after));
	else if (preview(t, b, after.data, after.len, &count))
		toolwork_error(t->w, "diff", ENOMEM);
	else if (replace(t, b, buf_str(&after), after.len))
		write_edit(t, b, &after, &count);
	buf_free(&after);
}

void toolchange_edit(const struct toolwork *t)
{
	const char *old = json_get_str(t->args, "old_string");
	struct before before = {0};
	if (!*old) {
		toolwork_refuse(t->w, "old_string is empty; write_file writes a whole file.");
		return;
	}
	if (!strcmp(old, json_get_str(t->args, "new_string"))) {
		toolwork_refuse(t->w, "old_string and new_string are the same.");
		return;
	}
	int err = look(t->path, &before);
	if (err == -EFBIG)
		toolwork_refuse(t->w, "The file is too large to be edited; use run_shell.");
	else if (err)
		toolwork_error(t->w, "open", -err);
	else if (!before.exists)
		toolwork_error(t->w, "open", ENOENT);
	else if (not_writable(&before.st))
		toolwork_refuse(t->w, not_writable(&before.st));
	else
		edit(t, &before);
	buf_free(&before.text);
}
