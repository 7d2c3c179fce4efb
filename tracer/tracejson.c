#include "tracer/tracejson.h"

#include "tracer/json.h"
#include "tracer/traceflags.h"
#include "tracer/tracekeys.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- the scanner ---- */

struct scan {
	char *line, *at;
	struct tracejson_room *room;
	struct trace_event *ev;
	const char *expected; /* what was, where the scan failed */
	unsigned next_key;    /* the row that is likely to come next */
	bool b64;	      /* the value is the exact form of a text */
};

static bool fail(struct scan *s, const char *expected)
{
	if (!s->expected)
		s->expected = expected;
	return false;
}

static void skip_space(struct scan *s)
{
	while (*s->at == ' ' || *s->at == '\t' || *s->at == '\r')
		s->at++;
}

static bool take(struct scan *s, char c, const char *expected)
{
	skip_space(s);
	if (*s->at != c)
		return fail(s, expected);
	s->at++;
	return true;
}

static bool next_is(struct scan *s, char c)
{
	skip_space(s);
	if (*s->at != c)
		return false;
	s->at++;
	return true;
}

static int hex4(const char *p)
{
	int n = 0;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;
		if (digit < 0)
			return -1;
		n = n * 16 + digit;
	}
	return n;
}

/* At most four bytes, and \uXXXX took six: it never grows. */
static char *put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

/* Behind "\u", at s->at. */
static bool take_unicode(struct scan *s, char **to)
{
	int c = hex4(s->at);
	if (c < 0)
		return fail(s, "four hex digits");
	s->at += 4;
	if (!c)
		return fail(s, "a text without NUL");
	if (c >= 0xd800 && c < 0xdc00 && s->at[0] == '\\' && s->at[1] == 'u') {
		int low = hex4(s->at + 2);
		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			s->at += 6;
		}
	}
	*to = put_utf8(*to, (unsigned)c);
	return true;
}

static bool take_escape(struct scan *s, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	char c = *s->at++;
	if (c == 'u')
		return take_unicode(s, to);
	const char *found = c ? strchr(from, c) : NULL;
	if (!found) {
		s->at--;
		return fail(s, "an escape");
	}
	*(*to)++ = into[found - from];
	return true;
}

/* A string, in place: its bytes and their number. NUL-terminated, over the quote at the latest. */
static bool take_string(struct scan *s, char **ret, size_t *ret_n)
{
	if (!take(s, '"', "a string"))
		return false;
	char *from = s->at, *to;
	while ((unsigned char)*s->at >= ' ' && *s->at != '"' && *s->at != '\\')
		s->at++;
	for (to = s->at; *s->at != '"';) {
		if ((unsigned char)*s->at < ' ')
			return fail(s, "the string's end");
		if (*s->at != '\\') {
			*to++ = *s->at++;
			continue;
		}
		s->at++;
		if (!take_escape(s, &to))
			return false;
	}
	s->at++;
	*to = '\0';
	*ret = from;
	*ret_n = (size_t)(to - from);
	return true;
}

static bool take_int(struct scan *s, int64_t *ret)
{
	skip_space(s);
	bool minus = *s->at == '-';
	const char *p = s->at + minus, *from = p;
	uint64_t n = 0;
	for (; *p >= '0' && *p <= '9' && p - from < 20; p++) {
		uint64_t digit = (uint64_t)(*p - '0');
		if (n > (INT64_MAX - digit) / 10)
			return fail(s, "a number of 64 bits");
		n = n * 10 + digit;
	}
	if (p == from || *p == '.' || *p == 'e' || *p == 'E' || (*p >= '0' && *p <= '9'))
		return fail(s, "a whole number");
	s->at += p - s->at;
	*ret = minus ? -(int64_t)n : (int64_t)n;
	return true;
}

static bool take_int_within(struct scan *s, int64_t low, int64_t high, int64_t *ret)
{
	const char *from = s->at;
	if (!take_int(s, ret))
		return false;
	if (*ret >= low && *ret <= high)
		return true;
	s->at -= s->at - from;
	return fail(s, "a number that makes sense here");
}

static bool take_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);
	if (strncmp(s->at, word, n) != 0)
		return false;
	s->at += n;
	return true;
}

#define SKIP_DEPTH 64

/* Any value, passed over. */
static bool skip_value(struct scan *s)
{
	char *text;
	size_t n;
	int depth = 0;
	do {
		skip_space(s);
		char c = *s->at;
		if (c == '"') {
			if (!take_string(s, &text, &n))
				return false;
		} else if (c == '{' || c == '[') {
			s->at++;
			if (++depth > SKIP_DEPTH)
				return fail(s, "a value that is nested less deeply");
		} else if (depth && (c == '}' || c == ']')) {
			s->at++;
			depth--;
		} else if (depth && (c == ',' || c == ':')) {
			s->at++;
		} else {
			size_t word = strspn(s->at, "+-.0123456789Eeaflnrstu");
			if (!word)
				return fail(s, "a value");
			s->at += word;
		}
	} while (depth > 0);
	return true;
}

