/*
 * tracewords: accesses, verdicts and answers as the words that a trace has for them. Pure.
 */
#pragma once

#include "supervisor/denial.h"

#include <stdbool.h>
#include <stdint.h>

/* Room for every access by name, with commas, and a NUL. */
#define TRACEWORDS_MAX 80

void tracewords_format(uint32_t access, char ret[TRACEWORDS_MAX]);
/* Words that are no access of ours are passed over. NULL: 0. */
uint32_t tracewords_access(const char *words);
/* As answered_by_name(), but "yes" for --yes. */
const char *tracewords_by(enum answered_by by);
/* False: none of these. */
bool tracewords_parse_by(const char *word, enum answered_by *ret);
bool tracewords_parse_verdict(const char *word, enum verdict *ret);
bool tracewords_parse_lifetime(const char *word, enum lifetime *ret);
