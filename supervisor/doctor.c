#include "supervisor/doctor.h"

#include "supervisor/doctor_probes.h"
#include "supervisor/escape.h"
#include "supervisor/prose.h"
#include "tracer/util.h"

#include <stdint.h>
#include <string.h>
#include <time.h>

static const struct probe {
	const char *name;
	bool vital;
	void (*examine)(struct doctor *d, const char *probe);
} probes[] = {
#define PROBE(name, vital) {#name, vital, doctor_probe_##name},
#include "supervisor/doctor.def"
#undef PROBE
};

static const struct {
	const char *word, *color;
} words[] = {
	[DOCTOR_OK] = {"ok", "32"},
	[DOCTOR_DEGRADED] = {"degraded", "33"},
	[DOCTOR_MISSING] = {"missing", "31"},
};

static char *format(struct doctor *d, const char *fmt, va_list ap)
	__attribute__((format(printf, 2, 0)));
static char *format(struct doctor *d, const char *fmt, va_list ap)
{
	struct buf b = {0};
	buf_vaddf(&b, fmt, ap);
	char *text = buf_take(&b);
	if (!text)
		d->failed = true;
	return text;
}

struct doctor_finding *doctor_find(struct doctor *d, const char *probe, enum doctor_status status,
				   const char *what, ...)
{
	static struct doctor_finding lost; /* what has no memory is written here and forgotten */
	struct doctor_finding *all = realloc(d->finding, (d->len + 1) * sizeof *all);
	if (!all) {
		d->failed = true;
		lost = (struct doctor_finding){.took_us = -1};
		return &lost;
	}
	d->finding = all;
	struct doctor_finding *f = &all[d->len++];
	*f = (struct doctor_finding){.probe = probe, .status = status, .took_us = -1};
	va_list ap;
	va_start(ap, what);
	f->what = format(d, what, ap);
	va_end(ap);
	return f;
}

void doctor_fix(struct doctor *d, struct doctor_finding *f, const char *fix, ...)
{
	va_list ap;
	va_start(ap, fix);
	free(f->fix);
	f->fix = format(d, fix, ap);
	va_end(ap);
}

void doctor_examine(struct doctor *d)
{
	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		size_t before = d->len;
		probes[i].examine(d, probes[i].name);
		for (size_t k = before; k < d->len; k++)
			d->finding[k].vital = probes[i].vital;
	}
}

void doctor_release(struct doctor *d)
{
	for (size_t i = 0; i < d->len; i++) {
		free(d->finding[i].what);
		free(d->finding[i].fix);
	}
	free(d->finding);
	for (size_t i = 0; i < d->files; i++) {
		free(d->file[i].path);
		free(d->file[i].name);
	}
	free(d->file);
	*d = (struct doctor){.env = d->env};
}

bool doctor_supervises(const struct doctor *d)
{
	for (size_t i = 0; i < d->len; i++)
		if (d->finding[i].vital && d->finding[i].status == DOCTOR_MISSING)
			return false;
	return !d->failed;
}

/* Narrower than ROOMY the words stand below their probe. */
enum { COLUMN_WHAT = 22, COLUMN_BELOW = 2, COLUMNS_ROOMY = 50, COLUMNS_MIN = 20 };

static void write_status(enum doctor_status status, bool color, struct buf *out)
{
	if (color)
		buf_addf(out, "\x1b[%sm%-9s\x1b[0m", words[status].color, words[status].word);
	else
		buf_addf(out, "%-9s", words[status].word);
}

static void write_words(const struct doctor_finding *f, bool color, size_t width, struct buf *out)
{
	struct buf what = {0}, fix = {0};
	size_t column = width < COLUMNS_ROOMY - 1 ? COLUMN_BELOW : COLUMN_WHAT;
	escape_add_str(&what, f->what ? f->what : "");
	if (f->took_us >= 0)
		buf_addf(&what, " (%.1f ms)", (double)f->took_us / 1000);
	escape_add_str(&fix, f->fix);
	buf_addf(out, "%-11s ", f->probe);
	write_status(f->status, color, out);
	buf_add_str(out, column == COLUMN_WHAT ? " " : "\n  ");
	prose_add(out, buf_str(&what), column, width);
	if (f->fix) {
		buf_addf(out, "%*s-> ", (int)column, "");
		prose_add(out, buf_str(&fix), column + 3, width);
	}
	out->failed |= what.failed || fix.failed;
	buf_free(&what);
	buf_free(&fix);
}

void doctor_write(const struct doctor *d, bool color, size_t columns, struct buf *out)
{
	/* The last column stays empty; below the least, wrapping is the terminal's. */
	size_t width = columns >= COLUMNS_MIN ? columns - 1 : SIZE_MAX;
	for (size_t i = 0; i < d->len; i++)
		write_words(&d->finding[i], color, width, out);
	buf_add_str(out, doctor_supervises(d)
				 ? "\nThis machine can supervise.\n"
				 : "\nThis machine can't supervise: see what is missing above.\n");
}

static void write_finding(struct jsonw *w, const struct doctor_finding *f)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "probe", f->probe);
	jsonw_kstr(w, "status", words[f->status].word);
	jsonw_kbool(w, "vital", f->vital);
	jsonw_kstr(w, "what", f->what);
	jsonw_kstr(w, "fix", f->fix);
	jsonw_key(w, "us");
	if (f->took_us >= 0)
		jsonw_int(w, f->took_us);
	else
		jsonw_null(w);
	jsonw_end_object(w);
}

static void write_file(struct jsonw *w, const struct doctor_file *f)
{
	jsonw_begin_object(w);
	jsonw_kstr(w, "path", f->path);
	jsonw_kint(w, "calls", f->sites.calls);
	jsonw_kint(w, "can", f->sites.can);
	jsonw_kint(w, "room", f->sites.room);
	jsonw_kint(w, "others", f->sites.others);
	jsonw_key(w, "slow");
	jsonw_begin_array(w);
	for (size_t i = 0; i < f->sites.left_len; i++) {
		jsonw_begin_object(w);
		jsonw_kint(w, "offset", (int64_t)f->sites.left[i].offset);
		jsonw_kstr(w, "call", f->sites.left[i].call);
		jsonw_end_object(w);
	}
	jsonw_end_array(w);
	jsonw_end_object(w);
}

void doctor_write_json(const struct doctor *d, struct buf *out)
{
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_begin_object(&w);
	jsonw_kint(&w, "warder_doctor", 1);
	jsonw_kstr(&w, "version", WARDER_VERSION);
	jsonw_kbool(&w, "supervises", doctor_supervises(d));
	jsonw_key(&w, "probes");
	jsonw_begin_array(&w);
	for (size_t i = 0; i < d->len; i++)
		write_finding(&w, &d->finding[i]);
	jsonw_end_array(&w);
	jsonw_key(&w, "files");
	jsonw_begin_array(&w);
	for (size_t i = 0; i < d->files; i++)
		write_file(&w, &d->file[i]);
	jsonw_end_array(&w);
	jsonw_end_object(&w);
	buf_add_char(out, '\n');
}
