/*
 * provider: whoever answers a conversation with the next assistant message.
 *
 * Three of them: copilot (GitHub Copilot), openai (any OpenAI-compatible endpoint) and script (a
 * file of answers). A provider is used by one thread; turn() and models() block until the answer
 * is there, it failed, or *cancel became nonzero (noticed within about 0.1 s).
 *
 * What a model or a server said (message texts, deltas, error texts) is passed on as bytes:
 * whoever shows it escapes it. No text holds a credential.
 */
#pragma once

#include "agent/convo.h"
#include "agent/token.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum provider_kind {
	PROVIDER_AUTO, /* see provider_pick() */
	PROVIDER_COPILOT,
	PROVIDER_OPENAI,
	PROVIDER_SCRIPT,
};

/* ---- errors ---- */

enum provider_error_kind {
	PROVIDER_FAIL_NONE,
	PROVIDER_FAIL_CANCELLED, /* *cancel was raised */
	PROVIDER_FAIL_CONFIG,	 /* no token, no model, a bad URL, a script with a syntax error */
	PROVIDER_FAIL_AUTH,	 /* the token was refused */
	PROVIDER_FAIL_QUOTA,	 /* nothing left to spend: waiting a little does not help */
	PROVIDER_FAIL_RATE,	 /* too many requests: waiting helps */
	PROVIDER_FAIL_MODEL,	 /* this model can't be used (here) */
	PROVIDER_FAIL_ELSEWHERE, /* it is asked by another of the server's endpoints */
	PROVIDER_FAIL_REQUEST,	 /* the server calls the request wrong */
	PROVIDER_FAIL_LENGTH,	 /* the conversation is longer than the model or the server takes */
	PROVIDER_FAIL_SERVER,	 /* the server failed */
	PROVIDER_FAIL_TRANSPORT, /* no connection, or it broke or stalled */
	PROVIDER_FAIL_PROTOCOL,	 /* the answer can't be understood */
	PROVIDER_FAIL_END,	 /* the script has no more answers */
	PROVIDER_FAIL_INTERNAL,	 /* no memory */
};

/* Plain data: may be copied, nothing to free. */
struct provider_error {
	enum provider_error_kind kind;
	char text[1024];      /* one sentence that says what to do; behind it the server's own words
				 and the request id */
	char request_id[128]; /* "" where there is none */
	int status;	      /* HTTP; 0: no answer came */
	bool retryable;	      /* the same request may succeed later */
	bool unasked;	   /* it was on the way to a credential: the server itself was not asked */
	int retry_after_s; /* what the server asked for; -1: nothing */
};

/* ---- one turn ---- */

enum provider_initiator {
	PROVIDER_BY_USER,  /* the first request after the user's words */
	PROVIDER_BY_AGENT, /* one that carries tool results */
};

struct provider_request {
	const struct convo *convo; /* never changed: a failed turn loses nothing */
	const char *tools_json;	   /* the whole "tools" array; NULL: no tools */
	const char *model;	   /* NULL: the provider's own choice */
	enum provider_initiator initiator;
	const volatile sig_atomic_t *cancel; /* may be NULL */
};

struct provider_usage { /* tokens; -1: not told */
	int64_t prompt;
	int64_t cached; /* of the prompt's */
	int64_t completion;
};

/* Any function may be NULL. What they are given is on loan for the call. */
struct provider_sink {
	void *arg;
	/* The next piece of the assistant's text (n > 0). All pieces make up the message's text. */
	void (*on_text)(void *arg, const char *bytes, size_t n);
	/* One line for a human: a wait before a retry, an answer that was cut off. */
	void (*on_status)(void *arg, const char *line);
	void (*on_usage)(void *arg, const struct provider_usage *usage);
};

/* ---- models ---- */

struct provider_model {
	char *id;
	char *name;	     /* for humans; may equal id */
	bool usable;	     /* chats, calls tools, at an endpoint that we speak; not disabled */
	bool preferred;	     /* the server's own default */
	int64_t context;     /* tokens; -1: not told */
	bool needs_enabling; /* listed, but its terms were not accepted in the account */
	bool hidden;	     /* the server's own pickers leave it out */
	bool responses_only; /* asked by /responses, not by /chat/completions */
};

struct provider_models { /* {0} is empty */
	struct provider_model *items;
	size_t n;
};

void provider_models_free(struct provider_models *m);

/* ---- the interface ---- */

struct provider;

struct provider_ops {
	const char *name; /* "copilot" */
	/*
	 * Ask for the next assistant message. 0 and *ret_message (the caller's); or -ECANCELED,
	 * -EIO, -ENOMEM with *ret_error filled and *ret_message untouched. Failures that waiting
	 * can cure are retried a few times before (never once text was shown), each told by
	 * on_status.
	 */
	int (*turn)(struct provider *p, const struct provider_request *req,
		    const struct provider_sink *sink, struct convo_message *ret_message,
		    struct provider_error *ret_error);
	/* List the models, in the server's order. Errors as turn's. */
	int (*models)(struct provider *p, const volatile sig_atomic_t *cancel,
		      struct provider_models *ret, struct provider_error *ret_error);
	/*
	 * What is left to spend, as one line in *out, foreign bytes in it. NULL: nobody knows; so
	 * does -ENOTSUP (*ret_error untouched). Errors as turn's.
	 */
	int (*quota)(struct provider *p, const volatile sig_atomic_t *cancel, struct buf *out,
		     struct provider_error *ret_error);
	/*
	 * Accept a model's terms for the account (needs_enabling): only on the user's own word.
	 * NULL: there is no such thing here. Errors as turn's.
	 */
	int (*enable)(struct provider *p, const char *model, const volatile sig_atomic_t *cancel,
		      struct provider_error *ret_error);
	void (*free)(struct provider *p);
};

