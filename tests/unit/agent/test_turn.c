/* The loop with a scripted provider and a runner of our own: who is asked what, and how it ends. */
#include "agent/turn.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a provider that keeps what it was asked ---- */

struct asked {
	struct provider base;
	const char *const *answers; /* JSON; NULL ends the list: a failure after that */
	size_t at;
	enum provider_initiator initiators[64];
	size_t messages[64];
	volatile sig_atomic_t *cancel_after; /* raised by the first turn */
};

static int asked_turn(struct provider *p, const struct provider_request *req,
		      const struct provider_sink *sink, struct convo_message *ret,
		      struct provider_error *error)
{
	struct asked *a = (struct asked *)p;
	struct json *v = NULL;
	const char *why = NULL;
	cr_assert_null(convo_pending(req->convo), "asked while a call waits for its answer");
	cr_assert_lt(a->at, ARRAY_LEN(a->messages));
	a->initiators[a->at] = req->initiator;
	a->messages[a->at] = req->convo->n;
	const char *text = a->answers[a->at];
	if (!text)
		return provider_fail(error, PROVIDER_FAIL_SERVER, -EIO, "the server failed");
	a->at++;
	if (a->cancel_after)
		*a->cancel_after = 1;
	cr_assert_eq(json_parse(text, strlen(text), &v, NULL), 0, "%s", text);
	cr_assert_eq(convo_read_assistant(v, ret, &why), 0, "%s", why);
	json_free(v);
	if (*ret->text && sink->on_text)
		sink->on_text(sink->arg, ret->text, strlen(ret->text));
	if (sink->on_usage) {
		struct provider_usage u = {.prompt = 10, .cached = -1, .completion = 2};
		sink->on_usage(sink->arg, &u);
	}
	return 0;
}

static const struct provider_ops asked_ops = {.name = "asked", .turn = asked_turn};

/* ---- a runner that does as a row says ---- */

struct runner {
	unsigned ran;
	bool refuse;	       /* every call but write_file */
	unsigned refuse_until; /* of `ran`; 0: for ever */
	bool fatal;
	volatile sig_atomic_t *cancel; /* raised by the first call */
};

static int run_call(void *arg, const struct tool *t, const struct json *args,
		    const struct toolrun_sink *sink, struct tool_result *ret)
{
	struct runner *r = arg;
	(void)args;
	(void)sink;
	r->ran++;
	if (r->cancel)
		*r->cancel = 1;
	*ret = (struct tool_result){.answer = strdup("{\"ok\":true}"), .status = "ok"};
	bool refuse = r->refuse && (!r->refuse_until || r->ran <= r->refuse_until);
	ret->refused = ret->failed = refuse && t->id != TOOL_WRITE_FILE;
	ret->fatal = r->fatal;
	if (ret->refused) {
		struct denial d = {.path = (char *)"/denied",
				   .access = ACCESS_READ,
				   .call = "openat",
				   .error = EACCES,
				   .exe = (char *)"/bin/cat",
				   .argv0 = (char *)"cat"};
		denial_add(&ret->denials, &d);
	}
	return ret->answer ? 0 : -ENOMEM;
}

#define CALL(id, name, args)                                                                       \
	"{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name                  \
	"\",\"arguments\":\"" args "\"}}"
#define SAYS(text, calls)                                                                          \
	"{\"role\":\"assistant\",\"content\":\"" text "\",\"tool_calls\":[" calls "]}"
#define CAT	   "{\\\"command\\\":\\\"cat /denied\\\"}"
#define CAT_SPACED "{ \\\"command\\\" : \\\"cat /denied\\\" }"
#define DONE	   "{\"role\":\"assistant\",\"content\":\"done\"}"

struct world {
	struct convo convo;
	struct asked asked;
	struct runner runner;
	struct turn turn;
	struct turn_result result;
};

static void take(struct world *w, const char *const *answers, const char *words)
{
	w->asked.base.ops = &asked_ops;
	w->asked.answers = answers;
	w->asked.at = 0;
	w->turn.provider = &w->asked.base;
	w->turn.convo = &w->convo;
	w->turn.runner = (struct turn_runner){.arg = &w->runner, .call = run_call};
	if (!w->convo.n)
		cr_assert_eq(convo_add_text(&w->convo, CONVO_SYSTEM, "system"), 0);
	turn_run(&w->turn, words, &w->result);
	cr_assert_null(convo_pending(&w->convo), "a call was left without its answer");
}

static void end(struct world *w)
{
	turn_result_release(&w->result);
	convo_free(&w->convo);
}

static const char *last_text(const struct world *w)
{
	return w->convo.messages[w->convo.n - 1].text;
}

