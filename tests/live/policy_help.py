"""What the tests of `warder policy` share: its words, a terminal that answers, and other programs' walls."""

import ctypes
import json
import os
import pty
import select
import shlex
import subprocess
import sys
import time

from run_help import WARDER, RunCase, both_users, main  # noqa: F401 (for the tests)

# One that an ordinary user may run, too.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# landlock(7): the rights on paths, in the order of their bits.
RIGHTS = ("execute write_file read_file read_dir remove_dir remove_file make_char make_dir make_reg make_sock "
          "make_fifo make_block make_sym refer truncate ioctl_dev").split()
OF_FILES = {"execute", "write_file", "read_file", "truncate", "ioctl_dev"}


class PolicyCase(RunCase):
    def policy(self, *words, status=0, **more):
        done = self.native(WARDER, "policy", *words, **more)
        if status is not None:
            self.assertStatus(done, status)
        return done

    def rules(self, *words):
        """The saved rules, without comments."""
        out = self.policy("show", *words).out
        return [" ".join(line.partition("  # ")[0].split()) for line in out.splitlines()]

    def answer(self, *words, typed="y\n", **more):
        """With a terminal on which `typed` is answered to the question. (status, what was shown)"""
        env = {k: v for k, v in self.env.items() if k != "CI"}
        env.update(more.pop("env", {}))
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        script = ("import fcntl,os,sys,termios; os.setsid(); fcntl.ioctl(2, termios.TIOCSCTTY, 0); "
                  "os.execv(sys.argv[1], sys.argv[1:])")
        process = self.start([PYTHON, "-c", script, WARDER, "policy", *words], env=env,
                             stdin=more.pop("stdin", slave), stdout=slave, stderr=slave,
                             start_new_session=False, **more)
        os.close(slave)
        shown, end = b"", time.monotonic() + 20
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.5)[0]:
                continue
            try:
                more_bytes = os.read(master, 65536)
            except OSError:
                break
            if not more_bytes:
                break
            shown += more_bytes
            if typed and b"[y/N] " in shown:
                os.write(master, typed.encode())
                typed = ""
        return process.wait(timeout=20), shown.decode("utf-8", "replace").replace("\r\n", "\n")


def landlockconfig_rules(text):
    """(path, rights) as landlock-lsm's own program makes them of the JSON, checked against its schema's facts."""
    config = json.loads(text)
    assert set(config) <= {"abi", "variable", "ruleset", "pathBeneath", "netPort"}, config
    assert any(k in config for k in ("variable", "ruleset", "pathBeneath", "netPort"))
    handled, rules = set(), []
    for ruleset in config.get("ruleset", []):
        assert ruleset and set(ruleset) <= {"handledAccessFs", "handledAccessNet", "scoped"}, ruleset
        assert set(ruleset.get("scoped", [])) <= {"abstract_unix_socket", "signal"}
        handled |= set(ruleset.get("handledAccessFs", []))
    for beneath in config.get("pathBeneath", []):
        assert set(beneath) == {"allowedAccess", "parent"}, beneath
        assert beneath["allowedAccess"] and beneath["parent"]
        assert set(beneath["allowedAccess"]) <= set(RIGHTS), beneath
        rules += [(p.replace("$$", "$"), set(beneath["allowedAccess"])) for p in beneath["parent"]]
    assert handled == set(RIGHTS)
    return rules


def landrun_rules(text):
    """(path, rights) as landrun's options mean them."""
    words = shlex.split(text.replace("\\\n", " "))
    assert words[:3] == ["landrun", "--best-effort", "--unrestricted-network"], words
    assert words[-2:] == ["--", "COMMAND"], words
    read, execute = {"read_file", "read_dir"}, {"execute"}
    write = set(RIGHTS) - read - execute
    means = {"--ro": read, "--rox": read | execute, "--rw": read | write, "--rwx": read | write | execute}
    pairs = words[3:-2]
    return [(path, means[option]) for option, path in zip(pairs[::2], pairs[1::2])]


class Wall(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def restrict(rules):
    """This process, for ever."""
    libc = ctypes.CDLL(None, use_errno=True)
    abi = libc.syscall(444, None, 0, 1)
    known = RIGHTS[:13] + (["refer"] if abi >= 2 else []) + (["truncate"] if abi >= 3 else []) \
        + (["ioctl_dev"] if abi >= 5 else [])

    def mask(names):
        return sum(1 << RIGHTS.index(n) for n in names if n in known)
    handled = ctypes.c_uint64(mask(RIGHTS))
    ruleset = libc.syscall(444, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    assert ruleset >= 0, ctypes.get_errno()
    for path, rights in rules:
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        if not os.path.isdir(path):
            rights = rights & OF_FILES
        wall = Wall(mask(rights), fd)
        assert libc.syscall(445, ruleset, 1, ctypes.byref(wall), 0) == 0, (path, rights, ctypes.get_errno())
        os.close(fd)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.syscall(446, ruleset, 0) == 0


def in_wall(rules, script):
    """Runs a Python expression's list in a child behind these rules; its value as JSON."""
    here = os.path.dirname(os.path.abspath(__file__))
    code = (f"import sys, json, os; sys.path.insert(0, {here!r})\nfrom policy_help import restrict\n"
            f"restrict([(p, set(r)) for p, r in json.loads(sys.argv[1])])\n{script}")
    env = dict(os.environ, WARDER=WARDER)
    out = subprocess.run([sys.executable, "-c", code, json.dumps([(p, sorted(r)) for p, r in rules])], env=env,
                         capture_output=True, text=True, timeout=30, check=False)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)
