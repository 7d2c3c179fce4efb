/*
 * After the last run: the report's end, and the last events.
 */
#include "supervisor/run.h"

#include "supervisor/plan.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

static void fill_engine(struct run *r)
{
	struct report *rep = &r->out->report;
	rep->engine.landlock_abi = r->abi.abi;
	rep->engine.mode = run_mode_name(r->mode);
	rep->engine.fast = run_is_fast(r);
	rep->engine.brokered = r->brokered;
	notice_report(r);
}

static int copy_sources(const struct session *s, struct report *rep)
{
	rep->sources = calloc(s->sources_len + 1, sizeof *rep->sources);
	if (!rep->sources)
		return -ENOMEM;
	for (size_t i = 0; i < s->sources_len; i++) {
		rep->sources[i] = s->sources[i];
		rep->sources[i].path = strdup(s->sources[i].path);
		rep->sources_len++;
		if (!rep->sources[i].path)
			return -ENOMEM;
	}
	return 0;
}

static void error_event(struct jsonw *w, const void *arg)
{
	const struct engine_outcome *o = arg;
	jsonw_kstr(w, "message", o->why.text);
}

static void exit_event(struct jsonw *w, const void *arg)
{
	const struct engine_outcome *o = arg;
	if (o->report.exited)
		jsonw_kint(w, "exit", o->report.exit_code);
	else if (o->report.signal)
		jsonw_kint(w, "signal", o->report.signal);
}

int finish_report(struct run *r)
{
	struct engine_outcome *o = r->out;
	struct report *rep = &o->report;
	rep->wall_ms = clock_ms() - r->started_ms;
	/* It may have been killed before it became the command: that says why nothing was run. */
	rep->signal = !o->error && WIFSIGNALED(r->main_status) ? WTERMSIG(r->main_status) : 0;
	rep->exited = o->ran ? WIFEXITED(r->main_status) : !rep->signal;
	if (o->ran)
		rep->exit_code = rep->exited ? WEXITSTATUS(r->main_status) : 0;
	else
		rep->exit_code = rep->exited ? engine_exit_status(o, false) : 0;
	fill_engine(r);
	int err = copy_sources(r->session, rep);
	plan_mark(&rep->denials, r->session->policy, r->session->home);
	if (!err)
		err = plan_suggest(&rep->denials, r->session->home, &rep->suggested);
	if (o->error)
		asker_event(r, "error", error_event, o);
	asker_event(r, "exit", exit_event, o);
	return err;
}
