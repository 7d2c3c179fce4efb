#!/usr/bin/env python3
"""`--preset python`: a first run of python, venv and pip in an empty home."""

import os

from preset_help import FirstRun
from run_help import both_users, main, needs

PACKAGE = {
    "tests/__init__.py": "",
    "tests/test_x.py": "import unittest\nclass X(unittest.TestCase):\n    def test_x(self):\n        self.assertTrue(True)\n",
}


@needs("/usr/bin/python3")
@both_users
class Python(FirstRun):
    preset = "python"

    def setUp(self):
        super().setUp()
        self.env["PYTHONDONTWRITEBYTECODE"] = ""  # caches are written, as for everybody

    def test_unittest_and_caches(self):
        self.make(PACKAGE)
        self.first_run("python3 -m unittest -q; ls tests/__pycache__ | grep pyc")

    def test_cache_prefix(self):
        self.make(PACKAGE)
        self.first_run("PYTHONPYCACHEPREFIX=$PWD/cache python3 -m unittest -q; find cache -name '*.pyc' | grep test_x;"
                       "test ! -e tests/__pycache__; python3 -m compileall -q tests; ls tests/__pycache__")

    def test_the_library(self):
        self.first_run("python3 -c 'import asyncio, concurrent.futures as f, json, multiprocessing, sqlite3, ssl, tempfile, zipfile;"
                       "tempfile.NamedTemporaryFile(); asyncio.run(asyncio.sleep(0)); multiprocessing.Lock();"
                       "print(list(f.ThreadPoolExecutor(2).map(abs, [1, -2])))'; python3 -c 'import site; print(site.getusersitepackages())'")

    def test_passwords_for_pip_stay_closed(self):
        self.write("home/.pypirc", "[pypi]\npassword = secret-token\n")
        self.write("home/.config/pip/pip.conf", "[global]\nindex-url = https://u:secret-token@example.org/\n")
        done = self.run_report("--preset", "python", "--", "bash", "-c",
                               "cat ~/.pypirc; python3 -m pip --version; python3 -c 'import netrc'")
        self.assertNotIn("secret-token", done.out)

    def test_pyenv(self):
        """A python of the home directory, behind pyenv's shims: run, not written to."""
        root = os.path.join(self.home, ".pyenv")
        self.write("home/.pyenv/shims/python3", '#!/usr/bin/env bash\nexec "$(dirname "$0")/../libexec/pyenv" exec python3 "$@"\n', 0o755)
        self.write("home/.pyenv/libexec/pyenv", '#!/usr/bin/env bash\nread -r v < "$PYENV_ROOT/version"\nshift\np=$1; shift\n'
                                                'exec "$PYENV_ROOT/versions/$v/bin/$p" "$@"\n', 0o755)
        self.write("home/.pyenv/version", "3.x\n")
        self.assertStatus(self.native("/usr/bin/python3", "-m", "venv", "--copies", "--without-pip", f"{root}/versions/3.x",
                                      env=self.env))
        self.make(PACKAGE)
        env = {"PATH": f"{root}/shims:{self.env['PATH']}", "PYENV_ROOT": root}
        done = self.first_run("python3 -m unittest -q; python3 -c 'import sys; print(sys.executable)'", env=env)
        self.assertIn(".pyenv/versions", done.out)
        done = self.hold("--preset", "python", "--", "bash", "-c", f"echo x > {root}/shims/evil; echo x >> {root}/versions/3.x/bin/python3",
                         answer=lambda q: {"answer": "deny"}, env={**self.env, **env})
        self.assertEqual([f"{root}/shims/evil", f"{root}/versions/3.x/bin/python3"], [q["path"] for q in done.asked])


if __name__ == "__main__":
    main()
