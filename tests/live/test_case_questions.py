#!/usr/bin/env python3
"""What users of other tools complain about, A to D: what is seen, asked, and how often."""

import os
import stat
import subprocess

from run_help import NOBODY, WARDER, RunCase, allow, both_users, deny, main, needs, scope_of


@both_users
class Seen(RunCase):
    def test_case_A1(self):
        """A failure, or words about one, is no denial: output is never read."""
        for command, status in (("false", 1), ("echo 'sandbox: Permission denied'", 0),
                                ("echo 'Operation not permitted' >&2; exit 13", 13),
                                ("cat no-such-file; exit 2", 2)):
            with self.subTest(command):
                done = self.hold("--", "bash", "-c", command)
                self.assertStatus(done, status)
                self.assertNothingAsked(done)
                self.assertEqual([], done.report["denials"])
                self.assertQuiet(done)

    def test_case_A3(self):
        secret = self.write("outside/secret", "x\n")
        done = self.run_report("--", "bash", "-c", f"cat {secret} 2>/dev/null | wc -l")
        self.assertStatus(done)
        self.assertEqual("0\n", done.out)
        d, = done.report["denials"]
        self.assertEqual((secret, ["read"], "sandbox"), (d["path"], d["access"], d["verdict"]))

    def test_case_A4(self):
        """A deep child is named with path, access, program and arguments."""
        self.write("project/package.json", "{}")
        secret = self.write("outside/cache/index", "x\n")
        script = "bash -c 'bash -c \"(sleep 0; head -c 99 %s)\"'" % secret
        done = self.hold("--", "sh", "-c", script, answer=deny)
        q, = done.asked
        self.assertEqual((os.path.realpath("/usr/bin/head"), ["head", "-c", "99", secret], secret, ["read"]),
                         (q["exe"], q["argv"], q["path"], q["access"]))
        d, = done.report["denials"]
        self.assertEqual(("head", os.path.realpath("/usr/bin/head")), (d["argv0"], d["exe"]))

    def test_case_C4(self):
        done = self.hold("--", "bash", "-c", "echo '/home/u/.ssh/id_rsa: Permission denied' >&2; exit 1")
        self.assertStatus(done, 1)
        self.assertNothingAsked(done)

    def test_case_C5(self):
        """A name that would paint the terminal."""
        name = self.write("outside/a\x1b[2Jb\nc\u202ed", "x\n")
        done = self.hold("--", "cat", name)
        q, = done.asked
        self.assertEqual(name, q["path"])
        rule = q["scopes"][0]["rule"]
        self.assertTrue(all(c >= " " and c != "\u202e" for c in rule), repr(rule))
        # and the rule, saved, is that name again
        self.assertStatus(self.hold("--", "cat", name, answer=allow("always")))
        done = self.run_report("--", "cat", name)
        self.assertStatus(done)
        self.assertEqual("x\n", done.out)


class PermissionsOnly(RunCase):
    uid = NOBODY if os.getuid() == 0 else os.getuid()

    def test_case_A2(self):
        closed = self.write("project/closed", "x", 0)
        done = self.hold("--", "cat", "/etc/shadow", closed)
        self.assertStatus(done, 1)
        self.assertNothingAsked(done)
        self.assertEqual([("/etc/shadow", "permissions"), (closed, "permissions")],
                         [(d["path"], d["verdict"]) for d in done.report["denials"]])


