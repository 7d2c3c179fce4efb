#include "agent/show.h"

#include <criterion/criterion.h>
#include <string.h>

/* Whatever the pieces are, the whole comes out the same. */
Test(show, characters_cut_in_pieces_come_out_whole)
{
	static const char text[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82z\n";
	for (size_t piece = 1; piece < sizeof(text); piece++) {
		struct show s = {0};
		struct buf out = {0};
		for (size_t at = 0; at < sizeof(text) - 1; at += piece) {
			size_t left = sizeof(text) - 1 - at;
			show_escaped(&s, text + at, left < piece ? left : piece, &out);
		}
		show_end(&s, true, &out);
		cr_expect_str_eq(buf_str(&out), text, "pieces of %zu", piece);
		cr_expect_not(s.mid_line);
		buf_free(&out);
	}
}

Test(show, half_a_character_at_the_end_is_shown_escaped)
{
	struct show s = {0};
	struct buf out = {0};
	show_escaped(&s, "x\xe2\x82", 3, &out);
	cr_expect_str_eq(buf_str(&out), "x");
	show_end(&s, true, &out);
	cr_expect_str_eq(buf_str(&out), "x\\xE2\\x82");
	buf_free(&out);
}

Test(show, what_is_no_character_is_not_held_back)
{
	struct show s = {0};
	struct buf out = {0};
	show_whole(&s, "\x80\xff", 2, &out);
	cr_expect_eq(out.len, 2);
	show_whole(&s, "\xc3", 1, &out);
	cr_expect_eq(out.len, 2);
	show_whole(&s, "(", 1, &out);
	cr_expect_eq(out.len, 4);
	buf_free(&out);
}

Test(show, newlines_and_tabs_stay_and_escapes_do_not)
{
	struct buf out = {0};
	const char text[] = "a\tb\r\nc\033[2Jd\xe2\x80\xae"
			    "e\r\x07";
	show_text(&out, text, sizeof(text) - 1);
	cr_expect(strstr(buf_str(&out), "a\tb\nc"));
	cr_expect_not(strchr(buf_str(&out), '\033'));
	cr_expect_not(strchr(buf_str(&out), '\r'));
	cr_expect_not(strchr(buf_str(&out), '\a'));
	cr_expect_not(strstr(buf_str(&out), "\xe2\x80\xae"));
	buf_free(&out);
}
