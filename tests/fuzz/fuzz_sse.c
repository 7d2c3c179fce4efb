/* A stream of server-sent events: in one piece and in two the same events come out. */
#include "tests/fuzz/fuzz.h"

#include "agent/sse.h"

#include <string.h>

static int collect(void *arg, const char *type, const char *data, size_t n)
{
	struct buf *out = arg;
	buf_add_str(out, type);
	buf_add_char(out, '\0');
	buf_add(out, data, n);
	buf_add_char(out, '\0');
	return 0;
}

/* Its events, and how it ended. */
static int feed(const char *bytes, size_t first, size_t n, struct buf *out)
{
	struct sse s;
	sse_init(&s, collect, out, 4096);
	int r = sse_feed(&s, bytes, first);
	if (r == 0)
		r = sse_feed(&s, bytes + first, n - first);
	sse_free(&s);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = {0};
	struct buf pieces = {0};
	size_t n = size ? size - 1 : 0;
	size_t first = n ? data[size - 1] * n / 256 : 0;
	int r = feed((const char *)data, n, n, &whole);
	int again = feed((const char *)data, first, n, &pieces);
	if (r != again || whole.len != pieces.len ||
	    (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0))
		abort();
	buf_free(&whole);
	buf_free(&pieces);
	return 0;
}
