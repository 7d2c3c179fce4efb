#include "agent/provider_chat.h"

#include "agent/provider_body.h"
#include "agent/provider_models.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

int chat_init(struct chat *c, const struct provider_config *config,
	      const struct asker_endpoint *endpoint, chat_judge *judge)
{
	*c = (struct chat){.judge = judge};
	return asker_init(&c->asker, config, endpoint);
}

void chat_free(struct chat *c)
{
	asker_free(&c->asker);
	provider_models_free(&c->models);
	free(c->model);
	free(c->learned);
	*c = (struct chat){0};
}

static int no_memory(struct provider_error *ret_error)
{
	return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM, "not enough memory");
}

/* ---- models ---- */

int chat_models(struct chat *c, const volatile sig_atomic_t *cancel, struct provider_models *ret,
		struct provider_error *ret_error)
{
	const struct provider_request req = {.initiator = PROVIDER_BY_USER, .cancel = cancel};
	const struct asker_query q = {
		.by = &c->asker, .req = &req, .method = "GET", .path = "models"};
	struct json *root = NULL;
	int err = asker_json(&q, &root, ret_error);
	if (err)
		return err;
	err = provider_models_read(root, c->judge, ret);
	if (!err) { /* for ourselves, too: it need not be asked for again */
		provider_models_free(&c->models);
		c->listed = !provider_models_read(root, c->judge, &c->models);
	}
	json_free(root);
	if (err == -EPROTO)
		return provider_fail(ret_error, PROVIDER_FAIL_PROTOCOL, -EIO,
				     "the server's list of models has no \"data\": name a model "
				     "with --model or WARDER_MODEL");
	return err ? no_memory(ret_error) : 0;
}

/* The model for requests that name none. */
static int choose_model(struct chat *c, const volatile sig_atomic_t *cancel,
			const struct provider_sink *sink, struct provider_error *ret_error)
{
	struct provider_models listed = {0};
	char line[160];
	int err = chat_models(c, cancel, &listed, ret_error);
	if (err)
		return err;
	provider_models_free(&listed);
	const struct provider_model *best = provider_models_best(&c->models);
	if (!best)
		return provider_fail(ret_error, PROVIDER_FAIL_MODEL, -EIO,
				     "the server lists no model that can chat and call tools: name "
				     "one with --model or WARDER_MODEL");
	c->model = strdup(best->id);
	if (!c->model)
		return no_memory(ret_error);
	snprintf(line, sizeof(line), "model %s", c->model);
	if (sink->on_status)
		sink->on_status(sink->arg, line);
	return 0;
}

/*
 * Ask once what the list tells of the models. It is fine where it tells nothing: the server will
 * say what is wrong with a request. What the request itself would fail by is an error here, too.
 */
static int know_models(struct chat *c, const volatile sig_atomic_t *cancel,
		       struct provider_error *ret_error)
{
	struct provider_models listed = {0};
	struct provider_error error = {0};
	if (c->listed || !c->judge)
		return 0;
	int retries = c->asker.retries;
	c->asker.retries = 0;
	int err = chat_models(c, cancel, &listed, &error);
	c->asker.retries = retries;
	provider_models_free(&listed);
	if (err == -ECANCELED || (err && error.unasked && !(error.retryable && retries))) {
		*ret_error = error;
		return err;
	}
	c->listed = !error.unasked;
	return 0;
}

static enum answer_dialect dialect_of(const struct chat *c, const char *model)
{
	if (c->learned && !strcmp(c->learned, model))
		return c->dialect;
	const struct provider_model *m = provider_models_find(&c->models, model);
	return m && m->responses_only ? ANSWER_RESPONSES : ANSWER_CHAT;
}

/* ---- a turn ---- */

struct turning {
	struct answer answer;
	struct convo_message *message;
};

static void turn_restart(void *arg)
{
	struct turning *t = arg;
	const struct provider_sink *sink = t->answer.sink;
	enum answer_dialect dialect = t->answer.dialect;
	answer_free(&t->answer);
	answer_init(&t->answer, dialect, sink);
}

