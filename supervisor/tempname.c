#include "supervisor/tempname.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MIN  5 /* of a process id, a time; years and versions have fewer */
#define NUMBER_MIN  8 /* behind a word: dates have as many, and are as little the same again */
#define HEX_MIN	    8
#define RANDOM_MIN  6 /* mkstemp's XXXXXX */
#define CHANGES_MIN 3
#define WORD_MIN    3 /* in CamelCase */
#define CAMEL_MIN   8 /* so many letters for each that is shorter */
#define PID_MIN	    100

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

/* "2026-11-30" with more beside it: a log of that day. The date alone may be what is kept. */
static bool is_dated(const char *name)
{
	static const char pattern[] = "dddd-dd-dd";
	for (const char *at = name; *at; at++) {
		size_t n = 0;
		while (pattern[n] && (pattern[n] == 'd' ? isdigit((unsigned char)at[n]) != 0
							: at[n] && strchr("-_.", at[n]) != NULL))
			n++;
		bool begins = at == name || !isdigit((unsigned char)at[-1]);
		if (!pattern[n] && begins && !isdigit((unsigned char)at[n]))
			return (at != name || at[n]) &&
			       (!strncmp(at, "19", 2) || !strncmp(at, "20", 2));
	}
	return false;
}

/* word, Word, WORD, someWords: letters that somebody thought of. */
static bool is_words(const char *run, size_t n)
{
	size_t upper = 0, small = 0, parts = 0, at = 0;
	for (size_t i = 0; i < n; i++)
		upper += isupper((unsigned char)run[i]) != 0;
	while (at < n) {
		size_t from = at++;
		while (at < n && islower((unsigned char)run[at]))
			at++;
		small += at - from < WORD_MIN;
		parts++;
	}
	return upper == n || parts == 1 || (n >= CAMEL_MIN && small * CAMEL_MIN <= n);
}

/* Letters and digits alone, where names are drawn by lot as a rule. */
static bool is_drawn(const char *run, size_t n)
{
	size_t letters = n;
	while (letters && isdigit((unsigned char)run[letters - 1]))
		letters--;
	for (size_t i = 0; i < letters; i++)
		if (isdigit((unsigned char)run[i]))
			return n >= RANDOM_MIN;
	return n >= RANDOM_MIN && !is_words(run, letters);
}

static size_t run_length(const char *at)
{
	size_t n = 0;
	while (isalnum((unsigned char)at[n]))
		n++;
	return n;
}

/* mktemp's "tmp.XXXXXXXXXX", and the C library's "sem.XXXXXX", which it links to the real name. */
static bool is_of_a_template(const char *name)
{
	bool mktemp = !strncmp(name, "tmp.", 4), sem = !strncmp(name, "sem.", 4);
	size_t n = mktemp || sem ? run_length(name + 4) : 0;
	return n >= RANDOM_MIN && (mktemp || (n == RANDOM_MIN && !name[4 + n]));
}

bool tempname_is_where_they_are(const char *name)
{
	if (tempname_is(name) || is_of_a_template(name))
		return true;
	for (const char *at = name; *at;) {
		size_t n = run_length(at);
		if (is_drawn(at, n))
			return true;
		at += n ? n : 1;
	}
	return false;
}

bool tempname_has_pid(const char *name, long pid)
{
	for (const char *at = name; pid >= PID_MIN && *at;) {
		size_t n = strspn(at, "0123456789");
		if (n && strtol(at, NULL, 10) == pid)
			return true;
		at += n ? n : 1;
	}
	return false;
}

bool tempname_is(const char *name)
{
	if (is_dated(name))
		return true;
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
