#include "supervisor/glob.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

enum part_kind { PART_LITERAL, PART_WILD, PART_ANY_DEPTH };

struct part {
	enum part_kind kind;
	const char *text; /* in glob.text; without escapes where literal */
	size_t len;
};

struct glob {
	char *text;
	size_t len;	    /* number of parts */
	uint64_t needed;    /* bits of the components that every match has */
	struct part part[]; /* room for what the pattern can have, and for a last "*" */
};

static uint64_t bit_of(const char *component, size_t n)
{
	uint32_t h = GLOB_COMPONENT;
	for (size_t i = 0; i < n; i++)
		h = glob_component_add(h, component[i]);
	return glob_component_bit(h);
}

size_t glob_first_wild(const char *text, size_t n)
{
	size_t start = 0;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\\' && i + 1 < n)
			i++;
		else if (text[i] == '/')
			start = i + 1;
		else if (text[i] == '*' || text[i] == '?')
			return start;
	}
	return n;
}

/* In place; the new length. */
static size_t unescape(char *text, size_t n)
{
	size_t to = 0;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\\' && i + 1 < n)
			i++;
		text[to++] = text[i];
	}
	return to;
}

char *glob_place(const char *pattern)
{
	size_t n = glob_first_wild(pattern, strlen(pattern));
	char *place = strndup(pattern, n > 1 ? n - 1 : 1);
	if (place)
		place[unescape(place, strlen(place))] = '\0';
	return place;
}

static struct part part_of(char *text, size_t n)
{
	if (n == 2 && text[0] == '*' && text[1] == '*')
		return (struct part){PART_ANY_DEPTH, text, n};
	if (glob_first_wild(text, n) < n)
		return (struct part){PART_WILD, text, n};
	return (struct part){PART_LITERAL, text, unescape(text, n)};
}

static bool is_dots(const struct part *p)
{
	return p->kind == PART_LITERAL && p->len <= 2 && memcmp("..", p->text, p->len) == 0;
}

static int add_part(struct glob *g, struct part part)
{
	if (is_dots(&part))
		return -EINVAL;
	if (part.kind == PART_ANY_DEPTH && g->len && g->part[g->len - 1].kind == PART_ANY_DEPTH)
		return 0;
	if (g->len == GLOB_PARTS_MAX)
		return -EINVAL;
	if (part.kind == PART_LITERAL)
		g->needed |= bit_of(part.text, part.len);
	g->part[g->len++] = part;
	return 0;
}

