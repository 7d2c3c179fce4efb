#include "supervisor/policyexport.h"

#include "landlock/llright.h"
#include "supervisor/escape.h"
#include "supervisor/landlockconfig.h"
#include "supervisor/llexport.h"
#include "supervisor/shellword.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- landlockconfig ---- */

static bool is_text(const char *path)
{
	size_t left = strlen(path);
	while (left) {
		size_t n = json_utf8_len(path, left);
		if (!n)
			return false;
		path += n;
		left -= n;
	}
	return true;
}

static void unsaid_path(struct llexport *e, const char *path, const char *what)
{
	escape_add_str(&e->unsaid, path);
	buf_addf(&e->unsaid, ": %s\n", what);
}

static int as_landlockconfig(struct llexport *e, struct buf *out)
{
	struct landlockconfig_rule *rule AUTOFREE = calloc(e->len + 1, sizeof(*rule));
	size_t n = 0;
	if (!rule)
		return -ENOMEM;
	for (size_t i = 0; i < e->len; i++) {
		const struct llexport_entry *x = &e->entry[i];
		uint64_t rights = access_rights(x->access) & landlockconfig_rights();
		if (!x->is_dir)
			rights &= llright_for_file();
		if (!is_text(x->path))
			unsaid_path(e, x->path, "JSON has no word for its bytes");
		else if (rights)
			rule[n++] = (struct landlockconfig_rule){x->path, rights};
	}
	landlockconfig_write(rule, n, out);
	return buf_error(out);
}

/* ---- landrun ---- */

/*
 * Its four options, the widest first, and what each opens of a directory and of a file. --rw and
 * --rwx include ioctls on devices.
 */
static const struct landrun_option {
	const char *name;
	uint32_t dir, file;
} landrun_options[] = {
	{"--rwx", LLEXPORT_ACCESS & ~(uint32_t)ACCESS_IOCTL,
	 ACCESS_READ | ACCESS_WRITE | ACCESS_EXEC},
	{"--rw", LLEXPORT_ACCESS & ~(uint32_t)(ACCESS_IOCTL | ACCESS_EXEC),
	 ACCESS_READ | ACCESS_WRITE},
	{"--rox", ACCESS_R | ACCESS_EXEC, ACCESS_READ | ACCESS_EXEC},
	{"--ro", ACCESS_R, ACCESS_READ},
};

static const struct landrun_option *landrun_option(const struct llexport_entry *e,
						   uint32_t *ret_has)
{
	uint32_t access = e->access | e->covered;
	for (size_t i = 0; i < ARRAY_LEN(landrun_options); i++) {
		const struct landrun_option *o = &landrun_options[i];
		uint32_t opens = e->is_dir ? o->dir : o->file;
		bool devices = !strncmp(e->path, "/dev", 4) && (opens & ACCESS_WRITE);
		if ((opens & ~access) || (devices && !(access & ACCESS_IOCTL)))
			continue;
		*ret_has = opens | (opens & ACCESS_WRITE ? ACCESS_IOCTL : 0);
		return o;
	}
	*ret_has = 0;
	return NULL;
}

static void landrun_path(struct llexport *e, size_t i, struct buf *out)
{
	const struct llexport_entry *x = &e->entry[i];
	uint32_t has;
	const struct landrun_option *o = landrun_option(x, &has);
	uint32_t missing = x->access & ~has & ~x->covered;
	if (!x->exists)
		return; /* unsaid_absent() */
	if (strchr(x->path, ',')) {
		unsaid_path(e, x->path, "landrun would read the comma as the end of the name");
		return;
	}
	if (o && (has & ~x->covered)) {
		buf_addf(out, " \\\n  %s ", o->name);
		shellword_add(out, x->path);
	}
	if (missing) {
		struct buf what = {0};
		buf_add_str(&what, "no option of landrun's gives just ");
		access_format(&what, missing);
		unsaid_path(e, x->path, buf_str(&what));
		buf_free(&what);
	}
}

/* Presets name much that is not on every machine: one line for all of it. */
#define ABSENT_NAMED 5

