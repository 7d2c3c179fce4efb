/*
 * policymergecli: `warder policy merge`: policies as one, or results of replays as one.
 */
#pragma once

#include "supervisor/policycli.h"

int policymergecli(struct policycli *c, int argc, char **argv);
