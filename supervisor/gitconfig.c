#include "supervisor/gitconfig.h"

#include "tracer/buf.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct scan {
	const char *at, *end;
	struct buf section, subsection, key, value;
	gitconfig_fn *fn;
	void *arg;
};

static void skip_blanks(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\r'))
		s->at++;
}

static void skip_line(struct scan *s)
{
	const char *newline = memchr(s->at, '\n', (size_t)(s->end - s->at));
	s->at = newline ? newline + 1 : s->end;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '.' || c == '_';
}

static void take_name(struct scan *s, struct buf *out)
{
	buf_reset(out);
	while (s->at < s->end && is_name(*s->at))
		buf_add_char(out, (char)tolower((unsigned char)*s->at++));
}

static void take_subsection(struct scan *s)
{
	for (s->at++; s->at < s->end && *s->at != '"' && *s->at != '\n'; s->at++) {
		if (*s->at == '\\' && s->at + 1 < s->end)
			s->at++;
		buf_add_char(&s->subsection, *s->at);
	}
	if (s->at < s->end && *s->at == '"')
		s->at++;
}

/* [section "subsection"]; what follows on the line may be a variable already. */
static void take_header(struct scan *s)
{
	s->at++;
	skip_blanks(s);
	take_name(s, &s->section);
	buf_reset(&s->subsection);
	skip_blanks(s);
	if (s->at < s->end && *s->at == '"')
		take_subsection(s);
	skip_blanks(s);
	if (s->at < s->end && *s->at == ']')
		s->at++;
	else
		skip_line(s);
}

/* Behind a backslash. */
static void take_escape(struct scan *s)
{
	static const char names[] = "ntb", bytes[] = "\n\t\b";
	if (s->at == s->end)
		return;
	char c = *s->at++;
	if (c == '\r' && s->at < s->end && *s->at == '\n')
		c = *s->at++;
	if (c == '\n')
		return; /* the value goes on in the next line */
	const char *name = memchr(names, c, sizeof(names) - 1);
	buf_add_char(&s->value, name ? bytes[name - names] : c);
}

static void take_value(struct scan *s)
{
	bool quoted = false;
	size_t solid = 0; /* up to here no trailing blank */
	buf_reset(&s->value);
	skip_blanks(s);
	while (s->at < s->end && *s->at != '\n') {
		char c = *s->at++;
		if (!quoted && (c == '#' || c == ';'))
			break;
		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (c == '\\')
			take_escape(s);
		else
			buf_add_char(&s->value, c);
		if (quoted || c == '\\' || !isspace((unsigned char)c))
			solid = s->value.len;
	}
	if (s->value.data) {
		s->value.len = solid;
		s->value.data[solid] = '\0';
	}
	skip_line(s);
}

static int take_variable(struct scan *s)
{
	take_name(s, &s->key);
	skip_blanks(s);
	if (s->key.len == 0 || s->at == s->end || *s->at != '=') {
		skip_line(s); /* a comment, or a key that is merely true */
		return 0;
	}
	s->at++;
	take_value(s);
	return s->fn(buf_str(&s->section), buf_str(&s->subsection), buf_str(&s->key),
		     buf_str(&s->value), s->arg);
}

int gitconfig_scan(const char *text, size_t n, gitconfig_fn *fn, void *arg)
{
	struct scan s = {.at = text, .end = text + n, .fn = fn, .arg = arg};
	int r = 0;
	while (r == 0 && s.at < s.end) {
		if (isspace((unsigned char)*s.at))
			s.at++;
		else if (*s.at == '[')
			take_header(&s);
		else
			r = take_variable(&s);
	}
	buf_free(&s.section);
	buf_free(&s.subsection);
	buf_free(&s.key);
	buf_free(&s.value);
	return r;
}

int gitconfig_read(const char *file, gitconfig_fn *fn, void *arg)
{
	int fd AUTOCLOSE = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	struct buf text = {.max = GITCONFIG_SIZE_MAX};
	int r = buf_read_from(fd, &text);
	if (r == 0)
		r = gitconfig_scan(buf_str(&text), text.len, fn, arg);
	buf_free(&text);
	return r;
}
