#include "supervisor/learn.h"

#include "supervisor/learntrie.h"
#include "supervisor/madenames.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <string.h>

static const struct trace_header header = {
	.cwd = "/home/u/p", .home = "/home/u", .project = "/home/u/p"};

static struct trace_event event(const char *path, const char *access)
{
	return (struct trace_event){
		.kind = TRACE_CALL,
		.exe = "/usr/bin/tool",
		.call = "openat",
		.returned = true,
		.paths = 1,
		.path = {{.real = path, .access = access, .thing = TRACE_THING_FILE}}};
}

static struct learn *begin(void)
{
	const struct learn_options o = {.home = "/home/u"};
	struct policy_error why;
	struct learn *l;
	cr_assert_eq(learn_new(&o, &l, &why), 0, "%s", why.text);
	cr_assert_eq(learn_begin(l, &header, &why), 0, "%s", why.text);
	return l;
}

static const char *const paths[] = {"/home/u/a", "/home/u/b/c", "/home/u/.ssh/x"};

static void see_all(struct learn *l, int (*take)(struct learn *, const struct trace_event *))
{
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct trace_event ev = event(paths[i], "read");
		cr_assert_eq(take(l, &ev), 0);
	}
}

/* The check sees a policy that is not the learned one: too narrow, and too wide. */
Test(learn, check_finds_what_is_wrong, .timeout = 30)
{
	static const struct {
		const char *text;
		uint64_t missed;
		size_t wider;
		const char *first_missed, *first_wider;
	} rows[] = {
		{NULL, 0, 0, NULL, NULL},
		{"", 2, 0, "read /home/u/a", NULL},
		{"allow r ~/a\n", 1, 0, "read /home/u/b/c", NULL},
		{"allow r ~/a\nallow r ~/b\n", 0, 1, NULL, "r /home/u/b/c"},
		{"allow r /home/u\n", 0, 3, NULL, "read /home/u/.ssh/x"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct learn *l = begin();
		struct buf text = {0};
		size_t rules;
		struct policy_error why;
		struct learn_verdict v;
		see_all(l, learn_event);
		cr_assert_eq(learn_write(l, &text, &rules), 0);
		cr_assert_eq(rules, 2, "%s", buf_str(&text));
		const char *checked = rows[i].text ? rows[i].text : buf_str(&text);
		cr_assert_eq(learn_check_begin(l, checked, strlen(checked), &why), 0, "%s",
			     why.text);
		cr_assert_eq(learn_begin(l, &header, &why), 0);
		see_all(l, learn_check);
		cr_assert_eq(learn_check_end(l, &v), 0);
		cr_expect_eq(v.missed, rows[i].missed, "row %zu: %" PRIu64, i, v.missed);
		cr_expect_eq(v.wider, rows[i].wider, "row %zu: %zu", i, v.wider);
		cr_expect_eq(v.left_out, v.wider == 3 ? 0 : 1, "row %zu", i);
		if (rows[i].first_missed)
			cr_expect_str_eq(v.first_missed, rows[i].first_missed);
		if (rows[i].first_wider)
			cr_expect_str_eq(v.first_wider, rows[i].first_wider);
		free(v.first_missed);
		free(v.first_wider);
		buf_free(&text);
		learn_free(l);
	}
}

/* ---- the trie ---- */

static int count_leaf(void *arg, const char *path, const struct learntrie_leaf *leaf)
{
	uint64_t *sum = arg;
	cr_assert_eq(path[0], '/');
	*sum += leaf->count;
	return 0;
}

/* Whatever comes, nothing is lost uncounted, and memory has a bound. */
Test(learn, trie_is_bounded, .timeout = 120)
{
	struct learntrie *t;
	uint64_t sum = 0, added = 0;
	cr_assert_eq(learntrie_new("/home/u", NULL, &t), 0);
	for (unsigned i = 0; i < 400000; i++) {
		char path[96];
		if (i % 2)
			snprintf(path, sizeof(path), "/data/%u/%u/%u", i % 7919, i % 13, i);
		else
			snprintf(path, sizeof(path), "/etc/wide%u", i); /* never joined */
		struct learntrie_seen seen = {
			.path = path, .access = 1, .who = "w", .call = "c", .trace = 1};
		cr_assert_eq(learntrie_add(t, &seen), 0);
		added++;
	}
	cr_expect_leq(learntrie_nodes(t), LEARNTRIE_NODES_MAX);
	cr_assert_eq(learntrie_walk(t, count_leaf, &sum), 0);
	cr_expect_eq(sum + learntrie_dropped(t), added, "%" PRIu64 " %" PRIu64, sum,
		     learntrie_dropped(t));
	learntrie_free(t);
}

static int first_whole(void *arg, const char *path, const struct learntrie_leaf *leaf)
{
	char *ret = arg;
	if (leaf->whole && !ret[0])
		snprintf(ret, 96, "%s", path);
	return 0;
}

Test(learn, a_directory_of_many_names_is_kept_as_a_whole, .timeout = 30)
{
	struct learntrie *t;
	char whole[96] = "";
	cr_assert_eq(learntrie_new("/home/u", NULL, &t), 0);
	for (unsigned i = 0; i < 1000; i++) {
		char path[96];
		snprintf(path, sizeof(path), "/home/u/data/x/%u", i);
		cr_assert_eq(
			learntrie_add(
				t, &(struct learntrie_seen){.path = path, .access = 1, .trace = 1}),
			0);
		snprintf(path, sizeof(path), "/home/u/%u", i); /* a home directory never is */
		cr_assert_eq(
			learntrie_add(
				t, &(struct learntrie_seen){.path = path, .access = 1, .trace = 1}),
			0);
	}
	cr_assert_eq(learntrie_walk(t, first_whole, whole), 0);
	cr_expect_str_eq(whole, "/home/u/data/x");
	learntrie_free(t);
}

Test(learn, made_names, .timeout = 30)
{
	struct madenames m = {0};
	cr_assert_null(madenames_dir(&m, "/tmp/ccAb3dX9.o"));
	cr_assert_eq(madenames_add(&m, "/tmp/ccAb3dX9.o", 0), 0);
	cr_assert_eq(madenames_add(&m, "/tmp/plain", 0), 0);
	cr_assert_eq(madenames_add(&m, "/srv/ccAb3dX9.o", 0), 0);
	cr_expect_str_eq(madenames_dir(&m, "/tmp/ccAb3dX9.o"), "/tmp");
	cr_expect_str_eq(madenames_dir(&m, "/tmp/ccAb3dX9.o/below"), "/tmp");
	cr_expect_null(madenames_dir(&m, "/tmp/ccAb3dX8.o"));
	cr_expect_null(madenames_dir(&m, "/tmp/plain"));
	cr_assert_eq(madenames_add(&m, "/tmp/xyz.aBcDeFgH", 0), 0);
	cr_expect_str_eq(madenames_dir(&m, "/tmp/xyz.aBcDeFgH/x"), "/tmp", "not a digit in it");
	cr_assert_eq(madenames_add(&m, "/tmp/of-4711", 4711), 0);
	cr_expect_str_eq(madenames_dir(&m, "/tmp/of-4711"), "/tmp");
	cr_expect_null(madenames_dir(&m, "/srv/ccAb3dX9.o"));
	cr_expect_null(madenames_dir(&m, "/tmp"));
	for (unsigned i = 0; i < 2 * MADENAMES_MAX; i++) {
		char path[64];
		snprintf(path, sizeof(path), "/var/tmp/x-%08x", i * 2654435761u);
		cr_assert_eq(madenames_add(&m, path, 0), 0);
	}
	cr_expect_eq(m.len, MADENAMES_MAX);
	cr_expect_str_eq(madenames_dir(&m, "/tmp/tmp.aB3dX9Qz12"), "/tmp");
	cr_expect_null(madenames_dir(&m, "/tmp/plain"));
	madenames_release(&m);
}
