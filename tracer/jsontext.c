#include "tracer/jsontext.h"

#include <string.h>

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p;
}

/* p: at the opening quote. Behind the closing one. */
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

/* Behind the value that begins here. */
static const char *skip_value(const char *p, const char *end)
{
	size_t depth = 0;
	while (p < end) {
		if (*p == '"') {
			p = skip_string(p, end);
		} else if (*p == '{' || *p == '[') {
			depth++;
			p++;
		} else if (*p == '}' || *p == ']') {
			depth--;
			p++;
		} else {
			size_t n = strcspn(p, "\"{}[], \t\r\n");
			p += n ? n : 1; /* in an array or object: commas, space */
		}
		if (p > end)
			return end;
		if (!depth)
			break;
	}
	return p;
}

static struct jsontext value_at(const char *p, const char *end)
{
	return (struct jsontext){p, (size_t)(skip_value(p, end) - p)};
}

struct jsontext jsontext_member(struct jsontext object, const char *key)
{
	if (!object.len)
		return (struct jsontext){0};
	const char *end = object.at + object.len;
	const char *p = skip_space(object.at, end);
	if (p == end || *p != '{')
		return (struct jsontext){0};
	for (p = skip_space(p + 1, end); p < end && *p == '"'; p = skip_space(p + 1, end)) {
		const char *name = p + 1;
		p = skip_string(p, end);
		bool wanted =
			(size_t)(p - name) == strlen(key) + 1 && !memcmp(name, key, strlen(key));
		p = skip_space(p, end);
		if (p == end)
			break;
		p = skip_space(p + 1, end); /* the colon */
		if (wanted && p < end)
			return value_at(p, end);
		p = skip_space(skip_value(p, end), end);
		if (p == end)
			break;
	}
	return (struct jsontext){0};
}

struct jsontext jsontext_first(struct jsontext array)
{
	if (!array.len)
		return (struct jsontext){0};
	const char *end = array.at + array.len;
	const char *p = skip_space(array.at, end);
	if (p == end || *p != '[')
		return (struct jsontext){0};
	p = skip_space(p + 1, end);
	return p == end || *p == ']' ? (struct jsontext){0} : value_at(p, end);
}

struct jsontext jsontext_next(struct jsontext array, struct jsontext element)
{
	const char *end = array.at + array.len;
	const char *p = skip_space(element.at + element.len, end);
	if (p == end || *p != ',')
		return (struct jsontext){0};
	p = skip_space(p + 1, end);
	return p == end ? (struct jsontext){0} : value_at(p, end);
}

bool jsontext_has_nul(struct jsontext value)
{
	static const char nul[] = "u0000";
	for (size_t i = 0; i + sizeof(nul) <= value.len; i++) {
		if (value.at[i] != '\\')
			continue;
		if (!memcmp(value.at + i + 1, nul, sizeof(nul) - 1))
			return true;
		i++; /* what is escaped escapes nothing */
	}
	return false;
}
