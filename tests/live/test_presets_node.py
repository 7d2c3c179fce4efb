#!/usr/bin/env python3
"""`--preset node`: a first run of node, npm and npx in an empty home."""

import os
import shutil

from preset_help import FirstRun
from run_help import both_users, main, needs

DEBIAN_MODULES = "/usr/share/nodejs"
PACKAGE = {
    "package.json": '{"name": "app", "version": "1.0.0", "scripts": {"hello": "node hello.js", "test": "node --test"},'
                    ' "dependencies": {"lib": "file:lib"}}\n',
    "hello.js": "console.log(require('lib'));\n",
    "app.test.js": "require('node:test')('adds', () => require('node:assert').equal(2, 1 + 1));\n",
    "lib/package.json": '{"name": "lib", "version": "1.0.0", "main": "main.js", "bin": {"tell": "tell.js"}}\n',
    "lib/main.js": "module.exports = 'from lib';\n",
    "lib/tell.js": "#!/usr/bin/env node\nconsole.log('told');\n",
}


@needs("node", "npm", "npx")
@both_users
class Node(FirstRun):
    preset = "node"

    def test_npm_init(self):
        self.first_run("npm init -y; npm pkg set scripts.x='echo ran'; npm run -s x; npm version minor;"
                       "npm config get cache; npm ls; npm pack --dry-run")

    def test_npm_install_run_npx_ci_and_test(self):
        self.make(PACKAGE)
        done = self.first_run("npm install --no-audit --no-fund; npm run -s hello; npx --offline tell; rm -r node_modules;"
                              "npm ci --no-audit --no-fund; npm test; node hello.js")
        self.assertIn("from lib\ntold\n", done.out)

    def test_packed_dependencies(self):
        self.make(PACKAGE)
        self.first_run("(cd lib; npm pack -s); npm install --no-audit --no-fund --offline ./lib/lib-1.0.0.tgz;"
                       "node hello.js; npm cache verify")
        self.assertTrue(os.path.isdir(os.path.join(self.home, ".npm")))

    def test_node_itself(self):
        self.first_run("node -e 'require(\"fs\").mkdtempSync(require(\"os\").tmpdir() + \"/x\");"
                       "require(\"child_process\").execSync(\"true\");new (require(\"worker_threads\").Worker)"
                       "(\"0\", {eval: true}); import(\"node:https\")'; node --check hello.js", cwd=self.checked())

    def checked(self):
        self.make({"hello.js": "1\n"})
        return self.project

    def test_a_token_in_npmrc_stays_closed(self):
        """npm can't read it, says so or not, and works."""
        self.write("home/.npmrc", "//registry.npmjs.org/:_authToken=secret-token\n")
        self.make(PACKAGE)
        done = self.run_report("--preset", "node", "--", "bash", "-euc",
                               "npm install --no-audit --no-fund; npm run -s hello; cat ~/.npmrc || true")
        self.assertStatus(done)
        self.assertIn("from lib", done.out)
        self.assertNotIn("secret-token", done.out)
        done = self.hold("--preset", "node", "--", "npm", "run", "-s", "hello", answer=lambda q: {"answer": "deny"})
        self.assertStatus(done)
        self.assertEqual([(os.path.join(self.home, ".npmrc"), True)],
                         sorted({(q["path"], q["sensitive"]) for q in done.asked}))
        self.assertEqual(1, len(done.asked))

    def test_nvm(self):
        """node in the home directory: run, not written to."""
        version = os.path.join(self.home, ".nvm/versions/node/v1.0.0")
        os.makedirs(os.path.join(version, "bin"))
        shutil.copy(os.path.realpath(shutil.which("node", path="/usr/local/bin:/usr/bin")), os.path.join(version, "bin/node"))
        npm = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("npm", path="/usr/local/bin:/usr/bin"))))
        os.makedirs(os.path.join(version, "lib/node_modules"))
        shutil.copytree(npm, os.path.join(version, "lib/node_modules/npm"), symlinks=True)
        os.symlink("../lib/node_modules/npm/bin/npm-cli.js", os.path.join(version, "bin/npm"))
        self.write("home/.nvm/alias/default", "v1.0.0\n")
        for top, dirs, files in os.walk(os.path.join(self.home, ".nvm")):
            for path in [top, *(os.path.join(top, f) for f in files)]:
                self.own(path)
        self.make(PACKAGE)
        env = {"PATH": f"{version}/bin:{self.env['PATH']}", "NVM_DIR": os.path.join(self.home, ".nvm")}
        if npm.startswith(DEBIAN_MODULES):  # Debian's npm has what it needs there, nvm's beside it
            env["NODE_PATH"] = DEBIAN_MODULES
        self.first_run("command -v node | grep nvm; npm install --no-audit --no-fund; npm run -s hello", env=env)
        asked = self.asked_for(f"echo x > {version}/bin/evil; npm install -g --no-audit --no-fund ./lib", env)
        self.assertIn(f"{version}/bin/evil", asked)
        self.assertFalse(os.path.lexists(f"{version}/bin/tell"))

    def asked_for(self, script, env):
        done = self.hold("--preset", "node", "--", "bash", "-c", script, answer=lambda q: {"answer": "deny"},
                         env={**self.env, **env})
        return [q["path"] for q in done.asked]


if __name__ == "__main__":
    main()
