/*
 * policyimport: `warder policy import`: rules from elsewhere, looked at before they are saved.
 */
#pragma once

#include "supervisor/policycli.h"

int policyimport(struct policycli *c, int argc, char **argv);
