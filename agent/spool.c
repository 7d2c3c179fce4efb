#include "agent/spool.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

static void begin(struct spool *s, const char *dir, const struct headtail *h)
{
	if (!dir || asprintf(&s->path, "%s/output-XXXXXX", dir) < 0)
		s->path = NULL;
	/* O_EXCL: never through a name that a tool put there. */
	s->fd = s->path ? mkostemp(s->path, O_CLOEXEC) : -1;
	s->failed = s->fd < 0;
	put(s, buf_str(&h->head), h->head.len);
	put(s, buf_str(&h->tail), h->tail.len);
}

void spool_add(struct spool *s, const char *dir, const struct headtail *h, const char *bytes,
	       size_t n)
{
	if (!headtail_overflows(h, n))
		return;
	if (s->fd < 0 && !s->failed)
		begin(s, dir, h);
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
