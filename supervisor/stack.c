#include "supervisor/stack.h"

#include "tracer/util.h"

#include <errno.h>
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
	case UNWIND_NO_LIBRARY:
		return "to follow it further libunwind is needed (Debian: libunwind8)";
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

/* ---- read ---- */

static int read_end(const struct json *object, enum unwind_end *ret)
{
	const char *name = json_get_str(object, "stack_end");
	for (enum unwind_end e = UNWIND_COMPLETE; e < UNWIND_ENDS; e++) {
		if (!name || strcmp(name, unwind_end_name(e)) != 0)
			continue;
		*ret = e;
		return 0;
	}
	return name && !strcmp(name, "none") ? -ENOENT : -EINVAL;
}

static uint64_t read_number(const struct json *o, const char *key)
{
	int64_t n = 0;
	json_get_int(o, key, &n);
	return (uint64_t)n;
}

/* Into the text at *at, which has room: its place, or NULL where there is no such member. */
static const char *keep(const struct json *o, const char *key, char **at)
{
	const char *s = json_get_str(o, key);
	const char *kept = *at;
	if (!s)
		return NULL;
	*at = stpcpy(*at, s) + 1;
	return kept;
}

static size_t text_size(const struct json *frames)
{
	size_t n = 1;
	for (const struct json *f = json_first(frames); f; f = json_next(f)) {
		const char *function = json_get_str(f, "function"),
			   *object = json_get_str(f, "object");
		n += (function ? strlen(function) + 1 : 0) + (object ? strlen(object) + 1 : 0);
	}
	return n;
}

int stack_read(const struct json *object, struct unwind_stack **ret)
{
	const struct json *frames = json_get(object, "stack");
	enum unwind_end end;
	int err = read_end(object, &end);
	if (err)
		return err;
	struct unwind_stack *s = calloc(1, sizeof *s);
	char *at = s ? malloc(text_size(frames)) : NULL;
	if (!at) {
		free(s);
		return -ENOMEM;
	}
	*s = (struct unwind_stack){.refs = 1, .end = end, .text = at};
	for (const struct json *f = json_first(frames); f && s->len < UNWIND_FRAMES_MAX;
	     f = json_next(f)) {
		struct unwind_frame *to = &s->frame[s->len++];
		to->function = keep(f, "function", &at);
		to->object = keep(f, "object", &at);
		to->function_offset = read_number(f, "offset");
		to->object_offset = read_number(f, "object_offset");
		to->ip = read_number(f, "ip");
		json_bool(json_get(f, "signal"), &to->is_signal);
	}
	*ret = s;
	return 0;
}
