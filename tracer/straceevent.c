#include "tracer/straceimport_inside.h"

#include "tracer/call.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>

#define NO_CWD "the working directory of its process is not told"
#define NO_FD  "what the descriptor is that the name starts from is not told"
#define LOOSE                                                                                      \
	"descriptors are not all told: the one that the name starts from may be another by now"

bool straceevent_succeeded(const struct straceimport *in)
{
	return in->args.result.kind == STRACE_RESULT_VALUE && in->args.result.value >= 0;
}

static int64_t error_of(const struct straceimport *in)
{
	return in->args.result.kind == STRACE_RESULT_ERROR ? in->args.result.value : 0;
}

bool straceevent_number(const struct straceimport *in, unsigned i, uint64_t *ret)
{
	const struct strace_value *v = straceargs_at(&in->args, i);
	return v && v->kind == STRACE_WORD && straceargs_number(v->text, ret);
}

static bool cut_word(struct buf *b, const char *word)
{
	size_t len = strlen(word);
	if (b->len < len || memcmp(b->data + b->len - len, word, len) != 0)
		return false;
	b->len -= len;
	b->data[b->len] = '\0';
	return true;
}

bool straceevent_about(struct strace_span about, bool *deleted, struct buf *out,
		       enum trace_thing *ret_thing)
{
	/* </dev/null<char 1:3>>: a "<" of the path itself would be escaped. */
	const char *kind = about.len ? memchr(about.at, '<', about.len) : NULL;
	buf_reset(out);
	straceargs_unescape(
		kind ? (struct strace_span){about.at, (size_t)(kind - about.at)} : about, out);
	if (!out->len || *out->data != '/' || memchr(out->data, '\0', out->len))
		return false;
	if (kind && about.len - (size_t)(kind - about.at) > 5)
		*ret_thing = !memcmp(kind, "<char", 5)	  ? TRACE_THING_CHAR
			     : !memcmp(kind, "<block", 6) ? TRACE_THING_BLOCK
							  : *ret_thing;
	*deleted |= cut_word(out, " (deleted)");
	return true;
}

/* ---- where a name starts ---- */

/* The working directory, also where -y says it beside AT_FDCWD. NULL: not told. */
static const char *cwd_of(struct straceimport *in, struct straceproc *p,
			  const struct strace_value *dirfd)
{
	enum trace_thing thing = TRACE_THING_UNKNOWN;
	bool deleted = dirfd && dirfd->deleted;
	if (dirfd && straceevent_about(dirfd->about, &deleted, &in->scratch, &thing) && !deleted &&
	    (!p->fs->cwd || strcmp(p->fs->cwd, in->scratch.data) != 0)) {
		char *copy = strdup(in->scratch.data);
		in->moved = true;
		if (copy)
			straceproc_chdir(p, copy);
	}
	return deleted ? NULL : p->fs->cwd;
}

/* The path of a descriptor that is an argument; NULL: not told. In in->scratch, or a loan. */
static const char *fd_path(struct straceimport *in, struct straceproc *p,
			   const struct strace_value *v, enum trace_thing *ret_thing)
{
	uint64_t number = 0;
	bool deleted = v->deleted;
	if (straceevent_about(v->about, &deleted, &in->scratch, ret_thing))
		return deleted ? NULL : in->scratch.data;
	if (v->about.len || !straceargs_number(v->text, &number) || number > INT_MAX)
		return NULL;
	const struct stracefd *fd = straceproc_fd(p, (int)number);
	if (!fd || !fd->path || fd->deleted)
		return NULL;
	if (p->files->loose)
		strace_unsure_add(&in->now.unsure, LOOSE);
	*ret_thing = fd->thing;
	return fd->path;
}

static bool is_cwd(const struct strace_value *dirfd)
{
	return !dirfd || strace_span_is(dirfd->text, "AT_FDCWD") ||
	       strace_span_is(dirfd->text, "-100");
}

/* Where a relative name starts, NULL: not told, and why is among what is unsure. */
static const char *base_of(struct straceimport *in, struct straceproc *p,
			   const struct strace_value *dirfd, enum trace_thing *ret_thing)
{
	bool cwd = is_cwd(dirfd);
	const char *base = cwd ? cwd_of(in, p, dirfd) : fd_path(in, p, dirfd, ret_thing);
	if (!base)
		strace_unsure_add(&in->now.unsure, cwd ? NO_CWD : NO_FD);
	return base;
}

/* ---- the arguments ---- */

