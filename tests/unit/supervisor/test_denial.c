#include "supervisor/denial.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct denial read_of(const char *path)
{
	return (struct denial){.path = (char *)path,
			       .access = ACCESS_READ,
			       .call = "openat",
			       .error = EACCES,
			       .verdict = VERDICT_SANDBOX};
}

Test(denial, counts_the_same, .timeout = 10)
{
	struct denial_list l = {0};
	struct denial d = read_of("/a");
	d.t_ms = 7;
	d.pid = 1;
	cr_assert(denial_add(&l, &d));
	d.t_ms = 9;
	d.pid = 2;
	d.count = 3;
	struct denial *got = denial_add(&l, &d);
	cr_assert(got);
	cr_expect_eq(l.len, 1);
	cr_expect_eq(got->count, 4);
	cr_expect_eq(got->t_ms, 7, "the first one's");
	cr_expect_eq(got->pid, 1);
	denial_list_release(&l);
	cr_expect_eq(l.len, 0);
}

Test(denial, what_makes_it_another, .timeout = 10)
{
	struct denial_list l = {0};
	struct denial d[6];
	for (size_t i = 0; i < ARRAY_LEN(d); i++)
		d[i] = read_of("/a");
	d[1].path = (char *)"/b";
	d[2].path2 = (char *)"/a";
	d[3].access = ACCESS_READ | ACCESS_WRITE;
	d[4].verdict = VERDICT_PERMISSIONS;
	d[5].allowed = true;
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < ARRAY_LEN(d); i++)
			cr_assert(denial_add(&l, &d[i]));
	cr_assert_eq(l.len, ARRAY_LEN(d));
	for (size_t i = 0; i < l.len; i++) {
		cr_expect_eq(l.item[i].count, 2);
		cr_expect_str_eq(l.item[i].path, d[i].path, "first-seen order");
		cr_expect_neq(l.item[i].path, d[i].path, "a copy");
	}
	denial_list_release(&l);
}

/* Ten thousand and more: fast, in order, and what is beyond is counted. */
Test(denial, limit, .timeout = 20)
{
	struct denial_list l = {0};
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < DENIAL_MAX + 5; i++) {
			char path[32];
			snprintf(path, sizeof(path), "/d/%u", i);
			struct denial d = read_of(path);
			struct denial *got = denial_add(&l, &d);
			cr_assert_eq(got != NULL, i < DENIAL_MAX, "%u", i);
			cr_assert(!got || got->count == round + 1);
		}
	}
	cr_expect_eq(l.len, DENIAL_MAX);
	cr_expect_eq(l.dropped, 10);
	cr_expect_str_eq(l.item[DENIAL_MAX - 1].path, "/d/9999");
	denial_list_release(&l);
}

Test(denial, names, .timeout = 10)
{
	char room[16];
	cr_expect_str_eq(verdict_name(VERDICT_SANDBOX), "sandbox");
	cr_expect_str_eq(verdict_name(VERDICT_PERMISSIONS), "permissions");
	cr_expect_str_eq(verdict_name(VERDICT_CROSS_DEVICE), "cross-device");
	cr_expect_str_eq(verdict_name(VERDICT_OTHER), "other");
	cr_expect_str_eq(lifetime_name(LIFETIME_ONCE), "once");
	cr_expect_str_eq(lifetime_name(LIFETIME_SESSION), "session");
	cr_expect_str_eq(lifetime_name(LIFETIME_ALWAYS), "always");
	cr_expect_str_eq(answered_by_name(BY_NONE), "none");
	cr_expect_str_eq(answered_by_name(BY_USER), "user");
	cr_expect_str_eq(answered_by_name(BY_POLICY), "policy");
	cr_expect_str_eq(answered_by_name(BY_TIMEOUT), "timeout");
	cr_expect_str_eq(answered_by_name(BY_YES), "policy");
	cr_expect_str_eq(denial_errno_name(EXDEV, room), "EXDEV");
	cr_expect_str_eq(denial_errno_name(9999, room), "E9999");
}

