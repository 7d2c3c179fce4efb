#include "agent/mcp.h"

#include "agent/interrupt.h"
#include "agent/mcpout.h"
#include "agent/opening.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Newest first. A client that asks for another one is told the newest. */
static const char *const versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
/* From here on results may be structured, and the user can be asked. */
#define STRUCTURED_SINCE "2025-06-18"

enum { PARSE_ERROR = -32700, INVALID_REQUEST = -32600, NO_METHOD = -32601 };

/* ---- sending ---- */

void mcp_begin(struct mcp_message *m)
{
	*m = (struct mcp_message){.text = {.max = MCPOUT_QUEUE_MAX}};
	jsonw_init(&m->w, &m->text);
	jsonw_begin_object(&m->w);
	jsonw_kstr(&m->w, "jsonrpc", "2.0");
}

void mcp_send(struct mcp *s, struct mcp_message *m)
{
	jsonw_end_object(&m->w);
	if (buf_error(&m->text) || !mcpout_line(s->out, m->text.data, m->text.len)) {
		s->ended = true;
		mcpcall_end_all(s, NULL);
	}
	buf_free(&m->text);
}

static void write_id(struct jsonw *w, const char *id)
{
	jsonw_key(w, "id");
	if (id)
		jsonw_raw(w, id, strlen(id));
	else
		jsonw_null(w);
}

void mcp_error(struct mcp *s, const char *id, int code, const char *words)
{
	struct mcp_message m;
	mcp_begin(&m);
	write_id(&m.w, id);
	jsonw_key(&m.w, "error");
	jsonw_begin_object(&m.w);
	jsonw_kint(&m.w, "code", code);
	jsonw_kstr(&m.w, "message", words);
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
}

void mcp_begin_result(struct mcp_message *m, const char *id)
{
	mcp_begin(m);
	write_id(&m->w, id);
	jsonw_key(&m->w, "result");
	jsonw_begin_object(&m->w);
}

/* ---- initialize ---- */

static const char *pick_version(const char *wanted)
{
	for (size_t i = 0; wanted && i < ARRAY_LEN(versions); i++)
		if (!strcmp(wanted, versions[i]))
			return versions[i];
	return versions[0];
}

static void write_about(struct jsonw *w, const struct mcp *s)
{
	struct buf text = {0};
	buf_addf(
		&text,
		"Tools that run behind a Landlock wall in %s. What lies outside is refused, or the "
		"user is asked while the call waits. A refused call comes back with \"denied\": "
		"path, access, verdict and answer. Where it says do_not_retry, do not try the same "
		"by another way.",
		s->tools.cwd);
	jsonw_kstr(w, "instructions", buf_str(&text));
	buf_free(&text);
}

static void initialize(struct mcp *s, const char *id, const struct json *params)
{
	const char *version = pick_version(json_get_str(params, "protocolVersion"));
	struct mcp_message m;
	s->ready = true;
	s->structured = strcmp(version, STRUCTURED_SINCE) >= 0;
	s->elicits =
		s->structured && json_get(json_get(params, "capabilities"), "elicitation") != NULL;
	mcp_begin_result(&m, id);
	jsonw_kstr(&m.w, "protocolVersion", version);
	jsonw_key(&m.w, "capabilities");
	jsonw_begin_object(&m.w);
	jsonw_key(&m.w, "tools");
	jsonw_begin_object(&m.w);
	jsonw_end_object(&m.w);
	jsonw_end_object(&m.w);
	jsonw_key(&m.w, "serverInfo");
	jsonw_begin_object(&m.w);
	jsonw_kstr(&m.w, "name", "warder");
	jsonw_kstr(&m.w, "version", WARDER_VERSION);
	jsonw_end_object(&m.w);
	write_about(&m.w, s);
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
}

/* ---- what comes ---- */

/*
 * An id as it is to be sent back, owned; NULL where it is no string and no number. With a U+0000 in
 * it the value is not the whole of it.
 */
static char *id_text(const struct json *id, struct jsontext raw)
{
	struct buf text = {0};
	struct jsonw w;
	int64_t number;
	if (!json_is_string(id) && !json_int(id, &number))
		return NULL;
	if (jsontext_has_nul(raw))
		return memchr(raw.at, '\t', raw.len) ? NULL : strndup(raw.at, raw.len);
	jsonw_init(&w, &text);
	json_write(&w, id);
	return buf_take(&text);
}

