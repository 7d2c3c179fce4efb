#include "supervisor/rulehistory.h"

#include "supervisor/policyfile.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define DATE_LEN 10 /* 2026-01-31 */

static bool is_date(const char *s, size_t n)
{
	static const char shape[] = "dddd-dd-dd";
	if (n < DATE_LEN)
		return false;
	for (size_t i = 0; i < DATE_LEN; i++)
		if (shape[i] == 'd' ? s[i] < '0' || s[i] > '9' : s[i] != shape[i])
			return false;
	return n == DATE_LEN || s[DATE_LEN] == ' ';
}

/* The comment that an answer's line ends with begins with its day. False: it has none. */
static bool find_date(const char *at, const char *stop, char ret[DATE_LEN + 1])
{
	for (; at + 3 < stop; at++) {
		if (at[0] != ' ' || at[1] != '#' || at[2] != ' ' ||
		    !is_date(at + 3, (size_t)(stop - at - 3)))
			continue;
		memcpy(ret, at + 3, DATE_LEN);
		ret[DATE_LEN] = '\0';
		return true;
	}
	return false;
}

/* ---- one file's days ---- */

struct day {
	char text[DATE_LEN + 1]; /* "": the line has none */
};

static size_t count_lines(const struct buf *text)
{
	size_t n = 1;
	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n;
}

static void find_days(const struct buf *text, struct day *day)
{
	const char *at = buf_str(text), *end = at + text->len;
	for (size_t i = 0; at < end; i++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		find_date(at, stop, day[i].text);
		at = stop + 1;
	}
}

/* Of a file that is gone, or none that can be read, nothing is known. 0 or -ENOMEM. */
static int read_days(struct rulehistory_days *d, const struct rule *rule)
{
	struct policy_error ignored;
	struct buf text = {0};
	struct stat st;
	struct tm tm;
	if (stat(rule->origin, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (gmtime_r(&st.st_mtime, &tm))
		strftime(d->file, sizeof(d->file), "%Y-%m-%d or before", &tm);
	if (!policyfile_read(rule->origin, policyfile_place(rule->source), &text, &ignored)) {
		d->lines = count_lines(&text);
		d->day = calloc(d->lines, sizeof(*d->day));
		if (d->day)
			find_days(&text, d->day);
	}
	buf_free(&text);
	return d->lines && !d->day ? -ENOMEM : 0;
}

void rulehistory_days_release(struct rulehistory_days *d)
{
	free(d->origin);
	free(d->day);
	*d = (struct rulehistory_days){0};
}

/* The rules of a file come one after the other. */
static bool turn_to(struct rulehistory_days *d, const struct rule *rule)
{
	if (d->origin && strcmp(d->origin, rule->origin) == 0)
		return true;
	rulehistory_days_release(d);
	d->origin = strdup(rule->origin);
	if (d->origin && !read_days(d, rule))
		return true;
	rulehistory_days_release(d);
	return false;
}

const char *rulehistory_since(struct rulehistory_days *d, const struct rule *rule)
{
	if (!rule->line || rule->origin[0] != '/' || !turn_to(d, rule))
		return "";
	if (rule->line <= d->lines && d->day[rule->line - 1].text[0])
		return d->day[rule->line - 1].text;
	return d->file;
}

/* ---- the audit ---- */

/* A rule of the policy, and where it stands there. */
struct place {
	const struct rule *rule;
	size_t at;
};

struct reading {
	const struct policy *policy;
	struct place *place; /* sorted */
	struct rulehistory *history;
};

static int by_rule(const void *a, const void *b)
{
	const struct rule *x = ((const struct place *)a)->rule,
			  *y = ((const struct place *)b)->rule;
	return x < y ? -1 : x > y;
}

/* Every rule of the policy by its address: of each entry of the audit one is looked up. */
static struct place *places_of(const struct policy *p)
{
	struct place *place = calloc(policy_len(p) + 1, sizeof(*place));
	for (size_t i = 0; place && i < policy_len(p); i++)
		place[i] = (struct place){policy_at(p, i), i};
	if (place)
		qsort(place, policy_len(p), sizeof(*place), by_rule);
	return place;
}

static size_t place_of(const struct reading *r, const struct rule *rule)
{
	const struct place key = {.rule = rule};
	const struct place *found = bsearch(&key, r->place, r->history->len, sizeof(key), by_rule);
	BUG(!found);
	return found->at;
}

/* "FILE:LINE" is of the file; the line may have moved since. */
static bool is_of(const char *place, const char *origin)
{
	size_t n = strlen(origin);
	return place && strncmp(place, origin, n) == 0 && (place[n] == ':' || !place[n]);
}

static void take_entry(struct reading *r, const struct json *entry)
{
	const char *path = json_get_str(entry, "path"), *time = json_get_str(entry, "time");
	const char *place = json_get_str(entry, "rule");
	const struct json *access = json_get(entry, "access");
	if (!path || !time || !place || strlen(time) >= RULEHISTORY_LEN)
		return;
	for (const struct json *a = json_first(access); a; a = json_next(a)) {
		uint32_t bit;
		size_t at;
		const char *name = json_str(a);
		if (!name || access_parse(name, strlen(name), &bit, &at) < 0)
			continue;
		const struct rule *rule = policy_decide(r->policy, path, bit).rule;
		if (rule && is_of(place, rule->origin))
			strcpy(r->history->last[place_of(r, rule)], time);
	}
}

static void take_line(struct reading *r, const char *line, size_t n)
{
	struct json *entry;
	if (!memmem(line, n, "\"rule\":\"", 8) || json_parse(line, n, &entry, NULL) < 0)
		return;
	take_entry(r, entry);
	json_free(entry);
}

static void take_all(struct reading *r, FILE *f)
{
	char *line AUTOFREE = NULL;
	size_t room = 0;
	for (ssize_t n; (n = getline(&line, &room, f)) > 0;)
		take_line(r, line, (size_t)n);
}

static FILE *open_audit(const char *state_dir)
{
	struct buf name = {0};
	struct stat st;
	buf_addf(&name, "%s/audit.jsonl", state_dir);
	int fd = ownfile_open(buf_str(&name), O_RDONLY);
	buf_free(&name);
	if (fd < 0)
		return NULL;
	FILE *f = fstat(fd, &st) ? NULL : fdopen(fd, "re");
	if (!f) {
		close(fd);
		return NULL;
	}
	/* Into the middle of a line: that one is no JSON, and passed over. */
	if (st.st_size > (off_t)RULEHISTORY_AUDIT_MAX)
		fseeko(f, st.st_size - (off_t)RULEHISTORY_AUDIT_MAX, SEEK_SET);
	return f;
}

int rulehistory_read(const char *state_dir, const struct policy *p, struct rulehistory *ret)
{
	struct rulehistory h = {.len = policy_len(p)};
	h.last = calloc(h.len + 1, sizeof(*h.last));
	struct reading r = {.policy = p, .history = &h, .place = places_of(p)};
	if (!h.last || !r.place) {
		free(r.place);
		rulehistory_release(&h);
		return -ENOMEM;
	}
	FILE *f = open_audit(state_dir);
	if (f) {
		take_all(&r, f); /* what can't be read on is as if it was not there */
		fclose(f);
	}
	free(r.place);
	*ret = h;
	return 0;
}

void rulehistory_release(struct rulehistory *h)
{
	free(h->last);
	*h = (struct rulehistory){0};
}
