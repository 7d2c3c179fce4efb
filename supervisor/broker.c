#include "supervisor/broker.h"

#include "landlock/llabi.h"
#include "landlock/llright.h"
#include "landlock/llruleset.h"
#include "supervisor/exec_copy.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* 6.9 */
#endif

/* Threads that wait for work; more are made while acts block, and end when idle. */
#define WORKERS_IDLE_MAX 2
/* A tree that blocks in more opens and connects than this at once is refused further ones
 * (-EAGAIN). */
#define BLOCKERS_MAX 512
/* So that what can't block never waits for what does. */
#define WORKERS_MAX (BLOCKERS_MAX + 8)

/* One side of an act: what was decided on. */
struct thing {
	int object; /* O_PATH, -1 */
	int parent; /* O_PATH, -1 */
	char name[256];
	bool exists;
	dev_t dev;
	ino_t ino;
	mode_t mode;
};

struct job {
	uint64_t id;
	struct job *next;
	enum call_need need;
	struct thing at[CALL_PATHS];
	struct identity as;
	uint64_t flags;	  /* O_* or AT_*/
	uint64_t resolve; /* openat2's */
	uint32_t mode;
	uint64_t dev;
	uint64_t length;
	char *text; /* symlink: its target; exec: what a script is called */
	bool scripts_alone;
	struct broker_connect connect;
	bool no_ioctl;
	struct pool *pool;
	int socket; /* bind: our copy of the tracee's socket */
	int cwd;    /* bind: the directory that the address is relative to */
	struct sockaddr_un address;
	socklen_t address_len;
	/* state, under the broker's lock */
	pthread_t thread;
	bool may_block;
	bool running;
	bool cancelled;
	struct broker_done done;
};

struct broker {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t ended;
	pthread_mutex_t structural; /* acts on names go one at a time */
	int event;
	uint64_t next_id;
	struct job *queue, **queue_end;
	struct job *running;
	struct job *finished, **finished_end;
	unsigned workers, idle;
	unsigned blockers; /* jobs that may block, waiting or running */
	bool stopping;
	int signal;
	struct sigaction old_action;
};

/* ---- the acts: each returns 0 or -errno, an open its descriptor in *fd ---- */

struct act_result {
	int fd;
	bool stale;
	bool finds_itself;
};

static void self_path(char out[64], int fd)
{
	snprintf(out, 64, "/proc/thread-self/fd/%d", fd);
}

/* Flags that keep their meaning when the inode is opened again by descriptor. */
static int reopen_flags(uint64_t flags)
{
	return (int)(flags & ~(uint64_t)(O_CREAT | O_EXCL | O_NOFOLLOW)) | O_NOCTTY | O_CLOEXEC;
}

/* The calling thread may do this much from now on, to this and below it; it ends after its act. */
static int wall_thread(int fd, uint64_t rights)
{
	struct llabi abi;
	struct llruleset *rules = NULL;
	int err = llabi_detect(&abi);
	if (!err)
		err = llruleset_new(&abi, 0, &rules);
	if (!err)
		err = llruleset_allow_fd(rules, fd, rights);
	if (!err)
		err = llruleset_restrict(rules);
	llruleset_free(rules);
	return err;
}

static int open_existing(const struct job *j, struct act_result *r)
{
	const struct thing *t = &j->at[0];
	if ((j->flags & O_CREAT) && (j->flags & O_EXCL))
		return -EEXIST;
	if (S_ISLNK(t->mode))
		return -ELOOP;
	if ((j->flags & O_CREAT) && S_ISDIR(t->mode))
		return -EISDIR;
	/* A descriptor keeps what its opener was allowed: a device's ioctls. */
	int err = j->no_ioctl ? wall_thread(t->object, LLR_READ_FILE | LLR_WRITE_FILE) : 0;
	if (err)
		return err;
	char path[64];
	self_path(path, t->object);
	r->fd = open(path, reopen_flags(j->flags));
	return r->fd < 0 ? -errno : 0;
}

static int open_tmpfile(const struct job *j, struct act_result *r)
{
	char path[64];
	self_path(path, j->at[0].object);
	r->fd = open(path, (int)(j->flags & ~(uint64_t)O_NOFOLLOW) | O_CLOEXEC, j->mode);
	return r->fd < 0 ? -errno : 0;
}

