/*
 * What a client sends to `warder mcp`, in one piece and in two: the same answers, each a JSON-RPC
 * message on a line of its own. Calls are taken, listed and cancelled, and not run.
 */
#include "tests/fuzz/fuzz.h"

#include "agent/mcp.h"
#include "agent/mcpout.h"
#include "supervisor/loop.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static char *answers_of(const char *bytes, size_t first, size_t n, size_t *ret_len)
{
	struct loop *l;
	struct mcp s = {.tools = {.tmp_fd = -1, .cwd = (char *)"/nowhere"},
			.in = {.max = MCP_LINE_MAX},
			.events_fd = -1,
			.answers_fd = -1};
	int fd = memfd_create("answers", MFD_CLOEXEC);
	if (fd < 0 || loop_new(&l) || mcpout_new(l, fd, &s.out))
		abort();
	mcp_feed(&s, bytes, first);
	if (n > first)
		mcp_feed(&s, bytes + first, n - first);
	mcp_feed_end(&s);
	mcpout_free(s.out);
	loop_free(l);
	buf_free(&s.in);
	struct stat st;
	if (fstat(fd, &st))
		abort();
	char *text = calloc(1, (size_t)st.st_size + 1);
	if (!text || pread(fd, text, (size_t)st.st_size, 0) != st.st_size)
		abort();
	close(fd);
	*ret_len = (size_t)st.st_size;
	return text;
}

static void check_bytes(const char *text, size_t n)
{
	size_t len = 0;
	for (size_t at = 0; at < n; at += len)
		if (!(len = json_utf8_len(text + at, n - at)) ||
		    ((unsigned char)text[at] < ' ' && text[at] != '\n'))
			abort();
}

static void check_lines(const char *text, size_t n)
{
	check_bytes(text, n);
	for (size_t at = 0; at < n;) {
		struct json *v = NULL;
		const char *end = memchr(text + at, '\n', n - at);
		if (!end || json_parse(text + at, (size_t)(end - text) - at, &v, NULL))
			abort();
		const char *version = json_get_str(v, "jsonrpc");
		if (!version || strcmp(version, "2.0") != 0 || !json_get(v, "id"))
			abort();
		json_free(v);
		at = (size_t)(end - text) + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	/* The last byte says where it is cut. */
	size_t n = size - 1, first = data[n] * n / 256, whole_len, pieces_len;
	char *whole = answers_of((const char *)data, n, n, &whole_len);
	char *pieces = answers_of((const char *)data, first, n, &pieces_len);
	if (whole_len != pieces_len || memcmp(whole, pieces, whole_len) != 0)
		abort();
	check_lines(whole, whole_len);
	free(whole);
	free(pieces);
	return 0;
}
