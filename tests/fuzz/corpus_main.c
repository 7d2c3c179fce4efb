/* A target without libFuzzer: each file that is named, and each in the directories, once. */
#include "tests/fuzz/fuzz.h"

#include "tracer/util.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static void run(int dir, const char *name)
{
	struct stat st;
	int fd AUTOCLOSE = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		abort();
	/* Of exactly that size, so that a sanitizer sees each byte that is read behind its end. */
	uint8_t *bytes AUTOFREE = malloc(st.st_size ? (size_t)st.st_size : 1);
	if (!bytes || read(fd, bytes, (size_t)st.st_size) != st.st_size)
		abort();
	(void)LLVMFuzzerTestOneInput(bytes, (size_t)st.st_size);
}

/* How many were run. */
static unsigned run_all(const char *path)
{
	unsigned n = 0;
	DIR *dir = opendir(path);
	if (!dir) {
		run(AT_FDCWD, path);
		return 1;
	}
	for (const struct dirent *e; (e = readdir(dir));) {
		if (*e->d_name == '.')
			continue;
		run(dirfd(dir), e->d_name);
		n++;
	}
	closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	unsigned n = 0;
	for (int i = 1; i < argc; i++)
		n += run_all(argv[i]);
	printf("%u inputs\n", n);
	return n ? 0 : 1;
}