static int complain(const struct turning *t, int err, struct asker_complaint *complaint)
{
	if (err < 0) {
		snprintf(complaint->text, sizeof(complaint->text), "%s", t->answer.complaint);
		complaint->passes = t->answer.complaint_passes;
	}
	return err;
}

static int turn_take(void *arg, const struct http_response *r, const char *bytes, size_t n,
		     struct asker_complaint *complaint)
{
	struct turning *t = arg;
	return complain(t, answer_feed(&t->answer, r->content_type, bytes, n), complaint);
}

static int turn_end(void *arg, struct asker_complaint *complaint)
{
	struct turning *t = arg;
	return complain(t, answer_end(&t->answer, t->message), complaint);
}

static bool turn_is_whole(void *arg)
{
	const struct turning *t = arg;
	return answer_is_whole(&t->answer);
}

static bool turn_is_shown(void *arg)
{
	const struct turning *t = arg;
	return t->answer.shown;
}

static int send_turn(struct chat *c, enum answer_dialect dialect,
		     const struct provider_request *req, const struct provider_sink *sink,
		     struct convo_message *ret_message, struct provider_error *ret_error)
{
	struct buf body = {0};
	struct turning t = {.message = ret_message};
	const struct asker_query q = {
		.by = &c->asker,
		.req = req,
		.sink = sink,
		.method = "POST",
		.path = dialect == ANSWER_RESPONSES ? "responses" : "chat/completions",
		.body = &body,
		.arg = &t,
		.restart = turn_restart,
		.take = turn_take,
		.end = turn_end,
		.is_whole = turn_is_whole,
		.is_shown = turn_is_shown,
	};
	answer_init(&t.answer, dialect, sink);
	int err = body_write(dialect, req, &body);
	if (err == -EFBIG)
		err = provider_fail(ret_error, PROVIDER_FAIL_REQUEST, -EIO,
				    "the conversation is too long to be sent: /clear starts a new "
				    "one");
	else if (err)
		err = no_memory(ret_error);
	else
		err = asker_run(&q, ret_error);
	answer_free(&t.answer);
	buf_free(&body);
	return err;
}

/* The server says that it has the model, and that it is asked the other way. */
static int send_the_other_way(struct chat *c, enum answer_dialect tried,
			      const struct provider_request *req, const struct provider_sink *sink,
			      struct convo_message *ret_message, struct provider_error *ret_error)
{
	struct provider_error error = {0};
	enum answer_dialect other = tried == ANSWER_CHAT ? ANSWER_RESPONSES : ANSWER_CHAT;
	int err = send_turn(c, other, req, sink, ret_message, &error);
	if (err && (error.kind == PROVIDER_FAIL_ELSEWHERE || error.status == 404)) {
		ret_error->kind = PROVIDER_FAIL_MODEL;
		return -EIO;
	}
	if (err)
		*ret_error = error;
	char *learned = strdup(req->model);
	if (learned) { /* without memory it is learned again the next time */
		free(c->learned);
		c->learned = learned;
		c->dialect = other;
	}
	return err;
}

int chat_turn(struct chat *c, const struct provider_request *req, const struct provider_sink *sink,
	      struct convo_message *ret_message, struct provider_error *ret_error)
{
	struct provider_request named = *req;
	struct convo_message m = {0};
	int err = 0;
	if (!named.model && !c->model)
		err = choose_model(c, req->cancel, sink, ret_error);
	else
		err = know_models(c, req->cancel, ret_error);
	if (err)
		return err;
	if (!named.model)
		named.model = c->model;
	enum answer_dialect dialect = dialect_of(c, named.model);
	err = send_turn(c, dialect, &named, sink, &m, ret_error);
	if (err && ret_error->kind == PROVIDER_FAIL_ELSEWHERE)
		err = send_the_other_way(c, dialect, &named, sink, &m, ret_error);
	if (!err && m.kept && !(m.kept_model = strdup(named.model))) {
		convo_message_free(&m);
		err = no_memory(ret_error);
	}
	if (!err)
		*ret_message = m;
	return err;
}