static void answer_empty(struct mcp *s, const char *id)
{
	struct mcp_message m;
	mcp_begin_result(&m, id);
	jsonw_end_object(&m.w);
	mcp_send(s, &m);
}

static void refuse_method(struct mcp *s, const char *id, const char *method)
{
	struct buf words = {0};
	buf_add_str(&words, "no such method: ");
	escape_add_fit(&words, method, 100);
	mcp_error(s, id, NO_METHOD, buf_str(&words));
	buf_free(&words);
}

static void take_request(struct mcp *s, const char *id, const char *method,
			 const struct json *params, struct jsontext raw)
{
	if (!strcmp(method, "initialize"))
		initialize(s, id, params);
	else if (!strcmp(method, "ping"))
		answer_empty(s, id);
	else if (!s->ready)
		mcp_error(s, id, INVALID_REQUEST, "initialize comes first");
	else if (!strcmp(method, "tools/list"))
		mcpcall_list(s, id);
	else if (!strcmp(method, "tools/call"))
		mcpcall_take(s, id, params, raw);
	else
		refuse_method(s, id, method);
}

static void take_notification(struct mcp *s, const char *method, const struct json *params,
			      struct jsontext raw)
{
	AUTOFREE
	char *id = id_text(json_get(params, "requestId"), jsontext_member(raw, "requestId"));
	if (!strcmp(method, "notifications/cancelled") && id)
		mcpcall_cancel(s, id);
}

static void take_message(struct mcp *s, const struct json *v, struct jsontext raw)
{
	const char *method = json_get_str(v, "method"), *version = json_get_str(v, "jsonrpc");
	const struct json *params = json_get(v, "params");
	struct jsontext raw_params = jsontext_member(raw, "params");
	AUTOFREE
	char *id = id_text(json_get(v, "id"), jsontext_member(raw, "id"));
	if (!json_is_object(v) || !version || strcmp(version, "2.0") != 0)
		mcp_error(s, id, INVALID_REQUEST, "expected a JSON-RPC 2.0 message");
	else if (method && json_get(v, "id") && !id)
		mcp_error(s, NULL, INVALID_REQUEST, "\"id\": expected a string or a number");
	else if (method && id)
		take_request(s, id, method, params, raw_params);
	else if (method)
		take_notification(s, method, params, raw_params);
	else if (json_get(v, "result") || json_get(v, "error"))
		mcpask_answer(s, v);
	else
		mcp_error(s, id, INVALID_REQUEST, "\"method\": expected a string");
}

/* Where the line stops being JSON by its bytes alone, to which cJSON is lenient; n: nowhere. */
static size_t text_length(const char *line, size_t n)
{
	size_t len = 0;
	for (size_t at = 0; at < n; at += len) {
		unsigned char c = (unsigned char)line[at];
		len = c < ' ' && c != '\t' && c != '\r' ? 0 : json_utf8_len(line + at, n - at);
		if (!len)
			return at;
	}
	return n;
}

static void take_line(struct mcp *s, const char *line, size_t n)
{
	struct json *v = NULL;
	size_t at = text_length(line, n);
	char words[80];
	if (strspn(line, " \t\r") == n)
		return;
	if (at < n || json_parse(line, n, &v, &at)) {
		snprintf(words, sizeof(words), "no JSON: something else at byte %zu", at);
		mcp_error(s, NULL, PARSE_ERROR, words);
		return;
	}
	const struct jsontext all = {line, n};
	struct jsontext raw = json_is_array(v) ? jsontext_first(all) : all;
	for (const struct json *one = json_is_array(v) ? json_first(v) : v; one;
	     one = json_next(one)) {
		take_message(s, one, raw);
		if (raw.len)
			raw = jsontext_next(all, raw);
	}
	json_free(v);
}

/* ---- bytes ---- */

static void take_piece(struct mcp *s, const char *p, size_t n, bool whole)
{
	if (!s->overlong)
		buf_add(&s->in, p, n);
	if (s->in.failed && !s->overlong) {
		mcp_error(s, NULL, PARSE_ERROR, "the line is too long");
		s->overlong = true;
	}
	if (!whole)
		return;
	if (!s->overlong)
		take_line(s, buf_str(&s->in), s->in.len);
	s->overlong = false;
	buf_reset(&s->in);
}

void mcp_feed(struct mcp *s, const char *p, size_t n)
{
	for (size_t at = 0; at < n && !s->ended;) {
		const char *newline = memchr(p + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - p) - at : n - at;
		take_piece(s, p + at, len, newline);
		at += len + 1;
	}
}

