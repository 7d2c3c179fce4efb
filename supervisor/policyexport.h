/*
 * policyexport: `warder policy export`: a policy in other programs' words.
 */
#pragma once

#include "supervisor/policycli.h"

int policyexport(struct policycli *c, int argc, char **argv);
