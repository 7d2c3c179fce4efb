#!/usr/bin/env python3
"""What installs itself or a program into a home directory, without a network: README's "Run an installer"."""

import os

from preset_help import FirstRun
from run_help import both_users, deny, main, needs

SCRIPT = """#!/bin/sh
set -e
mkdir -p ~/.local/bin ~/.local/share/app
echo data >~/.local/share/app/data
printf '#!/bin/sh\\ncat ~/.local/share/app/data\\n' >~/.local/bin/app
chmod +x ~/.local/bin/app
echo 'PATH=~/.local/bin:$PATH' >>~/.bashrc || echo 'add ~/.local/bin to your PATH'
cat "$NOTES" 2>/dev/null || true
~/.local/bin/app
"""
PYTHON_PACKAGE = {
    "pkg/pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
                          '[project]\nname = "warder-sample"\nversion = "1.0"\n[project.scripts]\nsample = "sample:main"\n'
                          '[tool.setuptools]\npy-modules = ["sample"]\n',
    "pkg/sample.py": "def main():\n    print('sampled')\n",
}


@both_users
class Script(FirstRun):
    """sh ./install.sh with a directory of its own."""

    def setUp(self):
        super().setUp()
        self.make({"install.sh": SCRIPT})
        self.write("home/.bashrc", "# mine\n")
        self.env["NOTES"] = self.write("outside/notes", "noted\n")
        self.local = os.path.join(self.home, ".local")

    def install(self, *options, answer=deny):
        self.asked = []

        def remember(q):
            self.asked.append((os.path.basename(q["path"]), q["sensitive"]))
            return answer(q)
        done = self.hold("-w", self.local, "-x", self.local, *options, "--", "sh", "./install.sh", answer=remember)
        self.assertStatus(done)
        return done

    def test_the_rest_is_asked_about(self):
        os.mkdir(self.local)
        self.own(self.local)
        done = self.install()
        self.assertEqual([(".bashrc", True), ("notes", False)], self.asked)
        self.assertEqual("add ~/.local/bin to your PATH\ndata\n", done.out)
        self.assertEqual("# mine\n", self.read("home/.bashrc"))

    def test_a_directory_that_is_not_there_yet(self):
        done = self.install()
        self.assertIn("data\n", done.out)
        self.assertNotIn(".local", [name for name, _ in self.asked])

    def test_yes_is_not_for_what_is_sensitive(self):
        os.mkdir(self.local)
        self.own(self.local)
        done = self.run_report("-w", self.local, "-x", self.local, "--yes", "--", "sh", "./install.sh")
        self.assertStatus(done)
        self.assertEqual("add ~/.local/bin to your PATH\nnoted\ndata\n", done.out)
        self.assertEqual("# mine\n", self.read("home/.bashrc"))


class Into(FirstRun):
    """An installer with a preset, and ~/.local for what it installs."""

    def setUp(self):
        super().setUp()
        self.local = os.path.join(self.home, ".local")
        os.mkdir(self.local)
        self.own(self.local)

    def into_local(self, script, *options, **more):
        return self.first_run(script, "-w", self.local, "-x", self.local, *options, **more)


@needs("/usr/bin/cargo", "/usr/bin/rustc")
class CargoInstall(Into):
    preset = "rust"

    def test_install(self):
        self.make({"Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n',
                   "src/main.rs": 'fn main() { println!("ran"); }\n'})
        done = self.into_local("cargo install -q --offline --path . --root ~/.local; ~/.local/bin/sample; cargo uninstall -q"
                               " --root ~/.local sample", timeout=100)
        self.assertEqual("ran\n", done.out)


@needs("/usr/bin/go")
class GoInstall(Into):
    preset = "go"

    def test_install(self):
        self.make({"go.mod": "module sample\n", "main.go": 'package main\n\nfunc main() { println("ran") }\n'})
        done = self.into_local("GOFLAGS=-mod=mod GOPROXY=off GOBIN=~/.local/bin go install .; ~/.local/bin/sample", timeout=150)
        self.assertIn("ran\n", done.err)


@needs("node", "npm")
class NpmGlobal(Into):
    preset = "node"

    def test_install(self):
        self.make({"pkg/package.json": '{"name": "sample", "version": "1.0.0", "bin": {"sample": "cli.js"}}\n',
                   "pkg/cli.js": "#!/usr/bin/env node\nconsole.log('ran')\n"})
        done = self.into_local("tar czf sample.tgz --transform s,^pkg,package, pkg;"
                               "npm install -g --silent --no-audit --no-fund --offline --prefix ~/.local ./sample.tgz;"
                               "~/.local/bin/sample")
        self.assertIn("ran\n", done.out)


@needs("/usr/bin/pip3")
class PipUser(Into):
    preset = "python"

    def test_install(self):
        self.make(PYTHON_PACKAGE)
        done = self.into_local("/usr/bin/python3 -m pip install -q --user --break-system-packages --no-index"
                               " --no-build-isolation --disable-pip-version-check --no-warn-script-location ./pkg;"
                               "~/.local/bin/sample", timeout=100)
        self.assertIn("sampled\n", done.out)


@needs("uv")
class Uv(Into):
    preset = "python"

    def test_venv_install_and_run(self):
        self.make(PYTHON_PACKAGE)
        done = self.first_run("uv venv -q --offline --system-site-packages --python /usr/bin/python3 env; . env/bin/activate;"
                              "uv pip install -q --offline --no-build-isolation ./pkg; sample; uv pip list --offline", timeout=100)
        self.assertIn("sampled\n", done.out)


@needs("poetry")
class Poetry(Into):
    preset = "python"

    def test_install_and_run(self):
        self.make({"pyproject.toml": '[tool.poetry]\nname = "sample"\nversion = "1.0"\ndescription = ""\nauthors = []\n'
                                     '[tool.poetry.dependencies]\npython = "*"\n',
                   "sample.py": "print('sampled')\n"})
        # virtualenv's wheels would go into ~/.local/share, from where other projects run them: that is asked about, and
        # poetry does without.
        done = self.hold("--preset", "python", "--", "sh", "-ec", "poetry install -n -q --no-root; poetry run -q python sample.py",
                         answer=deny, timeout=100)
        self.assertStatus(done)
        self.assertIn("sampled\n", done.out)
        self.assertEqual({os.path.join(self.local, "share")}, {q["path"] for q in done.asked})


if __name__ == "__main__":
    main()
