/*
 * broker: does a call in the tracee's place.
 *
 * It acts on descriptors that the decision was made about, never on a path: an existing object
 * through /proc/self/fd/N, a name through its parent's descriptor and one plain component, which
 * must still be the inode that was decided on. Acts run on worker threads with a umask and an
 * identity of their own (supervisor/identity.h), one structural act at a time; what blocks (a FIFO,
 * a lease, FUSE) blocks only its worker. The recipes per call, and the traps, are beside each row
 * of the table in broker_act.c.
 */
#pragma once

#include "supervisor/broker_connect.h"
#include "supervisor/broker_meta.h"
#include "supervisor/identity.h"
#include "supervisor/pool.h"
#include "tracer/call.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;

/* What became of an act. */
struct broker_done {
	uint64_t id;
	/*
	 * >= 0 or -errno; an open's success is 0 with fd set, an exec's with the copy that is to be
	 * run (supervisor/exec_copy.h; -EOPNOTSUPP where there can't be one)
	 */
	int64_t result;
	int fd;		   /* owned by whoever receives it; -1 */
	bool finds_itself; /* exec: the copy will look for its own file */
	/*
	 * The thing decided on is not there any more (somebody was faster): the call must be made
	 * again by the tracee, so that it is resolved and decided anew.
	 */
	bool stale;
};

/* What is to be done, and as whom. All loans. */
struct broker_request {
	const struct call *call; /* resolved */
	struct call_view view;	 /* the thread */
	const struct identity *as;
	/*
	 * A bind may walk the tracee's own text again, since everywhere below the directory that
	 * was decided on sockets may be made; else it takes the plain name in there.
	 */
	bool as_given;
	/* exec: only a script can be run in place; a further file of its chain was refused. */
	bool scripts_alone;
	/* A connect or send (then `call` is resolved where its address is a path); else NULL. */
	struct broker_connect *connect;
	struct netdomains *domains; /* of connect->in; outlive the broker */
	/* A call about attributes that may have to wait (supervisor/slowfs.h); else NULL. */
	struct broker_meta *meta;
	int object; /* of one that is by a descriptor: our copy of it */
	/*
	 * Nothing is done yet: what the decoded call names is only looked at, so that whoever looks
	 * after this need not wait for what is slow. As ourselves.
	 */
	bool probe;
	/* open of a device: the descriptor is not to have the device's ioctls with it. */
	bool no_ioctl;
	/* mkdir: one of these may take the new directory's place; outlives the broker. Or NULL. */
	struct pool *pool;
};

int broker_new(struct broker **ret);
/*
 * Waits for running acts (cancelling them), then frees. What no signal ends (a file system whose
 * server does not answer) is not waited for: its thread and what it uses are left.
 */
void broker_free(struct broker *b);
/* Readable when broker_next() has something. */
int broker_fd(const struct broker *b);
/* Can this call be performed by the broker at all? */
bool broker_can(const struct call *c);
/*
 * Begin to perform the call for the thread. Takes its own copies (descriptors too), and what
 * request->connect and request->meta own where it succeeds.
 * 0 and *ret_id, or -errno: nothing was begun (-EPERM: the identity can't be taken on).
 */
int broker_submit(struct broker *b, const struct broker_request *request, uint64_t *ret_id);
/* 1 and a finished act, or 0. */
int broker_next(struct broker *b, struct broker_done *ret);
/*
 * Interrupt an act that blocks; it then finishes with -EINTR. One that waits for its turn is left
 * there: it can be interrupted when it has begun, and most never block. An unknown id is fine.
 */
void broker_interrupt(struct broker *b, uint64_t id);
/*
 * The same for one whose thread is gone: it is interrupted until it ends, and where it has not
 * begun it never does.
 */
void broker_cancel(struct broker *b, uint64_t id);
