#!/usr/bin/env python3
"""`--preset go`: a first run in an empty home."""

import os

from preset_help import FirstRun
from run_help import both_users, deny, main, needs


@needs("/usr/bin/go")
@both_users
class Go(FirstRun):
    preset = "go"

    def setUp(self):
        super().setUp()
        self.make({"main.go": 'package main\n\nimport "example.org/a/lib"\n\nfunc main() { println(lib.Two()) }\n',
                   "go.mod": "module example.org/a\n\ngo 1.19\n",
                   "lib/lib.go": "package lib\n\nfunc Two() int { return 2 }\n",
                   "lib/lib_test.go": 'package lib\n\nimport "testing"\n\nfunc TestTwo(t *testing.T) { if Two() != 2 { t.Fail() } }\n'})
        self.env["GOTOOLCHAIN"] = "local"

    def test_build_run_vet_and_test(self):
        self.first_run("go version; go env GOCACHE; GOFLAGS=-mod=mod go build -o prog .; ./prog; go vet ./...; go test ./...;"
                       "go run .; go list -m all; gofmt -l .; go mod tidy; go clean -testcache", timeout=200)
        self.assertTrue(os.path.isdir(os.path.join(self.home, ".cache/go-build")))

    def test_the_toolchain_and_its_bin_are_not_written_to(self):
        done = self.hold("--preset", "go", "--", "bash", "-c", "mkdir -p ~/go/bin; echo x > ~/go/bin/evil; go env -w GOFLAGS=-x",
                         answer=deny)
        self.assertTrue(done.asked)
        self.assertFalse(os.path.lexists(os.path.join(self.home, "go/bin/evil")))


if __name__ == "__main__":
    main()
