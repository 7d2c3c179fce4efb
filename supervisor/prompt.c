#include "supervisor/prompt.h"

#include "supervisor/environ.h"
#include "supervisor/escape.h"
#include "supervisor/prompt_paint.h"
#include "supervisor/promptkeys.h"
#include "supervisor/term.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define PROMPT_ESC_MS  50 /* a lone ESC, or the first byte of an arrow key */
#define PROMPT_CSI_MAX 16
/* Longer than the pauses of somebody who types, shorter than it takes to read a question. */
#define PROMPT_QUIET_MS 700
#define PASTE_ON	"\x1b[?2004h"
#define PASTE_OFF	"\x1b[?2004l"
#define PASTE_BEGINS	"200~"
#define PASTE_ENDS	"201~"

enum key_state { KEY_PLAIN, KEY_ESC, KEY_SEQUENCE };

struct prompt {
	struct loop *loop;
	struct ask *ask;
	struct pty *pty;
	struct prompt_options options;
	struct term *term;
	bool open;	  /* the terminal is held */
	uint64_t current; /* the question on the screen; 0: none */
	uint64_t last;	  /* the newest one that was painted: "all" reaches up to it */
	struct buf shown; /* the question as it stands on the screen */
	unsigned scope;
	size_t page, pages; /* of what is too long for the screen */
	bool details;
	bool help;
	bool group;
	uint64_t refresh_timer;
	/* keys */
	bool early; /* what is typed is not meant for the question yet */
	bool away;  /* ... and could not come here */
	uint64_t quiet_timer;
	enum key_state state;
	char sequence[PROMPT_CSI_MAX + 1];
	size_t sequence_len;
	bool pasting;
	uint64_t esc_timer;
};

static size_t on_keys(void *arg, const char *bytes, size_t n);

/* ---- the screen ---- */

/* "\r\n" whatever the terminal's mode is when it gets there. */
static void emit(struct prompt *p, const struct buf *text)
{
	struct buf out = {0};
	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] == '\n')
			buf_add_char(&out, '\r');
		buf_add_char(&out, text->data[i]);
	}
	if (!buf_error(&out))
		term_write(p->term, buf_str(&out), out.len);
	buf_free(&out);
}

bool prompt_is_dumb(char *const *env)
{
	const char *term = environ_get(env, "TERM");
	return !term || !*term || !strcmp(term, "dumb");
}

static void emit_str(struct prompt *p, const char *s)
{
	if (!p->options.dumb)
		term_write(p->term, s, strlen(s));
}

/* Rows that a line takes: a terminal that became narrower since has wrapped it. */
static size_t rows_of(const char *line, size_t n, size_t columns)
{
	struct buf plain = {0};
	for (size_t i = 0; i < n; i++) {
		if (line[i] == '\x1b')
			i += strcspn(line + i, "m"); /* of colours alone */
		else
			buf_add_char(&plain, line[i]);
	}
	size_t width = escape_width(buf_str(&plain));
	buf_free(&plain);
	return width ? (width + columns - 1) / columns : 1;
}

/* The question that stands there goes; what of it has scrolled away stays. */
static void erase(struct prompt *p)
{
	size_t columns, rows, painted = 0;
	char up[32];
	if (!p->shown.len)
		return;
	term_size(p->term, &columns, &rows);
	for (const char *line = buf_str(&p->shown); *line;) {
		size_t n = strcspn(line, "\n");
		painted += rows_of(line, n, columns);
		line += n + (line[n] == '\n');
	}
	if (painted >= rows)
		painted = rows > 1 ? rows - 1 : 1;
	snprintf(up, sizeof(up), "\r\x1b[%zuA\x1b[J", painted);
	emit_str(p, up);
	buf_reset(&p->shown);
}

static void fill_view(struct prompt *p, const struct question *q, struct prompt_view *ret)
{
	*ret = (struct prompt_view){
		.home = p->options.home,
		.color = p->options.color && !p->options.dumb,
		.scope = p->scope,
		.page = p->page,
		.details = p->details,
		.help = p->help,
		.group = p->group,
		.early = p->early,
		.waiting = ask_len(p->ask),
		.stack = p->details ? ask_stack(p->ask, q->id) : NULL,
	};
	term_size(p->term, &ret->width, &ret->rows);
	if (p->options.dumb)
		ret->rows = 0; /* nothing is painted over: all of it scrolls by */
}

