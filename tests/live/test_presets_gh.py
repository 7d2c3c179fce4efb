#!/usr/bin/env python3
"""`--preset gh` and `--preset docs`: first runs in an empty home."""

import os

from preset_help import FirstRun
from run_help import both_users, deny, main, needs


@needs("gh")
@both_users
class Gh(FirstRun):
    preset = "gh"

    def test_what_needs_no_login(self):
        self.first_run("gh --version; gh help; gh config get editor; gh config list; gh alias list; gh help api;"
                       "gh completion -s bash | wc -l")

    def test_the_token_is_asked_about(self):
        self.write("home/.config/gh/config.yml", "git_protocol: ssh\n")
        hosts = self.write("home/.config/gh/hosts.yml", "github.com:\n    oauth_token: secret-token\n    user: u\n")
        done = self.run_report("--preset", "gh", "--", "bash", "-c", "gh config get git_protocol; gh auth token")
        self.assertNotIn("secret-token", done.out)
        done = self.hold("--preset", "gh", "--", "bash", "-c", "gh auth token", answer=deny)
        self.assertEqual([(hosts, True)], [(q["path"], q["sensitive"]) for q in done.asked])
        done = self.hold("--preset", "gh", "--", "gh", "auth", "token")
        self.assertEqual("secret-token\n", done.out)

    def test_settings_are_not_written(self):
        done = self.hold("--preset", "gh", "--", "gh", "alias", "set", "x", "!evil", answer=deny)
        self.assertTrue(done.asked)
        self.assertFalse(os.path.lexists(os.path.join(self.home, ".config/gh/config.yml")))


@both_users
class Docs(FirstRun):
    preset = "docs"

    @needs("man")
    def test_man(self):
        self.write("project/x.1", ".TH X 1\n.SH NAME\nx \\- a page\n")
        done = self.first_run("man ./x.1 | cat; man -w ls || true; apropos -s 1 ls >/dev/null || true")
        self.assertIn("a page", done.out)

    @needs("pandoc")
    def test_pandoc(self):
        self.write("project/x.md", "# Title\n\n*text*\n")
        self.assertIn("<em>text</em>", self.first_run("pandoc x.md; pandoc -s -o x.html x.md; pandoc -t docx -o x.docx x.md;"
                                                      "pandoc x.docx -t plain >/dev/null").out)

    @needs("sphinx-build")
    def test_sphinx(self):
        self.make({"conf.py": "project = 'p'\n", "index.rst": "p\n=\n\ntext\n"})
        self.first_run("sphinx-build -q . out; ls out/index.html")

    @needs("fc-cache")
    def test_fonts(self):
        if self.uid == 0:
            self.skipTest("root's fonts are cached for the whole machine, which is asked about")
        self.first_run("fc-cache; fc-list | wc -l")


if __name__ == "__main__":
    main()
