/*
 * How a rule is written. Whatever bytes a path has, the line holds only printable text and reads
 * back as the same path.
 */
#include "supervisor/policy.h"
#include "tracer/json.h"

#include <stdint.h>
#include <string.h>

const char *effect_name(enum effect e)
{
	static const char *const names[] = {[EFFECT_ALLOW] = "allow",
					    [EFFECT_ASK] = "ask",
					    [EFFECT_DENY] = "deny",
					    [EFFECT_FORBID] = "forbid"};
	return names[e];
}

static uint32_t code_point(const char *s, size_t n)
{
	static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	uint32_t c = (unsigned char)s[0] & first[n];
	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

/* Characters that move or hide other text on a terminal. */
static bool is_deceptive(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

static void add_hex(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_addf(out, "\\x%02x", (unsigned char)s[i]);
}

/* The characters that mean something in a line, outside or inside of quotes. */
#define POLICY_SPECIAL "\\\"'*?"

/* One character of the path at s; returns its length. */
static size_t add_char(struct buf *out, const char *s, size_t left, bool glob)
{
	size_t n = json_utf8_len(s, left);
	if (n == 0 || is_deceptive(code_point(s, n))) {
		add_hex(out, s, n ? n : 1);
		return n ? n : 1;
	}
	if (glob && (*s == '*' || *s == '?')) {
		buf_add_char(out, *s);
		return 1;
	}
	if (glob && *s == '\\' && left > 1) {
		if (!strchr("*?\\", s[1]))
			return 1; /* an escape that changes nothing: the byte speaks for itself */
		buf_add(out, s, 2);
		return 2;
	}
	if (strchr(POLICY_SPECIAL, *s) || *s == ' ' || *s == '#')
		buf_add_char(out, '\\');
	buf_add(out, s, n);
	return n;
}

void policy_format_path(struct buf *out, const char *path, bool glob)
{
	size_t left = strlen(path);
	while (left) {
		size_t n = add_char(out, path, left, glob);
		path += n;
		left -= n;
	}
}

void policy_format_rule(struct buf *out, const struct rule *rule)
{
	bool glob = rule->kind == RULE_GLOB || rule->kind == RULE_GLOB_EXACT;
	buf_add_str(out, rule->sensitive ? "sensitive" : effect_name(rule->effect));
	buf_add_char(out, ' ');
	if (rule->access != ACCESS_ALL) {
		access_format(out, rule->access);
		buf_add_char(out, ' ');
	}
	policy_format_path(out, rule->path, glob);
	if (rule->kind == RULE_EXACT || rule->kind == RULE_GLOB_EXACT)
		buf_add_str(out, " exact");
}

void policy_format_place(struct buf *out, const struct rule *rule)
{
	buf_add_str(out, rule->origin);
	if (rule->line)
		buf_addf(out, ":%u", rule->line);
	if (rule->source != RULE_LINE)
		return;
	buf_add_str(out, " (");
	policy_format_rule(out, rule);
	buf_add_char(out, ')');
}
