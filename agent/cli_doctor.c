#include "agent/cli_doctor.h"

#include "agent/http.h"
#include "agent/login.h"
#include "agent/provider.h"
#include "agent/termwidth.h"
#include "supervisor/cli.h"
#include "supervisor/doctor.h"
#include "supervisor/environ.h"
#include "tracer/clock.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REACH_TIMEOUT_S 5

static const char help[] =
	"Usage: warder doctor [--json]\n"
	"Can this machine supervise? Tries each thing for real, in children and in\n"
	"directories of its own: ok, degraded or missing, what it means, what to do.\n"
	"\n"
	"  --json            one JSON object on stdout\n"
	"  -h, --help        this text\n"
	"\n"
	"Status: 0 supervision works, 1 something vital is missing, 2 usage, 125 failed.\n"
	"\n"
	"  warder doctor           before the first run, and when something is odd\n"
	"  warder doctor --json | jq -r '.probes[]|select(.status!=\"ok\").fix'\n";

/* ---- who would answer the agent ---- */

/* The store of `warder login`; it need not be there. */
static void set_stored_token(struct provider_config *c)
{
	struct store store = {0};
	struct policy_error why = {0};
	if (store_open(environ, &store, &why))
		return; /* which another probe tells */
	c->stored_token_path = login_token_path(&store);
	store_release(&store);
}

/* Where the token is, never the token. */
static const char *copilot_place(const struct provider_config *c)
{
	if (c->copilot_bearer)
		return "WARDER_COPILOT_TOKEN";
	return c->token.source ? c->token.source : "nobody";
}

static const char *openai_url(const struct provider_config *c)
{
	return c->endpoint ? c->endpoint : c->openai_base_url;
}

/* Any answer will do: without a credential it is a refusal. */
static int reach(const struct provider_config *c, const char *url, struct http_response *ret)
{
	struct http *h;
	struct http_request request = {.method = "GET",
				       .url = url,
				       .connect_timeout_s = REACH_TIMEOUT_S,
				       .stall_timeout_s = REACH_TIMEOUT_S};
	int err = http_new(&(struct http_trust){c->ca_file, c->ca_dir}, &h);
	if (err)
		return err;
	err = http_perform(h, &request, ret);
	http_free(h);
	return err;
}

static void probe_endpoint(struct doctor *d, const struct provider_config *c, const char *found,
			   const char *url)
{
	struct http_response answer = {0};
	int64_t begin = clock_us();
	int err = reach(c, url, &answer);
	struct doctor_finding *f;
	if (!err || answer.status) {
		f = doctor_find(d, "provider", DOCTOR_OK, "%s; %s answers", found, url);
		f->took_us = clock_us() - begin;
		return;
	}
	f = doctor_find(d, "provider", DOCTOR_DEGRADED, "%s; %s is not reached", found, url);
	doctor_fix(d, f, "%s",
		   answer.error[0] ? answer.error
				   : "look at the network, the proxy and its "
				     "certificates");
}

static void probe_provider(struct doctor *d)
{
	struct provider_config c = {0};
	struct github github = {0};
	char *found = NULL;
	int n = 0;
	if (provider_config_from_env(&c)) {
		d->failed = true;
		return;
	}
	set_stored_token(&c);
	const char *url = NULL, *missing = http_missing();
	switch (provider_pick(&c)) {
	case PROVIDER_COPILOT:
		n = asprintf(&found, "copilot, with the token of %s", copilot_place(&c));
		url = c.endpoint;
		if (!url && !provider_github(&c, &github))
			url = github.copilot;
		break;
	case PROVIDER_OPENAI:
		url = openai_url(&c) ? openai_url(&c) : "https://api.openai.com/v1";
		n = asprintf(&found, "openai, %s", c.openai_key ? "with a key" : "without a key");
		break;
	case PROVIDER_SCRIPT:
	case PROVIDER_AUTO:
		break;
	}
	if (n < 0)
		d->failed = true;
	else if (!url)
		doctor_fix(
			d,
			doctor_find(d, "provider", DOCTOR_DEGRADED,
				    "no account for the agent's model yet; warder run needs none"),
			"to use warder agent: warder login, or set OPENAI_API_KEY, or warder agent "
			"--endpoint URL");
	else if (missing)
		doctor_fix(d, doctor_find(d, "provider", DOCTOR_DEGRADED, "%s", missing),
			   "install libcurl4");
	else
		probe_endpoint(d, &c, found, url);
	github_release(&github);
	if (n > 0)
		free(found);
	provider_config_free(&c);
}

/* ---- the subcommand ---- */

static int put(struct buf *out)
{
	bool bad = buf_error(out) || fwrite(buf_str(out), 1, out->len, stdout) != out->len ||
		   fflush(stdout);
	buf_free(out);
	if (bad)
		cli_complain("the findings could not be written: %s", strerror(errno));
	return bad ? CLI_EXIT_TROUBLE : 0;
}

static int examine(bool json)
{
	struct doctor d = {.env = environ};
	struct buf out = {0};
	const char *no = environ_get(environ, "NO_COLOR");
	bool tty = isatty(STDOUT_FILENO);
	doctor_examine(&d);
	probe_provider(&d);
	if (json)
		doctor_write_json(&d, &out);
	else
		doctor_write(&d, termwidth_is_capable(STDOUT_FILENO) && !(no && *no),
			     tty ? termwidth(STDOUT_FILENO) : 0, &out);
	bool fine = doctor_supervises(&d), failed = d.failed;
	doctor_release(&d);
	int status = put(&out);
	if (!status && failed) {
		cli_complain("no memory: a finding is missing");
		status = CLI_EXIT_TROUBLE;
	}
	return status ? status : !fine;
}

int cli_doctor(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool json = false;
	int c;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return 0;
		}
		if (c != 'j') {
			cli_complain("doctor: unknown option '%s'; see warder doctor --help",
				     argv[optind - 1]);
			return CLI_EXIT_USAGE;
		}
		json = true;
	}
	if (argv[optind]) {
		cli_complain("doctor takes no argument, not '%s'; see warder doctor --help",
			     argv[optind]);
		return CLI_EXIT_USAGE;
	}
	return examine(json);
}
