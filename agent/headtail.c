#include "agent/headtail.h"

void headtail_free(struct headtail *h)
{
	buf_free(&h->head);
	buf_free(&h->tail);
}

void headtail_add(struct headtail *h, const char *bytes, size_t n)
{
	h->total += n;
	size_t room = HEADTAIL_HEAD_MAX - h->head.len;
	size_t first = n < room ? n : room;
	buf_add(&h->head, bytes, first);
	bytes += first;
	n -= first;
	if (n > HEADTAIL_TAIL_MAX) { /* the rest of it can't stay anyway */
		bytes += n - HEADTAIL_TAIL_MAX;
		n = HEADTAIL_TAIL_MAX;
	}
	buf_add(&h->tail, bytes, n);
	if (h->tail.len > 2 * HEADTAIL_TAIL_MAX)
		buf_drop(&h->tail, h->tail.len - HEADTAIL_TAIL_MAX);
}

bool headtail_overflows(const struct headtail *h, size_t n)
{
	return h->total + n > HEADTAIL_HEAD_MAX + HEADTAIL_TAIL_MAX;
}

/* Bytes at the start of the tail that belong to a character whose first ones were left out. */
static size_t cut_at_start(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && i < 3 && ((unsigned char)p[i] & 0xc0) == 0x80)
		i++;
	return i;
}

/* Bytes at the end of the head that begin a character whose rest was left out. */
static size_t cut_at_end(const char *p, size_t n)
{
	for (size_t back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)p[n - back];
		if ((c & 0xc0) != 0x80)
			return c >= 0xc2 && !json_utf8_len(p + n - back, back) ? back : 0;
	}
	return 0;
}

void headtail_write(struct jsonw *w, struct headtail *h)
{
	if (h->tail.len > HEADTAIL_TAIL_MAX)
		buf_drop(&h->tail, h->tail.len - HEADTAIL_TAIL_MAX);
	uint64_t lost = h->total - h->head.len - h->tail.len;
	size_t end = lost ? cut_at_end(h->head.data, h->head.len) : 0;
	size_t start = lost ? cut_at_start(h->tail.data, h->tail.len) : 0;
	struct buf text = {0};
	buf_add(&text, h->head.data, h->head.len - end);
	if (lost)
		buf_addf(&text, "\n[... %llu bytes left out ...]\n",
			 (unsigned long long)lost + start + end);
	if (h->tail.len)
		buf_add(&text, h->tail.data + start, h->tail.len - start);
	jsonw_key(w, "output");
	jsonw_bytes(w, buf_str(&text), text.len);
	if (lost)
		jsonw_kint(w, "output_bytes", (int64_t)h->total);
	if (buf_error(&text) || buf_error(&h->head) || buf_error(&h->tail))
		w->out->failed = true;
	buf_free(&text);
}
