"""
Every block of README.md and docs/ that is marked to be run, ```sh run, is run as it is printed: as both
users, in a fresh project and home, with warder in PATH. DOCS is the docs folder.
"""

import os
import pathlib
import re
import shutil
import unittest

from run_help import WARDER, RunCase, both_users, main

ROOT = pathlib.Path(os.environ["SOURCE_DIR"])
BLOCK = re.compile(r"^```sh run\n(.*?)^```$", re.M | re.S)


def blocks():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for n, text in enumerate(BLOCK.findall(page.read_text()), 1):
            yield f"{page.stem}_{n}", text


@both_users
class Printed(RunCase):
    def run_block(self, text):
        path = os.path.join(self.dir, "path")
        os.mkdir(path)
        os.symlink(WARDER, os.path.join(path, "warder"))
        docs = os.path.join(self.dir, "docs")  # a copy: the sources may be where this user can't go
        shutil.copytree(ROOT / "docs", docs)
        env = dict(self.env, PATH=f"{path}:{self.env['PATH']}", DOCS=docs, CI="true")
        done = self.native("sh", "-eu", "-c", text, env=env, timeout=60)
        self.assertStatus(done)


def add(name, text):
    setattr(Printed, f"test_{name}", lambda self: self.run_block(text))


for block in blocks():
    add(*block)


class Marks(unittest.TestCase):
    def test_there_are_blocks_to_run(self):
        self.assertGreater(len(list(blocks())), 2)


if __name__ == "__main__":
    main()
