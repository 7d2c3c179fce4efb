#include "agent/chatlog.h"

#include "agent/chatlist.h"
#include "agent/turn.h"
#include "supervisor/escape.h"
#include "supervisor/timestamp.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

/* ---- writing ---- */

static void begin_line(struct jsonw *w, struct buf *line)
{
	char now[TIMESTAMP_LEN];
	*line = (struct buf){.max = CHATLOG_MAX};
	jsonw_init(w, line);
	jsonw_begin_object(w);
	jsonw_kstr(w, "t", timestamp_now(now));
}

/* One write() for all of it: a crash leaves whole lines, or the beginning of the last one. */
static void put_line(struct chatlog *l, struct jsonw *w)
{
	struct buf text = {.max = CHATLOG_MAX};
	jsonw_end_object(w);
	escape_add_json(&text, buf_str(w->out), w->out->len);
	buf_add_char(&text, '\n');
	int err = buf_error(w->out) ? buf_error(w->out) : buf_error(&text);
	for (size_t at = 0; !err && !l->error && at < text.len;) {
		ssize_t n = write(l->fd, text.data + at, text.len - at);
		if (n < 0 && errno != EINTR)
			err = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	if (err && !l->error)
		l->error = err;
	buf_free(w->out);
	buf_free(&text);
}

static void put_message(struct chatlog *l, const struct convo_message *m)
{
	struct buf line;
	struct jsonw w;
	begin_line(&w, &line);
	jsonw_key(&w, "message");
	convo_write_message(&w, m);
	put_line(l, &w);
}

static void put_head(struct chatlog *l)
{
	char now[TIMESTAMP_LEN];
	struct buf line = {0};
	struct jsonw w;
	jsonw_init(&w, &line);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "warder_session", 1);
	jsonw_kstr(&w, "id", l->id);
	jsonw_kstr(&w, "started", timestamp_now(now));
	jsonw_kstr(&w, "version", WARDER_VERSION);
	jsonw_kpath(&w, "project", l->project);
	jsonw_kpath(&w, "cwd", l->cwd);
	jsonw_kstr(&w, "provider", l->provider);
	jsonw_kstr(&w, "model", l->model ? *l->model : NULL);
	put_line(l, &w);
}

