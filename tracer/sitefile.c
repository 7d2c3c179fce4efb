#include "tracer/sitefile.h"

#include "tracer/buf.h"
#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define NAME	 "sites"
#define NEW_NAME "sites.new"

/* The file: a head, and entries one behind another. All in this machine's own byte order. */
struct head {
	uint8_t magic[8];
	uint32_t rules;
	uint32_t size; /* of all */
};

struct entry {
	uint64_t sum; /* of what follows in it */
	struct sitefile_key key;
	uint32_t len;
	uint32_t unused;
	struct sitefile_site site[]; /* len of them */
};

static const uint8_t magic[8] = "wardsite";

struct sitefile {
	char *dir; /* owned */
	uint32_t rules;
	bool asked;
	uint8_t *text;	/* owned: the file as it was read; whole entries */
	size_t len;	/* of it; 0: there is none */
	struct buf put; /* entries to be written */
};

struct sitefile *sitefile_new(const char *dir, uint32_t rules)
{
	struct sitefile *f = calloc(1, sizeof(*f));

	if (f)
		f->dir = strdup(dir);
	if (!f || !f->dir) {
		free(f);
		return NULL;
	}
	f->rules = rules;
	return f;
}

/* ---- reading ---- */

/* FNV-1a (Fowler, Noll, Vo), eight bytes at a time: against accidents. */
static uint64_t sum_of(const struct entry *e)
{
	const uint8_t *at = (const uint8_t *)e + sizeof(e->sum);
	const uint8_t *end = (const uint8_t *)&e->site[e->len];
	uint64_t sum = 0xcbf29ce484222325, word;

	for (; at < end; at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3;
	}
	return sum;
}

static size_t size_of(const struct entry *e)
{
	return sizeof(*e) + e->len * sizeof(e->site[0]);
}

/* The entry at this place of a text, if a whole one is there. */
static const struct entry *entry_at(const uint8_t *text, size_t len, size_t at)
{
	const struct entry *e = (const struct entry *)(text + at);

	if (len - at < sizeof(*e) || e->len > SITEFILE_SITES_MAX || len - at < size_of(e) ||
	    e->key.id_len > SITEFILE_ID_MAX)
		return NULL;
	return e;
}

/* Nobody else can write it. */
static bool is_closed(int fd, struct stat *ret)
{
	return fstat(fd, ret) == 0 && ret->st_uid == geteuid() && !(ret->st_mode & 022);
}

/* A descriptor, or -1. */
static int open_dir(const struct sitefile *f)
{
	struct stat st;
	int fd AUTOCLOSE = outfile_open(f->dir, O_PATH | O_DIRECTORY, 0);

	return fd >= 0 && is_closed(fd, &st) ? TAKE_FD(fd) : -1;
}

static bool head_is_right(const struct sitefile *f, const uint8_t *text, size_t len)
{
	const struct head *head = (const struct head *)text;

	return len >= sizeof(*head) && memcmp(head->magic, magic, sizeof(magic)) == 0 &&
	       head->rules == f->rules && head->size == len;
}

/* Empty where it is not there, not ours, or not such a file. */
static void read_file(struct sitefile *f, int dir)
{
	struct stat st;
	int fd AUTOCLOSE = ownfile_open_at(dir, NAME, O_RDONLY);

	free(f->text);
	f->text = NULL;
	f->len = 0;
	if (fd < 0 || !is_closed(fd, &st) || st.st_size > SITEFILE_SIZE_MAX)
		return;
	f->text = malloc((size_t)st.st_size + 1);
	ssize_t got = f->text ? read(fd, f->text, (size_t)st.st_size) : -1;
	if (got > 0 && head_is_right(f, f->text, (size_t)got))
		f->len = (size_t)got;
}

int sitefile_find(struct sitefile *f, const struct sitefile_key *key,
		  struct sitefile_site ret[SITEFILE_SITES_MAX])
{
	const struct entry *e;

