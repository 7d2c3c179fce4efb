#include "supervisor/access.h"

#include "landlock/llright.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const struct access_row {
	const char *name;
	char letter;
	uint64_t rights;
} rows[ACCESS_COUNT] = {
#define ACCESS(NAME, name, letter, rights, help) [ACCESS_INDEX_##NAME] = {#name, letter, rights},
#include "supervisor/access.def"
#undef ACCESS
};

static const struct {
	char letter;
	uint32_t mask;
} letters[] = {{'r', ACCESS_R}, {'w', ACCESS_W}, {'x', ACCESS_X}};

#define ACCESS_LETTERS (ACCESS_R | ACCESS_W | ACCESS_X)

const char *access_name(uint32_t bit)
{
	for (unsigned i = 0; i < ACCESS_COUNT; i++)
		if (bit == 1u << i)
			return rows[i].name;
	return "unknown";
}

uint64_t access_rights(uint32_t mask)
{
	uint64_t rights = 0;
	for (unsigned i = 0; i < ACCESS_COUNT; i++)
		if (mask & 1u << i)
			rights |= rows[i].rights;
	return rights;
}

/* Is the mask made of whole letters and nothing else? */
static bool whole_letters(uint32_t mask)
{
	if (!mask || (mask & ~(uint32_t)ACCESS_LETTERS))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
		uint32_t part = mask & letters[i].mask;
		if (part && part != letters[i].mask)
			return false;
	}
	return true;
}

uint32_t access_on_kind(mode_t mode)
{
	uint32_t mask = ACCESS_ALL;
	if (S_ISDIR(mode))
		return mask;
	if (!S_ISSOCK(mode))
		mask &= ~(uint32_t)ACCESS_CONNECT;
	if (!S_ISCHR(mode) && !S_ISBLK(mode))
		mask &= ~(uint32_t)ACCESS_IOCTL;
	return mask;
}

void access_format(struct buf *out, uint32_t mask)
{
	if (whole_letters(mask)) {
		for (size_t i = 0; i < ARRAY_LEN(letters); i++)
			if (mask & letters[i].mask)
				buf_add_char(out, letters[i].letter);
		return;
	}
	const char *comma = "";
	for (unsigned i = 0; i < ACCESS_COUNT; i++) {
		if (!(mask & 1u << i))
			continue;
		buf_add_str(out, comma);
		buf_add_str(out, rows[i].name);
		comma = ",";
	}
}

/* r, rw, wx, ...: every letter known and named once. 0 where the word is none. */
static uint32_t parse_letters(const char *word, size_t n)
{
	uint32_t mask = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t found = 0;
		for (size_t k = 0; k < ARRAY_LEN(letters); k++)
			if (letters[k].letter == word[i])
				found = letters[k].mask;
		if (!found || (mask & found))
			return 0;
		mask |= found;
	}
	return mask;
}

static uint32_t parse_word(const char *word, size_t n)
{
	for (unsigned i = 0; i < ACCESS_COUNT; i++)
		if (strlen(rows[i].name) == n && memcmp(rows[i].name, word, n) == 0)
			return 1u << i;
	return parse_letters(word, n);
}

void access_write(struct jsonw *w, const char *key, uint32_t mask)
{
	jsonw_key(w, key);
	jsonw_begin_array(w);
	for (unsigned i = 0; i < ACCESS_COUNT; i++)
		if (mask & 1u << i)
			jsonw_str(w, access_name(1u << i));
	jsonw_end_array(w);
}

int access_parse(const char *text, size_t n, uint32_t *ret_mask, size_t *ret_at)
{
	uint32_t mask = 0;
	size_t at = 0;
	for (;;) {
		const char *comma = memchr(text + at, ',', n - at);
		size_t end = comma ? (size_t)(comma - text) : n;
		uint32_t part = parse_word(text + at, end - at);
		if (!part) {
			*ret_at = at;
			return -EINVAL;
		}
		mask |= part;
		if (!comma)
			break;
		at = end + 1;
	}
	*ret_mask = mask;
	return 0;
}

/*
 * Facts of the open family, from what the kernel itself asks of a Landlock domain: O_PATH and
 * access mode 3 (ioctls only) need nothing; O_TRUNC counts on regular files alone; a directory,
 * however it is opened, is listed; O_TMPFILE names a directory and makes a file without a name in
 * it.
 */
static uint32_t open_mode_access(uint64_t flags)
{
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return ACCESS_READ;
	case O_WRONLY:
		return ACCESS_WRITE;
	case O_RDWR:
		return ACCESS_READ | ACCESS_WRITE;
	default:
		return 0;
	}
}

