#include "agent/spool.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

/* A tool that fills the disk, or took the directory away, costs the file and nothing else. */
static void put(struct spool *s, const char *bytes, size_t n)
{
	size_t room = SPOOL_MAX - s->bytes;
	if (n > room)
		n = room;
	while (n && !s->failed) {
		ssize_t done = write(s->fd, bytes, n);
		if (done < 0 && errno == EINTR)
			continue;
		s->failed = done < 0;
		bytes += s->failed ? 0 : done;
		n -= s->failed ? 0 : (size_t)done;
		s->bytes += s->failed ? 0 : (size_t)done;
	}
}

/* By descriptor, and never through a name that is there already. */
static int create(const struct spool_place *place, char **ret_path)
{
	unsigned char random[6];
	char name[32];
	if (place->fd < 0 || getrandom(random, sizeof(random), 0) != sizeof(random))
		return -1;
	snprintf(name, sizeof(name), "output-%02x%02x%02x%02x%02x%02x", random[0], random[1],
		 random[2], random[3], random[4], random[5]);
	if (asprintf(ret_path, "%s/%s", place->path, name) < 0) {
		*ret_path = NULL;
		return -1;
	}
	return openat(place->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void begin(struct spool *s, const struct spool_place *place, const struct headtail *h)
{
	s->fd = create(place, &s->path);
	s->failed = s->fd < 0;
	put(s, buf_str(&h->head), h->head.len);
	put(s, buf_str(&h->tail), h->tail.len);
}

void spool_add(struct spool *s, const struct spool_place *place, const struct headtail *h,
	       const char *bytes, size_t n)
{
	if (!headtail_overflows(h, n))
		return;
	if (s->fd < 0 && !s->failed)
		begin(s, place, h);
	put(s, bytes, n);
}

void spool_write(struct jsonw *w, const struct spool *s)
{
	if (s->fd >= 0 && !s->failed)
		jsonw_kpath(w, "output_file", s->path);
}

void spool_close(struct spool *s)
{
	if (s->fd >= 0)
		close(TAKE_FD(s->fd));
	free(s->path);
	*s = (struct spool){.fd = -1};
}
