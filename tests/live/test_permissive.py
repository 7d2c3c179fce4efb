#!/usr/bin/env python3
"""--permissive: the command runs as without warder, and the report says what the policy would have refused."""

import os
import re
import shutil
import unittest

from run_help import RunCase, both_users, counts_by_chance, fixture, main, needs



# What these programs name by chance, by number or by the clock.
CHANCE = re.compile(r"/proc/\d+|tmp_(obj|idx|pack|rev)_\w+|(packs|refs)_\w{6}|\.git/t\w{6}\b|\.tmp-\d+-|"
                    r"\.pyc\.\d+|_logs/.*|lock-\w+|_cacache/tmp/\w+")


def needed(done):
    """Every (path, access) that was or would have been refused."""
    return {(CHANCE.sub("CHANCE", path), access)
            for d in done.denials(verdict="sandbox") for path in (d["path"], d.get("path2")) if path
            for access in d["access"]}


@both_users
class Permissive(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def permissive(self, *args, **more):
        return self.run_report("--permissive", *args, **more)

    def test_nothing_is_refused_and_all_is_told(self):
        done = self.permissive("--", "sh", "-c", f"cat {self.secret}; echo x > {self.outside}/new; exit 3")
        self.assertStatus(done, 3)
        self.assertEqual("the secret\n", done.out)
        self.assertEqual("x\n", self.read("outside/new"))
        self.assertEqual("permissive", done.report["engine"]["mode"])
        read, made = done.report["denials"]
        self.assertEqual((self.secret, ["read"], "openat", "EACCES", "sandbox", "allow", "none",
                          "permissive: not refused"),
                         tuple(read[k] for k in ("path", "access", "call", "errno", "verdict", "answer", "by",
                                                 "note")))
        self.assertEqual((f"{self.outside}/new", ["write", "create"]), (made["path"], made["access"]))
        self.assertEqual(f"allow r {self.secret}", done.report["suggested"][0])

    def test_says_so(self):
        done = self.permissive("--", "cat", self.secret)
        self.assertIn("warder: --permissive: there is no wall", done.err)
        self.assertIn(f"warder: would refuse read {self.secret} (cat, 1×); to allow: warder policy allow r {self.secret}",
                      done.err)
        done = self.permissive("-q", "--", "cat", self.secret)
        self.assertQuiet(done)
        done = self.permissive("--", "true")
        self.assertEqual(["there is no wall"], re.findall("there is no wall", done.err))
        self.assertEqual([], done.report["denials"])

    def test_a_denial_that_did_not_happen_is_no_failure(self):
        self.assertStatus(self.permissive("--fail-on-denial", "--", "cat", self.secret), 0)

    def test_what_asks_can_not_be_meant(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        self.addCleanup(os.close, writing)
        for words, named in ((["--yes"], "--yes"), (["--on-denial=hold"], "--on-denial hold"),
                             (["--on-denial=retry"], "--on-denial retry"), (["--answers", str(reading)], "--answers")):
            with self.subTest(words):
                done = self.run_plain("--permissive", *words, "--", "touch", f"{self.outside}/ran",
                                      pass_fds=[reading])
                self.assertStatus(done, 125)
                self.assertRegex(done.err, rf"\Awarder: --permissive .* {named}\n\Z")
        self.assertFalse(os.path.exists(f"{self.outside}/ran"))
        self.assertStatus(self.permissive("--on-denial", "report", "--", "true"))

    def test_what_a_rule_refuses_is_told_with_the_rule(self):
        rules = self.write("rules", f"deny r {self.secret}\nforbid {self.outside}/never\n")
        self.write("outside/never", "x")
        done = self.permissive("--policy", rules, "--", "cat", self.secret, f"{self.outside}/never")
        self.assertStatus(done)
        self.assertEqual([f"{rules}:1", f"{rules}:2"], [d["rule"] for d in done.report["denials"]])
        self.assertEqual([], done.report["suggested"])
        self.assertIn("would refuse read " + self.secret, done.err)
        self.assertIn(f"denied by {rules}:1", done.err)
        self.assertIn(f"forbidden by {rules}:2", done.err)

    def test_what_is_gone_afterwards_was_looked_at_before(self):
        os.mkdir(f"{self.outside}/dir")
        self.own(f"{self.outside}/dir")
        done = self.permissive("--", "sh", "-c", f"cd {self.outside}; mv secret moved; rm moved; rmdir dir")
        self.assertStatus(done)
        self.assertEqual([(self.secret, f"{self.outside}/moved", ["create", "delete"]),
                          (f"{self.outside}/moved", None, ["delete"]), (f"{self.outside}/dir", None, ["delete"])],
                         [(d["path"], d.get("path2"), d["access"]) for d in done.report["denials"]])

    def test_what_fails_anyway_is_no_denial(self):
        done = self.permissive("--", "sh", "-c", f"cat {self.outside}/none; mkdir {self.outside}; rmdir {self.outside}")
        self.assertStatus(done, 1)
        self.assertEqual([], done.report["denials"])

    def test_a_program_by_its_file_its_interpreter_and_its_loader(self):
        script = self.write("project/script", f"#!{self.outside}/tool\n", 0o755)
        shutil.copy("/usr/bin/true", f"{self.outside}/tool")
        self.own(f"{self.outside}/tool")
        for what in (script, f"{self.outside}/tool"):
            done = self.permissive("--", "sh", "-c", what)
            self.assertStatus(done)
            d, = done.report["denials"]
            self.assertEqual((f"{self.outside}/tool", ["read", "exec"], "sh"), (d["path"], d["access"], d["argv0"]))

    def test_the_files_own_permissions_are_told_as_always(self):
        if self.uid == 0:
            self.skipTest("root reads every file")
        closed = self.write("outside/closed", "x", 0)
        done = self.permissive("--", "cat", closed)
        self.assertStatus(done, 1)
        d, = done.report["denials"]
        self.assertEqual(("permissions", "deny"), (d["verdict"], d["answer"]))
        self.assertNotIn("note", d)

    def test_everything_else_is_as_without_warder(self):
        status = r"grep -E '^(Cap|NoNewPrivs)' /proc/self/status"
        native, ours = self.native("sh", "-c", status), self.permissive("--", "sh", "-c", status)
        if self.uid:  # a filter takes it
            native.out = native.out.replace("NoNewPrivs:\t0", "NoNewPrivs:\t1")
        self.assertEqual(native.out, ours.out)
        self.assertStatus(self.permissive("--", "sh", "-c", "kill -TERM $$"), -15)

    def test_signals_and_sockets_reach_out(self):
        other = self.start(["sleep", "60"])
        self.assertStatus(self.permissive("--", "sh", "-c", f"kill {other.pid}"))
        self.assertEqual(-15, other.wait(timeout=10))

    def test_io_uring_is_there_and_named(self):
        native = self.native(fixture("run_uring"), self.secret)
        ours = self.permissive("--", fixture("run_uring"), self.secret)
        self.assertEqual(native.out, ours.out)
        note, = ours.report["engine"]["notes"]
        self.assertEqual("io_uring was set up 1× (run_uring): what is opened through it is not seen", note)

    def test_a_debugger_is_told_of(self):
        note, = self.permissive("--", fixture("run_traced"), "true").report["engine"]["notes"]
        self.assertRegex(note, r"ptrace was asked for 1× \(run_traced\): .* does not work")

    @unittest.skipIf(os.getuid(), "needs root to mount")
    def test_a_mount_is_told_of(self):
        if self.uid:
            self.skipTest("only root mounts")
        os.mkdir(f"{self.project}/m")
        done = self.permissive("--", "unshare", "-m", "--propagation", "private", "sh", "-c",
                               "mount -t tmpfs none m && echo x > m/f && cat m/f")
        self.assertStatus(done)
        self.assertEqual("x\n", done.out)
        self.assertRegex(" ".join(done.report["engine"]["notes"]), r"mounting was asked for \d+× \(.*mount\): behind")


@both_users
class Shapes(RunCase):
    """tests/shapes.def: whatever shape a process has, it does what it does without warder, and is seen."""

    def test_every_one(self):
        secret = self.write("outside/secret", "the secret")
        with open(os.path.join(os.environ["SOURCE_DIR"], "tests/shapes.def"), encoding="utf-8") as f:
            rows = re.findall(r"^SHAPE\((\w+), (\w+), (\w+), ", f.read(), re.M)
        # Seen by nobody, ended as a leftover, or a filter that only one can have.
        other = {"uring", "x32", "daemon", "setsid", "filter_trace", "filter_notify", "filter_strict",
                 "undumpable"}
        tried = 0
        for name, how, program in rows:
            if name in other or program == "run_traced" or not os.path.exists(fixture(program)):
                continue
            with self.subTest(name):
                native = self.native(fixture(program), how, secret)
                ours = self.run_report("--permissive", "-x", os.path.dirname(fixture(program)), "--", fixture(program), how, secret)
                said = [re.sub(r"\A\d+ ", "", done.out) for done in (native, ours)]
                self.assertEqual((native.status, said[0]), (ours.status, said[1]), ours)
                if " ok " in native.out:
                    d, = ours.denials(secret)
                    self.assertEqual((["read"], "sandbox", "allow", int(ours.out.split()[0])),
                                     (d["access"], d["verdict"], d["answer"], d["pid"]), ours)
                    tried += 1
        self.assertGreater(tried, 20)


@both_users
class Descriptors(RunCase):
    def test_each_call_is_counted(self):
        there = self.write("outside/f")
        done = self.run_report("--permissive", "--", "/usr/bin/python3", "-c", "import os, sys\n"
                               "fd = os.open(sys.argv[1], os.O_RDONLY)\n"
                               "for i in range(4): os.fchmod(fd, 0o600 + i)\n", there)
        self.assertStatus(done)
        self.assertEqual([4], [d["count"] for d in done.denials(there, access=["meta"])], done)


@both_users
class Same(RunCase):
    """The model's answer against the wall's: a run whose every question is answered with yes, one by one."""

    def same(self, script, *options, fill=lambda: None, timeout=60):
        runs = []
        for permissive in (False, True):
            for place in (self.project, self.outside, self.home):
                shutil.rmtree(place)
                os.mkdir(place)
                self.own(place)
            fill()
            words = (*options, "--", "bash", "-c", script)
            runs.append(self.run_report("--permissive", *words, timeout=timeout) if permissive
                        else self.run_report("--yes", *words, timeout=timeout))
        hold, permissive = runs
        self.assertEqual((hold.status, hold.out), (permissive.status, permissive.out), permissive)
        self.assertEqual(needed(hold), needed(permissive), f"{hold}{permissive}")
        self.assertTrue(needed(hold))
        return hold

    @needs("git")
    @counts_by_chance
    def test_git(self):
        def fill():
            self.write("home/.gitconfig", "[user]\n\tname = N\n\temail = n@h\n")
            self.write("project/f", "text\n")
        for who in ("AUTHOR", "COMMITTER"):
            self.env[f"GIT_{who}_DATE"] = "2001-02-03T04:05:06Z"
        git = "git -c init.defaultBranch=m"
        done = self.same(f"{git} init -q . && git add f && git commit -qm x && git status --porcelain && "
                         f"git clone -q . ../outside/clone && cd ../outside/clone && echo y > f && git commit -qam y && "
                         f"git mv f g && git commit -qm z && git gc -q && git log --format=%s", fill=fill, timeout=120)
        self.assertEqual("z\ny\nx\n", done.out)

    @needs("gcc", "make")
    def test_gcc_and_make(self):
        def fill():
            self.write("outside/twice.h", "static int twice(int n) { return 2 * n; }\n")
            self.write("project/main.c", '#include <stdio.h>\n#include "twice.h"\nint main(void) { printf("%d\\n", twice(21)); return 0; }\n')
            self.write("project/Makefile", "../outside/bin/prog: main.c\n\tmkdir -p ../outside/bin\n\tgcc -I../outside -o $@ main.c\n")
        done = self.same("make -s && make -s && cp ../outside/bin/prog . && ./prog", fill=fill)
        self.assertEqual("42\n", done.out)

    @needs("/usr/bin/python3")
    def test_python(self):
        def fill():
            self.write("outside/lib/mod.py", "VALUE = 1\n")
            self.write("project/m.py", "import os, shutil, sqlite3, subprocess, sys, tempfile\n"
                       "sys.path.insert(0, '../outside/lib')\n"
                       "import mod\n"
                       "out = '../outside/'\n"
                       "db = sqlite3.connect(out + 'db')\n"
                       "db.execute('create table t (x)'); db.execute('insert into t values (1)'); db.commit()\n"
                       "os.link(out + 'db', out + 'db2'); os.symlink('db', out + 's'); os.replace(out + 'db2', out + 'db3')\n"
                       "shutil.copytree(out + 'lib', out + 'lib2'); shutil.rmtree(out + 'lib2')\n"
                       "os.truncate(out + 'db3', 0); os.mkfifo(out + 'fifo')\n"
                       "try: os.open(out + 'fifo', os.O_WRONLY | os.O_NONBLOCK)\n"
                       "except OSError as e: print(e.errno)\n"
                       "print(mod.VALUE, subprocess.run(['true']).returncode, sorted(os.listdir(out)))\n")
        self.same("/usr/bin/python3 m.py", fill=fill)

    @needs("npm", "node")
    def test_npm(self):
        def fill():
            self.write("outside/dep/package.json", '{"name":"dep","version":"1.0.0","main":"i.js"}\n')
            self.write("outside/dep/i.js", "module.exports = 7\n")
            self.write("project/package.json", '{"name":"p","version":"1.0.0","scripts":{"t":"node -p \\"require(\'dep\')\\""}}\n')
        self.env["npm_config_update_notifier"] = "false"
        self.same("npm install --offline --no-audit --no-fund --loglevel=error ../outside/dep >/dev/null && npm run -s t",
                  fill=fill, timeout=120)


if __name__ == "__main__":
    main()
