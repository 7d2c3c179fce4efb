#include "tests/tempdir.h"
#include "tracer/outfile.h"
#include "tracer/traceflags.h"
#include "tracer/tracejson.h"
#include "tracer/tracewrite.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp[PATH_MAX];

static void enter(void)
{
	tempdir_enter(temp);
}

static void leave(void)
{
	tempdir_leave(temp);
}

static char *in_temp(const char *name)
{
	char *path;
	cr_assert_geq(asprintf(&path, "%s/%s", temp, name), 0);
	return path;
}

static struct trace_event full_call(void)
{
	return (struct trace_event){
		.kind = TRACE_CALL,
		.t_ns = 123456789,
		.pid = 10,
		.tid = 11,
		.call = "renameat2",
		.ent = sysent_by_name("renameat2"),
		.returned = true,
		.ret = -EXDEV,
		.path = {{.given = "a\xff\"\\\n",
			  .real = "/w/a\xff\"\\\n",
			  .thing = TRACE_THING_FILE,
			  .access = "delete,move",
			  .refused = "move"},
			 {.given = "../\xc3\xa9",
			  .real = "/\xc3\xa9",
			  .thing = TRACE_THING_ABSENT,
			  .access = "create,move"}},
		.paths = 2,
		.has_flags = true,
		.flags = RENAME_NOREPLACE,
		.has_mode = true,
		.mode = 04755,
		.has_request = true,
		.request = 0x5413,
		.target = "to",
		.anyway = -EEXIST,
		.own_wall = true,
		.verdict = "sandbox",
		.answer = "deny",
		.by = "policy",
		.lifetime = "session",
		.rule = "~/p:12",
		.note = "a note",
		.unsure = {"one", "two"},
		.unsure_len = 2,
	};
}

static void expect_same_text(const char *a, const char *b, const char *what)
{
	cr_expect_str_eq(a ? a : "(none)", b ? b : "(none)", "%s", what);
}

static void expect_same(const struct trace_event *a, const struct trace_event *b)
{
	cr_expect_eq(a->kind, b->kind);
	cr_expect_eq(a->t_ns, b->t_ns);
	cr_expect_eq(a->pid, b->pid);
	cr_expect_eq(a->tid, b->tid);
	expect_same_text(a->call, b->call, "call");
	cr_expect_eq(a->ent, b->ent);
	cr_expect_eq(a->returned, b->returned);
	cr_expect_eq(a->ret, b->ret);
	cr_expect_eq(a->paths, b->paths);
	for (unsigned i = 0; i < TRACE_PATHS; i++) {
		expect_same_text(a->path[i].given, b->path[i].given, "given");
		expect_same_text(a->path[i].real, b->path[i].real, "real");
		expect_same_text(a->path[i].told, b->path[i].told, "told");
		expect_same_text(a->path[i].access, b->path[i].access, "access");
		expect_same_text(a->path[i].refused, b->path[i].refused, "refused");
		cr_expect_eq(a->path[i].thing, b->path[i].thing);
	}
	cr_expect_eq(a->has_flags, b->has_flags);
	cr_expect_eq(a->flags, b->flags);
	cr_expect_eq(a->mode, b->mode);
	cr_expect_eq(a->request, b->request);
	expect_same_text(a->target, b->target, "target");
	cr_expect_eq(a->anyway, b->anyway);
	cr_expect_eq(a->own_wall, b->own_wall);
	expect_same_text(a->verdict, b->verdict, "verdict");
	expect_same_text(a->answer, b->answer, "answer");
	expect_same_text(a->by, b->by, "by");
	expect_same_text(a->lifetime, b->lifetime, "lifetime");
	expect_same_text(a->rule, b->rule, "rule");
	expect_same_text(a->note, b->note, "note");
	cr_expect_eq(a->child, b->child);
	cr_expect_eq(a->thread, b->thread);
	cr_expect_eq(a->status, b->status);
	cr_expect_eq(a->events, b->events);
	cr_assert_eq(a->unsure_len, b->unsure_len);
	for (unsigned i = 0; i < a->unsure_len; i++)
		expect_same_text(a->unsure[i], b->unsure[i], "unsure");
}

