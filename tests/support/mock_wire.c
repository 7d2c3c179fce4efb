#include "tests/support/mock_wire.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX (64u << 20)
#define STORED_MAX  65535 /* bytes of a gzip block that is not compressed */
#define PATIENCE_MS 60000 /* of a stall: longer than any test's */

/* How the answer is written; `left` bytes of the body remain before the drop (-1: no drop). */
struct writer {
	int fd;
	const struct json *line;
	size_t chunk;
	bool chunked;
	bool extensions; /* on every chunk, and a trailer */
	int64_t pause_ms;
	int64_t left, until_stall;
	bool gone; /* the peer went away, or was dropped */
};

int64_t mock_wire_number(const struct json *line, const char *key, int64_t otherwise)
{
	json_get_int(line, key, &otherwise);
	return otherwise;
}

static bool flag(const struct json *line, const char *key)
{
	bool on = false;
	json_bool(json_get(line, key), &on);
	return on;
}

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
	char head[48];
	const char *extension = w->extensions ? ";name=\"a value\";x" : "";
	int len = snprintf(head, sizeof(head), "%s%zX%s\r\n", w->extensions ? "000" : "", n,
			   extension);
	if (!w->chunked) {
		put(w, bytes, n);
		return;
	}
	put(w, head, (size_t)len);
	put(w, bytes, n);
	put(w, "\r\n", 2);
}

/* No more than until the next drop or stall. */
static size_t next_len(const struct writer *w, size_t left)
{
	size_t len = w->chunk && w->chunk < left ? w->chunk : left;
	if (w->left >= 0 && (int64_t)len > w->left)
		len = (size_t)w->left;
	if (w->until_stall >= 0 && (int64_t)len > w->until_stall)
		len = (size_t)w->until_stall;
	return len;
}

static void put_body(struct writer *w, const char *bytes, size_t n)
{
	for (size_t at = 0; at < n && !w->gone;) {
		size_t len = next_len(w, n - at);
		if (len)
			put_chunk(w, bytes + at, len);
		at += len;
		if (w->until_stall >= 0 && (w->until_stall -= (int64_t)len) == 0) {
			pause_for(w, PATIENCE_MS);
			w->gone = true;
		}
		if (w->left >= 0 && (w->left -= (int64_t)len) == 0)
			w->gone = true;
		if (!w->gone)
			pause_for(w, w->pause_ms);
	}
}

static void put_end(struct writer *w)
{
	static const char trailer[] = "0;last\r\nX-Trailer: a\r\n\r\n";
	if (flag(w->line, "bad_chunk"))
		put(w, "zz\r\nwhat is this\r\n", 18);
	else if (w->extensions)
		put(w, trailer, sizeof(trailer) - 1);
	else if (w->chunked)
		put(w, "0\r\n\r\n", 5);
}

/* ---- gzip, without compressing ---- */

static uint32_t crc32_of(const char *bytes, size_t n)
{
	uint32_t crc = ~0u;
	for (size_t i = 0; i < n; i++) {
		crc ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void add_little(struct buf *out, uint32_t n, int bytes)
{
	for (; bytes; bytes--, n >>= 8)
		buf_add_char(out, (char)(n & 0xff));
}

static void gzip(struct buf *out, const char *bytes, size_t n)
{
	static const char head[] = "\x1f\x8b\x08\0\0\0\0\0\0\x03";
	buf_add(out, head, sizeof(head) - 1);
	for (size_t at = 0; at < n || !at;) {
		size_t len = n - at < STORED_MAX ? n - at : STORED_MAX;
		buf_add_char(out, at + len == n);
		add_little(out, (uint32_t)len, 2);
		add_little(out, ~(uint32_t)len, 2);
		buf_add(out, bytes + at, len);
		at += len;
		if (!len)
			break;
	}
	add_little(out, crc32_of(bytes, n), 4);
	add_little(out, (uint32_t)n, 4);
}

/* ---- the answer ---- */

static void add_head(struct buf *head, const struct writer *w, int64_t status, const char *type)
{
	const struct json *headers = json_get(w->line, "headers");
	buf_addf(head, "HTTP/1.%d %d Mock\r\nContent-Type: %s\r\n", w->chunked, (int)status, type);
	if (w->chunked)
		buf_add_str(head, "Transfer-Encoding: chunked\r\n");
	if (flag(w->line, "gzip") || flag(w->line, "bad_gzip"))
		buf_add_str(head, "Content-Encoding: gzip\r\n");
	buf_add_str(head, "Connection: close\r\n");
	for (const struct json *h = json_first(headers); h; h = json_next(h))
		buf_addf(head, "%s: %s\r\n", json_key(h), json_str(h) ? json_str(h) : "");
	buf_add_str(head, "\r\n");
}

/* What the body is made into before it is written. */
static void make_body(struct buf *out, const struct json *line, const char *body)
{
	struct buf whole = {.max = 1u << 30};
	for (int64_t i = mock_wire_number(line, "repeat", 1); i > 0; i--)
		buf_add_str(&whole, body);
	out->max = 1u << 30;
	if (flag(line, "gzip"))
		gzip(out, buf_str(&whole), whole.len);
	else
		buf_add(out, buf_str(&whole), whole.len);
	buf_free(&whole);
}

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

void mock_wire_answer(int fd, const struct json *line, int64_t status, const char *type,
		      const char *body)
{
	struct buf head = {0}, all = {0};
	struct writer w = {
		.fd = fd,
		.line = line,
		.chunk = (size_t)mock_wire_number(line, "chunk", 0),
		.chunked = !flag(line, "old"),
		.extensions = flag(line, "extensions"),
		.pause_ms = mock_wire_number(line, "pause_ms", 0),
		.left = mock_wire_number(line, "drop_after", -1),
		.until_stall = mock_wire_number(line, "stall_after", -1),
	};
	const char *wire = json_get_str(line, "wire");
	pause_for(&w, mock_wire_number(line, "delay_ms", 0));
	if (wire) {
		put(&w, wire, strlen(wire));
	} else {
		add_head(&head, &w, status, type);
		make_body(&all, line, body);
		put(&w, buf_str(&head), head.len);
		put_body(&w, buf_str(&all), all.len);
		put_end(&w);
	}
	if (flag(line, "reset"))
		reset(fd);
	buf_free(&head);
	buf_free(&all);
}

/* ---- the request ---- */

const char *mock_wire_header(const struct mock_request *r, const char *name, char *ret, size_t size)
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

bool mock_wire_read(int fd, struct mock_request *r)
{
	char chunk[65536], length[32];
	const char *end = NULL;
	r->raw.max = REQUEST_MAX;
	for (;;) {
		if (!end && (end = strstr(buf_str(&r->raw), "\r\n\r\n"))) {
			r->head_len = (size_t)(end - buf_str(&r->raw)) + 4;
			r->body_len = strtoul(
				mock_wire_header(r, "content-length:", length, sizeof(length)),
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
