"""
A program that may run, but whose file the ruleset can't name since it came later: it runs in place,
from a sealed copy, and sees what it would have seen natively.
"""

import os
import re
import shutil
import subprocess
import unittest

import run_help
from run_help import allow, both_users, counts_by_chance, fixture, needs

NEW = ("--rule", "deny x .", "--rule", "allow rx ./new-*")
COPIED = "a program ran from a sealed copy"


def without_inner_signals(out):
    """
    Without clone3 (answered ENOSYS) glibc's posix_spawn leaves the two signals that are its own (32, 33)
    ignored in the child; since 2.38 it uses clone3 where it can, which does not.
    """
    return re.sub(r"(?m)^SigIgn:\t(\w+)$", lambda m: f"SigIgn:\t{int(m[1], 16) & ~(3 << 31):016x}", out)


class ExecCase(run_help.RunCase):
    def setUp(self):
        super().setUp()
        self.env["PATH"] = "/usr/bin:/bin"

    def place(self, name, source=None, text=None, mode=0o755):
        path = os.path.join(self.project, name)
        if text is not None:
            return self.write(path, text, mode)
        shutil.copy(source, path)
        os.chmod(path, mode)
        return self.own(path)

    def outer(self, *names):
        """Programs that lie where they may be read, for the command to copy."""
        for name in names:
            shutil.copy(fixture(name), os.path.join(self.bin, name))

    def run_new(self, script, *more, **kw):
        return self.run_report("--on-denial", "report", *NEW, "-r", self.bin, *more, "--", "bash", "-c",
                               script, **kw)

    def assertCopied(self, done, times):
        notes = [n for n in done.report["engine"]["notes"] if COPIED in n]
        self.assertEqual([f"{times}×"] if times else [], [n.split()[0] for n in notes], done)

    def assertAsNatively(self, script, times):
        """The script makes ./new-... out of what is in bin, and runs it."""
        natively = self.native("bash", "-c", script)
        for name in os.listdir(self.project):
            if name.startswith("new-"):
                os.unlink(os.path.join(self.project, name))
        done = self.run_new(script)
        # What every command of warder's has, copied or not.
        expected = natively.out.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1")
        self.assertEqual(without_inner_signals(expected), without_inner_signals(done.out), done)
        self.assertEqual((natively.err, natively.status), (done.err, done.status), done)
        self.assertEqual([], done.report["denials"], done)
        self.assertCopied(done, times)
        return done


@both_users
class BuiltInThisRun(ExecCase):
    def test_it_is_given_all_it_would_have_had(self):
        self.outer("exec_probe")
        self.assertAsNatively(
            f"umask 031; trap '' USR1; exec 5</dev/null 8</dev/null; cp {self.bin}/exec_probe new-p;"
            "mkdir -p sub; cd sub; PROBE_X='a b' ../new-p '' 'b  c' $'\\n'; echo $?", 1)

    def test_an_empty_argument_list_and_a_long_one(self):
        self.outer("exec_probe")
        self.assertAsNatively(
            f"cp {self.bin}/exec_probe new-p; (exec -a '' ./new-p); ./new-p $(seq 3000) | grep -v NoNew | md5sum", 2)

    def test_static(self):
        shutil.copy(fixture("hello_static"), os.path.join(self.bin, "h"))
        self.assertAsNatively(f"cp {self.bin}/h new-h; ./new-h; echo $?", 1)

    def test_scripts(self):
        self.assertAsNatively(
            "printf '#!/bin/sh\\necho \"$0\" \"$@\" $(cat \"$0\" | wc -l); exit 3\\n' > new-s;"
            "printf '#! /bin/sh  -e  \\nfalse\\necho not here\\n' > new-e;"
            "printf '#!/usr/bin/env -S bash --posix\\necho $0 $POSIXLY_CORRECT$- $#\\n' > new-v;"
            "chmod +x new-*; ./new-s a 'b c'; echo $?; ./new-e; echo $?; $PWD/new-v 1 2; echo $?", 3)

    def test_a_script_whose_interpreter_is_new_too(self):
        self.outer("exec_probe")
        self.assertAsNatively(
            f"cp {self.bin}/exec_probe new-p; printf '#!%s/new-p some  args \\n' $PWD > new-s;"
            "chmod +x new-s; ./new-s x; echo $?", 2)

    def test_a_script_run_by_a_script(self):
        self.assertAsNatively(
            "printf '#!/bin/sh\\necho inner \"$@\"\\n' > new-i; printf '#!%s/new-i -x\\n' $PWD > new-o;"
            "chmod +x new-*; ./new-o y; echo $?", 2)

    def test_what_is_no_program_is_left_to_the_shell(self):
        self.assertAsNatively("echo 'echo I am $0 $1' > new-t; chmod +x new-t; ./new-t 1; echo $?", 1)

    @needs("python3")
    def test_from_vfork_and_from_a_thread(self):
        self.outer("exec_probe")
        script = ("import shutil, subprocess, threading, os\n"
                  f"shutil.copy('{self.bin}/exec_probe', 'new-p')\n"
                  "r = subprocess.run(['./new-p', '1'], stdout=subprocess.PIPE, close_fds=False)\n"
                  "print(r.returncode, r.stdout.decode())\n"
                  "os.posix_spawn('./new-p', ['p'], {'PROBE': '1'}); print(os.wait()[1])\n"
                  "t = threading.Thread(target=lambda: os.execv('./new-p', ['new', 'thread']))\n"
                  "t.start(); t.join()\n")
        self.write("project/t.py", script)
        self.assertAsNatively("python3 -u t.py; echo $?", 3)

    def test_a_failed_exec_leaves_no_trace(self):
        self.outer("exec_probe")
        done = self.run_new("printf '\\x7fELF garbage' > new-no; chmod +x new-no;"
                            f"{self.bin}/exec_probe fail ./new-no 300", "-x", self.bin)
        self.assertStatus(done)
        self.assertEqual("ENOEXEC same fds 0 1 2\n", done.out, done)

    def test_no_descriptor_is_free(self):
        self.outer("exec_probe")
        done = self.run_new(f"cp {self.bin}/exec_probe new-p; {self.bin}/exec_probe full ./new-p 3", "-x", self.bin)
        self.assertEqual("EACCES same fds 0 1 2\n", done.out, done)

    def test_what_its_own_mode_refuses_stays_refused(self):
        self.outer("exec_probe")
        done = self.run_new(f"cp {self.bin}/exec_probe new-p; chmod a-x new-p; ./new-p; echo $?")
        self.assertEqual("126\n", done.out, done)
        self.assertCopied(done, 0)

    def test_what_is_not_allowed_is_refused(self):
        self.place("old", source=fixture("exec_probe"))
        done = self.run_new("./old; echo $?")
        self.assertEqual("126\n", done.out, done)
        self.assertEqual(["exec"], done.denials(os.path.join(self.project, "old"))[0]["access"], done)

    @counts_by_chance
    def test_the_copy_is_what_was_decided_on(self):
        """The name is swapped all the time: what runs is one of the two, whole, or none."""
        self.outer("exec_probe")
        script = (f"cp {self.bin}/exec_probe new-a; cp new-a keep; echo '#!/bin/false' > evil; chmod +x evil;"
                  "(while :; do cp evil x; mv -f x new-a; cp keep x; mv -f x new-a; done) & w=$!;"
                  "for i in $(seq 40); do ./new-a >/dev/null 2>&1; echo $?; done | sort -u; kill $w")
        done = self.run_new(script, timeout=60)
        self.assertLessEqual(set(done.out.split()), {"1", "7", "126"}, done)
        self.assertIn("7", done.out.split(), done)


