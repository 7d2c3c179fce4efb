#include "agent/termwidth.h"

#include "supervisor/prose.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

size_t termwidth(int fd)
{
	struct winsize w;
	return ioctl(fd, TIOCGWINSZ, &w) || !w.ws_col ? 80 : w.ws_col;
}

size_t termwidth_rows(int fd)
{
	struct winsize w;
	return ioctl(fd, TIOCGWINSZ, &w) || !w.ws_row ? 24 : w.ws_row;
}

bool termwidth_is_capable(int fd)
{
	const char *term = getenv("TERM");
	return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

void termwidth_wrap(struct buf *out, const struct buf *text, int fd)
{
	if (isatty(fd))
		prose_hang(out, buf_str(text), termwidth(fd) - 1);
	else
		buf_add(out, buf_str(text), text->len);
}
