/*
 * policyscan: one line of policy text into its parts; syntax only, no I/O, no variables.
 *
 *   allow|deny|ask|forbid [ACCESS] PATH [exact]     # comment
 *   use PRESET...
 *   sensitive [ACCESS] PATH [exact]                 (where allowed)
 *
 * Words are separated by blanks; a # at the start of a word begins a comment. "..." keeps blanks
 * and makes
 * * and ? plain; \ makes the next character plain; \n \t \r \e and \xNN are bytes.
 */
#pragma once

#include "supervisor/policyfile.h"

#define POLICYSCAN_WORDS_MAX 32

struct policyscan_word {
	unsigned col;	 /* from 1, in bytes */
	const char *raw; /* a loan of the line */
	size_t raw_len;
	char *text; /* the line's; quotes gone; literal * ? and \ have a \ before them, and so has a
		     * literal ~ or $ at the start */
	bool quoted; /* some quote or backslash was there: no keyword */
};

enum policyscan_kind { POLICYSCAN_BLANK, POLICYSCAN_RULE, POLICYSCAN_SENSITIVE, POLICYSCAN_USE };

struct policyscan_line {
	enum policyscan_kind kind;
	enum effect effect;
	uint32_t access;
	bool exact;
	size_t words;
	size_t path; /* of a rule: the index of the path's word; of use: the first name's */
	char *texts; /* owned: all words' */
	struct policyscan_word word[POLICYSCAN_WORDS_MAX];
};

/* Where a fault is said to be. */
struct policyscan_where {
	const char *name;
	unsigned line;
};

/*
 * The line has no newline in it (a last \r is taken off). 0 and *ret, to be released with
 * policyscan_release(); -EINVAL with *ret_error; -ENOMEM.
 */
int policyscan_line(const struct policyscan_where *where, const char *text, size_t n,
		    bool sensitive_allowed, struct policyscan_line *ret,
		    struct policy_error *ret_error);
void policyscan_release(struct policyscan_line *l);

/* "NAME:LINE:COL: message"; always returns -EINVAL. Foreign words in it are escaped. */
int policyscan_fault(struct policy_error *ret_error, const struct policyscan_where *where,
		     unsigned col, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
