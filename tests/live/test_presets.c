/*
 * The presets against reality: of what programs open and execute on this machine, as strace saw it,
 * nothing may be left to a question by the default presets and the program's own. (A preset's
 * deny is settled too: programs go on without it.)
 */
#include "supervisor/presets.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[PATH_MAX], home[PATH_MAX + 8], tmp[PATH_MAX + 8], project_dir[PATH_MAX + 8];

static void setup(void)
{
	char template[] = "/tmp/warder-live-presets-XXXXXX";
	cr_assert_not_null(mkdtemp(template));
	cr_assert_not_null(realpath(template, dir));
	snprintf(home, sizeof(home), "%s/home", dir);
	snprintf(tmp, sizeof(tmp), "%s/tmp", dir);
	snprintf(project_dir, sizeof(project_dir), "%s/p", dir);
	const char *const all[] = {dir, home, tmp, project_dir};
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		cr_assert(i == 0 || mkdir(all[i], 0700) == 0, "%s", all[i]);
		cr_assert(geteuid() != 0 || chown(all[i], 65534, 65534) == 0, "%s", all[i]);
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	chmod(path, 0700); /* go's module cache is read-only */
	return remove(path);
}

static void teardown(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Runs the shell command under strace in the project; false where it did not end well. */
static bool trace(const char *command, const char *out)
{
	pid_t pid = fork();
	if (pid == 0) {
		char h[PATH_MAX + 16], t[PATH_MAX + 16];
		snprintf(h, sizeof(h), "HOME=%s", home);
		snprintf(t, sizeof(t), "TMPDIR=%s", tmp);
		char *env[] = {h,
			       t,
			       "PATH=/usr/bin:/bin",
			       "LANG=C.UTF-8",
			       "TERM=xterm",
			       "GIT_AUTHOR_NAME=a",
			       "GIT_AUTHOR_EMAIL=a@b",
			       "GIT_COMMITTER_NAME=a",
			       "GIT_COMMITTER_EMAIL=a@b",
			       NULL};
		char *argv[] = {"timeout",
				"100",
				"strace",
				"-f",
				"-qq",
				"-y",
				"-z",
				"-s",
				"4096",
				"-e",
				"trace=open,openat,openat2,execve,execveat",
				"-e",
				"signal=none",
				"-o",
				(char *)out,
				"sh",
				"-c",
				(char *)command,
				NULL};
		int null = open("/dev/null", O_RDWR);
		/* What root may write (python's caches in /usr) must not be changed by a test. */
		if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
			_exit(126);
		if (chdir(project_dir) < 0 || null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
		    dup2(null, 2) < 0)
			_exit(126);
		execve("/usr/bin/timeout", argv, env);
		_exit(127);
	}
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static uint32_t access_of(const char *line, const char *path)
{
	struct stat st;
	if (strstr(line, "execve"))
		return ACCESS_EXEC | ACCESS_READ;
	if (strstr(line, "O_PATH"))
		return 0;
	if (strstr(line, "O_DIRECTORY") || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return ACCESS_LIST;
	uint32_t access = strstr(line, "O_RDWR")     ? ACCESS_READ | ACCESS_WRITE
			  : strstr(line, "O_WRONLY") ? ACCESS_WRITE
						     : ACCESS_READ;
	return access | (strstr(line, "O_EXCL") ? ACCESS_CREATE : 0);
}

/* The real path in "= 3</path>" of an open, or of execve's first argument; NULL: none. */
static char *path_of(char *line)
{
	char *open_at = strstr(line, " = "), *start = NULL;
	if (strstr(line, "execve(")) {
		start = strchr(line, '"');
		char *end = start ? strchr(start + 1, '"') : NULL;
		if (!end)
			return NULL;
		*end = '\0';
		return realpath(start + 1, NULL);
	}
	while (open_at && (start = strstr(open_at + 1, " = ")))
		open_at = start;
	start = open_at ? strchr(open_at, '<') : NULL;
	if (!start || start[1] != '/')
		return NULL; /* a pipe, a socket, a line that is unfinished */
	char *end = strrchr(start, '>');
	char *deleted = strstr(start, ">(deleted)");
	char *device = strstr(start, "<char ");
	end = deleted ? deleted : device ? device : end;
	return end ? strndup(start + 1, (size_t)(end - start - 1)) : NULL;
}

static size_t check(const struct policy *p, const char *trace_file, const char *command,
		    size_t *ret_bad)
{
	FILE *f = fopen(trace_file, "re");
	cr_assert_not_null(f);
	char *line = NULL;
	size_t cap = 0, n = 0;
	while (getline(&line, &cap, f) > 0) {
		char *call AUTOFREE = strdup(line);
		char *path AUTOFREE = path_of(line);
		uint32_t access = path ? access_of(call, path) : 0, asked = 0;
		if (!access)
			continue;
		n++;
		if (policy_decide_all(p, path, access, &asked).effect != EFFECT_ASK)
			continue;
		struct buf names = {0};
		access_format(&names, asked);
		cr_log_error("%s: would ask: %s %s", command, buf_str(&names), path);
		buf_free(&names);
		++*ret_bad;
	}
	free(line);
	fclose(f);
	return n;
}

static struct policy *policy_with(const char *presets)
{
	struct policy *p;
	struct project project;
	struct policy_error error;
	char *note = NULL, name[32];
	const char *homes[] = {home, NULL};
	struct policy_vars vars = {.home = home, .project = project_dir, .tmpdir = tmp};
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(project_find(project_dir, project_dir, homes, &project), 0);
	cr_assert_eq(preset_add(p, "system", &vars, &error), 0);
	cr_assert_eq(preset_add(p, "tmp", &vars, &error), 0);
	cr_assert_eq(preset_add_project(p, &project, &vars, &note, &error), 0);
	for (int n; sscanf(presets, "%31s%n", name, &n) == 1; presets += n)
		cr_assert_eq(preset_add(p, name, &vars, &error), 0, "%s", error.text);
	project_release(&project);
	return p;
}

Test(presets, programs_of_this_machine, .init = setup, .fini = teardown, .timeout = 280)
{
	static const struct {
		const char *program, *presets, *command;
	} rows[] = {
		{"sh", "", "echo x > a; echo y >> a; cat a | sort > b; mv b c; rm c"},
		{"bash", "", "bash -c 'cat <<< x; echo ~; ls / > /dev/null; umask'"},
		{"ls", "", "ls -la / /usr/bin . ; id; date; uname -a; df -h . ; ps aux; env"},
		{"git", "git",
		 "git init -q --template= g && cd g && echo a > a && git add a && git "
		 "commit -qm a && git log && git status && git gc -q"},
		{"gcc", "c",
		 "echo 'int main(void){return 0;}' > t.c && gcc -O2 -c t.c && gcc t.o -o t "
		 "&& ./t"},
		{"clang", "c", "echo 'int main(void){return 0;}' > u.c && clang u.c -o u && ./u"},
		{"make", "c", "printf 'all:\\n\\techo x > m\\n' > Makefile && make"},
		{"python3", "python",
		 "/usr/bin/python3 -c 'import json, ssl, sqlite3, subprocess, tempfile, hashlib; "
		 "subprocess.run([\"true\"]); tempfile.TemporaryFile(); "
		 "sqlite3.connect(\"x.db\").execute(\"create table t(a)\")'"},
		{"python3", "python",
		 "printf 'import multiprocessing as m\\nif __name__ == \"__main__\":\\n p = "
		 "m.Pool(2)\\n "
		 "print(p.map(abs, [1, -2]))\\n' > mp.py && /usr/bin/python3 mp.py"},
		{"perl", "",
		 "perl -MFile::Temp=tempfile -MPOSIX -e 'tempfile(); print POSIX::getpid()'"},
		{"node", "node",
		 "node -e 'require(\"fs\").writeFileSync(\"n\", \"x\"); "
		 "require(\"child_process\").execSync(\"true\"); require(\"https\")'"},
		{"npm", "node", "npm --version && npm init -y"},
		{"go", "go",
		 "mkdir -p gg && cd gg && printf 'package main\\nfunc main() {}\\n' > main.go && "
		 "go env -w GOFLAGS=-mod=mod GOTELEMETRY=off 2>/dev/null; go version"},
		{"javac", "java",
		 "echo 'class A { public static void main(String[] a) {} }' > A.java && "
		 "javac A.java && java A"},
		{"vim", "", "vim -es -u NONE -c 'normal ihello' -c 'wq! v.txt'"},
		{"less", "", "ls / | less"},
		{"top", "", "top -bn1"},
		{"sed", "",
		 "echo a > s && sed -i s/a/b/ s && grep -r b s && tar cf s.tar s && tar xf s.tar "
		 "&& find . -name s"},
		{"getent", "", "getent passwd root && getent hosts localhost"},
		{"awk", "", "echo 1 | awk '{print $1 | \"sort\"}'"},
		{"gdb", "c", "gdb -batch -ex 'print 1'"},
		{"tmux", "", "tmux -V"},
		{"curl", "", "curl --version"},
	};
	size_t ran = 0, bad = 0;
	char out[PATH_MAX + 16];
	snprintf(out, sizeof(out), "%s/trace", dir);
	if (access("/usr/bin/strace", X_OK) != 0)
		cr_skip_test("no strace here");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char program[64];
		snprintf(program, sizeof(program), "/usr/bin/%s", rows[i].program);
		if (access(program, X_OK) != 0)
			continue;
		bool well = trace(rows[i].command, out);
		struct policy *p = policy_with(rows[i].presets);
		size_t n = check(p, out, rows[i].command, &bad);
		policy_free(p);
		cr_expect(well, "%s did not end well", rows[i].command);
		cr_expect_gt(n, 3, "%s: only %zu calls seen", rows[i].command, n);
		ran++;
	}
	cr_assert_gt(ran, 5);
	cr_assert_eq(bad, 0, "%zu calls would ask", bad);
}