static struct strace_path *add_path(struct strace_current *now)
{
	if (now->paths == ARRAY_LEN(now->path))
		return NULL;
	struct strace_path *path = &now->path[now->paths];
	path->need = now->call->ent ? now->call->ent->need[now->paths] : CALL_NEED_NONE;
	path->thing = TRACE_THING_UNKNOWN;
	path->given_told = path->real_told = path->of_fd = path->cut = path->is_null = false;
	buf_reset(&path->given);
	buf_reset(&path->real);
	now->paths++;
	return path;
}

/* The string's bytes. False: it has a NUL inside, which no path has. */
static bool text_of(const struct strace_value *v, struct buf *out)
{
	buf_reset(out);
	straceargs_unescape(v->text, out);
	buf_add(out, "", 0);
	return !out->len || !memchr(out->data, '\0', out->len);
}

/* The descriptor itself is the path: AT_EMPTY_PATH, ftruncate. */
static void take_fd(struct straceimport *in, struct straceproc *p, const struct strace_value *fd,
		    struct strace_path *path)
{
	const char *real = base_of(in, p, fd, &path->thing);
	path->of_fd = true;
	path->real_told = real != NULL;
	if (real)
		buf_add_str(&path->real, real);
}

static void take_string(struct straceimport *in, const struct strace_value *v,
			struct strace_path *path)
{
	path->given_told = text_of(v, &path->given);
	path->cut = v->cut;
	if (v->cut)
		strace_unsure_add(&in->now.unsure, "the name is not told to its end");
	else if (!path->given_told)
		strace_unsure_add(&in->now.unsure, "the name has a NUL in it");
}

/* A PATH argument. */
static void take_path(struct straceimport *in, const struct strace_value *v)
{
	struct strace_path *path = add_path(&in->now);
	if (!path)
		return;
	if (v->kind == STRACE_STRING)
		take_string(in, v, path);
	else if (strace_span_is(v->text, "NULL"))
		path->is_null = true;
	else if (straceevent_succeeded(in))
		strace_unsure_add(&in->now.unsure, "the name is not told");
}

/* A SOCKADDR argument: {sa_family=AF_UNIX, sun_path="/run/a"}. Others are no path. */
static void take_sockaddr(struct straceimport *in, const struct strace_value *v)
{
	const struct strace_value *name = straceargs_field(&in->args, v, "sun_path");
	if (!name || name->kind != STRACE_STRING || name->abstract)
		return;
	struct strace_path *path = add_path(&in->now);
	if (!path)
		return;
	take_string(in, name, path);
	/* A name that fills sun_path has no NUL at its end; the kernel's view ends at the first. */
	if (!path->given.len)
		in->now.paths--;
}

/* Flags; a word among them that is not known makes the call unsure. */
static uint64_t take_flags(struct straceimport *in, const struct strace_value *v)
{
	uint64_t flags = 0;
	if (!v || v->kind != STRACE_WORD || !straceargs_number(v->text, &flags))
		strace_unsure_add(&in->now.unsure, "a flag of the call is not known");
	return flags;
}

static void take_how(struct straceimport *in, const struct strace_value *v)
{
	const struct strace_value *resolve = straceargs_field(&in->args, v, "resolve");
	const struct strace_value *mode = straceargs_field(&in->args, v, "mode");
	in->now.open_flags = take_flags(in, straceargs_field(&in->args, v, "flags"));
	in->now.resolve = resolve ? take_flags(in, resolve) : 0;
	in->now.has_flags = true;
	if (mode)
		in->now.has_mode = straceargs_number(mode->text, &in->now.mode);
}

static void take_argument(struct straceimport *in, enum arg_kind kind, const struct strace_value *v)
{
	struct strace_current *now = &in->now;
	switch (kind) {
	case ARG_PATH:
		take_path(in, v);
		break;
	case ARG_TEXT:
		if (v->kind == STRACE_STRING)
			text_of(v, &now->target);
		break;
	case ARG_OFLAGS:
		now->open_flags = take_flags(in, v);
		now->has_flags = true;
		break;
	case ARG_HOW:
		take_how(in, v);
		break;
	case ARG_MODE:
		now->has_mode = straceargs_number(v->text, &now->mode);
		break;
	case ARG_ATFLAGS:
		now->at_flags = take_flags(in, v);
		now->has_flags = true;
		break;
	case ARG_SOCKADDR:
		take_sockaddr(in, v);
		break;
	case ARG_NONE:
	case ARG_INT:
	case ARG_FD:
	case ARG_FILE:
	case ARG_DIRFD:
	case ARG_DEV:
	case ARG_LENGTH:
	case ARG_PTR:
	case ARG_SIZE:
	case ARG_KIND_COUNT:
		break;
	}
}

