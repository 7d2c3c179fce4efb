#!/usr/bin/env python3
"""Calls on descriptors that were opened inside: ftruncate, and ioctl on a device."""

import os

from run_help import RunCase, both_users, deny, fixture, main, needs

ONE = fixture("run_one")
RANDOM = "/dev/urandom"
ASK = ("--rule", f"ask ioctl {RANDOM}")


@both_users
class Truncate(RunCase):
    def test_a_right_that_its_own_sandbox_took(self):
        # Under warder one access gives both rights: only a domain of the program's own parts them.
        path = self.write("project/file", "text\n")
        native = self.native(ONE, "ftruncate_without_right", path, "-")
        self.assertEqual("ftruncate_without_right EACCES\n", native.out)
        self.write("project/file", "text\n")
        done = self.hold("--", ONE, "ftruncate_without_right", path, "-")
        self.assertEqual(native.out, done.out)
        self.assertNothingAsked(done)
        [d] = done.denials(path)
        self.assertEqual(("ftruncate", ["write"], "other", "EACCES"),
                         (d["call"], d["access"], d["verdict"], d["errno"]))
        self.assertNotIn("given", d)


@both_users
class Crowd(RunCase):
    def test_what_a_pattern_finds_where_everybody_makes_names(self):
        """It is there when the command starts, and looked for only when it is opened."""
        path = self.write("outside/tmpfabcdef", "there\n")
        os.chmod(self.outside, 0o1777)
        rule = ("--rule", f"allow read {self.outside}/tmpf?????? exact")
        done = self.run_report(*rule, "--", "cat", path)
        self.assertEqual(("there\n", []), (done.out, done.report["denials"]))
        self.assertEqual(1, done.report["engine"]["brokered"])


@both_users
class Ioctl(RunCase):
    def test_harmless_devices_answer_as_they_do(self):
        done = self.run_report("--", ONE, "ioctl", RANDOM, "-", "ioctl", "/dev/null", "-")
        self.assertEqual("ioctl ok\nioctl ENOTTY\n", done.out)
        self.assertEqual([], done.report["denials"])

    def test_refused_and_reported(self):
        done = self.run_report(*ASK, "--", ONE, "ioctl", RANDOM, "-")
        self.assertEqual("ioctl EACCES\n", done.out)
        [d] = done.report["denials"]
        self.assertEqual((RANDOM, "ioctl", ["ioctl"], "sandbox"), (d["path"], d["call"], d["access"], d["verdict"]))
        self.assertEqual([f"allow ioctl {RANDOM}"], done.report["suggested"])

    def test_an_inherited_device_has_all_its_rights(self):
        with open(RANDOM, "rb") as device:
            done = self.run_report(*ASK, "--", ONE, "ioctl_stdin", "-", "-", stdin=device)
        self.assertEqual("ioctl_stdin ok\n", done.out)
        self.assertEqual([], done.report["denials"])

    def test_a_yes_takes_another_run(self):
        """No ioctl can be made for another: the descriptor keeps what it was opened with."""
        answer = lambda q: {"answer": "allow", "scope": 0, "lifetime": "once"}
        done = self.hold(*ASK, "--", ONE, "ioctl", RANDOM, "-", answer=answer)
        self.assertEqual([False, True], [bool(q.get("rerun")) for q in done.asked], done)
        self.assertEqual("ioctl EACCES\nioctl ok\n", done.out)
        self.assertEqual(2, done.report["runs"])

    def test_an_open_in_its_place_gives_no_more(self):
        """Who was allowed to read a device was not allowed to control it."""
        ask = ("--rule", f"ask {RANDOM}")
        done = self.hold(*ask, "--", ONE, "open_r", RANDOM, "-", "ioctl", RANDOM, "-",
                         answer=lambda q: {"answer": "allow", "scope": 0, "lifetime": "once"}
                         if q.get("access") == ["read"] else {"answer": "deny"})
        self.assertEqual("open_r ok\nioctl EACCES\n", done.out)
        self.assertEqual([["read"], ["ioctl"]], [q["access"] for q in done.asked])
        self.assertEqual(2, done.report["engine"]["brokered"])
        done = self.hold(*ask, "--rule", f"allow ioctl {RANDOM} exact", "--", ONE, "ioctl", RANDOM, "-")
        self.assertEqual("ioctl ok\n", done.out)
        self.assertEqual([["read"]], [q["access"] for q in done.asked])

    def test_no_stays_no(self):
        done = self.hold(*ASK, "--", ONE, "ioctl", RANDOM, "-", answer=deny)
        self.assertEqual("ioctl EACCES\n", done.out)
        self.assertEqual(1, len(done.asked))
        self.assertEqual(1, done.report["runs"])

    @needs("/usr/bin/python3")
    def test_a_terminal(self):
        """isatty() is frequent, and looked at only where a rule lets a terminal be opened without ioctl."""
        ptmx = os.path.realpath("/dev/ptmx")
        script = ("import os, termios\nfd = os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY)\n"
                  "try:\n    termios.tcgetattr(fd)\n    print('ok')\n"
                  "except termios.error as e:\n    print(e.args[0])\n")
        done = self.run_report("--", "/usr/bin/python3", "-c", script)
        self.assertEqual(("ok\n", []), (done.out, done.report["denials"]))
        stops = done.report["engine"]["stops"]
        done = self.run_report("--rule", f"ask ioctl {ptmx}", "--", "/usr/bin/python3", "-c", script)
        self.assertEqual("13\n", done.out)
        [d] = done.report["denials"]
        self.assertEqual((ptmx, "ioctl", ["ioctl"], "sandbox"), (d["path"], d["call"], d["access"], d["verdict"]))
        self.assertGreater(done.report["engine"]["stops"], stops)

    def test_what_is_no_device_is_not_ours(self):
        path = self.write("project/file", "x")
        done = self.run_report("--", ONE, "ioctl", path, "-")
        self.assertEqual("ioctl ENOTTY\n", done.out)
        self.assertEqual([], done.report["denials"])


if __name__ == "__main__":
    main()
