#include "supervisor/warder.h"

#include "supervisor/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say_nothing(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static int run_in(struct session *s, const struct warder_options *o, char *const *argv,
		  struct warder_result *ret)
{
	extern char **environ;
	struct engine_outcome out;
	struct buf text = {0};
	struct engine_command c = {.argv = argv,
				   .env = o->env ? o->env : environ,
				   .stdio = {-1, -1, -1},
				   .own_terminal = true,
				   .mode = o->answers_fd > 0 ? ENGINE_HOLD : ENGINE_REPORT,
				   .ask = ENGINE_ASK_NONE,
				   .events = o->events_fd > 0 ? o->events_fd : -1,
				   .answers = o->answers_fd > 0 ? o->answers_fd : -1,
				   .timeout_ms = o->timeout_ms,
				   .hooks = {.say = say_nothing}};
	int err = engine_run(s, &c, &out);
	ret->status = engine_exit_status(&out, false);
	snprintf(ret->error, sizeof ret->error, "%s", out.why.text);
	if (!err)
		err = report_write(&out.report, &text);
	ret->report = err ? NULL : buf_take(&text);
	buf_free(&text);
	report_release(&out.report);
	return err;
}

int warder_run(const struct warder_options *o, char *const *argv, struct warder_result *ret)
{
	extern char **environ;
	static char *const no_files[] = {NULL};
	struct policy_error why;
	struct session *s;
	struct session_options so = {.env = o->env ? o->env : environ,
				     .project = o->project,
				     .policy_files = o->use_saved ? NULL : no_files,
				     .presets = o->presets,
				     .rule_lines = o->rules,
				     .label = o->label};
	if (!argv || !argv[0])
		return -EINVAL;
	*ret = (struct warder_result){.status = 125};
	int err = session_new(&so, &s, &why);
	if (err) {
		snprintf(ret->error, sizeof ret->error, "%s", why.text);
		return err == -ENOMEM ? err : 0;
	}
	err = run_in(s, o, argv, ret);
	session_free(s);
	return err;
}

void warder_result_release(struct warder_result *r)
{
	free(r->report);
	r->report = NULL;
}

const char *warder_version(void)
{
	return WARDER_VERSION;
}
