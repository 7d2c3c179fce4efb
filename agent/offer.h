/*
 * offer: a project's own .warder.policy, shown to the user at a start in a terminal: accepted, it
 * counts from then on (supervisor/proposal.h); refused, the same text is not offered again.
 */
#pragma once

#include "supervisor/engine.h"

/* 1: it was accepted, the session's policy is out of date; 0: nothing changed. Blocks. */
int offer_proposal(const struct session *s);
