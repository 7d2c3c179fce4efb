/*
 * mock_copilot: a server on the loopback that speaks GitHub's token exchange and Copilot's (or any
 * OpenAI-compatible) chat completions, as a file of scenarios tells it. For tests.
 *
 *   mock_copilot [--scenario FILE] [--log FILE] [--token GITHUB] [--bearer READY]
 *
 * Prints "port N" and serves one connection after the other until its stdin ends or it is killed.
 * --token: the GitHub token that is exchanged (default ghu_test). --bearer: one that is accepted
 * without an exchange. Each exchange mints another bearer; only the latest is accepted.
 *
 * Each line of FILE answers one request, in order, by the path it is "for": "chat" (the default),
 * "token" or "models". With no line left, token and models get a good answer, chat a 500.
 *   status, type, body, headers {}   an answer of just that
 *   message {}     an assistant message, streamed in pieces and over two choices; with
 *                  "stream": false one plain JSON object
 *   sse []         these events: a string as it is, anything else as JSON
 *   raw            these bytes as the stream
 *   finish         finish_reason instead of stop or tool_calls
 *   chunk N        bytes a write (default: all), pause_ms N between writes, delay_ms N before
 *   drop_after N   close, without the end of the body, after N bytes of it
 *   lifetime N     of a token: expires_at and refresh_in (default 1800)
 *   any_bearer     do not look at the Authorization header of this request
 * The log has one JSON line a request: method, path, headers (names in lower case), body.
 */
#include "tracer/json.h"
#include "tracer/util.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define REQUEST_MAX (64u << 20)
#define LINES_MAX   256
#define PIECE	    7 /* bytes of text or arguments in one event: words and characters are cut */

static struct {
	const char *token, *bearer;
	struct json *lines[LINES_MAX];
	bool used[LINES_MAX];
	size_t n_lines;
	int log_fd;
	int port;
	int minted;
	char minted_bearer[64];
} server = {.token = "ghu_test", .log_fd = -1};

struct request {
	struct buf raw; /* the head, then the body */
	size_t head_len;
	char method[16], path[512];
	size_t body_len;
};

