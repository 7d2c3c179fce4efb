/*
 * llescape: a directory that was opened in a bind mount and then moved to where that mount does not
 * reach. ".." is ENOENT there, though the kernel's own walk goes on: up to the filesystem's root,
 * and then from the mount's root (Linux 6.18).
 *
 * The way up is found through another mount of the same filesystem, one of its root, by a file
 * handle: that takes CAP_DAC_READ_SEARCH and a filesystem that can be exported. Reads
 * /proc/self/mountinfo each time and remembers nothing.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The same directory where ".." works, O_PATH; the caller's to close. -ENOENT: no mount shows the
 * filesystem's root. -EPERM, -EOPNOTSUPP, -ESTALE: as open_by_handle_at(2) and
 * name_to_handle_at(2). Errors of reading mountinfo. */
int llescape_reopen(int dir_fd, dev_t dev, int *ret_fd);

/* The root of the mount with this id (statx's stx_mnt_id), O_PATH; the caller's to close. -ENOENT:
 * it is not in our namespace any more. -ESTALE: something else is mounted over it. */
int llescape_mount_root(uint64_t mnt, int *ret_fd);
