#include "supervisor/prompt_paint.h"
#include "supervisor/promptkeys.h"

#include "supervisor/escape.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static char *argv_cat[] = {"cat", "notes file", "it's", NULL};
static char *argv_hostile[] = {"ev\x1b[31mil", "a\nwarder: allowed",
			       "\xe2\x80\xae"
			       "x",
			       NULL};

/* Scopes as a plan gives them: loans of the test, nothing is freed. */
static struct question reading(void)
{
	struct question q = {
		.id = 1,
		.pid = 4711,
		.exe = "/usr/bin/cat",
		.argv = argv_cat,
		.cwd = "/home/u/work",
		.call = "openat",
		.path = "/home/u/notes/a.txt",
		.access = ACCESS_READ,
		.exists = true,
	};
	q.scopes.len = 3;
	q.scopes.item[0] = (struct scope){SCOPE_EXACT, "/home/u/notes/a.txt",
					  NULL,	       ACCESS_READ,
					  0,	       false,
					  false,       .rule = "allow read ~/notes/a.txt exact"};
	q.scopes.item[1] =
		(struct scope){SCOPE_TREE, "/home/u/notes", NULL, ACCESS_R,
			       12,	   false,	    true, .rule = "allow r ~/notes"};
	q.scopes.item[2] = (struct scope){SCOPE_PRESET, "docs", NULL,  ACCESS_R,
					  20000,	true,	false, .rule = "use docs"};
	return q;
}

static char *painted(const struct question *q, const struct prompt_view *v)
{
	struct buf out = {0};
	prompt_paint(&out, q, v);
	char *text = buf_take(&out);
	cr_assert(text);
	return text;
}

/* Asked about often: whom the answer is for is said before it is given. */
Test(prompt, a_directory_asked_about_often)
{
	struct question q = reading();
	const struct prompt_view v = {.home = "/home/u", .width = 80};
	q.below = "/home/u/notes";
	char *text AUTOFREE = painted(&q, &v);
	cr_assert_not_null(strstr(text, "  and      ~/notes and below: asked about often"), "%s",
			   text);
}

Test(prompt, wide)
{
	const struct question q = reading();
	const struct prompt_view v = {.home = "/home/u", .width = 80};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert_str_eq(text,
			 "warder: cat asks to read\n"
			 "  program  /usr/bin/cat (pid 4711)\n"
			 "  command  cat 'notes file' 'it'\\''s'\n"
			 "  call     openat, exists\n"
			 "  path     ~/notes/a.txt\n"
			 "  > 1 this path only: read; opens no other file\n"
			 "    2 ~/notes and below: read, list; opens 12 other files, sensitive\n"
			 "    3 the preset docs: read, list; opens at least 20000 other files\n"
			 "  rule     allow read ~/notes/a.txt exact\n"
			 "  [y] once  [s] session  [a] always  [n] no  [N] never  [1-3] scope\n"
			 "  [d] details  [?] help\n");
}

Test(prompt, each_rule_of_two_paths_has_its_line)
{
	struct question q = reading();
	q.scopes.item[0].rule = "allow create ~/a exact\nallow create ~/b exact";
	const struct prompt_view v = {.home = "/home/u", .width = 80};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert(strstr(text, "  rule     allow create ~/a exact\n"
			       "           allow create ~/b exact\n"),
		  "%s", text);
}

/* As high as with its keys, where it is painted over; nothing of them is named. */
Test(prompt, early)
{
	const struct question q = reading();
	struct prompt_view v = {.home = "/home/u", .width = 80, .rows = 24, .early = true};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert(strstr(text, "exact\n  keys count once you pause typing\n\n"), "%s", text);
	cr_assert(!strstr(text, "[y]"));
	v.color = true;
	v.rows = 0;
	AUTOFREE
	char *scrolled = painted(&q, &v);
	cr_assert(strstr(scrolled, "  \x1b[2mkeys count once you pause typing\x1b[0m\n"));
	cr_assert(!strstr(scrolled, "\n\n"));
}

