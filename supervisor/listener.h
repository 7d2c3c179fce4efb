/*
 * listener: whose unix socket would a connect come to?
 *
 * What the tree's own processes listen on is theirs. A path of such a socket needs no question. And
 * Landlock keeps a tree from connecting to abstract sockets that were made outside of it (ABI 6):
 * where the supervisor connects in the tree's place it must ask that itself.
 *
 * Both ask the kernel (sock_diag) for the socket and look through /proc for who holds it.
 */
#pragma once

#include "tracer/tracer.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

/*
 * May the tree connect to this abstract name, with a socket of this type? A name that nobody has is
 * fine: the call fails by itself. What can't be found out is no.
 */
bool listener_may_be_abstract(const struct tracer *t, const struct sockaddr_storage *address,
			      socklen_t len, int type);
/* Does a process of the tree listen on the socket at this place? What can't be found out is no. */
bool listener_is_the_trees(const struct tracer *t, const struct stat *st);