static void die(const char *what)
{
	fprintf(stderr, "mock_copilot: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- writing ---- */

/* How the answer is written; `left` bytes of the body remain before the drop (-1: no drop). */
struct writer {
	int fd;
	size_t chunk;
	int64_t pause_ms;
	int64_t left;
	bool gone; /* the peer went away, or was dropped */
};

static void put(struct writer *w, const char *bytes, size_t n)
{
	while (n && !w->gone) {
		ssize_t sent = send(w->fd, bytes, n, MSG_NOSIGNAL);
		if (sent <= 0) {
			w->gone = true;
			return;
		}
		bytes += sent;
		n -= (size_t)sent;
	}
}

/* Wait, but not for somebody who has gone. */
static void pause_for(struct writer *w, int64_t ms)
{
	struct pollfd p = {.fd = w->fd, .events = POLLRDHUP};
	if (ms > 0 && poll(&p, 1, (int)ms) > 0)
		w->gone = true;
}

static void put_chunk(struct writer *w, const char *bytes, size_t n)
{
	char head[32];
	int len = snprintf(head, sizeof(head), "%zx\r\n", n);
	put(w, head, (size_t)len);
	put(w, bytes, n);
	put(w, "\r\n", 2);
}

static void put_body(struct writer *w, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n && !w->gone;) {
		size_t len = w->chunk && w->chunk < n - at ? w->chunk : n - at;
		if (w->left >= 0 && (int64_t)len > w->left)
			len = (size_t)w->left;
		if (len)
			put_chunk(w, bytes + at, len);
		at += len;
		if (w->left >= 0 && (w->left -= (int64_t)len) == 0) {
			w->gone = true;
			return;
		}
		pause_for(w, w->pause_ms);
	}
	put(w, "0\r\n\r\n", 5);
}

static int64_t number(const struct json *line, const char *key, int64_t otherwise)
{
	json_get_int(line, key, &otherwise);
	return otherwise;
}

static void answer(int fd, const struct json *line, int64_t status, const char *type,
		   const char *body)
{
	struct buf head = {0};
	struct writer w = {
		.fd = fd,
		.chunk = (size_t)number(line, "chunk", 0),
		.pause_ms = number(line, "pause_ms", 0),
		.left = number(line, "drop_after", -1),
	};
	const struct json *headers = json_get(line, "headers");
	pause_for(&w, number(line, "delay_ms", 0));
	buf_addf(&head, "HTTP/1.1 %d Mock\r\nContent-Type: %s\r\n", (int)status, type);
	buf_add_str(&head, "Transfer-Encoding: chunked\r\nConnection: close\r\n");
	for (const struct json *h = json_first(headers); h; h = json_next(h))
		buf_addf(&head, "%s: %s\r\n", json_key(h), json_str(h) ? json_str(h) : "");
	buf_add_str(&head, "\r\n");
	put(&w, buf_str(&head), head.len);
	put_body(&w, body, strlen(body));
	buf_free(&head);
}

/* ---- a message as a stream ---- */

static void begin_event(struct jsonw *w, struct buf *out, int choice)
{
	buf_add_str(out, "data: ");
	jsonw_init(w, out);
	jsonw_begin_object(w);
	jsonw_kstr(w, "id", "chatcmpl-mock");
	jsonw_key(w, "choices");
	jsonw_begin_array(w);
	jsonw_begin_object(w);
	jsonw_kint(w, "index", choice);
	jsonw_key(w, "delta");
	jsonw_begin_object(w);
}

static void end_event(struct jsonw *w, struct buf *out, const char *finish)
{
	jsonw_end_object(w);
	jsonw_kstr(w, "finish_reason", finish);
	jsonw_end_object(w);
	jsonw_end_array(w);
	jsonw_end_object(w);
	buf_add_str(out, "\n\n");
}

/* The next piece of s from *at on, whole characters. */
static size_t piece_len(const char *s, size_t at)
{
	size_t n = 0;
	while (s[at + n] && n < PIECE) {
		size_t len = json_utf8_len(s + at + n, strlen(s + at + n));
		n += len ? len : 1;
	}
	return n;
}

static void stream_text(struct buf *out, const char *text)
{
	struct jsonw w;
	for (size_t at = 0, n; text && text[at]; at += n) {
		n = piece_len(text, at);
		begin_event(&w, out, 0);
		jsonw_key(&w, "content");
		jsonw_bytes(&w, text + at, n);
		end_event(&w, out, NULL);
	}
}

static void stream_call_piece(struct buf *out, const struct json *call, int index, const char *args,
			      size_t at, size_t n)
{
	struct jsonw w;
	const struct json *function = json_get(call, "function");
	begin_event(&w, out, 1); /* as Claude models do: text in one choice, calls in another */
	jsonw_key(&w, "tool_calls");
	jsonw_begin_array(&w);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "index", index);
	if (!at) {
		jsonw_kstr(&w, "id", json_get_str(call, "id"));
		jsonw_kstr(&w, "type", "function");
	}
	jsonw_key(&w, "function");
	jsonw_begin_object(&w);
	if (!at)
		jsonw_kstr(&w, "name", json_get_str(function, "name"));
	jsonw_key(&w, "arguments");
	jsonw_bytes(&w, args + at, n);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	jsonw_end_array(&w);
	end_event(&w, out, NULL);
}

static void stream_calls(struct buf *out, const struct json *calls)
{
	for (size_t i = 0; i < json_len(calls); i++) {
		const struct json *call = json_at(calls, i);
		const char *args = json_get_str(json_get(call, "function"), "arguments");
		size_t at = 0, n;
		if (!args)
			args = "";
		do {
			n = piece_len(args, at);
			stream_call_piece(out, call, (int)i, args, at, n);
			at += n;
		} while (args[at]);
	}
}

