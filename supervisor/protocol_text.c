#include "supervisor/protocol_text.h"

#include "supervisor/timestamp.h"

#include <string.h>

/* ---- the question ---- */

static void write_access(struct jsonw *w, uint32_t mask)
{
	jsonw_key(w, "access");
	jsonw_begin_array(w);
	for (unsigned i = 0; i < ACCESS_COUNT; i++)
		if (mask & 1u << i)
			jsonw_str(w, access_name(1u << i));
	jsonw_end_array(w);
}

static void write_scope(struct jsonw *w, const struct scope *s)
{
	jsonw_begin_object(w);
	jsonw_kpath(w, "path", s->path);
	if (s->path2)
		jsonw_kpath(w, "path2", s->path2);
	jsonw_kstr(w, "kind", scope_kind_name(s->kind));
	write_access(w, s->access);
	jsonw_kint(w, "surplus", (int64_t)s->surplus);
	if (s->surplus_more)
		jsonw_kbool(w, "surplus_more", true);
	jsonw_kbool(w, "sensitive", s->sensitive);
	jsonw_kstr(w, "rule", s->rule);
	jsonw_end_object(w);
}

static void write_lifetimes(struct jsonw *w, const struct question *q)
{
	jsonw_key(w, "lifetimes");
	jsonw_begin_array(w);
	jsonw_str(w, lifetime_name(LIFETIME_ONCE));
	jsonw_str(w, lifetime_name(LIFETIME_SESSION));
	if (!q->no_saving && !q->is_rerun)
		jsonw_str(w, lifetime_name(LIFETIME_ALWAYS));
	jsonw_end_array(w);
}

static void write_who(struct jsonw *w, const struct question *q)
{
	char time[TIMESTAMP_LEN];
	jsonw_kstr(w, "event", "ask");
	jsonw_kint(w, "id", (int64_t)q->id);
	jsonw_kint(w, "group", (int64_t)q->group);
	jsonw_kstr(w, "time", timestamp_format(&q->time, time));
	jsonw_kint(w, "pid", q->pid);
	jsonw_kpath(w, "exe", q->exe);
	jsonw_key(w, "argv");
	jsonw_begin_array(w);
	for (char **arg = q->argv; arg && *arg; arg++)
		jsonw_str(w, *arg);
	jsonw_end_array(w);
	jsonw_kpath(w, "cwd", q->cwd);
}

void protocol_text_question(struct jsonw *w, const struct question *q)
{
	jsonw_begin_object(w);
	write_who(w, q);
	jsonw_kstr(w, "call", q->call);
	jsonw_kpath(w, "path", q->path);
	if (q->given)
		jsonw_kpath(w, "given", q->given);
	if (q->path2)
		jsonw_kpath(w, "path2", q->path2);
	if (q->below) {
		jsonw_kpath(w, "below", q->below);
		jsonw_kint(w, "default_scope", q->marked);
	}
	write_access(w, q->access);
	jsonw_kbool(w, "exists", q->exists);
	jsonw_kbool(w, "sensitive", q->sensitive);
	if (q->is_rerun) {
		jsonw_kbool(w, "rerun", true);
		jsonw_kstr(w, "text", q->text);
	}
	write_lifetimes(w, q);
	jsonw_key(w, "scopes");
	jsonw_begin_array(w);
	for (size_t i = 0; i < q->scopes.len; i++)
		write_scope(w, &q->scopes.item[i]);
	jsonw_end_array(w);
	jsonw_end_object(w);
}

/* ---- the answer ---- */

/* Ids apart. */
static const char *parse_answer(const struct json *v, struct answer *ret)
{
	const char *word = json_get_str(v, "answer");
	if (!word || (strcmp(word, "allow") && strcmp(word, "deny")))
		return "\"answer\" must be \"allow\" or \"deny\"";
	ret->allow = !strcmp(word, "allow");
	ret->by = BY_USER;
	ret->lifetime = ret->allow ? LIFETIME_ONCE : LIFETIME_SESSION;
	int64_t scope = 0;
	if (json_get(v, "scope") && !json_get_int(v, "scope", &scope))
		return "\"scope\" must be a number";
	if (scope < 0 || scope >= PLAN_SCOPES_MAX)
		return "no such scope";
	ret->scope = (unsigned)scope;
	if (!json_get(v, "lifetime"))
		return NULL;
	const char *lifetime = json_get_str(v, "lifetime");
	for (enum lifetime l = LIFETIME_ONCE; l <= LIFETIME_ALWAYS; l++) {
		if (!lifetime || strcmp(lifetime, lifetime_name(l)))
			continue;
		ret->lifetime = l;
		return NULL;
	}
	return "\"lifetime\" must be \"once\", \"session\" or \"always\"";
}

static bool is_id(const struct json *v)
{
	int64_t id;
	return json_int(v, &id) && id > 0;
}

/* Each of them: a line of which a part is bad answers nothing. */
static bool are_ids(const struct json *id, const struct json *ids)
{
	if (id)
		return is_id(id);
	for (const struct json *one = json_first(ids); one; one = json_next(one))
		if (!is_id(one))
			return false;
	return true;
}

const char *protocol_text_answer(const struct json *v, struct answer *ret)
{
	const struct json *id = json_get(v, "id"), *ids = json_get(v, "ids");
	if (!json_is_object(v))
		return "an answer must be an object";
	if (!id == !ids || (ids && (!json_is_array(ids) || !json_len(ids))))
		return "an answer needs \"id\", or \"ids\" with at least one";
	if (!are_ids(id, ids))
		return "an id must be a positive number";
	return parse_answer(v, ret);
}
