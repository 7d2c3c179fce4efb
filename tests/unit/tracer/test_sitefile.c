#include "tracer/sitefile.h"

#include "tests/tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>

#define RULES 3

static struct sitefile_key key_of(uint64_t ino)
{
	struct sitefile_key key = {.dev = 5, .ino = ino, .room = 0x3000, .slots = 9, .id_len = 20};

	memset(key.id, (int)ino, 20);
	return key;
}

static void put_many(const char *dir, uint64_t from, uint64_t to, size_t sites)
{
	struct sitefile *f = sitefile_new(dir, RULES);
	struct sitefile_site site[SITEFILE_SITES_MAX] = {{0}};

	for (uint64_t ino = from; ino < to; ino++) {
		struct sitefile_key key = key_of(ino);
		for (size_t i = 0; i < sites; i++)
			site[i] = (struct sitefile_site){ino * 100 + i, (int32_t)i, 0};
		sitefile_put(f, &key, site, sites);
	}
	sitefile_free(f);
}

static int find_with(const char *dir, uint64_t ino, uint32_t rules, struct sitefile_site *ret)
{
	struct sitefile *f = sitefile_new(dir, rules);
	struct sitefile_key key = key_of(ino);
	int n = sitefile_find(f, &key, ret);

	cr_assert_eq(sitefile_find(f, &key, ret), n);
	sitefile_free(f);
	return n;
}

static int find(const char *dir, uint64_t ino)
{
	struct sitefile_site site[SITEFILE_SITES_MAX];
	int n = find_with(dir, ino, RULES, site);

	for (int i = 0; i < n; i++) {
		cr_expect_eq(site[i].offset, ino * 100 + (uint64_t)i);
		cr_expect_eq(site[i].nr, i);
	}
	return n;
}

static off_t size_of_file(void)
{
	struct stat st;

	return stat("sites", &st) == 0 ? st.st_size : -1;
}

Test(sitefile, what_was_put_is_found)
{
	char dir[PATH_MAX];
	struct sitefile_site site[SITEFILE_SITES_MAX];
	struct stat st;

	tempdir_enter(dir);
	cr_expect_eq(find(dir, 1), -ENOENT);
	cr_expect_eq(size_of_file(), -1);
	put_many(dir, 1, 1, 0); /* nothing */
	cr_expect_eq(size_of_file(), -1);
	put_many(dir, 1, 4, 3);
	put_many(dir, 4, 5, 0);
	put_many(dir, 5, 6, SITEFILE_SITES_MAX);
	cr_assert_eq(stat("sites", &st), 0);
	cr_expect_eq(st.st_mode, S_IFREG | 0600u);
	cr_expect_neq(access("sites.new", F_OK), 0);
	cr_expect_eq(find(dir, 0), -ENOENT);
	cr_expect_eq(find(dir, 1), 3);
	cr_expect_eq(find(dir, 3), 3);
	cr_expect_eq(find(dir, 4), 0);
	cr_expect_eq(find(dir, 5), SITEFILE_SITES_MAX);
	cr_expect_eq(find_with(dir, 1, RULES + 1, site), -ENOENT);
	/* In the place of what was known. */
	off_t size = size_of_file();
	put_many(dir, 1, 2, 3);
	cr_expect_eq(size_of_file(), size);
	put_many(dir, 1, 2, 2);
	cr_expect_eq(find(dir, 1), 2);
	cr_expect_eq(find(dir, 2), 3);
	/* Other rules begin anew. */
	struct sitefile *f = sitefile_new(dir, RULES + 1);
	struct sitefile_key key = key_of(1);
	sitefile_put(f, &key, site, 0);
	sitefile_free(f);
	cr_expect_eq(find_with(dir, 1, RULES + 1, site), 0);
	cr_expect_eq(find(dir, 2), -ENOENT);
	tempdir_leave(dir);
}

Test(sitefile, each_part_of_the_key_counts)
{
	char dir[PATH_MAX];
	struct sitefile_site site[SITEFILE_SITES_MAX];

	tempdir_enter(dir);
	put_many(dir, 1, 2, 1);
	struct sitefile *f = sitefile_new(dir, RULES);
	struct sitefile_key rows[6];
	for (int i = 0; i < 6; i++)
		rows[i] = key_of(1);
	rows[1].dev++;
	rows[2].room++;
	rows[3].slots++;
	rows[4].id_len--;
	rows[5].id[19]++;
	for (int i = 0; i < 6; i++)
		cr_expect_eq(sitefile_find(f, &rows[i], site), i ? -ENOENT : 1, "%d", i);
	sitefile_free(f);
	tempdir_leave(dir);
}

Test(sitefile, it_does_not_grow_for_ever)
{
	char dir[PATH_MAX];

	tempdir_enter(dir);
	for (uint64_t ino = 0; ino < 1000; ino += 20)
		put_many(dir, ino, ino + 20, 5);
	cr_expect(size_of_file() <= SITEFILE_SIZE_MAX && size_of_file() > SITEFILE_SIZE_MAX / 2);
	cr_expect_eq(find(dir, 999), 5);
	cr_expect_eq(find(dir, 900), 5);
	cr_expect_eq(find(dir, 0), -ENOENT);
	put_many(dir, 0, 10000, SITEFILE_SITES_MAX); /* more at once than there is room for */
	cr_expect_leq(size_of_file(), (off_t)SITEFILE_SIZE_MAX);
	cr_expect_eq(find(dir, 0), SITEFILE_SITES_MAX);
	cr_expect_eq(find(dir, 999), 5);
	tempdir_leave(dir);
}

