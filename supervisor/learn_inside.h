/*
 * What the parts of learn share: learn.c (what was seen), learnrules.c (rules from it), learntext.c
 * (the policy as text).
 */
#pragma once

#include "supervisor/learn.h"
#include "supervisor/learntrie.h"
#include "supervisor/madenames.h"
#include "supervisor/plan.h"

/* Why something that is not open makes no rule; or WANTED: it does. */
enum learn_fate {
	LEARN_WANTED,
	LEARN_SENSITIVE, /* on the sensitive list, or a rule asks about it each time */
	LEARN_REFUSED,	 /* a preset denies it, it is warder's own, or a person said no */
	LEARN_VOLATILE,	 /* names under /proc come and go */
	LEARN_TEMPORARY, /* in a shared temporary directory, which a run has of its own */
	LEARN_FATES,
	LEARN_COVERED, /* open without a rule */
};

/* A directory that has another name here. */
struct learn_map {
	char *from, *to; /* owned */
};

struct learn {
	char *home, *project; /* owned; project NULL: not told yet */
	bool project_is_given;
	struct policy *base; /* presets, the old policy, what traces say of their projects */
	struct learntrie *seen[LEARN_FATES];
	struct madenames made;	 /* by the programs of the traces, for the moment */
	struct learn_map map[2]; /* of the trace at hand */
	size_t maps;
	unsigned traces;
	bool here; /* all of them were recorded on this machine */
	uint64_t calls, covered, unsure, nameless;
	/* The result. */
	struct learn_rule *rule; /* owned */
	size_t rules;
	const char *preset[16]; /* static names */
	size_t presets;
	struct policy *with; /* base and these presets */
	/* Checking. */
	struct policy *final;
	struct learn_verdict verdict;
	struct buf text; /* scratch: a mapped path */
};

/* A rule that is to be written. */
struct learn_rule {
	char *path; /* owned; absolute; a pattern where `glob` */
	bool exact, glob;
	uint32_t access;
	struct learntrie_leaf leaf; /* what it stands for */
	size_t paths;		    /* different ones */
	bool runs_later;	    /* hooks or config of a repository are among what is written */
};

/* With the accesses that are not open in *ret_closed. */
enum learn_fate learn_fate(const struct policy *p, const char *path, uint32_t access,
			   uint32_t *ret_closed);
/* Fills rule, preset and with. 0 or -ENOMEM. */
int learnrules(struct learn *l);
void learnrules_release(struct learn *l);
/* The line without its comment. */
void learntext_rule(const struct learn *l, const struct learn_rule *r, struct buf *out);
int learntext(struct learn *l, struct buf *out);
