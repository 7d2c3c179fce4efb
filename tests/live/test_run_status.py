#!/usr/bin/env python3
"""The exit status, and when nothing is run."""

import json
import os
import signal
import subprocess

from run_help import WARDER, RunCase, both_users, counts_by_chance, deny, fixture, main, wait_until

LANDLOCK_CREATE_RULESET = "444"
PROBE = "touch ran"


@both_users
class Status(RunCase):
    def assertNothingRan(self, done, *words):
        self.assertStatus(done, 125)
        self.assertFalse(os.path.exists(os.path.join(self.project, "ran")), done)
        self.assertEqual("", done.out)
        lines = done.err.splitlines()
        self.assertEqual(1, len(lines), done.err)
        self.assertTrue(lines[0].startswith("warder: "), done.err)
        for word in words:
            self.assertIn(word, lines[0])

    def test_the_commands_own(self):
        for status in (0, 1, 2, 7, 123, 124, 125, 126, 127, 255):
            with self.subTest(status):
                done = self.run_report("--", "bash", "-c", f"exit {status}")
                self.assertStatus(done, status)
                self.assertEqual({"exit": status}, done.report["status"])
                self.assertQuiet(done)

    def test_the_same_signal_ends_warder(self):
        for name in ("TERM", "INT", "HUP", "KILL", "USR1", "ALRM", "PIPE", "RTMIN"):
            with self.subTest(name):
                number = int(getattr(signal, "SIG" + name))
                done = self.run_report("--", "bash", "-c", f"kill -{name} $$; sleep 10")
                self.assertStatus(done, -number)
                self.assertEqual({"signal": number}, done.report["status"])

    def test_a_crash_is_the_commands_and_leaves_no_core_of_ours(self):
        done = self.run_report("--", "bash", "-c", "ulimit -c 0; kill -SEGV $$; sleep 10")
        self.assertStatus(done, -signal.SIGSEGV)
        self.assertEqual([], os.listdir(self.project))

    def before_it_is_the_command(self, process):
        """A child that is traced already, and has not become `sleep`; its warder stands still. Or None."""
        found = []
        while not found and process.poll() is None:
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
                found = [int(child) for child in f.read().split() if self.says(child, f"TracerPid:\t{process.pid}")]
        process.send_signal(signal.SIGSTOP)
        if not found or not wait_until(lambda: self.says(process.pid, "State:\tT")):
            return None
        return found[0] if self.says(found[0], "Name:\twarder") else None

    def says(self, pid, line):
        try:
            with open(f"/proc/{pid}/status") as f:
                return any(said.startswith(line) for said in f)
        except (FileNotFoundError, ProcessLookupError):
            return False

    def killed_before_it_is_the_command(self, number):
        """What warder says to that, and its status."""
        for i in range(2000):  # they are looked through while the child waits
            self.write(f"many/{i}")
        rules = self.write("rules", f"allow r {self.dir}/many/**/?\n")
        for _ in range(100):
            process = self.start([WARDER, "run", "-q", "--policy", rules, "--report", self.report_file, "--",
                                  "sleep", "60"],
                                 stderr=subprocess.PIPE, text=True)
            child = self.before_it_is_the_command(process)
            if child:
                os.kill(child, number)
                process.send_signal(signal.SIGCONT)
                return process.communicate(timeout=60)[1], process.returncode
            self.end(process)
        self.fail("each was the command already")

    def test_a_signal_comes_before_it_is_the_command(self):
        self.assertEqual(("", -signal.SIGTERM), self.killed_before_it_is_the_command(signal.SIGTERM))
        self.assertEqual({"signal": int(signal.SIGTERM)}, self.read_report()["status"])

    def test_it_is_killed_before_it_is_the_command(self):
        """At whatever point of its way."""
        said = ("warder: the command's process was killed before the command began; nothing was run\n", 125)
        self.assertIn(self.killed_before_it_is_the_command(signal.SIGKILL), (said, ("", -signal.SIGKILL)))

    def test_a_shell_sees_128_and_the_signal(self):
        done = self.native("bash", "-c", f"'{WARDER}' run -- bash -c 'kill -TERM $$; sleep 9'; echo $?")
        self.assertIn("143", done.out)

    def test_not_found(self):
        for command in ("no-such-program-here", "./no-such-file", "/no/such/dir/file"):
            with self.subTest(command):
                done = self.run_report("--", command)
                self.assertStatus(done, 127)
                self.assertIn(command, done.err)
                self.assertEqual({"exit": 127}, done.report["status"])

    def test_not_executable(self):
        self.write("project/plain", "hello\n", 0o644)
        self.write("project/bad", "#!/no/such/interpreter\n", 0o755)
        self.write("project/noise", "\x01\x00 no program\n", 0o755)
        for command in ("./plain", self.project, "./noise"):
            with self.subTest(command):
                done = self.run_report("--", command)
                self.assertStatus(done, 126)
                self.assertIn("warder: ", done.err)
        # As a shell and env(1) say it: the file is there, its interpreter is not.
        self.assertIn(self.run_report("--", "./bad").status, (126, 127))

    def test_a_script_runs_by_its_first_line(self):
        self.write("bin/script", "#!/bin/sh\necho \"script $1\"; exit 5\n", 0o755)
        done = self.run_report("--", os.path.join(self.bin, "script"), "word")
        self.assertStatus(done, 5)
        self.assertEqual("script word\n", done.out)

    def test_path_is_searched_as_execvp_does(self):
        self.write("bin/tool", "#!/bin/sh\necho mine\n", 0o755)
        self.write("outside/tool", "not executable\n", 0o644)
        env = dict(self.env, PATH=f"{self.outside}:{self.bin}:{self.env['PATH']}")
        done = self.run_report("--", "tool", env=env)
        self.assertStatus(done)
        self.assertEqual("mine\n", done.out)

    def test_123_only_where_a_sandbox_denial_stayed(self):
        secret = self.write("outside/secret", "s\n")
        quiet_cat = ("bash", "-c", f"cat {secret} 2>/dev/null; exit $0")
        self.assertStatus(self.run_report("--", *quiet_cat, "0"), 0)
        self.assertStatus(self.run_report("--fail-on-denial", "--", *quiet_cat, "0"), 123)
        self.assertStatus(self.run_report("--fail-on-denial", "--", *quiet_cat, "3"), 3)
        self.assertStatus(self.run_report("--fail-on-denial", "-r", secret, "--", *quiet_cat, "0"), 0)
        self.assertStatus(self.hold("--fail-on-denial", "--", *quiet_cat, "0"), 0)
        self.assertStatus(self.hold("--fail-on-denial", "--", *quiet_cat, "0", answer=deny), 123)

    def test_124_time_is_up(self):
        done = self.run_report("--timeout", "0.3", "--", "sleep", "30")
        self.assertStatus(done, 124)
        self.assertIn("time limit", done.err)
        self.assertLess(done.report["wall_ms"], 5000)

    def test_124_also_where_term_is_ignored(self):
        done = self.run_report("--timeout=0.3s", "--kill-after=0.3", "--", "bash", "-c",
                               "trap '' TERM; (trap '' TERM; sleep 30 & wait) & while :; do sleep 1; done")
        self.assertStatus(done, 124)
        self.assertGreaterEqual(done.report["wall_ms"], 550)
        self.assertLess(done.report["wall_ms"], 5000)

    @counts_by_chance
    def test_124_also_where_one_call_after_the_other_is_refused(self):
        """Each of them holds it for a moment; that is no time that an answer is waited for."""
        secret = self.write("outside/secret")
        done = self.run_report("--timeout", "0.5", "--on-denial", "report", "--", fixture("run_threads"), "10000000", secret)
        self.assertStatus(done, 124)

    def test_a_time_limit_that_is_not_reached(self):
        self.assertStatus(self.run_report("--timeout", "1m", "--", "true"), 0)
        self.assertStatus(self.run_report("--timeout", "0", "--", "true"), 0)

    def test_a_wrong_option_runs_nothing(self):
        for words in (["--no-such-option"], ["--timeout", "soon"], ["--on-denial", "maybe"],
                      ["--answers", "77"], ["--events", "x"], ["--quiet=yes"], ["--rule"],
                      ["--preset", "no-such"], ["--report", "/no/such/dir/r.json"],
                      ["--tmp", "mine"], ["--policy", "/no/such/policy"], ["-Z"],
                      ["--project", "/no/such/dir"], ["--answer-timeout", "-3"], ["-r", ""]):
            with self.subTest(words):
                done = self.run_plain(*words, *([] if words == ["--rule"] else ["--", "sh", "-c", PROBE]))
                self.assertNothingRan(done)

    def test_no_command_runs_nothing(self):
        self.assertNothingRan(self.run_plain(), "command")
        self.assertNothingRan(self.run_plain("--"), "command")

    def test_options_stop_at_the_command(self):
        done = self.run_report("echo", "--no-such-option", "-r", "--", "x")
        self.assertStatus(done)
        self.assertEqual("--no-such-option -r -- x\n", done.out)

    def test_a_wrong_policy_is_told_by_place(self):
        policy = self.write("policy", "# mine\nallow rwx .\nalow r /etc\n")
        done = self.run_plain("--policy", policy, "--", "sh", "-c", PROBE)
        self.assertNothingRan(done, f"{policy}:3:1: ")
        policy = self.write("policy", "allow rq /etc\n")
        done = self.run_plain("--policy", policy, "--", "sh", "-c", PROBE)
        self.assertNothingRan(done, f"{policy}:1:7: ")
        done = self.run_plain("--rule", "allow r", "--", "sh", "-c", PROBE)
        self.assertNothingRan(done, ":1:")

    def test_a_wrong_saved_policy_too(self):
        saved = self.write("config/warder/policy", "deny\n", 0o600)
        os.chmod(os.path.dirname(saved), 0o700)
        done = self.run_plain("--", "sh", "-c", PROBE)
        self.assertNothingRan(done, f"{saved}:1:")
        # --policy is instead of it
        good = self.write("good", "allow r /etc\n")
        self.assertStatus(self.run_plain("--policy", good, "--", "true"), 0)

    def test_dropping_a_preset_that_is_not_on_by_default(self):
        for more in ((), ("--no-presets",)):
            done = self.run_plain("--no-preset", "projcet", *more, "--", "sh", "-c", PROBE)
            self.assertNothingRan(done, "--no-preset: expected one of those that are on by default "
                                        "(system tmp project), not 'projcet'")
        self.assertStatus(self.run_plain("--no-preset", "project", "--no-preset", "tmp", "--", "true"), 0)

    def test_a_kernel_without_landlock_runs_nothing(self):
        for errno in ("ENOSYS", "EOPNOTSUPP"):
            with self.subTest(errno):
                done = self.native(fixture("run_deny"), errno, LANDLOCK_CREATE_RULESET,
                                   WARDER, "run", "--", "sh", "-c", PROBE)
                self.assertNothingRan(done, "Landlock")

    def test_a_ruleset_that_cannot_be_applied_runs_nothing(self):
        for call in ("445", "446"):  # landlock_add_rule, landlock_restrict_self
            with self.subTest(call):
                done = self.native(fixture("run_deny"), "EPERM", call,
                                   WARDER, "run", "--", "sh", "-c", PROBE)
                self.assertNothingRan(done)

    def test_already_traced_runs_nothing(self):
        # LeakSanitizer, where warder is built with it, does not work traced.
        self.env["ASAN_OPTIONS"] = "detect_leaks=0"
        done = self.native(fixture("run_traced"), WARDER, "run", "--", "sh", "-c", PROBE)
        self.assertNothingRan(done, "traced")

    def test_inside_warder_it_runs_nothing(self):
        self.env["ASAN_OPTIONS"] = "detect_leaks=0"
        done = self.run_plain("-x", WARDER, "--rule", f"allow rw {self.dir}/state", "--",
                              WARDER, "run", "--", "sh", "-c", PROBE)
        self.assertStatus(done, 125)
        self.assertIn("already traced", done.err)
        self.assertFalse(os.path.exists(os.path.join(self.project, "ran")), done)

    def test_the_report_tells_that_nothing_was_run(self):
        done = self.native(fixture("run_deny"), "ENOSYS", LANDLOCK_CREATE_RULESET,
                           WARDER, "run", "--json", "-q", "--", "sh", "-c", PROBE)
        self.assertStatus(done, 125)
        report = json.loads(done.out)
        self.assertEqual({"exit": 125}, report["status"])
        self.assertEqual([], report["denials"])

    def test_help_is_asked_for(self):
        for words, option in (("--help",), "--on-denial"), (("--help", "all"), "--answers"):
            done = self.run_plain(*words)
            self.assertStatus(done, 0)
            for word in ("warder run", option, "123", "127"):
                self.assertIn(word, done.out)


if __name__ == "__main__":
    main()
