#include "supervisor/escape.h"

#include "tracer/json.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct row {
	const char *in;
	const char *out;
	size_t width;
} rows[] = {
	{"", "", 0},
	{"plain name", "plain name", 10},
	{"back\\slash \"quote\"", "back\\slash \"quote\"", 18},
	{"\x1b[2J\x1b]0;x\a", "\\e[2J\\e]0;x\\x07", 15},
	{"a\nb\rc\td", "a\\nb\\rc\\td", 10},
	{"\x7f\xc2\x9b"
	 "31m",
	 "\\x7F\\u{9B}31m", 13},
	{"\xe2\x80\xae"
	 "txt.exe",
	 "\\u{202E}txt.exe", 15},
	{"\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "\\u{2066}\\u{2069}\\u{61C}", 23},
	{"a\xe2\x80\x8b\xef\xbb\xbf\xe2\x80\xa8", "a\\u{200B}\\u{FEFF}\\u{2028}", 25},
	{"\xf3\xa0\x81\x81", "\\u{E0041}", 9},
	{"\xff\xfe"
	 "a\xc3",
	 "\\xFF\\xFEa\\xC3", 13},
	{"\xed\xa0\x80", "\\xED\\xA0\\x80", 12},
	{"\xc0\xaf", "\\xC0\\xAF", 8},
	{"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80", 16},
	{"é日本", "é日本", 5},
	{"e\xcc\x81", "e\xcc\x81", 1},
	{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", 2},
};

Test(escape, table, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = {0};
		escape_add_str(&b, rows[i].in);
		cr_expect_str_eq(buf_str(&b), rows[i].out, "row %zu: %s", i, buf_str(&b));
		cr_expect_eq(escape_width(rows[i].in), rows[i].width, "row %zu: %zu", i,
			     escape_width(rows[i].in));
		buf_free(&b);
	}
}

/* Bytes behind a NUL count too, and nothing is appended for no string. */
Test(escape, nul_and_null, .timeout = 10)
{
	struct buf b = {0};
	escape_add(&b, "a\0b", 3);
	escape_add_str(&b, NULL);
	escape_add_fit(&b, NULL, 3);
	cr_expect_str_eq(buf_str(&b), "a\\x00b");
	cr_expect_eq(escape_width(NULL), 0);
	buf_free(&b);
}

/* No byte of one, two or three puts a control byte or broken UTF-8 out. */
Test(escape, nothing_gets_through, .timeout = 60)
{
	for (uint32_t v = 0; v < 1u << 24; v += 7) {
		char in[3] = {(char)v, (char)(v >> 8), (char)(v >> 16)};
		char room[64];
		struct buf b = {0};
		escape_add(&b, in, sizeof(in));
		const char *out = buf_str(&b);
		cr_assert_lt(b.len, sizeof(room));
		for (size_t i = 0, len; i < b.len; i += len) {
			unsigned char c = (unsigned char)out[i];
			len = json_utf8_len(out + i, b.len - i);
			cr_assert(len, "input %06x", v);
			cr_assert(c >= 0x20 && c != 0x7f, "input %06x", v);
			cr_assert(c != 0xc2 || (unsigned char)out[i + 1] >= 0xa0, "input %06x", v);
		}
		buf_free(&b);
	}
}

static const struct fit {
	const char *in;
	size_t width;
	const char *out;
} fits[] = {
	{"abcdef", 6, "abcdef"},
	{"abcdefg", 6, "abc…fg"},
	{"abcdefg", 1, "…"},
	{"abcdefg", 2, "a…"},
	{"abcdefg", 0, ""},
	{"日本語日本語", 6, "日…語"},
	{"\x1b"
	 "abcdefgh",
	 5, "\\e…gh"},
	{"\xe2\x80\xae"
	 "abcdefgh",
	 5, "…gh"},
	{"abcdef\x1b", 4, "ab…"},
	{"e\xcc\x81"
	 "bcdefe\xcc\x81",
	 3, "e\xcc\x81…e\xcc\x81"},
};

Test(escape, fit, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(fits); i++) {
		struct buf b = {0};
		escape_add_fit(&b, fits[i].in, fits[i].width);
		cr_expect_str_eq(buf_str(&b), fits[i].out, "row %zu: %s", i, buf_str(&b));
		buf_free(&b);
	}
}

/* The cut never exceeds the width, whatever the width and the text. */
Test(escape, fit_is_within, .timeout = 10)
{
	static const char text[] =
		"/home/日本語/e\xcc\x81\x1b[0m\xff/\xf0\x9f\x98\x80/\xe2\x80\xae/x";
	for (size_t width = 0; width < 80; width++) {
		struct buf b = {0};
		escape_add_fit(&b, text, width);
		cr_expect_leq(escape_width(buf_str(&b)), width, "width %zu: %s", width,
			      buf_str(&b));
		buf_free(&b);
	}
}

/* The line shows no hidden character, and reads back as the same text. */
Test(escape, json, .timeout = 10)
{
	static const char text[] = "a\xe2\x80\xae"
				   "b\xc2\x9b"
				   "c日\xf3\xa0\x81\x81\xef\xbb\xbf";
	struct buf line = {0}, safe = {0};
	struct jsonw w;
	jsonw_init(&w, &line);
	jsonw_str(&w, text);
	escape_add_json(&safe, buf_str(&line), line.len);
	cr_expect_str_eq(buf_str(&safe), "\"a\\u202eb\\u009bc日\\udb40\\udc41\\ufeff\"", "%s",
			 buf_str(&safe));
	struct json *root = NULL;
	cr_assert_eq(json_parse(buf_str(&safe), safe.len, &root, NULL), 0);
	cr_expect_str_eq(json_str(root), text);
	json_free(root);
	buf_free(&line);
	buf_free(&safe);
}
