#include "supervisor/landlockconfig.h"

#include "landlock/llright.h"
#include "supervisor/escape.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#define VARIABLES_MAX 256
#define PLACE_MAX     128

struct word {
	const char *name;
	uint64_t rights;
};

static const struct word fs_words[] = {
#define FS(word, rights) {word, rights},
#include "supervisor/landlockconfig.def"
};

static const struct word fs_groups[] = {
#define FS_GROUP(word, rights) {word, rights},
#include "supervisor/landlockconfig.def"
};

static const struct word net_words[] = {
#define NET(word) {word, 0},
#include "supervisor/landlockconfig.def"
};

static const struct word scope_words[] = {
#define SCOPE(word) {word, 0},
#include "supervisor/landlockconfig.def"
};

struct reader {
	const char *name;
	struct landlockconfig *out;
	struct policy_error *error;
	const struct json *variables; /* the array, or NULL */
	size_t steps; /* values that were tried: a variable without any makes no rule */
};

static int fault(struct reader *r, const char *place, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Always -EINVAL. What the file says in it is escaped. */
static int fault(struct reader *r, const char *place, const char *fmt, ...)
{
	struct buf raw = {0}, text = {0};
	va_list ap;
	va_start(ap, fmt);
	bool number = place[0] >= '0' && place[0] <= '9'; /* LINE:COL */
	buf_addf(&raw, "%s:%s%s%s", r->name, number ? "" : " ", place, place[0] ? ": " : "");
	buf_vaddf(&raw, fmt, ap);
	va_end(ap);
	escape_add_str(&text, buf_str(&raw));
	snprintf(r->error->text, sizeof(r->error->text), "%s", buf_str(&text));
	buf_free(&raw);
	buf_free(&text);
	return -EINVAL;
}

/* ---- words ---- */

static const struct word *find_word(const struct word *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, name) == 0)
			return &list[i];
	return NULL;
}

/* The word of a group in "abi.WORD" or "vN.WORD"; *ret_abi: N, or what "abi" says. */
static const char *group_of(const struct reader *r, const char *name, int *ret_abi)
{
	*ret_abi = r->out->abi;
	if (strncmp(name, "abi.", 4) == 0)
		return name + 4;
	if (name[0] != 'v' || name[1] < '1' || name[1] > '9')
		return NULL;
	*ret_abi = name[1] - '0';
	return name[2] == '.' ? name + 3 : NULL;
}

static int fs_right(struct reader *r, const char *place, const char *name, uint64_t *ret)
{
	int abi;
	const struct word *w = find_word(fs_words, ARRAY_LEN(fs_words), name);
	const char *group = w ? NULL : group_of(r, name, &abi);
	const struct word *g = group ? find_word(fs_groups, ARRAY_LEN(fs_groups), group) : NULL;
	if (w) {
		*ret |= w->rights;
		return 0;
	}
	if (!g)
		return fault(r, place,
			     "expected a right such as read_file or abi.read_write, not '%s'",
			     name);
	if (!abi)
		return fault(r, place, "'%s' needs \"abi\" at the top", name);
	*ret |= g->rights & llright_supported(abi);
	return 0;
}

static int other_word(struct reader *r, const char *place, const char *name,
		      const struct word *list, size_t n)
{
	int abi;
	const char *group = group_of(r, name, &abi);
	if (find_word(list, n, name) || (group && strcmp(group, "all") == 0))
		return 0;
	return fault(r, place, "'%s' is no word of landlockconfig's schema", name);
}

/* ---- arrays ---- */

/* An array with at least one element. */
static int check_array(struct reader *r, const char *place, const struct json *v)
{
	if (!json_is_array(v) || !json_len(v))
		return fault(r, place, "expected an array with something in it");
	return 0;
}

static const char *place_of(char room[PLACE_MAX], const char *place, size_t i)
{
	snprintf(room, PLACE_MAX, "%.100s[%zu]", place, i);
	return room;
}

static int check_string(struct reader *r, const char *place, const struct json *v)
{
	return json_str(v) ? 0 : fault(r, place, "expected a string");
}

