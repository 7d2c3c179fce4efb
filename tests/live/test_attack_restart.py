#!/usr/bin/env python3
"""What one run leaves behind does not open more to the next."""

import os

from run_help import WARDER, RunCase, both_users, main


@both_users
class Restart(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/secret", "SECRET\n")
        self.cache = os.path.join(self.home, ".cache/pip")
        self.write("home/.cache/pip/file", "x\n")
        self.write("home/mail", "MAIL\n")

    def shell(self, *args):
        return self.run_report(*args[:-1], "--", "sh", "-c", args[-1] + "; true")

    def test_no_symlink_where_a_rule_begins(self):
        ways = {
            "symlink": f"rm -rf {self.cache}; ln -s {self.home} {self.cache}",
            "rename": f"rm -rf {self.cache}; ln -s {self.home} l; mv -T l {self.cache}",
            "link": f"rm -rf {self.cache}; ln -s {self.home} l; ln -P l {self.cache}",
            "exchange": f"ln -s {self.home} l; python3 -c 'import ctypes;"
                        f"ctypes.CDLL(None).renameat2(-100,b\"l\",-100,b\"{self.cache}\",2)'",
        }
        for way, commands in ways.items():
            with self.subTest(way):
                self.shell("--preset", "python", "-w", self.cache, commands)
                self.assertFalse(os.path.islink(self.cache))
                done = self.shell("--preset", "python", f"cat {self.home}/mail 2>&1")
                self.assertNotIn("MAIL", done.out, done)

    def test_the_directory_can_be_made_anew(self):
        done = self.shell("--preset", "python",
                          f"rm -rf {self.cache}; mkdir {self.cache} && echo y > {self.cache}/f")
        self.assertEqual("y\n", self.read(os.path.join(self.cache, "f")), done)

    def test_a_symlink_in_the_project_does_not_lead_a_rule(self):
        self.shell(f"ln -s {self.outside} data")
        self.assertTrue(os.path.islink(os.path.join(self.project, "data")))
        for args in (["-r", "./data"], ["-w", "data"], ["--rule", "allow rw ./data"],
                     ["-r", "data/secret"], ["--rule", "allow r ./data/*"]):
            with self.subTest(args):
                done = self.shell(*args, "cat data/secret 2>&1; echo x > data/new")
                self.assertNotIn("SECRET", done.out, done)
                self.assertIn("left out", done.err, done)
                self.assertEqual(["secret"], os.listdir(self.outside))

    def test_nor_through_another_symlink(self):
        self.shell(f"ln -s {self.outside} inner")
        outer = os.path.join(self.dir, "outer")
        os.symlink(os.path.join(self.project, "inner"), outer)
        done = self.shell("-r", outer, "cat inner/secret 2>&1")
        self.assertNotIn("SECRET", done.out, done)

    def test_the_users_own_symlink_leads(self):
        link = os.path.join(self.dir, "link")
        os.symlink(self.outside, link)
        done = self.shell("-r", link, f"cat {link}/secret")
        self.assertEqual("SECRET\n", done.out, done)

    def test_a_saved_rule_in_the_project(self):
        self.write("project/data/file", "x\n")
        self.assertStatus(self.native(WARDER, "policy", "allow", "rw", "data"))
        self.shell(f"rm -rf data; ln -s {self.outside} data")
        done = self.shell("cat data/secret 2>&1; echo x > data/new")
        self.assertNotIn("SECRET", done.out, done)
        self.assertEqual(["secret"], os.listdir(self.outside))


if __name__ == "__main__":
    main()
