#!/usr/bin/env python3
"""Real programs behave as without warder: the same output, status and files; nothing is asked."""

import os
import shutil

from run_help import RunCase, both_users, deny, main, needs


@both_users
class Programs(RunCase):
    def tree(self):
        """Names, modes and contents of the project, but for git's own times and our TMP names."""
        found = {}
        for top, dirs, files in os.walk(self.project):
            for name in dirs + files:
                path = os.path.join(top, name)
                rel = os.path.relpath(path, self.project)
                if rel.startswith(".git/") or "/.git/" in rel:
                    continue
                st = os.lstat(path)
                what = ""
                if os.path.islink(path):
                    what = os.readlink(path)
                elif os.path.isfile(path):
                    with open(path, "rb") as f:
                        what = f.read()
                found[rel] = (oct(st.st_mode), what)
        return found

    def empty(self):
        shutil.rmtree(self.project)
        os.mkdir(self.project)
        self.own(self.project)

    def assertSame(self, script, *options, fill=None, timeout=60):
        """The script with bash, natively and under warder, from the same start."""
        runs = []
        for run in (lambda: self.native("bash", "-c", script, timeout=timeout),
                    lambda: self.hold(*options, "--", "bash", "-c", script, answer=deny, timeout=timeout)):
            self.empty()
            if fill:
                fill()
            runs.append((run(), self.tree()))
        (native, before), (ours, after) = runs
        self.assertEqual((native.status, native.out, native.err), (ours.status, ours.out, ours.err), ours)
        self.assertEqual(before, after)
        self.assertNothingAsked(ours)
        self.assertEqual([], ours.denials(verdict="sandbox"), ours)
        self.assertStatus(native)
        return ours

    def sources(self):
        self.write("project/main.c", '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%d\\n", twice(21)); return 3; }\n')
        self.write("project/twice.c", "int twice(int n) { return 2 * n; }\n")
        self.write("project/Makefile", "prog: main.o twice.o\n\tcc -o $@ $^\n%.o: %.c\n\tcc -c $<\nclean:\n\trm -f prog *.o\n")

    @needs("gcc")
    def test_gcc_and_what_it_made(self):
        self.assertSame("gcc -O1 -o prog main.c twice.c && ./prog; [ $? = 3 ]", fill=self.sources)

    @needs("make", "cc")
    def test_make(self):
        self.assertSame("make -j4 >/dev/null && ./prog; make -q prog && touch twice.c && ! make -q prog; make clean && ls", fill=self.sources)

    def test_python(self):
        self.write("home/x", "")
        self.assertSame("/usr/bin/python3 -c 'import json, subprocess, tempfile, os, sqlite3\n"
                        "with tempfile.NamedTemporaryFile() as f: f.write(b\"x\")\n"
                        "print(json.dumps(subprocess.check_output([\"echo\", \"hi\"]).decode()))\n"
                        "os.makedirs(\"a/b\"); os.replace(\"a/b\", \"a/c\"); open(\"a/c/d\", \"x\").write(\"y\")'")

    @needs("node")
    def test_node(self):
        self.assertSame("node -e 'const fs = require(\"fs\"); fs.mkdirSync(\"d/e\", {recursive: true}); "
                        "fs.writeFileSync(\"d/e/f\", \"x\"); fs.readdir(\"d\", (e, l) => console.log(l)); "
                        "require(\"child_process\").exec(\"echo sub\", (e, o) => console.log(o))'", "--preset", "node")

    @needs("npm")
    def test_npm(self):
        done = self.hold("--preset", "node", "--", "npm", "--version", answer=deny)
        self.assertStatus(done)
        self.assertRegex(done.out, r"^\d+\.\d+\.\d+\n$")

    @needs("git")
    def test_git(self):
        self.write("home/.gitconfig", "[user]\n\tname = N\n\temail = n@example.org\n[init]\n\tdefaultBranch = main\n")
        self.assertSame("git init -q . && echo one > a && mkdir d && echo two > d/b && git add . && git commit -q -m first && "
                        "git mv a c && git commit -qam second && git rev-list --count HEAD && git status --short && "
                        "git diff HEAD~ --stat && git grep -n two && git gc -q && git fsck && git log --format=%an", "--preset", "git")

    @needs("git")
    def test_git_in_a_repository_that_is_there(self):
        self.write("home/.gitconfig", "[user]\n\tname = N\n\temail = n@example.org\n")
        def fill():
            self.assertStatus(self.native("bash", "-c", "git init -q . && echo x > a && git add a && git commit -qm m"))
        self.assertSame("echo y >> a && git commit -qam n && git checkout -q -b b && git stash -q; "
                        "git tag v1 && git reset -q --hard HEAD~ && git rev-list --count --all", "--preset", "git", fill=fill)

    @needs("git")
    def test_git_clone_of_a_local_repository(self):
        source = os.path.join(self.dir, "source")
        os.mkdir(source)
        self.own(source)
        self.write("home/.gitconfig", "[user]\n\tname = N\n\temail = n@example.org\n")
        self.assertStatus(self.native("bash", "-c", "git init -q . && echo x > a && git add a && git commit -qm m", cwd=source))
        for how in ("", "--no-hardlinks", "--bare"):
            with self.subTest(how):
                self.empty()
                done = self.hold("--preset", "git", "-r", source, "--", "git", "clone", "-q", *how.split(), source, "copy", answer=deny)
                self.assertStatus(done)
                # A hard link would carry what may only be read to where it may be written: git copies then.
                self.assertLessEqual({q["call"] for q in done.asked}, set() if how == "--no-hardlinks" else {"link", "linkat"})
                self.assertLessEqual(len(done.asked), 1)
                check = self.native("git", "-C", "copy", "log", "--format=%s")
                self.assertEqual("m\n", check.out)
                self.assertStatus(self.native("git", "-C", "copy", "fsck", "--strict"))

    def test_files(self):
        def fill():
            for i in range(20):
                self.write(f"project/in/d{i % 4}/f{i}", f"line {i}\nneedle\n" if i % 3 == 0 else f"line {i}\n", 0o640 + i % 2)
        self.assertSame("sed -i 's/line/LINE/' in/d1/* && grep -r needle in | sort && find in -name 'f1*' | sort &&"
                        "cp -a in copy && tar cf a.tar in && mkdir out && tar xpf a.tar -C out && rm a.tar && diff -r in out/in &&"
                        "mv copy/d1 copy/moved && mv copy other && ln -s other link && ln other/d2/f2 hard && chmod 600 hard &&"
                        "touch -d 2020-01-01 hard && find in -type f -exec cat {} + | sort -o all -R --random-source=/dev/zero &&"
                        "sort -o all all && split -l 5 all part. && rm -r out && du -s --apparent-size in > /dev/null && "
                        "cat part.* | wc -l && install -m 755 all bin && mktemp -p . -u x.XXX > /dev/null && truncate -s 10 hard", fill=fill)

    def test_heredocs_and_pipes(self):
        big = "x" * 70000
        self.assertSame(f"cat <<END; wc -c <<END\nhere $((1+1))\nEND\n{big}\nEND\ncat <(echo a) <(echo b) | tee t | tac; "
                        "cat <<< word; exec 5<>file; echo five >&5; exec 5>&-; cat file; "
                        "mkfifo p; echo fifo > p & cat p; wait")

    @needs("zsh")
    def test_zsh(self):
        self.assertSame("zsh -f -c 'cat <<END\nhere\nEND\ndiff =(echo a) =(echo a) && echo *(N) > list'")

    @needs("sqlite3")
    def test_sqlite(self):
        self.assertSame("sqlite3 d.db 'pragma journal_mode=wal; create table t(a); insert into t values (1),(2); "
                        "select sum(a) from t;' && sqlite3 d.db 'vacuum; select count(*) from t' && rm d.db*")

    @needs("go")
    def test_go(self):
        self.write("project/x", "")
        done = self.hold("--", "go", "version", answer=deny)
        self.assertStatus(done)
        self.assertIn("go version", done.out)

    def test_the_users_names_are_known(self):
        done = self.assertSame("id -un && ls -ld . | cut -d' ' -f3 && date +%Y > /dev/null && getent hosts localhost | head -c 0")
        self.assertQuiet(done)


if __name__ == "__main__":
    main()
