/*
 * mem: the memory of a stopped tracee, read by process_vm_readv. Never blocks on local memory; a
 * page under userfaultfd or FUSE of the tracee's making can block (the caller's risk to know).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* n bytes, all or nothing. 0, -EFAULT, -ESRCH, -EPERM (a tracee that is not dumpable). */
int mem_read(pid_t tid, uint64_t addr, void *buf, size_t n);
/* n pieces (struct iovec: the tracee's addresses), one behind another into buf; likewise. */
int mem_read_pieces(pid_t tid, const struct iovec *piece, size_t n, void *buf);
/* The same the other way, for where the kernel would write what a call returns. */
int mem_write(pid_t tid, uint64_t addr, const void *buf, size_t n);
/*
 * A NUL-terminated string of at most max bytes, its NUL included (the kernel's PATH_MAX counts so).
 * Read up to page ends, so that a string before an unmapped page is read whole.
 * 0 and *ret (owned by the caller), -EFAULT, -ENAMETOOLONG, -ESRCH, -EPERM, -ENOMEM.
 */
int mem_read_str(pid_t tid, uint64_t addr, size_t max, char **ret);
