#include "supervisor/audit.h"

#include "supervisor/escape.h"
#include "supervisor/timestamp.h"
#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int make_private(int fd)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	return (st.st_mode & 07777) != 0600 && fchmod(fd, 0600) < 0 ? -errno : 0;
}

int audit_open(const char *state_dir, const char *run, const char *label, struct audit *ret)
{
	int dir AUTOCLOSE = outfile_open(state_dir, O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir;
	/* Readable too: the last byte tells whether the last line was torn. */
	int fd AUTOCLOSE = ownfile_open_at(dir, "audit.jsonl", O_RDWR | O_APPEND | O_CREAT);
	if (fd < 0)
		return fd;
	int error = make_private(fd);
	if (error)
		return error;
	struct audit a = {.label = label};
	strncpy(a.run, run, sizeof(a.run) - 1);
	a.fd = TAKE_FD(fd);
	*ret = a;
	return 0;
}

void audit_close(struct audit *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

static bool last_line_torn(int fd)
{
	struct stat st;
	char last = '\n';
	return !fstat(fd, &st) && st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 &&
	       last != '\n';
}

static void write_line(const struct audit *a, const struct denial *d, struct buf *out)
{
	char time[TIMESTAMP_LEN];
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "warder_audit", 1);
	jsonw_kstr(&w, "time", timestamp_now(time));
	jsonw_kstr(&w, "run", a->run);
	jsonw_kstr(&w, "label", a->label);
	denial_write(&w, d, false);
	jsonw_end_object(&w);
}

int audit_decision(const struct audit *a, const struct denial *d)
{
	if (a->fd < 0)
		return 0;
	struct buf text = {0}, line = {0};
	write_line(a, d, &text);
	if (last_line_torn(a->fd))
		buf_add_char(&line, '\n');
	escape_add_json(&line, buf_str(&text), text.len);
	buf_add_char(&line, '\n');
	int error = buf_error(&text) ? buf_error(&text) : buf_error(&line);
	if (!error) {
		ssize_t n = write(a->fd, line.data, line.len);
		error = n < 0 ? -errno : (size_t)n < line.len ? -ENOSPC : 0;
	}
	buf_free(&text);
	buf_free(&line);
	return error;
}
