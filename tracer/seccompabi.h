/*
 * seccompabi: what linux/seccomp.h of older headers lacks, by the kernel that brought it
 * (include/uapi/linux/seccomp.h). It is asked for at run time, and done without where it is not.
 */
#pragma once

#include <linux/seccomp.h>

#ifndef SECCOMP_ADDFD_FLAG_SEND
#define SECCOMP_ADDFD_FLAG_SEND (1UL << 1) /* 5.14 */
#endif
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5) /* 5.19 */
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS /* 6.6 */
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS	   SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif
