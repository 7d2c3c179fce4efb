#!/usr/bin/env python3
"""What users of other tools complain about, E to H: protected places, and every kind of program."""

import os
import socket

from run_help import WARDER, RunCase, both_users, deny, fixture, main, needs


@both_users
class Hooks(RunCase):
    """A repository's hooks and config are asked about, whichever way they are written."""

    def setUp(self):
        super().setUp()
        self.git("init", "-q", self.project)
        self.hook = os.path.join(self.project, ".git/hooks/pre-commit")
        self.config = os.path.join(self.project, ".git/config")
        self.before = self.read(self.config)

    def git(self, *words):
        done = self.native("git", "-c", "init.templateDir=", *words, cwd=self.dir)
        self.assertStatus(done)

    def try_to(self, script):
        """Everything is refused that is asked."""
        done = self.hold("--", "bash", "-c", script, answer=deny)
        self.assertEqual(self.before, self.read(self.config), script)
        return done

    def assertNoHook(self, done, hook=None):
        hook = hook or self.hook
        self.assertFalse(os.path.lexists(hook) and os.path.exists(hook), f"{hook} is there{done}")

    @needs("git")
    def test_case_E2_direct(self):
        done = self.try_to("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit; echo evil >> .git/config; rm .git/config")
        self.assertNoHook(done)
        self.assertTrue(done.asked)
        for q in done.asked:
            self.assertTrue(q["sensitive"], q["path"])

    @needs("git")
    def test_case_E2_by_mv(self):
        done = self.try_to("echo evil > x; mkdir -p .git/hooks; mv x .git/hooks/pre-commit; mkdir h; echo evil > h/pre-commit;"
                           "rmdir .git/hooks; mv h .git/hooks; mv -T h .git/hooks")
        self.assertNoHook(done)

    @needs("git")
    def test_case_E2_by_link(self):
        self.try_to("echo evil > x; mkdir -p .git/hooks; ln x .git/hooks/pre-commit; ln -s ../../x .git/hooks/pre-commit; ln .git/config y; echo evil >> y")
        self.assertFalse(os.path.lexists(self.hook))
        self.assertEqual(self.before, self.read(self.config))

    @needs("git")
    def test_case_E2_by_a_symlink_swap(self):
        done = self.try_to("mkdir -p d; ln -s .git alias; echo evil > alias/hooks/pre-commit; mkdir -p alias/hooks; echo evil >> alias/config;"
                           "cp -r .git copy; mv .git away; mv copy .git; ln -s $PWD/d .git/hooks")
        self.assertNoHook(done)
        self.assertTrue(os.path.isdir(os.path.join(self.project, ".git")))
        self.assertFalse(os.path.exists(os.path.join(self.project, "away")))

    @needs("git")
    def test_case_E2_in_a_nested_repository(self):
        nested = os.path.join(self.project, "vendor/lib")
        self.git("init", "-q", nested)
        config = self.read(os.path.join(nested, ".git/config"))
        done = self.try_to("cd vendor/lib; mkdir -p .git/hooks; echo evil > .git/hooks/post-merge; echo evil >> .git/config;"
                           "mv .git away; cd ..; mv lib other; echo evil >> other/.git/config")
        self.assertNoHook(done, os.path.join(nested, ".git/hooks/post-merge"))
        self.assertEqual(config, self.read(os.path.join(nested, ".git/config")))

    @needs("git")
    def test_case_E2_hooks_path(self):
        done = self.try_to("git config core.hooksPath $PWD/mine; git config alias.x '!evil'")
        self.assertTrue(any(q["path"].startswith(self.config) for q in done.asked), done)

    @needs("git")
    def test_case_E2_answered_yes(self):
        done = self.hold("--preset", "git", "--", "bash", "-c",
                         "git config core.editor mine && mkdir -p .git/hooks && echo 'echo hi' > .git/hooks/pre-commit")
        self.assertStatus(done)
        self.assertEqual("echo hi\n", self.read(self.hook))
        self.assertIn("editor = mine", self.read(self.config))
        self.assertEqual(1, done.report["runs"])

    @needs("git")
    def test_case_E2_the_rest_of_git_is_open(self):
        done = self.hold("--preset", "git", "--", "bash", "-c",
                         "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a;"
                         "echo x > f && git add f && git commit -qm m && git checkout -qb other && git tag t && git gc -q &&"
                         "git mv f g && git stash -q && git log --oneline | wc -l", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)
        self.assertEqual("1\n", done.out)

    @needs("git")
    def test_case_E3(self):
        """Names that look like settings, deep in dependencies, are just files."""
        done = self.hold("--", "bash", "-c", "mkdir -p node_modules/p/.vscode && echo '{}' > node_modules/p/.vscode/settings.json &&"
                                             "mv node_modules/p node_modules/q && rm -r node_modules", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)


