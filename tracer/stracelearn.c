#include "tracer/straceimport_inside.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

const char *stracelearn_real(const struct straceimport *in, unsigned i)
{
	const struct strace_path *path = &in->now.path[i];
	return i < in->now.paths && path->real_told && !in->now.unsure.len ? path->real.data : NULL;
}

int stracelearn_readlink(struct straceimport *in, struct straceproc *p)
{
	const struct strace_value *path = straceargs_at(&in->args, 0);
	const char *name = stracelearn_real(in, 0);
	(void)p;
	/* The text is behind the name: the second argument, or with a descriptor the third. */
	if (path && in->now.call->ent && in->now.call->ent->arg[0] == ARG_DIRFD)
		path = straceargs_beside(&in->args, NULL, path);
	const struct strace_value *text = path ? straceargs_beside(&in->args, NULL, path) : NULL;
	if (!name || !text || in->now.path[0].of_fd || !strncmp(name, "/proc/", 6))
		return 0;
	if (in->args.result.kind == STRACE_RESULT_ERROR && in->args.result.value == -ENOENT)
		stracenames_set(in->names, name, TRACE_THING_ABSENT);
	if (!straceevent_succeeded(in) || text->kind != STRACE_STRING)
		return 0;
	buf_reset(&in->scratch);
	straceargs_unescape(text->text, &in->scratch);
	if (in->scratch.len && !memchr(in->scratch.data, '\0', in->scratch.len))
		stracenames_link(in->names, name, text->cut ? NULL : in->scratch.data);
	return 0;
}

/* st_mode=S_IFREG|0644 of what a call wrote; UNKNOWN: not told. */
static enum trace_thing told_thing(const struct straceimport *in)
{
	const struct strace_value *v = straceargs_at(&in->args, 0);
	for (; v; v = straceargs_beside(&in->args, NULL, v)) {
		const struct strace_value *mode = straceargs_field(&in->args, v, "st_mode");
		uint64_t bits = 0;
		if (!mode)
			mode = straceargs_field(&in->args, v, "stx_mode");
		if (mode && straceargs_number(mode->text, &bits) && (bits & S_IFMT))
			return trace_thing_of_mode((mode_t)bits);
	}
	return TRACE_THING_UNKNOWN;
}

static void tell_fd(struct straceimport *in, struct straceproc *p, enum trace_thing thing)
{
	uint64_t number = 0;
	struct stracefd *fd = NULL;
	if (straceevent_number(in, 0, &number) && number <= INT_MAX)
		fd = straceproc_fd(p, (int)number);
	if (fd && thing != TRACE_THING_UNKNOWN)
		fd->thing = thing;
}

int stracelearn_fstat(struct straceimport *in, struct straceproc *p)
{
	if (straceevent_succeeded(in))
		tell_fd(in, p, told_thing(in));
	return 0;
}

int stracelearn_look(struct straceimport *in, struct straceproc *p)
{
	const struct strace_path *path = &in->now.path[0];
	enum trace_thing thing = told_thing(in);
	const char *name = stracelearn_real(in, 0);
	if (in->now.paths && path->of_fd) {
		if (straceevent_succeeded(in))
			tell_fd(in, p, thing);
		return 0;
	}
	if (!name)
		return 0;
	if (in->args.result.kind == STRACE_RESULT_ERROR && in->args.result.value == -ENOENT)
		stracenames_set(in->names, name, TRACE_THING_ABSENT);
	else if (!straceevent_succeeded(in) || thing == TRACE_THING_UNKNOWN)
		return 0;
	else if (thing == TRACE_THING_SYMLINK)
		stracenames_link(in->names, name, NULL);
	else
		stracenames_set(in->names, name, thing);
	return 0;
}

