#include "supervisor/broker_job.h"

#include "supervisor/tracee_fd.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void thing_release(struct broker_thing *t)
{
	util_close(&t->object);
	util_close(&t->parent);
}

void broker_job_free(struct broker_job *j)
{
	if (!j)
		return;
	for (int i = 0; i < CALL_PATHS; i++)
		thing_release(&j->at[i]);
	broker_connect_release(&j->connect);
	broker_meta_release(&j->meta);
	call_release(&j->probe);
	util_close(&j->socket);
	util_close(&j->cwd);
	free(j->text);
	free(j);
}

static int copy_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int thing_take(struct broker_thing *t, const struct path_at *at)
{
	t->exists = at->exists;
	t->dev = at->st.st_dev;
	t->ino = at->st.st_ino;
	t->mode = at->st.st_mode;
	memcpy(t->name, at->name, sizeof t->name);
	t->object = copy_fd(at->object);
	t->parent = copy_fd(at->parent);
	if ((t->object < 0 && at->object >= 0) || (t->parent < 0 && at->parent >= 0))
		return -EMFILE;
	return 0;
}

/* bind: a copy of the tracee's socket, its address and the directory that this is relative to. */
static int take_bind(struct broker_job *j, const struct broker_request *rq)
{
	const struct call *c = rq->call;
	struct call_view view = rq->view;
	bool as_given = rq->as_given;
	char path[64];
	int err = tracee_fd_take(NULL, view, (int)c->args[0], &j->socket);
	if (err)
		return err;
	if (j->at[0].parent < 0)
		return -EACCES;
	as_given = as_given && path_has_our_root(view.tid);
	snprintf(path, sizeof path, "/proc/%d/cwd", view.tid);
	j->cwd = as_given ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : copy_fd(j->at[0].parent);
	if (j->cwd < 0)
		return -errno;
	const char *given = as_given ? c->path[0].given : j->at[0].name;
	size_t len = strlen(given);
	if (len > sizeof j->address.sun_path)
		return -EINVAL;
	j->address.sun_family = AF_UNIX;
	/* One that fills the address needs no NUL (unix(7)). */
	memcpy(j->address.sun_path, given, len);
	j->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len +
				     (len < sizeof j->address.sun_path));
	return 0;
}

/* A FIFO waits for its other side, a device for whatever it likes. */
static bool may_block(const struct broker_job *j)
{
	mode_t mode = j->at[0].mode;
	if (j->need == CALL_NEED_CONNECT || j->need == CALL_NEED_META || j->need == CALL_NEED_LOOK)
		return true;
	return j->need == CALL_NEED_OPEN && j->at[0].exists && !(j->flags & O_NONBLOCK) &&
	       (S_ISFIFO(mode) || S_ISCHR(mode) || S_ISBLK(mode));
}

static uint64_t flags_of(const struct call *c)
{
	return c->path[0].need == CALL_NEED_OPEN ? c->open_flags : c->at_flags;
}

/* As binfmt_script names it to the interpreter; a name relative to a descriptor is no name there.
 */
static const char *script_name(const struct call *c)
{
	const struct call_path *p = &c->path[0];
	bool relative = c->ent->arg[0] == ARG_DIRFD && (int)c->args[0] != AT_FDCWD;
	return relative && p->given[0] != '/' ? p->at.real : p->given;
}

static int copy_text(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

/* The words of the call: to be looked at. */
static int take_probe(struct broker_job *j, const struct broker_request *rq)
{
	int err = 0;
	j->probe = *rq->call;
	j->probe.target = NULL;
	for (int i = 0; i < CALL_PATHS; i++) {
		path_init(&j->probe.path[i].at);
		j->probe.path[i].given = NULL;
	}
	for (int i = 0; i < CALL_PATHS && !err; i++)
		err = copy_text(&j->probe.path[i].given, rq->call->path[i].given);
	return err;
}

static enum call_need need_of(const struct broker_request *rq)
{
	if (rq->probe)
		return CALL_NEED_LOOK;
	if (rq->meta)
		return CALL_NEED_META;
	return rq->connect ? CALL_NEED_CONNECT : rq->call->path[0].need;
}

int broker_job_new(const struct broker_request *rq, struct broker_job **ret)
{
	const struct call *c = rq->call;
	struct broker_job *j = calloc(1, sizeof *j);
	if (!j)
		return -ENOMEM;
	*j = (struct broker_job){.need = need_of(rq),
				 .flags = flags_of(c),
				 .resolve = c->open_resolve,
				 .mode = c->mode,
				 .dev = c->dev,
				 .length = c->length,
				 .connect = {.socket = -1},
				 .view = {.tid = rq->view.tid, .tgid = rq->view.tgid},
				 .socket = -1,
				 .cwd = -1,
				 .done = {.fd = -1}};
	for (int i = 0; i < CALL_PATHS; i++)
		j->at[i].object = j->at[i].parent = -1;
	j->as = *rq->as;
	j->scripts_alone = rq->scripts_alone;
	j->no_ioctl = rq->no_ioctl;
	j->pool = rq->pool;
	int err = rq->probe ? take_probe(j, rq) : 0;
	for (int i = 0; i < CALL_PATHS && !err && !rq->probe; i++)
		if (c->path[i].need != CALL_NEED_NONE)
			err = thing_take(&j->at[i], &c->path[i].at);
	if (!err && rq->meta && rq->meta->by_fd) {
		j->at[0].object = copy_fd(rq->object);
		err = j->at[0].object < 0 ? -EMFILE : 0;
	}
	const char *text = j->need == CALL_NEED_EXEC ? script_name(c) : c->target;
	if (!err && text && !(j->text = strdup(text)))
		err = -ENOMEM;
	if (!err && j->need == CALL_NEED_BIND)
		err = take_bind(j, rq);
	if (err) {
		broker_job_free(j);
		return err;
	}
	if (rq->meta && !rq->probe) {
		j->meta = *rq->meta;
		*rq->meta = (struct broker_meta){0};
	}
	if (rq->connect && !rq->probe) {
		j->connect = *rq->connect;
		*rq->connect = (struct broker_connect){.socket = -1,
						       .is_message = j->connect.is_message,
						       .sent_at = j->connect.sent_at};
	}
	j->may_block = may_block(j);
	*ret = j;
	return 0;
}
