#include "tracer/tracer.h"

#include "tracer/act.h"
#include "tracer/execfd.h"
#include "tracer/grant.h"
#include "tracer/guardcalls.h"
#include "tracer/messages.h"
#include "tracer/near.h"
#include "tracer/owed.h"
#include "tracer/regs.h"
#include "tracer/spawn.h"
#include "tracer/util.h"
#include "tracer/waits.h"

#include <errno.h>
#include <sys/random.h>

#define STOPS_AT_ONCE	 256 /* handled by one tracer_next() before the caller has its turn */
#define DOORS_PASSED_MAX 8   /* times in a row that the door is not looked at after a status */

/* Somebody is at the door: to be handed a descriptor, or with a call that never runs by itself. */
static void take_guest(struct tracer *tr, const struct door_guest *guest)
{
	near_meet_guest(tr->table.near, guest->tid);
	if (!waits_begin(tr, guest))
		grant_guest(tr, guest);
}

/* The guest whom the caller's wait found. 1, or 0: there is none. */
static int advance_at_once(struct tracer *tr)
{
	struct door_guest guest;
	int r = door_take(tr->door, tr->ready, &guest);

	tr->ready = -1;
	if (r > 0) {
		take_guest(tr, &guest);
		tr->had_guest = true;
	}
	return r;
}

/*
 * After a status: whoever is at the door is told of by the caller's wait. But statuses that never
 * end must not keep guests waiting for ever.
 */
static bool is_left_to_wait(struct tracer *tr)
{
	bool leaves = tr->had_status && ++tr->doors_passed < DOORS_PASSED_MAX;

	tr->had_status = false;
	if (!leaves)
		tr->doors_passed = 0;
	return leaves;
}

/* One status, else one guest. 1 something was done, 0 nothing is there. */
static int advance(struct tracer *tr)
{
	struct reap_status status;
	struct door_guest guest;
	if (tr->ready >= 0)
		return advance_at_once(tr);
	int r = reap_next(&tr->queue, &tr->table, &status);

	if (r < 0)
		return r;
	if (r > 0) {
		tr->had_status = true;
		r = act_on_status(tr, &status);
		return r < 0 ? r : 1;
	}
	if (is_left_to_wait(tr))
		return 0;
	r = door_next(tr->door, &guest);
	if (r > 0) {
		take_guest(tr, &guest);
		tr->had_guest = true;
	}
	return r;
}

/*
 * Before the guest no status was there, and a later one raises SIGCHLD anew; a further guest shows
 * at the door. So to look again at once, when a guest has only just got its answer, is in vain.
 */
static bool was_guests_turn(struct tracer *tr)
{
	bool had = tr->had_guest;

	tr->had_guest = false;
	return had;
}

/* Nobody is left: take the listeners' hang-ups, else tracer_fd() would stay readable. */
static void close_door(struct tracer *tr)
{
	struct door_guest guest;

	while (door_next(tr->door, &guest) > 0)
		take_guest(tr, &guest);
}

int tracer_next(struct tracer *tr, struct tracer_event *ret)
{
	if (tr->out_len == 0)
		call_release(&tr->noticed); /* else it is of an event that is still to be told */
	for (unsigned n = 0; tr->out_len == 0; n++) {
		if (tr->table.len == 0 && !reap_strays()) {
			close_door(tr);
			return -ECHILD;
		}
		if (was_guests_turn(tr))
			return 0;
		if (n == STOPS_AT_ONCE) {
			door_ring(tr->door);
			return 0;
		}
		int r = advance(tr);
		if (r < 0 && tr->out_len == 0)
			return r;
		if (r == 0)
			return 0;
	}
	*ret = tr->out[tr->out_head];
	tr->out_head = (tr->out_head + 1) % ACT_EVENTS_MAX;
	tr->out_len--;
	return 1;
}

/* ---- the face ---- */

static int new_mark(uint32_t *ret)
{
	uint32_t mark = 0;

	/* 0 and all ones are what a program's upper halves hold by themselves. */
	while (mark == 0 || mark == UINT32_MAX)
		if (getrandom(&mark, sizeof(mark), 0) != sizeof(mark))
			return -errno;
	*ret = mark;
	return 0;
}

