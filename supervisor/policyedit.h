/*
 * policyedit: a saved policy in the user's editor, checked before it counts.
 */
#pragma once

#include "supervisor/policycli.h"

int policyedit(struct policycli *c, int argc, char **argv);