/* Its line, without newline; the caller's. */
static char *line_of(const struct trace_event *ev)
{
	struct buf b = {0};
	tracewrite_format(ev, &b);
	cr_assert_eq(b.data[b.len - 1], '\n');
	b.data[--b.len] = '\0';
	return buf_take(&b);
}

Test(trace, every_member_comes_back)
{
	const char *const argv[] = {"cc", "-o", "x y", NULL};
	const struct trace_event events[] = {
		full_call(),
		{.kind = TRACE_CALL,
		 .pid = 1,
		 .tid = 1,
		 .call = "openat",
		 .ent = sysent_by_name("openat"),
		 .path = {{.told = "pipe:[1]", .access = "", .thing = TRACE_THING_FIFO}},
		 .paths = 1},
		{.kind = TRACE_FORK, .t_ns = 1, .pid = 1, .tid = 1, .child = 2, .thread = true},
		{.kind = TRACE_EXIT, .pid = 1, .tid = 1, .status = 3 << 8},
		{.kind = TRACE_EXIT, .pid = 1, .tid = 1, .status = 9},
		{.kind = TRACE_END, .events = 5},
		{.kind = TRACE_EXEC,
		 .pid = 1,
		 .tid = 1,
		 .exe = "/usr/bin/\xff",
		 .argv0 = "cc",
		 .argv = argv},
	};
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		struct tracejson_room room = {0};
		struct trace_event got;
		size_t at;
		const char *expected;
		char *line = line_of(&events[i]);
		cr_assert_eq(tracejson_event(line, strlen(line), &room, &got, &at, &expected), 0,
			     "%zu: %s", i, expected);
		expect_same(&events[i], &got);
		if (events[i].argv) {
			expect_same_text(got.exe, events[i].exe, "exe");
			for (size_t k = 0; k < 4; k++)
				expect_same_text(got.argv[k], argv[k], "argv");
		}
		free(line);
	}
}

Test(trace, any_json_in_any_order_with_members_of_a_later_version)
{
	char line[] =
		" { \"later\" : [1, {\"a\":\"\\\"]\"}, null, -1.5e3] , \"pid\":7,\t\"call\" : "
		"\"open\",\"path\":\"\\u002fa\\ud83d\\ude00\\/b\", \"access\": [ \"read\" , "
		"\"write\" ] ,\"access2\":[], \"ev\":\"call\"} ";
	struct tracejson_room room = {0};
	struct trace_event ev;
	size_t at;
	const char *expected;
	cr_assert_eq(tracejson_event(line, sizeof line - 1, &room, &ev, &at, &expected), 0, "%s",
		     expected);
	cr_expect_eq(ev.pid, 7);
	cr_expect_str_eq(ev.call, "open");
	cr_expect_str_eq(ev.path[0].real, "/a\xf0\x9f\x98\x80/b");
	cr_expect_str_eq(ev.path[0].access, "read,write");
	cr_expect_str_eq(ev.path[1].access, "");
	cr_expect_eq(ev.paths, 2u);
	char later[] = "{\"ev\":\"mood\",\"pid\":7}";
	cr_expect_eq(tracejson_event(later, sizeof later - 1, &room, &ev, &at, &expected), -ENOMSG);
}

