/*
 * mock_wire: one HTTP exchange of the mock server: a request read whole, an answer written as
 * awkwardly as a scenario's line wants it (mock_copilot.c explains the keys).
 */
#pragma once

#include "tracer/json.h"

struct mock_request {
	struct buf raw; /* the head, then the body */
	size_t head_len;
	char method[16], path[512];
	size_t body_len;
};

/* False: the peer went away first, or sent what is no request. */
bool mock_wire_read(int fd, struct mock_request *r);
/* The value of a header (name in lower case, with its colon), "" where it is not there. */
const char *mock_wire_header(const struct mock_request *r, const char *name, char *ret,
			     size_t size);
/* line may be NULL: nothing awkward. */
void mock_wire_answer(int fd, const struct json *line, int64_t status, const char *type,
		      const char *body);
/* The line's number, or otherwise. */
int64_t mock_wire_number(const struct json *line, const char *key, int64_t otherwise);
