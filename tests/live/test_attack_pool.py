#!/usr/bin/env python3
"""The spare directories that lie ready are no way from one run, or project, to another."""

import glob
import os

from run_help import RunCase, both_users, main


@both_users
class Pool(RunCase):
    def setUp(self):
        super().setUp()
        self.other = self.own_dir("other")
        self.write("project/secret", "SECRET\n")
        for project in ("project", "other"):  # without exceptions there are none
            self.write(f"{project}/.git/config")
            self.write(f"{project}/.git/HEAD", "ref: refs/heads/main\n")
            for name in ("objects", "refs", "hooks"):
                self.own_dir(f"{project}/.git/{name}")
        self.write("other/README", "x\n")

    def own_dir(self, name):
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        return self.own(path)

    def spare(self):
        """As a command could learn it: inotify tells what is opened in our state directory."""
        found = glob.glob(os.path.join(self.dir, "state/warder/.warder-pool-*/0"))
        self.assertTrue(found, "no spare lies ready")
        return found[0]

    def test_what_is_put_into_a_spare_is_not_there_in_the_next_run(self):
        self.assertStatus(self.run_report("--", "true"))
        spare = self.spare()
        ways = {
            "a file": f"cp secret {spare}/s",
            "a hard link": f"ln secret {spare}/s",
            "a directory": f"mkdir -p {spare}/d/e && cp secret {spare}/d/e/s",
            "a moved one": f"mkdir m; cp secret m/s; mv m {spare}/d",
            "a shut one": f"mkdir -p {spare}/d; cp secret {spare}/d/s; chmod 0 {spare}/d",
        }
        for way, commands in ways.items():
            with self.subTest(way):
                self.run_report("--", "sh", "-c", commands)
                done = self.run_report("--", "sh", "-c", f"find {spare} -type f -exec cat {{}} +",
                                       cwd=self.other)
                self.assertNotIn("SECRET", done.out, done)
                self.assertEqual([], os.listdir(spare) if os.path.isdir(spare) else [])
        self.assertEqual("SECRET\n", self.read("project/secret"))


if __name__ == "__main__":
    main()
