/* A trace as a whole: its header, its events one after the other, its end. */
#include "tracer/tracejson.h"

#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct source {
	struct traceinput *in;
	struct json *root; /* of the header: its strings are lent from it */
	struct trace_header header;
	const char **argv;
	struct buf policy;
	struct tracejson_room room;
	uint64_t events;
	bool ended, complete;
};

static const struct trace_header *header_of(const void *self)
{
	return &((const struct source *)self)->header;
}

static bool is_complete(const void *self)
{
	return ((const struct source *)self)->complete;
}

static void free_source(void *self)
{
	struct source *s = self;
	traceinput_close(s->in);
	json_free(s->root);
	free(s->argv);
	buf_free(&s->policy);
	free(s);
}

static int complain(const struct source *s, size_t column, const char *expected,
		    struct trace_error *ret)
{
	const char *name = traceinput_name(s->in);
	uint64_t line = traceinput_number(s->in);
	if (column)
		snprintf(ret->text, sizeof ret->text, "%s:%llu:%zu: expected %s", name,
			 (unsigned long long)line, column, expected);
	else
		snprintf(ret->text, sizeof ret->text, "%s:%llu: %s", name, (unsigned long long)line,
			 expected);
	return -EINVAL;
}

/* An error of the input itself, told. */
static int input_failed(const struct source *s, int err, struct trace_error *ret)
{
	const char *what = err == -E2BIG     ? "the next line is longer than any event's"
			   : err == -EBADMSG ? "the compressed data is damaged"
					     : strerror(-err);
	complain(s, 0, what, ret);
	return err == -ENOMEM ? err : -EIO;
}

static int next_event(void *self, struct trace_event *ret, struct trace_error *ret_error)
{
	struct source *s = self;
	char *line;
	size_t n, at;
	const char *expected;
	for (;;) {
		int got = traceinput_line(s->in, &line, &n);
		if (got < 0)
			return input_failed(s, got, ret_error);
		if (!got || !traceinput_is_whole(s->in))
			return 0; /* what is cut is left out */
		if (strspn(line, " \t\r") == n)
			continue;
		if (s->ended)
			return complain(s, 1, "nothing more after the trace's end", ret_error);
		int err = tracejson_event(line, n, &s->room, ret, &at, &expected);
		s->events++;
		if (err == -ENOMSG)
			continue;
		if (err)
			return complain(s, at + 1, expected, ret_error);
		ret->line = traceinput_number(s->in);
		break;
	}
	if (ret->kind != TRACE_END)
		return 1;
	s->ended = true;
	if (ret->events != s->events - 1)
		return complain(s, 0, "the number of events is not the one told here", ret_error);
	s->complete = true;
	return 1;
}

bool tracejson_is_header(const char *line, size_t n)
{
	size_t at = strspn(line, " \t");
	return at < n && line[at] == '{';
}

static int take_header_argv(struct source *s, const struct json *list)
{
	size_t n = json_len(list);
	s->argv = calloc(n + 1, sizeof *s->argv);
	if (!s->argv)
		return -ENOMEM;
	size_t len = 0;
	for (const struct json *v = json_first(list); v; v = json_next(v))
		if (json_str(v))
			s->argv[len++] = json_str(v);
	s->header.argv = s->argv;
	return 0;
}

/* Bytes that were no text stand beside it exactly. */
static const char *header_path(struct source *s, const char *key)
{
	char exact_key[32];
	snprintf(exact_key, sizeof exact_key, "%s_b64", key);
	const char *exact = json_get_str(s->root, exact_key);
	char *room = (char *)(uintptr_t)exact; /* the parsed tree is ours */
	return exact && json_decode_base64(room) ? room : json_get_str(s->root, key);
}

static int take_policy(struct source *s)
{
	struct jsonw w;
	const struct json *policy = json_get(s->root, "policy");
	if (!policy)
		return 0;
	jsonw_init(&w, &s->policy);
	json_write(&w, policy);
	s->header.policy = buf_str(&s->policy);
	return buf_error(&s->policy);
}

static int take_header(struct source *s, struct trace_error *ret_error)
{
	struct trace_header *h = &s->header;
	int64_t format, abi = 0;
	if (!json_get_int(s->root, "warder_trace", &format))
		return complain(s, 1, "a trace's first line, {\"warder_trace\":1,...}", ret_error);
	if (format != TRACE_FORMAT)
		return complain(s, 0, "a trace of another format: this warder reads format 1",
				ret_error);
	h->version = json_get_str(s->root, "version");
	h->started = json_get_str(s->root, "started");
	h->host = json_get_str(s->root, "host");
	h->cwd = header_path(s, "cwd");
	h->arch = json_get_str(s->root, "arch");
	h->kernel = json_get_str(s->root, "kernel");
	h->has_uid = json_get_int(s->root, "uid", &h->uid);
	h->home = header_path(s, "home");
	h->project = header_path(s, "project");
	h->tmpdir = header_path(s, "tmpdir");
	h->label = json_get_str(s->root, "label");
	h->mode = json_get_str(s->root, "mode");
	if (json_get_int(s->root, "landlock_abi", &abi) && abi >= 0 && abi < 1000)
		h->landlock_abi = (int)abi;
	int err = take_header_argv(s, json_get(s->root, "argv"));
	return err ? err : take_policy(s);
}

static int read_header(struct source *s, struct trace_error *ret_error)
{
	char *line;
	size_t n, at;
	int got = traceinput_line(s->in, &line, &n);
	if (got < 0)
		return input_failed(s, got, ret_error);
	if (!got || !traceinput_is_whole(s->in))
		return complain(s, 1, "a trace's first line, {\"warder_trace\":1,...}", ret_error);
	int err = json_parse(line, n, &s->root, &at);
	if (err == -EINVAL)
		return complain(s, at + 1, "a trace's first line, {\"warder_trace\":1,...}",
				ret_error);
	return err ? err : take_header(s, ret_error);
}

int tracejson_open(struct traceinput *in, struct trace_source *ret, struct trace_error *ret_error)
{
	struct source *s = calloc(1, sizeof *s);
	if (!s) {
		traceinput_close(in);
		return -ENOMEM;
	}
	s->in = in;
	int err = read_header(s, ret_error);
	if (err) {
		free_source(s);
		return err;
	}
	*ret = (struct trace_source){.next = next_event,
				     .header = header_of,
				     .is_complete = is_complete,
				     .free = free_source,
				     .self = s};
	return 0;
}