/* ---- values ---- */

static bool take_text(struct scan *s, const char **member)
{
	char *text;
	size_t n;
	if (!s->b64 && take_word(s, "null"))
		return true;
	if (!take_string(s, &text, &n))
		return false;
	if (s->b64 && !json_decode_base64(text))
		return fail(s, "base64");
	*member = text;
	return true;
}

/* ["read","write"], in place, as "read,write". */
static bool take_words(struct scan *s, const char **member)
{
	char *to = s->at, *word;
	size_t n;
	*member = to;
	if (!take(s, '[', "a list of words"))
		return false;
	if (next_is(s, ']')) {
		*to = '\0';
		return true;
	}
	do {
		if (!take_string(s, &word, &n))
			return false;
		if (to != *member)
			*to++ = ',';
		memmove(to, word, n);
		to += n;
	} while (next_is(s, ','));
	if (!take(s, ']', "',' or ']'"))
		return false;
	*to = '\0';
	return true;
}

/* A list of texts; what is beyond the limit is passed over. */
static bool take_list(struct scan *s, const char **items, unsigned max, unsigned *ret_len)
{
	char *text;
	size_t n;
	*ret_len = 0;
	if (!take(s, '[', "a list of strings"))
		return false;
	if (next_is(s, ']'))
		return true;
	do {
		if (!take_string(s, &text, &n))
			return false;
		if (*ret_len < max)
			items[(*ret_len)++] = text;
	} while (next_is(s, ','));
	return take(s, ']', "',' or ']'");
}

static bool take_kind(struct scan *s)
{
	static const char *const kinds[] = {
		[TRACE_CALL] = "call", [TRACE_FORK] = "fork",	  [TRACE_EXEC] = "exec",
		[TRACE_EXIT] = "exit", [TRACE_ANSWER] = "answer", [TRACE_END] = "end"};
	char *text;
	size_t n;
	if (!take_string(s, &text, &n))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (!strcmp(kinds[i], text)) {
			s->ev->kind = (enum trace_kind)i;
			return true;
		}
	s->ev->kind = TRACE_END + 1; /* one of a later version's */
	return true;
}

static bool take_thing(struct scan *s, enum trace_thing *member)
{
	char *text;
	size_t n;
	if (!take_string(s, &text, &n))
		return false;
	for (enum trace_thing t = TRACE_THING_ABSENT; t < TRACE_THING_COUNT; t++)
		if (!strcmp(trace_thing_name(t), text))
			*member = t;
	return true;
}

static bool take_flags(struct scan *s)
{
	char *text;
	size_t n;
	if (!take_string(s, &text, &n))
		return false;
	if (!traceflags_parse(text, n, &s->ev->flags))
		return fail(s, "flags such as O_WRONLY|O_CREAT");
	s->ev->has_flags = true;
	return true;
}

static bool take_mode(struct scan *s)
{
	char *text, *end;
	size_t n;
	if (!take_string(s, &text, &n))
		return false;
	unsigned long mode = n ? strtoul(text, &end, 8) : 0;
	if (!n || *end || mode > UINT32_MAX)
		return fail(s, "an octal mode");
	s->ev->mode = (uint32_t)mode;
	s->ev->has_mode = true;
	return true;
}

static bool take_bool(struct scan *s, bool *member)
{
	skip_space(s);
	*member = take_word(s, "true");
	return *member || take_word(s, "false") || fail(s, "true or false");
}

static const struct sysent *known_call(struct tracejson_room *room, const char *name)
{
	unsigned h = 5381;
	for (const char *p = name; *p; p++)
		h = h * 33 + (unsigned char)*p;
	const struct sysent **slot = &room->known[h % ARRAY_LEN(room->known)];
	if (!*slot || strcmp((*slot)->name, name) != 0)
		*slot = sysent_by_name(name);
	return *slot;
}

