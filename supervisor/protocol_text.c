#include "supervisor/protocol_text.h"

#include "supervisor/timestamp.h"
#include "tracer/sysent.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* ---- the question ---- */

static void write_scope(struct jsonw *w, const struct scope *s)
{
	jsonw_begin_object(w);
	jsonw_kpath(w, "path", s->path);
	if (s->path2)
		jsonw_kpath(w, "path2", s->path2);
	jsonw_kstr(w, "kind", scope_kind_name(s->kind));
	access_write(w, "access", s->access);
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
	if (q->title)
		jsonw_kstr(w, "title", q->title);
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
	access_write(w, "access", q->access);
	if (q->note)
		jsonw_kstr(w, "note", q->note);
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

/* ---- the question, read ---- */

static int copy_str(const struct json *o, const char *key, char **ret)
{
	const char *s = json_get_str(o, key);
	*ret = s ? strdup(s) : NULL;
	return s && !*ret ? -ENOMEM : 0;
}

static int read_access(const struct json *o, uint32_t *ret)
{
	const struct json *list = json_get(o, "access");
	*ret = 0;
	for (const struct json *v = json_first(list); v; v = json_next(v)) {
		const char *name = json_str(v);
		uint32_t bit = 0;
		size_t at;
		if (!name || access_parse(name, strlen(name), &bit, &at))
			return -EINVAL;
		*ret |= bit;
	}
	return 0;
}

static int read_kind(const struct json *o, enum scope_kind *ret)
{
	const char *name = json_get_str(o, "kind");
	for (enum scope_kind k = SCOPE_EXACT; k <= SCOPE_PRESET; k++) {
		if (!name || strcmp(name, scope_kind_name(k)) != 0)
			continue;
		*ret = k;
		return 0;
	}
	return -EINVAL;
}

static int read_scope(const struct json *o, struct scope *s)
{
	int64_t surplus = 0;
	int err = read_kind(o, &s->kind);
	if (!err)
		err = read_access(o, &s->access);
	if (!err)
		err = copy_str(o, "path", &s->path);
	if (!err)
		err = copy_str(o, "path2", &s->path2);
	if (!err)
		err = copy_str(o, "rule", &s->rule);
	json_get_int(o, "surplus", &surplus);
	s->surplus = surplus < 0 ? 0 : (uint64_t)surplus;
	json_bool(json_get(o, "surplus_more"), &s->surplus_more);
	json_bool(json_get(o, "sensitive"), &s->sensitive);
	return err ? err : s->path && s->rule ? 0 : -EINVAL;
}

static int read_scopes(const struct json *event, struct scope_list *ret)
{
	const struct json *list = json_get(event, "scopes");
	int err = 0;
	for (const struct json *v = json_first(list); v && !err; v = json_next(v)) {
		if (ret->len == PLAN_SCOPES_MAX)
			return -EINVAL;
		err = read_scope(v, &ret->item[ret->len++]);
	}
	return err;
}

static int read_argv(const struct json *event, char ***ret)
{
	const struct json *list = json_get(event, "argv");
	size_t n = 0;
	char **argv = calloc(json_len(list) + 1, sizeof *argv);
	*ret = argv;
	for (const struct json *v = json_first(list); argv && v; v = json_next(v)) {
		argv[n] = strdup(json_str(v) ? json_str(v) : "");
		if (!argv[n++])
			return -ENOMEM;
	}
	return argv ? 0 : -ENOMEM;
}

static int read_texts(const struct json *event, struct question *q)
{
	const struct {
		const char *key;
		char **field;
	} texts[] = {{"exe", &q->exe},	   {"title", &q->title}, {"cwd", &q->cwd},
		     {"path", &q->path},   {"given", &q->given}, {"path2", &q->path2},
		     {"below", &q->below}, {"text", &q->text},	 {"note", &q->note}};
	int err = read_argv(event, &q->argv);
	for (size_t i = 0; !err && i < ARRAY_LEN(texts); i++)
		err = copy_str(event, texts[i].key, texts[i].field);
	return err;
}

/* Call names are static wherever they come from; "rerun" is no call. */
static const char *call_name(const char *name)
{
	const struct sysent *ent = name ? sysent_by_name(name) : NULL;
	return ent ? ent->name : "call";
}

static bool saves(const struct json *event)
{
	const struct json *list = json_get(event, "lifetimes");
	for (const struct json *v = json_first(list); v; v = json_next(v))
		if (json_str(v) && !strcmp(json_str(v), lifetime_name(LIFETIME_ALWAYS)))
			return true;
	return false;
}

static int read_question(const struct json *event, struct question *q)
{
	int64_t id = 0, pid = 0, marked = 0;
	json_get_int(event, "id", &id);
	json_get_int(event, "pid", &pid);
	json_get_int(event, "default_scope", &marked);
	if (id <= 0 || marked < 0)
		return -EINVAL;
	q->id = (uint64_t)id;
	q->pid = (pid_t)pid;
	q->marked = (unsigned)marked;
	q->call = call_name(json_get_str(event, "call"));
	q->no_saving = !saves(event);
	json_bool(json_get(event, "exists"), &q->exists);
	json_bool(json_get(event, "sensitive"), &q->sensitive);
	json_bool(json_get(event, "rerun"), &q->is_rerun);
	clock_gettime(CLOCK_REALTIME, &q->time);
	int err = read_texts(event, q);
	if (!err)
		err = read_access(event, &q->access);
	if (!err)
		err = read_scopes(event, &q->scopes);
	if (err || q->is_rerun)
		return err;
	return q->path && q->scopes.len && q->marked < q->scopes.len ? 0 : -EINVAL;
}

int protocol_text_read_question(const struct json *event, struct question **ret)
{
	struct question *q = calloc(1, sizeof *q);
	int err = q ? read_question(event, q) : -ENOMEM;
	if (err)
		question_free(q);
	else
		*ret = q;
	return err;
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
