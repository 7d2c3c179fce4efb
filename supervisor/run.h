/*
 * run: the inside of the engine: one command from spawn to the last process's end. Private to
 * engine.c, prepare.c (before it), asker.c (whom to ask), events.c (what the tracer tells),
 * finish.c (the end), refusal.c (a refused call, from its stop to its end), waiter.c (the
 * held threads), inquiry.c (what is asked about them), ruling.c (what the policy says), once.c (and
 * the answers for one process), inplace.c (what is allowed is done), answer.c (what an answer
 * means), record.c (what is told of it), permissive.c, lifecycle.c (signals, time, leftovers) and
 * rerun.c.
 */
#pragma once

#include "supervisor/broker.h"
#include "supervisor/broker_meta.h"
#include "supervisor/budget.h"
#include "supervisor/changes.h"
#include "supervisor/confine.h"
#include "supervisor/desk.h"
#include "supervisor/engine.h"
#include "supervisor/guard.h"
#include "supervisor/handed.h"
#include "supervisor/netdomain.h"
#include "supervisor/prompt.h"
#include "supervisor/protocol.h"
#include "supervisor/pty.h"
#include "supervisor/session.h"
#include "supervisor/slowfs.h"
#include "supervisor/terminals.h"
#include "supervisor/tracee_fd.h"
#include "supervisor/verdict.h"
#include "supervisor/walk.h"
#include "supervisor/whose.h"
#include "tracer/pathname.h"
#include "tracer/tracer.h"

/* Runs of one command, the first included: a rerun that needs a further rerun each time ends. */
#define RUNS_MAX 10

/* A call whose thread is held: one that was refused, or that waits at the door. */
struct waiter {
	struct waiter *next;
	struct tracee_name who;
	pid_t pid;
	uint32_t turn;	   /* the tracer's word on `as` (struct tracer_event) */
	struct call *call; /* a loan of the tracer's until the thread is answered */
	struct verdict_result verdict;
	uint64_t question;	 /* asking */
	bool was_asked;		 /* allowed by an answer of this session, not by a rule before it */
	uint64_t act;		 /* acting */
	bool again;		 /* to be decided anew (settle_after) */
	bool own_domain;	 /* it has a Landlock sandbox of its own, too */
	unsigned own_about;	 /* TRACER_OWN_*: what else that one may refuse */
	uint32_t own_net;	 /* its number (netdomain.h), 0, or TRACER_NET_UNKNOWN */
	bool at_door;		 /* it has not run, and never will (doorstep.h) */
	bool listed;		 /* among run.waiters */
	bool probes;		 /* what it names is to be looked at first (slowfs.h): `act` does */
	bool slow;		 /* that was done: it may have to wait */
	struct broker_meta meta; /* at_door, an attribute call: what it wants */
	struct broker_connect connect; /* at_door, a connect or send: the same */
	int64_t sent;		       /* sendmmsg: messages that are sent already */
	struct identity as;	       /* last: it is large, and most of it is never used */
};

/* An answer "once": this process, this path, these accesses, until it execs or ends. */
struct once {
	struct once *next;
	pid_t pid;
	uint32_t access;
	bool stays; /* over one exec */
	bool below; /* the path is a directory, and all that is below it is meant */
	char *path; /* owned */
};

/* What the report counts beside denials. */
enum run_notice {
	RUN_NOTICE_IO_URING,
	RUN_NOTICE_PTRACE,
	RUN_NOTICE_MOUNT,
	RUN_NOTICE_QUEUE,
	RUN_NOTICE_LIMITS,
	RUN_NOTICE_LISTENER,
	RUN_NOTICE_DATAGRAM,
	RUN_NOTICE_UNWRITABLE,
	RUN_NOTICE_HIDDEN,
	RUN_NOTICE_MAPS,
	RUN_NOTICE_OF_PROCESS,
	RUN_NOTICE_OUTSIDE,
	RUN_NOTICE_NAMESPACE,
	RUN_NOTICE_COPIED,
	RUN_NOTICE_PASSED_OVER,
	RUN_NOTICES
};

/* How the policy sees a call: the hardest effect of its needs. */
struct ruling {
	enum effect effect;
	const struct rule *rule;    /* a loan of the policy's, or NULL */
	uint32_t asked[CALL_PATHS]; /* per path: the bits that are not allowed yet */
	const char *note;	    /* static: why, where no rule says it; or NULL */
	uint32_t gained; /* of asked[0]: what a moved thing's new place would open it to */
	int error;	 /* what a refused call returns instead of its own errno; or 0 */
};

