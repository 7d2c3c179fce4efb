/*
 * mock_copilot: a server on the loopback that speaks GitHub's device login and token exchange, and
 * Copilot's (or any OpenAI-compatible) models, chat completions and responses, as a file of
 * scenarios tells it. For tests and the demonstration.
 *
 *   mock_copilot [--scenario FILE] [--log FILE] [--token GITHUB] [--direct GITHUB] [--bearer READY]
 *
 * Prints "port N" and serves one connection after the other until its stdin ends or it is killed.
 * --token: the GitHub token that is exchanged (default ghu_test), and that a login gives. --direct:
 * one that is not exchanged but is a bearer itself. --bearer: one that is accepted without an
 * exchange. Each exchange mints another bearer; only the latest is accepted.
 *
 * Each line of FILE answers one request, in order, by the path it is "for": "chat" (the default),
 * "responses", "token", "user" (quotas), "models", "policy" (of a model), "device" (a code) or
 * "login" (is it entered?). With no line left, chat and responses get a 500, the others a good
 * answer. status, type, body, headers {}   an answer of just that message {}     an assistant
 * message, streamed in pieces and over two choices; with "stream": false one plain JSON object
 *   reasoning      what is sealed with it
 *   sse []         these events: a string as it is, anything else as JSON
 *   raw            these bytes as the stream
 *   finish         finish_reason instead of stop or tool_calls; for responses why it is incomplete
 *   lifetime N     of a token: expires_at and refresh_in (default 1800)
 *   any_bearer     do not look at the Authorization header of this request
 * How it is written:
 *   chunk N        bytes a write (default: all), pause_ms N between writes, delay_ms N before
 *   drop_after N   close, without the end of the body, after N bytes of it
 *   stall_after N  say nothing more after N bytes of it
 *   reset          by a reset instead of a close
 *   old            HTTP/1.0: no chunks, the body ends with the connection
 *   extensions     chunks with extensions, leading zeros and a trailer; bad_chunk: one that is none
 *   gzip           packed; bad_gzip: not packed, though the head says so
 *   repeat N       the body N times
 *   wire           these bytes instead of any answer
 * The log has one JSON line a request: method, path, headers (names in lower case), body.
 */
#include "tests/support/mock_stream.h"
#include "tests/support/mock_wire.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LINES_MAX 256

#define DEVICE_CODE "mock-device-code-secret"
#define USER_CODE   "MOCK-1234"
#define TERMS_MODEL "needs-terms"

static struct {
	const char *token, *bearer, *direct;
	struct json *lines[LINES_MAX];
	bool used[LINES_MAX];
	size_t n_lines;
	int log_fd;
	int port;
	int minted;
	char minted_bearer[64];
	bool enabled; /* TERMS_MODEL */
} server = {.token = "ghu_test", .log_fd = -1};

static void die(const char *what)
{
	fprintf(stderr, "mock_copilot: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the scenario ---- */

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

/* The line says all of the answer. */
static bool simple_answer(int fd, const struct json *line)
{
	const char *type = json_get_str(line, "type");
	const char *body = json_get_str(line, "body");
	int64_t status = 0;
	if (!json_get_int(line, "status", &status) && !body && !json_get_str(line, "wire"))
		return false;
	mock_wire_answer(fd, line, status ? status : 200, type ? type : "application/json",
			 body ? body : "");
	return true;
}

static void answer_json(int fd, const struct json *line, int64_t status, const char *body)
{
	mock_wire_answer(fd, line, status, "application/json", body);
}

/* A member of the request's JSON body; false: it is not this text. */
static bool body_says(const struct mock_request *r, const char *key, const char *text)
{
	struct json *v = NULL;
	if (json_parse(buf_str(&r->raw) + r->head_len, r->body_len, &v, NULL))
		return false;
	const char *said = json_get_str(v, key);
	bool same = said && !strcmp(said, text);
	json_free(v);
	return same;
}

/* ---- GitHub ---- */

static void serve_device(int fd, const struct mock_request *r)
{
	struct buf body = {0};
	struct jsonw w;
	char uri[64];
	const struct json *line = next_line("device");
	(void)r;
	if (simple_answer(fd, line))
		return;
	snprintf(uri, sizeof(uri), "http://127.0.0.1:%d/login/device", server.port);
	jsonw_init(&w, &body);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "device_code", DEVICE_CODE);
	jsonw_kstr(&w, "user_code", USER_CODE);
	jsonw_kstr(&w, "verification_uri", uri);
	jsonw_kint(&w, "expires_in", mock_wire_number(line, "lifetime", 900));
	jsonw_kint(&w, "interval", 1);
	jsonw_end_object(&w);
	answer_json(fd, line, 200, buf_str(&body));
	buf_free(&body);
}

static void serve_login(int fd, const struct mock_request *r)
{
	char body[600];
	const struct json *line = next_line("login");
	if (simple_answer(fd, line))
		return;
	if (!body_says(r, "device_code", DEVICE_CODE))
		snprintf(body, sizeof(body), "{\"error\":\"incorrect_device_code\"}");
	else
		snprintf(body, sizeof(body),
			 "{\"access_token\":\"%s\",\"token_type\":\"bearer\",\"scope\":\"\"}",
			 server.token);
	answer_json(fd, line, 200, body);
}

static void write_grant(struct buf *body, const struct json *line)
{
	struct jsonw w;
	char api[64];
	int64_t lifetime = mock_wire_number(line, "lifetime", 1800);
	snprintf(server.minted_bearer, sizeof(server.minted_bearer), "tid=mock%d;exp=1;sku=test",
		 ++server.minted);
	snprintf(api, sizeof(api), "http://127.0.0.1:%d/", server.port);
	jsonw_init(&w, body);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "token", server.minted_bearer);
	jsonw_kint(&w, "expires_at", (int64_t)time(NULL) + lifetime);
	jsonw_kint(&w, "refresh_in", lifetime);
	jsonw_kbool(&w, "chat_enabled", true);
	jsonw_key(&w, "endpoints");
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "api", api);
	jsonw_end_object(&w);
	jsonw_end_object(&w);
}

