#include "tracer/traceinput.h"

#include "tracer/libzstd.h"
#include "tracer/trace.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define WINDOW_MIN (1u << 18)
#define RAW_BLOCK  (1u << 17)

struct traceinput {
	int fd;
	char *name;
	bool own_fd;
	/* What was read and not given yet: data[start .. end). */
	char *data;
	size_t cap, start, end;
	size_t line_at, line_len; /* the last line given */
	bool line_has_newline;
	bool at_end; /* nothing more comes */
	uint64_t number;
	/* Compressed: what is read goes through here. */
	const struct libzstd *lib; /* NULL: plain */
	ZSTD_DStream *zstd;
	bool in_frame; /* what was read ends within one */
	char *raw;
	size_t raw_at, raw_len;
};

static ssize_t read_some(const struct traceinput *in, char *to, size_t room)
{
	for (;;) {
		ssize_t n = read(in->fd, to, room);
		if (n >= 0 || errno != EINTR)
			return n < 0 ? -errno : n;
	}
}

/* The first bytes tell whether it is compressed. 0 or -errno. */
static int begin(struct traceinput *in)
{
	static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd}; /* RFC 8878 */
	while (in->end < sizeof magic) {
		ssize_t n = read_some(in, in->data + in->end, in->cap - 1 - in->end);
		if (n < 0)
			return (int)n;
		if (!n)
			break;
		in->end += (size_t)n;
	}
	if (in->end < sizeof magic || memcmp(in->data, magic, sizeof magic) != 0)
		return 0;
	in->lib = libzstd_get();
	if (!in->lib)
		return -ELIBACC;
	in->zstd = in->lib->createDStream();
	in->raw = malloc(WINDOW_MIN);
	if (!in->zstd || !in->raw)
		return -ENOMEM;
	memcpy(in->raw, in->data, in->end);
	in->raw_len = in->end;
	in->in_frame = true;
	in->end = 0;
	return 0;
}

const char *traceinput_trouble(int err)
{
	return err == -ELIBACC ? "libzstd is needed for a compressed trace (Debian: libzstd1)"
			       : strerror(-err);
}

int traceinput_open(const char *file, struct traceinput **ret)
{
	struct traceinput *in = calloc(1, sizeof *in);
	if (!in)
		return -ENOMEM;
	in->own_fd = strcmp(file, "-") != 0;
	in->fd = in->own_fd ? open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY) : STDIN_FILENO;
	int err = in->fd < 0 ? -errno : 0;
	in->name = strdup(in->own_fd ? file : "standard input");
	in->cap = WINDOW_MIN;
	in->data = malloc(in->cap);
	if (!err && (!in->name || !in->data))
		err = -ENOMEM;
	if (!err)
		err = begin(in);
	if (err)
		traceinput_close(in);
	else
		*ret = in;
	return err;
}

void traceinput_close(struct traceinput *in)
{
	if (!in)
		return;
	if (in->own_fd && in->fd >= 0)
		close(in->fd);
	if (in->zstd)
		in->lib->freeDStream(in->zstd);
	free(in->raw);
	free(in->data);
	free(in->name);
	free(in);
}

/* Room for more behind what is left, and for a NUL. 0, -E2BIG or -ENOMEM. */
static int make_room(struct traceinput *in)
{
	if (in->start) {
		memmove(in->data, in->data + in->start, in->end - in->start);
		in->end -= in->start;
		in->start = 0;
	}
	if (in->end + 1 < in->cap)
		return 0;
	if (in->cap > TRACE_LINE_MAX)
		return -E2BIG;
	char *more = realloc(in->data, in->cap * 2);
	if (!more)
		return -ENOMEM;
	in->data = more;
	in->cap *= 2;
	return 0;
}

/* Bytes added (0: the end), or -errno. */
static ssize_t fill_compressed(struct traceinput *in)
{
	ZSTD_outBuffer out = {in->data + in->end, in->cap - 1 - in->end, 0};
	while (!out.pos) {
		if (in->raw_at == in->raw_len) {
			ssize_t n = read_some(in, in->raw, RAW_BLOCK);
			if (n < 0)
				return n;
			in->raw_at = 0;
			in->raw_len = (size_t)n;
			if (!n)
				return 0;
		}
		ZSTD_inBuffer from = {in->raw, in->raw_len, in->raw_at};
		size_t left = in->lib->decompressStream(in->zstd, &out, &from);
		if (in->lib->isError(left))
			return -EBADMSG;
		in->raw_at = from.pos;
		in->in_frame = left != 0;
	}
	return (ssize_t)out.pos;
}

static int fill(struct traceinput *in)
{
	int err = make_room(in);
	if (err)
		return err;
	ssize_t n = in->zstd ? fill_compressed(in)
			     : read_some(in, in->data + in->end, in->cap - 1 - in->end);
	if (n < 0)
		return (int)n;
	in->at_end = n == 0;
	in->end += (size_t)n;
	return 0;
}

int traceinput_line(struct traceinput *in, char **ret, size_t *ret_n)
{
	size_t looked = 0; /* bytes of what is left, in which there is no newline */
	for (;;) {
		char *from = in->data + in->start;
		char *newline = memchr(from + looked, '\n', in->end - in->start - looked);
		if (!newline && !in->at_end) {
			looked = in->end - in->start;
			int err = fill(in);
			if (err)
				return err;
			continue;
		}
		if (!newline && in->start == in->end)
			return 0;
		in->line_has_newline = newline != NULL;
		in->line_at = in->start;
		in->line_len = newline ? (size_t)(newline - from) : in->end - in->start;
		break;
	}
	if (in->line_len > TRACE_LINE_MAX)
		return -E2BIG;
	in->data[in->line_at + in->line_len] = '\0';
	in->start = in->line_at + in->line_len + in->line_has_newline;
	in->number++;
	*ret = in->data + in->line_at;
	*ret_n = in->line_len;
	return 1;
}

void traceinput_back(struct traceinput *in)
{
	if (in->line_has_newline)
		in->data[in->line_at + in->line_len] = '\n';
	in->start = in->line_at;
	in->number--;
}

uint64_t traceinput_number(const struct traceinput *in)
{
	return in->number;
}

bool traceinput_is_whole(const struct traceinput *in)
{
	return in->line_has_newline;
}

bool traceinput_is_cut_off(const struct traceinput *in)
{
	return in->at_end && in->in_frame;
}

const char *traceinput_name(const struct traceinput *in)
{
	return in->name;
}
