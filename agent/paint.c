#include "agent/paint.h"

#include "agent/termwidth.h"
#include "supervisor/escape.h"
#include "tracer/util.h"

#include <string.h>
#include <unistd.h>

#define DIM   "\033[2m"
#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define PLAIN "\033[0m"

/* Columns that are kept of what a call is about, for however wide a terminal; and all that are
 * shown where there is none. */
#define CALL_KEPT  1000
#define CALL_PIPED 100
/* "> " before it; and the last column stays free, for terminals that wrap as it is written. */
#define CALL_BESIDE 3

static const char *style(const struct paint *p, const char *code)
{
	return p->color ? code : "";
}

/* What is waited for is said whenever the cursor stands at the beginning of a line of its own. */
static void wait_on(struct paint *p)
{
	if (!p->waiting || p->asking || p->line_begun)
		return;
	spinner_show(p->spinner, p->call ? p->call : p->waiting);
}

static void put(struct paint *p, FILE *to, struct buf *b)
{
	if (b->len) {
		spinner_hide(p->spinner);
		fwrite(buf_str(b), 1, b->len, to);
		fflush(to);
		wait_on(p);
	}
	buf_free(b);
}

void paint_begin(struct paint *p)
{
	p->last = PAINT_NOTHING;
	if (!p->waiting)
		p->waiting = "waiting for the model";
	wait_on(p);
}

void paint_end(struct paint *p)
{
	p->waiting = NULL;
	spinner_hide(p->spinner);
}

/* In the layout of Markdown an empty line stands between words and calls. */
static void separate(struct paint *p, int next, struct buf *out)
{
	if (p->markdown && p->last != PAINT_NOTHING && (int)p->last != next)
		buf_add_char(out, '\n');
	p->last = next;
}

/* ---- the model's words ---- */

/* What is ready to be shown of them. */
static void put_words(struct paint *p, struct buf *words)
{
	struct buf out = {0};
	if (words->len)
		separate(p, PAINT_WORDS, &out);
	buf_add(&out, buf_str(words), words->len);
	buf_free(words);
	put(p, p->text, &out);
}

static struct mdrender renderer(const struct paint *p)
{
	return (struct mdrender){.width = termwidth(fileno(p->text)), .color = p->color};
}

static void end_words(struct paint *p)
{
	struct buf out = {0};
	const struct mdrender r = renderer(p);
	if (p->markdown)
		mdstream_end(&p->md, &r, &out);
	else {
		show_end(&p->words, true, &out);
		if (p->words_shown && p->words.mid_line)
			buf_add_char(&out, '\n');
	}
	p->words = (struct show){0};
	p->words_shown = false;
	put_words(p, &out);
}

void paint_line(struct paint *p, const char *mark, const char *line)
{
	struct buf out = {0}, text = {0};
	end_words(p);
	buf_add_str(&text, mark);
	escape_add_str(&text, line);
	buf_add_char(&text, '\n');
	termwidth_wrap(&out, &text, fileno(p->side));
	put(p, p->side, &out);
	buf_free(&text);
}

static void on_text(void *arg, const char *bytes, size_t n)
{
	struct paint *p = arg;
	struct buf out = {0};
	const struct mdrender r = renderer(p);
	if (p->markdown)
		mdstream_feed(&p->md, &r, bytes, n, &out);
	else
		show_escaped(&p->words, bytes, n, &out);
	p->words_shown = p->words_shown || out.len;
	put_words(p, &out);
}

static void on_text_end(void *arg)
{
	end_words(arg);
}

static void on_note(void *arg, const char *line)
{
	paint_line(arg, "warder: ", line);
}

/* ---- a call's line ---- */

/* "run_shell make -j2"; with a spinner it waits there until there is more to say. Owned. */
static char *name_call(const struct convo_call *call)
{
	struct buf out = {0}, gist = {0};
	tools_write_gist(&gist, call->name, call->arguments);
	escape_add_fit(&out, call->name, CALL_PIPED);
	buf_add_char(&out, ' ');
	escape_add_fit(&out, buf_str(&gist), CALL_KEPT);
	char *name = buf_take(&out);
	buf_free(&out);
	buf_free(&gist);
	return name;
}

static size_t call_width(const struct paint *p)
{
	const int fd = fileno(p->side);
	const size_t width = isatty(fd) ? termwidth(fd) : CALL_PIPED + CALL_BESIDE;
	return width > CALL_BESIDE ? width - CALL_BESIDE : 1;
}

static void add_call(struct paint *p, struct buf *out)
{
	if (!p->call_shown) {
		separate(p, PAINT_CALL, out);
		buf_add_str(out, "> ");
		escape_add_fit(out, p->call ? p->call : "", call_width(p));
	}
	p->call_shown = true;
}

/* Something is about to stand below the call's line. */
static void show_call(struct paint *p)
{
	struct buf out = {0};
	if (p->call_shown)
		return;
	add_call(p, &out);
	buf_add_char(&out, '\n');
	put(p, p->side, &out);
}

static void on_tool_start(void *arg, const struct convo_call *call)
{
	struct paint *p = arg;
	end_words(p);
	spinner_hide(p->spinner);
	free(p->call);
	p->call = name_call(call);
	p->call_shown = false;
	p->lines = 0;
	p->line_begun = false;
	p->printed = (struct show){0};
	if (!p->spinner)
		show_call(p);
	wait_on(p);
}

/* ---- a command's output, indented ---- */