Test(trace, a_fault_is_told_with_its_place)
{
	static const struct {
		const char *line;
		size_t at;
		const char *expected;
	} rows[] = {
		{"", 0, "a JSON object"},
		{"[]", 0, "a JSON object"},
		{"{\"ev\":\"call\",\"pid\":1}", 21, "a member \"call\""},
		{"{\"ev\":\"exit\"}", 13, "a member \"pid\""},
		{"{\"pid\":1}", 9, "a member \"ev\""},
		{"{\"ev\":\"exit\",\"pid\":\"1\"}", 19, "a whole number"},
		{"{\"ev\":\"exit\",\"pid\":1.5}", 19, "a whole number"},
		{"{\"ev\":\"exit\",\"pid\":99999999999}", 19, "a number that makes sense here"},
		{"{\"ev\":\"exit\",\"pid\":99999999999999999999}", 19, "a number of 64 bits"},
		{"{\"ev\":\"exit\" \"pid\":1}", 13, "',' or '}'"},
		{"{\"ev\":\"exit\",\"pid\":1} x", 22, "the end of the line"},
		{"{\"ev\":\"exit\",\"pid\":1", 20, "',' or '}'"},
		{"{\"ev\":\"exit\",\"pid", 17, "the string's end"},
		{"{\"ev\":\"ex\\xit\"}", 10, "an escape"},
		{"{\"ev\":\"\\u00\"}", 9, "four hex digits"},
		{"{\"path\":\"\\u0000\"}", 15, "a text without NUL"},
		{"{\"path_b64\":\"A!\"}", 16, "base64"},
		{"{\"path_b64\":\"AAAA\"}", 18, "base64"},
		{"{\"access\":\"read\"}", 10, "a list of words"},
		{"{\"flags\":\"O_NOSUCH\"}", 19, "flags such as O_WRONLY|O_CREAT"},
		{"{\"mode\":\"9\"}", 11, "an octal mode"},
		{"{\"later\":}", 9, "a value"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct tracejson_room room = {0};
		struct trace_event ev;
		size_t at = 0;
		const char *expected = "";
		char *line = strdup(rows[i].line);
		cr_expect_eq(tracejson_event(line, strlen(line), &room, &ev, &at, &expected),
			     -EINVAL, "%s", rows[i].line);
		cr_expect_eq(at, rows[i].at, "%s: %zu", rows[i].line, at);
		cr_expect_str_eq(expected, rows[i].expected, "%s", rows[i].line);
		free(line);
	}
	/* Nesting without end ends. */
	struct buf deep = {0};
	struct tracejson_room room = {0};
	struct trace_event ev;
	size_t at;
	const char *expected;
	buf_add_str(&deep, "{\"later\":");
	for (int i = 0; i < 100000; i++)
		buf_add_char(&deep, '[');
	cr_expect_eq(tracejson_event(deep.data, deep.len, &room, &ev, &at, &expected), -EINVAL);
	buf_free(&deep);
}

Test(trace, flags_have_names)
{
	static const struct {
		const char *call;
		uint64_t flags;
		const char *text;
	} rows[] = {
		{"openat", 0, "O_RDONLY"},
		{"openat", O_WRONLY | O_CREAT | O_TRUNC, "O_WRONLY|O_CREAT|O_TRUNC"},
		{"openat", O_RDWR | O_TMPFILE, "O_RDWR|O_TMPFILE"},
		{"openat", O_DIRECTORY | O_CLOEXEC, "O_RDONLY|O_DIRECTORY|O_CLOEXEC"},
		{"openat", O_SYNC | 1ull << 40, "O_RDONLY|O_SYNC|0x10000000000"},
		{"unlinkat", 0, "0"},
		{"unlinkat", AT_REMOVEDIR, "AT_REMOVEDIR"},
		{"unlinkat", 0x10, "0x10"},
		{"renameat2", RENAME_EXCHANGE, "RENAME_EXCHANGE"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = {0};
		uint64_t back;
		traceflags_format(sysent_by_name(rows[i].call), rows[i].flags, &b);
		cr_expect_str_eq(buf_str(&b), rows[i].text);
		cr_expect(traceflags_parse(b.data, b.len, &back), "%s", rows[i].text);
		cr_expect_eq(back, rows[i].flags, "%s", rows[i].text);
		buf_free(&b);
	}
	uint64_t back;
	cr_expect(!traceflags_parse("O_WRONLY|O_NEW", 14, &back));
	cr_expect_eq(back, O_WRONLY);
	cr_expect(!traceflags_parse("", 0, &back));
	cr_expect(traceflags_parse("0102", 4, &back));
	cr_expect_eq(back, 0102);
}

static const char *const argv_of_header[] = {"make", "-j4", NULL};

static struct trace_header header(void)
{
	return (struct trace_header){.version = "0.1.0",
				     .started = "2026-01-02T03:04:05Z",
				     .host = "h",
				     .argv = argv_of_header,
				     .cwd = "/w\xff",
				     .arch = "x86_64",
				     .kernel = "6.12",
				     .landlock_abi = 7,
				     .has_uid = true,
				     .uid = 1000,
				     .home = "/home/u",
				     .project = "/w",
				     .mode = "report",
				     .policy = "{\"rules\":[1]}"};
}

static struct tracewrite *created(const char *file)
{
	struct tracewrite *w;
	struct trace_error why;
	struct trace_header h = header();
	char *real AUTOFREE = NULL;
	cr_assert_eq(outfile_resolve(file, &real), 0);
	int err = tracewrite_open(real, &w, &why);
	cr_assert_eq(err, 0, "%s", err ? why.text : "");
	cr_assert_eq(tracewrite_header(w, &h), 0);
	return w;
}

static struct trace_reader *opened(const char *file)
{
	struct trace_reader *r;
	struct trace_error why;
	int err = trace_open(file, &(struct trace_options){0}, &r, &why);
	cr_assert_eq(err, 0, "%s", err ? why.text : "");
	return r;
}

/* Calls read until the end, or -errno. */
static int count_calls(struct trace_reader *r, struct trace_error *why)
{
	struct trace_event ev;
	int calls = 0, got;
	while ((got = trace_next(r, &ev, why)) > 0)
		calls += ev.kind == TRACE_CALL;
	return got < 0 ? got : calls;
}

static void write_calls(struct tracewrite *w, int n)
{
	for (int i = 0; i < n; i++) {
		struct trace_event ev = full_call();
		ev.t_ns = (uint64_t)i * 1000;
		cr_assert_eq(tracewrite_event(w, &ev), 0);
	}
}

static void expect_whole(const char *file, int calls)
{
	struct trace_error why;
	struct trace_reader *r = opened(file);
	const struct trace_header *h = trace_header(r);
	struct trace_header wrote = header();
	cr_expect_str_eq(h->version, wrote.version);
	cr_expect_str_eq(h->cwd, wrote.cwd);
	cr_expect_str_eq(h->argv[1], "-j4");
	cr_expect_null(h->argv[2]);
	cr_expect_str_eq(h->policy, wrote.policy);
	cr_expect_eq(h->landlock_abi, 7);
	cr_expect(h->has_uid && h->uid == 1000);
	cr_expect_null(h->label);
	cr_expect_eq(count_calls(r, &why), calls);
	cr_expect(trace_is_complete(r));
	trace_close(r);
}

Test(trace, a_file_has_its_name_when_it_is_whole, .init = enter, .fini = leave)
{
	static const char *const names[] = {"t.jsonl", "t.jsonl.zst"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *file AUTOFREE = in_temp(names[i]);
		struct stat st;
		struct tracewrite *w = created(file);
		char *part AUTOFREE = strdup(tracewrite_name(w));
		cr_expect_eq(access(file, F_OK), -1);
		cr_expect_eq(stat(part, &st), 0);
		cr_expect_eq(st.st_mode & 07777, 0600u);
		write_calls(w, 3000);
		cr_expect_eq(tracewrite_finish(w), 0);
		cr_expect_eq(access(part, F_OK), -1);
		cr_expect_str_eq(tracewrite_name(w), file);
		tracewrite_free(w);
		expect_whole(file, 3000);
	}
}

/* The end of the file, cut at every place of its last lines. */
Test(trace, a_cut_file_reads_up_to_its_last_whole_line, .init = enter, .fini = leave)
{
	char *file AUTOFREE = in_temp("t");
	struct trace_error why;
	struct stat st;
	struct tracewrite *w = created(file);
	write_calls(w, 3);
	cr_assert_eq(tracewrite_finish(w), 0);
	tracewrite_free(w);
	cr_assert_eq(stat(file, &st), 0);
	struct trace_event one = full_call(), end = {.kind = TRACE_END, .events = 3};
	one.t_ns = 2000;
	char *line AUTOFREE = line_of(&one), *last AUTOFREE = line_of(&end);
	off_t two_lines = (off_t)(strlen(line) + 1 + strlen(last) + 1);
	for (off_t size = st.st_size - 1; size >= st.st_size - two_lines; size--) {
		cr_assert_eq(truncate(file, size), 0);
		struct trace_reader *r = opened(file);
		off_t gone = st.st_size - size - (off_t)strlen(last) - 1;
		int calls = gone <= 0 ? 3 : 2;
		cr_assert_eq(count_calls(r, &why), calls, "%ld", (long)size);
		cr_assert(!trace_is_complete(r));
		trace_close(r);
	}
}

Test(trace, a_cut_compressed_file_too, .init = enter, .fini = leave)
{
	char *file AUTOFREE = in_temp("t.zst");
	struct trace_error why;
	struct stat st;
	struct tracewrite *w = created(file);
	write_calls(w, 5000);
	char *part AUTOFREE = strdup(tracewrite_name(w));
	tracewrite_free(w); /* never finished */
	struct trace_reader *r = opened(part);
	int calls = count_calls(r, &why);
	cr_expect(calls > 1000 && calls < 5000, "%d", calls);
	cr_expect(!trace_is_complete(r));
	trace_close(r);
	cr_assert_eq(stat(part, &st), 0);
	cr_assert_eq(truncate(part, st.st_size - 7), 0);
	r = opened(part);
	int fewer = count_calls(r, &why);
	cr_expect(fewer > 0 && fewer < calls, "%d", fewer);
	cr_expect(!trace_is_complete(r));
	trace_close(r);
}

Test(trace, what_is_no_regular_file_is_written_straight)
{
	struct tracewrite *w = created("/dev/null");
	cr_expect(!tracewrite_is_temporary(w));
	cr_expect_eq(tracewrite_finish(w), 0);
	tracewrite_free(w);
}

Test(trace, a_full_disk_is_told_once_and_for_all)
{
	struct tracewrite *w;
	struct trace_error why;
	struct trace_header h = header();
	cr_assert_eq(tracewrite_open("/dev/full", &w, &why), 0);
	cr_expect_eq(tracewrite_header(w, &h), -ENOSPC);
	struct trace_event ev = full_call();
	cr_expect_eq(tracewrite_event(w, &ev), -ENOSPC);
	cr_expect_eq(tracewrite_failure(w), -ENOSPC);
	cr_expect_eq(tracewrite_finish(w), -ENOSPC);
	tracewrite_free(w);
}

Test(trace, a_directory_that_is_not_there)
{
	struct tracewrite *w;
	struct trace_error why;
	cr_expect_eq(tracewrite_open("/proc/nonexistent/t", &w, &why), -ENOENT);
	cr_expect_str_eq(why.text, "/proc/nonexistent/t: No such file or directory");
}

/* Between the look at its name and the opening, and between the opening and the end. */
Test(trace, a_directory_that_is_swapped_leads_nowhere_else, .init = enter, .fini = leave)
{
	struct tracewrite *w;
	struct trace_error why;
	char *real AUTOFREE = NULL;
	cr_assert_eq(mkdir("d", 0700), 0);
	cr_assert_eq(mkdir("victim", 0700), 0);
	cr_assert_eq(outfile_resolve("d/t", &real), 0);
	w = created("d/t");
	cr_assert_eq(rename("d", "moved"), 0);
	cr_assert_eq(symlink("victim", "d"), 0);
	cr_expect_eq(tracewrite_finish(w), 0);
	tracewrite_free(w);
	cr_expect_eq(access("moved/t", F_OK), 0);
	cr_expect_eq(tracewrite_open(real, &w, &why), -ELOOP);
	cr_expect_eq(outfile_open(real, O_WRONLY | O_CREAT, 0600), -ELOOP);
	cr_expect_eq(rmdir("victim"), 0, "something was written in it");
}

static void write_text(const char *file, const char *text)
{
	FILE *f = fopen(file, "w");
	cr_assert(f);
	fputs(text, f);
	fclose(f);
}

Test(trace, what_is_no_trace_is_told_with_file_and_line, .init = enter, .fini = leave)
{
#define HEAD "{\"warder_trace\":1}\n"
	static const struct {
		const char *text, *why; /* behind the file's name */
		bool opens;
	} rows[] = {
		{"", ": it is empty: no trace", false},
		{"\n\nhello\n",
		 ":3: expected a trace's first line, {\"warder_trace\":1,...}, or strace's text",
		 false},
		{"{\"a\":1}\n", ":1:1: expected a trace's first line, {\"warder_trace\":1,...}",
		 false},
		{"{\"warder_trace\":1",
		 ":1:1: expected a trace's first line, {\"warder_trace\":1,...}", false},
		{"{\"warder_trace\":2}\n",
		 ":1: a trace of another format: this warder reads format 1", false},
		{HEAD "\n{\"ev\":\"exit\",\"pid\":0}\n",
		 ":3:20: expected a number that makes sense here", true},
		{HEAD "{\"ev\":\"end\",\"events\":1}\n",
		 ":2: the number of events is not the one told here", true},
		{HEAD "{\"ev\":\"end\",\"events\":0}\n{}\n",
		 ":3:1: expected nothing more after the trace's end", true},
	};
	char *file AUTOFREE = in_temp("t");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct trace_reader *r;
		struct trace_error why = {""};
		write_text(file, rows[i].text);
		int err = trace_open(file, &(struct trace_options){0}, &r, &why);
		cr_assert_eq(err, rows[i].opens ? 0 : -EINVAL, "%zu", i);
		if (rows[i].opens) {
			cr_expect_eq(count_calls(r, &why), -EINVAL, "%zu", i);
			trace_close(r);
		}
		cr_expect_str_eq(why.text + strlen(file), rows[i].why);
	}
}

Test(trace, a_line_without_end_takes_no_memory_without_end, .init = enter, .fini = leave)
{
	char *file AUTOFREE = in_temp("t");
	struct trace_error why;
	char block[1 << 16];
	memset(block, 'x', sizeof block);
	FILE *f = fopen(file, "w");
	fputs(HEAD "{\"a\":\"", f);
	for (int i = 0; i < 200; i++)
		fwrite(block, 1, sizeof block, f);
	fclose(f);
	struct trace_reader *r = opened(file);
	cr_expect_eq(count_calls(r, &why), -EIO);
	cr_expect_str_eq(why.text + strlen(file), ":1: the next line is longer than any event's");
	trace_close(r);
}

Test(trace, calls_are_told_with_the_program_that_made_them, .init = enter, .fini = leave)
{
	char *file AUTOFREE = in_temp("t");
	struct trace_event ev;
	struct trace_error why;
	write_text(file, HEAD "{\"ev\":\"call\",\"pid\":5,\"call\":\"open\"}\n"
			      "{\"ev\":\"exec\",\"pid\":5,\"exe\":\"/bin/sh\",\"argv0\":\"sh\"}\n"
			      "{\"ev\":\"fork\",\"pid\":5,\"child\":6}\n"
			      "{\"ev\":\"call\",\"pid\":6,\"call\":\"open\"}\n"
			      "{\"ev\":\"exec\",\"pid\":6,\"exe\":\"/bin/ls\",\"argv0\":\"ls\"}\n"
			      "{\"ev\":\"call\",\"pid\":6,\"call\":\"open\"}\n"
			      "{\"ev\":\"exit\",\"pid\":6,\"exit\":0}\n"
			      "{\"ev\":\"call\",\"pid\":6,\"call\":\"open\"}\n"
			      "{\"ev\":\"call\",\"pid\":5,\"call\":\"open\"}\n"
			      "{\"ev\":\"end\",\"events\":9}\n");
	static const char *const exes[] = {NULL,      "/bin/sh", "/bin/sh", "/bin/sh", "/bin/ls",
					   "/bin/ls", "/bin/ls", NULL,	    "/bin/sh", NULL};
	struct trace_reader *r = opened(file);
	for (size_t i = 0; i < ARRAY_LEN(exes); i++) {
		cr_assert_eq(trace_next(r, &ev, &why), 1);
		expect_same_text(ev.exe, exes[i], "exe");
	}
	cr_expect_eq(trace_next(r, &ev, &why), 0);
	trace_close(r);
	/* However many processes never end. */
	struct buf text = {0};
	buf_add_str(&text, HEAD);
	for (int i = 2; i < 300000; i++)
		buf_addf(&text, "{\"ev\":\"exec\",\"pid\":%d,\"exe\":\"/x%d\"}\n", i, i);
	write_text(file, buf_str(&text));
	buf_free(&text);
	r = opened(file);
	for (int i = 2; i < 300000; i++) {
		char exe[16];
		snprintf(exe, sizeof exe, "/x%d", i);
		cr_assert_eq(trace_next(r, &ev, &why), 1);
		cr_assert_str_eq(ev.exe, exe);
	}
	trace_close(r);
}
