#include "tracer/tracee.h"

#include "tracer/mm.h"
#include "tracer/util.h"

#define A(act) TRACEE_ACT_##act

/*
 * What may not happen is BUG and nothing that a tracee can bring about: an odd order of stops
 * (a code change under a repeated call, a foreign filter's TRACE) is resumed.
 */
static const uint8_t acts[TRACEE_STATE_COUNT][STOP_KIND_COUNT] = {
	[TRACEE_NEW] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(SECCOMP),
			[STOP_SYSCALL] = A(RESUME),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN), /* born into a stopping process */
			[STOP_TRAP] = A(FIRST),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_RUN] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(SECCOMP),
			[STOP_SYSCALL] = A(RESUME),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_CALL] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(SECCOMP), /* restarted: the call begins anew */
			[STOP_SYSCALL] = A(EXIT),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_LOOK] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_EXECED] = A(EXECED),
		},
	/* A held thread does nothing but die, or become another by a sibling's exec. */
	[TRACEE_HELD] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_EXECED] = A(EXECED),
		},
	/* Every signal but SIGSTOP is blocked from here on; in EXEC until the call has begun. */
	[TRACEE_ENTER] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(SECCOMP),
			[STOP_SYSCALL] = A(ENTERED),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_DOOR] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(SECCOMP),
			[STOP_SYSCALL] = A(GRANTED),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_EXEC] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(EXECFD_SECCOMP),
			[STOP_SYSCALL] = A(EXECFD_SYSCALL),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_CLOSE] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(EXECFD_SECCOMP),
			[STOP_SYSCALL] = A(EXECFD_SYSCALL),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	[TRACEE_WATCH] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(WATCH_SECCOMP),
			[STOP_SYSCALL] = A(WATCH_SYSCALL),
			[STOP_CLONED] = A(CLONED),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LISTEN),
			[STOP_TRAP] = A(RESUME),
			[STOP_SIGNAL] = A(RESUME),
			[STOP_OTHER] = A(RESUME),
			[STOP_NONE] = A(RESUME),
		},
	/* No signal but SIGKILL ends the wait once we know of it (5.19); before that, each does. */
	[TRACEE_WAITS] =
		{
			[STOP_EXITED] = A(ENDED),
			[STOP_KILLED] = A(ENDED),
			[STOP_SECCOMP] = A(LEFT),
			[STOP_SYSCALL] = A(LEFT),
			[STOP_CLONED] = A(LEFT),
			[STOP_EXECED] = A(EXECED),
			[STOP_GROUP] = A(LEFT),
			[STOP_TRAP] = A(LEFT),
			[STOP_SIGNAL] = A(LEFT),
			[STOP_OTHER] = A(LEFT),
			[STOP_NONE] = A(LEFT),
		},
};

enum tracee_act tracee_step(const struct tracee *t, enum stop_kind kind)
{
	return (enum tracee_act)acts[t->state][kind];
}

/* The ways from state to state; anything else is a bug of ours. */
static const uint16_t ways[TRACEE_STATE_COUNT] = {
	[TRACEE_NEW] = 1 << TRACEE_RUN | 1 << TRACEE_CALL | 1 << TRACEE_WAITS | 1 << TRACEE_WATCH,
	[TRACEE_RUN] = 1 << TRACEE_RUN | 1 << TRACEE_CALL | 1 << TRACEE_WAITS | 1 << TRACEE_WATCH,
	[TRACEE_LOOK] = 1 << TRACEE_CALL,
	[TRACEE_CALL] = 1 << TRACEE_RUN | 1 << TRACEE_CALL | 1 << TRACEE_HELD | 1 << TRACEE_LOOK |
			1 << TRACEE_WAITS,
	[TRACEE_HELD] = 1 << TRACEE_RUN | 1 << TRACEE_ENTER | 1 << TRACEE_CALL | 1 << TRACEE_DOOR,
	[TRACEE_ENTER] = 1 << TRACEE_RUN | 1 << TRACEE_DOOR,
	[TRACEE_DOOR] = 1 << TRACEE_RUN | 1 << TRACEE_ENTER | 1 << TRACEE_EXEC | 1 << TRACEE_WATCH,
	[TRACEE_EXEC] = 1 << TRACEE_RUN | 1 << TRACEE_CLOSE,
	[TRACEE_CLOSE] = 1 << TRACEE_RUN,
	[TRACEE_WAITS] = 1 << TRACEE_RUN | 1 << TRACEE_CALL,
	[TRACEE_WATCH] = 1 << TRACEE_RUN | 1 << TRACEE_ENTER,
};

void tracee_to(struct tracee *t, enum tracee_state state)
{
	BUG(!(ways[t->state] & 1u << state));
	t->state = state;
}

bool tracee_needs_syscall(const struct tracee *t)
{
	return t->state != TRACEE_NEW && t->state != TRACEE_RUN && t->state != TRACEE_HELD &&
	       t->state != TRACEE_WAITS;
}

/* ---- the table ---- */

static struct tracee **bucket_of(const struct tracee_table *table, pid_t tid)
{
	return (struct tracee **)&table->bucket[(unsigned)tid % TRACEE_BUCKETS];
}

struct tracee *tracee_find(const struct tracee_table *table, pid_t tid)
{
	struct tracee *t = *bucket_of(table, tid);

	while (t && t->tid != tid)
		t = t->next;
	return t;
}

static void link_in(struct tracee_table *table, struct tracee *t)
{
	struct tracee **head = bucket_of(table, t->tid);

	t->next = *head;
	*head = t;
	table->len++;
}

static void unlink_from(struct tracee_table *table, struct tracee *t)
{
	struct tracee **p = bucket_of(table, t->tid);

	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	table->len--;
}

struct tracee *tracee_add(struct tracee_table *table, pid_t tid, pid_t tgid)
{
	struct tracee *old = tracee_find(table, tid);
	struct tracee *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (old)
		tracee_drop(table, old);
	*t = (struct tracee){.tid = tid,
			     .tgid = tgid,
			     .gen = ++table->last_gen,
			     .turn = 1,
			     .near = table->near,
			     .state = TRACEE_NEW,
			     .restore_arg = -1,
			     .grant_fd = -1};
	link_in(table, t);
	return t;
}

void tracee_owe_nothing(struct tracee *t)
{
	t->owed = 0;
	t->reported = false;
}

void tracee_drop(struct tracee_table *table, struct tracee *t)
{
	unlink_from(table, t);
	call_release(&t->call);
	if (t->grant_fd >= 0)
		close(t->grant_fd);
	tracee_owe_nothing(t);
	free(t->execfd);
	free(t->watch);
	mm_unref(t->mm);
	free(t);
}

void tracee_rename(struct tracee_table *table, struct tracee *t, pid_t tid)
{
	BUG(tracee_find(table, tid));
	unlink_from(table, t);
	t->tid = tid;
	link_in(table, t);
}

void tracee_each(struct tracee_table *table, void (*f)(struct tracee *t, void *arg), void *arg)
{
	for (unsigned i = 0; i < TRACEE_BUCKETS; i++) {
		struct tracee *next;
		for (struct tracee *t = table->bucket[i]; t; t = next) {
			next = t->next;
			f(t, arg);
		}
	}
}

static void drop_one(struct tracee *t, void *arg)
{
	tracee_drop(arg, t);
}

void tracee_free_all(struct tracee_table *table)
{
	tracee_each(table, drop_one, table);
}
