#!/usr/bin/env python3
"""Programs whose file, interpreter or mapped text is made to mislead who patches it."""

import os
import shutil
import struct
import unittest

from run_help import RunCase, both_users, main

PYTHON = "/usr/bin/python3"
PT_LOAD, PT_INTERP = 1, 3

# Calls made from text that the file, or another mapping of it, can change. argv: how it is mapped, the secret.
MAPPED = """
import ctypes, mmap, os, sys
how, secret = sys.argv[1], sys.argv[2]
code = bytes.fromhex("89f8" "4889f7" "4889d6" "4889ca" "4d89c2" "b801010000" "0f05" "c3")
fd = os.open("text", os.O_RDWR | os.O_CREAT, 0o700)
os.write(fd, code.ljust(4096, b"\\x00"))
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
SHARED, PRIVATE = 1, 2
prot, flags = {"shared": (5, SHARED), "shared writable": (7, SHARED), "private writable": (7, PRIVATE), "private": (5, PRIVATE)}[how]
at = libc.mmap(None, 4096, prot, flags, fd, 0)
call = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_long, ctypes.c_long)(at)
got = {call(257, -100, secret.encode(), 0, 0) for i in range(300)}
fine = call(257, -100, b"text", 0, 0)
print(got, fine >= 0, os.pread(fd, len(code), 0) == code)
"""


def headers(data):
    """The program headers of a 64-bit file: (offset, type, fields)."""
    at, size, n = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
    for i in range(n):
        kind, flags, *rest = struct.unpack_from("<II6Q", data, at + i * size)
        yield at + i * size, kind, flags, rest


@both_users
@unittest.skipUnless(os.uname().machine == "x86_64", "files of one machine kind")
class Loader(RunCase):
    def made(self, name, change):
        """A copy of a program, changed, that the command may run; its path."""
        with open(shutil.which("true"), "rb") as f:
            data = bytearray(f.read())
        change(data)
        path = os.path.join(self.project, name)
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, 0o755)
        self.own(path)
        return path

    def interpreter(self, name):
        """true with this interpreter (its name has to fit)."""
        def change(data):
            (_, _, _, (offset, _, _, size, *_)), = [h for h in headers(data) if h[1] == PT_INTERP]
            self.assertLess(len(name), size)
            data[offset:offset + size] = name.encode().ljust(size, b"\0")
        return self.made("made", change)

    def as_without(self, path, *more):
        """The same end with and without warder: statuses that can't be executed are the shell's."""
        argv = ["sh", "-c", f"{path}; echo $?"]
        wanted = self.native(*argv)
        done = self.run_plain("--preset", "c", *more, "--", *argv)
        self.assertEqual(wanted.out, done.out, done)
        return done

    def test_interpreters(self):
        with open(os.path.join(self.project, "script"), "w") as f:
            f.write("#!/bin/sh\necho script\n")
        with open(os.path.join(self.project, "huge"), "wb") as f:
            f.write(b"\x7fELF")
            f.truncate(1 << 40)
        os.symlink("loop", os.path.join(self.project, "loop"))
        os.mkfifo(os.path.join(self.project, "fifo"))
        for name in ("script", "huge", "fifo"):
            os.chmod(os.path.join(self.project, name), 0o755)
            self.own(os.path.join(self.project, name))
        for name in ("./script", "./huge", "./loop", "./none", ".", "./made", "/proc/self/exe"):
            with self.subTest(name):
                self.as_without(self.interpreter(name))

    def test_an_interpreter_outside_is_not_run(self):
        """Neither by its name nor when it takes the name of one that may be run."""
        loader = os.path.join(self.outside, "ld")
        shutil.copy("/lib64/ld-linux-x86-64.so.2", loader)
        os.chmod(loader, 0o755)
        os.symlink(loader, os.path.join(self.project, "ld"))
        done = self.run_report("--", "sh", "-c", f"{self.interpreter('./ld')} && echo ran")
        self.assertNotIn("ran", done.out, done)
        self.assertTrue(done.denials(loader), done)

    def test_one_that_is_replaced_all_the_time(self):
        """Between the start and the first patch; the program has to end, as it does without."""
        path = self.interpreter("./ld")
        for name in ("ld", "other"):
            shutil.copy("/lib64/ld-linux-x86-64.so.2", os.path.join(self.project, name))
            self.own(os.path.join(self.project, name))
        with open(os.path.join(self.project, "other"), "ab") as f:
            f.write(bytes(8192))
        swap = ("import ctypes, os\nlibc = ctypes.CDLL(None)\n"
                "for i in range(20000): libc.renameat2(-100, b'ld', -100, b'other', 2)\n")
        done = self.run_plain("--", "sh", "-c", f"{PYTHON} -c \"{swap}\" & for i in $(seq 60); do {path} || echo $?; done; wait")
        self.assertStatus(done)
        self.assertEqual("", done.out)

    def test_segments(self):
        """Sizes and places that make no sense, as far as the kernel takes them."""
        def changed(which, field, value):
            def change(data):
                at = [h[0] for h in headers(data) if h[1] == PT_LOAD][which]
                struct.pack_into("<Q", data, at + field, value)
            return change
        offset, vaddr, filesz, memsz, align = 8, 16, 32, 40, 48
        for which in (0, 1, 3):
            for field, value in ((offset, 1 << 62), (vaddr, 0), (vaddr, (1 << 64) - 4096), (filesz, 1 << 40), (filesz, 0),
                                 (memsz, 1 << 46), (align, 3), (align, 1 << 40)):
                with self.subTest(f"{which} {field} {value:x}"):
                    self.as_without(self.made("made", changed(which, field, value)))

    def test_text_that_something_else_can_change_is_left_alone(self):
        secret = self.write("outside/secret", "found\n")
        for how in ("shared", "shared writable", "private writable", "private"):
            done = self.run_report("--", PYTHON, "-c", MAPPED, how, secret)
            self.assertStatus(done)
            self.assertRegex(done.out, r"^\{-13\} True True\n$", (how, done))
            self.assertEqual(300, done.denials(secret)[0]["count"], how)


if __name__ == "__main__":
    main()
