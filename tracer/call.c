#include "tracer/call.h"

#include "tracer/mem.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

struct decoding {
	struct call *c;
	struct call_view view;
	unsigned paths; /* slots filled so far */
	int dirfd;	/* of the next path */
};

/* Reading failed: is it the call's own business (0), or ours? */
static int note_error(struct call_path *p, int err)
{
	if (err == -ESRCH || err == -ENOMEM)
		return err;
	p->error = err;
	return 0;
}

bool call_means_fd(const struct call *c)
{
	enum sys_id id = sysent_id(c->ent);
	bool may =
		id == SYS_ID_utimensat || id == SYS_ID_utimensat_time64 || id == SYS_ID_futimesat;

	return may && !c->args[1] && (int)c->args[0] != AT_FDCWD;
}

static struct call_path *next_path(struct decoding *d)
{
	BUG(d->paths == CALL_PATHS);
	struct call_path *p = &d->c->path[d->paths];
	p->need = (enum call_need)d->c->ent->need[d->paths++];
	p->dirfd = d->dirfd;
	d->dirfd = AT_FDCWD;
	return p;
}

static int decode_path(struct decoding *d, uint64_t addr)
{
	struct call_path *p = next_path(d);

	if (call_means_fd(d->c)) {
		p->error = -EFAULT;
		return 0;
	}
	return note_error(p, mem_read_str(d->view.tid, addr, PATH_MAX, &p->given));
}

static int decode_text(struct decoding *d, uint64_t addr)
{
	char *text;
	int r = mem_read_str(d->view.tid, addr, PATH_MAX, &text);

	if (r == 0)
		d->c->target = text;
	return r == -ESRCH || r == -ENOMEM ? r : 0;
}

/* The descriptor's own file, as with AT_EMPTY_PATH. */
static int decode_file(struct decoding *d, int fd)
{
	d->dirfd = fd;
	struct call_path *p = next_path(d);
	p->given = strdup("");
	return p->given ? 0 : -ENOMEM;
}

/* struct open_how grows; what it may grow by changes nothing here. */
static int decode_how(struct decoding *d, uint64_t addr, uint64_t size)
{
	struct open_how how = {0};
	int r = mem_read(d->view.tid, addr, &how, size < sizeof(how) ? size : sizeof(how));

	if (r < 0)
		return r == -ESRCH ? r : 0;
	d->c->open_flags = how.flags;
	d->c->mode = (uint32_t)how.mode;
	d->c->open_resolve = how.resolve;
	return 0;
}

/* Only a unix address with a name in the file system is a path. */
static int decode_address(struct decoding *d, uint64_t addr, uint64_t size)
{
	struct sockaddr_un un = {0};
	const size_t head = offsetof(struct sockaddr_un, sun_path);

	if (!addr || size <= head || size > sizeof(un))
		return 0;
	int r = mem_read(d->view.tid, addr, &un, (size_t)size);
	if (r < 0)
		return r == -ESRCH ? r : 0;
	if (un.sun_family != AF_UNIX || un.sun_path[0] == '\0')
		return 0;
	struct call_path *p = next_path(d);
	p->given = strndup(un.sun_path, (size_t)size - head);
	return p->given ? 0 : -ENOMEM;
}

static uint64_t length_of(const struct call *c, unsigned i)
{
	enum sys_id id = sysent_id(c->ent);
	if (c->arch == SYS_ARCH_I386 && (id == SYS_ID_truncate64 || id == SYS_ID_ftruncate64))
		return (c->args[i] & 0xffffffff) | c->args[i + 1] << 32;
	return c->args[i];
}

static int decode_arg(struct decoding *d, unsigned i)
{
	struct call *c = d->c;
	uint64_t value = c->args[i];

	switch ((enum arg_kind)c->ent->arg[i]) {
	case ARG_DIRFD:
		d->dirfd = (int)value;
		return 0;
	case ARG_FILE:
		return decode_file(d, (int)value);
	case ARG_PATH:
		return decode_path(d, value);
	case ARG_TEXT:
		return decode_text(d, value);
	case ARG_OFLAGS:
		c->open_flags = (uint32_t)value;
		return 0;
	case ARG_HOW:
		return decode_how(d, value, c->args[i + 1]);
	case ARG_MODE:
		c->mode = (uint16_t)value; /* umode_t */
		return 0;
	case ARG_DEV:
		c->dev = (uint32_t)value;
		return 0;
	case ARG_ATFLAGS:
		c->at_flags = (uint32_t)value;
		return 0;
	case ARG_LENGTH:
		c->length = length_of(c, i);
		return 0;
	case ARG_SOCKADDR:
		return decode_address(d, value, (uint32_t)c->args[i + 1]);
	case ARG_NONE:
	case ARG_INT:
	case ARG_FD:
	case ARG_PTR:
	case ARG_SIZE:
	case ARG_KIND_COUNT:
		return 0;
	}
	return 0;
}

