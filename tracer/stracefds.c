#include "tracer/straceimport_inside.h"

#include "tracer/util.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

struct stracefd stracefds_described(struct straceimport *in, struct strace_span about, bool deleted)
{
	struct stracefd fd = {.deleted = deleted};
	if (straceevent_about(about, &fd.deleted, &in->scratch, &fd.thing))
		fd.path = in->scratch.data;
	fd.told = about.len > 0;
	return fd;
}

static bool has_flag(const struct strace_value *v, const char *word)
{
	return v && memmem(v->text.at, v->text.len, word, strlen(word));
}

bool stracefds_any_has(const struct straceimport *in, const char *word)
{
	const struct strace_value *v = straceargs_at(&in->args, 0);
	for (; v; v = straceargs_beside(&in->args, NULL, v))
		if (v->kind == STRACE_WORD && has_flag(v, word))
			return true;
	return false;
}

/* The descriptor that the call returned. */
static bool returned_fd(const struct straceimport *in, int *ret)
{
	if (!straceevent_succeeded(in) || in->args.result.value > INT_MAX)
		return false;
	*ret = (int)in->args.result.value;
	return true;
}

/*
 * The kernel gives a number only where it is free. One that is taken as far as is known was closed
 * out of the trace's sight, so nothing that is known of descriptors is certain.
 */
static void open_free(struct straceproc *p, const struct stracefd *fd)
{
	if (straceproc_fd(p, fd->fd))
		p->files->loose = true;
	straceproc_open(p, fd);
}

int stracefds_open(struct straceimport *in, struct straceproc *p)
{
	struct strace_current *now = &in->now;
	struct stracefd fd = {.told = true, .thing = now->path[0].thing};
	if (!returned_fd(in, &fd.fd) || !now->paths)
		return 0;
	if ((now->open_flags & O_TMPFILE) == O_TMPFILE) {
		fd.deleted = true;
		fd.thing = TRACE_THING_FILE;
	} else if (fd.thing == TRACE_THING_ABSENT) {
		fd.thing = TRACE_THING_FILE;
	}
	fd.path = now->path[0].real_told ? now->path[0].real.data : NULL;
	fd.cloexec = now->open_flags & O_CLOEXEC;
	open_free(p, &fd);
	return 0;
}

int stracefds_new_fd(struct straceimport *in, struct straceproc *p)
{
	if (stracefds_any_has(in, "LANDLOCK_CREATE_RULESET"))
		return 0;
	struct stracefd fd =
		stracefds_described(in, in->args.result.about, in->args.result.deleted);
	fd.told = true;
	fd.cloexec = stracefds_any_has(in, "CLOEXEC");
	if (returned_fd(in, &fd.fd))
		open_free(p, &fd);
	return 0;
}

/* dup, dup2, dup3: the new one is what the old one is. */
static void copy_fd(struct straceimport *in, struct straceproc *p, int to, bool cloexec)
{
	const struct strace_value *v = straceargs_at(&in->args, 0);
	uint64_t from = 0;
	struct stracefd fd = {0};
	if (!straceevent_number(in, 0, &from) || from > INT_MAX)
		return;
	const struct stracefd *old = straceproc_fd(p, (int)from);
	if (v->about.len)
		fd = stracefds_described(in, v->about, v->deleted);
	else if (old)
		fd = *old;
	else {
		/* Of an inherited one nothing is known, and so of its copy. */
		straceproc_close(p, to);
		return;
	}
	if (old && fd.thing == TRACE_THING_UNKNOWN)
		fd.thing = old->thing;
	fd.fd = to;
	fd.cloexec = cloexec;
	/* The copy has a path of its own: straceproc_open() may move the old one. */
	char *path AUTOFREE = fd.path ? strdup(fd.path) : NULL;
	fd.path = path;
	if ((int)from != to)
		straceproc_open(p, &fd);
}

