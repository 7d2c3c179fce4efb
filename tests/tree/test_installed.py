"""What README and docs/ link to is there where they are read: in the sources, and where a package puts them."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ["WARDER"]).resolve().parents[1]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)|(?:src|srcset|href)=\"([^\"#]+)\"")


def dead_links(root):
    pages = [*root.glob("*.md"), *(root / "docs").rglob("*.md")]
    for page in pages:
        for link in map("".join, LINK.findall(page.read_text(encoding="utf-8"))):
            if not re.match(r"[a-z]+:", link) and not (page.parent / link).exists():
                yield f"{page.relative_to(root)}: {link}"


class Links(unittest.TestCase):
    def test_in_the_sources(self):
        self.assertEqual([], list(dead_links(ROOT)))

    @unittest.skipUnless(shutil.which("cmake") and (BUILD / "cmake_install.cmake").exists(), "it was not built here")
    def test_where_it_is_installed(self):
        folder = tempfile.mkdtemp(prefix="warder-installed-")
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run(["cmake", "--install", BUILD, "--component", "program", "--prefix", folder], check=True,
                       capture_output=True, text=True, timeout=60)
        page, = pathlib.Path(folder).rglob("README.md")
        self.assertEqual([], list(dead_links(page.parent)))
        self.assertGreater(len(list(page.parent.rglob("*.md"))), 15)


@unittest.skipUnless(shutil.which("cmake") and shutil.which("pkg-config") and (BUILD / "cmake_install.cmake").exists(),
                     "it was not built here, or there is no pkg-config")
class PkgConfig(unittest.TestCase):
    def test_its_directories_are_where_it_lies(self):
        """Wherever it is installed, and wherever that is moved to."""
        folder = os.path.realpath(tempfile.mkdtemp(prefix="warder-installed-"))
        self.addCleanup(shutil.rmtree, folder)
        subprocess.run(["cmake", "--install", BUILD, "--component", "development", "--prefix", f"{folder}/first"],
                       check=True, capture_output=True, text=True, timeout=60)
        os.rename(f"{folder}/first", f"{folder}/moved")
        (pc,) = pathlib.Path(folder).rglob("warder.pc")
        env = {"PATH": os.environ["PATH"], "PKG_CONFIG_PATH": str(pc.parent)}
        for variable, file in (("libdir", "libwarder.a"), ("includedir", "warder.h")):
            said = subprocess.run(["pkg-config", f"--variable={variable}", "warder"], env=env, check=True, timeout=20,
                                  capture_output=True, text=True).stdout.strip()
            self.assertTrue(os.path.exists(os.path.join(said, file)), (variable, said))
            self.assertTrue(os.path.realpath(said).startswith(f"{folder}/moved/"), said)


if __name__ == "__main__":
    unittest.main()
