#include "agent/provider_error.h"

#include "supervisor/redact.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define MESSAGE_MAX 300 /* bytes of the server's own words in a sentence */
#define SECRET_MIN  6	/* bytes; what is shorter is a placeholder, and part of many words */

struct words {
	enum error_where where;
	int from, to;
	const char *has;
	enum provider_error_kind kind;
	bool retryable;
	const char *sentence;
};

static const struct words table[] = {
#define WORDS(where_, from_, to_, has_, kind_, retryable_, sentence_)                              \
	{.where = ERROR_AT_##where_,                                                               \
	 .from = (from_),                                                                          \
	 .to = (to_),                                                                              \
	 .has = (has_),                                                                            \
	 .kind = PROVIDER_FAIL_##kind_,                                                            \
	 .retryable = (retryable_),                                                                \
	 .sentence = (sentence_)},
#include "agent/provider_errors.def"
#undef WORDS
};

/* What the server says of it: its message and code, copied out of the body. */
struct said {
	char message[MESSAGE_MAX + 1];
	char code[128];
};

static void copy(char *ret, size_t size, const char *s)
{
	snprintf(ret, size, "%s", s ? s : "");
}

/* {"error":{"message","code"}}, {"error":"…"}, {"message":"…"}, {"detail":"…"}, or plain text. */
static void read_said(const struct error_facts *f, struct said *ret)
{
	struct json *root = NULL;
	*ret = (struct said){0};
	if (!f->body_len)
		return;
	if (json_parse(f->body, f->body_len, &root, NULL) || !json_is_object(root)) {
		size_t skip = strspn(f->body, " \t\r\n");
		snprintf(ret->message, sizeof(ret->message), "%.*s",
			 (int)strcspn(f->body + skip, "\r\n"), f->body + skip);
		json_free(root);
		return;
	}
	const struct json *error = json_get(root, "error");
	const struct json *in = json_is_object(error) ? error : root;
	const char *message = json_is_string(error) ? json_str(error) : json_get_str(in, "message");
	copy(ret->message, sizeof(ret->message), message ? message : json_get_str(in, "detail"));
	const char *code = json_get_str(in, "code");
	copy(ret->code, sizeof(ret->code), code ? code : json_get_str(in, "type"));
	json_free(root);
}

static bool fits(const struct words *w, const struct error_facts *f, const struct said *said)
{
	int status = f->response->status;
	if (w->where != f->where && w->where != ERROR_AT_ANY)
		return false;
	if (status < w->from || status > w->to)
		return false;
	return !*w->has || strcasestr(said->code, w->has) || strcasestr(said->message, w->has);
}

static const struct words *find_words(const struct error_facts *f, const struct said *said)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (fits(&table[i], f, said))
			return &table[i];
	BUG(true); /* the last row fits everything */
	return NULL;
}

static void fill_in(struct buf *out, const char *sentence, const struct error_facts *f)
{
	const struct {
		const char *name, *value, *otherwise;
	} holes[] = {
		{"{model}", f->model, "asked for"},
		{"{url}", f->url, "such URL"},
		{"{source}", f->source, "the configuration"},
		{"{location}", f->response->location, "elsewhere"},
	};
	while (*sentence) {
		size_t i = 0;
		while (i < ARRAY_LEN(holes) &&
		       strncmp(sentence, holes[i].name, strlen(holes[i].name)) != 0)
			i++;
		if (i == ARRAY_LEN(holes)) {
			buf_add_char(out, *sentence++);
			continue;
		}
		bool known = holes[i].value && *holes[i].value;
		buf_add_str(out, known ? holes[i].value : holes[i].otherwise);
		sentence += strlen(holes[i].name);
	}
}

/* Everything but the kind. */
static void fill_facts(const struct error_facts *f, struct provider_error *ret)
{
	const struct http_response *r = f->response;
	const char *id = r->request_id[0] ? r->request_id : f->request_id;
	*ret = (struct provider_error){.status = r->status, .retry_after_s = r->retry_after_s};
	copy(ret->request_id, sizeof(ret->request_id), id);
}

/* The sentence, what the server says, the status and the request id. */
static void fill_text(struct provider_error *ret, const char *sentence, const char *said)
{
	struct buf text = {0};
	buf_add_str(&text, sentence);
	if (said && *said) {
		buf_add_str(&text, "; the server says: ");
		redact_add(&text, said); /* a token that it echoes need not be one of ours */
	}
	if (ret->status && ret->request_id[0])
		buf_addf(&text, " (HTTP %d, request id %s)", ret->status, ret->request_id);
	else if (ret->status)
		buf_addf(&text, " (HTTP %d)", ret->status);
	else if (ret->request_id[0])
		buf_addf(&text, " (request id %s)", ret->request_id);
	copy(ret->text, sizeof(ret->text), buf_str(&text));
	error_hide_userinfo(ret->text);
	buf_free(&text);
}

int error_from_status(const struct error_facts *f, struct provider_error *ret)
{
	struct said said;
	struct buf sentence = {0};
	read_said(f, &said);
	const struct words *w = find_words(f, &said);
	fill_facts(f, ret);
	ret->kind = w->kind;
	ret->retryable = w->retryable;
	fill_in(&sentence, w->sentence, f);
	fill_text(ret, buf_str(&sentence), said.message[0] ? said.message : said.code);
	buf_free(&sentence);
	return -EIO;
}

int error_from_http(const struct error_facts *f, int err, struct provider_error *ret)
{
	fill_facts(f, ret);
	ret->kind = PROVIDER_FAIL_TRANSPORT;
	ret->retryable = f->response->transient;
	if (err == -ECANCELED)
		ret->kind = PROVIDER_FAIL_CANCELLED;
	else if (err == -ENOMEM)
		ret->kind = PROVIDER_FAIL_INTERNAL;
	else if (err == -EINVAL)
		ret->kind = PROVIDER_FAIL_CONFIG;
	else if (err == -EFBIG)
		ret->kind = PROVIDER_FAIL_PROTOCOL;
	if (ret->kind == PROVIDER_FAIL_CANCELLED)
		ret->request_id[0] = '\0';
	ret->status = 0; /* is no part of what happened */
	fill_text(ret, f->response->error, NULL);
	ret->status = f->response->status;
	return err == -ECANCELED || err == -ENOMEM ? err : -EIO;
}

int error_from_answer(const struct error_facts *f, enum provider_error_kind kind, bool retryable,
		      const char *what, struct provider_error *ret)
{
	fill_facts(f, ret);
	ret->kind = kind;
	ret->retryable = retryable;
	fill_text(ret, what, NULL);
	return -EIO;
}

void error_redact(char *text, const char *secret)
{
	size_t n = secret ? strlen(secret) : 0;
	if (n < SECRET_MIN)
		return;
	for (char *at = text; (at = strstr(at, secret)); at += n)
		memset(at, '*', n);
}

void error_hide_userinfo(char *text)
{
	for (char *at = text; (at = strstr(at, "://"));) {
		at += 3;
		size_t n = strcspn(at, "/?# \t\"'<>");
		char *end = memrchr(at, '@', n);
		if (end)
			memset(at, '*', (size_t)(end - at));
	}
}

const char *error_short(const struct provider_error *e)
{
	if (e->kind == PROVIDER_FAIL_RATE)
		return "too many requests";
	if (e->kind == PROVIDER_FAIL_TRANSPORT)
		return e->status ? "the answer broke off" : "no connection";
	return "the server failed";
}
