#include "supervisor/screen.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct {
	const char *name;
	const char *fed;
	const char *leave; /* bytes before a question */
	const char *back;  /* and after it */
	bool repaint;
} rows[] = {
	{"nothing", "", "", "", false},
	{"whole line", "hello\r\n", "", "", false},
	{"half a line", "a\r\nname: ", "\r\n", "name: ", false},
	{"progress", "10%\r20%", "\r\n", "10%\r20%", false},
	{"bell and NUL leave nothing", "a\r\n\a", "", "", false},
	{"colour over lines", "\x1b[1;31mred\r\nstill", "\x1b[0m\r\n", "\x1b[1;31mstill", false},
	{"colour ended", "\x1b[31mred\x1b[0m\r\n", "", "", false},
	{"colour ended short", "\x1b[31mred\x1b[m\r\n", "", "", false},
	{"colour replaced", "\x1b[31m\x1b[0;32mx", "\x1b[0m\r\n", "\x1b[31m\x1b[0;32mx", false},
	{"erase to the end of line", "ab\x1b[K", "\r\n", "ab\x1b[K", false},
	{"cursor moved", "ab\x1b[5;5H", "\r\n", "", true},
	{"moved, then a new line", "ab\x1b[5;5Hx\r\n", "", "", false},
	{"bare line feed", "ab\n", "\r\n", "", true},
	{"alternate", "\x1b[?1049h",
	 "\x1b[?1049l\x1b"
	 "7\x1b[r\x1b"
	 "8\r\n",
	 "\x1b[?1049h", true},
	{"alternate and back", "\x1b[?1049hxx\x1b[?1049l\r\n", "", "", false},
	{"old alternate", "\x1b[?47h",
	 "\x1b[?47l\x1b"
	 "7\x1b[r\x1b"
	 "8\r\n",
	 "\x1b[?47h", true},
	{"hidden cursor, mouse", "\x1b[?25l\x1b[?1000;1006h", "\x1b[?25h\x1b[?1000l\x1b[?1006l",
	 "\x1b[?25l\x1b[?1000h\x1b[?1006h", false},
	{"mode set and unset", "\x1b[?2004h\x1b[?2004l", "", "", false},
	{"unknown mode", "\x1b[?4242h\x1b[?99999999999h", "", "", false},
	{"keypad", "\x1b=", "\x1b>", "\x1b=", false},
	{"line drawing", "\x1b(0lq", "\x1b(B\r\n", "\x1b(0lq", false},
	{"line drawing ended", "\x1b(0lq\x1b(B\r\n", "", "", false},
	{"modifyOtherKeys", "\x1b[>4;2m", "\x1b[>4;0m", "\x1b[>4;2m", false},
	{"kitty keys", "\x1b[>1u", "\x1b[>0u", "\x1b[<u", false},
	{"kitty keys ended", "\x1b[>1u\x1b[<u", "", "", false},
	{"title", "\x1b]0;t\a", "", "", false},
	{"title by ST", "\x1b]0;t\x1b\\", "", "", false},
	{"inside a sequence", "ab\x1b[3", "\x18\r\n", "ab\x1b[3", false},
	{"inside a title", "\x1b]0;abc", "\x18", "\x1b]0;abc", false},
	{"cancelled sequence", "\x1b[3\x18", "", "", false},
	{"a query", "\x1b[?6n\x1b[>c", "", "", false},
	{"full reset",
	 "\x1b[?1049h\x1b[?25l\x1b[1mx\x1b"
	 "c",
	 "", "", false},
	{"zero byte after ESC", "\x1b", "\x18", "\x1b", false},
};

Test(screen, leave_and_return)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* Whole, and in pieces of one byte: the same. */
		for (int pieces = 0; pieces < 2; pieces++) {
			struct screen s = {0};
			struct buf leave = {0}, back = {0};
			size_t n = strlen(rows[i].fed);
			if (!pieces)
				screen_feed(&s, rows[i].fed, n);
			for (size_t k = 0; pieces && k < n; k++)
				screen_feed(&s, rows[i].fed + k, 1);
			screen_leave(&s, &leave);
			screen_return(&s, &back);
			cr_assert_str_eq(buf_str(&leave), rows[i].leave, "%s", rows[i].name);
			cr_assert_str_eq(buf_str(&back), rows[i].back, "%s", rows[i].name);
			cr_assert_eq(screen_needs_repaint(&s), rows[i].repaint, "%s", rows[i].name);
			buf_free(&leave);
			buf_free(&back);
			screen_release(&s);
		}
	}
}

/* What goes back must bring the screen's own state to the same place: feed it and compare. */
Test(screen, returning_is_idempotent)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct screen s = {0}, again = {0};
		struct buf back = {0}, twice = {0};
		screen_feed(&s, rows[i].fed, strlen(rows[i].fed));
		if (s.kitty || s.line_lost) {
			screen_release(&s);
			continue;
		}
		screen_return(&s, &back);
		screen_feed(&again, buf_str(&back), back.len);
		screen_return(&again, &twice);
		cr_assert_str_eq(buf_str(&twice), buf_str(&back), "%s", rows[i].name);
		buf_free(&back);
		buf_free(&twice);
		screen_release(&s);
		screen_release(&again);
	}
}

Test(screen, memory_is_bounded)
{
	struct screen s = {0};
	for (int i = 0; i < 1000000; i++)
		screen_feed(&s, "x", 1);
	cr_assert_leq(s.line.len, SCREEN_LINE_MAX);
	screen_feed(&s, "\x1b]0;", 4);
	for (int i = 0; i < 1000000; i++)
		screen_feed(&s, "\x1b[", 1);
	cr_assert_leq(s.pending.len, SCREEN_PENDING_MAX);
	screen_feed(&s, "\a", 1);
	for (int i = 0; i < 10000; i++)
		screen_feed(&s, "\x1b[38;5;1m", 9);
	cr_assert_leq(s.sgr.len, SCREEN_SGR_MAX);
	screen_release(&s);
}

Test(screen, a_long_progress_line_is_kept)
{
	struct screen s = {0};
	struct buf back = {0};
	screen_feed(&s, "\r\n", 2);
	for (int i = 0; i < 10000; i++)
		screen_feed(&s, "\r[####      ] 40%", 17);
	screen_return(&s, &back);
	cr_assert_not(screen_needs_repaint(&s));
	cr_assert_str_eq(buf_str(&back) + back.len - 17, "\r[####      ] 40%");
	buf_free(&back);
	screen_release(&s);
}

/* Any bytes at all: no crash, no growth (run under the sanitizers as well). */
Test(screen, any_bytes)
{
	struct screen s = {0};
	unsigned x = 12345;
	for (int i = 0; i < 2000000; i++) {
		static const char often[] = "\x1b[?;0149hlmH\r\n(B)=>cu]\\\a\x18x";
		x = x * 1103515245 + 12345;
		char c = x >> 28 ? often[(x >> 16) % (sizeof(often) - 1)] : (char)(x >> 16);
		screen_feed(&s, &c, 1);
	}
	struct buf out = {0};
	screen_leave(&s, &out);
	screen_return(&s, &out);
	cr_assert_lt(out.len, 16384);
	buf_free(&out);
	screen_release(&s);
}
