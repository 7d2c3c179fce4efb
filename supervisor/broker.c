#include "supervisor/broker.h"

#include "supervisor/broker_act.h"
#include "supervisor/netdomain.h"
#include "tracer/cpus.h"
#include "tracer/util.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

/* Threads that wait for work; more are made while acts block, and end when idle. */
#define WORKERS_IDLE_MAX 2
/* A tree that blocks in more opens and connects than this at once is refused further ones
 * (-EAGAIN). */
#define BLOCKERS_MAX 512
/* So that what can't block never waits for what does. */
#define WORKERS_MAX (BLOCKERS_MAX + 8)

/* One every 2 ms: whom no signal has woken by then sleeps beyond signals. */
#define TRIES_AT_THE_END 150

struct broker {
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t ended;
	pthread_mutex_t structural; /* acts on names go one at a time */
	int event;
	uint64_t next_id;
	struct broker_job *queue, **queue_end;
	struct broker_job *running;
	struct broker_job *finished, **finished_end;
	unsigned workers, idle;
	unsigned blockers; /* jobs that may block, waiting or running */
	bool stopping;
	int signal;
	struct sigaction old_action;
	struct cpus cpus; /* of who made it; whoever starts a worker may be bound (tracer_roam()) */
	bool has_cpus;
};

