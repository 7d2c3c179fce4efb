#include "agent/paint.h"

#include "supervisor/escape.h"

#include <string.h>

#define DIM   "\033[2m"
#define RED   "\033[31m"
#define GREEN "\033[32m"
#define CYAN  "\033[36m"
#define PLAIN "\033[0m"

/* What a call is about, on one line. */
#define GIST_WIDTH 100

static void put(FILE *to, const struct buf *b)
{
	fwrite(buf_str(b), 1, b->len, to);
	fflush(to);
}

static const char *style(const struct paint *p, const char *code)
{
	return p->color ? code : "";
}

static void end_words(struct paint *p)
{
	struct buf out = {0};
	show_end(&p->words, true, &out);
	if (p->words_shown && p->words.mid_line)
		buf_add_char(&out, '\n');
	p->words = (struct show){0};
	p->words_shown = false;
	put(p->text, &out);
	buf_free(&out);
}

void paint_line(struct paint *p, const char *mark, const char *line)
{
	struct buf out = {0};
	end_words(p);
	buf_add_str(&out, mark);
	escape_add_str(&out, line);
	buf_add_char(&out, '\n');
	put(p->side, &out);
	buf_free(&out);
}

static void on_text(void *arg, const char *bytes, size_t n)
{
	struct paint *p = arg;
	struct buf out = {0};
	show_escaped(&p->words, bytes, n, &out);
	p->words_shown = p->words_shown || out.len;
	put(p->text, &out);
	buf_free(&out);
}

static void on_text_end(void *arg)
{
	end_words(arg);
}

static void on_note(void *arg, const char *line)
{
	paint_line(arg, "warder: ", line);
}

static void on_tool_start(void *arg, const struct convo_call *call)
{
	struct paint *p = arg;
	struct buf out = {0}, gist = {0};
	end_words(p);
	tools_write_gist(&gist, call->name, call->arguments);
	buf_add_str(&out, "> ");
	escape_add_fit(&out, call->name, GIST_WIDTH);
	buf_add_char(&out, ' ');
	escape_add_fit(&out, buf_str(&gist), GIST_WIDTH);
	buf_add_char(&out, '\n');
	put(p->side, &out);
	buf_free(&out);
	buf_free(&gist);
	p->lines = 0;
	p->line_begun = false;
	p->printed = (struct show){0};
}

/* ---- a command's output, indented ---- */

static void add_indented(struct paint *p, const struct buf *text, struct buf *out)
{
	for (size_t i = 0; i < text->len && p->lines < PAINT_LINES_MAX; i++) {
		if (!p->line_begun)
			buf_addf(out, "%s  ", style(p, DIM));
		p->line_begun = text->data[i] != '\n';
		if (!p->line_begun)
			buf_add_str(out, style(p, PLAIN));
		buf_add_char(out, text->data[i]);
		if (!p->line_begun && ++p->lines == PAINT_LINES_MAX)
			buf_add_str(out, "  [more output is not shown]\n");
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
	put(p->side, &out);
	buf_free(&out);
	buf_free(&rest);
}

static void on_output(void *arg, const char *bytes, size_t n)
{
	struct paint *p = arg;
	struct buf out = {0}, text = {0};
	if (!p->output)
		return;
	show_escaped(&p->printed, bytes, n, &text);
	add_indented(p, &text, &out);
	put(p->side, &out);
	buf_free(&out);
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
	put(p->side, &out);
	buf_free(&out);
}

static void on_tool_note(void *arg, const char *line)
{
	struct paint *p = arg;
	end_output(p);
	fprintf(p->side, "warder: %s\n", line);
}

static void on_asking(void *arg, bool open)
{
	struct paint *p = arg;
	if (open)
		end_output(p);
	fflush(p->text);
	fflush(p->side);
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

static void on_tool_end(void *arg, const struct convo_call *call, const struct tool_result *result)
{
	struct paint *p = arg;
	struct buf out = {0};
	(void)call;
	end_output(p);
	for (size_t i = 0; i < result->denials.len; i++)
		if (!result->denials.item[i].allowed &&
		    result->denials.item[i].verdict == VERDICT_SANDBOX)
			add_refusal(p, &result->denials.item[i], &out);
	buf_addf(&out, "  %s[%s]%s\n", style(p, DIM), result->status, style(p, PLAIN));
	put(p->side, &out);
	buf_free(&out);
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
