/*
 * json: the one way JSON is written and read.
 *
 * Writing appends to a buf, straight and in order, no tree is built. Bytes that are not UTF-8 come
 * out as \u00XX (each byte), so any file name can be written and the line stays valid JSON.
 * Reading wraps cJSON (this is its one includer): a parsed tree is owned by its root, every other
 * `struct json *` is a loan that ends with json_free(root).
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ---- */

#define JSONW_DEPTH 32

struct jsonw {
	struct buf *out;
	unsigned depth;
	bool comma[JSONW_DEPTH]; /* something was written at this depth */
	bool after_key;
};

void jsonw_init(struct jsonw *w, struct buf *out);
void jsonw_begin_object(struct jsonw *w);
void jsonw_end_object(struct jsonw *w);
void jsonw_begin_array(struct jsonw *w);
void jsonw_end_array(struct jsonw *w);
void jsonw_key(struct jsonw *w, const char *key);
/* NULL writes null. */
void jsonw_str(struct jsonw *w, const char *s);
void jsonw_bytes(struct jsonw *w, const char *bytes, size_t n);
void jsonw_int(struct jsonw *w, int64_t n);
void jsonw_bool(struct jsonw *w, bool b);
void jsonw_null(struct jsonw *w);
/* One value that is JSON text already (trusted, complete). */
void jsonw_raw(struct jsonw *w, const char *json, size_t n);
/* key and value in one. */
void jsonw_kstr(struct jsonw *w, const char *key, const char *s);
void jsonw_kint(struct jsonw *w, const char *key, int64_t n);
void jsonw_kbool(struct jsonw *w, const char *key, bool b);
/* "key": text; and, where the bytes are not UTF-8, "key_b64": their exact base64. */
void jsonw_kpath(struct jsonw *w, const char *key, const char *path);

/* Length of the valid UTF-8 sequence (1-4) at p, of at most n bytes; 0 where there is none. */
size_t json_utf8_len(const char *p, size_t n);

/* ---- reading ---- */

struct json; /* a value */

/*
 * Parse one complete value; trailing space is fine, anything else behind it is an error.
 * 0 and *ret_root (owned by the caller), -EINVAL with *ret_offset (may be NULL) at the fault,
 * -ENOMEM. Nesting beyond cJSON's limit (1000) is -EINVAL.
 */
int json_parse(const char *text, size_t n, struct json **ret_root, size_t *ret_offset);
void json_free(struct json *root);

bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_string(const struct json *v);
/* All of these take NULL and then answer as if the value were absent. */
const struct json *json_get(const struct json *object, const char *key);
/* The string, or NULL where v is none. */
const char *json_str(const struct json *v);
/* json_str(json_get(object, key)) */
const char *json_get_str(const struct json *object, const char *key);
/* The bytes of a "..._b64" member, in place. False: it is none, or there is a NUL in it. */
bool json_decode_base64(char *text);
/*
 * The bytes that jsonw_kpath() wrote: the exact ones where they are no text, in *ret_room (owned by
 * the caller; NULL: not needed), else the string, a loan. NULL: there is none.
 */
const char *json_get_path(const struct json *object, const char *key, char **ret_room);
/* False where v is no number or no whole one within int64. */
bool json_int(const struct json *v, int64_t *ret);
bool json_get_int(const struct json *object, const char *key, int64_t *ret);
/* False where v is no boolean. */
bool json_bool(const struct json *v, bool *ret);
size_t json_len(const struct json *array);
const struct json *json_at(const struct json *array, size_t i);
/* for (v = json_first(a); v; v = json_next(v)): members of an array or object; key or NULL. */
const struct json *json_first(const struct json *v);
const struct json *json_next(const struct json *v);
const char *json_key(const struct json *v);
/* Write a parsed value as it is. */
void json_write(struct jsonw *w, const struct json *v);
