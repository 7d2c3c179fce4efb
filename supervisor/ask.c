#include "supervisor/ask.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

struct entry {
	struct ask *ask;
	struct question *q;
	uint64_t timer;
	unsigned told;		    /* bit i: front[i] heard of it */
	bool looked;		    /* for the stack */
	struct unwind_stack *stack; /* a reference, or NULL */
};

struct ask {
	struct loop *loop;
	int64_t timeout_ms;
	ask_answered_fn *fn;
	ask_stack_fn *stack_fn;
	void *arg;
	uint64_t next_id;
	struct ask_front front[ASK_FRONTS_MAX]; /* self NULL: free */
	struct entry **entry;			/* by rising id */
	size_t len;
	size_t cap;
};

void question_free(struct question *q)
{
	if (!q)
		return;
	for (char **arg = q->argv; arg && *arg; arg++)
		free(*arg);
	free(q->argv);
	free(q->exe);
	free(q->title);
	free(q->cwd);
	free(q->path);
	free(q->given);
	free(q->path2);
	free(q->note);
	free(q->below);
	free(q->text);
	plan_scopes_release(&q->scopes);
	free(q);
}

int ask_new(struct loop *l, int64_t timeout_ms, ask_answered_fn *fn, void *arg, struct ask **ret)
{
	struct ask *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->loop = l;
	a->timeout_ms = timeout_ms;
	a->fn = fn;
	a->arg = arg;
	a->next_id = 1;
	*ret = a;
	return 0;
}

/* ---- fronts ---- */

int ask_add_front(struct ask *a, const struct ask_front *front)
{
	BUG(!front->self);
	for (size_t i = 0; i < ASK_FRONTS_MAX; i++) {
		if (a->front[i].self)
			continue;
		a->front[i] = *front;
		return 0;
	}
	return -ENOSPC;
}

void ask_remove_front(struct ask *a, const void *self)
{
	for (size_t i = 0; i < ASK_FRONTS_MAX; i++) {
		if (a->front[i].self != self)
			continue;
		a->front[i] = (struct ask_front){0};
		for (size_t k = 0; k < a->len; k++)
			a->entry[k]->told &= ~(1u << i);
	}
}

static bool somebody_answers(const struct ask *a)
{
	for (size_t i = 0; i < ASK_FRONTS_MAX; i++)
		if (a->front[i].self && a->front[i].answers)
			return true;
	return false;
}

static void tell_settled(struct ask *a, const struct entry *e, const struct answer *answer)
{
	for (size_t i = 0; i < ASK_FRONTS_MAX; i++)
		if (e->told & 1u << i && a->front[i].settled)
			a->front[i].settled(a->front[i].self, e->q, answer);
}

static void tell_cancelled(struct ask *a, const struct entry *e, const char *reason)
{
	for (size_t i = 0; i < ASK_FRONTS_MAX; i++)
		if (e->told & 1u << i && a->front[i].cancelled)
			a->front[i].cancelled(a->front[i].self, e->q, reason);
}

/* ---- the queue ---- */

static size_t index_of(const struct ask *a, uint64_t id)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->entry[i]->q->id == id)
			return i;
	return SIZE_MAX;
}

static struct entry *take(struct ask *a, size_t i)
{
	struct entry *e = a->entry[i];
	memmove(&a->entry[i], &a->entry[i + 1], (a->len - i - 1) * sizeof(*a->entry));
	a->len--;
	loop_remove(a->loop, e->timer);
	return e;
}

static void entry_free(struct entry *e)
{
	question_free(e->q);
	unwind_unref(e->stack);
	free(e);
}

static void on_deadline(void *arg)
{
	struct entry *e = arg;
	struct ask *a = e->ask;
	struct answer no = {.lifetime = LIFETIME_SESSION, .by = BY_TIMEOUT};
	take(a, index_of(a, e->q->id));
	tell_cancelled(a, e, "timeout");
	a->fn(a->arg, e->q, &no);
	entry_free(e);
}

