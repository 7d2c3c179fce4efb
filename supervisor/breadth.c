#include "supervisor/breadth.h"

#include "tracer/util.h"

#include <stdlib.h>
#include <string.h>

bool breadth_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n == 1)
		return path[0] == '/';
	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

static size_t components(const char *path, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += path[i] == '/' && i + 1 < n && path[i + 1] != '/';
	return count;
}

static bool starts_with(const char *path, size_t n, const char *dir)
{
	size_t len = strlen(dir);
	return n > len && !strncmp(path, dir, len) && path[len] == '/';
}

bool breadth_is_closed(const char *path, size_t n, const char *home)
{
	size_t depth = components(path, n);
	if (depth <= 1 || (depth == 2 && starts_with(path, n, "/home")))
		return true;
	return home && strlen(home) >= n && !strncmp(home, path, n) && (!home[n] || home[n] == '/');
}

/* A base directory that the user has elsewhere (XDG Base Directory Specification), or what is above
 * it. Presets mean them, too. */
static bool holds_a_base(const char *path, size_t n)
{
	static const char *const variables[] = {"XDG_CONFIG_HOME", "XDG_CACHE_HOME",
						"XDG_DATA_HOME", "XDG_STATE_HOME"};
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *base = getenv(variables[i]);
		if (base && base[0] == '/' && !strncmp(base, path, n) &&
		    (!base[n] || base[n] == '/'))
			return true;
	}
	return false;
}

bool breadth_is_wide(const char *path, size_t n, const char *home)
{
	static const char *const shared[] = {
		".config",    ".cache", ".local",    ".local/share", ".local/state", ".local/bin",
		".local/lib", ".ssh",	".gnupg",    ".aws",	     ".kube",	     ".docker",
		".mozilla",   "bin",	"Documents", "Downloads",    "Desktop",	     ".var/app",
	};
	static const char shm[] = "/dev/shm";
	if (breadth_is_closed(path, n, home) || holds_a_base(path, n) ||
	    (n == sizeof shm - 1 && !strncmp(path, shm, n)))
		return true;
	size_t depth = components(path, n);
	if (depth == 2 && (starts_with(path, n, "/usr") || starts_with(path, n, "/var") ||
			   starts_with(path, n, "/run")))
		return true;
	if (depth == 3 && (starts_with(path, n, "/run/user") || starts_with(path, n, "/usr/local")))
		return true;
	if (!home || !starts_with(path, n, home))
		return false;
	const char *below = path + strlen(home) + 1;
	size_t len = n - strlen(home) - 1;
	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		if (strlen(shared[i]) == len && !strncmp(below, shared[i], len))
			return true;
	return false;
}

bool breadth_is_volatile(const char *path)
{
	return breadth_is_below(path, "/proc") || breadth_is_below(path, "/dev/fd") ||
	       breadth_is_below(path, "/dev/pts");
}
