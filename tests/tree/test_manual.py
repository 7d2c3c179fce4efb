"""The manual's pages are whole: every subcommand is in warder(1), and scdoc takes what man.py makes."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
WARDER = os.environ["WARDER"]
PAGES = [("warder", "1", ["man/warder.md"]), ("warder-policy", "5", ["policy.md", "accesses.md"]),
         ("warder-trace", "5", ["traces.md", "trace-fields.md"]), ("libwarder", "3", ["man/libwarder.md"])]


def page(name, section, files):
    return subprocess.run([sys.executable, ROOT / "cmake/man.py", name, section, "title", WARDER,
                           *[ROOT / "docs" / f for f in files]],
                          check=True, capture_output=True, text=True, timeout=60).stdout


class Manual(unittest.TestCase):
    def test_every_subcommand_and_option_is_there(self):
        text = page(*PAGES[0])
        listed = subprocess.run([WARDER, "complete", "1", "warder"], check=True, capture_output=True,
                                text=True, timeout=60).stdout
        for name in [line.split("\t")[0] for line in listed.splitlines()]:
            if name.startswith("-"):
                continue
            self.assertIn(f"# WARDER {name.upper()}\n", text)
            options = subprocess.run([WARDER, "complete", "2", "warder", name, "--"], check=True,
                                     capture_output=True, text=True, timeout=60).stdout
            for option in [line.split("\t")[0] for line in options.splitlines()]:
                self.assertIn(option, text.replace("\\", ""), name)

    @unittest.skipUnless(shutil.which("scdoc"), "scdoc is not installed")
    def test_scdoc_takes_them(self):
        for name, section, files in PAGES:
            done = subprocess.run(["scdoc"], input=page(name, section, files), capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)
            self.assertIn(".SH NAME", done.stdout)

    def test_the_header_is_whole_in_libwarder(self):
        text = page(*PAGES[-1])
        for line in (ROOT / "supervisor/warder.h").read_text().splitlines():
            self.assertIn(line.replace("\\", "\\\\"), text)


if __name__ == "__main__":
    unittest.main()
