#!/usr/bin/env python3
"""
pictures.py WARDER OUT [COLUMNS]: the README's pictures, of a real terminal (xterm in Xvfb) that warder runs in.

Writes question.png and session.png to OUT, and the same on a light ground as *-light.png. Everything that is shown is
what the program printed; keys go in by tmux, the picture is the X server's. Exits 1 where a screen never came.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 30  # seconds that a screen may take
READING_TIME = 0.6  # until all is painted
COLUMNS = 96
# Behind the pictures' names: ground and text.
GROUNDS = {"": ("#1c1f26", "#d8dee9"), "-light": ("#ffffff", "#1f2328")}
FONT = ["-fa", "DejaVu Sans Mono", "-fs", "11"]


class Screen:
    """An X server with one xterm, in which a tmux shows a shell."""

    def __init__(self, place, home, warder, size, ground):
        self.socket = os.path.join(place, "tmux")
        self.env = {
            "PATH": os.path.dirname(warder) + ":/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color",
            "HOME": home, "SHELL": "/bin/sh", "USER": "u", "HISTFILE": "",
        }
        read, write = os.pipe()
        self.server = subprocess.Popen(["Xvfb", "-displayfd", str(write), "-screen", "0", "1200x900x24", "-nolisten", "tcp"],
                                       pass_fds=[write], stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as f:
            self.env["DISPLAY"] = ":" + f.readline().strip()
        self.xterm = subprocess.Popen(
            ["xterm", *FONT, "-geometry", "%dx%d+0+0" % size, "-bg", ground[0], "-fg", ground[1], "-b", "12",
             "+sb", "-e", "tmux", "-S", self.socket, "-f", "/dev/null", "new-session", "-s", "s",
             "env PS1='$ ' bash --norc --noprofile -i"],
            env=self.env, cwd=os.path.join(home, "project"), stderr=subprocess.DEVNULL)
        self.wait_for("$")
        self.tmux("set", "-g", "status", "off")
        self.tmux("set", "-g", "default-terminal", "xterm-256color")
        self.line("export TERM=xterm-256color; clear")
        time.sleep(0.5)

    def close(self):
        self.tmux("kill-server", check=False)
        for process in (self.xterm, self.server):
            process.terminate()
            process.wait()

    def tmux(self, *args, check=True):
        return subprocess.run(["tmux", "-S", self.socket, *args], env=self.env, check=check, capture_output=True,
                              text=True, timeout=30).stdout

    def line(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def keys(self, *names):
        time.sleep(READING_TIME)
        self.tmux("send-keys", *names)

    def wait_for(self, text):
        end = time.monotonic() + PATIENCE
        shown = ""
        while time.monotonic() < end:
            try:
                shown = self.tmux("capture-pane", "-p")
            except subprocess.CalledProcessError:
                shown = ""  # not up yet
            if text in shown:
                return
            time.sleep(0.05)
        raise SystemExit(f"pictures: {text!r} was never shown:\n{shown}")

    def picture(self, file):
        time.sleep(READING_TIME)
        subprocess.run(["import", "-silent", "-window", "root", "-trim", "+repage", "-strip", "-define",
                        "png:exclude-chunks=date,time", "-colors", "64", file], env=self.env, check=True, timeout=60)


def question(screen, out, ground):
    screen.line("warder run -- sh -c 'echo built >> log; cat ~/.netrc; wc -l log'")
    screen.wait_for("[y] once")
    screen.keys("d")
    screen.wait_for("libc.so.6")
    screen.picture(os.path.join(out, f"question{ground}.png"))
    screen.keys("n")
    screen.wait_for("1 log")


def session(screen, out, ground):
    screen.line("warder agent")
    screen.wait_for("[1-3")
    screen.keys("2", "Enter")
    screen.wait_for("/help")
    time.sleep(READING_TIME)
    screen.line("write a small program, then look around")
    screen.wait_for("[y] once")
    screen.picture(os.path.join(out, f"session{ground}.png"))
    screen.keys("y")
    screen.wait_for("Done:")
    screen.line("/quit")


def show(place, home, warder, out, columns):
    os.makedirs(os.path.join(home, "outside"))
    # Where a person would have it, not where it was built.
    os.makedirs(os.path.join(home, ".local/bin"))
    warder = shutil.copy(warder, os.path.join(home, ".local/bin/warder"))
    for name, text in ((".netrc", "machine example.org login u password secret\n"),
                       ("outside/notes.txt", "these notes are outside of the project\n")):
        with open(os.path.join(home, name), "w", encoding="utf-8") as f:
            f.write(text)
    for ground, colours in GROUNDS.items():
        for play, rows in ((question, 18), (session, 42)):
            for made in ("project", ".local/state", ".config"):  # what was answered is asked again
                shutil.rmtree(os.path.join(home, made), ignore_errors=True)
            os.mkdir(os.path.join(home, "project"))
            screen = Screen(place, home, warder, (columns, rows), colours)
            try:
                play(screen, out, ground)
            finally:
                screen.close()


def main(warder, out, columns=COLUMNS):
    place = tempfile.mkdtemp(prefix="warder-pictures-")
    home = os.path.join(place, "home")
    if os.getuid() == 0 and "PICTURES_INSIDE" not in os.environ:
        # A home with a name that one reads over: /home/u, in a mount namespace of our own.
        os.rmdir(place)
        os.environ["PICTURES_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, __file__,
                              os.path.realpath(warder), os.path.realpath(out), str(columns)])
    if "PICTURES_INSIDE" in os.environ:
        subprocess.run(["mount", "-t", "tmpfs", "pictures", "/home"], check=True)
        home = "/home/u"
    try:
        show(place, home, os.path.realpath(warder), out, int(columns))
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main(*sys.argv[1:4])