/* Calls whose row has ATFLAGS that are no AT_* (mounts'), or names that are made elsewhere. */
static bool has_plain_flags(const struct sysent *ent)
{
	return ent->group != SYS_GROUP_MOUNT;
}

static void take_arguments(struct straceimport *in)
{
	const struct sysent *ent = in->now.call->ent;
	const struct strace_value *v = straceargs_at(&in->args, 0);
	for (unsigned i = 0; i < ARRAY_LEN(ent->arg) && v; i++) {
		enum arg_kind kind = ent->arg[i];
		if (kind != ARG_ATFLAGS || has_plain_flags(ent))
			take_argument(in, kind, v);
		v = straceargs_beside(&in->args, NULL, v);
	}
	if (sysent_id(ent) == SYS_ID_creat) {
		in->now.open_flags = O_CREAT | O_WRONLY | O_TRUNC;
		in->now.has_flags = true;
	}
}

/* ---- the names, made absolute ---- */

/* The argument with the descriptor that the i-th path starts from; NULL: the cwd. */
static const struct strace_value *dirfd_of(const struct straceimport *in, unsigned path)
{
	const struct sysent *ent = in->now.call->ent;
	const struct strace_value *dirfd = NULL;
	for (unsigned i = 0, seen = 0; i < ARRAY_LEN(ent->arg); i++) {
		if (ent->arg[i] == ARG_DIRFD || ent->arg[i] == ARG_FILE)
			dirfd = straceargs_at(&in->args, i);
		if (ent->arg[i] != ARG_PATH)
			continue;
		if (seen++ == path)
			return dirfd;
		dirfd = NULL;
	}
	return dirfd;
}

static bool follows(const struct strace_current *now, unsigned i)
{
	struct call c = {.ent = now->call->ent,
			 .open_flags = now->open_flags,
			 .at_flags = (uint32_t)now->at_flags};
	c.path[i].need = now->path[i].need;
	return call_follows(&c, i);
}

/* 0 or -ENOMEM. */
static int walk(struct straceimport *in, struct straceproc *p, unsigned i)
{
	struct strace_path *path = &in->now.path[i];
	struct stracepath_view view = {in->names, &in->procs, p};
	bool scoped = in->now.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH);
	const char *given = buf_str(&path->given);
	const char *base = "/";
	if (*given != '/' || scoped) {
		enum trace_thing ignored = TRACE_THING_UNKNOWN;
		base = base_of(in, p, dirfd_of(in, i), &ignored);
		if (!base)
			return 0;
	}
	bool slash = path->given.len > 1 && given[path->given.len - 1] == '/';
	struct stracepath_name name = {base, given, follows(&in->now, i) || slash, scoped};
	int r = stracepath_walk(&view, &name, &path->real, &in->now.unsure);
	path->real_told = r == 0;
	if (r == 0 && path->thing == TRACE_THING_UNKNOWN)
		path->thing = stracenames_thing(in->names, path->real.data);
	return r == -ENOMEM ? r : 0;
}

/* One name: walked from where it starts, or that descriptor itself. 0 or -ENOMEM. */
static int resolve_one(struct straceimport *in, struct straceproc *p, unsigned i)
{
	struct strace_path *path = &in->now.path[i];
	const struct strace_value *dirfd = dirfd_of(in, i);
	bool nothing = path->given_told ? !path->given.len : path->is_null;
	if (nothing && dirfd && (path->is_null || (in->now.at_flags & AT_EMPTY_PATH)))
		take_fd(in, p, dirfd, path);
	else if (path->given_told && path->given.len && !path->cut)
		return walk(in, p, i);
	return 0;
}

static int resolve(struct straceimport *in, struct straceproc *p)
{
	struct strace_current *now = &in->now;
	int r = 0;
	for (unsigned i = 0; i < now->paths && r == 0; i++)
		r = resolve_one(in, p, i);
	const struct strace_value *fd = straceargs_at(&in->args, 0);
	if (r == 0 && !now->paths && now->call->ent->arg[0] == ARG_FILE && fd)
		take_fd(in, p, fd, add_path(now));
	return r;
}

