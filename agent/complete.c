#include "agent/complete.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct names {
	char **item; /* owned */
	size_t n;
};

static void names_release(struct names *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->item[i]);
	free(l->item);
}

static int names_add(struct names *l, const char *name, const char *behind)
{
	struct buf text = {0};
	char **more = reallocarray(l->item, l->n + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->item = more;
	buf_add_str(&text, name);
	buf_add_str(&text, behind);
	l->item[l->n] = buf_take(&text);
	return l->item[l->n] ? (l->n++, 0) : -ENOMEM;
}

/* Shown as it is: nothing hidden, no control characters, valid UTF-8. */
static bool is_plain(const char *name)
{
	struct buf shown = {0};
	escape_add_str(&shown, name);
	bool plain = !strcmp(buf_str(&shown), name);
	buf_free(&shown);
	return plain;
}

/* ---- candidates ---- */

static int add_words(struct names *l, const char *const *words, const char *start)
{
	int err = 0;
	for (; words && *words && !err; words++)
		if (!strncmp(*words, start, strlen(start)))
			err = names_add(l, *words, " ");
	return err;
}

static bool is_dir(int dir, const char *name)
{
	struct stat st;
	return !fstatat(dir, name, &st, 0) && S_ISDIR(st.st_mode);
}

static int add_entries(struct names *l, const char *path, const char *start)
{
	DIR *dir = opendir(path);
	int err = 0;
	if (!dir)
		return 0;
	for (const struct dirent *e; !err && (e = readdir(dir));) {
		const char *name = e->d_name;
		bool dots = !strcmp(name, ".") || !strcmp(name, "..");
		if (dots || (name[0] == '.' && start[0] != '.') || !is_plain(name) ||
		    strncmp(name, start, strlen(start)) != 0)
			continue;
		err = names_add(l, name, is_dir(dirfd(dir), name) ? "/" : " ");
	}
	closedir(dir);
	return err;
}

/* *ret_start: the part of the word that names are compared with; a loan of word. */
static int add_paths(struct names *l, const char *word, const char **ret_start)
{
	const char *slash = strrchr(word, '/'), *home = getenv("HOME");
	struct buf dir = {0};
	*ret_start = slash ? slash + 1 : word;
	if (word[0] == '~' && word[1] == '/' && home) {
		buf_add_str(&dir, home);
		word++;
	}
	if (slash)
		buf_add(&dir, word, (size_t)(slash - word) + 1);
	int err = buf_error(&dir);
	if (!err)
		err = add_entries(l, dir.len ? dir.data : ".", *ret_start);
	buf_free(&dir);
	return err;
}

/* ---- what comes of them ---- */

static size_t common(const struct names *l)
{
	size_t n = strlen(l->item[0]);
	for (size_t i = 1; i < l->n; i++) {
		size_t k = 0;
		while (k < n && l->item[i][k] == l->item[0][k])
			k++;
		n = k;
	}
	/* Not in the middle of a character. */
	while (n && ((unsigned char)l->item[0][n] & 0xc0) == 0x80)
		n--;
	return n;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_list(struct names *l, struct buf *list)
{
	qsort(l->item, l->n, sizeof(*l->item), by_name);
	for (size_t i = 0; i < l->n && i < COMPLETE_LISTED; i++)
		buf_addf(list, "%s%s", i ? " " : "", l->item[i]);
	if (l->n > COMPLETE_LISTED)
		buf_addf(list, " ... %zu more", l->n - COMPLETE_LISTED);
	buf_add_char(list, '\n');
}

int complete_word(const char *line, size_t n, const char *const *words, struct buf *insert,
		  struct buf *list)
{
	struct names l = {0};
	size_t from = n;
	while (from && !strchr(" \t\n", line[from - 1]))
		from--;
	AUTOFREE
	char *word = strndup(line + from, n - from);
	const char *start = word;
	int err = word ? 0 : -ENOMEM;
	if (!err && !from && *word == '/')
		err = add_words(&l, words, word);
	if (!err && !l.n)
		err = add_paths(&l, word, &start);
	if (!err && l.n) {
		size_t same = common(&l), have = strlen(start);
		if (same > have)
			buf_add(insert, l.item[0] + have, same - have);
		else
			add_list(&l, list);
		err = buf_error(insert) ? buf_error(insert) : buf_error(list);
	}
	names_release(&l);
	return err;
}
