/* Markdown on its way to a terminal: what a reader sees, at which width, and when. */
#include "agent/mdstream.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct row {
	size_t width;
	const char *text, *shown;
} rows[] = {
	{40, "One *two* **three** `four`.\n", "One two three `four`.\n"},
	{40, "a\nb\n\nc\n", "a b\n\nc\n"},
	{20, "one two three four five six\n", "one two three four\nfive six\n"},
	{40, "# Title\ntext\n## Second ##\n", "# Title\ntext\n## Second\n"},
	{40, "- a\n- b\n  - c\n- d\n", "- a\n- b\n  - c\n- d\n"},
	{40, "1. one\n2. two\n\n   more of two\n3. three\n",
	 "1. one\n2. two\n\n   more of two\n3. three\n"},
	{20, "- one two three four five\n", "- one two three four\n  five\n"},
	{40, "- [ ] open\n- [x] done\n", "- [ ] open\n- [x] done\n"},
	{40, "See:\n- a\n- b\n", "See:\n- a\n- b\n"},
	{40, "> quoted\n> more\n", "│ quoted more\n"},
	{40, "```c\nint x;\n\n\treturn;\n```\nafter\n",
	 "    int x;\n\n            return;\nafter\n"},
	{40, "text\n\n~~~\n```\n~~~\n", "text\n\n    ```\n"},
	{40, "- a\n\n  ```\n  code\n\n  more\n  ```\n- b\n",
	 "- a\n\n      code\n      \n      more\n- b\n"},
	{40, "[docs](https://x.org/a) and <https://y.org>\n",
	 "docs (https://x.org/a) and https://y.org\n"},
	{40, "![alt](pic.png)\n", "[image: alt] (pic.png)\n"},
	{40, "| a | bb |\n|---|---:|\n| 1 | 2 |\n| long | 3 |\n",
	 "a     bb\n----  --\n1      2\nlong   3\n"},
	{24, "| name | text |\n|---|---|\n| x | one two three four five |\n",
	 "name  text\n----  ------------------\nx     one two three four\n      five\n"},
	{40, "a\n\n---\n\nb\n", "a\n\n----------------------------------------\n\nb\n"},
	{40, "x &amp; y &lt;z&gt; &unknown;\n", "x & y <z> &unknown;\n"},
	{40, "<b>no html</b>\n", "<b>no html</b>\n"},
	{40, "hard  \nbreak\n", "hard\nbreak\n"},
	{40, "~~gone~~\n", "gone\n"},
	/* Wide characters count twice, and a line may break between them. */
	{12, "漢字漢字漢字漢字\n", "漢字漢字漢字\n漢字\n"},
	{12, "ab 漢字 cd 漢字\n", "ab 漢字 cd\n漢字\n"},
	/* A combining mark stays with its letter. */
	{10, "aaaaaaaaae\u0301bbb\n", "aaaaaaaaae\u0301\nbbb\n"},
	{10, "abcdefghijklmnop\n", "abcdefghij\nklmnop\n"},
	/* Foreign words never move the terminal. */
	{40, "a\033[2Jb `c\033]0;x\007` \u202e\n", "a\\e[2Jb `c\\e]0;x\\x07` \\u{202E}\n"},
	{40, "```\n\033[31mred\n```\n", "    \\e[31mred\n"},
	{40, "[a](http://x/\033[1m)\n", "[a](http://x/\\e[1m)\n"},
	{40, "no newline at the end", "no newline at the end\n"},
	{40, "```\nnever closed", "    never closed\n"},
	{40, "-\n", "- \n"},
	{40, "", ""},
};

static char *show(const char *text, size_t width, bool color, size_t piece)
{
	const struct mdrender r = {.width = width, .color = color};
	struct mdstream s = {0};
	struct buf out = {0};
	size_t n = strlen(text);
	for (size_t at = 0; at < n; at += piece)
		mdstream_feed(&s, &r, text + at, n - at < piece ? n - at : piece, &out);
	mdstream_end(&s, &r, &out);
	char *shown = buf_take(&out);
	cr_assert_not_null(shown);
	return shown;
}

/* However it comes in, the same is shown. */
Test(markdown, blocks_are_shown_as_read)
{
	static const size_t pieces[] = {1, 3, 7, 10000};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t k = 0; k < ARRAY_LEN(pieces); k++) {
			char *shown = show(rows[i].text, rows[i].width, false, pieces[k]);
			cr_expect_str_eq(shown, rows[i].shown, "row %zu: %s\n%s", i, rows[i].text,
					 shown);
			free(shown);
		}
}

/* Escape sequences apart it is the same, and each line ends without a style. */
Test(markdown, colour_changes_no_width)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *shown = show(rows[i].text, rows[i].width, true, 10000);
		for (char *line = strtok(shown, "\n"); line; line = strtok(NULL, "\n")) {
			char plain[512];
			size_t n = 0;
			bool styled = false;
			for (const char *p = line; *p && n < sizeof(plain) - 1; p++) {
				if (*p != '\033') {
					plain[n++] = *p;
					continue;
				}
				cr_assert_eq(p[1], '[');
				styled = strncmp(p, "\033[0m", 4);
				p += strcspn(p, "m");
			}
			plain[n] = 0;
			cr_expect_not(styled, "row %zu: %s", i, line);
			cr_expect(strstr(rows[i].text, "```") ||
					  escape_width(plain) <= rows[i].width,
				  "row %zu: %s", i, plain);
		}
		free(shown);
	}
}

/* Each block as soon as it is known to be complete, code line by line; nothing shown twice. */
Test(markdown, it_is_shown_while_it_comes)
{
	static const struct {
		const char *piece, *shown;
	} steps[] = {
		{"A paragraph", ""},
		{" of two\nlines.\n", ""},
		{"\n", "A paragraph of two lines.\n"},
		{"- one\n", "\n"},
		{"- two\n", "- one\n"},
		{"\n```\n", "- two\n\n"},
		{"code\n", "    code\n"},
		{"more\n```\n", "    more\n"},
		{"# Title\n", "# Title\n"},
	};
	const struct mdrender r = {.width = 40};
	struct mdstream s = {0};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct buf out = {0};
		mdstream_feed(&s, &r, steps[i].piece, strlen(steps[i].piece), &out);
		cr_expect_str_eq(buf_str(&out), steps[i].shown, "step %zu: %s", i, buf_str(&out));
		buf_free(&out);
	}
	mdstream_release(&s);
}

/* Whatever bytes come, it ends, and nothing that moves a terminal gets out. */
Test(markdown, any_bytes_are_taken)
{
	unsigned seed = 1;
	static const char alphabet[] = "-*_`~#>|[]()!\\ \n\n\t1.a\033\x9b\xe6\xbc\xa2&;<:";
	for (int round = 0; round < 300; round++) {
		char text[400];
		for (size_t i = 0; i < sizeof(text) - 1; i++) {
			seed = seed * 1103515245u + 12345u;
			text[i] = alphabet[(seed >> 16) % (sizeof(alphabet) - 1)];
		}
		text[sizeof(text) - 1] = 0;
		char *shown = show(text, 1 + (size_t)round % 50, false, 1 + (size_t)round % 9);
		cr_assert_null(strpbrk(shown, "\033\r\x07"), "%s", shown);
		free(shown);
	}
}
