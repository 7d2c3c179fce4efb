#include "tracer/guardcalls.h"

#include "tracer/mem.h"
#include "tracer/messages.h"
#include "tracer/near.h"
#include "tracer/regs.h"
#include "tracer/util.h"

#include <errno.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

/* linux/landlock.h, ABI 8: the whole process enters the domain. */
#define RESTRICT_TSYNC 8
/* ABI 4 and 6 */
#define ACCESS_NET_CONNECT_TCP	   (1u << 1)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1u << 0)

/* To its end: whether the kernel refused it is told from there. */
static int see_end(struct tracee *t)
{
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return 0;
}

static int guard_clone(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	uint64_t flags = t->at.args[0];

	if (!(flags & CLONE_UNTRACED) && (flags & FILTER_NAMESPACES))
		return see_end(t);
	if (!(flags & CLONE_UNTRACED)) {
		act_run(t);
		return 0;
	}
	/* The filter reads the registers again: without the bit the call passes it. */
	if (regs_set_arg(t->tid, t->at.arch, 0, flags & ~(uint64_t)CLONE_UNTRACED) < 0)
		return 0;
	t->restore_arg = 0;
	int r = act_notice(tr, t, ent, 0);
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return r;
}

/* Its flags are in memory, where they can't be changed for the kernel alone: C libraries fall back.
 */
static int guard_clone3(struct tracee *t)
{
	uint64_t flags = 0;
	int r = mem_read(t->tid, t->at.args[0], &flags, sizeof(flags));

	if (r == -ESRCH)
		return 0;
	if ((flags & CLONE_UNTRACED) && regs_skip(t->tid, -ENOSYS) < 0)
		return 0;
	act_run(t);
	return 0;
}

/* Such a socket is made, or such a table shared, once its messages are watched. */
static int guard_message(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	int r = messages_never(t) ? -EACCES : messages_watch(tr, t);

	if (r == 0)
		return 0;
	if (regs_skip(t->tid, r == -ENOMEM ? r : -EACCES) < 0)
		return 0;
	r = act_notice(tr, t, ent, -EACCES);
	act_run(t);
	return r;
}

/*
 * The part of a socketcall becomes the call itself, its arguments out of memory and into registers:
 * read once, by us, so that nobody can change them under the kernel's eyes. The filter judges it
 * anew, as if the program had made it so: one that waits at the door does it from here, in CALL.
 */
static int guard_socketcall(struct tracer *tr, struct tracee *t)
{
	const struct sysent_part *part = sysent_parts, *end = sysent_parts + SYSENT_PARTS;
	uint32_t words[6];

	while (part < end && part->number != (uint32_t)t->at.args[0])
		part++;
	int r = part == end ? -ENOSYS /* a filter of the program's own wants us to see it */
			    : mem_read(t->tid, (uint32_t)t->at.args[1], words,
				       part->args * sizeof(*words));
	if (r < 0) {
		if (regs_skip(t->tid, r == -ENOSYS ? r : -EFAULT) == 0)
			act_run(t);
		return 0;
	}
	t->at.nr = sysents[part->id].nr[SYS_ARCH_I386];
	for (unsigned i = 0; i < part->args; i++)
		t->at.args[i] = words[i];
	if (messages_due(tr, t, &sysents[part->id], t->at.args))
		return guard_message(tr, t, &sysents[part->id]);
	if (regs_set_call(t->tid, &t->at) < 0)
		return 0;
	if (filter_is_message(&sysents[part->id]) && !tr->options.native) {
		messages_to_door(tr, t);
		return 0;
	}
	if (tr->options.native || tr->options.record)
		return act_enter(tr, t, &sysents[part->id]);
	tracee_to(t, TRACEE_CALL);
	act_resume(t, 0);
	return 0;
}

/* Programs ask seccomp(2) more often than they use it. */
static bool installs_filter(const struct tracee *t)
{
	uint32_t operation = (uint32_t)t->at.args[0];

	return operation == SECCOMP_SET_MODE_STRICT || operation == SECCOMP_SET_MODE_FILTER;
}

struct about {
	pid_t tgid;
	unsigned what;
};

static void add_about(struct tracee *t, void *arg)
{
	const struct about *a = arg;
	t->own_rulesets |= t->tgid == a->tgid ? a->what : 0;
}

/*
 * Who changes it under our eyes deceives itself alone. Threads share descriptors: whichever of the
 * process enters the domain.
 */
