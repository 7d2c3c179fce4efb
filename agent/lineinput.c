#include "agent/lineinput.h"

#include "agent/complete.h"
#include "agent/interrupt.h"
#include "agent/libedit.h"
#include "agent/termwidth.h"
#include "tracer/buf.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <wchar.h>

#define HISTORY_SIZE	 1000
#define HISTORY_FILE_MAX (16 << 20) /* bytes: what is longer is not read */

/* Where there is an editor it is loaded. */
static const struct libedit *lib(void)
{
	return libedit_get();
}

struct lineinput {
	EditLine *edit; /* NULL: a dumb terminal or a pipe */
	History *history;
	char *file; /* owned or NULL */
	const char *prompt;
	const char *const *words; /* loan or NULL */
	bool tty;
};

static struct lineinput *self(EditLine *e)
{
	struct lineinput *l = NULL;
	lib()->el_get(e, EL_CLIENTDATA, &l);
	return l;
}

static char *edit_prompt(EditLine *e)
{
	return (char *)self(e)->prompt;
}

/* What a resized window is to the editor: a key (^]), since only keys draw the line anew. */
#define KEY_RESIZED L'\x1d'

/* One character; 0: the end; -1: errno. Another signal than ours goes on. */
static int edit_character(EditLine *e, wchar_t *ret)
{
	mbstate_t state = {0};
	(void)e;
	for (;;) {
		char byte;
		int err = interrupt_wait_input(STDIN_FILENO);
		if (interrupt_resized()) {
			*ret = KEY_RESIZED;
			return 1;
		}
		if (err == -EINTR && !interrupt_any())
			continue;
		ssize_t n = err ? -1 : read(STDIN_FILENO, &byte, 1);
		if (n <= 0) {
			errno = err ? -err : errno;
			return (int)n;
		}
		size_t len = mbrtowc(ret, &byte, 1, &state);
		if (len == (size_t)-1) /* no character: leave it out */
			state = (mbstate_t){0};
		else if (len != (size_t)-2)
			return 1;
	}
}

static bool can_edit(void)
{
	return termwidth_is_capable(STDIN_FILENO) && termwidth_is_capable(STDOUT_FILENO);
}

/* ---- keys of ours ---- */

static unsigned char key_newline(EditLine *e, int key)
{
	(void)key;
	return lib()->el_insertstr(e, "\n") ? CC_ERROR : CC_REFRESH;
}

/* A terminal's marks around pasted text: nothing in it is a key. */
#define PASTE_ON    "\033[?2004h"
#define PASTE_OFF   "\033[?2004l"
#define PASTE_BEGIN "^[[200~"
#define PASTE_END   "\033[201~"

static void add_pasted(struct buf *text, wchar_t c)
{
	char bytes[MB_LEN_MAX];
	mbstate_t state = {0};
	size_t n = wcrtomb(bytes, c == L'\r' ? L'\n' : c, &state);
	if (n != (size_t)-1)
		buf_add(text, bytes, n);
}

/* Control characters that a line editor would show as something else. */
static void clean(struct buf *text)
{
	size_t kept = 0;
	for (size_t i = 0; i < text->len; i++) {
		unsigned char c = (unsigned char)text->data[i];
		if (c == '\n' || c == '\t' || (c >= 0x20 && c != 0x7f))
			text->data[kept++] = (char)c;
	}
	text->len = kept;
	if (text->data)
		text->data[kept] = 0;
}

static unsigned char key_paste(EditLine *e, int key)
{
	const size_t end = strlen(PASTE_END);
	struct buf text = {.max = LINEINPUT_MAX};
	wchar_t c;
	(void)key;
	while (edit_character(e, &c) == 1) {
		add_pasted(&text, c);
		if (text.len >= end && !memcmp(text.data + text.len - end, PASTE_END, end)) {
			text.len -= end;
			break;
		}
	}
	clean(&text);
	int err = buf_error(&text) || lib()->el_insertstr(e, buf_str(&text));
	buf_free(&text);
	return err ? CC_REFRESH_BEEP : CC_REFRESH;
}

