#!/usr/bin/env python3
"""First uses of caches without the preset (row I1): one question a directory, which offers the preset."""

import os
import subprocess

from preset_help import FirstRun
from run_help import both_users, main, needs

GO = {"main.go": "package main\n\nfunc main() { println(2) }\n", "go.mod": "module example.org/a\n\ngo 1.19\n"}
CRATE = {"Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n', "src/main.rs": "fn main() {}\n"}
NODE = {"package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"lib": "file:lib"}}\n',
        "lib/package.json": '{"name": "lib", "version": "1.0.0"}\n'}
PACKAGE = {"sample-1.0/pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
                                        '[project]\nname = "sample"\nversion = "1.0"\n[tool.setuptools]\n'
                                        'py-modules = ["sample"]\n',
           "sample-1.0/sample.py": ""}
POM = {"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>"
                  "<version>1</version><packaging>pom</packaging></project>\n"}


def has_module(name):
    return subprocess.run(["/usr/bin/python3", "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


@both_users
class FirstUse(FirstRun):
    def preset_offered(self, q):
        return [s["path"] for s in q["scopes"] if s["kind"] == "preset"]

    def use_preset(self, q):
        kinds = [s["kind"] for s in q["scopes"]]
        scope = kinds.index("preset") if "preset" in kinds else 0
        return {"answer": "allow", "scope": scope, "lifetime": "session"}

    def directories(self, q):
        """Yes to the directory with whole letters, as a person would who knows the tool."""
        letters = [i for i, s in enumerate(q["scopes"]) if s["kind"] == "tree" and "write" in s["access"] and "list" in s["access"]]
        trees = letters or [i for i, s in enumerate(q["scopes"]) if s["kind"] == "tree"] or [0]
        return {"answer": "allow", "scope": trees[0], "lifetime": "session"}

    def check(self, preset, command, files, most, env=None, first=False):
        """The command works after at most `most` questions; one answer that takes the preset is enough."""
        self.make(files)
        env = {**self.env, **(env or {})}
        done = self.hold("--", "bash", "-c", command, answer=self.use_preset, env=env, timeout=100)
        self.assertStatus(done)
        self.assertEqual(1, done.report["runs"], done)
        offered = [self.preset_offered(q) for q in done.asked]
        self.assertIn([preset], offered, done)
        after = offered[offered.index([preset]) + 1:]
        self.assertEqual([], after, done)  # nothing after the preset was taken
        if first:
            self.assertEqual([preset], offered[0], done)
        for path in (".cache", ".npm", ".cargo", "go", ".m2", ".config"):
            self.native("rm", "-rf", "--", os.path.join(self.home, path))
        done = self.hold("--", "bash", "-c", command, answer=self.directories, env=env, timeout=100)
        self.assertStatus(done)
        self.assertLessEqual(len(done.asked), most, [(q["path"], q["access"]) for q in done.asked])
        for q in done.asked:
            for scope in q["scopes"]:
                self.assertNotEqual((self.home, "tree"), (scope["path"], scope["kind"]))

    def test_one_answer_is_enough(self):
        """In an empty home, with what a person has there at least: one run, and one question if any."""
        self.write("home/.gitconfig", "[user]\nname = a\nemail = a@example.org\n")
        commands = {"git init -q . && echo x > f && git add f && git commit -qm x && git log -1 --format=%an": 1,
                    "/usr/bin/python3 -m venv v && v/bin/python -c 'print(6 * 7)'": 0}
        for command, most in commands.items():
            with self.subTest(command):
                done = self.hold("--", "bash", "-c", command, timeout=100, env={**self.env, "PATH": "/usr/bin:/bin"},
                                 answer=lambda q: {"answer": "allow", "scope": 0, "lifetime": "session"})
                self.assertStatus(done)
                self.assertEqual(1, done.report["runs"], done)
                self.assertLessEqual(len(done.asked), most, done)

    def test_a_preset_for_always_is_saved(self):
        self.write("home/.npm/x", "x\n")
        def answer(q):
            kinds = [s["kind"] for s in q["scopes"]]
            return {"answer": "allow", "scope": kinds.index("preset"), "lifetime": "always"}
        done = self.hold("--", "bash", "-c", "cat ~/.npm/x", answer=answer)
        self.assertStatus(done)
        self.assertEqual(1, len(done.asked))
        self.first_run("cat ~/.npm/x; echo y > ~/.npm/y")

    @needs("/usr/bin/go")
    def test_case_I1_go(self):
        # Its cache; and since 1.23 it counts what it does, below ~/.config.
        counts = subprocess.run(["/usr/bin/go", "help", "telemetry"], capture_output=True, check=False).returncode == 0
        self.check("go", "go build -o prog . && ./prog", GO, 1 + counts, {"GOFLAGS": "-mod=mod"})

    @needs("/usr/bin/cargo")
    def test_case_I1_cargo(self):
        self.check("rust", "cargo build -q --offline", CRATE, 1, first=True)

    @needs("npm")
    def test_case_I1_npm(self):
        self.check("node", "npm install --no-audit --no-fund", NODE, 1, first=True)

    @needs("/usr/bin/python3")
    def test_case_I1_pip(self):
        if not all(has_module(name) for name in ("pip", "setuptools", "wheel")):
            self.skipTest("no pip")
        self.check("python", "/usr/bin/python3 -m venv --system-site-packages --without-pip env && tar czf sample-1.0.tar.gz "
                             "sample-1.0 && env/bin/python -m pip install -q --no-index --no-build-isolation --find-links . sample",
                   PACKAGE, 2)

    @needs("mvn")
    def test_case_I1_mvn(self):
        self.check("java", "mvn -q --offline validate", POM, 4, {"MAVEN_OPTS": f"-Duser.home={self.home}"})


if __name__ == "__main__":
    main()