bool broker_can(const struct call *c)
{
	/* A path that was given with openat2's constraints keeps them: what RESOLVE_* would have
	 * refused the kernel refused itself, before Landlock; the descriptor is the same inode. */
	return broker_act_of(c->path[0].need)->fn != NULL;
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

static void perform(struct broker *b, struct broker_job *j, struct role *role)
{
	const struct broker_act *act = broker_act_of(j->need);
	struct broker_act_result r = {.fd = -1};
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

static void list_remove(struct broker_job **list, struct broker_job *j)
{
	while (*list && *list != j)
		list = &(*list)->next;
	BUG(!*list);
	*list = j->next;
}

static void finish(struct broker *b, struct broker_job *j)
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

/* And is back under the lock. A thread that could not get ready does nothing. */
static void carry_out(struct broker *b, struct broker_job *j, struct role *role, bool usable)
{
	if (usable)
		perform(b, j, role);
	else
		j->done = (struct broker_done){.id = j->id, .result = -EPERM, .fd = -1};
	pthread_mutex_lock(&b->lock);
	finish(b, j);
}

static struct broker_job *take(struct broker *b)
{
	struct broker_job *j = b->queue;
	b->queue = j->next;
	if (!b->queue)
		b->queue_end = &b->queue;
	j->next = b->running;
	b->running = j;
	j->running = true;
	j->thread = pthread_self();
	return j;
}

/* ---- interrupting ---- */

/* Are there acts that nobody waits for any more? They are woken out of whatever they block in. */
static bool wake_cancelled(struct broker *b)
{
	bool any = false;
	for (struct broker_job *j = b->running; j; j = j->next)
		if (j->cancelled) {
			pthread_kill(j->thread, b->signal);
			any = true;
		}
	return any;
}

/* A signal that comes just before the blocking call is lost: it is sent again every 2 ms. */
static void wait_a_little(struct broker *b, pthread_cond_t *cond)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(cond, &b->lock, &until);
}

/* ---- a worker's life ---- */

/* Without work, it sees to it that what was cancelled ends. */
static void wait_for_work(struct broker *b)
{
	b->idle++;
	if (wake_cancelled(b))
		wait_a_little(b, &b->work);
	else
		pthread_cond_wait(&b->work, &b->lock);
	b->idle--;
}

static void *worker(void *arg)
{
	struct broker *b = arg;
	struct role role = {0};
	struct cpus own = b->cpus;
	if (b->has_cpus)
		cpus_take(&own);
	/* An own umask and working directory: CLONE_FS is what fork-less threads share. */
	bool usable = !unshare(CLONE_FS);
	pthread_mutex_lock(&b->lock);
	while (!b->stopping) {
		if (!b->queue) {
			if (b->idle >= WORKERS_IDLE_MAX)
				break;
			wait_for_work(b);
			continue;
		}
		struct broker_job *j = take(b);
		bool last = broker_act_of(j->need)->own_thread || j->no_ioctl;
		pthread_mutex_unlock(&b->lock);
		carry_out(b, j, &role, usable);
		if (last)
			break;
	}
	b->workers--;
	pthread_cond_broadcast(&b->ended);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* One that can't be among the others: it does this act alone. */
struct lone {
	struct broker *b;
	struct broker_job *job;
};

static void *lone_worker(void *arg)
{
	struct lone *l = arg;
	struct broker *b = l->b;
	struct broker_job *j = l->job;
	struct role role = {0};
	sigset_t all;
	free(l);
	sigfillset(&all);
	sigdelset(&all, b->signal);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	bool usable = !unshare(CLONE_FS);
	pthread_mutex_lock(&b->lock);
	j->thread = pthread_self();
	j->running = true;
	j->next = b->running;
	b->running = j;
	pthread_mutex_unlock(&b->lock);
	carry_out(b, j, &role, usable);
	b->workers--;
	pthread_cond_broadcast(&b->ended);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

/* In a domain like the caller's. 0 or -errno: the job is not begun. */
static int start_lone(struct broker *b, struct netdomains *in, struct broker_job *j)
{
	struct lone *l = malloc(sizeof *l);
	if (!l)
		return -ENOMEM;
	*l = (struct lone){b, j};
	b->workers++;
	b->blockers += j->may_block;
	int err = netdomains_start(in, j->connect.in, lone_worker, l);
	if (!err)
		return 0;
	b->workers--;
	b->blockers -= j->may_block;
	free(l);
	return err;
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
	b->has_cpus = !cpus_own(&b->cpus);
	pthread_mutex_init(&b->lock, NULL);
	pthread_mutex_init(&b->structural, NULL);
	pthread_cond_init(&b->work, NULL);
	pthread_cond_init(&b->ended, NULL);
	b->queue_end = &b->queue;
	b->finished_end = &b->finished;
	/* Nobody else uses it; and it does not queue up where a thread takes none (signal(7)). */
	b->signal = SIGSTKFLT;
	struct sigaction sa = {.sa_handler = on_cancel}; /* no SA_RESTART */
	sigaction(b->signal, &sa, &b->old_action);
	*ret = b;
	return 0;
}

void broker_free(struct broker *b)
{
	if (!b)
		return;
	pthread_mutex_lock(&b->lock);
	b->stopping = true;
	pthread_cond_broadcast(&b->work);
	for (unsigned tries = 0; b->workers; tries++) {
		if (tries == TRIES_AT_THE_END) {
			pthread_mutex_unlock(&b->lock);
			return;
		}
		for (struct broker_job *j = b->running; j; j = j->next)
			j->cancelled = true;
		(void)wake_cancelled(b);
		wait_a_little(b, &b->ended);
	}
	pthread_mutex_unlock(&b->lock);
	for (struct broker_job *j = b->queue, *next; j; j = next) {
		next = j->next;
		broker_job_free(j);
	}
	for (struct broker_job *j = b->finished, *next; j; j = next) {
		next = j->next;
		util_close(&j->done.fd);
		broker_job_free(j);
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
	struct broker_job *j;
	if (!rq->connect && !rq->meta && !rq->probe && !broker_can(rq->call))
		return -EOPNOTSUPP;
	int err = broker_job_new(rq, &j);
	if (err)
		return err;
	pthread_mutex_lock(&b->lock);
	j->id = ++b->next_id;
	if (j->connect.in) {
		err = b->blockers < BLOCKERS_MAX ? start_lone(b, rq->domains, j) : -EAGAIN;
		*ret_id = j->id;
		pthread_mutex_unlock(&b->lock);
		if (err)
			broker_job_free(j);
		return err;
	}
	bool spare = b->idle > 0 && !b->queue;
	if (!spare && b->workers < WORKERS_MAX)
		err = start_worker(b);
	if (b->workers == 0 || (j->may_block && b->blockers >= BLOCKERS_MAX)) {
		pthread_mutex_unlock(&b->lock);
		broker_job_free(j);
		return err ? err : -EAGAIN;
	}
	b->blockers += j->may_block;
	*b->queue_end = j;
	b->queue_end = &j->next;
	*ret_id = j->id;
	pthread_mutex_unlock(&b->lock);
	pthread_cond_signal(&b->work); /* whoever wakes finds the lock free */
	return 0;
}

int broker_next(struct broker *b, struct broker_done *ret)
{
	uint64_t drained;
	pthread_mutex_lock(&b->lock);
	struct broker_job *j = b->finished;
	if (j) {
		b->finished = j->next;
		if (!b->finished)
			b->finished_end = &b->finished;
		*ret = j->done;
	} else if (read(b->event, &drained, sizeof drained) < 0) {
		BUG(errno != EAGAIN);
	}
	pthread_mutex_unlock(&b->lock);
	broker_job_free(j);
	return j != NULL;
}

static struct broker_job *running(const struct broker *b, uint64_t id)
{
	struct broker_job *j = b->running;
	while (j && j->id != id)
		j = j->next;
	return j;
}

void broker_interrupt(struct broker *b, uint64_t id)
{
	pthread_mutex_lock(&b->lock);
	struct broker_job *j = running(b, id);
	if (j)
		pthread_kill(j->thread, b->signal);
	pthread_mutex_unlock(&b->lock);
}

/* Somebody idle is there to wake it until it ends; where no thread can be had, whoever is next. */
static void cancel_running(struct broker *b, struct broker_job *j)
{
	j->cancelled = true;
	pthread_kill(j->thread, b->signal);
	if (!b->idle)
		(void)start_worker(b);
	pthread_cond_broadcast(&b->work);
}

void broker_cancel(struct broker *b, uint64_t id)
{
	pthread_mutex_lock(&b->lock);
	struct broker_job *begun = running(b, id);
	if (begun)
		cancel_running(b, begun);
	for (struct broker_job **p = &b->queue; *p; p = &(*p)->next)
		if ((*p)->id == id) {
			struct broker_job *j = *p;
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