void mcp_feed_end(struct mcp *s)
{
	if (s->in.len && !s->ended)
		take_piece(s, "", 0, true);
	s->ended = true;
	mcpcall_end_all(s, "the client closed stdin before it could be run");
}

/* Called only when there is something, so that read() never waits. */
static void on_input(void *arg, int fd, uint32_t events)
{
	struct mcp *s = arg;
	char chunk[16384];
	(void)events;
	ssize_t n = read(fd, chunk, sizeof(chunk));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		mcp_feed(s, chunk, (size_t)n);
		return;
	}
	mcp_feed_end(s);
}

/* ---- life ---- */

static int serve(struct mcp *s)
{
	struct loop *l = session_loop(s->session);
	uint64_t watch = 0;
	int err = mcpout_new(l, STDOUT_FILENO, &s->out);
	if (!err)
		err = loop_add_fd(l, STDIN_FILENO, EPOLLIN, on_input, s, &watch);
	while (!err && !interrupt_ending()) {
		if (s->queue)
			mcpcall_run(s);
		else if (s->ended)
			break;
		else
			err = loop_turn(l, -1);
	}
	loop_remove(l, watch);
	mcpcall_end_all(s, "warder was told to end before it could be run");
	mcpout_free(s->out);
	if (interrupt_ending())
		return -interrupt_ending();
	return err ? opening_trouble("the client", err) : 0;
}

static void help(void)
{
	puts("Usage: warder mcp [OPTIONS]\n"
	     "The agent's tools as an MCP server on stdin and stdout: read_file, write_file,\n"
	     "edit_file, list_dir and run_shell, each call behind the wall, in the directory\n"
	     "that it is started in. What the wall refuses is asked about by the client\n"
	     "(elicitation), or stays refused, and the answer names the command that would\n"
	     "allow it.\n"
	     "\n"
	     "  -r -w -x PATH, --rule 'RULE', --deny PATH, --policy FILE, --preset NAME,\n"
	     "  --no-preset NAME, --no-presets, --project DIR, --on-denial hold|report,\n"
	     "  --answer-timeout DURATION, --yes, --label TEXT, --tmp private|shared,\n"
	     "  --allow-degraded: as `warder run --help all` explains\n"
	     "\n"
	     "  { \"mcpServers\": { \"warder\": { \"command\": \"warder\", \"args\": [\"mcp\"] } } "
	     "}\n"
	     "  warder mcp -r ~/data --preset git\n"
	     "\n"
	     "Status: 0 the client closed stdin, 2 usage, 125 could not.");
}

static int parse(int argc, char **argv, struct cli_options *o)
{
	for (int i = 1; i < argc;) {
		bool known = false;
		enum cli_parse p = CLI_WRONG;
		if (argv[i][0] == '-' && argv[i][1])
			p = cli_option(o, argc, argv, &i, true, &known);
		if (!known)
			cli_unknown_option(argv[i], true, NULL, "mcp");
		if (!known || p == CLI_WRONG)
			return CLI_EXIT_USAGE;
		if (p == CLI_HELP) {
			help();
			return OPENING_DECLINED;
		}
	}
	if (o->events < 0 && o->answers < 0)
		return 0;
	cli_complain(
		"warder mcp: questions go to the client; --events and --answers have no place");
	return CLI_EXIT_USAGE;
}

static int run(struct mcp *s, struct cli_options *o)
{
	int err = interrupt_install();
	if (err)
		return opening_trouble("signals", err);
	opening_hide_secrets();
	int status = opening_session(o, false, &s->session);
	if (!status)
		status = opening_tools(o, s->session, &s->tools);
	if (status)
		return status;
	s->tools.tell_allow = true;
	s->tools.ask = ENGINE_ASK_NONE;
	return serve(s);
}

int mcp_main(int argc, char **argv)
{
	struct mcp s = {.tools = {.tmp_fd = -1, .events = -1, .answers = -1},
			.in = {.max = MCP_LINE_MAX},
			.events_fd = -1,
			.answers_fd = -1};
	struct cli_options o;
	cli_options_init(&o);
	opening_locale();
	int status = parse(argc, argv, &o);
	if (!status)
		status = run(&s, &o);
	else if (status == OPENING_DECLINED)
		status = 0;
	buf_free(&s.in);
	toolrun_release(&s.tools);
	session_free(s.session);
	cli_options_release(&o);
	if (status < 0)
		interrupt_die(-status);
	return status < 0 ? 128 - status : status;
}
