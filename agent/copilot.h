/*
 * copilot: who we are to GitHub Copilot, and with which bearer.
 *
 * The bearer is a ready one, or a GitHub token is exchanged for one, which lives about half an
 * hour: it is renewed before that, and once after a 401. A fine-grained token is the bearer itself,
 * and so is one of an application that GitHub does not exchange. The API is undocumented, so
 * everything that names us is configuration. A bearer is only ever sent over https, or to this
 * machine.
 */
#pragma once

#include "agent/asker.h"
#include "agent/github.h"

#define COPILOT_INTEGRATION_ID	   "vscode-chat"
#define COPILOT_DIRECT_INTEGRATION "copilot-developer-cli" /* for tokens as they are */
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
	struct github github;
	char *token, *source;	    /* NULL where the bearer is a ready one */
	bool direct;		    /* the token is the bearer */
	struct copilot_grant grant; /* {0} before the first exchange */
	char *previous;		    /* the bearer before: a server may still speak of it */
	int64_t granted_ms;	    /* CLOCK_BOOTTIME, so that a suspended machine ages too */
};

/*
 * Find the credential; contacts nobody. 0, or -EIO / -ENOMEM with *ret_error, and then nothing to
 * free.
 */
int copilot_init(struct copilot *c, struct provider_config *config,
		 struct provider_error *ret_error);
void copilot_free(struct copilot *c);

/* As asker_endpoint.prepare; asker does the exchange's request. May block. */
int copilot_prepare(struct copilot *c, struct asker *asker, const struct provider_request *req,
		    bool renew, char **ret_base, struct http_headers *headers,
		    struct provider_error *ret_error);
/*
 * GET one JSON value of GitHub's own API with the token (c->token is not NULL), once. As
 * asker_fetch().
 */
int copilot_ask_github(const struct copilot *c, struct asker *asker, const char *path,
		       const volatile sig_atomic_t *cancel, struct json **ret_root,
		       struct provider_error *ret_error);
/* What GitHub says of the account's quotas, as one line without an end. */
void copilot_write_quota(const struct json *root, struct buf *out);
/* As asker_endpoint.source and .redact; as chat_judge. */
const char *copilot_source(const struct copilot *c);
void copilot_redact(const struct copilot *c, char *text);
void copilot_judge(const struct json *listed, struct provider_model *m);

/*
 * Read GitHub's answer; now_s is the time of day, base the API's URL where none is named. 0, or
 * -EINVAL with *ret_why, a constant, or -ENOMEM.
 */
int copilot_read_grant(const struct json *root, int64_t now_s, const char *base,
		       struct copilot_grant *ret, const char **ret_why);
void copilot_grant_free(struct copilot_grant *g);
/* The API's base URL that a bearer itself names ("…;proxy-ep=proxy.X;…"), else `otherwise`. */
char *copilot_base_of(const char *bearer, const char *otherwise);
