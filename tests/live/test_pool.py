#!/usr/bin/env python3
"""Directories made in a project with exceptions: what is done below them is native, and is as mkdir's."""

import glob
import os
import shutil
import signal
import stat
import subprocess
import unittest

from run_help import WARDER, RunCase, both_users, main, needs, wait_until

SPARES = 12


class PoolCase(RunCase):
    """A project with a repository: its hooks and configuration are protected."""

    def setUp(self):
        super().setUp()
        self.write("project/.git/HEAD", "ref: refs/heads/x\n")
        self.write("project/.git/config", "[core]\n")
        self.write("project/.git/hooks/pre-commit.sample", "")
        for name in ("objects", "refs"):
            self.mkdir(f"project/.git/{name}")

    def mkdir(self, name, mode=0o755):
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        self.own(path)
        os.chmod(path, mode)
        return path

    def sh(self, script, *args, **more):
        done = self.run_report(*args, "--", "sh", "-c", script, **more)
        self.assertStatus(done)
        return done

    def brokered(self, done):
        return done.report["engine"]["brokered"]

    def pools(self):
        return glob.glob(f"{self.dir}/**/.warder-pool-*", recursive=True, include_hidden=True)

    def is_like_native(self, script, pooled, prepare=lambda: None):
        """The same directories with the same modes and owners as without warder; so many are the pool's."""
        told = []
        prepare()
        for run in (self.native, self.run_report):
            args = ("sh", "-c", script)
            done = run(*(args if run == self.native else ("--", *args)))
            self.assertStatus(done)
            names = sorted(set(os.listdir(self.project)) - {".git"})
            now = [os.stat(f"{self.project}/{n}") for n in names]
            told.append([(n, oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink) for n, s in zip(names, now)])
            # Below one of the pool's all is native.
            below = [n for n, s in zip(names, now) if s.st_mode & 0o300 == 0o300]
            for name in names:
                os.rmdir(f"{self.project}/{name}")
        self.assertEqual(*told)
        self.assertEqual(len(names), self.brokered(done), done)
        done = self.sh(script + "".join(f"; mkdir {n}/x" for n in below))
        self.assertEqual(len(names) + len(below) - pooled, self.brokered(done), done)
        return done

