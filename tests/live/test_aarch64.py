#!/usr/bin/env python3
"""What there is on an aarch64 machine alone: pointers with a tag in their upper byte, 32-bit programs, no fast path."""

import os
import signal
import struct
import unittest

from run_help import WARDER, RunCase, allow, both_users, deny, main

AARCH64 = os.uname().machine == "aarch64"
# A path whose pointer has a tag (PR_SET_TAGGED_ADDR_CTRL): opened, then its mode is changed; errors as numbers.
TAGGED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(55, 1, 0, 0, 0) == 0
text = ctypes.create_string_buffer(sys.argv[1].encode())
path = ctypes.c_ulong(ctypes.addressof(text) | 0x2a << 56)
for number, how in ((56, os.O_RDONLY), (53, 0o600)):
    print(libc.syscall(number, -100, path, how) < 0 and ctypes.get_errno(), flush=True)
"""
# getpid; exit with 5 if that gave a number, with 7 if an error; and where exit comes back, an undefined instruction.
ARM32 = (0xe3a07014, 0xef000000, 0xe3500000, 0xb3a00007, 0xa3a00005, 0xe3a07001, 0xef000000, 0xe7f000f0)


def arm32_program():
    code = struct.pack(f"<{len(ARM32)}I", *ARM32)
    base, head = 0x10000, 52 + 32
    size = head + len(code)
    return (b"\x7fELF\1\1\1" + bytes(9)
            + struct.pack("<HHIIIIIHHHHHH", 2, 40, 1, base + head, 52, 0, 0x5000000, 52, 32, 1, 40, 0, 0)
            + struct.pack("<8I", 1, 0, base, base, size, size, 5, 0x1000) + code)


@both_users
@unittest.skipUnless(AARCH64, "not an aarch64 machine")
class Aarch64(RunCase):
    def tagged(self, path, answer):
        return self.hold("--", "/usr/bin/python3", "-c", TAGGED, path, answer=answer)

    def test_tagged_pointers_are_read(self):
        path = self.write("outside/file", "text")
        for answer, said in ((allow(), ["False", "False"]), (deny, ["13", "13"])):
            done = self.tagged(path, answer)
            self.assertStatus(done)
            self.assertEqual(said, done.out.split(), done)
            self.assertEqual([(path, ["read"]), (path, ["meta"])], [(q["path"], q["access"]) for q in done.asked], done)
        self.assertEqual(0o600, os.stat(path).st_mode & 0o777)

    def test_32_bit_programs_have_no_calls(self):
        path = self.write("project/arm32")
        with open(path, "wb") as f:
            f.write(arm32_program())
        os.chmod(path, 0o755)
        try:
            self.assertStatus(self.native(path), 5)
        except OSError as e:
            self.skipTest(f"this machine runs no 32-bit programs: {e.strerror}")
        self.assertStatus(self.run_report("--", path), -signal.SIGILL)

    def test_there_is_no_fast_path(self):
        done = self.run_report("--fast", "on", "--", "true")
        self.assertStatus(done)
        self.assertIs(False, done.report["engine"]["fast"])
        self.assertEqual(0, done.report["engine"]["patched"])
        said = self.native(WARDER, "doctor").out
        self.assertRegex(said, r"(?m)^fast +degraded +.*\(aarch64 has no fast path\)")


if __name__ == "__main__":
    main()
