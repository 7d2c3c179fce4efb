/* What comes out of a replay: as text, as a report, as a partial result, or the policy's ruleset.
 */
#include "supervisor/replaycli.h"

#include "supervisor/compile.h"
#include "supervisor/escape.h"
#include "supervisor/plan.h"
#include "supervisor/replayask.h"
#include "tracer/util.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void write_members(struct jsonw *w, const void *result)
{
	replaypartial_write_members(w, result);
}

static void fill_report(struct replay_cli *c, struct replay_result *out)
{
	struct report *rep = &c->report;
	rep->denials = out->denials;
	rep->exited = !out->ended || out->exited;
	rep->exit_code = out->exited ? WEXITSTATUS(out->status) : 0;
	rep->signal = out->ended && !out->exited ? WTERMSIG(out->status) : 0;
	rep->runs = out->runs ? out->runs : 1;
	rep->wall_ms = (int64_t)(out->last_ns / 1000000);
	rep->more = write_members;
	rep->more_arg = out;
}

static void say_traces(const struct replay_result *out)
{
	printf("%" PRIu64 " events of %zu trace%s\n", out->events, out->traces,
	       out->traces == 1 ? "" : "s");
	for (size_t i = 0; i < out->traces; i++) {
		struct buf name = {0};
		escape_add_str(&name, out->trace[i].file);
		if (!out->trace[i].complete)
			printf("%s is incomplete: read up to its last whole line\n",
			       buf_str(&name));
		if (out->trace[i].faults)
			printf("%s: %" PRIu64 " lines could not be read and were passed over\n",
			       buf_str(&name), out->trace[i].faults);
		buf_free(&name);
	}
}

static void say_unsure(const struct denial_list *l, const char *home)
{
	for (size_t i = 0; i < l->len; i++) {
		struct buf line = {0};
		report_unsure_line(&l->item[i], home, &line);
		fputs(buf_str(&line), stdout);
		buf_free(&line);
	}
}

static void say_text(const struct replay_cli *c, const struct replay_result *out)
{
	for (size_t i = 0; i < out->denials.len; i++) {
		struct buf line = {0};
		report_line(&out->denials.item[i], c->home, &line);
		fputs(buf_str(&line), stdout);
		buf_free(&line);
	}
	say_unsure(&out->unsure, c->home);
	if (c->report.suggested && c->report.suggested[0])
		puts("to allow it:");
	for (char **s = c->report.suggested; s && *s; s++) {
		struct buf line = {0};
		escape_add_str(&line, *s);
		printf("  %s\n", buf_str(&line));
		buf_free(&line);
	}
	if (c->answers.len)
		puts("your answers as rules:");
	for (const char *line = buf_str(&c->answers), *end; *line; line = end + 1) {
		struct buf text = {0};
		end = line + strcspn(line, "\n");
		char *one AUTOFREE = strndup(line, (size_t)(end - line));
		escape_add_str(&text, one ? one : "");
		printf("  %s\n", buf_str(&text));
		buf_free(&text);
	}
	say_traces(out);
}

static int put_json(const struct report *rep)
{
	struct buf text = {0};
	int err = report_write(rep, &text);
	if (!err)
		puts(buf_str(&text));
	buf_free(&text);
	return err;
}

static bool stayed_refused(const struct denial_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		if (denial_stayed(&l->item[i]))
			return true;
	return false;
}

/* The policy's ruleset on this machine: what its rules name must be here. */
static int put_ruleset(const struct replay_cli *c)
{
	struct llabi abi;
	struct llruleset *rs;
	struct compile_stats stats;
	int wanted = c->abi ? c->abi : c->first_abi, kernel = llabi_probe();
	if (wanted < 1)
		wanted = kernel;
	if (wanted < 1 || kernel < wanted) {
		cli_complain("a ruleset for Landlock ABI %d can't be made here: this kernel has %d",
			     wanted, kernel < 0 ? 0 : kernel);
		return CLI_EXIT_TROUBLE;
	}
	abi = llabi_of(wanted);
	if (!c->first_policy) {
		cli_complain("--ruleset needs a trace, or --policy with one");
		return CLI_EXIT_TROUBLE;
	}
	int err = compile_policy(c->first_policy, &abi, (uint32_t)abi.scoped, &rs, &stats);
	if (err) {
		cli_complain("the policy could not be compiled: %s", strerror(-err));
		return CLI_EXIT_TROUBLE;
	}
	struct buf text = {0};
	replaypartial_write_ruleset(rs, c->json, stats.truncated, &text);
	fputs(buf_str(&text), stdout);
	buf_free(&text);
	llruleset_free(rs);
	return 0;
}

/* 0, or CLI_EXIT_TROUBLE: told. */
static int ask_about(struct replay_cli *c, struct denial_list *l)
{
	int err = replayask_run(l, c->first_policy, c->home, &c->answers);
	if (err == -ENXIO)
		cli_complain("--ask needs a terminal to ask on");
	else if (err)
		cli_complain("nobody could be asked: %s", strerror(-err));
	return err ? CLI_EXIT_TROUBLE : 0;
}

static int put_report(struct replay_cli *c, struct replay_result *out)
{
	if (c->ask && ask_about(c, &out->denials))
		return CLI_EXIT_TROUBLE;
	fill_report(c, out);
	if (c->first_policy)
		plan_mark(&c->report.denials, c->first_policy, NULL);
	int err = plan_suggest(&c->report.denials, c->home, &c->report.suggested);
	out->denials = c->report.denials;
	bool stayed = stayed_refused(&out->denials);
	if (!err && c->json)
		err = put_json(&c->report);
	else if (!err)
		say_text(c, out);
	if (!err && fflush(stdout))
		err = -errno;
	/* They are the replay's. */
	c->report.denials = (struct denial_list){0};
	if (err)
		cli_complain("the result can't be written: %s", strerror(-err));
	return err ? CLI_EXIT_TROUBLE : stayed ? 1 : 0;
}

static int put_partial(struct replay_cli *c)
{
	struct buf text = {0};
	bool stayed = false;
	int err = replaypartial_write(c->parts, &text, &stayed);
	if (!err && (fputs(buf_str(&text), stdout) < 0 || fflush(stdout)))
		err = -errno;
	buf_free(&text);
	if (err)
		cli_complain("the result can't be written: %s", strerror(-err));
	return err ? CLI_EXIT_TROUBLE : stayed ? 1 : 0;
}

int replayout(struct replay_cli *c)
{
	struct replay_result *out = replay_done(c->replay);
	if (c->ruleset)
		return put_ruleset(c);
	if (!c->partial && replaypartial_is_empty(c->parts))
		return put_report(c, out);
	if (c->first_policy && !c->partial)
		plan_mark(&out->denials, c->first_policy, NULL);
	int err = replaypartial_add(c->parts, out);
	if (err) {
		cli_complain("%s", strerror(-err));
		return CLI_EXIT_TROUBLE;
	}
	if (c->partial)
		return put_partial(c);
	policy_free(c->first_policy); /* each has been held to its own */
	c->first_policy = NULL;
	return put_report(c, replaypartial_merged(c->parts));
}
