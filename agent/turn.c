#include "agent/turn.h"

#include "agent/toolanswer.h"

#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A call that was refused, and how often it was run since. */
struct refused {
	struct refused *next;
	enum tool_id tool;
	unsigned runs;
	char arguments[]; /* written anew, so that spaces make no difference */
};

struct state {
	const struct turn *turn;
	struct turn_result *result;
	struct refused *refused;
	struct buf tools_json;
	int64_t started_ms, held_ms;
	size_t before; /* messages that stay where the turn is taken back */
	bool ended;
	bool compacted_last; /* the last request was the one to make it short */
	bool compact_failed;
};

const char *turn_end_name(enum turn_end end)
{
	static const char *const names[] = {
		[TURN_DONE] = "done",	      [TURN_CANCELLED] = "cancelled",
		[TURN_PROVIDER] = "provider", [TURN_STEPS_SPENT] = "steps",
		[TURN_TIME_SPENT] = "time",   [TURN_REPEATED] = "repeated",
		[TURN_TROUBLE] = "trouble",
	};
	return names[end];
}

void turn_result_release(struct turn_result *r)
{
	denial_list_release(&r->denials);
	r->denials = (struct denial_list){0};
}

/* The first reason stands. */
static void end_turn(struct state *s, enum turn_end end, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void end_turn(struct state *s, enum turn_end end, const char *fmt, ...)
{
	if (s->ended)
		return;
	s->ended = true;
	s->result->end = end;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(s->result->words, sizeof(s->result->words), fmt, ap);
	va_end(ap);
}

static bool cancelled(const struct state *s)
{
	return s->turn->cancel && *s->turn->cancel;
}

/* ---- the repeat breaker ---- */

/* Owned, NULL without memory. */
static char *canonical(const struct json *args)
{
	struct buf text = {0};
	struct jsonw w;
	jsonw_init(&w, &text);
	json_write(&w, args);
	char *ret = buf_take(&text);
	buf_free(&text);
	return ret;
}

static struct refused *find_refused(const struct state *s, enum tool_id tool, const char *arguments)
{
	for (struct refused *r = s->refused; r; r = r->next)
		if (r->tool == tool && !strcmp(r->arguments, arguments))
			return r;
	return NULL;
}

static void forget_all(struct state *s)
{
	while (s->refused) {
		struct refused *r = s->refused;
		s->refused = r->next;
		free(r);
	}
}

static struct refused *remember(struct state *s, enum tool_id tool, const char *arguments)
{
	size_t n = strlen(arguments) + 1;
	struct refused *r = malloc(sizeof(*r) + n);
	if (!r)
		return NULL;
	*r = (struct refused){.next = s->refused, .tool = tool};
	memcpy(r->arguments, arguments, n);
	s->refused = r;
	return r;
}

/* -ENOMEM where a refusal can't be remembered: a loop could not be broken then. */
static int count_run(struct state *s, enum tool_id tool, const char *arguments,
		     const struct tool_result *result)
{
	struct refused *r = find_refused(s, tool, arguments);
	if (result->refused) {
		if (!r)
			r = remember(s, tool, arguments);
		return r ? (r->runs++, 0) : -ENOMEM;
	}
	if (r)
		r->runs = 0; /* it was allowed this time */
	/* The model changed a file: the same command (a build, a test) is a new attempt. */
	if ((tool == TOOL_WRITE_FILE || tool == TOOL_EDIT_FILE) && !result->failed)
		forget_all(s);
	return 0;
}

/* ---- one call ---- */

static unsigned seconds_of(const struct turn *t)
{
	return t->seconds ? t->seconds : TURN_SECONDS;
}

/* What is left of the turn; beyond it by nothing: a call never gets 0, which is no limit. */
static int64_t time_left(const struct state *s)
{
	int64_t spent = clock_ms() - s->started_ms - s->held_ms;
	int64_t left = (int64_t)seconds_of(s->turn) * 1000 - spent;
	return left > 0 ? left + 1 : 1;
}

static int run_parsed(struct state *s, const struct tool *t, const struct json *args,
		      struct tool_result *ret)
{
	AUTOFREE
	char *arguments = canonical(args);
	if (!arguments)
		return -ENOMEM;
	const struct refused *r = find_refused(s, t->id, arguments);
	if (r && r->runs >= TURN_REFUSED_RUNS) {
		end_turn(s, TURN_REPEATED,
			 "stopped: the model called %s a third time although it was refused",
			 t->name);
		return toolanswer_refuse(
			"This call was refused before and is not run again. Do not "
			"repeat it; tell the user what you need and why.",
			ret);
	}
	struct toolrun_sink sink = s->turn->sink.tool;
	sink.limit_ms = time_left(s);
	int err = s->turn->runner.call(s->turn->runner.arg, t, args, &sink, ret);
	if (err)
		return err;
	err = count_run(s, t->id, arguments, ret);
	if (err)
		tool_result_release(ret);
	return err;
}

/* 0, -ENOMEM; a call that can't be run is an answer. */
static int run_call(struct state *s, const struct convo_call *call, struct tool_result *ret)
{
	const struct tool *t = tools_find(call->name);
	struct json *args = NULL;
	struct buf why = {0};
	int err;
	if (!t)
		tools_write_unknown(&why, call->name);
	if (!t || tools_parse(t, call->arguments, &args, &why))
		err = toolanswer_refuse(buf_str(&why), ret);
	else
		err = run_parsed(s, t, args, ret);
	json_free(args);
	buf_free(&why);
	return err;
}

static void keep_denials(struct state *s, const struct tool_result *result)
{
	for (size_t i = 0; i < result->denials.len; i++)
		denial_add(&s->result->denials, &result->denials.item[i]);
}

/* Into the turn's last words, what the answer says. */
static void end_by_trouble(struct state *s, const struct tool_result *result)
{
	struct json *v = NULL;
	const char *words = NULL;
	if (!json_parse(result->answer, strlen(result->answer), &v, NULL))
		words = json_get_str(json_get(v, "error"), "message");
	end_turn(s, TURN_TROUBLE, "stopped: no tool can be run here: %s",
		 words ? words : result->status);
	json_free(v);
}

static int answer_call(struct state *s, const struct convo_call *call)
{
	const struct turn_sink *sink = &s->turn->sink;
	struct tool_result result = {0};
	if (sink->tool_start)
		sink->tool_start(sink->arg, call);
	int err = run_call(s, call, &result);
	if (err)
		return err;
	if (sink->tool_end)
		sink->tool_end(sink->arg, call, &result);
	keep_denials(s, &result);
	s->held_ms += result.held_ms;
	s->result->tool_calls++;
	if (result.fatal)
		end_by_trouble(s, &result);
	err = convo_add_result(s->turn->convo, call->id, result.answer);
	tool_result_release(&result);
	return err;
}

static bool time_is_spent(struct state *s)
{
	unsigned seconds = seconds_of(s->turn);
	if (clock_ms() - s->started_ms - s->held_ms <= (int64_t)seconds * 1000)
		return false;
	end_turn(s, TURN_TIME_SPENT,
		 "stopped: the turn took longer than %u seconds (--max-seconds)", seconds);
	return true;
}

static void answer_calls(struct state *s)
{
	for (;;) {
		const struct convo_call *call = convo_pending(s->turn->convo);
		if (!call)
			return;
		if (cancelled(s))
			end_turn(s, TURN_CANCELLED, "cancelled");
		if (s->ended || time_is_spent(s))
			return;
		int err = answer_call(s, call);
		if (err)
			end_turn(s, TURN_TROUBLE, "stopped: %s", strerror(-err));
	}
}

/* ---- one step ---- */

static void add_tokens(int64_t *sum, int64_t n)
{
	if (n >= 0)
		*sum = n + (*sum > 0 ? *sum : 0);
}

static void add_usage(void *arg, const struct provider_usage *u)
{
	struct state *s = arg;
	add_tokens(&s->result->usage.prompt, u->prompt);
	add_tokens(&s->result->usage.cached, u->cached);
	add_tokens(&s->result->usage.completion, u->completion);
}

static void on_usage(void *arg, const struct provider_usage *u)
{
	const struct state *s = arg;
	struct compact_gauge *g = s->turn->gauge;
	add_usage(arg, u);
	if (!g || u->prompt < 0)
		return;
	g->tokens = u->prompt;
	g->bytes = convo_bytes(s->turn->convo);
}

static void on_text(void *arg, const char *bytes, size_t n)
{
	const struct turn_sink *sink = &((struct state *)arg)->turn->sink;
	if (sink->text)
		sink->text(sink->arg, bytes, n);
}

static void on_status(void *arg, const char *line)
{
	const struct turn_sink *sink = &((struct state *)arg)->turn->sink;
	if (sink->note)
		sink->note(sink->arg, line);
}

/* ---- a conversation that is too long ---- */

int turn_compact(const struct turn *t, struct provider_usage *ret_usage,
		 struct provider_error *ret_error)
{
	struct turn_result result = {.usage = {-1, -1, -1}};
	struct state s = {.turn = t, .result = &result};
	const struct compact_request r = {.provider = t->provider,
					  .model = t->model,
					  .cancel = t->cancel,
					  .gauge = t->gauge,
					  .arg = &s,
					  .on_status = on_status,
					  .on_usage = add_usage};
	int err = compact_run(&r, t->convo, ret_error);
	t->gauge->tokens = 0;
	*ret_usage = result.usage;
	return err;
}

static void note(const struct state *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(const struct state *s, const char *fmt, ...)
{
	char line[1200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	on_status((void *)s, line);
}

/* False: it is as it was. */
static bool make_short(struct state *s)
{
	struct convo *c = s->turn->convo;
	struct provider_usage usage;
	struct provider_error error = {0};
	int64_t tokens = compact_estimate(s->turn->gauge, c);
	int err = turn_compact(s->turn, &usage, &error);
	add_usage(s, &usage);
	if (err) {
		s->compact_failed = true;
		if (err != -ECANCELED)
			note(s,
			     "the conversation is long (about %lld tokens) and can't be made "
			     "short: %s",
			     (long long)tokens, error.text);
		return false;
	}
	s->before = c->n;
	note(s, "the conversation was long (about %lld tokens): the model made it short (%lld)",
	     (long long)tokens, (long long)compact_estimate(s->turn->gauge, c));
	return true;
}

static bool can_be_shorter(const struct state *s)
{
	return s->turn->gauge && !s->compact_failed && !s->compacted_last && s->turn->convo->n > 2;
}

static void provider_failed(struct state *s, int err, const struct provider_error *e)
{
	if (err == -ECANCELED)
		end_turn(s, TURN_CANCELLED, "cancelled");
	else
		end_turn(s, TURN_PROVIDER, "%s", e->text[0] ? e->text : strerror(-err));
}

/* True: the model called tools and they were answered, or the same is to be asked once more. */
static bool step(struct state *s)
{
	const struct turn *t = s->turn;
	if (can_be_shorter(s) && compact_is_due(t->gauge, t->convo)) {
		s->compacted_last = make_short(s);
		if (cancelled(s))
			return true;
	}
	struct provider_request request = {
		.convo = t->convo,
		.tools_json = buf_str(&s->tools_json),
		.model = t->model,
		.initiator = s->result->steps ? PROVIDER_BY_AGENT : PROVIDER_BY_USER,
		.cancel = t->cancel,
	};
	struct provider_sink sink = {
		.arg = s, .on_text = on_text, .on_status = on_status, .on_usage = on_usage};
	struct convo_message message = {0};
	struct provider_error error = {0};
	s->result->steps++;
	int err = t->provider->ops->turn(t->provider, &request, &sink, &message, &error);
	if (t->sink.text_end)
		t->sink.text_end(t->sink.arg);
	if (err && error.kind == PROVIDER_FAIL_LENGTH && can_be_shorter(s)) {
		s->compacted_last = make_short(s);
		if (s->compacted_last)
			return true;
	}
	if (err) {
		provider_failed(s, err, &error);
		return false;
	}
	s->compacted_last = false;
	bool calls = message.n_calls;
	err = convo_add_assistant(t->convo, &message);
	if (err) {
		convo_message_free(&message);
		end_turn(s, TURN_TROUBLE, "stopped: %s", strerror(-err));
		return false;
	}
	answer_calls(s);
	return calls;
}

/* ---- the turn ---- */

static void loop(struct state *s)
{
	unsigned most = s->turn->steps ? s->turn->steps : TURN_STEPS;
	while (!s->ended) {
		if (cancelled(s))
			end_turn(s, TURN_CANCELLED, "cancelled");
		else if (s->result->steps >= most)
			end_turn(s, TURN_STEPS_SPENT,
				 "stopped after %u steps (--max-steps); say \"go on\" to continue",
				 most);
		else if (!time_is_spent(s) && !step(s))
			break;
	}
}

int turn_close(struct convo *c, const char *words)
{
	struct convo_message m = {.role = CONVO_ASSISTANT, .text = strdup(words)};
	int err = m.text ? convo_add_assistant(c, &m) : -ENOMEM;
	if (err)
		convo_message_free(&m);
	return err;
}

/* Back to a conversation that any server takes, with what was done kept in it. */
static void settle(struct state *s)
{
	struct convo *c = s->turn->convo;
	bool by_user = s->result->end == TURN_CANCELLED;
	int err = convo_complete(c, "Not run: the turn was stopped.");
	if (err < 0) {
		convo_truncate(c, s->before);
		end_turn(s, TURN_TROUBLE, "stopped: %s", strerror(-err));
		return;
	}
	if (!s->ended)
		return;
	if (c->n <= s->before + 1 && !by_user)
		convo_truncate(c, s->before);
	if (c->n && c->messages[c->n - 1].role == CONVO_USER &&
	    turn_close(c, by_user ? "(The user cancelled this.)" : "(This was stopped.)"))
		convo_truncate(c, s->before < c->n ? s->before : c->n - 1);
}

void turn_run(const struct turn *t, const char *words, struct turn_result *ret)
{
	*ret = (struct turn_result){.usage = {-1, -1, -1}};
	struct state s = {
		.turn = t, .result = ret, .started_ms = clock_ms(), .before = t->convo->n};
	tools_write_json(&s.tools_json);
	int err = buf_error(&s.tools_json);
	if (!err)
		err = convo_add_text(t->convo, CONVO_USER, words);
	if (err)
		end_turn(&s, TURN_TROUBLE, "stopped: %s", strerror(-err));
	else
		loop(&s);
	settle(&s);
	forget_all(&s);
	buf_free(&s.tools_json);
}
