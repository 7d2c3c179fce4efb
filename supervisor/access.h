/*
 * access: what a policy allows or refuses, as bits; and what a stopped call needs.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jsonw;

enum access_index {
#define ACCESS(NAME, ...) ACCESS_INDEX_##NAME,
#include "supervisor/access.def"
#undef ACCESS
	ACCESS_COUNT,
};

enum access_bit {
#define ACCESS(NAME, ...) ACCESS_##NAME = 1 << ACCESS_INDEX_##NAME,
#include "supervisor/access.def"
#undef ACCESS
	ACCESS_ALL = (1 << ACCESS_COUNT) - 1,
};

#define ACCESS_R (ACCESS_READ | ACCESS_LIST)
#define ACCESS_W (ACCESS_WRITE | ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE | ACCESS_META)
#define ACCESS_X (ACCESS_EXEC)

/* "read", ... of one bit. */
const char *access_name(uint32_t bit);
/* The Landlock rights (LLR_*) by which the kernel does every access of the mask natively. */
uint64_t access_rights(uint32_t mask);
/* The accesses that can be made use of on a thing of this kind, or on what is in a directory. */
uint32_t access_on_kind(mode_t mode);
/*
 * As a policy writes it: letters where whole letters are set ("r", "rw", "rx", "rwx"), full names
 * with commas otherwise, mixed where needed ("r,write" is written "read,list,write").
 */
void access_format(struct buf *out, uint32_t mask);
/*
 * Parse "r", "rw", "rwx", "read,list", ... of n bytes. 0 and *ret_mask, or -EINVAL with
 * *ret_at the offset of the word that is none.
 */
int access_parse(const char *text, size_t n, uint32_t *ret_mask, size_t *ret_at);

/* A member: the names as an array. */
void access_write(struct jsonw *w, const char *key, uint32_t mask);

/* One thing a call needs: this access on this path. */
struct need {
	uint32_t access;	  /* bits; 0: nothing that a policy speaks of */
	const struct path_at *at; /* a loan of the call's */
};

/*
 * What a decoded and resolved call needs, per path argument (NULL-safe: missing paths give access
 * 0). open: by flags and by whether the object exists and is a directory: read / write / create
 * (+ write or read) / list; O_TRUNC is write; rename and link within one directory need
 * delete+create, across directories move as well.
 */
void access_needed(const struct call *c, struct need ret[CALL_PATHS]);
