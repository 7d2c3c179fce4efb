#include "supervisor/protocol.h"

#include "supervisor/nbio.h"
#include "supervisor/protocol_text.h"
#include "supervisor/stack.h"
#include "supervisor/timestamp.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#define PROTOCOL_VERSION   1
#define PROTOCOL_LINE_MAX  (64u << 10)
#define PROTOCOL_FLUSH_MS  1000
#define PROTOCOL_READ_SIZE 4096

/* One event on its way. */
struct message {
	struct message *next;
	uint64_t question; /* an ask or cancel event of this question; 0: neither */
	bool is_ask;
	size_t len;
	char text[];
};

struct protocol {
	struct loop *loop;
	struct ask *ask;
	struct nbio events;
	struct nbio answers;
	uint64_t events_watch;
	uint64_t answers_watch;
	bool answers_here; /* this front was given --answers */
	bool closed;	   /* one of its pipes is: no to everything */
	struct message *first;
	struct message **last;
	size_t queued;	/* bytes */
	size_t written; /* of the first message */
	uint64_t dropped;
	struct buf line;
	bool overlong;	    /* the rest of a line beyond PROTOCOL_LINE_MAX is being skipped */
	uint64_t answering; /* the question this front is answering just now */
	void (*gone)(void *arg, struct protocol *p);
	void *arg;
};

static void close_events(struct protocol *p);
static void close_all(struct protocol *p);

/* ---- writing events ---- */

static void unlink_message(struct protocol *p, struct message **at)
{
	struct message *m = *at;
	*at = m->next;
	if (p->last == &m->next)
		p->last = at;
	p->queued -= m->len;
	free(m);
}

/* The first message may be half written: it stays. */
static struct message **droppable(struct protocol *p)
{
	struct message **at = p->written ? &p->first->next : &p->first;
	while (*at && (*at)->question)
		at = &(*at)->next;
	return *at ? at : NULL;
}

static void keep_within_limit(struct protocol *p)
{
	struct message **at;
	while (p->queued > PROTOCOL_QUEUE_MAX && (at = droppable(p))) {
		unlink_message(p, at);
		p->dropped++;
	}
}

static bool write_some(struct protocol *p)
{
	struct message *m = p->first;
	ssize_t n = nbio_write(&p->events, m->text + p->written, m->len - p->written);
	if (n == -EAGAIN || n == -EINTR)
		return n == -EINTR;
	if (n < 0) {
		close_events(p);
		return false;
	}
	p->written += (size_t)n;
	if (p->written == m->len) {
		unlink_message(p, &p->first);
		p->written = 0;
	}
	return true;
}

static void event_error(struct protocol *p, const char *message, uint64_t id);

static void flush(struct protocol *p)
{
	while (p->events.fd >= 0 && p->first && write_some(p))
		;
	if (p->events.fd < 0)
		return;
	if (!p->first && p->dropped) {
		char text[80];
		snprintf(text, sizeof(text), "%ju events were dropped: the pipe was full",
			 (uintmax_t)p->dropped);
		p->dropped = 0;
		event_error(p, text, 0);
	}
	loop_change_fd(p->loop, p->events_watch, p->first ? EPOLLOUT : EPOLLERR);
}

static void enqueue(struct protocol *p, struct buf *text, uint64_t question, bool is_ask)
{
	buf_add_char(text, '\n');
	struct message *m = NULL;
	if (!buf_error(text))
		m = malloc(sizeof(*m) + text->len);
	if (m) {
		*m = (struct message){.question = question, .is_ask = is_ask, .len = text->len};
		memcpy(m->text, text->data, text->len);
		*p->last = m;
		p->last = &m->next;
		p->queued += m->len;
	} else {
		p->dropped++;
	}
	buf_free(text);
	keep_within_limit(p);
	flush(p);
}