struct provider {
	const struct provider_ops *ops;
};

/* NULL is fine. */
void provider_free(struct provider *p);

/* ---- configuration ---- */

/* Each string is owned and may be NULL (not set); freed, and wiped, by provider_config_free(). */
struct provider_config {
	enum provider_kind kind;
	char *model;	       /* WARDER_MODEL */
	char *endpoint;	       /* WARDER_ENDPOINT: base URL, for copilot and openai */
	char *openai_base_url; /* OPENAI_BASE_URL, where endpoint is not set */
	char *openai_key;      /* OPENAI_API_KEY */
	char *copilot_bearer;  /* WARDER_COPILOT_TOKEN: a ready API bearer */
	/* In the order they are tried. */
	char *github_tokens[3];	 /* COPILOT_GITHUB_TOKEN, GH_TOKEN, GITHUB_TOKEN */
	char *stored_token_path; /* what `warder login` keeps; set by the caller */
	char *gh_path;		 /* the program gh in PATH */
	char *const *gh_env;	 /* its environment, on loan */
	char *editors_dir;	 /* ${XDG_CONFIG_HOME:-~/.config}/github-copilot */
	char *github_host;	 /* COPILOT_GH_HOST, GH_HOST; without any: github.com, or where
				    the stored token is for */
	char *github_api;	 /* WARDER_GITHUB_API, and */
	char *github_web;	 /* WARDER_GITHUB_WEB: base URLs instead of the host's own */
	char *ca_file;		 /* CURL_CA_BUNDLE, SSL_CERT_FILE */
	char *ca_dir;		 /* SSL_CERT_DIR */
	char *script_path;	 /* --script; set by the caller */
	const char *script_text; /* the embedded script, on loan; set by the caller, where it
				    may stand for a model */

	/*
	 * What Copilot is told we are (WARDER_COPILOT_INTEGRATION_ID, _EDITOR_VERSION,
	 * _PLUGIN_VERSION, _INTENT, _API_VERSION); NULL: warder/VERSION and the values of open
	 * clients; "": the header is left out.
	 */
	char *integration_id;
	char *editor_version;
	char *editor_plugin_version;
	char *intent;
	char *github_api_version;

	/* The GitHub token, once provider_find_token() looked for it. */
	struct token token;
	int token_error; /* as token_find() */
	bool token_sought;

	/* 0: the defaults of provider_chat.h. */
	unsigned connect_timeout_s;
	unsigned stall_timeout_s; /* without a byte */
	int retries;		  /* -1: none */
	unsigned backoff_ms;	  /* the first wait; doubles */
};

/* Fill from the environment: the one place in this room that reads it. 0 or -ENOMEM. */
int provider_config_from_env(struct provider_config *ret);
void provider_config_free(struct provider_config *c);
/* Replace one owned string by a copy of value (NULL: unset). 0 or -ENOMEM. */
int provider_config_set(char **field, const char *value);

/*
 * Which provider `kind` AUTO means: script where script_path is set; copilot where a bearer is
 * set; openai where endpoint is (the caller sets kind to OPENAI for --endpoint); copilot where a
 * GitHub token is found; openai where OPENAI_BASE_URL or OPENAI_API_KEY is set; else script, the
 * embedded one.
 */
enum provider_kind provider_pick(struct provider_config *c);
/* That none is set up, in words, with the token that is no account where there is one. */
const char *provider_no_account(const struct provider_config *c);
/*
 * Look for a GitHub token into c->token, once: as token_find(), for the host that c names. May
 * block some seconds, where gh is asked. -EINVAL also: the host or its URLs are none; then
 * c->token.source is NULL.
 */
int provider_find_token(struct provider_config *c);
/*
 * The GitHub that c names; where it names none, the one that the found token is for. As
 * github_make().
 */
int provider_github(const struct provider_config *c, struct github *ret);
/*
 * Make the provider that provider_pick() names. The config is copied from, not kept, except
 * script_text; 0 and *ret (to provider_free), or -EIO / -ENOMEM with *ret_error. Contacts nobody.
 */
int provider_open(struct provider_config *c, struct provider **ret,
		  struct provider_error *ret_error);

/* The three of them, by themselves. */
int provider_openai_open(const struct provider_config *c, struct provider **ret,
			 struct provider_error *ret_error);
int provider_copilot_open(struct provider_config *c, struct provider **ret,
			  struct provider_error *ret_error);
/*
 * One assistant message in the chat-completions form a line; empty lines are skipped. Everything
 * is read and checked here: a syntax error is "FILE:LINE:COL: what was expected". A turn takes the
 * next line, whatever was asked. name stands for the text in errors.
 */
int provider_script_open(const char *path, struct provider **ret, struct provider_error *ret_error);
int provider_script_open_text(const char *name, const char *text, struct provider **ret,
			      struct provider_error *ret_error);

/* ---- for the providers themselves ---- */

/* Fill *ret (zeroed first, retry_after_s -1) and return err. */
int provider_fail(struct provider_error *ret, enum provider_error_kind kind, int err,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));
