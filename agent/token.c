#include "agent/token.h"

#include "agent/ghtoken.h"
#include "tracer/buf.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

void token_free(struct token *t)
{
	if (t->value)
		explicit_bzero(t->value, strlen(t->value));
	free(t->value);
	free(t->source);
	github_release(&t->github);
	*t = (struct token){0};
}

enum token_kind token_kind(const char *value)
{
	static const struct {
		const char *prefix;
		enum token_kind kind;
	} table[] = {
		{"ghu_", TOKEN_USER_APP},
		{"gho_", TOKEN_OAUTH},
		{"github_pat_", TOKEN_FINE},
		{"ghp_", TOKEN_CLASSIC},
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (!strncmp(value, table[i].prefix, strlen(table[i].prefix)))
			return table[i].kind;
	return TOKEN_OTHER;
}

/* Fill *ret from text, without the space around it. -EINVAL: no token's characters. */
static int take(struct token *ret, const char *source, const char *text)
{
	static const char space[] = " \t\r\n";
	text += strspn(text, space);
	size_t n = strcspn(text, space);
	ret->source = strdup(source);
	if (!ret->source)
		return -ENOMEM;
	if (!n || text[n + strspn(text + n, space)])
		return -EINVAL;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
			return -EINVAL;
	ret->value = strndup(text, n);
	if (ret->value)
		return 0;
	token_free(ret);
	return -ENOMEM;
}

/* What we keep, -ENOENT: there is none. */
static int read_ours(const char *path, struct buf *ret)
{
	int err = ownfile_read(path, ret);
	return err == -ENOTDIR ? -ENOENT : err;
}

/* What another program keeps, maybe behind a symlink. -ENOENT: not there. */
static int read_theirs(const char *path, struct buf *ret)
{
	struct stat st;
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	if (fstat(fd, &st))
		return -errno;
	return S_ISREG(st.st_mode) ? buf_read_from(fd, ret) : -EINVAL;
}

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->len);
	buf_free(b);
}

/* Reading failed: the caller is told which file, where that is its fault. */
static int unreadable(struct token *ret, const char *path, int err)
{
	if (err != -ENOENT && err != -ENOMEM)
		ret->source = strdup(path);
	return err;
}

/* {"token", "host", "web", "api"}, as token_store() writes it. */
static int read_stored(const struct json *root, const char *path, const char *host,
		       struct token *ret)
{
	struct github g = {0};
	const char *value = json_get_str(root, "token");
	const char *whose = json_get_str(root, "host");
	int err = value ? take(ret, path, value) : -EINVAL;
	if (!err)
		err = github_make(whose, json_get_str(root, "web"), json_get_str(root, "api"), &g);
	if (!err && host && strcasecmp(host, g.host) != 0)
		err = -ENOENT; /* another server must not see it */
	if (!err) {
		ret->github = g;
		return 0;
	}
	github_release(&g);
	token_free(ret);
	if (err == -EINVAL)
		ret->source = strdup(path);
	return err;
}

static int from_stored(const char *path, const char *host, struct token *ret)
{
	struct buf text = {.max = TOKEN_FILE_MAX};
	struct json *root = NULL;
	int err = read_ours(path, &text);
	if (!err && json_parse(buf_str(&text), text.len, &root, NULL))
		err = -EINVAL;
	err = err ? unreadable(ret, path, err) : read_stored(root, path, host, ret);
	json_free(root);
	wipe(&text);
	return err;
}

static int from_gh(const struct token_sources *from, const char *host, struct token *ret)
{
	char *value = NULL;
	int err = ghtoken_ask(from->gh_path, host, from->gh_env, &value);
	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	/* gh may have been given a classic one, which never works with Copilot. */
	err = token_kind(value) == TOKEN_CLASSIC ? -ENOENT : take(ret, "gh auth token", value);
	explicit_bzero(value, strlen(value));
	free(value);
	return err;
}

