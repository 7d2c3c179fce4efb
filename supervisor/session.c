#include "supervisor/session.h"

#include "supervisor/environ.h"
#include "supervisor/escape.h"
#include "supervisor/missing.h"
#include "supervisor/mounts.h"
#include "supervisor/nearname.h"
#include "supervisor/presets.h"
#include "supervisor/proposal.h"
#include "supervisor/reach.h"
#include "supervisor/rmtree.h"
#include "supervisor/terminals.h"
#include "tracer/ownfile.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define MOUNTINFO_MAX (64u << 20) /* thousands of containers have thousands of long lines */

static const char *const default_presets[] = {"system", "tmp", "project"};

int session_note(struct session *s, char *note)
{
	if (!note)
		return 0;
	char **notes = realloc(s->notes, (s->notes_len + 2) * sizeof *notes);
	if (!notes) {
		free(note);
		return -ENOMEM;
	}
	s->notes = notes;
	s->notes[s->notes_len++] = note;
	s->notes[s->notes_len] = NULL;
	return 0;
}

/* sha256: of its text, in hexadecimal; NULL: it has none. */
static int add_source(struct session *s, const char *source, const char *path, const char *sha256)
{
	struct report_source *list = realloc(s->sources, (s->sources_len + 1) * sizeof *s->sources);
	char *copy = strdup(path);
	if (list)
		s->sources = list;
	if (!list || !copy) {
		free(copy);
		return -ENOMEM;
	}
	struct report_source *one = &s->sources[s->sources_len++];
	*one = (struct report_source){.source = source, .path = copy};
	if (sha256)
		snprintf(one->sha256, sizeof(one->sha256), "%s", sha256);
	return 0;
}

static int add_text(struct session *s, const char *source, const char *path, const struct buf *text)
{
	char sha256[65];
	report_sha256(buf_str(text), text->len, sha256);
	return add_source(s, source, path, sha256);
}

struct policy_vars session_vars(const struct session *s, char *const *env)
{
	return (struct policy_vars){.home = s->home,
				    .project = s->project.dir,
				    .tmpdir = session_tmpdir(s),
				    .env = env};
}

/* must: a file that the user named has to exist. */
static int add_file(struct session *s, const char *file, enum rule_source source, const char *word,
		    const struct policy_vars *vars, bool must, struct policy_error *e)
{
	struct buf text = {0};
	int err = policyfile_read(file, policyfile_place(source), &text, e);
	if (err == -ENOENT && !must) {
		err = 0;
	} else if (!err) {
		err = policyfile_parse(s->policy, file, buf_str(&text), text.len, source, vars, e);
		if (err == -EINVAL)
			policyfile_add_remedy(file, source, e);
		else if (!err)
			err = add_text(s, word, file, &text);
	}
	buf_free(&text);
	return err;
}

static bool listed(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static int add_preset(struct session *s, const char *name, const struct policy_vars *vars,
		      struct policy_error *e)
{
	int err;
	if (!strcmp(name, "project")) {
		char *note = NULL;
		err = preset_add_project(s->policy, &s->project, vars, &note, e);
		if (!err)
			err = session_note(s, note);
	} else {
		err = preset_add(s->policy, name, vars, e);
	}
	const struct preset_text *t = preset_find(name);
	if (!err)
		err = add_source(s, "preset", name, t ? t->sha256 : NULL);
	return err;
}

static bool is_default_preset(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(default_presets); i++)
		if (!strcmp(name, default_presets[i]))
			return true;
	return false;
}

/* To drop what is not there is a slip of the pen: what was meant would stay on. */
static int check_dropped(const struct session_options *o, struct policy_error *e)
{
	for (char *const *p = o->no_presets; p && *p; p++) {
		struct buf text = {0};
		struct nearname near = nearname_begin(*p);
		if (is_default_preset(*p))
			continue;
		buf_add_str(&text, "--no-preset: expected one of those that are on by default (");
		for (size_t i = 0; i < ARRAY_LEN(default_presets); i++) {
			nearname_try(&near, default_presets[i]);
			buf_addf(&text, "%s%s", i ? " " : "", default_presets[i]);
		}
		buf_add_str(&text, "), not '");
		escape_add_str(&text, *p);
		buf_add_char(&text, '\'');
		nearname_add(&text, &near, "");
		snprintf(e->text, sizeof(e->text), "%s", buf_str(&text));
		buf_free(&text);
		return -EINVAL;
	}
	return 0;
}

