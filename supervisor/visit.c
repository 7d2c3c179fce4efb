#include "supervisor/visit.h"

#include "supervisor/promptline.h"
#include "supervisor/protocol_text.h"
#include "supervisor/stack.h"
#include "tracer/util.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#define VISIT_LINE_MAX (1u << 20) /* a question with its scopes is a few KiB */

/* A question's name over there. */
struct link {
	struct link *next;
	struct visit *visit;
	uint64_t theirs, ours;
};

struct visit {
	struct loop *loop;
	struct ask *ask;
	struct visit_hooks hooks;
	int fd;
	uint64_t watch;
	uint64_t again; /* a timer: lines that came while a stack was waited for */
	struct buf in;
	struct link *links;
	bool over;
};

/* ---- links ---- */

static struct link *link_of(const struct visit *v, uint64_t theirs)
{
	for (struct link *l = v->links; l; l = l->next)
		if (l->theirs == theirs)
			return l;
	return NULL;
}

static void drop_link(struct link *l)
{
	struct link **at = &l->visit->links;
	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	free(l);
}

static void drop_all(struct visit *v, const char *reason)
{
	while (v->links) {
		uint64_t ours = v->links->ours;
		drop_link(v->links);
		ask_cancel(v->ask, ours, reason);
	}
}

/* ---- sending ---- */

static void end(struct visit *v, const char *why)
{
	if (v->over)
		return;
	v->over = true;
	loop_remove(v->loop, v->watch);
	v->watch = 0;
	drop_all(v, "exited");
	v->hooks.gone(v->hooks.arg, v, why);
}

