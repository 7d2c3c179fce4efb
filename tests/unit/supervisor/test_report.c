#include "supervisor/report.h"

#include "supervisor/policyfile.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

static struct report small_report(void)
{
	static char *command[] = {(char *)"curl", (char *)"--token", (char *)"abc",
				  (char *)"https://me:pw@host/", NULL};
	return (struct report){
		.run = "0123456789abcdef0123456789abcdef",
		.started = {.tv_sec = 1735689599, .tv_nsec = 123999999},
		.command = command,
		.cwd = "/w",
		.exited = true,
		.exit_code = 1,
		.runs = 1,
		.wall_ms = 12,
		.engine = {.landlock_abi = 7,
			   .mode = "hold",
			   .fast = true,
			   .stops = 31,
			   .brokered = 2},
	};
}

static struct denial write_of(const char *path)
{
	return (struct denial){.path = (char *)path,
			       .access = ACCESS_CREATE,
			       .call = "mkdir",
			       .error = EACCES,
			       .count = 1,
			       .argv0 = (char *)"/usr/bin/npm",
			       .exe = (char *)"/usr/bin/node"};
}

static char *written(const struct report *r)
{
	struct buf b = {0};
	cr_assert_eq(report_write(r, &b), 0);
	return buf_take(&b);
}

/* The letter of it: names and order, this machine's three values filled in. */
Test(report, to_the_letter, .timeout = 10)
{
	struct report r = small_report();
	struct utsname u;
	uname(&u);
	struct buf want = {0};
	buf_addf(&want,
		 "{\"warder_report\":1,\"version\":\"%s\","
		 "\"run\":\"0123456789abcdef0123456789abcdef\",\"label\":null,"
		 "\"started\":\"2024-12-31T23:59:59.123Z\",\"host\":\"%s\",\"uid\":%u,\"kernel\":"
		 "\"%s\","
		 "\"command\":[\"curl\",\"--token\",\"[redacted]\",\"https://[redacted]@host/\"],"
		 "\"cwd\":\"/w\",\"status\":{\"exit\":1},\"runs\":1,\"wall_ms\":12,\"held_ms\":0,"
		 "\"engine\":{\"landlock_abi\":7,\"mode\":\"hold\",\"fast\":true,\"patched\":0,"
		 "\"stops\":31,"
		 "\"brokered\":2,\"unwound\":0,\"degraded\":[],\"notes\":[]},\"policy\":[],"
		 "\"denials\":[],"
		 "\"grants\":[],\"leftovers\":[],\"suggested\":[]}",
		 WARDER_VERSION, u.nodename, geteuid(), u.release);
	char *got = written(&r);
	cr_expect_str_eq(got, buf_str(&want), "%s", got);
	free(got);
	buf_free(&want);
}

static void fill(struct report *r)
{
	struct denial d = write_of("/home/u/.npm");
	cr_assert(denial_add(&r->denials, &d));
	r->label = "l\xe2\x80\xae";
	r->exited = false;
	r->signal = 9;
	r->sources = calloc(2, sizeof(*r->sources));
	r->sources_len = 2;
	r->sources[0] = (struct report_source){.source = "preset", .path = strdup("system")};
	r->sources[1] = (struct report_source){.source = "user", .path = strdup("/p")};
	report_sha256("abc", 3, r->sources[1].sha256);
	r->grants = calloc(2, sizeof(*r->grants));
	r->grants_len = 2;
	r->grants[0] = (struct report_grant){.path = strdup("/g"),
					     .access = ACCESS_R,
					     .kind = SCOPE_TREE,
					     .lifetime = LIFETIME_SESSION,
					     .by = BY_USER};
	r->grants[1] = (struct report_grant){
		.path = strdup("node"), .access = ACCESS_READ, .kind = SCOPE_PRESET, .by = BY_YES};
	r->leftovers = calloc(1, sizeof(*r->leftovers));
	r->leftovers_len = 1;
	r->leftovers[0] = (struct report_leftover){
		.pid = 5, .exe = strdup("/bin/sleep"), .argv0 = strdup("sleep")};
	r->engine.notes = calloc(2, sizeof(char *));
	r->engine.notes[0] = strdup("io_uring refused 3×");
	r->engine.degraded = calloc(2, sizeof(char *));
	r->engine.degraded[0] = strdup("ioctl");
	r->denials.dropped = 3;
	cr_assert_eq(plan_suggest(&r->denials, "/home/u", &r->suggested), 0);
}