static void begin_event(struct jsonw *w, struct buf *out, const char *name)
{
	char now[TIMESTAMP_LEN];
	jsonw_init(w, out);
	jsonw_begin_object(w);
	jsonw_kstr(w, "event", name);
	jsonw_kstr(w, "time", timestamp_now(now));
}

void protocol_event(struct protocol *p, const char *name, protocol_fill_fn *fill, const void *arg)
{
	if (p->events.fd < 0)
		return;
	struct buf out = {0};
	struct jsonw w;
	begin_event(&w, &out, name);
	if (fill)
		fill(&w, arg);
	jsonw_end_object(&w);
	enqueue(p, &out, 0, false);
}

struct error_words {
	const char *message;
	uint64_t id;
};

static void fill_error(struct jsonw *w, const void *arg)
{
	const struct error_words *e = arg;
	jsonw_kstr(w, "message", e->message);
	if (e->id)
		jsonw_kint(w, "id", (int64_t)e->id);
}

static void event_error(struct protocol *p, const char *message, uint64_t id)
{
	struct error_words e = {.message = message, .id = id};
	protocol_event(p, "error", fill_error, &e);
}

static void write_start(struct protocol *p, const struct protocol_options *o)
{
	static const char *const features[] = {"ids",	  "groups", "cancel",	"lifetimes",
					       "presets", "rerun",  "path_b64", "details"};
	struct buf out = {0};
	struct jsonw w;
	begin_event(&w, &out, "start");
	jsonw_kint(&w, "protocol", PROTOCOL_VERSION);
	jsonw_kstr(&w, "run", o->run);
	jsonw_kstr(&w, "version", WARDER_VERSION);
	jsonw_key(&w, "features");
	jsonw_begin_array(&w);
	for (size_t i = 0; i < ARRAY_LEN(features); i++)
		jsonw_str(&w, features[i]);
	jsonw_end_array(&w);
	jsonw_key(&w, "command");
	jsonw_begin_array(&w);
	for (char *const *arg = o->command; arg && *arg; arg++)
		jsonw_str(&w, *arg);
	jsonw_end_array(&w);
	jsonw_kstr(&w, "label", o->label);
	jsonw_end_object(&w);
	enqueue(p, &out, 0, false);
}

/* ---- being a front ---- */

static void refuse(struct protocol *p, uint64_t id)
{
	const struct answer no = {.lifetime = LIFETIME_SESSION, .by = BY_NONE};
	p->answering = id;
	ask_answer(p->ask, id, &no);
	p->answering = 0;
}

static void on_asked(void *self, const struct question *q)
{
	struct protocol *p = self;
	uint64_t id = q->id;
	if (p->events.fd >= 0) {
		struct buf out = {0};
		struct jsonw w;
		jsonw_init(&w, &out);
		protocol_text_question(&w, q);
		enqueue(p, &out, id, true);
	}
	/* Writing may have found the pipe closed, and then this question is answered already. */
	if (p->closed && p->answers_here && !p->gone && ask_find(p->ask, id))
		refuse(p, id);
}

/* An ask event that nobody has seen yet needs no cancel: both are left out, so the queue is
 * bounded. */
static bool take_unsent_ask(struct protocol *p, uint64_t id)
{
	struct message **at = p->written ? &p->first->next : &p->first;
	while (*at && !((*at)->is_ask && (*at)->question == id))
		at = &(*at)->next;
	if (!*at)
		return false;
	unlink_message(p, at);
	return true;
}

static void on_cancelled(void *self, const struct question *q, const char *reason)
{
	struct protocol *p = self;
	if (p->events.fd < 0 || take_unsent_ask(p, q->id))
		return;
	struct buf out = {0};
	struct jsonw w;
	begin_event(&w, &out, "cancel");
	jsonw_kint(&w, "id", (int64_t)q->id);
	jsonw_kstr(&w, "reason", reason);
	jsonw_end_object(&w);
	enqueue(p, &out, q->id, false);
}