static const char usage[] = "{\"prompt_tokens\":11,\"completion_tokens\":7,\"total_tokens\":18,"
			    "\"prompt_tokens_details\":{\"cached_tokens\":3}}";

static const char *finish_of(const struct json *line, const struct json *message)
{
	const char *given = json_get_str(line, "finish");
	if (given)
		return given;
	return json_len(json_get(message, "tool_calls")) ? "tool_calls" : "stop";
}

static void stream_message(struct buf *out, const struct json *line, const struct json *message)
{
	struct jsonw w;
	buf_add_str(out, ": a comment\n\ndata: {\"choices\":[],\"prompt_filter_results\":[]}\n\n");
	stream_text(out, json_get_str(message, "content"));
	stream_calls(out, json_get(message, "tool_calls"));
	begin_event(&w, out, 0);
	end_event(&w, out, finish_of(line, message));
	buf_addf(out, "data: {\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage);
}

static void plain_message(struct buf *out, const struct json *line, const struct json *message)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_key(&w, "choices");
	jsonw_begin_array(&w);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "index", 0);
	jsonw_key(&w, "message");
	json_write(&w, message);
	jsonw_kstr(&w, "finish_reason", finish_of(line, message));
	jsonw_end_object(&w);
	jsonw_end_array(&w);
	jsonw_key(&w, "usage");
	jsonw_raw(&w, usage, sizeof(usage) - 1);
	jsonw_end_object(&w);
}

static void stream_events(struct buf *out, const struct json *events)
{
	struct jsonw w;
	for (size_t i = 0; i < json_len(events); i++) {
		const struct json *v = json_at(events, i);
		buf_add_str(out, "data: ");
		jsonw_init(&w, out);
		if (json_is_string(v))
			buf_add_str(out, json_str(v));
		else
			json_write(&w, v);
		buf_add_str(out, "\n\n");
	}
}

/* ---- the endpoints ---- */

static const struct json *next_line(const char *kind)
{
	for (size_t i = 0; i < server.n_lines; i++) {
		const char *is_for = json_get_str(server.lines[i], "for");
		if (server.used[i] || strcmp(is_for ? is_for : "chat", kind) != 0)
			continue;
		server.used[i] = true;
		return server.lines[i];
	}
	return NULL;
}

/* The value of a header (name in lower case, with its colon), "" where it is not there. */
static const char *header(const struct request *r, const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);
	*ret = '\0';
	for (const char *at = buf_str(&r->raw); (at = strstr(at, "\r\n")) && at[2] != '\r';) {
		at += 2;
		if (strncasecmp(at, name, n) != 0)
			continue;
		at += n + strspn(at + n, " ");
		snprintf(ret, size, "%.*s", (int)strcspn(at, "\r\n"), at);
		break;
	}
	return ret;
}

static bool simple_answer(int fd, const struct json *line)
{
	const char *type = json_get_str(line, "type");
	const char *body = json_get_str(line, "body");
	int64_t status = 0;
	if (!json_get_int(line, "status", &status) && !body)
		return false;
	answer(fd, line, status ? status : 200, type ? type : "application/json", body ? body : "");
	return true;
}

static void serve_token(int fd, const struct request *r)
{
	char given[512], want[512];
	struct buf body = {0};
	struct jsonw w;
	const struct json *line = next_line("token");
	if (simple_answer(fd, line))
		return;
	snprintf(want, sizeof(want), "token %s", server.token);
	if (strcmp(header(r, "authorization:", given, sizeof(given)), want) != 0) {
		answer(fd, line, 401, "application/json", "{\"message\":\"Bad credentials\"}");
		return;
	}
	int64_t lifetime = number(line, "lifetime", 1800);
	snprintf(server.minted_bearer, sizeof(server.minted_bearer), "tid=mock%d;exp=1;sku=test",
		 ++server.minted);
	jsonw_init(&w, &body);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "token", server.minted_bearer);
	jsonw_kint(&w, "expires_at", (int64_t)time(NULL) + lifetime);
	jsonw_kint(&w, "refresh_in", lifetime);
	jsonw_kbool(&w, "chat_enabled", true);
	jsonw_key(&w, "endpoints");
	jsonw_begin_object(&w);
	char api[64];
	snprintf(api, sizeof(api), "http://127.0.0.1:%d/", server.port);
	jsonw_kstr(&w, "api", api);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
	answer(fd, line, 200, "application/json", buf_str(&body));
	buf_free(&body);
}

