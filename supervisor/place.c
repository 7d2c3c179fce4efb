#include "supervisor/place.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int place_of(int fd, struct place *ret)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_MNT_ID, &x) < 0)
		return -errno;
	*ret = (struct place){.dev = makedev(x.stx_dev_major, x.stx_dev_minor),
			      .ino = x.stx_ino,
			      .mount = x.stx_mnt_id};
	return 0;
}

int place_climb(int *fd, struct place *place)
{
	struct place above;
	int up AUTOCLOSE = openat(*fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (up < 0)
		return -errno;
	int r = place_of(up, &above);
	if (r < 0)
		return r;
	if (above.dev == place->dev && above.ino == place->ino && above.mount == place->mount)
		return 1;
	close(*fd);
	*fd = TAKE_FD(up);
	*place = above;
	return 0;
}