static void paint(struct prompt *p, const struct question *q)
{
	struct prompt_view view;
	fill_view(p, q, &view);
	size_t n = 0;
	for (const struct question *o = ask_first(p->ask); o; o = ask_next(p->ask, o)) {
		if (o != q && n < PROMPT_OTHERS_SHOWN)
			view.others[n++] = o;
		p->last = o->id;
	}
	erase(p);
	p->pages = prompt_paint(&p->shown, q, &view);
	p->page = p->page < p->pages ? p->page : p->pages - 1;
	emit(p, &p->shown);
}

/* ---- opening and closing ---- */

static void refuse_all(struct prompt *p)
{
	const struct answer no = {.lifetime = LIFETIME_SESSION, .by = BY_USER};
	const struct question *q;
	while ((q = ask_first(p->ask)))
		ask_answer(p->ask, q->id, &no);
}

static void refresh(struct prompt *p);
static void on_quiet(void *arg);

/* Whoever types while a question appears goes on typing: no key counts until there was none. */
static int await_quiet(struct prompt *p)
{
	loop_remove(p->loop, p->quiet_timer);
	p->quiet_timer = 0;
	return loop_add_timer(p->loop, PROMPT_QUIET_MS, on_quiet, p, &p->quiet_timer);
}

/* It is dumb, so the question cannot be painted anew: its keys follow. */
static void show_keys(struct prompt *p)
{
	struct prompt_view view;
	struct buf text = {0};
	const struct question *q = ask_find(p->ask, p->current);
	if (!q)
		return;
	fill_view(p, q, &view);
	promptkeys_paint(&text, q, &view, false);
	emit(p, &text);
	buf_free(&text);
}

static void on_quiet(void *arg)
{
	struct prompt *p = arg;
	bool hears = term_hears(p->term);
	p->quiet_timer = 0;
	/* We may have stood still ourselves, and a paste may have a pause in it. */
	if (!hears || p->away || p->pasting || term_has_keys(p->term)) {
		p->away = !hears;
		if (await_quiet(p))
			refuse_all(p);
		return;
	}
	p->early = false;
	if (p->options.dumb)
		show_keys(p);
	else
		refresh(p);
}

static bool open_terminal(struct prompt *p)
{
	bool was_open = p->open;
	if (term_hold(p->term, on_keys, p) || await_quiet(p))
		return false;
	p->early = true;
	p->open = true;
	if (!was_open) {
		if (term_column_unknown(p->term) && !p->options.own_lines)
			term_write(p->term, "\r\n", 2);
		emit_str(p, PASTE_ON);
	}
	return true;
}

static void close_terminal(struct prompt *p)
{
	if (!p->open)
		return;
	erase(p);
	emit_str(p, PASTE_OFF);
	p->open = false;
	p->current = 0;
	p->state = KEY_PLAIN;
	p->pasting = false;
	p->early = p->away = false;
	loop_remove(p->loop, p->esc_timer);
	loop_remove(p->loop, p->quiet_timer);
	p->esc_timer = p->quiet_timer = 0;
	term_resume(p->term);
}

/* Show what stands in the queue now: one place, once a turn, however much has changed. */
static void on_refresh(void *arg)
{
	struct prompt *p = arg;
	p->refresh_timer = 0;
	const struct question *q = p->current ? ask_find(p->ask, p->current) : NULL;
	if (!q) {
		q = ask_first(p->ask);
		p->scope = q ? q->marked : 0;
		p->details = p->help = p->group = false;
		p->page = 0;
		p->current = 0;
	}
	if (!q) {
		close_terminal(p);
		return;
	}
	/* A question that is new on the screen has its own time in which keys are not for it. */
	if (p->current != q->id && !open_terminal(p)) {
		refuse_all(p);
		return;
	}
	p->current = q->id;
	if (ask_len(p->ask) < 2)
		p->group = false;
	paint(p, q);
}

static void refresh(struct prompt *p)
{
	if (!p->refresh_timer)
		loop_add_timer(p->loop, 0, on_refresh, p, &p->refresh_timer);
}

/* ---- being a front ---- */

static void on_asked(void *self, const struct question *q)
{
	struct prompt *p = self;
	(void)q;
	/* At once: from here on nothing of the tree's output is shown. */
	if (!p->open && !open_terminal(p))
		refuse_all(p);
	else
		refresh(p);
}

