#!/usr/bin/env python3
"""Questions that don't tire: floods, probes that programs shrug off, names made up for the moment."""

import os

from run_help import RunCase, allow, both_users, deny, main, needs, scope_of


def marked(q):
    """Yes, once, to what the terminal marks at first."""
    return {"answer": "allow", "scope": q.get("default_scope", 0), "lifetime": "once"}


@both_users
class Floods(RunCase):
    HANDFUL = 10

    def tree(self, dirs):
        """outside/t with so many directories of a file each, in two levels."""
        for i in range(dirs):
            self.write(f"outside/t/{i // 50}/d{i % 50}/f", "x\n")
        return os.path.join(self.outside, "t")

    def test_a_search_below_a_directory_that_is_refused(self):
        """find may see the directory; all that is below it is refused: no means all of it in the end."""
        top = self.tree(5000 if self.uid == os.getuid() else 500)
        done = self.hold("--rule", f"allow list {top} exact", "--", "find", top, "-name", "f", answer=deny, timeout=60)
        self.assertLessEqual(len(done.asked), self.HANDFUL, [q["path"] for q in done.asked])
        self.assertEqual(len(os.listdir(top)), sum(d["count"] for d in done.report["denials"]), "each refusal is in the report")
        self.assertEqual(top, done.asked[-1]["below"])
        self.assertEqual((top, "tree"), tuple(done.asked[-1]["scopes"][1][k] for k in ("path", "kind")))

    def test_a_search_that_is_allowed_each_time(self):
        top = self.tree(1000)
        done = self.hold("--", "find", top, "-name", "f", answer=marked, timeout=60)
        self.assertStatus(done)
        self.assertEqual(1000, len(done.out.splitlines()))
        self.assertLessEqual(len(done.asked), self.HANDFUL, [q["path"] for q in done.asked])

    def test_reads_of_many_files(self):
        files = [self.write(f"outside/src/{i}.h", f"{i}\n") for i in range(60)]
        for answer, lines in ((marked, 60), (deny, 0)):
            done = self.hold("--", "cat", *files, answer=answer)
            self.assertEqual(lines, len(done.out.splitlines()))
            self.assertEqual(7, len(done.asked))
            self.assertEqual(os.path.dirname(files[0]), done.asked[-1]["below"])

    def test_once_for_a_directory_is_for_that_process_and_keeps_what_is_closed(self):
        files = [self.write(f"outside/src/{i}", f"{i}\n") for i in range(12)]
        secret = self.write("outside/src/.env", "secret\n")
        closed = self.write("outside/src/closed/f", "closed\n")
        done = self.hold("--rule", f"deny r {self.outside}/**/.env", "--rule", f"deny r {self.outside}/src/closed",
                         "--", "bash", "-c", f"cat {' '.join(files)} {secret} {closed}; cat {files[11]}", answer=marked)
        self.assertNotIn("secret", done.out)
        self.assertNotIn("closed", done.out)
        below = [q for q in done.asked if "below" in q]
        self.assertEqual(2, len(below), "the second cat is asked about anew")
        self.assertEqual(8, len(done.asked))

    def test_nothing_sensitive_is_answered_by_the_way(self):
        """A hostile program can bring the flood about: six yeses open no token."""
        files = [self.write(f"home/.config/app/{i}", f"{i}\n") for i in range(7)]
        files += [self.write(f"home/.config/{i}", f"{i}\n") for i in range(8)]
        token = self.write("home/.config/gh/hosts.yml", "TOKEN\n")
        def answer(q):
            return {"answer": "deny" if q["sensitive"] else "allow", "scope": q.get("default_scope", 0),
                    "lifetime": "once"}
        done = self.hold("--", "cat", *files, token, answer=answer)
        self.assertNotIn("TOKEN", done.out)
        self.assertEqual(15, len(done.out.splitlines()))
        self.assertEqual(token, done.asked[-1]["path"], done)
        self.assertTrue(done.asked[-1]["sensitive"])

    def test_the_first_scope_is_the_path_alone(self):
        """Who always takes the narrowest is never given more, however often he is asked."""
        files = [self.write(f"outside/src/{i}", f"{i}\n") for i in range(12)]
        done = self.hold("--", "cat", *files, answer=allow("session"))
        self.assertEqual(12, len(done.out.splitlines()))
        self.assertEqual([(f, "exact") for f in files],
                         [(q["scopes"][0]["path"], q["scopes"][0]["kind"]) for q in done.asked])
        self.assertIn("below", done.asked[-1])

    def test_writing_was_not_meant_by_reading(self):
        files = [self.write(f"outside/src/{i}", f"{i}\n") for i in range(8)]
        done = self.hold("--", "bash", "-c", f"cat {' '.join(files)}; echo x > {files[0]}", answer=deny)
        self.assertEqual(["write"], done.asked[-1]["access"])
        self.assertNotIn("below", done.asked[-1])

    def test_never_for_a_directory_is_saved(self):
        files = [self.write(f"outside/src/{i}", f"{i}\n") for i in range(20)]
        def answer(q):
            return {"answer": "deny", "lifetime": "always" if "below" in q else "once"}
        done = self.hold("--", "cat", *files, answer=answer)
        self.assertEqual(7, len(done.asked))
        done = self.hold("--", "cat", *files[7:], answer=deny)
        self.assertNothingAsked(done)


    def test_a_flood_that_is_asked_about_at_the_end(self):
        files = [self.write(f"outside/src/{i}", f"{i}\n") for i in range(30)]
        done = self.hold("--on-denial", "retry", "--", "cat", *files, answer=deny)
        self.assertEqual(7, len(done.asked))
        self.assertEqual(30, len(done.denials(answer="deny", by="user")))
        done = self.hold("--on-denial", "retry", "--", "cat", *files, answer=marked)
        self.assertEqual(30, len(done.out.splitlines()))
        self.assertEqual(8, len(done.asked))  # the last is about the other run


