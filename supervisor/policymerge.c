#include "supervisor/policymerge.h"

#include "supervisor/escape.h"
#include "supervisor/policyscan.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>

/* A part of a comment: several that one line has are set off by "; ". */
struct note {
	char *text; /* owned */
};

struct item {
	bool use; /* `use PATH`: a preset */
	enum effect effect;
	bool exact;
	char *path; /* owned; as written */
	uint32_t access;
	struct note *note; /* owned */
	size_t notes;
};

struct policymerge {
	struct item *item;
	size_t len, cap;
	bool failed; /* no memory on the way: what was joined is not whole */
};

int policymerge_new(struct policymerge **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void item_release(struct item *i)
{
	for (size_t k = 0; k < i->notes; k++)
		free(i->note[k].text);
	free(i->note);
	free(i->path);
}

void policymerge_free(struct policymerge *m)
{
	for (size_t i = 0; m && i < m->len; i++)
		item_release(&m->item[i]);
	if (m)
		free(m->item);
	free(m);
}

/* ---- reading ---- */

/* As it will be written, so that reading it again gives the same: harmless, and of bounded length.
 */
static int add_note(struct item *i, const char *text, size_t n)
{
	struct buf note = {0};
	struct note *more = reallocarray(i->note, i->notes + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	i->note = more;
	escape_add(&note, text, n);
	size_t len = note.len;
	if (len > POLICYMERGE_NOTE_MAX)
		for (len = POLICYMERGE_NOTE_MAX; len && (note.data[len] & 0xc0) == 0x80;)
			len--;
	while (len && strchr(" \t", note.data[len - 1]))
		len--;
	more[i->notes].text = strndup(buf_str(&note), len);
	bool failed = note.failed || !more[i->notes].text;
	buf_free(&note);
	return failed ? -ENOMEM : (i->notes++, 0);
}

/* The comment of a line: behind its last word. */
static int add_notes(struct item *i, const char *line, size_t n, const struct policyscan_line *l)
{
	const struct policyscan_word *last = &l->word[l->words - 1];
	const char *at = last->raw + last->raw_len, *end = line + n;
	at = memchr(at, '#', (size_t)(end - at));
	int r = 0;
	for (at = at ? at + 1 : end; r == 0 && at < end;) {
		const char *stop = memmem(at, (size_t)(end - at), "; ", 2);
		const char *next = stop ? stop + 2 : end;
		stop = stop ? stop : end;
		while (at < stop && strchr(" \t\r", *at))
			at++;
		while (stop > at && strchr(" \t\r", stop[-1]))
			stop--;
		if (stop > at)
			r = add_note(i, at, (size_t)(stop - at));
		at = next;
	}
	return r;
}

static int take_item(struct policymerge *m, const struct item *i)
{
	if (m->len == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 64;
		struct item *more = reallocarray(m->item, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		m->item = more;
		m->cap = cap;
	}
	m->item[m->len++] = *i;
	return 0;
}

static int add_word(struct policymerge *m, const char *line, size_t n,
		    const struct policyscan_line *l, size_t word)
{
	bool use = l->kind == POLICYSCAN_USE;
	struct item i = {.use = use,
			 .effect = use ? EFFECT_ALLOW : l->effect,
			 .exact = !use && l->exact,
			 .access = use ? 0 : l->access,
			 .path = strndup(l->word[word].raw, l->word[word].raw_len)};
	int r = i.path ? add_notes(&i, line, n, l) : -ENOMEM;
	if (r == 0)
		r = take_item(m, &i);
	if (r < 0)
		item_release(&i);
	return r;
}

static int add_line(struct policymerge *m, const struct policyscan_where *where, const char *line,
		    size_t n, struct policy_error *e)
{
	struct policyscan_line l;
	int r = policyscan_line(where, line, n, false, &l, e);
	if (r < 0)
		return r;
	size_t end = l.kind == POLICYSCAN_USE	  ? l.words
		     : l.kind == POLICYSCAN_BLANK ? 0
						  : l.path + 1;
	for (size_t w = l.path; r == 0 && w < end; w++)
		r = add_word(m, line, n, &l, w);
	policyscan_release(&l);
	return r;
}

int policymerge_add(struct policymerge *m, const char *name, const char *text, size_t n,
		    struct policy_error *ret_error)
{
	struct policyscan_where where = {.name = name, .line = 1};
	int r = policyfile_check(name, text, n, ret_error);
	for (size_t at = 0; r == 0 && at < n; where.line++) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t len = (end ? (size_t)(end - text) : n) - at;
		r = add_line(m, &where, text + at, len, ret_error);
		at += len + 1;
	}
	return r;
}

/* ---- joining ---- */

static int by_key(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	if (x->use != y->use)
		return x->use ? -1 : 1;
	int order = strcmp(x->path, y->path);
	if (!order)
		order = (int)x->effect - (int)y->effect;
	return order ? order : (int)x->exact - (int)y->exact;
}

static int by_text(const void *a, const void *b)
{
	const struct note *x = a, *y = b;
	return strcmp(x->text, y->text);
}

/* Takes b's notes over; b is spent. */
static bool join(struct item *a, struct item *b)
{
	a->access |= b->access;
	struct note *more = reallocarray(a->note, a->notes + b->notes + 1, sizeof(*more));
	if (more) {
		a->note = more;
		for (size_t k = 0; k < b->notes; k++)
			more[a->notes++] = b->note[k];
		b->notes = 0;
	}
	item_release(b);
	return more != NULL;
}

static void drop_repeated(struct item *i)
{
	size_t kept = 0;
	if (i->notes)
		qsort(i->note, i->notes, sizeof(*i->note), by_text);
	for (size_t k = 0; k < i->notes; k++) {
		if (kept && !strcmp(i->note[kept - 1].text, i->note[k].text))
			free(i->note[k].text);
		else
			i->note[kept++] = i->note[k];
	}
	for (; kept > POLICYMERGE_NOTES_MAX; kept--)
		free(i->note[kept - 1].text);
	i->notes = kept;
}

static void join_all(struct policymerge *m)
{
	size_t kept = 0;
	if (m->len)
		qsort(m->item, m->len, sizeof(*m->item), by_key);
	for (size_t i = 0; i < m->len; i++) {
		if (kept && by_key(&m->item[kept - 1], &m->item[i]) == 0)
			m->failed |= !join(&m->item[kept - 1], &m->item[i]);
		else
			m->item[kept++] = m->item[i];
	}
	m->len = kept;
	for (size_t i = 0; i < m->len; i++)
		drop_repeated(&m->item[i]);
}

static void write_item(const struct item *i, struct buf *out)
{
	size_t start = out->len;
	buf_add_str(out, i->use ? "use" : effect_name(i->effect));
	buf_add_char(out, ' ');
	if (!i->use && i->access != ACCESS_ALL) {
		access_format(out, i->access);
		buf_add_char(out, ' ');
	}
	buf_add_str(out, i->path);
	buf_add_str(out, i->exact ? " exact" : "");
	for (size_t k = 0; k < i->notes; k++) {
		if (out->len - start + strlen(i->note[k].text) + 4 > POLICYFILE_LINE_MAX)
			break;
		buf_add_str(out, k ? "; " : "  # ");
		buf_add_str(out, i->note[k].text);
	}
	buf_add_char(out, '\n');
}

void policymerge_write(struct policymerge *m, struct buf *out)
{
	join_all(m);
	out->failed |= m->failed;
	for (size_t i = 0; i < m->len; i++)
		write_item(&m->item[i], out);
}