static void write_file(const char *name, const char *bytes, size_t n)
{
	FILE *f = fopen(name, "we");

	cr_assert(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
}

/* Cut at each length, and each byte another: it is as it was, or not there; and mended. */
Test(sitefile, a_broken_file)
{
	char dir[PATH_MAX], whole[2048];

	tempdir_enter(dir);
	put_many(dir, 1, 4, 3);
	FILE *f = fopen("sites", "re");
	size_t size = f ? fread(whole, 1, sizeof(whole), f) : 0;
	cr_assert(size > 300 && size < sizeof(whole) && fclose(f) == 0);
	for (size_t n = 0; n < size; n++) {
		write_file("sites", whole, n);
		for (uint64_t ino = 1; ino < 4; ino++)
			cr_assert_eq(find(dir, ino), -ENOENT);
	}
	for (size_t n = 0; n < size; n++) {
		unsigned left = 0;
		whole[n] ^= 0x5a;
		write_file("sites", whole, size);
		for (uint64_t ino = 1; ino < 4; ino++) {
			int found = find(dir, ino);
			cr_assert(found == 3 || found == -ENOENT, "%zu", n);
			left += found == 3;
		}
		cr_assert_lt(left, 3u, "%zu", n);
		whole[n] ^= 0x5a;
		if (n % 16)
			continue;
		put_many(dir, 7, 8, 1);
		cr_assert_eq(find(dir, 7), 1);
	}
	tempdir_leave(dir);
}

/* Where somebody else could have written it, or it is none. */
Test(sitefile, not_ours)
{
	char dir[PATH_MAX], other[PATH_MAX + 8];

	tempdir_enter(dir);
	put_many(dir, 1, 2, 3);
	chmod("sites", 0620);
	cr_expect_eq(find(dir, 1), -ENOENT);
	chmod("sites", 0602);
	cr_expect_eq(find(dir, 1), -ENOENT);
	chmod("sites", 0644);
	cr_expect_eq(find(dir, 1), 3);
	chmod(".", 0770);
	cr_expect_eq(find(dir, 1), -ENOENT);
	put_many(dir, 2, 3, 3);
	chmod(".", 0700);
	cr_expect_eq(find(dir, 1), 3);
	cr_expect_eq(find(dir, 2), -ENOENT);
	snprintf(other, sizeof(other), "%s/to", dir);
	cr_assert_eq(symlink(".", "to"), 0);
	cr_expect_eq(find(other, 1), -ENOENT);
	cr_assert(rename("sites", "real") == 0 && symlink("real", "sites") == 0);
	cr_expect_eq(find(dir, 1), -ENOENT);
	put_many(dir, 2, 3, 3); /* in its place */
	cr_expect_eq(find(dir, 2), 3);
	cr_assert(remove("sites") == 0 && mkfifo("sites", 0600) == 0);
	cr_expect_eq(find(dir, 1), -ENOENT);
	cr_assert(remove("sites") == 0 && mkdir("sites", 0700) == 0);
	put_many(dir, 2, 3, 3);
	cr_expect_neq(access("sites.new", F_OK), 0);
	cr_assert(remove("sites") == 0 && symlink("real", "sites.new") == 0);
	put_many(dir, 2, 3, 3); /* nothing is written through it */
	cr_expect_eq(find(dir, 2), -ENOENT);
	cr_assert(remove("sites.new") == 0 && rename("real", "sites") == 0);
	cr_expect_eq(find(dir, 1), 3);
	if (geteuid() == 0) {
		cr_assert_eq(chown("sites", 65534, 65534), 0);
		cr_expect_eq(find(dir, 1), -ENOENT);
		cr_assert(chown("sites", 0, 0) == 0 && chown(".", 65534, 65534) == 0);
		cr_expect_eq(find(dir, 1), -ENOENT);
	}
	tempdir_leave(dir);
	cr_expect_eq(find("/nowhere/at/all", 1), -ENOENT);
	put_many("/nowhere/at/all", 1, 2, 3);
}

Test(sitefile, a_full_disk_and_another_run)
{
	char dir[PATH_MAX];
	struct rlimit limit, small;

	tempdir_enter(dir);
	put_many(dir, 1, 2, 3);
	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	small = (struct rlimit){100, limit.rlim_max};
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
	put_many(dir, 2, 3, 3);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_expect_eq(find(dir, 1), 3);
	cr_expect_eq(find(dir, 2), -ENOENT);
	cr_expect_neq(access("sites.new", F_OK), 0);
	/* One that is writing; then it was killed. */
	int fd = open("sites.new", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	cr_assert(fd >= 0 && flock(fd, LOCK_EX) == 0 && write(fd, "half", 4) == 4);
	put_many(dir, 2, 3, 3);
	cr_expect_eq(find(dir, 2), -ENOENT);
	close(fd);
	put_many(dir, 2, 3, 3);
	cr_expect_eq(find(dir, 1), 3);
	cr_expect_eq(find(dir, 2), 3);
	/* Two at once: the one that ends later knows what the other has learned. */
	struct sitefile *one = sitefile_new(dir, RULES), *two = sitefile_new(dir, RULES);
	struct sitefile_site site[SITEFILE_SITES_MAX] = {{700, 0, 0}};
	struct sitefile_key a = key_of(7), b = key_of(8);
	cr_expect_eq(sitefile_find(one, &a, site), -ENOENT);
	cr_expect_eq(sitefile_find(two, &a, site), -ENOENT);
	sitefile_put(one, &a, site, 1);
	site[0].offset = 800;
	sitefile_put(two, &b, site, 1);
	sitefile_free(two);
	sitefile_free(one);
	cr_expect(find(dir, 7) == 1 && find(dir, 8) == 1);
	tempdir_leave(dir);
}