static void record(struct prompt *p, const struct question *q, const struct answer *a)
{
	struct prompt_view view;
	struct buf text = {0};
	if (!p->open)
		return;
	erase(p);
	fill_view(p, q, &view);
	if (a)
		prompt_paint_record(&text, q, a, &view);
	else
		prompt_paint_late(&text, q, &view);
	emit(p, &text);
	buf_free(&text);
	refresh(p);
}

static void on_settled(void *self, const struct question *q, const struct answer *a)
{
	record(self, q, a);
}

static void on_cancelled(void *self, const struct question *q, const char *reason)
{
	struct prompt *p = self;
	if (!strcmp(reason, "timeout"))
		record(p, q, NULL);
	else if (p->open)
		refresh(p);
}

/* ---- acting ---- */

static void answer_all(struct prompt *p, struct answer a)
{
	uint64_t last = p->last, done = 0;
	const struct question *q = ask_first(p->ask);
	a.scope = 0;
	/* The queue changes under every answer (one may cover others): always from its start. */
	while (q && q->id <= last) {
		uint64_t id = q->id;
		if (id <= done || ask_answer(p->ask, id, &a)) {
			done = id;
			q = ask_next(p->ask, q);
		} else {
			done = id;
			q = ask_first(p->ask);
		}
	}
}

static void answer(struct prompt *p, bool allow, enum lifetime lifetime)
{
	struct answer a = {.allow = allow, .scope = p->scope, .lifetime = lifetime, .by = BY_USER};
	bool group = p->group;
	if (ask_answer(p->ask, p->current, &a))
		return; /* not offered here: the question stays */
	p->current = 0;
	if (group)
		answer_all(p, a);
}

/* While its call is still held: refused first, the command might end by itself before it comes. */
static void interrupt(struct prompt *p)
{
	if (p->options.interrupt)
		p->options.interrupt(p->options.arg);
	else if (p->pty)
		pty_interrupt(p->pty);
	refuse_all(p);
}

static void choose(struct prompt *p, size_t scope)
{
	const struct question *q = ask_find(p->ask, p->current);
	if (!q || scope >= q->scopes.len)
		return;
	p->scope = (unsigned)scope;
	p->help = false; /* which hides them */
	refresh(p);
}

static void toggle(struct prompt *p, bool *what)
{
	*what = !*what;
	refresh(p);
}

static void turn_page(struct prompt *p, bool forward)
{
	if (forward ? p->page + 1 >= p->pages : !p->page)
		return;
	p->page += forward ? 1 : (size_t)-1;
	refresh(p);
}

/* The help and the details are each a screen by itself: the one closes the other. */
static void toggle_screen(struct prompt *p, bool *what, bool *other)
{
	*other = false;
	p->page = 0;
	toggle(p, what);
}

static void act(struct prompt *p, enum prompt_action action, char key)
{
	if (p->early && action != PROMPT_INTERRUPT)
		return;
	switch (action) {
	case PROMPT_NOTHING:
		return;
	case PROMPT_ONCE:
		answer(p, true, LIFETIME_ONCE);
		return;
	case PROMPT_SESSION:
		answer(p, true, LIFETIME_SESSION);
		return;
	case PROMPT_ALWAYS:
		answer(p, true, LIFETIME_ALWAYS);
		return;
	case PROMPT_NO:
		answer(p, false, LIFETIME_SESSION);
		return;
	case PROMPT_NEVER:
		answer(p, false, LIFETIME_ALWAYS);
		return;
	case PROMPT_GROUP:
		if (ask_len(p->ask) > 1)
			toggle(p, &p->group);
		return;
	case PROMPT_SCOPE:
		choose(p, (size_t)(key - '1'));
		return;
	case PROMPT_UP:
		if (p->scope)
			choose(p, p->scope - 1);
		return;
	case PROMPT_DOWN:
		choose(p, p->scope + 1);
		return;
	case PROMPT_PAGE_DOWN:
		turn_page(p, true);
		return;
	case PROMPT_PAGE_UP:
		turn_page(p, false);
		return;
	case PROMPT_DETAILS:
		toggle_screen(p, &p->details, &p->help);
		return;
	case PROMPT_HELP:
		toggle_screen(p, &p->help, &p->details);
		return;
	case PROMPT_INTERRUPT:
		interrupt(p);
		return;
	}
}

/* ---- keys ---- */

