#include "supervisor/prose.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static char *hung(const char *text, size_t width)
{
	struct buf out = {0};
	prose_hang(&out, text, width);
	char *made = buf_take(&out);
	cr_assert(made);
	return made;
}

Test(prose, a_line_goes_on_under_its_words)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"short\n", "short\n"},
		{"no newline", "no newline\n"},
		{"\n\n", "\n\n"},
		{"warder: the server failed: try again",
		 "warder: the server\n        failed: try\n        again\n"},
		{"  /why  which rule decides\n  /x  y\n",
		 "  /why  which rule\n        decides\n  /x  y\n"},
		{"  plain words only, indented\n", "  plain words only,\n  indented\n"},
		{"a label too far right  then words\n", "a label too far\nright  then words\n"},
		{"abcdefghijklmnopqrstuvwxyz\n", "abcdefghijklmnopqrst\nuvwxyz\n"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTOFREE
		char *made = hung(rows[i].text, 20);
		cr_expect_str_eq(made, rows[i].want);
	}
}

/* No width, however small, loses a word or never ends. */
Test(prose, any_width)
{
	for (size_t width = 1; width < 40; width++) {
		AUTOFREE
		char *made = hung("warder: \xe6\xbc\xa2\xe5\xad\x97 of a narrow terminal\n", width);
		size_t letters = 0;
		for (const char *c = made; *c; c++)
			letters += *c != ' ' && *c != '\n';
		cr_expect_eq(letters, strlen("warder:......ofanarrowterminal"), "%zu: %s", width,
			     made);
	}
}
