#include "tracer/straceimport_inside.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>

#define DAY_NS (INT64_C(86400) * 1000000000)

/* ---- calls by name ---- */

static size_t slot_of(struct strace_span name)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < name.len; i++)
		h = (h ^ (unsigned char)name.at[i]) * 16777619u;
	return (h ^ (h >> 15)) & (STRACE_CALLS_MAX - 1);
}

/* The row of the name, or the free slot for it. */
static struct strace_call *row_of(const struct straceimport *in, struct strace_span name)
{
	size_t at = slot_of(name);
	while (in->calls[at].name && !strace_span_is(name, in->calls[at].name))
		at = (at + 1) & (STRACE_CALLS_MAX - 1);
	return (struct strace_call *)&in->calls[at];
}

static struct strace_call *name_row(struct straceimport *in, const char *name)
{
	struct strace_call *row = row_of(in, (struct strace_span){name, strlen(name)});
	row->name = name;
	return row;
}

static void fill_calls(struct straceimport *in)
{
	static const struct {
		const char *name;
		bool by_name;
		int (*apply)(struct straceimport *in, struct straceproc *p);
	} states[] = {
#define STATE(name, by_name, apply)	  {#name, by_name, apply},
#define STATE_AGAIN(name, by_name, apply) STATE(name, by_name, apply)
#include "tracer/stracestate.def"
#undef STATE
#undef STATE_AGAIN
	};
	/* Half of it stays free, so that a search ends soon. */
	BUG(SYS_ID_COUNT + ARRAY_LEN(states) > STRACE_CALLS_MAX / 2);
	for (size_t i = 0; i < SYS_ID_COUNT; i++)
		if (sysents[i].group != SYS_GROUP_GUARD)
			name_row(in, sysents[i].name)->ent = &sysents[i];
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		struct strace_call *row = name_row(in, states[i].name);
		row->apply = states[i].apply;
		row->by_name = states[i].by_name;
	}
}

const struct strace_call *straceimport_call(const struct straceimport *in, struct strace_span name)
{
	const struct strace_call *row = row_of(in, name);
	return row->name ? row : NULL;
}

/* ---- what is passed over ---- */

static void fault(struct straceimport *in, size_t column, const char *expected)
{
	char text[512];
	in->faults++;
	if (!in->options.fault)
		return;
	snprintf(text, sizeof(text), "%s:%llu:%zu: %s was expected", traceinput_name(in->file),
		 (unsigned long long)traceinput_number(in->file), column + 1, expected);
	in->options.fault(in->options.fault_arg, text);
}

/* ---- events ---- */

pid_t straceimport_shown(pid_t pid)
{
	return pid ? pid : 1;
}

struct trace_event *straceimport_owe(struct straceimport *in, enum trace_kind kind,
				     const struct straceproc *p)
{
	BUG(in->owed_len == STRACE_OWED_MAX);
	struct trace_event *ev = &in->owed[in->owed_len++];
	*ev = (struct trace_event){.kind = kind,
				   .t_ns = in->last_ns,
				   .pid = straceimport_shown(p->tgid),
				   .tid = straceimport_shown(p->pid),
				   .line = traceinput_number(in->file)};
	return ev;
}

/* ---- lines ---- */

/* The text of a call from behind its "(", and where in the line that is. */
struct call_text {
	struct strace_span name;
	struct strace_span text;
	size_t column;
	size_t skipped; /* bytes of the text that were in an earlier line */
};

static int bad_call(struct straceimport *in, const struct call_text *t, int error)
{
	size_t at = in->args.bad_at > t->skipped ? in->args.bad_at - t->skipped : 0;
	if (error == -ENOMEM)
		return error;
	fault(in, t->column + at, in->args.expected);
	return 0;
}

