/*
 * policychange: one rule is saved, or taken out again.
 */
#pragma once

#include "supervisor/policycli.h"

/* effect: "allow", "deny", "ask" or "forbid". */
int policychange(struct policycli *c, const char *effect, int argc, char **argv);
int policychange_forget(struct policycli *c, int argc, char **argv);
/*
 * One line on stderr where something that is saved elsewhere, or a preset, still decides otherwise
 * than this saved rule.
 */
void policychange_say_overruled(struct policycli *c, const struct rule *saved);
