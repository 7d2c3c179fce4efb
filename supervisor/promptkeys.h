/*
 * promptkeys: the last lines of a question (prompt_paint.h), and what its keys do
 * (prompt_keys.def). Pure.
 */
#pragma once

#include "supervisor/prompt_paint.h"

/* The table of keys; PROMPT_NOTHING for one that is none, PROMPT_SCOPE for 1-9. */
enum prompt_action promptkeys_action(char key);
/*
 * The keys, or in their place that none counts yet (v->early). `low`: one line; the others are in
 * the help.
 */
void promptkeys_paint(struct buf *out, const struct question *q, const struct prompt_view *v,
		      bool low);
