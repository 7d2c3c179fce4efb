#include "supervisor/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

bool run_is_fast(const struct run *r)
{
	return tracer_has_fast() && !r->command->slow && r->mode != ENGINE_PERMISSIVE &&
	       !r->command->trace;
}

void run_see_mounts(struct run *r)
{
	bool known = r->mounts_known;
	r->mounts_known = false;
	if (!known && slowfs_renew(r->slowfs))
		pathname_memory_forget(r->names);
}

const char *run_mode_name(enum engine_mode m)
{
	switch (m) {
	case ENGINE_HOLD:
		return "hold";
	case ENGINE_RETRY:
		return "retry";
	case ENGINE_PERMISSIVE:
		return "permissive";
	case ENGINE_REPORT:
	case ENGINE_MODE_AUTO:
		break;
	}
	return "report";
}

void run_roam(struct run *r)
{
	if (r->tracer)
		tracer_roam(r->tracer);
}

void run_say(struct run *r, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (!r->command->hooks.say)
		return;
	run_roam(r);
	r->command->hooks.say(r->command->hooks.arg, line);
}

void run_fail(struct run *r, int err, const char *what)
{
	if (!r->out->error) {
		r->out->error = err;
		snprintf(r->out->why.text, sizeof r->out->why.text, "%s: %s", what, strerror(-err));
	}
	r->end = RUN_KILLED;
	if (r->tracer)
		tracer_kill_all(r->tracer);
}

int run_refuse(struct run *r, int err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->out->why.text, sizeof r->out->why.text, fmt, ap);
	va_end(ap);
	r->out->error = err;
	return err;
}
