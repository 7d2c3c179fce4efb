/* A policy's text: read, and what was read written down and read again. */
#include "tests/fuzz/fuzz.h"

#include "supervisor/policyfile.h"
#include "tracer/buf.h"

static int parse(struct policy *p, const char *text, size_t size)
{
	char *env[] = {(char *)"SOME=/some/where", NULL};
	struct policy_vars vars = {.home = "/nowhere/home",
				   .project = "/nowhere/project",
				   .tmpdir = "/nowhere/tmp",
				   .env = env};
	struct policy_error error;
	return policyfile_parse(p, "fuzz", text, size, RULE_FILE, &vars, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct policy *p = NULL;
	struct policy *again = NULL;
	struct policy_error error;
	struct buf text = {0};
	if (policy_new(&p) < 0)
		return 0;
	(void)policyfile_check("fuzz", (const char *)data, size, &error);
	if (parse(p, (const char *)data, size) == 0 && policy_new(&again) == 0) {
		size_t written = 0;
		for (size_t i = 0; i < policy_len(p); i++) {
			const struct rule *rule = policy_at(p, i);
			if (rule->sensitive || rule->source != RULE_FILE)
				continue;
			policy_format_rule(&text, rule);
			buf_add_char(&text, '\n');
			written++;
		}
		/* What we write we can read. */
		if (text.len < POLICYFILE_SIZE_MAX &&
		    (parse(again, buf_str(&text), text.len) < 0 || policy_len(again) != written)) {
			fprintf(stderr, "written, and not read again:\n%s", buf_str(&text));
			abort();
		}
	}
	policy_free(p);
	policy_free(again);
	buf_free(&text);
	return 0;
}
