/*
 * toolwork: what the file tools have in common (toolchild, toolchange): one call at work, and the
 * words for what goes wrong. Runs in the walled child only.
 */
#pragma once

#include "tracer/json.h"

#include <sys/stat.h>

struct toolwork {
	struct jsonw *w;	 /* the answer: an object that is open */
	const char *path;	 /* with ~ expanded */
	const struct json *args; /* complete, of the right types */
	int preview_fd;		 /* where a change is told before it is made; -1: nobody looks */
};

/* "error": {operation, errno, message} */
void toolwork_error(struct jsonw *w, const char *operation, int error);
/* "error": {message} */
void toolwork_refuse(struct jsonw *w, const char *message);
/* What is no file would block (a FIFO) or never end (a device). NULL: it is one. */
const char *toolwork_not_a_file(const struct stat *st);
