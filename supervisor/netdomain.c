#include "supervisor/netdomain.h"

#include "landlock/llsys.h"
#include "tracer/util.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>

#define STACK_SIZE 65536 /* they only wait */

/* What a thread is to do next; then it is idle again, with `result`. */
enum order { ORDER_NONE, ORDER_ENTER, ORDER_START, ORDER_END };

struct keeper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t told;
	enum order order;
	int ruleset; /* to be entered */
	void *(*start)(void *);
	void *arg;
	int result;
};

struct netdomains {
	struct keeper *keeper[NETDOMAINS_MAX]; /* owned; number - 1; NULL: free */
};

static int enter(int ruleset)
{
	/* Of this thread, and of those it bears. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return llsys_restrict_self(ruleset, 0);
}

/* Everything is blocked in a keeper, and in those it bears but what `start` lets through. */
static int start_detached(void *(*start)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_create(&thread, &attr, start, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

static int obey(struct keeper *k)
{
	return k->order == ORDER_ENTER ? enter(k->ruleset) : start_detached(k->start, k->arg);
}

static void *keep(void *arg)
{
	struct keeper *k = arg;
	pthread_mutex_lock(&k->lock);
	while (k->order != ORDER_END) {
		if (k->order != ORDER_NONE) {
			k->result = obey(k);
			k->order = ORDER_NONE;
			pthread_cond_broadcast(&k->told);
			continue;
		}
		pthread_cond_wait(&k->told, &k->lock);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

static int tell(struct keeper *k, enum order order)
{
	pthread_mutex_lock(&k->lock);
	k->order = order;
	pthread_cond_broadcast(&k->told);
	while (order != ORDER_END && k->order != ORDER_NONE)
		pthread_cond_wait(&k->told, &k->lock);
	int result = k->result;
	pthread_mutex_unlock(&k->lock);
	return result;
}

/* ---- being born: by us, or in the domain below ---- */

static int bear(struct keeper *k)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int err = pthread_attr_init(&attr);
	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&k->thread, &attr, keep, k);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

struct birth {
	struct keeper *keeper;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool done;
	int result;
};

static void *bear_there(void *arg)
{
	struct birth *b = arg;
	pthread_mutex_lock(&b->lock);
	b->result = bear(b->keeper);
	b->done = true;
	pthread_cond_signal(&b->over);
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static int bear_in(struct netdomains *n, uint32_t below, struct keeper *k)
{
	struct birth b = {.keeper = k};
	if (!below)
		return bear(k);
	pthread_mutex_init(&b.lock, NULL);
	pthread_cond_init(&b.over, NULL);
	int err = netdomains_start(n, below, bear_there, &b);
	pthread_mutex_lock(&b.lock);
	while (!err && !b.done)
		pthread_cond_wait(&b.over, &b.lock);
	pthread_mutex_unlock(&b.lock);
	pthread_cond_destroy(&b.over);
	pthread_mutex_destroy(&b.lock);
	return err ? err : b.result;
}

static void end(struct keeper *k)
{
	tell(k, ORDER_END);
	pthread_join(k->thread, NULL);
}

static void keeper_free(struct keeper *k)
{
	pthread_cond_destroy(&k->told);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

/* ---- the face ---- */

struct netdomains *netdomains_new(void)
{
	return calloc(1, sizeof(struct netdomains));
}

static void let_go(struct netdomains *n, size_t i)
{
	end(n->keeper[i]);
	keeper_free(n->keeper[i]);
	n->keeper[i] = NULL;
}

void netdomains_free(struct netdomains *n)
{
	for (size_t i = 0; n && i < NETDOMAINS_MAX; i++)
		if (n->keeper[i])
			let_go(n, i);
	free(n);
}

static struct keeper *keeper_of(const struct netdomains *n, uint32_t number)
{
	return number && number <= NETDOMAINS_MAX ? n->keeper[number - 1] : NULL;
}

static size_t free_place(const struct netdomains *n)
{
	size_t i = 0;
	while (i < NETDOMAINS_MAX && n->keeper[i])
		i++;
	return i;
}

/* `below` is somebody's, who is just entering the next. */
static void clear(struct netdomains *n, netdomains_used_fn *used, void *arg)
{
	for (size_t i = 0; i < NETDOMAINS_MAX; i++)
		if (n->keeper[i] && !used(arg, (uint32_t)i + 1))
			let_go(n, i);
}

static int keeper_new(struct netdomains *n, uint32_t below, int ruleset, struct keeper **ret)
{
	struct keeper *k = calloc(1, sizeof *k);
	if (!k)
		return -ENOMEM;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->told, NULL);
	k->ruleset = ruleset;
	int err = bear_in(n, below, k);
	bool born = !err;
	if (born)
		err = tell(k, ORDER_ENTER);
	if (born && err)
		end(k);
	if (err)
		keeper_free(k);
	else
		*ret = k;
	return err;
}

int netdomains_add(struct netdomains *n, uint32_t below, int ruleset, netdomains_used_fn *used,
		   void *arg, uint32_t *ret)
{
	int fd AUTOCLOSE = ruleset;
	if (below && !keeper_of(n, below))
		return -ENOENT;
	if (free_place(n) == NETDOMAINS_MAX)
		clear(n, used, arg);
	size_t i = free_place(n);
	if (i == NETDOMAINS_MAX)
		return -ENOSPC;
	int err = keeper_new(n, below, fd, &n->keeper[i]);
	if (!err)
		*ret = (uint32_t)i + 1;
	return err;
}

int netdomains_start(struct netdomains *n, uint32_t in, void *(*start)(void *), void *arg)
{
	struct keeper *k = n ? keeper_of(n, in) : NULL;
	if (!k)
		return -ENOENT;
	k->start = start;
	k->arg = arg;
	return tell(k, ORDER_START);
}
