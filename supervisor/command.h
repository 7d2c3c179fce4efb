/*
 * command: finding the program of a command line, and letting it run.
 */
#pragma once

#include "supervisor/policy.h"

#include <stdbool.h>

struct command {
	char *file;	     /* owned: what execve gets */
	bool not_found;	     /* nothing of that name (status 127) */
	bool not_executable; /* it is there but can't be executed by us (126) */
};

/*
 * As the shell does: a name without slash is looked up in PATH of env, relative to cwd. 0 with
 * one of file, not_found, not_executable set; -ENOMEM.
 */
int command_find(const char *argv0, char *const *env, const char *cwd, struct command *ret);
void command_release(struct command *c);
/* `allow rx FILE exact` for the file, its interpreters and its loader, where the policy has it not
 * yet. */
int command_allow(const char *file, const char *cwd, struct policy *p);
