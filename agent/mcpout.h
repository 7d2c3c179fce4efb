/*
 * mcpout: lines to a client that may be slow: queued, never blocking, in order.
 */
#pragma once

#include "supervisor/loop.h"
#include "tracer/buf.h"

/* A client that reads nothing while this much waits for it is given up. */
#define MCPOUT_QUEUE_MAX (64u << 20)

struct mcp_out;

/* fd is duplicated. 0 or -errno. */
int mcpout_new(struct loop *l, int fd, struct mcp_out **ret);
/* Waits for what is queued, two seconds at most. */
void mcpout_free(struct mcp_out *o);
/* False: nobody reads any more. */
bool mcpout_line(struct mcp_out *o, const char *bytes, size_t n);
