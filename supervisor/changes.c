#include "supervisor/changes.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char *verb_of(const struct call *c)
{
	switch (c->path[0].need) {
	case CALL_NEED_OPEN:
		return (c->open_flags & O_EXCL) || !c->path[0].at.exists ? "made" : "wrote";
	case CALL_NEED_TRUNCATE:
		return "wrote";
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_LINK_FROM:
		return "made";
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
		return "removed";
	case CALL_NEED_MOVE_FROM:
		return "moved";
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
	return NULL;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;
	return n && !strncmp(path, dir, n) && (path[n] == '/' || !path[n]);
}

static bool known(const struct changes *c, const char *verb, const char *path)
{
	for (size_t i = c->len; i-- > 0;)
		if (c->item[i].verb == verb && !strcmp(c->item[i].path, path))
			return true;
	return false;
}

static void add(struct changes *c, const char *verb, const char *path)
{
	if (known(c, verb, path))
		return;
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
		c->item[c->len++] = (struct change){verb, copy};
	c->full = !copy || c->len == CHANGES_MAX;
}

void changes_add(struct changes *c, const struct call *call, const char *skip_dir)
{
	const char *verb = verb_of(call);
	/* A device is not changed by being written to. */
	bool reads = call->path[0].need == CALL_NEED_OPEN &&
		     !(call->open_flags & (O_ACCMODE | O_CREAT | O_TRUNC));
	if (!verb || reads || S_ISCHR(call->path[0].at.st.st_mode))
		return;
	unsigned named = call->path[0].need == CALL_NEED_LINK_FROM ? 1 : 0;
	const char *path = call->path[named].at.real;
	if (!path || is_below(path, skip_dir))
		return;
	add(c, verb, path);
}

void changes_write(const struct changes *c, size_t lines, struct buf *out)
{
	if (!c->len) {
		buf_add_str(out, "it changed nothing so far\n");
		return;
	}
	size_t shown = c->len < lines ? c->len : lines;
	for (size_t i = 0; i < shown; i++)
		buf_addf(out, "%s %s\n", c->item[i].verb, c->item[i].path);
	if (c->len > shown)
		buf_addf(out, "and %s%zu more\n", c->full ? "at least " : "", c->len - shown);
	else if (c->full)
		buf_add_str(out, "and more\n");
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
