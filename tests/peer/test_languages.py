#!/usr/bin/env python3
"""Shells and interpreters, in walls of several kinds: strace is the judge."""

from peer_help import OPEN, SYSTEM, TREE, Peer, both_users, main, needs

JOBS = r"""
set -m
sleep 0.2 & sleep 0.2 & jobs >/dev/null
(cat "$1/o"; echo x > "$1/new") & wait %3
{ echo a | cat > a; } & fg >/dev/null 2>&1
for f in "$1"/*; do [ -e "$f" ] && . "$f"; done
cd "$1" 2>&1 && ls . ; pushd d >/dev/null && cat f; cd e && cat < g
exec 3< ../f; exec 4> ../h
kill %1; wait
"""
PERL = r"""
my $o = shift;
for my $f ("$o/o", "$o/none", "./here") { open(my $h, "<", $f) or print "$f: $!\n" }
open(my $h, "+<", "$o/o") or print "rw: $!\n"; open($h, ">>", "$o/o") or print "append: $!\n";
opendir(my $d, $o) or print "dir: $!\n";
mkdir "$o/n" or print "mkdir: $!\n"; mkdir "n" or print "here: $!\n";
rename "here", "there" or print "rename: $!\n"; rename "there", "$o/there" or print "out: $!\n";
rename "$o/o", "in" or print "in: $!\n"; link "there", "$o/l" or print "link: $!\n";
symlink "x", "$o/s" or print "symlink: $!\n"; unlink "$o/o" or print "unlink: $!\n";
rmdir "$o/empty" or print "rmdir: $!\n"; truncate "$o/o", 0 or print "truncate: $!\n";
chdir "$o/d" or print "chdir: $!\n"; open($h, "<", "f") or print "relative: $!\n";
open($h, "<", "../o") or print "up: $!\n"; unlink "e/g" or print "unlink: $!\n";
exec "$o/run" or print "exec: $!\n";
"""


@both_users
class Languages(Peer):
    def test_bash_with_jobs(self):
        self.write("jobs", JOBS)
        self.compare([*OPEN, "-r", self.dir + "/jobs"], f"exec bash {self.dir}/jobs {self.outside}", TREE, output=False)

    @needs("perl")
    def test_perl(self):
        self.write("p.pl", PERL)
        self.compare([*OPEN, "-r", self.dir + "/p.pl"], f"exec perl {self.dir}/p.pl {self.outside}",
                     TREE + "mkdir $OUTSIDE/empty; echo > $PROJECT/here; printf '#!/bin/sh\\n' > $OUTSIDE/run; chmod 755 $OUTSIDE/run")

    @needs("/usr/bin/python3")
    def test_venv(self):
        self.compare([*OPEN, "-w", self.tmp], "/usr/bin/python3 -m venv --without-pip v; v/bin/python -c 'import json, ssl';"
                     f"/usr/bin/python3 -m venv --without-pip {self.outside}/v; cd {self.outside}; /usr/bin/python3 -c 'import o'", TREE)

    def test_everything_shut(self):
        self.compare(SYSTEM, "ls; cat tree/a/one; ls tree; bash -c 'echo x > y'; find . ; mktemp; cp tree/a/one z", TREE)


if __name__ == "__main__":
    main()
