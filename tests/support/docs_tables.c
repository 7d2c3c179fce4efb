/*
 * docs_tables DIR [--check]: the tables of docs/ and of the README beside it, generated from the
 * .def files.
 * --check compares instead of writing: 1 and one line a stale file.
 */
#include "supervisor/access.h"
#include "supervisor/presets.h"
#include "tracer/buf.h"
#include "tracer/sysent.h"
#include "tracer/trace.h"
#include "tracer/tracekeys.h"
#include "tracer/util.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct group {
	enum sys_group group;
	const char *title;
	const char *happens;
};

static const struct group groups[] = {
	{SYS_GROUP_WALL, "Landlock can refuse these: watched always",
	 "The kernel runs the call; one that it refused is held at its end, reported, asked about, "
	 "and where it is granted done in place."},
	{SYS_GROUP_META, "Attributes: no Landlock right",
	 "They wait before they run: decided on as the others are, and where that is yes done in "
	 "the command's place."},
	{SYS_GROUP_CONNECT, "Unix sockets by path: no Landlock right before ABI 9",
	 "They wait as those do, whatever the address, and are done in the command's place. "
	 "`sendto` "
	 "without an address, `sendmsg` and `sendmmsg` run unseen."},
	{SYS_GROUP_MOUNT, "Mounts: EPERM in every Landlock domain that handles files",
	 "The kernel refuses them, the report counts them; no grant can help."},
	{SYS_GROUP_QUEUE, "Message queues: EACCES in every Landlock domain that handles files",
	 "The kernel refuses them, unless their file system is mounted and a rule allows it there; "
	 "the "
	 "report counts them."},
	{SYS_GROUP_GUARD, "Not about paths: the supervisor must see or refuse them",
	 "Answered as each row says, before the kernel runs them."},
	{SYS_GROUP_LOOK, "Never refused by Landlock", "They run unseen."},
};

/* The accesses (docs/accesses.md) that a call needs on a path. */
static const char *const needs[CALL_NEED_COUNT] = {
	[CALL_NEED_OPEN] = "by its flags",
	[CALL_NEED_EXEC] = "exec",
	[CALL_NEED_TRUNCATE] = "write",
	[CALL_NEED_MKDIR] = "create",
	[CALL_NEED_MKNOD] = "create",
	[CALL_NEED_SYMLINK] = "create",
	[CALL_NEED_BIND] = "create",
	[CALL_NEED_UNLINK] = "delete",
	[CALL_NEED_RMDIR] = "delete",
	[CALL_NEED_MOVE_FROM] = "delete, move",
	[CALL_NEED_MOVE_TO] = "create, move; delete what is there",
	[CALL_NEED_LINK_FROM] = "move",
	[CALL_NEED_LINK_TO] = "create, move",
	[CALL_NEED_META] = "meta",
	[CALL_NEED_CONNECT] = "connect",
	[CALL_NEED_IOCTL] = "ioctl",
};

static void cell_nr(struct buf *b, int nr)
{
	if (nr < 0)
		buf_add_str(b, " – |");
	else
		buf_addf(b, " %d |", nr);
}

static void cell_needs(struct buf *b, const struct sysent *e)
{
	const char *first = needs[e->need[0]], *second = needs[e->need[1]];
	buf_addf(b, " %s%s%s |", first ? first : "–", second ? " / " : "", second ? second : "");
}

