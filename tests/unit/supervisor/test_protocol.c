#include "supervisor/protocol.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

/* The other end: what a program that speaks the protocol holds. */
struct stage {
	struct loop *loop;
	struct ask *ask;
	struct protocol *protocol;
	int events;  /* we read */
	int answers; /* we write */
	char got[128];
	struct buf in;
};

static void on_answered(void *arg, const struct question *q, const struct answer *a)
{
	struct stage *s = arg;
	size_t n = strlen(s->got);
	snprintf(s->got + n, sizeof(s->got) - n, "%c%ju.%u.%s ", a->allow ? '+' : '-',
		 (uintmax_t)q->id, a->scope, lifetime_name(a->lifetime));
}

static struct question *question(const char *path)
{
	struct question *q = calloc(1, sizeof(*q));
	q->call = "openat";
	q->path = strdup(path);
	q->exe = strdup("/usr/bin/cat");
	q->cwd = strdup("/");
	q->pid = 42;
	q->access = ACCESS_READ;
	q->exists = true;
	q->scopes.len = 2;
	for (size_t i = 0; i < 2; i++)
		q->scopes.item[i] = (struct scope){.kind = i ? SCOPE_TREE : SCOPE_EXACT,
						   .path = strdup(path),
						   .rule = strdup("allow read /x exact"),
						   .surplus = i * 7,
						   .access = ACCESS_READ};
	return q;
}

static void push(struct stage *s, const char *path)
{
	uint64_t id;
	cr_assert_eq(ask_push(s->ask, question(path), &id), 0);
}

static char *command[] = {"cat", "/x", NULL};

static void setup(struct stage *s)
{
	int events[2], answers[2];
	cr_assert_eq(loop_new(&s->loop), 0);
	cr_assert_eq(ask_new(s->loop, 0, on_answered, s, &s->ask), 0);
	cr_assert(!pipe2(events, O_CLOEXEC) && !pipe2(answers, O_CLOEXEC));
	const struct protocol_options o = {
		.events = events[1], .answers = answers[0], .run = "r1", .command = command};
	cr_assert_eq(protocol_new(s->loop, s->ask, &o, &s->protocol), 0);
	s->events = events[0];
	s->answers = answers[1];
	fcntl(s->events, F_SETFL, O_NONBLOCK);
}

static void teardown(struct stage *s)
{
	protocol_free(s->protocol);
	ask_free(s->ask);
	loop_free(s->loop);
	buf_free(&s->in);
	close(s->events);
	close(s->answers);
}

static void turn(struct stage *s)
{
	for (int i = 0; i < 20; i++)
		loop_turn(s->loop, 0);
}

static void say(struct stage *s, const char *text)
{
	cr_assert_eq(write(s->answers, text, strlen(text)), (ssize_t)strlen(text));
	turn(s);
}

static void read_all(struct stage *s)
{
	char bytes[65536];
	ssize_t n;
	while ((n = read(s->events, bytes, sizeof(bytes))) > 0)
		buf_add(&s->in, bytes, (size_t)n);
}

/* The next event; NULL where there is none. Owned. */
static struct json *next(struct stage *s)
{
	struct json *root = NULL;
	read_all(s);
	const char *end = memchr(buf_str(&s->in), '\n', s->in.len);
	if (!end)
		return NULL;
	size_t n = (size_t)(end - s->in.data);
	cr_assert_eq(json_parse(s->in.data, n, &root, NULL), 0, "%.*s", (int)n, s->in.data);
	buf_drop(&s->in, n + 1);
	return root;
}

/* The next event is `name`; its member as text, if asked for. */
static void expect(struct stage *s, const char *name, const char *member, const char *value)
{
	struct json *e = next(s);
	cr_assert(e, "no event, %s expected", name);
	cr_assert_str_eq(json_get_str(e, "event"), name);
	if (member)
		cr_assert_str_eq(json_get_str(e, member), value);
	json_free(e);
}

static void expect_nothing(struct stage *s)
{
	cr_assert_null(next(s));
}

