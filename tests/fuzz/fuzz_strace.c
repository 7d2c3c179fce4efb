/* strace's text, as a whole and each line's arguments. */
#include "tests/fuzz/fuzz.h"

#include "tracer/straceargs.h"
#include "tracer/straceimport.h"
#include "tracer/util.h"

#include <string.h>

static void on_fault(void *arg, const char *text)
{
	size_t *told = arg;
	*told += strlen(text);
}

/* What an event points to is looked at, so that a stray pointer is found. */
static size_t look_at(const struct trace_event *ev)
{
	size_t n = ev->call ? strlen(ev->call) : 0;
	if (ev->paths > TRACE_PATHS || ev->unsure_len > TRACE_UNSURE_MAX)
		abort();
	for (unsigned i = 0; i < ev->paths; i++) {
		n += ev->path[i].given ? strlen(ev->path[i].given) : 0;
		n += ev->path[i].real ? strlen(ev->path[i].real) : 0;
		if (ev->path[i].real && *ev->path[i].real != '/')
			abort();
	}
	for (unsigned i = 0; i < ev->unsure_len; i++)
		n += strlen(ev->unsure[i]);
	for (size_t i = 0; ev->argv && ev->argv[i]; i++)
		n += strlen(ev->argv[i]);
	return n + (ev->exe ? strlen(ev->exe) : 0) + (ev->target ? strlen(ev->target) : 0);
}

static void read_whole(const uint8_t *data, size_t size)
{
	char name[64];
	size_t told = 0;
	int fd AUTOCLOSE = fuzz_file(data, size, name);
	struct traceinput *in = NULL;
	struct trace_source source;
	struct trace_event ev;
	struct trace_error error;
	struct trace_options o = {.cwd = "/cwd", .fault = on_fault, .fault_arg = &told};
	if (traceinput_open(name, &in) < 0 || straceimport_open(in, &o, &source) < 0)
		return;
	while (source.next(source.self, &ev, &error) == 1)
		told += look_at(&ev);
	(void)source.is_complete(source.self);
	source.free(source.self);
}

static void read_line(const char *line, size_t len)
{
	struct straceline parts;
	struct straceargs args = {0};
	straceline_parse(line, len, &parts);
	if (parts.kind == STRACELINE_CALL)
		(void)straceargs_parse(&args, parts.rest);
	straceargs_free(&args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : size;
	char *line AUTOFREE = malloc(len ? len : 1);
	if (!line)
		return 0;
	memcpy(line, data, len);
	read_line(line, len);
	read_whole(data, size);
	return 0;
}
