/*
 * `warder session`: what runs with --session NAME share.
 */
#include "supervisor/cli.h"

#include "supervisor/escape.h"
#include "supervisor/named.h"
#include "supervisor/timestamp.h"
#include "tracer/json.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: warder session list [--json]\n"
	"       warder session end NAME...\n"
	"Runs with --session NAME share their answers and a temporary directory until the\n"
	"session is ended: what was answered \"session\" in one is not asked in the next.\n"
	"\n"
	"  list              each session: since when, how many answers, whether in use\n"
	"  end               forget the answers, remove the temporary directory\n"
	"\n"
	"  warder run --session nightly -- make\n"
	"  warder session end nightly\n"
	"\n"
	"Status: 0 fine, 1 no such session, or a run uses it, 2 usage, 125 failed.\n";

static int usage(const char *what)
{
	cli_complain("session: %s; see warder session --help", what);
	return CLI_EXIT_USAGE;
}

/* ---- list ---- */

static int add_line(void *arg, const struct named_info *i)
{
	char begun[TIMESTAMP_LEN];
	struct buf *out = arg;
	buf_addf(out, "%-20s since %.16s  %zu answer%s%s", i->name,
		 timestamp_format(&i->begun, begun), i->answers, i->answers == 1 ? "" : "s",
		 i->in_use ? "  in use" : "");
	if (i->tmpdir) {
		buf_add_str(out, "  ");
		escape_add_str(out, i->tmpdir);
	}
	buf_add_char(out, '\n');
	return 0;
}

static int add_object(void *arg, const struct named_info *i)
{
	char begun[TIMESTAMP_LEN];
	struct jsonw *w = arg;
	jsonw_begin_object(w);
	jsonw_kstr(w, "name", i->name);
	jsonw_kstr(w, "begun", timestamp_format(&i->begun, begun));
	jsonw_kint(w, "answers", (int64_t)i->answers);
	jsonw_kbool(w, "in_use", i->in_use);
	jsonw_kpath(w, "tmpdir", i->tmpdir);
	jsonw_end_object(w);
	return 0;
}

static int list(const char *state_dir, bool json)
{
	struct buf out = {0};
	struct jsonw w;
	int err;
	if (json) {
		jsonw_init(&w, &out);
		jsonw_begin_object(&w);
		jsonw_key(&w, "sessions");
		jsonw_begin_array(&w);
		err = named_each(state_dir, add_object, &w);
		jsonw_end_array(&w);
		jsonw_end_object(&w);
		buf_add_char(&out, '\n');
	} else {
		err = named_each(state_dir, add_line, &out);
	}
	if (!err)
		err = buf_error(&out);
	if (!err && (fwrite(buf_str(&out), 1, out.len, stdout) != out.len || fflush(stdout)))
		err = -errno;
	buf_free(&out);
	if (err)
		cli_complain("the sessions in %s can't be listed: %s", state_dir, strerror(-err));
	return err ? CLI_EXIT_TROUBLE : 0;
}

/* ---- end ---- */

static int end(const char *state_dir, const char *name)
{
	int err = named_end(state_dir, name);
	if (!err)
		return 0;
	if (err == -ENOENT)
		cli_complain("there is no session %s; see warder session list", name);
	else if (err == -EBUSY)
		cli_complain("a run uses the session %s: end that first", name);
	else
		cli_complain("the session %s could not be removed whole: %s", name,
			     err == -EPERM ? strerror(-err) : ownfile_strerror(err));
	return err == -ENOENT || err == -EBUSY ? 1 : CLI_EXIT_TROUBLE;
}

static int end_all(const char *state_dir, char **names)
{
	int worst = 0;
	for (; *names; names++) {
		int status = end(state_dir, *names);
		worst = status > worst ? status : worst;
	}
	return worst;
}

static int act(const char *state_dir, char **words)
{
	bool json = words[1] && !strcmp(words[1], "--json");
	if (!strcmp(words[0], "list"))
		return words[1 + json] ? usage("list takes no name") : list(state_dir, json);
	if (strcmp(words[0], "end") != 0)
		return usage("expected list or end");
	return words[1] ? end_all(state_dir, words + 1) : usage("end needs a name");
}

int cli_session(int argc, char **argv)
{
	extern char **environ;
	struct policy_error why = {0};
	struct store store;
	if (argc < 2)
		return usage("expected list or end");
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		fputs(help, stdout);
		return 0;
	}
	if (store_open(environ, &store, &why)) {
		cli_complain("%s", why.text);
		return CLI_EXIT_TROUBLE;
	}
	int status = act(store.state_dir, argv + 1);
	store_release(&store);
	return status;
}
