"""
What a run has learned of a file, the next one knows (the state directory's file "sites"). It tells
where to look: whatever is in it, the program's calls, and what is said of them, are the same.
"""

import glob
import os
import shutil
import subprocess

import run_help
from run_help import WARDER, both_users, fixture, needs
from test_fast import OBJECT, OPENER, FastCase

CAT = ("cat", "/etc/hostname")


@both_users
class Sites(FastCase):
    def setUp(self):
        super().setUp()
        self.state = os.path.join(self.dir, "state", "warder")
        self.file = os.path.join(self.state, "sites")

    def once(self, *command, args=(), **more):
        return self.run_report("--on-denial", "report", *args, "--", *command, timeout=100, **more)

    def what(self, done):
        return (done.out, done.err, done.status,
                [(d["path"], d["access"], d["call"], d["errno"], d["count"]) for d in done.report["denials"]])

    def again(self, *command, args=()):
        """The same run, now that its files are known: it says the same, with fewer stops. Both."""
        first, second = self.once(*command, args=args), self.once(*command, args=args)
        self.assertEqual(self.what(first), self.what(second))
        self.assertLess(self.stops(second), self.stops(first), second)
        return first, second

    def opener(self, *how, compiler="cc"):
        program = os.path.join(self.project, "opener")
        subprocess.run([compiler, *how, "-o", program, self.write("home/opener.c", OPENER)], check=True)
        return self.own(program)

    def content(self):
        with open(self.file, "rb") as f:
            return f.read()

    def put(self, content):
        with open(self.file, "wb") as f:
            f.write(content)
        self.own(self.file)

    def test_the_next_run_knows(self):
        self.again(*CAT)
        known = os.stat(self.file)
        self.assertEqual((0o100600, self.uid), (known.st_mode, known.st_uid))
        self.assertEqual(["audit.jsonl", "sites"],
                         sorted(os.path.basename(f) for f in glob.glob(self.state + "/*") if os.path.isfile(f)
                                and not f.endswith("report.json")))
        # What it knows it leaves as it is.
        self.once(*CAT)
        self.assertEqual(known.st_ino, os.stat(self.file).st_ino)

    def test_fast_off_neither_reads_nor_writes_it(self):
        self.once(*CAT, args=("--fast", "off"))
        self.assertFalse(os.path.exists(self.file))

    def test_no_program_gets_at_it(self):
        self.once(*CAT)
        done = self.once("sh", "-c", 'cat "$1"; echo x >"$1"; rm -f "$1"', "sh", self.file,
                         args=("--rule", f"allow rw {self.dir}"))
        self.assertEqual("", done.out)
        self.assertTrue(self.content().startswith(b"wardsite"))

    def assertUsed(self, used, *command):
        """Whether the file was used by a run that is about to be made. (After it, it is again.)"""
        done = self.once(*command)
        self.assertEqual(self.what(self.first), self.what(done))
        (self.assertLess if used else self.assertGreaterEqual)(self.stops(done), self.stops(self.first), done)

    def test_a_file_that_is_broken(self):
        self.first, _ = self.again(*CAT)
        whole = self.content()
        for content in (b"", b"wardsite", whole[:-1], whole[:100], b"\xff" * 4096, b"#!/bin/sh\n" * 99, whole * 2,
                        bytes(1 << 20)):
            self.put(content)
            self.assertUsed(False, *CAT)
            self.assertUsed(True, *CAT)
        self.put(whole[:60] + b"\x07" + whole[61:])  # one entry is broken
        self.once(*CAT)
        self.assertUsed(True, *CAT)

    def test_a_file_of_others(self):
        self.first, _ = self.again(*CAT)
        os.chmod(self.file, 0o666)
        self.assertUsed(False, *CAT)
        self.assertEqual(0o100600, os.stat(self.file).st_mode)
        self.assertUsed(True, *CAT)
        if os.getuid() == 0:
            os.chown(self.file, 1234, 1234)
            self.assertUsed(False, *CAT)
            self.assertEqual(self.uid, os.stat(self.file).st_uid)
            self.assertUsed(True, *CAT)
        # Nothing is read through a link, or written.
        os.rename(self.file, self.state + "/other")
        os.symlink("other", self.file)
        self.assertUsed(False, *CAT)
        self.assertFalse(os.path.islink(self.file))
        self.assertUsed(True, *CAT)

    def test_a_state_directory_that_can_not_be_written(self):
        self.first, _ = self.again(*CAT)
        os.remove(self.file)
        os.mkdir(self.file)  # root can write anywhere else
        self.assertUsed(False, *CAT)
        self.assertEqual([], glob.glob(self.state + "/sites.*"))
        os.rmdir(self.file)
        if self.uid != 0:
            os.chmod(self.state, 0o500)
            # (What else can't be written is another's to say.)
            self.assertEqual(self.first.out, self.once(*CAT).out)
            self.assertEqual(self.first.out, self.once(*CAT).out)
            os.chmod(self.state, 0o700)
            self.assertFalse(os.path.exists(self.file))

    def test_a_full_disk(self):
        if os.getuid() or self.uid:
            self.skipTest("only root can mount")
        first, _ = self.again(*CAT)
        script = ('mount -t tmpfs -o size=64k none "$1" && mkdir -m 700 "$1/warder" && shift && '
                  '"$@" && cp "$0/sites" "$0/kept" && { cat /dev/zero >"$0/big" 2>/dev/null; "$@" '
                  '/etc/shells; cmp "$0/sites" "$0/kept" && ls "$0"; }')
        done = self.native("unshare", "-m", "--propagation", "private", "sh", "-c", script, self.state,
                           os.path.join(self.dir, "state"), WARDER, "run", "-q", "--on-denial", "report", "--", *CAT)
        self.assertIn(first.out, done.out, done)
        self.assertIn("/bin/sh", done.out, done)
        self.assertIn("kept", done.out.split(), done)
        self.assertNotIn("sites.new", done.out, done)

    def library(self, name, more, build_id="0x0123456789abcdef0123456789abcdef01234567"):
        source = self.write("home/lib.c", OBJECT % more)
        built = os.path.join(self.project, name)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-Wl,--build-id={build_id}", "-o", built, source],
                       check=True)
        return self.own(built)

    def opens_by(self, *objects):
        done = self.once(fixture("fast_ways"), "dl", self.good, self.secret, *objects,
                         args=("-x", fixture("fast_ways")))
        self.assertEqual("wrong 0\n", done.out)
        self.assertEqual(400 * len(objects), done.denials(self.secret)[0]["count"])
        return done

    def test_two_files_of_one_build_id(self):
        """Each has its own place in the file, whatever it says of itself."""
        one = self.library("1.so", "")
        other = self.library("2.so", "int pad(int x) { return x * 3; } static volatile int y;")
        counts = [self.stops(self.opens_by(one, other)) for _ in range(3)]
        self.assertLess(max(counts[1:]), counts[0])
        self.assertLess(self.stops(self.opens_by(other, one)), counts[0])

    def test_another_library_in_its_place(self):
        """A new file under its name, and in its inode; with another build id, and with the same."""
        one, kept = self.library("1.so", ""), os.path.join(self.project, "kept")
        self.opens_by(one, one)
        pad = "int pad(int x) { return x * 3; } int more(int x) { return x * 5; }"
        for how in (shutil.copy, os.replace):
            for build_id in ("0x0123456789abcdef0123456789abcdef01234567", "0x99"):
                other = self.library("2.so", pad, build_id)
                shutil.copy(one, kept)
                how(other, one)
                self.own(one)
                for _ in range(2):
                    self.opens_by(one, one)
                shutil.copy(kept, one)
                self.opens_by(one, one)

    def test_every_kind_of_program(self):
        compilers = [("cc",), ("cc", "-static")]
        if shutil.which("musl-gcc"):
            # Its function is several moves; and without being told, it makes no build id.
            compilers += [("musl-gcc",), ("musl-gcc", "-static", "-Wl,--build-id")]
        for compiler, *how in compilers:
            program = self.opener(*how, compiler=compiler)
            first, second = self.again(program, "60", self.good, self.secret, self.good + ".not")
            self.assertEqual(120, second.denials(self.secret)[0]["count"])
            self.assertLess(self.stops(second), 120 + 20, (compiler, how))

    def test_ways(self):
        """tests/fixtures/fast_ways.c, as in test_fast, by what an earlier run has learned."""
        program = fixture("fast_ways")
        for way in ("signals", "threads", "late", "exec", "children", "tsync", "rewrite", "unmapped"):
            first, second = (self.once(program, way, self.good, self.secret, args=("-x", program)) for _ in range(2))
            self.assertEqual(self.what(first), self.what(second), way)
        program = fixture("fast_filter")
        for _ in range(2):
            done = self.once(program, self.good, args=("-x", program))
            self.assertEqual("before 0\ntext as before\nafter 0\n", done.out)

    @needs("git", "python3")
    def test_programs(self):
        for command in (("python3", "-c", "import json"), ("git", "--version"),
                        ("sh", "-c", "ls / >/dev/null; cat /etc/shells")):
            self.again(*command)
            os.remove(self.file)

    def test_while_somebody_is_asked(self):
        """Stubs that let what changes something stop are made of the same knowledge."""
        script = 'for i in 1 2 3 4 5 6; do echo >made.$i; cat /etc/hostname; done; cat "$1"'
        asked = []
        for _ in range(2):
            done = self.hold("--", "sh", "-c", script, "sh", self.secret)
            self.assertEqual(0, done.status, done)
            asked.append((len(done.asked), self.stops(done)))
        self.assertEqual(asked[0][0], asked[1][0])
        self.assertLess(asked[1][1], asked[0][1])


if __name__ == "__main__":
    run_help.main()
