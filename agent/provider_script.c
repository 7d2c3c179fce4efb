#include "agent/provider.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define SCRIPT_MAX (16u << 20) /* bytes */

struct script {
	struct provider base;
	char *name;
	struct convo_message *messages; /* those not taken yet are whole */
	size_t n;
	size_t next;
};

static struct script *self(struct provider *p)
{
	return (struct script *)(void *)p;
}

static int turn(struct provider *p, const struct provider_request *req,
		const struct provider_sink *sink, struct convo_message *ret_message,
		struct provider_error *ret_error)
{
	struct script *s = self(p);
	if (req->cancel && *req->cancel)
		return provider_fail(ret_error, PROVIDER_FAIL_CANCELLED, -ECANCELED, "cancelled");
	if (s->next == s->n)
		return provider_fail(
			ret_error, PROVIDER_FAIL_END, -EIO,
			"%s has no more answers (%zu were given): start again, or with a "
			"longer --script FILE",
			s->name, s->n);
	struct convo_message *m = &s->messages[s->next++];
	if (sink->on_text && *m->text)
		sink->on_text(sink->arg, m->text, strlen(m->text));
	*ret_message = *m;
	*m = (struct convo_message){0};
	return 0;
}

static int models(struct provider *p, const volatile sig_atomic_t *cancel,
		  struct provider_models *ret, struct provider_error *ret_error)
{
	(void)p;
	(void)cancel;
	struct provider_models list = {.items = calloc(1, sizeof(*list.items)), .n = 1};
	if (list.items) {
		list.items[0] = (struct provider_model){
			.id = strdup("script"),
			.name = strdup("script"),
			.usable = true,
			.preferred = true,
			.context = -1,
		};
		if (list.items[0].id && list.items[0].name) {
			*ret = list;
			return 0;
		}
		provider_models_free(&list);
	}
	return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM, "not enough memory");
}

static void script_free(struct provider *p)
{
	struct script *s = self(p);
	for (size_t i = 0; i < s->n; i++)
		convo_message_free(&s->messages[i]);
	free(s->messages);
	free(s->name);
	free(s);
}

static const struct provider_ops ops = {
	.name = "script",
	.turn = turn,
	.models = models,
	.free = script_free,
};

static int add_line(struct script *s, const char *line, size_t n, size_t number,
		    struct provider_error *ret_error)
{
	struct json *v = NULL;
	struct convo_message m = {0};
	size_t column = 0;
	const char *why = "expected one JSON object on the line";
	struct convo_message *more = realloc(s->messages, (s->n + 1) * sizeof(*more));
	if (!more)
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				     "not enough memory");
	s->messages = more;
	int err = json_parse(line, n, &v, &column);
	if (!err) {
		column = 0;
		err = convo_read_assistant(v, &m, &why);
	}
	json_free(v);
	if (err)
		return provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO, "%s:%zu:%zu: %s",
				     s->name, number, column + 1, why);
	s->messages[s->n++] = m;
	return 0;
}

static int add_lines(struct script *s, const char *text, struct provider_error *ret_error)
{
	size_t number = 1;
	int err = 0;
	for (const char *line = text; *line && !err; number++) {
		size_t n = strcspn(line, "\n");
		if (strspn(line, " \t\r") < n)
			err = add_line(s, line, n, number, ret_error);
		line += n;
		if (*line)
			line++;
	}
	return err;
}

int provider_script_open_text(const char *name, const char *text, struct provider **ret,
			      struct provider_error *ret_error)
{
	struct script *s = calloc(1, sizeof(*s));
	if (!s || !(s->name = strdup(name))) {
		free(s);
		return provider_fail(ret_error, PROVIDER_FAIL_INTERNAL, -ENOMEM,
				     "not enough memory");
	}
	s->base.ops = &ops;
	int err = add_lines(s, text, ret_error);
	if (!err && !s->n)
		err = provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				    "%s:1:1: expected an assistant message, found nothing", name);
	if (err)
		script_free(&s->base);
	else
		*ret = &s->base;
	return err;
}

int provider_script_open(const char *path, struct provider **ret, struct provider_error *ret_error)
{
	struct buf text = {.max = SCRIPT_MAX};
	int fd AUTOCLOSE = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int err = fd < 0 ? -errno : buf_read_from(fd, &text);
	const char *nul = err ? NULL : memchr(buf_str(&text), '\0', text.len);
	if (err)
		err = provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				    "the script %s can't be read: %s", path, strerror(-err));
	else if (nul)
		err = provider_fail(ret_error, PROVIDER_FAIL_CONFIG, -EIO,
				    "%s: a NUL byte in it: expected lines of JSON", path);
	else
		err = provider_script_open_text(path, buf_str(&text), ret, ret_error);
	buf_free(&text);
	return err;
}
