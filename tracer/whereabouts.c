#include "tracer/whereabouts.h"

#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define MOMENT_NS (200 * 1000ull)
#define STAT_MAX  1024
/* Fields of /proc/PID/stat, counted from 1. */
#define STAT_AT_STATE 3 /* the first behind the name, which may hold anything */
#define STAT_NICE     19
#define STAT_CPU      39
#define STAT_POLICY   41
#define STAT_FIELDS   42

static const struct whereabouts_of *find(const struct whereabouts *w, pid_t tid)
{
	for (size_t i = 0; i < WHEREABOUTS_MAX; i++)
		if (w->of[i].tid == tid)
			return &w->of[i];
	return NULL;
}

static void clear(struct whereabouts_of *o)
{
	if (o->is_open)
		close(o->stat);
	*o = (struct whereabouts_of){0};
}

/* The one that has been here longest makes room. */
static struct whereabouts_of *take(struct whereabouts *w, pid_t tid)
{
	struct whereabouts_of *o = (struct whereabouts_of *)find(w, tid);

	if (o)
		return o;
	o = &w->of[w->next++ % WHEREABOUTS_MAX];
	clear(o);
	o->tid = tid;
	return o;
}

static int open_stat(struct whereabouts_of *o)
{
	char path[64];

	if (o->is_open)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)o->tid, (int)o->tid);
	o->stat = open(path, O_RDONLY | O_CLOEXEC);
	o->is_open = o->stat >= 0;
	return o->is_open ? 0 : -errno;
}

static int parse(const char *stat, struct whereabouts_rank *ret)
{
	long field[STAT_FIELDS] = {0};
	const char *at = strrchr(stat, ')');

	for (int i = STAT_AT_STATE; at && i < STAT_FIELDS; i++) {
		at = strchr(at + 1, ' ');
		if (at)
			field[i] = strtol(at, NULL, 10);
	}
	*ret = (struct whereabouts_rank){
		.is_ordinary = field[STAT_POLICY] == SCHED_OTHER ||
			       field[STAT_POLICY] == SCHED_BATCH ||
			       field[STAT_POLICY] == SCHED_IDLE,
		.nice = (int)field[STAT_NICE],
	};
	return at ? (int)field[STAT_CPU] : WHEREABOUTS_NOWHERE;
}

int whereabouts_look(struct whereabouts *w, pid_t tid, struct whereabouts_rank *ret)
{
	struct whereabouts_of *o = take(w, tid);
	char text[STAT_MAX];

	/* The first look may find a former thread of that number. */
	for (int look = 0; look < 2 && open_stat(o) == 0; look++) {
		ssize_t len = pread(o->stat, text, sizeof(text) - 1, 0);
		if (len > 0) {
			text[len] = '\0';
			return parse(text, ret);
		}
		clear(o);
		o->tid = tid;
	}
	return WHEREABOUTS_NOWHERE;
}

int whereabouts_recent(const struct whereabouts *w, pid_t tid)
{
	const struct whereabouts_of *o = find(w, tid);

	return o && o->at && (uint64_t)clock_ns() - o->at < MOMENT_NS ? o->cpu
								      : WHEREABOUTS_NOWHERE;
}

bool whereabouts_knows(const struct whereabouts *w, pid_t tid)
{
	const struct whereabouts_of *o = find(w, tid);

	return o && o->is_open;
}

void whereabouts_woken(struct whereabouts *w, pid_t tid, int cpu)
{
	struct whereabouts_of *o = take(w, tid);

	o->cpu = cpu;
	o->at = (uint64_t)clock_ns();
}

void whereabouts_forget(struct whereabouts *w, pid_t tid)
{
	struct whereabouts_of *o = (struct whereabouts_of *)find(w, tid);

	if (o)
		clear(o);
}

void whereabouts_free(struct whereabouts *w)
{
	for (size_t i = 0; i < WHEREABOUTS_MAX; i++)
		clear(&w->of[i]);
}