static bool authorized(const struct request *r, const struct json *line)
{
	char given[512];
	bool any = false;
	header(r, "authorization:", given, sizeof(given));
	if (json_bool(json_get(line, "any_bearer"), &any) && any)
		return true;
	if (strncmp(given, "Bearer ", 7) != 0)
		return false;
	return (server.minted_bearer[0] && !strcmp(given + 7, server.minted_bearer)) ||
	       (server.bearer && !strcmp(given + 7, server.bearer));
}

static const char models[] =
	"{\"data\":["
	"{\"id\":\"embedder\",\"capabilities\":{\"type\":\"embeddings\"}},"
	"{\"id\":\"responses-only\",\"capabilities\":{\"type\":\"chat\",\"supports\":{\"tool_"
	"calls\":"
	"true}},\"supported_endpoints\":[\"/responses\"]},"
	"{\"id\":\"switched-off\",\"capabilities\":{\"type\":\"chat\",\"supports\":{\"tool_calls\":"
	"true}},\"policy\":{\"state\":\"disabled\"}},"
	"{\"id\":\"mock-small\",\"name\":\"Mock Small\",\"capabilities\":{\"type\":\"chat\","
	"\"supports\":{\"tool_calls\":true}}},"
	"{\"id\":\"mock-large\",\"name\":\"Mock "
	"Large\",\"is_chat_default\":true,\"policy\":{\"state\":"
	"\"enabled\"},\"supported_endpoints\":[\"/chat/completions\",\"/responses\"],"
	"\"capabilities\":{\"type\":\"chat\",\"limits\":{\"max_context_window_tokens\":128000},"
	"\"supports\":{\"tool_calls\":true}}}]}";

static void refuse(int fd)
{
	answer(fd, NULL, 401, "text/plain", "unauthorized: token expired");
}

static void serve_models(int fd, const struct request *r)
{
	const struct json *line = next_line("models");
	if (simple_answer(fd, line))
		return;
	if (authorized(r, line))
		answer(fd, line, 200, "application/json", models);
	else
		refuse(fd);
}

static void serve_chat(int fd, const struct request *r)
{
	struct buf body = {0};
	const struct json *line = next_line("chat");
	const struct json *message = json_get(line, "message");
	bool stream = true;
	if (simple_answer(fd, line))
		return;
	if (!authorized(r, line)) {
		refuse(fd);
		return;
	}
	if (!line) {
		answer(fd, NULL, 500, "text/plain", "the scenario has no more lines");
		return;
	}
	json_bool(json_get(line, "stream"), &stream);
	if (message && stream)
		stream_message(&body, line, message);
	else if (message)
		plain_message(&body, line, message);
	else if (json_get_str(line, "raw"))
		buf_add_str(&body, json_get_str(line, "raw"));
	else
		stream_events(&body, json_get(line, "sse"));
	const char *type = json_get_str(line, "type");
	answer(fd, line, 200,
	       type	? type
	       : stream ? "text/event-stream"
			: "application/json",
	       buf_str(&body));
	buf_free(&body);
}

/* ---- requests ---- */