static void learn_open(struct straceimport *in, const char *name)
{
	uint64_t flags = in->now.open_flags;
	enum trace_thing thing = in->now.path[0].thing;
	if ((flags & O_TMPFILE) == O_TMPFILE || (flags & O_PATH))
		return;
	if (thing == TRACE_THING_ABSENT)
		thing = TRACE_THING_FILE;
	if (thing != TRACE_THING_UNKNOWN)
		stracenames_set(in->names, name, thing);
	else if ((flags & O_CREAT) && strncmp(name, "/dev/", 5) != 0)
		/* It is there now, and no directory. */
		stracenames_set(in->names, name, TRACE_THING_FILE);
}

static void learn_move(struct straceimport *in, const char *from, const char *to)
{
	struct stracenames *names = in->names;
	const struct stracename *link = stracenames_link_at(names, from);
	char *text AUTOFREE = link && link->to && !link->resolved ? strdup(link->to) : NULL;
	enum trace_thing thing = stracenames_thing(names, from);
	bool exchanged = in->now.at_flags & RENAME_EXCHANGE;
	if (exchanged || (thing != TRACE_THING_FILE && thing != TRACE_THING_SYMLINK)) {
		stracenames_forget_tree(names, from);
		stracenames_forget_tree(names, to);
	}
	stracenames_forget(names, to);
	if (exchanged) {
		stracenames_forget(names, from);
		return;
	}
	if (thing == TRACE_THING_SYMLINK)
		stracenames_link(names, to, text);
	else if (thing != TRACE_THING_UNKNOWN && thing != TRACE_THING_ABSENT)
		stracenames_set(names, to, thing);
	stracenames_set(names, from, TRACE_THING_ABSENT);
}

static void learn_succeeded(struct straceimport *in, enum call_need need, const char *name)
{
	switch (need) {
	case CALL_NEED_OPEN:
		learn_open(in, name);
		break;
	case CALL_NEED_MKDIR:
		stracenames_set(in->names, name, TRACE_THING_DIR);
		break;
	case CALL_NEED_MKNOD:
		stracenames_set(in->names, name,
				in->now.mode & S_IFMT ? trace_thing_of_mode((mode_t)in->now.mode)
						      : TRACE_THING_FILE);
		break;
	case CALL_NEED_SYMLINK:
		stracenames_link(in->names, name, in->now.target.len ? in->now.target.data : NULL);
		break;
	case CALL_NEED_BIND:
		stracenames_set(in->names, name, TRACE_THING_SOCKET);
		break;
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
		if (in->now.path[0].thing == TRACE_THING_DIR)
			stracenames_forget_tree(in->names, name);
		stracenames_set(in->names, name, TRACE_THING_ABSENT);
		break;
	case CALL_NEED_MOVE_FROM:
		if (stracelearn_real(in, 1))
			learn_move(in, name, stracelearn_real(in, 1));
		break;
	case CALL_NEED_LINK_FROM:
		if (stracelearn_real(in, 1))
			stracenames_set(in->names, stracelearn_real(in, 1), TRACE_THING_FILE);
		break;
	case CALL_NEED_EXEC:
		stracenames_set(in->names, name, TRACE_THING_FILE);
		break;
	case CALL_NEED_NONE:
	case CALL_NEED_TRUNCATE:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_TO:
	case CALL_NEED_IOCTL:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
	case CALL_NEED_LOOK:
	case CALL_NEED_COUNT:
		break;
	}
}

void stracelearn_after(struct straceimport *in)
{
	const struct strace_path *path = &in->now.path[0];
	const char *name = stracelearn_real(in, 0);
	if (!name || path->of_fd || path->need == CALL_NEED_LOOK)
		return;
	if (straceevent_succeeded(in))
		learn_succeeded(in, path->need, name);
	else if (in->args.result.kind == STRACE_RESULT_ERROR && in->args.result.value == -ENOENT &&
		 in->now.paths == 1 && !(in->now.open_flags & O_CREAT))
		stracenames_set(in->names, name, TRACE_THING_ABSENT);
	else if (path->need == CALL_NEED_OPEN && in->args.result.value == -ELOOP &&
		 in->args.result.kind == STRACE_RESULT_ERROR && (in->now.open_flags & O_NOFOLLOW))
		stracenames_link(in->names, name, NULL);
}