/* 1 and an event, 0, -ENOMEM. */
static int take_call(struct straceimport *in, struct straceproc *p, const struct call_text *t,
		     struct trace_event *ret)
{
	const struct strace_call *call = straceimport_call(in, t->name);
	if (!call || p->ended) {
		in->skipped++;
		return 0;
	}
	if (call->by_name)
		return call->apply(in, p);
	int r = straceargs_parse(&in->args, t->text);
	if (r < 0)
		return bad_call(in, t, r);
	in->now.t_ns = in->last_ns;
	in->now.line = traceinput_number(in->file);
	r = straceevent_read(in, p, call);
	if (r < 0)
		return r;
	bool made = straceevent_make(in, p, ret);
	if (call->apply)
		r = call->apply(in, p);
	if (call->ent && !p->ended)
		stracelearn_after(in);
	return r < 0 ? r : made;
}

static int begin_call(struct straceimport *in, struct straceproc *p, const struct straceline *line)
{
	if (p->ended || line->name.len >= sizeof(p->name))
		return 0;
	p->begun = true;
	memcpy(p->name, line->name.at, line->name.len);
	p->name[line->name.len] = '\0';
	buf_reset(&p->text);
	if (strace_span_is(line->name, "close")) {
		/*
		 * Done now: another thread may have the number by the time that this one returns.
		 * Linux closes it whatever close(2) answers, but for EBADF.
		 */
		(void)straceargs_parse(&in->args, line->rest);
		return stracefds_close(in, p);
	}
	if (straceimport_call(in, line->name))
		buf_add(&p->text, line->rest.at, line->rest.len);
	return buf_error(&p->text) == -ENOMEM ? -ENOMEM : 0;
}

static int resume_call(struct straceimport *in, struct straceproc *p, const struct straceline *line,
		       const char *text, struct trace_event *ret)
{
	/* Begun before the trace was. */
	if (!p->begun || !strace_span_is(line->name, p->name))
		return 0;
	p->begun = false;
	if (!straceimport_call(in, line->name) || strace_span_is(line->name, "close"))
		return 0;
	size_t skipped = p->text.len;
	buf_add(&p->text, line->rest.at, line->rest.len);
	if (buf_error(&p->text))
		return buf_error(&p->text) == -ENOMEM ? -ENOMEM : 0;
	struct call_text t = {.name = line->name,
			      .text = {buf_str(&p->text), p->text.len},
			      .column = (size_t)(line->rest.at - text),
			      .skipped = skipped};
	return take_call(in, p, &t, ret);
}

/* strace: Process N attached; what it broke into goes on in the next line. */
static int attach(struct straceimport *in, const struct straceline *line, const char *text)
{
	if (line->rest.at) {
		buf_reset(&in->broken);
		buf_add(&in->broken, text, (size_t)(line->rest.at - text) + line->rest.len);
		if (line->rest.len == 0 && buf_error(&in->broken))
			return -ENOMEM;
	}
	const struct straceproc *p = stracewho_find(in, line->other);
	if (!in->started || (p && !p->ended))
		return 0;
	struct straceproc *child = straceprocs_claim(&in->procs, line->other);
	in->changes++;
	if (child)
		child->announced = true;
	return 0;
}

static void set_time(struct straceimport *in, const struct straceline *line)
{
	if (!line->has_time)
		return;
	if (!in->has_start) {
		in->has_start = true;
		in->start_ns = line->time_ns;
	}
	int64_t since = 0;
	if (__builtin_sub_overflow(line->time_ns, in->start_ns, &since))
		return;
	/* A clock without a date goes past midnight. */
	if (since < 0 && line->time_ns < DAY_NS + 1 && in->start_ns < 2 * DAY_NS)
		since += DAY_NS;
	if (since > 0 && (uint64_t)since > in->last_ns)
		in->last_ns = (uint64_t)since;
}