static int read_fs(struct reader *r, const char *place, const struct json *v, uint64_t *ret)
{
	char room[PLACE_MAX];
	size_t i = 0;
	int err = check_array(r, place, v);
	for (const struct json *e = err ? NULL : json_first(v); !err && e; e = json_next(e), i++) {
		err = check_string(r, place_of(room, place, i), e);
		if (!err)
			err = fs_right(r, room, json_str(e), ret);
	}
	return err;
}

static int read_others(struct reader *r, const char *place, const struct json *v,
		       const struct word *list, size_t n)
{
	char room[PLACE_MAX];
	size_t i = 0;
	int err = check_array(r, place, v);
	for (const struct json *e = err ? NULL : json_first(v); !err && e; e = json_next(e), i++) {
		err = check_string(r, place_of(room, place, i), e);
		if (!err)
			err = other_word(r, room, json_str(e), list, n);
	}
	return err;
}

/* An object with these members alone (NULL-terminated), none of them twice. */
static int check_members(struct reader *r, const char *place, const struct json *v,
			 const char *const *names)
{
	if (!json_is_object(v))
		return fault(r, place, "expected an object");
	for (const struct json *m = json_first(v); m; m = json_next(m)) {
		size_t i = 0;
		while (names[i] && strcmp(names[i], json_key(m)) != 0)
			i++;
		if (!names[i])
			return fault(r, place, "'%s' is no member of landlockconfig's schema",
				     json_key(m));
		if (json_get(v, names[i]) != m)
			return fault(r, place, "'%s' is there twice", json_key(m));
	}
	return 0;
}

/* ---- variables and paths ---- */

static bool is_variable_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool letter = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z');
		bool later = (s[i] >= '0' && s[i] <= '9') || s[i] == '_';
		if (!letter && !(i && later))
			return false;
	}
	return n > 0;
}

static int check_variable(struct reader *r, const char *place, const struct json *v)
{
	static const char *const names[] = {"name", "literal", NULL};
	char room[PLACE_MAX];
	size_t i = 0;
	int err = check_members(r, place, v, names);
	const char *name = json_get_str(v, "name");
	const struct json *literal = json_get(v, "literal");
	if (!err && (!name || !is_variable_name(name, strlen(name))))
		err = fault(r, place, "expected \"name\": letters, digits and _");
	if (!err && literal)
		err = check_array(r, place, literal);
	for (const struct json *e = err ? NULL : json_first(literal); !err && e;
	     e = json_next(e), i++)
		err = check_string(r, place_of(room, place, i), e);
	return err;
}

static int check_variables(struct reader *r, const struct json *v)
{
	char room[PLACE_MAX];
	size_t i = 0;
	if (!v)
		return 0;
	int err = check_array(r, "variable", v);
	if (!err && json_len(v) > VARIABLES_MAX)
		err = fault(r, "variable", "expected at most %d", VARIABLES_MAX);
	for (const struct json *e = err ? NULL : json_first(v); !err && e; e = json_next(e), i++)
		err = check_variable(r, place_of(room, "variable", i), e);
	r->variables = v;
	return err;
}

