/*
 * doctor_probes: the probes themselves; each adds what it finds to d under the name it is given.
 */
#pragma once

#include "supervisor/doctor.h"

#define PROBE(name, vital) void doctor_probe_##name(struct doctor *d, const char *probe);
#include "supervisor/doctor.def"
#undef PROBE
