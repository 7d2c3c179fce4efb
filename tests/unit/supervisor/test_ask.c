#include "supervisor/ask.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct stage {
	struct loop *loop;
	struct ask *ask;
	char log[512]; /* what happened, in order */
	bool answers_at_once;
	unsigned looked; /* for a stack */
	uint64_t cover;	 /* cancelled from inside the answer's callback */
};

static void note(struct stage *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct stage *s, const char *fmt, ...)
{
	size_t n = strlen(s->log);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->log + n, sizeof(s->log) - n, fmt, ap);
	va_end(ap);
}

static void on_answered(void *arg, const struct question *q, const struct answer *a)
{
	struct stage *s = arg;
	note(s, "%s%ju:%s:%s ", a->allow ? "+" : "-", (uintmax_t)q->id, lifetime_name(a->lifetime),
	     answered_by_name(a->by));
	ask_cancel(s->ask, s->cover, "covered");
}

static void on_asked(void *self, const struct question *q)
{
	struct stage *s = self;
	note(s, "?%ju ", (uintmax_t)q->id);
	const struct answer yes = {.allow = true, .by = BY_YES};
	if (s->answers_at_once)
		ask_answer(s->ask, q->id, &yes);
}

static void on_cancelled(void *self, const struct question *q, const char *reason)
{
	note(self, "x%ju:%s ", (uintmax_t)q->id, reason);
}

static void on_settled(void *self, const struct question *q, const struct answer *a)
{
	(void)a;
	note(self, "=%ju ", (uintmax_t)q->id);
}

static void setup(struct stage *s, int64_t timeout_ms, bool answers)
{
	const struct ask_front front = {s, answers, on_asked, on_cancelled, on_settled};
	cr_assert_eq(loop_new(&s->loop), 0);
	cr_assert_eq(ask_new(s->loop, timeout_ms, on_answered, s, &s->ask), 0);
	cr_assert_eq(ask_add_front(s->ask, &front), 0);
}

static void teardown(struct stage *s)
{
	ask_free(s->ask);
	loop_free(s->loop);
}

static struct question *question(const char *path)
{
	struct question *q = calloc(1, sizeof(*q));
	q->call = "openat";
	q->path = strdup(path);
	q->access = ACCESS_READ;
	q->scopes.len = 2;
	for (size_t i = 0; i < 2; i++)
		q->scopes.item[i] = (struct scope){.path = strdup(path), .access = ACCESS_READ};
	return q;
}

static uint64_t push(struct stage *s, const char *path)
{
	uint64_t id = 0;
	cr_assert_eq(ask_push(s->ask, question(path), &id), 0);
	return id;
}

static int look(void *arg, const struct question *q, struct unwind_stack **ret)
{
	struct stage *s = arg;
	s->looked++;
	if (q->id == 2)
		return -ESRCH;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->refs = 1;
	return 0;
}

Test(ask, a_stack_is_looked_up_when_it_is_wanted_and_once)
{
	struct stage s = {0};
	setup(&s, 0, true);
	push(&s, "/a");
	push(&s, "/b");
	cr_assert_null(ask_stack(s.ask, 1), "nobody knows how");
	ask_set_stack(s.ask, look);
	push(&s, "/c");
	cr_assert_eq(s.looked, 0);
	const struct unwind_stack *stack = ask_stack(s.ask, 3);
	cr_assert(stack && ask_stack(s.ask, 3) == stack);
	cr_assert_eq(s.looked, 1);
	cr_assert(!ask_stack(s.ask, 2) && !ask_stack(s.ask, 2));
	cr_assert_eq(s.looked, 2);
	cr_assert_null(ask_stack(s.ask, 9));
	teardown(&s);
}