static void unsaid_absent(struct llexport *e)
{
	size_t n = 0;
	struct buf names = {0};
	for (size_t i = 0; i < e->len; i++) {
		if (e->entry[i].exists || ++n > ABSENT_NAMED)
			continue;
		buf_add_str(&names, n > 1 ? ", " : "");
		escape_add_str(&names, e->entry[i].path);
	}
	if (n > ABSENT_NAMED)
		buf_addf(&names, " and %zu more", n - ABSENT_NAMED);
	if (n)
		buf_addf(&e->unsaid, "%s: %s not exist, and landrun would end there\n",
			 buf_str(&names), n == 1 ? "it does" : "they do");
	if (names.failed)
		e->unsaid.failed = true;
	buf_free(&names);
}

static int as_landrun(struct llexport *e, struct buf *out)
{
	buf_add_str(out, "landrun --best-effort --unrestricted-network");
	for (size_t i = 0; i < e->len; i++)
		landrun_path(e, i, out);
	unsaid_absent(e);
	buf_add_str(out, " \\\n  -- COMMAND\n");
	return buf_error(out);
}

/* ---- the word ---- */

static const struct format {
	const char *name;
	int (*write)(struct llexport *e, struct buf *out);
	const char *note; /* what no rule there says, whatever the policy is */
} formats[] = {
	{"landlockconfig", as_landlockconfig,
	 "Landlock has no right for meta (chmod, chown, times, xattrs), and landlockconfig none "
	 "for "
	 "connect: nothing refuses these there"},
	{"landrun", as_landrun,
	 "landrun refuses no meta (chmod, chown, times, xattrs), its --rw also lets devices be "
	 "made and ioctls through, and it passes no environment unless told by --env"},
};

static const struct format *find_format(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(formats); i++)
		if (!name || !strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}

/* A file; all that applies; or the saved policy. */
static int load(struct policycli *c, const char *file, struct policy *p)
{
	int r = 0;
	if (file)
		return policyfile_load(p, file, RULE_FILE, &c->vars, &c->error);
	if (c->effective) {
		r = policycli_load_presets(c, p);
		return r < 0 ? r : policycli_load_saved(c, p);
	}
	r = policyfile_load(p, policycli_file(c), c->for_project ? RULE_PROJECT : RULE_USER,
			    &c->vars, &c->error);
	return r == -ENOENT ? 0 : r;
}

static void say_unsaid(const struct llexport *e, const struct format *f)
{
	for (const char *at = buf_str(&e->unsaid); *at;) {
		size_t n = strcspn(at, "\n");
		fprintf(stderr, "warder: left out: %.*s\n", (int)n, at);
		at += n + 1;
	}
	fprintf(stderr, "warder: note: %s\n", f->note);
}

static int put_policy(struct policycli *c, const struct policy *p, const struct format *f)
{
	struct llexport e;
	struct buf out = {0};
	int r = llexport(p, &e);
	if (r == 0)
		r = f->write(&e, &out);
	int status = POLICYCLI_TROUBLE;
	if (r < 0) {
		snprintf(c->error.text, sizeof(c->error.text), "%s", strerror(-r));
		policycli_trouble(c->error.text);
	} else {
		say_unsaid(&e, f);
		status = policycli_put(&out);
		if (!status && e.unsaid.len)
			status = POLICYCLI_NO;
	}
	buf_free(&out);
	llexport_release(&e);
	return status;
}

int policyexport(struct policycli *c, int argc, char **argv)
{
	const struct format *f = find_format(c->format);
	struct policy *p;
	if (argc > 1)
		return policycli_usage("export takes one file, not also", argv[1]);
	if (!f)
		return policycli_usage("expected --format landlockconfig or landrun, not",
				       c->format);
	if (policy_new(&p) < 0)
		return policycli_trouble("out of memory");
	int r = load(c, argc ? argv[0] : NULL, p);
	int status = r < 0 ? policycli_trouble(c->error.text) : put_policy(c, p, f);
	policy_free(p);
	return status;
}
