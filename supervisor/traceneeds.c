#include "supervisor/traceneeds.h"

#include "supervisor/tracewords.h"

#include <fcntl.h>
#include <sys/stat.h>

mode_t traceneeds_mode(enum trace_thing t)
{
	static const mode_t modes[TRACE_THING_COUNT] = {
		[TRACE_THING_FILE] = S_IFREG,	 [TRACE_THING_DIR] = S_IFDIR,
		[TRACE_THING_SYMLINK] = S_IFLNK, [TRACE_THING_CHAR] = S_IFCHR,
		[TRACE_THING_BLOCK] = S_IFBLK,	 [TRACE_THING_FIFO] = S_IFIFO,
		[TRACE_THING_SOCKET] = S_IFSOCK, [TRACE_THING_UNKNOWN] = S_IFREG,
	};
	return modes[t];
}

/* What is not told was there, unless the call says that it made it. */
static bool was_there(const struct trace_event *ev, const struct trace_path *p)
{
	if (p->thing == TRACE_THING_UNKNOWN && ev->ent->need[0] == CALL_NEED_OPEN)
		return !(ev->flags & O_CREAT) || !(ev->flags & O_EXCL);
	return p->thing != TRACE_THING_ABSENT;
}

/* As of a call that is stopped, without its descriptors. */
static void work_out(const struct trace_event *ev, uint32_t ret[CALL_PATHS])
{
	struct need need[CALL_PATHS];
	bool open = ev->ent->need[0] == CALL_NEED_OPEN;
	struct call c = {.ent = ev->ent,
			 .open_flags = open ? ev->flags : 0,
			 .at_flags = open ? 0 : (uint32_t)ev->flags,
			 .mode = ev->mode};
	for (unsigned i = 0; i < CALL_PATHS; i++) {
		struct path_at *at = &c.path[i].at;
		path_init(at);
		c.path[i].need = ev->ent->need[i];
		at->real = (char *)(uintptr_t)ev->path[i].real;
		at->exists = was_there(ev, &ev->path[i]);
		at->st.st_mode = traceneeds_mode(ev->path[i].thing);
	}
	access_needed(&c, need);
	for (unsigned i = 0; i < CALL_PATHS; i++)
		ret[i] = need[i].access;
	/* Whether it was there is not told: it may have been made. */
	if (open && ev->path[0].thing == TRACE_THING_UNKNOWN && (ev->flags & O_CREAT) &&
	    !(ev->flags & (O_EXCL | O_PATH)))
		ret[0] |= ACCESS_CREATE;
	/* By descriptor: what it may was settled when it was opened. */
	bool device =
		ev->path[0].thing == TRACE_THING_CHAR || ev->path[0].thing == TRACE_THING_BLOCK;
	if (ev->ent->arg[0] == ARG_FILE && (ev->ent->need[0] != CALL_NEED_IOCTL || !device))
		ret[0] = 0;
}

bool traceneeds_of(const struct trace_event *ev, uint32_t ret[TRACE_PATHS])
{
	uint32_t worked_out[CALL_PATHS] = {0}, any = 0;
	bool told = true;
	for (unsigned i = 0; i < ev->paths; i++)
		told &= ev->path[i].access != NULL;
	if (!told && ev->ent)
		work_out(ev, worked_out);
	bool exec = ev->ent && ev->ent->need[0] == CALL_NEED_EXEC;
	for (unsigned i = 0; i < TRACE_PATHS; i++) {
		const char *words = ev->path[i].access;
		ret[i] = i >= ev->paths	  ? 0
			 : words	  ? tracewords_access(words)
			 : exec		  ? ACCESS_EXEC | ACCESS_READ
			 : i < CALL_PATHS ? worked_out[i]
					  : 0;
		any |= ret[i];
	}
	return any != 0;
}