/* --permissive: a call that was judged at its entry and is not over yet. */
struct look {
	struct look *next;
	struct waiter w; /* in no list */
	bool refused;	 /* the wall and the policy would have; `d` says what */
	struct ruling ruling;
	struct denial d; /* owned */
};

/* The directory whose things the guard was last seen to leave alone (ruling.c). */
struct open_dir {
	unsigned version; /* of the guard */
	uint32_t access;  /* these it leaves alone */
	dev_t dev;
	ino_t ino;
	char *path; /* owned; NULL: none yet */
};

/*
 * What the policy said last about a path, without answers for once (ruling.c): the calls about one
 * file come in a row, and it has nothing new to say until its version is another one.
 */
struct last_word {
	unsigned version; /* of the policy */
	uint32_t access, asked;
	struct decision decision; /* its rule is a loan of that version's */
	char path[512];		  /* "": none; a longer one is not remembered */
};

/* A guard of the policy with one process's answers for once (ruling.c). */
struct own_guard {
	struct guard *guard; /* owned; NULL: none yet */
	pid_t pid;
	unsigned version; /* of the policy */
	bool stale;	  /* there are other answers since */
};

enum run_end { RUN_GOES_ON, RUN_ENDING, RUN_KILLED };

struct run {
	struct session *session;
	const struct engine_command *command;
	struct engine_outcome *out;
	struct loop *loop;
	enum engine_mode mode;
	const char *file; /* the program */
	char **env;	  /* owned */
	const char *cwd;
	struct identity self;
	bool one_identity;	       /* no tracee can be anybody else than us */
	struct whose *whose;	       /* owned */
	struct tracee_fds *fds;	       /* owned */
	struct pathname_memory *names; /* owned */

	struct llabi abi;
	struct llruleset *ruleset;
	struct confine confine;
	struct rlimit files_before; /* RLIMIT_NOFILE */
	bool limit_raised;
	struct guard *guard;
	unsigned guard_version;
	struct open_dir open_dir;
	struct last_word last_word;
	struct own_guard own;

	struct tracer *tracer;
	uint64_t door_watch[TRACER_FDS]; /* 0: none */
	uint64_t rest_timer; /* while the tracer is to be asked tracer_rest(); 0: none */
	struct broker *broker;
	struct slowfs *slowfs;
	uint64_t mounts_watch;
	bool mounts_known;	       /* the wait just before said that none has changed */
	struct netdomains *netdomains; /* NULL until one is there */
	int netdomains_error;	       /* why the last one couldn't be made: told once */
	uint64_t broker_watch;
	uint64_t shared_watch; /* 0: the session has no name */
	struct pty *pty;
	struct terminals terminals;
	struct ask *ask; /* NULL: nobody to ask */
	struct prompt *prompt;
	struct protocol *protocol;
	struct desk *desk;
	uint64_t answer_timer; /* the caller answers itself: its turn */

	sigset_t ignored_before; /* what the command starts with ignored */
	struct sigaction write_actions[2];
	bool ignoring;

	pid_t main;
	bool main_ended, main_stopped;
	int main_status;
	enum run_end end;
	int owed_signal; /* it ended the tree; the caller's own handler gets it once we are done */
	uint64_t end_timer, poll_timer, limit_timer;
	int64_t limit_left_ns; /* of --timeout */
	int64_t limit_since_ns;
	unsigned number; /* 1 for the first run */
	int64_t started_ms, held_since_ms;

	struct waiter *waiters;
	struct waiter *spare; /* owned: the memory of one, for the next; NULL: none */
	struct once *onces;
	struct budget budget;
	struct look *looks;
	struct recorder *recorder;  /* owned; NULL: no trace is written */
	struct walks walks;	    /* programs that are looked for along PATH */
	struct denial_list unasked; /* retry: sandbox denials to be asked about at the end */
	struct changes changes;
	struct denial *asked_about; /* rerun.c: the denial whose question stands */
	bool run_again;
	bool rerun_useful; /* a grant was given that could not be done in place */
	uint64_t brokered;
	struct handed handed;
	unsigned noticed[RUN_NOTICES];
	struct buf noticed_of[RUN_NOTICES]; /* the first programs' names, escaped, with commas */
	char **unprivileged;		    /* owned: a note for each program (notice_exec) */
	bool more_unprivileged;
	off_t stdin_at; /* a regular file's offset at the start, -1 */
};