@both_users
class Probes(RunCase):
    @needs("bash")
    def test_what_is_shrugged_off_is_offered_once(self):
        """bash reads ~/.inputrc where it is, and does without it: asked once, remembered by never."""
        self.write("home/.inputrc", "set bell-style none\n")
        self.write("home/.bashrc", "true\n")
        probe = ("--", "bash", "--norc", "-i", "-c", "bind -v >/dev/null 2>&1; bind -v >/dev/null 2>&1; true")
        done = self.hold(*probe, answer=lambda q: {"answer": "deny", "lifetime": "always"})
        self.assertStatus(done)
        paths = [q["path"] for q in done.asked]
        self.assertEqual(sorted(set(paths)), sorted(paths))
        self.assertIn(os.path.join(self.home, ".inputrc"), paths)
        done = self.hold(*probe, answer=deny)
        self.assertStatus(done)
        self.assertNotIn(os.path.join(self.home, ".inputrc"), [q["path"] for q in done.asked])

    def test_what_is_not_there_asks_nothing(self):
        done = self.hold("--", "bash", "-c", "cat ~/.inputrc ~/.curlrc ~/.config/x/y; test -e ~/.profile; ls ~/.cache; true", answer=deny)
        self.assertStatus(done)
        self.assertNothingAsked(done)