int call_decode(struct call *c, struct call_view view)
{
	struct decoding d = {.c = c, .view = view, .dirfd = AT_FDCWD};

	for (unsigned i = 0; i < CALL_PATHS; i++)
		path_init(&c->path[i].at);
	for (unsigned i = 0; i < ARRAY_LEN(c->ent->arg); i++) {
		int r = decode_arg(&d, i);
		if (r < 0) {
			call_release(c);
			return r;
		}
	}
	if (sysent_id(c->ent) == SYS_ID_creat)
		c->open_flags = O_CREAT | O_WRONLY | O_TRUNC;
	return 0;
}

static bool open_follows(const struct call *c)
{
	bool exclusive = (c->open_flags & O_CREAT) && (c->open_flags & O_EXCL);

	return !exclusive && !(c->open_flags & O_NOFOLLOW);
}

/* The calls whose name, not whose flags, says that a last symlink is meant itself. */
static bool never_follows(enum sys_id id)
{
	static const uint8_t ids[] = {
		SYS_ID_lchown,	  SYS_ID_lchown32,   SYS_ID_lsetxattr,	SYS_ID_lremovexattr,
		SYS_ID_lgetxattr, SYS_ID_llistxattr, SYS_ID_lstat,	SYS_ID_lstat64,
		SYS_ID_oldlstat,  SYS_ID_readlink,   SYS_ID_readlinkat,
	};

	return memchr(ids, (int)id, sizeof(ids)) != NULL;
}

bool call_follows(const struct call *c, unsigned i)
{
	switch (c->path[i].need) {
	case CALL_NEED_OPEN:
		return open_follows(c);
	case CALL_NEED_EXEC:
	case CALL_NEED_META:
	case CALL_NEED_LOOK:
		if (sysent_id(c->ent) == SYS_ID_name_to_handle_at)
			return (c->at_flags & AT_SYMLINK_FOLLOW) != 0;
		return !never_follows(sysent_id(c->ent)) && !(c->at_flags & AT_SYMLINK_NOFOLLOW);
	case CALL_NEED_LINK_FROM:
		return (c->at_flags & AT_SYMLINK_FOLLOW) != 0;
	case CALL_NEED_TRUNCATE:
	case CALL_NEED_IOCTL:
	case CALL_NEED_CONNECT:
		return true;
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_TO:
	case CALL_NEED_NONE:
	case CALL_NEED_COUNT:
		return false;
	}
	return false;
}

/* RESOLVE_CACHED changes no result. */
static unsigned scope_of(const struct call *c)
{
	static const struct {
		uint64_t resolve;
		unsigned flag;
	} rows[] = {
		{RESOLVE_IN_ROOT, PATH_IN_ROOT},
		{RESOLVE_BENEATH, PATH_BENEATH},
		{RESOLVE_NO_SYMLINKS, PATH_NO_SYMLINKS | PATH_NO_MAGIC},
		{RESOLVE_NO_MAGICLINKS, PATH_NO_MAGIC},
		{RESOLVE_NO_XDEV, PATH_NO_XDEV},
	};
	unsigned flags = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (c->open_resolve & rows[i].resolve)
			flags |= rows[i].flag;
	return flags;
}

/* Calls on a name in its directory: filename_parentat() and filename_create() of fs/namei.c. */
static bool is_entry(enum call_need need)
{
	switch (need) {
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_TO:
		return true;
	case CALL_NEED_NONE:
	case CALL_NEED_OPEN:
	case CALL_NEED_EXEC:
	case CALL_NEED_TRUNCATE:
	case CALL_NEED_LINK_FROM:
	case CALL_NEED_IOCTL:
	case CALL_NEED_META:
	case CALL_NEED_CONNECT:
	case CALL_NEED_LOOK:
	case CALL_NEED_COUNT:
		return false;
	}
	return false;
}

static unsigned flags_of(const struct call *c, unsigned i)
{
	unsigned flags = (call_follows(c, i) ? PATH_FOLLOW : 0) | scope_of(c);

	/* Of a call with two paths only the first can be empty (linkat). */
	if (i == 0 && ((c->at_flags & AT_EMPTY_PATH) || c->ent->arg[0] == ARG_FILE))
		flags |= PATH_EMPTY;
	if (c->path[i].need == CALL_NEED_OPEN && (c->open_flags & O_CREAT))
		flags |= PATH_CREATE;
	if (is_entry(c->path[i].need))
		flags |= PATH_ENTRY;
	if (c->path[i].need == CALL_NEED_META)
		flags |= PATH_THING;
	return flags;
}

int call_resolve(struct call *c, struct call_view view)
{
	const struct path_view path_view = {view.tid, view.names};

	for (unsigned i = 0; i < CALL_PATHS; i++) {
		struct call_path *p = &c->path[i];
		if (!p->given)
			continue;
		path_release(&p->at);
		int r = path_resolve_with(&path_view, p->dirfd, p->given, flags_of(c, i), &p->at);
		if (r == -ENOMEM)
			return r;
		p->error = r;
	}
	return 0;
}

void call_release(struct call *c)
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		struct call_path *p = &c->path[i];
		/* In a zeroed call the descriptors are 0, not ours: nothing was decoded. */
		if (p->given)
			path_release(&p->at);
		free(p->given);
		p->given = NULL;
	}
	free(c->target);
	c->target = NULL;
}