static void syscalls(struct buf *b)
{
	buf_add_str(
		b,
		"# System calls\n\nGenerated from `tracer/syscalls.def` by `./dev docs`. To add a "
		"call: [adding-a-call.md](adding-a-call.md).\n\nThe numbers are the call's on each "
		"architecture; *needs* are [accesses](accesses.md), of a second path after the "
		"slash, `move` only between directories. Calls that no table names run unseen; "
		"those of a foreign architecture, x32's too, are answered ENOSYS.\n");
	for (size_t g = 0; g < ARRAY_LEN(groups); g++) {
		buf_addf(b,
			 "\n## %s\n\n%s\n\n"
			 "| call | x86-64 | i386 | aarch64 | needs | what it does |\n"
			 "|---|---|---|---|---|---|\n",
			 groups[g].title, groups[g].happens);
		for (size_t i = 0; i < SYS_ID_COUNT; i++) {
			const struct sysent *e = &sysents[i];
			if (e->group != groups[g].group)
				continue;
			buf_addf(b, "| `%s` |", e->name);
			for (int a = 0; a < SYS_ARCH_COUNT; a++)
				cell_nr(b, e->nr[a]);
			cell_needs(b, e);
			buf_addf(b, " %s |\n", e->help);
		}
	}
}

static void accesses(struct buf *b)
{
	static const struct {
		const char *name;
		char letter;
		const char *help;
	} rows[] = {
#define ACCESS(NAME, name, letter, rights, help) {#name, letter, help},
#include "supervisor/access.def"
#undef ACCESS
	};
	buf_add_str(b, "# Accesses\n\nGenerated from `supervisor/access.def` by `./dev docs`.\n\n"
		       "| access | letter | covers |\n|---|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		buf_addf(b, "| `%s` | %c | %s |\n", rows[i].name,
			 rows[i].letter ? rows[i].letter : '-', rows[i].help);
}

