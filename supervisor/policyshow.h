/*
 * policyshow: `warder policy show` and `check`.
 */
#pragma once

#include "supervisor/policycli.h"

int policyshow(struct policycli *c, int argc, char **argv);
int policyshow_check(struct policycli *c, int argc, char **argv);