TestSuite(turn, .timeout = 30);

Test(turn, several_calls_are_answered_in_order_until_there_are_none)
{
	struct world w = {0};
	const char *const answers[] = {
		SAYS("two", CALL("a", "read_file", "{\\\"path\\\":\\\"x\\\"}") "," CALL(
				    "b", "list_dir", "{\\\"path\\\":\\\".\\\"}")),
		SAYS("one", CALL("c", "run_shell", "{\\\"command\\\":\\\"ls\\\"}")), DONE, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_DONE);
	cr_expect_str_eq(w.result.words, "");
	cr_expect_eq(w.runner.ran, 3);
	cr_expect_eq(w.result.steps, 3);
	cr_expect_eq(w.result.tool_calls, 3);
	/* system, user, assistant, a, b, assistant, c, assistant */
	cr_assert_eq(w.convo.n, 8);
	cr_expect_str_eq(w.convo.messages[3].call_id, "a");
	cr_expect_str_eq(w.convo.messages[4].call_id, "b");
	cr_expect_str_eq(w.convo.messages[6].call_id, "c");
	/* Who asks is billed: the user once, then the agent. */
	cr_expect_eq(w.asked.initiators[0], PROVIDER_BY_USER);
	cr_expect_eq(w.asked.initiators[1], PROVIDER_BY_AGENT);
	cr_expect_eq(w.asked.initiators[2], PROVIDER_BY_AGENT);
	cr_expect_eq(w.result.usage.prompt, 30);
	cr_expect_eq(w.result.usage.cached, -1);
	cr_expect_eq(w.result.usage.completion, 6);
	end(&w);
}

Test(turn, wrong_calls_are_answers_not_ends)
{
	struct world w = {0};
	const char *const answers[] = {
		SAYS("",
		     CALL("a", "teleport", "{}") "," CALL(
			     "b", "read_file", "{\\\"path\\\":") "," CALL("c", "read_file", "{}")),
		DONE, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_DONE);
	cr_expect_eq(w.runner.ran, 0);
	cr_expect(strstr(w.convo.messages[3].text, "no tool"));
	cr_expect(strstr(w.convo.messages[4].text, "no valid JSON"));
	cr_expect(strstr(w.convo.messages[5].text, "is missing"));
	end(&w);
}

/* The same refused call 21 times: run twice, told, and the turn stops at the third. */
Test(turn, a_refused_call_is_not_run_a_third_time)
{
	struct world w = {.runner = {.refuse = true}};
	const char *answers[22];
	for (size_t i = 0; i < 21; i++)
		answers[i] = i % 2 ? SAYS("", CALL("a", "run_shell", CAT_SPACED))
				   : SAYS("", CALL("a", "run_shell", CAT));
	answers[21] = NULL;
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_REPEATED);
	cr_expect_eq(w.runner.ran, 2);
	cr_expect_eq(w.asked.at, 3);
	cr_expect(strstr(w.result.words, "third time"), "%s", w.result.words);
	cr_expect(strstr(last_text(&w), "not run again"), "%s", last_text(&w));
	cr_expect_eq(w.result.denials.len, 1);
	cr_expect_eq(w.result.denials.item[0].count, 2);
	end(&w);
}

/* All three in one message, with another one behind: that is answered as not run. */
Test(turn, repeats_within_one_message_stop_as_well)
{
	struct world w = {.runner = {.refuse = true}};
	const char *const answers[] = {
		SAYS("", CALL("a", "run_shell", CAT) "," CALL("b", "run_shell", CAT) "," CALL(
				 "c", "run_shell", CAT) "," CALL("d", "list_dir",
								 "{\\\"path\\\":\\\".\\\"}")),
		NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_REPEATED);
	cr_expect_eq(w.runner.ran, 2);
	cr_expect_str_eq(last_text(&w), "Not run: the turn was stopped.");
	end(&w);
}

Test(turn, other_calls_and_allowed_ones_are_not_counted)
{
	static const char other[] =
		SAYS("", CALL("a", "run_shell", "{\\\"command\\\":\\\"cat /other\\\"}"));
	static const char cat[] = SAYS("", CALL("a", "run_shell", CAT));
	struct world w = {.runner = {.refuse = true}};
	const char *const differ[] = {cat, other, cat, other, DONE, NULL};
	take(&w, differ, "go");
	cr_expect_eq(w.result.end, TURN_DONE);
	cr_expect_eq(w.runner.ran, 4);
	end(&w);

	/* Refused once, then granted: it may run as often as it likes. */
	struct world granted = {.runner = {.refuse = true, .refuse_until = 1}};
	const char *const often[] = {cat, cat, cat, cat, cat, DONE, NULL};
	take(&granted, often, "go");
	cr_expect_eq(granted.result.end, TURN_DONE);
	cr_expect_eq(granted.runner.ran, 5);
	end(&granted);
}

