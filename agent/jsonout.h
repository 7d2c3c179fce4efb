/*
 * jsonout: a turn as JSON on stdout. `json`: one object at the end. `stream-json`: one line an
 * event, the last one the same object with "event":"result".
 *
 * Events: {"event":"text","text":…} {"event":"tool","id":…,"name":…,"arguments":…}
 * {"event":"diff","text":…} {"event":"output","text":…}
 * {"event":"tool_end","id":…,"status":…,"answer":{…}}
 * {"event":"note","text":…} {"event":"result",…}
 */
#pragma once

#include "agent/show.h"
#include "agent/turn.h"

#include <stdbool.h>
#include <stdio.h>

struct jsonout {
	FILE *out;
	bool stream;
	struct buf result; /* the text of the last message; jsonout_release() */
	bool fresh;	   /* the next text begins a message */
	struct show words, printed;
};

struct turn_sink jsonout_sink(struct jsonout *j);
struct agent;
void jsonout_result(struct jsonout *j, const struct agent *a, const struct turn_result *result);
void jsonout_release(struct jsonout *j);
