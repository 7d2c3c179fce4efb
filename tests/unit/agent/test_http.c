#include "agent/http.h"

#include "tests/support/mock.h"
#include "tracer/util.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

struct got {
	struct buf body;
	int stop_with; /* what on_bytes returns */
};

static int on_bytes(void *arg, const struct http_response *so_far, const char *bytes, size_t n)
{
	struct got *got = arg;
	cr_assert_neq(so_far->status, 0); /* known before the first byte */
	buf_add(&got->body, bytes, n);
	return got->stop_with;
}

static int ask(const char *base, const char *path, struct got *got, struct http_response *ret)
{
	struct http *h = NULL;
	char url[160];
	snprintf(url, sizeof(url), "%s%s", base, path);
	const struct http_request req = {
		.method = "GET", .url = url, .on_bytes = on_bytes, .arg = got};
	cr_assert_eq(http_new(NULL, &h), 0);
	int err = http_perform(h, &req, ret);
	http_free(h);
	return err;
}

Test(http, gives_status_headers_and_body)
{
	struct mock m;
	struct got got = {0};
	struct http_response r;
	mock_start(
		&m,
		"{\"for\":\"models\",\"status\":418,\"type\":\"text/x; "
		"charset=utf-8\",\"headers\":{"
		"\"Retry-After\":\"17\",\"X-Request-ID\":\"one\",\"X-GitHub-Request-Id\":\"two\"},"
		"\"body\":\"short and stout\",\"chunk\":4}",
		"b");
	cr_assert_eq(ask(m.url, "/models", &got, &r), 0, "%s", r.error);
	cr_assert_eq(r.status, 418);
	cr_assert_str_eq(r.content_type, "text/x; charset=utf-8");
	cr_assert_str_eq(r.request_id, "one");
	cr_assert_eq(r.retry_after_s, 17);
	cr_assert_str_eq(buf_str(&got.body), "short and stout");
	cr_assert_eq(r.body_len, 15);
	buf_free(&got.body);
	mock_stop(&m);
}

Test(http, follows_no_redirect)
{
	struct mock m;
	struct got got = {0};
	struct http_response r;
	mock_start(&m,
		   "{\"for\":\"models\",\"status\":307,\"headers\":{\"Location\":\"/secret\"},"
		   "\"body\":\"\"}",
		   "b");
	cr_assert_eq(ask(m.url, "/models", &got, &r), 0);
	cr_assert_eq(r.status, 307);
	cr_assert_str_eq(r.location, "/secret");
	mock_read_log(&m);
	cr_assert_eq(m.n_requests, 1);
	mock_stop(&m);
}

Test(http, the_callback_ends_it)
{
	static const struct {
		int stop_with, err;
	} rows[] = {{HTTP_ENOUGH, 0}, {-ENOSPC, -ENOSPC}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mock m;
		struct http_response r;
		struct got got = {.stop_with = rows[i].stop_with};
		mock_start(
			&m,
			"{\"for\":\"models\",\"body\":\"0123456789\",\"chunk\":1,\"pause_ms\":300}",
			"b");
		cr_assert_eq(ask(m.url, "/models", &got, &r), rows[i].err);
		cr_assert_str_eq(buf_str(&got.body), "0");
		buf_free(&got.body);
		mock_stop(&m);
	}
}

Test(http, a_failure_is_a_sentence)
{
	static const struct {
		const char *url;
		int err;
		const char *says;
		bool transient;
	} rows[] = {
		{"http://127.0.0.1:1", -ECONNREFUSED, "cannot connect to 127.0.0.1:1", true},
		{"ftp://127.0.0.1:1", -EINVAL, "no http or https URL", false},
		{"file:///etc/passwd", -EINVAL, "no http or https URL", false},
		{"http://", -EINVAL, "no http or https URL", false},
	};
	setenv("no_proxy", "127.0.0.1", 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct got got = {0};
		struct http_response r;
		cr_assert_eq(ask(rows[i].url, "", &got, &r), rows[i].err, "%s: %s", rows[i].url,
			     r.error);
		cr_assert_eq(r.status, 0);
		cr_assert_eq(r.transient, rows[i].transient);
		cr_assert(strstr(r.error, rows[i].says), "%s", r.error);
	}
}

