/*
 * broker_connect: connect and addressed sends, done in the tracee's place.
 *
 * A unix socket's path is judged by the policy alone (no Landlock right before ABI 9), so these
 * wait at the door (tracer/waits.h) and every one is performed here, on our copy of the tracee's
 * own socket: the same open file description, so what becomes of it the tracee sees. The address is
 * copied once. A path of a unix socket is resolved, decided on, and then reached as
 * /proc/thread-self/fd/N of the very object; every other address is handed on as it is: the network
 * is not ours to judge.
 *
 * What the other side sees that differs: SO_PEERCRED and SCM_CREDENTIALS name the supervisor's
 * process id (user and group are the tracee's). Only a tracer may be told from the tracee by it.
 * There is no other way: SO_PEERCRED takes the calling thread's (net/unix/af_unix.c,
 * init_peercred), and SCM_CREDENTIALS another's only from who has CAP_SYS_ADMIN (net/core/scm.c,
 * scm_check_creds), which an ordinary user's supervisor never has and root's worker gives up.
 *
 * A send with an address by sendto. One without an address passes the filter; and so do sendmsg and
 * sendmmsg where the program can have no unix datagram socket: of those that it may have all come
 * here, whatever they are about (tracer/messages.h).
 */
#pragma once

#include "supervisor/identity.h"
#include "supervisor/tracee_fd.h"
#include "tracer/call.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* More than any socket buffer takes in one datagram; a stream takes the rest in its next send. */
#define BROKER_SEND_MAX (1u << 20)

/* What is to be done. */
struct broker_connect {
	int socket; /* our copy, owned; -1 */
	struct sockaddr_storage address;
	socklen_t address_len;
	bool by_path; /* the address is a path: its object takes the address's place */
	bool is_send;
	uint32_t in; /* the domain (netdomain.h) that it is to be made in; 0: none */
	void *data;  /* owned */
	size_t size;
	int flags; /* MSG_* */
	bool done; /* it is over: there is nothing to be done */
	/* sendmsg, sendmmsg (broker_message.h): */
	bool is_message;
	void *control; /* owned */
	size_t control_len;
	int *passed; /* owned, and the descriptors in it */
	size_t npassed;
	bool names_sender;  /* SCM_CREDENTIALS is in it, checked */
	bool passes_socket; /* one of them is a unix datagram socket */
	uint64_t sent_at;   /* sendmmsg: where the tracee wants the message's length; 0 */
	uint64_t wanted;    /* how long it would be, `size` or more */
	struct call_view view;
};

/*
 * Read what the decoded connect or sendto wants. Where it is a path, c->path[0] has it afterwards
 * and is to be resolved; else c->path[0] is empty. 0 with *ret (release it), or -errno: what the
 * call returns; *ret then owns nothing.
 */
int broker_connect_read(struct call *c, struct call_view view, struct tracee_fds *fds,
			struct broker_connect *ret);
void broker_connect_release(struct broker_connect *k);
/* Room for `size` bytes of data, or as many as are sent at once. 0, -EMSGSIZE, -ENOMEM. */
int broker_connect_room(struct broker_connect *k, uint64_t size);
/* Do its messages tell who sent them (SCM_CREDENTIALS)? */
bool broker_connect_tells_sender(const struct broker_connect *k);
/* Is the address an abstract unix name? */
bool broker_connect_is_abstract(const struct broker_connect *k);
/*
 * Do it, towards `object` (O_PATH) where k->by_path. The calling thread has entered the identity.
 * The call's result: >= 0, -errno, or -ERESTARTSYS where a signal came and nothing speaks against
 * beginning anew. Blocks as the call does.
 */
long broker_connect_perform(const struct broker_connect *k, int object, const struct identity *as);