@both_users
class Done(RunCase):
    def test_case_B1(self):
        """Opened for writing: asked as that, and one answer is enough."""
        old = self.write("outside/old", "old\n")
        new = os.path.join(self.outside, "new")
        done = self.hold("--", "bash", "-c", f"echo x >> {old}; echo y > {new}; echo z >> {new}")
        self.assertStatus(done)
        self.assertEqual([(old, ["write"]), (new, ["write", "create"])],
                         [(q["path"], q["access"]) for q in done.asked])
        self.assertEqual(("old\nx\n", "y\nz\n"), (self.read("outside/old"), self.read("outside/new")))

    def test_case_B2(self):
        """mkdir -p below a directory of the home that is not there yet."""
        cache = os.path.join(self.home, ".cache")
        for path in (f"{cache}/x/y", f"{cache}/x"):
            offered = []
            def answer(q):
                offered.extend((s["path"], s["kind"]) for s in q["scopes"])
                return {"answer": "allow", "lifetime": "once", "scope": 0}
            done = self.hold("--", "mkdir", "-p", f"{cache}/x/y", answer=answer)
            self.assertStatus(done)
            self.assertTrue(os.path.isdir(f"{cache}/x/y"))
            self.assertNotIn((self.home, "tree"), offered)
            self.assertNotEqual((self.home, "exact"), offered[0])
            subprocess.run(["rm", "-r", cache], check=True)
            done = self.run_report("-w", path, "--", "bash", "-c", f"mkdir -p {cache}/x/y && touch {cache}/x/y/z")
            # .cache itself was not granted
            self.assertEqual([cache], [d["path"] for d in done.report["denials"]])
            self.write("home/.cache/keep")
            done = self.run_report("-w", f"{cache}/x", "--", "bash", "-c", f"mkdir -p {cache}/x/y && touch {cache}/x/y/z")
            self.assertStatus(done)
            subprocess.run(["rm", "-r", cache], check=True)

    @needs("gcc")
    def test_case_B3(self):
        """A compiler's temporary names are nobody's question; nor are names in a granted directory."""
        self.write("project/a.c", "int main(void) { return 0; }\n")
        done = self.hold("-w", self.outside, "--", "gcc", "-save-temps=obj", "-o", f"{self.outside}/a", "a.c", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)
        self.assertTrue(os.access(os.path.join(self.outside, "a"), os.X_OK))

    def test_case_B4(self):
        """Whatever makes, names, moves or empties a thing: held, and done in place as if allowed from the start."""
        for name in ("old", "from", "long"):
            self.write(f"outside/{name}", "text\n")
        for call in ("os.close(os.open('made', os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))", "os.mkdir('dir')",
                     "os.unlink('old')", "os.rename('from', 'dir/to')", "os.symlink('long', 'symlink')",
                     "os.link('long', 'link')", "os.truncate('long', 2)", "os.mkfifo('fifo')",
                     "import socket; socket.socket(socket.AF_UNIX).bind('socket')"):
            with self.subTest(call):
                done = self.hold("--", "/usr/bin/python3", "-c", f"import os; os.chdir('{self.outside}'); {call}")
                self.assertStatus(done)
                self.assertEqual(1, done.report["runs"])
                self.assertTrue(done.asked, done)
        self.assertEqual(["dir", "fifo", "link", "long", "made", "socket", "symlink"], sorted(os.listdir(self.outside)))
        self.assertEqual(("text\n", "te"), (self.read("outside/dir/to"), self.read("outside/link")))
        modes = {n: os.lstat(os.path.join(self.outside, n)) for n in ("made", "fifo", "socket", "symlink")}
        self.assertEqual({"made": stat.S_IFREG, "fifo": stat.S_IFIFO, "socket": stat.S_IFSOCK, "symlink": stat.S_IFLNK},
                         {n: stat.S_IFMT(m.st_mode) for n, m in modes.items()})
        self.assertEqual({self.uid}, {m.st_uid for m in modes.values()})

    def test_case_B5(self):
        secret = self.write("outside/secret", "s\n")
        done = self.hold("--", "bash", "-c", f"echo x >> log; cat {secret}")
        self.assertEqual(("x\n", "s\n", 1), (self.read("project/log"), done.out, done.report["runs"]))

    def test_case_B6(self):
        """Files staged in TMPDIR before a denial are there after the rerun."""
        secret = self.write("outside/secret", "s\n")
        script = f'[ -e $TMPDIR/staged ] || {{ echo staged > $TMPDIR/staged; cat {secret}; exit 5; }}; cat $TMPDIR/staged {secret}'
        done = self.hold("--on-denial", "retry", "--", "bash", "-c", script, answer=allow("session"))
        self.assertStatus(done, 0)
        self.assertEqual("staged\ns\n", done.out)


