#include "tracer/straighten.h"

#include "tracer/util.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ALWAYS (BPF_JMP | BPF_JA)
#define NONE   UINT16_MAX

static bool is_return(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_RET;
}

static bool is_test(const struct sock_filter *f)
{
	return BPF_CLASS(f->code) == BPF_JMP && BPF_OP(f->code) != BPF_JA;
}

/* Where each return finds the next one of its kind. */
static void link_returns(const struct sock_filter *out, size_t n, uint16_t next[STRAIGHTEN_MAX])
{
	uint16_t first[64]; /* by a few bits of the answer; a wrong one is seen by its successor */

	memset(first, 0xff, sizeof(first));
	for (size_t i = n; i-- > 0;) {
		if (!is_return(&out[i]))
			continue;
		uint16_t *head = &first[(out[i].k ^ out[i].k >> 16 ^ out[i].k >> 10) % 64];
		next[i] = *head;
		*head = (uint16_t)i;
	}
}

/* The last one within reach that a test at `from` may go to, in place of the instruction `to`. */
static size_t last_like(const struct sock_filter *out, const uint16_t *next, size_t from, size_t to)
{
	size_t last = to;

	for (size_t at = to; is_return(&out[to]) && at != NONE && at - from - 1 <= UINT8_MAX;
	     at = next[at])
		if (out[at].code == out[to].code && out[at].k == out[to].k)
			last = at;
	return last;
}

/* Where a jump that always goes there goes at last. */
static size_t through(const struct sock_filter *out, size_t from, size_t to)
{
	while (out[to].code == ALWAYS && to + 1 + out[to].k - from - 1 <= UINT8_MAX)
		to += 1 + out[to].k;
	return to;
}

/* Tests lead where their ways end; returns are shared as far as a test can reach. */
static void aim(struct sock_filter *out, size_t n)
{
	uint16_t next[STRAIGHTEN_MAX];

	link_returns(out, n, next);
	for (size_t i = 0; i < n; i++) {
		struct sock_filter *f = &out[i];
		if (!is_test(f))
			continue;
		size_t yes = through(out, i, i + 1 + f->jt), no = through(out, i, i + 1 + f->jf);
		f->jt = (uint8_t)(last_like(out, next, i, yes) - i - 1);
		f->jf = (uint8_t)(last_like(out, next, i, no) - i - 1);
	}
}

static void mark_live(const struct sock_filter *out, size_t n, bool live[STRAIGHTEN_MAX])
{
	memset(live, 0, n);
	live[0] = true;
	for (size_t i = 0; i < n; i++) {
		const struct sock_filter *f = &out[i];
		if (!live[i] || is_return(f))
			continue;
		if (is_test(f))
			live[i + 1 + f->jt] = live[i + 1 + f->jf] = true;
		else
			live[i + 1 + (f->code == ALWAYS ? f->k : 0)] = true;
	}
}

/* What no way leads to goes; distances only shrink. */
static size_t close_up(struct sock_filter *out, size_t n)
{
	bool live[STRAIGHTEN_MAX];
	uint16_t to[STRAIGHTEN_MAX]; /* where each instruction goes */
	size_t len = 0;

	mark_live(out, n, live);
	for (size_t i = 0; i < n; i++) {
		to[i] = (uint16_t)len;
		len += live[i];
	}
	for (size_t i = 0; i < n; i++) {
		struct sock_filter f = out[i];
		if (!live[i])
			continue;
		if (f.code == ALWAYS) {
			f.k = to[i + 1 + f.k] - to[i] - 1u;
		} else if (is_test(&f)) {
			f.jt = (uint8_t)(to[i + 1 + f.jt] - to[i] - 1);
			f.jf = (uint8_t)(to[i + 1 + f.jf] - to[i] - 1);
		}
		out[to[i]] = f;
	}
	return len;
}

size_t straighten(struct sock_filter *out, size_t n)
{
	size_t before;

	BUG(!n || n > STRAIGHTEN_MAX);
	do {
		before = n;
		aim(out, n);
		n = close_up(out, n);
	} while (n < before);
	return n;
}
