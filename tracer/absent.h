/*
 * absent: is there surely nothing at the path that a tracee is about to use?
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * True: as the kernel's own cache has it at this moment, the path leads nowhere, for the tracee as
 * for us. False: something is there, or it is not known. Never blocks, and asks no file system
 * (RESOLVE_CACHED, 5.12).
 */
bool absent_surely(pid_t tid, const char *path);