static const char *const pieces[] = {
	"\"label\":\"l\\u202e\"",
	"\"status\":{\"signal\":9}",
	"\"degraded\":[\"ioctl\"],\"notes\":[\"io_uring refused 3×\",\"3 refusals beyond 10000 "
	"distinct ones are not listed\"]",
	"\"policy\":[{\"source\":\"preset\",\"path\":\"system\",\"sha256\":null},{\"source\":"
	"\"user\","
	"\"path\":\"/p\",\"sha256\":"
	"\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}]",
	"\"denials\":[{\"path\":\"/home/u/.npm\",\"access\":[\"create\"],\"call\":\"mkdir\",",
	"\"grants\":[{\"path\":\"/g\",\"access\":[\"read\",\"list\"],\"kind\":\"tree\","
	"\"lifetime\":\"session\",\"by\":\"user\"},{\"path\":\"node\",\"access\":[\"read\"],"
	"\"kind\":\"preset\",\"lifetime\":\"once\",\"by\":\"policy\",\"note\":\"--yes\"}]",
	"\"leftovers\":[{\"pid\":5,\"exe\":\"/bin/sleep\",\"argv0\":\"sleep\"}]",
	"\"suggested\":[\"allow w ~/.npm\"]}",
};

Test(report, every_part, .timeout = 10)
{
	struct report r = small_report();
	fill(&r);
	char *got = written(&r);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		cr_expect(strstr(got, pieces[i]), "piece %zu not in %s", i, got);
	struct json *root = NULL;
	cr_assert_eq(json_parse(got, strlen(got), &root, NULL), 0);
	cr_expect_str_eq(json_get_str(root, "label"), r.label);
	json_free(root);
	free(got);
	report_release(&r);
	cr_expect_eq(r.denials.len, 0);
}

Test(report, secrets_on_request, .timeout = 10)
{
	struct report r = small_report();
	r.no_redact = true;
	char *got = written(&r);
	cr_expect(strstr(got, "[\"curl\",\"--token\",\"abc\",\"https://me:pw@host/\"]"), "%s", got);
	free(got);
}

Test(report, too_big_is_said, .timeout = 10)
{
	struct report r = small_report();
	struct buf b = {.max = 100};
	cr_expect_lt(report_write(&r, &b), 0);
	buf_free(&b);
}

static const struct summary_row {
	const char *path;
	const char *argv0;
	uint64_t count;
	bool is_dir;
	uint32_t access;
	const char *line;
} summary_rows[] = {
	{"/home/u/.npm", "/usr/bin/npm", 12, false, ACCESS_WRITE,
	 "warder: refused write ~/.npm (npm, 12×); to allow: warder policy allow w ~/.npm\n"},
	{"/home/u/.ssh/config", "ssh", 1, false, ACCESS_READ,
	 "warder: refused read ~/.ssh/config (ssh, 1×); to allow: warder policy allow r "
	 "~/.ssh/config\n"},
	{"/home/u", "ls", 1, true, ACCESS_LIST,
	 "warder: refused list ~ (ls, 1×); to allow: warder policy allow list ~ exact\n"},
	{"/run/docker.sock", "docker", 1, false, ACCESS_CONNECT,
	 "warder: refused connect /run/docker.sock (docker, 1×); to allow: warder policy allow "
	 "connect /run/docker.sock\n"},
	{"/srv/a b's", "x", 1, false, ACCESS_READ,
	 "warder: refused read /srv/a b's (x, 1×); to allow: warder policy allow r "
	 "'/srv/a b'\\''s'\n"},
	{"/home/u/a\x1b[2J\n\xe2\x80\xae", "evil\x1b[0m", 1, false, ACCESS_READ,
	 "warder: refused read ~/a\\e[2J\\n\\u{202E} (evil\\e[0m, 1×); to allow: warder policy "
	 "allow r ~/$'a\\033[2J\\012\\342\\200\\256'\n"},
};

Test(report, summary_lines, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(summary_rows); i++) {
		const struct summary_row *row = &summary_rows[i];
		struct report r = {0};
		struct denial d = write_of(row->path);
		d.access = row->access;
		d.argv0 = (char *)row->argv0;
		d.count = row->count;
		d.is_dir = row->is_dir;
		cr_assert(denial_add(&r.denials, &d));
		struct buf b = {0};
		report_summary(&r, "/home/u", &b);
		cr_expect_str_eq(buf_str(&b), row->line, "row %zu: %s", i, buf_str(&b));
		buf_free(&b);
		report_release(&r);
	}
}

