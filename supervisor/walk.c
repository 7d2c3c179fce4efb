/*
 * execvp(3), posix_spawnp(3) and shells try one directory of PATH after the other, and a refused
 * one does not stop them: EACCES is what they say at the end, when no directory had a program that
 * could be run. So a refused exec is kept until the thread's next step is known. It is told once,
 * where the walk finds nothing; where it does, there was nothing that failed.
 */
#include "supervisor/walk.h"

#include "tracer/util.h"

#include <stdlib.h>
#include <string.h>

struct walk {
	struct walk *next;
	uint64_t who;
	pid_t pid;
	char *name;	 /* owned; what is looked for */
	char *given;	 /* owned; the last place */
	struct denial d; /* owned; the one that counts, if the walk finds nothing */
};

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void walk_free(struct walk *k)
{
	free(k->name);
	free(k->given);
	denial_release(&k->d);
	free(k);
}

static struct walk *take(struct walks *l, uint64_t who)
{
	for (struct walk **p = &l->first; *p; p = &(*p)->next) {
		struct walk *k = *p;
		if (k->who != who)
			continue;
		*p = k->next;
		return k;
	}
	return NULL;
}

static void tell(const struct walks *l, struct walk *k)
{
	l->tell(l->arg, &k->d);
	walk_free(k);
}

static bool same_name(const struct walk *k, const char *given)
{
	return !strcmp(k->name, base_of(given));
}

/* Of a walk's refusals the first counts that a grant would help; else the first. */
static bool counts_more(const struct denial *d, const struct denial *than)
{
	return d->verdict == VERDICT_SANDBOX && than->verdict != VERDICT_SANDBOX;
}

static struct walk *begin(uint64_t who, pid_t pid, const char *given, const struct denial *d)
{
	struct walk *k = calloc(1, sizeof *k);
	if (!k)
		return NULL;
	*k = (struct walk){
		.who = who, .pid = pid, .name = strdup(base_of(given)), .given = strdup(given)};
	if (k->name && k->given && !denial_copy(d, &k->d))
		return k;
	walk_free(k);
	return NULL;
}

/* The walk's next refusal. False: no memory. */
static bool step(struct walk *k, const char *given, const struct denial *d)
{
	char *here = strdup(given);
	struct denial copy;
	if (!here)
		return false;
	free(k->given);
	k->given = here;
	if (!counts_more(d, &k->d))
		return true;
	if (denial_copy(d, &copy))
		return false;
	denial_release(&k->d);
	k->d = copy;
	return true;
}

void walk_refused(struct walks *l, uint64_t who, pid_t pid, const char *given,
		  const struct denial *d)
{
	struct walk *k = take(l, who);
	/* Also where PATH has a directory twice. */
	if (k && (!given || !same_name(k, given))) {
		tell(l, k);
		k = NULL;
	}
	if (!k && given)
		k = begin(who, pid, given, d);
	else if (k && !step(k, given, d)) {
		tell(l, k);
		k = NULL;
	}
	if (!k) { /* it can't be kept: told at once */
		l->tell(l->arg, d);
		return;
	}
	k->next = l->first;
	l->first = k;
}

void walk_over(struct walks *l, uint64_t who)
{
	struct walk *k = take(l, who);
	if (k)
		tell(l, k);
}

void walk_execed(struct walks *l, uint64_t who, const char *given)
{
	struct walk *k = take(l, who);
	if (!k)
		return;
	if (given && (!same_name(k, given) || !strcmp(k->given, given))) {
		tell(l, k);
		return;
	}
	if (k->d.verdict == VERDICT_SANDBOX && l->passed_over)
		l->passed_over(l->arg, k->name);
	walk_free(k);
}

void walk_ended(struct walks *l, pid_t pid)
{
	for (struct walk **p = &l->first; *p;) {
		struct walk *k = *p;
		if (pid && k->pid != pid) {
			p = &k->next;
			continue;
		}
		*p = k->next;
		tell(l, k);
	}
}
