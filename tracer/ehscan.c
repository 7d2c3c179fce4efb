#include "tracer/ehscan.h"

#include <string.h>

#define CIE_MAX		64u  /* of a CIE, as far as its augmentation data */
#define POINTER_PCREL	0x1b /* DW_EH_PE_pcrel | DW_EH_PE_sdata4: what gcc and clang write */
#define POINTER_UNKNOWN 0xff

/* ---- a common entry's pointer encoding ---- */

struct cursor {
	const unsigned char *at, *end;
};

static unsigned char next(struct cursor *c)
{
	return c->at < c->end ? *c->at++ : 0;
}

static void skip_leb(struct cursor *c)
{
	while (next(c) & 0x80)
		;
}

static size_t pointer_size(unsigned char encoding)
{
	switch (encoding & 0x0f) {
	case 0x02: /* udata2, sdata2 */
	case 0x0a:
		return 2;
	case 0x03: /* udata4, sdata4 */
	case 0x0b:
		return 4;
	default:
		return 8;
	}
}

/* "zR", "zPLR": what the letters stand for follows the header, in their order. */
static unsigned char encoding_in(struct cursor c)
{
	unsigned char version = next(&c);
	const unsigned char *letters = c.at;
	while (next(&c))
		;
	if (letters == c.end || *letters != 'z')
		return POINTER_UNKNOWN;
	skip_leb(&c); /* code alignment */
	skip_leb(&c); /* data alignment */
	if (version == 1)
		next(&c); /* the return address's register */
	else
		skip_leb(&c);
	skip_leb(&c); /* the data's length */
	for (const unsigned char *l = letters + 1; l < c.end && *l; l++) {
		if (*l == 'R')
			return next(&c);
		if (*l == 'L')
			next(&c);
		for (size_t n = *l == 'P' ? pointer_size(next(&c)) : 0; n; n--)
			next(&c);
	}
	return POINTER_UNKNOWN;
}

static unsigned char encoding_of(ehscan_read_fn *read, void *arg, uint64_t cie)
{
	unsigned char bytes[CIE_MAX];
	uint32_t head[2]; /* length, id */
	if (!read(arg, cie, head, sizeof(head)) || head[1] != 0 || head[0] < 4)
		return POINTER_UNKNOWN;
	size_t n = head[0] - 4 < sizeof(bytes) ? head[0] - 4 : sizeof(bytes);
	if (!read(arg, cie + sizeof(head), bytes, n))
		return POINTER_UNKNOWN;
	return encoding_in((struct cursor){bytes, bytes + n});
}

/* ---- the entries ---- */

struct entry {
	uint32_t length;
	uint32_t cie; /* how far before this field; 0: it is a CIE itself */
	int32_t start;
	uint32_t range;
};

bool ehscan_find(ehscan_read_fn *read, void *arg, uint64_t addr, uint64_t size, uint64_t ip,
		 struct ehscan_entry *ret)
{
	uint64_t end, at = addr, cie = 0;
	unsigned char encoding = POINTER_UNKNOWN;
	if (size > EHSCAN_SIZE_MAX)
		size = EHSCAN_SIZE_MAX;
	if (__builtin_add_overflow(addr, size, &end))
		return false;
	while (at < end && end - at >= sizeof(struct entry)) {
		struct entry e;
		if (!read(arg, at, &e, sizeof(e)) || !e.length || e.length == UINT32_MAX)
			return false;
		uint64_t start = at + offsetof(struct entry, start) + (uint64_t)(int64_t)e.start;
		uint64_t of = at + offsetof(struct entry, cie) - e.cie;
		if (e.cie && of != cie) {
			cie = of;
			encoding = of >= addr && of < at ? encoding_of(read, arg, of)
							 : POINTER_UNKNOWN;
		}
		if (e.cie && encoding == POINTER_PCREL && ip >= start && ip - start < e.range) {
			*ret = (struct ehscan_entry){.at = at, .start = start};
			return true;
		}
		at += sizeof(e.length) + e.length;
	}
	return false;
}
