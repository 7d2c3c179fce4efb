#include "agent/login.h"

#include "agent/copilot.h"
#include "agent/device.h"
#include "agent/interrupt.h"
#include "agent/termwidth.h"
#include "supervisor/cli.h"
#include "supervisor/escape.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

struct login {
	const char *host, *client_id; /* loans of argv */
	bool json;
	struct provider_config config;
	struct github github;
	struct store store;
	char *path; /* of the token's file */
};

char *login_token_path(const struct store *s)
{
	char *path = NULL;
	return asprintf(&path, "%s/copilot.json", s->config_dir) < 0 ? NULL : path;
}

/* ---- the command line ---- */

static const char login_help[] =
	"Usage: warder login [--host HOST] [--client-id ID] [--json]\n"
	"Sign in to GitHub for the Copilot provider: a code is shown, you enter it in a\n"
	"browser, and the token is kept among warder's own files, which no command under\n"
	"warder can read.\n"
	"  --host HOST      an enterprise's GitHub (NAME.ghe.com) instead of github.com\n"
	"  --client-id ID   the GitHub application to sign in to\n"
	"  --json           a JSON object a line: the code, then what came of it\n"
	"WARDER_GITHUB_WEB, WARDER_GITHUB_API: base URLs instead of the host's own.\n"
	"Status: 0 signed in, 1 refused, too late or no Copilot, 2 usage, 125 could not.\n\n"
	"  warder login\n"
	"  warder login --host octo.ghe.com\n";

static const char logout_help[] =
	"Usage: warder logout [--json]\n"
	"Forget the token that `warder login` has kept.\n"
	"  --json           one JSON object on stdout\n"
	"Status: 0 forgotten, 1 there was none, 2 usage, 125 could not.\n\n"
	"  warder logout\n"
	"  warder logout && warder login --host octo.ghe.com\n";

enum { OPT_HOST = 1, OPT_CLIENT, OPT_JSON, OPT_HELP };

static const struct option login_options[] = {{"host", required_argument, NULL, OPT_HOST},
					      {"client-id", required_argument, NULL, OPT_CLIENT},
					      {"json", no_argument, NULL, OPT_JSON},
					      {"help", no_argument, NULL, OPT_HELP},
					      {0}};
static const struct option logout_options[] = {
	{"json", no_argument, NULL, OPT_JSON}, {"help", no_argument, NULL, OPT_HELP}, {0}};

static enum cli_parse parse(struct login *l, int argc, char **argv, const struct option *options)
{
	optind = 0; /* from the start, whoever used it before */
	opterr = 0;
	for (int key; (key = getopt_long(argc, argv, "+:h", options, NULL)) != -1;)
		switch (key) {
		case OPT_HOST:
			l->host = optarg;
			break;
		case OPT_CLIENT:
			l->client_id = optarg;
			break;
		case OPT_JSON:
			l->json = true;
			break;
		case OPT_HELP:
		case 'h':
			return CLI_HELP;
		case ':':
			cli_complain("%s needs a value; see warder %s --help", argv[optind - 1],
				     argv[0]);
			return CLI_WRONG;
		default:
			cli_complain("unknown option '%s'; see warder %s --help", argv[optind - 1],
				     argv[0]);
			return CLI_WRONG;
		}
	if (optind == argc)
		return CLI_PARSED;
	cli_complain("'%s' is no option; see warder %s --help", argv[optind], argv[0]);
	return CLI_WRONG;
}

/* ---- what both need ---- */

static int trouble(const char *what, int err)
{
	cli_complain("%s: %s", what, strerror(-err));
	return CLI_EXIT_TROUBLE;
}

/* 0 or a status. */
static int open_files(struct login *l)
{
	struct policy_error why = {0};
	int err = store_open(environ, &l->store, &why);
	if (err) {
		cli_complain("%s", why.text);
		return CLI_EXIT_TROUBLE;
	}
	l->path = login_token_path(&l->store);
	err = l->path ? provider_config_from_env(&l->config) : -ENOMEM;
	err = err ?: provider_config_set(&l->config.stored_token_path, l->path);
	return err ? trouble("the settings", err) : 0;
}

static void release(struct login *l)
{
	provider_config_free(&l->config);
	github_release(&l->github);
	store_release(&l->store);
	free(l->path);
}

static void put(struct buf *text)
{
	fwrite(buf_str(text), 1, text->len, stdout);
	fflush(stdout);
	buf_free(text);
}

static void say(struct buf *line)
{
	buf_add_char(line, '\n');
	put(line);
}

