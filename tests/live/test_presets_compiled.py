#!/usr/bin/env python3
"""`--preset go|rust|java`: first runs of compiled languages' tools in an empty home."""

import os
import shutil

from preset_help import SYSTEM_PATH, FirstRun
from run_help import both_users, deny, main, needs


def there(*programs):
    return needs(*(f"/usr/bin/{p}" for p in programs))


@there("go")
@both_users
class Go(FirstRun):
    preset = "go"

    def setUp(self):
        super().setUp()
        self.make({"main.go": 'package main\n\nimport "example.org/a/lib"\n\nfunc main() { println(lib.Two()) }\n',
                   "go.mod": "module example.org/a\n\ngo 1.19\n",
                   "lib/lib.go": "package lib\n\nfunc Two() int { return 2 }\n",
                   "lib/lib_test.go": 'package lib\n\nimport "testing"\n\nfunc TestTwo(t *testing.T) { if Two() != 2 { t.Fail() } }\n'})
        self.env["GOTOOLCHAIN"] = "local"

    def test_build_run_vet_and_test(self):
        self.first_run("go version; go env GOCACHE; GOFLAGS=-mod=mod go build -o prog .; ./prog; go vet ./...; go test ./...;"
                       "go run .; go list -m all; gofmt -l .; go mod tidy; go clean -testcache", timeout=200)
        self.assertTrue(os.path.isdir(os.path.join(self.home, ".cache/go-build")))

    def test_the_toolchain_and_its_bin_are_not_written_to(self):
        done = self.hold("--preset", "go", "--", "bash", "-c", "mkdir -p ~/go/bin; echo x > ~/go/bin/evil; go env -w GOFLAGS=-x",
                         answer=deny)
        self.assertTrue(done.asked)
        self.assertFalse(os.path.lexists(os.path.join(self.home, "go/bin/evil")))


class Rust(FirstRun):
    preset = "rust"
    CRATE = {
        "Cargo.toml": '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nlib = { path = "lib" }\n',
        "src/main.rs": 'fn main() { println!("{}", lib::two()); }\n#[test]\nfn adds() { assert_eq!(lib::two(), 2); }\n',
        "lib/Cargo.toml": '[package]\nname = "lib"\nversion = "0.1.0"\nedition = "2021"\n',
        "lib/src/lib.rs": "pub fn two() -> u32 { 2 }\n",
        "build.rs": 'fn main() { println!("cargo:rerun-if-changed=build.rs"); }\n',
    }

    def crate(self, env=None):
        self.make(self.CRATE)
        done = self.first_run("cargo --version; cargo build --offline; cargo run -q --offline; cargo test -q --offline;"
                              "target/debug/sample; cargo check --offline; cargo metadata --offline --format-version 1 >/dev/null;"
                              "cargo clean; cargo new --vcs none other", env=env, timeout=200)
        self.assertIn("2\n2\n", done.out.replace("\r", ""))


@there("cargo", "rustc")
@both_users
class DebiansRust(Rust):
    def test_build_run_and_test(self):
        self.crate()

    def test_credentials_stay_closed(self):
        self.write("home/.cargo/credentials.toml", '[registry]\ntoken = "secret-token"\n')
        self.write("home/.cargo/config.toml", "[net]\noffline = true\n")
        self.make(self.CRATE)
        done = self.run_report("--preset", "rust", "--", "bash", "-euc",
                               "cargo build -q --offline; cat ~/.cargo/credentials.toml || true; mkdir -p ~/.cargo/bin || true")
        self.assertStatus(done)
        self.assertNotIn("secret-token", done.out)
        self.assertFalse(os.path.isdir(os.path.join(self.home, ".cargo/bin")))


def rustup_toolchain():
    """A whole toolchain that rustup put into somebody's home and that we can copy as links; or None."""
    top = os.path.expanduser(os.environ.get("RUSTUP_HOME", "~/.rustup"))
    rustup = os.path.expanduser(os.path.join(os.environ.get("CARGO_HOME", "~/.cargo"), "bin/rustup"))
    try:
        names = os.listdir(os.path.join(top, "toolchains"))
    except OSError:
        return None
    return (rustup, top) if names and os.access(rustup, os.X_OK) else None


class RustupsRust(Rust):
    def test_build_run_and_test(self):
        """As the user who installed it: the toolchain is run, and not written to."""
        found = rustup_toolchain()
        if not found:
            self.skipTest("no rustup")
        rustup, top = found
        for name in ("cargo", "rustc", "rustup"):
            os.makedirs(os.path.join(self.home, ".cargo/bin"), exist_ok=True)
            shutil.copy(rustup, os.path.join(self.home, ".cargo/bin", name))
        env = {"PATH": f"{self.home}/.cargo/bin:{SYSTEM_PATH}", "RUSTUP_HOME": top, "RUSTUP_AUTO_INSTALL": "0"}
        self.crate(env)
        done = self.hold("--preset", "rust", "--", "bash", "-c", f"echo x > ~/.cargo/bin/evil; echo x > {top}/toolchains/evil",
                         answer=deny, env={**self.env, **env})
        self.assertEqual([f"{self.home}/.cargo/bin/evil", f"{top}/toolchains/evil"], [q["path"] for q in done.asked])


@there("java", "javac")
@both_users
class Java(FirstRun):
    preset = "java"

    def test_javac_java_and_jar(self):
        self.make({"A.java": 'class A { public static void main(String[] a) { System.out.println("A"); } }\n'})
        done = self.first_run("javac A.java; java A; jar cfe a.jar A A.class; java -jar a.jar; java A.java", timeout=150)
        self.assertEqual("A\nA\nA\n", done.out)

    @needs("mvn")
    def test_mvn_offline(self):
        self.make({"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>"
                              "<version>1</version><packaging>pom</packaging></project>\n"})
        self.first_run("mvn -q --offline validate; mvn -version", timeout=150)

    @needs("mvn")
    def test_settings_with_passwords_stay_closed(self):
        self.write("home/.m2/settings.xml", "<settings><servers><server><id>s</id><password>secret-token</password></server></servers></settings>\n")
        self.make({"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId>"
                              "<version>1</version><packaging>pom</packaging></project>\n"})
        done = self.run_report("--preset", "java", "--", "bash", "-c", "cat ~/.m2/settings.xml; cat ~/.m2/settings-security.xml")
        self.assertNotIn("secret-token", done.out)


if __name__ == "__main__":
    main()