TestSuite(protocol, .timeout = 30);

Test(protocol, start_and_ask)
{
	struct stage s = {0};
	setup(&s);
	struct json *e = next(&s);
	int64_t n = 0;
	cr_assert_str_eq(json_get_str(e, "event"), "start");
	cr_assert(json_get_int(e, "protocol", &n) && n == 1);
	cr_assert_str_eq(json_get_str(e, "run"), "r1");
	cr_assert_eq(json_len(json_get(e, "command")), 2);
	cr_assert(json_get(e, "features") && json_get(e, "label") && json_get(e, "version"));
	json_free(e);
	push(&s, "/a\x1b\xff");
	e = next(&s);
	cr_assert_str_eq(json_get_str(e, "event"), "ask");
	cr_assert(json_get_int(e, "id", &n) && n == 1);
	cr_assert(json_get_int(e, "group", &n) && n == 1);
	cr_assert(json_get_int(e, "pid", &n) && n == 42);
	cr_assert_str_eq(json_get_str(e, "path_b64"), "L2Eb/w==");
	cr_assert_str_eq(json_str(json_at(json_get(e, "access"), 0)), "read");
	const struct json *scopes = json_get(e, "scopes");
	cr_assert_eq(json_len(scopes), 2);
	cr_assert_str_eq(json_get_str(json_at(scopes, 0), "kind"), "exact");
	cr_assert_str_eq(json_get_str(json_at(scopes, 1), "kind"), "tree");
	cr_assert(json_get_int(json_at(scopes, 1), "surplus", &n) && n == 7);
	cr_assert_eq(json_len(json_get(e, "lifetimes")), 3);
	json_free(e);
	teardown(&s);
}

static int one_frame(void *arg, const struct question *q, struct unwind_stack **ret)
{
	(void)arg;
	if (q->id != 1)
		return -ESRCH;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->refs = 1;
	(*ret)->len = 1;
	(*ret)->frame[0] = (struct unwind_frame){.function = "f\x1b",
						 .function_offset = 3,
						 .object = "/lib/\xff",
						 .object_offset = 4660};
	return 0;
}

static void expect_details(struct stage *s, int64_t id, size_t len, const char *end)
{
	int64_t n = 0;
	struct json *e = next(s);
	cr_assert(e && !strcmp(json_get_str(e, "event"), "details"));
	cr_assert(json_get_int(e, "id", &n) && n == id);
	cr_assert_eq(json_len(json_get(e, "stack")), len);
	cr_assert_str_eq(json_get_str(e, "stack_end"), end);
	if (len) {
		const struct json *frame = json_at(json_get(e, "stack"), 0);
		cr_assert_str_eq(json_get_str(frame, "function"), "f\x1b");
		cr_assert(json_get_int(frame, "offset", &n) && n == 3);
		cr_assert(json_get_int(frame, "object_offset", &n) && n == 4660);
		cr_assert_str_eq(json_get_str(frame, "object_b64"), "L2xpYi//");
	}
	json_free(e);
}

Test(protocol, details_on_request)
{
	static const char *const wrong[] = {"{\"details\":0}\n", "{\"details\":\"1\"}\n",
					    "{\"details\":7}\n", "{\"details\":[1]}\n"};
	struct stage s = {0};
	setup(&s);
	ask_set_stack(s.ask, one_frame);
	push(&s, "/a");
	push(&s, "/b");
	expect(&s, "start", NULL, NULL);
	expect(&s, "ask", NULL, NULL);
	expect(&s, "ask", NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		say(&s, wrong[i]);
		expect(&s, "error", NULL, NULL);
	}
	say(&s, "{\"details\":1}\n{\"details\":2}\n");
	expect_details(&s, 1, 1, "complete");
	expect_details(&s, 2, 0, "none");
	expect_nothing(&s);
	cr_assert_eq(ask_len(s.ask), 2, "it answers nothing");
	teardown(&s);
}

