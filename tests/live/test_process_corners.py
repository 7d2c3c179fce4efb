#!/usr/bin/env python3
"""
Where processes come, stop, go and are reused in odd moments; the table's shapes are in test_shapes.py.

What tracers got wrong before us, and what holds it here (a test's name, or why it can't occur):

Threads, fork, exec
  exec by a thread that is not the first: its state moves      thread_exec, test_thread_runs, exec_while_held
  who execs waits for its siblings, we wait for nobody         test_threads_vanish_in_an_exec_at_every_moment
  a child's first stop before or after its creator's word      storm, freed_in_a_storm
  a number that is used again                                  test_numbers_that_are_used_again,
                                                               a_number_that_is_used_again_is_another_thread
  vfork: the parent sleeps, the memory is shared               vfork, clone_vm
  clone3, CLONE_PARENT, CLONE_PIDFD, CLONE_UNTRACED            clone3, clone_parent, pidfd, clone_untraced
  the first thread ends first                                  leader_gone, leader_exit
  exit events hide exits                                       not asked for (tracer/spawn.c, SEIZE_OPTIONS)
  what belongs to an address space, kept by pid                nothing is: no code of a tracee is changed
  an exit stop after the exec event                            resumed by CONT (tracer/family.c): vfork
  the handshake before the first exec                          handshake_is_disturbed
Stops and signals
  a group stop is left as it is, and heard to end              stops_and_goes_on, test_stopped_while_held
  a signal that is not passed on                               test_they_are_forwarded, granted_under_signals
  SIGKILL out of any stop                                      test_killed_at_every_moment, killed_while_held
  SIGCONT and SIGSTOP in between; PTRACE_INTERRUPT             granted_across_a_stop, test_continued_while_held;
                                                               nothing is ever interrupted
  restart codes, two exit stops in a row                       test_calls_that_restart_do, fifo
  the seccomp stop before the entry stop                       before Linux 4.8 only; Landlock is younger
  a signal between seccomp and exit stop                       timer, fifo
  one busy thread starves the others                           busy_peer, test_a_busy_process_starves_nobody
  children of the host's own                                   foreign_children
  the supervisor dies, and its tree with it                    test_sigkill_of_warder_ends_the_whole_tree,
                                                               supervisor_is_killed
  GETEVENTMSG and GETSIGINFO fail                              the first is checked, the second not used
  signals meant for the command                                test_they_are_forwarded, test_ignored_stays_ignored
Jobs and lifetime
  the foreground group                                         test_job_control, test_pipelines
  a pipe's end that the tracer holds                           test_a_reader_that_goes_away
  daemons                                                      daemon, test_leftovers_are_ended_and_named
  orphans come to the subreaper                                daemon, test_an_orphaned_stopped_group_is_told
  detaching from a tree under a filter                         never done: the tree ends with us
Privileges and nesting
  setuid and file capabilities                                 test_setuid, test_su_says_so_itself
  programs that trace                                          test_traces, test_strace_says_why_itself
  a tracee looks into the supervisor                           test_nothing_of_it_is_read_written_or_signalled
  Yama 2 and 3, no Landlock, no ptrace                         nothing is run, status 125:
                                                               test_a_kernel_without_landlock_runs_nothing, spawn_fails
  one listener a process                                       filter_notify, test_another_supervisor_has_the_listener
  filters of the program's own                                 filter_allow, filter_args, filter_errno, filter_trap,
                                                               filter_trace, filter_strict
  mounts are refused                                           test_the_whole_family
  another root, another mount namespace                        test_another_root_is_no_matter_of_landlock,
                                                               test_a_mount_space_of_its_own
  i386, x32, vsyscall                                          i386, int80, x32, vsyscall, test_bind_by_socketcall
"""

import os
import re
import signal
import unittest

from run_help import WARDER, RunCase, Talk, both_users, fixture, main, needs

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

    def test_killed_at_every_moment(self):
        self.used_for_ever("kills", "150")

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


class Names(unittest.TestCase):
    def test_what_is_named_above_is_there(self):
        named = set()
        for line in __doc__.split("\n\n", 2)[2].splitlines():
            words = line[60:] if line.startswith("  ") else ""
            named |= set(re.findall(r"\b[a-z]\w*_\w+", words))
        self.assertGreater(len(named), 40)
        there = ""
        for top, _, files in os.walk(os.path.join(os.environ["SOURCE_DIR"], "tests")):
            for name in files:
                if name != os.path.basename(__file__):
                    with open(os.path.join(top, name), encoding="utf-8", errors="replace") as f:
                        there += f.read()
        with open(__file__, encoding="utf-8") as f:
            there += f.read().replace(__doc__, "")
        for name in sorted(named):
            self.assertRegex(there, rf"\b{name}\b")


if __name__ == "__main__":
    main()
