/*
 * trust: what the agent may do in a project. Asked once, at the first start there; remembered in
 * STATE/trust.jsonl, a line an answer, the last of a project counts. Projects are told apart by
 * their slug (supervisor/project.h), as their saved policies are.
 */
#pragma once

#include "supervisor/engine.h"

#include <stdbool.h>

enum trust {
	TRUST_UNKNOWN, /* never answered */
	TRUST_READ,    /* read and run what is there */
	TRUST_WRITE,   /* as `warder run` has it: the project is open */
	TRUST_ASK,     /* nothing is open */
};

/* "read", "write", "ask"; and back: TRUST_UNKNOWN for anything else. */
const char *trust_name(enum trust t);
enum trust trust_parse(const char *word);
/* In a few words. */
const char *trust_help(enum trust t);

enum trust trust_recall(const struct session *s);
/* 0 or -errno. */
int trust_remember(const struct session *s, enum trust t);
/* Ask on the terminal (stdin and stdout). TRUST_UNKNOWN: no answer; the program ends then. Blocks.
 */
enum trust trust_ask(const struct session *s);
/*
 * Open what an answer opens, in a session that was made without the project preset; nothing for
 * TRUST_ASK. 0 or -errno.
 */
int trust_open(struct session *s, enum trust t);

/* A text that the project proposed and the user refused, by its SHA-256 (offer.h). 0 or -errno. */
int trust_refuse(const struct session *s, const char *sha256);
bool trust_was_refused(const struct session *s, const char *sha256);
