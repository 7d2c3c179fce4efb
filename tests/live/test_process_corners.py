#!/usr/bin/env python3
"""
Where processes come, stop, go and are reused in odd moments; the table's shapes are in test_shapes.py,
and which trap is held by which test in tests/tree/test_traps.py.
"""

import os
import signal

from run_help import WARDER, RunCase, Talk, both_users, by_chance, fixture, main, needs

PROCS = fixture("procs")


@both_users
class Corners(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "x")

    def same_as_native(self, *argv):
        native = self.native(*argv)
        done = self.run_report("--", *argv)
        self.assertEqual((native.status, native.out), (done.status, done.out), done)
        return done

    def test_an_orphaned_stopped_group_is_told(self):
        done = self.same_as_native(PROCS, "orphans")
        self.assertEqual("hup cont\n", done.out)

    def test_a_stopped_group_with_a_link_stays_stopped(self):
        # The shell, its parent in the session, lives on: the end of a sibling means nothing to it.
        done = self.same_as_native("bash", "-mc", "sleep 0 & { trap 'echo hup' HUP; kill -STOP $BASHPID; echo on; } & "
                                   "job=$!; until [[ $(</proc/$job/stat) == *') '[Tt]* ]]; do sleep 0.01; done; "
                                   "(exit 0); sleep 0.1; kill -CONT $job; wait $job 2>/dev/null; true")
        self.assertEqual("on\n", done.out)

    def test_calls_that_restart_do(self):
        os.mkfifo(os.path.join(self.project, "fifo"), 0o600)
        self.own(os.path.join(self.project, "fifo"))
        done = self.same_as_native(PROCS, "restarts", "fifo")
        self.assertEqual("-1 EINTR\n" * 4, done.out)

    def used_for_ever(self, how, count):
        """An open is held at its end, a chmod before it begins."""
        for path in (self.secret, self.write("outside/file.mode", "", 0o600)):
            with self.subTest(path):
                done = self.run_report("--yes", "--", PROCS, how, path, count)
                self.assertEqual("bad 0\n", done.out, done)
                self.assertStatus(done)
                self.assertEqual([], done.report["leftovers"])
                denial, = done.denials()  # one thing, refused and granted often
                self.assertEqual(("allow", path), (denial["answer"], denial["path"]))

    @by_chance
    def test_killed_at_every_moment(self):
        self.used_for_ever("kills", "150")

    @by_chance
    def test_threads_vanish_in_an_exec_at_every_moment(self):
        self.used_for_ever("execs", "100")

    def test_a_busy_process_starves_nobody(self):
        done = self.hold("-x", os.path.dirname(PROCS), "--", "bash", "-c", "(while :; do : < /dev/null; done) & "
                         f"{fixture('shape')} plain {self.secret}; s=$?; kill $!; exit $s")
        self.assertStatus(done, 40)
        self.assertEqual(1, len(done.asked))

    @needs("su")
    def test_su_says_so_itself(self):
        if self.uid == 0:
            self.skipTest("root loses nothing by it")
        done = self.run_report("--", "su", "--version")
        self.assertStatus(done)
        self.assertEqual(["su is setuid; it ran without that privilege"], done.report["engine"]["notes"])
        self.assertIn("warder: su is setuid; it ran without that privilege\n", done.err)

    def test_the_process_ends_while_its_thread_is_held(self):
        talk = Talk(self, ["--", PROCS, "exit-held", self.secret])
        q = talk.ask()
        os.kill(q["pid"], signal.SIGUSR1)
        done = talk.finish()
        self.assertStatus(done, 5)
        self.assertEqual([(q["id"], "exited")], [(e["id"], e["reason"]) for e in done.events if e["event"] == "cancel"])

    def test_another_supervisor_has_the_listener(self):
        done = self.native(PROCS, "listener", WARDER, "run", "--", "touch", "ran")
        self.assertStatus(done, 125)
        self.assertIn("has the one seccomp listener that a process can have; nothing was run", done.err)
        self.assertFalse(os.path.exists(os.path.join(self.project, "ran")))

    @needs("unshare")
    def test_unshare(self):
        done = self.hold("--", "unshare", "-U", "-p", "-f", "bash", "-c", f"cat {self.secret}; echo $$; exit 6")
        if "unshare failed" in done.err:
            self.skipTest("no user namespaces here")
        self.assertStatus(done, 6)
        self.assertEqual("x1\n", done.out, done)
        q, = done.asked
        self.assertGreater(q["pid"], 10, "as seen from outside")
        self.assertEqual(["cat", self.secret], q["argv"])

    @by_chance
    def test_numbers_that_are_used_again(self):
        major, minor = (int(n) for n in os.uname().release.split(".")[:2])
        if self.uid != 0 or (major, minor) < (6, 14):
            self.skipTest("takes root, and a kernel whose pid_max is a namespace's own (6.14)")
        script = (f"echo 400 > /proc/sys/kernel/pid_max && exec '{WARDER}' run --yes --report '{self.report_file}' -- "
                  f"bash -c '{PROCS} vfork 400 && {PROCS} kills {self.secret} 100 && {PROCS} storm 20 && cat {self.secret} && exit 7'")
        done = self.native("unshare", "-p", "-f", "-m", "--mount-proc", "bash", "-c", script)
        self.assertStatus(done, 7)
        self.assertEqual("done\nbad 0\nbad 0\nx", done.out)
        report = self.read_report()
        self.assertTrue(all(0 < d["pid"] <= 400 for d in report["denials"]), report["denials"])


if __name__ == "__main__":
    main()
