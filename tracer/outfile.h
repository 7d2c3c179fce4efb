/*
 * outfile: the name of a file that we write for the user, such as a trace or a report.
 *
 * It lies in the project, mostly, where a command of an earlier run may have put a symlink in its
 * place: what we then wrote would be that command's doing, anywhere. So the last component is never
 * followed. Below /dev and /proc (but for /dev/shm and /dev/mqueue, where anybody makes names) the
 * symlinks are the system's: /dev/stdout, /dev/fd/N, a shell's process substitution.
 */
#pragma once

#include <stdbool.h>

bool outfile_is_device(const char *file);
/*
 * The directory's real name and the last component as it is. Owned string in *ret, 0, or -errno:
 * -ELOOP for a symlink.
 */
int outfile_resolve(const char *file, char **ret);
