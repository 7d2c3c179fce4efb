#include "supervisor/stack.h"

#include "tracer/util.h"

#include <inttypes.h>
#include <string.h>

/* A library by its name, as everybody calls it; a program by its path. */
static const char *short_object(const char *object)
{
	const char *slash = strrchr(object, '/');
	const char *base = slash && slash[1] ? slash + 1 : object;
	return strstr(base, ".so") ? base : object;
}

void stack_add_frame(struct buf *raw, const struct unwind_frame *f)
{
	if (f->function)
		buf_addf(raw, "%s+0x%" PRIx64 " ", f->function, f->function_offset);
	if (f->object)
		buf_addf(raw, "(%s+0x%" PRIx64 ")", short_object(f->object), f->object_offset);
	else
		buf_addf(raw, "0x%" PRIx64 " (code of no file)", f->ip);
	if (f->is_signal)
		buf_add_str(raw, ", a signal's frame");
}

const char *stack_end_words(enum unwind_end end)
{
	switch (end) {
	case UNWIND_COMPLETE:
		return NULL;
	case UNWIND_MORE:
		return "and further";
	case UNWIND_TIME:
		return "truncated: its time was over";
	case UNWIND_LOST:
		return "from here on it can't be followed";
	case UNWIND_NARROW:
		return "32-bit code is not followed further";
	case UNWIND_UNREADABLE:
		return "the process's memory can't be read";
	case UNWIND_ENDS:
		break;
	}
	BUG(true);
}

static void write_frame(struct jsonw *w, const struct unwind_frame *f)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "function", f->function);
	if (f->function)
		jsonw_kint(w, "offset", (int64_t)f->function_offset);
	jsonw_kpath(w, "object", f->object);
	if (f->object)
		jsonw_kint(w, "object_offset", (int64_t)f->object_offset);
	else
		jsonw_kint(w, "ip", (int64_t)f->ip);
	if (f->is_signal)
		jsonw_kbool(w, "signal", true);
	jsonw_end_object(w);
}

void stack_write(struct jsonw *w, const struct unwind_stack *s)
{
	jsonw_key(w, "stack");
	jsonw_begin_array(w);
	for (size_t i = 0; s && i < s->len; i++)
		write_frame(w, &s->frame[i]);
	jsonw_end_array(w);
	jsonw_kstr(w, "stack_end", s ? unwind_end_name(s->end) : "none");
}
