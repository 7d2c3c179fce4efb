#include "supervisor/policyscan.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int policyscan_fault(struct policy_error *ret_error, const struct policyscan_where *where,
		     unsigned col, const char *fmt, ...)
{
	struct buf message = {0}, text = {0};
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(&message, fmt, ap);
	va_end(ap);
	escape_add_str(&text, where->name);
	buf_addf(&text, ":%u:%u: ", where->line, col);
	escape_add_str(&text, buf_str(&message));
	snprintf(ret_error->text, sizeof(ret_error->text), "%s", buf_str(&text));
	buf_free(&message);
	buf_free(&text);
	return -EINVAL;
}

void policyscan_release(struct policyscan_line *l)
{
	free(TAKE_PTR(l->texts));
	l->words = 0;
}

struct scan {
	const struct policyscan_where *where;
	const char *text;
	size_t n;
	size_t pos;
	struct policy_error *error;
	char *word, *to; /* where this word's text begins, and goes on; there is room */
};

static int fault_at(struct scan *s, size_t pos, const char *what)
{
	return policyscan_fault(s->error, s->where, (unsigned)pos + 1, "%s", what);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* A byte that stands for itself, whatever it is. */
static void add_literal(struct scan *s, char c)
{
	bool first = s->to == s->word && (c == '~' || c == '$');
	if (first || c == '*' || c == '?' || c == '\\')
		*s->to++ = '\\';
	*s->to++ = c;
}

static int scan_hex(struct scan *s)
{
	int high = s->pos + 2 < s->n ? hex_digit(s->text[s->pos + 1]) : -1;
	int low = high >= 0 ? hex_digit(s->text[s->pos + 2]) : -1;
	if (low < 0)
		return fault_at(s, s->pos - 1, "expected two hexadecimal digits after \\x");
	if (high == 0 && low == 0)
		return fault_at(s, s->pos - 1, "a path can't hold \\x00");
	add_literal(s, (char)(high << 4 | low));
	s->pos += 3;
	return 0;
}

/* s->pos stands behind the backslash. */
static int scan_escape(struct scan *s)
{
	static const char names[] = "ntre", bytes[] = "\n\t\r\x1b";
	if (s->pos == s->n)
		return fault_at(s, s->pos - 1, "expected a character after the backslash");
	char c = s->text[s->pos];
	if (c == 'x')
		return scan_hex(s);
	const char *name = memchr(names, c, sizeof(names) - 1);
	if (name)
		c = bytes[name - names];
	else if (isalnum((unsigned char)c))
		return fault_at(s, s->pos - 1,
				"expected \\n, \\t, \\r, \\e, \\xNN or a "
				"punctuation character after the backslash");
	else if (is_control(c))
		return fault_at(s, s->pos, "control characters are written \\xNN");
	add_literal(s, c);
	s->pos++;
	return 0;
}

static void add_plain(struct scan *s, bool in_quotes)
{
	char c = s->text[s->pos++];
	if (in_quotes && (c == '*' || c == '?'))
		*s->to++ = '\\';
	*s->to++ = c;
}

/* The bytes of one word. */
static int scan_bytes(struct scan *s, bool *ret_quoted)
{
	bool in_quotes = false;
	size_t quote_at = 0;
	while (s->pos < s->n) {
		char c = s->text[s->pos];
		if (is_blank(c) && !in_quotes)
			break;
		if (is_control(c))
			return fault_at(s, s->pos, "control characters are written \\xNN");
		if (c == '\'' && !in_quotes)
			return fault_at(s, s->pos,
					"names are quoted with \" or \\; write \\' for the "
					"character itself");
		if (c == '"') {
			quote_at = s->pos++;
			in_quotes = !in_quotes;
			*ret_quoted = true;
		} else if (c == '\\') {
			s->pos++;
			*ret_quoted = true;
			int r = scan_escape(s);
			if (r < 0)
				return r;
		} else {
			add_plain(s, in_quotes);
		}
	}
	return in_quotes ? fault_at(s, quote_at, "expected a closing \" for this one") : 0;
}

static int scan_word(struct scan *s, struct policyscan_line *l)
{
	if (l->words == POLICYSCAN_WORDS_MAX)
		return fault_at(s, s->pos, "too many words in one line");
	struct policyscan_word *w = &l->word[l->words];
	*w = (struct policyscan_word){.col = (unsigned)s->pos + 1, .raw = s->text + s->pos};
	w->text = s->word = s->to;
	int r = scan_bytes(s, &w->quoted);
	if (r < 0)
		return r;
	*s->to++ = '\0';
	w->raw_len = (size_t)(s->text + s->pos - w->raw);
	l->words++;
	return 0;
}

/* At the next word? False: the line ends. */
static bool skip_blanks(struct scan *s)
{
	while (s->pos < s->n && is_blank(s->text[s->pos]))
		s->pos++;
	return s->pos < s->n && s->text[s->pos] != '#';
}

static int scan_words(struct scan *s, struct policyscan_line *l)
{
	if (!skip_blanks(s))
		return 0;
	/* Each byte may get a backslash, each word a NUL. */
	s->to = l->texts = malloc(2 * s->n + POLICYSCAN_WORDS_MAX);
	if (!l->texts)
		return -ENOMEM;
	do {
		int r = scan_word(s, l);
		if (r < 0)
			return r;
	} while (skip_blanks(s));
	return 0;
}

static bool is_word(const struct policyscan_word *w, const char *keyword)
{
	return !w->quoted && strcmp(w->text, keyword) == 0;
}

static bool keyword_of(const struct policyscan_word *w, bool sensitive_allowed,
		       struct policyscan_line *l)
{
	if (is_word(w, "use")) {
		l->kind = POLICYSCAN_USE;
		return true;
	}
	if (is_word(w, "sensitive") && sensitive_allowed) {
		l->kind = POLICYSCAN_SENSITIVE;
		l->effect = EFFECT_ASK;
		return true;
	}
	for (int e = EFFECT_ALLOW; e <= EFFECT_FORBID; e++) {
		if (is_word(w, effect_name((enum effect)e))) {
			l->kind = POLICYSCAN_RULE;
			l->effect = (enum effect)e;
			return true;
		}
	}
	return false;
}

/* What can't be meant as an access. */
static bool looks_like_path(const struct policyscan_word *w)
{
	return w->quoted || strchr("/~$.*", w->text[0]) || strchr(w->text, '/');
}

static int fault_word(struct scan *s, const struct policyscan_word *w, const char *expected)
{
	return policyscan_fault(s->error, s->where, w->col, "expected %s, not '%.*s'", expected,
				(int)w->raw_len, w->raw);
}

static int fault_end(struct scan *s, const struct policyscan_word *after, const char *expected)
{
	unsigned col = after->col + (unsigned)after->raw_len;
	return policyscan_fault(s->error, s->where, col, "expected %s after '%.*s'", expected,
				(int)after->raw_len, after->raw);
}

/* Is word 1 the access? 1 yes (then in l->access), 0 no, -EINVAL it is neither access nor path. */
static int take_access(struct scan *s, struct policyscan_line *l)
{
	const struct policyscan_word *w = &l->word[1];
	size_t at = 0;
	if (!w->quoted && access_parse(w->text, strlen(w->text), &l->access, &at) == 0)
		return 1;
	bool alone = l->words == 2 || (l->words == 3 && is_word(&l->word[2], "exact"));
	if (alone || looks_like_path(w))
		return 0;
	size_t n = strcspn(w->text + at, ",");
	return policyscan_fault(s->error, s->where, w->col + (unsigned)at,
				"expected an access such as r, rw or read,list, not '%.*s'", (int)n,
				w->text + at);
}

static int parse_rule(struct scan *s, struct policyscan_line *l)
{
	l->access = ACCESS_ALL;
	if (l->words < 2)
		return fault_end(s, &l->word[0], "an access or a path");
	int r = take_access(s, l);
	if (r < 0)
		return r;
	l->path = 1 + (size_t)r;
	if (l->path == l->words)
		return fault_end(s, &l->word[l->words - 1], "a path (a file of that name: ./NAME)");
	const struct policyscan_word *path = &l->word[l->path];
	if (is_word(path, "exact"))
		return fault_word(s, path, "a path (a file of that name: ./exact)");
	if (path->text[0] == '\0')
		return fault_word(s, path, "a path");
	if (l->words == l->path + 1)
		return 0;
	const struct policyscan_word *tail = &l->word[l->path + 1];
	if (!is_word(tail, "exact"))
		return fault_word(s, tail, "exact or the end of the line (blanks in names: \\ )");
	l->exact = true;
	if (l->words > l->path + 2)
		return fault_word(s, &l->word[l->path + 2], "the end of the line");
	return 0;
}

static int parse_line(struct scan *s, bool sensitive_allowed, struct policyscan_line *l)
{
	int r = scan_words(s, l);
	if (r < 0 || l->words == 0)
		return r;
	if (!keyword_of(&l->word[0], sensitive_allowed, l))
		return fault_word(s, &l->word[0], "allow, deny, ask, forbid or use");
	if (l->kind != POLICYSCAN_USE)
		return parse_rule(s, l);
	l->path = 1;
	return l->words > 1 ? 0 : fault_end(s, &l->word[0], "the name of a preset");
}

int policyscan_line(const struct policyscan_where *where, const char *text, size_t n,
		    bool sensitive_allowed, struct policyscan_line *ret,
		    struct policy_error *ret_error)
{
	if (n && text[n - 1] == '\r')
		n--;
	struct scan s = {.where = where, .text = text, .n = n, .error = ret_error};
	memset(ret, 0, offsetof(struct policyscan_line, word)); /* POLICYSCAN_BLANK */
	int r = parse_line(&s, sensitive_allowed, ret);
	if (r < 0)
		policyscan_release(ret);
	return r;
}
