/*
 * The engine's questions (docs/protocol.md, on a pair of pipes of our own, one pair a call) as MCP
 * elicitations, and back. A question that can't be put to the user is answered with no.
 */
#include "agent/mcp.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX (16u << 20)

/* ---- asking ---- */

static void add_words(struct buf *out, const struct json *event)
{
	const char *exe = json_get_str(event, "exe"), *path = json_get_str(event, "path");
	const char *text = json_get_str(event, "text"), *call = json_get_str(event, "call");
	bool sensitive = false;
	if (text) {
		buf_add_str(out, "May the command run again?\n");
		escape_add_str(out, text);
		return;
	}
	escape_add_str(out, exe ? exe : "a program");
	buf_add_str(out, " asks to ");
	for (const struct json *a = json_first(json_get(event, "access")); a; a = json_next(a))
		buf_addf(out, "%s%s", a == json_first(json_get(event, "access")) ? "" : ", ",
			 json_str(a));
	buf_add_char(out, ' ');
	escape_add_str(out, path);
	buf_addf(out, " (%s)", call ? call : "?");
	if (json_bool(json_get(event, "sensitive"), &sensitive) && sensitive)
		buf_add_str(out, ". It is on the list of sensitive paths");
	buf_add_str(out, ". The command:");
	for (const struct json *a = json_first(json_get(event, "argv")); a; a = json_next(a)) {
		buf_add_char(out, ' ');
		escape_add_fit(out, json_str(a), 200);
	}
}

static void add_string(struct jsonw *w, const char *key, const char *title)
{
	jsonw_key(w, key);
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "string");
	jsonw_kstr(w, "title", title);
}

static void end_string(struct jsonw *w, const char *standard)
{
	jsonw_end_array(w);
	if (standard)
		jsonw_kstr(w, "default", standard);
	jsonw_end_object(w);
}

/* A rename's has a rule a line; a choice is one line. */
static void add_rules(struct buf *out, const char *rules)
{
	for (const char *at = rules; *at;) {
		size_t n = strcspn(at, "\n");
		buf_add_str(out, at == rules ? "" : "; ");
		escape_add(out, at, n);
		at += n + (at[n] == '\n');
	}
}

/* "1: allow read /x exact": the number tells them apart. */
static void scope_name(struct buf *out, const struct json *scope, size_t i)
{
	const char *rule = json_get_str(scope, "rule");
	int64_t surplus = 0;
	buf_addf(out, "%zu: ", i + 1);
	add_rules(out, rule ? rule : "");
	if (json_get_int(scope, "surplus", &surplus) && surplus)
		buf_addf(out, " (opens %lld more)", (long long)surplus);
}

static void write_scopes(struct jsonw *w, const struct json *scopes)
{
	struct buf first = {0};
	scope_name(&first, json_first(scopes), 0);
	add_string(w, "scope", "If allowed: which rule");
	jsonw_key(w, "enum");
	jsonw_begin_array(w);
	for (size_t i = 0; i < json_len(scopes); i++) {
		struct buf name = {0};
		scope_name(&name, json_at(scopes, i), i);
		jsonw_str(w, buf_str(&name));
		buf_free(&name);
	}
	end_string(w, buf_str(&first));
	buf_free(&first);
}

static void write_schema(struct jsonw *w, const struct json *event)
{
	const struct json *scopes = json_get(event, "scopes");
	bool always = false;
	jsonw_begin_object(w);
	jsonw_kstr(w, "type", "object");
	jsonw_key(w, "properties");
	jsonw_begin_object(w);
	add_string(w, "answer", "once, session and always allow it; never is saved");
	jsonw_key(w, "enum");
	jsonw_begin_array(w);
	jsonw_str(w, "no");
	for (const struct json *l = json_first(json_get(event, "lifetimes")); l; l = json_next(l)) {
		jsonw_str(w, json_str(l));
		always = always || (json_str(l) && !strcmp(json_str(l), "always"));
	}
	if (!json_len(json_get(event, "lifetimes")))
		jsonw_str(w, "once");
	if (always)
		jsonw_str(w, "never");
	end_string(w, NULL);
	if (json_len(scopes))
		write_scopes(w, scopes);
	jsonw_end_object(w);
	jsonw_key(w, "required");
	jsonw_begin_array(w);
	jsonw_str(w, "answer");
	jsonw_end_array(w);
	jsonw_end_object(w);
}

static void put_answer(struct mcp *s, int64_t question, const char *answer, const char *lifetime,
		       int64_t scope)
{
	struct buf line = {0};
	struct jsonw w;
	jsonw_init(&w, &line);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "id", question);
	jsonw_kstr(&w, "answer", answer);
	jsonw_kstr(&w, "lifetime", lifetime);
	jsonw_kint(&w, "scope", scope);
	jsonw_end_object(&w);
	buf_add_char(&line, '\n');
	/* Some hundred bytes into a socket of our own, which the engine reads: it has room. */
	if (s->answers_fd >= 0 && (buf_error(&line) || send(s->answers_fd, line.data, line.len,
							    MSG_NOSIGNAL | MSG_DONTWAIT) < 0)) {
		/* A closed end is a no to everything. */
		close(TAKE_FD(s->answers_fd));
	}
	buf_free(&line);
}