static int open_absent(const struct job *j, struct act_result *r)
{
	const struct thing *t = &j->at[0];
	if (!(j->flags & O_CREAT) || t->parent < 0)
		return -ENOENT;
	/* O_EXCL follows no link either; O_NOFOLLOW would stay to be seen in F_GETFL. */
	int flags = (int)j->flags | O_CREAT | O_EXCL | O_NOCTTY | O_CLOEXEC;
	r->fd = openat(t->parent, t->name, flags, j->mode);
	if (r->fd >= 0)
		return 0;
	/* Somebody made it meanwhile: which thing it is now was never decided on. */
	if (errno == EEXIST && !(j->flags & O_EXCL))
		r->stale = true;
	return -errno;
}

static int act_open(const struct job *j, struct act_result *r)
{
	if ((j->flags & O_TMPFILE) == O_TMPFILE)
		return j->at[0].exists ? open_tmpfile(j, r) : -ENOENT;
	return j->at[0].exists ? open_existing(j, r) : open_absent(j, r);
}

static int act_truncate(const struct job *j, struct act_result *r)
{
	(void)r;
	if (!j->at[0].exists)
		return -ENOENT;
	char path[64];
	self_path(path, j->at[0].object);
	return truncate(path, (off_t)j->length) ? -errno : 0;
}

/* Is the name still the thing that was decided on (or still absent)? */
static bool unchanged(const struct thing *t)
{
	struct stat st;
	if (fstatat(t->parent, t->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT && !t->exists;
	return t->exists && st.st_dev == t->dev && st.st_ino == t->ino;
}

/* Every act on a name: it must have a parent and be what it was. */
static int check_name(const struct thing *t, struct act_result *r)
{
	if (t->parent < 0 || !t->name[0])
		return -EACCES;
	if (!unchanged(t)) {
		r->stale = true;
		return -EAGAIN;
	}
	return 0;
}

static int act_mkdir(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	const struct thing *t = &j->at[0];
	if (j->pool && !t->exists &&
	    !pool_mkdir(j->pool, t->parent, t->name, j->mode, j->as.umask & 0777))
		return 0;
	return mkdirat(t->parent, t->name, j->mode) ? -errno : 0;
}

static int act_mknod(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	return mknodat(j->at[0].parent, j->at[0].name, j->mode, j->dev) ? -errno : 0;
}

static int act_symlink(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	return symlinkat(j->text, j->at[0].parent, j->at[0].name) ? -errno : 0;
}

static int act_unlink(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (err)
		return err;
	int flags = j->need == CALL_NEED_RMDIR ? AT_REMOVEDIR : (int)j->flags & AT_REMOVEDIR;
	return unlinkat(j->at[0].parent, j->at[0].name, flags) ? -errno : 0;
}

static int act_rename(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[0], r);
	if (!err)
		err = check_name(&j->at[1], r);
	if (err)
		return err;
	return syscall(SYS_renameat2, j->at[0].parent, j->at[0].name, j->at[1].parent,
		       j->at[1].name, (unsigned)j->flags)
		       ? -errno
		       : 0;
}

static int act_link(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[1], r);
	if (err)
		return err;
	if (!j->at[0].exists)
		return -ENOENT;
	char path[64];
	self_path(path, j->at[0].object);
	return linkat(AT_FDCWD, path, j->at[1].parent, j->at[1].name, AT_SYMLINK_FOLLOW) ? -errno
											 : 0;
}

/*
 * bind keeps the tracee's own string where it can (getsockname shows it), so the kernel walks a
 * path again here. What it may reach is therefore walled in: this thread takes on a Landlock domain
 * whose one rule is MAKE_SOCK on the parent that was decided on, and ends after the act. A rule
 * covers what is below as well: where that is not all the same, the address is the plain name in
 * the parent.
 */
static int bind_walled(const struct job *j)
{
	int err = wall_thread(j->at[0].parent, LLR_MAKE_SOCK);
	if (err)
		return err;
	if (fchdir(j->cwd))
		return -errno;
	return bind(j->socket, (const struct sockaddr *)&j->address, j->address_len) ? -errno : 0;
}

static int act_bind(const struct job *j, struct act_result *r)
{
	int err = check_name(&j->at[0], r);
	return err ? err : bind_walled(j);
}

