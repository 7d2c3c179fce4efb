#include "tracer/ownfile.h"

#include "tests/tempdir.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static void make_things(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	tempdir_file("file", "text");
	cr_assert_eq(symlink("file", "link"), 0);
	cr_assert_eq(symlink("absent", "dangling"), 0);
	cr_assert_eq(mkdir("dir", 0700), 0);
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_assert_eq(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	close(s);
	if (geteuid())
		return;
	tempdir_file("others", "text");
	cr_assert_eq(chown("others", 65534, 65534), 0);
}

/* Both ways come to the same, and never wait. */
Test(ownfile, only_a_file_of_our_own, .timeout = 30)
{
	static const struct {
		const char *name;
		int result; /* 0: it is opened */
		int writing;
	} rows[] = {
		{"file", 0, 0},
		{"link", -ELOOP, -ELOOP},
		{"dangling", -ELOOP, -ELOOP},
		{"dir", -EINVAL, -EINVAL},
		{"fifo", -EINVAL, -EINVAL},
		{"socket", -EINVAL, -EINVAL},
		{"others", -EPERM, -EPERM},
		{"absent", -ENOENT, 0},
	};
	char top[PATH_MAX], path[PATH_MAX + 16];

	tempdir_enter(top);
	make_things();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].result == -EPERM && geteuid())
			continue;
		snprintf(path, sizeof(path), "%s/%s", top, rows[i].name);
		for (int how = 0; how < 4; how++) {
			int flags = how & 1 ? O_WRONLY | O_CREAT | O_APPEND : O_RDONLY;
			int fd = how & 2 ? ownfile_open_at(AT_FDCWD, rows[i].name, flags)
					 : ownfile_open(path, flags);
			int expected = how & 1 ? rows[i].writing : rows[i].result;
			cr_expect_eq(fd < 0 ? fd : 0, expected, "%s %d: %d", path, how, fd);
			if (fd < 0)
				continue;
			cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
			unlink("absent");
		}
	}
	tempdir_leave(top);
}

Test(ownfile, nothing_of_anothers_is_emptied)
{
	char top[PATH_MAX];
	struct buf b = {0};
	struct stat st;

	tempdir_enter(top);
	make_things();
	mode_t mask = umask(0);
	int fd = ownfile_open_at(AT_FDCWD, "new", O_WRONLY | O_CREAT | O_TRUNC);
	umask(mask);
	cr_assert_geq(fd, 0);
	cr_expect(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0600);
	close(fd);
	fd = ownfile_open_at(AT_FDCWD, "file", O_WRONLY | O_CREAT | O_TRUNC);
	cr_assert_geq(fd, 0);
	cr_expect(fstat(fd, &st) == 0 && st.st_size == 0);
	close(fd);
	if (geteuid() == 0) {
		cr_expect_eq(ownfile_open_at(AT_FDCWD, "others", O_WRONLY | O_TRUNC), -EPERM);
		cr_expect(stat("others", &st) == 0 && st.st_size == 4);
	}
	tempdir_file("file", "all of it");
	cr_expect_eq(ownfile_read_at(AT_FDCWD, "file", &b), 0);
	cr_expect_str_eq(buf_str(&b), "all of it");
	buf_free(&b);
	b.max = 8;
	cr_expect_eq(ownfile_read_at(AT_FDCWD, "file", &b), -EFBIG);
	buf_free(&b);
	tempdir_leave(top);
}
