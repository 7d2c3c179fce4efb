#!/usr/bin/env python3
"""`--preset rust`: first runs in an empty home, of the distribution's cargo and of rustup's."""

import os
import shutil

from preset_help import SYSTEM_PATH, FirstRun
from run_help import both_users, deny, main, needs


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
        self.assertEqual(2, done.out.split("\n").count("2"), done)


@needs("/usr/bin/cargo", "/usr/bin/rustc")
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


if __name__ == "__main__":
    main()
