#include "supervisor/tracepolicy.h"

#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const source_names[] = {
	[RULE_BUILTIN] = "builtin", [RULE_PRESET] = "preset", [RULE_USER] = "user",
	[RULE_PROJECT] = "project", [RULE_FILE] = "file",     [RULE_LINE] = "command line",
	[RULE_ANSWER] = "answer",
};

static void write_rule(struct jsonw *w, const struct rule *rule)
{
	struct buf line = {0};
	policy_format_rule(&line, rule);
	jsonw_begin_object(w);
	jsonw_kstr(w, "rule", buf_str(&line));
	jsonw_kstr(w, "source", source_names[rule->source]);
	jsonw_kpath(w, "origin", rule->origin);
	if (rule->line)
		jsonw_kint(w, "line", rule->line);
	jsonw_end_object(w);
	if (buf_error(&line))
		w->out->failed = true;
	buf_free(&line);
}

int tracepolicy_write(const struct policy *p, struct buf *out)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_key(&w, "rules");
	jsonw_begin_array(&w);
	for (size_t i = 0; i < policy_len(p); i++)
		write_rule(&w, policy_at(p, i));
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	return buf_error(out);
}

static enum rule_source source_of(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_LEN(source_names); i++)
		if (!strcmp(source_names[i], name))
			return (enum rule_source)i;
	return RULE_FILE;
}

/*
 * The line's rule, as it was: with another source and place than who parses it has. Only a preset
 * may have lines that mark something as sensitive.
 */
static int read_rule(const struct json *v, struct policy *p, struct policy_error *ret_error)
{
	const struct policy_vars vars = {.as_written = true};
	char *room AUTOFREE = NULL;
	const char *line = json_get_str(v, "rule"), *origin = json_get_path(v, "origin", &room);
	struct policy *one;
	int64_t number = 0;
	if (!line) {
		snprintf(ret_error->text, sizeof ret_error->text,
			 "expected rules with a member \"rule\" in its policy");
		return -EINVAL;
	}
	int err = policy_new(&one);
	if (err)
		return err;
	err = policyfile_parse_line(one, line, RULE_PRESET, &vars, ret_error);
	if (!err && policy_len(one) == 1) {
		struct rule rule = *policy_at(one, 0);
		json_get_int(v, "line", &number);
		rule.source = source_of(json_get_str(v, "source"));
		rule.origin = (char *)(uintptr_t)(origin ? origin : "the trace");
		rule.line = number > 0 && number < INT32_MAX ? (unsigned)number : 0;
		err = policy_add(p, &rule);
	}
	policy_free(one);
	return err;
}

int tracepolicy_read(const char *text, struct policy *p, struct policy_error *ret_error)
{
	struct json *root;
	ret_error->text[0] = '\0';
	int err = json_parse(text, strlen(text), &root, NULL);
	if (err)
		return err;
	const struct json *rules = json_get(root, "rules");
	for (const struct json *v = json_first(rules); !err && v; v = json_next(v))
		err = read_rule(v, p, ret_error);
	json_free(root);
	return err;
}