	if (!f->asked) {
		int dir AUTOCLOSE = open_dir(f);
		if (dir >= 0)
			read_file(f, dir);
		f->asked = true;
	}
	for (size_t at = sizeof(struct head); at < f->len; at += size_of(e)) {
		e = entry_at(f->text, f->len, at);
		if (!e)
			return -ENOENT;
		if (memcmp(&e->key, key, sizeof(*key)) != 0 || e->sum != sum_of(e))
			continue;
		memcpy(ret, e->site, e->len * sizeof(*ret));
		return (int)e->len;
	}
	return -ENOENT;
}

/* ---- writing ---- */

void sitefile_put(struct sitefile *f, const struct sitefile_key *key,
		  const struct sitefile_site *site, size_t n)
{
	struct entry *e AUTOFREE = calloc(1, sizeof(*e) + n * sizeof(*site));

	BUG(n > SITEFILE_SITES_MAX);
	if (!e)
		return;
	e->key = *key;
	e->len = (uint32_t)n;
	memcpy(e->site, site, n * sizeof(*site));
	e->sum = sum_of(e);
	if (f->put.len + size_of(e) <= SITEFILE_SIZE_MAX / 2)
		buf_add(&f->put, e, size_of(e));
}

static bool is_put(const struct sitefile *f, const struct sitefile_key *key)
{
	const uint8_t *text = (const uint8_t *)f->put.data;
	const struct entry *e;

	for (size_t at = 0; at < f->put.len; at += size_of(e)) {
		e = entry_at(text, f->put.len, at);
		if (e->key.dev == key->dev && e->key.ino == key->ino)
			return true;
	}
	return false;
}

/* What is new, and behind it what was there, as long as there is room. */
static void compose(const struct sitefile *f, struct buf *out)
{
	struct head head = {.rules = f->rules};
	const struct entry *e;

	memcpy(head.magic, magic, sizeof(magic));
	buf_add(out, &head, sizeof(head));
	buf_add(out, f->put.data, f->put.len);
	for (size_t at = sizeof(head); at < f->len; at += size_of(e)) {
		e = entry_at(f->text, f->len, at);
		if (!e || out->len + size_of(e) > SITEFILE_SIZE_MAX)
			break;
		if (!is_put(f, &e->key) && e->sum == sum_of(e))
			buf_add(out, e, size_of(e));
	}
	head.size = (uint32_t)out->len;
	if (buf_error(out) == 0)
		memcpy(out->data, &head, sizeof(head));
}

/*
 * The new file to write into, held against other runs. -1: another run holds it, or has made it the
 * file meanwhile. A killed run's is taken over.
 */
static int open_new(int dir)
{
	struct stat st, named;
	int fd AUTOCLOSE = ownfile_open_at(dir, NEW_NAME, O_WRONLY | O_CREAT);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_closed(fd, &st) ||
	    fstatat(dir, NEW_NAME, &named, AT_SYMLINK_NOFOLLOW) < 0 || st.st_ino != named.st_ino ||
	    st.st_dev != named.st_dev || ftruncate(fd, 0) < 0)
		return -1;
	return TAKE_FD(fd);
}

/* It need not outlive a power failure: a torn one is not used (head.size). */
static void write_file(struct sitefile *f, int dir)
{
	struct buf out = {0};
	int fd AUTOCLOSE = open_new(dir);

	if (fd < 0)
		return;
	read_file(f, dir); /* what others have learned meanwhile is in it */
	compose(f, &out);
	if (buf_error(&out) < 0 || buf_write_to(fd, out.data, out.len) < 0 ||
	    renameat(dir, NEW_NAME, dir, NAME) < 0)
		(void)unlinkat(dir, NEW_NAME, 0);
	buf_free(&out);
}

void sitefile_free(struct sitefile *f)
{
	if (!f)
		return;
	int dir AUTOCLOSE = f->put.len && !buf_error(&f->put) ? open_dir(f) : -1;
	if (dir >= 0)
		write_file(f, dir);
	buf_free(&f->put);
	free(f->text);
	free(f->dir);
	free(f);
}
