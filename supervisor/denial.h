/*
 * denial: what was refused, to whom, and what became of it. The report's, the plan's and the
 * audit's common record.
 */
#pragma once

#include "supervisor/access.h"
#include "tracer/json.h"
#include "tracer/unwind.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum verdict {
	VERDICT_SANDBOX,      /* Landlock or this policy refused; a grant would help */
	VERDICT_PERMISSIONS,  /* mode, owner or ACL refused: no grant can help */
	VERDICT_CROSS_DEVICE, /* a real EXDEV */
	VERDICT_OTHER,	      /* another kernel policy; `note` says what is known */
};

enum lifetime { LIFETIME_ONCE, LIFETIME_SESSION, LIFETIME_ALWAYS };

enum answered_by { BY_NONE, BY_USER, BY_POLICY, BY_TIMEOUT, BY_YES };

struct denial {
	char *path;	  /* owned; absolute and resolved */
	char *given;	  /* owned; NULL where it is the same */
	char *path2;	  /* owned; rename and link: the other path */
	bool path2_open;  /* path2 is allowed already: it is told, nothing is asked for it */
	uint32_t access;  /* ACCESS_* needed */
	uint32_t gained;  /* of these: what a moved thing's new place would open it to */
	const char *call; /* static: a sysent's name */
	int error;	  /* positive errno the call got first */
	enum verdict verdict;
	bool allowed;  /* the answer */
	bool unwalled; /* there was no wall (--permissive): it would have been refused, and was not
			*/
	enum answered_by by;
	enum lifetime lifetime;
	char *rule; /* owned; where the deciding rule stands ("~/.config/warder/policy:12"), or NULL
		     */
	char *note; /* owned or NULL; what else is known */
	uint64_t count; /* 0 counts as 1 when added */
	int64_t t_ms;	/* since the start, of the first */
	unsigned run;	/* 1 for the first run */
	pid_t pid;
	char *exe;   /* owned */
	char *argv0; /* owned */
	char **argv; /* owned, redacted, or NULL: for questions asked later; not in the record */
	struct unwind_stack *stack; /* a reference, or NULL: who made the call, where wanted */
	enum denial_after { AFTER_UNKNOWN, AFTER_EXITED, AFTER_SIGNAL } after; /* how pid ended */
	int after_value; /* the exit status, or the signal */
	bool is_dir;	 /* the object is a directory that exists */
	bool exists;
	bool nameless;	/* no path leads to it that a rule could say; `path` is only told */
	bool moot;	/* a preset's `deny w`: programs try it and go on without. In the report,
			 * not in what is suggested or said at the end */
	bool sensitive; /* on the sensitive list: no --yes opens it; said at the end */
	bool forbidden; /* a `forbid` rule decided: no grant can help, none is suggested */
	const char *preset; /* static, or NULL: what opens it, and no rule by itself would */
	bool closed;	    /* a rule denies it, or `never`: none that allows it is suggested */
};

const char *verdict_name(enum verdict v);
const char *lifetime_name(enum lifetime l);
/* As the contract names them: BY_YES is "policy" (and the record's note says --yes). */
const char *answered_by_name(enum answered_by b);
/* "EACCES"; "E123" for a number without a name. */
const char *denial_errno_name(int error, char room[16]);

/* "the rules for its new place would allow: read, exec"; nothing for none. */
void denial_add_gained(struct buf *out, uint32_t gained);
/* `note` and `gained` as people read them: owned; NULL: there is no more to say, or no memory. */
char *denial_note(const struct denial *d);

/*
 * Owns its denials. One entry for each distinct (path, path2, access, verdict, allowed), first-seen
 * order. Start from a zeroed one.
 */
struct denial_list {
	struct denial *item;
	size_t len;
	size_t cap;
	uint64_t dropped;	  /* beyond DENIAL_MAX distinct ones: counted, not kept */
	size_t running;		  /* private: items whose process has not ended */
	struct denial_slot *slot; /* private: the hash index */
	size_t slots;
};

#define DENIAL_MAX 10000

/*
 * Copies what it keeps; returns the entry (new or counted up), NULL without memory or beyond the
 * limit. The pointer is a loan until the next denial_add().
 */
struct denial *denial_add(struct denial_list *l, const struct denial *d);
/* The entry that denial_add() would count up; NULL: none yet. A loan as there. */
const struct denial *denial_find(const struct denial_list *l, const struct denial *d);
/* A deep copy. 0, or -ENOMEM with nothing to release. */
int denial_copy(const struct denial *d, struct denial *ret);
/*
 * Process pid ended, with this wait status: told in what it was refused. (A number that is used
 * again is another process: what has its end keeps it.)
 */
void denial_ended(struct denial_list *l, pid_t pid, int status);
/* A sandbox refusal that was not answered with yes, or would not have been let pass. */
bool denial_stayed(const struct denial *d);
void denial_release(struct denial *d);
void denial_list_release(struct denial_list *l);

/*
 * The record's members, into an object that is open: what the report, the audit and the events
 * have in common.
 */
void denial_write(struct jsonw *w, const struct denial *d, bool no_redact);
/* "stack": [...], where it was looked up; the report's and the events' alone. */
void denial_write_stack(struct jsonw *w, const struct denial *d);
