#include "agent/tools.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(tools, the_array_is_json_and_names_every_parameter)
{
	struct buf out = {0};
	struct json *root = NULL;
	tools_write_json(&out);
	cr_assert_eq(json_parse(out.data, out.len, &root, NULL), 0);
	cr_assert_eq(json_len(root), TOOL_COUNT);
	for (size_t i = 0; i < TOOL_COUNT; i++) {
		const struct tool *t = tools_at((enum tool_id)i);
		const struct json *entry = json_at(root, i);
		const struct json *function = json_get(entry, "function");
		const struct json *schema = json_get(function, "parameters");
		cr_expect_str_eq(json_get_str(entry, "type"), "function");
		cr_expect_str_eq(json_get_str(function, "name"), t->name);
		size_t required = 0;
		for (const struct tool_param *p = t->params; p->key; p++) {
			const struct json *prop = json_get(json_get(schema, "properties"), p->key);
			cr_expect_str_eq(json_get_str(prop, "type"),
					 p->kind == TOOL_PARAM_TEXT ? "string" : "integer");
			required += p->need == TOOL_PARAM_REQUIRED;
		}
		cr_expect_eq(json_len(json_get(schema, "required")), required);
	}
	json_free(root);
	buf_free(&out);
}

/* What is wrong is said, in words that name it; nothing of it is taken. */
Test(tools, malformed_arguments_are_answered)
{
	static const struct {
		const char *tool, *arguments, *words;
	} rows[] = {
		{"read_file", "", "no valid JSON"},
		{"read_file", "{\"path\":\"a\"", "no valid JSON"},
		{"read_file", "{\"path\":\"a\"} x", "no valid JSON"},
		{"read_file", "[]", "one JSON object"},
		{"read_file", "\"a\"", "one JSON object"},
		{"read_file", "null", "one JSON object"},
		{"read_file", "{}", "\"path\" is missing"},
		{"read_file", "{\"path\":1}", "\"path\" must be a string"},
		{"read_file", "{\"path\":null}", "\"path\" must be a string"},
		{"read_file", "{\"path\":[\"a\"]}", "\"path\" must be a string"},
		{"read_file", "{\"file\":\"a\"}", "no parameter \"file\""},
		{"read_file", "{\"path\":\"a\",\"start_line\":0}", "at least 1"},
		{"read_file", "{\"path\":\"a\",\"start_line\":-3}", "at least 1"},
		{"read_file", "{\"path\":\"a\",\"start_line\":1.5}", "a whole number"},
		{"read_file", "{\"path\":\"a\",\"start_line\":\"2\"}", "a whole number"},
		{"read_file", "{\"path\":\"a\",\"start_line\":true}", "a whole number"},
		{"read_file", "{\"path\":\"a\\u0000b\"}", "a NUL character"},
		{"write_file", "{\"path\":\"a\"}", "\"content\" is missing"},
		{"run_shell", "{\"command\":{\"a\":1}}", "must be a string"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf why = {0};
		struct json *args = NULL;
		int err = tools_parse(tools_find(rows[i].tool), rows[i].arguments, &args, &why);
		cr_expect_eq(err, -EINVAL, "%s", rows[i].arguments);
		cr_expect_null(args);
		cr_expect(strstr(buf_str(&why), rows[i].words), "%s: %s", rows[i].arguments,
			  buf_str(&why));
		buf_free(&why);
	}
}

Test(tools, good_arguments_are_taken)
{
	static const struct {
		const char *tool, *arguments;
	} rows[] = {
		{"read_file", "{\"path\":\"a\"}"},
		{"read_file", " {\"path\":\"a\",\"start_line\":2,\"end_line\":null} \n"},
		{"read_file", "{\"path\":\"a\",\"start_line\":2.0}"},
		{"write_file", "{\"path\":\"a\",\"content\":\"\"}"},
		{"write_file", "{\"path\":\"a\",\"content\":\"a \\\\u0000 in C source\"}"},
		{"run_shell", "{\"command\":\"ls\",\"timeout_s\":5,\"cwd\":\"/\"}"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf why = {0};
		struct json *args = NULL;
		int err = tools_parse(tools_find(rows[i].tool), rows[i].arguments, &args, &why);
		cr_expect_eq(err, 0, "%s: %s", rows[i].arguments, buf_str(&why));
		cr_expect(json_is_object(args));
		json_free(args);
		buf_free(&why);
	}
}

Test(tools, too_long_arguments_are_answered)
{
	size_t n = TOOLS_ARGUMENTS_MAX + 1;
	char *text = malloc(n + 1);
	struct buf why = {0};
	struct json *args = NULL;
	memset(text, ' ', n);
	text[n] = 0;
	cr_assert_eq(tools_parse(tools_at(TOOL_WRITE_FILE), text, &args, &why), -EINVAL);
	cr_assert(strstr(buf_str(&why), "longer than"));
	buf_free(&why);
	free(text);
}

Test(tools, an_unknown_tool_is_told_the_known_ones)
{
	struct buf out = {0};
	cr_assert_null(tools_find("edit"));
	tools_write_unknown(&out, "edit");
	cr_assert(strstr(out.data, "no tool \"edit\""));
	cr_assert(strstr(out.data, "read_file(path, [start_line], [end_line])"));
	cr_assert(strstr(out.data, "run_shell(command, [timeout_s], [cwd])"));
	buf_free(&out);
}

Test(tools, the_gist_is_the_first_parameter)
{
	struct buf out = {0};
	tools_write_gist(&out, "run_shell", "{\"cwd\":\"/\",\"command\":\"ls -l\"}");
	cr_expect_str_eq(buf_str(&out), "ls -l");
	buf_reset(&out);
	tools_write_gist(&out, "run_shell", "{broken");
	tools_write_gist(&out, "nothing", "{}");
	tools_write_gist(&out, "read_file", "{\"path\":7}");
	cr_expect_str_eq(buf_str(&out), "");
	buf_free(&out);
}