static int new_marks(struct tracer *tr)
{
	struct stub_marks marks = {0};
	int r = new_mark(&tr->filter.grant);

	if (r == 0)
		r = new_mark(&tr->filter.enter);

	tr->filter.see_changes = tr->options.see_changes;
	tr->filter.native = tr->options.native;
	tr->filter.identities = tr->options.see_identities;
	if (r < 0 || !tr->options.fast || !fastpath_exists())
		return r;
	do {
		r = new_mark(&marks.pass);
		if (r == 0)
			r = new_mark(&marks.look);
		if (r == 0)
			r = new_mark(&marks.report);
	} while (r == 0 && (marks.pass == marks.report || marks.pass == marks.look ||
			    marks.look == marks.report));
	if (r == 0)
		r = fastpath_new(&marks, tr->options.see_changes ? STUB_WAY_LOOK : STUB_WAY_PASS,
				 tr->options.state_dir, &tr->fast);
	tr->filter.pass = marks.pass;
	tr->filter.look = marks.look;
	tr->filter.report = marks.report;
	return r;
}

bool tracer_has_fast(void)
{
	return fastpath_exists();
}

size_t tracer_lacks(const char *ret[TRACER_LACKS_MAX])
{
	size_t n = door_lacks(ret);

	if (!messages_can_be_sealed())
		ret[n++] = "a program with several threads may get at the filter that watches its "
			   "messages while it is put on (not from Linux 6.10 on)";
	return n;
}

int tracer_new(const struct tracer_options *options, struct tracer **ret)
{
	struct tracer *tr = calloc(1, sizeof(*tr));

	if (!tr)
		return -ENOMEM;
	tr->options = *options;
	tr->ready = -1;
	int r = new_marks(tr);
	if (r == 0)
		r = door_new(&tr->door);
	if (r < 0) {
		fastpath_free(tr->fast);
		free(tr);
		return r;
	}
	tr->table.near = near_new();
	*ret = tr;
	return 0;
}

/* Whoever reaped a tracee behind our back, it must not be waited for. */
static void drop_vanished(struct tracee *t, void *arg)
{
	struct tracer *tr = arg;

	if (!reap_exists(t->tid))
		tracee_drop(&tr->table, t);
}

static void end_all(struct tracer *tr)
{
	while (tr->table.len > 0 || reap_strays()) {
		tracer_kill_all(tr);
		int r = advance(tr);
		tr->out_len = 0;
		if (r > 0)
			continue;
		tracee_each(&tr->table, drop_vanished, tr);
		usleep(200);
	}
}

static void abandon(struct tracer *tr)
{
	if (tr->begun)
		spawn_abandon(tr->begun);
	free(tr->begun);
	tr->begun = NULL;
}

void tracer_free(struct tracer *tr)
{
	if (!tr)
		return;
	abandon(tr);
	end_all(tr);
	for (size_t i = 0; i < tr->newborns_len; i++)
		close(tr->newborns[i].report);
	free(tr->newborns);
	call_release(&tr->noticed);
	tracee_free_all(&tr->table);
	reap_free(&tr->queue);
	unwind_free(tr->unwind);
	for (unsigned i = 0; i < SYS_ARCH_COUNT; i++)
		if (tr->message_file[i] > 0)
			close(tr->message_file[i]);
	door_free(tr->door);
	fastpath_free(tr->fast);
	near_free(tr->table.near);
	free(tr);
}

static struct filter_options filter_for(const struct tracer *tr, const struct tracer_spawn *s)
{
	struct filter_options filter = tr->filter;

	filter.readable = geteuid() != 0;
	filter.terminals = s->see_terminals;
	filter.messages = spawn_hands_datagram(s);
	return filter;
}

void tracer_begin(struct tracer *tr, const struct tracer_spawn *s)
{
	struct filter_options filter = filter_for(tr, s);
	enum tracer_stage stage;

	abandon(tr);
	tr->begun = malloc(sizeof(*tr->begun));
	near_roam(tr->table.near);
	if (tr->begun && spawn_begin(s, &filter, tr->begun, &stage) < 0) {
		free(tr->begun);
		tr->begun = NULL;
	}
}