static int add_rule(struct reader *r, const char *place, const char *path, uint64_t rights)
{
	struct landlockconfig *c = r->out;
	if (c->len == LANDLOCKCONFIG_RULES_MAX)
		return fault(r, place, "expected at most %d paths in all",
			     LANDLOCKCONFIG_RULES_MAX);
	if (!path[0])
		return fault(r, place, "expected a path, not an empty string");
	if ((c->len & (c->len - 1)) == 0) {
		size_t cap = c->len ? c->len * 2 : 1;
		struct landlockconfig_rule *more = reallocarray(c->rule, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->rule = more;
	}
	c->rule[c->len] = (struct landlockconfig_rule){strdup(path), rights};
	return c->rule[c->len].path ? (c->len++, 0) : -ENOMEM;
}

/* A path while its variables are filled in, from the left. */
struct template
{
	struct buf done;
	uint64_t rights;
	const char *place;
	unsigned depth;
};

#define TEMPLATE_DEPTH_MAX 16

static void cut(struct buf *b, size_t len)
{
	if (b->failed || b->len == len)
		return;
	b->len = len;
	b->data[len] = '\0';
}

static int fill(struct reader *r, struct template *t, const char *rest);

/* Every literal of every variable of this name, each with all that follows. */
static int fill_variable(struct reader *r, struct template *t, const char *name, size_t n,
			 const char *rest)
{
	bool known = false;
	int err = 0;
	size_t before = t->done.len;
	for (const struct json *v = json_first(r->variables); !err && v; v = json_next(v)) {
		const char *is = json_get_str(v, "name");
		if (strlen(is) != n || memcmp(is, name, n) != 0)
			continue;
		known = true;
		const struct json *values = json_get(v, "literal");
		for (const struct json *l = json_first(values); !err && l; l = json_next(l)) {
			buf_add_str(&t->done, json_str(l));
			err = t->done.failed ? -ENOMEM : fill(r, t, rest);
			cut(&t->done, before);
		}
	}
	return err || known ? err : fault(r, t->place, "there is no variable '%.*s'", (int)n, name);
}

/* $$ is a dollar, ${name} a variable, a $ before anything else itself. */
static int fill(struct reader *r, struct template *t, const char *rest)
{
	size_t before = t->done.len;
	if (++r->steps > LANDLOCKCONFIG_RULES_MAX * 2)
		return fault(r, t->place, "expected at most %d paths in all",
			     LANDLOCKCONFIG_RULES_MAX);
	if (t->depth == TEMPLATE_DEPTH_MAX)
		return fault(r, t->place, "expected at most %d variables in a path",
			     TEMPLATE_DEPTH_MAX);
	for (;;) {
		size_t n = strcspn(rest, "$");
		buf_add(&t->done, rest, n);
		rest += n;
		if (!*rest || rest[1] == '{')
			break;
		buf_add_char(&t->done, '$');
		rest += rest[1] == '$' ? 2 : 1;
	}
	int err = buf_error(&t->done);
	if (!err && !*rest) {
		err = add_rule(r, t->place, buf_str(&t->done), t->rights);
	} else if (!err) {
		const char *name = rest + 2, *end = strchr(name, '}');
		t->depth++;
		err = !end || !is_variable_name(name, (size_t)(end - name))
			      ? fault(r, t->place, "expected a variable such as ${name}")
			      : fill_variable(r, t, name, (size_t)(end - name), end + 1);
		t->depth--;
	}
	cut(&t->done, before);
	return err;
}

static int read_path(struct reader *r, const char *place, const char *text, uint64_t rights)
{
	struct template t = {.rights = rights, .place = place};
	int err = fill(r, &t, text);
	buf_free(&t.done);
	return err;
}

/* ---- the members ---- */

static int read_beneath(struct reader *r, const char *place, const struct json *v)
{
	static const char *const names[] = {"allowedAccess", "parent", NULL};
	char room[PLACE_MAX], where[PLACE_MAX];
	uint64_t rights = 0;
	size_t i = 0;
	int err = check_members(r, place, v, names);
	if (!err) {
		snprintf(room, sizeof room, "%.90s.allowedAccess", place);
		err = read_fs(r, room, json_get(v, "allowedAccess"), &rights);
	}
	snprintf(room, sizeof room, "%.90s.parent", place);
	const struct json *parents = json_get(v, "parent");
	if (!err)
		err = check_array(r, room, parents);
	for (const struct json *e = err ? NULL : json_first(parents); !err && e;
	     e = json_next(e), i++) {
		err = check_string(r, place_of(where, room, i), e);
		if (!err)
			err = read_path(r, where, json_str(e), rights);
	}
	r->out->handled |= rights; /* what is used is handled */
	return err;
}

static int read_ruleset(struct reader *r, const char *place, const struct json *v)
{
	static const char *const names[] = {"handledAccessFs", "handledAccessNet", "scoped", NULL};
	char room[PLACE_MAX];
	int err = check_members(r, place, v, names);
	const struct json *fs = json_get(v, "handledAccessFs"), *scoped = json_get(v, "scoped");
	const struct json *net = json_get(v, "handledAccessNet");
	if (!err && !fs && !net && !scoped)
		err = fault(r, place, "expected handledAccessFs, handledAccessNet or scoped");
	snprintf(room, sizeof room, "%.90s.handledAccessFs", place);
	if (!err && fs)
		err = read_fs(r, room, fs, &r->out->handled);
	snprintf(room, sizeof room, "%.90s.handledAccessNet", place);
	if (!err && net)
		err = read_others(r, room, net, net_words, ARRAY_LEN(net_words));
	snprintf(room, sizeof room, "%.90s.scoped", place);
	if (!err && scoped)
		err = read_others(r, room, scoped, scope_words, ARRAY_LEN(scope_words));
	r->out->net |= net != NULL;
	r->out->scoped |= scoped != NULL;
	return err;
}

static int read_port(struct reader *r, const char *place, const struct json *v)
{
	static const char *const names[] = {"allowedAccess", "port", NULL};
	char room[PLACE_MAX], where[PLACE_MAX];
	int64_t port;
	size_t i = 0;
	int err = check_members(r, place, v, names);
	snprintf(room, sizeof room, "%.90s.allowedAccess", place);
	if (!err)
		err = read_others(r, room, json_get(v, "allowedAccess"), net_words,
				  ARRAY_LEN(net_words));
	snprintf(room, sizeof room, "%.90s.port", place);
	const struct json *ports = json_get(v, "port");
	if (!err)
		err = check_array(r, room, ports);
	for (const struct json *e = err ? NULL : json_first(ports); !err && e;
	     e = json_next(e), i++)
		if (!json_int(e, &port) || port < 0)
			err = fault(r, place_of(where, room, i), "expected a port's number");
	r->out->net = true;
	return err;
}

static int read_each(struct reader *r, const struct json *root, const char *key,
		     int (*read)(struct reader *, const char *, const struct json *))
{
	char room[PLACE_MAX];
	const struct json *v = json_get(root, key);
	size_t i = 0;
	int err = v ? check_array(r, key, v) : 0;
	for (const struct json *e = err ? NULL : json_first(v); !err && e; e = json_next(e), i++)
		err = read(r, place_of(room, key, i), e);
	return err;
}

static int read_abi(struct reader *r, const struct json *v)
{
	int64_t n;
	if (!v)
		return 0;
	if (!json_int(v, &n) || n < 1 || n > INT32_MAX)
		return fault(r, "abi", "expected a number from 1");
	r->out->abi = n > LLRIGHT_ABI_MAX ? LLRIGHT_ABI_MAX : (int)n;
	return 0;
}

static int read_root(struct reader *r, const struct json *root)
{
	static const char *const names[] = {"abi",	   "variable", "ruleset",
					    "pathBeneath", "netPort",  NULL};
	int err = check_members(r, "", root, names);
	if (!err && !json_get(root, "variable") && !json_get(root, "ruleset") &&
	    !json_get(root, "pathBeneath") && !json_get(root, "netPort"))
		err = fault(r, "", "expected variable, ruleset, pathBeneath or netPort");
	if (!err)
		err = read_abi(r, json_get(root, "abi"));
	if (!err)
		err = check_variables(r, json_get(root, "variable"));
	if (!err)
		err = read_each(r, root, "ruleset", read_ruleset);
	if (!err)
		err = read_each(r, root, "pathBeneath", read_beneath);
	return err ? err : read_each(r, root, "netPort", read_port);
}

/* ---- the text ---- */

static int syntax_fault(struct reader *r, const char *text, size_t at)
{
	size_t line = 1, column = 1;
	for (size_t i = 0; i < at; i++) {
		column = text[i] == '\n' ? 1 : column + 1;
		line += text[i] == '\n';
	}
	char place[PLACE_MAX];
	snprintf(place, sizeof place, "%zu:%zu", line, column);
	return fault(r, place, "expected JSON");
}

int landlockconfig_parse(const char *name, const char *text, size_t n, struct landlockconfig *ret,
			 struct policy_error *ret_error)
{
	struct landlockconfig c = {0};
	struct reader r = {.name = name, .out = &c, .error = ret_error};
	struct json *root = NULL;
	size_t at = 0;
	ret_error->text[0] = '\0';
	/* A string that ends early would be another path than the one that was written. */
	const char *nul = memmem(text, n, "\\u0000", 6);
	int err = nul ? -EINVAL : json_parse(text, n, &root, &at);
	if (nul)
		fault(&r, "", "expected no NUL (\\u0000) in a string");
	else if (err == -EINVAL)
		err = syntax_fault(&r, text, at < n ? at : n);
	else if (!err)
		err = read_root(&r, root);
	json_free(root);
	if (err) {
		landlockconfig_release(&c);
		return err;
	}
	*ret = c;
	return 0;
}

void landlockconfig_release(struct landlockconfig *c)
{
	for (size_t i = 0; i < c->len; i++)
		free(c->rule[i].path);
	free(c->rule);
	*c = (struct landlockconfig){0};
}

bool landlockconfig_is(const char *text, size_t n)
{
	size_t i = 0;
	while (i < n && strchr(" \t\r\n", text[i]))
		i++;
	return i < n && text[i] == '{';
}

/* ---- writing ---- */

uint64_t landlockconfig_rights(void)
{
	uint64_t all = 0;
	for (size_t i = 0; i < ARRAY_LEN(fs_words); i++)
		all |= fs_words[i].rights;
	return all;
}

static void write_rights(struct jsonw *w, const char *key, uint64_t rights)
{
	jsonw_key(w, key);
	jsonw_begin_array(w);
	for (size_t i = 0; i < ARRAY_LEN(fs_words); i++)
		if (fs_words[i].rights & rights)
			jsonw_str(w, fs_words[i].name);
	jsonw_end_array(w);
}

static void write_path(struct jsonw *w, const char *path)
{
	struct buf b = {0};
	for (; *path; path++)
		buf_add_str(&b, *path == '$' ? "$$" : (char[]){*path, '\0'});
	jsonw_bytes(w, buf_str(&b), b.len);
	w->out->failed |= b.failed;
	buf_free(&b);
}

/* All rules with these rights, as one. */
static void write_group(struct jsonw *w, const struct landlockconfig_rule *rule, size_t n,
			uint64_t rights)
{
	jsonw_begin_object(w);
	write_rights(w, "allowedAccess", rights);
	jsonw_key(w, "parent");
	jsonw_begin_array(w);
	for (size_t i = 0; i < n; i++)
		if (rule[i].rights == rights)
			write_path(w, rule[i].path);
	jsonw_end_array(w);
	jsonw_end_object(w);
}

static void write_ruleset(struct jsonw *w)
{
	jsonw_key(w, "ruleset");
	jsonw_begin_array(w);
	jsonw_begin_object(w);
	write_rights(w, "handledAccessFs", landlockconfig_rights());
	jsonw_key(w, "scoped");
	jsonw_begin_array(w);
	for (size_t i = 0; i < ARRAY_LEN(scope_words); i++)
		jsonw_str(w, scope_words[i].name);
	jsonw_end_array(w);
	jsonw_end_object(w);
	jsonw_end_array(w);
}

void landlockconfig_write(const struct landlockconfig_rule *rule, size_t n, struct buf *out)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	write_ruleset(&w);
	for (size_t i = 0; i < n; i++) {
		bool seen = false;
		for (size_t k = 0; k < i && !seen; k++)
			seen = rule[k].rights == rule[i].rights;
		if (!i) {
			jsonw_key(&w, "pathBeneath");
			jsonw_begin_array(&w);
		}
		if (!seen)
			write_group(&w, rule, n, rule[i].rights);
	}
	if (n)
		jsonw_end_array(&w);
	jsonw_end_object(&w);
	buf_add_char(out, '\n');
}