static bool take_value(struct scan *s, const struct tracekeys_row *row, void *member)
{
	struct trace_event *ev = s->ev;
	int64_t n;
	unsigned len;
	switch (row->kind) {
	case TRACEKEYS_EV:
		return take_kind(s);
	case TRACEKEYS_UINT:
		if (!take_int_within(s, 0, INT64_MAX, &n))
			return false;
		*(uint64_t *)member = (uint64_t)n;
		return true;
	case TRACEKEYS_RUN:
		if (!take_int_within(s, 0, INT32_MAX, &n))
			return false;
		*(unsigned *)member = (unsigned)n;
		return true;
	case TRACEKEYS_PID:
		if (!take_int_within(s, 1, INT32_MAX, &n))
			return false;
		*(pid_t *)member = (pid_t)n;
		return true;
	case TRACEKEYS_TEXT:
	case TRACEKEYS_PATH_TEXT:
		return take_text(s, member);
	case TRACEKEYS_PATH_THING:
		return take_thing(s, member);
	case TRACEKEYS_PATH_WORDS:
		skip_space(s);
		return take_words(s, member);
	case TRACEKEYS_FLAGS:
		return take_flags(s);
	case TRACEKEYS_MODE:
		return take_mode(s);
	case TRACEKEYS_REQUEST:
		ev->has_request = true;
		if (!take_int_within(s, 0, INT64_MAX, &n))
			return false;
		ev->request = (uint64_t)n;
		return true;
	case TRACEKEYS_RET:
		ev->returned = true;
		return take_int(s, &ev->ret);
	case TRACEKEYS_ERROR:
		if (!take_int_within(s, -4095, 0, &n))
			return false;
		*(int *)member = (int)n;
		return true;
	case TRACEKEYS_BOOL:
		return take_bool(s, member);
	case TRACEKEYS_EXEC_LIST:
		if (!take_list(s, s->room->argv, TRACE_ARGV_MAX, &len))
			return false;
		s->room->argv[len] = NULL;
		ev->argv = s->room->argv;
		return true;
	case TRACEKEYS_EXIT:
		if (!take_int_within(s, 0, 255, &n))
			return false;
		ev->status = (int)n << 8;
		return true;
	case TRACEKEYS_SIGNAL:
		if (!take_int_within(s, 1, 126, &n))
			return false;
		ev->status = (int)n;
		return true;
	case TRACEKEYS_LIST:
		return take_list(s, ev->unsure, TRACE_UNSURE_MAX, &ev->unsure_len);
	case TRACEKEYS_ERRNO:
		break;
	}
	return skip_value(s);
}

/* ---- members ---- */

/* "path2_b64": the row, which path, and whether it is the exact form. NULL: not one of ours. */
static const struct tracekeys_row *find_key(struct scan *s, const char *key, size_t n,
					    unsigned *ret_path)
{
	*ret_path = 0;
	s->b64 = n > 4 && !memcmp(key + n - 4, "_b64", 4);
	n -= s->b64 ? 4 : 0;
	bool numbered = n && key[n - 1] >= '2' && key[n - 1] <= '0' + TRACE_PATHS;
	if (numbered)
		*ret_path = (unsigned)(key[--n] - '1');
	for (unsigned i = 0; i < TRACEKEYS_COUNT; i++) {
		unsigned k = (s->next_key + i) % TRACEKEYS_COUNT;
		const struct tracekeys_row *row = &tracekeys_rows[k];
		if (row->len != n || memcmp(row->name, key, n) != 0)
			continue;
		bool text = row->kind == TRACEKEYS_TEXT || row->kind == TRACEKEYS_PATH_TEXT;
		if ((numbered && !row->of_path) || (s->b64 && !text))
			return NULL;
		s->next_key = k + 1;
		return row;
	}
	return NULL;
}

static bool take_member(struct scan *s)
{
	char *key;
	size_t n;
	unsigned path;
	if (!take_string(s, &key, &n) || !take(s, ':', "':'"))
		return false;
	const struct tracekeys_row *row = find_key(s, key, n, &path);
	if (!row)
		return skip_value(s);
	if (row->of_path && path >= s->ev->paths)
		s->ev->paths = path + 1;
	char *owner = row->of_path ? (char *)&s->ev->path[path] : (char *)s->ev;
	skip_space(s);
	return take_value(s, row, owner + row->offset);
}

static bool take_object(struct scan *s)
{
	if (!take(s, '{', "a JSON object"))
		return false;
	if (next_is(s, '}'))
		return true;
	do {
		if (!take_member(s))
			return false;
	} while (next_is(s, ','));
	if (!take(s, '}', "',' or '}'"))
		return false;
	skip_space(s);
	return !*s->at || fail(s, "the end of the line");
}

static const char *what_is_missing(const struct trace_event *ev)
{
	if (ev->kind != TRACE_END && ev->pid <= 0)
		return "a member \"pid\"";
	if (ev->kind == TRACE_CALL && !ev->call)
		return "a member \"call\"";
	if (ev->kind == TRACE_FORK && ev->child <= 0)
		return "a member \"child\"";
	return NULL;
}

int tracejson_event(char *line, size_t n, struct tracejson_room *room, struct trace_event *ret,
		    size_t *ret_at, const char **ret_expected)
{
	struct scan s = {.line = line, .at = line, .room = room, .ev = ret};
	memset(ret, 0, sizeof *ret);
	ret->kind = TRACE_END + 2;
	bool ok = take_object(&s);
	if (ok && (size_t)(s.at - line) != n)
		ok = fail(&s, "a line without NUL");
	if (ok && ret->kind == TRACE_END + 2)
		ok = fail(&s, "a member \"ev\"");
	if (ok && ret->kind > TRACE_END)
		return -ENOMSG;
	const char *missing = ok ? what_is_missing(ret) : NULL;
	if (missing)
		ok = fail(&s, missing);
	if (!ok) {
		*ret_at = (size_t)(s.at - line);
		*ret_expected = s.expected;
		return -EINVAL;
	}
	if (ret->call)
		ret->ent = known_call(room, ret->call);
	if (!ret->tid)
		ret->tid = ret->pid;
	return 0;
}