/* run.c */

/* Calls that succeed make no stop, where the machine has that: unless each is to be seen. */
bool run_is_fast(const struct run *r);
/*
 * Before names are looked at: what is known of mounts, and of names by what was mounted, is made to
 * be of this moment.
 */
void run_see_mounts(struct run *r);
/* "hold", "retry", "report", "permissive". */
const char *run_mode_name(enum engine_mode m);
/* Before a hook of the caller's: it may start what it likes (tracer_roam()). */
void run_roam(struct run *r);
/* One line to the user's hook. */
void run_say(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The first trouble that makes going on unsafe: the tree is killed, the outcome says why. */
void run_fail(struct run *r, int err, const char *what);

/*
 * Nothing was run, and this sentence says why: into the outcome, with the error (-errno), which is
 * returned.
 */
int run_refuse(struct run *r, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* prepare.c: what fails was told by run_refuse() */

struct command;

/* Who we are, what we ignore, and that nobody traces us. */
int prepare_ourselves(struct run *r);
/* Is there a Landlock here? */
int prepare_kernel(struct run *r);
/* The command's file, looked for as a shell does; *found is what r->file is lent from. */
int prepare_command(struct run *r, struct command *found);
/* An empty ruleset for the command's next start, which a child may know before it has its rules. */
int prepare_ruleset(struct run *r);
/* Its rules: those of the policy as it is now. */
int prepare_wall(struct run *r);
/* What it protects, held; while the child is on its way to its exec, which waits for an answer. */
int prepare_guard(struct run *r);
/* A held call costs a few descriptors, and a thousand may be held: as many as we may have. */
void prepare_limit(struct run *r);
/* A regular file's offset, for a further run. */
void prepare_stdin(struct run *r);

/* asker.c */

/* hold, retry, report or permissive, where it is left to us. */
enum engine_mode asker_mode(const struct run *r);
/* Is there a terminal that we are in front of, or another program? */
bool asker_is_there(const struct run *r);
/* Does this mode ask at all? */
bool asker_is_asked(const struct run *r);
/* The queue of questions, and the other program's pipes. 0 or -errno. */
int asker_open(struct run *r);
/* The prompt on the terminal, where there is one to ask on; again after it was closed. */
int asker_open_prompt(struct run *r);
void asker_close_prompt(struct run *r);
/* Tell whoever listens, as protocol_event(). */
void asker_event(struct run *r, const char *name, protocol_fill_fn *fill, const void *arg);
void asker_close(struct run *r);
/* Does somebody answer the questions that are put? */
bool asker_answers(const struct run *r);

/* events.c */

/* All that the tracer has to tell by now. */
void events_pump(struct run *r);
/* The command could not be started; `ev` as TRACER_SPAWN_FAILED. */
void events_spawn_failed(struct run *r, const struct tracer_event *ev);

/* finish.c: the report's last members, and the events `error` and `exit`. 0 or -ENOMEM. */
int finish_report(struct run *r);

/* The kernel's own "make the call again after the signal" (include/linux/errno.h). */
#define RUN_ERESTARTSYS 512

/* waiter.c */

/* The thread of the event, in no list; what it comes to own is the caller's to release. */
void waiter_init(struct waiter *w, const struct tracer_event *ev);
/* NULL: no memory. Not in the list yet: waiter_add(), or waiter_free(). */
struct waiter *waiter_new(struct run *r, const struct tracer_event *ev);
void waiter_free(struct run *r, struct waiter *w);
void waiter_add(struct run *r, struct waiter *w);
/* Out of the list, and freed. */
void waiter_drop(struct run *r, struct waiter *w);
/* NULL: nobody by this name is held. */
struct waiter *waiter_of(struct run *r, struct tracee_name who);
bool waiter_any_asks(const struct run *r, uint64_t question);
/* The waiter no longer stands behind its question; the last one takes it away. */
void waiter_leave_question(struct run *r, struct waiter *w, const char *reason);
/* The thread goes on with this result. The waiter stays the caller's. */
void waiter_return(struct run *r, struct waiter *w, int64_t result);
/* The thread goes on with its call refused: as the kernel said, or with this error. Dropped. */
void waiter_refuse(struct run *r, struct waiter *w);
void waiter_refuse_with(struct run *r, struct waiter *w, int error);
/* Who is held has changed its state: the time limit and the signals are to know. */
void waiter_tell_holding(struct run *r);

/* inplace.c */

/* Or does it take another run? */
bool inplace_can(const struct waiter *w);
/* Do it: the waiter is dropped, now or by inplace_done(). */
void inplace_act(struct run *r, struct waiter *w);
/* An instant act (doorstep.h), now; the waiter stays the caller's. */
void inplace_at_door(struct run *r, struct waiter *w);
void inplace_done(struct run *r, const struct broker_done *done);

/* inquiry.c */

/* Can anybody be asked just now? */
bool inquiry_may(const struct run *r);
/* The waiter stands behind this question from now on; where it can't be put it is refused. */
void inquiry_put(struct run *r, struct waiter *w, struct denial *d);
/*
 * What the question offers: the scopes of this denial, or, where one was asked often enough about
 * single things there, of a directory (q->below). 0 or -ENOMEM.
 */
int inquiry_scopes(const struct run *r, const struct denial *d, struct question *q);
/* An answer was given: is it one more for a single thing? */
void inquiry_count(struct run *r, const struct question *q, const struct answer *a);

/* refusal.c */
void refusal_begin(struct run *r, const struct tracer_event *ev);
/* A call waits at the door. */
void refusal_at_door(struct run *r, const struct tracer_event *ev);
/* The thread has confined itself: the same is made ready for what is connected in its place. */
void refusal_confined(struct run *r, const struct tracer_event *ev);
/* What it names was looked at (w->probes); -EINTR: a signal came before. */
void refusal_probed(struct run *r, struct waiter *w, int64_t result);
void refusal_gone(struct run *r, struct tracee_name who);
void refusal_answered(void *run, const struct question *q, const struct answer *a);
/* The policy has changed from outside: everything that waits is decided anew. */
void refusal_reconsider(struct run *r);
/* Nobody will answer any more: everyone who waits is refused. */
void refusal_give_up(struct run *r);
/* Pending signals that would end a held thread's process are not kept waiting for an answer. */
void refusal_check_signals(struct run *r);
void refusal_release(struct run *r);
/* A call that no grant can help with, already answered: into the report. */
void refusal_noticed(struct run *r, const struct tracer_event *ev);

/* caller.c */

/* An ask_stack_fn. */
int caller_of_question(void *run, const struct question *q, struct unwind_stack **ret);
/* --stacks: the stack of the held thread, if this denial is the first of its kind. */
void caller_add(struct run *r, const struct waiter *w, struct denial *d);

/* ruling.c */

/* Before the command runs: what is protected is held, wherever somebody takes it. 0 or -errno. */
int ruling_begin(struct run *r);
struct ruling ruling_of(struct run *r, const struct waiter *w);
/*
 * Nobody asks about this need, whatever the policy: what has no name by its nature, what the tree
 * itself made, what the process holds open already (the last two where no rule speaks of it).
 */
bool ruling_needs_none(struct run *r, const struct waiter *w, const struct need *need);
/* A file made without a name (O_TMPFILE), about to get its first: the name alone is decided on. */
bool ruling_is_unnamed(const struct call *c, unsigned i);
/* A mkdir that is allowed: the pool, where one of its directories may take the new one's place. */
struct pool *ruling_pool(struct run *r, const struct waiter *w);

/* once.c */

/* "Once": remembered for one process, until it execs or ends. 0 or -ENOMEM. */
int once_add(struct run *r, pid_t pid, const char *path, uint32_t access);
/* The same for a directory and what no rule of its own speaks of below it. */
int once_add_below(struct run *r, pid_t pid, const char *dir, uint32_t access);
uint32_t once_bits(const struct run *r, pid_t pid, const char *path);
void once_forget(struct run *r, pid_t pid);
/* The process has another program. */
void once_execed(struct run *r, pid_t pid);
/* Its next exec is a step of the one that was answered: what it has stays. */
void once_keep(struct run *r, pid_t pid);

/* record.c */

void record_begin(struct run *r);

/* Fill a denial from a call; ruling may be NULL. Its strings are owned: denial_release(). */
void record_describe(const struct run *r, const struct waiter *w, const struct ruling *ruling,
		     struct denial *d);
/* Into the report, the audit and the events; also one that was answered at the end. */
void record_denial(struct run *r, const struct denial *d);
/* The call with its answer. */
void record_call(struct run *r, const struct waiter *w, const struct ruling *ruling, bool allowed,
		 enum answered_by by, enum lifetime lifetime);
/* Refused, and nobody was asked: an exec's waits for the end of its walk (walk.c). */
void record_refused(struct run *r, const struct waiter *w, const struct ruling *ruling,
		    enum answered_by by);
/* The same without the wait: in `retry`, what may still be asked about is kept for the end. */
void record_unasked(struct run *r, const struct denial *d);

/* permissive.c: no wall */
void permissive_enters(struct run *r, const struct tracer_event *ev);
void permissive_left(struct run *r, const struct tracer_event *ev);
/* The thread's call ended in a new image, or with the thread. */
void permissive_execed(struct run *r, struct tracee_name who);
void permissive_gone(struct run *r, struct tracee_name who);
void permissive_release(struct run *r);

/* recorder.c: the trace, where one is wanted; else all of these do nothing */

/* The header, once the policy is known. 0, or told by run_refuse(). */
int recorder_begin(struct run *r);
/* A watched call is about to run (TRACER_ENTERS); resolves it. */
void recorder_enters(struct run *r, const struct tracer_event *ev);
/* The same of one that is resolved already, or that waits at the door. */
void recorder_looks(struct run *r, const struct waiter *w);
/* It was refused or asked about, and this was decided; before it is answered. */
void recorder_decided(struct run *r, const struct waiter *w, const struct ruling *ruling,
		      const struct denial *d);
/* What it gets however it is decided is known (w->verdict.anyway). */
void recorder_anyway(struct run *r, const struct waiter *w);
/* Its end: as the kernel said, as it was answered, or with its thread. */
void recorder_left(struct run *r, const struct tracer_event *ev);
void recorder_over(struct run *r, const struct tracer_event *ev);
void recorder_returns(struct run *r, struct tracee_name who, int64_t result);
void recorder_gone(struct run *r, struct tracee_name who);
void recorder_noticed(struct run *r, const struct tracer_event *ev);
void recorder_forked(struct run *r, const struct tracer_event *ev);
void recorder_execed(struct run *r, const struct tracer_event *ev);
void recorder_exited(struct run *r, const struct tracer_event *ev);
/* What was asked at the run's end. */
void recorder_answered(struct run *r, const struct denial *d);
/* The tree is gone. */
void recorder_end_run(struct run *r);
void recorder_release(struct run *r);

/* answer.c */

/* The rules an answer means, into the session and, for "always" and "never", the saved policy. */
int answer_apply(struct run *r, const struct question *q, const struct answer *a, pid_t pid);
/*
 * A yes to this question, whatever its scope: the process it was held for gets what it asked, also
 * where a wider rule leaves a doubt about this one path. 0 or -ENOMEM.
 */
int answer_allow_process(struct run *r, const struct question *q, pid_t pid);
/*
 * The scope that a yes means. "Once" is about the path that was asked for, whatever wider scope is
 * marked; or about all of the directory that the question is about.
 */
unsigned answer_scope(const struct question *q, const struct answer *a);
/* An allowed scope, into the report. */
void answer_add_grant(struct run *r, const struct scope *scope, const struct answer *a);

/* notice.c */

/* A guard call, or a mount or namespace that was refused. */
void notice_call(struct run *r, const struct tracer_event *ev);
/* A call that was refused, though by no policy: is it the wall's doing all the same? */
void notice_refused(struct run *r, const struct waiter *w);
/* This program (copied; may be NULL) was noticed once more. */
void notice_by(struct run *r, enum run_notice kind, const char *program);
/* The process has a new program: does no_new_privs take something from it? */
void notice_exec(struct run *r, pid_t pid);
/* At the end: into the report's notes and what is degraded. */
void notice_report(struct run *r);
void notice_release(struct run *r);

/* lifecycle.c */
int lifecycle_begin(struct run *r, loop_signal_fn *on_child);
void lifecycle_spawned(struct run *r);
void lifecycle_main_ended(struct run *r, int status);
void lifecycle_stopped(struct run *r, const struct tracer_event *ev);
/* Somebody waits for us: the time limit stands still. */
void lifecycle_holding(struct run *r, bool held);
/* While calls are held: signals that would end their processes, or their acts. */
void lifecycle_watch_signals(struct run *r, bool watch);
void lifecycle_release(struct run *r);
/* After the last run: dispositions as they were. */
void lifecycle_end(struct run *r);

/* rerun.c: after the tree is gone. True: run the command once more. */
bool rerun_wanted(struct run *r);
void rerun_answered(struct run *r, const struct question *q, const struct answer *a);
