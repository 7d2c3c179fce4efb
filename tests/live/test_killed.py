#!/usr/bin/env python3
"""
What kill -9 of warder leaves: its private temporary directory goes when the next run starts, and nothing else
does, whoever plays tricks with the name.
"""

import os
import signal
import socket
import subprocess
import threading

from run_help import NOBODY, WARDER, RunCase, both_users, main, wait_until


@both_users
class Killed(RunCase):
    def setUp(self):
        super().setUp()
        self.notes = os.path.join(self.dir, "state", "warder", "tmpdirs")

    def running(self, script="echo $TMPDIR; exec sleep 60", **more):
        """A run that waits, and its TMPDIR."""
        run = self.start([WARDER, "run", "--", "sh", "-c", script], stdout=subprocess.PIPE, text=True, **more)
        return run, run.stdout.readline().strip()

    def kill(self, run):
        run.send_signal(signal.SIGKILL)
        run.wait()

    def killed(self, script="echo $TMPDIR; exec sleep 60"):
        run, there = self.running(script)
        self.kill(run)
        self.assertTrue(os.path.isdir(there))
        return there

    def next_run(self, **more):
        done = self.run_plain("--", "true", **more)
        self.assertStatus(done)
        return done

    def note_of(self, there):
        for name in os.listdir(self.notes):
            path = os.path.join(self.notes, name)
            with open(path) as f:
                if there in f.read():
                    return path
        return None

    def test_the_next_run_removes_it_and_no_other(self):
        there = self.killed("mkdir -p $TMPDIR/a/b; ln -s / $TMPDIR/a/l; chmod 0 $TMPDIR/a; echo $TMPDIR; exec sleep 60")
        living, here = self.running()
        self.assertFalse(os.path.exists(there))
        self.assertTrue(os.path.isdir(here))
        self.assertQuiet(self.next_run())
        self.assertTrue(os.path.isdir(here))
        self.assertIsNone(living.poll())
        living.send_signal(signal.SIGTERM)
        living.wait()
        self.assertFalse(os.path.exists(here))
        self.assertEqual([], os.listdir(self.notes))

    def test_a_command_can_not_reach_the_notes(self):
        done = self.run_report("--rule", f"allow rwx {self.dir}", "--", "sh", "-c", f"ls {self.notes}; rm -r {self.notes}")
        self.assertStatus(done, 1)
        self.assertTrue(os.path.isdir(self.notes))

    def test_a_symlink_in_its_place_is_not_followed(self):
        there = self.killed()
        precious = self.write("outside/precious", "x")
        os.rmdir(there)
        os.symlink(self.outside, there)
        if self.uid != os.getuid():
            os.chown(there, self.uid, self.uid, follow_symlinks=False)
        self.next_run()
        self.assertTrue(os.path.exists(precious))
        self.assertTrue(os.path.islink(there))
        self.assertEqual([], os.listdir(self.notes))

    def test_a_symlink_above_it_is_not_followed(self):
        there = self.killed()
        os.rename(self.tmp, self.tmp + ".was")
        os.symlink(self.tmp + ".was", self.tmp)
        self.next_run(env=dict(self.env, TMPDIR="/tmp"))
        self.assertTrue(os.path.isdir(there))

    def test_another_directory_of_its_name_stays(self):
        there = self.killed()
        os.rename(there, there + ".was")
        os.mkdir(there)
        self.own(there)
        self.write(os.path.join(there, "mine"), "x")
        self.next_run()
        self.assertEqual(["mine"], os.listdir(there))
        self.assertEqual([], os.listdir(self.notes))

    def test_another_users_stays(self):
        if os.getuid() or self.uid:
            self.skipTest("root gives it away")
        there = self.killed()
        os.chown(there, NOBODY, NOBODY)
        self.next_run()
        self.assertTrue(os.path.isdir(there))

    def test_another_hosts_note_is_left_alone(self):
        there = self.killed()
        note = self.note_of(there)
        with open(note) as f:
            text = f.read()
        self.assertIn(socket.gethostname(), text)
        with open(note, "w") as f:
            f.write(text.replace(socket.gethostname(), "elsewhere", 1))
        self.next_run()
        self.assertTrue(os.path.isdir(there))
        self.assertTrue(os.path.exists(note))

    def test_notes_that_are_none_harm_nobody(self):
        precious = self.write("outside/precious", "x")
        self.killed()
        s = os.stat(self.outside)
        host = socket.gethostname()
        for i, text in enumerate(["", "nonsense", f"{host} {s.st_dev} {s.st_ino} {self.outside}",
                                  f"{host} {s.st_dev} {s.st_ino} ", f"{host} 1 2 relative", "x" * 100000,
                                  f"{host} {s.st_dev} {s.st_ino} {self.tmp}/../outside"]):
            self.write(os.path.join(self.notes, f"{i:032x}"), text, 0o600)
        os.symlink(precious, os.path.join(self.notes, "0" * 31 + "f"))
        os.mkfifo(os.path.join(self.notes, "0" * 31 + "e"))
        self.own(os.path.join(self.notes, "0" * 31 + "e"))
        self.next_run()
        self.assertTrue(os.path.exists(precious))
        self.next_run()

    def test_many_that_start_at_once(self):
        dead = [self.running() for _ in range(4)]
        for run, _ in dead:
            self.kill(run)
        living, here = self.running()
        done = []
        threads = [threading.Thread(target=lambda: done.append(self.run_plain("--", "sh", "-c", "test -d $TMPDIR")))
                   for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for d in done:
            self.assertStatus(d)
            self.assertQuiet(d)
        self.assertEqual([os.path.basename(here)], os.listdir(self.tmp))
        self.assertEqual(1, len(os.listdir(self.notes)))
        self.kill(living)

    def test_a_big_one_goes_in_parts(self):
        """A start is not held up by a hundred thousand files; each takes some of them."""
        there = self.killed("cd $TMPDIR; mkdir d; i=0; while [ $i -lt 5000 ]; do : >d/$i; i=$((i+1)); done;"
                            "echo $TMPDIR; exec sleep 60")
        starts = 0
        while os.path.exists(there):
            self.assertQuiet(self.next_run())
            starts += 1
            self.assertLess(starts, 20)
        self.assertGreater(starts, 1)

    def test_what_can_not_be_removed_is_said_once(self):
        if os.getuid() or self.uid:
            self.skipTest("chattr +i is root's")
        there = self.killed("touch $TMPDIR/f; echo $TMPDIR; exec sleep 60")
        if subprocess.run(["chattr", "+i", f"{there}/f"], stderr=subprocess.DEVNULL).returncode:
            self.skipTest("no immutable files here")
        self.addCleanup(subprocess.run, ["chattr", "-i", f"{there}/f"])
        self.assertRegex(self.next_run().err, rf"\Awarder: {there}, left behind by a warder that was killed, can't be removed: .*\n\Z")
        self.assertQuiet(self.next_run())

    def test_what_was_to_become_a_note_goes_too(self):
        """Killed between a note's making and its being whole, or before it had its name."""
        there = self.killed()
        note = self.note_of(there)
        whole, empty, fresh = (os.path.join(self.notes, name) for name in (".whole", ".empty", ".fresh"))
        os.rename(note, whole)
        for path in (empty, fresh):
            self.write(path)
        for path in (whole, empty):
            os.utime(path, (1, 1))
        self.assertQuiet(self.next_run())
        self.assertFalse(os.path.exists(there))
        self.assertEqual([".fresh"], os.listdir(self.notes))  # it may be one that is being made

    def test_where_no_note_can_be_made_it_is_said(self):
        self.next_run()
        os.rmdir(self.notes)
        self.write("state/warder/tmpdirs", "in the way")
        done = self.next_run()
        self.assertRegex(done.err, r"\Awarder: [^\n]*tmpdirs[^\n]*\n\Z")
        self.assertEqual([], os.listdir(self.tmp))


if __name__ == "__main__":
    main()