/* The shell reads the quoted word back as what `warder policy` takes for exactly that path. */
Test(report, summary_word_is_the_path, .timeout = 30)
{
	static const char path[] = "/srv/a'b\\ \x1b\xff\xe2\x80\xae$(x)`y`\"*?";
	static const char pattern[] = "/srv/a'b\\\\ \x1b\xff\xe2\x80\xae$(x)`y`\"\\*\\?";
	struct report r = {0};
	struct denial d = write_of(path);
	cr_assert(denial_add(&r.denials, &d));
	struct buf b = {0}, script = {0};
	report_summary(&r, "/home/u", &b);
	char *word = strstr(buf_str(&b), "allow w ");
	cr_assert(word);
	/* The script's file is bash's stdin: nothing to quote again. */
	buf_addf(&script, "printf %%s %s", word + strlen("allow w "));
	int in[2], out[2];
	cr_assert(!pipe(in) && !pipe(out));
	pid_t pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		execlp("bash", "bash", "-s", (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	cr_assert_eq(write(in[1], script.data, script.len), (ssize_t)script.len);
	close(in[1]);
	char got[256] = "";
	cr_assert_gt(read(out[0], got, sizeof(got) - 1), 0);
	cr_expect_str_eq(got, pattern);
	close(out[0]);
	buf_free(&b);
	buf_free(&script);
	report_release(&r);
}

static size_t count_lines(const char *s)
{
	size_t n = 0;
	for (; (s = strchr(s, '\n')); s++)
		n++;
	return n;
}

Test(report, summary_is_short, .timeout = 10)
{
	for (size_t n = 0; n < 12; n++) {
		struct report r = {0};
		for (size_t i = 0; i < n; i++) {
			char path[64];
			snprintf(path, sizeof(path), "/srv/d%zu/x%zu", i, i);
			struct denial d = write_of(path);
			cr_assert(denial_add(&r.denials, &d));
		}
		struct buf b = {0};
		report_summary(&r, "/home/u", &b);
		cr_expect_eq(count_lines(buf_str(&b)), n < 5 ? n : 5, "%zu: %s", n, buf_str(&b));
		cr_expect_eq(strstr(buf_str(&b), " more; ") != NULL, n > 5, "%zu", n);
		if (n == 7)
			cr_expect(strstr(
				buf_str(&b),
				"warder: refused: and 3 more; all of them: warder why --last\n"));
		buf_free(&b);
		report_release(&r);
	}
}

/* Somebody said no: whose word it was, and no hint how to get round it. */
Test(report, summary_of_what_a_deny_rule_keeps, .timeout = 10)
{
	struct policy *p;
	struct policy_error why;
	struct policy_vars vars = {.home = "/home/u", .project = "/srv"};
	struct report r = {0};
	struct buf b = {0};
	static const char *const rules[] = {"deny r /srv/a", "deny w /srv/b"};
	cr_assert_eq(policy_new(&p), 0);
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		cr_assert_eq(policyfile_parse_line(p, rules[i], RULE_PRESET, &vars, &why), 0);
	/* Decided at the same path; by a rule above; by a saved answer. */
	struct denial d = write_of("/srv/a");
	d.access = ACCESS_READ;
	d.by = BY_POLICY;
	d.rule = (char *)"preset x:1";
	cr_assert(denial_add(&r.denials, &d));
	d.path = (char *)"/srv/b/c";
	d.access = ACCESS_WRITE;
	d.rule = (char *)"preset x:2";
	cr_assert(denial_add(&r.denials, &d));
	d = write_of("/home/u/no");
	d.by = BY_USER;
	d.lifetime = LIFETIME_ALWAYS;
	cr_assert(denial_add(&r.denials, &d));
	plan_mark(&r.denials, p, NULL);
	report_summary(&r, "/home/u", &b);
	cr_expect_str_eq(buf_str(&b),
			 "warder: refused read /srv/a (npm, 1×); denied by preset x:1\n"
			 "warder: refused write /srv/b/c (npm, 1×); denied by preset x:2\n"
			 "warder: refused create ~/no (npm, 1×); to undo: warder policy --project "
			 "forget ~/no\n",
			 "%s", buf_str(&b));
	buf_free(&b);
	report_release(&r);
	policy_free(p);
}

/* One path, and calls that needed this and that: who was refused what; the fourth and on summed. */
Test(report, summary_tells_calls_apart, .timeout = 10)
{
	static const struct {
		uint32_t access;
		const char *argv0;
		const char *note;
	} calls[] = {{ACCESS_READ, "cat", NULL},     {ACCESS_WRITE, "sh", NULL},
		     {ACCESS_READ, "less", NULL},    {ACCESS_DELETE, "mv", "it gains"},
		     {ACCESS_META, "chmod", NULL},   {ACCESS_CONNECT, "nc", NULL},
		     {ACCESS_CONNECT, "socat", NULL}};
	struct report r = {0};
	struct buf b = {0};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct denial d = write_of("/srv/f");
		d.access = calls[i].access;
		d.argv0 = (char *)calls[i].argv0;
		d.note = (char *)calls[i].note;
		cr_assert(denial_add(&r.denials, &d));
	}
	report_summary(&r, "/home/u", &b);
	cr_expect_str_eq(
		buf_str(&b),
		"warder: refused read /srv/f (cat, 2×), write (sh, 1×), delete (mv, 1×; it gains) "
		"and meta,connect (3×); to allow: warder policy allow "
		"read,list,write,create,delete,move,meta,connect /srv/f\n",
		"%s", buf_str(&b));
	buf_free(&b);
	report_release(&r);
}

/* What a grant could not help is no offer; what was allowed was not refused. */
Test(report, summary_of_others, .timeout = 10)
{
	struct report r = {0};
	struct denial d = write_of("/srv/a");
	d.allowed = true;
	cr_assert(denial_add(&r.denials, &d));
	d = write_of("/srv/b");
	d.verdict = VERDICT_PERMISSIONS;
	cr_assert(denial_add(&r.denials, &d));
	d = write_of("/home/u/.ssh/id");
	d.forbidden = true;
	d.rule = (char *)"command line";
	cr_assert(denial_add(&r.denials, &d));
	struct buf b = {0};
	report_summary(&r, "/home/u", &b);
	cr_expect_str_eq(
		buf_str(&b),
		"warder: refused create ~/.ssh/id (npm, 1×); forbidden by your command line\n",
		"%s", buf_str(&b));
	buf_free(&b);
	report_release(&r);
}

static void summary_of_end(enum denial_after after, int value, bool unwalled, const char *want)
{
	struct report r = {0};
	struct buf b = {0};
	struct denial d = write_of("/srv/a");
	d.after = after;
	d.after_value = value;
	d.unwalled = d.allowed = unwalled;
	cr_assert(denial_add(&r.denials, &d));
	report_summary(&r, "/home/u", &b);
	cr_expect_str_eq(buf_str(&b), want, "%s", buf_str(&b));
	buf_free(&b);
	report_release(&r);
}

/* What became of it is said where it was not well. */
Test(report, summary_says_how_it_ended, .timeout = 10)
{
	summary_of_end(AFTER_EXITED, 1, false,
		       "warder: refused create /srv/a (npm, 1×, then exited 1); to allow: warder "
		       "policy allow w /srv/a\n");
	summary_of_end(AFTER_SIGNAL, 6, false,
		       "warder: refused create /srv/a (npm, 1×, then ended by SIGABRT); to allow: "
		       "warder policy allow w /srv/a\n");
	summary_of_end(
		AFTER_SIGNAL, 40, false,
		"warder: refused create /srv/a (npm, 1×, then ended by signal 40); to allow: "
		"warder policy allow w /srv/a\n");
	summary_of_end(AFTER_EXITED, 0, true,
		       "warder: would refuse create /srv/a (npm, 1×); to allow: warder policy "
		       "allow w /srv/a\n");
}

Test(report, how_it_ended, .timeout = 10)
{
	static const struct {
		enum denial_after after;
		const char *want;
	} rows[] = {{AFTER_UNKNOWN, "\"after\":null"},
		    {AFTER_EXITED, "\"after\":{\"exited\":4}"},
		    {AFTER_SIGNAL, "\"after\":{\"signal\":4}"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct report r = small_report();
		struct denial d = write_of("/srv/a");
		d.after = rows[i].after;
		d.after_value = 4;
		cr_assert(denial_add(&r.denials, &d));
		char *got = written(&r);
		cr_expect(strstr(got, rows[i].want), "%s", got);
		free(got);
		denial_list_release(&r.denials);
	}
}