static const struct row {
	struct denial d;
	const char *json;
} rows[] = {
	{{.path = (char *)"/home/u/.ssh/config",
	  .given = (char *)"/home/u/.ssh/config",
	  .access = ACCESS_READ,
	  .call = "openat",
	  .error = EACCES,
	  .by = BY_USER,
	  .lifetime = LIFETIME_SESSION,
	  .rule = (char *)"~/.config/warder/policy:12",
	  .count = 2,
	  .t_ms = 4,
	  .run = 1,
	  .pid = 4711,
	  .exe = (char *)"/usr/bin/ssh",
	  .argv0 = (char *)"ssh"},
	 "{\"path\":\"/home/u/.ssh/config\",\"access\":[\"read\"],\"call\":\"openat\","
	 "\"errno\":\"EACCES\",\"verdict\":\"sandbox\",\"answer\":\"deny\",\"by\":\"user\","
	 "\"lifetime\":\"session\",\"rule\":\"~/.config/warder/policy:12\",\"count\":2,\"t_ms\":4,"
	 "\"run\":1,\"pid\":4711,\"exe\":\"/usr/bin/ssh\",\"argv0\":\"ssh\"}"},
	{{.path = (char *)"/b/x",
	  .given = (char *)"x",
	  .path2 = (char *)"/c/\xff",
	  .access = ACCESS_DELETE | ACCESS_CREATE | ACCESS_MOVE,
	  .call = "rename",
	  .error = EXDEV,
	  .allowed = true,
	  .by = BY_YES,
	  .note = (char *)"seen",
	  .count = 1,
	  .run = 2,
	  .pid = 5,
	  .argv0 = (char *)"ghp_secret"},
	 "{\"path\":\"/b/x\",\"given\":\"x\",\"path2\":\"/c/\\u00ff\",\"path2_b64\":\"L2Mv/w==\","
	 "\"access\":[\"create\",\"delete\",\"move\"],\"call\":\"rename\",\"errno\":\"EXDEV\","
	 "\"verdict\":\"sandbox\",\"answer\":\"allow\",\"by\":\"policy\",\"lifetime\":\"once\","
	 "\"rule\":null,\"count\":1,\"t_ms\":0,\"run\":2,\"pid\":5,\"exe\":null,"
	 "\"argv0\":\"[redacted]\",\"note\":\"--yes; seen\"}"},
};

Test(denial, json, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = {0};
		struct jsonw w;
		jsonw_init(&w, &b);
		jsonw_begin_object(&w);
		denial_write(&w, &rows[i].d, false);
		jsonw_end_object(&w);
		cr_expect_str_eq(buf_str(&b), rows[i].json, "row %zu: %s", i, buf_str(&b));
		buf_free(&b);
	}
}

/* Who ended is told in what it was refused, once: the number may be another's later. */
Test(denial, how_the_process_ended, .timeout = 10)
{
	struct denial_list l = {0};
	const char *const paths[] = {"/a", "/b", "/c"};
	for (int i = 0; i < 3; i++) {
		struct denial d = read_of(paths[i]);
		d.pid = i < 2 ? 7 : 8;
		cr_assert(denial_add(&l, &d));
	}
	denial_ended(&l, 9, 0);
	cr_expect_eq(l.item[0].after, AFTER_UNKNOWN);
	denial_ended(&l, 7, 3 << 8);
	denial_ended(&l, 7, 9);
	denial_ended(&l, 8, 9);
	for (int i = 0; i < 2; i++) {
		cr_expect_eq(l.item[i].after, AFTER_EXITED);
		cr_expect_eq(l.item[i].after_value, 3);
	}
	cr_expect_eq(l.item[2].after, AFTER_SIGNAL);
	cr_expect_eq(l.item[2].after_value, 9);
	denial_list_release(&l);
}