/* An error says which option it is about. */
static int add_asked_preset(struct session *s, const char *name, const struct policy_vars *vars,
			    struct policy_error *e)
{
	int err = add_preset(s, name, vars, e);
	struct policy_error bare = *e;
	return err ? policyfile_fail(e, err, "--preset: %s", bare.text) : 0;
}

static int add_presets(struct session *s, const struct session_options *o,
		       const struct policy_vars *vars, struct policy_error *e)
{
	int err = check_dropped(o, e);
	for (size_t i = 0; !err && !o->no_default_presets && i < ARRAY_LEN(default_presets); i++)
		if (!listed(o->no_presets, default_presets[i]))
			err = add_preset(s, default_presets[i], vars, e);
	for (char *const *p = o->presets; !err && p && *p; p++)
		err = add_asked_preset(s, *p, vars, e);
	return err;
}

static int add_saved(struct session *s, const struct policy_vars *vars, struct policy_error *e)
{
	char *user AUTOFREE = store_user_policy(&s->store);
	char *project AUTOFREE = store_project_policy(&s->store, &s->project);
	if (!user || !project)
		return -ENOMEM;
	int err = add_file(s, user, RULE_USER, "user", vars, false, e);
	if (!err)
		err = add_file(s, project, RULE_PROJECT, "project", vars, false, e);
	return err;
}

/* What was accepted of the project's own proposal, and what it takes away. */
static int add_proposal(struct session *s, const struct policy_vars *vars, struct policy_error *e)
{
	struct proposal p;
	char *note = NULL;
	int err = proposal_open(&s->store, &s->project, &p, e);
	if (err)
		return err;
	err = proposal_apply(&p, s->policy, vars, &note, e);
	if (!err)
		err = session_note(s, note);
	if (!err && p.accepted)
		err = add_text(s, "project", p.accepted_file, &p.old);
	proposal_release(&p);
	return err;
}

/* What is refused stays refused under the other names that bind mounts give it. */
static int add_other_names(struct session *s, struct policy_error *e)
{
	struct buf text = {.max = MOUNTINFO_MAX};
	int fd AUTOCLOSE = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : buf_read_from(fd, &text);
	if (!err)
		err = mounts_add_rules(s->policy, buf_str(&text));
	buf_free(&text);
	return err ? policyfile_fail(e, err, "the mounts can't be looked through: %s",
				     strerror(-err))
		   : 0;
}

/* Where the presets speak of some two hundred names, of which few are there. */
static void list_home(const struct session *s, struct pathwalk *w)
{
	char config[PATH_MAX];
	if (!s->home)
		return;
	pathwalk_list(w, s->home);
	if (snprintf(config, sizeof(config), "%s/.config", s->home) < (int)sizeof(config))
		pathwalk_list(w, config);
}

static int add_texts(struct session *s, const struct session_options *o,
		     const struct policy_vars *vars, struct policy_error *e)
{
	int err = add_presets(s, o, vars, e);
	if (!err && !o->policy_files)
		err = add_saved(s, vars, e);
	if (!err && !o->policy_files)
		err = add_proposal(s, vars, e);
	for (char *const *f = o->policy_files; !err && f && *f; f++)
		err = add_file(s, *f, RULE_FILE, "file", vars, true, e);
	for (char *const *l = o->rule_lines; !err && l && *l; l++) {
		err = policyfile_parse_line(s->policy, *l, RULE_LINE, vars, e);
		if (!err)
			err = add_source(s, "command line", *l, NULL);
	}
	if (!err && s->named.answers)
		err = add_file(s, s->named.answers, RULE_ANSWER, "session", vars, false, e);
	return err;
}

/* Takes the text: a note for each line of it. */
static int add_notes(struct session *s, struct buf *lines)
{
	int err = buf_error(lines);
	for (const char *at = buf_str(lines); !err && *at;) {
		size_t n = strcspn(at, "\n");
		char *line = strndup(at, n);
		err = line ? session_note(s, line) : -ENOMEM;
		at += n + 1;
	}
	buf_free(lines);
	return err;
}

