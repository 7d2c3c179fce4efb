#!/usr/bin/env python3
"""Attribute calls are done in the command's place: as without warder where allowed, else refused."""

import os
import re
import shutil
import unittest

from run_help import STORM, STORM_CALLS, WARDER, RunCase, Talk, allow, both_users, counts_by_chance, deny, fixture, main

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
            if native.isdigit():  # what flags there are
                self.assertEqual("0", line)
                continue
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


@both_users
class Attacks(RunCase):
    def setUp(self):
        super().setUp()
        self.good = self.write(os.path.join(self.project, "good"))
        self.bad = self.write(os.path.join(self.outside, "bad"))

    def check(self, what):
        done = self.run_report("--rule", f"allow r {self.outside}", "--", fixture("race"), what,
                               self.good, self.bad, timeout=60)
        self.assertStatus(done)
        self.assertEqual(0o600, os.stat(self.good).st_mode & 0o777)
        self.assertEqual(0o644, os.stat(self.bad).st_mode & 0o777)
        _, worked, _, refused = done.out.split()
        self.assertGreater(int(worked), 100, done)
        self.assertGreater(int(refused), 100, done)

    @counts_by_chance
    def test_a_path_that_changes_in_memory(self):
        self.check("chmod")

    @counts_by_chance
    def test_a_descriptor_that_changes(self):
        self.check("fchmod")

    def test_a_signal_storm(self):
        """chmod never gives EINTR, whatever the handler."""
        done = self.run_report("--", fixture("storm"), "chmod", self.good, *STORM)
        self.assertEqual("failed 0 (none), caught many\n", done.out, done)

    def test_an_exception_by_another_name(self):
        os.mkdir(os.path.join(self.project, "no"))
        secret = self.write(os.path.join(self.project, "no", "secret"))
        self.own(os.path.join(self.project, "no"))
        link = os.path.join(self.project, "link")
        os.symlink("no/secret", link)
        done = self.run_report(
            "--rule", "deny w no", "--", "sh", "-c",
            "chmod 600 link; chmod 600 no/../no/secret; chmod 600 /proc/self/cwd/no/secret;"
            "exec 3<no/secret; chmod 600 /proc/self/fd/3; touch -h -d @1 no; cd no; chmod 600 secret")
        self.assertEqual(0o644, os.stat(secret).st_mode & 0o777, done)
        self.assertEqual([("sandbox", "policy")] * 2,
                         [(d["verdict"], d["by"]) for d in done.denials(access=["meta"])], done)

    def test_an_exceptions_inode_by_another_name(self):
        """In a directory whose other things are open, and were just now."""
        secret = self.write("project/secret")
        os.link(secret, os.path.join(self.project, "alias"))
        self.own(os.path.join(self.project, "alias"))
        done = self.run_report("--rule", "deny w secret", "--", "sh", "-c",
                               "chmod 600 good; chmod 600 alias; chmod 604 good; chmod 600 alias")
        self.assertEqual(0o644, os.stat(secret).st_mode & 0o777, done)
        self.assertEqual(0o604, os.stat(self.good).st_mode & 0o777, done)
        found, = done.denials(os.path.join(self.project, "alias"))
        self.assertEqual(("it is a protected path under another name", 2), (found["note"], found["count"]))

    def test_an_exception_by_a_descriptor(self):
        """What a descriptor leads to is where it is now, whatever it was called when it was opened."""
        secret = self.write("project/no/secret")
        self.own(os.path.dirname(secret))
        done = self.run_report("--rule", "deny w no", "--", "/usr/bin/python3", "-c", """if 1:
            import os
            os.mkdir('dir')
            os.close(os.open('dir/file', os.O_CREAT))
            fds = [os.open(name, os.O_RDONLY) for name in ('good', 'dir/file', 'dir', 'no/secret', 'no')]
            os.rename('dir', 'moved')
            for fd in fds:
                for ns in ((1, 2), (3, 4)):
                    try: os.utime(fd, ns=ns); print('ok', end=' ')
                    except OSError as e: print(e.errno, end=' ')""")
        self.assertEqual("ok ok ok ok ok ok 13 13 13 13 ", done.out, done)
        self.assertEqual(3, os.stat(os.path.join(self.project, "moved", "file")).st_atime_ns)
        self.assertNotEqual(3, os.stat(secret).st_atime_ns)