/* An open that succeeded, with -y: strace says what was opened. */
static void take_opened(struct straceimport *in)
{
	struct strace_path *path = &in->now.path[0];
	bool deleted = in->args.result.deleted;
	bool tmpfile = (in->now.open_flags & O_TMPFILE) == O_TMPFILE;
	if (!in->now.paths || path->need != CALL_NEED_OPEN || !straceevent_succeeded(in) ||
	    tmpfile ||
	    !straceevent_about(in->args.result.about, &deleted, &in->scratch, &path->thing) ||
	    deleted)
		return;
	if (path->real_told)
		stracepath_learn(in->names, path->real.data, in->scratch.data);
	buf_reset(&path->real);
	buf_add_str(&path->real, in->scratch.data);
	path->real_told = true;
	in->now.unsure.len = 0;
	if (path->thing == TRACE_THING_UNKNOWN)
		path->thing = stracenames_thing(in->names, path->real.data);
}

/* ---- what lay there, by the result ---- */

static void sharpen_open(struct straceimport *in, struct strace_path *path)
{
	uint64_t flags = in->now.open_flags;
	/* What can be written is no directory; below /dev it is hardly a file. */
	bool unknown = path->thing == TRACE_THING_UNKNOWN && path->real_told &&
		       strncmp(path->real.data, "/dev/", 5) != 0;
	bool made = (flags & O_CREAT) && (flags & O_EXCL);
	if (straceevent_succeeded(in)) {
		if ((flags & O_TMPFILE) == O_TMPFILE || (flags & O_DIRECTORY))
			path->thing = TRACE_THING_DIR;
		else if (made)
			path->thing = TRACE_THING_ABSENT;
		else if (unknown && !(flags & (O_CREAT | O_PATH)) &&
			 (flags & O_ACCMODE) != O_RDONLY)
			path->thing = TRACE_THING_FILE;
		else if (path->thing == TRACE_THING_ABSENT && !(flags & O_CREAT))
			path->thing = TRACE_THING_UNKNOWN;
		return;
	}
	if (error_of(in) == -ENOENT && !(flags & O_CREAT))
		path->thing = TRACE_THING_ABSENT;
	else if (error_of(in) == -EISDIR)
		path->thing = TRACE_THING_DIR;
}

static void sharpen(struct straceimport *in, struct strace_path *path)
{
	bool ok = straceevent_succeeded(in);
	switch (path->need) {
	case CALL_NEED_OPEN:
		sharpen_open(in, path);
		return;
	case CALL_NEED_EXEC:
	case CALL_NEED_TRUNCATE:
	case CALL_NEED_LINK_FROM:
		if (ok && !path->of_fd)
			path->thing = TRACE_THING_FILE;
		break;
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_LINK_TO:
		if (ok)
			path->thing = TRACE_THING_ABSENT;
		break;
	case CALL_NEED_UNLINK:
		if (ok && (in->now.at_flags & AT_REMOVEDIR))
			path->thing = TRACE_THING_DIR;
		else if (ok &&
			 (path->thing == TRACE_THING_UNKNOWN || path->thing == TRACE_THING_ABSENT))
			path->thing = TRACE_THING_FILE;
		break;
	case CALL_NEED_RMDIR:
		if (ok)
			path->thing = TRACE_THING_DIR;
		break;
	case CALL_NEED_MOVE_TO:
		if (ok && (in->now.at_flags & RENAME_NOREPLACE))
			path->thing = TRACE_THING_ABSENT;
		return;
	case CALL_NEED_CONNECT:
		if (ok)
			path->thing = TRACE_THING_SOCKET;
		break;
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_IOCTL:
	case CALL_NEED_META:
	case CALL_NEED_LOOK:
	case CALL_NEED_NONE:
	case CALL_NEED_COUNT:
		break;
	}
	if (ok && path->thing == TRACE_THING_ABSENT &&
	    (path->need == CALL_NEED_MOVE_FROM || path->need == CALL_NEED_META))
		path->thing = TRACE_THING_UNKNOWN;
	if (error_of(in) == -ENOENT && in->now.paths == 1)
		path->thing = TRACE_THING_ABSENT;
}

int straceevent_read(struct straceimport *in, struct straceproc *p, const struct strace_call *call)
{
	struct strace_current *now = &in->now;
	now->call = call;
	now->paths = 0;
	now->open_flags = now->resolve = now->at_flags = now->mode = now->request = 0;
	now->has_flags = now->has_mode = now->has_request = false;
	now->unsure.len = 0;
	buf_reset(&now->target);
	if (!call->ent)
		return 0;
	take_arguments(in);
	if (sysent_id(call->ent) == SYS_ID_ioctl) {
		const struct strace_value *v = straceargs_at(&in->args, 1);
		now->has_request = v && straceargs_number(v->text, &now->request);
	}
	int r = resolve(in, p);
	take_opened(in);
	for (unsigned i = 0; i < now->paths; i++)
		sharpen(in, &now->path[i]);
	return r;
}

