#include "agent/chatlist.h"

#include "supervisor/escape.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Of each file this much is looked at: its first line and the user's first words. */
#define LOOKED_AT (64u << 10)
#define SUFFIX	  ".jsonl"

struct chat {
	char *id, *project, *words; /* owned; words may be NULL */
	struct timespec changed;
};

struct chats {
	struct chat *item;
	size_t n;
};

static void chat_release(struct chat *c)
{
	free(c->id);
	free(c->project);
	free(c->words);
}

static void chats_release(struct chats *l)
{
	for (size_t i = 0; i < l->n; i++)
		chat_release(&l->item[i]);
	free(l->item);
}

/* ---- one file ---- */

static struct json *parse_line(const char *line, size_t n)
{
	struct json *v = NULL;
	return json_parse(line, n, &v, NULL) ? NULL : v;
}

/* The next line's length with its newline; 0: no whole one is there. */
static size_t line_length(const struct buf *text, size_t at)
{
	const char *end = at < text->len ? memchr(text->data + at, '\n', text->len - at) : NULL;
	return end ? (size_t)(end - text->data) - at + 1 : 0;
}

static void find_words(const struct buf *text, size_t at, struct chat *ret)
{
	for (size_t n; !ret->words && (n = line_length(text, at)); at += n) {
		struct json *v = parse_line(text->data + at, n);
		const struct json *m = json_get(v, "message");
		const char *role = json_get_str(m, "role"), *words = json_get_str(m, "content");
		if (role && words && !strcmp(role, "user"))
			ret->words = strdup(words);
		json_free(v);
	}
}

static bool read_head(const struct buf *text, struct chat *ret)
{
	size_t n = line_length(text, 0);
	struct json *v = n ? parse_line(text->data, n) : NULL;
	const char *project = json_get_str(v, "project");
	int64_t version = 0;
	if (json_get_int(v, "warder_session", &version) && version == 1 && project)
		ret->project = strdup(project);
	json_free(v);
	if (ret->project)
		find_words(text, n, ret);
	return ret->project;
}

static bool read_chat(int dir, const char *name, struct chat *ret)
{
	int fd AUTOCLOSE = ownfile_open_at(dir, name, O_RDONLY);
	struct stat st;
	AUTOFREE
	char *room = malloc(LOOKED_AT);
	if (fd < 0 || !room || fstat(fd, &st))
		return false;
	ssize_t n = read(fd, room, LOOKED_AT);
	if (n <= 0)
		return false;
	const struct buf text = {.data = room, .len = (size_t)n};
	struct chat c = {.changed = st.st_mtim};
	c.id = strndup(name, strlen(name) - strlen(SUFFIX));
	if (!c.id || !read_head(&text, &c)) {
		chat_release(&c);
		return false;
	}
	*ret = c;
	return true;
}

/* ---- all of them ---- */

static bool is_name(const char *name)
{
	size_t n = strlen(name);
	return n > strlen(SUFFIX) && name[0] != '.' && !strcmp(name + n - strlen(SUFFIX), SUFFIX);
}

static int newest_first(const void *x, const void *y)
{
	const struct chat *a = x, *b = y;
	if (a->changed.tv_sec != b->changed.tv_sec)
		return a->changed.tv_sec < b->changed.tv_sec ? 1 : -1;
	if (a->changed.tv_nsec != b->changed.tv_nsec)
		return a->changed.tv_nsec < b->changed.tv_nsec ? 1 : -1;
	return strcmp(b->id, a->id);
}

static int add_chat(struct chats *l, struct chat *c)
{
	struct chat *more = reallocarray(l->item, l->n + 1, sizeof(*more));
	if (!more) {
		chat_release(c);
		return -ENOMEM;
	}
	l->item = more;
	l->item[l->n++] = *c;
	return 0;
}

static int read_all(const char *path, struct chats *ret)
{
	DIR *dir = opendir(path);
	int err = 0;
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	for (const struct dirent *e; !err && (e = readdir(dir));) {
		struct chat c;
		if (is_name(e->d_name) && read_chat(dirfd(dir), e->d_name, &c))
			err = add_chat(ret, &c);
	}
	closedir(dir);
	if (ret->n)
		qsort(ret->item, ret->n, sizeof(*ret->item), newest_first);
	return err;
}

/* ---- what is asked for ---- */

static bool fits(const struct chat *c, const char *id, const char *project, const char *but)
{
	if (but && !strcmp(c->id, but))
		return false;
	return id ? !strncmp(c->id, id, strlen(id)) : !strcmp(c->project, project);
}

int chatlist_find(const char *dir, const char *id, const char *project, const char *but, char **ret)
{
	struct chats l = {0};
	const struct chat *found = NULL;
	int err = read_all(dir, &l);
	for (size_t i = 0; !err && i < l.n; i++) {
		if (!fits(&l.item[i], id, project, but))
			continue;
		if (!found)
			found = &l.item[i];
		else if (id)
			err = -ENOTUNIQ;
	}
	if (!err && !found)
		err = -ENOENT;
	if (!err) {
		*ret = strdup(found->id);
		err = *ret ? 0 : -ENOMEM;
	}
	chats_release(&l);
	return err;
}

static void write_chat(struct buf *out, const struct chat *c, bool with_project, size_t width)
{
	size_t begin = out->len, n = c->words ? strcspn(c->words, "\n") : 0;
	AUTOFREE
	char *first = n ? strndup(c->words, n) : NULL;
	buf_add_str(out, "  ");
	escape_add_str(out, c->id);
	if (with_project) {
		buf_add_str(out, "  ");
		escape_add_fit(out, c->project, width / 3);
	}
	buf_add_str(out, "  ");
	const size_t used = escape_width(buf_str(out) + begin);
	escape_add_fit(out, first ? first : "", used < width ? width - used : 1);
	buf_add_char(out, '\n');
}

int chatlist_write(const char *dir, const char *project, size_t width, struct buf *out)
{
	struct chats l = {0};
	size_t shown = 0;
	int err = read_all(dir, &l);
	for (size_t i = 0; !err && i < l.n && shown < CHATLIST_MAX; i++) {
		if (project && strcmp(l.item[i].project, project) != 0)
			continue;
		write_chat(out, &l.item[i], !project, width);
		shown++;
	}
	chats_release(&l);
	return err;
}