static void add_indented(struct paint *p, const struct buf *text, struct buf *out)
{
	for (size_t i = 0; i < text->len; i++) {
		bool newline = text->data[i] == '\n';
		if (p->lines < PAINT_LINES_MAX) {
			if (!p->line_begun)
				buf_addf(out, "%s  ", style(p, DIM));
			if (newline)
				buf_add_str(out, style(p, PLAIN));
			buf_add_char(out, text->data[i]);
			p->line_begun = !newline;
		}
		p->lines += newline;
	}
}

static void end_output(struct paint *p)
{
	struct buf out = {0}, rest = {0};
	show_end(&p->printed, true, &rest);
	add_indented(p, &rest, &out);
	if (p->line_begun)
		buf_addf(&out, "%s\n", style(p, PLAIN));
	p->line_begun = false;
	put(p, p->side, &out);
	buf_free(&rest);
}

static void on_output(void *arg, const char *bytes, size_t n)
{
	struct paint *p = arg;
	struct buf out = {0}, text = {0};
	if (!p->output)
		return;
	show_call(p);
	show_escaped(&p->printed, bytes, n, &text);
	add_indented(p, &text, &out);
	put(p, p->side, &out);
	buf_free(&text);
}

/* ---- a change, before it is made ---- */

static void add_diff_line(struct paint *p, const char *line, size_t n, struct buf *out)
{
	const char *code = line[0] == '+'   ? GREEN
			   : line[0] == '-' ? RED
			   : line[0] == '@' ? CYAN
					    : "";
	buf_addf(out, "  %s", *code ? style(p, code) : "");
	show_text(out, line, n);
	buf_addf(out, "%s\n", *code ? style(p, PLAIN) : "");
}

static void on_preview(void *arg, const char *diff, size_t n)
{
	struct paint *p = arg;
	struct buf out = {0};
	size_t lines = 0, left = 0;
	show_call(p);
	for (size_t at = 0; at < n;) {
		const char *newline = memchr(diff + at, '\n', n - at);
		size_t len = newline ? (size_t)(newline - diff) - at : n - at;
		if (lines++ < PAINT_DIFF_MAX)
			add_diff_line(p, diff + at, len, &out);
		else
			left++;
		at += len + 1;
	}
	if (left)
		buf_addf(&out, "  [%zu more lines are not shown]\n", left);
	put(p, p->side, &out);
}

/* ---- a call's end ---- */

static void on_tool_note(void *arg, const char *line)
{
	struct paint *p = arg;
	struct buf out = {0}, text = {0};
	show_call(p);
	end_output(p);
	buf_addf(&text, "warder: %s\n", line);
	termwidth_wrap(&out, &text, fileno(p->side));
	buf_free(&text);
	put(p, p->side, &out);
}

static void on_asking(void *arg, bool open)
{
	struct paint *p = arg;
	if (open) {
		show_call(p);
		end_output(p);
		spinner_hide(p->spinner);
	}
	p->asking = open;
	fflush(p->text);
	fflush(p->side);
	wait_on(p);
}

static void add_refusal(struct paint *p, const struct denial *d, struct buf *out)
{
	buf_addf(out, "  %srefused%s ", style(p, RED), style(p, PLAIN));
	access_format(out, d->access);
	buf_add_char(out, ' ');
	escape_add_str(out, d->path);
	buf_addf(out, " (%s%s)\n", d->by == BY_NONE ? "" : "by ",
		 d->by == BY_NONE ? "nobody to ask" : answered_by_name(d->by));
}

static void add_refusals(struct paint *p, const struct denial_list *l)
{
	struct buf out = {0};
	for (size_t i = 0; i < l->len; i++)
		if (!l->item[i].allowed && l->item[i].verdict == VERDICT_SANDBOX)
			add_refusal(p, &l->item[i], &out);
	if (out.len)
		show_call(p);
	put(p, p->side, &out);
}

/* What is told at a call's end stands on its line where there is room for both. */
static bool fits_beside(const struct paint *p, const char *status)
{
	const size_t brackets = strlen(" []");
	return escape_width(p->call ? p->call : "") + escape_width(status) + brackets <=
	       call_width(p);
}

static void add_status(struct paint *p, const struct tool_result *result, size_t number,
		       struct buf *out)
{
	struct buf status = {0};
	if (number)
		buf_addf(&status, "%zu: ", number);
	buf_add_str(&status, result->status);
	bool beside = !p->call_shown && fits_beside(p, buf_str(&status));
	if (!beside)
		show_call(p);
	add_call(p, out);
	if (p->lines > PAINT_LINES_MAX && number)
		buf_addf(out, "  [%zu more lines: /details %zu]\n", p->lines - PAINT_LINES_MAX,
			 number);
	else if (p->lines > PAINT_LINES_MAX)
		buf_addf(out, "  [%zu more lines]\n", p->lines - PAINT_LINES_MAX);
	buf_addf(out, "%s%s[%s]%s\n", beside ? " " : "  ", style(p, DIM), buf_str(&status),
		 style(p, PLAIN));
	buf_free(&status);
}

static void on_tool_end(void *arg, const struct convo_call *call, const struct tool_result *result)
{
	struct paint *p = arg;
	struct buf out = {0};
	size_t number = p->details ? details_add(p->details, call, result) : 0;
	end_output(p);
	add_refusals(p, &result->denials);
	add_status(p, result, number, &out);
	free(TAKE_PTR(p->call));
	put(p, p->side, &out);
}

struct turn_sink paint_sink(struct paint *p)
{
	return (struct turn_sink){
		.arg = p,
		.text = on_text,
		.text_end = on_text_end,
		.tool_start = on_tool_start,
		.tool_end = on_tool_end,
		.note = on_note,
		.tool = {.arg = p,
			 .output = on_output,
			 .preview = on_preview,
			 .note = on_tool_note,
			 .asking = on_asking},
	};
}
