#include "tracer/json.h"

#include "tracer/util.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- writing ---- */

void jsonw_init(struct jsonw *w, struct buf *out)
{
	*w = (struct jsonw){.out = out};
}

static void value_begins(struct jsonw *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (w->comma[w->depth])
		buf_add_char(w->out, ',');
	w->comma[w->depth] = true;
}

static void open_level(struct jsonw *w, char c)
{
	value_begins(w);
	buf_add_char(w->out, c);
	BUG(w->depth + 1 >= JSONW_DEPTH);
	w->comma[++w->depth] = false;
}

static void close_level(struct jsonw *w, char c)
{
	BUG(w->depth == 0 || w->after_key);
	w->depth--;
	buf_add_char(w->out, c);
}

void jsonw_begin_object(struct jsonw *w)
{
	open_level(w, '{');
}

void jsonw_end_object(struct jsonw *w)
{
	close_level(w, '}');
}

void jsonw_begin_array(struct jsonw *w)
{
	open_level(w, '[');
}

void jsonw_end_array(struct jsonw *w)
{
	close_level(w, ']');
}

size_t json_utf8_len(const char *p, size_t n)
{
	const unsigned char *s = (const unsigned char *)p;
	if (!n)
		return 0;
	if (s[0] < 0x80)
		return 1;
	size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	if (s[0] < 0xc2 || s[0] > 0xf4 || len > n)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* No overlong forms, no surrogates, nothing above U+10FFFF. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return len;
}

static void add_escaped(struct buf *out, unsigned char c)
{
	static const char short_form[32] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	if (c == '"' || c == '\\')
		buf_addf(out, "\\%c", c);
	else if (c < 0x20 && short_form[c])
		buf_addf(out, "\\%c", short_form[c]);
	else
		buf_addf(out, "\\u%04x", c);
}

void jsonw_bytes(struct jsonw *w, const char *bytes, size_t n)
{
	value_begins(w);
	buf_add_char(w->out, '"');
	size_t plain = 0; /* bytes seen since the last escape */
	for (size_t i = 0; i < n;) {
		unsigned char c = (unsigned char)bytes[i];
		size_t len = json_utf8_len(bytes + i, n - i);
		bool escape = !len || c < 0x20 || c == '"' || c == '\\' || c == 0x7f;
		if (!escape) {
			plain += len;
			i += len;
			continue;
		}
		buf_add(w->out, bytes + i - plain, plain);
		plain = 0;
		add_escaped(w->out, c);
		i++;
	}
	buf_add(w->out, bytes + n - plain, plain);
	buf_add_char(w->out, '"');
}

void jsonw_str(struct jsonw *w, const char *s)
{
	if (s)
		jsonw_bytes(w, s, strlen(s));
	else
		jsonw_null(w);
}

void jsonw_key(struct jsonw *w, const char *key)
{
	BUG(w->after_key);
	jsonw_str(w, key);
	buf_add_char(w->out, ':');
	w->after_key = true;
}

void jsonw_int(struct jsonw *w, int64_t n)
{
	value_begins(w);
	buf_addf(w->out, "%" PRId64, n);
}

void jsonw_raw(struct jsonw *w, const char *json, size_t n)
{
	value_begins(w);
	buf_add(w->out, json, n);
}

