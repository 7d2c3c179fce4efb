#include "supervisor/lastreport.h"

#include "tracer/outfile.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define NAME "last-report.json"

static int open_dir(const struct store *s)
{
	return outfile_open(s->state_dir, O_RDONLY | O_DIRECTORY, 0);
}

static int write_new(int dirfd, const char *name, const struct buf *text)
{
	int fd AUTOCLOSE =
		openat(dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : buf_write_to(fd, buf_str(text), text->len);
}

/*
 * It takes the last one's place by an exchange, where the file system has that: a file that
 * replaces another by a plain rename is written to the disk there and then by ext4 (auto_da_alloc),
 * and every command would wait for it. What a power cut costs is one report.
 */
static int put_in_place(int dirfd, const char *temporary)
{
	if (!renameat2(dirfd, temporary, dirfd, NAME, RENAME_EXCHANGE))
		return unlinkat(dirfd, temporary, 0) < 0 ? -errno : 0;
	return renameat(dirfd, temporary, dirfd, NAME) < 0 ? -errno : 0;
}

int lastreport_save(const struct store *s, const struct report *r)
{
	struct report redacted = *r;
	struct buf text = {.max = LASTREPORT_MAX};
	char temporary[64];
	int dirfd AUTOCLOSE = open_dir(s);
	if (dirfd < 0)
		return dirfd;
	redacted.no_redact = false;
	int err = report_write(&redacted, &text);
	buf_add_char(&text, '\n');
	if (!err)
		err = buf_error(&text);
	snprintf(temporary, sizeof temporary, "." NAME ".%d", (int)getpid());
	if (!err) {
		unlinkat(dirfd, temporary, 0); /* a crashed process had our pid */
		err = write_new(dirfd, temporary, &text);
	}
	if (!err)
		err = put_in_place(dirfd, temporary);
	if (err)
		unlinkat(dirfd, temporary, 0);
	buf_free(&text);
	return err;
}

int lastreport_load(const struct store *s, struct json **ret)
{
	struct buf text = {.max = LASTREPORT_MAX};
	struct json *root = NULL;
	int dirfd AUTOCLOSE = open_dir(s);
	if (dirfd < 0)
		return dirfd;
	int err = ownfile_read_at(dirfd, NAME, &text);
	if (!err)
		err = json_parse(buf_str(&text), text.len, &root, NULL);
	buf_free(&text);
	int64_t version = 0;
	if (!err && (!json_get_int(root, "warder_report", &version) || version != 1)) {
		json_free(root);
		err = -EINVAL;
	}
	if (!err)
		*ret = root;
	return err;
}
