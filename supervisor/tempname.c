#include "supervisor/tempname.h"

#include <ctype.h>
#include <stddef.h>

#define DIGITS_MIN  5 /* of a process id, a time; years and versions have fewer */
#define NUMBER_MIN  8 /* behind a word: dates have as many, and are as little the same again */
#define HEX_MIN	    8
#define RANDOM_MIN  6 /* mkstemp's XXXXXX */
#define CHANGES_MIN 3

enum kind { KIND_DIGIT, KIND_LOWER, KIND_UPPER };

static enum kind kind_of(unsigned char c)
{
	return isdigit(c) ? KIND_DIGIT : islower(c) ? KIND_LOWER : KIND_UPPER;
}

/* Letters and digits alone, n of them: do they look drawn by lot? */
static bool is_random(const char *run, size_t n)
{
	size_t seen[KIND_UPPER + 1] = {0}, hex = 0, changes = 0, row = 0, longest = 0;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)run[i];
		seen[kind_of(c)]++;
		hex += isxdigit(c) && !isupper(c);
		changes += i && kind_of(c) != kind_of((unsigned char)run[i - 1]);
		row = isdigit(c) ? row + 1 : 0;
		longest = row > longest ? row : longest;
	}
	if (seen[KIND_DIGIT] == n)
		return n >= DIGITS_MIN;
	if (!seen[KIND_DIGIT])
		return false;
	if (longest >= NUMBER_MIN || (hex == n && n >= HEX_MIN))
		return true;
	/* Words with a number behind or capitals inside change less often than that. */
	size_t least = seen[KIND_LOWER] && seen[KIND_UPPER] ? RANDOM_MIN : RANDOM_MIN + 2;
	return n >= least && changes >= CHANGES_MIN;
}

bool tempname_is(const char *name)
{
	for (const char *at = name; *at;) {
		size_t n = 0;
		while (isalnum((unsigned char)at[n]))
			n++;
		if (is_random(at, n))
			return true;
		at += n ? n : 1;
	}
	return false;
}