/* A build that is refused something harmless each time, with an edit between the attempts. */
Test(turn, a_file_written_in_between_makes_it_a_new_attempt)
{
	static const char cat[] = SAYS("", CALL("a", "run_shell", CAT));
	static const char edit[] = SAYS(
		"", CALL("a", "write_file", "{\\\"path\\\":\\\"x\\\",\\\"content\\\":\\\"\\\"}"));
	struct world w = {.runner = {.refuse = true}};
	const char *const answers[] = {cat, edit, cat, edit, cat, edit, cat, DONE, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_DONE);
	cr_expect_eq(w.runner.ran, 7);
	end(&w);
}

Test(turn, the_next_turn_counts_anew)
{
	static const char cat[] = SAYS("", CALL("a", "run_shell", CAT));
	struct world w = {.runner = {.refuse = true}};
	const char *const answers[] = {cat, cat, DONE, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_DONE);
	turn_result_release(&w.result);
	take(&w, answers, "again");
	cr_expect_eq(w.result.end, TURN_DONE);
	cr_expect_eq(w.runner.ran, 4);
	end(&w);
}

Test(turn, the_step_limit_is_said)
{
	static const char ls[] = SAYS("", CALL("a", "run_shell", "{\\\"command\\\":\\\"ls\\\"}"));
	struct world w = {.turn = {.steps = 3}};
	const char *const answers[] = {ls, ls, ls, ls, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_STEPS_SPENT);
	cr_expect_eq(w.result.steps, 3);
	cr_expect(strstr(w.result.words, "after 3 steps"), "%s", w.result.words);
	end(&w);
}

Test(turn, a_failure_before_anything_was_done_takes_the_turn_back)
{
	struct world w = {0};
	const char *const none[] = {NULL};
	take(&w, none, "go");
	cr_expect_eq(w.result.end, TURN_PROVIDER);
	cr_expect_str_eq(w.result.words, "the server failed");
	cr_expect_eq(w.convo.n, 1);
	end(&w);
}

Test(turn, a_failure_later_keeps_what_was_done)
{
	struct world w = {0};
	const char *const answers[] = {
		SAYS("", CALL("a", "run_shell", "{\\\"command\\\":\\\"ls\\\"}")), NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_PROVIDER);
	cr_expect_eq(w.convo.n, 4);
	cr_expect_eq(w.convo.messages[3].role, CONVO_TOOL);
	end(&w);
}

Test(turn, cancelled_in_a_call_answers_the_rest)
{
	static volatile sig_atomic_t cancel;
	cancel = 0;
	struct world w = {.runner = {.cancel = &cancel}, .turn = {.cancel = &cancel}};
	const char *const answers[] = {
		SAYS("", CALL("a", "run_shell", "{\\\"command\\\":\\\"ls\\\"}") "," CALL(
				 "b", "run_shell", "{\\\"command\\\":\\\"pwd\\\"}")),
		DONE, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_CANCELLED);
	cr_expect_eq(w.runner.ran, 1);
	cr_expect_str_eq(last_text(&w), "Not run: the turn was stopped.");
	/* And the conversation goes on. */
	cancel = 0;
	w.runner.cancel = NULL;
	const char *const done[] = {DONE, NULL};
	turn_result_release(&w.result);
	take(&w, done, "go on");
	cr_expect_eq(w.result.end, TURN_DONE);
	end(&w);
}

Test(turn, cancelled_before_an_answer_keeps_the_question)
{
	static volatile sig_atomic_t cancel;
	cancel = 1;
	struct world w = {.turn = {.cancel = &cancel}};
	const char *const answers[] = {DONE, NULL};
	take(&w, answers, "my question");
	cr_expect_eq(w.result.end, TURN_CANCELLED);
	cr_expect_eq(w.asked.at, 0);
	cr_assert_eq(w.convo.n, 3);
	cr_expect_str_eq(w.convo.messages[1].text, "my question");
	cr_expect_eq(w.convo.messages[2].role, CONVO_ASSISTANT);
	end(&w);
}

Test(turn, where_no_tool_can_run_the_turn_ends)
{
	struct world w = {.runner = {.fatal = true}};
	const char *const answers[] = {
		SAYS("", CALL("a", "run_shell", "{\\\"command\\\":\\\"ls\\\"}")), DONE, NULL};
	take(&w, answers, "go");
	cr_expect_eq(w.result.end, TURN_TROUBLE);
	cr_expect_eq(w.asked.at, 1);
	end(&w);
}
