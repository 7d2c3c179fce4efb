#include "agent/completion.h"

#include "agent/chatlist.h"
#include "supervisor/desk.h"
#include "supervisor/named.h"
#include "supervisor/presets.h"
#include "supervisor/store.h"
#include "tracer/util.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELP_MAX (64u << 10)

/* Where it stands, and what came before. */
struct place {
	const struct subcommand *command;
	char **word;	  /* of the whole line; word[0] is warder */
	int at;		  /* the one that is being typed */
	const char *cur;  /* what there is of it */
	const char *help; /* the subcommand's */
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static void offer(const struct place *p, const char *word, size_t n, const char *what,
		  size_t what_n)
{
	if (n < strlen(p->cur) || strncmp(word, p->cur, strlen(p->cur)) != 0)
		return;
	printf("%.*s\t%.*s\n", (int)n, word, (int)what_n, what);
}

static void offer_word(const struct place *p, const char *word, const char *what)
{
	offer(p, word, strlen(word), what, strlen(what));
}

/* "hold|retry|report": each of them. */
static void offer_choices(const struct place *p, const char *choices, size_t n)
{
	while (n) {
		const char *bar = memchr(choices, '|', n);
		size_t len = bar ? (size_t)(bar - choices) : n;
		offer(p, choices, len, "", 0);
		n -= len + !!bar;
		choices += len + !!bar;
	}
}

/* ---- the help, read ---- */

/* What a subcommand prints for --help all; owned, "" where it can't be had. */
static char *help_of(const struct subcommand *c)
{
	struct buf text = {.max = HELP_MAX};
	char chunk[4096];
	int pipes[2];
	ssize_t n = 0;
	if (pipe(pipes))
		return strdup("");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char *argv[] = {(char *)c->name, (char *)"--help", (char *)"all", NULL};
		if (dup2(pipes[1], STDOUT_FILENO) < 0)
			_exit(1);
		close(pipes[0]);
		close(pipes[1]);
		int status = c->run(3, argv);
		fflush(stdout);
		_exit(status);
	}
	close(pipes[1]);
	while (pid > 0 && !text.failed && (n = read(pipes[0], chunk, sizeof chunk)) > 0)
		buf_add(&text, chunk, (size_t)n);
	close(pipes[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	char *help = buf_take(&text);
	return help ? help : strdup("");
}

struct option_seen {
	const char *name; /* with its dashes */
	size_t len;
	const char *value; /* "PATH", "on|off"; NULL: it takes none */
	size_t value_len;
	const char *what; /* the rest of its line, where that is a table's */
	size_t what_len;
};

static size_t word_len(const char *s, const char *more)
{
	size_t n = 0;
	while (isalnum((unsigned char)s[n]) || (s[n] && strchr(more, s[n])))
		n++;
	return n;
}

/* "--name VALUE   words": VALUE is in capitals, in quotes, or choices with a bar. */
static void read_value(const char *s, struct option_seen *o)
{
	const char *at = s;
	if (*at == '[')
		at++;
	if (*at != ' ' && *at != '=')
		return;
	at++;
	if (*at == '[' || *at == '\'')
		at++;
	size_t n = word_len(at, "-|_");
	bool choices = memchr(at, '|', n);
	if (!n || (!choices && !isupper((unsigned char)*at)) ||
	    (!choices && islower((unsigned char)at[1])))
		return;
	o->value = at;
	o->value_len = n;
}

static void read_what(const char *line, const char *end, struct option_seen *o)
{
	const char *at = o->value ? o->value + o->value_len : o->name + o->len;
	const char *gap = strstr(at, "  ");
	if (line + strspn(line, " ") != o->name && !begins(line + strspn(line, " "), "-"))
		return; /* in a sentence or a synopsis */
	if (!gap || gap >= end)
		return;
	o->what = gap + strspn(gap, " ");
	o->what_len = o->what < end ? (size_t)(end - o->what) : 0;
}

/* The next option that is named at or after *at, which is moved beyond it. */
static bool next_option(const char *help, const char **at, struct option_seen *ret)
{
	const char *s = *at;
	while ((s = strstr(s, "--"))) {
		size_t n = word_len(s + 2, "-");
		bool starts = s == help || strchr(" [(|,\n", s[-1]);
		if (!starts || !n || !islower((unsigned char)s[2])) {
			s += 2;
			continue;
		}
		const char *line = s, *end = s + strcspn(s, "\n");
		while (line > help && line[-1] != '\n')
			line--;
		*ret = (struct option_seen){.name = s, .len = n + 2};
		read_value(s + n + 2, ret);
		read_what(line, end, ret);
		*at = s + n + 2;
		return true;
	}
	return false;
}

static bool find_option(const char *help, const char *name, struct option_seen *ret)
{
	struct option_seen o;
	bool found = false;
	for (const char *at = help; next_option(help, &at, &o);) {
		if (strlen(name) != o.len || strncmp(name, o.name, o.len) != 0)
			continue;
		if (!found || (o.value && !ret->value))
			*ret = o;
		found = true;
	}
	return found;
}

/* "-r, --read PATH": the long name of a letter; false: there is none. */
static bool find_letter(const char *help, const char *letter, struct option_seen *ret)
{
	char both[8];
	snprintf(both, sizeof both, "%.2s, --", letter);
	const char *at = strstr(help, both);
	return at && next_option(help, &at, ret);
}

static void offer_options(const struct place *p)
{
	struct option_seen o, earlier;
	for (const char *at = p->help; next_option(p->help, &at, &o);) {
		char name[64];
		snprintf(name, sizeof name, "%.*s", (int)o.len, o.name);
		/* Named twice: where the table has it. */
		if (find_option(p->help, name, &earlier) && earlier.name == o.name)
			offer(p, o.name, o.len, o.what ? o.what : "", o.what_len);
	}
}

/* ---- values that are ours ---- */

static bool open_store(struct store *s)
{
	struct policy_error why;
	return !store_open(environ, s, &why);
}

static int offer_session(void *arg, const struct named_info *info)
{
	offer_word(arg, info->name, info->in_use ? "in use" : "a session");
	return 0;
}

static void offer_sessions(struct place *p)
{
	struct store s;
	if (!open_store(&s))
		return;
	named_each(s.state_dir, offer_session, p);
	store_release(&s);
}

/* The runs that wait at a desk. */
static void offer_runs(const struct place *p)
{
	struct store s;
	char dir[4096];
	struct dirent *e;
	if (!open_store(&s))
		return;
	snprintf(dir, sizeof dir, "%s/" DESK_DIRECTORY, s.state_dir);
	DIR *d = opendir(dir);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			offer_word(p, e->d_name, "a run");
	if (d)
		closedir(d);
	store_release(&s);
}

/* What a shell shows of a conversation beside what it inserts. */
#define LISTED_COLUMNS 120

/* The agent's conversations: an id, then what it was about. */
static void offer_chats(const struct place *p)
{
	struct store s;
	struct buf list = {0};
	char dir[4096];
	if (!open_store(&s))
		return;
	snprintf(dir, sizeof dir, "%s/sessions", s.state_dir);
	if (!chatlist_write(dir, NULL, LISTED_COLUMNS, &list))
		for (const char *line = buf_str(&list), *end; *line; line = end + !!*end) {
			end = line + strcspn(line, "\n");
			line += strspn(line, " ");
			size_t id = strcspn(line, " \n");
			size_t gap = id + strspn(line + id, " ");
			offer(p, line, id, line + gap, (size_t)(end - line) - gap);
		}
	buf_free(&list);
	store_release(&s);
}

static void offer_presets(const struct place *p)
{
	static const char *const always[] = {"system", "tmp", "project"};
	for (const struct preset_text *t = preset_texts; t->name; t++)
		offer_word(p, t->name, "preset");
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		if (!preset_find(always[i]))
			offer_word(p, always[i], "preset");
}

static void offer_value(struct place *p, const char *option, const struct option_seen *o)
{
	static const char *const files[] = {"FILE", "PATH", "TRACE", "FD|SOCKET"};
	if (begins(option, "--preset") || begins(option, "--no-preset")) {
		offer_presets(p);
		return;
	}
	if (!strcmp(option, "--session")) {
		offer_sessions(p);
		return;
	}
	if (!strcmp(option, "--resume")) {
		offer_chats(p);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (o->value_len == strlen(files[i]) && begins(o->value, files[i])) {
			puts(":files");
			return;
		}
	if (o->value_len == 3 && begins(o->value, "DIR"))
		puts(":directories");
	else if (islower((unsigned char)*o->value))
		offer_choices(p, o->value, o->value_len);
}

/* ---- words that stand by themselves ---- */

static const char accesses[] =
	"r|w|x|rw|rx|rwx|read|list|exec|write|create|delete|move|meta|connect|"
	"ioctl";

/* "Usage: warder policy show|check ...": the verbs, of every line of the synopsis. */
static void offer_verbs(const struct place *p)
{
	char prefix[64];
	const char *end = strstr(p->help, "\n\n");
	snprintf(prefix, sizeof prefix, "warder %s ", p->command->name);
	for (const char *at = p->help; (at = strstr(at, prefix)) && (!end || at < end);) {
		at += strlen(prefix);
		size_t n = word_len(at, "-|");
		if (n && islower((unsigned char)*at))
			offer_choices(p, at, n);
	}
}

static bool has_verbs(const char *name)
{
	return !strcmp(name, "policy") || !strcmp(name, "session") || !strcmp(name, "completion");
}

/* How many words that are no options stand before the one that is typed. */
static int plain_before(const struct place *p)
{
	int n = 0;
	for (int i = 2; i < p->at; i++)
		n += p->word[i][0] != '-';
	return n;
}

static void offer_plain(struct place *p)
{
	const char *name = p->command->name;
	int before = plain_before(p);
	if (has_verbs(name) && !before)
		offer_verbs(p);
	else if (!strcmp(name, "session"))
		offer_sessions(p);
	else if (!strcmp(name, "ask"))
		offer_runs(p);
	else if (!strcmp(name, "why") && before == 1)
		offer_choices(p, accesses, strlen(accesses));
	else if (!strcmp(name, "policy") && before == 1 && !begins(p->word[2], "forget"))
		offer_choices(p, accesses, strlen(accesses));
	if (!has_verbs(name) || (!strcmp(name, "policy") && before))
		if (strcmp(name, "ask") != 0 && (strcmp(name, "why") != 0 || !before))
			puts(":files");
}

/* ---- the line ---- */

/* The option whose value is being typed, or false. `--x = y` are three words to bash. */
static bool value_of(struct place *p, char *name, size_t n, struct option_seen *ret)
{
	const char *before = p->at > 2 ? p->word[p->at - 1] : "";
	const char *equals = begins(p->cur, "--") ? strchr(p->cur, '=') : NULL;
	if (equals) {
		snprintf(name, n, "%.*s", (int)(equals - p->cur), p->cur);
		if (!find_option(p->help, name, ret) || !ret->value)
			return false;
		p->cur = equals + 1;
		return true;
	}
	if (!strcmp(p->cur, "="))
		p->cur = "";
	else if (!strcmp(before, "=") && p->at > 3)
		before = p->word[p->at - 2];
	bool found = begins(before, "--") ? find_option(p->help, before, ret)
					  : before[0] == '-' && before[1] && !before[2] &&
						    find_letter(p->help, before, ret);
	if (!found || !ret->value)
		return false;
	snprintf(name, n, "%.*s", (int)ret->len, ret->name);
	return true;
}

/* The word with which another program's command line begins, or 0. */
static int command_at(const struct place *p)
{
	struct option_seen o;
	if (strcmp(p->command->name, "run") != 0 && strcmp(p->command->name, "record") != 0)
		return 0;
	for (int i = 2; i <= p->at; i++) {
		const char *w = p->word[i];
		if (!strcmp(w, "--"))
			return i < p->at ? i + 1 : 0;
		if (w[0] != '-')
			return i;
		bool known = begins(w, "--") ? find_option(p->help, w, &o)
					     : w[1] && !w[2] && find_letter(p->help, w, &o);
		if (known && o.value)
			i += i + 1 < p->at && !strcmp(p->word[i + 1], "=") ? 2 : 1;
	}
	return 0;
}

static void complete_in(struct place *p)
{
	struct option_seen o;
	char name[64];
	int command = command_at(p);
	if (command && command <= p->at) {
		printf(":command %d\n", command);
		return;
	}
	if (value_of(p, name, sizeof name, &o)) {
		offer_value(p, name, &o);
		return;
	}
	if (p->cur[0] == '-')
		offer_options(p);
	else
		offer_plain(p);
}

int completion_complete(const struct subcommand *commands, int argc, char **argv)
{
	int at = argc > 2 ? atoi(argv[1]) : 0;
	char **words = argv + 2;
	if (at < 1 || at > argc - 2)
		return CLI_EXIT_USAGE;
	/* The word that is typed may be none yet. */
	struct place p = {.word = words, .at = at, .cur = at < argc - 2 ? words[at] : ""};
	if (at == 1) {
		for (const struct subcommand *c = commands; c->name; c++)
			if (c->help)
				offer_word(&p, c->name, c->help);
		offer_word(&p, "--help", "how to call it");
		offer_word(&p, "--version", "which one it is");
		return 0;
	}
	for (const struct subcommand *c = commands; c->name; c++) {
		if (strcmp(c->name, words[1]) != 0)
			continue;
		char *help AUTOFREE = help_of(c);
		p.command = c;
		p.help = help ? help : "";
		complete_in(&p);
	}
	return 0;
}

static const char help[] =
	"Usage: warder completion bash|zsh|fish\n"
	"Print the script that completes warder's options, subcommands, presets, sessions\n"
	"and paths; a package installs it by itself.\n"
	"\n"
	"  -h, --help        this text\n"
	"\n"
	"  source <(warder completion bash)  in ~/.bashrc (zsh: its own in ~/.zshrc)\n"
	"  warder completion fish | source   in ~/.config/fish/config.fish\n"
	"\n"
	"Status: 0 fine, 2 usage, 125 could not write it.\n";

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

static const char *script_of(const char *shell)
{
	return !strcmp(shell, "bash")	? completion_bash
	       : !strcmp(shell, "zsh")	? completion_zsh
	       : !strcmp(shell, "fish") ? completion_fish
					: NULL;
}

int completion_main(int argc, char **argv)
{
	bool helps = (argc > 1 && is_help(argv[1])) || (argc > 2 && is_help(argv[2]));
	const char *script = helps ? help : argc == 2 ? script_of(argv[1]) : NULL;
	if (!script) {
		cli_complain(
			"completion: expected bash, zsh or fish; see warder completion --help");
		return CLI_EXIT_USAGE;
	}
	if (fputs(script, stdout) == EOF || fflush(stdout)) {
		cli_complain("the script could not be written: %s", strerror(errno));
		return CLI_EXIT_TROUBLE;
	}
	return 0;
}