static int send_text(struct visit *v, const char *text)
{
	size_t n = strlen(text);
	while (n) {
		ssize_t sent = send(v->fd, text, n, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return -errno;
		text += sent;
		n -= (size_t)sent;
	}
	return 0;
}

void visit_answered(void *arg, const struct question *q, const struct answer *a)
{
	struct link *l = q->owner;
	struct visit *v = l->visit;
	char line[128];
	(void)arg;
	if (a->by == BY_USER) { /* else we are leaving: the question stays open over there */
		snprintf(line, sizeof line,
			 "{\"id\":%ju,\"answer\":\"%s\",\"scope\":%u,\"lifetime\":\"%s\"}\n",
			 (uintmax_t)l->theirs, a->allow ? "allow" : "deny",
			 a->allow && !q->is_rerun ? a->scope : 0, lifetime_name(a->lifetime));
		if (!v->over && send_text(v, line)) {
			drop_link(l);
			end(v, "the answer could not be sent");
			return;
		}
	}
	drop_link(l);
}

/* ---- what is heard ---- */

static void add_words(struct buf *out, const struct json *list)
{
	for (const struct json *w = json_first(list); w; w = json_next(w)) {
		if (out->len)
			buf_add_char(out, ' ');
		promptline_add_argument(out, json_str(w) ? json_str(w) : "");
	}
}

static void hear_start(struct visit *v, const struct json *event)
{
	struct buf command = {0};
	const char *run = json_get_str(event, "run");
	add_words(&command, json_get(event, "command"));
	v->hooks.begun(v->hooks.arg, v, run ? run : "", json_get_str(event, "label"),
		       buf_str(&command));
	buf_free(&command);
}

static const char *hear_question(struct visit *v, const struct json *event)
{
	struct question *q;
	struct link *l = calloc(1, sizeof *l);
	uint64_t theirs, ours;
	int err = l ? protocol_text_read_question(event, &q) : -ENOMEM;
	if (err) {
		free(l);
		return err == -ENOMEM ? "no memory" : "a question is not what it should be";
	}
	theirs = q->id;
	*l = (struct link){.visit = v, .theirs = theirs, .next = v->links};
	v->links = l;
	q->owner = l;
	q->group = 0;
	/* A front may answer at once: the link is gone then. */
	if (ask_push(v->ask, q, &ours)) {
		drop_link(l);
		return "the question can't be shown";
	}
	if ((l = link_of(v, theirs)))
		l->ours = ours;
	return NULL;
}

static void hear_cancel(struct visit *v, const struct json *event)
{
	int64_t id;
	const char *reason = json_get_str(event, "reason");
	struct link *l = json_get_int(event, "id", &id) ? link_of(v, (uint64_t)id) : NULL;
	if (!l)
		return;
	uint64_t ours = l->ours;
	drop_link(l);
	ask_cancel(v->ask, ours, reason ? reason : "covered");
}

/* NULL, or why the visit can't go on. Events that are not known are passed over. */
static const char *hear(struct visit *v, const char *line, size_t n)
{
	struct json *event;
	const char *fault = NULL;
	if (json_parse(line, n, &event, NULL))
		return "it said something that is no JSON";
	const char *name = json_get_str(event, "event");
	if (!name)
		fault = "it said something that is no event";
	else if (!strcmp(name, "start"))
		hear_start(v, event);
	else if (!strcmp(name, "ask"))
		fault = hear_question(v, event);
	else if (!strcmp(name, "cancel"))
		hear_cancel(v, event);
	json_free(event);
	return fault;
}

static void hear_lines(struct visit *v)
{
	char *end_of_line;
	while (!v->over && v->in.len && (end_of_line = memchr(v->in.data, '\n', v->in.len))) {
		size_t n = (size_t)(end_of_line - v->in.data);
		const char *fault = hear(v, v->in.data, n);
		if (fault)
			end(v, fault);
		else
			buf_drop(&v->in, n + 1);
	}
}

/* 0, or why no more can be read; nothing new is 0, too. */
static const char *read_some(struct visit *v)
{
	char bytes[16384];
	ssize_t n = recv(v->fd, bytes, sizeof bytes, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (n <= 0)
		return "";
	buf_add(&v->in, bytes, (size_t)n);
	return buf_error(&v->in) ? "it said too much" : NULL;
}

static void on_readable(void *arg, int fd, uint32_t events)
{
	struct visit *v = arg;
	(void)fd, (void)events;
	const char *why = read_some(v);
	hear_lines(v);
	if (why)
		end(v, *why ? why : NULL);
}

static void on_again(void *arg)
{
	struct visit *v = arg;
	v->again = 0;
	hear_lines(v);
}

/* ---- who made the call ---- */

/* The line that answers, taken out of what was read; the others are heard later. */
static bool take_details(struct visit *v, uint64_t id, struct unwind_stack **ret)
{
	size_t at = 0;
	char *end_of_line;
	while (at < v->in.len && (end_of_line = memchr(v->in.data + at, '\n', v->in.len - at))) {
		size_t n = (size_t)(end_of_line - v->in.data) - at;
		struct json *event = NULL;
		int64_t of = 0;
		bool found = !json_parse(v->in.data + at, n, &event, NULL) &&
			     json_get_str(event, "event") &&
			     !strcmp(json_get_str(event, "event"), "details") &&
			     json_get_int(event, "id", &of) && (uint64_t)of == id;
		if (found && stack_read(event, ret))
			*ret = NULL;
		json_free(event);
		if (found) {
			memmove(v->in.data + at, v->in.data + at + n + 1, v->in.len - at - n - 1);
			v->in.len -= n + 1;
			return true;
		}
		at += n + 1;
	}
	return false;
}

int visit_stack(void *arg, const struct question *q, struct unwind_stack **ret)
{
	struct link *l = q->owner;
	struct visit *v = l->visit;
	struct pollfd p = {.fd = v->fd, .events = POLLIN};
	char line[64];
	(void)arg;
	*ret = NULL;
	snprintf(line, sizeof line, "{\"details\":%ju}\n", (uintmax_t)l->theirs);
	if (v->over || send_text(v, line))
		return -EPIPE;
	bool found = false;
	while (!(found = take_details(v, l->theirs, ret)) && poll(&p, 1, VISIT_STACK_MS) > 0)
		if (read_some(v))
			break; /* the loop will find the same */
	/* Not from here: hearing may take the very question away. */
	if (v->in.len && !v->again && loop_add_timer(v->loop, 0, on_again, v, &v->again))
		v->again = 0; /* no memory: with the next bytes */
	return found && *ret ? 0 : -ESRCH;
}

/* ---- life ---- */

int visit_new(struct loop *l, struct ask *a, int fd, const struct visit_hooks *hooks,
	      struct visit **ret)
{
	const struct timeval limit = {.tv_sec = VISIT_SEND_MS / 1000};
	struct visit *v = calloc(1, sizeof *v);
	if (!v) {
		close(fd);
		return -ENOMEM;
	}
	*v = (struct visit){.loop = l, .ask = a, .hooks = *hooks, .fd = fd};
	v->in.max = VISIT_LINE_MAX;
	int err = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) ? -errno : 0;
	if (!err)
		err = loop_add_fd(l, fd, EPOLLIN, on_readable, v, &v->watch);
	if (err) {
		visit_free(v);
		return err;
	}
	*ret = v;
	return 0;
}

void visit_free(struct visit *v)
{
	if (!v)
		return;
	v->over = true;
	drop_all(v, "exited");
	loop_remove(v->loop, v->watch);
	loop_remove(v->loop, v->again);
	close(v->fd);
	buf_free(&v->in);
	free(v);
}
