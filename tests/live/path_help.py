"""What the tests of paths share: a file outside, one inside, and path_ops under warder."""

import os

from run_help import RunCase, fixture


class PathCase(RunCase):
    def setUp(self):
        super().setUp()
        self.secret = self.write("outside/f", "OUTSIDE")
        self.write("project/p", "INSIDE")
        self.mkdir("outside/d")

    def mkdir(self, name):
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        return self.own(path)

    def symlink(self, to, name):
        path = os.path.join(self.dir, name)
        os.symlink(to, path)
        return self.own(path)

    def ops(self, *rows, answer=None, args=(), **more):
        """path_ops under warder; done.said has a line for each row."""
        words = [word for row in rows for word in row]
        done = self.hold(*args, "--", fixture("path_ops"), *words, answer=answer, **more)
        self.assertStatus(done)
        done.said = done.out.splitlines()
        return done

    def asked(self, done):
        """What was asked, without the test's directory: (path, given, access)."""
        return [(self.short(q["path"]), self.short(q.get("given")), q["access"]) for q in done.asked]

    def short(self, path):
        return path and path.replace(self.dir + "/", "")

    def entries(self, done):
        return [(self.short(d["path"]), self.short(d.get("given")), d["verdict"], d["answer"])
                for d in done.report["denials"]]
