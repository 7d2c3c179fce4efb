/*
 * policyaccept: a person looks at what a project proposes, and says yes.
 */
#pragma once

#include "supervisor/policycli.h"

int policyaccept(struct policycli *c, int argc, char **argv);
