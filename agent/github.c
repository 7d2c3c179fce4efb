#include "agent/github.h"

#include "tracer/util.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

void github_release(struct github *g)
{
	free(g->host);
	free(g->web);
	free(g->api);
	free(g->copilot);
	*g = (struct github){0};
}

static bool is_host(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && !strchr(".-:[]", s[i]))
			return false;
	return n && s[0] != '-' && s[0] != '.';
}

/* The host that a base URL stands for: https://api.NAME is NAME's. NULL: no URL, or no memory. */
static char *host_of(const char *url)
{
	const char *at = strstr(url, "://");
	if (!at)
		return NULL;
	at += 3;
	if (!strncmp(at, "api.", 4))
		at += 4;
	size_t n = strcspn(at, "/?#");
	return is_host(at, n) ? strndup(at, n) : NULL;
}

static bool is_local(const char *url)
{
	return !strncmp(url, "http://", 7);
}

static int format(char **ret, const char *before, const char *host)
{
	return asprintf(ret, "https://%s%s", before, host) < 0 ? (*ret = NULL, -ENOMEM) : 0;
}

static int fill(struct github *g)
{
	bool is_github = !strcmp(g->host, GITHUB_HOST);
	int err = g->web ? 0 : format(&g->web, "", g->host);
	/* A server of our own machine is one for everything. */
	if (!err && !g->api && is_local(g->web))
		err = (g->api = strdup(g->web)) ? 0 : -ENOMEM;
	else if (!err && !g->api)
		err = format(&g->api, "api.", g->host);
	if (err)
		return err;
	if (is_github || is_local(g->api))
		return format(&g->copilot, "", "api.githubcopilot.com");
	return format(&g->copilot, "copilot-api.", g->host);
}

int github_make(const char *host, const char *web, const char *api, struct github *ret)
{
	struct github g = {0};
	int err = 0;
	if (host)
		err = is_host(host, strlen(host)) ? 0 : -EINVAL;
	if (!err && web)
		err = (g.web = strdup(web)) ? 0 : -ENOMEM;
	if (!err && api)
		err = (g.api = strdup(api)) ? 0 : -ENOMEM;
	if (!err && !host && !web && !api)
		host = GITHUB_HOST;
	if (!err) {
		g.host = host ? strdup(host) : host_of(web ? web : api);
		err = g.host ? 0 : host ? -ENOMEM : -EINVAL;
	}
	err = err ?: fill(&g);
	if (err)
		github_release(&g);
	else
		*ret = g;
	return err;
}