/* The copy that is to be run in the program's place. */
static int act_exec(const struct job *j, struct act_result *r)
{
	struct exec_copy copy;
	if (!j->at[0].exists || !j->text)
		return -EACCES;
	int err = exec_copy_make(j->at[0].object, j->text, j->scripts_alone, &copy);
	if (err)
		return err;
	r->fd = copy.fd;
	r->finds_itself = copy.finds_itself;
	return 0;
}

/* The thread's file-system ids follow the effective ones back: the role is to be taken anew. */
static int act_connect(const struct job *j, struct act_result *r)
{
	(void)r;
	return (int)broker_connect_perform(&j->connect, j->at[0].object, &j->as);
}

typedef int act_fn(const struct job *j, struct act_result *r);

/* One row a need: what performs it, whether it changes names. */
static const struct act {
	act_fn *fn;
	bool structural;
	bool own_thread; /* the act changes its thread for good */
} acts[CALL_NEED_COUNT] = {
	[CALL_NEED_OPEN] = {act_open, false, false},
	[CALL_NEED_EXEC] = {act_exec, false, false},
	[CALL_NEED_TRUNCATE] = {act_truncate, false, false},
	[CALL_NEED_MKDIR] = {act_mkdir, true, false},
	[CALL_NEED_MKNOD] = {act_mknod, true, false},
	[CALL_NEED_SYMLINK] = {act_symlink, true, false},
	[CALL_NEED_BIND] = {act_bind, true, true},
	[CALL_NEED_CONNECT] = {act_connect, false, false},
	[CALL_NEED_UNLINK] = {act_unlink, true, false},
	[CALL_NEED_RMDIR] = {act_unlink, true, false},
	[CALL_NEED_MOVE_FROM] = {act_rename, true, false},
	[CALL_NEED_LINK_FROM] = {act_link, true, false},
};

bool broker_can(const struct call *c)
{
	/* A path that was given with openat2's constraints keeps them: what RESOLVE_* would have
	 * refused the kernel refused itself, before Landlock; the descriptor is the same inode. */
	return acts[c->path[0].need].fn != NULL;
}

/* ---- jobs ---- */

static void thing_release(struct thing *t)
{
	util_close(&t->object);
	util_close(&t->parent);
}

static void job_free(struct job *j)
{
	if (!j)
		return;
	for (int i = 0; i < CALL_PATHS; i++)
		thing_release(&j->at[i]);
	broker_connect_release(&j->connect);
	util_close(&j->socket);
	util_close(&j->cwd);
	free(j->text);
	free(j);
}

static int copy_fd(int fd)
{
	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int thing_take(struct thing *t, const struct path_at *at)
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

/*
 * Of the thread: its descriptors may be its own (unshare(CLONE_FILES)), and where the first thread
 * has ended the process's are gone with it. Before 6.9 a pidfd is a process's.
 */
static int pidfd_of(struct call_view view)
{
	int fd = (int)syscall(SYS_pidfd_open, view.tid, PIDFD_THREAD);
	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, view.tgid, 0);
	return fd < 0 ? -errno : fd;
}

