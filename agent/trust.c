#include "agent/trust.h"

#include "agent/interrupt.h"
#include "supervisor/escape.h"
#include "supervisor/project.h"
#include "supervisor/timestamp.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* A file of answers larger than this is read no further. */
#define TRUST_FILE_MAX (4u << 20)

static const struct {
	const char *name, *help;
} words[] = {
	[TRUST_READ] = {"read", "read and run what is there; every change is asked about"},
	[TRUST_WRITE] = {"write",
			 "read, run and change it; git's hooks and config are asked about"},
	[TRUST_ASK] = {"ask", "ask each time, for reading too"},
};

const char *trust_name(enum trust t)
{
	return words[t].name;
}

const char *trust_help(enum trust t)
{
	return words[t].help;
}

enum trust trust_parse(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (words[i].name && !strcmp(words[i].name, word))
			return (enum trust)i;
	return TRUST_UNKNOWN;
}

/* ---- remembered ---- */

static int open_file(const struct session *s, int flags, int *ret)
{
	AUTOFREE
	char *path = NULL;
	if (asprintf(&path, "%s/trust.jsonl", session_store(s)->state_dir) < 0)
		return -ENOMEM;
	*ret = ownfile_open(path, flags);
	return *ret < 0 ? *ret : 0;
}

/* What a line says of this project under `key`. True: *ret is a copy, or NULL without memory. */
static bool read_line(const char *line, size_t n, const char *slug, const char *key, char **ret)
{
	struct json *v = NULL;
	if (json_parse(line, n, &v, NULL))
		return false;
	const char *whose = json_get_str(v, "slug"), *word = json_get_str(v, key);
	bool fits = whose && word && !strcmp(whose, slug);
	if (fits)
		*ret = strdup(word);
	json_free(v);
	return fits;
}

/* The last such word (owned), or the one that equals `only`; NULL: none. */
static char *find_word(const struct session *s, const char *key, const char *only)
{
	struct buf text = {.max = TRUST_FILE_MAX};
	char *found = NULL, *word = NULL;
	int fd AUTOCLOSE = -1;
	if (open_file(s, O_RDONLY, &fd))
		return NULL;
	(void)buf_read_from(fd, &text); /* what there is of it */
	for (size_t at = 0, len; at < text.len; at += len + 1) {
		len = strcspn(text.data + at, "\n");
		if (!read_line(text.data + at, len, session_project(s)->slug, key, &word))
			continue;
		bool wanted = word && (!only || !strcmp(word, only));
		if (wanted) {
			free(found);
			found = TAKE_PTR(word);
		}
		free(TAKE_PTR(word));
	}
	buf_free(&text);
	return found;
}

enum trust trust_recall(const struct session *s)
{
	AUTOFREE
	char *word = find_word(s, "trust", NULL);
	return word ? trust_parse(word) : TRUST_UNKNOWN;
}

bool trust_was_refused(const struct session *s, const char *sha256)
{
	AUTOFREE
	char *word = find_word(s, "refused", sha256);
	return word;
}

static int add_line(const struct session *s, const char *key, const char *word)
{
	char now[TIMESTAMP_LEN];
	struct buf line = {0};
	struct jsonw w;
	int fd AUTOCLOSE = -1;
	int err = open_file(s, O_WRONLY | O_APPEND | O_CREAT, &fd);
	if (err)
		return err;
	/* A line that a crash cut off must not take this one with it. */
	buf_add_char(&line, '\n');
	jsonw_init(&w, &line);
	jsonw_begin_object(&w);
	jsonw_kstr(&w, "t", timestamp_now(now));
	jsonw_kpath(&w, "project", session_project(s)->dir);
	jsonw_kstr(&w, "slug", session_project(s)->slug);
	jsonw_kstr(&w, key, word);
	jsonw_end_object(&w);
	buf_add_char(&line, '\n');
	err = buf_error(&line);
	if (!err) {
		ssize_t n = write(fd, line.data, line.len);
		err = n == (ssize_t)line.len ? 0 : n < 0 ? -errno : -EIO;
	}
	buf_free(&line);
	return err;
}

int trust_remember(const struct session *s, enum trust t)
{
	return add_line(s, "trust", trust_name(t));
}

int trust_refuse(const struct session *s, const char *sha256)
{
	return add_line(s, "refused", sha256);
}

/* ---- asked ---- */

static void put_question(const struct session *s)
{
	struct buf out = {0};
	buf_add_str(&out, "This is the agent's first start in ");
	escape_add_str(&out, session_project(s)->dir);
	buf_add_str(&out, ".\nWhat may it do there?\n");
	for (enum trust t = TRUST_READ; t <= TRUST_ASK; t++)
		buf_addf(&out, "  %d  %-5s  %s\n", (int)t, trust_name(t), trust_help(t));
	fputs(buf_str(&out), stdout);
	buf_free(&out);
}

/* False: the end of the input, or Ctrl-C. */
static bool read_word(char room[32])
{
	char *line = NULL;
	size_t cap = 0;
	fputs("[1-3, Enter: 3] ", stdout);
	fflush(stdout);
	while (interrupt_wait_input(STDIN_FILENO) == -EINTR)
		if (interrupt_any())
			return false;
	ssize_t n = getline(&line, &cap, stdin);
	if (n > 0)
		line[strcspn(line, "\n")] = 0;
	snprintf(room, 32, "%s", n > 0 ? line : "");
	free(line);
	return n > 0;
}

enum trust trust_ask(const struct session *s)
{
	char word[32];
	put_question(s);
	while (read_word(word)) {
		if (!*word)
			return TRUST_ASK;
		if (word[0] >= '1' && word[0] <= '3' && !word[1])
			return (enum trust)(word[0] - '0');
		if (trust_parse(word))
			return trust_parse(word);
	}
	putchar('\n');
	return TRUST_UNKNOWN;
}

int trust_open(struct session *s, enum trust t)
{
	const struct rule rule = {.effect = EFFECT_ALLOW,
				  .kind = RULE_TREE,
				  .access = ACCESS_READ | ACCESS_LIST | ACCESS_EXEC,
				  .path = session_project(s)->dir,
				  .origin = (char *)"what the agent may do here (/trust)"};
	return t == TRUST_READ ? session_grant(s, &rule) : 0;
}