static const struct {
	const char *line;
	const char *got; /* answers given */
	unsigned errors; /* events of that kind */
} lines[] = {
	{"{\"id\":1,\"answer\":\"allow\",\"scope\":1,\"lifetime\":\"session\"}", "+1.1.session ",
	 0},
	{"{\"id\":2,\"answer\":\"allow\"}\r", "+2.0.once ", 0},
	{"{\"ids\":[2,1],\"answer\":\"deny\",\"lifetime\":\"always\"}", "-2.0.always -1.0.always ",
	 0},
	{"{\"id\":1,\"answer\":\"deny\",\"more\":[{}]}", "-1.0.session ", 0},
	{"{\"ids\":[1,9,1],\"answer\":\"allow\"}", "+1.0.once ", 2},
	{"{\"ids\":[1,\"x\"],\"answer\":\"allow\"}", "", 1}, /* no part of a bad line */
	{"{\"ids\":[1,0],\"answer\":\"allow\"}", "", 1},
	{"", "", 0},
	{"  \t", "", 0},
	{"{\"id\":1", "", 1},
	{"[]", "", 1},
	{"7", "", 1},
	{"{\"answer\":\"allow\"}", "", 1},
	{"{\"id\":1}", "", 1},
	{"{\"id\":1,\"ids\":[1],\"answer\":\"allow\"}", "", 1},
	{"{\"ids\":[],\"answer\":\"allow\"}", "", 1},
	{"{\"ids\":1,\"answer\":\"allow\"}", "", 1},
	{"{\"id\":\"1\",\"answer\":\"allow\"}", "", 1},
	{"{\"id\":-1,\"answer\":\"allow\"}", "", 1},
	{"{\"id\":1.5,\"answer\":\"allow\"}", "", 1},
	{"{\"id\":3,\"answer\":\"allow\"}", "", 1},
	{"{\"id\":1,\"answer\":\"yes\"}", "", 1},
	{"{\"id\":1,\"answer\":\"allow\",\"scope\":2}", "", 1},
	{"{\"id\":1,\"answer\":\"allow\",\"scope\":-1}", "", 1},
	{"{\"id\":1,\"answer\":\"allow\",\"scope\":4294967296}", "", 1},
	{"{\"id\":1,\"answer\":\"allow\",\"scope\":\"0\"}", "", 1},
	{"{\"id\":1,\"answer\":\"allow\",\"lifetime\":\"forever\"}", "", 1},
	{"{\"id\":1,\"answer\":\"allow\",\"lifetime\":1}", "", 1},
	{"\xff\xfe", "", 1},
};

Test(protocol, every_kind_of_line)
{
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct stage s = {0};
		setup(&s);
		push(&s, "/a");
		push(&s, "/b");
		expect(&s, "start", NULL, NULL);
		expect(&s, "ask", NULL, NULL);
		expect(&s, "ask", NULL, NULL);
		say(&s, lines[i].line);
		say(&s, "\n");
		cr_assert_str_eq(s.got, lines[i].got, "line %zu: %s", i, s.got);
		for (unsigned k = 0; k < lines[i].errors; k++)
			expect(&s, "error", NULL, NULL);
		expect_nothing(&s);
		if (!*lines[i].got)
			cr_assert_eq(ask_len(s.ask), 2, "line %zu: questions stay open", i);
		teardown(&s);
	}
}

Test(protocol, in_pieces_of_one_byte)
{
	struct stage s = {0};
	const char *text =
		"{\"id\":2,\"answer\":\"allow\"}\nnonsense\n{\"id\":1,\"answer\":\"deny\"}\n";
	setup(&s);
	push(&s, "/a");
	push(&s, "/b");
	for (; *text; text++) {
		cr_assert_eq(write(s.answers, text, 1), 1);
		turn(&s);
	}
	cr_assert_str_eq(s.got, "+2.0.once -1.0.session ");
	teardown(&s);
}