static void serve_token(int fd, const struct mock_request *r)
{
	char given[512], want[512], direct[512];
	struct buf body = {0};
	const struct json *line = next_line("token");
	if (simple_answer(fd, line))
		return;
	snprintf(want, sizeof(want), "token %s", server.token);
	snprintf(direct, sizeof(direct), "token %s", server.direct ? server.direct : "");
	mock_wire_header(r, "authorization:", given, sizeof(given));
	if (!strcmp(given, direct)) {
		answer_json(fd, line, 404, "{\"message\":\"Not Found\"}");
	} else if (strcmp(given, want) != 0) {
		answer_json(fd, line, 401, "{\"message\":\"Bad credentials\"}");
	} else {
		write_grant(&body, line);
		answer_json(fd, line, 200, buf_str(&body));
		buf_free(&body);
	}
}

static void serve_user(int fd, const struct mock_request *r)
{
	const struct json *line = next_line("user");
	(void)r;
	if (!simple_answer(fd, line))
		answer_json(fd, line, 200,
			    "{\"quota_reset_date\":\"2030-01-01\",\"quota_snapshots\":{\"chat\":"
			    "{\"unlimited\":true},\"premium_interactions\":{\"entitlement\":300,"
			    "\"remaining\":120,\"unlimited\":false,\"overage_permitted\":false}}}");
}

/* ---- Copilot ---- */

static bool authorized(const struct mock_request *r, const struct json *line)
{
	char given[512];
	bool any = false;
	const char *const bearers[] = {server.bearer, server.direct, server.minted_bearer};
	json_bool(json_get(line, "any_bearer"), &any);
	mock_wire_header(r, "authorization:", given, sizeof(given));
	if (strncmp(given, "Bearer ", 7) != 0)
		return any;
	for (size_t i = 0; i < sizeof(bearers) / sizeof(bearers[0]); i++)
		any |= bearers[i] && *bearers[i] && !strcmp(given + 7, bearers[i]);
	return any;
}

/* The last of them is what the accepted terms change. */
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
	"\"supports\":{\"tool_calls\":true}}},"
	"{\"id\":\"not-shown\",\"model_picker_enabled\":false,\"capabilities\":{\"type\":\"chat\","
	"\"supports\":{\"tool_calls\":true}}},"
	"{\"id\":\"" TERMS_MODEL "\",\"capabilities\":{\"type\":\"chat\",\"supports\":{\"tool_"
	"calls\":true}},\"policy\":{\"state\":\"";

static void refuse(int fd)
{
	mock_wire_answer(fd, NULL, 401, "text/plain", "unauthorized: token expired");
}

/* GitHub's word where a fine-grained token comes without the one integration id that may use it. */
static bool refuse_fine(int fd, const struct mock_request *r)
{
	char given[512], id[64];
	mock_wire_header(r, "authorization:", given, sizeof(given));
	mock_wire_header(r, "copilot-integration-id:", id, sizeof(id));
	if (strncmp(given, "Bearer github_pat_", 18) != 0 || !strcmp(id, "copilot-developer-cli"))
		return false;
	mock_wire_answer(fd, NULL, 400, "text/plain",
			 "checking third-party user token: bad request: Personal Access Tokens are "
			 "not supported for this endpoint");
	return true;
}

static void serve_models(int fd, const struct mock_request *r)
{
	struct buf body = {0};
	const struct json *line = next_line("models");
	if (simple_answer(fd, line))
		return;
	if (!authorized(r, line)) {
		refuse(fd);
		return;
	}
	buf_addf(&body, "%s%s\"}}]}", models, server.enabled ? "enabled" : "unconfigured");
	answer_json(fd, line, 200, buf_str(&body));
	buf_free(&body);
}

