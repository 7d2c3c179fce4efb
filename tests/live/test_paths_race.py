#!/usr/bin/env python3
"""
Names that change while they are asked about and acted on: what was shown is what is opened.

WARDER_RACES and WARDER_CALL_RACES enlarge the number of tries.
"""

import os
import re

from path_help import PathCase
from run_help import SLOW, Talk, both_users, by_chance, fixture, main

RACES = int(os.environ.get("WARDER_RACES", 850 // SLOW))  # six ways, two users: 10,000 in all

CALL_RACES = int(os.environ.get("WARDER_CALL_RACES", 400 // SLOW))  # four ways, two users: 3,200 in all


class SwapCase(PathCase):
    def setUp(self):
        super().setUp()
        self.write("outside/good/f", "GOOD")
        self.write("outside/bad/f", "BAD")
        self.good, self.bad = (os.path.join(self.outside, name) for name in ("good", "bad"))


@both_users
class Races(SwapCase):
    def choose(self, lifetime):
        """Yes to what is shown as good, no to the rest."""
        def answer(q):
            if q["path"].startswith(self.good + "/"):
                return {"answer": "allow", "scope": 0, "lifetime": lifetime}
            return {"answer": "deny"}
        return answer

    def race(self, how, args=(), **more):
        done = self.hold(*args, "--", fixture("path_race"), how, self.good, self.bad, str(RACES), timeout=60 + RACES // 100,
                         **more)
        self.assertStatus(done)
        counts = dict(re.findall(r"(\w+) (\d+)", done.out))
        return done, {name: int(n) for name, n in counts.items()}

    @by_chance
    def test_what_is_not_granted_is_never_opened(self):
        for how in ("symlink", "exchange", "text", "dirfd", "cwd"):
            with self.subTest(how):
                os.makedirs(f"{self.project}/{how}", exist_ok=True)
                self.own(f"{self.project}/{how}")
                done, n = self.race(how, answer=self.choose("session"), cwd=f"{self.project}/{how}")
                self.assertEqual(0, n["bad"], done)
                self.assertGreater(n["good"], 0, done)
                self.assertEqual({self.good + "/f"}, {d["path"] for d in done.denials(answer="allow")}, done)

    @by_chance
    def test_nor_by_a_rule(self):
        done, n = self.race("symlink", ("--rule", f"allow r {self.good}/f exact", "--rule", f"deny r {self.bad}"))
        self.assertEqual(0, n["bad"], done)
        self.assertGreater(n["good"], 0, done)
        self.assertNothingAsked(done)

    @by_chance
    def test_nothing_is_made_where_it_may_not(self):
        done, n = self.race("creat", answer=self.choose("session"))
        self.assertEqual(["f"], os.listdir(self.bad), done)
        self.assertGreater(n["good"], 0, done)


@both_users
class CallRaces(PathCase):
    """Calls of every kind; one directory is allowed (with an exception: the broker does them), the other is not."""

    KINDS = 20

    def setUp(self):
        super().setUp()
        for word in ("good", "evil"):
            for name in ("f", "a", "del"):
                self.write(f"outside/{word}/{name}", word.upper())
            self.mkdir(f"outside/{word}/deldir")
            self.write(f"outside/{word}/sub/{word}")
        self.good, self.evil = (os.path.join(self.outside, name) for name in ("good", "evil"))

    def state(self, top):
        """All that could be changed."""
        found = {}
        for here, dirs, files in os.walk(top):
            for path in (here, *(os.path.join(here, n) for n in files)):
                st = os.lstat(path)
                found[path] = (st.st_ino, st.st_mode, st.st_nlink, st.st_uid, st.st_size, st.st_mtime_ns, st.st_ctime_ns,
                               os.listxattr(path), self.read(path) if path != here else sorted(os.listdir(here)))
        return found

    @by_chance
    def test_what_is_not_allowed_is_never_touched(self):
        before = self.state(self.evil)
        done_of = {}
        for how in ("symlink", "text", "dirfd", "cwd"):
            with self.subTest(how):
                self.own_project(how)
                done = self.run_report(
                    "--rule", f"allow rwx {self.good}", "--rule", f"deny w {self.good}/never", "--rule", f"deny {self.evil}",
                    "--", fixture("race_calls"), how, self.good, self.evil, str(CALL_RACES),
                    cwd=f"{self.project}/{how}", timeout=60 + CALL_RACES // 50)
                self.assertStatus(done)
                lines = [line.split() for line in done.out.splitlines()]
                self.assertEqual(self.KINDS, len(lines), done)  # nothing was read or listed
                self.assertEqual(before, self.state(self.evil))
                for kind, _, ok, _, failed in lines:
                    done_of[kind] = done_of.get(kind, 0) + int(ok)
        self.assertEqual([], [kind for kind, ok in done_of.items() if not ok])

    def own_project(self, name):
        path = f"{self.project}/{name}"
        os.mkdir(path)
        self.own(path)


@both_users
class Swapped(SwapCase):
    def held(self, *rows):
        talk = Talk(self, ["--", fixture("path_ops"), *(word for row in rows for word in row)])
        return talk, talk.ask()

    def yes(self, talk, q):
        talk.answer(q, answer="allow", scope=0, lifetime="once")

    def point(self, to):
        os.symlink(to, f"{self.dir}/next")
        self.own(f"{self.dir}/next")
        os.rename(f"{self.dir}/next", f"{self.project}/cur")

    def test_a_link_turned_while_it_is_asked_about(self):
        self.point(self.good)
        talk, q = self.held(("read", "cur/f"))
        self.assertEqual((f"{self.good}/f", "cur/f"), (q["path"], q["given"]))
        self.point(self.bad)
        self.yes(talk, q)
        done = talk.finish()
        self.assertEqual("ok GOOD\n", done.out)
        self.assertEqual([f"{self.good}/f"], [d["path"] for d in done.report["denials"]])

    def test_a_file_replaced_while_it_is_asked_about(self):
        """The one that was there when it was shown."""
        talk, q = self.held(("read", f"{self.good}/f"))
        os.rename(f"{self.bad}/f", f"{self.good}/f")
        self.yes(talk, q)
        self.assertEqual("ok GOOD\n", talk.finish().out)

    def test_a_file_made_while_it_is_asked_about(self):
        """It is another thing than the absent one that was shown: nothing is emptied or opened unseen."""
        self.point(self.good)
        talk, q = self.held(("creat", "cur/new"))
        self.assertFalse(q["exists"])
        os.symlink(f"{self.bad}/f", f"{self.good}/new")
        self.yes(talk, q)
        second = talk.ask()
        self.assertEqual((f"{self.bad}/f", True), (second["path"], second["exists"]))
        talk.answer(second, answer="deny")
        self.assertEqual("EACCES\n", talk.finish().out)
        self.assertEqual("BAD", self.read("outside/bad/f"))

    def test_a_directory_turned_while_something_in_it_is_to_go(self):
        self.point(self.good)
        talk, q = self.held(("unlink", "cur/f"))
        self.point(self.bad)
        self.yes(talk, q)
        self.assertEqual("ok\n", talk.finish().out)
        self.assertEqual(([], ["f"]), (os.listdir(self.good), os.listdir(self.bad)))

    def test_gone_while_it_is_asked_about(self):
        talk, q = self.held(("unlink", f"{self.good}/f"))
        os.unlink(f"{self.good}/f")
        self.yes(talk, q)
        self.assertEqual("ENOENT\n", talk.finish().out)


if __name__ == "__main__":
    main()