/* "20261129-223155-1a2b": sorts by time, and its beginning is easily typed. */
static int make_id(char **ret)
{
	unsigned char random[2];
	char when[32] = "";
	struct tm tm;
	time_t now = time(NULL);
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	if (localtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
	return asprintf(ret, "%s-%02x%02x", when, random[0], random[1]) < 0 ? -ENOMEM : 0;
}

/* The file of this id, locked. -EWOULDBLOCK: another agent has it. */
static int open_file(const char *dir, const char *id, int flags, int *ret)
{
	AUTOFREE
	char *path = NULL;
	if (asprintf(&path, "%s/%s.jsonl", dir, id) < 0)
		return -ENOMEM;
	int fd AUTOCLOSE = ownfile_open(path, O_RDWR | O_APPEND | flags);
	if (fd < 0)
		return fd;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

static int create(struct chatlog *l)
{
	AUTOFREE
	char *id = NULL;
	if (mkdir(l->dir, 0700) && errno != EEXIST)
		return -errno;
	int err = make_id(&id);
	if (!err)
		err = open_file(l->dir, id, O_CREAT | O_EXCL, &l->fd);
	if (!err)
		l->id = TAKE_PTR(id);
	return err;
}

/* The session's file, with what was said before the user's first words (a system message). */
static void begin(struct chatlog *l)
{
	l->error = create(l);
	if (l->error)
		return;
	put_head(l);
	for (size_t i = 0; i + 1 < l->convo->n; i++)
		put_message(l, &l->convo->messages[i]);
}

static void on_added(void *arg, const struct convo_message *m)
{
	struct chatlog *l = arg;
	if (l->fd < 0 && m->role == CONVO_USER && !l->error)
		begin(l);
	if (l->fd >= 0)
		put_message(l, m);
}

static void on_truncated(void *arg, size_t n)
{
	struct chatlog *l = arg;
	struct buf line;
	struct jsonw w;
	if (l->fd < 0)
		return;
	begin_line(&w, &line);
	jsonw_kint(&w, "keep", (int64_t)n);
	put_line(l, &w);
}

static void put_tokens(struct jsonw *w, const char *key, int64_t n)
{
	if (n >= 0)
		jsonw_kint(w, key, n);
}

void chatlog_usage(struct chatlog *l, const struct provider_usage *u)
{
	struct buf line;
	struct jsonw w;
	if (l->fd < 0)
		return;
	begin_line(&w, &line);
	jsonw_key(&w, "usage");
	jsonw_begin_object(&w);
	put_tokens(&w, "prompt", u->prompt);
	put_tokens(&w, "cached", u->cached);
	put_tokens(&w, "completion", u->completion);
	jsonw_end_object(&w);
	put_line(l, &w);
}

/* ---- life ---- */

int chatlog_init(struct chatlog *l, const char *state_dir, struct convo *c)
{
	*l = (struct chatlog){.fd = -1, .convo = c};
	l->watch = (struct convo_watch){.arg = l, .added = on_added, .truncated = on_truncated};
	if (asprintf(&l->dir, "%s/sessions", state_dir) < 0) {
		l->dir = NULL;
		return -ENOMEM;
	}
	c->watch = &l->watch;
	return 0;
}

void chatlog_next(struct chatlog *l)
{
	if (l->fd >= 0)
		close(TAKE_FD(l->fd));
	free(TAKE_PTR(l->id));
	l->error = 0;
}

void chatlog_release(struct chatlog *l)
{
	if (!l->convo)
		return;
	chatlog_next(l);
	l->convo->watch = NULL;
	free(l->dir);
	*l = (struct chatlog){.fd = -1};
}

static void add_tokens(int64_t *sum, int64_t n)
{
	int64_t before = *sum > 0 ? *sum : 0;
	if (n >= 0)
		*sum = n > INT64_MAX - before ? INT64_MAX : before + n; /* a file says anything */
}

void chatlog_add_usage(struct provider_usage *u, const struct provider_usage *more)
{
	add_tokens(&u->prompt, more->prompt);
	add_tokens(&u->cached, more->cached);
	add_tokens(&u->completion, more->completion);
}

/* ---- reading back ---- */

struct reading {
	struct convo convo;
	struct provider_usage usage;
	unsigned turns;
};

static int take_usage(struct reading *r, const struct json *v)
{
	struct provider_usage u = {-1, -1, -1};
	json_get_int(v, "prompt", &u.prompt);
	json_get_int(v, "cached", &u.cached);
	json_get_int(v, "completion", &u.completion);
	chatlog_add_usage(&r->usage, &u);
	r->turns++;
	return 0;
}

static int take_line(struct reading *r, const struct json *v, const char **ret_why)
{
	int64_t keep;
	if (json_get(v, "message"))
		return convo_read_message(&r->convo, json_get(v, "message"), ret_why);
	if (json_get(v, "usage"))
		return take_usage(r, json_get(v, "usage"));
	if (!json_get_int(v, "keep", &keep))
		return 0; /* of a later version */
	*ret_why = "\"keep\": expected the number of messages that stay";
	if (keep < 0 || (size_t)keep > r->convo.n)
		return -EINVAL;
	convo_truncate(&r->convo, (size_t)keep);
	return 0;
}

/* As all that we write. Of other bytes two ids would be one when they are written again. */
static bool is_utf8(const char *line, size_t n)
{
	size_t len = 0;
	for (size_t at = 0; at < n; at += len)
		if (!(len = json_utf8_len(line + at, n - at)))
			return false;
	return true;
}

static int read_lines(struct reading *r, const char *id, const struct buf *text,
		      struct policy_error *e)
{
	size_t number = 1;
	for (size_t at = 0; at < text->len; number++) {
		const char *why = "expected one JSON object on the line";
		struct json *v = NULL;
		size_t n = strcspn(text->data + at, "\n"), column = 0;
		int err = is_utf8(text->data + at, n) ? json_parse(text->data + at, n, &v, &column)
						      : -EINVAL;
		int64_t version;
		if (!err && number == 1 &&
		    (!json_get_int(v, "warder_session", &version) || version != 1)) {
			err = -EINVAL;
			why = "expected the first line of a warder session";
		} else if (!err && number > 1)
			err = take_line(r, v, &why);
		json_free(v);
		if (err)
			return policyfile_fail(e, err, "the session %s can't be read: line %zu: %s",
					       id, number,
					       err == -ENOMEM ? "not enough memory" : why);
		at += n + 1;
	}
	return number > 1 ? 0 : policyfile_fail(e, -EINVAL, "the session %s is empty", id);
}

/* What a crash left of the last line is no message: it goes, in the file too. */
static int drop_torn_line(int fd, struct buf *text)
{
	const char *newline = text->len ? memrchr(text->data, '\n', text->len) : NULL;
	size_t whole = newline ? (size_t)(newline - text->data) + 1 : 0;
	if (whole == text->len)
		return 0;
	if (ftruncate(fd, (off_t)whole))
		return -errno;
	text->len = whole;
	text->data[whole] = 0;
	return 0;
}

/* Answers and words that never came, so that the next can follow. Written as any other message. */
static int settle(struct convo *c)
{
	int n = convo_complete(c, "Not run: the session ended before this.");
	if (n < 0)
		return n;
	if (!c->n || c->messages[c->n - 1].role != CONVO_USER)
		return 0;
	return turn_close(c, "(The session ended before an answer.)");
}

static int find_id(const struct chatlog *l, const char *id, char **ret, struct policy_error *e)
{
	struct buf name = {0};
	escape_add_fit(&name, id ? id : "", 60);
	int err = chatlist_find(l->dir, id, l->project, l->id, ret);
	if (err == -ENOENT && id)
		policyfile_fail(e, err, "there is no saved session %s; /sessions lists them",
				buf_str(&name));
	else if (err == -ENOENT)
		policyfile_fail(e, err, "no session of this project is saved yet");
	else if (err == -ENOTUNIQ)
		policyfile_fail(e, err, "more than one saved session begins with %s",
				buf_str(&name));
	else if (err)
		policyfile_fail(e, err, "the saved sessions can't be read: %s", strerror(-err));
	buf_free(&name);
	return err;
}

static int load(const struct chatlog *l, const char *id, int *ret_fd, struct reading *r,
		struct policy_error *e)
{
	struct buf text = {.max = CHATLOG_MAX};
	int fd AUTOCLOSE = -1;
	int err = open_file(l->dir, id, 0, &fd);
	if (err == -EWOULDBLOCK)
		return policyfile_fail(e, err, "the session %s is in use by another warder agent",
				       id);
	if (!err)
		err = buf_read_from(fd, &text);
	if (!err)
		err = drop_torn_line(fd, &text);
	if (err)
		policyfile_fail(e, err, "the session %s can't be read: %s", id, strerror(-err));
	else
		err = read_lines(r, id, &text, e);
	buf_free(&text);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}

int chatlog_resume(struct chatlog *l, const char *id, struct provider_usage *ret_usage,
		   unsigned *ret_turns, struct policy_error *e)
{
	AUTOFREE
	char *found = NULL;
	struct reading r = {.usage = {-1, -1, -1}};
	int fd = -1;
	int err = find_id(l, id, &found, e);
	if (!err)
		err = load(l, found, &fd, &r, e);
	if (err) {
		convo_free(&r.convo);
		return err;
	}
	chatlog_next(l);
	convo_free(l->convo);
	*l->convo = r.convo;
	l->convo->watch = &l->watch;
	l->fd = fd;
	l->id = TAKE_PTR(found);
	*ret_usage = r.usage;
	*ret_turns = r.turns;
	err = settle(l->convo);
	return err ? policyfile_fail(e, err, "the session can't go on: %s", strerror(-err)) : 0;
}