static void rights(struct buf *b)
{
	buf_add_str(b,
		    "# Landlock rights\n\nGenerated from `landlock/access.def` by `./dev docs`.\n\n"
		    "| right | bit | since ABI | may stand on | group | what it is about |\n"
		    "|---|---|---|---|---|---|\n");
#define LLR(NAME, name, bit, first_abi, kind, group, help)                                         \
	buf_addf(b, "| `%s` | %d | %d | %s | %s | %s |\n", #name, bit, first_abi,                  \
		 !strcmp(#kind, "DIR") ? "directories" : "files and directories",                  \
		 !strcmp(#group, "CONTENT") ? "content" : "structure", help);
#include "landlock/access.def"
#undef LLR
}

static void processes(struct buf *b)
{
	buf_add_str(b,
		    "# Shapes of processes\n\nGenerated from `tests/shapes.def` by `./dev docs`; "
		    "`tests/live/test_shapes.py` asserts every row, as root and as an ordinary "
		    "user.\n\n"
		    "*Seen*: a refused open is held and reported with its exact path, process and "
		    "program. *Granted in place*: a granted one returns a working descriptor (no "
		    "EINTR), "
		    "and the process goes on as it was.\n");
#define SHAPES(title)                                                                              \
	buf_addf(b,                                                                                \
		 "\n## %s\n\n| shape | seen | granted in place | remarks |\n|---|---|---|---|\n",  \
		 title);
#define YES "yes"
#define NO  "no"
#define SHAPE(name, how, program, title, seen, granted, remark)                                    \
	buf_addf(b, "| %s | %s | %s | %s |\n", title, seen, granted, remark);
#include "tests/shapes.def"
#undef SHAPE
#undef SHAPES
#undef YES
#undef NO
}

/* ---- presets ---- */

/* A table's row: rules that stand together for one reason. */
struct preset_row {
	struct buf why;	  /* the comment above */
	struct buf rule;  /* "allow rw", "allow list exact" */
	struct buf paths; /* of `rule`, each in backquotes */
	bool fresh;	  /* the comment was just read and has no rule yet */
};

static void add_row(struct buf *b, struct preset_row *row)
{
	if (row->paths.len)
		buf_addf(b, "| %s | %s | %s |\n", buf_str(&row->rule), buf_str(&row->paths),
			 buf_str(&row->why));
	buf_reset(&row->paths);
}

static void add_comment(struct buf *b, struct preset_row *row, const char *text)
{
	add_row(b, row);
	if (!row->fresh)
		buf_reset(&row->why);
	row->fresh = true;
	buf_addf(&row->why, "%s%s", row->why.len ? " " : "", text + strspn(text, "# "));
}

/* "allow rw PATH exact": the path is told apart from the rest. */
static void add_rule(struct buf *b, struct preset_row *row, char *line)
{
	struct buf rule = {0};
	char *rest = NULL, *path = NULL;
	size_t at;
	uint32_t mask;
	for (char *word = strtok_r(line, " \t", &rest); word && word[0] != '#';
	     word = strtok_r(NULL, " \t", &rest)) {
		bool access = rule.len && !path && !access_parse(word, strlen(word), &mask, &at);
		if (!rule.len || access || path)
			buf_addf(&rule, "%s%s", rule.len ? " " : "", word);
		else
			path = word;
	}
	if (strcmp(buf_str(&rule), buf_str(&row->rule)) != 0) {
		add_row(b, row);
		buf_reset(&row->rule);
		buf_add_str(&row->rule, buf_str(&rule));
	}
	buf_addf(&row->paths, "%s`%s`", row->paths.len ? " " : "", path ? path : "");
	row->fresh = false;
	buf_free(&rule);
}

/* The first paragraph of the file, then a table of its rules. False: a rule has no reason. */
static bool add_preset(struct buf *b, const struct preset_text *t)
{
	struct preset_row row = {0};
	char *text AUTOFREE = strdup(t->text);
	char *rest = text;
	bool intro = true, reasons = true;
	buf_addf(b, "\n## %s\n\n", t->name);
	for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
		if (intro && line[0] == '#') {
			buf_addf(b, "%s\n", line + strspn(line, "# "));
		} else if (intro) {
			intro = false;
			buf_add_str(b, "\n| rule | paths | why |\n|---|---|---|\n");
		} else if (!line[0]) {
			add_row(b, &row);
			row.fresh = false;
			buf_reset(&row.why);
		} else if (line[0] == '#') {
			add_comment(b, &row, line);
		} else {
			reasons &= row.why.len > 0;
			add_rule(b, &row, line);
		}
	}
	add_row(b, &row);
	buf_free(&row.why);
	buf_free(&row.rule);
	buf_free(&row.paths);
	return reasons;
}

static void presets(struct buf *b)
{
	buf_add_str(b,
		    "# Presets\n\nGenerated from `supervisor/presets/*.policy` by `./dev docs`. "
		    "`system`, `tmp` and `project` are always on (`--no-preset NAME`), the others "
		    "by `--preset NAME`, `use NAME` in a policy, or as an answer.\n\n"
		    "A rule whose variable is not set is left out. `~/.config`, `~/.cache`, "
		    "`~/.local/share` and `~/.local/state` are also what XDG_CONFIG_HOME, "
		    "XDG_CACHE_HOME, XDG_DATA_HOME and XDG_STATE_HOME name. `ask` takes something "
		    "out of "
		    "what is allowed around it; `deny` is for what the programs try and go on "
		    "without. Rules: [accesses](accesses.md); `exact` is the path alone, not what "
		    "is below it.\n");
	for (const struct preset_text *t = preset_texts; t->name; t++)
		if (!add_preset(b, t)) {
			fprintf(stderr, "presets/%s.policy: a rule has no comment above\n",
				t->name);
			b->failed = true;
		}
}

/* ---- the agent ---- */

/* A bar would end the cell. */
static void add_cell(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

/* ---- traces ---- */

static void add_events(struct buf *out, unsigned events)
{
	static const char *const names[] = {
		[TRACE_CALL] = "call", [TRACE_FORK] = "fork",	  [TRACE_EXEC] = "exec",
		[TRACE_EXIT] = "exit", [TRACE_ANSWER] = "answer", [TRACE_END] = "end"};
	const char *comma = "";
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!(events & 1u << i))
			continue;
		buf_addf(out, "%s%s", comma, names[i]);
		comma = ", ";
	}
}

static void trace_fields(struct buf *b)
{
	buf_add_str(b, "# The members of a trace's events\n\nGenerated from "
		       "`tracer/tracekeys.def` by `./dev docs`. What a trace is: "
		       "[traces.md](traces.md). A row with 2 3 … is told of each path: `path2`, "
		       "`access2`.\n\n| member | events | meaning |\n|---|---|---|\n");
	for (size_t i = 0; i < TRACEKEYS_COUNT; i++) {
		const struct tracekeys_row *row = &tracekeys_rows[i];
		buf_addf(b, "| `%s`%s | ", row->name, row->of_path ? " 2 3 …" : "");
		add_events(b, row->events);
		buf_add_str(b, " | ");
		add_cell(b, row->help);
		buf_add_str(b, " |\n");
	}
}

static void agent_tools(struct buf *out)
{
	buf_add_str(out,

		    "# The agent's tools and commands\n\n"
		    "Generated from `agent/tools.def` and `agent/slash.def` by `./dev docs`. "
		    "What they do with it, and what comes back: [agent.md](agent.md).\n");
#define TEXT			     "text"
#define NUMBER			     "number"
#define REQUIRED		     ""
#define OPTIONAL		     ", optional"
#define TOOL(NAME, name, help)	     buf_addf(out, "\n## `%s`\n\n%s\n\n", #name, help);
#define PARAM(key, kind, need, help) buf_addf(out, "- `%s` (%s%s): %s\n", #key, kind, need, help);
#define END()
#include "agent/tools.def"
#undef TOOL
#undef PARAM
#undef END
	buf_add_str(out, "\n## Commands\n\n| command | |\n|---|---|\n");
#define SLASH(word, argument, help)                                                                \
	buf_addf(out, "| `/%s%s", #word, *argument ? " " : "");                                    \
	add_cell(out, argument);                                                                   \
	buf_addf(out, "` | %s |\n", help);
#include "agent/slash.def"
#undef SLASH
}

/* ---- the README's part ---- */

/* Keys stand between blanks, and each is shown as code. */
static void add_keys(struct buf *out, const char *keys)
{
	for (const char *between = ""; *keys; between = " ") {
		size_t n = strcspn(keys, " ");
		buf_addf(out, "%s`%.*s`", between, (int)n, keys);
		keys += n + strspn(keys + n, " ");
	}
}

static void answers(struct buf *out)
{
	static const char *const rows[][2] = {
#define PROMPT_ROW(keys, words) {keys, words},
#include "supervisor/prompt_help.def"
#undef PROMPT_ROW
	};
	buf_add_str(out, "| key | |\n|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		buf_add_str(out, "| ");
		add_keys(out, rows[i][0]);
		buf_addf(out, " | %s |\n", rows[i][1]);
	}
}

struct words {
	const char *where;
	int from, to;
	const char *has;
	bool again;
	const char *sentence;
};

static const struct words words[] = {
#define WORDS(where_, from_, to_, has_, kind_, again_, sentence_)                                  \
	{.where = #where_,                                                                         \
	 .from = (from_),                                                                          \
	 .to = (to_),                                                                              \
	 .has = (has_),                                                                            \
	 .again = (again_),                                                                        \
	 .sentence = (sentence_)},
#include "agent/provider_errors.def"
#undef WORDS
};

static const char *asked(const char *where)
{
	static const struct {
		const char *where, *who;
	} names[] = {{"EXCHANGE", "GitHub, for Copilot's bearer"},
		     {"LOGIN", "GitHub, for a login"},
		     {"COPILOT", "Copilot"},
		     {"ANY", "any server"}};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(names[i].where, where))
			return names[i].who;
	BUG(true);
}

static void provider_errors(struct buf *b)
{
	buf_add_str(b,
		    "# What a model's server refuses, and what warder says\n\n"
		    "Generated from agent/provider_errors.def; the first row that fits is taken. "
		    "Behind the sentence come the server's own words and the request id. Where it "
		    "is tried again, that is three times, each told, with longer and longer waits "
		    "or the wait that the server asks for (up to 60 s), and never once a part of "
		    "the answer was shown.\n\n"
		    "| who was asked | status | says | warder says | again |\n"
		    "|---|---|---|---|---|\n");
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const struct words *w = &words[i];
		buf_addf(b, "| %s | %d", asked(w->where), w->from);
		if (w->to != w->from)
			buf_addf(b, "–%d", w->to);
		buf_addf(b, " | %s | %s | %s |\n", w->has, w->sentence, w->again ? "yes" : "");
	}
}