static int guard_create_ruleset(struct tracer *tr, struct tracee *t)
{
	struct {
		uint64_t fs, net, scoped; /* struct landlock_ruleset_attr of ABI 6 */
	} attr = {0};
	struct about a = {.tgid = t->tgid};
	uint64_t size = t->at.args[1];

	if (!t->at.args[2] && mem_read(t->tid, t->at.args[0], &attr,
				       size < sizeof(attr) ? size : sizeof(attr)) == 0) {
		tr->tcp_rulesets |= attr.net & ACCESS_NET_CONNECT_TCP;
		a.what |= attr.scoped & SCOPE_ABSTRACT_UNIX_SOCKET ? TRACER_OWN_ABSTRACT : 0;
		tracee_each(&tr->table, add_about, &a);
	}
	act_run(t);
	return 0;
}

int guardcalls_enter(struct tracer *tr, struct tracee *t, const struct sysent *ent)
{
	enum sys_id id = sysent_id(ent);
	int64_t result = 0;

	if (filter_changes_identity(ent)) {
		t->turn++;
		near_part(t->near); /* whose it is then, we may have no say in its processors */
		if (id == SYS_ID_unshare || id == SYS_ID_setns)
			return see_end(t);
		act_run(t);
		return 0;
	}
	if (messages_due(tr, t, ent, t->at.args))
		return guard_message(tr, t, ent);
	if (id == SYS_ID_socket || id == SYS_ID_socketpair) {
		act_run(t);
		return 0;
	}
	if (id == SYS_ID_sched_setaffinity || id == SYS_ID_sched_getaffinity) {
		near_asked(t->near, t->tid, (pid_t)t->at.args[0]);
		act_run(t);
		return 0;
	}
	if (id == SYS_ID_clone)
		return guard_clone(tr, t, ent);
	if (id == SYS_ID_clone3)
		return guard_clone3(t);
	if (id == SYS_ID_socketcall)
		return guard_socketcall(tr, t);
	if (id == SYS_ID_prctl || (id == SYS_ID_seccomp && installs_filter(t))) {
		fastpath_close(tr->fast, t);
		messages_filtered(tr, t);
	}
	if (id == SYS_ID_landlock_create_ruleset)
		return guard_create_ruleset(tr, t);
	if (id == SYS_ID_landlock_restrict_self)
		return see_end(t);
	if (id == SYS_ID_io_uring_setup && !tr->options.native)
		result = -ENOSYS;
	/* With the supervisor's limits its report and audit end; Landlock has no say in it. */
	if (id == SYS_ID_prlimit64 && !tr->options.native &&
	    !tracee_find(&tr->table, (pid_t)t->at.args[0]))
		result = -EPERM;
	if (result && regs_skip(t->tid, result) < 0)
		return 0;
	int r = act_notice(tr, t, ent, result);
	act_run(t);
	return r;
}

bool guardcalls_refused(const struct tracee *t, const struct sysent *ent, int64_t result)
{
	enum sys_id id = sysent_id(ent);

	if (result != -EPERM)
		return false;
	return id == SYS_ID_setns ||
	       ((id == SYS_ID_clone || id == SYS_ID_unshare) &&
		(t->at.args[0] & FILTER_NAMESPACES) && !(t->at.args[0] & CLONE_NEWUSER));
}

struct confined {
	pid_t tgid;
	uint32_t number;
};

static void set_own_domain(struct tracee *t, void *arg)
{
	const struct confined *c = arg;
	if (t->tgid != c->tgid)
		return;
	t->own_domain = true;
	t->own_net = c->number;
	t->net_guessed = false;
}

void guardcalls_confined(struct tracer *tr, struct tracee *t, uint32_t number)
{
	struct confined c = {.tgid = t->tgid, .number = number};
	t->own_domain = true;
	t->own_net = number;
	t->net_guessed = false;
	if (t->at.args[1] & RESTRICT_TSYNC)
		tracee_each(&tr->table, set_own_domain, &c);
}

/*
 * Without a ruleset nothing is restricted but what the kernel logs. A ruleset may come from another
 * process. Threads that are confined with this one have no number until it is known.
 */
bool guardcalls_restricted(struct tracer *tr, struct tracee *t)
{
	uint32_t before = t->own_net;
	if ((int)t->at.args[0] < 0)
		return false;
	bool tcp = tr->tcp_rulesets && !tr->options.native;
	guardcalls_confined(tr, t, tcp ? TRACER_NET_UNKNOWN : before);
	t->own_net = before;
	return tcp;
}