Test(protocol, a_line_without_end_is_bounded)
{
	struct stage s = {0};
	char piece[8192];
	memset(piece, 'x', sizeof(piece));
	setup(&s);
	push(&s, "/a");
	for (int i = 0; i < 40; i++) {
		cr_assert_eq(write(s.answers, piece, sizeof(piece)), (ssize_t)sizeof(piece));
		turn(&s);
	}
	expect(&s, "start", NULL, NULL);
	expect(&s, "ask", NULL, NULL);
	expect_nothing(&s);
	say(&s, "\n{\"id\":1,\"answer\":\"allow\"}\n");
	expect(&s, "error", "message", "the line is longer than 65536 bytes");
	cr_assert_str_eq(s.got, "+1.0.once ");
	teardown(&s);
}

Test(protocol, closed_answers_are_no)
{
	struct stage s = {0};
	setup(&s);
	push(&s, "/a");
	say(&s, "{\"id\":1,\"answer\":\"allow\"}"); /* the last line needs no newline */
	push(&s, "/b");
	close(s.answers);
	turn(&s);
	cr_assert_str_eq(s.got, "+1.0.once -2.0.session ");
	push(&s, "/c");
	cr_assert_str_eq(s.got, "+1.0.once -2.0.session -3.0.session ", "and so are later ones");
	s.answers = open("/dev/null", O_RDONLY);
	teardown(&s);
}

Test(protocol, closed_events_are_no)
{
	struct stage s = {0};
	struct sigaction before, after;
	sigaction(SIGPIPE, NULL, &before);
	setup(&s);
	push(&s, "/a");
	close(s.events);
	turn(&s); /* noticed without a write */
	cr_assert_str_eq(s.got, "-1.0.session ");
	push(&s, "/b");
	cr_assert_str_eq(s.got, "-1.0.session -2.0.session ");
	sigaction(SIGPIPE, NULL, &after);
	cr_assert_eq(before.sa_handler, after.sa_handler);
	s.events = open("/dev/null", O_RDONLY);
	teardown(&s);
}

/* SIGPIPE has its default disposition here: an event into a pipe just closed must not end us. */
Test(protocol, writing_into_a_closed_pipe)
{
	struct stage s = {0};
	signal(SIGPIPE, SIG_DFL);
	setup(&s);
	close(s.events);
	protocol_event(s.protocol, "exit", NULL, NULL);
	protocol_event(s.protocol, "exit", NULL, NULL);
	sigset_t pending;
	sigpending(&pending);
	cr_assert_not(sigismember(&pending, SIGPIPE));
	s.events = open("/dev/null", O_RDONLY);
	teardown(&s);
}

static void fill_long(struct jsonw *w, const void *arg)
{
	jsonw_kstr(w, "text", arg);
}

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

Test(protocol, a_full_pipe_never_blocks)
{
	struct stage s = {0};
	char text[10001];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	setup(&s);
	int64_t from = now_ms();
	for (int i = 0; i < 1000; i++) {
		protocol_event(s.protocol, "denied", fill_long, text);
		if (i == 500)
			push(&s, "/a");
	}
	cr_assert_lt(now_ms() - from, 5000);
	/* Reading begins: every line is whole, the question is there, and the loss is told. */
	unsigned denied = 0, asked = 0, told = 0;
	for (int i = 0; i < 2000 && !told; i++) {
		struct json *e;
		turn(&s);
		while ((e = next(&s))) {
			const char *name = json_get_str(e, "event");
			denied += !strcmp(name, "denied");
			asked += !strcmp(name, "ask");
			told += !strcmp(name, "error");
			json_free(e);
		}
	}
	cr_assert_eq(asked, 1);
	cr_assert_eq(told, 1);
	cr_assert(denied > 350 && denied < 450, "%u", denied);
	teardown(&s);
}