@both_users
class Kinds(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "the secret\n")

    def assertSeen(self, *command, out=None, exe=None):
        """Refused and reported without an answer, done with one."""
        done = self.run_report("--", *command)
        found = done.denials(self.secret, verdict="sandbox")
        self.assertEqual(["read"], found[0]["access"] if found else None, done)
        done = self.hold("--", *command)
        self.assertStatus(done)
        self.assertIn(out or "the secret", done.out)
        q, = done.asked
        self.assertEqual(self.secret, q["path"])
        if exe:
            self.assertEqual(exe, q["exe"])
        return done

    def test_case_F1(self):
        done = self.hold("--", fixture("run_uring"), self.secret)
        self.assertStatus(done)
        self.assertEqual("ring ENOSYS\nopen ok\n", done.out)
        self.assertEqual([self.secret], [q["path"] for q in done.asked])
        self.assertTrue(any("io_uring" in n for n in done.report["engine"]["notes"]), done)

    def test_case_F2_static(self):
        self.assertSeen(fixture("run_open_static"), self.secret, out="opened", exe=fixture("run_open_static"))

    def test_case_F2_32_bit_entry(self):
        done = self.native(fixture("opener"), "i386", self.secret)
        if done.status:
            self.skipTest("this kernel has no 32-bit entry")
        self.assertSeen(fixture("opener"), "i386", self.secret)

    @needs("go")
    def test_case_F2_go(self):
        source = self.write("project/main.go", 'package main\nimport ("fmt"; "os")\n'
                            'func main() { b, e := os.ReadFile(os.Args[1]); fmt.Print(string(b)); if e != nil { os.Exit(1) } }\n')
        program = os.path.join(self.bin, "gofix")
        env = dict(self.env, GOCACHE=os.path.join(self.dir, "gocache"), GOFLAGS="-mod=mod", GO111MODULE="off", CGO_ENABLED="0")
        built = self.native("go", "build", "-o", program, source, env=env, timeout=120)
        if built.status:
            self.skipTest("go can't build here: " + built.err[-200:])
        self.assertSeen(program, self.secret)

    def test_case_F2_vfork_and_exec(self):
        self.assertSeen("/usr/bin/python3", "-c",
                        f"import subprocess; subprocess.run(['cat', '{self.secret}'], close_fds=False, check=True)")

    def test_case_F2_exec_from_another_thread(self):
        self.assertSeen(fixture("procs"), "exec-thread", "/bin/cat", self.secret)

    def test_case_F2_threads(self):
        done = self.run_report("--", fixture("run_threads"), "3", self.secret)
        self.assertEqual("threads 8 opened 0 refused 24 other 0\n", done.out)
        self.assertEqual(24, done.denials(self.secret)[0]["count"])

    def test_case_F3_an_agents_socket(self):
        """Asked about like any other thing, and known to be a sensitive one."""
        agent = socket.socket(socket.AF_UNIX)
        self.addCleanup(agent.close)
        agent.bind(os.path.join(self.outside, "agent.sock"))
        agent.listen(5)
        os.chmod(agent.getsockname(), 0o777)
        env = dict(self.env, SSH_AUTH_SOCK=agent.getsockname())
        command = ("--", "/usr/bin/python3", "-c", "import os, socket\n"
                   "try: socket.socket(socket.AF_UNIX).connect(os.environ['SSH_AUTH_SOCK']); print('connected')\n"
                   "except OSError as e: print(e.errno)\n")
        done = self.run_report(*command, env=env)
        self.assertEqual("13\n", done.out, done)
        self.assertEqual(["connect"], done.denials(agent.getsockname(), verdict="sandbox")[0]["access"])
        done = self.hold(*command, env=env)
        self.assertEqual("connected\n", done.out, done)
        q, = done.asked
        self.assertEqual((["connect"], True), (q["access"], q["sensitive"]), done)
        done = self.run_report("--yes", *command, env=env)
        self.assertEqual("13\n", done.out, done)

    def test_case_F4(self):
        """What Landlock does not see."""
        there = self.write("outside/file", "text")
        for command in (("chmod", "600", there), ("touch", "-d", "@1", there),
                        ("/usr/bin/python3", "-c", f"import os; os.setxattr('{there}', 'user.a', b'b')"),
                        ("/usr/bin/python3", "-c", f"import os; os.fchmod(os.open('{there}', os.O_RDONLY), 0)")):
            before = os.stat(there)
            done = self.run_report("--rule", f"allow read {there}", "--", *command)
            self.assertNotEqual(0, done.status, done)
            self.assertIn("ermission denied", done.err)
            self.assertEqual(1, len(done.denials(there, verdict="sandbox", access=["meta"])), done)
            self.assertEqual(before, os.stat(there), command)
            if command[0] == "chmod":
                self.assertIn(f"to allow: warder policy allow meta {there}", done.err)
            self.assertEqual([], os.listxattr(there))

    def test_case_H3(self):
        """Neither user namespaces nor a setuid helper is needed."""
        unshare = {"x86_64": "272", "aarch64": "97"}[os.uname().machine]
        done = self.native(fixture("run_deny"), "EPERM", unshare, WARDER, "run", "--", "echo", "works")
        self.assertStatus(done)
        self.assertEqual("works\n", done.out)
        done = self.run_report("--", "bash", "-c", "readlink /proc/self/ns/user /proc/self/ns/mnt /proc/self/ns/pid")
        native = self.native("bash", "-c", "readlink /proc/self/ns/user /proc/self/ns/mnt /proc/self/ns/pid")
        self.assertEqual(native.out, done.out)


if __name__ == "__main__":
    main()
