#include "tracer/straceargs.h"

#include "tracer/errname.h"
#include "tracer/stracesym.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* The text that is read, and what is wrong with it. */
struct reading {
	struct straceargs *a;
	const char *start;
	const char *at;
	const char *end;
	int error; /* 0, or why reading stopped */
	unsigned depth;
};

static void stop(struct reading *r, int error, const char *expected)
{
	if (r->error)
		return;
	r->error = error;
	r->a->bad_at = (size_t)(r->at - r->start);
	r->a->expected = expected;
}

static bool ended(struct reading *r)
{
	if (r->at < r->end)
		return false;
	stop(r, -ENODATA, "the rest of the call");
	return true;
}

static void skip_spaces(struct reading *r)
{
	while (r->at < r->end && *r->at == ' ')
		r->at++;
}

static bool looking_at(const struct reading *r, const char *word)
{
	size_t len = strlen(word);
	return (size_t)(r->end - r->at) >= len && memcmp(r->at, word, len) == 0;
}

static bool take(struct reading *r, const char *word)
{
	if (!looking_at(r, word))
		return false;
	r->at += strlen(word);
	return true;
}

static struct strace_value *add(struct reading *r, size_t *ret_at)
{
	struct straceargs *a = r->a;
	if (a->len == STRACEARGS_VALUES_MAX) {
		stop(r, -E2BIG, "fewer values in one call");
		return NULL;
	}
	if (a->len == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 64;
		struct strace_value *more = realloc(a->values, cap * sizeof(*more));
		if (!more) {
			stop(r, -ENOMEM, "more memory");
			return NULL;
		}
		a->values = more;
		a->cap = cap;
	}
	*ret_at = a->len;
	a->values[a->len] = (struct strace_value){.next = (uint32_t)a->len + 1};
	return &a->values[a->len++];
}

/* Behind an opening quote, to its end: what stands between. */
static struct strace_span quoted(struct reading *r)
{
	struct strace_span s = {r->at, 0};
	while (r->at < r->end && *r->at != '"')
		r->at += *r->at == '\\' && r->at + 1 < r->end ? 2 : 1;
	s.len = (size_t)(r->at - s.at);
	if (!ended(r))
		r->at++;
	return s;
}

/* Is it a path, written with any of strace's escapes? */
static bool starts_as_path(struct strace_span s)
{
	return s.len && (*s.at == '/' ||
			 (s.len > 3 && (!memcmp(s.at, "\\x2f", 4) || !memcmp(s.at, "\\57", 3))));
}

/*
 * Behind a "<", to its ">". Inside of a path both are escaped, but for what -yy says of a device
 * (</dev/null<char 1:3>>); elsewhere there may be arrows and names of sockets
 * (<TCP:[127.0.0.1:80->127.0.0.1:99]>, <UNIX-STREAM:[1->2, "/run/a>b"]>).
 */
static struct strace_span about(struct reading *r)
{
	struct strace_span s = {r->at, 0};
	bool path = starts_as_path((struct strace_span){r->at, (size_t)(r->end - r->at)});
	unsigned deep = 0;
	for (; r->at < r->end; r->at++) {
		char c = *r->at;
		if (c == '<') {
			deep++;
		} else if (c == '"' && !path) {
			r->at++;
			quoted(r);
			r->at--;
		} else if (c == '>' && (path || r->at == s.at || r->at[-1] != '-')) {
			if (!deep)
				break;
			deep--;
		}
		if (r->error)
			return s;
	}
	s.len = (size_t)(r->at - s.at);
	if (!ended(r))
		r->at++;
	return s;
}

/* Behind an opening parenthesis inside of a word, to its end: makedev(0x8, 0x1), htons(80). */
static void parenthesised(struct reading *r)
{
	unsigned deep = 1;
	while (!r->error && deep && !ended(r)) {
		char c = *r->at++;
		if (c == '"')
			quoted(r);
		else if (c == '(')
			deep++;
		else if (c == ')')
			deep--;
	}
}

