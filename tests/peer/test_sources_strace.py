#!/usr/bin/env python3
"""strace's own tracees under warder: programs that were written to trouble a tracer."""

import os

from sources_help import Difference, Program, fetched, strace_tests
from run_help import main

# Not here: clone_parent and kill_child end under strace alone, printpath-* and printstrn-* trace
# themselves, and what select says depends on how many descriptors the starter had.
# Processes, threads, signals, stops; then every call with a path, and what they are made of.
PROGRAMS = """
threads-execve maybe_switch_current_tcp restart_syscall erestartsys vfork-f fork-f clone_ptrace
looping_threads orphaned_process_group umovestr umovestr2 umovestr3 umovestr-illptr
umoven-illptr umovestr_cached umovestr_cached_adjacent openat openat2 execve execveat
block_reset_raise_run check_sigblock check_sigign count-f delay get_process_reaper int_0x80 print_maxfd
set_sigblock set_sigign setpgrp-exec signal_receive sleep tracer_ppid_pgid_sid unblock_reset_raise zeroargc segv_accerr
scm_rights wait4 waitid waitpid rt_sigsuspend sigsuspend
rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo tgkill tkill kill sigaction rt_sigaction sigaltstack sigreturn
rt_sigreturn siginfo signal signalfd4 nanosleep clock_nanosleep poll ppoll pselect6 epoll_wait epoll_pwait
semop semtimedop ipc_msg ipc_sem ipc_shm mq mq_sendrecv futex pause alarm times timer_create timerfd_xettime eventfd
access acct at_fdcwd-pathmax chdir chmod chown chroot creat faccessat faccessat2 fchdir fchmod fchmodat fchown fchownat
file_handle getcwd getdents getdents64 inotify link linkat lstat mkdir mkdirat mknod mknodat mount_setattr
newfstatat open open_tree readlink readlinkat rename renameat renameat2 rmdir stat statfs statx symlink symlinkat
truncate ftruncate umask umount umount2 unlink unlinkat utime utimensat utimes futimesat xattr xattr-strings
printstr fcntl dup dup2 dup3 pipe pipe2 read-write
close_range prctl-name prctl-dumpable prctl-pdeathsig personality pidfd_open pidfd_getfd pidfd_send_signal
process_vm_readv sendfile splice tee vmsplice uname sysinfo getrlimit setrlimit prlimit64 getrusage getpid getppid gettid
getsid getpgrp memfd_create io_uring_setup landlock_restrict_self landlock_create_ruleset landlock_add_rule clone3
""".split()
ARGUMENTS = {"looping_threads": ["1", "4"], "sleep": ["0"], "delay": ["1", "1"]}

WALL = ("allowed",)
# The file system of message queues is nowhere below /, where any rule could say yes.
QUEUES = "Landlock refuses message queues"
DIFFERS = {
    "clone3": Difference("answered ENOSYS, without a wall only with CLONE_UNTRACED: its flags are in memory", None,
                         "CLONE_UNTRACED.*= -1 ENOSYS"),
    "io_uring_setup": Difference("its opens make no system call: answered ENOSYS", None, "= -1 ENOSYS", modes=WALL),
    "landlock_restrict_self": Difference("no_new_privs is set already", None,
                                         "landlock_restrict_self.-1, 0. = -1 EBADF"),
    "tracer_ppid_pgid_sid": Difference("it says who traces it", 0, r"^\d+ \d+ \d+ \d+\n$"),
    "get_process_reaper": Difference("orphans come to warder", None, r"^\d+\n$"),
    "mq": Difference(QUEUES, 77, "mq_open: Permission denied", modes=WALL),
    "mq_sendrecv": Difference(QUEUES, 77, "mq_open: Permission denied", modes=WALL),
}


class Strace(Program):
    @classmethod
    def setUpClass(cls):
        cls.tests = fetched(strace_tests, PROGRAMS)

    def test_each(self):
        for name in PROGRAMS:
            with self.subTest(name):
                file = os.path.join(self.tests, name)
                self.assertTrue(os.path.exists(file), "it was not built")
                self.compare(["./" + name, *ARGUMENTS.get(name, [])], [file],
                             [DIFFERS[name]] if name in DIFFERS else ())


if __name__ == "__main__":
    main()