static void on_esc_timer(void *arg)
{
	struct prompt *p = arg;
	p->esc_timer = 0;
	bool alone = p->state == KEY_ESC;
	p->state = KEY_PLAIN;
	if (alone && !p->pasting && p->current)
		act(p, PROMPT_NO, 0);
}

static void set_esc_timer(struct prompt *p, bool wanted)
{
	loop_remove(p->loop, p->esc_timer);
	p->esc_timer = 0;
	if (wanted)
		loop_add_timer(p->loop, PROMPT_ESC_MS, on_esc_timer, p, &p->esc_timer);
}

/* ESC [ or ESC O, parameters, and the last byte. */
static void end_sequence(struct prompt *p)
{
	p->state = KEY_PLAIN;
	set_esc_timer(p, false);
	const char *s = p->sequence;
	if (!strcmp(s, PASTE_BEGINS))
		p->pasting = true;
	else if (!strcmp(s, PASTE_ENDS))
		p->pasting = false;
	else if (!p->pasting && !strcmp(s, "A"))
		act(p, PROMPT_UP, 0);
	else if (!p->pasting && !strcmp(s, "B"))
		act(p, PROMPT_DOWN, 0);
	else if (!p->pasting && !strcmp(s, "5~"))
		act(p, PROMPT_PAGE_UP, 0);
	else if (!p->pasting && !strcmp(s, "6~"))
		act(p, PROMPT_PAGE_DOWN, 0);
}

static void feed_sequence(struct prompt *p, char c)
{
	if (p->sequence_len < PROMPT_CSI_MAX) {
		p->sequence[p->sequence_len++] = c;
		p->sequence[p->sequence_len] = '\0';
	}
	if (c >= 0x40 && c <= 0x7e)
		end_sequence(p);
}

static void feed(struct prompt *p, char c)
{
	if (c == '\x1b') {
		p->state = KEY_ESC;
		set_esc_timer(p, true);
	} else if (p->state == KEY_ESC && (c == '[' || c == 'O')) {
		p->state = KEY_SEQUENCE;
		p->sequence_len = 0;
		p->sequence[0] = '\0';
	} else if (p->state == KEY_ESC) {
		p->state = KEY_PLAIN; /* Alt and a key: neither */
		set_esc_timer(p, false);
	} else if (p->state == KEY_SEQUENCE) {
		feed_sequence(p, c);
	} else if (!p->pasting) {
		act(p, promptkeys_action(c), c);
	}
}

static size_t on_keys(void *arg, const char *bytes, size_t n)
{
	struct prompt *p = arg;
	size_t i = 0;
	bool early = p->early;
	if (!n || (early && await_quiet(p)))
		refuse_all(p);
	/*
	 * One answer a reading: what follows in the same breath was typed before the next question
	 * could be read. It goes to the program if this was the last, and else nowhere.
	 */
	while (i < n && (early ? ask_len(p->ask) > 0 : ask_find(p->ask, p->current) != NULL))
		feed(p, bytes[i++]);
	if (!ask_len(p->ask)) {
		loop_remove(p->loop, p->refresh_timer);
		on_refresh(p);
		return i;
	}
	return early ? 0 : n;
}

/* ---- life ---- */

int prompt_new(struct loop *l, struct ask *a, struct pty *pty, const struct prompt_options *o,
	       struct prompt **ret)
{
	struct prompt *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->loop = l;
	p->ask = a;
	p->pty = pty;
	p->options = *o;
	const struct ask_front front = {
		.self = p,
		.answers = true,
		.asked = on_asked,
		.cancelled = on_cancelled,
		.settled = on_settled,
	};
	int r = term_new(l, pty, &p->term);
	if (!r)
		r = ask_add_front(a, &front);
	if (r) {
		prompt_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

void prompt_make_way(struct prompt *p)
{
	if (!p->open)
		return;
	erase(p);
	refresh(p);
}

size_t prompt_columns(const struct prompt *p)
{
	size_t columns, rows;
	term_size(p->term, &columns, &rows);
	return columns;
}

void prompt_free(struct prompt *p)
{
	if (!p)
		return;
	ask_remove_front(p->ask, p);
	if (p->term)
		close_terminal(p);
	loop_remove(p->loop, p->refresh_timer);
	loop_remove(p->loop, p->esc_timer);
	loop_remove(p->loop, p->quiet_timer);
	term_free(p->term);
	buf_free(&p->shown);
	free(p);
}
