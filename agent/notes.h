/*
 * notes: what a project tells every agent: AGENTS.md at its top, and in the directory that the
 * agent was started in. Read by a tool child behind the wall, as every path; never asked about.
 */
#pragma once

#include "agent/toolrun.h"
#include "agent/turn.h"

/*
 * Append them, under a heading each, for the system message; nothing where there are none or the
 * policy does not open them. What was read is told by sink->note. Blocks as a tool call does.
 */
void notes_read(const struct toolrun *r, const char *project, struct buf *out,
		const struct turn_sink *sink);
