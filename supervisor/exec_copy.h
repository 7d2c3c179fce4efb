/*
 * exec_copy: a program as a sealed memfd, which Landlock lets run wherever the original lies.
 *
 * For a program that may run but whose file no rule of the ruleset names: it came into being, or
 * was allowed, after the ruleset was made. The copy is what was decided on, byte for byte, and
 * nobody can change it any more. A script becomes a program of some 200 bytes that runs the
 * script's interpreter with the script's own name, as the kernel would (fs/binfmt_script.c), so
 * that $0 is right; the interpreter is then a native exec of its own.
 *
 * What differs for the program: /proc/self/exe and AT_EXECFN name the memfd, so what looks for its
 * files beside itself does not find them.
 */
#pragma once

#include <stdbool.h>

/* Larger ones are not copied into memory. */
#define EXEC_COPY_MAX (512L << 20)

struct exec_copy {
	int fd; /* owned by the caller: read-only (an open writer would make ETXTBSY), O_CLOEXEC */
	bool finds_itself; /* its bytes speak of /proc/self/exe or $ORIGIN: it looks for itself */
};

/*
 * object: an O_PATH descriptor of the file. script_name: what a script is to be called. scripts
 * alone: anything but a script is -EOPNOTSUPP. With the calling thread's identity, by which the
 * file must be readable and executable. Reads the whole file. 0; -EACCES; -EOPNOTSUPP: it can't be
 * copied (not readable, too large, memfds can't be executed here); -errno.
 */
int exec_copy_make(int object, const char *script_name, bool scripts_alone, struct exec_copy *ret);
