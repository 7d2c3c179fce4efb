/* The file tools' work itself, in a directory of the test's own; the wall is tested live. */
#include "agent/toolchild.h"

#include "agent/tools.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void enter(void)
{
	strcpy(dir, "/tmp/warder-toolchild-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
}

static void leave(void)
{
	char command[128];
	cr_assert_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(toolchild, .init = enter, .fini = leave, .timeout = 30);

static void make(const char *path, const char *bytes, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	cr_assert(fd >= 0);
	cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

/* The caller frees it. */
static struct json *call(const char *tool, const char *arguments)
{
	struct json *args = NULL, *answer = NULL;
	struct buf out = {0};
	cr_assert_eq(json_parse(arguments, strlen(arguments), &args, NULL), 0, "%s", arguments);
	toolchild_answer(tool, args, -1, &out);
	cr_assert_eq(json_parse(buf_str(&out), out.len, &answer, NULL), 0, "%s", buf_str(&out));
	json_free(args);
	buf_free(&out);
	return answer;
}

static int64_t number(const struct json *v, const char *key)
{
	int64_t n = -1;
	json_get_int(v, key, &n);
	return n;
}

static const char *error_of(const struct json *v)
{
	const struct json *e = json_get(v, "error");
	const char *name = json_get_str(e, "errno");
	return name ? name : json_get_str(e, "message") ? json_get_str(e, "message") : "none";
}

Test(toolchild, read_file_takes_line_ranges)
{
	static const struct {
		const char *range, *content;
		int64_t first, last;
	} rows[] = {
		{"", "one\ntwo\nthree\nfour", 1, 4},
		{",\"start_line\":2", "two\nthree\nfour", 2, 4},
		{",\"end_line\":2", "one\ntwo\n", 1, 2},
		{",\"start_line\":2,\"end_line\":3", "two\nthree\n", 2, 3},
		{",\"start_line\":4,\"end_line\":9", "four", 4, 4},
		{",\"start_line\":5", "", -1, -1},
	};
	make("f", "one\ntwo\nthree\nfour", 18, 0644);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char args[128];
		snprintf(args, sizeof(args), "{\"path\":\"f\"%s}", rows[i].range);
		struct json *a = call("read_file", args);
		cr_expect_str_eq(json_get_str(a, "content"), rows[i].content, "%s", rows[i].range);
		cr_expect_eq(number(a, "start_line"), rows[i].first, "%s", rows[i].range);
		cr_expect_eq(number(a, "end_line"), rows[i].last, "%s", rows[i].range);
		cr_expect_eq(number(a, "total_lines"), 4);
		cr_expect_eq(number(a, "bytes"), 18);
		json_free(a);
	}
}

Test(toolchild, read_file_says_that_it_is_over)
{
	make("f", "one\n", 4, 0644);
	struct json *a = call("read_file", "{\"path\":\"f\",\"start_line\":9}");
	cr_expect(strstr(json_get_str(a, "note"), "only 1 lines"));
	json_free(a);
	a = call("read_file", "{\"path\":\"f\",\"start_line\":3,\"end_line\":2}");
	cr_expect(strstr(error_of(a), "before start_line"));
	json_free(a);
	make("empty", "", 0, 0644);
	a = call("read_file", "{\"path\":\"empty\"}");
	cr_expect_str_eq(json_get_str(a, "content"), "");
	cr_expect_eq(number(a, "total_lines"), 0);
	json_free(a);
}

/* The cut is at a line's end, and going on from where the note says loses and repeats nothing. */
Test(toolchild, long_files_are_cut_and_can_be_read_on)
{
	struct buf text = {0}, read = {0};
	for (int i = 1; i <= 30000; i++)
		buf_addf(&text, "line %d\n", i);
	make("f", text.data, text.len, 0644);
	int64_t start = 1;
	for (int rounds = 0; rounds < 10; rounds++) {
		char args[128];
		bool truncated = false;
		snprintf(args, sizeof(args), "{\"path\":\"f\",\"start_line\":%lld}",
			 (long long)start);
		struct json *a = call("read_file", args);
		const char *content = json_get_str(a, "content");
		cr_assert(strlen(content) <= TOOLCHILD_READ_MAX);
		buf_add_str(&read, content);
		start = number(a, "end_line") + 1;
		cr_assert(json_bool(json_get(a, "truncated"), &truncated));
		cr_expect_eq(number(a, "total_lines"), 30000);
		if (truncated) {
			char words[64];
			snprintf(words, sizeof(words), "start_line %lld", (long long)start);
			cr_expect(strstr(json_get_str(a, "note"), words));
		}
		json_free(a);
		if (!truncated)
			break;
	}
	cr_expect_eq(read.len, text.len);
	cr_expect_str_eq(read.data, text.data);
	buf_free(&text);
	buf_free(&read);
}

Test(toolchild, one_endless_line_is_cut_at_a_character)
{
	struct buf text = {0};
	buf_add_char(&text, 'x');
	while (text.len < TOOLCHILD_READ_MAX + 100)
		buf_add_str(&text, "\xe2\x82\xac");
	make("f", text.data, text.len, 0644);
	struct json *a = call("read_file", "{\"path\":\"f\"}");
	const char *content = json_get_str(a, "content");
	size_t n = strlen(content);
	cr_expect(n > TOOLCHILD_READ_MAX - 4 && n <= TOOLCHILD_READ_MAX);
	cr_expect_not(strncmp(content, text.data, n));
	json_free(a);
	buf_free(&text);
}

Test(toolchild, read_file_refuses_what_is_no_text)
{
	make("bin", "ab\0cd", 5, 0644);
	struct json *a = call("read_file", "{\"path\":\"bin\"}");
	cr_expect(strstr(error_of(a), "binary"));
	cr_expect_null(json_get(a, "content"));
	json_free(a);
	/* A FIFO must not hang it, a directory is named as one. */
	cr_assert_eq(mkfifo("fifo", 0644), 0);
	a = call("read_file", "{\"path\":\"fifo\"}");
	cr_expect(strstr(error_of(a), "no regular file"));
	json_free(a);
	a = call("read_file", "{\"path\":\".\"}");
	cr_expect(strstr(error_of(a), "directory"));
	json_free(a);
	a = call("read_file", "{\"path\":\"/dev/zero\"}");
	cr_expect(strstr(error_of(a), "no regular file"));
	json_free(a);
	a = call("read_file", "{\"path\":\"absent\"}");
	cr_expect_str_eq(error_of(a), "ENOENT");
	json_free(a);
}

Test(toolchild, read_file_says_that_it_is_not_utf8)
{
	make("latin", "caf\xe9\n", 5, 0644);
	struct json *a = call("read_file", "{\"path\":\"latin\"}");
	cr_expect_str_eq(json_get_str(a, "content"), "caf\xc3\xa9\n");
	cr_expect(strstr(json_get_str(a, "note"), "Latin-1"));
	json_free(a);
}

Test(toolchild, write_file_replaces_in_place)
{
	struct stat before, after;
	bool created = true;
	make("f", "a long old text", 15, 0751);
	cr_assert_eq(chmod("f", 0751), 0);
	cr_assert_eq(stat("f", &before), 0);
	struct json *a = call("write_file", "{\"path\":\"f\",\"content\":\"new\"}");
	cr_expect_str_eq(error_of(a), "none");
	cr_expect_eq(number(a, "bytes"), 3);
	cr_expect(json_bool(json_get(a, "created"), &created) && !created);
	cr_assert_eq(stat("f", &after), 0);
	cr_expect_eq(after.st_ino, before.st_ino);
	cr_expect_eq(after.st_mode, before.st_mode);
	cr_expect_eq(after.st_size, 3);
	json_free(a);
}

Test(toolchild, write_file_makes_parents_and_names_them)
{
	bool created = false;
	make("there", "", 0, 0644);
	struct json *a = call("write_file", "{\"path\":\"a/b//c\",\"content\":\"x\"}");
	cr_expect_str_eq(error_of(a), "none");
	cr_expect(json_bool(json_get(a, "created"), &created) && created);
	cr_expect_str_eq(json_str(json_at(json_get(a, "made_dirs"), 0)), "a");
	cr_expect_str_eq(json_str(json_at(json_get(a, "made_dirs"), 1)), "a/b");
	cr_expect_eq(access("a/b/c", F_OK), 0);
	json_free(a);
	a = call("write_file", "{\"path\":\"there/x\",\"content\":\"x\"}");
	cr_expect_str_eq(error_of(a), "ENOTDIR");
	json_free(a);
}

Test(toolchild, write_file_refuses_what_is_no_file)
{
	cr_assert_eq(mkfifo("fifo", 0644), 0);
	struct json *a = call("write_file", "{\"path\":\"fifo\",\"content\":\"x\"}");
	cr_expect(strstr(error_of(a), "no regular file"));
	json_free(a);
	a = call("write_file", "{\"path\":\".\",\"content\":\"x\"}");
	cr_expect(strstr(error_of(a), "directory"));
	json_free(a);
}

static void expect_text(const char *path, const char *text)
{
	char have[256] = "";
	FILE *f = fopen(path, "r");
	cr_assert_not_null(f);
	size_t n = fread(have, 1, sizeof(have) - 1, f);
	cr_expect(n == strlen(text) && !strcmp(have, text), "%s: %s", path, have);
	fclose(f);
}

Test(toolchild, edit_file_replaces_the_one_place)
{
	struct stat before, after;
	make("f", "one\ntwo\nthree\n", 14, 0751);
	cr_assert_eq(stat("f", &before), 0);
	struct json *a = call("edit_file", "{\"path\":\"f\",\"old_string\":\"two\\nth\","
					   "\"new_string\":\"2\\nTH\"}");
	cr_expect_str_eq(error_of(a), "none");
	cr_expect_eq(number(a, "added"), 2);
	cr_expect_eq(number(a, "removed"), 2);
	cr_expect_str_eq(json_get_str(a, "diff"),
			 "@@ -1,3 +1,3 @@\n one\n-two\n-three\n+2\n+THree\n");
	expect_text("f", "one\n2\nTHree\n");
	cr_assert_eq(stat("f", &after), 0);
	cr_expect_eq(after.st_ino, before.st_ino);
	cr_expect_eq(after.st_mode, before.st_mode);
	json_free(a);
}

/* Whatever is wrong, the file stays as it was. */
Test(toolchild, edit_file_says_why_it_does_nothing)
{
	static const struct {
		const char *path, *old, *new, *words;
	} rows[] = {
		{"f", "three", "x", "is not in the file"},
		{"f", "ab", "x", "3 times (lines 1, 2, 3)"},
		{"f", "", "x", "is empty"},
		{"f", "ab", "ab", "are the same"},
		{"absent", "ab", "x", "ENOENT"},
		{".", "ab", "x", "directory"},
		{"fifo", "ab", "x", "no regular file"},
		{"dos", "a\\nb", "x", "end in \\r\\n"},
		{"empty", "a", "x", "is not in the file"},
	};
	make("f", "ab\nab\nab\n", 9, 0644);
	make("dos", "a\r\nb\r\n", 6, 0644);
	make("empty", "", 0, 0644);
	cr_assert_eq(mkfifo("fifo", 0644), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char args[256];
		snprintf(args, sizeof(args),
			 "{\"path\":\"%s\",\"old_string\":\"%s\",\"new_string\":\"%s\"}",
			 rows[i].path, rows[i].old, rows[i].new);
		struct json *a = call("edit_file", args);
		cr_expect(strstr(error_of(a), rows[i].words), "row %zu: %s", i, error_of(a));
		json_free(a);
	}
	expect_text("f", "ab\nab\nab\n");
}

/* The change is told before the file is touched: nobody reads the pipe until then. */
Test(toolchild, a_change_is_told_before_it_is_made)
{
	static const char *const calls[][2] = {
		{"write_file", "{\"path\":\"f\",\"content\":\"new\\n\"}"},
		{"edit_file", "{\"path\":\"f\",\"old_string\":\"old\",\"new_string\":\"new\"}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		struct json *args = NULL;
		struct buf out = {0};
		int fd[2];
		char line[256] = "";
		cr_assert_eq(pipe(fd), 0);
		make("f", "old\n", 4, 0644);
		cr_assert_eq(json_parse(calls[i][1], strlen(calls[i][1]), &args, NULL), 0);
		toolchild_answer(calls[i][0], args, fd[1], &out);
		close(fd[1]);
		cr_assert(read(fd[0], line, sizeof(line) - 1) > 0);
		cr_expect_str_eq(line, "{\"preview\":\"@@ -1 +1 @@\\n-old\\n+new\\n\"}\n");
		cr_expect(strstr(buf_str(&out), "\"added\":1,\"removed\":1"), "%s", buf_str(&out));
		expect_text("f", "new\n");
		close(fd[0]);
		json_free(args);
		buf_free(&out);
	}
}

Test(toolchild, list_dir_is_sorted_and_typed)
{
	static const char *const names[] = {"a", "b", "c", "d"};
	static const char *const types[] = {"file", "directory", "symlink", "fifo"};
	make("a", "12345", 5, 0644);
	cr_assert_eq(mkdir("b", 0755), 0);
	cr_assert_eq(symlink("/nowhere", "c"), 0);
	cr_assert_eq(mkfifo("d", 0644), 0);
	struct json *a = call("list_dir", "{\"path\":\".\"}");
	const struct json *entries = json_get(a, "entries");
	cr_assert_eq(json_len(entries), 4);
	for (size_t i = 0; i < 4; i++) {
		cr_expect_str_eq(json_get_str(json_at(entries, i), "name"), names[i]);
		cr_expect_str_eq(json_get_str(json_at(entries, i), "type"), types[i]);
	}
	cr_expect_eq(number(json_at(entries, 0), "size"), 5);
	cr_expect_str_eq(json_get_str(json_at(entries, 2), "target"), "/nowhere");
	json_free(a);
	a = call("list_dir", "{\"path\":\"a\"}");
	cr_expect_str_eq(error_of(a), "ENOTDIR");
	json_free(a);
}

Test(toolchild, list_dir_is_bounded_after_sorting)
{
	bool truncated = false;
	for (int i = TOOLCHILD_LIST_MAX + 49; i >= 0; i--) {
		char name[16];
		snprintf(name, sizeof(name), "f%04d", i);
		make(name, "", 0, 0644);
	}
	struct json *a = call("list_dir", "{\"path\":\".\"}");
	cr_expect_eq(json_len(json_get(a, "entries")), TOOLCHILD_LIST_MAX);
	cr_expect_str_eq(json_get_str(json_at(json_get(a, "entries"), 0), "name"), "f0000");
	cr_expect_eq(number(a, "total"), TOOLCHILD_LIST_MAX + 50);
	cr_expect(json_bool(json_get(a, "truncated"), &truncated) && truncated);
	json_free(a);
}

/* A hostile name is data in the answer, exact bytes beside it. */
Test(toolchild, odd_names_survive)
{
	make("x\n\033[2J\xff", "", 0, 0644);
	struct json *a = call("list_dir", "{\"path\":\".\"}");
	const struct json *e = json_at(json_get(a, "entries"), 0);
	cr_expect_str_eq(json_get_str(e, "name"), "x\n\033[2J\xc3\xbf");
	cr_expect_not_null(json_get_str(e, "name_b64"));
	json_free(a);
}

Test(toolchild, a_tilde_is_the_home_directory)
{
	make("f", "home\n", 5, 0644);
	cr_assert_eq(setenv("HOME", dir, 1), 0);
	struct json *a = call("read_file", "{\"path\":\"~/f\"}");
	cr_expect_str_eq(json_get_str(a, "content"), "home\n");
	cr_expect_str_eq(json_get_str(a, "path"), "~/f");
	json_free(a);
	a = call("read_file", "{\"path\":\"~nobody/f\"}");
	cr_expect_str_eq(error_of(a), "ENOENT");
	json_free(a);
}

Test(toolchild, an_unknown_tool_or_a_missing_argument_is_an_answer)
{
	struct json *a = call("run_shell", "{\"command\":\"ls\"}");
	cr_expect(strstr(error_of(a), "No such file tool"));
	json_free(a);
	a = call("write_file", "{\"path\":\"f\"}");
	cr_expect(strstr(error_of(a), "missing"));
	json_free(a);
}

/* The protocol: arguments on 3 to their end, the answer on 4, nothing on stdout and stderr. */
Test(toolchild, speaks_on_its_own_descriptors)
{
	make("f", "hello\n", 6, 0644);
	FILE *f = popen("exec 5>&1; printf '{\"path\":\"f\"}' | " WARDER
			" tool-child read_file 3<&0 4>&5 >out 2>&1",
			"r");
	char answer[4096] = "";
	cr_assert_not_null(f);
	size_t n = fread(answer, 1, sizeof(answer) - 1, f);
	cr_expect_eq(pclose(f), 0);
	cr_expect(n && strstr(answer, "\"content\":\"hello\\n\""), "%s", answer);
	struct stat st;
	cr_assert_eq(stat("out", &st), 0);
	cr_expect_eq(st.st_size, 0);
}