static void on_settled(void *self, const struct question *q, const struct answer *a)
{
	struct protocol *p = self;
	(void)a;
	if (p->answering != q->id)
		on_cancelled(self, q, "covered");
}

/* ---- reading answers ---- */

struct details {
	int64_t id;
	const struct unwind_stack *stack;
};

static void answer_one(struct protocol *p, const struct json *v, const struct answer *a)
{
	int64_t id = 0;
	json_int(v, &id);
	p->answering = (uint64_t)id;
	int r = ask_answer(p->ask, (uint64_t)id, a);
	p->answering = 0;
	if (r == -ENOENT)
		event_error(p, "no such question is open", (uint64_t)id);
	else if (r)
		event_error(p, "this scope or lifetime is not offered", (uint64_t)id);
}

static void fill_details(struct jsonw *w, const void *arg)
{
	const struct details *d = arg;
	jsonw_kint(w, "id", d->id);
	stack_write(w, d->stack);
}

/* A request for what costs something to find out; the question stays open. */
static void tell_details(struct protocol *p, const struct json *v)
{
	struct details d = {0};
	if (!json_get_int(v, "details", &d.id) || d.id <= 0) {
		event_error(p, "\"details\" must be a question's id", 0);
		return;
	}
	if (!ask_find(p->ask, (uint64_t)d.id)) {
		event_error(p, "no such question is open", (uint64_t)d.id);
		return;
	}
	d.stack = ask_stack(p->ask, (uint64_t)d.id);
	protocol_event(p, "details", fill_details, &d);
}

static void handle_object(struct protocol *p, const struct json *v)
{
	const struct json *id = json_get(v, "id"), *ids = json_get(v, "ids");
	struct answer a = {0};
	if (json_get(v, "details") && !json_get(v, "answer")) {
		tell_details(p, v);
		return;
	}
	const char *fault = protocol_text_answer(v, &a);
	if (fault) {
		int64_t named = 0;
		if (!id || !json_int(id, &named) || named < 0)
			named = 0;
		event_error(p, fault, (uint64_t)named);
		return;
	}
	if (id)
		answer_one(p, id, &a);
	for (const struct json *one = json_first(ids); one; one = json_next(one))
		answer_one(p, one, &a);
}

static void handle_line(struct protocol *p, const char *text, size_t n)
{
	if (strspn(text, " \t\r") == n)
		return;
	struct json *root = NULL;
	size_t at = 0;
	if (json_parse(text, n, &root, &at)) {
		char words[64];
		snprintf(words, sizeof(words), "not JSON, at byte %zu of the line", at);
		event_error(p, words, 0);
		return;
	}
	handle_object(p, root);
	json_free(root);
}

static void end_line(struct protocol *p)
{
	if (p->overlong)
		event_error(p, "the line is longer than 65536 bytes", 0);
	else
		handle_line(p, buf_str(&p->line), p->line.len);
	p->overlong = false;
	buf_reset(&p->line);
}

static void take_bytes(struct protocol *p, const char *bytes, size_t n)
{
	while (n) {
		const char *end = memchr(bytes, '\n', n);
		size_t part = end ? (size_t)(end - bytes) : n;
		if (p->line.len + part > PROTOCOL_LINE_MAX)
			p->overlong = true;
		else if (!p->overlong)
			buf_add(&p->line, bytes, part);
		if (buf_error(&p->line))
			p->overlong = true;
		if (end)
			end_line(p);
		bytes += part + !!end;
		n -= part + !!end;
	}
}

static void on_answers(void *arg, int fd, uint32_t events)
{
	struct protocol *p = arg;
	char bytes[PROTOCOL_READ_SIZE];
	(void)fd, (void)events;
	ssize_t n = nbio_read(&p->answers, bytes, sizeof(bytes));
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n > 0) {
		take_bytes(p, bytes, (size_t)n);
		return;
	}
	if (p->line.len || p->overlong)
		end_line(p);
	close_all(p);
}

/* ---- the pipes' end ---- */

