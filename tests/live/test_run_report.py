#!/usr/bin/env python3
"""The report against what is promised of it; the verdicts; the last lines on stderr; the audit."""

import base64
import hashlib
import json
import os
import platform
import re
import stat
import unittest

from run_help import NOBODY, TIMEOUT, WARDER, RunCase, both_users, deny, main, wait_until

FIELDS = {
    "warder_report": int, "version": str, "run": str, "label": (str, type(None)), "started": str,
    "host": str, "uid": int, "kernel": str, "command": list, "cwd": str, "status": dict, "runs": int,
    "wall_ms": int, "held_ms": int, "engine": dict, "policy": list, "denials": list, "grants": list,
    "leftovers": list, "suggested": list,
}
ENGINE = {"landlock_abi": int, "mode": str, "fast": bool, "stops": int, "brokered": int, "unwound": int, "degraded": list,
          "notes": list}
DENIAL = {"path": str, "access": list, "call": str, "errno": str, "verdict": str, "answer": str, "by": str,
          "lifetime": str, "rule": (str, type(None)), "count": int, "t_ms": int, "run": int, "pid": int,
          "exe": str, "argv0": str, "after": dict}

PYTHON = "/usr/bin/python3"

# Each way to get a symlink below ~ out of the way, or another thing into its place.
TRY_LINKS = r'''
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(os.path.expanduser("~"))
os.mkdir("mine"); os.symlink("mine", "other")

def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2):
        raise OSError(ctypes.get_errno(), "")

for link in sys.argv[1:]:
    above = os.path.dirname(link)
    for what, act in (("unlink", lambda: os.unlink(link)), ("rename", lambda: os.rename(link, "away")),
                      ("exchange", lambda: exchange(link, "mine")), ("over", lambda: os.rename("other", link)),
                      ("hard link", lambda: os.link(link, "hard", follow_symlinks=False)),
                      ("above", lambda: os.rename(above, "gone")), ("exchange above", lambda: exchange(above, "mine"))):
        try:
            if above or "above" not in what:
                act()
                print(what, link)
        except OSError:
            pass
'''


