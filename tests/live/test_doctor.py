"""warder doctor on this machine, and on machines that lack something."""

import errno
import json
import os
import platform
import shutil
import subprocess
import unittest

from run_help import WARDER, RunCase, both_users, fixture, main, needs

# x86-64's numbers; Landlock's are the same everywhere.
PTRACE, SECCOMP, PRCTL = (101, 317, 157) if platform.machine() == "x86_64" else (117, 277, 167)
CREATE_RULESET, RESTRICT_SELF = 444, 446
PIDFD_GETFD = 438


@both_users
class Doctor(RunCase):
    def doctor(self, *before, **more):
        """The findings by probe, and the exit status."""
        done = self.native(*before, WARDER, "doctor", "--json", **more)
        try:
            said = json.loads(done.out)
        except json.JSONDecodeError:
            self.fail(str(done))
        self.assertEqual(said["warder_doctor"], 1)
        self.assertEqual(done.status, 0 if said["supervises"] else 1, str(done))
        self.assertEqual(done.err, "")
        found = {}
        for line in said["probes"]:
            found.setdefault(line["probe"], []).append(line)
            if line["status"] != "ok":
                self.assertTrue(line["fix"], line)
        return found, done.status

    def lesser(self, *words):
        return self.doctor(fixture("lesser"), *words, "--")

    def only(self, found, probe, status, *parts):
        """The one finding of a probe."""
        self.assertEqual(len(found[probe]), 1, found[probe])
        line = found[probe][0]
        self.assertEqual(line["status"], status, line)
        for part in parts:
            self.assertIn(part, line["what"] + " -> " + (line["fix"] or ""))

    def test_this_machine_can_supervise(self):
        found, status = self.doctor()
        self.assertEqual(status, 0, found)
        for probe in ("kernel", "wall", "ptrace", "privileges", "refuse", "grant"):
            self.only(found, probe, "ok")
        for probe in ("wall", "ptrace", "refuse", "grant"):
            self.assertGreater(found[probe][0]["us"], 0)

    def sites_of(self, source, name):
        """What is said of a program called `name` on PATH that makes these calls."""
        program = os.path.join(self.bin, name)
        made = subprocess.run(["cc", "-O1", "-nostdlib", "-static", "-x", "c", "-o", program, "-"], input=source,
                              capture_output=True, text=True, check=False)
        if made.returncode:
            self.skipTest(f"no compiler here: {made.stderr[:200]}")
        done = self.native(WARDER, "doctor", "--json", env={**self.env, "PATH": f"{self.bin}:/usr/bin:/bin"})
        said = json.loads(done.out)
        line, = [f for f in said["probes"] if f["probe"] == "sites"]
        return line, {os.path.basename(f["path"]): f for f in said["files"]}

    @unittest.skipUnless(os.uname().machine == "x86_64", "there is no other fast path")
    def test_which_call_sites_can_go_without_a_stop(self):
        well = 'void a(void) { __asm__ volatile("mov $257, %eax; syscall"); }\n'
        slow = 'void b(void) { __asm__ volatile("mov $257, %eax; nop; syscall"); }\n'
        other = 'void c(void) { __asm__ volatile("mov $39, %eax; nop; syscall"); }\n'
        line, files = self.sites_of(well + other + "void _start(void) { }\n", "node")
        self.assertIn("node 1 of 1", line["what"])
        self.assertRegex(line["what"], r"\blibc\.so\.6 \d+ of \d+")
        libc = files["libc.so.6"]
        self.assertGreater(libc["calls"], 5)
        self.assertEqual(libc["calls"] - libc["can"], len(libc["slow"]))
        self.assertEqual([], files["node"]["slow"])
        line, files = self.sites_of(well + slow + other + "void _start(void) { }\n", "node")
        self.assertEqual("degraded", line["status"])
        self.assertIn("node 1 of 2", line["what"])
        self.assertIn("openat at 0x", line["fix"])
        self.assertEqual((2, 1), (files["node"]["calls"], files["node"]["can"]))
        place, = files["node"]["slow"]
        self.assertEqual("openat", place["call"])
        with open(os.path.join(self.bin, "node"), "rb") as f:
            f.seek(place["offset"] - 1)
            self.assertEqual(b"\x90\x0f\x05", f.read(3))

    def test_a_script_in_an_interpreters_place_is_passed_over(self):
        self.write("bin/node", "#!/bin/sh\n", 0o755)
        done = self.native(WARDER, "doctor", "--json", env={**self.env, "PATH": f"{self.bin}:/usr/bin:/bin"})
        files = json.loads(done.out)["files"]
        self.assertNotIn(os.path.join(self.bin, "node"), [f["path"] for f in files])
        for f in files:
            self.assertLessEqual(f["can"], f["calls"], f)

    def test_people_get_a_line_a_finding(self):
        done = self.native(WARDER, "doctor")
        self.assertEqual(done.status, 0, str(done))
        self.assertNotIn("\x1b", done.out)
        self.assertRegex(done.out, r"(?m)^refuse +ok ")
        self.assertTrue(done.out.endswith("\nThis machine can supervise.\n"), done.out)
        done = self.native(fixture("lesser"), f"{PTRACE}={errno.EPERM}", "--", WARDER, "doctor")
        self.assertEqual(done.status, 1)
        self.assertRegex(done.out, r"(?m)^ptrace +missing .*\n +-> .*SYS_PTRACE")
        self.assertIn("can't supervise", done.out)

    def test_nothing_is_left_behind(self):
        before = sorted(os.listdir(self.tmp))
        self.doctor()
        self.assertEqual(sorted(os.listdir(self.tmp)), before)
        state = os.path.join(self.dir, "state", "warder")
        self.assertFalse(os.path.exists(os.path.join(state, "audit.jsonl")))

    def test_without_landlock(self):
        found, status = self.lesser(f"{CREATE_RULESET}={errno.ENOSYS}")
        self.assertEqual(status, 1)
        self.only(found, "landlock", "missing", "filter", "landlock_create_ruleset")
        self.only(found, "wall", "missing")
        self.only(found, "refuse", "missing")

    def test_landlock_is_off_at_boot(self):
        found, status = self.lesser(f"{CREATE_RULESET}={errno.EOPNOTSUPP}")
        self.assertEqual(status, 1)
        self.only(found, "landlock", "missing", "lsm=")

    def test_the_wall_can_not_be_entered(self):
        found, status = self.lesser(f"{RESTRICT_SELF}={errno.E2BIG}")
        self.assertEqual(status, 1)
        self.only(found, "landlock", "ok")
        self.only(found, "wall", "missing", "16")

    def test_an_old_landlock(self):
        found, status = self.lesser("abi=2")
        self.only(found, "landlock", "degraded", "ABI 2", "truncate", "--allow-degraded")

    def test_a_landlock_with_known_faults(self):
        found, _ = self.lesser("abi=7", "errata=1")
        faults = [f for f in found["landlock"] if "known fault" in f["what"]]
        self.assertEqual(["degraded"] * 2, [f["status"] for f in faults], found)
        self.assertIn("signal each other", faults[0]["what"])
        self.assertIn("newer stable release", faults[0]["fix"])

    def elsewhere(self, files, *before):
        """The findings where the kernel's files, each on a line, are these; what else lies in their folders is hidden."""
        script = ""
        for path, text in files.items():
            copy = self.write("home/said", text + "\n")
            if os.path.dirname(path) == "/proc":
                script += f"mount --bind {copy} {path}\n"
            else:
                hidden = "/".join(path.split("/")[:4])
                script += (f"mount -t tmpfs none {hidden}\nmkdir -p {os.path.dirname(path)}\ncp {copy} {path}\n"
                           f"chmod -R a+rX {hidden}\n")
        script += f'exec setpriv --reuid={self.uid} --regid={self.uid} --clear-groups "$@"'
        done = subprocess.run(
            ["unshare", "-m", "--propagation", "private", "sh", "-euc", script, "sh", *before, WARDER, "doctor", "--json"],
            env=self.env, cwd=self.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual("", done.stderr)
        found = {}
        for line in json.loads(done.stdout)["probes"]:
            found.setdefault(line["probe"], []).append(line)
        return found

    @unittest.skipIf(os.getuid() or not os.path.isdir("/sys/kernel/security"), "only root can mount, where there is a /sys")
    def test_landlock_is_not_in_the_list_of_the_boot(self):
        found = self.elsewhere({"/sys/kernel/security/lsm": "capability,yama"},
                               fixture("lesser"), f"{CREATE_RULESET}={errno.EOPNOTSUPP}", "--")
        self.only(found, "landlock", "missing", "switched off at boot", "(lsm=landlock,capability,yama)")

    @unittest.skipIf(os.getuid(), "only root can mount")
    def test_yama_forbids_ptrace(self):
        for scope in "23":
            found = self.elsewhere({"/proc/sys/kernel/yama/ptrace_scope": scope},
                                   fixture("lesser"), f"{PTRACE}={errno.EPERM}", "--")
            self.only(found, "ptrace", "missing", f"ptrace_scope is {scope}", "sysctl kernel.yama.ptrace_scope=1")

    @unittest.skipIf(os.getuid(), "only root can mount")
    def test_a_kernel_that_is_none_of_linux(self):
        for path, text, name in (
                ("/proc/version", "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016", "gVisor"),
                ("/proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2", "WSL 2"),
                ("/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft", "WSL")):
            found = self.elsewhere({path: text})
            self.only(found, "container", "ok", f", on {name}; ")

    def test_ptrace_is_forbidden(self):
        found, status = self.lesser(f"{PTRACE}={errno.EPERM}")
        self.assertEqual(status, 1)
        self.only(found, "ptrace", "missing", "can't be watched", "SYS_PTRACE")
        self.only(found, "wall", "ok")

    def test_another_supervisor_listens(self):
        found, status = self.lesser("listener")
        self.only(found, "ptrace", "missing", "watches the calls", "outside")
        self.assertEqual(status, 1)

    def test_no_filter_can_be_set(self):
        found, status = self.lesser(f"{SECCOMP}={errno.EPERM}")
        self.assertEqual(status, 1)
        self.only(found, "ptrace", "missing", "made to wait", "profile")

    def test_no_descriptor_can_be_fetched(self):
        found, status = self.lesser(f"{PIDFD_GETFD}={errno.ENOSYS}")
        self.assertEqual(status, 1)
        self.only(found, "ptrace", "missing", "pidfd_getfd")

    @unittest.skipUnless(platform.machine() == "x86_64", "there is no fast path")
    def test_no_memory_can_be_written(self):
        """As proc_mem.force_override has it: slower, and no less safe."""
        found, status = self.doctor(fixture("locked_kernel"))
        self.assertEqual(status, 0)
        self.only(found, "fast", "degraded", "every file that is opened is slowed", "only slower")
        self.only(found, "refuse", "ok")

    @unittest.skipIf(os.getuid(), "only root can mount")
    def test_there_are_no_terminals_to_be_had(self):
        script = ("mount -t tmpfs none /dev/pts && "
                  f"exec setpriv --reuid={self.uid} --regid={self.uid} --clear-groups {WARDER} doctor --json")
        p = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script],
                           env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        line, = [f for f in json.loads(p.stdout)["probes"] if f["probe"] == "terminal"]
        self.assertEqual(("missing", False), (line["status"], line["vital"]), line)
        self.assertIn("mount devpts", line["fix"])
        self.assertEqual(0, p.returncode, p.stdout)

    @needs("strace")
    def test_somebody_traces_us(self):
        found, status = self.doctor(shutil.which("strace"), "-f", "-qq", "-e", "trace=none",
                                    "-o", os.path.join(self.tmp, "log"))
        self.assertEqual(status, 1)
        self.only(found, "ptrace", "missing", "traces this one already", "outside")

    def test_the_temporary_directory_is_missing(self):
        env = dict(self.env, TMPDIR=os.path.join(self.dir, "nowhere"))
        found, status = self.doctor(env=env)
        self.assertEqual(status, 1)
        self.only(found, "tmpdir", "missing", "nowhere", "TMPDIR")

    def test_a_state_open_to_others_is_closed(self):
        state = os.path.join(self.dir, "state", "warder")
        self.doctor()
        os.chmod(state, 0o755)
        found, status = self.doctor()
        self.assertEqual(status, 0)
        self.assertEqual([f["status"] for f in found["state"]], ["ok", "ok"])
        self.assertEqual(os.stat(state).st_mode & 0o777, 0o700)

    @unittest.skipIf(os.getuid(), "only root can mount")
    def test_nothing_can_be_written_to_the_state(self):
        self.doctor()
        state = os.path.join(self.dir, "state", "warder")
        config = os.path.join(self.dir, "config", "warder")
        # What doctor says of a directory is what a run in the same place makes of it.
        for kept, status, variable, ends in ((state, "missing", "XDG_STATE_HOME", 125),
                                             (config, "degraded", "XDG_CONFIG_HOME", 0)):
            with self.subTest(kept):
                self.assertTrue(os.path.isdir(kept))
                script = (f"mount --bind {kept} {kept} && mount -o remount,bind,ro {kept} && "
                          f"exec setpriv --reuid={self.uid} --regid={self.uid} --clear-groups "
                          f"sh -c '{WARDER} doctor --json; {WARDER} run -- true; echo $?'")
                p = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script],
                                   env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                   cwd=self.project, timeout=60)
                said, end = json.JSONDecoder().raw_decode(p.stdout)
                (line,) = [f for f in said["probes"] if kept in f["what"]]
                self.assertEqual(line["status"], status, line)
                self.assertIn("nothing can be written", line["what"])
                self.assertIn(variable, line["fix"])
                self.assertEqual(said["supervises"], ends == 0)
                self.assertEqual(p.stdout[end:].split(), [str(ends)], p.stderr)

    @unittest.skipIf(os.getuid(), "only root can mount")
    def test_a_read_only_home_and_a_full_disk(self):
        """What can't be kept is told with its cause, by every command alike; who only asks needs no place."""
        home = os.path.join(self.dir, "mounted")
        os.mkdir(home)
        os.chown(home, self.uid, self.uid)
        env = {"PATH": self.env["PATH"], "HOME": home}
        for mount, cause in (("remount,ro", "Read-only file system"), ("", "No space left on device")):
            script = (f"mount -t tmpfs -o size=16k,uid={self.uid},mode=0700 none {home} && cd {home} && "
                      + (f"mount -o {mount} {home} && " if mount else "mkdir -m 700 -p .config/warder .local/state/warder && "
                         f"chown -R {self.uid} .config .local && head -c 1m /dev/zero >fill 2>/dev/null; ")
                      + f"cd / && exec setpriv --reuid={self.uid} --regid={self.uid} --clear-groups sh -c '{WARDER} doctor; "
                        f"echo $?; {WARDER} policy allow r /srv; echo $?; {WARDER} why /etc/passwd read; echo $?' 2>&1")
            p = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", script], env=env,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd="/", timeout=60)
            with self.subTest(cause):
                self.assertEqual(["1", "125", "0"], [x for x in p.stdout.split("\n") if x.isdigit()], p.stdout + p.stderr)
                self.assertGreaterEqual(p.stdout.count(cause), 3, p.stdout)
                self.assertNotIn("install -d", p.stdout)
                self.assertIn("set XDG_STATE_HOME", p.stdout)

    def test_privileges_can_not_be_given_up(self):
        found, status = self.lesser(f"{PRCTL}={errno.EPERM}")
        self.assertEqual(status, 1)
        self.only(found, "privileges", "missing", "PR_SET_NO_NEW_PRIVS")

    def test_there_is_no_place_for_the_state(self):
        env = dict(self.env, XDG_CONFIG_HOME="relative")
        found, status = self.doctor(env=env)
        self.assertEqual(status, 1)
        self.assertEqual(found["state"][0]["status"], "missing")

    @unittest.skipIf(os.getuid(), "only root can be somebody without a home")
    def test_there_is_no_home(self):
        """Of a user whom the password database does not know HOME alone tells it."""
        for home, said in (("/nonexistent", "/nonexistent: HOME is no directory of yours"), ("", "set HOME")):
            p = subprocess.run(["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", WARDER, "run", "true"],
                               env={"PATH": self.env["PATH"], "HOME": home}, cwd="/", stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, timeout=60)
            self.assertEqual((p.returncode, p.stderr.count("\n")), (125, 1), p.stderr)
            self.assertIn(said, p.stderr)
            self.assertIn("set XDG_CONFIG_HOME" if home else "or XDG_CONFIG_HOME", p.stderr)

    def test_no_account(self):
        found, _ = self.doctor()
        self.only(found, "provider", "degraded", "run needs none", "warder login")

    def test_an_endpoint_that_nobody_serves_and_a_token_that_is_not_told(self):
        env = dict(self.env, WARDER_ENDPOINT="http://127.0.0.1:9", WARDER_COPILOT_TOKEN="tid=hush")
        done = self.native(WARDER, "doctor", "--json", env=env)
        self.assertNotIn("hush", done.out + done.err)
        self.assertIn("WARDER_COPILOT_TOKEN; http://127.0.0.1:9 is not reached", done.out)

    def test_a_container_is_named(self):
        found, _ = self.doctor(env=dict(self.env, container="lxc"))
        self.only(found, "container", "ok", "inside lxc")

    def test_words(self):
        for args, status in ((["--help"], 0), (["--jsn"], 2), (["extra"], 2)):
            done = self.native(WARDER, "doctor", *args)
            self.assertEqual(done.status, status, str(done))
            if status:
                self.assertRegex(done.err, r"^warder: .*warder doctor --help\n$")
            else:
                self.assertLessEqual(done.out.count("\n"), 24)


if __name__ == "__main__":
    main()
