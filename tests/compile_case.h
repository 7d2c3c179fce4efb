/*
 * compile_case: random trees and random policies over them, for the tests of compile and guard.
 *
 * Everything lies in one mkdtemp directory. The same seed gives the same case.
 */
#pragma once

#include "supervisor/policy.h"
#include "supervisor/reach.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CASE_OBJECTS_MAX 64

static const char *const case_names[] = {"a", "b", "c", ".env", "sub", "x.h"};
#define CASE_NAMES (sizeof(case_names) / sizeof(case_names[0]))

struct case_object {
	char path[256];
	struct stat st;
};

struct case_tree {
	char top[64];
	uint64_t state;
	struct case_object object[CASE_OBJECTS_MAX]; /* [0] is the top */
	size_t objects;
	struct policy *policy;
};

static inline uint32_t case_random(struct case_tree *t, uint32_t below)
{
	t->state = t->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(t->state >> 33) % below;
}

static inline const char *case_name(struct case_tree *t)
{
	return case_names[case_random(t, CASE_NAMES)];
}

static inline void case_note(struct case_tree *t, const char *path)
{
	struct case_object *o = &t->object[t->objects];

	if (t->objects < CASE_OBJECTS_MAX && lstat(path, &o->st) == 0) {
		snprintf(o->path, sizeof(o->path), "%.255s", path);
		t->objects++;
	}
}

/* One of this type; NULL: none was met (never for a directory). */
static inline const struct case_object *case_pick(struct case_tree *t, mode_t type)
{
	for (int i = 0; i < 20; i++) {
		const struct case_object *o = &t->object[case_random(t, (uint32_t)t->objects)];
		if ((o->st.st_mode & S_IFMT) == type)
			return o;
	}
	return S_ISDIR(type) ? &t->object[0] : NULL;
}

/* Hard links change the count of the file they are of: look again. */
static inline void case_refresh(struct case_tree *t)
{
	for (size_t i = 0; i < t->objects; i++)
		if (lstat(t->object[i].path, &t->object[i].st) < 0)
			abort();
}

static inline void case_grow(struct case_tree *t)
{
	const struct case_object *dir = case_pick(t, S_IFDIR), *file = case_pick(t, S_IFREG);
	char path[256];
	int made = -1, fd;

	if (strlen(dir->path) > 90)
		return;
	snprintf(path, sizeof(path), "%.200s/%s", dir->path, case_name(t));
	switch (case_random(t, 10)) {
	case 0:
		made = symlink(dir->path, path);
		break;
	case 1:
		made = file ? link(file->path, path) : -1;
		break;
	case 2:
	case 3:
	case 4:
	case 5:
		made = mkdir(path, 0755);
		break;
	default:
		fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0755);
		made = fd < 0 ? -1 : close(fd);
	}
	if (made == 0)
		case_note(t, path);
}

static inline uint32_t case_access(struct case_tree *t)
{
	static const uint32_t usual[] = {
		ACCESS_R,
		ACCESS_R | ACCESS_W,
		ACCESS_R | ACCESS_W | ACCESS_X,
		ACCESS_R | ACCESS_X,
		ACCESS_W,
		ACCESS_ALL,
		ACCESS_READ,
		ACCESS_WRITE | ACCESS_READ,
		ACCESS_META,
		ACCESS_MOVE | ACCESS_CREATE,
	};
	uint32_t i = case_random(t, 14);

	return i < 10 ? usual[i] : 1 + case_random(t, ACCESS_ALL);
}

static inline void case_add(struct case_tree *t, enum effect effect, enum rule_kind kind,
			    uint32_t access, const char *path)
{
	struct rule r = {.effect = effect,
			 .kind = kind,
			 .source = RULE_LINE,
			 .access = access,
			 .path = (char *)path,
			 .origin = "test"};

	if (policy_add(t->policy, &r) < 0)
		abort();
}

static inline void case_random_rule(struct case_tree *t)
{
	static const char *const globs[] = {"**/.env", "*",	 "*/a",	  "**/*.h",
					    "?",       "sub/**", "**/sub"};
	static const enum effect effects[] = {EFFECT_ALLOW, EFFECT_ALLOW, EFFECT_ALLOW, EFFECT_ASK,
					      EFFECT_DENY,  EFFECT_DENY,  EFFECT_FORBID};
	const struct case_object *o = &t->object[case_random(t, (uint32_t)t->objects)];
	enum effect effect = effects[case_random(t, 7)];
	char path[320];

	while (S_ISLNK(o->st.st_mode))
		o = &t->object[case_random(t, (uint32_t)t->objects)];
	uint32_t kind = case_random(t, 10);
	if (kind < 6) {
		snprintf(path, sizeof(path), "%s", o->path);
		/* of a name that may not be there */
		if (S_ISDIR(o->st.st_mode) && case_random(t, 4) == 0)
			snprintf(path, sizeof(path), "%s/%s", o->path, case_name(t));
		case_add(t, effect, RULE_TREE, case_access(t), path);
	} else if (kind < 8) {
		case_add(t, effect, RULE_EXACT, case_access(t), o->path);
	} else {
		snprintf(path, sizeof(path), "%s/%s", S_ISDIR(o->st.st_mode) ? o->path : t->top,
			 globs[case_random(t, 7)]);
		case_add(t, effect, kind == 8 ? RULE_GLOB : RULE_GLOB_EXACT, case_access(t), path);
	}
}