@both_users
class Report(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def assertShape(self, shape, value):
        for name, kind in shape.items():
            self.assertIn(name, value)
            self.assertIsInstance(value[name], kind, name)

    def test_every_field(self):
        done = self.run_report("--label", "L", "-r", "/etc", "--", "bash", "-c", f"cat {self.secret}; exit 4")
        r = done.report
        self.assertShape(FIELDS, r)
        self.assertShape(ENGINE, r["engine"])
        self.assertEqual((1, "L", self.uid, platform.release(), platform.node(), self.project, {"exit": 4}, 1),
                         (r["warder_report"], r["label"], r["uid"], r["kernel"], r["host"], r["cwd"],
                          r["status"], r["runs"]))
        self.assertEqual(["bash", "-c", f"cat {self.secret}; exit 4"], r["command"])
        self.assertRegex(r["started"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.assertGreaterEqual(r["engine"]["landlock_abi"], 1)
        self.assertGreater(r["engine"]["stops"], 0)
        d, = r["denials"]
        self.assertShape(DENIAL, d)
        self.assertEqual(
            dict(path=self.secret, access=["read"], call="openat", errno="EACCES", verdict="sandbox",
                 answer="deny", by="none", rule=None, count=1, run=1, exe=os.path.realpath("/usr/bin/cat"),
                 argv0="cat", after={"exited": 1}),
            {k: v for k, v in d.items() if k not in ("t_ms", "pid", "lifetime", "given")})
        suggested, = r["suggested"]
        self.assertRegex(suggested, rf"^allow +r +{re.escape(self.secret)}$")

    def test_the_policy_that_was_used(self):
        policy = self.write("policy", "allow r /etc\n")
        r = self.run_report("--policy", policy, "--preset", "git", "--", "true").report
        found = {p["path"]: p for p in r["policy"]}
        self.assertEqual({"system", "tmp", "project", "git", policy}, set(found))
        self.assertEqual(hashlib.sha256(b"allow r /etc\n").hexdigest(), found[policy]["sha256"])
        self.assertEqual("preset", found["git"]["source"])

    def test_a_count_for_the_same_and_an_entry_for_another(self):
        done = self.run_report("--", "bash", "-c",
                               f"for i in 1 2 3; do cat {self.secret}; done; : > {self.outside}/new; cd /; ls {self.outside}")
        r = [(os.path.basename(d["path"]), d["access"], d["count"]) for d in done.report["denials"]]
        self.assertEqual([("secret", ["read"], 3), ("new", ["write", "create"], 1), ("outside", ["list"], 1)], r)

    def test_no_symlink_is_written_through(self):
        """An earlier command can have put it there: what the report says would land where it leads."""
        target = self.write("home/.bashrc", "alias x=y\n")
        self.assertStatus(self.run_plain("--", "ln", "-s", "../home/.bashrc", "out"))
        self.assertStatus(self.run_plain("--", "ln", "-s", "../home", "way"))
        self.assertStatus(self.run_plain("--", "ln", "-s", "../home/absent", "dangling"))
        for option in ("--report", "--trace"):
            for name, link in (("out", "out"), (f"{self.project}/out", f"{self.project}/out"), ("./out", "./out"),
                               ("dangling", "dangling"), ("way/.bashrc", f"{self.project}/way"),
                               ("way/new", f"{self.project}/way"), ("/dev/../" + self.project + "/out", None)):
                done = self.run_plain(option, name, "--", "touch", "ran")
                self.assertStatus(done, 125)
                self.assertRegex(done.err, re.escape(link or "out") + " is a symlink that a command could have made: "
                                 "name the file itself\n")
                self.assertEqual(1, done.err.count("\n"), done.err)
        self.assertFalse(os.path.exists(f"{self.project}/ran"))
        self.assertEqual("alias x=y\n", self.read(target))
        self.assertEqual([".bashrc"], os.listdir(self.home))
        # What no command can have made leads on, but for the last component.
        os.symlink(self.outside, f"{self.dir}/way")
        os.symlink("kept", f"{self.outside}/last")
        self.assertStatus(self.run_plain("--report", "../way/r.json", "--trace", "../way/t.jsonl", "--", "true"))
        self.assertEqual({"secret", "r.json", "t.jsonl", "last"}, set(os.listdir(self.outside)))
        self.assertStatus(self.run_plain("--report", "../way/last", "--", "true"), 125)

    def test_nor_through_one_that_comes_meanwhile(self):
        """Somebody swaps the directory for a symlink, over and over, as another run could."""
        victim = os.path.join(self.dir, "home")
        swapper = self.start([PYTHON, "-c",
                              "import ctypes, os\n"
                              "os.mkdir('d'); os.symlink('../home', 'l')\n"
                              "open('ready', 'w').close()\n"
                              "libc = ctypes.CDLL(None)\n"
                              "while True: libc.renameat2(-100, b'd', -100, b'l', 2)\n"])
        self.assertTrue(wait_until(lambda: os.path.exists(f"{self.project}/ready")))
        for i in range(80):
            done = self.run_plain("--report", f"d/r{i}", "--trace", f"d/t{i}", "--", "true")
            self.assertIn(done.status, (0, 125), done)
        swapper.terminate()
        swapper.wait(TIMEOUT)
        self.assertEqual(os.listdir(victim), [])

    def test_descriptors_are_written_to(self):
        for name in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
            for option, key in (("--report", '"warder_report"'), ("--trace", '"warder_trace"')):
                done = self.native("bash", "-c", f"'{WARDER}' run {option} {name} -- true | cat")
                self.assertIn(key, done.out, (name, option, done.err))
        done = self.native("bash", "-c", f"'{WARDER}' run --report >(cat) -- true | cat")
        self.assertIn('"warder_report"', done.out, done.err)

    def test_given_where_it_differs(self):
        os.symlink(self.secret, os.path.join(self.project, "link"))
        done = self.run_report("--", "cat", "link", "../outside/secret", self.secret)
        d = done.report["denials"][0]
        self.assertEqual((self.secret, "link", 3), (d["path"], d["given"], d["count"]))
        d, = self.run_report("--", "cat", self.secret).report["denials"]
        self.assertNotIn("given", d)

    def test_the_rule_that_decided_is_named(self):
        policy = self.write("policy", f"# no\nallow r {self.outside}\ndeny r {self.secret}\n")
        d, = self.run_report("--policy", policy, "--", "cat", self.secret).report["denials"]
        self.assertEqual((f"{policy}:3", "policy", "deny"), (d["rule"], d["by"], d["answer"]))

    def test_odd_names(self):
        names = ["new\nline", "esc\x1b[31mred", "rtl\u202eoverride", "bytes\udcff\udc80"]
        for name in names:
            self.write("outside/" + name, "x")
        done = self.run_report("--", "cat", *(os.path.join(self.outside, n) for n in names))
        with open(self.report_file, "rb") as f:
            raw = f.read()
        self.assertNotIn(b"\x1b", raw)
        self.assertNotIn("\u202e".encode(), raw)
        self.assertEqual(b"\n", raw[-1:])
        self.assertEqual(1, raw.count(b"\n"))
        self.assertEqual([os.path.join(self.outside, n) for n in names[:3]],
                         [d["path"] for d in done.report["denials"][:3]])
        odd = done.report["denials"][3]
        self.assertEqual(os.path.join(self.outside, "bytes\u00ff\u0080"), odd["path"])
        self.assertEqual(os.fsencode(os.path.join(self.outside, "bytes\udcff\udc80")),
                         base64.b64decode(odd["path_b64"]))
        for name in names:
            done = self.run_report("--", "bash", "-c", 'read a < "$0"', os.path.join(self.outside, name))
            line, = [line for line in done.err.split("\n") if line.startswith("warder:")]
            self.assertIn(name[:3], line)
            self.assertTrue(all(c >= " " and c != "\u202e" and not "\udc80" <= c <= "\udcff" for c in line), line)

    def test_at_most_five_lines_at_the_end(self):
        files = [self.write(f"d{i}/e/f", "x") for i in range(9)]
        done = self.run_report("--", "cat", *files)
        ours = [line for line in done.err.splitlines() if line.startswith("warder:")]
        self.assertEqual(5, len(ours), done.err)
        self.assertIn("more", ours[-1])
        self.assertEqual(9, len(done.report["denials"]))

    def test_verbose_says_more(self):
        self.assertNotIn("Landlock ABI", self.run_report("--", "true").err)
        self.assertRegex(self.run_report("-v", "--", "true").err, r"mode report, Landlock ABI \d+, ")

    def test_quiet(self):
        done = self.run_report("-q", "--", "cat", self.secret)
        self.assertQuiet(done)
        self.assertIn("cat: ", done.err)

    def test_on_stdout_it_is_the_last_line(self):
        for option in (["--report", "-"], ["--json"], ["--report=-"]):
            done = self.run_plain(*option, "--", "bash", "-c", "echo one; echo two")
            lines = done.out.splitlines()
            self.assertEqual(["one", "two"], lines[:-1])
            self.assertEqual({"exit": 0}, json.loads(lines[-1])["status"])

    def test_secrets_are_redacted(self):
        words = ("--", "sh", "-c", f"cat {self.secret}; true", "--password=hunter2", "https://u:hunter2@host/")
        done = self.run_report(*words)
        self.assertNotIn("hunter2", self.read("report.json"))
        self.assertIn("[redacted]", self.read("report.json"))
        self.run_report("--no-redact", *words)
        self.assertIn("hunter2", self.read("report.json"))
        self.assertNotIn("hunter2", self.read("state/warder/audit.jsonl"))
        self.assertStatus(done)

    def test_the_report_is_out_of_the_commands_reach(self):
        for what in (f"cat {self.report_file}", f"rm {self.report_file}", f"echo x > {self.report_file}"):
            done = self.run_report("--rule", f"allow rwx {self.project}", "--", "bash", "-c", what)
            self.assertStatus(done, 1)
            self.assertEqual(1, done.report["warder_report"])

    def test_so_are_policy_and_state(self):
        done = self.run_report("--rule", f"allow rwx {self.dir}", "--", "bash", "-c",
                               f"cat {self.dir}/state/warder/audit.jsonl; echo 'allow rwx /' > {self.dir}/config/warder/policy;"
                               f" mv {self.dir}/config/warder {self.dir}/config/other; rm -r {self.dir}/config/warder")
        self.assertStatus(done, 1)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "config/warder/policy")))
        self.assertTrue(os.path.isdir(os.path.join(self.dir, "config/warder")))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "config/other")))
        self.assertEqual("", done.out)

    def test_so_are_the_symlinks_that_lead_to_them(self):
        """In their place a directory of the command's would be the next run's policy."""
        links = {".config": "dot/hop", "dot/hop": "config", ".local/state": "../dot/state",
                 "dot/config/warder": "../own/warder"}
        for name in (".local", "dot/config", "dot/state", "dot/own/warder"):
            os.makedirs(f"{self.home}/{name}")
        for name, leads in links.items():
            os.symlink(leads, f"{self.home}/{name}")
        for top, dirs, files in os.walk(self.home):
            for name in (*dirs, *files):
                self.own(os.path.join(top, name))
        env = {k: v for k, v in self.env.items() if not k.startswith("XDG_")}
        done = self.run_plain("--rule", "allow rwx ~", "--", PYTHON, "-c", TRY_LINKS, *links, env=env)
        self.assertEqual(("", 0), (done.out, done.status), done)
        for name, leads in links.items():
            self.assertEqual(leads, os.readlink(f"{self.home}/{name}"))
        # The way itself is open, and what lies beside it is the command's.
        done = self.run_plain("--rule", "allow rwx ~", "--", "sh", "-c",
                              "echo x > ~/.config/new && mv ~/.config/new ~/dot/moved && rm ~/dot/moved", env=env)
        self.assertStatus(done)

    def test_an_audit_line_a_decision(self):
        done = self.hold("--label", "L", "--", "cat", self.secret, answer=deny)
        file = os.path.join(self.dir, "state/warder/audit.jsonl")
        self.assertEqual(0o600, stat.S_IMODE(os.stat(file).st_mode))
        lines = [json.loads(line) for line in self.read(file).splitlines()]
        line, = [one for one in lines if one.get("path") == self.secret]
        self.assertEqual(("deny", "user", done.report["run"]), (line["answer"], line["by"], line["run"] if
                         isinstance(line["run"], str) else done.report["run"]))

    # ---- verdicts ----

    def verdicts(self, *args, **more):
        done = self.hold(*args, **more)
        self.assertNothingAsked(done)
        return [(os.path.basename(d["path"]), d["verdict"]) for d in done.report["denials"]]

    def test_what_is_missing_is_no_denial(self):
        self.assertEqual([], self.verdicts("--", "cat", "no-such", f"{self.outside}/no-such", "/no/such/dir"))

    def test_cross_device(self):
        shm = "/dev/shm"
        if os.stat(shm).st_dev == os.stat(self.dir).st_dev:
            self.skipTest("no second file system at hand")
        self.write("project/file", "x")
        there = f"{shm}/warder-{os.path.basename(self.dir)}"
        self.addCleanup(lambda: os.path.exists(there) and os.unlink(there))
        move = f"import os; os.rename('file', '{there}')"
        done = self.hold("--rule", f"allow rw {shm}", "--", "/usr/bin/python3", "-c", move)
        self.assertStatus(done, 1)
        self.assertIn("Errno 18", done.err)
        self.assertNothingAsked(done)
        self.assertEqual({"cross-device"}, {d["verdict"] for d in done.report["denials"]})
        done = self.hold("--rule", f"allow rw {shm}", "--", "mv", "file", there)  # copies, as ever
        self.assertStatus(done)
        self.assertTrue(os.path.exists(there))


