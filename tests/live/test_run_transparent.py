#!/usr/bin/env python3
"""Signals, pipes, descriptors, limits and ends: as without warder."""

import hashlib
import os
import resource
import signal
import subprocess
import time

from run_help import TIMEOUT, WARDER, RunCase, both_users, fixture, is_alive, main, wait_until


@both_users
class Signals(RunCase):
    def begin(self, *args, **more):
        process = self.start([WARDER, "run", "--report", self.report_file, *args], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, **more)
        return process

    def end_of(self, process):
        out, err = process.communicate(timeout=TIMEOUT)
        return process.returncode, out.decode(), err.decode()

    def ready(self, name="ready"):
        self.assertTrue(wait_until(lambda: os.path.exists(os.path.join(self.project, name))), "never ready")

    def test_they_are_forwarded(self):
        for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2"):
            with self.subTest(name):
                process = self.begin("--", "bash", "-c",
                                     f"trap 'echo got {name}; exit 7' {name}; touch ready{name}; while :; do sleep 0.05; done")
                self.ready("ready" + name)
                process.send_signal(getattr(signal, "SIG" + name))
                status, out, _ = self.end_of(process)
                self.assertEqual((7, f"got {name}\n"), (status, out))

    def test_and_end_it_by_the_signal(self):
        for name in ("TERM", "INT", "HUP", "USR1"):
            with self.subTest(name):
                process = self.begin("--", "bash", "-c", f"touch ready{name}; exec sleep 30")
                self.ready("ready" + name)
                time.sleep(0.1)
                process.send_signal(getattr(signal, "SIG" + name))
                status, _, _ = self.end_of(process)
                self.assertEqual(-getattr(signal, "SIG" + name), status)
                self.assertEqual({"signal": int(getattr(signal, "SIG" + name))}, self.read_report()["status"])

    def test_ignored_stays_ignored(self):
        process = self.begin("--", "bash", "-c", "touch ready; sleep 1; echo end",
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.ready()
        process.send_signal(signal.SIGHUP)
        status, out, _ = self.end_of(process)
        self.assertEqual((0, "end\n"), (status, out))

    def tree(self, *options):
        file = os.path.join(self.project, "pids")
        process = self.begin(*options, "--", fixture("run_tree"), file)
        def all_there():
            return os.path.exists(file) and len(self.read(file).splitlines()) == 7
        self.assertTrue(wait_until(all_there), os.path.exists(file) and self.read(file))
        pids = {n: int(p) for n, p in (line.split() for line in self.read(file).splitlines())}
        for pid in pids.values():
            self.assertTrue(is_alive(pid))
            self.addCleanup(lambda pid=pid: is_alive(pid) and self.is_ours(pid) and os.kill(pid, signal.SIGKILL))
        return process, pids

    def is_ours(self, pid):
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return self.dir.encode() in f.read()

    def test_sigkill_of_warder_ends_the_whole_tree(self):
        process, pids = self.tree()
        process.kill()
        process.wait(TIMEOUT)
        for name, pid in pids.items():
            self.assertTrue(wait_until(lambda: not is_alive(pid), 5), name + " lives on")

    def test_sigkill_while_a_thread_is_held(self):
        secret = self.write("outside/secret", "x")
        r, w = os.pipe()
        r2, w2 = os.pipe()
        process = self.begin("--events", str(w), "--answers", str(r2), "--", "cat", secret, pass_fds=(w, r2))
        os.close(w)
        os.close(r2)
        while b'"ask"' not in os.read(r, 65536):
            pass
        pid, = self.children_of(process)
        process.kill()
        process.wait(TIMEOUT)
        self.assertTrue(wait_until(lambda: not is_alive(pid), 5))
        os.close(r)
        os.close(w2)

    def test_the_time_limit_ends_the_whole_tree(self):
        process, pids = self.tree("--timeout", "1.5", "--kill-after", "0.3")
        status, _, err = self.end_of(process)
        self.assertEqual(124, status, err)
        for name, pid in pids.items():
            self.assertFalse(is_alive(pid), name + " lives on")

    def test_leftovers_are_ended_and_named(self):
        process = self.begin("--", "bash", "-c", "setsid sleep 98765 & echo $! ; sleep 0.1; exit 3")
        status, out, err = self.end_of(process)
        self.assertEqual(3, status)
        pid = int(out)
        self.assertFalse(is_alive(pid))
        self.assertIn(f"sleep ({pid})", err)
        leftover, = self.read_report()["leftovers"]
        self.assertEqual((pid, "sleep"), (leftover["pid"], leftover["argv0"]))
        self.assertIn("/sleep", leftover["exe"] + "/sleep")

    def test_leftovers_that_ignore_term(self):
        process = self.begin("--", "bash", "-c", "(trap '' TERM; while :; do sleep 1; done) & disown; sleep 0.2; echo $!")
        begin = time.monotonic()
        status, out, _ = self.end_of(process)
        self.assertEqual(0, status)
        self.assertFalse(is_alive(int(out)))
        self.assertLess(time.monotonic() - begin, 6)
        self.assertGreater(time.monotonic() - begin, 1.5)

    def test_leftovers_wait(self):
        process = self.begin("--leftovers", "wait", "--", "bash", "-c", "(sleep 0.7; echo late) & exit 4")
        status, out, err = self.end_of(process)
        self.assertEqual((4, "late\n", ""), (status, out, err))
        self.assertEqual([], self.read_report()["leftovers"])

    def test_what_is_just_ending_is_no_leftover(self):
        process = self.begin("--", "bash", "-c", "sleep 0.03 & exit 0")
        status, _, err = self.end_of(process)
        self.assertEqual((0, ""), (status, err))

    def test_stop_and_go_on(self):
        process = self.begin("--", "bash", "-c", "echo $$ > ready; kill -STOP $$; echo on")
        self.assertTrue(wait_until(lambda: os.path.exists(os.path.join(self.project, "ready")) and self.read("project/ready")))
        pid = int(self.read("project/ready"))
        def stopped():
            with open(f"/proc/{pid}/stat") as f:
                return f.read().rpartition(")")[2].split()[0] in "Tt"
        self.assertTrue(wait_until(stopped))
        time.sleep(0.3)
        process.send_signal(signal.SIGCONT)
        self.assertEqual((0, "on\n"), self.end_of(process)[:2])

    def test_a_stopped_command_is_not_spared_the_time_limit(self):
        process = self.begin("--timeout", "0.5", "--", "bash", "-c", "kill -STOP $$; echo on")
        self.assertEqual((124, ""), self.end_of(process)[:2])


@both_users
class Streams(RunCase):
    def test_ten_megabytes_through_a_pipeline(self):
        done = self.native("bash", "-c", f"set -o pipefail; head -c 10000000 /dev/urandom | tee given | "
                                         f"'{WARDER}' run -- cat | sha256sum")
        self.assertStatus(done)
        with open(os.path.join(self.project, "given"), "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).hexdigest(), done.out.split()[0])
        self.assertQuiet(done)

    def test_a_reader_that_goes_away(self):
        done = self.native("bash", "-c", f"'{WARDER}' run -- yes | head -n 2; echo ${{PIPESTATUS[0]}}")
        self.assertEqual("y\ny\n141\n", done.out)
        self.assertEqual("", done.err)

    def test_stdin_is_left_where_the_command_left_it(self):
        file = self.write("project/in", "one\ntwo\n")
        done = self.native("bash", "-c", f"{{ '{WARDER}' run -- bash -c 'read a; echo $a'; cat; }} < {file}")
        self.assertEqual("one\ntwo\n", done.out)

    def test_inherited_descriptors(self):
        done = self.native("bash", "-c", f"'{WARDER}' run -- cat <(echo hi) <(echo there)")
        self.assertStatus(done)
        self.assertEqual("hi\nthere\n", done.out)
        done = self.native("bash", "-c", f"exec 7> made; '{WARDER}' run -- bash -c 'echo x >&7'; cat made")
        self.assertEqual("x\n", done.out)

    def test_closed_streams(self):
        for what, out in (("<&-", "0"), (">&-", ""), ("2>&-", "0"), ("<&- >&- 2>&-", "")):
            with self.subTest(what):
                command = f"bash -c 'ls -l /proc/$$/fd > fds; true' {what}; echo -n $?"
                native = self.native("bash", "-c", command)
                native_fds = self.fds()
                done = self.native("bash", "-c", f"'{WARDER}' run -- {command}")
                self.assertEqual(native.out, done.out, done.err)
                self.assertEqual(native_fds, self.fds())

    def fds(self):
        return [line.split()[-3] for line in self.read("project/fds").splitlines()[1:]]

    def state(self, *prefix, **more):
        done = self.native(*prefix, fixture("run_state"), **more)
        self.assertStatus(done)
        # Pipes and sockets have another number each time.
        return [line.partition(":[")[0] for line in done.out.splitlines()]

    def test_the_same_start(self):
        def odd():
            os.umask(0o037)
            os.nice(3)
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 8 << 20))
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGUSR1])
        for more in ({}, {"preexec_fn": odd}, {"preexec_fn": odd, "cwd": self.home}):
            env = dict(self.env, ODD="a=b\nc", EMPTY="")
            native = self.state(env=env, **more)
            ours = self.state(WARDER, "run", "--", env=env, **more)
            # A child of the session's leader instead of the leader.
            native = [l for l in native if not l.startswith("session leader")]
            ours = [l for l in ours if not l.startswith("session leader")]
            self.assertEqual(native, ours)

    def test_a_private_tmpdir(self):
        done = self.run_plain("--", "bash", "-c", "echo $TMPDIR $TMP $TEMP $TMPPREFIX; ls -ld $TMPDIR; "
                                                  "mkdir -m 0 $TMPDIR/closed; mkdir -p $TMPDIR/a/b; echo x > $TMPDIR/a/b/c; mktemp")
        self.assertStatus(done)
        first, long, made = done.out.splitlines()
        tmpdir, tmp, temp, prefix = first.split()
        self.assertEqual((tmpdir, tmpdir), (tmp, temp))
        self.assertTrue(prefix.startswith(tmpdir + "/"))
        self.assertTrue(made.startswith(tmpdir + "/"))
        self.assertTrue(tmpdir.startswith(self.tmp + "/"))
        self.assertTrue(long.startswith("drwx------"))
        self.assertEqual([], os.listdir(self.tmp))

    def test_it_is_removed_too_where_a_signal_ends_it(self):
        self.run_plain("--", "bash", "-c", "kill -TERM $$; sleep 9")
        self.assertEqual([], os.listdir(self.tmp))

    def test_a_link_in_it_leads_nobody_out(self):
        kept = self.write("outside/kept", "x")
        self.run_plain("--", "bash", "-c", f"ln -s {self.outside} $TMPDIR/out; ln -s {kept} $TMPDIR/kept")
        self.assertEqual([], os.listdir(self.tmp))
        self.assertTrue(os.path.exists(kept))

    def test_tmp_shared(self):
        done = self.run_plain("--tmp", "shared", "--", "bash", "-c", "echo $TMPDIR")
        self.assertEqual(self.tmp + "\n", done.out)

    def test_scrub(self):
        env = dict(self.env, MY_TOKEN="t", AWS_SECRET_ACCESS_KEY="k", PLAIN="p", OTHER="o")
        done = self.run_plain("--", "env", env=env)
        for name in ("MY_TOKEN=t", "AWS_SECRET_ACCESS_KEY=k", "PLAIN=p", "OTHER=o"):
            self.assertIn(name, done.out)
        done = self.run_plain("--scrub", "OTHER", "--scrub-secrets", "--", "env", env=env)
        self.assertIn("PLAIN=p", done.out)
        for name in ("MY_TOKEN", "AWS_SECRET", "OTHER="):
            self.assertNotIn(name, done.out)

    def test_nothing_is_left_of_us(self):
        done = self.run_plain("--", "bash", "-c", "cat /proc/$PPID/environ; ls /proc/$PPID/fd")
        self.assertNotIn("HOME=", done.out)


if __name__ == "__main__":
    main()
