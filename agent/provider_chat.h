/*
 * provider_chat: a turn with whatever speaks chat completions or responses, and its models. Which
 * of the two a model is asked by is what the server lists for it, or answers when the wrong one was
 * tried.
 */
#pragma once

#include "agent/asker.h"
#include "agent/provider_answer.h"

/* Fill what the server tells of a listed model beyond its id. */
typedef void chat_judge(const struct json *listed, struct provider_model *m);

struct chat {
	struct asker asker;
	chat_judge *judge;	       /* NULL: the list tells nothing; all models can be used */
	struct provider_models models; /* what the server listed, for our own use */
	bool listed;		       /* it was asked for, well or in vain */
	char *model;		       /* the choice for requests that name none, once made */
	char *learned;		       /* the model that the server sent to the other dialect, */
	enum answer_dialect dialect;   /* which is this one */
};

/* Take what the config says about timeouts, retries, certificates. 0, -ENOMEM, -ELIBACC. */
int chat_init(struct chat *c, const struct provider_config *config,
	      const struct asker_endpoint *endpoint, chat_judge *judge);
void chat_free(struct chat *c);

/* As provider_ops. */
int chat_turn(struct chat *c, const struct provider_request *req, const struct provider_sink *sink,
	      struct convo_message *ret_message, struct provider_error *ret_error);
int chat_models(struct chat *c, const volatile sig_atomic_t *cancel, struct provider_models *ret,
		struct provider_error *ret_error);