/* A line that belongs to a process. 1 and an event, 0, -ENOMEM. */
static int take_line(struct straceimport *in, const struct straceline *line, const char *text,
		     struct trace_event *ret)
{
	struct straceproc *p = stracewho_of(in, line);
	struct call_text t = {
		.name = line->name, .text = line->rest, .column = (size_t)(line->rest.at - text)};
	if (!p) {
		fault(in, 0, "a process of those that are known (there are too many)");
		return 0;
	}
	switch ((int)line->kind) {
	case STRACELINE_CALL:
		p->begun = false;
		return take_call(in, p, &t, ret);
	case STRACELINE_UNFINISHED:
		return begin_call(in, p, line);
	case STRACELINE_RESUMED:
		return resume_call(in, p, line, text, ret);
	case STRACELINE_EXITED:
	case STRACELINE_KILLED:
		stracewho_end(in, p, line);
		return 0;
	case STRACELINE_SUPERSEDED:
		stracewho_supersede(in, p, line->other);
		return 0;
	default:
		return 0;
	}
}

static int take_text(struct straceimport *in, const char *text, size_t len, struct trace_event *ret)
{
	struct straceline line;
	struct straceproc *p = NULL;
	straceline_parse(text, len, &line);
	if (!traceinput_is_whole(in->file) && line.kind != STRACELINE_EXITED) {
		/* The tail of a killed strace: a result of 3 may be the beginning of 37. */
		in->cut = true;
		return 0;
	}
	set_time(in, &line);
	switch (line.kind) {
	case STRACELINE_BAD:
		fault(in, line.bad_at, line.expected);
		return 0;
	case STRACELINE_NOTHING:
	case STRACELINE_SIGNAL:
		return 0;
	case STRACELINE_ATTACHED:
		return attach(in, &line, text);
	case STRACELINE_DETACHED:
		p = stracewho_find(in, line.other);
		if (p)
			straceprocs_drop(&in->procs, p);
		in->changes++;
		return 0;
	case STRACELINE_BITS:
		p = stracewho_find(in, line.other);
		if (p)
			p->i386 = line.number == 32;
		return 0;
	case STRACELINE_CALL:
	case STRACELINE_UNFINISHED:
	case STRACELINE_RESUMED:
	case STRACELINE_EXITED:
	case STRACELINE_KILLED:
	case STRACELINE_SUPERSEDED:
		return take_line(in, &line, text, ret);
	}
	return 0;
}

/* With what a remark of strace's broke off before it. */
static int take_joined(struct straceimport *in, const char *text, size_t len,
		       struct trace_event *ret)
{
	if (!in->broken.len)
		return take_text(in, text, len, ret);
	struct buf whole = in->broken;
	in->broken = (struct buf){0};
	buf_add(&whole, text, len);
	int r = buf_error(&whole) ? -ENOMEM : take_text(in, whole.data, whole.len, ret);
	/* What the event points to is copied out of the line by then. */
	buf_free(&whole);
	return r;
}

/* ---- the source ---- */

static int next(void *self, struct trace_event *ret, struct trace_error *ret_error)
{
	struct straceimport *in = self;
	for (;;) {
		char *text = NULL;
		size_t len = 0;
		if (in->owed_len) {
			*ret = in->owed[0];
			memmove(in->owed, in->owed + 1, --in->owed_len * sizeof(*in->owed));
			return 1;
		}
		if (!in->file)
			return 0;
		int r = traceinput_line(in->file, &text, &len);
		if (r == 0) {
			r = stracefamily_next(in, ret_error);
			if (r <= 0)
				return r;
			continue;
		}
		if (r < 0) {
			snprintf(ret_error->text, sizeof(ret_error->text),
				 "%s:%llu: the file can't be read: %s", traceinput_name(in->file),
				 (unsigned long long)traceinput_number(in->file),
				 r == -E2BIG ? "a line is too long" : strerror(-r));
			return r == -ENOMEM ? r : r == -E2BIG ? -EINVAL : -EIO;
		}
		r = take_joined(in, text, len, ret);
		if (r == 1 && in->owed_len && in->owed[0].kind == TRACE_FORK) {
			/* The process is told of before what it did. */
			struct trace_event fork = in->owed[0];
			in->owed[0] = *ret;
			*ret = fork;
		}
		if (r != 0)
			return r;
	}
}