static int split(struct glob *g)
{
	for (char *at = g->text; *at == '/';) {
		while (*at == '/')
			at++;
		size_t n = strcspn(at, "/");
		if (n == 0)
			break;
		int r = add_part(g, part_of(at, n));
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

static int finish_last(struct glob *g, bool tree)
{
	static const struct part one = {PART_WILD, "*", 1};
	if (g->len == 0 || g->part[g->len - 1].kind != PART_ANY_DEPTH)
		return 0;
	if (tree)
		g->part[g->len - 1] = one;
	else
		return add_part(g, one);
	return 0;
}

int glob_new(const char *pattern, bool tree, struct glob **ret)
{
	if (pattern[0] != '/')
		return -EINVAL;
	size_t parts = 1;
	for (const char *slash = pattern; slash && parts <= GLOB_PARTS_MAX; parts++)
		slash = strchr(slash + 1, '/');
	struct glob *g = calloc(1, sizeof(*g) + parts * sizeof(g->part[0]));
	if (!g)
		return -ENOMEM;
	g->text = strdup(pattern);
	int r = g->text ? split(g) : -ENOMEM;
	if (r == 0)
		r = finish_last(g, tree);
	if (r < 0) {
		glob_free(g);
		return r;
	}
	*ret = g;
	return 0;
}

void glob_free(struct glob *g)
{
	if (!g)
		return;
	free(g->text);
	free(g);
}

/* One byte of the pattern at *p; false where it can't be the byte c. Advances over escapes. */
static bool byte_matches(const char *p, size_t left, char c, size_t *ret_used)
{
	bool escaped = p[0] == '\\' && left > 1;
	*ret_used = escaped ? 2 : 1;
	return escaped ? p[1] == c : p[0] == '?' || p[0] == c;
}

/* The classic walk with one remembered star: linear memory, no recursion. */
static bool wild_matches(const char *p, size_t pn, const char *s, size_t sn)
{
	size_t pi = 0, si = 0, star = 0, star_si = 0;
	bool starred = false;
	while (si < sn) {
		size_t used;
		if (pi < pn && p[pi] == '*') {
			starred = true;
			star = ++pi;
			star_si = si;
		} else if (pi < pn && byte_matches(p + pi, pn - pi, s[si], &used)) {
			pi += used;
			si++;
		} else if (starred) {
			pi = star;
			si = ++star_si;
		} else {
			return false;
		}
	}
	while (pi < pn && p[pi] == '*')
		pi++;
	return pi == pn;
}

static bool part_matches(const struct part *p, const char *s, size_t n)
{
	if (p->kind == PART_LITERAL)
		return p->len == n && memcmp(p->text, s, n) == 0;
	return wild_matches(p->text, p->len, s, n);
}

/*
 * States are parts that wait for the next component; bit `len` is the match. A "**" may be left
 * without taking anything.
 */
static uint64_t closure(const struct glob *g, uint64_t states)
{
	for (size_t i = 0; i < g->len; i++)
		if ((states >> i & 1) && g->part[i].kind == PART_ANY_DEPTH)
			states |= UINT64_C(1) << (i + 1);
	return states;
}

static uint64_t step(const struct glob *g, uint64_t states, const char *s, size_t n)
{
	uint64_t next = 0;
	for (size_t i = 0; i < g->len; i++) {
		if (!(states >> i & 1))
			continue;
		if (g->part[i].kind == PART_ANY_DEPTH)
			next |= UINT64_C(1) << i;
		else if (part_matches(&g->part[i], s, n))
			next |= UINT64_C(1) << (i + 1);
	}
	return closure(g, next);
}

/* The next component at *at, which stands on its slash; false at the end. */
static bool next_component(const char **at, const char **ret, size_t *ret_n)
{
	if (**at != '/' || !(*at)[1])
		return false;
	*ret = *at + 1;
	*ret_n = strcspn(*ret, "/");
	*at = *ret + *ret_n;
	return true;
}

int glob_match(const struct glob *g, const char *path, uint64_t components)
{
	if ((g->needed & components) != g->needed)
		return -1;
	uint64_t accept = UINT64_C(1) << g->len;
	uint64_t states = closure(g, 1);
	int depth = 0, matched = states & accept ? 0 : -1;
	const char *s;
	size_t n;
	while (states && next_component(&path, &s, &n)) {
		states = step(g, states, s, n);
		depth++;
		if (states & accept)
			matched = depth;
	}
	return matched;
}

bool glob_reaches_below(const struct glob *g, const char *dir)
{
	uint64_t accept = UINT64_C(1) << g->len;
	uint64_t states = closure(g, 1);
	const char *s;
	size_t n;
	while (states && next_component(&dir, &s, &n))
		states = step(g, states, s, n);
	return (states & ~accept) != 0;
}

/* ---- two patterns ---- */

struct letter {
	bool star, any;
	char c;
};

/* The letter at *at, which then stands behind it. */
static struct letter letter_at(const struct part *p, size_t *at)
{
	bool escaped = p->kind == PART_WILD && p->text[*at] == '\\' && *at + 1 < p->len;
	struct letter l = {.c = p->text[*at + escaped]};
	l.star = p->kind == PART_WILD && !escaped && l.c == '*';
	l.any = p->kind == PART_WILD && !escaped && l.c == '?';
	*at += escaped ? 2 : 1;
	return l;
}

/* row[j]: could what stands before here in a, and before j in b, be the same text? */
static void next_row(const struct letter *l, const struct part *b, const bool *row, bool *next)
{
	memset(next, 0, b->len + 1);
	for (size_t j = 0; j <= b->len; j++) {
		next[j] |= l->star && row[j];
		if (j == b->len)
			break;
		size_t to = j;
		struct letter m = letter_at(b, &to);
		if (m.star)
			next[j] |= row[j];
		if (m.star)
			next[to] |= next[j];
		if (l->star)
			next[to] |= next[j];
		else if (!m.star && (l->any || m.any || l->c == m.c))
			next[to] |= row[j];
	}
}

/* A component that both match; neither is a "**". */
static int parts_meet(const struct part *a, const struct part *b)
{
	if (a->kind == PART_LITERAL && b->kind == PART_LITERAL)
		return part_matches(a, b->text, b->len);
	if (a->kind == PART_LITERAL || b->kind == PART_LITERAL)
		return a->kind == PART_LITERAL ? part_matches(b, a->text, a->len)
					       : part_matches(a, b->text, b->len);
	bool *rows AUTOFREE = calloc(2 * (b->len + 1), sizeof(bool));
	if (!rows)
		return -ENOMEM;
	bool *row = rows, *next = rows + b->len + 1;
	row[0] = true;
	for (size_t j = 0; j < b->len && b->text[j] == '*'; j++)
		row[j + 1] = true;
	for (size_t at = 0; at < a->len;) {
		struct letter l = letter_at(a, &at);
		next_row(&l, b, row, next);
		bool *spent = row;
		row = next;
		next = spent;
	}
	return row[b->len];
}

/* What waits in g at state i may take a component and stay, or (NULL) takes nothing more. */
static const struct part *part_at(const struct glob *g, size_t i)
{
	return i < g->len ? &g->part[i] : NULL;
}

static bool stays(const struct glob *g, size_t i, bool tree)
{
	return i == g->len ? tree : g->part[i].kind == PART_ANY_DEPTH;
}

struct meeting {
	const struct glob *a, *b;
	bool a_tree, b_tree;
	uint64_t at[GLOB_PARTS_MAX + 1]; /* of each state of a, those of b that go with it */
};

/* Mark where one component, or the end of a "**", leads from (i, j). 0 or -ENOMEM. */
static int meet_from(struct meeting *m, size_t i, size_t j)
{
	const struct part *p = part_at(m->a, i), *q = part_at(m->b, j);
	bool p_stays = stays(m->a, i, m->a_tree), q_stays = stays(m->b, j, m->b_tree);
	if (p && p_stays)
		m->at[i + 1] |= UINT64_C(1) << j;
	if (q && q_stays)
		m->at[i] |= UINT64_C(1) << (j + 1);
	if (p && !p_stays && q_stays)
		m->at[i + 1] |= UINT64_C(1) << j;
	if (q && !q_stays && p_stays)
		m->at[i] |= UINT64_C(1) << (j + 1);
	if (!p || !q || p_stays || q_stays)
		return 0;
	int r = parts_meet(p, q);
	if (r > 0)
		m->at[i + 1] |= UINT64_C(1) << (j + 1);
	return r < 0 ? r : 0;
}

/* No step leads back, so that one sweep sees each state after all that lead to it. */
int glob_meets(const struct glob *a, bool a_tree, const struct glob *b, bool b_tree)
{
	struct meeting m = {.a = a, .b = b, .a_tree = a_tree, .b_tree = b_tree, .at = {1}};
	for (size_t i = 0; i <= a->len; i++)
		for (size_t j = 0; j <= b->len; j++) {
			int r = m.at[i] >> j & 1 ? meet_from(&m, i, j) : 0;
			if (r < 0)
				return r;
		}
	return m.at[a->len] >> b->len & 1;
}
