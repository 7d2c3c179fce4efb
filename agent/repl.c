#include "agent/repl.h"

#include "agent/hush.h"
#include "agent/interrupt.h"
#include "agent/lineinput.h"
#include "agent/paint.h"
#include "agent/slash.h"
#include "agent/termwidth.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROMPT "warder> "
#define MORE   "   ...> "

struct repl {
	struct agent *agent;
	struct lineinput *in;
	struct paint paint;
	bool failed; /* the last turn */
};

/* ---- input: a trailing backslash goes on ---- */

static bool goes_on(char *line)
{
	size_t n = strlen(line);
	if (!n || line[n - 1] != '\\')
		return false;
	line[n - 1] = 0;
	return true;
}

static enum lineinput_result read_entry(struct repl *r, struct buf *entry)
{
	const char *prompt = PROMPT;
	for (;;) {
		AUTOFREE
		char *line = NULL;
		enum lineinput_result got = lineinput_read(r->in, prompt, &line);
		if (got != LINEINPUT_LINE)
			return got == LINEINPUT_END && entry->len ? LINEINPUT_LINE : got;
		bool more = goes_on(line);
		buf_add_str(entry, line);
		if (!more)
			return LINEINPUT_LINE;
		buf_add_char(entry, '\n');
		prompt = MORE;
	}
}

/* ---- output ---- */

static void take_turn(struct repl *r, const char *words)
{
	struct turn_result result;
	struct turn_sink sink = paint_sink(&r->paint);
	char waiting[128];
	snprintf(waiting, sizeof(waiting), "waiting for %.100s",
		 r->agent->model ? r->agent->model : "the model");
	r->paint.waiting = waiting;
	paint_begin(&r->paint);
	agent_turn(r->agent, words, &sink, &result);
	paint_end(&r->paint);
	if (result.words[0])
		paint_line(&r->paint, "warder: ", result.words);
	r->failed = result.end != TURN_DONE;
	turn_result_release(&result);
	if (!interrupt_ending())
		interrupt_clear();
}

static const char *trimmed(char *s)
{
	char *end = s + strlen(s);
	while (end > s && isspace((unsigned char)end[-1]))
		*--end = 0;
	while (isspace((unsigned char)*s))
		s++;
	return s;
}

/* False: the end. */
static bool take_entry(struct repl *r, struct buf *entry)
{
	if (!entry->len)
		return true;
	lineinput_remember(r->in, entry->data);
	const char *words = trimmed(entry->data);
	if (!*words)
		return true;
	bool on = true;
	if (lineinput_edits(r->in))
		hush_begin();
	if (*words == '/' && slash_is_command(words))
		on = slash_run(r->agent, words);
	else
		take_turn(r, words);
	hush_end();
	return on;
}

static void greet(struct repl *r)
{
	const struct agent *a = r->agent;
	struct buf out = {0};
	if (!lineinput_interactive(r->in))
		return;
	buf_addf(&out, "warder %s, %s", WARDER_VERSION, a->provider->ops->name);
	if (a->model) {
		buf_add_char(&out, ' ');
		escape_add_str(&out, a->model);
	}
	buf_add_str(&out, ", project ");
	escape_add_str(&out, session_project(a->session)->dir);
	buf_add_str(&out, "\n/help lists the commands.\n");
	if (a->log.id)
		buf_addf(&out, "Going on in session %s, which has %zu message%s.\n", a->log.id,
			 a->convo.n, a->convo.n == 1 ? "" : "s");
	fwrite(buf_str(&out), 1, out.len, stdout);
	buf_free(&out);
}

static void loop(struct repl *r)
{
	for (bool on = true; on && !interrupt_ending();) {
		struct buf entry = {.max = LINEINPUT_MAX};
		switch (read_entry(r, &entry)) {
		case LINEINPUT_LINE:
			on = take_entry(r, &entry);
			break;
		case LINEINPUT_INTERRUPTED:
			putchar('\n');
			if (!interrupt_ending())
				interrupt_clear();
			break;
		case LINEINPUT_END:
			if (lineinput_interactive(r->in))
				putchar('\n');
			on = false;
			break;
		}
		buf_free(&entry);
		fflush(stdout);
	}
}

int repl_run(struct agent *a)
{
	struct repl r = {.agent = a,
			 .paint = {.text = stdout,
				   .side = stdout,
				   .output = true,
				   .color = a->color,
				   .markdown = termwidth_is_capable(STDOUT_FILENO),
				   .details = &a->details}};
	AUTOFREE
	char *history = NULL;
	if (asprintf(&history, "%s/history", session_store(a->session)->state_dir) < 0)
		history = NULL;
	int err = lineinput_new(history, &r.in);
	if (err) {
		fprintf(stderr, "warder: the line editor: %s\n", strerror(-err));
		return 125;
	}
	if (lineinput_lacks(r.in))
		fprintf(stderr,
			"warder: lines can't be edited; libedit is needed for that (Debian: "
			"libedit2): %s\n",
			lineinput_lacks(r.in));
	lineinput_words(r.in, slash_words());
	/* Without one it goes as well. */
	if (r.paint.markdown && spinner_new(STDOUT_FILENO, &r.paint.spinner))
		r.paint.spinner = NULL;
	greet(&r);
	loop(&r);
	spinner_free(r.paint.spinner);
	bool typed = lineinput_interactive(r.in);
	if (typed && a->log.id)
		printf("warder agent --resume %s goes on here.\n", a->log.id);
	fflush(stdout);
	lineinput_free(r.in);
	if (interrupt_ending())
		return -interrupt_ending();
	return !typed && r.failed;
}