static int append(struct ask *a, struct entry *e)
{
	if (a->len == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 8;
		struct entry **grown = reallocarray(a->entry, cap, sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		a->entry = grown;
		a->cap = cap;
	}
	if (a->timeout_ms > 0) {
		int r = loop_add_timer(a->loop, a->timeout_ms, on_deadline, e, &e->timer);
		if (r)
			return r;
	}
	a->entry[a->len++] = e;
	return 0;
}

/* A front may answer at once; the entry is then gone and the others never hear of it. */
static void tell_asked(struct ask *a, uint64_t id)
{
	for (size_t f = 0; f < ASK_FRONTS_MAX; f++) {
		size_t i = index_of(a, id);
		if (i == SIZE_MAX)
			return;
		if (!a->front[f].self)
			continue;
		a->entry[i]->told |= 1u << f;
		if (a->front[f].asked)
			a->front[f].asked(a->front[f].self, a->entry[i]->q);
	}
}

static struct entry *entry_after(const struct ask *a, uint64_t id)
{
	for (size_t i = 0; i < a->len; i++)
		if (a->entry[i]->q->id > id)
			return a->entry[i];
	return NULL;
}

void ask_catch_up(struct ask *a, const void *self)
{
	struct entry *e;
	/* A front may answer at once, and may be gone after that. */
	for (uint64_t id = 0; (e = entry_after(a, id));) {
		size_t f = 0;
		id = e->q->id;
		while (f < ASK_FRONTS_MAX && a->front[f].self != self)
			f++;
		if (f == ASK_FRONTS_MAX)
			return;
		if (e->told & 1u << f || !a->front[f].asked)
			continue;
		e->told |= 1u << f;
		a->front[f].asked(a->front[f].self, e->q);
	}
}

int ask_push(struct ask *a, struct question *q, uint64_t *ret_id)
{
	BUG(!q->is_rerun && !q->scopes.len);
	struct entry *e = NULL;
	int r = -ENOTCONN;
	if (!somebody_answers(a))
		goto fail;
	r = -ENOMEM;
	e = calloc(1, sizeof(*e));
	if (!e)
		goto fail;
	e->ask = a;
	e->q = q;
	r = append(a, e);
	if (r)
		goto fail;
	uint64_t id = a->next_id++;
	q->id = id;
	if (!q->group)
		q->group = id;
	*ret_id = id;
	tell_asked(a, id);
	return 0;
fail:
	free(e);
	question_free(q);
	return r;
}

static bool is_offered(const struct question *q, const struct answer *answer)
{
	if (answer->lifetime == LIFETIME_ALWAYS && (q->no_saving || q->is_rerun))
		return false;
	if (!answer->allow || q->is_rerun)
		return true;
	return answer->scope < q->scopes.len;
}

int ask_answer(struct ask *a, uint64_t id, const struct answer *answer)
{
	size_t i = index_of(a, id);
	if (i == SIZE_MAX)
		return -ENOENT;
	if (!is_offered(a->entry[i]->q, answer))
		return -EINVAL;
	struct answer final = *answer;
	if (!final.allow && final.lifetime == LIFETIME_ONCE)
		final.lifetime = LIFETIME_SESSION;
	struct entry *e = take(a, i);
	tell_settled(a, e, &final);
	a->fn(a->arg, e->q, &final);
	entry_free(e);
	return 0;
}

void ask_set_stack(struct ask *a, ask_stack_fn *fn)
{
	a->stack_fn = fn;
}

const struct unwind_stack *ask_stack(struct ask *a, uint64_t id)
{
	size_t i = index_of(a, id);
	if (i == SIZE_MAX)
		return NULL;
	struct entry *e = a->entry[i];
	if (!e->looked && a->stack_fn && !e->q->is_rerun && a->stack_fn(a->arg, e->q, &e->stack))
		e->stack = NULL; /* its thread died, or no helper could be made: nothing is known */
	e->looked = true;
	return e->stack;
}

void ask_cancel(struct ask *a, uint64_t id, const char *reason)
{
	size_t i = index_of(a, id);
	if (i == SIZE_MAX)
		return;
	struct entry *e = take(a, i);
	tell_cancelled(a, e, reason);
	entry_free(e);
}

void ask_free(struct ask *a)
{
	if (!a)
		return;
	struct answer no = {.lifetime = LIFETIME_SESSION, .by = BY_NONE};
	while (a->len) {
		struct entry *e = take(a, 0);
		tell_cancelled(a, e, "exited");
		a->fn(a->arg, e->q, &no);
		entry_free(e);
	}
	free(a->entry);
	free(a);
}

size_t ask_len(const struct ask *a)
{
	return a->len;
}

const struct question *ask_first(const struct ask *a)
{
	return a->len ? a->entry[0]->q : NULL;
}

const struct question *ask_next(const struct ask *a, const struct question *q)
{
	size_t i = index_of(a, q->id);
	return i != SIZE_MAX && i + 1 < a->len ? a->entry[i + 1]->q : NULL;
}

const struct question *ask_find(const struct ask *a, uint64_t id)
{
	size_t i = index_of(a, id);
	return i == SIZE_MAX ? NULL : a->entry[i]->q;
}
