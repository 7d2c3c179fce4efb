/*
 * ask: the queue of open questions between the engine and whoever answers.
 *
 * The engine pushes questions and is called back once for each with its answer. Fronts (the
 * terminal prompt, the JSON protocol, --yes) are told when the queue changes and answer by id, in
 * any order. A question leaves the queue by an answer, by ask_cancel(), or by its deadline (a no by
 * timeout).
 */
#pragma once

#include "supervisor/denial.h"
#include "supervisor/loop.h"
#include "supervisor/plan.h"
#include "tracer/unwind.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct question {
	uint64_t id;	      /* set by ask_push: 1, 2, ... */
	uint64_t group;	      /* questions shown together (one call's, or one directory's) */
	struct timespec time; /* CLOCK_REALTIME */
	pid_t pid;
	char *exe;	  /* owned */
	char *title;	  /* owned; who asks, where the program's name says less; or NULL */
	char **argv;	  /* owned, NULL-terminated, redacted */
	char *cwd;	  /* owned */
	const char *call; /* static */
	char *path;	  /* owned */
	char *given;	  /* owned or NULL */
	char *path2;	  /* owned or NULL */
	char *note;	  /* owned or NULL; why it is asked, where no rule says it */
	char *below;	  /* owned or NULL; a directory that was asked about often (budget.h) */
	unsigned marked;  /* the scope that is marked at first and that a no is about: 0, or where
			   * `below` is the directory's */
	uint32_t access;
	bool exists;
	bool sensitive;
	bool is_rerun; /* not about a path: may the command be run again? `text` says what changed
			*/
	char *text;    /* owned; is_rerun: lines to show (unescaped bytes) */
	struct scope_list scopes; /* at least one unless is_rerun */
	bool no_saving;		  /* "always" and "never" are not offered */
	void *owner;		  /* the engine's */
};

struct answer {
	bool allow;
	unsigned scope;		/* index in scopes, where allow */
	enum lifetime lifetime; /* deny: SESSION is "no" (this run), ALWAYS is "never" */
	enum answered_by by;
};

struct ask;

/*
 * Called once a question, on the loop's thread, after the fronts heard of it; the question is
 * freed when it returns. A front that answers at once (--yes, a closed pipe) makes it run inside
 * ask_push().
 */
typedef void ask_answered_fn(void *arg, const struct question *q, const struct answer *a);

/* Looks up who made a question's call: *ret is a reference for the queue. 0 or -errno. */
typedef int ask_stack_fn(void *arg, const struct question *q, struct unwind_stack **ret);

/* What a front implements; all optional. Called on the loop's thread. */
struct ask_front {
	void *self;
	bool answers; /* it can answer; false: it only shows (an events pipe without answers) */
	void (*asked)(void *self, const struct question *q); /* a new question stands */
	/* it is gone without an answer: "covered" (another question's answer decided it), "exited",
	 * "timeout" */
	void (*cancelled)(void *self, const struct question *q, const char *reason);
	/* it was answered, by this front or another */
	void (*settled)(void *self, const struct question *q, const struct answer *a);
};

#define ASK_FRONTS_MAX 8

/* timeout_ms: --answer-timeout; 0: none. `l` must outlive it. */
int ask_new(struct loop *l, int64_t timeout_ms, ask_answered_fn *fn, void *arg, struct ask **ret);
/* Pending questions end as "no" by BY_NONE (the callback is called). */
void ask_free(struct ask *a);
/* With the arg of ask_new(). Without one no stack is known. */
void ask_set_stack(struct ask *a, ask_stack_fn *fn);
/*
 * Who made the question's call: looked up when a front first wants it (some milliseconds), then
 * kept with the question. NULL: not known. A loan as long as the question stands.
 */
const struct unwind_stack *ask_stack(struct ask *a, uint64_t id);
/* Told of questions from here on. Copied; -ENOSPC beyond ASK_FRONTS_MAX. */
int ask_add_front(struct ask *a, const struct ask_front *front);
/* Told of every question that stands already, as if it was asked just now. */
void ask_catch_up(struct ask *a, const void *self);
/* By its self; one that is not there is fine. Its open questions stay, for the other fronts. */
void ask_remove_front(struct ask *a, const void *self);
/*
 * Takes the question over (also on failure). -ENOMEM, or -ENOTCONN without a front that answers:
 * answer it yourself as no. A group of 0 becomes the question's own id.
 */
int ask_push(struct ask *a, struct question *q, uint64_t *ret_id);
/*
 * 0; -ENOENT no such question; -EINVAL scope out of range, lifetime not offered. A "no" for once is
 * a no for this run.
 */
int ask_answer(struct ask *a, uint64_t id, const struct answer *answer);
/* The engine's: gone without ask_answered_fn being called; an unknown id is fine. */
void ask_cancel(struct ask *a, uint64_t id, const char *reason);
size_t ask_len(const struct ask *a);
/* Every question, oldest first; the loan ends with the next call that changes the queue. */
const struct question *ask_first(const struct ask *a);
const struct question *ask_next(const struct ask *a, const struct question *q);
const struct question *ask_find(const struct ask *a, uint64_t id);
/* NULL is fine. */
void question_free(struct question *q);