static void log_request(const struct request *r)
{
	struct buf out = {0};
	struct jsonw w;
	if (server.log_fd < 0)
		return;
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "method", r->method);
	jsonw_kstr(&w, "path", r->path);
	jsonw_key(&w, "headers");
	jsonw_begin_object(&w);
	for (const char *at = buf_str(&r->raw); (at = strstr(at, "\r\n")) && at[2] != '\r';) {
		char name[128];
		at += 2;
		size_t n = strcspn(at, ":\r\n");
		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		for (char *c = name; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		const char *value = at + n + strspn(at + n, ": ");
		jsonw_key(&w, name);
		jsonw_bytes(&w, value, strcspn(value, "\r\n"));
	}
	jsonw_end_object(&w);
	jsonw_key(&w, "body");
	jsonw_bytes(&w, buf_str(&r->raw) + r->head_len, r->body_len);
	jsonw_end_object(&w);
	buf_add_char(&out, '\n');
	if (write(server.log_fd, buf_str(&out), out.len) != (ssize_t)out.len)
		die("log");
	buf_free(&out);
}

/* False: the peer went away first, or sent what is no request. */
static bool read_request(int fd, struct request *r)
{
	char chunk[65536], length[32];
	const char *end = NULL;
	r->raw.max = REQUEST_MAX;
	for (;;) {
		if (!end && (end = strstr(buf_str(&r->raw), "\r\n\r\n"))) {
			r->head_len = (size_t)(end - buf_str(&r->raw)) + 4;
			r->body_len = strtoul(header(r, "content-length:", length, sizeof(length)),
					      NULL, 10);
		}
		if (end && r->raw.len >= r->head_len + r->body_len)
			break;
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
		if (n <= 0)
			return false;
		buf_add(&r->raw, chunk, (size_t)n);
		if (r->raw.failed)
			return false;
	}
	return sscanf(buf_str(&r->raw), "%15s %511s", r->method, r->path) == 2;
}

static void serve(int fd)
{
	struct request r = {0};
	if (read_request(fd, &r)) {
		log_request(&r);
		if (!strcmp(r.method, "GET") && !strcmp(r.path, "/copilot_internal/v2/token"))
			serve_token(fd, &r);
		else if (!strcmp(r.method, "GET") && !strcmp(r.path, "/models"))
			serve_models(fd, &r);
		else if (!strcmp(r.method, "POST") && !strcmp(r.path, "/chat/completions"))
			serve_chat(fd, &r);
		else
			answer(fd, NULL, 404, "text/plain", "not found");
	}
	buf_free(&r.raw);
}

/* ---- start ---- */

static void read_scenario(const char *path)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0, number_of = 0;
	if (!f)
		die(path);
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
		number_of++;
		if (strspn(line, " \t\r\n") == (size_t)n)
			continue;
		if (server.n_lines == LINES_MAX ||
		    json_parse(line, (size_t)n, &server.lines[server.n_lines], NULL)) {
			fprintf(stderr, "mock_copilot: %s:%zu: no JSON, or too many lines\n", path,
				number_of);
			exit(1);
		}
		server.n_lines++;
	}
	free(line);
	fclose(f);
}

static void read_arguments(int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (value && !strcmp(argv[i], "--scenario"))
			read_scenario(value);
		else if (value && !strcmp(argv[i], "--log"))
			server.log_fd =
				open(value, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		else if (value && !strcmp(argv[i], "--token"))
			server.token = value;
		else if (value && !strcmp(argv[i], "--bearer"))
			server.bearer = value;
		else {
			fprintf(stderr, "mock_copilot: what is %s?\n", argv[i]);
			exit(2);
		}
	}
}

static int listen_on_loopback(void)
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len))
		die("listen");
	server.port = ntohs(addr.sin_port);
	return fd;
}

int main(int argc, char **argv)
{
	read_arguments(argc, argv);
	struct pollfd p[2] = {{.fd = listen_on_loopback(), .events = POLLIN},
			      {.fd = STDIN_FILENO, .events = POLLIN}};
	signal(SIGPIPE, SIG_IGN);
	printf("port %d\n", server.port);
	fflush(stdout);
	for (;;) {
		char c;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (p[1].revents && read(STDIN_FILENO, &c, 1) <= 0)
			return 0; /* whoever started us is gone */
		if (!(p[0].revents & POLLIN))
			continue;
		int fd = accept4(p[0].fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		serve(fd);
		close(fd);
	}
}