static int note_missing(struct session *s)
{
	struct buf lines = {0};
	missing_add_all(&lines, s->policy);
	return add_notes(s, &lines);
}

static int add_rules(struct session *s, const struct session_options *o, struct policy_error *e)
{
	struct pathwalk walk = {0};
	struct policy_vars vars = session_vars(s, o->env);
	vars.walk = &walk;
	if (!o->no_default_presets)
		list_home(s, &walk);
	int err = store_protect(&s->store, s->policy);
	if (!err)
		err = terminals_forbid_ours(s->policy);
	if (!err)
		err = add_texts(s, o, &vars, e);
	pathwalk_release(&walk);
	if (!err)
		err = session_drop_doubtful(s);
	if (!err)
		err = add_other_names(s, e);
	if (!err)
		err = note_missing(s);
	return err;
}

/* For the next one, should this one be killed; and what those before left. */
static int note_tmpdir(struct session *s)
{
	struct buf lines = {0};
	const char *dir = s->store.state_dir;
	int err = tmpdirs_sweep(dir, &lines);
	if (!err)
		err = tmpdirs_note(dir, s->run, s->tmpdir, &s->tmpdir_note);
	if (err == -ENOMEM)
		return buf_free(&lines), err;
	if (err)
		buf_addf(&lines,
			 "%s/tmpdirs can't be used (%s): a temporary directory stays behind where "
			 "warder is killed\n",
			 dir, strerror(-err));
	return add_notes(s, &lines);
}

static int find_tmpdir(struct session *s, const struct session_options *o, struct policy_error *e)
{
	mode_t mode = 0700;
	int err = o->name ? named_tmpdir(&s->named, o->env, &s->tmpdir, &mode)
			  : environ_tmpdir_make(o->env, &s->tmpdir);
	if (err)
		return policyfile_fail(e, err, "no private temporary directory can be made: %s",
				       ownfile_strerror(err));
	if (!o->name && (err = note_tmpdir(s)))
		return policyfile_fail(e, err, "%s", strerror(-err));
	if (mode == 0700)
		return 0;
	struct buf b = {0};
	buf_addf(&b,
		 "an earlier command left the session's temporary directory with mode %04o; it "
		 "is 0700 again",
		 mode);
	return session_note(s, buf_take(&b));
}

static int find_place(struct session *s, const struct session_options *o, struct policy_error *e)
{
	s->cwd = realpath(".", NULL);
	if (!s->cwd)
		return policyfile_fail(e, -errno, "the current directory can't be resolved: %s",
				       strerror(errno));
	int err = store_open(o->env, &s->store, e);
	if (err)
		return err;
	s->home = s->store.home;
	const char *homes[] = {s->home, environ_get(o->env, "HOME"), NULL};
	err = project_find(s->cwd, o->project, homes, &s->project);
	if (err)
		return policyfile_fail(e, err, "the project directory %s: %s",
				       o->project ? "given by --project" : "can't be found",
				       strerror(-err));
	if (o->name && (err = session_share(s, o->name, e)))
		return err;
	if (o->tmp_shared) {
		const char *usual = environ_get(o->env, "TMPDIR");
		s->tmp_shared = realpath(usual && usual[0] == '/' ? usual : "/tmp", NULL);
		return 0;
	}
	return find_tmpdir(s, o, e);
}

