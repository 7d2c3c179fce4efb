/*
 * provider_models: the list of a server's models, read, searched, freed (provider.h).
 */
#pragma once

#include "agent/provider_chat.h"

/* {"data": [...]}; some servers send the array itself. 0, -EPROTO (neither), -ENOMEM. */
int provider_models_read(const struct json *root, chat_judge *judge, struct provider_models *ret);
/* NULL: not in the list. */
const struct provider_model *provider_models_find(const struct provider_models *m, const char *id);
/*
 * For requests that name none: the server's default, else the first that is usable and enabled, one
 * that the server's own pickers show before one that they don't.
 */
const struct provider_model *provider_models_best(const struct provider_models *models);
