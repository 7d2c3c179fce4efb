/*
 * elfsym: names of functions from an ELF file's symbol table, by bounded reads.
 *
 * Nothing in the file is believed: every offset is read at, never mapped or followed blindly, and
 * numbers have limits. Cost: one pass over the symbol table for all the addresses wanted, and a
 * short read a name; the strings and the rest of the file are not touched. Blocks as pread on the
 * file does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELFSYM_NAME_MAX	  256
#define ELFSYM_TABLE_MAX  (48u << 20) /* bytes of a symbol table that are searched */
#define ELFSYM_CACHE_SIZE 256
#define ELFSYM_WANT_MAX	  32

/* An ELF image: in a file, or in a process's memory at `at` (/proc/PID/mem). */
struct elfsym_image {
	int fd;
	uint64_t at;
};

/* A file's content, as far as its inode can tell. */
struct elfsym_id {
	uint64_t dev, ino, size;
	int64_t changed_ns;
};

struct elfsym_want {
	uint64_t addr; /* in the object's own addresses */
	bool found;
	uint64_t start;
	char name[ELFSYM_NAME_MAX];
	/* private */
	uint64_t size;
};

/* Fills `found`, `start` and `name`. Some, none or all may be found. n: at most ELFSYM_WANT_MAX. */
void elfsym_find(const struct elfsym_image *image, struct elfsym_want *want, size_t n);

/* A section by its name: where it is in the object's own addresses. False: there is none. */
bool elfsym_section(const struct elfsym_image *image, const char *name, uint64_t *ret_addr,
		    uint64_t *ret_size);

/* Names found before; the oldest goes first. Zeroed is empty. */
struct elfsym_cache {
	struct elfsym_known {
		struct elfsym_id id;
		uint64_t addr, start;
		char name[ELFSYM_NAME_MAX]; /* "": it has none */
	} known[ELFSYM_CACHE_SIZE];
	size_t next;
};

/* NULL: not known yet. A loan until the next elfsym_cache_add(). */
const struct elfsym_known *elfsym_cache_find(const struct elfsym_cache *c,
					     const struct elfsym_id *id, uint64_t addr);
void elfsym_cache_add(struct elfsym_cache *c, const struct elfsym_known *known);
