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

/* The comment that an answer's line ends with begins with its day. */
static bool find_date(const char *text, size_t n, unsigned line, char *ret)
{
	const char *at = text, *end = text + n;
	for (unsigned i = 1; i < line && at; i++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	const char *stop = at ? memchr(at, '\n', (size_t)(end - at)) : NULL;
	if (at && !stop)
		stop = end;
	for (; at && at + 3 < stop; at++) {
		if (at[0] != ' ' || at[1] != '#' || at[2] != ' ' ||
		    !is_date(at + 3, (size_t)(stop - at - 3)))
			continue;
		memcpy(ret, at + 3, DATE_LEN);
		ret[DATE_LEN] = '\0';
		return true;
	}
	return false;
}

const char *rulehistory_since(const struct rule *rule, char ret[RULEHISTORY_LEN])
{
	struct policy_error ignored;
	struct buf text = {0};
	struct stat st;
	struct tm tm;
	ret[0] = '\0';
	if (!rule->line || rule->origin[0] != '/' || stat(rule->origin, &st) < 0 ||
	    !S_ISREG(st.st_mode))
		return ret;
	bool dated = !policyfile_read(rule->origin, false, &text, &ignored) &&
		     find_date(buf_str(&text), text.len, rule->line, ret);
	if (!dated && gmtime_r(&st.st_mtime, &tm))
		strftime(ret, RULEHISTORY_LEN, "%Y-%m-%d or before", &tm);
	buf_free(&text);
	return ret;
}

/* ---- the audit ---- */

struct reading {
	const struct policy *policy;
	struct rulehistory *history;
};

static size_t place_of(const struct policy *p, const struct rule *rule)
{
	size_t i = 0;
	while (i < policy_len(p) && policy_at(p, i) != rule)
		i++;
	return i;
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
			strcpy(r->history->last[place_of(r->policy, rule)], time);
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
	if (!h.last)
		return -ENOMEM;
	struct reading r = {.policy = p, .history = &h};
	FILE *f = open_audit(state_dir);
	if (f) {
		take_all(&r, f); /* what can't be read on is as if it was not there */
		fclose(f);
	}
	*ret = h;
	return 0;
}

void rulehistory_release(struct rulehistory *h)
{
	free(h->last);
	*h = (struct rulehistory){0};
}
