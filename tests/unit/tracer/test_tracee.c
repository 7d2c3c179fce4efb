#include "tracer/tracee.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* The kernel used the number again before we heard of the first one's end. */
Test(tracee, a_number_that_is_used_again_is_another_thread)
{
	struct tracee_table table = {0};
	struct tracee *t = tracee_add(&table, 7, 7);
	uint32_t first = t->gen;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	tracee_to(t, TRACEE_CALL);
	tracee_to(t, TRACEE_HELD);
	t->call.path[0].given = strdup("owned");
	t->grant_fd = fd;
	t = tracee_add(&table, 7, 5);
	cr_assert_eq(tracee_find(&table, 7), t);
	cr_expect_eq(table.len, 1u);
	cr_expect_neq(t->gen, first, "an old name must not fit");
	cr_expect_eq(t->tgid, 5);
	cr_expect_eq((int)t->state, (int)TRACEE_NEW);
	cr_expect_eq(t->grant_fd, -1);
	cr_expect_lt(fcntl(fd, F_GETFD), 0, "what the first one was to get is closed");
	tracee_free_all(&table);
	cr_expect_eq(table.len, 0u);
}

/* Numbers that share a bucket do not share anything else. */
Test(tracee, buckets)
{
	struct tracee_table table = {0};

	for (int i = 0; i < 4; i++)
		tracee_add(&table, 3 + i * TRACEE_BUCKETS, 3);
	tracee_drop(&table, tracee_find(&table, 3 + TRACEE_BUCKETS));
	cr_expect_null(tracee_find(&table, 3 + TRACEE_BUCKETS));
	for (int i = 0; i < 4; i++)
		cr_expect_eq(tracee_find(&table, 3 + i * TRACEE_BUCKETS) != NULL, i != 1);
	struct tracee *t = tracee_find(&table, 3 + 2 * TRACEE_BUCKETS);
	uint32_t gen = t->gen;
	tracee_rename(&table, t, 3 + TRACEE_BUCKETS);
	cr_expect_eq(tracee_find(&table, 3 + TRACEE_BUCKETS), t);
	cr_expect_eq(t->gen, gen, "it is the same thread by another number");
	tracee_free_all(&table);
}

/* Whatever stop a tracee can bring about in whatever state, there is an answer but a bug of ours.
 */
Test(tracee, every_stop_has_an_act)
{
	for (int state = 0; state < TRACEE_STATE_COUNT; state++) {
		struct tracee t = {.state = (enum tracee_state)state};
		for (int kind = 0; kind < STOP_KIND_COUNT; kind++) {
			bool stopped = state == TRACEE_HELD || state == TRACEE_LOOK;
			bool still = stopped && kind != STOP_EXITED && kind != STOP_KILLED &&
				     kind != STOP_EXECED;
			enum tracee_act act = tracee_step(&t, (enum stop_kind)kind);
			cr_expect_eq(act == TRACEE_ACT_BUG, still, "state %d, stop %d", state,
				     kind);
		}
	}
}