static unsigned char key_details(EditLine *e, int key)
{
	const LineInfo *info = lib()->el_line(e);
	(void)key;
	if (info->lastchar != info->buffer)
		return CC_ERROR;
	lib()->el_push(e, "/details\n");
	return CC_NORM;
}

static unsigned char key_resized(EditLine *e, int key)
{
	(void)key;
	lib()->el_resize(e);
	return CC_REDISPLAY;
}

static unsigned char key_complete(EditLine *e, int key)
{
	const LineInfo *info = lib()->el_line(e);
	const struct lineinput *l = self(e);
	struct buf insert = {0}, list = {0};
	(void)key;
	int err = complete_word(info->buffer, (size_t)(info->cursor - info->buffer), l->words,
				&insert, &list);
	unsigned char result = CC_ERROR;
	if (!err && insert.len) {
		result = lib()->el_insertstr(e, insert.data) ? CC_ERROR : CC_REFRESH;
	} else if (!err && list.len) {
		printf("\n%s", list.data);
		fflush(stdout);
		result = CC_REDISPLAY;
	}
	buf_free(&insert);
	buf_free(&list);
	return result;
}

/* The editor keeps the wide names; of narrow ones it would keep copies, and never free them. */
static void bind_keys(EditLine *e)
{
	static const struct {
		const char *name;
		const wchar_t *wide, *help;
		unsigned char (*key)(EditLine *, int);
		const char *keys[3];
	} ours[] = {
		{"warder-newline",
		 L"warder-newline",
		 L"a line more",
		 key_newline,
		 {"^[^M", "^[^J"}},
		{"warder-paste", L"warder-paste", L"pasted text", key_paste, {PASTE_BEGIN}},
		{"warder-details", L"warder-details", L"open the last call", key_details, {"^O"}},
		{"warder-complete", L"warder-complete", L"complete a word", key_complete, {"^I"}},
		{"warder-resized", L"warder-resized", L"draw anew", key_resized, {"^]"}},
	};
	for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
		lib()->el_wset(e, EL_ADDFN, ours[i].wide, ours[i].help, ours[i].key);
		for (const char *const *k = ours[i].keys; *k; k++)
			lib()->el_set(e, EL_BIND, *k, ours[i].name, NULL);
	}
	lib()->el_set(e, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

/* H_LOAD or H_SAVE. The editor takes names: what they are the name of is ours to look at first. */
static void move_history(struct lineinput *l, int what, int flags)
{
	HistEvent ev;
	struct stat st;
	char name[64];
	int fd AUTOCLOSE = l->file ? ownfile_open(l->file, flags) : -1;
	if (fd < 0 || fstat(fd, &st) || st.st_size > HISTORY_FILE_MAX)
		return;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	lib()->history(l->history, &ev, what, name);
}

static void load_history(struct lineinput *l)
{
	HistEvent ev;
	l->history = lib()->history_init();
	if (!l->history)
		return;
	lib()->history(l->history, &ev, H_SETSIZE, HISTORY_SIZE);
	lib()->history(l->history, &ev, H_SETUNIQUE, 1);
	move_history(l, H_LOAD, O_RDONLY); /* none yet: an empty one */
	lib()->el_set(l->edit, EL_HIST, lib()->history, l->history);
}

static int open_editor(struct lineinput *l)
{
	l->edit = lib()->el_init("warder", stdin, stdout, stderr);
	if (!l->edit)
		return -ENOMEM;
	lib()->el_set(l->edit, EL_CLIENTDATA, l);
	lib()->el_set(l->edit, EL_PROMPT, edit_prompt);
	lib()->el_set(l->edit, EL_GETCFN, edit_character);
	lib()->el_set(l->edit, EL_EDITOR, "emacs");
	/* Its own handlers would send signals on to the whole process group. */
	lib()->el_set(l->edit, EL_SIGNAL, 0);
	bind_keys(l->edit);
	load_history(l);
	lib()->el_source(l->edit, NULL); /* ~/.editrc, as for every program that uses libedit */
	return 0;
}

int lineinput_new(const char *file, struct lineinput **ret)
{
	struct lineinput *l = calloc(1, sizeof(*l));
	int err = l ? 0 : -ENOMEM;
	if (!err && file) {
		l->file = strdup(file);
		err = l->file ? 0 : -ENOMEM;
	}
	if (!err) {
		l->tty = isatty(STDIN_FILENO);
		err = can_edit() && lib() ? open_editor(l) : 0;
	}
	if (err) {
		lineinput_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

const char *lineinput_lacks(const struct lineinput *l)
{
	return !l->edit && can_edit() ? libedit_missing() : NULL;
}

void lineinput_free(struct lineinput *l)
{
	if (!l)
		return;
	if (l->edit)
		lib()->el_end(l->edit);
	if (l->history)
		lib()->history_end(l->history);
	free(l->file);
	free(l);
}

void lineinput_words(struct lineinput *l, const char *const *words)
{
	l->words = words;
}

bool lineinput_interactive(const struct lineinput *l)
{
	return l->tty;
}

bool lineinput_edits(const struct lineinput *l)
{
	return l->edit;
}

/* ---- the editor ---- */

/* ^Z: the editor has put the terminal back; what was typed is there again afterwards. */
static void stop_here(struct lineinput *l)
{
	const LineInfo *info = lib()->el_line(l->edit);
	char *typed = strndup(info->buffer, (size_t)(info->lastchar - info->buffer));
	putchar('\n');
	fflush(stdout);
	interrupt_take_stop(false);
	raise(SIGTSTP);
	interrupt_take_stop(true);
	if (typed && *typed)
		lib()->el_push(l->edit, typed);
	free(typed);
}

static void put_now(const char *bytes)
{
	fputs(bytes, stdout);
	fflush(stdout);
}

static enum lineinput_result edit_line(struct lineinput *l, char **ret_line)
{
	for (;;) {
		int n = 0;
		lib()->el_resize(l->edit);
		/* Before the prompt is seen: it would be raw only after it, too late for a fast
		 * key. */
		lib()->el_set(l->edit, EL_PREP_TERM, 1);
		errno = 0;
		put_now(PASTE_ON);
		const char *line = lib()->el_gets(l->edit, &n);
		put_now(PASTE_OFF);
		if (line && n > 0) {
			size_t len = strlen(line);
			len -= line[len - 1] == '\n';
			*ret_line = strndup(line, len);
			return *ret_line ? LINEINPUT_LINE : LINEINPUT_END;
		}
		if (interrupt_raised())
			return LINEINPUT_INTERRUPTED;
		if (interrupt_stop_asked())
			stop_here(l);
		else if (n >= 0 || errno != EINTR)
			return LINEINPUT_END;
	}
}

/* ---- plainly ---- */

static enum lineinput_result plain_line(struct lineinput *l, char **ret_line)
{
	char *line = NULL;
	size_t cap = 0;
	if (l->tty) {
		fputs(l->prompt, stdout);
		fflush(stdout);
		while (interrupt_wait_input(STDIN_FILENO) == -EINTR)
			if (interrupt_any())
				return LINEINPUT_INTERRUPTED;
	}
	ssize_t n = getline(&line, &cap, stdin);
	if (n < 0 || n > (ssize_t)LINEINPUT_MAX) {
		free(line);
		bool interrupted = interrupt_raised();
		clearerr(stdin);
		return interrupted ? LINEINPUT_INTERRUPTED : LINEINPUT_END;
	}
	line[strcspn(line, "\n")] = 0;
	*ret_line = line;
	return LINEINPUT_LINE;
}

enum lineinput_result lineinput_read(struct lineinput *l, const char *prompt, char **ret_line)
{
	l->prompt = prompt;
	if (!l->edit)
		return plain_line(l, ret_line);
	interrupt_take_stop(true);
	interrupt_take_resize(true);
	enum lineinput_result r = edit_line(l, ret_line);
	interrupt_take_resize(false);
	interrupt_take_stop(false);
	return r;
}

void lineinput_remember(struct lineinput *l, const char *entry)
{
	HistEvent ev;
	if (!l->history || !*entry || *entry == ' ')
		return;
	lib()->history(l->history, &ev, H_ENTER, entry);
	move_history(l, H_SAVE, O_WRONLY | O_CREAT | O_TRUNC);
}
