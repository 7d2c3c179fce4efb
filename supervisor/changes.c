#include "supervisor/changes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verbs[] = {
	[CHANGE_NONE] = "",
	[CHANGE_MADE] = "made",
	[CHANGE_WROTE] = "wrote",
	[CHANGE_REMOVED] = "removed",
	[CHANGE_MOVED] = "moved",
	[CHANGE_CAME] = "moved to",
	[CHANGE_REPLACED] = "replaced",
};

/* What is told of a path of which something is told already. */
static enum change_kind becomes(enum change_kind before, enum change_kind now)
{
	bool gone = now == CHANGE_REMOVED || now == CHANGE_MOVED;
	switch (before) {
	case CHANGE_MADE: /* and gone again: nothing is left of it */
		return gone ? CHANGE_NONE : CHANGE_MADE;
	case CHANGE_CAME:
		return now == CHANGE_MOVED ? CHANGE_NONE : gone ? now : CHANGE_CAME;
	case CHANGE_REMOVED:
	case CHANGE_MOVED: /* something was there before: another thing takes its place */
		return gone ? before : CHANGE_REPLACED;
	case CHANGE_WROTE:
		return now == CHANGE_MADE || now == CHANGE_CAME ? CHANGE_REPLACED : now;
	case CHANGE_REPLACED:
		return gone ? now : CHANGE_REPLACED;
	case CHANGE_NONE:
	case CHANGE_KINDS:
		break;
	}
	return now;
}

static enum change_kind kind_of(const struct call *c)
{
	switch (c->path[0].need) {
	case CALL_NEED_OPEN:
		return (c->open_flags & O_EXCL) || !c->path[0].at.exists ? CHANGE_MADE
									 : CHANGE_WROTE;
	case CALL_NEED_TRUNCATE:
		return CHANGE_WROTE;
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_LINK_FROM:
		return CHANGE_MADE;
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
		return CHANGE_REMOVED;
	case CALL_NEED_MOVE_FROM:
		return CHANGE_MOVED;
	case CALL_NEED_NONE:
	case CALL_NEED_EXEC:
	case CALL_NEED_IOCTL:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_TO:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
	case CALL_NEED_LOOK:
	case CALL_NEED_COUNT:
		break;
	}
	return CHANGE_NONE;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;
	return n && !strncmp(path, dir, n) && (path[n] == '/' || !path[n]);
}

static struct change *find(const struct changes *c, const char *path)
{
	for (size_t i = c->len; i-- > 0;)
		if (!strcmp(c->item[i].path, path))
			return &c->item[i];
	return NULL;
}

static void drop(struct changes *c, struct change *item)
{
	size_t after = (size_t)(c->item + c->len - item) - 1;
	free(item->path);
	memmove(item, item + 1, after * sizeof *item);
	c->len--;
}

static void append(struct changes *c, enum change_kind kind, const char *path)
{
	if (c->full)
		return;
	if (c->len == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;
		struct change *item = realloc(c->item, cap * sizeof *item);
		c->full = !item;
		if (!item)
			return;
		c->item = item;
		c->cap = cap;
	}
	char *copy = strdup(path);
	if (copy)
		c->item[c->len++] = (struct change){kind, copy};
	c->full = !copy || c->len == CHANGES_MAX;
}

static void add(struct changes *c, enum change_kind kind, const char *path, const char *skip_dir)
{
	if (!path || is_below(path, skip_dir))
		return;
	struct change *item = find(c, path);
	if (!item)
		append(c, kind, path);
	else if (becomes(item->kind, kind) == CHANGE_NONE)
		drop(c, item);
	else
		item->kind = becomes(item->kind, kind);
}

/* What was changed in a directory is told by its new name. */
static void rename_below(struct changes *c, const char *from, const char *to)
{
	for (size_t i = 0; i < c->len; i++) {
		char *path;
		if (!is_below(c->item[i].path, from) || !c->item[i].path[strlen(from)])
			continue;
		if (asprintf(&path, "%s%s", to, c->item[i].path + strlen(from)) < 0)
			return;
		free(c->item[i].path);
		c->item[i].path = path;
	}
}

bool changes_replaces(const struct call *call)
{
	return call->path[0].need == CALL_NEED_MOVE_FROM && call->path[1].at.real &&
	       call->path[1].at.exists && !(call->at_flags & RENAME_EXCHANGE);
}

static void add_move(struct changes *c, const struct call *call, bool replaced,
		     const char *skip_dir)
{
	const char *from = call->path[0].at.real, *to = call->path[1].at.real;
	if (call->at_flags & RENAME_EXCHANGE) {
		add(c, CHANGE_REPLACED, from, skip_dir);
		add(c, CHANGE_REPLACED, to, skip_dir);
		return;
	}
	struct change *made = from ? find(c, from) : NULL;
	bool fresh = made && made->kind == CHANGE_MADE && S_ISDIR(call->path[1].at.st.st_mode);
	if (from && to)
		rename_below(c, from, to);
	add(c, CHANGE_MOVED, from, skip_dir);
	add(c, replaced ? CHANGE_REPLACED : fresh ? CHANGE_MADE : CHANGE_CAME, to, skip_dir);
}

void changes_add(struct changes *c, const struct call *call, bool replaced, const char *skip_dir)
{
	enum change_kind kind = kind_of(call);
	/* A device is not changed by being written to. */
	bool reads = call->path[0].need == CALL_NEED_OPEN &&
		     !(call->open_flags & (O_ACCMODE | O_CREAT | O_TRUNC));
	if (kind == CHANGE_NONE || reads || S_ISCHR(call->path[0].at.st.st_mode))
		return;
	unsigned named = call->path[0].need == CALL_NEED_LINK_FROM ? 1 : 0;
	if (kind == CHANGE_MOVED)
		add_move(c, call, replaced, skip_dir);
	else
		add(c, kind, call->path[named].at.real, skip_dir);
}

void changes_write(const struct changes *c, size_t lines, struct buf *out)
{
	if (!c->len) {
		buf_add_str(out, "it changed nothing so far\n");
		return;
	}
	size_t shown = c->len < lines ? c->len : lines;
	for (size_t i = 0; i < shown; i++)
		buf_addf(out, "%s %s\n", verbs[c->item[i].kind], c->item[i].path);
	if (c->len > shown)
		buf_addf(out, "and %s%zu more change%s\n", c->full ? "at least " : "",
			 c->len - shown, c->len - shown == 1 ? "" : "s");
	else if (c->full)
		buf_add_str(out, "and more changes\n");
}

bool changes_are_enough(const struct changes *c)
{
	return c->full;
}

void changes_release(struct changes *c)
{
	for (size_t i = 0; i < c->len; i++)
		free(c->item[i].path);
	free(c->item);
	*c = (struct changes){0};
}
