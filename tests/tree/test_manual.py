"""The manual's pages are whole: every subcommand is in warder(1), and scdoc takes what man.py makes."""

import os
import pathlib
import re
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
        """Its lines are broken anew: word by word, its code in the same order."""
        comment = re.compile(r"/\*.*?\*/", re.S)
        header = (ROOT / "supervisor/warder.h").read_text()
        text = page(*PAGES[-1]).replace("\\\\", "\\")
        self.assertIn("".join(comment.sub("", header).split()), "".join(comment.sub("", text).split()))
        words = "".join(text.replace("*", "").split())
        for one in comment.findall(header):
            self.assertIn("".join(one.strip("/*").replace("*", "").split()), words)

    def test_no_line_of_code_is_too_wide(self):
        """Of 80 columns man takes 7 for its indentation, scdoc 4 for that of code."""
        for name, section, files in PAGES:
            lines, inside = [], False
            for line in page(name, section, files).splitlines():
                if line == "```":
                    inside = not inside
                elif inside and len(line.replace("\\\\", "\\")) > 69:
                    lines.append(line)
            self.assertEqual([], lines, name)

    @unittest.skipUnless(shutil.which("scdoc") and shutil.which("groff"), "scdoc or groff is not installed")
    def test_80_columns_are_enough(self):
        for name, section, files in PAGES:
            roff = subprocess.run(["scdoc"], input=page(name, section, files), check=True, capture_output=True,
                                  text=True, timeout=60).stdout
            done = subprocess.run(["groff", "-t", "-man", "-Tutf8", "-rLL=78n", "-P-cbou"], input=roff, check=True,
                                  capture_output=True, text=True, encoding="utf-8", timeout=60)
            shown = done.stdout
            # groff 1.23 says of a table's cell with one word that its line can't be spread: it need not be.
            faults = [line for line in done.stderr.splitlines() if not line.endswith("cannot adjust line")]
            self.assertEqual([], faults, name)
            self.assertGreater(shown.count("\n"), 100)
            self.assertEqual([], [line for line in shown.splitlines() if len(line.expandtabs()) > 80], name)


if __name__ == "__main__":
    unittest.main()