/* A "=" that makes the word before it a key, and not a comparison or an arrow. */
static bool is_assignment(const struct reading *r)
{
	return *r->at == '=' && (r->at + 1 >= r->end || (r->at[1] != '=' && r->at[1] != '>'));
}

/* What -y adds to a descriptor: 3</path>, 3</path>(deleted), AT_FDCWD</path>. */
static void parse_about(struct reading *r, struct strace_span *ret, bool *ret_deleted)
{
	r->at++;
	*ret = about(r);
	if (take(r, "(deleted)"))
		*ret_deleted = true;
}

/*
 * A word: up to what can't be in one. True: it was a key, and its value follows (`*ret` is it).
 */
static bool parse_word(struct reading *r, struct strace_value *ret)
{
	const char *from = r->at;
	if (r->at < r->end && *r->at == '=')
		stop(r, -EINVAL, "an argument");
	while (r->at < r->end && !r->error) {
		char c = *r->at;
		if (strchr(",)]} \"", c) || c == '\0')
			break;
		if (is_assignment(r) && r->at > from) {
			ret->key = (struct strace_span){from, (size_t)(r->at - from)};
			r->at++;
			return true;
		}
		if (c == '<' && r->at + 1 < r->end && r->at[1] == '<') {
			r->at += 2;
		} else if (c == '<' && r->at > from) {
			ret->text = (struct strace_span){from, (size_t)(r->at - from)};
			parse_about(r, &ret->about, &ret->deleted);
			return false;
		} else {
			r->at++;
			if (c == '(')
				parenthesised(r);
		}
	}
	ret->text = (struct strace_span){from, (size_t)(r->at - from)};
	if (r->at == from && !ended(r))
		stop(r, -EINVAL, "an argument");
	return false;
}

static void parse_list(struct reading *r, char close);

/* Remarks and what else stands behind a value: a comment, "=> {...}", "&& ...", a context. */
static void skip_behind(struct reading *r)
{
	for (skip_spaces(r); r->at < r->end && !r->error && !strchr(",)]}", *r->at);
	     skip_spaces(r)) {
		if (take(r, "/*")) {
			const char *close = memmem(r->at, (size_t)(r->end - r->at), "*/", 2);
			r->at = close ? close + 2 : r->end;
		} else if (*r->at == '"') {
			r->at++;
			quoted(r);
		} else if (*r->at == '[' || *r->at == '{') {
			char close = *r->at++ == '[' ? ']' : '}';
			size_t len = r->a->len;
			parse_list(r, close);
			r->a->len = len;
		} else {
			struct strace_value skipped = {0};
			if (!take(r, "=>") && !take(r, "=") && !take(r, "..."))
				parse_word(r, &skipped);
		}
	}
}

static void parse_value(struct reading *r)
{
	size_t at = 0;
	struct strace_value *v = add(r, &at);
	if (!v || ended(r))
		return;
	bool again = true;
	while (again && !r->error) {
		again = false;
		v->abstract = looking_at(r, "@\"") && take(r, "@");
		(void)(looking_at(r, "~[") && take(r, "~"));
		if (take(r, "\"")) {
			v->kind = STRACE_STRING;
			v->text = quoted(r);
			v->cut = take(r, "...");
		} else if (looking_at(r, "{") || looking_at(r, "[")) {
			char close = *r->at++ == '{' ? '}' : ']';
			v->kind = close == '}' ? STRACE_STRUCT : STRACE_ARRAY;
			parse_list(r, close);
			v = &r->a->values[at];
		} else {
			again = parse_word(r, v);
			if (again && ended(r))
				return;
		}
	}
	skip_behind(r);
	r->a->values[at].next = (uint32_t)r->a->len;
}