static void serve_policy(int fd, const struct mock_request *r)
{
	const struct json *line = next_line("policy");
	if (simple_answer(fd, line))
		return;
	if (!authorized(r, line)) {
		refuse(fd);
	} else if (!strcmp(r->path, "/models/" TERMS_MODEL "/policy") &&
		   body_says(r, "state", "enabled")) {
		server.enabled = true;
		answer_json(fd, line, 200, "{\"state\":\"enabled\"}");
	} else {
		answer_json(fd, line, 404, "{\"message\":\"Not Found\"}");
	}
}

/* Copilot's own refusals, which need no line. */
static bool refuse_model(int fd, const struct mock_request *r, bool chat)
{
	if (chat && body_says(r, "model", "responses-only")) {
		answer_json(
			fd, NULL, 400,
			"{\"error\":{\"message\":\"model \\\"responses-only\\\" is not accessible "
			"via the /chat/completions endpoint\",\"code\":"
			"\"unsupported_api_for_model\"}}");
		return true;
	}
	if (server.enabled || !body_says(r, "model", TERMS_MODEL))
		return false;
	answer_json(fd, NULL, 400,
		    "{\"error\":{\"message\":\"The requested model is not supported.\",\"code\":"
		    "\"model_not_supported\",\"param\":\"model\",\"type\":"
		    "\"invalid_request_error\"}}");
	return true;
}

static void write_message(struct buf *body, const struct json *line, bool chat, bool stream)
{
	const struct json *message = json_get(line, "message");
	if (!message && json_get_str(line, "raw"))
		buf_add_str(body, json_get_str(line, "raw"));
	else if (!message)
		mock_stream_events(body, json_get(line, "sse"));
	else if (chat && stream)
		mock_stream_chat(body, line, message);
	else if (chat)
		mock_stream_plain_chat(body, line, message);
	else if (stream)
		mock_stream_responses(body, line, message);
	else
		mock_stream_plain_responses(body, line, message);
}

static void serve_turn(int fd, const struct mock_request *r, bool chat)
{
	struct buf body = {.max = 1u << 30};
	bool stream = true;
	if (refuse_model(fd, r, chat) || refuse_fine(fd, r))
		return;
	const struct json *line = next_line(chat ? "chat" : "responses");
	if (simple_answer(fd, line))
		return;
	if (!authorized(r, line)) {
		refuse(fd);
		return;
	}
	if (!line) {
		mock_wire_answer(fd, NULL, 500, "text/plain", "the scenario has no more lines");
		return;
	}
	json_bool(json_get(line, "stream"), &stream);
	write_message(&body, line, chat, stream);
	const char *type = json_get_str(line, "type");
	mock_wire_answer(fd, line, 200,
			 type	  ? type
			 : stream ? "text/event-stream"
				  : "application/json",
			 buf_str(&body));
	buf_free(&body);
}

static void serve_chat(int fd, const struct mock_request *r)
{
	serve_turn(fd, r, true);
}

static void serve_responses(int fd, const struct mock_request *r)
{
	serve_turn(fd, r, false);
}

/* ---- requests ---- */

static void log_request(const struct mock_request *r)
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

static const struct route {
	const char *method, *path, *end; /* the path's beginning and end */
	void (*serve)(int fd, const struct mock_request *r);
} routes[] = {
	{"POST", "/login/device/code", "", serve_device},
	{"POST", "/login/oauth/access_token", "", serve_login},
	{"GET", "/copilot_internal/v2/token", "", serve_token},
	{"GET", "/copilot_internal/user", "", serve_user},
	{"POST", "/models/", "/policy", serve_policy},
	{"GET", "/models", "", serve_models},
	{"POST", "/chat/completions", "", serve_chat},
	{"POST", "/responses", "", serve_responses},
};

static bool fits(const struct route *route, const struct mock_request *r)
{
	size_t n = strlen(r->path), begin = strlen(route->path), end = strlen(route->end);
	if (strcmp(r->method, route->method) != 0 || strncmp(r->path, route->path, begin) != 0)
		return false;
	return end ? n > begin + end && !strcmp(r->path + n - end, route->end) : n == begin;
}

static void serve(int fd)
{
	struct mock_request r = {0};
	size_t i = 0;
	if (mock_wire_read(fd, &r)) {
		log_request(&r);
		while (i < sizeof(routes) / sizeof(routes[0]) && !fits(&routes[i], &r))
			i++;
		if (i < sizeof(routes) / sizeof(routes[0]))
			routes[i].serve(fd, &r);
		else
			mock_wire_answer(fd, NULL, 404, "text/plain", "not found");
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
		else if (value && !strcmp(argv[i], "--direct"))
			server.direct = value;
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
