/*
 * copilot: who we are to GitHub Copilot, and with which bearer.
 *
 * The bearer is a ready one, or a GitHub token is exchanged for one, which lives about half an
 * hour: it is renewed before that, and once after a 401. The API is undocumented, so everything
 * that names us is configuration. A bearer is only ever sent over https, or to this machine.
 */
#pragma once

#include "agent/provider_chat.h"
#include "agent/token.h"

#define COPILOT_API		   "https://api.githubcopilot.com"
#define COPILOT_GITHUB_API	   "https://api.github.com"
#define COPILOT_INTEGRATION_ID	   "vscode-chat"
#define COPILOT_EDITOR_VERSION	   "warder/" WARDER_VERSION
#define COPILOT_INTENT		   "conversation-edits"
#define COPILOT_GITHUB_API_VERSION "2025-04-01"

/* What GitHub gives for a token. Strings are owned: copilot_grant_free(). */
struct copilot_grant {
	char *bearer;
	char *base;	       /* the API's base URL */
	int64_t lifetime_s;    /* from now; at least 0 */
	int64_t renew_after_s; /* from now; before the end */
};

struct copilot {
	struct provider_config config; /* its own copies; kind, script and timeouts unused */
	struct token token;	       /* {0} where the bearer is a ready one */
	struct copilot_grant grant;    /* {0} before the first exchange */
	int64_t granted_ms;	       /* CLOCK_BOOTTIME, so that a suspended machine ages too */
};

/*
 * Find the credential; contacts nobody. 0, or -EIO / -ENOMEM with *ret_error, and then nothing to
 * free.
 */
int copilot_init(struct copilot *c, const struct provider_config *config,
		 struct provider_error *ret_error);
void copilot_free(struct copilot *c);

/* As chat_endpoint.prepare; chat does the exchange's request. May block. */
int copilot_prepare(struct copilot *c, struct chat *chat, const struct provider_request *req,
		    bool renew, char **ret_base, struct http_headers *headers,
		    struct provider_error *ret_error);
/* As chat_endpoint.source, .redact, .judge. */
const char *copilot_source(const struct copilot *c);
void copilot_redact(const struct copilot *c, char *text);
void copilot_judge(const struct json *listed, struct provider_model *m);

/*
 * Read GitHub's answer; now_s is the time of day. 0, or -EINVAL with *ret_why, a constant, or
 * -ENOMEM.
 */
int copilot_read_grant(const struct json *root, int64_t now_s, struct copilot_grant *ret,
		       const char **ret_why);
void copilot_grant_free(struct copilot_grant *g);
/* The API's base URL that a bearer itself names ("…;proxy-ep=proxy.X;…"), else COPILOT_API. */
char *copilot_base_of(const char *bearer);