/* {"HOST[:APP]": {"oauth_token": "..."}, ...}; one that is exchanged goes first. */
static const char *editors_token(const struct json *root, const char *host)
{
	size_t n = strlen(host);
	const char *best = NULL;
	for (const struct json *v = json_first(root); v; v = json_next(v)) {
		const char *key = json_key(v);
		const char *token = json_get_str(v, "oauth_token");
		if (!key || !token || strncasecmp(key, host, n) != 0 || (key[n] && key[n] != ':'))
			continue;
		if (token_kind(token) == TOKEN_USER_APP)
			return token;
		if (!best)
			best = token;
	}
	return best;
}

static int from_editors(const char *dir, const char *name, const char *host, struct token *ret)
{
	char *path AUTOFREE = NULL;
	struct buf text = {.max = TOKEN_FILE_MAX};
	struct json *root = NULL;
	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	int err = read_theirs(path, &text);
	if (!err && json_parse(buf_str(&text), text.len, &root, NULL))
		err = -EINVAL;
	const char *token = err ? NULL : editors_token(root, host);
	if (err)
		err = unreadable(ret, path, err);
	else
		err = token ? take(ret, path, token) : -ENOENT;
	json_free(root);
	wipe(&text);
	return err;
}

static const char *const variables[TOKEN_VARIABLES] = {"COPILOT_GITHUB_TOKEN", "GH_TOKEN",
						       "GITHUB_TOKEN"};

static int from_variables(char *const *values, bool classic, struct token *ret)
{
	for (size_t i = 0; i < TOKEN_VARIABLES; i++)
		if (values[i] && *values[i] && (token_kind(values[i]) == TOKEN_CLASSIC) == classic)
			return take(ret, variables[i], values[i]);
	return -ENOENT;
}

int token_find(const struct token_sources *from, struct token *ret)
{
	static const char *const editors[] = {"apps.json", "hosts.json"};
	const char *host = from->host ? from->host : GITHUB_HOST;
	*ret = (struct token){0};
	int err = from_variables(from->values, false, ret);
	if (err == -ENOENT && from->stored_path)
		err = from_stored(from->stored_path, from->host, ret);
	if (err == -ENOENT && from->gh_path)
		err = from_gh(from, host, ret);
	for (size_t i = 0; err == -ENOENT && from->editors_dir && i < ARRAY_LEN(editors); i++)
		err = from_editors(from->editors_dir, editors[i], host, ret);
	return err == -ENOENT ? from_variables(from->values, true, ret) : err;
}

/* ---- our own store ---- */

/* A new file beside path, which only we can read from its first moment on. */
static int replace(const char *path, const struct buf *text)
{
	char *fresh AUTOFREE = NULL;
	if (asprintf(&fresh, "%s.%ld", path, (long)getpid()) < 0)
		return -ENOMEM;
	unlink(fresh); /* of a process that died here */
	int fd = ownfile_open(fresh, O_WRONLY | O_CREAT | O_EXCL);
	if (fd < 0)
		return fd;
	int err = fchmod(fd, 0600) ? -errno : buf_write_to(fd, text->data, text->len);
	if (!err && fsync(fd))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && rename(fresh, path))
		err = -errno;
	if (err)
		unlink(fresh);
	return err;
}

int token_store(const char *path, const struct github *github, const char *value)
{
	struct buf text = {0};
	struct jsonw w;
	jsonw_init(&w, &text);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "host", github->host);
	jsonw_kstr(&w, "web", github->web);
	jsonw_kstr(&w, "api", github->api);
	jsonw_kstr(&w, "token", value);
	jsonw_end_object(&w);
	buf_add_char(&text, '\n');
	int err = buf_error(&text);
	if (!err)
		err = replace(path, &text);
	wipe(&text);
	return err;
}

int token_forget(const char *path)
{
	return unlink(path) ? -errno : 0;
}
