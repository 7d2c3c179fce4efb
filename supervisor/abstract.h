/*
 * abstract: whose abstract unix socket is it?
 *
 * Landlock keeps a tree from connecting to abstract sockets that were made outside of it (ABI 6).
 * Where the supervisor connects in the tree's place it must ask that itself: the name's socket must
 * be held by a process of the tree.
 */
#pragma once

#include "tracer/tracer.h"

#include <stdbool.h>
#include <sys/socket.h>

/*
 * May the tree connect to this abstract name, with a socket of this type? A name that nobody has is
 * fine: the call fails by itself. Asks the kernel (sock_diag) and looks through /proc.
 */
bool abstract_is_the_trees(const struct tracer *t, const struct sockaddr_storage *address,
			   socklen_t len, int type);
