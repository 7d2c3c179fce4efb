#include "agent/agent.h"

#include "agent/interrupt.h"
#include "agent/system.h"
#include "supervisor/project.h"

#include <stdlib.h>

int agent_start_convo(struct agent *a)
{
	struct buf text = {0};
	system_write(&text, session_project(a->session)->dir);
	int err = buf_error(&text);
	if (!err) {
		convo_truncate(&a->convo, 0);
		err = convo_add_text(&a->convo, CONVO_SYSTEM, buf_str(&text));
	}
	buf_free(&text);
	return err;
}

static int run_tool(void *arg, const struct tool *t, const struct json *args,
		    const struct toolrun_sink *sink, struct tool_result *ret)
{
	return toolrun_call(arg, t, args, sink, ret);
}

static void add_tokens(int64_t *sum, int64_t n)
{
	if (n >= 0)
		*sum = n + (*sum > 0 ? *sum : 0);
}

void agent_turn(struct agent *a, const char *words, const struct turn_sink *sink,
		struct turn_result *ret)
{
	const struct turn t = {
		.provider = a->provider,
		.convo = &a->convo,
		.model = a->model,
		.runner = {.arg = &a->tools, .call = run_tool},
		.sink = *sink,
		.cancel = interrupt_flag(),
		.steps = a->max_steps,
		.seconds = a->max_seconds,
	};
	turn_run(&t, words, ret);
	a->turns++;
	add_tokens(&a->usage.prompt, ret->usage.prompt);
	add_tokens(&a->usage.cached, ret->usage.cached);
	add_tokens(&a->usage.completion, ret->usage.completion);
	for (size_t i = 0; i < ret->denials.len; i++)
		denial_add(&a->denials, &ret->denials.item[i]);
}

void agent_release(struct agent *a)
{
	provider_free(a->provider);
	provider_config_free(&a->config);
	free(a->model);
	convo_free(&a->convo);
	toolrun_release(&a->tools);
	denial_list_release(&a->denials);
	session_free(a->session);
	*a = (struct agent){0};
}