static uint32_t open_access(const struct call *c, const struct path_at *at)
{
	uint64_t flags = c->open_flags;
	if (flags & O_PATH)
		return 0;
	uint32_t access = open_mode_access(flags);
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return access | ACCESS_CREATE;
	if (!at->exists)
		return access | (flags & O_CREAT ? ACCESS_CREATE : 0);
	if (S_ISDIR(at->st.st_mode))
		return ACCESS_LIST;
	if ((flags & O_TRUNC) && S_ISREG(at->st.st_mode))
		access |= ACCESS_WRITE;
	/* It may exist because this very call made it before it was refused the open. */
	if ((flags & O_CREAT) && (flags & O_EXCL))
		access |= ACCESS_CREATE;
	return access;
}

static size_t dirname_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

/* By the held directories where both are, by the names otherwise; unknown counts as different. */
static bool same_directory(const struct path_at *a, const struct path_at *b)
{
	struct stat x, y;
	if (a->parent >= 0 && b->parent >= 0 && fstat(a->parent, &x) == 0 &&
	    fstat(b->parent, &y) == 0)
		return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
	if (!a->real || !b->real)
		return false;
	size_t n = dirname_len(a->real);
	return n == dirname_len(b->real) && memcmp(a->real, b->real, n) == 0;
}

static bool is_usable(const struct call_path *p)
{
	return p->need != CALL_NEED_NONE && p->error == 0;
}

static uint32_t move_access(const struct call *c, const struct call_path *p)
{
	bool both = is_usable(&c->path[0]) && is_usable(&c->path[1]);
	bool same = both && same_directory(&c->path[0].at, &c->path[1].at);
	uint32_t access = same ? 0 : ACCESS_MOVE;
	switch ((int)p->need) {
	case CALL_NEED_MOVE_FROM:
		access |= ACCESS_DELETE;
		if (c->at_flags & (RENAME_EXCHANGE | RENAME_WHITEOUT))
			access |= ACCESS_CREATE;
		return access;
	case CALL_NEED_MOVE_TO:
		access |= ACCESS_CREATE;
		if (p->at.exists && !(c->at_flags & RENAME_NOREPLACE))
			access |= ACCESS_DELETE; /* what is overwritten or exchanged */
		return access;
	case CALL_NEED_LINK_TO:
		return access | ACCESS_CREATE;
	default: /* CALL_NEED_LINK_FROM: the source itself stays as it is */
		return access;
	}
}

static uint32_t path_access(const struct call *c, const struct call_path *p)
{
	switch (p->need) {
	case CALL_NEED_OPEN:
		return open_access(c, &p->at);
	case CALL_NEED_EXEC:
		return ACCESS_EXEC | ACCESS_READ; /* Landlock wants both, measured */
	case CALL_NEED_TRUNCATE:
		return ACCESS_WRITE;
	case CALL_NEED_MKDIR:
	case CALL_NEED_MKNOD:
	case CALL_NEED_SYMLINK:
	case CALL_NEED_BIND:
		return ACCESS_CREATE;
	case CALL_NEED_UNLINK:
	case CALL_NEED_RMDIR:
		return ACCESS_DELETE;
	case CALL_NEED_MOVE_FROM:
	case CALL_NEED_MOVE_TO:
	case CALL_NEED_LINK_FROM:
	case CALL_NEED_LINK_TO:
		return move_access(c, p);
	case CALL_NEED_IOCTL:
		return ACCESS_IOCTL;
	case CALL_NEED_META:
		return ACCESS_META;
	case CALL_NEED_CONNECT:
		return ACCESS_CONNECT;
	case CALL_NEED_LOOK:
	case CALL_NEED_NONE:
	case CALL_NEED_COUNT:
		return 0;
	}
	return 0;
}

/* A path whose way could not be gone to its end: what the arguments alone say. */
static uint32_t unresolved_access(const struct call *c, const struct call_path *p)
{
	if (p->need != CALL_NEED_OPEN)
		return path_access(c, p);
	return c->open_flags & O_PATH ? 0 : open_mode_access(c->open_flags);
}

void access_needed(const struct call *c, struct need ret[CALL_PATHS])
{
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		const struct call_path *p = &c->path[i];
		ret[i] = (struct need){0};
		if (!is_usable(p)) {
			if (p->need != CALL_NEED_NONE)
				ret[i].access = unresolved_access(c, p);
			continue;
		}
		ret[i].access = path_access(c, p);
		ret[i].at = &p->at;
	}
}