/* What can have been unknown, or thought otherwise, when it was begun. */
static bool is_same(const struct filter_options *a, const struct filter_options *b)
{
	return a->terminals == b->terminals && a->messages == b->messages &&
	       a->see_changes == b->see_changes;
}

/* The one that was begun, if it is as it has to be. */
static int start(struct tracer *tr, const struct tracer_spawn *s, struct spawn_result *ret,
		 enum tracer_stage *ret_stage)
{
	struct filter_options filter = filter_for(tr, s);
	struct spawn begun;
	int r = 0;

	near_roam(tr->table.near);
	if (tr->begun && !is_same(&tr->begun->filter, &filter))
		abandon(tr);
	if (tr->begun)
		begun = *tr->begun;
	else
		r = spawn_begin(s, &filter, &begun, ret_stage);
	free(tr->begun);
	tr->begun = NULL;
	return r < 0 ? r : spawn_finish(&begun, ret, ret_stage);
}

int tracer_spawn(struct tracer *tr, const struct tracer_spawn *s, pid_t *ret_pid,
		 enum tracer_stage *ret_stage)
{
	struct spawn_result child;
	size_t n = tr->newborns_len;
	struct act_newborn *more = reallocarray(tr->newborns, n + 1, sizeof(*more));

	*ret_stage = TRACER_STAGE_SETUP;
	if (!more)
		return -ENOMEM;
	tr->newborns = more;
	int r = start(tr, s, &child, ret_stage);
	if (r < 0)
		return r;
	r = door_add(tr->door, child.listener);
	struct tracee *t = r == 0 ? tracee_add(&tr->table, child.pid, child.pid) : NULL;
	if (!t) {
		spawn_end(child.pid);
		close(child.report);
		return r < 0 ? r : -ENOMEM;
	}
	t->spawned = true;
	tracee_to(t, TRACEE_RUN);
	tr->newborns[tr->newborns_len++] = (struct act_newborn){child.pid, child.report};
	if (s->ctty >= 0)
		tr->terminal_session = child.pid;
	*ret_pid = child.pid;
	return 0;
}

void tracer_changes_known(struct tracer *tr)
{
	tr->options.see_changes = tr->filter.see_changes = false;
	if (tr->fast)
		fastpath_all_pass(tr->fast);
}

void tracer_roam(struct tracer *tr)
{
	near_roam(tr->table.near);
}

bool tracer_rest(struct tracer *tr)
{
	return near_rest(tr->table.near);
}

/* A status that came since the last look raised SIGCHLD, which the caller's wait would tell. */
void tracer_ready(struct tracer *tr, int fd)
{
	if (reap_is_drained(&tr->queue) && door_is_listener(tr->door, fd))
		tr->ready = fd;
}

void tracer_knocked(struct tracer *tr)
{
	tr->doors_passed = DOORS_PASSED_MAX;
}

int tracer_fd(const struct tracer *tr)
{
	return door_fd(tr->door);
}

size_t tracer_fds(const struct tracer *tr, int ret[TRACER_FDS])
{
	return door_fds(tr->door, ret);
}

static struct tracee *held(const struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = tracee_find(&tr->table, who.tid);
	bool answerable = t && (t->state == TRACEE_HELD || t->state == TRACEE_WAITS);

	return answerable && t->gen == who.gen ? t : NULL;
}

int tracer_go_on(struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = tracee_find(&tr->table, who.tid);

	if (!t || t->gen != who.gen || t->state != TRACEE_LOOK)
		return -ESRCH;
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return 0;
}

bool tracer_is_held(const struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = tracee_find(&tr->table, who.tid);

	if (!t || t->gen != who.gen)
		return false;
	if (t->state == TRACEE_WAITS)
		return door_waits(&t->guest);
	return t->state == TRACEE_HELD || t->state == TRACEE_LOOK;
}

int tracer_deny(struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	if (t->state == TRACEE_WAITS) {
		waits_answer(t, -EACCES);
		return 0;
	}
	tracee_owe_nothing(t);
	t->looked = false;
	call_release(&t->call);
	act_run(t);
	return 0;
}

