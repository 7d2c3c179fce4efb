#include "supervisor/judge.h"

#include "tracer/util.h"

#include <errno.h>

bool judge_is_harder(enum effect a, enum effect b)
{
	static const int rank[] = {
		[EFFECT_ALLOW] = 0, [EFFECT_ASK] = 1, [EFFECT_DENY] = 2, [EFFECT_FORBID] = 3};
	return rank[a] > rank[b];
}

struct decision judge_path(const struct policy *p, const char *path, uint32_t access, uint32_t once,
			   uint32_t *ret_asked)
{
	struct decision worst = {.effect = EFFECT_ALLOW};
	*ret_asked = 0;
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1) {
		if (!(access & bit))
			continue;
		struct decision d = policy_decide(p, path, bit);
		if ((once & bit) && d.effect != EFFECT_FORBID)
			d.effect = EFFECT_ALLOW;
		if (d.effect != EFFECT_ALLOW)
			*ret_asked |= bit;
		if (judge_is_harder(d.effect, worst.effect) ||
		    (d.effect == worst.effect && !worst.rule))
			worst = d;
	}
	return worst;
}

uint32_t judge_gained(const struct policy *p, const char *from, const char *to, mode_t type,
		      uint32_t once)
{
	uint32_t bits = 0, content = JUDGE_CONTENT & access_on_kind(type) & ~once;
	for (uint32_t bit = 1; bit & ACCESS_ALL; bit <<= 1)
		if ((bit & content) && policy_decide(p, from, bit).effect == EFFECT_ASK &&
		    policy_decide(p, to, bit).effect == EFFECT_ALLOW)
			bits |= bit;
	return bits;
}

bool judge_meets_the_wall(int64_t result)
{
	static const int after[] = {ENOEXEC, ENXIO, ENODEV, ENOTEMPTY, EAGAIN};
	for (size_t i = 0; i < ARRAY_LEN(after); i++)
		if (result == -after[i])
			return true;
	return result >= 0;
}

bool judge_is_moot(const struct rule *rule)
{
	return rule && rule->source == RULE_PRESET && rule->effect == EFFECT_DENY &&
	       !(rule->access & (ACCESS_R | ACCESS_X));
}
