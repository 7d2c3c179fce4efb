/*
 * github: which GitHub is meant: github.com, an enterprise's own host (NAME.ghe.com), or base URLs
 * that somebody configured (tests, proxies). Pure.
 */
#pragma once

#define GITHUB_HOST "github.com"

struct github {	       /* strings are owned; {0} is empty */
	char *host;    /* whose tokens fit: "github.com", or "127.0.0.1:8080" */
	char *web;     /* base URL of the pages where one signs in */
	char *api;     /* base URL of its REST API */
	char *copilot; /* base URL of Copilot's API, where nobody names another */
};

/*
 * Each may be NULL: not set. What is set stands, the rest follows from it; nothing set is
 * github.com. 0; -EINVAL: the host is no host's name, or a URL none; -ENOMEM.
 */
int github_make(const char *host, const char *web, const char *api, struct github *ret);
void github_release(struct github *g);