Test(http, a_header_cannot_smuggle_another)
{
	static const char *const bad[] = {"a\r\nX: y", "a\nb", "a\rb", "\x7f", "\t"};
	struct http_headers h = {0};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_assert_eq(http_headers_add(&h, "Name", bad[i]), -EINVAL);
	cr_assert_eq(http_headers_add(&h, "Na\nme", "x"), -EINVAL);
	cr_assert_eq(h.n, 0);
	while (h.n < HTTP_HEADERS_MAX)
		cr_assert_eq(http_headers_add(&h, "Name", "value"), 0);
	cr_assert_eq(http_headers_add(&h, "Name", "value"), -E2BIG);
	cr_assert_str_eq(h.line[0], "Name: value");
	http_headers_free(&h);
	cr_assert_eq(h.n, 0);
}

Test(http, where_a_credential_may_go)
{
	static const struct {
		const char *url;
		bool safe;
	} rows[] = {
		{"https://api.githubcopilot.com", true},
		{"HTTPS://x.example/", true},
		{"http://127.0.0.1:8080/v1", true},
		{"http://localhost", true},
		{"http://[::1]:1/", true},
		{"http://api.githubcopilot.com", false},
		{"http://127.0.0.1.example.org", false},
		{"http://127.0.0.1@example.org/", false},
		{"http://localhost.example.org", false},
		{"ftp://127.0.0.1", false},
		{"127.0.0.1", false},
		{"", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		cr_assert_eq(http_url_is_safe(rows[i].url), rows[i].safe, "%s", rows[i].url);
}

/* A server of one connection, in a process of its own. */
struct served {
	int fd, port;
	pid_t pid;
};

static void serve(struct served *s, void (*run)(int fd))
{
	struct sockaddr_in addr = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(addr);
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(s->fd, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(s->fd, 1), 0);
	cr_assert_eq(getsockname(s->fd, (struct sockaddr *)&addr, &len), 0);
	s->port = ntohs(addr.sin_port);
	setenv("no_proxy", "127.0.0.1", 1);
	s->pid = fork();
	if (!s->pid) {
		alarm(60);
		run(s->fd);
	}
}

static void served_end(struct served *s)
{
	close(s->fd);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
}

static void endless_server(int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n";
	static char zeros[1 << 16];
	int peer = accept(fd, NULL, NULL);
	if (peer < 0 || write(peer, head, sizeof(head) - 1) < 0)
		_exit(1);
	while (write(peer, zeros, sizeof(zeros)) > 0)
		;
	_exit(0);
}

static int drop(void *arg, const struct http_response *so_far, const char *bytes, size_t n)
{
	(void)so_far;
	(void)bytes;
	*(size_t *)arg += n;
	return 0;
}

Test(http, an_answer_is_bounded)
{
	struct served s;
	struct http *h = NULL;
	struct http_response r;
	size_t n = 0;
	char url[64];
	serve(&s, endless_server);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", s.port);
	const struct http_request req = {.method = "GET", .url = url, .on_bytes = drop, .arg = &n};
	cr_assert_eq(http_new(NULL, &h), 0);
	cr_assert_eq(http_perform(h, &req, &r), -EFBIG);
	cr_assert_leq(n, HTTP_BODY_MAX);
	cr_assert(strstr(r.error, "32 MiB"), "%s", r.error);
	http_free(h);
	served_end(&s);
}

/* Answers plain HTTP to whatever it is told. */
static void deaf_server(int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	char hello[1024];
	int peer = accept(fd, NULL, NULL);
	if (peer < 0 || read(peer, hello, sizeof(hello)) <= 0)
		_exit(1);
	_exit(write(peer, head, sizeof(head) - 1) < 0);
}

Test(http, a_server_without_tls_gets_nothing_over_https)
{
	struct served s;
	serve(&s, deaf_server);
	struct got got = {0};
	struct http_response r;
	char url[64];
	snprintf(url, sizeof(url), "https://127.0.0.1:%d", s.port);
	cr_assert_eq(ask(url, "/", &got, &r), -EPROTO, "%s", r.error);
	cr_assert_not(r.transient);
	cr_assert(strstr(r.error, "no trusted TLS connection"), "%s", r.error);
	served_end(&s);
}
