#include "supervisor/shellword.h"

#include "supervisor/escape.h"
#include "supervisor/plan.h"

#include <string.h>

static bool is_plain_word(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/._-+,:@%=";
	return *s && strspn(s, plain) == strlen(s);
}

/* Every byte of it, for bash, zsh and ksh: $'\033' where a terminal could not take it. */
static void add_quoted(struct buf *out, const char *s)
{
	struct buf shown = {0};
	escape_add_str(&shown, s);
	bool harmless = !strcmp(buf_str(&shown), s);
	buf_free(&shown);
	buf_add_str(out, harmless ? "'" : "$'");
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		if (harmless && c == '\'')
			buf_add_str(out, "'\\''");
		else if (harmless)
			buf_add_char(out, *s);
		else if (c == '\'' || c == '\\')
			buf_addf(out, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			buf_addf(out, "\\%03o", c);
		else
			buf_add_char(out, *s);
	}
	buf_add_char(out, '\'');
}

void shellword_add(struct buf *out, const char *word)
{
	if (is_plain_word(word))
		buf_add_str(out, word);
	else
		add_quoted(out, word);
}

void shellword_add_glob(struct buf *out, const char *pattern, const char *home)
{
	struct buf b = {0};
	plan_add_short(&b, pattern, home);
	const char *text = buf_str(&b);
	if (text[0] == '~' && (!text[1] || is_plain_word(text + 1)))
		buf_add_str(out, text);
	else if (text[0] == '~') {
		buf_add_str(out, "~/"); /* a quoted ~ would be a name */
		add_quoted(out, text + 2);
	} else {
		shellword_add(out, text);
	}
	buf_free(&b);
}

void shellword_add_path(struct buf *out, const char *path, const char *home)
{
	struct buf escaped = {0};
	for (; *path; path++) {
		if (strchr("*?\\", *path))
			buf_add_char(&escaped, '\\');
		buf_add_char(&escaped, *path);
	}
	shellword_add_glob(out, buf_str(&escaped), home);
	buf_free(&escaped);
}
