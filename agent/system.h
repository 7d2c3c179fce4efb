/*
 * system: the system message: what the model is told before the user speaks.
 */
#pragma once

#include "tracer/buf.h"

/* Append it. project: the project's directory. Reads the working directory's name and the date. */
void system_write(struct buf *out, const char *project);
