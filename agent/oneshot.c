#include "agent/oneshot.h"

#include "agent/interrupt.h"
#include "agent/jsonout.h"
#include "agent/paint.h"
#include "agent/termwidth.h"

#include <stdio.h>
#include <unistd.h>

static int status_of(const struct turn_result *r)
{
	if (interrupt_ending())
		return -interrupt_ending();
	switch (r->end) {
	case TURN_DONE:
		return 0;
	case TURN_CANCELLED:
		return -SIGINT;
	case TURN_TROUBLE:
		return 125;
	case TURN_PROVIDER:
	case TURN_STEPS_SPENT:
	case TURN_TIME_SPENT:
	case TURN_REPEATED:
		break;
	}
	return 1;
}

/* A spinner stands where the words will: both are on a terminal, or the words are elsewhere. */
static struct spinner *make_spinner(void)
{
	struct spinner *s = NULL;
	bool both = termwidth_is_capable(STDERR_FILENO) &&
		    (!isatty(STDOUT_FILENO) || termwidth_is_capable(STDOUT_FILENO));
	if (both && spinner_new(STDERR_FILENO, &s))
		s = NULL;
	return s;
}

static void run_text(struct agent *a, const char *words, bool verbose, struct turn_result *ret)
{
	struct spinner *spinner = make_spinner();
	struct paint p = {.text = stdout,
			  .side = stderr,
			  .output = verbose,
			  .color = a->color,
			  .markdown = termwidth_is_capable(STDOUT_FILENO),
			  .spinner = spinner};
	struct turn_sink sink = paint_sink(&p);
	paint_begin(&p);
	agent_turn(a, words, &sink, ret);
	paint_end(&p);
	spinner_free(spinner);
	if (ret->words[0])
		paint_line(&p, "warder: ", ret->words);
}

static void run_json(struct agent *a, const char *words, bool stream, struct turn_result *ret)
{
	struct jsonout j = {.out = stdout, .stream = stream};
	struct turn_sink sink = jsonout_sink(&j);
	agent_turn(a, words, &sink, ret);
	jsonout_result(&j, a, ret);
	jsonout_release(&j);
}

int oneshot_run(struct agent *a, const char *words, enum oneshot_output output, bool verbose)
{
	struct turn_result result;
	if (output == ONESHOT_TEXT)
		run_text(a, words, verbose, &result);
	else
		run_json(a, words, output == ONESHOT_STREAM_JSON, &result);
	int status = status_of(&result);
	turn_result_release(&result);
	/* Nobody got the answer (a full disk, a closed pipe): that is no success. */
	if (fflush(stdout) || ferror(stdout))
		return status ? status : 1;
	return status;
}
