#!/usr/bin/env python3
"""Attribute calls are done in the command's place: as without warder where allowed, else refused."""

import os
import shutil
import unittest

from run_help import RunCase, both_users, fixture, main

CALLS = fixture("meta_calls")


@both_users
class Meta(RunCase):
    def fill(self, where):
        """The things that meta_calls works on, always in the same state."""
        shutil.rmtree(where)
        os.mkdir(where)
        self.own(where)
        self.write(os.path.join(where, "file"), "text")
        os.mkdir(os.path.join(where, "dir"))
        for name, to in (("link", "file"), ("dangling", "nothing"), ("loop", "loop")):
            os.symlink(to, os.path.join(where, name))
        for name in ("dir", "link", "dangling", "loop"):
            self.own(os.path.join(where, name))
            os.utime(os.path.join(where, name), ns=(5, 6), follow_symlinks=False)
        with open(os.path.join(where, "other"), "w", encoding="utf-8"):
            pass

    def both(self, bits, where, *args):
        self.fill(where)
        wanted = self.native(CALLS, bits, where)
        self.assertStatus(wanted)
        self.fill(where)
        return wanted, self.run_report(*args, "--", CALLS, bits, where)

    def check_same(self, bits):
        wanted, got = self.both(bits, self.project)
        self.assertStatus(got)
        self.assertEqual(wanted.out.splitlines(), got.out.splitlines())
        self.assertEqual([], got.denials(verdict="sandbox"), got)

    def test_as_without(self):
        self.check_same("64")

    @unittest.skipUnless(os.uname().machine == "x86_64", "no 32-bit calls")
    def test_as_without_by_32_bit_calls(self):
        self.check_same("32")

    def check_refused(self, bits):
        """Outside: what could work is EACCES and changes nothing; the rest keeps its own errno."""
        wanted, got = self.both(bits, self.outside, "--rule", f"allow r {self.outside}")
        self.assertStatus(got)
        words = ("ok", "E")
        for native, line in zip(wanted.out.splitlines(), got.out.splitlines()):
            what = " ".join(w for w in native.split() if w.islower() and w != "ok")
            native, line = ([w for w in text.split() if w.startswith(words) and (w == "ok" or w.isupper())][0]
                            for text in (native, line))
            if what.startswith(("utimensat omit both", "fchmod pipe", "fchmod memory")):
                self.assertEqual("ok", line, what)
            elif native == "ok" and "xattr" in what and line != "EACCES":
                self.assertEqual("ENODATA", line, what)  # what the row before was to set
            elif "create" not in what:
                self.assertEqual("EACCES" if native == "ok" else native, line, what)
        found = got.denials(os.path.join(self.outside, "file"), access=["meta"])
        self.assertEqual(1, len([d for d in found if d["verdict"] == "sandbox"]), got)
        st = os.lstat(os.path.join(self.outside, "file"))
        self.assertEqual(0o100644, st.st_mode)
        self.assertEqual([], os.listxattr(os.path.join(self.outside, "file")))

    def test_refused_outside(self):
        self.check_refused("64")


if __name__ == "__main__":
    main()
