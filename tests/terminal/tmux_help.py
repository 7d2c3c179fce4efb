"""A real terminal for tests: a tmux server of our own, keys in, screen out."""

import os
import shutil
import subprocess
import tempfile
import time

WARDER = os.environ["WARDER"]
PATIENCE = 15  # seconds a screen may take to show something


class Terminal:
    """One tmux window with a shell (or a command) in it; ends with the `with` block."""

    def __init__(self, width=80, height=24, cwd=None, user=None):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="warder-tmux-"))
        self.socket = os.path.join(self.folder, "socket")
        self.project = os.path.join(self.folder, "project")
        self.outside = os.path.join(self.folder, "outside")
        tmp = os.path.join(self.folder, "tmp")  # what a warder that is killed leaves is removed with it
        for path in (self.project, self.outside, tmp, os.path.join(self.folder, "home")):
            os.mkdir(path)
        self.cwd = cwd or self.project
        self.env = {
            "PATH": os.path.dirname(WARDER) + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": os.path.join(self.folder, "home"), "TERM": "screen", "LANG": "C.UTF-8", "TMPDIR": tmp,
            "XDG_CONFIG_HOME": os.path.join(self.folder, "home/.config"),
            "XDG_STATE_HOME": os.path.join(self.folder, "home/.state"), "SHELL": "/bin/bash",
            "HISTFILE": "", "LESSHISTFILE": "-",
        }
        self.prefix = []
        if user is not None:
            for root, dirs, files in os.walk(self.folder):
                for name in [root] + [os.path.join(root, n) for n in dirs + files]:
                    os.chown(name, user, user)
            self.prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        self.size = (width, height)

    def __enter__(self):
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(self.size[0]), "-y", str(self.size[1]),
                  "env PS1='ready> ' bash --norc --noprofile -i")  # bash -c would drop PS1
        try:
            self.wait_for("ready>")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *ignored):
        self.tmux("kill-server", check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def tmux(self, *args, check=True):
        return subprocess.run(self.prefix + ["tmux", "-S", self.socket, *args], cwd=self.cwd, env=self.env,
                              check=check, capture_output=True, text=True, timeout=30).stdout

    def keys(self, *names):
        """tmux key names: "C-c", "Enter", or text. A question takes them once it names its keys: wait_for("[y] once")."""
        self.tmux("send-keys", *names)

    def line(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait_for(self, text, absent=False):
        """The screen, once it shows text (or no longer does)."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.screen()
            if (text in shown) != absent:
                return shown
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} {'still' if absent else 'never'} on the screen:\n{shown}")
            time.sleep(0.05)

    def wait_for_that(self, true):
        """The screen, once true(screen), and still so a moment later."""
        end = time.monotonic() + PATIENCE
        while True:
            shown = self.screen()
            if true(shown):
                time.sleep(0.2)
                if true(self.screen()):
                    return self.screen()
            if time.monotonic() > end:
                raise AssertionError(f"never on the screen:\n{shown}")
            time.sleep(0.05)

    def run(self, text):
        """A command line of the shell, to its end; the screen."""
        self.marks = getattr(self, "marks", 0) + 1
        self.line(f"{text}; echo \"done{self.marks}\"=$?")
        return self.wait_for(f"done{self.marks}=")

    def write_outside(self, name, text):
        path = os.path.join(self.outside, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o644)
        return path