static inline void case_make(struct case_tree *t, uint64_t seed)
{
	char real[PATH_MAX];

	memset(t, 0, sizeof(*t));
	t->state = seed * 2654435761u + 12345;
	case_random(t, 2);
	snprintf(t->top, sizeof(t->top), "/tmp/warder-case-XXXXXX");
	if (!mkdtemp(t->top) || !realpath(t->top, real) || strcmp(real, t->top) != 0 ||
	    policy_new(&t->policy) < 0)
		abort();
	case_note(t, real);
	for (uint32_t i = 0, n = 4 + case_random(t, 16); i < n; i++)
		case_grow(t);
	case_refresh(t);
	if (case_random(t, 3))
		case_add(t, EFFECT_ALLOW, RULE_TREE, case_access(t), t->top);
	for (uint32_t i = 0, n = 1 + case_random(t, 5); i < n; i++)
		case_random_rule(t);
}

static inline int case_remove_one(const char *path, const struct stat *st, int type,
				  struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline void case_free(struct case_tree *t)
{
	nftw(t->top, case_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	policy_free(t->policy);
}

static inline bool case_is_below(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	return strncmp(dir, path, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* Accesses that go with a thing when it is moved; of a non-directory not those of names. */
static inline uint32_t case_travels(mode_t mode)
{
	const uint32_t of_names = ACCESS_LIST | ACCESS_CREATE | ACCESS_DELETE | ACCESS_MOVE;
	return access_on_kind(mode) & ~(S_ISDIR(mode) ? 0 : of_names);
}

/*
 * How an access to an object stands. A file with several names is as open as the freest of them,
 * unless an exception withholds it under another: then what counts is the name at hand.
 */
static inline enum effect case_effect(const struct case_tree *t, const struct case_object *o,
				      uint32_t bit)
{
	struct decision own = policy_decide(t->policy, o->path, bit);
	enum effect freest = own.effect;

	for (size_t i = 0; i < t->objects && !S_ISDIR(o->st.st_mode); i++) {
		if (t->object[i].st.st_ino != o->st.st_ino)
			continue;
		struct decision d = policy_decide(t->policy, t->object[i].path, bit);
		if (d.rule && reach_is_exception(t->policy, d.rule))
			return own.effect;
		freest = d.effect < freest ? d.effect : freest;
	}
	return freest;
}

/*
 * Would what is at `from`, with all that is in it, have an access at `to` that it has not now? The
 * path that does is in ret (size 256).
 */
static inline bool case_widens(const struct case_tree *t, const char *from, const char *to,
			       char *ret)
{
	for (size_t i = 0; i < t->objects; i++) {
		const struct case_object *o = &t->object[i];
		if (!case_is_below(from, o->path) || S_ISLNK(o->st.st_mode))
			continue;
		snprintf(ret, 256, "%s%s", to, o->path + strlen(from));
		for (uint32_t bit = 1; bit < ACCESS_ALL; bit <<= 1)
			if ((bit & case_travels(o->st.st_mode)) &&
			    policy_decide(t->policy, ret, bit).effect < case_effect(t, o, bit))
				return true;
	}
	return false;
}

static inline void case_print(const struct case_tree *t, uint64_t seed)
{
	struct buf b = {0};

	fprintf(stderr, "seed %llu, %s\n", (unsigned long long)seed, t->top);
	for (size_t i = 0; i < t->objects; i++)
		fprintf(stderr, "  %06o %2lu %lu %s\n", t->object[i].st.st_mode,
			(unsigned long)t->object[i].st.st_nlink,
			(unsigned long)t->object[i].st.st_ino, t->object[i].path);
	for (size_t i = 0; i < policy_len(t->policy); i++) {
		policy_format_rule(&b, policy_at(t->policy, i));
		fprintf(stderr, "  %s\n", buf_str(&b));
		buf_reset(&b);
	}
	buf_free(&b);
}