int stracefds_dup(struct straceimport *in, struct straceproc *p)
{
	int to = 0;
	if (returned_fd(in, &to))
		copy_fd(in, p, to, stracefds_any_has(in, "O_CLOEXEC"));
	return 0;
}

int stracefds_fcntl(struct straceimport *in, struct straceproc *p)
{
	const struct strace_value *command = straceargs_at(&in->args, 1);
	uint64_t number = 0;
	int to = 0;
	if (!command || !straceevent_succeeded(in))
		return 0;
	if (strace_span_is(command->text, "F_SETFD")) {
		struct stracefd *fd = straceevent_number(in, 0, &number) && number <= INT_MAX
					      ? straceproc_fd(p, (int)number)
					      : NULL;
		if (fd)
			fd->cloexec = has_flag(straceargs_at(&in->args, 2), "FD_CLOEXEC");
	} else if (has_flag(command, "F_DUPFD") && returned_fd(in, &to)) {
		copy_fd(in, p, to, has_flag(command, "CLOEXEC"));
	}
	return 0;
}

int stracefds_close(struct straceimport *in, struct straceproc *p)
{
	uint64_t fd = 0;
	/* Linux closes it whatever close(2) returns, but for EBADF. */
	if (straceevent_number(in, 0, &fd) && fd <= INT_MAX)
		straceproc_close(p, (int)fd);
	return 0;
}

int stracefds_close_range(struct straceimport *in, struct straceproc *p)
{
	uint64_t first = 0;
	uint64_t last = 0;
	int r = 0;
	if (!straceevent_succeeded(in) || !straceevent_number(in, 0, &first) ||
	    !straceevent_number(in, 1, &last))
		return 0;
	if (stracefds_any_has(in, "CLOSE_RANGE_UNSHARE"))
		r = straceproc_unshare_files(p);
	if (r < 0)
		return r;
	if (!stracefds_any_has(in, "CLOSE_RANGE_CLOEXEC")) {
		straceproc_close_range(p, first, last, false);
		return 0;
	}
	for (size_t i = 0; i < p->files->len; i++)
		if ((uint64_t)p->files->fd[i].fd >= first && (uint64_t)p->files->fd[i].fd <= last)
			p->files->fd[i].cloexec = true;
	return 0;
}

/* The numbers of an array are new descriptors. */
static void open_each(struct straceimport *in, struct straceproc *p,
		      const struct strace_value *array, bool told)
{
	const struct strace_value *v = straceargs_first(&in->args, array);
	for (; v; v = straceargs_beside(&in->args, array, v)) {
		uint64_t number = 0;
		if (v->kind != STRACE_WORD || !straceargs_number(v->text, &number) ||
		    number > INT_MAX)
			continue;
		struct stracefd fd = stracefds_described(in, v->about, v->deleted);
		fd.fd = (int)number;
		fd.told |= told;
		fd.cloexec = stracefds_any_has(in, "CLOEXEC");
		open_free(p, &fd);
	}
}

int stracefds_pair(struct straceimport *in, struct straceproc *p)
{
	const struct strace_value *v = straceargs_at(&in->args, 0);
	if (!straceevent_succeeded(in))
		return 0;
	while (v && v->kind != STRACE_ARRAY)
		v = straceargs_beside(&in->args, NULL, v);
	if (v)
		open_each(in, p, v, true);
	return 0;
}

/* Descriptors that came with a message: cmsg_type=SCM_RIGHTS, cmsg_data=[5, 6]. */
int stracefds_receive(struct straceimport *in, struct straceproc *p)
{
	if (!straceevent_succeeded(in))
		return 0;
	for (size_t i = 0; i + 1 < in->args.len; i++) {
		const struct strace_value *v = &in->args.values[i];
		if (v->kind == STRACE_WORD && strace_span_is(v->text, "SCM_RIGHTS") &&
		    strace_span_is(v[1].key, "cmsg_data"))
			open_each(in, p, &v[1], false);
	}
	return 0;
}
