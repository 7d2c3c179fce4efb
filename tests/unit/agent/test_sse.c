#include "agent/sse.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

struct row {
	const char *stream;
	const char *events; /* "type=data;" each; a line end in data is '|' */
};

static const struct row table[] = {
	{"", ""},
	{"data: a\n\n", "message=a;"},
	{"data:a\n\n", "message=a;"},
	{"data:  a\n\n", "message= a;"},
	{"data: a\r\n\r\n", "message=a;"},
	{"data: a\r\r", "message=a;"},
	{"data: a\r\rdata: b\r\n\r\ndata: c\n\n", "message=a;message=b;message=c;"},
	{"data: a\ndata: b\n\n", "message=a|b;"},
	{"data: a\ndata\ndata:\n\n", "message=a||;"},
	{"data\n\n", "message=;"},
	{"\n\n\n", ""},
	{": comment\n\n", ""},
	{": comment\ndata: a\n: another\n\n", "message=a;"},
	{"event: error\ndata: a\n\ndata: b\n\n", "error=a;message=b;"},
	{"event: lost\n\ndata: b\n\n", "message=b;"},
	{"\xef\xbb\xbf"
	 "data: a\n\n",
	 "message=a;"},
	{"data: a\n\xef\xbb\xbf"
	 "data: b\n\n",
	 "message=a;"},
	{"\xef\xbb\xbf\n\xef\xbb\xbf"
	 "data: a\n\n",
	 ""},
	{"id: 7\nretry: 10\nunknown: x\ndatas: x\ndat: x\ndata: a\n\n", "message=a;"},
	{"data: cut off", ""},
	{"data: cut off\n", ""},
	{"data: a\n\ndata: cut", "message=a;"},
	{"data: a:b: c\n\n", "message=a:b: c;"},
	{"data: {\"x\":1}\n\ndata: [DONE]\n\n", "message={\"x\":1};message=[DONE];"},
	{"data: \x1b[2J\xff\n\n", "message=\x1b[2J\xff;"},
};

static int collect(void *arg, const char *type, const char *data, size_t n)
{
	struct buf *out = arg;
	cr_assert_eq(strlen(data), n);
	buf_addf(out, "%s=", type);
	for (size_t i = 0; i < n; i++)
		buf_add_char(out, data[i] == '\n' ? '|' : data[i]);
	buf_add_char(out, ';');
	return 0;
}

/* Feed in pieces: the first of `first` bytes, then `step` at a time. */
static void check(const struct row *row, size_t first, size_t step)
{
	struct buf out = {0};
	struct sse s;
	size_t n = strlen(row->stream);
	sse_init(&s, collect, &out, 0);
	for (size_t at = 0, len = first; at < n; at += len, len = step) {
		if (len > n - at)
			len = n - at;
		cr_assert_eq(sse_feed(&s, row->stream + at, len), 0);
	}
	cr_assert_str_eq(buf_str(&out), row->events, "\"%s\" cut %zu/%zu", row->stream, first,
			 step);
	sse_free(&s);
	buf_free(&out);
}

Test(sse, events_whatever_the_pieces)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		size_t n = strlen(table[i].stream);
		check(&table[i], n, n);
		for (size_t step = 1; step <= 3; step++)
			check(&table[i], step, step);
		for (size_t cut = 1; cut < n; cut++)
			check(&table[i], cut, n);
	}
}

static int expect_a_nul_b(void *arg, const char *type, const char *data, size_t n)
{
	(void)type;
	cr_assert_eq(n, 3);
	cr_assert_eq(memcmp(data, "a\0b", 4), 0);
	++*(int *)arg;
	return 0;
}

Test(sse, a_nul_in_the_data_is_kept)
{
	static const char stream[] = "data: a\0b\n\n";
	struct sse s;
	int seen = 0;
	sse_init(&s, expect_a_nul_b, &seen, 0);
	cr_assert_eq(sse_feed(&s, stream, sizeof(stream) - 1), 0);
	cr_assert_eq(seen, 1);
	sse_free(&s);
}

static int stop_at_b(void *arg, const char *type, const char *data, size_t n)
{
	(void)type;
	(void)n;
	++*(int *)arg;
	return *data == 'b' ? 42 : 0;
}

Test(sse, the_callback_stops_the_feed)
{
	struct sse s;
	int seen = 0;
	sse_init(&s, stop_at_b, &seen, 0);
	cr_assert_eq(sse_feed(&s, "data: a\n\ndata: b\n\ndata: c\n\n", 27), 42);
	cr_assert_eq(seen, 2);
	sse_free(&s);
}

Test(sse, lines_and_events_are_bounded)
{
	struct buf out = {0};
	struct sse s;
	sse_init(&s, collect, &out, 64);
	int err = 0;
	for (int i = 0; i < 65 && !err; i++)
		err = sse_feed(&s, "x", 1);
	cr_assert_eq(err, -EFBIG);
	sse_free(&s);

	sse_init(&s, collect, &out, 64);
	err = 0;
	for (int i = 0; i < 10 && !err; i++)
		err = sse_feed(&s, "data: 0123456789\n", 17);
	cr_assert_eq(err, -EFBIG);
	cr_assert_eq(out.len, 0);
	sse_free(&s);
	buf_free(&out);
}
