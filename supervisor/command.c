#include "supervisor/command.h"

#include "supervisor/environ.h"
#include "supervisor/exec_chain.h"
#include "supervisor/policyfile.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the C library searches where PATH is unset (confstr _CS_PATH). */
#define DEFAULT_PATH "/bin:/usr/bin"

static char *join(const char *dir, size_t dir_len, const char *name)
{
	struct buf b = {0};
	buf_add(&b, dir, dir_len);
	if (dir_len && dir[dir_len - 1] != '/')
		buf_add_char(&b, '/');
	buf_add_str(&b, name);
	return buf_take(&b);
}

/* An absolute form of a path, for our own looking; the command gets what was written. */
static char *absolute(const char *cwd, const char *path)
{
	if (path[0] == '/' || !cwd)
		return strdup(path);
	return join(cwd, strlen(cwd), path);
}

/* HIDDEN: it stands in a directory that may not be searched, if at all. */
enum found { FOUND_NOT, FOUND_HIDDEN, FOUND_UNUSABLE, FOUND_RUNNABLE };

static enum found look(const char *cwd, const char *path)
{
	struct stat st;
	char *abs AUTOFREE = absolute(cwd, path);
	if (!abs || stat(abs, &st))
		return errno == EACCES ? FOUND_HIDDEN : FOUND_NOT;
	if (S_ISDIR(st.st_mode) || faccessat(AT_FDCWD, abs, X_OK, AT_EACCESS))
		return FOUND_UNUSABLE;
	return FOUND_RUNNABLE;
}

static int settle(struct command *c, enum found how, char *file)
{
	c->not_found = how == FOUND_NOT;
	c->not_executable = how == FOUND_UNUSABLE || how == FOUND_HIDDEN;
	if (how == FOUND_RUNNABLE)
		c->file = file;
	else
		free(file);
	return 0;
}

int command_find(const char *argv0, char *const *env, const char *cwd, struct command *ret)
{
	*ret = (struct command){0};
	if (strchr(argv0, '/') || !*argv0) {
		char *file = strdup(argv0);
		return file ? settle(ret, look(cwd, argv0), file) : -ENOMEM;
	}
	const char *path = environ_get(env, "PATH");
	if (!path)
		path = DEFAULT_PATH;
	enum found best = FOUND_NOT;
	for (const char *p = path;; p++) {
		size_t len = strcspn(p, ":");
		char *file = len ? join(p, len, argv0) : join("./", 2, argv0);
		if (!file)
			return -ENOMEM;
		enum found how = look(cwd, file);
		if (how == FOUND_RUNNABLE)
			return settle(ret, how, file);
		free(file);
		if (how == FOUND_UNUSABLE)
			best = how;
		p += len;
		if (!*p)
			break;
	}
	return settle(ret, best, NULL);
}

void command_release(struct command *c)
{
	free(c->file);
	*c = (struct command){0};
}

static int allow_one(const char *path, struct policy *p)
{
	if (policy_decide_all(p, path, ACCESS_READ | ACCESS_EXEC, NULL).effect == EFFECT_ALLOW)
		return 0;
	char origin[] = "the command itself", name[PATH_MAX];
	if (strlen(path) >= sizeof name)
		return -ENAMETOOLONG;
	strcpy(name, path);
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = RULE_EXACT,
			    .source = RULE_BUILTIN,
			    .access = ACCESS_READ | ACCESS_EXEC,
			    .path = name,
			    .origin = origin};
	return policy_add(p, &rule);
}

int command_allow(const char *file, const char *cwd, struct policy *p)
{
	char next[PATH_MAX];
	if (strlen(file) >= sizeof next)
		return -ENAMETOOLONG;
	strcpy(next, file);
	for (int i = 0; i < EXEC_CHAIN_MAX; i++) {
		char *abs AUTOFREE = absolute(cwd, next);
		char *real AUTOFREE = abs ? realpath(abs, NULL) : NULL;
		if (!real)
			return errno == ENOMEM ? -ENOMEM : 0;
		int err = allow_one(real, p);
		if (err)
			return err;
		int fd AUTOCLOSE = open(real, O_PATH | O_CLOEXEC);
		if (fd < 0 || exec_chain_next(fd, next, sizeof next))
			return 0;
	}
	return 0;
}
