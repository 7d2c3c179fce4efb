#include "supervisor/store.h"

#include "supervisor/escape.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define STORE_PASSWD_MAX 16384

static int fault(struct policy_error *error, int r, const char *path, const char *what)
{
	struct buf text = {0};
	escape_add_str(&text, path);
	buf_addf(&text, ": %s", what);
	snprintf(error->text, sizeof(error->text), "%s", buf_str(&text));
	buf_free(&text);
	return r;
}

static const char *env_get(char *const *env, const char *name)
{
	size_t n = strlen(name);
	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=' && (*env)[n + 1])
			return *env + n + 1;
	return NULL;
}

static char *join(const char *dir, const char *name)
{
	struct buf out = {0};
	buf_addf(&out, "%s/%s", dir, name);
	return buf_take(&out);
}

/* ---- where things are ---- */

static bool is_ours(const char *dir)
{
	struct stat st;
	return stat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

/*
 * HOME counts only where it belongs to the effective user: under sudo it may still be the caller's,
 * and root's files in there would be the caller's to replace.
 */
char *store_home(char *const *env)
{
	const char *home = env_get(env, "HOME");
	if (home && home[0] == '/' && is_ours(home))
		return strdup(home);
	char block[STORE_PASSWD_MAX];
	struct passwd entry, *found = NULL;
	getpwuid_r(geteuid(), &entry, block, sizeof(block), &found);
	return found && found->pw_dir[0] == '/' ? strdup(found->pw_dir) : NULL;
}

int store_make_path(const char *path)
{
	char *copy AUTOFREE = strdup(path);
	if (!copy)
		return -ENOMEM;
	if (mkdir(path, 0700) == 0 || errno == EEXIST) /* as almost always */
		return 0;
	int first = 0; /* below it the rest is only not there */
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST && !first)
			first = -errno;
		*slash = '/';
	}
	if (mkdir(copy, 0700) == 0 || errno == EEXIST)
		return 0;
	return first ? first : -errno;
}

/* Ours, a directory, and closed to everybody else. */
static int check_dir(const char *dir, struct policy_error *error)
{
	int fd AUTOCLOSE = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd < 0 && (errno == ENOENT || errno == EACCES))
		return 0; /* it could not be made: there are no files of ours then */
	if (fd < 0 || fstat(fd, &st) < 0)
		return fault(error, -errno, dir, strerror(errno));
	if (st.st_uid != geteuid())
		return fault(error, -EPERM, dir, "belongs to another user");
	if ((st.st_mode & 077) && fchmod(fd, 0700) < 0 && errno != EROFS)
		return fault(error, -errno, dir, strerror(errno));
	return 0;
}

static int no_home(const char *set, const char *variable, struct policy_error *error)
{
	char text[160];
	if (!set || !*set) {
		snprintf(error->text, sizeof(error->text),
			 "there is no home directory: set HOME, or %s", variable);
		return -ENOENT;
	}
	snprintf(text, sizeof(text), "HOME is no directory of yours: set it to one, or set %s",
		 variable);
	return fault(error, -ENOENT, set, text);
}

static int find_base(const struct store *s, char *const *env, const char *variable,
		     const char *below, char **ret, struct policy_error *error)
{
	const char *value = env_get(env, variable);
	if (!value && !s->home)
		return no_home(env_get(env, "HOME"), variable, error);
	if (value && value[0] != '/')
		return fault(error, -EINVAL, value,
			     "expected an absolute path in the XDG variable");
	struct stat st;
	if (value && stat(value, &st) == 0 && st.st_uid != geteuid())
		return fault(error, -EPERM, value, "belongs to another user");
	*ret = value ? strdup(value) : join(s->home, below);
	return *ret ? 0 : -ENOMEM;
}

static int open_dir(struct store *s, char *const *env, const char *variable, const char *below,
		    char **ret, int *ret_made, struct policy_error *error)
{
	char *base AUTOFREE = NULL;
	int r = find_base(s, env, variable, below, &base, error);
	if (r < 0)
		return r;
	char *dir AUTOFREE = join(base, "warder");
	char *real AUTOFREE = NULL;
	char *links AUTOFREE = NULL;
	size_t len = 0;
	r = dir ? policyfile_canonical_links(dir, &real, &links, &len) : -ENOMEM;
	buf_add(&s->links, links ? links : "", len);
	if (r == 0)
		r = buf_error(&s->links);
	if (r < 0)
		return fault(error, r, base, strerror(-r));
	*ret_made = store_make_path(real); /* where possible */
	r = check_dir(real, error);
	if (r == 0)
		*ret = TAKE_PTR(real);
	return r;
}

int store_open(char *const *env, struct store *ret, struct policy_error *ret_error)
{
	struct store s = {.home = store_home(env)};
	ret_error->text[0] = '\0';
	int made;
	int r = open_dir(&s, env, "XDG_CONFIG_HOME", ".config", &s.config_dir, &made, ret_error);
	if (r == 0)
		r = open_dir(&s, env, "XDG_STATE_HOME", ".local/state", &s.state_dir,
			     &s.state_error, ret_error);
	if (r < 0) {
		if (!ret_error->text[0])
			snprintf(ret_error->text, sizeof(ret_error->text), "%s", strerror(-r));
		store_release(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void store_release(struct store *s)
{
	free(s->home);
	free(s->config_dir);
	free(s->state_dir);
	buf_free(&s->links);
	*s = (struct store){0};
}

char *store_user_policy(const struct store *s)
{
	return join(s->config_dir, "policy");
}

char *store_project_policy(const struct store *s, const struct project *p)
{
	struct buf out = {0};
	buf_addf(&out, "%s/projects/%s.policy", s->config_dir, p->slug);
	return buf_take(&out);
}

static int forbid(struct policy *p, enum rule_kind kind, uint32_t access, const char *path)
{
	struct rule rule = {.effect = EFFECT_FORBID,
			    .kind = kind,
			    .source = RULE_BUILTIN,
			    .access = access,
			    .path = (char *)path,
			    .origin = "warder's own files"};
	return policy_add(p, &rule);
}

int store_protect(const struct store *s, struct policy *p)
{
	int r = forbid(p, RULE_TREE, ACCESS_ALL, s->config_dir);
	if (r == 0)
		r = forbid(p, RULE_TREE, ACCESS_ALL, s->state_dir);
	for (size_t at = 0; r == 0 && at < s->links.len; at += strlen(s->links.data + at) + 1)
		r = forbid(p, RULE_EXACT, ACCESS_W, s->links.data + at);
	return r;
}