@both_users
class Names(RunCase):
    def suggested(self, *command, **more):
        done = self.run_report("--", *command, **more)
        return done.report["suggested"]

    def test_names_made_up_for_the_moment_become_their_directory(self):
        """A rule for them would never apply again."""
        out = os.path.join(self.outside, "cache")
        self.write("outside/cache/keep")
        rows = ("ccQx7Zab.o", "tmp.k3Rt9xQz1B", "x.cpython-311.pyc.140233912345", "0f8fad5b-d9cb-469f-a165-70867728950e",
                "part-1732912345.tmp", ".sample-9f86d081884c7d65")
        for name in rows:
            with self.subTest(name):
                self.assertEqual([f"allow w {out}"],
                                 self.suggested("/usr/bin/python3", "-c", f"import os; os.open({out + '/' + name!r}, os.O_CREAT | os.O_WRONLY)"))
        for name in ("README2024.md", "libfoo.so.1.2.3", "main.c", "x86_64", "v10.0.1"):
            with self.subTest(name):
                self.assertEqual([f"allow write,create {out}/{name} exact"],
                                 self.suggested("/usr/bin/python3", "-c", f"import os; os.open({out + '/' + name!r}, os.O_CREAT | os.O_WRONLY)"))

    def test_one_that_exists_is_what_it_is(self):
        there = self.write("outside/ccQx7Zab.o", "x")
        self.assertEqual([f"allow r {there}"], self.suggested("cat", there))

    def told(self, *command):
        done = self.run_report("--", *command)
        return done.report["suggested"], [line for line in done.err.splitlines() if line.startswith("warder: ")]

    def test_never_a_wide_directory(self):
        suggested, lines = self.told("touch", os.path.join(self.home, "ccQx7Zab.o"))
        self.assertEqual([], suggested)
        self.assertEqual(["warder: refused write,create ~/ccQx7Zab.o (touch, 1×, then exited 1);"
                          " made up for the moment, no rule fits the next name"], lines)

    def test_what_everybody_shares_is_never_suggested(self):
        """Neither the name that mktemp drew, whatever letters it has, nor all of /tmp."""
        for command in ("mktemp -p /tmp", "mktemp -d /tmp/xyz.XXXXXXXX", "mktemp -p /var/tmp", "mkdir /tmp/tmp.aBcDeFgHiJ",
                        "touch /var/tmp/log-2026-11-30.txt"):
            with self.subTest(command):
                suggested, lines = self.told("sh", "-c", command)
                self.assertEqual([], suggested)
                self.assertEqual(1, len(lines), lines)
                self.assertRegex(lines[0], "; made up for the moment, no rule fits the next name: let it use \\$TMPDIR$")

    def test_a_name_that_stays_is_suggested_there_too(self):
        self.assertEqual(["allow write,create /var/tmp/warder-test-of-names exact"],
                         self.suggested("touch", "/var/tmp/warder-test-of-names"))

    def test_a_dated_log_is_its_directory(self):
        self.write("home/.tool/logs/keep")
        for name in ("2026-11-30T10_22_33_123Z-debug-0.log", "run-2026-11-30.log"):
            self.assertEqual(["allow w ~/.tool/logs"], self.suggested("touch", os.path.join(self.home, ".tool/logs", name)))

    def test_a_preset_that_opens_it_is_suggested(self):
        lock = ("/usr/bin/python3", "-c", "import multiprocessing as m; m.Lock()")
        for _ in range(4):
            suggested, lines = self.told(*lock)
            self.assertEqual(["use python"], suggested)
            self.assertRegex(lines[0], r"^warder: refused \S+ /dev/shm/sem\.\w+ \(python3, .*\); to allow: warder run --preset python$")
        self.assertStatus(self.run_report("--preset", "python", "--", *lock))

    def test_the_question_offers_the_directory_next(self):
        path = os.path.join(self.outside, "ccQx7Zab.o")
        done = self.hold("--", "bash", "-c", f"echo x > {path}")
        scopes = [(s["path"], s["kind"]) for s in done.asked[0]["scopes"]]
        self.assertEqual([(path, "exact"), (self.outside, "tree")], scopes[:2])


@both_users
class Scopes(RunCase):
    def test_the_surplus_is_counted(self):
        for i in range(7):
            self.write(f"outside/dir/f{i}", "x\n")
        path = os.path.join(self.outside, "dir/f0")
        q, = self.hold("--", "cat", path).asked
        self.assertEqual(0, q["scopes"][0]["surplus"])
        self.assertEqual(6, q["scopes"][scope_of(q, os.path.dirname(path), "tree")]["surplus"])

    def test_what_is_asked_for_is_none_of_the_others(self):
        """Nor where the question is about its directory by now."""
        files = [self.write(f"outside/dir/f{i}", "x\n") for i in range(9)]
        asked = self.hold("--", "cat", *files, answer=marked).asked
        self.assertEqual(7, len(asked))
        for q in (asked[0], asked[-1]):
            for tree, others in ((os.path.dirname(files[0]), 8), (self.outside, 9)):  # the directory is one
                self.assertEqual(others, q["scopes"][scope_of(q, tree, "tree")]["surplus"], (tree, q))

    def test_the_sensitive_list_is_never_a_default(self):
        """Marked in the question and in every scope that covers it; --yes does not answer it."""
        key = self.write("home/.ssh/id_rsa", "key\n")
        self.write("home/.aws/credentials", "key\n")
        q, = self.hold("--", "cat", key, answer=deny).asked
        self.assertTrue(q["sensitive"])
        self.assertTrue(all(s["sensitive"] for s in q["scopes"]))
        done = self.run_report("--yes", "--", "bash", "-c", "cat ~/.ssh/id_rsa ~/.aws/credentials")
        self.assertEqual("", done.out)

    def test_what_can_not_be_held_open_is_not_asked_twice(self):
        """Two processes that want the same thing at once stand behind one question."""
        secret = self.write("outside/secret", "s\n")
        done = self.hold("--", "bash", "-c", f"(cat {secret} & cat {secret} & wait) | cat",  # into one file they would race natively
                         answer=allow("session"))
        self.assertEqual("s\ns\n", done.out)
        self.assertEqual(1, len(done.asked))


if __name__ == "__main__":
    main()