/* Values with commas between, to what closes the list. */
static void parse_list(struct reading *r, char close)
{
	if (r->depth == STRACEARGS_DEPTH_MAX) {
		stop(r, -E2BIG, "fewer brackets in each other");
		return;
	}
	r->depth++;
	skip_spaces(r);
	while (!r->error && !ended(r) && *r->at != close) {
		const char *before = r->at;
		parse_value(r);
		skip_spaces(r);
		/* Sets of signals have spaces between, and that is skipped with the value. */
		if (!r->error && !ended(r) && *r->at != close && !take(r, ","))
			stop(r, -EINVAL,
			     close == ')' ? "\",\" or \")\"" : "\",\" or a closing bracket");
		skip_spaces(r);
		if (!r->error && r->at == before)
			stop(r, -EINVAL, "an argument");
	}
	if (!r->error)
		r->at++;
	r->depth--;
}

/* ENOENT behind "= -1". */
static struct strace_span take_token(struct reading *r)
{
	struct strace_span s = {r->at, 0};
	while (r->at < r->end && *r->at != ' ' && *r->at != '<' && *r->at != '\r')
		r->at++;
	s.len = (size_t)(r->at - s.at);
	return s;
}

/* -1 ENOENT (No such file or directory), -1 (errno 38) */
static void parse_error(struct reading *r, struct strace_result *ret)
{
	uint64_t number = 0;
	ret->kind = STRACE_RESULT_ERROR;
	if (take(r, "(errno ")) {
		struct strace_span s = {r->at, 0};
		while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
			r->at++;
		s.len = (size_t)(r->at - s.at);
		if (straceargs_number(s, &number) && number < 4096)
			ret->value = -(int64_t)number;
	} else {
		struct strace_span name = take_token(r);
		ret->value = -errname_number(name.at, name.len);
	}
	if (ret->value == 0)
		stop(r, -EINVAL, "the name of an error, as in: = -1 ENOENT");
}

/* 1234 / * 7 in strace's PID NS * / (-y with pid namespaces) */
static pid_t parse_here(struct reading *r)
{
	uint64_t n = 0;
	const char *mark = memmem(r->at, (size_t)(r->end - r->at), " in strace's PID NS", 19);
	const char *from = mark;
	while (from && from > r->at && from[-1] >= '0' && from[-1] <= '9')
		from--;
	if (!from || !straceargs_number((struct strace_span){from, (size_t)(mark - from)}, &n))
		return 0;
	return n < INT32_MAX ? (pid_t)n : 0;
}

static void parse_result(struct reading *r)
{
	struct strace_result *ret = &r->a->result;
	uint64_t number = 0;

	skip_spaces(r);
	if (ended(r))
		return;
	if (!take(r, "=")) {
		stop(r, -EINVAL, "\"=\" and the result");
		return;
	}
	skip_spaces(r);
	if (ended(r))
		return;
	if (take(r, "?")) {
		ret->kind = STRACE_RESULT_UNKNOWN;
		return;
	}
	struct strace_span s = take_token(r);
	bool minus = s.len > 1 && *s.at == '-';
	if (!straceargs_number(minus ? (struct strace_span){s.at + 1, s.len - 1} : s, &number)) {
		r->at = s.at;
		stop(r, -EINVAL, "a number as the result");
		return;
	}
	ret->kind = STRACE_RESULT_VALUE;
	ret->value = minus ? -(int64_t)(number & INT64_MAX) : (int64_t)number;
	if (r->at < r->end && *r->at == '<')
		parse_about(r, &ret->about, &ret->deleted);
	skip_spaces(r);
	if (minus && number == 1 && r->at < r->end && (*r->at == 'E' || *r->at == '('))
		parse_error(r, ret);
	else
		ret->here = parse_here(r);
}

int straceargs_parse(struct straceargs *a, struct strace_span text)
{
	struct reading r = {a, text.at, text.at, text.at + text.len, 0, 0};

	a->len = 0;
	a->bad_at = 0;
	a->expected = NULL;
	a->result = (struct strace_result){.kind = STRACE_RESULT_UNKNOWN};
	parse_list(&r, ')');
	if (!r.error)
		parse_result(&r);
	return r.error;
}