static const struct trace_header *header(const void *self)
{
	const struct straceimport *in = self;
	return &in->header;
}

static bool is_complete(const void *self)
{
	const struct straceimport *in = self;
	size_t living = 0;
	(void)straceprocs_which(&in->procs, stracewho_is_living, &living);
	/* Where ends are shown, each process has one. */
	return !in->cut && (!(in->full || in->ends_shown) || !living);
}

static uint64_t faults(const void *self)
{
	const struct straceimport *in = self;
	return in->faults;
}

static void release(void *self)
{
	struct straceimport *in = self;
	traceinput_close(in->file);
	stracefamily_release(&in->family);
	free(in->cwd);
	straceprocs_free(&in->procs);
	stracenames_free(in->names);
	straceargs_free(&in->args);
	straceevent_release(&in->now);
	buf_free(&in->scratch);
	buf_free(&in->broken);
	buf_free(&in->argv_text);
	free(in);
}

/* As paths are compared: absolute, without "." and ".." and slashes too many. NULL: no memory. */
static char *absolute(const char *cwd)
{
	struct buf out = {0};
	char *here AUTOFREE = *cwd == '/' ? NULL : getcwd(NULL, 0);
	const char *parts[] = {here ? here : "", cwd};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		for (const char *p = parts[i] + strspn(parts[i], "/"); *p; p += strspn(p, "/")) {
			size_t len = strcspn(p, "/");
			const char *last = out.len ? strrchr(out.data, '/') : NULL;
			if (len == 2 && !strncmp(p, "..", 2) && last) {
				out.len = (size_t)(last - out.data);
				out.data[out.len] = '\0';
			} else if (!(len == 1 && *p == '.') &&
				   !(len == 2 && !strncmp(p, "..", 2))) {
				buf_add_char(&out, '/');
				buf_add(&out, p, len);
			}
			p += len;
		}
	if (!out.len)
		buf_add_char(&out, '/');
	return buf_take(&out);
}

/* Without an input; NULL: no memory. */
static struct straceimport *create(const struct trace_options *o)
{
	struct straceimport *in = calloc(1, sizeof(*in));
	const char *cwd = o ? o->cwd : NULL;
	if (!in)
		return NULL;
	in->options = o ? *o : (struct trace_options){0};
	in->cwd = cwd ? absolute(cwd) : NULL;
	if ((cwd && !in->cwd) || stracenames_new(&in->names) < 0) {
		release(in);
		return NULL;
	}
	in->header = (struct trace_header){.version = "strace", .cwd = in->cwd};
	fill_calls(in);
	return in;
}

static struct trace_source source_of(struct straceimport *in)
{
	return (struct trace_source){.next = next,
				     .header = header,
				     .is_complete = is_complete,
				     .faults = faults,
				     .free = release,
				     .self = in};
}

int straceimport_open(struct traceinput *file, const struct trace_options *o,
		      struct trace_source *ret)
{
	struct straceimport *in = create(o);
	if (!in) {
		traceinput_close(file);
		return -ENOMEM;
	}
	in->file = file;
	*ret = source_of(in);
	return 0;
}

int straceimport_open_family(const char *const *files, size_t n, const struct trace_options *o,
			     struct trace_source *ret, struct trace_error *ret_error)
{
	struct straceimport *in = create(o);
	if (!in)
		return -ENOMEM;
	int r = stracefamily_take(in, files, n);
	if (r == 0)
		r = stracefamily_next(in, ret_error);
	if (r != 1) {
		release(in);
		return r < 0 ? r : -EINVAL;
	}
	*ret = source_of(in);
	return 0;
}

bool straceimport_is(const char *text, size_t len)
{
	struct straceline line;
	straceline_parse(text, len, &line);
	if (line.kind == STRACELINE_NOTHING)
		return len >= 8 && !memcmp(text, "strace: ", 8);
	return line.kind != STRACELINE_BAD;
}