Test(prompt, narrow)
{
	struct question q = reading();
	q.sensitive = true;
	q.exists = false;
	q.access = ACCESS_WRITE | ACCESS_CREATE;
	const struct prompt_view v = {.width = 40, .scope = 1};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert_str_eq(text, "warder: cat asks to write, create\n"
			       "  program  /usr/bin/cat (pid 4711)\n"
			       "  command  cat 'notes file' 'it'\\''s'\n"
			       "  call     openat, does not exist yet\n"
			       "  path     /home/u/notes/a.txt\n"
			       "  sensitive: secrets or settings are\n"
			       "            kept here\n"
			       "    1 this path only: read; opens no\n"
			       "      other file\n"
			       "  > 2 /home/u/notes and below: read,\n"
			       "      list; opens 12 other files,\n"
			       "      sensitive\n"
			       "    3 the preset docs: read, list;\n"
			       "      opens at least 20000 other files\n"
			       "  rule     allow r ~/notes\n"
			       "  once     this path only; what is\n"
			       "           marked is for session and\n"
			       "           always\n"
			       "  [y] once  [s] session  [a] always\n"
			       "  [n] no  [N] never  [1-3] scope\n"
			       "  [d] details  [?] help\n");
}

/* What a yes for once opens is said where the mark stands on more. */
Test(prompt, once_is_not_what_is_marked)
{
	static const char only[] =
		"  once     this path only; what is marked is for session and always\n";
	struct question q = reading();
	struct prompt_view v = {.home = "/home/u"};
	for (v.scope = 0; v.scope < 3; v.scope++) {
		AUTOFREE
		char *text = painted(&q, &v);
		cr_expect_eq(strstr(text, only) != NULL, v.scope > 0, "%u: %s", v.scope, text);
	}
	q.no_saving = true;
	v.scope = 1;
	AUTOFREE
	char *unsaved = painted(&q, &v);
	cr_expect(strstr(unsaved, "what is marked is for session\n"), "%s", unsaved);
	/* Asked about often: there once is for the directory, and no wider. */
	q.below = "/home/u/notes";
	q.marked = 1;
	AUTOFREE
	char *often = painted(&q, &v);
	cr_expect(!strstr(often, "  once "), "%s", often);
	v.scope = 2;
	AUTOFREE
	char *wider = painted(&q, &v);
	cr_expect(strstr(wider, "  once     ~/notes and below; what is marked"), "%s", wider);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* However low the screen is: head and keys are on each page, and every line is on one of them. */
Test(prompt, what_does_not_fit_has_pages)
{
	const struct question q = reading();
	struct prompt_view v = {.help = true};
	struct buf whole = {0};
	cr_assert_eq(prompt_paint(&whole, &q, &v), 1);
	for (v.rows = 6; v.rows < 40; v.rows++) {
		size_t pages = 1;
		for (v.page = 0; v.page < pages; v.page++) {
			struct buf out = {0};
			pages = prompt_paint(&out, &q, &v);
			cr_expect_lt(count_lines(buf_str(&out)), v.rows, "%zu rows", v.rows);
			cr_expect(strstr(buf_str(&out), "warder: cat asks to read\n"));
			cr_expect(strstr(buf_str(&out), "[y] once"));
			bool last = v.page + 1 == pages;
			cr_expect_eq(strstr(buf_str(&out), "this help\n") != NULL, last,
				     "%zu rows: %s", v.rows, buf_str(&out));
			buf_free(&out);
		}
		cr_expect_eq(pages == 1, v.rows > count_lines(buf_str(&whole)), "%zu", v.rows);
	}
	buf_free(&whole);
}

/* A small pane: who, what and which path are on it, on whichever page, and the keys for an answer.
 */
Test(prompt, a_small_pane_keeps_what_it_is_about)
{
	struct question q = reading();
	struct prompt_view v = {.home = "/home/u", .width = 30};
	q.sensitive = true;
	q.path2 = "/home/u/a directory with a long name/and below it another/b.txt";
	for (v.rows = 6; v.rows < 24; v.rows++) {
		for (int more = 0; more < 4; more++) {
			size_t pages = 1;
			v.details = more == 1;
			v.help = more == 2;
			v.group = more == 3;
			for (v.page = 0; v.page < pages; v.page++) {
				struct buf out = {0};
				pages = prompt_paint(&out, &q, &v);
				const char *text = buf_str(&out);
				cr_expect_lt(count_lines(text), v.rows, "%zu rows: %s", v.rows,
					     text);
				cr_expect(strstr(text, "warder: cat asks to read\n"));
				cr_expect(v.page || strstr(text, "~/notes/a.txt\n"), "%s", text);
				cr_expect(v.rows > 10 || (strstr(text, "  ~/notes/a.txt\n") &&
							  strstr(text, "/b.txt\n")),
					  "%zu rows: %s", v.rows, text);
				cr_expect(strstr(text, "[y] once"));
				for (const char *line = text; *line; line++) {
					size_t n = strcspn(line, "\n");
					AUTOFREE
					char *one = strndup(line, n);
					cr_expect_lt(escape_width(one), 30, "%s", one);
					line += n;
				}
				buf_free(&out);
			}
		}
	}
}

/* The first page has to do for an answer. */
Test(prompt, the_first_page_says_what_it_is_about)
{
	struct question q = reading();
	q.sensitive = true;
	const struct prompt_view v = {.home = "/home/u", .rows = 10, .width = 60};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_expect(strstr(text, "\n  path     ~/notes/a.txt\n"), "%s", text);
	cr_expect(strstr(text, "\n  sensitive: "), "%s", text);
	cr_expect(strstr(text, "\n  > 1 this path only: read;"), "%s", text);
	cr_expect(strstr(text, "\n  page 1 of 3: "), "%s", text);
	cr_expect(!strstr(text, "  program "), "%s", text);
}

Test(prompt, why_it_is_asked)
{
	struct question q = reading();
	q.note = (char *)"its new place would open it to exec\x1b";
	const struct prompt_view v = {.width = 40};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert_not_null(strstr(text, "  because  its new place would open it\n"
					"           to exec\\e\n"),
			   "%s", text);
}

Test(prompt, several_wait)
{
	struct question q = reading(), other = reading();
	other.path = "/home/u/b";
	struct prompt_view v = {.home = "/home/u", .waiting = 4, .others = {&other}};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert(strstr(text, "warder: cat asks to read  (4 questions wait)\n"), "%s", text);
	cr_assert(strstr(text, "  waiting  cat: read ~/b\n"), "%s", text);
	cr_assert(strstr(text, "           and 2 more questions\n"), "%s", text);
	cr_assert(strstr(text, "[A] all of them"), "%s", text);
	cr_assert(!strstr(text, "goes to all;"));
	v.group = true;
	AUTOFREE
	char *group = painted(&q, &v);
	cr_assert(strstr(group, "goes to all; the others get their narrowest scope"), "%s", group);
}

Test(prompt, what_can_not_be_saved_is_not_offered)
{
	struct question q = reading();
	q.no_saving = true;
	const struct prompt_view v = {0};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert(!strstr(text, "always") && !strstr(text, "never"), "%s", text);
	cr_assert(strstr(text, "[1-3] scope"));
}

Test(prompt, rerun)
{
	const struct question q = {.exe = "/usr/bin/make",
				   .is_rerun = true,
				   .text = "wrote ./a\nremoved ./b\x1b[2J\n"};
	const struct prompt_view v = {0};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert_str_eq(text, "warder: make: run it again?\n"
			       "  program  /usr/bin/make\n"
			       "  wrote ./a\n"
			       "  removed ./b\\e[2J\n"
			       "  [y] yes  [n] no  [d] details  [?] help\n");
}

/* Every line fits, and no byte of it moves a terminal. */
static void assert_harmless(const char *text, size_t width)
{
	AUTOFREE
	char *copy = strdup(text);
	char *rest = copy, *line;
	while ((line = strsep(&rest, "\n"))) {
		struct buf again = {0};
		escape_add_str(&again, line);
		cr_assert_str_eq(buf_str(&again), line, "not escaped");
		cr_assert_lt(escape_width(line), width, "too wide: %s", line);
		buf_free(&again);
	}
}

static char *hostile_names[] = {
	"/tmp/\x1b]0;title\a\x1b[2J",
	"/tmp/a\nwarder: allowed once: read /",
	"/tmp/\xe2\x80\xae"
	"cod.exe",
	"/tmp/\xff\xfe\x80",
	"/tmp/\xe2\x80\x8b\xe2\x81\xa6zero",
	"/tmp/\r\r\b\b\b\x7f\x9b"
	"31m",
	"/tmp/\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97"
	"\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97",
	"",
};

Test(prompt, hostile_names_are_shown_escaped)
{
	static const size_t widths[] = {1, 24, 33, 40, 80, 200};
	for (size_t i = 0; i < ARRAY_LEN(hostile_names) * ARRAY_LEN(widths) * 2; i++) {
		char *name = hostile_names[i / 2 / ARRAY_LEN(widths)];
		size_t width = widths[i / 2 % ARRAY_LEN(widths)];
		struct question q = reading();
		q.path = q.path2 = q.given = q.exe = q.cwd = name;
		q.argv = argv_hostile;
		for (size_t k = 0; k < q.scopes.len; k++)
			q.scopes.item[k].path = name;
		const struct unwind_stack stack = {
			.len = 2, .end = UNWIND_LOST, .frame = {{1, name, 1, name, 1, true}}};
		const struct prompt_view v = {.width = width,
					      .details = i % 2,
					      .stack = &stack,
					      .help = true,
					      .waiting = 3,
					      .others = {&q, &q}};
		AUTOFREE
		char *text = painted(&q, &v);
		assert_harmless(text, width <= 24 ? 25 : width);
		struct buf record = {0};
		const struct answer yes = {.allow = true, .scope = 1};
		prompt_paint_record(&record, &q, &yes, &v);
		prompt_paint_late(&record, &q, &v);
		assert_harmless(buf_str(&record), width <= 24 ? 25 : width);
		buf_free(&record);
	}
}

static char *long_path(void)
{
	char *path = calloc(1, 4097);
	for (size_t i = 0; i < 4000; i += 10)
		snprintf(path + i, 11, "/dir%06zu", i / 10);
	memcpy(path + 3992, "/the-end", 9);
	return path;
}

Test(prompt, a_long_path_keeps_its_end)
{
	AUTOFREE
	char *path = long_path();
	struct question q = reading();
	q.path = path;
	struct prompt_view v = {.width = 80};
	AUTOFREE
	char *text = painted(&q, &v);
	cr_assert(strstr(text, "/dir000000/dir000001"), "%s", text);
	cr_assert(strstr(text, "\xe2\x80\xa6"), "the cut is seen");
	cr_assert(strstr(text, "/the-end\n"), "%s", text);
	cr_assert_lt(strlen(text), 1400);
	assert_harmless(text, 80);
	/* Details: every component is there. */
	v.details = true;
	AUTOFREE
	char *whole = painted(&q, &v);
	struct buf joined = {0};
	for (const char *c = strstr(whole, "path     ") + 9; *c; c++)
		if (*c != '\n' && *c != ' ')
			buf_add_char(&joined, *c);
	cr_assert(!strncmp(buf_str(&joined), path, strlen(path)));
	buf_free(&joined);
}

Test(prompt, details_tell_who_made_the_call)
{
	const struct question q = reading();
	struct unwind_stack stack = {.len = UNWIND_FRAMES_MAX, .end = UNWIND_MORE};
	for (size_t i = 0; i < UNWIND_FRAMES_MAX; i++)
		stack.frame[i] = (struct unwind_frame){.ip = 0x7000 + i,
						       .function = i ? NULL : "fopen",
						       .function_offset = 0x1a,
						       .object = "/usr/lib/libc.so.6",
						       .object_offset = 0x7f3e2 + i};
	stack.frame[1] = (struct unwind_frame){.function = "read_config",
					       .function_offset = 0x4c,
					       .object = "/usr/bin/x",
					       .object_offset = 0x1234};
	stack.frame[2] = (struct unwind_frame){.ip = 0xabc};
	struct prompt_view v = {.width = 80, .stack = &stack};
	AUTOFREE
	char *closed = painted(&q, &v);
	cr_assert(!strstr(closed, "fopen"), "%s", closed);
	v.details = true;
	AUTOFREE
	char *open = painted(&q, &v);
	cr_assert(strstr(open, "\n  from     fopen+0x1a (libc.so.6+0x7f3e2)\n"
			       "           \xe2\x86\x90 read_config+0x4c (/usr/bin/x+0x1234)\n"
			       "           \xe2\x86\x90 0xabc (code of no file)\n"),
		  "%s", open);
	/* No more than fit beside the rest, and that there are more. */
	cr_assert(strstr(open, "(libc.so.6+0x7f3ed)\n           \xe2\x86\x90 and further\n"), "%s",
		  open);
	cr_assert(!strstr(open, "+0x7f3ee"), "%s", open);
	stack.len = 1;
	stack.end = UNWIND_COMPLETE;
	AUTOFREE
	char *one = painted(&q, &v);
	cr_assert(!strstr(one, "\xe2\x86\x90"), "%s", one);
}

Test(prompt, colour_only_where_asked_for)
{
	const struct question q = reading();
	const struct prompt_view plain = {0}, colour = {.color = true};
	AUTOFREE
	char *a = painted(&q, &plain);
	AUTOFREE
	char *b = painted(&q, &colour);
	cr_assert(!strchr(a, '\x1b'));
	cr_assert(strstr(b, "\x1b[1mwarder:\x1b[0m"));
}

static const struct {
	struct answer a;
	const char *line;
} records[] = {
	{{.allow = true}, "warder: allowed once: read ~/notes/a.txt (cat)\n"},
	/* Once is never more than the path: the line claims no more. */
	{{.allow = true, .scope = 1}, "warder: allowed once: read, list ~/notes/a.txt (cat)\n"},
	{{.allow = true, .scope = 2}, "warder: allowed once: read, list ~/notes/a.txt (cat)\n"},
	{{.allow = true, .scope = 1, .lifetime = LIFETIME_SESSION},
	 "warder: allowed for the session: read, list ~/notes and below (cat)\n"},
	{{.allow = true, .scope = 2, .lifetime = LIFETIME_ALWAYS},
	 "warder: allowed always: read, list preset docs (cat)\n"},
	{{.lifetime = LIFETIME_SESSION}, "warder: refused: read ~/notes/a.txt (cat)\n"},
	{{.lifetime = LIFETIME_ALWAYS}, "warder: refused always: read ~/notes/a.txt (cat)\n"},
};

Test(prompt, what_stays)
{
	const struct question q = reading();
	const struct prompt_view v = {.home = "/home/u"};
	for (size_t i = 0; i < ARRAY_LEN(records); i++) {
		struct buf out = {0};
		prompt_paint_record(&out, &q, &records[i].a, &v);
		cr_assert_str_eq(buf_str(&out), records[i].line);
		buf_free(&out);
	}
	struct buf late = {0};
	prompt_paint_late(&late, &q, &v);
	cr_assert_str_eq(buf_str(&late),
			 "warder: no answer in time, refused: read ~/notes/a.txt (cat)\n");
	buf_free(&late);
}

static const struct {
	char key;
	enum prompt_action action;
} keys[] = {
	{'y', PROMPT_ONCE},	    {'o', PROMPT_ONCE},	     {'s', PROMPT_SESSION},
	{'a', PROMPT_ALWAYS},	    {'n', PROMPT_NO},	     {'\r', PROMPT_NO},
	{'\n', PROMPT_NO},	    {'\x04', PROMPT_NO},     {'N', PROMPT_NEVER},
	{'v', PROMPT_NEVER},	    {'A', PROMPT_GROUP},     {'1', PROMPT_SCOPE},
	{'9', PROMPT_SCOPE},	    {'d', PROMPT_DETAILS},   {'?', PROMPT_HELP},
	{'\x03', PROMPT_INTERRUPT}, {' ', PROMPT_PAGE_DOWN}, {'b', PROMPT_PAGE_UP},
};

static const char *const helps[] = {
#define PROMPT_ROW(keys, words) " " keys " ",
#include "supervisor/prompt_help.def"
#undef PROMPT_ROW
};

/* The help, and the README by it, leaves no key out. */
Test(prompt, every_key_is_in_the_help)
{
	for (int c = 1; c < 256; c++) {
		char name[] = {' ', (char)c, ' ', 0};
		const char *called = c == '\r' || c == '\n' ? " Enter "
				     : c == ' '		    ? " Space "
				     : c == '\x04'	    ? " Ctrl-D "
				     : c == '\x03'	    ? " Ctrl-C "
				     : c >= '1' && c <= '9' ? " 1-9 "
							    : name;
		size_t rows = 0;
		for (size_t i = 0; i < ARRAY_LEN(helps); i++)
			rows += strstr(helps[i], called) != NULL;
		if (promptkeys_action((char)c) != PROMPT_NOTHING)
			cr_expect_eq(rows, 1, "key %d", c);
	}
}

/* Any byte that is no key of the table does nothing: 'Y' and 'S' are no yes. */
Test(prompt, keys)
{
	int known = 0;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		cr_assert_eq(promptkeys_action(keys[i].key), keys[i].action, "key %d", keys[i].key);
	for (int c = 0; c < 256; c++)
		known += promptkeys_action((char)c) != PROMPT_NOTHING;
	cr_assert_eq(known, 27, "%d: the table above and 1-9, j, k", known);
	cr_assert_eq(promptkeys_action('Y'), PROMPT_NOTHING);
	cr_assert_eq(promptkeys_action('\x1b'), PROMPT_NOTHING);
}
