#include "supervisor/cli_policy.h"

#include "supervisor/cli.h"
#include "supervisor/escape.h"
#include "supervisor/nearname.h"
#include "supervisor/policyaccept.h"
#include "supervisor/policychange.h"
#include "supervisor/policycli.h"
#include "supervisor/policyedit.h"
#include "supervisor/policyexport.h"
#include "supervisor/policyimport.h"
#include "supervisor/policymergecli.h"
#include "supervisor/policyshow.h"
#include "tracer/util.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
	"Usage: warder policy show [--effective] [--json] saved rules, or all that apply\n"
	"       warder policy check [--json] [FILE]       errors, and what looks wrong\n"
	"       warder policy allow|deny|ask|forbid [ACCESS] PATH [exact]\n"
	"       warder policy forget PATH [ACCESS]        the rules about exactly PATH\n"
	"       warder policy accept [--yes]              the project's .warder.policy\n"
	"       warder policy edit                        in $VISUAL or $EDITOR, checked\n"
	"       warder policy import [--yes] FILE|-       policy, or landlockconfig JSON\n"
	"       warder policy export [--effective] [--format landlockconfig|landrun]\n"
	"                            [FILE]\n"
	"       warder policy merge FILE...               policies, or replays, as one\n"
	"       warder policy path                        the file they are saved in\n"
	"\n"
	"  --project[=DIR]  the project's saved policy (DIR's, in place of the cwd's)\n"
	"  --effective      presets too: where each rule comes from, since when, last use\n"
	"  --yes            save without asking        --json  one JSON object on stdout\n"
	"\n"
	"ACCESS: r, w, x together, or names with commas; none means all of them:\n"
	"  read list exec write create delete move meta connect ioctl\n"
	"PATH and all below it; with `exact` only itself; * ? and ** make a pattern.\n"
	"Of each word more: warder policy WORD --help.\n"
	"  warder policy allow rw ~/.npm\n"
	"  warder policy --project deny r '**/.env'\n"
	"Status: 0 fine, 1 no (nothing to forget, errors, a part), 2 usage, 125 failed.\n";

static int path(struct policycli *c, int argc, char **argv)
{
	if (argc)
		return policycli_usage("path takes no argument, not", argv[0]);
	struct buf out = {0};
	/* For scripts: the bytes as they are, unless a terminal would read them. */
	if (isatty(STDOUT_FILENO))
		escape_add_str(&out, policycli_file(c));
	else
		buf_add_str(&out, policycli_file(c));
	buf_add_char(&out, '\n');
	return policycli_put(&out);
}

/* Which options go with a word. */
enum { JSON = 1, EFFECTIVE = 2, YES = 4, FORMAT = 8 };

#define FOR_PROJECT "  --project[=DIR]  the project's saved policy (DIR's), not your own\n"
#define FOR_DIR	    "  --project=DIR    of the project DIR, not of the one here\n"
#define ACCESSES                                                                                   \
	"ACCESS is r, w, x together, or names with commas (read,list); none: all of them.\n"

static const struct word {
	const char *name;
	int (*run)(struct policycli *c, int argc, char **argv); /* NULL: the effect of a rule */
	unsigned options;
	const char *help;
} words[] = {
#define POLICY_WORD(name, run, options, help) {name, run, options, help},
#include "supervisor/policywords.def"
#undef POLICY_WORD
};

static const struct word *find_word(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

#define EXPECTED                                                                                   \
	"expected show, check, allow, deny, ask, forbid, forget, accept, edit, import, export, "   \
	"merge or path"

/* What may have been meant is in *near. */
static int unknown(const char *what, const char *word, const struct nearname *near,
		   const char *before)
{
	struct buf text = {0};
	buf_addf(&text, "%s '", what);
	escape_add_str(&text, word);
	buf_add_char(&text, '\'');
	nearname_add(&text, near, before);
	int status = policycli_usage(buf_str(&text), NULL);
	buf_free(&text);
	return status;
}

static int unknown_word(const char *word)
{
	struct nearname near = nearname_begin(word);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		nearname_try(&near, words[i].name);
	return unknown(EXPECTED ", not", word, &near, "");
}

static int unknown_option(const char *word, const struct option *options)
{
	AUTOFREE
	char *name = cli_option_name(word);
	struct nearname near = nearname_begin(name ? name : "");
	for (; options->name; options++)
		nearname_try(&near, options->name);
	return unknown("unknown option", word, &near, "--");
}

/* An option that this word has no use for is a mistake. */
static int check_options(const struct policycli *c, const struct word *w)
{
	const struct {
		bool given;
		unsigned option;
		const char *what;
	} rows[] = {{c->json, JSON, "--json goes with show and check, not"},
		    {c->effective, EFFECTIVE, "--effective goes with show and export, not"},
		    {c->yes, YES, "--yes goes with accept and import, not"},
		    {c->format, FORMAT, "--format goes with export, not"}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].given && !(w->options & rows[i].option))
			return policycli_usage(rows[i].what, w->name);
	return POLICYCLI_FINE;
}

static int run(struct policycli *c, const struct word *w, int argc, char **argv)
{
	int status = policycli_open(c);
	if (status == POLICYCLI_FINE)
		status = w->run ? w->run(c, argc, argv) : policychange(c, w->name, argc, argv);
	policycli_release(c);
	return status;
}

static void take_option(struct policycli *c, int o)
{
	c->effective |= o == 'e';
	c->json |= o == 'j';
	c->yes |= o == 'y';
	c->for_project |= o == 'p';
	if (o == 'p')
		c->project_dir = optarg;
	if (o == 'f')
		c->format = optarg;
}

int cli_policy(int argc, char **argv)
{
	static const struct option options[] = {{"effective", no_argument, NULL, 'e'},
						{"format", required_argument, NULL, 'f'},
						{"json", no_argument, NULL, 'j'},
						{"project", optional_argument, NULL, 'p'},
						{"yes", no_argument, NULL, 'y'},
						{"help", no_argument, NULL, 'h'},
						{0}};
	struct policycli c = {0};
	bool wants_help = false;
	opterr = 0;
	optind = 0; /* a fresh scan: the caller may have used getopt itself */
	for (int o; (o = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
		wants_help |= o == 'h';
		if (o == ':')
			return policycli_usage("a value is missing behind", argv[optind - 1]);
		if (o == '?')
			return unknown_option(argv[optind - 1], options);
		take_option(&c, o);
	}
	const struct word *w = optind < argc ? find_word(argv[optind]) : NULL;
	if (wants_help)
		return fputs(w ? w->help : help, stdout) < 0 ? POLICYCLI_TROUBLE : POLICYCLI_FINE;
	if (!w)
		return optind < argc ? unknown_word(argv[optind]) : policycli_usage(EXPECTED, NULL);
	int status = check_options(&c, w);
	return status ? status : run(&c, w, argc - optind - 1, argv + optind + 1);
}
