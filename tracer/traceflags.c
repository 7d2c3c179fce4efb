#include "tracer/traceflags.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum family { OPEN, AT, MOVE };

static const struct flag {
	const char *name;
	size_t len;
	enum family family;
	uint64_t value;
} flags_known[] = {
#define FLAG(name, family, value) {#name, sizeof #name - 1, family, (uint64_t)(unsigned)(value)},
#include "tracer/traceflags.def"
#undef FLAG
};

static enum family family_of(const struct sysent *ent)
{
	for (unsigned i = 0; ent && i < 6; i++)
		if (ent->arg[i] == ARG_OFLAGS || ent->arg[i] == ARG_HOW)
			return OPEN;
	if (!ent || ent->need[0] == CALL_NEED_OPEN)
		return OPEN; /* creat: it has none to give */
	return ent->need[0] == CALL_NEED_MOVE_FROM ? MOVE : AT;
}

void traceflags_format(const struct sysent *ent, uint64_t flags, struct buf *out)
{
	static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"};
	enum family family = family_of(ent);
	const char *bar = "";
	if (family == OPEN) {
		buf_add_str(out, modes[flags & O_ACCMODE]);
		flags &= ~(uint64_t)O_ACCMODE;
		bar = "|";
	}
	for (size_t i = 0; i < ARRAY_LEN(flags_known); i++) {
		const struct flag *f = &flags_known[i];
		if (f->family != family || !f->value || (flags & f->value) != f->value)
			continue;
		buf_add_str(out, bar);
		buf_add(out, f->name, f->len);
		flags &= ~f->value;
		bar = "|";
	}
	if (flags || !*bar)
		buf_addf(out, flags ? "%s0x%" PRIx64 : "%s0", bar, flags);
}

static bool parse_number(const char *word, size_t n, uint64_t *ret)
{
	char room[24], *end;
	if (!n || n >= sizeof room || word[0] < '0' || word[0] > '9')
		return false;
	memcpy(room, word, n);
	room[n] = '\0';
	errno = 0;
	*ret = strtoull(room, &end, 0);
	return !*end && !errno;
}

static bool parse_word(const char *word, size_t n, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t value;
	} modes[] = {{"O_RDONLY", O_RDONLY},
		     {"O_WRONLY", O_WRONLY},
		     {"O_RDWR", O_RDWR},
		     {"O_ACCMODE", O_ACCMODE}};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (strlen(modes[i].name) == n && !memcmp(modes[i].name, word, n)) {
			*ret = modes[i].value;
			return true;
		}
	for (size_t i = 0; i < ARRAY_LEN(flags_known); i++)
		if (flags_known[i].len == n && !memcmp(flags_known[i].name, word, n)) {
			*ret = flags_known[i].value;
			return true;
		}
	return parse_number(word, n, ret);
}

bool traceflags_parse(const char *text, size_t n, uint64_t *ret)
{
	uint64_t all = 0;
	bool ok = true;
	for (size_t at = 0; at <= n;) {
		const char *bar = at < n ? memchr(text + at, '|', n - at) : NULL;
		size_t len = bar ? (size_t)(bar - text) - at : n - at;
		uint64_t one = 0;
		ok = parse_word(text + at, len, &one) && ok;
		all |= one;
		at += len + 1;
	}
	*ret = all;
	return ok;
}
