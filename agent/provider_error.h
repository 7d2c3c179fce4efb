/*
 * provider_error: what went wrong, in one sentence that says what to do (provider_errors.def).
 */
#pragma once

#include "agent/http.h"
#include "agent/provider.h"

enum error_where { ERROR_AT_ANY, ERROR_AT_COPILOT, ERROR_AT_EXCHANGE, ERROR_AT_LOGIN };

struct error_facts {
	enum error_where where;
	const struct http_response *response;
	const char *url;
	const char *model;	/* NULL: none was named */
	const char *source;	/* where the credential is from; NULL: not told */
	const char *request_id; /* the one we sent, for where none came back; NULL: none */
	const char *body;	/* the head of the body, n bytes */
	size_t body_len;
};

/* An answer with a status that is no success. Returns -EIO. */
int error_from_status(const struct error_facts *f, struct provider_error *ret);
/* http_perform() failed with err. Returns -ECANCELED, -ENOMEM or -EIO. */
int error_from_http(const struct error_facts *f, int err, struct provider_error *ret);
/* The answer came but is unusable: what tells why. Returns -EIO. */
int error_from_answer(const struct error_facts *f, enum provider_error_kind kind, bool retryable,
		      const char *what, struct provider_error *ret);
/* Every occurrence of secret in text becomes asterisks. NULL, or less than 6 bytes: nothing. */
void error_redact(char *text, const char *secret);
/* User and password of every URL in text become asterisks: an endpoint's, a proxy's. */
void error_hide_userinfo(char *text);
/* The few words for a wait: "the server is busy". */
const char *error_short(const struct provider_error *e);
