/* A policy's text: read, and what was read written down and read again. */
#include "tests/fuzz/fuzz.h"

#include "supervisor/policyfile.h"
#include "supervisor/policymerge.h"
#include "tracer/buf.h"

#include <string.h>

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

static bool merge(const char *text, size_t size, struct buf *out)
{
	struct policymerge *m = NULL;
	struct policy_error error;
	bool fine = policymerge_new(&m) == 0 && policymerge_add(m, "fuzz", text, size, &error) == 0;
	if (fine)
		policymerge_write(m, out);
	policymerge_free(m);
	return fine && buf_error(out) == 0;
}

/* Merged, it reads again, and merging it once more changes nothing. */
static void check_merged(const char *text, size_t size)
{
	struct buf once = {0}, twice = {0};
	if (merge(text, size, &once) && once.len < POLICYFILE_SIZE_MAX &&
	    (!merge(buf_str(&once), once.len, &twice) || once.len != twice.len ||
	     strcmp(buf_str(&once), buf_str(&twice)) != 0)) {
		fprintf(stderr, "merged:\n%s\nand again:\n%s\n", buf_str(&once), buf_str(&twice));
		abort();
	}
	buf_free(&once);
	buf_free(&twice);
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
	check_merged((const char *)data, size);
	policy_free(p);
	policy_free(again);
	buf_free(&text);
	return 0;
}
