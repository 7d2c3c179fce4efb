/*
 * jsontext: JSON that json_parse() took, walked as text: what cJSON's strings can't hold (they end
 * at U+0000) can be told, and sent back as it came. Loans of the text; nothing is allocated.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* One value's text; {0}: there is none. */
struct jsontext {
	const char *at;
	size_t len;
};

/* The value of the object's first member of this name (plain ASCII, written without escapes). */
struct jsontext jsontext_member(struct jsontext object, const char *key);
/* The array's first element, and the one after it. */
struct jsontext jsontext_first(struct jsontext array);
struct jsontext jsontext_next(struct jsontext array, struct jsontext element);
/* Has a string in it U+0000 somewhere? */
bool jsontext_has_nul(struct jsontext value);
