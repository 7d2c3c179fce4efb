#!/usr/bin/env python3
"""Compilers and package managers, in walls of several kinds: strace is the judge."""

from peer_help import OPEN, Peer, both_users, main, needs

C = """
cd "$PROJECT"; mkdir sub
printf '#include <stdio.h>\\n#include "sub/h.h"\\nint main(void) { puts(H); return f(); }\\n' > a.c
printf '#define H "h"\\nint f(void);\\n' > sub/h.h
printf '#include "%s/o.h"\\nint f(void) { return 0; }\\n' "$OUTSIDE" > b.c
printf 'int f(void) { return 0; }\\n' > c.c
echo > "$OUTSIDE/o.h"
printf 'all: a\\na: a.o c.o\\n\\t$(CC) -o $@ $^\\nb: a.o b.o\\n\\t$(CC) -o $@ $^\\nout: a\\n\\tcp a %s/\\n' "$OUTSIDE" > Makefile
"""
RUST = """
cd "$PROJECT" && mkdir src && printf '[package]\\nname = "x"\\nversion = "0.1.0"\\nedition = "2021"\\n' > Cargo.toml
printf 'fn main() { println!("x"); }\\n' > src/main.rs
"""
NPM = """
cd "$PROJECT" && mkdir dep && printf '{"name":"dep","version":"1.0.0","main":"i.js"}' > dep/package.json
echo 'module.exports = 1' > dep/i.js
printf '{"name":"x","version":"1.0.0","dependencies":{"dep":"file:dep"}}' > package.json
"""
GO = """
cd "$PROJECT" && printf 'module x\\n\\ngo 1.18\\n' > go.mod && printf 'package main\\n\\nfunc main() { println(1) }\\n' > m.go
"""


@both_users
class Build(Peer):
    @needs("gcc")
    def test_gcc(self):
        self.compare([*OPEN, "-w", self.tmp], "gcc -o a a.c c.c && ./a; gcc -c b.c; gcc -c missing.c;"
                     f"gcc -c -o {self.outside}/c.o c.c", C)

    @needs("gcc")
    def test_gcc_without_a_place_for_its_temporary_files(self):
        self.compare(OPEN, "gcc -o a a.c c.c; gcc -pipe -c a.c", C)

    @needs("gcc", "make")
    def test_make(self):
        self.compare([*OPEN, "-w", self.tmp], "make -j2; make -k -j2 b out; ./a", C, output=False)

    @needs("cargo")
    def test_cargo(self):
        self.compare([*OPEN, "-w", self.tmp, "--rule", "allow read,write /dev/urandom"],
                     "cargo build --offline -q; CARGO_HOME=$PWD/c cargo build --offline -q; target/debug/x", RUST)

    @needs("npm")
    def test_npm(self):
        self.compare([*OPEN, "-w", self.tmp],
                     "npm install --offline --no-audit --no-fund; ls node_modules; node -e 'require(\"dep\")'",
                     NPM, output=False)

    @needs("go")
    def test_go(self):
        self.env["GOFLAGS"] = "-p=1"
        self.compare([*OPEN, "-w", self.tmp], "go env GOCACHE; go build; GOCACHE=$PWD/c go list ./...; go vet", GO)


if __name__ == "__main__":
    main()