@both_users
class Pool(PoolCase):
    def test_all_below_a_new_directory_is_native(self):
        done = self.sh("mkdir build && cd build && for i in 1 2 3 4 5 6 7 8; do mkdir d$i && echo x > d$i/f &&"
                       " mv d$i/f d$i/g && ln d$i/g d$i/h && rm d$i/g; done && cat d8/h && rm -r d1")
        self.assertEqual("x\n", done.out)
        self.assertEqual(1, self.brokered(done), done)
        self.assertEqual([], done.report["denials"])

    def test_programs_made_there_run_natively(self):
        done = self.sh("mkdir out && cp /bin/true out/prog && out/prog && out/prog")
        self.assertEqual(1, self.brokered(done), done)

    def test_when_they_run_out_the_rest_is_made_all_the_same(self):
        done = self.sh(f"for i in $(seq {SPARES + 3}); do mkdir d$i && echo x > d$i/f || exit 1; done")
        self.assertEqual(SPARES + 3 + 3, self.brokered(done), done)
        self.assertEqual(SPARES + 3, len(glob.glob(f"{self.project}/d*/f")))

    def test_nothing_of_it_is_to_be_seen(self):
        done = self.sh("mkdir build; ls -A . ..; ls -A build")
        self.assertEqual(sorted([".git", "build"]), [n for n in sorted(done.out.split()) if n in (".git", "build")])
        self.assertNotIn("pool", done.out)
        self.assertEqual([], os.listdir(f"{self.project}/build"))

    def while_it_runs(self, *args, script="true"):
        """The pools there are while a command runs, and what it says afterwards."""
        p = self.start([WARDER, "run", *args, "--", "sh", "-c", f"echo ready; read x; {script}"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(b"ready\n", p.stdout.readline())
        pools = self.pools()
        out, _ = p.communicate(b"\n", timeout=30)
        return pools, out.decode()

    def test_out_of_reach(self):
        pools, out = self.while_it_runs("--rule", f"allow rwx {self.dir}/state",
                                        script="cd ../state/warder; ls -A; ls -d .warder-pool*")
        [pool] = pools
        self.assertEqual(SPARES, len(os.listdir(pool)))
        self.assertEqual(0o700, stat.S_IMODE(os.stat(pool).st_mode))
        self.assertNotIn("pool-", out)

    def test_what_was_not_used_serves_the_next(self):
        self.sh("mkdir build")
        [pool] = self.pools()
        left = {os.stat(f"{pool}/{n}").st_ino for n in os.listdir(pool)}
        self.assertEqual(SPARES - 1, len(left))
        done = self.sh(f"for i in $(seq {SPARES}); do mkdir d$i && echo x > d$i/f || exit 1; done")
        self.assertEqual(SPARES, self.brokered(done), done)
        self.assertLess(left, {os.stat(d).st_ino for d in glob.glob(f"{self.project}/d*")})
        self.assertEqual(([pool], []), (self.pools(), os.listdir(pool)))

    def test_what_lies_in_one_does_not_appear(self):
        self.sh("true")
        [pool] = self.pools()
        for name in os.listdir(pool):
            self.write(f"{pool}/{name}/planted", "x")
        done = self.sh("mkdir build; ls build")
        self.assertEqual("", done.out)

    def test_beside_the_project_it_is_gone_at_the_end(self):
        """Where the state directory is on another mount."""
        if os.getuid():
            self.skipTest("only root mounts")
        self.mkdir("mnt")
        become = "" if self.uid == 0 else f"setpriv --reuid {self.uid} --regid {self.uid} --clear-groups"
        script = (f"mount -t tmpfs -o mode=777 none {self.dir}/mnt; cp -a {self.project} {self.dir}/mnt/p; cd {self.dir}/mnt/p;"
                  f"{become} {WARDER} run --report {self.dir}/mnt/report -- sh -c 'mkdir build; echo x > build/f; ls -d ../.warder*';"
                  f"ls -A {self.dir}/mnt; grep -o '.brokered.:[0-9]*' {self.dir}/mnt/report")
        p = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script], env=self.env,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        self.assertEqual(["p", "report", '"brokered":1'], p.stdout.split(), p.stderr)

    def test_a_killed_ones_is_taken_over_by_the_next(self):
        running = [self.start([WARDER, "run", "--", "sh", "-c", f"mkdir b{i}; echo ready; sleep 600"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) for i in range(2)]
        for p in running:
            self.assertEqual(b"ready\n", p.stdout.readline())
        self.assertEqual([SPARES - 1] * 2, [len(os.listdir(p)) for p in self.pools()])
        running[0].send_signal(signal.SIGKILL)
        running[0].wait(timeout=10)
        self.assertTrue(wait_until(lambda: len(self.while_it_runs()[0]) == 2))
        running[1].send_signal(signal.SIGTERM)
        running[1].wait(timeout=10)
        self.sh("true")
        self.assertEqual(1, len(self.pools()))

    def test_those_that_start_at_once_have_one_each(self):
        """None takes another's new one for an old one's, and goes to lie where nobody looks for it later."""
        for _ in range(12):
            running = [self.start([WARDER, "run", "--", "sh", "-c", "echo ready; read x"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
            for p in running:
                self.assertEqual(b"ready\n", p.stdout.readline())
            pools = self.pools()
            for p in running:
                p.communicate(b"\n", timeout=30)
            self.assertEqual(4, len([p for p in pools if p.startswith(f"{self.dir}/state/")]), pools)
            for path in self.pools():
                shutil.rmtree(path)

    def test_none_where_making_is_native_anyway(self):
        shutil.rmtree(f"{self.project}/.git")
        p = self.start([WARDER, "run", "--", "sh", "-c", "echo ready; read x"], stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE)
        self.assertEqual(b"ready\n", p.stdout.readline())
        self.assertEqual([], self.pools())
        p.communicate(b"\n", timeout=30)


@both_users
class AsMkdir(PoolCase):
    def test_modes_and_masks(self):
        self.is_like_native("umask 027; mkdir a; mkdir -m 0777 b; mkdir -m 1770 c; umask 0; mkdir d;"
                            " mkdir -m 0500 e; mkdir -m 0300 f; umask 0777; mkdir g; umask 022", pooled=5)

    def test_setgid_directories(self):
        def prepare():
            if os.getuid() == 0:
                os.chown(self.project, self.uid, 12345)
            os.chmod(self.project, 0o2775)
        # A group that one is not in can't be given: there the mkdir is the broker's own.
        self.is_like_native("mkdir a; umask 077; mkdir b", 0 if self.uid != os.getuid() else 2, prepare)

    def test_times_are_those_of_the_call(self):
        done = self.sh("sleep 0.1; echo x > .git/objects/mark; mkdir build")
        mark, build = (os.stat(f"{self.project}/{n}") for n in (".git/objects/mark", "build"))
        self.assertLessEqual(mark.st_mtime_ns, build.st_mtime_ns)
        self.assertLessEqual(mark.st_mtime_ns, build.st_atime_ns)
        self.assertEqual(1, self.brokered(done))

    @needs("setfacl", "getfacl")
    def test_default_acls(self):
        if subprocess.run(["setfacl", "-d", "-m", "u:12345:rwx", self.project]).returncode:
            self.skipTest("no ACLs on this file system")
        acls = []
        for run in (self.native, self.run_plain):
            done = run("sh", "-c", "mkdir a && getfacl a")
            self.assertStatus(done)
            acls.append(done.out)
            shutil.rmtree(f"{self.project}/a")
        self.assertEqual(*acls)
        self.assertIn("default:user:12345:rwx", acls[0])

    def test_errors_are_mkdirs(self):
        done = self.sh("mkdir a; mkdir a; echo $?; : > f; mkdir f/x; mkdir no/x; mkdir $(printf %0300d 1); mkdir .; true")
        for why in ("File exists", "Not a directory", "No such file or directory", "File name too long"):
            self.assertIn(why, done.err)

    @unittest.skipIf(os.getuid(), "it makes another user's files")
    def test_another_identity_makes_its_own(self):
        if self.uid:
            self.skipTest("only root becomes another")
        os.chmod(self.project, 0o777)
        done = self.sh("setpriv --reuid 12345 --regid 12345 --clear-groups mkdir theirs && mkdir ours")
        self.assertEqual([12345, 0], [os.stat(f"{self.project}/{n}").st_uid for n in ("theirs", "ours")], done)

    @unittest.skipIf(os.getuid(), "only root mounts")
    @needs("unshare")
    def test_another_mount_in_the_project(self):
        if self.uid:
            self.skipTest("only root mounts")
        self.mkdir("project/mnt")
        script = f"mount -t tmpfs none {self.project}/mnt; exec \"$@\""
        p = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", WARDER, "run", "--rule",
                            "deny w mnt/keep", "--", "sh", "-c", "mkdir mnt/new && echo x > mnt/new/f && cat mnt/new/f"],
                           env=self.env, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                           timeout=30)
        self.assertEqual((0, "x\n"), (p.returncode, p.stdout), p.stderr)


@both_users
class Exceptions(PoolCase):
    def test_not_where_a_name_below_may_be_protected(self):
        for rule, script in (("deny w sub/keep", "mkdir sub; echo x > sub/keep"),
                             ("deny r **/.env", "mkdir sub; echo x > sub/.env; cat sub/.env"),
                             ("deny w SUB/keep", "mkdir sub; echo x > SUB/keep"),
                             ("deny w sub/*/keep", "mkdir -p sub/a; echo x > sub/a/keep"),
                             ("ask exec sub", "mkdir sub; cp /bin/true sub/x; sub/x"),
                             ("deny exec sub", "mkdir sub; cp /bin/true sub/x; sub/x")):
            with self.subTest(rule):
                done = self.run_report("--rule", rule, "--", "sh", "-c", script)
                self.assertNotEqual(0, done.status, done)
                shutil.rmtree(f"{self.project}/sub", ignore_errors=True)
                self.assertEqual([], glob.glob(f"{self.project}/**/keep", recursive=True))

    def test_nor_where_less_is_allowed(self):
        there = self.mkdir("there")
        done = self.run_report("--rule", f"allow rw {there}", "--rule", f"deny w {there}/never", "--", "sh", "-c",
                               f"mkdir {there}/d && cp /bin/true {there}/d/x && {there}/d/x && echo ran")
        self.assertEqual("", done.out, done)
        self.assertTrue(os.path.isfile(f"{there}/d/x"), done)

    def test_nor_by_another_name_of_such_a_place(self):
        """Somebody outside gives it one while the command runs: less stays allowed in there."""
        self.mkdir("project/less")
        p = self.start([WARDER, "run", "--on-denial", "report", "--rule", "ask exec less", "--rule", "deny w less/never", "--",
                        "sh", "-c", "echo ready; read x; mkdir more/d; cp /bin/true more/d/x; more/d/x && echo ran"],
                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(b"ready\n", p.stdout.readline())
        os.rename(f"{self.project}/less", f"{self.project}/more")
        out, err = p.communicate(b"\n", timeout=30)
        self.assertEqual(b"", out, err)
        self.assertTrue(os.path.isfile(f"{self.project}/more/d/x"), err)

    def test_the_repositorys_own_names_stay_protected(self):
        shutil.rmtree(f"{self.project}/.git/hooks")
        done = self.run_report("--", "sh", "-c", "mkdir .git/hooks; echo x > .git/hooks/pre-commit; mkdir build;"
                               " mv build .git/hooks; mkdir other; mv other .git/config")
        self.assertFalse(os.path.exists(f"{self.project}/.git/hooks"), done)
        self.assertTrue(os.path.isfile(f"{self.project}/.git/config"), done)

    def test_a_directory_of_it_carries_nothing_to_where_less_is_allowed(self):
        there = self.mkdir("there")
        done = self.run_report("--rule", f"allow write,create,delete,move,list {there}", "--", "sh", "-c",
                               f"mkdir build sub && mkdir sub/in && cp /bin/true build/prog && mv -T build {there}/build;"
                               f" mv -T sub {there}/sub; {there}/build/prog && echo ran; cat {there}/build/prog > /dev/null && echo read")
        self.assertNotIn("ran", done.out, done)
        self.assertNotIn("read", done.out, done)

    def test_nor_does_one_that_was_there_before(self):
        there = self.mkdir("there")
        self.mkdir("project/old")
        shutil.copy("/bin/true", f"{self.project}/old/prog")
        done = self.run_report("--rule", f"allow write,create,delete,move,list {there}", "--", "sh", "-c",
                               f"mv -T old {there}/old; {there}/old/prog && echo ran")
        self.assertNotIn("ran", done.out, done)

    def test_nothing_is_moved_into_it_from_where_less_is_allowed(self):
        """Of attributes the kernel knows no right: it would let the move through, were they not of one kind."""
        for denied, there in (("meta", "all"), ("exec", "less")):
            with self.subTest(denied):
                self.write(f"{there}/f", "x")
                self.write(f"{there}/sub/f", "x")
                top = os.path.join(self.dir, there)
                rules = ("--rule", f"allow rwx {top}", "--rule", f"deny {denied} {top}")
                done = self.run_report(*rules, "--", "/usr/bin/python3", "-c", f"""
import os
os.mkdir("build-{there}")
open("build-{there}/own", "w").close()
for move, name in ((os.rename, "f"), (os.rename, "sub"), (os.link, "f"), (os.link, "sub/f")):
    try:
        move("{top}/" + name, "build-{there}/" + name.replace("/", "-"))
        print("moved", name)
    except OSError:
        pass
os.rename("build-{there}/own", "{top}/own")
""")
                self.assertStatus(done)
                self.assertEqual("", done.out, done)
                self.assertEqual(["f", "own", "sub"], sorted(os.listdir(top)))

    def test_nothing_is_carried_into_it(self):
        self.write("project/locked/f", "LOCKED")
        done = self.run_report("--rule", "deny w locked", "--rule", "deny r secret", "--", "sh", "-c",
                               "mkdir build; mv locked build/x; ln locked/f build/y; echo x > build/y; mv .git/hooks build/h")
        self.assertEqual("LOCKED", self.read("project/locked/f"), done)
        self.assertTrue(os.path.isdir(f"{self.project}/.git/hooks"))

    def test_renamed_within_the_project_it_stays_as_it_was(self):
        done = self.sh("mkdir a && echo x > a/f && mv a b && echo y >> b/f && mkdir b/c && cat b/f")
        self.assertEqual("x\ny\n", done.out)
        self.assertEqual(2, self.brokered(done), done)


if __name__ == "__main__":
    main()