static void say_prose(struct buf *line)
{
	struct buf out = {0};
	buf_add_char(line, '\n');
	termwidth_wrap(&out, line, STDOUT_FILENO);
	put(&out);
	buf_free(line);
}

static void begin_event(struct jsonw *w, struct buf *line, const char *name)
{
	jsonw_init(w, line);
	jsonw_begin_object(w);
	jsonw_kstr(w, "event", name);
}

static void end_event(struct jsonw *w)
{
	jsonw_end_object(w);
	say(w->out);
}

static int failed(const struct login *l, int err, const struct provider_error *e)
{
	struct buf line = {0}, shown = {0};
	struct jsonw w;
	if (err == -ECANCELED)
		return -SIGINT;
	escape_add_str(&shown, e->text[0] ? e->text : strerror(-err));
	cli_complain("%s", buf_str(&shown));
	buf_free(&shown);
	if (l->json) {
		begin_event(&w, &line, "error");
		jsonw_kstr(&w, "error", e->text);
		end_event(&w);
	}
	return e->kind == PROVIDER_FAIL_AUTH ? 1 : CLI_EXIT_TROUBLE;
}

/* ---- login ---- */

static int choose_github(struct login *l)
{
	struct provider_config *c = &l->config;
	int err = l->host ? github_make(l->host, NULL, NULL, &l->github)
			  : github_make(c->github_host, c->github_web, c->github_api, &l->github);
	if (err == -EINVAL) {
		cli_complain("no GitHub is called that: correct %s",
			     l->host ? "--host"
				     : "WARDER_GITHUB_WEB, WARDER_GITHUB_API or GH_HOST");
		return CLI_EXIT_USAGE;
	}
	return err ? trouble("the host", err) : 0;
}

static void show_code(const struct login *l, const struct device *d)
{
	struct buf line = {0};
	struct jsonw w;
	if (l->json) {
		begin_event(&w, &line, "code");
		jsonw_kstr(&w, "user_code", d->user_code);
		jsonw_kstr(&w, "verification_uri", d->uri);
		jsonw_kint(&w, "expires_in", d->lifetime_s);
		end_event(&w);
		return;
	}
	buf_addf(&line,
		 "Open  %s\nand enter the code  %s\n"
		 "Waiting for you to do so; the code is good for %lld minutes, Ctrl-C stops.",
		 d->uri, d->user_code, (long long)(d->lifetime_s + 59) / 60);
	say(&line);
}

static void on_status(void *arg, const char *text)
{
	struct buf shown = {0};
	(void)arg;
	escape_add_str(&shown, text);
	cli_complain("%s", buf_str(&shown));
	buf_free(&shown);
}

/* 0, or -errno with *e. */
static int fetch_token(const struct login *l, char **ret, struct provider_error *e)
{
	const struct provider_sink sink = {.on_status = on_status};
	struct device d;
	int err = device_begin(&l->config, &l->github, l->client_id ?: DEVICE_CLIENT_ID,
			       interrupt_flag(), &d, e);
	if (err)
		return err;
	show_code(l, &d);
	err = device_wait(&d, &sink, interrupt_flag(), ret, e);
	device_free(&d);
	return err;
}

/* Does Copilot's API open for this token? As copilot_prepare(). */
static int try_copilot(const struct login *l, const char *token, struct provider_error *e)
{
	const struct provider_request req = {.cancel = interrupt_flag()};
	struct provider_config c = {0};
	struct copilot copilot = {0};
	struct asker asker = {0};
	struct http_headers headers = {0};
	char *base = NULL;
	int err = provider_config_set(&c.github_tokens[0], token);
	err = err ?: provider_config_set(&c.github_host, l->github.host);
	err = err ?: provider_config_set(&c.github_api, l->github.api);
	err = err ?: provider_config_set(&c.github_web, l->github.web);
	err = err ?: asker_init(&asker, &l->config, &(struct asker_endpoint){0});
	if (err)
		provider_fail(e, PROVIDER_FAIL_INTERNAL, err, "not enough memory");
	else
		err = copilot_init(&copilot, &c, e);
	if (!err) {
		err = copilot_prepare(&copilot, &asker, &req, false, &base, &headers, e);
		copilot_redact(&copilot, e->text);
		copilot_free(&copilot);
	}
	http_headers_free(&headers);
	free(base);
	asker_free(&asker);
	provider_config_free(&c);
	return err;
}

static void warn_of_variables(const struct login *l)
{
	static const char *const names[] = {"COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"};
	if (l->config.copilot_bearer)
		cli_complain("WARDER_COPILOT_TOKEN is set and goes before this login");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (l->config.github_tokens[i])
			cli_complain("%s is set and goes before this login", names[i]);
}

