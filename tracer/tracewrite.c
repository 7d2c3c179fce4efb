#include "tracer/tracewrite.h"

#include "tracer/json.h"
#include "tracer/libzstd.h"
#include "tracer/outfile.h"
#include "tracer/traceflags.h"
#include "tracer/traceinput.h"
#include "tracer/tracekeys.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define GATHER	   (128u << 10)
#define WAIT_NS	   500000000ull
#define ZSTD_LEVEL 3

struct tracewrite {
	int fd;
	int dir;     /* where both names are, O_PATH; -1: no temporary one */
	char *name;  /* where it is now */
	char *final; /* the name it is to have */
	bool temporary;
	bool has_header;
	bool has_begun; /* the header is in the file, which stays from then on */
	int failure;
	uint64_t events;
	uint64_t written_ns; /* the event's time when the file last got something */
	struct buf text;
	const struct libzstd *lib; /* where it is compressed */
	ZSTD_CStream *zstd;
	char *packed;
	size_t packed_cap;
};

/* ---- lines ---- */

static void write_words(struct jsonw *j, const char *words)
{
	jsonw_begin_array(j);
	while (*words) {
		size_t n = strcspn(words, ",");
		jsonw_bytes(j, words, n);
		words += n + (words[n] == ',');
	}
	jsonw_end_array(j);
}

static void write_list(struct jsonw *j, const char *key, const char *const *item, size_t max)
{
	jsonw_key(j, key);
	jsonw_begin_array(j);
	for (size_t i = 0; i < max && item[i]; i++)
		jsonw_str(j, item[i]);
	jsonw_end_array(j);
}

static void write_flags(struct jsonw *j, const char *key, const struct trace_event *ev)
{
	char room[256];
	struct buf text = {0};
	traceflags_format(ev->ent, ev->flags, &text);
	snprintf(room, sizeof room, "%s", buf_str(&text));
	buf_free(&text);
	jsonw_kstr(j, key, room);
}

static void write_mode(struct jsonw *j, const char *key, uint32_t mode)
{
	char text[16];
	snprintf(text, sizeof text, "%04o", mode);
	jsonw_kstr(j, key, text);
}

static void write_errno(struct jsonw *j, const char *key, int64_t ret)
{
	const char *name = ret < 0 && ret >= -4095 ? strerrorname_np((int)-ret) : NULL;
	if (name)
		jsonw_kstr(j, key, name);
}

static void write_text(struct jsonw *j, const char *key, const char *text)
{
	if (text)
		jsonw_kpath(j, key, text);
}

static void write_kind(struct jsonw *j, const char *key, enum trace_kind kind)
{
	static const char *const kinds[] = {
		[TRACE_CALL] = "call", [TRACE_FORK] = "fork",	  [TRACE_EXEC] = "exec",
		[TRACE_EXIT] = "exit", [TRACE_ANSWER] = "answer", [TRACE_END] = "end"};
	jsonw_kstr(j, key, kinds[kind]);
}

static void write_member(struct jsonw *j, const struct tracekeys_row *row, const char *key,
			 const struct trace_event *ev, const char *owner)
{
	const void *member = owner + row->offset;
	bool signalled = (ev->status & 0x7f) != 0;
	switch (row->kind) {
	case TRACEKEYS_EV:
		write_kind(j, key, ev->kind);
		break;
	case TRACEKEYS_UINT:
		jsonw_kint(j, key, (int64_t) * (const uint64_t *)member);
		break;
	case TRACEKEYS_RUN:
		if (*(const unsigned *)member > 1)
			jsonw_kint(j, key, *(const unsigned *)member);
		break;
	case TRACEKEYS_PID:
		if (*(const pid_t *)member)
			jsonw_kint(j, key, *(const pid_t *)member);
		break;
	case TRACEKEYS_TEXT:
	case TRACEKEYS_PATH_TEXT:
		write_text(j, key, *(const char *const *)member);
		break;
	case TRACEKEYS_PATH_THING:
		if (*(const enum trace_thing *)member)
			jsonw_kstr(j, key, trace_thing_name(*(const enum trace_thing *)member));
		break;
	case TRACEKEYS_PATH_WORDS:
		if (*(const char *const *)member) {
			jsonw_key(j, key);
			write_words(j, *(const char *const *)member);
		}
		break;
	case TRACEKEYS_FLAGS:
		if (ev->has_flags)
			write_flags(j, key, ev);
		break;
	case TRACEKEYS_MODE:
		if (ev->has_mode)
			write_mode(j, key, ev->mode);
		break;
	case TRACEKEYS_REQUEST:
		if (ev->has_request)
			jsonw_kint(j, key, (int64_t)ev->request);
		break;
	case TRACEKEYS_RET:
		if (ev->returned)
			jsonw_kint(j, key, ev->ret);
		break;
	case TRACEKEYS_ERRNO:
		if (ev->returned)
			write_errno(j, key, ev->ret);
		break;
	case TRACEKEYS_ERROR:
		if (*(const int *)member)
			jsonw_kint(j, key, *(const int *)member);
		break;
	case TRACEKEYS_BOOL:
		if (*(const bool *)member)
			jsonw_kbool(j, key, true);
		break;
	case TRACEKEYS_EXEC_LIST:
		if (ev->argv)
			write_list(j, key, ev->argv, TRACE_ARGV_MAX);
		break;
	case TRACEKEYS_EXIT:
		if (!signalled)
			jsonw_kint(j, key, ev->status >> 8 & 0xff);
		break;
	case TRACEKEYS_SIGNAL:
		if (signalled)
			jsonw_kint(j, key, ev->status & 0x7f);
		break;
	case TRACEKEYS_LIST:
		if (ev->unsure_len)
			write_list(j, key, ev->unsure, ev->unsure_len);
		break;
	}
}

