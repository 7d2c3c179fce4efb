#include "agent/toolchild.h"

#include "agent/toolchange.h"
#include "agent/tools.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (64u << 10)

/* Models write ~/ as people do; the shell is not there to expand it. Owned, NULL without memory. */
static char *expand(const char *path)
{
	const char *home = getenv("HOME");
	char *full = NULL;
	if (path[0] != '~' || (path[1] && path[1] != '/') || !home)
		return strdup(path);
	return asprintf(&full, "%s%s", home, path + 1) < 0 ? NULL : full;
}

/* ---- read_file ---- */

struct reading {
	int64_t first, last; /* lines wanted, from 1; last 0: to the end */
	int64_t line;	     /* the line that the next byte belongs to */
	int64_t lines;	     /* seen, a last one without newline included */
	struct buf text;
	bool cut; /* text is full */
	bool binary;
};

/* One piece of a line, with its newline if it has one. */
static void take_piece(struct reading *r, const char *p, size_t n)
{
	bool wanted = r->line >= r->first && (!r->last || r->line <= r->last);
	if (wanted && !r->cut) {
		size_t room = TOOLCHILD_READ_MAX - r->text.len;
		r->cut = n > room;
		buf_add(&r->text, p, n < room ? n : room);
	}
	r->lines = r->line;
	if (p[n - 1] == '\n')
		r->line++;
}

static void take_chunk(struct reading *r, const char *p, size_t n)
{
	r->binary = r->binary || memchr(p, 0, n);
	for (size_t at = 0; at < n;) {
		const char *newline = memchr(p + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - p) - at + 1 : n - at;
		take_piece(r, p + at, len);
		at += len;
	}
}

/* 0: everything was read; 1: stopped at TOOLCHILD_SCAN_MAX or at the first NUL; -errno. */
static int scan(int fd, struct reading *r)
{
	AUTOFREE
	char *chunk = malloc(CHUNK);
	if (!chunk)
		return -ENOMEM;
	for (size_t done = 0; done < TOOLCHILD_SCAN_MAX && !r->binary;) {
		ssize_t n = read(fd, chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0;
		take_chunk(r, chunk, (size_t)n);
		done += (size_t)n;
	}
	return 1;
}

/* A cut in the middle of a line goes back to the line's start, unless the line fills the answer. */
static void cut_at_line(struct reading *r)
{
	const char *newline = r->cut ? memrchr(r->text.data, '\n', r->text.len) : NULL;
	if (newline)
		r->text.len = (size_t)(newline - r->text.data) + 1;
	/* Nor is a character cut in two. */
	for (size_t i = 1; r->cut && !newline && i < 4 && i <= r->text.len; i++) {
		unsigned char c = (unsigned char)r->text.data[r->text.len - i];
		if (c >= 0xc0 && !json_utf8_len(r->text.data + r->text.len - i, i))
			r->text.len -= i;
	}
}

static int64_t count_lines(const struct buf *text)
{
	int64_t n = 0;
	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n + (text->len && text->data[text->len - 1] != '\n');
}

static bool is_utf8(const struct buf *text)
{
	for (size_t i = 0, len; i < text->len; i += len) {
		len = json_utf8_len(text->data + i, text->len - i);
		if (!len)
			return false;
	}
	return true;
}

static void write_read_note(struct jsonw *w, const struct reading *r, int64_t end, bool whole)
{
	struct buf note = {0};
	if (r->cut)
		buf_addf(&note, "Cut at %u bytes. Go on with start_line %lld. ", TOOLCHILD_READ_MAX,
			 (long long)end + 1);
	if (!r->text.len && whole && r->lines < r->first && r->lines)
		buf_addf(&note, "The file has only %lld lines. ", (long long)r->lines);
	if (!is_utf8(&r->text))
		buf_add_str(&note, "Not UTF-8: bytes above 0x7f are shown as Latin-1. ");
	if (note.len)
		jsonw_kstr(w, "note", buf_str(&note));
	buf_free(&note);
}

static void write_reading(struct jsonw *w, struct reading *r, int64_t bytes, bool whole)
{
	if (r->binary) {
		jsonw_kint(w, "bytes", bytes);
		jsonw_kbool(w, "binary", true);
		toolwork_refuse(w, "The file is binary (it has NUL bytes) and is not shown.");
		return;
	}
	cut_at_line(r);
	int64_t end = r->first + count_lines(&r->text) - 1;
	jsonw_key(w, "content");
	jsonw_bytes(w, buf_str(&r->text), r->text.len);
	if (r->text.len) {
		jsonw_kint(w, "start_line", r->first);
		jsonw_kint(w, "end_line", end);
	}
	if (whole)
		jsonw_kint(w, "total_lines", r->lines);
	jsonw_kint(w, "bytes", bytes);
	jsonw_kbool(w, "truncated", r->cut);
	write_read_note(w, r, end, whole);
}

static void read_file(const struct toolwork *t)
{
	struct jsonw *w = t->w;
	struct reading r = {.first = 1, .line = 1};
	json_get_int(t->args, "start_line", &r.first);
	json_get_int(t->args, "end_line", &r.last);
	if (r.last && r.last < r.first) {
		toolwork_refuse(w, "end_line is before start_line.");
		return;
	}
	int fd AUTOCLOSE = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st)) {
		toolwork_error(w, "open", errno);
		return;
	}
	if (toolwork_not_a_file(&st)) {
		toolwork_refuse(w, toolwork_not_a_file(&st));
		return;
	}
	int end = scan(fd, &r);
	if (end < 0)
		toolwork_error(w, "read", -end);
	else
		write_reading(w, &r, st.st_size, end == 0);
	buf_free(&r.text);
}

