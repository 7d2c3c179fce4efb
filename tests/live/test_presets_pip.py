#!/usr/bin/env python3
"""`--preset python`: first runs of venv and pip in an empty home, without a network."""

import os
import subprocess

from preset_help import FirstRun
from run_help import both_users, main, needs

PACKAGE = {
    "pkg/pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
                          '[project]\nname = "warder-sample"\nversion = "1.0"\n[project.scripts]\nsample = "sample:main"\n'
                          '[tool.setuptools]\npy-modules = ["sample"]\n',
    "pkg/sample.py": "def main():\n    print('sampled')\n",
}


def has_module(name):
    return subprocess.run(["/usr/bin/python3", "-c", f"import {name}"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


@needs("/usr/bin/python3")
@both_users
class Pip(FirstRun):
    preset = "python"

    def test_venv(self):
        if not has_module("ensurepip"):
            self.skipTest("no ensurepip")
        self.make(PACKAGE)
        self.first_run("python3 -m venv env; . env/bin/activate; python -c 'import sys; assert sys.prefix != sys.base_prefix';"
                       "pip --version; pip list --disable-pip-version-check", timeout=100)

    def test_pip_installs_from_a_directory(self):
        if not has_module("setuptools") or not has_module("pip"):
            self.skipTest("no pip")
        self.make(PACKAGE)
        done = self.first_run("python3 -m venv --system-site-packages --without-pip env; . env/bin/activate;"
                              "python -m pip install -q --no-index --no-build-isolation --disable-pip-version-check ./pkg; sample;"
                              "python -m pip wheel -q --no-index --no-build-isolation --no-deps -w wheels ./pkg; ls wheels;"
                              "python -m pip uninstall -qy warder-sample", timeout=100)
        self.assertIn("sampled", done.out)


if __name__ == "__main__":
    main()