@both_users
class Unreadable(RunCase):
    def test_a_program_file_that_nobody_may_read(self):
        program = os.path.join(self.project, "storm")
        shutil.copy(fixture("storm"), program)
        os.chmod(program, 0o111)
        self.own(program)
        done = self.run_report("--", program, "chmod", self.write("project/file"), *STORM)
        if self.uid == 0:
            self.assertEqual("failed 0 (none), caught many\n", done.out, done)
            return
        failed, broken = re.fullmatch(r"failed (\d+) \(EPERM\), caught many(?:, broken off (\d+))?\n", done.out).groups("0")
        self.assertEqual(STORM_CALLS, int(failed) + int(broken), done)
        if os.uname().machine != "aarch64":  # there no call begins anew whose code can't be read (tracer/regs.c)
            self.assertEqual("0", broken, done)
        found, = done.denials(verdict="other")
        self.assertEqual((["meta"], int(failed)), (found["access"], found["count"]))
        self.assertIn("not dumpable", found["note"])


@both_users
class OldKernel(RunCase):
    def test_what_it_lacks_is_told(self):
        self.write("project/file")
        done = self.native(fixture("old_kernel"), WARDER, "run", "--report", self.report_file, "--",
                           "sh", "-c", "chmod 600 file && stat -c %a file; exec 3<file; touch /proc/self/fd/3")
        self.assertEqual("600\n", done.out, done)
        lacks = " ".join(self.read_report()["engine"]["degraded"])
        self.assertIn("Linux 5.19", lacks)
        self.assertIn("Linux 6.9", lacks)

    def test_a_new_one_lacks_nothing(self):
        release = tuple(int(n) for n in os.uname().release.split(".")[:2])
        done = self.run_report("--", "true")
        self.assertEqual(release < (6, 9), any("Linux 6.9" in d for d in done.report["engine"]["degraded"]), done)


@both_users
class Asked(RunCase):
    def test_held_and_done_in_place(self):
        there = self.write(os.path.join(self.outside, "file"))
        done = self.hold("--", "sh", "-c", f"chmod 600 {there} && stat -c %a {there}")
        self.assertStatus(done)
        self.assertEqual("600\n", done.out, done)
        self.assertEqual([["meta"]], [q["access"] for q in done.asked], done)
        self.assertEqual([there], [q["path"] for q in done.asked], done)
        self.assertEqual(1, done.report["engine"]["brokered"])

    def test_what_an_answer_granted_is_counted(self):
        """By the answer itself, and by what it left behind; not what needed none, nor what failed."""
        for name in ("one", "two"):
            self.write(os.path.join(self.outside, name))
        done = self.hold("--", "/usr/bin/python3", "-c", "import os, sys\n"
                         "os.close(os.open('inside', os.O_CREAT))\n"
                         "for i in range(3):\n"
                         " for path in sys.argv[1:]: os.chmod(path, 0o600 + i)\n"
                         f"try: os.chmod('{self.outside}/missing', 0o600)\n"
                         "except FileNotFoundError: pass\n", "inside", f"{self.outside}/one", f"{self.outside}/two",
                         answer=allow("session"))
        self.assertStatus(done)
        self.assertEqual(2, len(done.asked), done)
        self.assertEqual(6, done.report["engine"]["brokered"])

    def test_no_is_eacces(self):
        there = self.write(os.path.join(self.outside, "file"))
        done = self.hold("--", "chmod", "600", there, answer=deny)
        self.assertStatus(done, 1)
        self.assertIn("Permission denied", done.err)
        self.assertEqual(0o644, os.stat(there).st_mode & 0o777)

    def test_what_fails_anyway_asks_nothing(self):
        done = self.hold("--", "sh", "-c", f"chmod 600 {self.outside}/missing; chmod 600 loop; chmod 600 {self.outside}/missing/x")
        self.assertNothingAsked(done)

    def test_killed_while_it_is_asked_about(self):
        there = self.write(os.path.join(self.outside, "file"))
        talk = Talk(self, ["--", "sh", "-c", f"chmod 600 {there} & sleep 0.3; kill -9 $!; wait; echo on"])
        talk.ask()
        self.assertEqual("exited", talk.next("cancel")["reason"])
        done = talk.finish()
        self.assertStatus(done)
        self.assertEqual("on\n", done.out, done)
        self.assertEqual(0o644, os.stat(there).st_mode & 0o777)

    def test_ended_by_a_signal_while_it_is_asked_about(self):
        there = self.write(os.path.join(self.outside, "file"))
        talk = Talk(self, ["--", "sh", "-c", f"chmod 600 {there} & sleep 0.3; kill -TERM $!; wait $!; echo $?"])
        talk.ask()
        done = talk.finish()
        self.assertEqual("143\n", done.out, done)
        self.assertEqual(0o644, os.stat(there).st_mode & 0o777)

    def test_retry(self):
        there = self.write(os.path.join(self.outside, "file"))
        done = self.hold("--on-denial", "retry", "--", "chmod", "600", there, answer=allow("session"))
        self.assertStatus(done)
        self.assertEqual(0o600, os.stat(there).st_mode & 0o777, done)


if __name__ == "__main__":
    main()