@both_users
class Often(RunCase):
    def test_case_C1(self):
        """Sixty reads below one directory: one question; a refusal is remembered too."""
        files = [self.write(f"outside/d{i % 5}/f{i}", f"{i}\n") for i in range(60)]
        def below(q):
            return {"answer": "allow", "scope": scope_of(q, self.outside, "tree"), "lifetime": "session"}
        done = self.hold("--", "cat", *files, answer=below)
        self.assertStatus(done)
        self.assertEqual(1, len(done.asked))
        self.assertEqual(60, len(done.out.splitlines()))
        done = self.hold("--", "bash", "-c", f"for i in $(seq 60); do cat {files[0]}; done", answer=deny)
        self.assertEqual(1, len(done.asked))
        self.assertEqual(60, done.denials(files[0])[0]["count"])

    def test_case_C2(self):
        """What was saved is shown as it is, and can be forgotten."""
        file = self.write("outside/file", "x\n")
        def rules():
            shown = self.native(WARDER, "policy", "show")
            self.assertStatus(shown)
            return [line.partition("  #")[0].strip() for line in shown.out.splitlines() if file in line]
        self.assertStatus(self.hold("--", "cat", file, answer=allow("always")))
        self.assertEqual([f"allow read {file} exact"], rules())
        self.assertNothingAsked(self.hold("--", "cat", file, answer=deny))
        self.assertEqual([(file, ["write"])], [(q["path"], q["access"]) for q in
                                               self.hold("--", "sh", "-c", f"echo >> {file}", answer=deny).asked])
        # Saved for the project: said to who looks for it in the user's own.
        other = self.native(WARDER, "policy", "forget", file)
        self.assertStatus(other, 1)
        self.assertEqual("warder: the project's saved policy has such a rule: say the same with --project\n", other.err)
        self.assertStatus(self.native(WARDER, "policy", "--project", "forget", file))
        self.assertEqual([], rules())
        self.assertStatus(self.native(WARDER, "policy", "allow", "read", file))
        other = self.native(WARDER, "policy", "--project", "forget", file, "r")
        self.assertEqual("warder: your own saved policy has such a rule: say the same without --project\n", other.err)
        self.assertStatus(self.native(WARDER, "policy", "forget", file))
        self.assertEqual("", self.native(WARDER, "policy", "forget", file).err)
        self.assertEqual([file], [q["path"] for q in self.hold("--", "cat", file, answer=deny).asked])

    def test_case_D1(self):
        """Moves and links across directories: seen, asked, performed."""
        for command, access in (("mv", "move"), ("ln", "move")):
            for name in ("a", "b"):
                self.write(f"outside/{name}/f", "x\n")
                self.write(f"outside/{name}/g", "x\n")
            with self.subTest(command):
                done = self.hold("--", command, f"{self.outside}/a/f", f"{self.outside}/b/{command}")
                self.assertStatus(done)
                self.assertTrue(any(access in q["access"] for q in done.asked), done)
                self.assertTrue(os.path.exists(f"{self.outside}/b/{command}"))
                self.assertEqual(command == "ln", os.path.exists(f"{self.outside}/a/f"))
        # with both directories granted, natively or not, nothing is asked
        done = self.hold("-w", f"{self.outside}/a", "-w", f"{self.outside}/b", "--", "mv",
                         f"{self.outside}/a/g", f"{self.outside}/b/h")
        self.assertStatus(done)
        self.assertNothingAsked(done)

    def test_case_D1_directories(self):
        self.write("project/from/sub/f", "x\n")
        os.mkdir(os.path.join(self.project, "to"))
        self.own(os.path.join(self.project, "to"))
        done = self.hold("--", "bash", "-c", "mv from/sub to/sub && mv to moved && rm -r from moved && mkdir from", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)

    def test_case_D2(self):
        """Rules with a directory's rights on files and devices."""
        file = self.write("outside/file", "x\n")
        done = self.run_report("--rule", f"allow rwx {file}", "--rule", "allow rwx /dev/null", "--rule",
                               "allow r,write,ioctl /dev/zero", "--", "bash", "-c",
                               f"cat {file}; echo y >> {file}; head -c 3 /dev/zero | wc -c; echo > /dev/null")
        self.assertStatus(done)
        self.assertEqual("x\n3\n", done.out)
        self.assertEqual([], done.report["denials"])

    def test_case_D3(self):
        """Devices and ptys work by default."""
        done = self.run_report("--", "bash", "-c",
                               "echo x > /dev/null; head -c 9 /dev/urandom | wc -c; echo y > /dev/full; "
                               "(echo err > /dev/stderr) 2>&1 | cat; "
                               "(echo out > /dev/stdout; echo fd > /dev/fd/1) | cat")  # pipes of its own
        self.assertEqual(["9", "err", "out", "fd"], done.out.split(), done)
        self.assertEqual([], done.report["denials"])

    def test_case_D3_stdout_to_a_file(self):
        """The file behind one's own descriptor may be opened again by the same access, no other."""
        out = self.write("outside/out", "")
        def run(redirect, words):
            self.native("bash", "-c", f"'{WARDER}' run --report '{self.report_file}' -- bash -c '{words}' {redirect} {out}")
            return self.read_report()["denials"]
        self.assertEqual([], run(">", "echo first > /dev/stdout"))
        with open(out) as f:
            self.assertEqual("first\n", f.read())
        self.assertEqual(["write"], run(">>", "echo over > /dev/stdout")[0]["access"])
        self.assertEqual([], run("<", "cat /dev/stdin"))
        self.assertEqual(["write"], run("<", "echo over > /dev/stdin")[0]["access"])
        # Emptying is writing, also by an open for reading; and what may only append may not empty.
        empty = "/usr/bin/python3 -c \"import os; os.open(\\\"/proc/self/fd/{}\\\", os.O_TRUNC | {})\""
        for redirect, fd, mode in (("<", 0, "os.O_RDONLY"), (">>", 1, "os.O_WRONLY"),
                                   (">>", 1, "os.O_WRONLY | os.O_APPEND")):
            with self.subTest(redirect=redirect, mode=mode):
                self.assertIn("write", run(redirect, empty.format(fd, mode))[0]["access"])
        with open(out) as f:
            self.assertEqual("first\n", f.read())

    def test_case_D3_pty(self):
        code = ("import pty, os, sys\n"
                "pid, fd = pty.fork()\n"
                "if pid == 0:\n"
                "    t = open('/dev/tty', 'w'); t.write('from the tty'); t.flush(); os._exit(0)\n"
                "print(os.read(fd, 100).decode()); os.waitpid(pid, 0)\n")
        done = self.hold("--", "/usr/bin/python3", "-c", code)
        self.assertStatus(done)
        self.assertEqual("from the tty\n", done.out)
        self.assertNothingAsked(done)

    @needs("zsh")
    def test_case_D4(self):
        env = {**self.env, "PWD": self.project}  # as from any shell; without it zsh lists ".."
        done = self.hold("--", "zsh", "-f", "-c", "cat <<END\nhere\nEND", env=env)
        self.assertEqual("here\n", done.out)
        self.assertNothingAsked(done)

    def test_case_D4_bash(self):
        big = "x" * 70000  # more than a pipe holds: bash makes a file
        done = self.hold("--", "bash", "-s", stdin=self.script(f"wc -c <<END\n{big}\nEND\n"))
        self.assertEqual("70001\n", done.out)
        self.assertNothingAsked(done)

    def script(self, text):
        f = open(self.write("script", text))
        self.addCleanup(f.close)
        return f

    @needs("git")
    def test_case_D5(self):
        self.write("home/.gitconfig", "[user]\n\tname = N\n\temail = n@example.org\n")
        done = self.run_report("--preset", "git", "--", "bash", "-c",
                               "git init -q . && git commit -q --allow-empty -m m && git log --format=%an")
        self.assertStatus(done)
        self.assertEqual("N\n", done.out)
        done = self.run_report("--", "git", "config", "--get", "user.name")
        self.assertNotEqual(0, done.status)
        self.assertIn(os.path.join(self.home, ".gitconfig"), [d["path"] for d in done.report["denials"]])


if __name__ == "__main__":
    main()
