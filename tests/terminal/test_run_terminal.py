"""warder run in a real terminal behaves as the command alone would."""

import json
import os
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from tmux_help import PATIENCE, Terminal  # noqa: E402  (the helper lies beside this file)


def wait_until(holds):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError("it never came to that")
        time.sleep(0.05)


class Programs(unittest.TestCase):
    def test_job_control(self):
        with Terminal() as t:
            t.line("warder run -- sleep 100")
            time.sleep(0.5)
            t.keys("C-z")
            t.wait_for("Stopped")
            shown = t.run("stty -a | grep -o -E -- '-?(icanon|echo) '")
            self.assertNotIn("-icanon", shown)
            self.assertNotIn("-echo", shown)
            t.line("fg")
            time.sleep(0.5)
            t.keys("C-c")
            self.assertIn("st=130", t.run("echo st=$?"))

    def test_interactive_shell_with_its_own_jobs_and_resize(self):
        with Terminal() as t:
            t.line("warder run -- bash --norc --noprofile -i")
            t.line("PS1='inner'' '; tty; stty size")
            t.wait_for("24 80")
            t.line("sleep 100")
            time.sleep(0.4)
            t.keys("C-z")
            t.wait_for("Stopped")
            t.line("jobs | wc -l; fg")
            time.sleep(0.4)
            t.keys("C-c")
            t.resize(100, 30)
            time.sleep(0.3)
            t.line("stty size")
            t.wait_for("30 100")
            t.line("exit 7")
            self.assertIn("st=7", t.run("echo st=$?"))

    def test_vim(self):
        with Terminal() as t:
            t.line("warder run -- vim -u NONE -N file")
            t.wait_for("~")
            t.keys("i", "words in a file", "Escape")
            t.keys("C-z")
            t.wait_for("Stopped")
            t.line("fg")
            t.wait_for("words in a file")
            t.keys(":wq", "Enter")
            t.wait_for("ready>")
            self.assertEqual(pathlib.Path(t.project, "file").read_text(encoding="utf-8"),
                             "words in a file\n")

    def test_less_reads_the_keys_and_leaves_a_sane_terminal(self):
        with Terminal() as t:
            before = t.run("stty -g")
            t.line("seq 1000 | warder run -- less")
            t.wait_for("1\n2\n3")
            t.keys("G")
            t.wait_for("1000")
            t.keys("q")
            t.wait_for("ready>")
            after = t.run("stty -g")
            mode = re.compile(r"^[0-9a-f]+(?::[0-9a-f]+)+$", re.M)
            self.assertEqual(mode.findall(before)[0], mode.findall(after)[-1])

    def test_top_paints_and_quits(self):
        with Terminal() as t:
            t.line("warder run -r ~ -w ~ -- top -d 1")  # it keeps a file in ~/.config
            t.wait_for("load average")
            t.resize(100, 30)
            time.sleep(0.5)
            t.keys("q")
            t.wait_for("ready>")

    def test_pipelines(self):
        with Terminal() as t:
            self.assertIn("HELLO", t.run("echo hello | warder run -- cat | tr a-z A-Z"))
            t.line("warder run -- seq 500 | less")
            t.wait_for("1\n2\n3")
            for _ in range(3):
                t.keys("Space")  # every key reaches less, none is taken by us
                time.sleep(0.2)
            t.wait_for("\n92\n")
            t.keys("q")
            t.wait_for("ready>")
            t.line("warder run -- cat | grep typed")
            time.sleep(0.4)
            t.line("words typed here")
            t.keys("C-d")
            t.wait_for("words typed here\nwords typed here")

    def test_background_job_leaves_the_terminal_alone(self):
        with Terminal() as t:
            t.line("warder run -- sleep 1 & sleep 0.3; stty -a | grep -o -E -- '-?icanon'; wait")
            shown = t.wait_for("icanon")
            self.assertNotIn("-icanon", shown.replace("'-?icanon'", ""))

    def test_what_outlives_the_command_is_ended_and_named(self):
        with Terminal() as t:
            shown = t.run("warder run --report r.json -- sh -c 'sleep 600 & echo b''g'")
            self.assertIn("bg", shown)
            self.assertIn("outlived the command", shown)
            leftover, = json.loads(pathlib.Path(t.project, "r.json").read_text(encoding="utf-8"))["leftovers"]
            self.assertEqual("sleep", leftover["argv0"])

    def test_what_outlives_the_command_is_waited_for(self):
        with Terminal() as t:
            shown = t.run("warder run --leftovers wait -- sh -c '(sleep 1; echo la''te) & echo b''g; exit 4'")
            self.assertIn("bg\nlate\n", shown)
            self.assertIn("done1=4", shown)

    def test_a_question_outlives_the_command(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            t.line("warder run --leftovers wait -- sh -c '(cat ../outside/notes; echo la''te) & exit 4'")
            t.wait_for("[y] once")
            t.keys("y")
            self.assertIn("outside words", t.wait_for("late"))
            self.assertIn("st=4", t.run("echo st=$?"))

    def test_ctrl_c_ends_the_wait(self):
        with Terminal() as t:
            t.line("warder run --leftovers wait -- sh -c 'sleep 600 & echo b''g'")
            t.wait_for("bg")
            time.sleep(0.5)
            t.keys("C-c")
            self.assertIn("st=130", t.run("echo st=$?"))

    def test_ctrl_z_stops_the_wait(self):
        with Terminal() as t:
            t.line("warder run --leftovers wait -- sh -c 'sleep 600 & echo b''g'")
            t.wait_for("bg")
            time.sleep(0.5)
            t.keys("C-z")
            t.wait_for("Stopped")
            self.assertIn("here", t.run("stty -a | grep -q -e -icanon || echo he''re"))
            t.line("fg")
            time.sleep(0.5)
            t.keys("C-c")
            self.assertIn("st=130", t.run("echo st=$?"))

    def test_a_terminal_that_is_closed_ends_the_tree(self):
        for options in ("", "--leftovers wait "):
            for end in ("wait", "exit 0") if options else ("wait",):
                with self.subTest(options=options, end=end), Terminal() as t:
                    t.line(f"warder run {options}-- sh -c 'sleep 600 & echo $! > p''id; echo b''g; {end}'")
                    t.wait_for("bg")
                    time.sleep(0.3)
                    pid = pathlib.Path(t.project, "pid").read_text(encoding="utf-8").strip()
                    self.assertTrue(os.path.exists(f"/proc/{pid}"))
                    t.tmux("kill-server")
                    wait_until(lambda: not os.path.exists(f"/proc/{pid}"))

    def test_the_real_terminal_is_out_of_reach(self):
        with Terminal() as t:
            t.line("real=$(tty); warder run --on-denial report -- sh -c \"echo pain''ted > $real\"")
            t.wait_for("refused write")
            self.assertNotIn("painted", t.screen())
            t.line("clear; warder run --yes -- sh -c \"echo pain''ted > $real; echo pain''ted >> $(tty)\"")
            t.wait_for("refused write")
            self.assertNotIn("painted", t.screen())

    def test_the_inner_terminal_and_those_made_inside_are_the_commands_own(self):
        with Terminal() as t:
            shown = t.run("warder run --on-denial report --fail-on-denial -- sh -c "
                          "'echo own''ed > $(tty); script -qec \"echo in''side > \\$(tty)\" /dev/null'")
            self.assertIn("owned", shown)
            self.assertIn("inside", shown)
            self.assertIn("done1=0", shown)


class Questions(unittest.TestCase):
    def ask(self, t, command, key):
        t.line(command)
        t.wait_for("[y] once")
        t.keys(key)
        t.wait_for("[y] once", absent=True)

    def test_once_goes_on_in_place(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            self.ask(t, "warder run -- sh -c 'echo x >> log; cat ../outside/notes; echo y >> log'", "y")
            t.wait_for("outside words")
            self.assertIn("x\ny\ndone", t.run("clear; cat log"))

    def test_a_dumb_terminal_gets_no_escape_sequence(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            for term in ("TERM=dumb", "TERM="):
                self.ask(t, f"clear; {term} script -qec 'warder run -- cat ../outside/notes' raw; clear", "y")
                with open(os.path.join(t.project, "raw"), encoding="utf-8") as f:
                    raw = f.read()
                self.assertIn("[y] once", raw)
                self.assertIn("allowed once", raw)
                self.assertIn("outside words", raw)
                self.assertNotIn("\x1b", raw)

    def test_details_show_who_made_the_call(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            t.line("clear; warder run -- cat ../outside/notes")
            t.wait_for("[y] once")
            self.assertNotIn("libc.so.6", t.screen())
            t.keys("d")
            shown = t.wait_for("libc.so.6")
            self.assertRegex(shown, r"(?m)^  (from    |         ←) open\w*\+0x[0-9a-f]+ \(libc\.so\.6\+0x[0-9a-f]+\)$")
            self.assertRegex(shown, r"(?m)^           ← .*\(/usr/bin/cat\+0x[0-9a-f]+\)$")
            t.keys("d")
            t.wait_for("libc.so.6", absent=True)
            t.keys("y")
            t.wait_for("outside words")

    def test_enter_escape_and_c_c_mean_no(self):
        for key, status in (("Enter", 1), ("Escape", 1), ("n", 1), ("C-c", 130)):
            with self.subTest(key=key), Terminal() as t:
                t.write_outside("notes", "outside words\n")
                self.ask(t, "warder run -- cat ../outside/notes", key)
                t.wait_for("ready>")
                self.assertIn(f"st={status}", t.run("echo st=$?"))
                self.assertNotIn("outside words", t.screen())

    def test_always_is_saved_and_asks_no_more(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            self.ask(t, "warder run -- cat ../outside/notes", "a")
            t.wait_for("outside words")
            t.run("clear")
            self.assertIn("outside words", t.run("warder run -- cat ../outside/notes"))
            self.assertNotIn("[y]", t.screen())

    def test_case_C3_keys_typed_ahead_are_the_programs(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            t.line("warder run -- sh -c 'sleep 1; cat ../outside/notes; read line; echo got:$line'")
            time.sleep(0.3)
            t.line("typed ahead")
            t.wait_for("[y] once")
            t.keys("y")
            t.wait_for("outside words")
            t.wait_for("got:typed ahead")

    def test_a_key_meant_for_the_question_never_reaches_a_blocked_reader(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            t.line("warder run -- sh -c '(sleep 0.5; cat ../outside/notes) & read line; echo got:$line; wait'")
            t.wait_for("[y] once")
            t.keys("y")
            t.wait_for("outside words")
            t.line("mine")
            t.wait_for("got:mine")

    def test_output_does_not_mix_with_the_question(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            t.line("warder run -- sh -c '(while :; do echo noise; sleep 0.05; done) & "
                   "cat ../outside/notes; kill $!'")
            t.wait_for("[y] once")
            first = t.screen()
            time.sleep(1)
            self.assertEqual(first, t.screen())
            t.keys("n")
            t.wait_for("ready>")

    def test_case_C3_vim_is_repainted_after_a_question(self):
        with Terminal() as t:
            t.write_outside("notes", "outside words\n")
            t.line("warder run -- vim -u NONE -N file")
            t.wait_for("~")
            t.keys("i", "mine", "Escape", ":r ../outside/notes", "Enter")
            t.wait_for("[y] once")
            t.keys("y")
            t.wait_for("outside words")
            t.wait_for("mine")
            t.keys(":q!", "Enter")
            t.wait_for("ready>")

    def test_hostile_name_is_shown_escaped(self):
        with Terminal() as t:
            name = "a\x1b[2Jb\nc\u202ed"
            t.write_outside(name, "words\n")
            t.line("warder run -- cat ../outside/*")
            shown = t.wait_for("[y] once")
            self.assertIn("\\e[2Jb\\nc\\u{202E}d", shown.replace("\n", ""))
            t.keys("n")
            t.wait_for("ready>")

    @unittest.skipUnless(os.geteuid() == 0, "dropping to another user needs root")
    def test_as_an_ordinary_user(self):
        with Terminal(user=65534) as t:
            t.write_outside("notes", "outside words\n")
            self.ask(t, "warder run -- cat ../outside/notes", "y")
            t.wait_for("outside words")


class Screens(unittest.TestCase):
    """What stands on a screen of 24 rows."""

    def question(self, t, command):
        t.line("clear; " + command)
        t.wait_for("[y] once")

    def test_help_and_details_fit(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            self.question(t, f"warder run -- cat {secret}")
            for key, words in (("?", "this help"), ("d", "libc.so.6"), ("?", "this help"), ("d", "libc.so.6")):
                t.keys(key)
                shown = t.wait_for(words)
                self.assertTrue(shown.startswith("warder: cat asks to read\n"), shown)
                self.assertIn("[y] once", shown)
            t.keys("y")
            shown = t.wait_for("found it")
            self.assertTrue(shown.startswith("warder: allowed once"), shown)  # and nothing is left of it

    def test_a_low_screen_has_pages(self):
        with Terminal(height=12) as t:
            secret = t.write_outside("secret", "found it\n")
            self.question(t, f"warder run -- cat {secret}")
            t.keys("?")
            shown = t.wait_for("page 1 of ")
            pages = int(re.search(r"page 1 of (\d+)", shown).group(1))
            self.assertNotIn("this help", shown)
            for page in range(2, pages + 1):
                t.keys("Space" if page % 2 else "PageDown")
                shown = t.wait_for(f"page {page} of")
                self.assertTrue(shown.startswith("warder: cat asks to read\n"), shown)
            self.assertIn("this help", shown)
            for page in range(pages - 1, 0, -1):
                t.keys("b" if page % 2 else "PageUp")
                t.wait_for(f"page {page} of")
            t.keys("n")
            shown = t.wait_for("Permission denied")
            self.assertTrue(shown.startswith("warder: refused: read"), shown)

    def test_another_size_while_it_stands(self):
        with Terminal(width=100, height=30) as t:
            secret = t.write_outside("secret", "found it\n")
            t.line(f"clear; warder run -- sh -c 'echo before; cat {secret}; stty size'")
            t.wait_for("[y] once")
            for width, height in ((44, 24), (100, 30), (60, 14), (120, 30)):
                t.resize(width, height)
                shown = t.wait_for_that(lambda s: s.count("asks to read") == 1 and s.count("[y] once") == 1)
                self.assertIn("  path ", shown)
            t.wait_for("[y] once")  # keys count
            t.keys("y")
            shown = t.wait_for("30 120")
            self.assertIn("found it\n", shown)
            self.assertNotIn("asks to", shown)
            self.assertIn("before\n", t.tmux("capture-pane", "-p", "-S", "-"))  # with what has scrolled away

    def test_a_pane_of_30_by_8_shows_what_is_asked(self):
        with Terminal(width=30, height=8) as t:
            t.write_outside("secret", "found it\n")
            t.line("clear; warder run -- cat ../outside/secret")
            for key in (None, "Space", "?", "?", "d"):
                t.wait_for("[y] once")  # keys count
                if key:
                    t.keys(key)
                shown = t.wait_for_that(lambda s: "[y] once" in s and "of" in s)
                self.assertTrue(shown.startswith("warder: cat asks to read\n"), shown)
                self.assertIn("outside/secret", shown.replace("\n  ", ""))
            t.keys("y")
            self.assertIn("found it\n", t.wait_for("found it"))

    def test_what_once_is_about(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            other = t.write_outside("other", "that too\n")
            self.question(t, f"warder run -- cat {secret} {other}")
            self.assertNotIn("  once ", t.screen())
            t.keys("2")
            t.wait_for("  once     this path only; what is marked is for session and always")
            t.keys("y")
            t.wait_for(f"outside/other")  # is asked about by itself
            t.wait_for("[y] once")  # keys count
            self.assertIn("allowed once: read", t.screen())
            t.keys("n")
            t.wait_for("Permission denied")

    def test_one_name_for_one_program(self):
        with Terminal() as t:
            secret = t.write_outside("secret", "found it\n")
            self.question(t, f"warder run --on-denial hold -- sh -c ': <{secret}'")  # sh is dash, or bash
            self.assertIn("warder: sh asks to read", t.screen())
            t.keys("n")
            t.wait_for("to allow")
            self.assertIn("outside/secret (sh)", t.screen())
            self.assertIn("outside/secret (sh, 1", t.screen().replace("\n", ""))
            self.assertIn("sh was refused read", t.run("clear; warder why --last"))

if __name__ == "__main__":
    unittest.main()