def named(text):
    """The members that a section of docs/report.md has a row for."""
    return {name for row in re.findall(r"^\| (`.*?) \|", text, re.M) for name in re.findall("`([a-z0-9_]+)`", row)}


class Documented(RunCase):
    """docs/report.md against reports that have everything in them."""

    def reports(self):
        secret = self.write("outside/secret", "x")
        odd = self.write("outside/bytes\udcff", "x")
        script = f"cat ../outside/secret '{odd}'; mv {secret} {self.outside}/moved; mv {secret} here; (sleep 60 &)"
        yield self.run_report("--stacks", "--", "sh", "-c", script).report
        yield self.run_report("--permissive", "--", "cat", secret).report
        yield self.hold("--", "cat", secret, answer=lambda q: {"answer": "allow", "lifetime": "session"}).report

    def test_every_member_is_there_and_no_other(self):
        with open(os.path.join(os.environ["SOURCE_DIR"], "docs/report.md"), encoding="utf-8") as f:
            head, engine, denials = re.split(r"^## .*", f.read(), flags=re.M)
        found = {"head": set(), "engine": set(), "denials": set()}
        for report in self.reports():
            found["head"] |= set(report)
            found["engine"] |= set(report["engine"])
            found["denials"] |= {name for d in report["denials"] for name in d}
            for part in ("policy", "grants", "leftovers"):
                row, = re.findall(rf"^\| `{part}` \|(.*)$", head, re.M)
                members = {name for one in report[part] for name in one} - {"note"}
                self.assertLessEqual(members, set(re.findall("`([a-z0-9_]+)`", row)))
        self.assertEqual(found["head"], named(head))
        self.assertEqual(found["engine"], named(engine))
        self.assertEqual(found["denials"] | {"path_b64"}, named(denials) | {"path_b64"})
        self.assertIn("path_b64", found["denials"])
        self.assertIn("`path_b64`", denials)


