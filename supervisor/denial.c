#include "supervisor/denial.h"

#include "supervisor/redact.h"
#include "supervisor/stack.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* ---- names ---- */

const char *verdict_name(enum verdict v)
{
	static const char *const name[] = {
		[VERDICT_SANDBOX] = "sandbox",
		[VERDICT_PERMISSIONS] = "permissions",
		[VERDICT_CROSS_DEVICE] = "cross-device",
		[VERDICT_OTHER] = "other",
	};
	BUG((size_t)v >= ARRAY_LEN(name));
	return name[v];
}

const char *lifetime_name(enum lifetime l)
{
	static const char *const name[] = {
		[LIFETIME_ONCE] = "once",
		[LIFETIME_SESSION] = "session",
		[LIFETIME_ALWAYS] = "always",
	};
	BUG((size_t)l >= ARRAY_LEN(name));
	return name[l];
}

const char *answered_by_name(enum answered_by b)
{
	static const char *const name[] = {
		[BY_NONE] = "none",	  [BY_USER] = "user",  [BY_POLICY] = "policy",
		[BY_TIMEOUT] = "timeout", [BY_YES] = "policy",
	};
	BUG((size_t)b >= ARRAY_LEN(name));
	return name[b];
}

const char *denial_errno_name(int error, char room[16])
{
	const char *name = strerrorname_np(error);
	if (name)
		return name;
	snprintf(room, 16, "E%d", error);
	return room;
}

/* ---- one denial ---- */

static bool copy_string(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return *ret || !from;
}