Test(protocol, questions_nobody_read_are_not_hoarded)
{
	struct stage s = {0};
	char path[4096];
	memset(path, 'p', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	setup(&s);
	for (uint64_t i = 1; i <= 3000; i++) {
		push(&s, path);
		ask_cancel(s.ask, i, "exited");
	}
	unsigned events = 0;
	for (int i = 0; i < 100; i++) {
		struct json *e;
		turn(&s);
		for (; (e = next(&s)); events++)
			json_free(e);
	}
	cr_assert_lt(events, 50, "%u", events);
	teardown(&s);
}

Test(protocol, cancel_says_why)
{
	struct stage s = {0};
	const struct answer yes = {.allow = true, .by = BY_USER};
	setup(&s);
	push(&s, "/a");
	push(&s, "/b");
	expect(&s, "start", NULL, NULL);
	expect(&s, "ask", NULL, NULL);
	expect(&s, "ask", NULL, NULL);
	ask_cancel(s.ask, 1, "exited");
	expect(&s, "cancel", "reason", "exited");
	ask_answer(s.ask, 2, &yes); /* by another front */
	expect(&s, "cancel", "reason", "covered");
	push(&s, "/c");
	expect(&s, "ask", NULL, NULL);
	say(&s, "{\"id\":3,\"answer\":\"allow\"}\n");
	expect_nothing(&s);
	teardown(&s);
}

/* O_NONBLOCK on an inherited pipe would be the shell's problem too. */
Test(protocol, shared_descriptors_stay_as_they_are)
{
	struct stage s = {0};
	int events[2], answers[2];
	cr_assert(!pipe(events) && !pipe(answers));
	int shell_events = dup(events[1]), shell_answers = dup(answers[0]);
	cr_assert_eq(loop_new(&s.loop), 0);
	cr_assert_eq(ask_new(s.loop, 0, on_answered, &s, &s.ask), 0);
	const struct protocol_options o = {
		.events = events[1], .answers = answers[0], .run = "r1", .command = command};
	cr_assert_eq(protocol_new(s.loop, s.ask, &o, &s.protocol), 0);
	cr_assert_not(fcntl(shell_events, F_GETFL) & O_NONBLOCK);
	cr_assert_not(fcntl(shell_answers, F_GETFL) & O_NONBLOCK);
	s.events = events[0];
	s.answers = answers[1];
	teardown(&s);
}

Test(protocol, one_socket_for_both)
{
	struct stage s = {0};
	int pair[2];
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cr_assert_eq(loop_new(&s.loop), 0);
	cr_assert_eq(ask_new(s.loop, 0, on_answered, &s, &s.ask), 0);
	const struct protocol_options o = {
		.events = pair[0], .answers = pair[0], .run = "r1", .command = command};
	cr_assert_eq(protocol_new(s.loop, s.ask, &o, &s.protocol), 0);
	s.events = pair[1];
	s.answers = dup(pair[1]);
	fcntl(s.events, F_SETFL, O_NONBLOCK);
	push(&s, "/a");
	expect(&s, "start", NULL, NULL);
	expect(&s, "ask", NULL, NULL);
	say(&s, "{\"id\":1,\"answer\":\"allow\"}\n");
	cr_assert_str_eq(s.got, "+1.0.once ");
	push(&s, "/b");
	close(s.events);
	close(s.answers);
	turn(&s);
	cr_assert_str_eq(s.got, "+1.0.once -2.0.session ");
	s.events = open("/dev/null", O_RDONLY);
	s.answers = open("/dev/null", O_RDONLY);
	teardown(&s);
}

/* Events alone: shown, not answered; without anybody who answers a question is not even queued. */
Test(protocol, events_without_answers)
{
	struct stage s = {0};
	int events[2];
	uint64_t id;
	cr_assert(!pipe(events));
	cr_assert_eq(loop_new(&s.loop), 0);
	cr_assert_eq(ask_new(s.loop, 0, on_answered, &s, &s.ask), 0);
	const struct protocol_options o = {
		.events = events[1], .answers = -1, .run = "r1", .command = command};
	cr_assert_eq(protocol_new(s.loop, s.ask, &o, &s.protocol), 0);
	cr_assert_eq(ask_push(s.ask, question("/a"), &id), -ENOTCONN);
	s.events = events[0];
	s.answers = open("/dev/null", O_RDONLY);
	teardown(&s);
}
