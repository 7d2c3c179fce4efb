/*
 * judge: the policy's word on what a call needs, the same for a call that is held now, one that was
 * let pass (--permissive), and one that a trace tells of. Pure.
 */
#pragma once

#include "supervisor/policy.h"

#include <stdbool.h>
#include <stdint.h>

/* forbid > deny > ask > allow */
bool judge_is_harder(enum effect a, enum effect b);
/*
 * The accesses that one path needs: the hardest effect of them, with its rule. `once`: what was
 * answered for this path already; it overrules everything but forbid. *ret_asked: the bits that are
 * not allowed.
 */
struct decision judge_path(const struct policy *p, const char *path, uint32_t access, uint32_t once,
			   uint32_t *ret_asked);
/* What reaches the thing behind a name. Making or removing one of its names changes no other. */
#define JUDGE_CONTENT (ACCESS_READ | ACCESS_WRITE | ACCESS_EXEC | ACCESS_META | ACCESS_IOCTL)
/*
 * Of a thing of this type that is moved or linked: what is asked about it where it is, and would be
 * allowed where it would go. `once`: what was answered for its old place.
 */
uint32_t judge_gained(const struct policy *p, const char *from, const char *to, mode_t type,
		      uint32_t once);
/*
 * Would a call that returned this without any wall have been refused by one? What succeeded, and
 * what the kernel says only after it has asked Landlock.
 */
bool judge_meets_the_wall(int64_t result);
/* What presets keep secret they deny to be read; what they deny to be written alone is a habit. */
bool judge_is_moot(const struct rule *rule);