static const struct page {
	const char *name;
	void (*write)(struct buf *b);
} pages[] = {{"syscalls.md", syscalls},	      {"accesses.md", accesses},
	     {"rights.md", rights},	      {"processes.md", processes},
	     {"presets.md", presets},	      {"trace-fields.md", trace_fields},
	     {"agent-tools.md", agent_tools}, {"provider-errors.md", provider_errors}};

static int read_old(const char *file, struct buf *ret)
{
	char chunk[4096];
	size_t n;
	FILE *f = fopen(file, "re");
	if (!f)
		return -errno;
	while ((n = fread(chunk, 1, sizeof chunk, f)))
		buf_add(ret, chunk, n);
	int err = ferror(f) ? -EIO : buf_error(ret);
	fclose(f);
	return err;
}

static int check(const char *file, const struct buf *want)
{
	struct buf old = {0};
	int err = read_old(file, &old);
	bool same = !err && old.len == want->len && !memcmp(buf_str(&old), buf_str(want), old.len);
	buf_free(&old);
	if (!same)
		fprintf(stderr, "%s is stale: run ./dev docs\n", file);
	return same ? 0 : 1;
}

static int put(const char *file, const struct buf *text)
{
	FILE *f = fopen(file, "we");
	bool ok = f && fwrite(buf_str(text), 1, text->len, f) == text->len;
	if (f && fclose(f))
		ok = false;
	if (!ok)
		fprintf(stderr, "%s: %s\n", file, strerror(errno));
	return ok ? 0 : 1;
}

