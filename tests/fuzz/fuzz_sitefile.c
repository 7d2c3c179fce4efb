/*
 * What earlier runs are said to have learned of a mapped file: the bytes as the file itself, and as
 * the sites in a file that is whole. What is then known of the mapped one lies in its text, where a
 * `syscall` is and what is to be replaced stands before it.
 */
#include "tests/fuzz/fuzz.h"

#include "tests/objectimage.h"
#include "tracer/objects.h"

#include <fcntl.h>
#include <sys/stat.h>

static char state[] = "/dev/shm/warder-fuzz-XXXXXX";
static char file[64];
static struct image im;
static struct sitefile_key key; /* its */

static void remove_all(void)
{
	unlink(file);
	rmdir(state);
	image_free(&im);
}

static void make_all(void)
{
	if (file[0])
		return;
	if (!mkdtemp(state))
		abort();
	snprintf(file, sizeof(file), "%s/sites", state);
	im = image_new();
	image_put_id(&im, 1);
	put_site(im.at + TEXT + 0x200, SYS_openat);
	memcpy(im.at + TEXT + 0x500, "\x49\x89\xf2\x48\x89\xfa\x48\x89\xce\x48\x89\xdf\x0f\x05",
	       14);
	put_site(im.at + TEXT + TEXT_SIZE - 7, SYS_open);
	atexit(remove_all);
	struct objects *os = objects_new(state);
	const struct object *o =
		os ? objects_survey(os, getpid(), &im.where, (uintptr_t)im.at) : NULL;
	if (!o || o->len != 4 || !o->key.id_len)
		abort();
	key = o->key;
	objects_free(os);
}

static void put(const uint8_t *data, size_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void put_sites(const uint8_t *data, size_t size)
{
	struct sitefile_site site[SITEFILE_SITES_MAX];
	size_t n = size / sizeof(site[0]);
	struct sitefile *f = sitefile_new(state, OBJECTS_RULES);
	if (!f)
		abort();
	if (n > SITEFILE_SITES_MAX)
		n = SITEFILE_SITES_MAX;
	memcpy(site, data, n * sizeof(site[0]));
	sitefile_put(f, &key, site, n);
	sitefile_free(f);
}

static void check_site(const struct object *o, size_t i)
{
	struct stub_site site;
	uint64_t stub;
	if (!object_site(o, i, &im.where, &site, &stub))
		abort();
	const uint8_t *syscall = (const uint8_t *)(uintptr_t)site.syscall;
	if (syscall - site.before_len < im.at + TEXT || syscall + 2 > im.at + TEXT + TEXT_SIZE ||
	    site.before_len < STUB_JUMP || memcmp(syscall, "\x0f\x05", 2) != 0 ||
	    memcmp(syscall - site.before_len, site.before, site.before_len) != 0)
		abort();
}

static void look(void)
{
	struct objects *os = objects_new(state);
	if (!os)
		abort();
	const struct object *o = objects_known(os, getpid(), &im.where, (uintptr_t)im.at);
	for (size_t i = 0; o && i < o->len; i++)
		check_site(o, i);
	/* Nothing, if the file says that there is nothing. */
	o = objects_survey(os, getpid(), &im.where, (uintptr_t)im.at);
	if (o && (o->len > o->slots || memcmp(&o->key, &key, sizeof(key)) != 0))
		abort();
	objects_free(os);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	make_all();
	put(data, size);
	look();
	put_sites(data, size);
	look();
	return 0;
}