Test(ask, answers_in_any_order)
{
	struct stage s = {0};
	const struct answer yes = {.allow = true, .scope = 1, .by = BY_USER};
	const struct answer no = {.by = BY_USER};
	setup(&s, 0, true);
	cr_assert_eq(push(&s, "/a"), 1);
	cr_assert_eq(push(&s, "/b"), 2);
	cr_assert_eq(ask_len(s.ask), 2);
	cr_assert_eq(ask_answer(s.ask, 2, &yes), 0);
	cr_assert_eq(ask_answer(s.ask, 2, &yes), -ENOENT);
	cr_assert_eq(ask_answer(s.ask, 1, &no), 0);
	cr_assert_str_eq(s.log, "?1 ?2 =2 +2:once:user =1 -1:session:user ");
	cr_assert_null(ask_first(s.ask));
	teardown(&s);
}

Test(ask, only_what_is_offered)
{
	struct stage s = {0};
	setup(&s, 0, true);
	push(&s, "/a");
	((struct question *)ask_first(s.ask))->no_saving = true;
	static const struct {
		struct answer a;
		int result;
	} row[] = {
		{{.allow = true, .scope = 2}, -EINVAL},
		{{.allow = true, .lifetime = LIFETIME_ALWAYS}, -EINVAL},
		{{.allow = false, .lifetime = LIFETIME_ALWAYS}, -EINVAL},
		{{.allow = false, .scope = 99}, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		cr_assert_eq(ask_answer(s.ask, 1, &row[i].a), row[i].result, "row %zu", i);
	teardown(&s);
}

Test(ask, nobody_who_answers)
{
	struct stage s = {0};
	uint64_t id;
	setup(&s, 0, false);
	cr_assert_eq(ask_push(s.ask, question("/a"), &id), -ENOTCONN);
	ask_remove_front(s.ask, &s);
	cr_assert_eq(ask_push(s.ask, question("/a"), &id), -ENOTCONN);
	cr_assert_str_eq(s.log, "");
	teardown(&s);
}

Test(ask, an_answer_covers_others)
{
	struct stage s = {0};
	const struct answer yes = {.allow = true, .by = BY_USER};
	setup(&s, 0, true);
	push(&s, "/a");
	s.cover = push(&s, "/b");
	ask_answer(s.ask, 1, &yes);
	cr_assert_str_eq(s.log, "?1 ?2 =1 +1:once:user x2:covered ");
	cr_assert_eq(ask_len(s.ask), 0);
	teardown(&s);
}

Test(ask, deadline_is_a_no)
{
	struct stage s = {0};
	setup(&s, 20, true);
	push(&s, "/a");
	for (int i = 0; i < 50 && ask_len(s.ask); i++)
		loop_turn(s.loop, 10);
	cr_assert_str_eq(s.log, "?1 x1:timeout -1:session:timeout ");
	teardown(&s);
}

Test(ask, a_front_that_answers_at_once)
{
	struct stage s = {.answers_at_once = true}, late = {0};
	setup(&s, 1000, true);
	const struct ask_front second = {&late, true, on_asked, on_cancelled, on_settled};
	cr_assert_eq(ask_add_front(s.ask, &second), 0);
	push(&s, "/a");
	cr_assert_str_eq(s.log, "?1 =1 +1:once:policy ");
	cr_assert_str_eq(late.log, "", "never heard of it, so nothing of its end either");
	teardown(&s);
}

Test(ask, the_end_is_a_no)
{
	struct stage s = {0};
	setup(&s, 0, true);
	push(&s, "/a");
	push(&s, "/b");
	teardown(&s);
	cr_assert_str_eq(s.log, "?1 ?2 x1:exited -1:session:none x2:exited -2:session:none ");
}

Test(ask, fronts_are_limited)
{
	struct stage s = {0};
	char self[ASK_FRONTS_MAX];
	setup(&s, 0, true);
	for (size_t i = 0; i < ASK_FRONTS_MAX; i++) {
		const struct ask_front f = {.self = &self[i]};
		cr_assert_eq(ask_add_front(s.ask, &f), i + 1 < ASK_FRONTS_MAX ? 0 : -ENOSPC);
	}
	teardown(&s);
}
