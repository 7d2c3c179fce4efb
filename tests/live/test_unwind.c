#include "tests/live/tracer_help.h"

#include "tracer/unwind.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/ptrace.h>

/* What is done at the refusal of our own file, and what came of it. */
struct look {
	unsigned times;
	int error;
	struct unwind_stack *stack; /* the last one */
	struct unwind *direct;	    /* not NULL: this one, and not the tracer's own */
};

static void look_once(struct run *run, const struct tracer_event *e, struct look *look)
{
	unwind_unref(look->stack);
	look->stack = NULL;
	look->error =
		look->direct
			? unwind_thread(look->direct, e->who.tid, UNWIND_FRAMES_MAX, &look->stack)
			: tracer_stack(run->tracer, e->who, UNWIND_FRAMES_MAX, &look->stack);
}

static void on_refused(struct run *run, const struct tracer_event *e)
{
	struct look *look = run->arg;
	if (e->kind != TRACER_REFUSED)
		return;
	call_resolve(e->call, (struct call_view){.tid = e->who.tid, .tgid = e->pid});
	const char *given = e->call->path[0].given;
	for (unsigned i = 0; given && strstr(given, "secret") && i < look->times; i++)
		look_once(run, e, look);
	tracer_deny(run->tracer, e->who);
}

/* unwind_nest MODE [SEED] secret, which is refused. */
static const char *nest(const char *mode, int seed, struct look *look, struct tracer_counts *ret)
{
	static char path[PATH_MAX];
	char number[16];
	struct run run = {.on_event = on_refused, .arg = look};
	int wall AUTOCLOSE = wall_new();
	snprintf(path, sizeof(path), "%s/unwind_nest", FIXTURES);
	snprintf(number, sizeof(number), "%d", seed);
	char *argv[] = {path, (char *)mode, seed < 0 ? "secret" : number,
			seed < 0 ? NULL : "secret", NULL};
	if (wall < 0 || write_file("secret", "words") < 0)
		return "set up";
	const char *wrong = run_command(&run, wall, argv);
	if (!wrong && (!run.ended || !WIFEXITED(run.status) || WEXITSTATUS(run.status) != 1))
		wrong = failf("%s %d: status %x", mode, seed, run.status);
	if (run.tracer)
		*ret = tracer_counts(run.tracer);
	run_end(&run);
	return wrong;
}

static const char *check_order(const struct unwind_stack *s)
{
	static const char *const order[] = {"c_inner", "b_middle", "a_outer", "main"};
	size_t at = 0;
	for (size_t i = 0; i < s->len && at < ARRAY_LEN(order); i++)
		at += s->frame[i].function && !strcmp(s->frame[i].function, order[at]);
	return at == ARRAY_LEN(order) ? NULL : failf("no %s after %zu frames", order[at], s->len);
}

static const char *order_case(void)
{
	struct look look = {.times = 1};
	struct tracer_counts counts;
	const char *wrong = nest("call", -1, &look, &counts);
	if (!wrong && (look.error || !look.stack))
		wrong = failf("error %d", look.error);
	if (!wrong)
		wrong = check_order(look.stack);
	if (!wrong && look.stack->end != UNWIND_COMPLETE)
		wrong = unwind_end_name(look.stack->end);
	unwind_unref(look.stack);
	return wrong || counts.unwound == 1 ? wrong : "not counted";
}

Test(unwind, the_order_of_calls, .timeout = 60)
{
	case_both(order_case);
}

static const char *nobody_looks_case(void)
{
	struct look look = {.times = 0};
	struct tracer_counts counts;
	const char *wrong = nest("call", -1, &look, &counts);
	return wrong || (counts.refused > 0 && counts.unwound == 0) ? wrong : "it was unwound";
}

Test(unwind, nothing_is_done_unless_somebody_looks, .timeout = 60)
{
	case_both(nobody_looks_case);
}

static const char *cache_case(void)
{
	struct look look = {.times = 1};
	struct tracer_counts counts;
	if (unwind_new(&look.direct))
		return "unwind_new";
	const char *wrong = nest("call", -1, &look, &counts);
	struct unwind_counts first = unwind_counts(look.direct);
	look.times = 3;
	if (!wrong)
		wrong = nest("call", -1, &look, &counts);
	if (!wrong)
		wrong = check_order(look.stack);
	struct unwind_counts then = unwind_counts(look.direct);
	if (!wrong && (first.tables < 2 || then.tables != first.tables || then.stacks != 4))
		wrong = failf("%ju tables, then %ju, %ju stacks", (uintmax_t)first.tables,
			      (uintmax_t)then.tables, (uintmax_t)then.stacks);
	unwind_unref(look.stack);
	unwind_free(look.direct);
	return wrong;
}

Test(unwind, names_are_remembered_from_run_to_run, .timeout = 60)
{
	case_both(cache_case);
}

/* Stacks and unwind tables of noise: whatever libunwind does with them, the run goes on. */
static const char *noise_case(void)
{
	struct look look = {.times = 1};
	struct tracer_counts counts;
	const char *wrong = NULL;
	for (int seed = 0; seed < 60 && !wrong; seed++) {
		wrong = nest(seed % 2 ? "noise" : "frames", seed, &look, &counts);
		if (!wrong && (look.error || !look.stack || !look.stack->len))
			wrong = failf("seed %d: %s", seed, strerror(-look.error));
	}
	unwind_unref(look.stack);
	return wrong;
}

Test(unwind, stacks_and_tables_of_noise, .timeout = 120)
{
	case_both(noise_case);
}

/* Waits, traced, with a memory that only a privileged tracer may read. */
static void be_undumpable(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0)
		raise(SIGSTOP);
	_exit(0);
}

static const char *undumpable_case(void)
{
	struct unwind_stack *s = NULL;
	struct unwind *u;
	int status;
	if (unwind_new(&u))
		return "new";
	pid_t pid = fork();
	if (pid == 0)
		be_undumpable();
	bool stopped = waitpid(pid, &status, 0) == pid && WIFSTOPPED(status);
	int r = stopped ? unwind_thread(u, pid, 8, &s) : -EINVAL;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	unwind_free(u);
	enum unwind_end end = s ? s->end : UNWIND_ENDS;
	uint64_t ip = s ? s->frame[0].ip : 0;
	unwind_unref(s);
	if (r || !ip || (end == UNWIND_UNREADABLE) != (getuid() != 0))
		return failf("%d, ends %d", r, (int)end);
	return NULL;
}

Test(unwind, a_memory_that_may_not_be_read, .timeout = 60)
{
	case_both(undumpable_case);
}

static const char *running_case(void)
{
	struct tracer *t;
	struct tracer_options options = {0};
	struct unwind_stack *s = NULL;
	struct unwind *u;
	if (tracer_new(&options, &t) || unwind_new(&u))
		return "new";
	int a = tracer_stack(t, (struct tracee_name){getpid(), 1}, 8, &s);
	int b = unwind_thread(u, getppid(), 8, &s);
	tracer_free(t);
	unwind_free(u);
	return a == -ESRCH && b == -ESRCH && !s ? NULL : failf("%d %d", a, b);
}

Test(unwind, a_thread_that_is_not_held, .timeout = 60)
{
	case_both(running_case);
}