static void refuse_all(struct protocol *p)
{
	const struct question *q;
	if (p->gone && !p->closed) {
		p->closed = true;
		ask_remove_front(p->ask, p);
		p->gone(p->arg, p);
		return;
	}
	p->closed = true;
	while (!p->gone && p->answers_here && (q = ask_first(p->ask)))
		refuse(p, q->id);
}

static void close_events(struct protocol *p)
{
	loop_remove(p->loop, p->events_watch);
	nbio_close(&p->events);
	while (p->first)
		unlink_message(p, &p->first);
	p->written = 0;
	refuse_all(p);
}

static void close_all(struct protocol *p)
{
	loop_remove(p->loop, p->answers_watch);
	nbio_close(&p->answers);
	if (!p->gone)
		event_error(p, "the answers are closed: everything that is asked is refused", 0);
	refuse_all(p);
}

static void on_events(void *arg, int fd, uint32_t events)
{
	struct protocol *p = arg;
	(void)fd;
	if (events & (EPOLLERR | EPOLLHUP))
		close_events(p);
	else
		flush(p);
}

/* ---- life ---- */

/* One socket for both is fine: each direction gets a descriptor of its own. */
static int take_fds(struct protocol *p, const struct protocol_options *o)
{
	int answers = o->answers;
	if (answers >= 0 && answers == o->events)
		answers = fcntl(o->events, F_DUPFD_CLOEXEC, 3);
	if (o->answers >= 0 && answers < 0)
		return -errno;
	int r = answers >= 0 ? nbio_open(answers, false, &p->answers) : 0;
	int r2 = o->events >= 0 ? nbio_open(o->events, true, &p->events) : 0;
	return r ? r : r2;
}

static int watch(struct protocol *p)
{
	int r = 0;
	if (p->events.fd >= 0)
		r = loop_add_fd(p->loop, p->events.fd, EPOLLERR, on_events, p, &p->events_watch);
	if (!r && p->answers.fd >= 0)
		r = loop_add_fd(p->loop, p->answers.fd, EPOLLIN, on_answers, p, &p->answers_watch);
	return r;
}

int protocol_new(struct loop *l, struct ask *a, const struct protocol_options *o,
		 struct protocol **ret)
{
	struct protocol *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->loop = l;
	p->ask = a;
	p->events.fd = p->answers.fd = -1;
	p->last = &p->first;
	p->gone = o->gone;
	p->arg = o->arg;
	p->answers_here = o->answers >= 0;
	p->line.max = PROTOCOL_LINE_MAX + 1;
	const struct ask_front front = {
		.self = p,
		.answers = p->answers_here,
		.asked = on_asked,
		.cancelled = on_cancelled,
		.settled = on_settled,
	};
	int r = take_fds(p, o);
	if (!r)
		r = watch(p);
	if (!r)
		r = ask_add_front(a, &front);
	if (r) {
		protocol_free(p);
		return r;
	}
	*ret = p;
	if (p->events.fd >= 0)
		write_start(p, o);
	if (p->gone)
		ask_catch_up(a, p);
	return 0;
}

static void flush_bounded(struct protocol *p)
{
	for (int i = 0; i < PROTOCOL_FLUSH_MS / 50 && p->events.fd >= 0 && p->first; i++) {
		struct pollfd f = {.fd = p->events.fd, .events = POLLOUT};
		poll(&f, 1, 50);
		flush(p);
	}
}

void protocol_free(struct protocol *p)
{
	if (!p)
		return;
	ask_remove_front(p->ask, p);
	p->answers_here = false; /* what is still open is answered by ask_free */
	flush_bounded(p);
	loop_remove(p->loop, p->events_watch);
	loop_remove(p->loop, p->answers_watch);
	nbio_close(&p->events);
	nbio_close(&p->answers);
	while (p->first)
		unlink_message(p, &p->first);
	buf_free(&p->line);
	free(p);
}
