#include "supervisor/traceneed.h"

#include "supervisor/access.h"

#include <fcntl.h>
#include <stdio.h> /* RENAME_EXCHANGE */
#include <string.h>

static uint32_t open_access(const struct trace_event *ev, const struct trace_path *p)
{
	uint64_t flags = ev->has_flags ? ev->flags : O_RDONLY;
	uint32_t access = (flags & O_ACCMODE) == O_RDONLY   ? ACCESS_READ
			  : (flags & O_ACCMODE) == O_WRONLY ? ACCESS_WRITE
							    : ACCESS_READ | ACCESS_WRITE;
	if (flags & O_PATH)
		return 0;
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return access | ACCESS_CREATE;
	if (p->thing == TRACE_THING_DIR || (flags & O_DIRECTORY))
		return ACCESS_LIST;
	if (flags & O_TRUNC)
		access |= ACCESS_WRITE;
	/* `> /dev/null` makes nothing. */
	bool device = p->real && !strncmp(p->real, "/dev/", 5) && strncmp(p->real, "/dev/shm/", 9);
	bool made = p->thing == TRACE_THING_ABSENT || (p->thing == TRACE_THING_UNKNOWN && !device);
	if ((flags & O_CREAT) && (made || (flags & O_EXCL)))
		access |= ACCESS_CREATE;
	return access;
}

static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

static bool in_one_directory(const struct trace_event *ev)
{
	const char *a = ev->path[0].real, *b = ev->path[1].real;
	return ev->paths > 1 && a && b && dir_len(a) == dir_len(b) && !memcmp(a, b, dir_len(a));
}

/* A rename's or link's two names; what may be overwritten is deleted. */
static uint32_t move_access(const struct trace_event *ev, enum call_need need, unsigned i)
{
	uint32_t access = in_one_directory(ev) ? 0 : ACCESS_MOVE;
	bool absent = ev->path[i].thing == TRACE_THING_ABSENT;
	bool exchange = ev->has_flags && (ev->flags & RENAME_EXCHANGE);
	switch ((int)need) {
	case CALL_NEED_MOVE_FROM:
		return access | ACCESS_DELETE | (exchange ? ACCESS_CREATE : 0);
	case CALL_NEED_MOVE_TO:
		return access | ACCESS_CREATE | (absent && !exchange ? 0 : ACCESS_DELETE);
	case CALL_NEED_LINK_TO:
		return access | ACCESS_CREATE;
	default:
		return access;
	}
}

static uint32_t worked_out(const struct trace_event *ev, unsigned i)
{
	enum call_need need = (enum call_need)ev->ent->need[i < 2 ? i : 0];
	switch (need) {
	case CALL_NEED_OPEN:
		return open_access(ev, &ev->path[i]);
	case CALL_NEED_EXEC:
		return ACCESS_EXEC | ACCESS_READ;
	case CALL_NEED_TRUNCATE:
		return ACCESS_WRITE;
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
		return ACCESS_CREATE;
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
		return ACCESS_DELETE;
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_FROM:
	case CALL_NEED_LINK_TO:
		return move_access(ev, need, i);
	case CALL_NEED_IOCTL:
		return ACCESS_IOCTL;
	case CALL_NEED_META:
		return ACCESS_META;
	case CALL_NEED_CONNECT:
		return ACCESS_CONNECT;
	case CALL_NEED_LOOK:
	case CALL_NEED_NONE:
	case CALL_NEED_COUNT:
		break;
	}
	return 0;
}

/* The names with commas; a word that is none of ours is passed over. */
static uint32_t said(const char *words)
{
	uint32_t mask = 0, bit;
	size_t at;
	while (*words) {
		size_t n = strcspn(words, ",");
		if (access_parse(words, n, &bit, &at) == 0)
			mask |= bit;
		words += n + (words[n] == ',');
	}
	return mask;
}

uint32_t traceneed(const struct trace_event *ev, unsigned i)
{
	if (i >= ev->paths)
		return 0;
	if (ev->path[i].access)
		return said(ev->path[i].access);
	return ev->ent ? worked_out(ev, i) : 0;
}
