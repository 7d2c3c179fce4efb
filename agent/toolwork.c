#include "agent/toolwork.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

void toolwork_error(struct jsonw *w, const char *operation, int error)
{
	jsonw_key(w, "error");
	jsonw_begin_object(w);
	jsonw_kstr(w, "operation", operation);
	jsonw_kstr(w, "errno", strerrorname_np(error));
	jsonw_kstr(w, "message", strerror(error));
	jsonw_end_object(w);
}

void toolwork_refuse(struct jsonw *w, const char *message)
{
	jsonw_key(w, "error");
	jsonw_begin_object(w);
	jsonw_kstr(w, "message", message);
	jsonw_end_object(w);
}

const char *toolwork_not_a_file(const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return NULL;
	if (S_ISDIR(st->st_mode))
		return "This is a directory; list_dir lists it.";
	return "This is no regular file but a device, FIFO or socket.";
}