/* bind: a copy of the tracee's socket, its address and the directory that this is relative to. */
static int take_bind(struct job *j, const struct broker_request *rq)
{
	const struct call *c = rq->call;
	struct call_view view = rq->view;
	bool as_given = rq->as_given;
	char path[64];
	int pidfd AUTOCLOSE = pidfd_of(view);
	if (pidfd < 0)
		return pidfd;
	j->socket = (int)syscall(SYS_pidfd_getfd, pidfd, (int)c->args[0], 0);
	if (j->socket < 0)
		return -errno;
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
static bool may_block(const struct job *j)
{
	mode_t mode = j->at[0].mode;
	if (j->need == CALL_NEED_CONNECT)
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

static int job_new(const struct broker_request *rq, struct job **ret)
{
	const struct call *c = rq->call;
	struct job *j = calloc(1, sizeof *j);
	if (!j)
		return -ENOMEM;
	*j = (struct job){.need = rq->connect ? CALL_NEED_CONNECT : c->path[0].need,
			  .flags = flags_of(c),
			  .resolve = c->open_resolve,
			  .mode = c->mode,
			  .dev = c->dev,
			  .length = c->length,
			  .connect = {.socket = -1},
			  .socket = -1,
			  .cwd = -1,
			  .done = {.fd = -1}};
	for (int i = 0; i < CALL_PATHS; i++)
		j->at[i].object = j->at[i].parent = -1;
	j->as = *rq->as;
	j->scripts_alone = rq->scripts_alone;
	j->no_ioctl = rq->no_ioctl;
	j->pool = rq->pool;
	int err = 0;
	for (int i = 0; i < CALL_PATHS && !err; i++)
		if (c->path[i].need != CALL_NEED_NONE)
			err = thing_take(&j->at[i], &c->path[i].at);
	const char *text = j->need == CALL_NEED_EXEC ? script_name(c) : c->target;
	if (!err && text && !(j->text = strdup(text)))
		err = -ENOMEM;
	if (!err && j->need == CALL_NEED_BIND)
		err = take_bind(j, rq);
	if (err) {
		job_free(j);
		return err;
	}
	if (rq->connect) {
		j->connect = *rq->connect;
		*rq->connect = (struct broker_connect){.socket = -1};
	}
	j->may_block = may_block(j);
	*ret = j;
	return 0;
}

/* ---- workers ---- */

/* What a worker is at the moment; its own. */
struct role {
	bool known;
	struct identity as;
};

static int take_role(struct role *role, const struct identity *as)
{
	if (role->known && identity_same(&role->as, as))
		return 0;
	role->known = false; /* half a change is nobody */
	int err = identity_enter(as);
	if (err)
		return err;
	role->as = *as;
	role->known = true;
	return 0;
}

static void perform(struct broker *b, struct job *j, struct role *role)
{
	const struct act *act = &acts[j->need];
	struct act_result r = {.fd = -1};
	int result = take_role(role, &j->as);
	if (!result) {
		umask(j->as.umask & 0777);
		if (act->structural)
			pthread_mutex_lock(&b->structural);
		result = act->fn(j, &r);
		role->known &= j->need != CALL_NEED_CONNECT;
		if (act->structural)
			pthread_mutex_unlock(&b->structural);
	}
	j->done = (struct broker_done){.id = j->id,
				       .result = result,
				       .fd = r.fd,
				       .stale = r.stale,
				       .finds_itself = r.finds_itself};
}

static void list_remove(struct job **list, struct job *j)
{
	while (*list && *list != j)
		list = &(*list)->next;
	BUG(!*list);
	*list = j->next;
}

static void finish(struct broker *b, struct job *j)
{
	list_remove(&b->running, j);
	j->running = false;
	b->blockers -= j->may_block;
	j->next = NULL;
	*b->finished_end = j;
	b->finished_end = &j->next;
	uint64_t one = 1;
	ssize_t n = write(b->event, &one, sizeof one);
	BUG(n != sizeof one);
	pthread_cond_broadcast(&b->ended);
}

static struct job *take(struct broker *b)
{
	struct job *j = b->queue;
	b->queue = j->next;
	if (!b->queue)
		b->queue_end = &b->queue;
	j->next = b->running;
	b->running = j;
	j->running = true;
	j->thread = pthread_self();
	return j;
}

static void *worker(void *arg)
{
	struct broker *b = arg;
	struct role role = {0};
	/* An own umask and working directory: CLONE_FS is what fork-less threads share. */
	bool usable = !unshare(CLONE_FS);
	pthread_mutex_lock(&b->lock);
	while (!b->stopping) {
		if (!b->queue) {
			if (b->idle >= WORKERS_IDLE_MAX)
				break;
			b->idle++;
			pthread_cond_wait(&b->work, &b->lock);
			b->idle--;
			continue;
		}
		struct job *j = take(b);
		bool last = acts[j->need].own_thread || j->no_ioctl;
		pthread_mutex_unlock(&b->lock);
		if (usable)
			perform(b, j, &role);
		else
			j->done = (struct broker_done){.id = j->id, .result = -EPERM, .fd = -1};
		pthread_mutex_lock(&b->lock);
		finish(b, j);
		if (last)
			break;
	}
	b->workers--;
	pthread_cond_broadcast(&b->ended);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static int start_worker(struct broker *b)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* Only the cancel signal reaches a worker. */
	sigfillset(&all);
	sigdelset(&all, b->signal);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, worker, b);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (!err)
		b->workers++;
	return -err;
}

/* ---- the face ---- */

static void on_cancel(int signo)
{
	(void)signo; /* its only use is to make a blocking call return EINTR */
}

int broker_new(struct broker **ret)
{
	struct broker *b = calloc(1, sizeof *b);
	if (!b)
		return -ENOMEM;
	b->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->event < 0) {
		int err = -errno;
		free(b);
		return err;
	}
	pthread_mutex_init(&b->lock, NULL);
	pthread_mutex_init(&b->structural, NULL);
	pthread_cond_init(&b->work, NULL);
	pthread_cond_init(&b->ended, NULL);
	b->queue_end = &b->queue;
	b->finished_end = &b->finished;
	b->signal = SIGRTMIN + 3;
	struct sigaction sa = {.sa_handler = on_cancel}; /* no SA_RESTART */
	sigaction(b->signal, &sa, &b->old_action);
	*ret = b;
	return 0;
}

