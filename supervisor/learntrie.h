/*
 * learntrie: what was seen of many paths, in memory that does not grow with how often, and not
 * without bound with how many.
 *
 * A directory below which too many different names were seen is kept as a whole: never a wide one
 * (supervisor/breadth.h). Where that is not enough, narrower ones are joined too; and where nothing
 * can be joined any more, further names are counted and not kept.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEARNTRIE_NODES_MAX 200000
#define LEARNTRIE_FAN_MAX   256 /* names of one directory */
#define LEARNTRIE_WHO_MAX   3	/* programs and calls that are named; further ones are counted */

/* What was seen of one path, or of all that is below a directory. */
struct learntrie_leaf {
	uint32_t needed;		 /* ACCESS_* bits */
	bool is_dir;			 /* the path is a directory, each time it was seen */
	bool whole;			 /* all that is below it was joined to it */
	uint64_t count;			 /* how often */
	unsigned traces;		 /* in how many; with `whole`: at least */
	uint64_t names;			 /* paths it stands for; with `whole`: at least */
	uint16_t who[LEARNTRIE_WHO_MAX]; /* words, from 1 (learntrie_word); 0: none further */
	uint16_t call[LEARNTRIE_WHO_MAX];
	bool more_who, more_call;
	unsigned last_trace; /* private */
};

struct learntrie_seen {
	const char *path; /* absolute, normal */
	uint32_t access;  /* not 0 */
	bool is_dir;
	const char *who; /* the program's short name */
	const char *call;
	unsigned trace; /* from 1, never decreasing */
};

struct learntrie;

/*
 * home: a loan, may be NULL. words_of: one whose words are this one's, too, and which is freed no
 * earlier; or NULL. 0 or -ENOMEM.
 */
int learntrie_new(const char *home, const struct learntrie *words_of, struct learntrie **ret);
void learntrie_free(struct learntrie *t);
/* 0 or -ENOMEM. */
int learntrie_add(struct learntrie *t, const struct learntrie_seen *seen);
/* What another one has of a path (its words must be this one's). 0 or -ENOMEM. */
int learntrie_put(struct learntrie *t, const char *path, const struct learntrie_leaf *leaf);
/* How many times something was seen that could not be kept. */
uint64_t learntrie_dropped(const struct learntrie *t);
size_t learntrie_nodes(const struct learntrie *t);
const char *learntrie_word(const struct learntrie *t, uint16_t word);
/* Every path with something seen, a directory before what is in it, names in order. 0 or what
 * `each` returned that was not 0, or -ENOMEM. */
int learntrie_walk(const struct learntrie *t,
		   int (*each)(void *arg, const char *path, const struct learntrie_leaf *leaf),
		   void *arg);
/* What is seen of a is added to into. */
void learntrie_join(struct learntrie_leaf *into, const struct learntrie_leaf *a);