int tracer_set_result(struct tracer *tr, struct tracee_name who, int64_t result)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	if (t->state == TRACEE_WAITS) {
		waits_answer(t, result);
		return 0;
	}
	t->looked = false;
	if (t->reported)
		return owed_result(t, result);
	int r = regs_set_result(t->tid, result);
	call_release(&t->call);
	act_run(t);
	return r;
}

int tracer_confined(struct tracer *tr, struct tracee_name who, uint32_t number)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	guardcalls_confined(tr, t, number);
	return tracer_deny(tr, who);
}

struct sought_net {
	uint32_t number;
	bool found;
};

static void look_for_net(struct tracee *t, void *arg)
{
	struct sought_net *s = arg;

	s->found |= t->own_net == s->number;
}

bool tracer_has_net(const struct tracer *tr, uint32_t number)
{
	struct sought_net s = {.number = number};

	tracee_each((struct tracee_table *)&tr->table, look_for_net, &s);
	return s.found;
}

int tracer_again(struct tracer *tr, struct tracee_name who)
{
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	if (t->state == TRACEE_WAITS)
		return -EINVAL;
	if (t->reported)
		return owed_again(t);
	int r = regs_repeat(t->tid, &t->entered, -1, 0);
	call_release(&t->call);
	act_run(t);
	return r;
}

int tracer_hand_over(struct tracer *tr, struct tracee_name who, int fd, bool cloexec)
{
	int given AUTOCLOSE = fd;
	struct tracee *t = held(tr, who);

	if (!t)
		return -ESRCH;
	return grant_begin(tr, t, TAKE_FD(given), cloexec);
}

int tracer_exec_fd(struct tracer *tr, struct tracee_name who, int fd)
{
	int given AUTOCLOSE = fd;
	struct tracee *t = held(tr, who);

	return t ? execfd_begin(tr, t, TAKE_FD(given)) : -ESRCH;
}

static int prepare_stacks(struct tracer *tr)
{
	return tr->unwind ? 0 : unwind_new(&tr->unwind);
}

void tracer_warm(struct tracer *tr)
{
	if (tr->fast)
		fastpath_prepare();
}

int tracer_prepare(struct tracer *tr)
{
	tracer_warm(tr);
	return prepare_stacks(tr);
}

int tracer_stack(struct tracer *tr, struct tracee_name who, size_t max, struct unwind_stack **ret)
{
	struct tracee *t = tracee_find(&tr->table, who.tid);

	if (!t || t->gen != who.gen || (t->state != TRACEE_HELD && t->state != TRACEE_LOOK))
		return -ESRCH;
	near_roam(tr->table.near);
	int r = prepare_stacks(tr);
	return r < 0 ? r : unwind_thread(tr->unwind, t->tid, max, ret);
}

/* ---- all of them ---- */

struct list {
	pid_t *pids;
	size_t cap, len;
};

static void list_one(struct tracee *t, void *arg)
{
	struct list *list = arg;

	if (t->tid != t->tgid)
		return;
	if (list->len < list->cap)
		list->pids[list->len] = t->tid;
	list->len++;
}

size_t tracer_processes(const struct tracer *tr, pid_t *pids, size_t cap)
{
	struct list list = {.pids = pids, .cap = cap};

	tracee_each((struct tracee_table *)&tr->table, list_one, &list);
	return list.len;
}

static void kill_one(struct tracee *t, void *arg)
{
	(void)arg;
	/* Not reaped yet, so the number is still its own. */
	if (t->tid == t->tgid)
		kill(t->tid, SIGKILL);
}

void tracer_kill_all(struct tracer *tr)
{
	tracee_each(&tr->table, kill_one, NULL);
}

struct tracer_counts tracer_counts(const struct tracer *tr)
{
	struct tracer_counts counts = tr->counts;

	counts.unwound = unwind_counts(tr->unwind).stacks;
	counts.patched = fastpath_patched(tr->fast);
	counts.unwritable = fastpath_unwritable(tr->fast);
	return counts;
}
