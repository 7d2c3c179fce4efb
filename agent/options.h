/*
 * options: the command line of `warder agent`, read into one struct. Prints nothing.
 */
#pragma once

#include "agent/oneshot.h"
#include "agent/provider.h"
#include "supervisor/engine.h"
#include "tracer/buf.h"

/* Values of one repeatable option: NULL-terminated, the strings owned by argv or by this list. */
struct option_list {
	char **item; /* owned; NULL where the option was not given */
	size_t len;
};

struct options {
	const char *prompt; /* all plain strings are loans of argv */
	enum oneshot_output output;
	enum provider_kind provider;
	const char *model, *endpoint, *script;
	unsigned max_steps, max_seconds;
	const char *project, *label;
	struct option_list rules; /* strings owned */
	struct option_list policies, presets, no_presets;
	bool no_default_presets, tmp_shared, allow_degraded, yes, verbose, help;
	enum engine_mode mode;
	enum engine_ask ask;
	int events, answers;
	int64_t answer_timeout_ms;
};

/*
 * argv[0] is "agent". 0; -EINVAL and a sentence in *why (foreign bytes in it); -ENOMEM. Either way
 * options_release().
 */
int options_parse(int argc, char **argv, struct options *ret, struct buf *why);
void options_release(struct options *o);
void options_write_help(struct buf *out);