static void wake_running(struct broker *b)
{
	for (struct job *j = b->running; j; j = j->next) {
		j->cancelled = true;
		pthread_kill(j->thread, b->signal);
	}
}

void broker_free(struct broker *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stopping = true;
	pthread_cond_broadcast(&b->work);
	while (b->workers) {
		/* A signal that comes just before the blocking call is lost: again every 2 ms. */
		wake_running(b);
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 2000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&b->ended, &b->lock, &until);
	}
	pthread_mutex_unlock(&b->lock);
	for (struct job *j = b->queue, *next; j; j = next) {
		next = j->next;
		job_free(j);
	}
	for (struct job *j = b->finished, *next; j; j = next) {
		next = j->next;
		util_close(&j->done.fd);
		job_free(j);
	}
	sigaction(b->signal, &b->old_action, NULL);
	close(b->event);
	pthread_cond_destroy(&b->ended);
	pthread_cond_destroy(&b->work);
	pthread_mutex_destroy(&b->structural);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

int broker_fd(const struct broker *b)
{
	return b->event;
}

int broker_submit(struct broker *b, const struct broker_request *rq, uint64_t *ret_id)
{
	struct job *j;
	if (!rq->connect && !broker_can(rq->call))
		return -EOPNOTSUPP;
	int err = job_new(rq, &j);
	if (err)
		return err;
	pthread_mutex_lock(&b->lock);
	j->id = ++b->next_id;
	bool spare = b->idle > 0 && !b->queue;
	if (!spare && b->workers < WORKERS_MAX)
		err = start_worker(b);
	if (b->workers == 0 || (j->may_block && b->blockers >= BLOCKERS_MAX)) {
		pthread_mutex_unlock(&b->lock);
		job_free(j);
		return err ? err : -EAGAIN;
	}
	b->blockers += j->may_block;
	*b->queue_end = j;
	b->queue_end = &j->next;
	*ret_id = j->id;
	pthread_cond_signal(&b->work);
	pthread_mutex_unlock(&b->lock);
	return 0;
}

int broker_next(struct broker *b, struct broker_done *ret)
{
	uint64_t drained;
	pthread_mutex_lock(&b->lock);
	struct job *j = b->finished;
	if (j) {
		b->finished = j->next;
		if (!b->finished)
			b->finished_end = &b->finished;
		*ret = j->done;
	} else if (read(b->event, &drained, sizeof drained) < 0) {
		BUG(errno != EAGAIN);
	}
	pthread_mutex_unlock(&b->lock);
	job_free(j);
	return j != NULL;
}

void broker_cancel(struct broker *b, uint64_t id)
{
	pthread_mutex_lock(&b->lock);
	for (struct job *j = b->running; j; j = j->next)
		if (j->id == id) {
			j->cancelled = true;
			pthread_kill(j->thread, b->signal);
		}
	for (struct job **p = &b->queue; *p; p = &(*p)->next)
		if ((*p)->id == id) {
			struct job *j = *p;
			*p = j->next;
			if (!b->queue)
				b->queue_end = &b->queue;
			else if (!*p)
				b->queue_end = p;
			j->done = (struct broker_done){.id = id, .result = -EINTR, .fd = -1};
			j->next = b->running;
			b->running = j;
			finish(b, j);
			break;
		}
	pthread_mutex_unlock(&b->lock);
}