int denial_copy(const struct denial *d, struct denial *ret)
{
	struct denial c = *d;
	c.path = c.given = c.path2 = c.rule = c.note = c.exe = c.argv0 = NULL;
	c.argv = d->argv ? redact_argv(d->argv) : NULL;
	c.stack = unwind_ref(d->stack);
	if (!copy_string(d->path, &c.path) || !copy_string(d->given, &c.given) ||
	    !copy_string(d->path2, &c.path2) || !copy_string(d->rule, &c.rule) ||
	    !copy_string(d->note, &c.note) || !copy_string(d->exe, &c.exe) ||
	    !copy_string(d->argv0, &c.argv0) || (d->argv && !c.argv)) {
		denial_release(&c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void denial_release(struct denial *d)
{
	free(d->path);
	free(d->given);
	free(d->path2);
	free(d->rule);
	free(d->note);
	free(d->exe);
	free(d->argv0);
	redact_free(d->argv);
	unwind_unref(d->stack);
	*d = (struct denial){0};
}

/* ---- the list and its index: open addressing, at most half full ---- */

struct denial_slot {
	uint32_t hash;
	uint32_t at; /* 1 + the item's place; 0: free */
};

static uint32_t hash_bytes(uint32_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u; /* FNV-1a */
	return h;
}

static uint32_t hash_denial(const struct denial *d)
{
	const char *path2 = d->path2 ? d->path2 : "";
	uint32_t rest[] = {d->access, d->verdict, d->allowed};
	uint32_t h = hash_bytes(2166136261u, d->path, strlen(d->path) + 1);
	h = hash_bytes(h, path2, strlen(path2) + 1);
	return hash_bytes(h, rest, sizeof(rest));
}

static bool same_string(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same(const struct denial *a, const struct denial *b)
{
	return a->access == b->access && a->verdict == b->verdict && a->allowed == b->allowed &&
	       !strcmp(a->path, b->path) && same_string(a->path2, b->path2);
}

/* The slot that holds d, or the free one where it belongs. */
static struct denial_slot *slot_of(const struct denial_list *l, const struct denial *d,
				   uint32_t hash)
{
	for (size_t i = hash;; i++) {
		struct denial_slot *s = &l->slot[i & (l->slots - 1)];
		if (!s->at || (s->hash == hash && same(&l->item[s->at - 1], d)))
			return s;
	}
}

static bool grow_index(struct denial_list *l)
{
	if (l->slots >= 2 * (l->len + 1))
		return true;
	size_t n = l->slots ? 2 * l->slots : 64;
	struct denial_slot *slot = calloc(n, sizeof(*slot));
	if (!slot)
		return false;
	for (size_t i = 0; i < l->slots; i++) {
		size_t to = l->slot[i].hash;
		if (!l->slot[i].at)
			continue;
		while (slot[to & (n - 1)].at)
			to++;
		slot[to & (n - 1)] = l->slot[i];
	}
	free(l->slot);
	l->slot = slot;
	l->slots = n;
	return true;
}

static bool grow_items(struct denial_list *l)
{
	if (l->len < l->cap)
		return true;
	size_t cap = l->cap ? 2 * l->cap : 16;
	struct denial *item = reallocarray(l->item, cap, sizeof(*item));
	if (!item)
		return false;
	l->item = item;
	l->cap = cap;
	return true;
}

struct denial *denial_add(struct denial_list *l, const struct denial *d)
{
	uint64_t count = d->count ? d->count : 1;
	uint32_t hash = hash_denial(d);
	if (!grow_index(l))
		return NULL;
	struct denial_slot *slot = slot_of(l, d, hash);
	if (slot->at) {
		l->item[slot->at - 1].count += count;
		return &l->item[slot->at - 1];
	}
	if (l->len == DENIAL_MAX) {
		l->dropped += count;
		return NULL;
	}
	if (!grow_items(l) || denial_copy(d, &l->item[l->len]) < 0)
		return NULL;
	*slot = (struct denial_slot){.hash = hash, .at = (uint32_t)++l->len};
	l->item[l->len - 1].count = count;
	l->running += d->after == AFTER_UNKNOWN;
	return &l->item[l->len - 1];
}

const struct denial *denial_find(const struct denial_list *l, const struct denial *d)
{
	const struct denial_slot *slot = l->slots ? slot_of(l, d, hash_denial(d)) : NULL;
	return slot && slot->at ? &l->item[slot->at - 1] : NULL;
}

void denial_ended(struct denial_list *l, pid_t pid, int status)
{
	for (size_t i = l->len; i-- > 0 && l->running;) {
		struct denial *d = &l->item[i];
		if (d->pid != pid || d->after != AFTER_UNKNOWN)
			continue;
		bool exited = WIFEXITED(status);
		d->after = exited ? AFTER_EXITED : AFTER_SIGNAL;
		d->after_value = exited ? WEXITSTATUS(status) : WTERMSIG(status);
		l->running--;
	}
}

bool denial_stayed(const struct denial *d)
{
	return d->verdict == VERDICT_SANDBOX && (!d->allowed || d->unwalled);
}

void denial_list_release(struct denial_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		denial_release(&l->item[i]);
	free(l->item);
	free(l->slot);
	*l = (struct denial_list){0};
}

/* ---- as JSON ---- */

static void write_paths(struct jsonw *w, const struct denial *d)
{
	jsonw_kpath(w, "path", d->path);
	if (d->given && strcmp(d->given, d->path) != 0)
		jsonw_kpath(w, "given", d->given);
	if (d->path2)
		jsonw_kpath(w, "path2", d->path2);
}

static void write_argv0(struct jsonw *w, const struct denial *d, bool no_redact)
{
	struct buf text = {0};
	if (d->argv0 && no_redact)
		buf_add_str(&text, d->argv0);
	else if (d->argv0)
		redact_add(&text, d->argv0);
	jsonw_kstr(w, "argv0", d->argv0 ? buf_str(&text) : NULL);
	if (buf_error(&text))
		w->out->failed = true;
	buf_free(&text);
}

void denial_add_gained(struct buf *out, uint32_t gained)
{
	const char *between = "the rules for its new place would allow: ";
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1) {
		if (!(bit & gained))
			continue;
		buf_addf(out, "%s%s", between, access_name(bit));
		between = ", ";
	}
}

char *denial_note(const struct denial *d)
{
	struct buf text = {0};
	if (d->note)
		buf_add_str(&text, d->note);
	if (d->note && d->gained)
		buf_add_str(&text, "; ");
	denial_add_gained(&text, d->gained);
	char *note = text.len ? buf_take(&text) : NULL;
	buf_free(&text);
	return note;
}

static void write_note(struct jsonw *w, const struct denial *d)
{
	struct buf note = {0};
	if (d->by == BY_YES)
		buf_add_str(&note, "--yes");
	if (d->unwalled)
		buf_add_str(&note, "permissive: not refused");
	if (d->note && note.len)
		buf_add_str(&note, "; ");
	if (d->note)
		buf_add_str(&note, d->note);
	if (note.len)
		jsonw_kstr(w, "note", buf_str(&note));
	if (buf_error(&note))
		w->out->failed = true;
	buf_free(&note);
}

void denial_write(struct jsonw *w, const struct denial *d, bool no_redact)
{
	char room[16];
	write_paths(w, d);
	access_write(w, "access", d->access);
	if (d->gained)
		access_write(w, "gained", d->gained);
	jsonw_kstr(w, "call", d->call);
	jsonw_kstr(w, "errno", denial_errno_name(d->error, room));
	jsonw_kstr(w, "verdict", verdict_name(d->verdict));
	jsonw_kstr(w, "answer", d->allowed ? "allow" : "deny");
	jsonw_kstr(w, "by", answered_by_name(d->by));
	jsonw_kstr(w, "lifetime", lifetime_name(d->lifetime));
	jsonw_kpath(w, "rule", d->rule);
	jsonw_kint(w, "count", (int64_t)d->count);
	jsonw_kint(w, "t_ms", d->t_ms);
	jsonw_kint(w, "run", d->run);
	jsonw_kint(w, "pid", d->pid);
	jsonw_kpath(w, "exe", d->exe);
	write_argv0(w, d, no_redact);
	write_note(w, d);
}

void denial_write_stack(struct jsonw *w, const struct denial *d)
{
	if (d->stack)
		stack_write(w, d->stack);
}