/* ---- list_dir ---- */

static const char *type_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "symlink";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "socket";
	default:
		return "device";
	}
}

static void write_entry(struct jsonw *w, int dirfd, const char *name)
{
	struct stat st;
	char target[PATH_MAX];
	jsonw_begin_object(w);
	jsonw_kpath(w, "name", name);
	if (!fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW)) {
		jsonw_kstr(w, "type", type_name(st.st_mode));
		if (S_ISREG(st.st_mode))
			jsonw_kint(w, "size", st.st_size);
		ssize_t n = S_ISLNK(st.st_mode)
				    ? readlinkat(dirfd, name, target, sizeof(target) - 1)
				    : -1;
		if (n >= 0) {
			target[n] = 0;
			jsonw_kpath(w, "target", target);
		}
	}
	jsonw_end_object(w);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct names {
	char **item;
	size_t len, cap;
};

static void names_release(struct names *l)
{
	for (size_t i = 0; i < l->len; i++)
		free(l->item[i]);
	free(l->item);
}

static int names_add(struct names *l, const char *name)
{
	if (l->len == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		char **item = reallocarray(l->item, cap, sizeof(*item));
		if (!item)
			return -ENOMEM;
		l->item = item;
		l->cap = cap;
	}
	l->item[l->len] = strdup(name);
	return l->item[l->len] ? (l->len++, 0) : -ENOMEM;
}

/* Every name but . and .., so that sorting is about all of them. */
static int collect(DIR *dir, struct names *ret)
{
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(dir);
		if (!e)
			return -errno;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int err = names_add(ret, e->d_name);
		if (err)
			return err;
	}
}

static void write_listing(struct jsonw *w, int dirfd, struct names *names)
{
	if (names->len)
		qsort(names->item, names->len, sizeof(*names->item), by_name);
	size_t shown = names->len < TOOLCHILD_LIST_MAX ? names->len : TOOLCHILD_LIST_MAX;
	jsonw_key(w, "entries");
	jsonw_begin_array(w);
	for (size_t i = 0; i < shown; i++)
		write_entry(w, dirfd, names->item[i]);
	jsonw_end_array(w);
	jsonw_kint(w, "total", (int64_t)names->len);
	jsonw_kbool(w, "truncated", shown < names->len);
	if (shown < names->len)
		jsonw_kstr(w, "note",
			   "Only the first entries are shown; list a subdirectory, or use "
			   "run_shell with a pattern.");
}

static void list_dir(const struct toolwork *t)
{
	struct jsonw *w = t->w;
	int fd = open(t->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		toolwork_error(w, "open", errno);
		if (fd >= 0)
			close(fd);
		return;
	}
	struct names names = {0};
	int err = collect(dir, &names);
	if (err)
		toolwork_error(w, "readdir", -err);
	else
		write_listing(w, fd, &names);
	names_release(&names);
	closedir(dir);
}

/* ---- in and out ---- */

typedef void work_fn(const struct toolwork *t);

static work_fn *const works[TOOL_COUNT] = {
	[TOOL_READ_FILE] = read_file,
	[TOOL_WRITE_FILE] = toolchange_write,
	[TOOL_EDIT_FILE] = toolchange_edit,
	[TOOL_LIST_DIR] = list_dir,
};

/* Every text that the tool must have; numbers are optional everywhere. */
static bool is_complete(const struct tool *t, const struct json *args)
{
	for (const struct tool_param *p = t->params; p->key; p++)
		if (p->need == TOOL_PARAM_REQUIRED && !json_get_str(args, p->key))
			return false;
	return true;
}

void toolchild_answer(const char *name, const struct json *args, int preview_fd, struct buf *out)
{
	const struct tool *t = tools_find(name);
	const char *path = json_get_str(args, "path");
	AUTOFREE
	char *full = path ? expand(path) : NULL;
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	if (path)
		jsonw_kpath(&w, "path", path);
	if (!t || !works[t->id])
		toolwork_refuse(&w, "No such file tool.");
	else if (!is_complete(t, args))
		toolwork_refuse(&w, "An argument is missing.");
	else if (!full)
		toolwork_error(&w, "path", ENOMEM);
	else
		works[t->id](&(struct toolwork){
			.w = &w, .path = full, .args = args, .preview_fd = preview_fd});
	jsonw_end_object(&w);
}

int toolchild_main(int argc, char **argv)
{
	struct buf text = {0}, answer = {0};
	struct json *args = NULL;
	int err = argc == 2 ? 0 : -EINVAL;
	if (!err)
		err = buf_read_from(TOOLCHILD_ARGS_FD, &text);
	if (!err)
		err = json_parse(buf_str(&text), text.len, &args, NULL);
	if (!err) {
		toolchild_answer(argv[1], args, TOOLCHILD_ANSWER_FD, &answer);
		err = buf_error(&answer);
	}
	if (!err)
		err = buf_write_to(TOOLCHILD_ANSWER_FD, answer.data, answer.len);
	json_free(args);
	buf_free(&answer);
	buf_free(&text);
	return err ? 125 : 0;
}