class Permissions(RunCase):
    """An ordinary user, and what is not his."""

    uid = NOBODY if os.getuid() == 0 else os.getuid()

    def test_mode_and_owner(self):
        os.mkdir(os.path.join(self.project, "closed"), 0o700)
        closed = self.write("project/mode000", "x", 0)
        cases = [closed]
        if os.getuid() == 0:
            theirs = os.path.join(self.project, "theirs")
            with open(theirs, "w") as f:
                f.write("x")
            os.chmod(theirs, 0o600)
            cases.append(theirs)
            with open(os.path.join(self.project, "closed/file"), "w") as f:
                f.write("x")
        for file in cases:
            with self.subTest(file):
                done = self.hold("--", "cat", file)
                self.assertStatus(done, 1)
                self.assertNothingAsked(done)
                d, = done.report["denials"]
                self.assertEqual((file, "permissions", "deny", "none"), (d["path"], d["verdict"], d["answer"], d["by"]))
                self.assertQuiet(done)
                self.assertEqual([], done.report["suggested"])

    def test_the_same_outside_where_a_grant_would_not_help_either(self):
        closed = self.write("outside/mode000", "x", 0)
        done = self.hold("--", "cat", closed, "/etc/shadow")
        self.assertNothingAsked(done)
        self.assertEqual({"permissions"}, {d["verdict"] for d in done.report["denials"]})
        self.assertStatus(self.hold("--fail-on-denial", "--", "bash", "-c", f"cat {closed}; true"), 0)

    @unittest.skipIf(os.getuid(), "needs root to make another user's directory")
    def test_writing_into_anothers_directory(self):
        os.mkdir(os.path.join(self.project, "theirs"), 0o755)
        for what in ("> theirs/new", "mkdir theirs/new", "ln -s x theirs/new"):
            with self.subTest(what):
                done = self.hold("--", "bash", "-c", what)
                self.assertStatus(done, 1)
                self.assertNothingAsked(done)
                self.assertEqual({"permissions"}, {d["verdict"] for d in done.report["denials"]})

    @unittest.skipIf(os.getuid(), "needs root to make another user's directory")
    def test_a_directory_that_may_not_be_searched(self):
        os.mkdir(os.path.join(self.outside, "theirs"), 0o700)
        done = self.hold("--", "cat", os.path.join(self.outside, "theirs/file"))
        self.assertStatus(done, 1)
        self.assertNothingAsked(done)


if __name__ == "__main__":
    main()
