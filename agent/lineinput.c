#include "agent/lineinput.h"

#include "agent/interrupt.h"
#include "tracer/util.h"

#include <errno.h>
#include <histedit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <wchar.h>

#define HISTORY_SIZE 1000

struct lineinput {
	EditLine *edit; /* NULL: a dumb terminal or a pipe */
	History *history;
	char *file; /* owned or NULL */
	const char *prompt;
	bool tty;
};

static char *edit_prompt(EditLine *e)
{
	struct lineinput *l = NULL;
	el_get(e, EL_CLIENTDATA, &l);
	return (char *)l->prompt;
}

/* One character; 0: the end; -1: errno. Another signal than ours (a resized window) goes on. */
static int edit_character(EditLine *e, wchar_t *ret)
{
	mbstate_t state = {0};
	(void)e;
	for (;;) {
		char byte;
		int err = interrupt_wait_input(STDIN_FILENO);
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
	const char *term = getenv("TERM");
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
	       strcmp(term, "dumb") != 0;
}

static void load_history(struct lineinput *l)
{
	HistEvent ev;
	l->history = history_init();
	if (!l->history)
		return;
	history(l->history, &ev, H_SETSIZE, HISTORY_SIZE);
	history(l->history, &ev, H_SETUNIQUE, 1);
	if (l->file)
		history(l->history, &ev, H_LOAD, l->file); /* none yet: an empty one */
	el_set(l->edit, EL_HIST, history, l->history);
}

static int open_editor(struct lineinput *l)
{
	l->edit = el_init("warder", stdin, stdout, stderr);
	if (!l->edit)
		return -ENOMEM;
	el_set(l->edit, EL_CLIENTDATA, l);
	el_set(l->edit, EL_PROMPT, edit_prompt);
	el_set(l->edit, EL_GETCFN, edit_character);
	el_set(l->edit, EL_EDITOR, "emacs");
	/* Its own handlers would send signals on to the whole process group. */
	el_set(l->edit, EL_SIGNAL, 0);
	el_set(l->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	load_history(l);
	el_source(l->edit, NULL); /* ~/.editrc, as for every program that uses libedit */
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
		err = can_edit() ? open_editor(l) : 0;
	}
	if (err) {
		lineinput_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

void lineinput_free(struct lineinput *l)
{
	if (!l)
		return;
	if (l->edit)
		el_end(l->edit);
	if (l->history)
		history_end(l->history);
	free(l->file);
	free(l);
}

bool lineinput_interactive(const struct lineinput *l)
{
	return l->tty;
}

/* ---- the editor ---- */

/* ^Z: the editor has put the terminal back; what was typed is there again afterwards. */
static void stop_here(struct lineinput *l)
{
	const LineInfo *info = el_line(l->edit);
	char *typed = strndup(info->buffer, (size_t)(info->lastchar - info->buffer));
	putchar('\n');
	fflush(stdout);
	interrupt_take_stop(false);
	raise(SIGTSTP);
	interrupt_take_stop(true);
	if (typed && *typed)
		el_push(l->edit, typed);
	free(typed);
}

static enum lineinput_result edit_line(struct lineinput *l, char **ret_line)
{
	for (;;) {
		int n = 0;
		el_resize(l->edit);
		/* Before the prompt is seen: it would be raw only after it, too late for a fast
		 * key. */
		el_set(l->edit, EL_PREP_TERM, 1);
		errno = 0;
		const char *line = el_gets(l->edit, &n);
		if (line && n > 0) {
			size_t len = strcspn(line, "\n");
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
	enum lineinput_result r = edit_line(l, ret_line);
	interrupt_take_stop(false);
	return r;
}

void lineinput_remember(struct lineinput *l, const char *entry)
{
	HistEvent ev;
	if (!l->history || !*entry || *entry == ' ')
		return;
	history(l->history, &ev, H_ENTER, entry);
	if (!l->file)
		return;
	/* Born with the right mode, not given it later. */
	mode_t mask = umask(077);
	history(l->history, &ev, H_SAVE, l->file);
	umask(mask);
}