void straceargs_free(struct straceargs *a)
{
	free(a->values);
	*a = (struct straceargs){0};
}

static const struct strace_value *value_at(const struct straceargs *a, size_t at, size_t end)
{
	return at < end && at < a->len ? &a->values[at] : NULL;
}

const struct strace_value *straceargs_at(const struct straceargs *a, unsigned i)
{
	size_t at = 0;
	while (i-- && at < a->len)
		at = a->values[at].next;
	return value_at(a, at, a->len);
}

const struct strace_value *straceargs_first(const struct straceargs *a,
					    const struct strace_value *v)
{
	return v ? value_at(a, (size_t)(v - a->values) + 1, v->next) : NULL;
}

const struct strace_value *straceargs_beside(const struct straceargs *a,
					     const struct strace_value *parent,
					     const struct strace_value *v)
{
	return value_at(a, v->next, parent ? parent->next : a->len);
}

const struct strace_value *straceargs_field(const struct straceargs *a,
					    const struct strace_value *v, const char *name)
{
	const struct strace_value *f =
		v && v->kind == STRACE_STRUCT ? straceargs_first(a, v) : NULL;
	while (f && !strace_span_is(f->key, name))
		f = straceargs_beside(a, v, f);
	return f;
}

const struct strace_value *straceargs_named(const struct straceargs *a, const char *name)
{
	const struct strace_value *v = value_at(a, 0, a->len);
	while (v && !strace_span_is(v->key, name))
		v = straceargs_beside(a, NULL, v);
	return v;
}

/* ---- words ---- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* Up to `most` digits of the base that stand at *i. */
static char digits(struct strace_span s, size_t *i, int base, size_t most)
{
	int value = 0;
	for (; most && *i < s.len && digit_of(s.at[*i]) < base; most--, (*i)++)
		value = value * base + digit_of(s.at[*i]);
	return (char)value;
}

void straceargs_unescape(struct strace_span s, struct buf *out)
{
	static const char from[] = "ntvfra0";
	static const char to[] = "\n\t\v\f\r\a";
	for (size_t i = 0; i < s.len;) {
		const char *plain = memchr(s.at + i, '\\', s.len - i);
		size_t run = plain ? (size_t)(plain - (s.at + i)) : s.len - i;
		buf_add(out, s.at + i, run);
		i += run + 1;
		if (i >= s.len)
			return;
		char c = s.at[i];
		const char *named = c && c != '0' ? strchr(from, c) : NULL;
		if (c >= '0' && c <= '7') {
			buf_add_char(out, digits(s, &i, 8, 3));
		} else if (c == 'x') {
			i++;
			buf_add_char(out, digits(s, &i, 16, 2));
		} else {
			buf_add_char(out, named ? to[named - from] : c);
			i++;
		}
	}
}

/* A number without a sign. */
static bool plain_number(struct strace_span s, uint64_t *ret)
{
	int base = s.len > 1 && s.at[0] == '0' ? 8 : 10;
	size_t i = 0;
	uint64_t value = 0;
	if (s.len > 2 && s.at[0] == '0' && (s.at[1] == 'x' || s.at[1] == 'X')) {
		base = 16;
		i = 2;
	}
	if (i == s.len)
		return false;
	for (; i < s.len; i++) {
		int d = digit_of(s.at[i]);
		if (d >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)d, &value))
			return false;
	}
	*ret = value;
	return true;
}

bool straceargs_number(struct strace_span s, uint64_t *ret)
{
	bool known = s.len > 0;
	uint64_t all = 0;
	for (size_t i = 0; i <= s.len && s.len;) {
		const char *bar = memchr(s.at + i, '|', s.len - i);
		struct strace_span one = {s.at + i, bar ? (size_t)(bar - (s.at + i)) : s.len - i};
		uint64_t value = 0;
		if (plain_number(one, &value) || stracesym_find(one, &value))
			all |= value;
		else
			known = false;
		if (!bar)
			break;
		i += one.len + 1;
	}
	*ret = all;
	return known;
}
