#!/usr/bin/env python3
"""What root in the tree could do past Landlock: devices by their numbers, kernel programs."""

import os
import unittest

from run_help import RunCase, main

SYSCALLS = {"x86_64": {"bpf": 321, "perf_event_open": 298},
            "aarch64": {"bpf": 280, "perf_event_open": 241}}

# Each prints what it reached; nothing is expected to be printed.
MAKE_DEVICES = """
import os, stat
for kind in (stat.S_IFCHR, stat.S_IFBLK):
    try:
        os.mknod("device", kind | 0o600, os.makedev(1, 3))
        print("made", oct(kind))
        os.unlink("device")
    except PermissionError:
        pass
"""

KERNEL_PROGRAMS = """
import ctypes, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
bpf, perf = int(sys.argv[1]), int(sys.argv[2])
code = ctypes.create_string_buffer(struct.pack("<BBhiBBhi", 0xb7, 0, 0, 0, 0x95, 0, 0, 0))
licence = ctypes.create_string_buffer(b"GPL")
KPROBE, LOAD = 2, 5
attr = struct.pack("<IIQQ", KPROBE, 2, ctypes.addressof(code), ctypes.addressof(licence)) + bytes(96)
if libc.syscall(bpf, LOAD, attr, len(attr)) >= 0:
    print("loaded a kprobe program")
SOFTWARE, SIZE = 1, 112
attr = struct.pack("<IIQ", SOFTWARE, SIZE, 0) + bytes(SIZE - 16)
if libc.syscall(perf, attr, -1, 0, -1, 0) >= 0:
    print("watches a whole processor")
"""


@unittest.skipIf(os.getuid() != 0, "only root has them")
class Root(RunCase):
    def test_no_device_is_made_in_the_project(self):
        done = self.run_report("--", "/usr/bin/python3", "-c", MAKE_DEVICES)
        self.assertStatus(done)
        self.assertEqual("", done.out, done)

    def test_nor_in_its_place_where_a_rule_or_answer_allows_it(self):
        node = os.path.join(self.outside, "node")
        for args in (["--rule", f"allow rw {node} exact"], ["--yes"]):
            with self.subTest(args):
                done = self.run_report(*args, "--", "mknod", node, "c", "1", "3")
                self.assertNotEqual(0, done.status, done)
                self.assertFalse(os.path.lexists(node))

    def test_fifos_and_sockets_can_be_made(self):
        done = self.run_report("--", "/usr/bin/python3", "-c",
                               "import os, socket; os.mkfifo('fifo');"
                               "socket.socket(socket.AF_UNIX).bind('socket')")
        self.assertStatus(done)

    def test_no_kernel_programs_no_tracing_of_processors(self):
        numbers = SYSCALLS[os.uname().machine]
        done = self.run_report("--", "/usr/bin/python3", "-c", KERNEL_PROGRAMS,
                               str(numbers["bpf"]), str(numbers["perf_event_open"]))
        self.assertStatus(done)
        self.assertEqual("", done.out, done)


if __name__ == "__main__":
    main()
