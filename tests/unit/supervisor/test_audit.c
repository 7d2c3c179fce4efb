#include "supervisor/audit.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[64], file[96];

static void make_dir(void)
{
	strcpy(dir, "/tmp/warder-audit-XXXXXX");
	cr_assert(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/audit.jsonl", dir);
}

static void remove_dir(void)
{
	unlink(file);
	rmdir(dir);
}

TestSuite(audit, .init = make_dir, .fini = remove_dir, .timeout = 30);

static const struct denial sample = {
	.path = (char *)"/x/\xe2\x80\xae"
			"\x1b[2J\n",
	.access = ACCESS_WRITE,
	.call = "openat",
	.error = EACCES,
	.by = BY_TIMEOUT,
	.count = 1,
	.run = 1,
	.pid = 7,
	.exe = (char *)"/bin/x",
	.argv0 = (char *)"--password=abc",
};

static size_t read_file(char *ret, size_t n)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, ret, n - 1);
	cr_assert_geq(got, 0);
	ret[got] = 0;
	close(fd);
	return (size_t)got;
}

Test(audit, one_line_a_decision)
{
	struct audit a = {.fd = -1};
	char text[4096];
	cr_assert_eq(audit_decision(&a, &sample), 0, "closed: nothing to do");
	cr_assert_eq(audit_open(dir, "00ff", "my label", &a), 0);
	cr_expect(fcntl(a.fd, F_GETFD) & FD_CLOEXEC);
	cr_assert_eq(audit_decision(&a, &sample), 0);
	cr_assert_eq(audit_decision(&a, &sample), 0);
	audit_close(&a);
	cr_expect_eq(a.fd, -1);
	read_file(text, sizeof(text));
	char *second = strchr(text, '\n');
	cr_assert(second);
	cr_expect(strchr(second + 1, '\n'));
	struct json *root = NULL;
	cr_assert_eq(json_parse(text, (size_t)(second - text), &root, NULL), 0);
	cr_expect_str_eq(json_get_str(root, "run"), "00ff");
	cr_expect_str_eq(json_get_str(root, "label"), "my label");
	cr_expect_str_eq(json_get_str(root, "path"), sample.path);
	cr_expect_str_eq(json_get_str(root, "by"), "timeout");
	cr_expect_str_eq(json_get_str(root, "answer"), "deny");
	cr_expect_str_eq(json_get_str(root, "argv0"), "--password=[redacted]");
	cr_expect_eq(strlen(json_get_str(root, "time")), strlen("2025-01-31T23:59:59.123Z"));
	json_free(root);
	for (char *c = text; *c; c++)
		cr_expect(*c == '\n' || (*c >= 0x20 && *c < 0x7f), "raw byte %d", *c);
}

Test(audit, private_file)
{
	struct audit a;
	struct stat st;
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	cr_assert_geq(fd, 0);
	fchmod(fd, 0666);
	close(fd);
	cr_assert_eq(audit_open(dir, "1", NULL, &a), 0);
	audit_close(&a);
	cr_assert_eq(stat(file, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
}

Test(audit, appends_across_opens)
{
	char text[4096];
	struct audit a;
	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(audit_open(dir, "1", NULL, &a), 0);
		cr_assert_eq(audit_decision(&a, &sample), 0);
		audit_close(&a);
	}
	read_file(text, sizeof(text));
	size_t lines = 0;
	for (char *c = text; (c = strchr(c, '\n')); c++)
		lines++;
	cr_expect_eq(lines, 3);
}

Test(audit, refuses_what_is_no_file_of_ours)
{
	struct audit a;
	cr_assert_eq(symlink("/etc/hostname", file), 0);
	cr_expect_eq(audit_open(dir, "1", NULL, &a), -ELOOP);
	unlink(file);
	cr_assert_eq(mkfifo(file, 0600), 0);
	cr_expect_eq(audit_open(dir, "1", NULL, &a), -EINVAL);
	unlink(file);
	cr_expect_eq(audit_open("/nonexistent/warder", "1", NULL, &a), -ENOENT);
	if (geteuid())
		return;
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(fchown(fd, 65534, 65534), 0);
	close(fd);
	cr_expect_eq(audit_open(dir, "1", NULL, &a), -EPERM);
}

/* In a child of its own: the limit on the file's size stands for a full disk. 0: as it should be.
 */
static int torn_line(void)
{
	struct audit a;
	struct rlimit limit;
	if (audit_open(dir, "1", NULL, &a) || audit_decision(&a, &sample))
		return 1;
	off_t size = lseek(a.fd, 0, SEEK_END);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	rlim_t before = limit.rlim_cur;
	limit.rlim_cur = (rlim_t)size + 10;
	if (setrlimit(RLIMIT_FSIZE, &limit))
		return 2;
	if (audit_decision(&a, &sample) != -ENOSPC)
		return 3;
	if (audit_decision(&a, &sample) != -EFBIG)
		return 4;
	limit.rlim_cur = before;
	if (setrlimit(RLIMIT_FSIZE, &limit) || audit_decision(&a, &sample))
		return 5;
	return 0;
}

/* A full disk loses that line, says so, and the next line stands by itself. */
Test(audit, full_disk)
{
	pid_t pid = fork();
	if (!pid)
		_exit(torn_line());
	int status;
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
	char text[4096];
	read_file(text, sizeof(text));
	size_t good = 0, bad = 0;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		struct json *root = NULL;
		int error = json_parse(line, (size_t)(end - line), &root, NULL);
		good += !error;
		bad += error != 0;
		json_free(root);
	}
	cr_expect_eq(good, 2);
	cr_expect_eq(bad, 1);
}
