/* A file that is said to be a trace: of ours, of strace's, or of nobody's. */
#include "tests/fuzz/fuzz.h"

#include "tracer/tracewrite.h"
#include "tracer/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[64];
	int fd AUTOCLOSE = fuzz_file(data, size, name);
	struct trace_reader *r = NULL;
	struct trace_options o = {.cwd = "/cwd"};
	struct trace_event ev;
	struct trace_error error = {{0}};
	struct buf line = {0};
	if (trace_open(name, &o, &r, &error) < 0)
		return 0;
	while (trace_next(r, &ev, &error) == 1) {
		buf_reset(&line);
		tracewrite_format(&ev, &line);
	}
	(void)trace_is_complete(r);
	trace_close(r);
	buf_free(&line);
	return 0;
}