static int make_id(char ret[33])
{
	unsigned char bytes[16];
	if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
		return -EIO;
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

int session_new(const struct session_options *o, struct session **ret, struct policy_error *e)
{
	struct session *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	e->text[0] = '\0';
	s->audit.fd = s->shared_fd = s->named.lock = s->tmpdir_note.fd = -1;
	s->label = o->label;
	s->saving = !o->policy_files;
	s->allow_degraded = o->allow_degraded;
	int err = make_id(s->run);
	if (!err)
		err = loop_new(&s->loop);
	if (!err)
		err = policy_new(&s->policy);
	if (!err)
		err = find_place(s, o, e);
	if (!err)
		err = add_rules(s, o, e);
	if (!err && !o->asks_only &&
	    (err = audit_open(s->store.state_dir, s->run, s->label, &s->audit)))
		policyfile_fail(e, err,
				"the audit in %s can't be opened: %s; XDG_STATE_HOME can name "
				"another place",
				s->store.state_dir,
				ownfile_strerror(err == -ENOENT && s->store.state_error
							 ? s->store.state_error
							 : err));
	if (err) {
		if (!e->text[0])
			policyfile_fail(e, err, "%s", strerror(-err));
		session_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

static void free_list(char **list)
{
	for (char **p = list; p && *p; p++)
		free(*p);
	free(list);
}

int session_remove_tmpdir(struct session *s)
{
	int err = s->tmpdir && !s->named.dir && !s->tmpdir_removed ? rmtree_remove(s->tmpdir) : 0;
	s->tmpdir_removed = true;
	tmpdirs_forget(&s->tmpdir_note);
	return err;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	(void)session_remove_tmpdir(s);
	session_unshare(s);
	free(s->tmpdir);
	free(s->tmp_shared);
	pool_free(s->pool);
	free(s->cwd);
	free_list(s->notes);
	for (size_t i = 0; i < s->sources_len; i++)
		free(s->sources[i].path);
	free(s->sources);
	audit_close(&s->audit);
	policy_free(s->policy);
	project_release(&s->project);
	store_release(&s->store);
	loop_free(s->loop);
	free(s);
}

struct loop *session_loop(struct session *s)
{
	return s->loop;
}

const struct policy *session_policy(const struct session *s)
{
	return s->policy;
}

const struct store *session_store(const struct session *s)
{
	return &s->store;
}

const struct project *session_project(const struct session *s)
{
	return &s->project;
}

const char *session_tmpdir(const struct session *s)
{
	return s->tmpdir ? s->tmpdir : s->tmp_shared;
}

char *const *session_notes(const struct session *s)
{
	static char *const none[] = {NULL};
	return s->notes ? s->notes : none;
}

int session_add_rule(struct session *s, const struct rule *rule)
{
	int err = policy_add(s->policy, rule);
	if (!err)
		s->policy_version++;
	return err;
}

/* Making names in the project is the broker's where the project is not all the same. */
static bool pool_helps(const struct session *s)
{
	const char *dir = s->project.dir;
	struct reach below;

	reach_of(s->policy, dir, &below);
	return (below.varies & (ACCESS_CREATE | ACCESS_MOVE | ACCESS_WRITE | ACCESS_READ)) &&
	       reach_of_stranger(s->policy, dir, ACCESS_CREATE) == EFFECT_ALLOW;
}

static int forbid_pool(struct session *s)
{
	const char *dir = pool_directory(s->pool);
	struct rule rule = {.effect = EFFECT_FORBID,
			    .kind = RULE_TREE,
			    .source = RULE_BUILTIN,
			    .access = ACCESS_ALL,
			    .path = (char *)dir,
			    .origin = (char *)"warder's own files"};
	struct reach below;

	reach_of(s->policy, dir, &below);
	return below.forbid == ACCESS_ALL ? 0 : session_add_rule(s, &rule);
}

struct pool *session_pool(struct session *s)
{
	char *above AUTOFREE = NULL;

	if (s->pool_tried)
		return s->pool;
	s->pool_tried = true;
	if (s->project.too_wide || !pool_helps(s) || !(above = strdup(s->project.dir)))
		return NULL;
	*(strrchr(above, '/') + (strrchr(above, '/') == above)) = '\0';
	if (pool_new(s->store.state_dir, above, s->project.dir, s->policy, &s->pool))
		return NULL;
	if (forbid_pool(s)) {
		pool_free(s->pool);
		s->pool = NULL;
	}
	return s->pool;
}

int session_grant(struct session *s, const struct rule *rule)
{
	struct rule answer = *rule;
	answer.source = RULE_ANSWER;
	return session_add_rule(s, &answer);
}

size_t session_revoke(struct session *s, const char *path)
{
	size_t removed = 0;
	for (size_t i = 0; i < policy_len(s->policy);) {
		const struct rule *r = policy_at(s->policy, i);
		if (r->source != RULE_ANSWER || strcmp(r->path, path) != 0) {
			i++;
			continue;
		}
		struct rule copy = *r;
		size_t n = policy_remove(s->policy, &copy);
		if (!n)
			i++;
		removed += n;
	}
	if (removed)
		s->policy_version++;
	return removed;
}
