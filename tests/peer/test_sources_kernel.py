#!/usr/bin/env python3
"""The kernel's selftests under warder: what they find natively they find there."""

import os

from sources_help import CACHE, Difference, Missing, Program, command, fetched, kernel
from run_help import main

# The programs that make mounts and namespaces to have a place of their own get along without: what
# they test is the same there, and a mount is what Landlock never allows.
SHIM = """
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mount.h>
#include <sys/capability.h>
static inline int shim_done(void) { return 0; }
#define mount(...) shim_done()
#define umount(...) shim_done()
#define umount2(...) shim_done()
#define unshare(...) shim_done()
#define cap_set_proc(...) shim_done()
"""

# (directory, program, further arguments of the compiler)
PROGRAMS = [
    ("landlock", "base_test", ["-lcap"]), ("landlock", "fs_test", ["@shim", "-lcap"]),
    ("openat2", "openat2_test", ["helpers.c"]), ("openat2", "resolve_test", ["helpers.c", "@shim"]),
    *(("clone3", p, ["-lcap"]) for p in ("clone3", "clone3_clear_sighand", "clone3_set_tid")),
    *(("exec", p, []) for p in ("execveat", "load_address", "non-regular", "null-argv")),
    ("syscall_user_dispatch", "sud_test", []),
    *(("pidfd", p, []) for p in ("pidfd_getfd_test", "pidfd_open_test", "pidfd_poll_test", "pidfd_wait")),
    *(("proc", p, []) for p in ("fd-001-lookup", "fd-002-posix-eq", "fd-003-kthread", "proc-self-map-files-001",
                                "proc-self-map-files-002", "proc-self-syscall", "proc-self-wchan", "self",
                                "thread-self", "proc-tid0")),
    ("core", "close_range_test", []), ("sigaltstack", "sas", []), ("splice", "default_file_splice_read", []),
    *(("x86", p, ["thunks.S", "-no-pie", "-ldl"]) for p in (
        "ldt_gdt", "ptrace_syscall", "sigaltstack", "sigtrap_loop", "single_step_syscall", "syscall_arg_fault",
        "syscall_nt", "sysret_rip", "test_mremap_vdso", "test_vsyscall")),
    ("memfd", "memfd_test", ["common.c"]), ("mincore", "mincore_selftest", []),
    ("membarrier", "membarrier_test_single_thread", []), ("membarrier", "membarrier_test_multi_thread", []),
    ("ptrace", "get_syscall_info", []),
    *(("futex/functional", p, ["-I../include", "-lrt"]) for p in ("futex_wait_timeout", "futex_wait_wouldblock",
                                                                 "futex_requeue")),
]

NO_CLONE3 = "clone3 is answered ENOSYS: its flags are in memory, and a child that nobody traces can't be ruled out"
NO_PTRACE = "a process has one tracer, and that is warder"
NNP = "no_new_privs is set already"
LAYER = "warder's domain is one of the sixteen layers"
OWN = "who has a Landlock sandbox of its own gets what the ruleset grants, and nothing done in its place"
WALL = ("allowed",)
ORDER, SECOND, UNPRIVILEGED = "global.restrict_self_checks_ordering", "Expected EPERM .1. == errno .22.", "layout1.unpriv"

DIFFERS = {
    **{name: [Difference(NO_CLONE3, 4, "clone3.. syscall is not supported", modes=WALL)]
       for name in ("clone3", "clone3_clear_sighand", "clone3_set_tid")},
    "pidfd_wait": [Difference(NO_CLONE3, 1, "Expected pid .-1. >= 0", [
        "global.wait_simple", "global.wait_states", "global.wait_nonblock"], WALL)],
    "close_range_test": [Difference(NO_CLONE3, 1, "Expected pid .-1. >= 0", [
        "global.close_range_unshare", "global.close_range_unshare_capped", "global.close_range_cloexec_syzbot",
        "global.close_range_cloexec_unshare_syzbot", "global.close_range_bitmap_corruption"], WALL)],
    "ptrace_syscall": [Difference(NO_PTRACE, 1, "PTRACE_TRACEME: Operation not permitted")],
    "get_syscall_info": [Difference(NO_PTRACE, 1, "PTRACE_TRACEME: Operation not permitted", [
        "global.get_syscall_info"])],
    "base_test": [Difference(f"{NNP}; {OWN}", None, SECOND, [ORDER, "global.ruleset_fd_transfer"], WALL),
                  Difference(NNP, None, SECOND, [ORDER])],
    "fs_test": [Difference(f"{NNP}; {LAYER}; {OWN}", None, "Argument list too long", [
        UNPRIVILEGED, "layout1.max_layers", "layout1.rule_over_root_allow_then_deny"], WALL),
                Difference(NNP, None, "unpriv: Test failed", [UNPRIVILEGED])],
}


def build():
    """The programs, each in the cache; a compiler's complaint about one is that one's failure."""
    tests, out = kernel(), os.path.join(CACHE, "linux-programs")
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "shim.h"), "w", encoding="ascii") as f:
        f.write(SHIM)
    if not os.path.exists(os.path.join(out, "true")):
        command("gcc", "-static", "-w", "-o", os.path.join(out, "true"), "landlock/true.c", cwd=tests)
    return tests, out


class Kernel(Program):
    @classmethod
    def setUpClass(cls):
        cls.tests, cls.out = fetched(build)

    def program(self, directory, name, more):
        file = os.path.join(self.out, name)
        if not os.path.exists(file):
            more = [w for word in more for w in (["-include", os.path.join(self.out, "shim.h")]
                                                 if word == "@shim" else [word])]
            try:
                command("gcc", "-O2", "-w", "-D_GNU_SOURCE", "-I" + self.tests, "-idirafter",
                        os.path.join(self.tests, "../../include"), "-o", file + ".new", name + ".c", *more, "-pthread",
                        cwd=os.path.join(self.tests, directory))
            except Missing as e:
                self.fail(str(e))
            os.rename(file + ".new", file)
        return file

    def test_each(self):
        for directory, name, more in PROGRAMS:
            with self.subTest(name):
                file = self.program(directory, name, more)
                self.compare(["./" + name], [file, os.path.join(self.out, "true")], DIFFERS.get(name, ()))


if __name__ == "__main__":
    main()