static void ask_client(struct mcp *s, const struct json *event, int64_t question)
{
	struct mcp_ask *ask = calloc(1, sizeof(*ask));
	struct mcp_message m;
	struct buf words = {0};
	char id[32];
	if (!ask) {
		put_answer(s, question, "deny", "session", 0);
		return;
	}
	*ask = (struct mcp_ask){.next = s->asks,
				.number = ++s->asked,
				.question = question,
				.scopes = json_len(json_get(event, "scopes"))};
	s->asks = ask;
	add_words(&words, event);
	snprintf(id, sizeof(id), "ask-%llu", (unsigned long long)ask->number);
	mcp_begin(&m);
	jsonw_kstr(&m.w, "id", id);
	jsonw_kstr(&m.w, "method", "elicitation/create");
	jsonw_key(&m.w, "params");
	jsonw_begin_object(&m.w);
	jsonw_kstr(&m.w, "message", buf_str(&words));
	jsonw_key(&m.w, "requestedSchema");
	write_schema(&m.w, event);
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
	buf_free(&words);
}

/* ---- answers ---- */

static struct mcp_ask *take_ask(struct mcp *s, uint64_t number, int64_t question)
{
	for (struct mcp_ask **at = &s->asks; *at; at = &(*at)->next) {
		struct mcp_ask *ask = *at;
		if (number ? ask->number != number : ask->question != question)
			continue;
		*at = ask->next;
		return ask;
	}
	return NULL;
}

void mcpask_answer(struct mcp *s, const struct json *message)
{
	const char *id = json_get_str(message, "id");
	const struct json *result = json_get(message, "result");
	const struct json *content = json_get(result, "content");
	const char *action = json_get_str(result, "action");
	const char *answer = json_get_str(content, "answer"),
		   *scope = json_get_str(content, "scope");
	unsigned long long number = 0;
	char rest;
	if (!id || sscanf(id, "ask-%llu%c", &number, &rest) != 1 || !number)
		return;
	struct mcp_ask *ask = take_ask(s, number, 0);
	if (!ask)
		return; /* it was settled meanwhile */
	bool accepted = action && !strcmp(action, "accept") && answer;
	bool allow = accepted && (!strcmp(answer, "once") || !strcmp(answer, "session") ||
				  !strcmp(answer, "always"));
	bool never = accepted && !strcmp(answer, "never");
	long n = scope ? strtol(scope, NULL, 10) : 1;
	/* A scope that was not offered is no yes to any. */
	allow = allow && (!scope || (n > 0 && (size_t)n <= ask->scopes));
	put_answer(s, ask->question, allow ? "allow" : "deny",
		   allow   ? answer
		   : never ? "always"
			   : "session",
		   allow ? n - 1 : 0);
	free(ask);
}

/* The engine needs no answer any more: the client's form can go. */
static void withdraw(struct mcp *s, const struct mcp_ask *ask, const char *reason)
{
	struct mcp_message m;
	char id[32];
	snprintf(id, sizeof(id), "ask-%llu", (unsigned long long)ask->number);
	mcp_begin(&m);
	jsonw_kstr(&m.w, "method", "notifications/cancelled");
	jsonw_key(&m.w, "params");
	jsonw_begin_object(&m.w);
	jsonw_kstr(&m.w, "requestId", id);
	jsonw_kstr(&m.w, "reason", reason ? reason : "settled");
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
}

/* ---- the engine's events ---- */

static void take_event(struct mcp *s, const struct json *event)
{
	const char *name = json_get_str(event, "event");
	int64_t question;
	if (!name || !json_get_int(event, "id", &question))
		return;
	if (!strcmp(name, "ask")) {
		ask_client(s, event, question);
	} else if (!strcmp(name, "cancel")) {
		struct mcp_ask *ask = take_ask(s, 0, question);
		if (ask)
			withdraw(s, ask, json_get_str(event, "reason"));
		free(ask);
	}
}

static void take_events(struct mcp *s)
{
	const char *newline;
	while (s->events.len && (newline = memchr(s->events.data, '\n', s->events.len))) {
		size_t n = (size_t)(newline - s->events.data) + 1;
		struct json *event = NULL;
		if (!json_parse(s->events.data, n, &event, NULL))
			take_event(s, event);
		json_free(event);
		buf_drop(&s->events, n);
	}
}

static void on_events(void *arg, int fd, uint32_t flags)
{
	struct mcp *s = arg;
	char chunk[16384];
	(void)flags;
	ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (n <= 0)
		return;
	buf_add(&s->events, chunk, (size_t)n);
	take_events(s);
}

/* ---- a call's pair ---- */

int mcpask_open(struct mcp *s)
{
	int events[2], answers[2];
	if (!s->elicits || s->tools.mode == ENGINE_REPORT)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, events))
		return -errno;
	s->events_fd = events[0];
	s->tools.events = events[1];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, answers))
		return -errno;
	s->answers_fd = answers[0];
	s->tools.answers = answers[1];
	s->events = (struct buf){.max = EVENTS_MAX};
	return loop_add_fd(session_loop(s->session), s->events_fd, EPOLLIN, on_events, s,
			   &s->events_watch);
}

void mcpask_close(struct mcp *s)
{
	int *const fds[] = {&s->events_fd, &s->answers_fd, &s->tools.events, &s->tools.answers};
	loop_remove(session_loop(s->session), s->events_watch);
	s->events_watch = 0;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (*fds[i] >= 0)
			close(TAKE_FD(*fds[i]));
	while (s->asks) {
		struct mcp_ask *ask = s->asks;
		s->asks = ask->next;
		withdraw(s, ask, "exited");
		free(ask);
	}
	buf_free(&s->events);
}