void straceevent_release(struct strace_current *now)
{
	for (size_t i = 0; i < ARRAY_LEN(now->path); i++) {
		buf_free(&now->path[i].given);
		buf_free(&now->path[i].real);
	}
	buf_free(&now->target);
}

/* ---- the event ---- */

/*
 * A device's ioctl that Landlock could refuse: by a descriptor that was opened in the trace (what
 * was inherited is never refused). What lies below /dev, or strace calls a device, is taken for
 * one.
 */
static bool is_device_ioctl(struct straceimport *in, const struct straceproc *p)
{
	uint64_t fd = 0;
	struct strace_path *path = &in->now.path[0];
	if (!straceevent_number(in, 0, &fd) || fd > INT_MAX || !path->real_told ||
	    !straceproc_fd(p, (int)fd) || error_of(in) == -ENOTTY || error_of(in) == -EBADF)
		return false;
	if (path->thing == TRACE_THING_UNKNOWN && !strncmp(path->real.data, "/dev/", 5))
		path->thing = TRACE_THING_CHAR;
	return path->thing == TRACE_THING_CHAR || path->thing == TRACE_THING_BLOCK;
}

static bool is_about_policy(struct straceimport *in, const struct straceproc *p)
{
	const struct sysent *ent = in->now.call->ent;
	if (!ent)
		return false;
	if (ent->group == SYS_GROUP_MOUNT || ent->group == SYS_GROUP_QUEUE)
		return true;
	if (ent->group == SYS_GROUP_LOOK || ent->group == SYS_GROUP_GUARD || !in->now.paths)
		return false;
	if (in->now.path[0].need == CALL_NEED_IOCTL)
		return is_device_ioctl(in, p);
	/* By descriptor: only what was opened in the trace is under a wall. */
	if (in->now.path[0].need == CALL_NEED_TRUNCATE && in->now.path[0].of_fd)
		return in->now.path[0].real_told;
	/* A pointer that can't be read, or an empty name: EFAULT and ENOENT ask for nothing. */
	return in->now.path[0].given_told ? in->now.path[0].given.len || in->now.path[0].of_fd
					  : in->now.path[0].of_fd || in->now.unsure.len;
}

/*
 * Would the call have failed without any wall? What it got in a run without one it would get again;
 * whether there was one the trace tells only where it shows the calls that build it.
 */
static void set_anyway(struct straceimport *in, const struct straceproc *p, struct trace_event *ev)
{
	bool ours = ev->ret == -EACCES || ev->ret == -EPERM || ev->ret == -EXDEV;
	if (!ours)
		return;
	if (in->full && !p->own_wall)
		ev->anyway = (int)ev->ret;
	else if (!p->own_wall)
		strace_unsure_add(&in->now.unsure,
				  "who refused it is not told: the trace leaves calls out");
}

bool straceevent_make(struct straceimport *in, const struct straceproc *p, struct trace_event *ret)
{
	struct strace_current *now = &in->now;
	if (in->args.result.kind == STRACE_RESULT_UNKNOWN || !is_about_policy(in, p))
		return false;
	*ret = (struct trace_event){.kind = TRACE_CALL,
				    .t_ns = now->t_ns,
				    .pid = straceimport_shown(p->tgid),
				    .tid = straceimport_shown(p->pid),
				    .call = now->call->ent->name,
				    .ent = now->call->ent,
				    .returned = true,
				    .ret = in->args.result.value,
				    .paths = now->paths,
				    .has_flags = now->has_flags,
				    .flags = now->open_flags | now->at_flags,
				    .has_mode = now->has_mode,
				    .mode = (uint32_t)now->mode,
				    .has_request = now->has_request,
				    .request = now->request,
				    .target = now->target.len ? now->target.data : NULL,
				    .own_wall = p->own_wall,
				    .line = now->line};
	for (unsigned i = 0; i < now->paths; i++) {
		const struct strace_path *path = &now->path[i];
		ret->path[i].given = path->given_told && path->given.len ? path->given.data : NULL;
		ret->path[i].real = path->real_told ? path->real.data : NULL;
		ret->path[i].told = path->real_told ? NULL : ret->path[i].given;
		ret->path[i].thing = path->thing;
	}
	set_anyway(in, p, ret);
	ret->unsure_len = now->unsure.len;
	memcpy(ret->unsure, now->unsure.why, sizeof(now->unsure.why));
	return true;
}
