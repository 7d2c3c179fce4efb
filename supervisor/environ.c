#include "supervisor/environ.h"

#include "supervisor/redact.h"
#include "tracer/buf.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* zsh's here-documents go to TMPPREFIX, the rest of the world uses the others. */
static const char *const tmp_names[] = {"TMPDIR", "TMP", "TEMP", "TMPPREFIX"};

const char *environ_get(char *const *env, const char *name)
{
	size_t n = strlen(name);
	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static bool names(const char *entry, const char *name)
{
	size_t n = strlen(name);
	return !strncmp(entry, name, n) && entry[n] == '=';
}

static bool is_taken_out(const char *entry, char *const *scrub, bool scrub_secrets, bool tmp)
{
	for (; scrub && *scrub; scrub++)
		if (names(entry, *scrub))
			return true;
	for (size_t i = 0; tmp && i < ARRAY_LEN(tmp_names); i++)
		if (names(entry, tmp_names[i]))
			return true;
	if (!scrub_secrets)
		return false;
	if (!strncmp(entry, "WARDER_", 7))
		return true;
	char *name AUTOFREE = strndup(entry, strcspn(entry, "="));
	return !name || redact_is_secret_name(name);
}

char **environ_make(char *const *env, char *const *scrub, bool scrub_secrets, const char *tmpdir)
{
	size_t n = 0, len = 0;
	while (env && env[n])
		n++;
	char **list = calloc(n + ARRAY_LEN(tmp_names) + 1, sizeof *list);
	if (!list)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		if (is_taken_out(env[i], scrub, scrub_secrets, tmpdir != NULL))
			continue;
		list[len] = strdup(env[i]);
		if (!list[len++])
			goto fail;
	}
	for (size_t i = 0; tmpdir && i < ARRAY_LEN(tmp_names); i++) {
		struct buf b = {0};
		bool prefix = !strcmp(tmp_names[i], "TMPPREFIX");
		buf_addf(&b, "%s=%s%s", tmp_names[i], tmpdir, prefix ? "/zsh" : "");
		list[len] = buf_take(&b);
		if (!list[len++])
			goto fail;
	}
	return list;
fail:
	environ_free(list);
	return NULL;
}

void environ_free(char **env)
{
	for (char **e = env; e && *e; e++)
		free(*e);
	free(env);
}

int environ_tmpdir_make(char *const *env, char **ret)
{
	const char *base = environ_get(env, "TMPDIR");
	if (!base || base[0] != '/')
		base = "/tmp";
	char *real AUTOFREE = realpath(base, NULL);
	if (!real)
		real = realpath("/tmp", NULL);
	if (!real)
		return -errno;
	struct buf b = {0};
	buf_addf(&b, "%s/warder-XXXXXX", real);
	char *dir = buf_take(&b);
	if (!dir)
		return -ENOMEM;
	if (!mkdtemp(dir)) {
		int err = -errno;
		free(dir);
		return err;
	}
	*ret = dir;
	return 0;
}
