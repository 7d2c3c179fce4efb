#include "tracer/straceline.h"

#include <string.h>

/* The kernel's own limit (PID_MAX_LIMIT); a larger number in a line's first place is a time. */
#define PID_LARGEST (4 * 1024 * 1024)

#define NS_A_SECOND 1000000000

/* The line that is read: [at, end). */
struct cursor {
	const char *at;
	const char *end;
};

bool strace_span_is(struct strace_span s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.at, word, s.len) == 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

static void skip_spaces(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t'))
		c->at++;
}

/* Step over the word, if it stands here. */
static bool take(struct cursor *c, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* A decimal number that stands here; false (and nothing taken) where there is none, or too large.
 */
static bool take_number(struct cursor *c, int64_t *ret)
{
	const char *p = c->at;
	int64_t value = 0;
	for (; p < c->end && is_digit(*p); p++) {
		if (value > INT64_MAX / 10 - 1)
			return false;
		value = value * 10 + (*p - '0');
	}
	if (p == c->at)
		return false;
	c->at = p;
	*ret = value;
	return true;
}

/* .123456 as nanoseconds; 0 where there is none. */
static int64_t take_fraction(struct cursor *c)
{
	int64_t ns = 0;
	int64_t unit = NS_A_SECOND / 10;
	if (c->at + 1 >= c->end || *c->at != '.' || !is_digit(c->at[1]))
		return 0;
	for (c->at++; c->at < c->end && is_digit(*c->at); c->at++) {
		ns += (*c->at - '0') * unit;
		unit /= 10;
	}
	return ns;
}

/* HH:MM:SS[.fraction], its hours already read. */
static bool take_clock(struct cursor *c, int64_t hours, struct straceline *ret)
{
	int64_t minutes = 0;
	int64_t seconds = 0;
	if (hours > 99 || !take(c, ":") || !take_number(c, &minutes) || minutes > 59 ||
	    !take(c, ":") || !take_number(c, &seconds) || seconds > 60)
		return false;
	ret->has_time = true;
	ret->time_ns = (hours * 3600 + minutes * 60 + seconds) * NS_A_SECOND + take_fraction(c);
	return true;
}

/* <comm> of -Y behind a pid: the program's name may hold anything but what ends it. */
static void skip_comm(struct cursor *c)
{
	if (c->at >= c->end || *c->at != '<')
		return;
	const char *close = memchr(c->at, '>', (size_t)(c->end - c->at));
	if (close)
		c->at = close + 1;
}

/* [pid  1234] or [pid 1234<comm>] */
static bool take_bracketed_pid(struct cursor *c, struct straceline *ret)
{
	struct cursor in = *c;
	int64_t pid = 0;
	if (!take(&in, "[pid "))
		return false;
	skip_spaces(&in);
	if (!take_number(&in, &pid) || pid > PID_LARGEST)
		return false;
	skip_comm(&in);
	if (!take(&in, "]"))
		return false;
	ret->pid = (pid_t)pid;
	*c = in;
	return true;
}

/* -n's [ 257], -i's [00007f3301e27ad7] and [????????????????], the context of --secontext. */
static bool skip_bracket(struct cursor *c)
{
	if (c->at >= c->end || *c->at != '[' ||
	    (c->end - c->at > 9 && !memcmp(c->at, "[ Process ", 10)))
		return false;
	const char *close = memchr(c->at, ']', (size_t)(c->end - c->at));
	if (!close)
		return false;
	c->at = close + 1;
	return true;
}

static bool at_space(const struct cursor *c)
{
	return c->at >= c->end || *c->at == ' ';
}

/* A number in the front: a pid, a time, or neither (nothing is taken then). */
static bool take_front_number(struct cursor *c, struct straceline *ret)
{
	struct cursor in = *c;
	int64_t n = 0;
	if (!take_number(&in, &n))
		return false;
	if (in.at < in.end && *in.at == ':') {
		if (!take_clock(&in, n, ret))
			return false;
	} else if (in.at < in.end && *in.at == '.') {
		/* -r and -ttt look alike; a distance is not as long as what has passed since 1970.
		 */
		int64_t ns = take_fraction(&in);
		if (n > 100000000 && n < INT64_MAX / NS_A_SECOND - 1) {
			ret->has_time = true;
			ret->time_ns = n * NS_A_SECOND + ns;
		}
	} else if (n > PID_LARGEST || ret->pid) {
		ret->has_time = n < INT64_MAX / NS_A_SECOND - 1;
		ret->time_ns = ret->has_time ? n * NS_A_SECOND : 0;
	} else {
		ret->pid = (pid_t)n;
		skip_comm(&in);
	}
	if (!at_space(&in))
		return false;
	*c = in;
	return true;
}

/* (+     0.000123): -r beside -t. */
static bool skip_relative(struct cursor *c)
{
	if (c->end - c->at < 2 || c->at[0] != '(' || c->at[1] != '+')
		return false;
	const char *close = memchr(c->at, ')', (size_t)(c->end - c->at));
	if (!close)
		return false;
	c->at = close + 1;
	return true;
}

/* How many things stood there. */
static unsigned parse_front(struct cursor *c, struct straceline *ret)
{
	unsigned n = 0;
	skip_spaces(c);
	while (take_bracketed_pid(c, ret) || take_front_number(c, ret) || skip_relative(c) ||
	       skip_bracket(c)) {
		skip_spaces(c);
		n++;
	}
	return n;
}

/* A row of -C's table: five numbers or four, and a name. */
static bool is_table_row(struct cursor c, unsigned numbers)
{
	while (c.at < c.end && is_name(*c.at))
		c.at++;
	return numbers >= 4 && c.at >= c.end;
}

static void bad(struct straceline *ret, const char *line, const char *at, const char *expected)
{
	ret->kind = STRACELINE_BAD;
	ret->bad_at = (size_t)(at - line);
	ret->expected = expected;
}

/* +++ exited with 1 +++ and its like; c is behind the pluses. */
static void parse_end(struct cursor *c, const char *line, struct straceline *ret)
{
	int64_t n = 0;
	skip_spaces(c);
	if (take(c, "exited with ") && take_number(c, &n)) {
		ret->kind = STRACELINE_EXITED;
		ret->number = (int)(n & 0xff);
	} else if (take(c, "killed by ")) {
		ret->kind = STRACELINE_KILLED;
		ret->word.at = c->at;
		while (c->at < c->end && is_name(*c->at))
			c->at++;
		ret->word.len = (size_t)(c->at - ret->word.at);
	} else if (take(c, "superseded by execve in pid ") && take_number(c, &n)) {
		ret->kind = STRACELINE_SUPERSEDED;
		ret->other = n > PID_LARGEST ? 0 : (pid_t)n;
	} else {
		bad(ret, line, c->at,
		    "\"exited with N\", \"killed by SIGNAL\" or \"superseded by\"");
	}
}

/* Process 4574 attached (or detached); c is at the number. */
static bool parse_attached(struct cursor c, struct straceline *ret)
{
	int64_t n = 0;
	if (!take_number(&c, &n) || n > PID_LARGEST)
		return false;
	skip_comm(&c);
	if (take(&c, " attached"))
		ret->kind = STRACELINE_ATTACHED;
	else if (take(&c, " detached"))
		ret->kind = STRACELINE_DETACHED;
	else
		return false;
	ret->other = (pid_t)n;
	return true;
}

/* [ Process PID=123 runs in 32 bit mode. ] */
static bool parse_bits(struct cursor c, struct straceline *ret)
{
	int64_t n = 0;
	if (!take(&c, "[ Process PID=") || !take_number(&c, &n) || n > PID_LARGEST ||
	    !take(&c, " runs in "))
		return false;
	ret->kind = STRACELINE_BITS;
	ret->other = (pid_t)n;
	ret->number = take(&c, "32") ? 32 : take(&c, "64") ? 64 : 0;
	return true;
}

/* <... openat resumed>) = 3; before strace 5.? a space stood before the bracket. */
static bool parse_resumed(struct cursor *c, struct straceline *ret)
{
	if (!take(c, "<... "))
		return false;
	ret->name.at = c->at;
	while (c->at < c->end && is_name(*c->at))
		c->at++;
	ret->name.len = (size_t)(c->at - ret->name.at);
	if (!ret->name.len || !take(c, " resumed"))
		return false;
	skip_spaces(c);
	if (!take(c, ">"))
		return false;
	ret->kind = STRACELINE_RESUMED;
	ret->rest = (struct strace_span){c->at, (size_t)(c->end - c->at)};
	return true;
}

/* Does the text end in this? Then it ends before it. */
static bool cut_end(struct strace_span *s, const char *word)
{
	size_t len = strlen(word);
	while (s->len && (s->at[s->len - 1] == ' ' || s->at[s->len - 1] == '\r'))
		s->len--;
	if (s->len < len || memcmp(s->at + s->len - len, word, len) != 0)
		return false;
	s->len -= len;
	return true;
}

/* "vfork(strace: Process 4574 attached": on stderr strace's own words break into its lines. */
static bool parse_broken(struct straceline *ret)
{
	struct strace_span s = ret->rest;
	struct straceline said = {0};
	if (!cut_end(&s, " attached"))
		return false;
	const char *word = memmem(s.at, s.len, "Process ", 8);
	if (!word || !parse_attached((struct cursor){word + 8, s.at + ret->rest.len}, &said))
		return false;
	/* Up to 4.x it does not say its own name. */
	if (word - s.at >= 8 && !memcmp(word - 8, "strace: ", 8))
		word -= 8;
	ret->kind = said.kind;
	ret->other = said.other;
	ret->rest.len = (size_t)(word - ret->rest.at);
	return true;
}

static void parse_call(struct cursor *c, const char *line, struct straceline *ret)
{
	ret->name.at = c->at;
	while (c->at < c->end && is_name(*c->at))
		c->at++;
	ret->name.len = (size_t)(c->at - ret->name.at);
	if (!ret->name.len || is_digit(*ret->name.at)) {
		bad(ret, line, ret->name.at, "a call, as in: openat(");
		return;
	}
	if (!take(c, "(")) {
		bad(ret, line, c->at, "\"(\" behind the call's name");
		return;
	}
	ret->kind = STRACELINE_CALL;
	ret->rest = (struct strace_span){c->at, (size_t)(c->end - c->at)};
	if (parse_broken(ret))
		return;
	struct strace_span s = ret->rest;
	/* What strace was detached from, by Ctrl-C say, ends out of its sight. */
	if ((cut_end(&s, "<unfinished ...>") || cut_end(&s, "<detached ...>")) &&
	    (!s.len || s.at[s.len - 1] == ' ')) {
		ret->kind = STRACELINE_UNFINISHED;
		ret->rest.len = s.len;
	}
}

/* What strace says that is about no call: the lines of -C's table, stacks, its own remarks. */
static bool says_nothing(struct cursor c)
{
	skip_spaces(&c);
	return c.at >= c.end || take(&c, "> ") || take(&c, "strace: ") || take(&c, "% time ") ||
	       take(&c, "------ ") || take(&c, "*** ") || *c.at == '\r';
}

void straceline_parse(const char *text, size_t len, struct straceline *ret)
{
	struct cursor c = {text, text + len};

	memset(ret, 0, sizeof(*ret));
	ret->kind = STRACELINE_NOTHING;
	unsigned n = parse_front(&c, ret);
	struct cursor word = c;
	if ((take(&word, "strace: Process ") || take(&word, "Process ")) &&
	    parse_attached(word, ret))
		return;
	if (is_table_row(c, n)) {
		*ret = (struct straceline){.kind = STRACELINE_NOTHING};
		return;
	}
	if (says_nothing(c) || parse_bits(c, ret))
		return;
	if (take(&c, "+++ ")) {
		parse_end(&c, text, ret);
		return;
	}
	if (take(&c, "--- ")) {
		ret->kind = STRACELINE_SIGNAL;
		return;
	}
	word = c;
	if (!parse_resumed(&word, ret))
		parse_call(&c, text, ret);
}
