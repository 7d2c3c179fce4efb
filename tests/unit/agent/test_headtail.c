#include "agent/headtail.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define WHOLE (HEADTAIL_HEAD_MAX + HEADTAIL_TAIL_MAX)

/* What came of `unit` repeated to n bytes, added in pieces. The caller frees it. */
static struct json *run(const char *unit, size_t n, size_t piece)
{
	struct headtail h = {0};
	struct buf in = {0}, out = {0};
	struct json *v = NULL;
	struct jsonw w;
	while (in.len < n)
		buf_add(&in, unit, strlen(unit));
	for (size_t at = 0; at < in.len; at += piece)
		headtail_add(&h, in.data + at, in.len - at < piece ? in.len - at : piece);
	cr_assert_leq(h.head.len + h.tail.len, HEADTAIL_HEAD_MAX + 2 * HEADTAIL_TAIL_MAX);
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	headtail_write(&w, &h);
	jsonw_end_object(&w);
	cr_assert_eq(json_parse(out.data, out.len, &v, NULL), 0);
	headtail_free(&h);
	buf_free(&in);
	buf_free(&out);
	return v;
}

Test(headtail, what_fits_comes_out_whole)
{
	static const size_t sizes[] = {0, 1, HEADTAIL_HEAD_MAX, HEADTAIL_HEAD_MAX + 1, WHOLE};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct json *v = run("x", sizes[i], 1000);
		cr_expect_eq(strlen(json_get_str(v, "output")), sizes[i]);
		cr_expect_null(json_get(v, "output_bytes"));
		json_free(v);
	}
}

/* However it came in: the same head, the same tail, the same number of bytes between. */
Test(headtail, the_middle_is_left_out_and_counted)
{
	static const size_t pieces[] = {1, 7, 4096, 40000, 300000};
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct json *v = run("0123456789", 300000, pieces[i]);
		const char *text = json_get_str(v, "output");
		int64_t total = 0;
		char words[64];
		snprintf(words, sizeof(words), "\n[... %u bytes left out ...]\n", 300000 - WHOLE);
		cr_expect(strstr(text, words), "pieces of %zu", pieces[i]);
		cr_expect_eq(strlen(text), WHOLE + strlen(words));
		cr_expect_not(strncmp(text, "0123456789", 10));
		cr_expect_str_eq(text + strlen(text) - 10, "0123456789");
		cr_expect(json_get_int(v, "output_bytes", &total) && total == 300000);
		json_free(v);
	}
}

/* Neither seam shows half a character (which would come out as Latin-1). */
Test(headtail, characters_are_not_cut_in_two)
{
	static const char *const starts[] = {"\xe2\x82\xac", "x\xf0\x9f\x99\x82", "\xc3\xa9z"};
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		struct json *v = run(starts[i], 100001, 333);
		const char *text = json_get_str(v, "output");
		size_t unit = strlen(starts[i]);
		const char *left = strstr(text, "\n[...");
		cr_assert_not_null(left);
		for (const char *p = text; p < left; p++)
			cr_assert((unsigned char)*p < 0x80 || strchr(starts[i], *p), "row %zu", i);
		for (const char *p = strstr(left, "...]\n") + 5; *p; p++)
			cr_assert((unsigned char)*p < 0x80 || strchr(starts[i], *p), "row %zu", i);
		cr_expect_not(strncmp(text, starts[i], unit));
		json_free(v);
	}
}