/* All that is told of the paths stands together: the rows of paths follow each other. */
static unsigned write_paths(struct jsonw *j, unsigned first, const struct trace_event *ev)
{
	unsigned k = first;
	for (unsigned p = 0; p < ev->paths || p == 0; p++) {
		for (k = first; k < TRACEKEYS_COUNT && tracekeys_rows[k].of_path; k++) {
			char key[16];
			const struct tracekeys_row *row = &tracekeys_rows[k];
			snprintf(key, sizeof key, p ? "%s%u" : "%s", row->name, p + 1);
			if (p < ev->paths)
				write_member(j, row, key, ev, (const char *)&ev->path[p]);
		}
	}
	return k;
}

void tracewrite_format(const struct trace_event *ev, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out);
	jsonw_begin_object(&j);
	for (unsigned k = 0; k < TRACEKEYS_COUNT;) {
		const struct tracekeys_row *row = &tracekeys_rows[k];
		if (row->of_path) {
			k = write_paths(&j, k, ev);
			continue;
		}
		if (row->events & 1u << ev->kind)
			write_member(&j, row, row->name, ev, (const char *)ev);
		k++;
	}
	jsonw_end_object(&j);
	buf_add_char(out, '\n');
}

void tracewrite_format_header(const struct trace_header *h, struct buf *out)
{
	struct jsonw j;
	jsonw_init(&j, out);
	jsonw_begin_object(&j);
	jsonw_kint(&j, "warder_trace", TRACE_FORMAT);
	write_text(&j, "version", h->version);
	write_text(&j, "started", h->started);
	write_text(&j, "host", h->host);
	if (h->argv)
		write_list(&j, "argv", h->argv, SIZE_MAX);
	write_text(&j, "cwd", h->cwd);
	write_text(&j, "arch", h->arch);
	write_text(&j, "kernel", h->kernel);
	jsonw_kint(&j, "landlock_abi", h->landlock_abi);
	if (h->has_uid)
		jsonw_kint(&j, "uid", h->uid);
	write_text(&j, "home", h->home);
	write_text(&j, "project", h->project);
	write_text(&j, "tmpdir", h->tmpdir);
	write_text(&j, "label", h->label);
	write_text(&j, "mode", h->mode);
	if (h->policy) {
		jsonw_key(&j, "policy");
		jsonw_raw(&j, h->policy, strlen(h->policy));
	}
	jsonw_end_object(&j);
	buf_add_char(out, '\n');
}

/* ---- the file ---- */

static int write_packed(struct tracewrite *w, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {buf_str(&w->text), w->text.len, 0};
	size_t left;
	do {
		ZSTD_outBuffer out = {w->packed, w->packed_cap, 0};
		left = w->lib->compressStream2(w->zstd, &out, &in, how);
		if (w->lib->isError(left))
			return -EIO;
		int err = buf_write_to(w->fd, w->packed, out.pos);
		if (err)
			return err;
	} while (left || in.pos < in.size);
	return 0;
}

/* What is gathered goes into the file. */
static int put(struct tracewrite *w, ZSTD_EndDirective how)
{
	if (w->failure)
		return w->failure;
	int err = buf_error(&w->text);
	if (!err)
		err = w->zstd ? write_packed(w, how)
			      : buf_write_to(w->fd, w->text.data, w->text.len);
	buf_reset(&w->text);
	w->failure = err;
	return err;
}

int tracewrite_header(struct tracewrite *w, const struct trace_header *h)
{
	tracewrite_format_header(h, &w->text);
	w->has_header = true;
	int err = put(w, ZSTD_e_flush);
	w->has_begun = !err;
	return err;
}