void jsonw_bool(struct jsonw *w, bool b)
{
	value_begins(w);
	buf_add_str(w->out, b ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
	value_begins(w);
	buf_add_str(w->out, "null");
}

void jsonw_kstr(struct jsonw *w, const char *key, const char *s)
{
	jsonw_key(w, key);
	jsonw_str(w, s);
}

void jsonw_kint(struct jsonw *w, const char *key, int64_t n)
{
	jsonw_key(w, key);
	jsonw_int(w, n);
}

void jsonw_kbool(struct jsonw *w, const char *key, bool b)
{
	jsonw_key(w, key);
	jsonw_bool(w, b);
}

static void base64(struct buf *out, const char *bytes, size_t n)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = 0;
		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (i + k < n ? (unsigned char)bytes[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			buf_add_char(out, i + k > n ? '=' : digit[v >> (18 - 6 * k) & 63]);
	}
}

void jsonw_kpath(struct jsonw *w, const char *key, const char *path)
{
	jsonw_kstr(w, key, path);
	size_t n = path ? strlen(path) : 0;
	size_t good = 0;
	for (size_t len; good < n && (len = json_utf8_len(path + good, n - good)); good += len)
		;
	if (good == n)
		return;
	struct buf name = {0}, exact = {0};
	buf_addf(&name, "%s_b64", key);
	base64(&exact, path, n);
	jsonw_kstr(w, buf_str(&name), buf_str(&exact));
	buf_free(&name);
	buf_free(&exact);
}

/* ---- reading: base64 ---- */

static int sextet(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : c >= '0' && c <= '9' ? c - '0' + 52
	       : c == '+'	      ? 62
	       : c == '/'	      ? 63
				      : -1;
}

bool json_decode_base64(char *text)
{
	char *to = text;
	unsigned bits = 0, have = 0;
	const char *p = text;
	for (; *p && *p != '='; p++) {
		int six = sextet(*p);
		if (six < 0)
			return false;
		bits = (bits << 6 | (unsigned)six) & 0xffffff;
		have += 6;
		if (have < 8)
			continue;
		have -= 8;
		char byte = (char)(bits >> have);
		if (!byte)
			return false;
		*to++ = byte;
	}
	*to = '\0';
	return strspn(p, "=") == strlen(p) && have < 6;
}

/* ---- reading: struct json is cJSON under another name ---- */

static const cJSON *in(const struct json *v)
{
	return (const cJSON *)(const void *)v;
}

static const struct json *out(const cJSON *v)
{
	return (const struct json *)(const void *)v;
}

int json_parse(const char *text, size_t n, struct json **ret_root, size_t *ret_offset)
{
	const char *end = NULL;
	cJSON *root = cJSON_ParseWithLengthOpts(text, n, &end, false);
	size_t at = end && end >= text ? (size_t)(end - text) : 0;
	if (root) {
		while (at < n && strchr(" \t\r\n", text[at]) && text[at])
			at++;
		if (at == n) {
			*ret_root = (struct json *)(void *)root;
			return 0;
		}
		cJSON_Delete(root);
	}
	if (ret_offset)
		*ret_offset = at;
	return -EINVAL;
}

void json_free(struct json *root)
{
	cJSON_Delete((cJSON *)(void *)root);
}

bool json_is_object(const struct json *v)
{
	return cJSON_IsObject(in(v));
}

bool json_is_array(const struct json *v)
{
	return cJSON_IsArray(in(v));
}

bool json_is_string(const struct json *v)
{
	return cJSON_IsString(in(v));
}

const struct json *json_get(const struct json *object, const char *key)
{
	if (!cJSON_IsObject(in(object)))
		return NULL;
	return out(cJSON_GetObjectItemCaseSensitive(in(object), key));
}

const char *json_str(const struct json *v)
{
	return cJSON_IsString(in(v)) ? in(v)->valuestring : NULL;
}

const char *json_get_str(const struct json *object, const char *key)
{
	return json_str(json_get(object, key));
}

const char *json_get_path(const struct json *object, const char *key, char **ret_room)
{
	struct buf name = {0};
	buf_addf(&name, "%s_b64", key);
	const char *exact = json_get_str(object, buf_str(&name));
	buf_free(&name);
	*ret_room = exact ? strdup(exact) : NULL;
	return *ret_room && json_decode_base64(*ret_room) ? *ret_room : json_get_str(object, key);
}

bool json_int(const struct json *v, int64_t *ret)
{
	if (!cJSON_IsNumber(in(v)))
		return false;
	double d = in(v)->valuedouble;
	if (!(d >= -9007199254740992.0 && d <= 9007199254740992.0) || d != floor(d))
		return false;
	*ret = (int64_t)d;
	return true;
}

bool json_get_int(const struct json *object, const char *key, int64_t *ret)
{
	return json_int(json_get(object, key), ret);
}

bool json_bool(const struct json *v, bool *ret)
{
	if (!cJSON_IsBool(in(v)))
		return false;
	*ret = cJSON_IsTrue(in(v));
	return true;
}

size_t json_len(const struct json *array)
{
	return cJSON_IsArray(in(array)) ? (size_t)cJSON_GetArraySize(in(array)) : 0;
}

const struct json *json_at(const struct json *array, size_t i)
{
	if (i >= json_len(array))
		return NULL;
	return out(cJSON_GetArrayItem(in(array), (int)i));
}

const struct json *json_first(const struct json *v)
{
	return json_is_array(v) || json_is_object(v) ? out(in(v)->child) : NULL;
}

const struct json *json_next(const struct json *v)
{
	return out(in(v)->next);
}

const char *json_key(const struct json *v)
{
	return v ? in(v)->string : NULL;
}

void json_write(struct jsonw *w, const struct json *v)
{
	char *text = cJSON_PrintUnformatted(in(v));
	if (!text) {
		w->out->failed = true;
		return;
	}
	jsonw_raw(w, text, strlen(text));
	cJSON_free(text);
}
