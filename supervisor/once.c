/*
 * Answers "once": remembered for one process, until it execs or ends.
 */
#include "supervisor/run.h"

#include "supervisor/breadth.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_once(struct run *r, pid_t pid, const char *path, uint32_t access, bool below)
{
	struct once *o = calloc(1, sizeof *o);
	char *copy = strdup(path);
	if (!o || !copy) {
		free(o);
		free(copy);
		return -ENOMEM;
	}
	*o = (struct once){
		.next = r->onces, .pid = pid, .access = access, .path = copy, .below = below};
	r->onces = o;
	r->own.stale = true;
	return 0;
}

int once_add(struct run *r, pid_t pid, const char *path, uint32_t access)
{
	return add_once(r, pid, path, access, false);
}

int once_add_below(struct run *r, pid_t pid, const char *dir, uint32_t access)
{
	return add_once(r, pid, dir, access, true);
}

static void forget(struct run *r, pid_t pid, bool ended)
{
	for (struct once **p = &r->onces; *p;) {
		struct once *o = *p;
		if (o->pid != pid || (o->stays && !ended)) {
			o->stays &= o->pid != pid;
			p = &o->next;
			continue;
		}
		*p = o->next;
		r->own.stale = true;
		free(o->path);
		free(o);
	}
}

void once_forget(struct run *r, pid_t pid)
{
	forget(r, pid, true);
}

void once_execed(struct run *r, pid_t pid)
{
	forget(r, pid, false);
}

void once_keep(struct run *r, pid_t pid)
{
	for (struct once *o = r->onces; o; o = o->next)
		o->stays |= o->pid == pid;
}

/* Of a directory's answer: what no rule speaks of that begins below it, or anywhere (a pattern). */
static uint32_t bits_below(const struct run *r, const struct once *o, const char *path)
{
	uint32_t bits = 0;
	if (!breadth_is_below(path, o->path))
		return 0;
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1) {
		struct decision d = policy_decide(r->session->policy, path, bit);
		bool open = d.effect == EFFECT_ASK &&
			    (!d.rule || (d.rule->kind == RULE_TREE &&
					 breadth_is_below(o->path, d.rule->path)));
		bits |= open ? bit & o->access : 0;
	}
	return bits;
}

uint32_t once_bits(const struct run *r, pid_t pid, const char *path)
{
	uint32_t bits = 0;
	for (const struct once *o = r->onces; o; o = o->next) {
		if (o->pid != pid)
			continue;
		if (o->below)
			bits |= bits_below(r, o, path);
		else if (!strcmp(o->path, path))
			bits |= o->access;
	}
	return bits;
}
