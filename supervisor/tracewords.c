#include "supervisor/tracewords.h"

#include "tracer/util.h"

#include <string.h>

static const char *const all_names[] = {
#define ACCESS(NAME, name, ...) #name,
#include "supervisor/access.def"
#undef ACCESS
};

#define ACCESS(NAME, name, ...) +sizeof(#name)
_Static_assert(TRACEWORDS_MAX >= 0
#include "supervisor/access.def"
	       ,
	       "no room for all of them");
#undef ACCESS

void tracewords_format(uint32_t access, char ret[TRACEWORDS_MAX])
{
	char *to = ret;
	for (size_t i = 0; i < ARRAY_LEN(all_names); i++) {
		if (!(access & 1u << i))
			continue;
		if (to != ret)
			*to++ = ',';
		to = stpcpy(to, all_names[i]);
	}
	*to = '\0';
}

uint32_t tracewords_access(const char *words)
{
	uint32_t access = 0;
	while (words && *words) {
		size_t n = strcspn(words, ",");
		for (size_t i = 0; i < ARRAY_LEN(all_names); i++)
			if (!strncmp(all_names[i], words, n) && !all_names[i][n])
				access |= 1u << i;
		words += n + (words[n] == ',');
	}
	return access;
}

const char *tracewords_by(enum answered_by by)
{
	return by == BY_YES ? "yes" : answered_by_name(by);
}

bool tracewords_parse_by(const char *word, enum answered_by *ret)
{
	for (enum answered_by b = BY_NONE; word && b <= BY_YES; b++)
		if (!strcmp(tracewords_by(b), word)) {
			*ret = b;
			return true;
		}
	return false;
}

bool tracewords_parse_verdict(const char *word, enum verdict *ret)
{
	for (enum verdict v = VERDICT_SANDBOX; word && v <= VERDICT_OTHER; v++)
		if (!strcmp(verdict_name(v), word)) {
			*ret = v;
			return true;
		}
	return false;
}

bool tracewords_parse_lifetime(const char *word, enum lifetime *ret)
{
	for (enum lifetime l = LIFETIME_ONCE; word && l <= LIFETIME_ALWAYS; l++)
		if (!strcmp(lifetime_name(l), word)) {
			*ret = l;
			return true;
		}
	return false;
}