int tracewrite_event(struct tracewrite *w, const struct trace_event *ev)
{
	if (w->failure)
		return w->failure;
	w->events++;
	tracewrite_format(ev, &w->text);
	if (w->text.len < GATHER && !w->text.failed && ev->t_ns < w->written_ns + WAIT_NS)
		return 0;
	w->written_ns = ev->t_ns;
	return put(w, ZSTD_e_flush);
}

/* Of an absolute name. */
static const char *base(const char *name)
{
	return strrchr(name, '/') + 1;
}

int tracewrite_finish(struct tracewrite *w)
{
	struct trace_event end = {.kind = TRACE_END, .t_ns = w->written_ns, .events = w->events};
	BUG(!w->has_header);
	tracewrite_format(&end, &w->text);
	int err = put(w, ZSTD_e_end);
	if (!err && w->temporary && renameat(w->dir, base(w->name), w->dir, base(w->final)))
		err = w->failure = -errno;
	if (err || !w->temporary)
		return err;
	w->temporary = false;
	char *name = strdup(w->final);
	if (!name)
		return -ENOMEM;
	free(w->name);
	w->name = name;
	return 0;
}

int tracewrite_failure(const struct tracewrite *w)
{
	return w->failure;
}

uint64_t tracewrite_events(const struct tracewrite *w)
{
	return w->events;
}

bool tracewrite_has_header(const struct tracewrite *w)
{
	return w->has_header;
}

const char *tracewrite_name(const struct tracewrite *w)
{
	return w->name;
}

const char *tracewrite_final_name(const struct tracewrite *w)
{
	return w->final;
}

bool tracewrite_is_temporary(const struct tracewrite *w)
{
	return w->temporary;
}

void tracewrite_free(struct tracewrite *w)
{
	if (!w)
		return;
	if (w->temporary && w->fd >= 0 && !w->has_begun)
		unlinkat(w->dir, base(w->name), 0);
	util_close(&w->fd);
	util_close(&w->dir);
	if (w->zstd)
		w->lib->freeCStream(w->zstd);
	free(w->packed);
	buf_free(&w->text);
	free(w->name);
	free(w->final);
	free(w);
}

#define TRIES 100

/* As mkostemps(3), in our directory and not by its path. */
static int make_temporary(struct tracewrite *w)
{
	for (int i = 0; i < TRIES; i++) {
		uint32_t some;
		if (getrandom(&some, sizeof(some), 0) != sizeof(some))
			return -EIO;
		free(w->name);
		if (asprintf(&w->name, "%s.%08" PRIx32 ".part", w->final, some) < 0) {
			w->name = NULL;
			return -ENOMEM;
		}
		w->fd = openat(w->dir, base(w->name),
			       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (w->fd >= 0 || errno != EEXIST)
			return w->fd < 0 ? -errno : 0;
	}
	return -EEXIST;
}

static int open_file(struct tracewrite *w)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	struct stat st;
	bool device = outfile_is_device(w->final);
	w->dir = device ? -1 : outfile_open_parent(w->final);
	if (!device && w->dir < 0)
		return w->dir;
	bool there = device ? !stat(w->final, &st)
			    : !fstatat(w->dir, base(w->final), &st, AT_SYMLINK_NOFOLLOW);
	if (there && !S_ISREG(st.st_mode)) {
		w->name = strdup(w->final);
		w->fd = device ? open(w->final, flags)
			       : openat(w->dir, base(w->final), flags | O_NOFOLLOW);
		return !w->name ? -ENOMEM : w->fd < 0 ? -errno : 0;
	}
	if (device && (w->dir = outfile_open_parent(w->final)) < 0)
		return w->dir;
	w->temporary = true;
	return make_temporary(w);
}

static int open_stream(struct tracewrite *w)
{
	size_t n = strlen(w->final);
	if (n < 4 || strcmp(w->final + n - 4, ".zst") != 0)
		return 0;
	w->lib = libzstd_get();
	if (!w->lib)
		return -ELIBACC;
	w->zstd = w->lib->createCStream();
	w->packed_cap = w->lib->CStreamOutSize();
	w->packed = malloc(w->packed_cap);
	if (!w->zstd || !w->packed)
		return -ENOMEM;
	size_t set = w->lib->CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	return w->lib->isError(set) ? -EIO : 0;
}

int tracewrite_open(const char *file, struct tracewrite **ret, struct trace_error *ret_error)
{
	struct tracewrite *w = calloc(1, sizeof *w);
	if (!w)
		return -ENOMEM;
	w->fd = w->dir = -1;
	w->final = strdup(file);
	int err = w->final ? open_file(w) : -ENOMEM;
	if (!err)
		err = open_stream(w);
	if (err) {
		snprintf(ret_error->text, sizeof ret_error->text, "%s: %s", file,
			 traceinput_trouble(err));
		tracewrite_free(w);
		return err;
	}
	*ret = w;
	return 0;
}