static int conclude(const struct login *l, int err, const struct provider_error *e)
{
	struct buf line = {0}, shown = {0};
	struct jsonw w;
	const char *why = err ? e->text : NULL;
	if (l->json) {
		begin_event(&w, &line, "done");
		jsonw_kstr(&w, "host", l->github.host);
		jsonw_kstr(&w, "file", l->path);
		jsonw_kbool(&w, "copilot", !err);
		jsonw_kstr(&w, "error", why);
		end_event(&w);
	} else {
		escape_add_str(&shown, l->path);
		buf_addf(&line, "Signed in to %s; the token is kept in %s.%s", l->github.host,
			 buf_str(&shown), err ? "" : "\nCopilot answers: warder agent -p 'hello'");
		say_prose(&line);
	}
	buf_reset(&shown);
	escape_add_str(&shown, why ? why : "");
	if (why)
		cli_complain("the token is good, but Copilot can't be used with it yet: %s",
			     buf_str(&shown));
	buf_free(&shown);
	warn_of_variables(l);
	return err && e->kind == PROVIDER_FAIL_AUTH ? 1 : 0;
}

static int sign_in(struct login *l)
{
	struct provider_error e = {0};
	char *token = NULL;
	int status = open_files(l);
	status = status ?: choose_github(l);
	if (status)
		return status;
	if (http_missing()) {
		cli_complain("libcurl is needed to reach GitHub: %s", http_missing());
		return CLI_EXIT_TROUBLE;
	}
	int err = fetch_token(l, &token, &e);
	if (err)
		return failed(l, err, &e);
	err = token_store(l->path, &l->github, token);
	if (err) {
		provider_fail(&e, PROVIDER_FAIL_INTERNAL, err,
			      "the token can't be kept in %s (%s): make the directory writable and "
			      "run `warder login` again",
			      l->path, strerror(-err));
		status = failed(l, -EIO, &e);
	} else {
		err = try_copilot(l, token, &e);
		status = err == -ECANCELED ? -SIGINT : conclude(l, err, &e);
	}
	provider_config_set(&token, NULL);
	return status;
}

static int finish(struct login *l, int status)
{
	release(l);
	if (interrupt_ending())
		status = -interrupt_ending();
	if (status < 0)
		interrupt_die(-status);
	return status < 0 ? 128 - status : status;
}

/* ---- logout ---- */

/* What else still signs the agent in. */
static void tell_rest(struct login *l)
{
	if (l->config.copilot_bearer)
		cli_complain("WARDER_COPILOT_TOKEN is still set: the agent goes on using it");
	else if (!provider_find_token(&l->config))
		cli_complain("%s still gives a token: the agent goes on using it",
			     l->config.token.source);
}

static int sign_out(struct login *l)
{
	struct buf line = {0}, path = {0};
	struct jsonw w;
	int status = open_files(l);
	if (status)
		return status;
	int err = token_forget(l->path);
	escape_add_str(&path, l->path);
	if (err && err != -ENOENT) {
		cli_complain("%s can't be removed: %s", buf_str(&path), strerror(-err));
		status = CLI_EXIT_TROUBLE;
	} else if (l->json) {
		begin_event(&w, &line, "done");
		jsonw_kstr(&w, "file", l->path);
		jsonw_kbool(&w, "forgotten", !err);
		end_event(&w);
	} else {
		buf_addf(&line,
			 err ? "Not signed in: there is no %s."
			     : "Signed out: %s is removed. GitHub's settings, under Applications, "
			       "end what it allowed.",
			 buf_str(&path));
		say(&line);
	}
	buf_free(&path);
	if (!status)
		tell_rest(l);
	return status ?: err ? 1 : 0;
}

/* ---- both ---- */

static int main_of(int argc, char **argv, const char *help, const struct option *options,
		   int (*act)(struct login *l))
{
	struct login l = {0};
	switch (parse(&l, argc, argv, options)) {
	case CLI_HELP:
		fputs(help, stdout);
		return 0;
	case CLI_WRONG:
		return CLI_EXIT_USAGE;
	case CLI_PARSED:
		break;
	}
	int err = interrupt_install();
	return finish(&l, err ? trouble("signals", err) : act(&l));
}

int login_main(int argc, char **argv)
{
	return main_of(argc, argv, login_help, login_options, sign_in);
}

int login_out_main(int argc, char **argv)
{
	return main_of(argc, argv, logout_help, logout_options, sign_out);
}
