/*
 * broker_message: what a sendmsg, or one message of a sendmmsg, carries: read from the tracee's
 * memory into a broker_connect (supervisor/broker_connect.h).
 *
 * Its parts are joined to one. Descriptors in it (SCM_RIGHTS) become copies of ours; the sender's
 * own process id (SCM_CREDENTIALS) becomes ours, as nobody may send another's, and its user and
 * group are such as the tracee may name: else -EPERM, as without us. A unix datagram
 * socket is passed on to nobody: whoever got it could send to every path (tracer/messages.h).
 */
#pragma once

#include "supervisor/broker_connect.h"

/*
 * k->socket is the socket, k->view the thread. 0, or -errno: what the call returns; what was read
 * until then is k's. -EPERM with k->passes_socket: see above.
 */
int broker_message_read(struct call *c, struct broker_connect *k);
/* sendmmsg: has it a message behind the one that the call begins with? The call then begins there.
 */
bool broker_message_next(struct call *c);
