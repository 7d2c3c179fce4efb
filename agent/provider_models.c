#include "agent/provider_models.h"

#include "tracer/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void provider_models_free(struct provider_models *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->items[i].id);
		free(m->items[i].name);
	}
	free(m->items);
	*m = (struct provider_models){0};
}

static int add_model(const struct json *v, chat_judge *judge, struct provider_models *to)
{
	const char *id = json_get_str(v, "id");
	const char *name = json_get_str(v, "name");
	if (!id || !*id)
		return 0;
	struct provider_model m = {.usable = true, .context = -1};
	m.id = strdup(id);
	m.name = strdup(name && *name ? name : id);
	if (!m.id || !m.name) {
		free(m.id);
		free(m.name);
		return -ENOMEM;
	}
	if (judge)
		judge(v, &m);
	to->items[to->n++] = m;
	return 0;
}

int provider_models_read(const struct json *root, chat_judge *judge, struct provider_models *ret)
{
	const struct json *list = json_is_array(root) ? root : json_get(root, "data");
	struct provider_models models = {0};
	if (!json_is_array(list))
		return -EPROTO;
	models.items = calloc(json_len(list) + 1, sizeof(*models.items));
	int err = models.items ? 0 : -ENOMEM;
	const struct json *v = err ? NULL : json_first(list);
	for (; v && !err; v = json_next(v))
		err = add_model(v, judge, &models);
	if (err)
		provider_models_free(&models);
	else
		*ret = models;
	return err;
}

const struct provider_model *provider_models_find(const struct provider_models *m, const char *id)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->items[i].id, id))
			return &m->items[i];
	return NULL;
}

const struct provider_model *provider_models_best(const struct provider_models *models)
{
	const struct provider_model *best = NULL;
	for (size_t i = 0; i < models->n; i++) {
		const struct provider_model *m = &models->items[i];
		if (!m->usable || m->needs_enabling)
			continue;
		if (m->preferred)
			return m;
		if (!best || (best->hidden && !m->hidden))
			best = m;
	}
	return best;
}
