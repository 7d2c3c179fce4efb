/*
 * landlockconfig's JSON: any bytes; and what was taken, written as policy lines, reads back.
 */
#include "supervisor/landlockconfig.h"
#include "supervisor/llimport.h"
#include "tests/fuzz/fuzz.h"
#include "tracer/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct landlockconfig c;
	struct policy_error error;
	struct buf lines = {0}, unsaid = {0};
	if (landlockconfig_parse("fuzz", (const char *)data, size, &c, &error))
		return 0;
	struct llimport_how how = {.cwd = "/cwd", .home = "/home/u", .comment = "fuzz"};
	if (!llimport(&c, &how, &lines, &unsaid))
		BUG(lines.len < POLICYFILE_SIZE_MAX &&
		    policyfile_check("fuzz", buf_str(&lines), lines.len, &error));
	buf_free(&lines);
	buf_free(&unsaid);
	landlockconfig_release(&c);
	return 0;
}
