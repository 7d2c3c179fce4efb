/*
 * budget: how often may somebody be asked about things below one directory?
 *
 * Answers for single things are remembered, the latest BUDGET_KEPT of them. Where BUDGET_MAX lie
 * below one directory the next question is about that directory: a flood (find, a compiler, a
 * search for a file) is answered with one word. Text alone, no I/O.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BUDGET_MAX  6
#define BUDGET_KEPT 256

/* Start from a zeroed one. */
struct budget {
	struct budget_answer {
		char *path; /* owned */
		uint32_t access;
	} kept[BUDGET_KEPT];
	size_t total;
};

/* An answer for this path (copied) and these accesses alone. 0 or -ENOMEM. */
int budget_add(struct budget *b, const char *path, uint32_t access);
/*
 * The deepest directory above path that was asked about often enough, by an access of the same
 * letter, and that is not too wide to be opened or refused as a whole (breadth_is_wide). Its length
 * in path; 0: none. home may be NULL.
 */
size_t budget_spent(const struct budget *b, const char *path, uint32_t access, const char *home);
void budget_release(struct budget *b);
