#include "supervisor/policyfile.h"

#include "supervisor/glob.h"
#include "supervisor/presets.h"
#include "tests/tempdir.h"
#include "tracer/json.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

static char *const env[] = {"CACHE=/var/cache/x y", "RELATIVE=a/b", "STAR=/a*b", "EMPTY=", NULL};
static const struct policy_vars vars = {.home = "/home/nobody-here",
					.project = "/no-such-project",
					.tmpdir = "/tmp/private",
					.env = env};

static int parse(struct policy *p, const char *text, struct policy_error *error)
{
	return policyfile_parse(p, "f", text, strlen(text), RULE_USER, &vars, error);
}

Test(policyfile, reads_rules)
{
	static const struct {
		const char *text;
		enum effect effect;
		enum rule_kind kind;
		uint32_t access;
		const char *path;
		const char *given;
	} rows[] = {
		{"allow rwx .", EFFECT_ALLOW, RULE_TREE, ACCESS_R | ACCESS_W | ACCESS_X,
		 "/no-such-project", "."},
		{"deny w .git/hooks", EFFECT_DENY, RULE_TREE, ACCESS_W,
		 "/no-such-project/.git/hooks", ".git/hooks"},
		{"deny r **/.env", EFFECT_DENY, RULE_GLOB, ACCESS_R, "/no-such-project/**/.env",
		 "**/.env"},
		{"allow r ~/.gitconfig", EFFECT_ALLOW, RULE_TREE, ACCESS_R,
		 "/home/nobody-here/.gitconfig", "~/.gitconfig"},
		{"allow  list \t ~/  exact # only this", EFFECT_ALLOW, RULE_EXACT, ACCESS_LIST,
		 "/home/nobody-here", "~/"},
		{"ask r ~", EFFECT_ASK, RULE_TREE, ACCESS_R, "/home/nobody-here", "~"},
		{"forbid /x/.ssh", EFFECT_FORBID, RULE_TREE, ACCESS_ALL, "/x/.ssh", NULL},
		{"forbid /x/.ssh exact", EFFECT_FORBID, RULE_EXACT, ACCESS_ALL, "/x/.ssh", NULL},
		{"allow read,list /x", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/x", NULL},
		{"allow r $CACHE/z", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/var/cache/x y/z",
		 "$CACHE/z"},
		{"allow r ${CACHE}", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/var/cache/x y",
		 "${CACHE}"},
		{"allow r \"$CACHE\"/z", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/var/cache/x y/z",
		 "\"$CACHE\"/z"},
		{"allow r $STAR/*", EFFECT_ALLOW, RULE_GLOB, ACCESS_R, "/a\\*b/*", "$STAR/*"},
		{"allow r $STAR", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/a*b", "$STAR"},
		{"allow r $TMPDIR/a", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/tmp/private/a",
		 "$TMPDIR/a"},
		{"allow r $HOME/a", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/home/nobody-here/a",
		 "$HOME/a"},
		{"allow r \"~/a b\"", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/home/nobody-here/a b",
		 "\"~/a b\""},
		{"allow r \\~/a", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/no-such-project/~/a",
		 "\\~/a"},
		{"allow r \\$X", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/no-such-project/$X", "\\$X"},
		{"allow r a~$b", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/no-such-project/a~$b",
		 "a~$b"},
		{"allow r \"/a b\"c", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/a bc", "\"/a b\"c"},
		{"allow r /a\\ b", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/a b", "/a\\ b"},
		{"allow r \"/a*\"", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/a*", "\"/a*\""},
		{"allow r /a\\*", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/a*", "/a\\*"},
		{"allow r /a\\*/*", EFFECT_ALLOW, RULE_GLOB, ACCESS_R, "/a\\*/*", NULL},
		{"allow r /a/?? exact", EFFECT_ALLOW, RULE_GLOB_EXACT, ACCESS_R, "/a/\?\?", NULL},
		{"allow r /a\\x1b\\n\\t\\e\\\\", EFFECT_ALLOW, RULE_TREE, ACCESS_R,
		 "/a\x1b\n\t\x1b\\", "/a\\x1b\\n\\t\\e\\\\"},
		{"allow r /a#b # c", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/a#b", NULL},
		{"allow r /a/../b/./c//d/", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/b/c/d",
		 "/a/../b/./c//d/"},
		{"allow r ./exact", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/no-such-project/exact",
		 "./exact"},
		{"allow r \"exact\" exact", EFFECT_ALLOW, RULE_EXACT, ACCESS_R,
		 "/no-such-project/exact", "\"exact\""},
		{"allow foo", EFFECT_ALLOW, RULE_TREE, ACCESS_ALL, "/no-such-project/foo", "foo"},
		{"allow foo exact", EFFECT_ALLOW, RULE_EXACT, ACCESS_ALL, "/no-such-project/foo",
		 "foo"},
		{"allow r /x\r", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/x", NULL},
		{"allow r /\xff\xfe", EFFECT_ALLOW, RULE_TREE, ACCESS_R, "/\xff\xfe", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy *p;
		struct policy_error error = {""};
		cr_assert_eq(policy_new(&p), 0);
		cr_assert_eq(parse(p, rows[i].text, &error), 0, "%s: %s", rows[i].text, error.text);
		cr_assert_eq(policy_len(p), 1, "%s", rows[i].text);
		const struct rule *r = policy_at(p, 0);
		cr_assert_eq(r->effect, rows[i].effect, "%s", rows[i].text);
		cr_assert_eq(r->kind, rows[i].kind, "%s", rows[i].text);
		cr_assert_eq(r->access, rows[i].access, "%s", rows[i].text);
		cr_assert_str_eq(r->path, rows[i].path);
		if (rows[i].given)
			cr_assert_str_eq(r->given, rows[i].given);
		else
			cr_assert_null(r->given, "%s", rows[i].text);
		cr_assert_str_eq(r->origin, "f");
		cr_assert_eq(r->line, 1);
		policy_free(p);
	}
}

#define LINE(n) "f:" n ": "
#define EFFECTS "expected allow, deny, ask, forbid or use, not "

Test(policyfile, says_where_and_what)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{"allow raed /x",
		 LINE("1:7") "expected an access such as r, rw or read,list, not 'raed'"},
		{"\n# c\n  deny rw,ex /x",
		 LINE("3:11") "expected an access such as r, rw or read,list, not 'ex'"},
		{"permit r /x", LINE("1:1") EFFECTS "'permit'"},
		{"\"allow\" r /x", LINE("1:1") EFFECTS "'\"allow\"'"},
		{"sensitive /x", LINE("1:1") EFFECTS "'sensitive'"},
		{"allow", LINE("1:6") "expected an access or a path after 'allow'"},
		{"allow r", LINE("1:8") "expected a path (a file of that name: ./NAME) after 'r'"},
		{"allow r exact",
		 LINE("1:9") "expected a path (a file of that name: ./exact), not 'exact'"},
		{"allow r \"\"", LINE("1:9") "expected a path, not '\"\"'"},
		{"allow r /x exactly",
		 LINE("1:12") "expected exact or the end of the line (blanks in "
			      "names: \\ ), not 'exactly'"},
		{"allow /my file", LINE("1:11") "expected exact or the end of the line (blanks in "
						"names: \\ ), not 'file'"},
		{"allow r /x exact /y", LINE("1:18") "expected the end of the line, not '/y'"},
		{"allow r \"/x", LINE("1:9") "expected a closing \" for this one"},
		{"allow r /x\\", LINE("1:11") "expected a character after the backslash"},
		{"allow r /x\\x4", LINE("1:11") "expected two hexadecimal digits after \\x"},
		{"allow r /x\\xzz", LINE("1:11") "expected two hexadecimal digits after \\x"},
		{"allow r /x\\x00", LINE("1:11") "a path can't hold \\x00"},
		{"allow r /\\q", LINE("1:10") "expected \\n, \\t, \\r, \\e, \\xNN or a punctuation "
					      "character after the backslash"},
		{"allow r /\x1b[2J", LINE("1:10") "control characters are written \\xNN"},
		{"allow r \"/\x7f\"", LINE("1:11") "control characters are written \\xNN"},
		{"allow r '/x y'", LINE("1:9") "names are quoted with \" or \\; write \\' for the "
					       "character itself"},
		{"allow r ~root/x", LINE("1:9") "expected ~/ (a file that starts with ~: ./~)"},
		{"allow r $NOPE/x", LINE("1:9") "not set: $NOPE"},
		{"allow r $RELATIVE/x", LINE("1:9") "expected an absolute path in $RELATIVE"},
		{"allow r $EMPTY", LINE("1:9") "expected an absolute path in $EMPTY"},
		{"allow r $/x", LINE("1:9") "expected a variable such as $HOME (a $ itself: \\$)"},
		{"allow r ${HOME/x",
		 LINE("1:9") "expected a variable such as $HOME (a $ itself: \\$)"},
		{"allow r $HOME-x",
		 LINE("1:9") "expected / or the end of the name after the variable"},
		{"allow r /proc/self/exe",
		 LINE("1:9") "/proc/self is another thing to every process; name /proc"},
		{"allow r /a/*/../b",
		 LINE("1:9") "expected at most 62 components and no .. in a pattern"},
		{"use", LINE("1:4") "expected the name of a preset after 'use'"},
		{"use git nonesuch",
		 LINE("1:9") "expected a preset (c docs gh git go java node project python rust "
			     "system tmp), not 'nonesuch'"},
		{"allow r /x\nallow r /y\nfoo", LINE("3:1") EFFECTS "'foo'"},
		{"foo\x1b[31m", LINE("1:4") "control characters are written \\xNN"},
		{"f\xe2\x80\xaeoo", LINE("1:1") EFFECTS "'f\\u{202E}oo'"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct policy *p;
		struct policy_error error = {""};
		cr_assert_eq(policy_new(&p), 0);
		int r = parse(p, rows[i].text, &error);
		cr_assert_eq(r, -EINVAL, "%s: %d", rows[i].text, r);
		if (strstr(rows[i].want, "expected a preset"))
			cr_assert_eq(strncmp(error.text, rows[i].want, 26), 0, "%s", error.text);
		else
			cr_assert_str_eq(error.text, rows[i].want);
		cr_assert_eq(policy_len(p), 0, "all or nothing: %s", rows[i].text);
		policy_free(p);
	}
}

Test(policyfile, limits)
{
	struct policy *p;
	struct policy_error error;
	struct buf text = {0};
	cr_assert_eq(policy_new(&p), 0);
	buf_add_str(&text, "allow r /");
	while (text.len <= POLICYFILE_LINE_MAX)
		buf_add_str(&text, "x");
	cr_assert_eq(parse(p, text.data, &error), -EINVAL);
	cr_assert_str_eq(error.text, "f:1:32769: expected a line of at most 32768 bytes");
	buf_reset(&text);
	while (text.len <= POLICYFILE_SIZE_MAX)
		buf_add_str(&text, "allow r /x\n");
	cr_assert_eq(parse(p, text.data, &error), -EINVAL);
	cr_assert_str_eq(error.text, "f:1:1: expected a text of at most 1048576 bytes");
	buf_reset(&text);
	buf_add_str(&text, "use");
	for (int i = 0; i < 40; i++)
		buf_add_str(&text, " c");
	cr_assert_eq(parse(p, text.data, &error), -EINVAL);
	cr_assert_str_eq(error.text, "f:1:67: too many words in one line");
	cr_assert_eq(parse(p, "allow r /\0x", &error), 0, "strlen stops before it");
	cr_assert_eq(policyfile_parse(p, "f", "allow r /\0x", 11, RULE_USER, &vars, &error),
		     -EINVAL);
	cr_assert_str_eq(error.text, "f:1:10: control characters are written \\xNN");
	cr_assert_eq(parse(p, "", &error), 0);
	cr_assert_eq(parse(p, "\n\n#\n \t\n", &error), 0);
	buf_free(&text);
	policy_free(p);
}

Test(policyfile, without_home_project_or_tmpdir)
{
	static const struct policy_vars none = {0};
	static const struct {
		const char *text, *want;
	} rows[] = {{"allow r ~/x", "f:1:9: there is no home directory for ~"},
		    {"allow r x",
		     "f:1:9: expected an absolute path: there is no project here that a "
		     "relative one could start from"},
		    {"allow r $HOME", "f:1:9: not set: $HOME"}};
	struct policy *p;
	struct policy_error error;
	cr_assert_eq(policy_new(&p), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].text);
		cr_assert_eq(policyfile_parse(p, "f", rows[i].text, n, RULE_USER, &none, &error),
			     -EINVAL);
		cr_assert_str_eq(error.text, rows[i].want);
		cr_assert_eq(policyfile_parse(p, "f", rows[i].text, n, RULE_PRESET, &none, &error),
			     0, "a preset's rule is left out");
	}
	static const char tmp[] = "allow r $TMPDIR/x";
	cr_assert_eq(policyfile_parse(p, "f", tmp, strlen(tmp), RULE_USER, &none, &error), 0);
	cr_assert_eq(policy_len(p), 0);
	policy_free(p);
}

Test(policyfile, origins)
{
	struct policy *p;
	struct policy_error error;
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(parse(p, "# one\n\nallow r /x\nuse c", &error), 0);
	cr_assert_eq(policy_at(p, 0)->line, 3);
	cr_assert_eq(policy_at(p, 0)->source, RULE_USER);
	cr_assert_str_eq(policy_at(p, 1)->origin, "preset c");
	cr_assert_eq(policy_at(p, 1)->source, RULE_PRESET);
	size_t n = policy_len(p);
	cr_assert_eq(policyfile_parse_line(p, "deny /y", RULE_LINE, &vars, &error), 0);
	cr_assert_str_eq(policy_at(p, n)->origin, "command line");
	cr_assert_eq(policy_at(p, n)->line, 0);
	cr_assert_eq(policyfile_parse_line(p, "deny q /y", RULE_LINE, &vars, &error), -EINVAL);
	cr_assert_str_eq(error.text,
			 "rule:1:6: expected an access such as r, rw or read,list, not 'q'");
	cr_assert_eq(policyfile_load(p, "/nonexistent/\x1b", RULE_FILE, &vars, &error), -ENOENT);
	cr_assert_str_eq(error.text, "/nonexistent/\\e: No such file or directory");
	cr_assert_eq(policyfile_load(p, "/etc", RULE_FILE, &vars, &error), -EINVAL);
	cr_assert_str_eq(error.text, "/etc: expected a regular file");
	policy_free(p);
}

static uint32_t seed = 99;

static unsigned roll(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static void random_name(char *out, bool glob)
{
	static const char *const odd[] = {" ",	      "\\",
					  "\"",	      "'",
					  "*",	      "?",
					  "#",	      "\n",
					  "\t",	      "\x1b",
					  "\x7f",     "~",
					  "$",	      "\xe2\x80\xae",
					  "\xc3\xa9", "\xff",
					  "\xc2\x9b", "[",
					  "{",	      "\xf0\x9f\x98\x80",
					  "\xe2\x80", "exact",
					  "\r",	      "\xed\xa0\x80"};
	char *at = out;
	for (unsigned n = 1 + roll(6); n > 0; n--) {
		*at++ = '/';
		for (unsigned k = 1 + roll(5); k > 0; k--) {
			const char *s = odd[roll(ARRAY_LEN(odd))];
			char one[2] = {(char)(1 + roll(255)), 0};
			if (roll(2))
				s = one[0] == '/' ? "x" : one;
			if (glob && strchr("*?\\", *s))
				*at++ = '\\';
			at = stpcpy(at, s);
		}
		at = stpcpy(at, "_"); /* neither . nor .. */
	}
	if (glob)
		strcpy(at, roll(2) ? "/**/?x*" : "/*");
}

static void is_clean(const char *line)
{
	for (size_t left = strlen(line); left;) {
		size_t n = json_utf8_len(line, left);
		cr_assert_gt(n, 0, "invalid UTF-8 in a policy line");
		cr_assert((unsigned char)*line >= 0x20 && *line != 0x7f, "%02x", *line);
		cr_assert_neq(strncmp(line, "\xe2\x80\xae", 3), 0, "a bidi override");
		cr_assert_not(n == 2 && line[0] == '\xc2' && (unsigned char)line[1] < 0xa0, "C1");
		line += n;
		left -= n;
	}
}

Test(policyfile, any_bytes_round_trip)
{
	for (int i = 0; i < 20000; i++) {
		char path[512];
		bool glob = roll(3) == 0;
		random_name(path, glob);
		struct policy *p, *back;
		struct buf line = {0}, again = {0};
		struct policy_error error = {""};
		cr_assert_eq(policy_new(&p), 0);
		cr_assert_eq(policy_new(&back), 0);
		struct rule rule = {.effect = (enum effect)roll(4),
				    .kind = glob ? (roll(2) ? RULE_GLOB : RULE_GLOB_EXACT)
						 : (roll(2) ? RULE_TREE : RULE_EXACT),
				    .source = RULE_USER,
				    .access = 1 + roll(ACCESS_ALL),
				    .path = path,
				    .origin = "test"};
		cr_assert_eq(policy_add(p, &rule), 0);
		const struct rule *a = policy_at(p, 0);
		policy_format_rule(&line, a);
		is_clean(buf_str(&line));
		cr_assert_eq(policyfile_parse_line(back, buf_str(&line), RULE_USER, &vars, &error),
			     0, "%s: %s", buf_str(&line), error.text);
		const struct rule *b = policy_at(back, 0);
		cr_assert_str_eq(b->path, a->path);
		cr_assert_eq(b->effect, a->effect);
		cr_assert_eq(b->kind, a->kind, "%s", buf_str(&line));
		cr_assert_eq(b->access, a->access);
		policy_format_rule(&again, b);
		cr_assert_str_eq(buf_str(&again), buf_str(&line));
		buf_free(&line);
		buf_free(&again);
		policy_free(p);
		policy_free(back);
	}
}

Test(policyfile, random_text_never_breaks_it)
{
	static const char *const words[] = {"allow", "deny", "use",  "r",    "rw,",    "/a",
					    "exact", "#",    "\"",   "\\",   "\n",     "~/",
					    "$HOME", "**/",  "\\x",  "'",    "${",     "git\n",
					    " ",     "\t",   "\x01", "\xff", "forbid", "?"};
	struct policy *p;
	struct policy_error error;
	size_t good = 0;
	for (int i = 0; i < 20000; i++) {
		struct buf text = {0};
		for (unsigned n = roll(12); n > 0; n--) {
			buf_add_str(&text, words[roll(ARRAY_LEN(words))]);
			if (roll(2))
				buf_add_char(&text, ' ');
		}
		cr_assert_eq(policy_new(&p), 0);
		int r = parse(p, buf_str(&text), &error);
		cr_assert(r == 0 || (r == -EINVAL && strncmp(error.text, "f:", 2) == 0), "%d %s", r,
			  error.text);
		cr_assert(r == 0 || policy_len(p) == 0);
		/* The syntax alone is never stricter than the whole. */
		if (r == 0)
			cr_assert_eq(policyfile_check("f", buf_str(&text), text.len, &error), 0);
		good += r == 0;
		policy_free(p);
		buf_free(&text);
	}
	cr_assert_gt(good, 100);
}

/* ---- symlinks ---- */

static char dir[PATH_MAX];

static void setup(void)
{
	tempdir_enter(dir);
}

static void teardown(void)
{
	tempdir_leave(dir);
}

Test(policyfile, resolves_symlinks, .init = setup, .fini = teardown)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{"real/file", "real/file"},
		{"link/file", "real/file"},
		{"link/absent/x", "real/absent/x"},
		{"dangling", "nowhere/at/all"},
		{"dangling/x", "nowhere/at/all/x"},
		{"chain/file", "real/file"},
		{"up/real", "real"},
		{"link/../real", "real"},
		{"absent/../link", "real"},
		{"real/./file/", "real/file"},
		{"tofile", "real/file"},
	};
	cr_assert_eq(mkdir("real", 0700), 0);
	cr_assert_eq(close(creat("real/file", 0600)), 0);
	cr_assert_eq(symlink("real", "link"), 0);
	cr_assert_eq(symlink("link/", "chain"), 0);
	cr_assert_eq(symlink("nowhere/at/all", "dangling"), 0);
	cr_assert_eq(symlink("loop", "loop"), 0);
	cr_assert_eq(symlink("real/..", "up"), 0);
	char target[PATH_MAX + 16];
	snprintf(target, sizeof(target), "%s/real/file", dir);
	cr_assert_eq(symlink(target, "tofile"), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[PATH_MAX + 64], want[PATH_MAX + 64];
		char *got AUTOFREE = NULL;
		snprintf(path, sizeof(path), "%s/%s", dir, rows[i].path);
		snprintf(want, sizeof(want), "%s/%s", dir, rows[i].want);
		cr_assert_eq(policyfile_canonical(path, &got), 0, "%s", path);
		cr_assert_str_eq(got, want);
	}
	char path[PATH_MAX + 64];
	char *got = NULL;
	snprintf(path, sizeof(path), "%s/loop/x", dir);
	cr_assert_eq(policyfile_canonical(path, &got), -ELOOP);
	cr_assert_null(got);
	cr_assert_eq(policyfile_canonical("relative", &got), -EINVAL);
}

Test(policyfile, rules_are_about_the_target, .init = setup, .fini = teardown)
{
	cr_assert_eq(mkdir("a*b", 0700), 0);
	cr_assert_eq(symlink("a*b", "link"), 0);
	struct policy_vars here = {.home = dir, .project = dir};
	struct policy *p;
	struct policy_error error;
	char want[PATH_MAX + 64];
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(policyfile_parse_line(p, "deny r link", RULE_USER, &here, &error), 0);
	cr_assert_eq(policyfile_parse_line(p, "deny r ~/link/*.c", RULE_USER, &here, &error), 0);
	snprintf(want, sizeof(want), "%s/a*b", dir);
	cr_assert_str_eq(policy_at(p, 0)->path, want);
	cr_assert_str_eq(policy_at(p, 0)->given, "link");
	snprintf(want, sizeof(want), "%s/a\\*b/*.c", dir);
	cr_assert_str_eq(policy_at(p, 1)->path, want);
	policy_free(p);
}

Test(policyfile, loads_files_and_pipes, .init = setup, .fini = teardown)
{
	struct policy *p;
	struct policy_error error;
	int ends[2];
	char name[64];
	cr_assert_eq(policy_new(&p), 0);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_eq(write(ends[1], "allow r /x\n", 11), 11);
	close(ends[1]);
	snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
	cr_assert_eq(policyfile_load(p, name, RULE_FILE, &vars, &error), 0, "%s", error.text);
	close(ends[0]);
	cr_assert_eq(policy_len(p), 1);
	struct buf text = {0};
	cr_assert_eq(mkfifo("fifo", 0600), 0);
	cr_assert_eq(policyfile_read("fifo", POLICYFILE_PROPOSED, &text, &error), -EINVAL);
	cr_assert_str_eq(error.text, "fifo: expected a regular file");
	cr_assert_eq(symlink("fifo", "link"), 0);
	cr_assert_eq(policyfile_read("link", POLICYFILE_PROPOSED, &text, &error), -ELOOP);
	cr_assert_str_eq(error.text, "link: expected a file, not a symlink");
	buf_free(&text);
	policy_free(p);
}
