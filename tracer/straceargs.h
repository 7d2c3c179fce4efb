/*
 * straceargs: the arguments and the result of one call in strace's text, as typed values.
 *
 * A straceargs owns its list of values and can be used for line after line; straceargs_free() is
 * fine on a zeroed one. The values point into the text and live as long as that.
 */
#pragma once

#include "tracer/buf.h"
#include "tracer/straceline.h"

#include <stdbool.h>
#include <stdint.h>

#define STRACEARGS_VALUES_MAX 65536 /* of one line, in all depths */
#define STRACEARGS_DEPTH_MAX  32

enum strace_kind {
	STRACE_WORD,   /* a number, flags, a pointer, NULL: `text`; with -y `about`: what it is */
	STRACE_STRING, /* `text` is what stands between the quotes, still escaped */
	STRACE_STRUCT, /* {...}: its fields follow */
	STRACE_ARRAY,  /* [...]: its elements follow */
};

struct strace_value {
	enum strace_kind kind;
	bool cut;		/* a string whose end is not told: "abc"... */
	bool abstract;		/* @"name": of a socket, no path */
	bool deleted;		/* </path>(deleted) */
	struct strace_span key; /* name=value; empty: none */
	struct strace_span text;
	struct strace_span about; /* between "<" and ">"; empty: none */
	uint32_t next;		  /* the next one beside it; those between are inside of it */
};

enum strace_result_kind {
	STRACE_RESULT_VALUE,
	STRACE_RESULT_ERROR,   /* = -1 ENOENT (...) */
	STRACE_RESULT_UNKNOWN, /* = ?: it did not return, or will be made again */
};

struct strace_result {
	enum strace_result_kind kind;
	int64_t value;		  /* VALUE; ERROR: -errno */
	struct strace_span about; /* = 3</path> */
	bool deleted;
	pid_t here; /* 1234 in strace's PID NS; 0: not said */
};

struct straceargs {
	struct strace_value *values;
	size_t len;
	size_t cap;
	struct strace_result result;
	size_t bad_at;	      /* offset in the text of the character that was not expected */
	const char *expected; /* what was, static */
};

/*
 * From behind the call's "(" to the line's end. 0; -ENODATA: the text ends too early (the tail of
 * a killed strace), what there is can be used; -EINVAL: `bad_at` and `expected`; -ENOMEM, -E2BIG.
 */
int straceargs_parse(struct straceargs *a, struct strace_span text);
void straceargs_free(struct straceargs *a);

/* The i-th argument, or NULL. A loan until the next parse. */
const struct strace_value *straceargs_at(const struct straceargs *a, unsigned i);
/* A struct's field by name; NULL: none, or v is no struct (or NULL). */
const struct strace_value *straceargs_field(const struct straceargs *a,
					    const struct strace_value *v, const char *name);
/* The argument of that name (flags=...), or NULL. */
const struct strace_value *straceargs_named(const struct straceargs *a, const char *name);
/* Its first element or field, NULL: it has none. */
const struct strace_value *straceargs_first(const struct straceargs *a,
					    const struct strace_value *v);
/* The one beside it below the same parent, or NULL. */
const struct strace_value *straceargs_beside(const struct straceargs *a,
					     const struct strace_value *parent,
					     const struct strace_value *v);

/* The escapes of strace undone: bytes (a NUL among them as it is), appended to `out`. */
void straceargs_unescape(struct strace_span s, struct buf *out);
/*
 * A word as a number: decimal, octal, hexadecimal, symbols of stracesym.def, and any of them joined
 * by "|". False: something in it is not known; *ret has the rest of it.
 */
bool straceargs_number(struct strace_span s, uint64_t *ret);
