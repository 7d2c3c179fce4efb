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
#include <sys/types.h>

bool outfile_is_device(const char *file);
/*
 * The directory's real name and the last component as it is. Owned string in *ret, 0, or -errno:
 * -ELOOP for a symlink.
 */
int outfile_resolve(const char *file, char **ret);
/*
 * Open a real name (outfile_resolve()'s, or another without symlinks), close-on-exec. A symlink
 * anywhere on the way was put there since it was looked at: -ELOOP. A descriptor or -errno.
 */
int outfile_open(const char *real, int flags, mode_t mode);
/* The directory that it lies in, to make names in (O_PATH). */
int outfile_open_parent(const char *real);
