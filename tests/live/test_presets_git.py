#!/usr/bin/env python3
"""`--preset git`: a first run of git in an empty home; worktrees and their protected hooks."""

import os

from preset_help import FirstRun
from run_help import both_users, deny, main, needs

WHO = "git config user.name N; git config user.email n@example.org; "


@needs("git")
@both_users
class Git(FirstRun):
    preset = "git"

    def git(self, *args, cwd=None):
        done = self.native("git", "-c", "user.name=N", "-c", "user.email=n@example.org",
                           "-c", "init.defaultBranch=main", *args, cwd=cwd or self.project)
        self.assertStatus(done)
        return done

    def test_a_repository_from_nothing(self):
        done = self.first_run(
            "git init -q -b main .; " + WHO +
            "echo a > a; git add a; git commit -qm one; git branch side; git switch -q side;"
            "echo b > b; git add b; git commit -qm two; git switch -q main; echo c > c; git add c;"
            "git commit -qm three; git merge -q --no-edit side; git switch -q -c more HEAD~1;"
            "echo d > d; git add d; git commit -qm four; git rebase -q main; git tag -a v1 -m v1;"
            "echo e >> a; git stash -q; git stash pop -q; git checkout -q -- a; git mv a z;"
            "git reset -q --hard; git cherry-pick --no-commit side || git cherry-pick --abort;"
            "git reset -q --hard; git branch -d side; git gc -q; git fsck 2>&1; git reflog | wc -l;"
            "git describe; git log --oneline --stat | cat; git blame a; git grep -n a; git status --short")
        self.assertIn("v1", done.out)

    def test_worktrees_made_in_the_run(self):
        self.first_run("git init -q -b main .; " + WHO + "git commit -q --allow-empty -m one;"
                       "git worktree add -q wt -b other; cd wt; echo x > x; git add x; git commit -qm two;"
                       "cd ..; git worktree list; git worktree remove wt; git log --oneline other | cat")

    def test_clone_fetch_and_push_between_directories(self):
        self.first_run("git init -q --bare -b main up.git; git clone -q up.git one 2>&1; cd one; " + WHO +
                       "echo a > a; git add a; git commit -qm one; git push -q -u origin HEAD:main;"
                       "cd ..; git clone -q up.git two; cd two; git fetch -q --all; git pull -q; " + WHO +
                       "echo b > b; git add b; git commit -qm two; git push -q; cd ../one; git pull -q --rebase; ls b")

    def test_submodules(self):
        self.first_run("git init -q -b main lib; cd lib; " + WHO + "echo a > a; git add a; git commit -qm one; cd ..;"
                       "git init -q -b main .; " + WHO +
                       "git -c protocol.file.allow=always submodule --quiet add ./lib vendor/lib;"
                       "git commit -qm one; git submodule status; cd vendor/lib; git checkout -q -b x; " + WHO +
                       "echo b > b; git add b; git commit -qm two; cd ../..; git add vendor/lib; git commit -qm two;"
                       "git submodule --quiet update")

    def test_a_hook_made_before_runs(self):
        self.git("init", "-q", ".")
        self.write("project/.git/hooks/pre-commit", "#!/bin/sh\necho hooked > hooked\ngit add hooked\n", 0o755)
        self.first_run("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a;"
                       "echo x > x; git add x; git commit -qm one")
        self.assertEqual("hooked\n", self.read("project/hooked"))

    def test_a_repository_that_was_there(self):
        """Everyday work rewrites neither config nor hooks."""
        self.git("init", "-q", "-b", "main", ".")
        self.git("config", "user.name", "N")
        self.git("config", "user.email", "n@example.org")
        self.git("commit", "-q", "--allow-empty", "-m", "zero")
        self.first_run("git config user.name; echo a > a; git add -A; git commit -qm one; git switch -q -c side;"
                       "echo b > b; git add b; git commit -qm two; git switch -q main; git merge -q side;"
                       "git tag t; git stash list; git worktree add -q wt; git worktree remove wt; git gc -q;"
                       "git log --oneline | wc -l")

    def test_the_users_own_settings(self):
        self.write("home/.gitconfig", "[user]\n\tname = N\n\temail = n@example.org\n"
                                      "[core]\n\texcludesFile = ~/.gitignore\n[include]\n\tpath = ~/.config/git/more\n")
        self.write("home/.gitignore", "*.o\n")
        self.write("home/.config/git/more", "[alias]\n\tci = commit -q\n")
        self.write("home/.config/git/attributes", "*.x text\n")
        self.first_run("git init -q .; touch a.o b.x; git add b.x; git ci -m one; git status --short > out; ! grep a.o out")

    def test_stored_passwords_stay_closed(self):
        self.write("home/.git-credentials", "https://u:secret@example.org\n")
        self.write("home/.config/git/credentials", "https://u:secret@example.org\n")
        done = self.run_report("--preset", "git", "--", "bash", "-c",
                               "cat ~/.git-credentials; cat ~/.config/git/credentials; ls -l ~/.ssh; true")
        self.assertNotIn("secret", done.out)

    # ---- a worktree whose repository lies elsewhere ----

    def repository_elsewhere(self):
        main = os.path.join(self.outside, "main")
        self.git("init", "-q", "-b", "main", main)
        self.git("commit", "-q", "--allow-empty", "-m", "zero", cwd=main)
        os.rmdir(self.project)
        self.git("worktree", "add", "-q", self.project, "-b", "work", cwd=main)
        return main

    AS = ("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a;")

    def test_case_E1(self):
        """A commit works where the real git directory is elsewhere."""
        main = self.repository_elsewhere()
        self.write("outside/main/.git/hooks/pre-commit", "#!/bin/sh\necho hooked > hooked\n", 0o755)
        self.first_run(self.AS + "echo x > x; git add x; git commit -qm one; git branch b; git tag t; git stash list;"
                       "echo y > x; git stash -q; git stash pop -q; git commit -qam two; git log --oneline | wc -l;"
                       "git gc -q")
        self.assertEqual("hooked\n", self.read("project/hooked"))
        self.assertIn("two", self.git("log", "--oneline", "work", cwd=main).out)

    def test_case_E1_in_a_submodule(self):
        """Its git directory lies in the repository above: a commit works, hooks and config are kept."""
        top = os.path.join(self.outside, "top")
        for name in ("lib", "top"):
            self.git("init", "-q", "-b", "main", name, cwd=self.outside)
            self.git("commit", "-q", "--allow-empty", "-m", "zero", cwd=os.path.join(self.outside, name))
        self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{self.outside}/lib", "sub", cwd=top)
        self.write("outside/top/.git/modules/sub/hooks/pre-commit", "#!/bin/sh\necho hooked > hooked\n", 0o755)
        sub = os.path.join(top, "sub")
        self.first_run(self.AS + "echo x > x; git add x; git commit -qm one; git tag t; cat hooked; git gc -q", cwd=sub)
        git = os.path.join(top, ".git")
        done = self.hold("--preset", "git", "--", "bash", "-c",
                         f"echo evil >> {git}/modules/sub/config; echo evil > {git}/modules/sub/hooks/x; echo evil > .git;"
                         f"echo x > {git}/x; echo x > {top}/x", answer=deny, cwd=sub)
        self.assertEqual([True, True, True, False, False], [q["sensitive"] for q in done.asked], done)
        self.assertEqual("gitdir: ../.git/modules/sub\n", self.read("outside/top/sub/.git"))
        self.assertFalse(os.path.lexists(f"{git}/x") or os.path.lexists(f"{top}/x"))

    def test_case_E1_protected_there(self):
        main = self.repository_elsewhere()
        git = os.path.join(main, ".git")
        own = os.path.join(git, "worktrees/project")
        self.assertTrue(os.path.isdir(own))
        before = self.read("outside/main/.git/config")
        done = self.hold("--preset", "git", "--", "bash", "-c",
                         f"mkdir -p {git}/hooks; echo evil > {git}/hooks/pre-commit; echo evil >> {git}/config;"
                         f"rm {git}/config; echo evil > {own}/config.worktree; git config alias.x '!evil';"
                         f"echo evil > {git}/x; mv {git}/x {git}/hooks/post-checkout; ln {git}/x {git}/hooks/y;"
                         f"mv {git} {main}/away; echo evil > {main}/file", answer=deny)
        self.assertFalse(os.path.lexists(os.path.join(git, "hooks/pre-commit")), done)
        self.assertFalse(os.path.lexists(os.path.join(git, "hooks/post-checkout")), done)
        self.assertFalse(os.path.lexists(os.path.join(git, "hooks/y")), done)
        self.assertFalse(os.path.lexists(os.path.join(own, "config.worktree")), done)
        self.assertFalse(os.path.lexists(os.path.join(main, "file")), done)  # the main tree is not the project
        self.assertEqual(before, self.read("outside/main/.git/config"))
        asked = {q["path"]: q["sensitive"] for q in done.asked}
        self.assertTrue(asked[os.path.join(git, "hooks/pre-commit")])
        self.assertTrue(asked[os.path.join(git, "config")])
        self.assertTrue(asked[os.path.join(own, "config.worktree")])

    def test_case_E1_another_worktrees_own_directory(self):
        """What a sibling worktree's git reads as its directory is not led elsewhere."""
        main = self.repository_elsewhere()
        other = os.path.join(self.outside, "other")
        self.git("worktree", "add", "-q", other, "-b", "other", cwd=main)
        own = os.path.join(main, ".git/worktrees/other")
        done = self.hold("--preset", "git", "--", "bash", "-c",
                         f"echo /evil > {own}/commondir; echo evil > {own}/config.worktree", answer=deny)
        self.assertEqual("../..\n", self.read("outside/main/.git/worktrees/other/commondir"), done)
        self.assertFalse(os.path.lexists(os.path.join(own, "config.worktree")), done)

    def test_case_E2_what_leads_git_elsewhere(self):
        """A .git file, and a file "commondir", say where config and hooks are."""
        self.git("init", "-q", "-b", "main", "lib", cwd=self.outside)
        self.git("commit", "-q", "--allow-empty", "-m", "zero", cwd=f"{self.outside}/lib")
        self.git("init", "-q", "-b", "main", ".")
        self.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", f"{self.outside}/lib", "vendor/lib")
        pointer = self.read("project/vendor/lib/.git")
        done = self.hold("--preset", "git", "--", "bash", "-c",
                         "mkdir evil; echo gitdir: $PWD/evil > vendor/lib/.git; echo $PWD/evil > .git/commondir;"
                         "echo $PWD/evil > x; mv x .git/commondir; mv vendor/lib vendor/away; git -C vendor/lib status", answer=deny)
        self.assertEqual(pointer, self.read("project/vendor/lib/.git"), done)
        self.assertFalse(os.path.lexists(os.path.join(self.project, ".git/commondir")))
        self.assertEqual({os.path.join(self.project, n): True for n in ("vendor/lib/.git", ".git/commondir")},
                         {q["path2" if "path2" in q else "path"]: q["sensitive"] for q in done.asked})

    def test_case_E2_the_git_file_of_a_worktree(self):
        self.repository_elsewhere()
        pointer = self.read("project/.git")
        done = self.hold("--preset", "git", "--", "bash", "-c", "echo gitdir: /evil > .git; rm .git; mv .git x", answer=deny)
        self.assertEqual(pointer, self.read("project/.git"), done)
        self.assertTrue(done.asked)

    def test_case_E1_a_copied_git_file_opens_nothing(self):
        main = self.repository_elsewhere()
        copy = os.path.join(self.dir, "copy")
        os.mkdir(copy)
        self.own(copy)
        self.write("copy/.git", self.read("project/.git"))
        done = self.hold("--preset", "git", "--", "bash", "-c", f"echo x > {main}/.git/x", answer=deny, cwd=copy)
        self.assertFalse(os.path.lexists(os.path.join(main, ".git/x")))
        self.assertEqual(1, len(done.asked))

    def test_case_E2_hooks_path_of_a_worktree(self):
        main = self.repository_elsewhere()
        self.git("config", "core.hooksPath", ".hooks", cwd=main)
        self.write("project/.hooks/pre-commit", "#!/bin/sh\necho hooked > hooked\n", 0o755)
        self.first_run(self.AS + "echo x > x; git add x; git commit -qm one; cat hooked")
        done = self.hold("--preset", "git", "--", "bash", "-c", "echo evil >> .hooks/pre-commit", answer=deny)
        self.assertNotIn("evil", self.read("project/.hooks/pre-commit"))
        self.assertEqual([True], [q["sensitive"] for q in done.asked])


if __name__ == "__main__":
    main()