@both_users
class Asked(ExecCase):
    def setUp(self):
        super().setUp()
        self.there = os.path.join(self.outside, "tool")

    def bring(self, source=None, text=None, mode=0o755):
        if text is not None:
            return self.write(self.there, text, mode)
        shutil.copy(source, self.there)
        os.chmod(self.there, mode)
        return self.own(self.there)

    def test_a_script_goes_on_in_place(self):
        self.bring(text="#!/bin/sh\necho ran $0 $1; exit 4\n")
        for lifetime in ("once", "session"):
            done = self.hold("--", "bash", "-c", f"echo x >> log; {self.there} 1; echo $?; {self.there} 2",
                             answer=allow(lifetime))
            self.assertEqual(f"ran {self.there} 1\n4\nran {self.there} 2\n", done.out, done)
            self.assertEqual(1, done.report["runs"], done)
        self.assertEqual("x\nx\n", self.read("project/log"))

    def test_a_program_that_does_not_look_for_itself_goes_on_in_place(self):
        self.bring(source=fixture("exec_probe"))
        done = self.hold("--", "bash", "-c", f"{self.there} 1; echo $?")
        self.assertIn("7\n", done.out, done)
        self.assertEqual(1, done.report["runs"], done)
        self.assertEqual(1, len(done.asked), done)

    def test_one_that_looks_for_itself_is_run_again_as_it_is(self):
        source = self.write("home/self.c", '#include <stdio.h>\n#include <unistd.h>\n'
                            'int main(void) { char b[4096]; ssize_t n = readlink("/proc/self/exe", b, 4095);'
                            ' b[n > 0 ? n : 0] = 0; puts(b); return n <= 0; }\n')
        built = os.path.join(self.dir, "self")
        subprocess.run(["cc", "-o", built, source], check=True)
        self.bring(source=built)
        done = self.hold("--", "bash", "-c", f"echo x >> log; {self.there}; true")
        self.assertEqual(self.there + "\n", done.out.split("Permission denied\n")[-1], done)
        self.assertEqual(2, done.report["runs"], done)
        self.assertEqual("x\nx\n", self.read("project/log"))
        self.assertEqual([False, True], [bool(q.get("rerun")) for q in done.asked], done)

    @unittest.skipUnless(os.getuid() == 0, "needs a file that its own user can't read")
    def test_what_can_be_run_but_not_read_takes_another_run(self):
        if self.uid == 0:
            self.skipTest("root reads everything")
        self.bring(source=fixture("exec_probe"), mode=0o111)
        os.chown(self.there, 0, 0)
        done = self.hold("--", "bash", "-c", f"{self.there}; echo $?")
        self.assertEqual(2, done.report["runs"], done)


if __name__ == "__main__":
    run_help.main()