#define README_BEGIN "<!-- from supervisor/prompt_help.def, by ./dev docs -->\n"
#define README_END   "<!-- end -->\n"

/* The page as it is, with its generated part anew. */
static int readme(const char *file, struct buf *ret)
{
	struct buf old = {0};
	int err = read_old(file, &old);
	const char *text = buf_str(&old), *begin = strstr(text, README_BEGIN);
	const char *end = begin ? strstr(begin, README_END) : NULL;
	if (!err && end) {
		buf_add(ret, text, (size_t)(begin - text) + strlen(README_BEGIN));
		answers(ret);
		buf_add_str(ret, end);
	}
	buf_free(&old);
	if (end)
		return buf_error(ret);
	fprintf(stderr, "%s: expected its part for the generated table\n", file);
	return -EINVAL;
}

static int put_readme(const char *dir, bool checking)
{
	struct buf file = {0}, text = {0};
	buf_addf(&file, "%s/../README.md", dir);
	int status = readme(buf_str(&file), &text) ? 1
		     : checking			   ? check(buf_str(&file), &text)
						   : put(buf_str(&file), &text);
	buf_free(&text);
	buf_free(&file);
	return status;
}

int main(int argc, char **argv)
{
	bool checking = argc == 3 && !strcmp(argv[2], "--check");
	if (argc != 2 && !checking) {
		fputs("usage: docs_tables DIR [--check]\n", stderr);
		return 2;
	}
	int status = 0;
	for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
		struct buf text = {0}, file = {0};
		pages[i].write(&text);
		if (buf_error(&text)) {
			status = 1;
			continue;
		}
		buf_addf(&file, "%s/%s", argv[1], pages[i].name);
		status |= checking ? check(buf_str(&file), &text) : put(buf_str(&file), &text);
		buf_free(&text);
		buf_free(&file);
	}
	return status | put_readme(argv[1], checking);
}
