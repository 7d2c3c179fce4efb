/*
 * device: GitHub's device login: a code is shown here, entered in a browser anywhere, and a token
 * comes out (RFC 8628, as GitHub does it). Nothing is stored or printed here.
 */
#pragma once

#include "agent/asker.h"
#include "agent/github.h"

/* The GitHub App of the editors, whose tokens GitHub exchanges for Copilot's. */
#define DEVICE_CLIENT_ID "Iv1.b507a08c87ecfe98"
#define DEVICE_SCOPE	 "read:user"

struct device {
	struct asker asker;
	char *url; /* where it is asked whether the user has entered the code */
	char *client_id;
	char *secret;	 /* our half of the code */
	char *user_code; /* for the user: printable ASCII */
	char *uri;	 /* where it is entered: https, or this machine */
	int64_t interval_s, lifetime_s;
};

/*
 * Ask for a code. config is read for certificates and timeouts. 0; -ECANCELED, -EIO, -ENOMEM with
 * *ret_error, and then nothing to free. Blocks.
 */
int device_begin(const struct provider_config *config, const struct github *github,
		 const char *client_id, const volatile sig_atomic_t *cancel, struct device *ret,
		 struct provider_error *ret_error);
/*
 * Wait until the user has entered it: 0 and *ret_token (the caller's, to be wiped). A network that
 * fails meanwhile is told to on_status and tried again until the code expires. Errors as above;
 * PROVIDER_FAIL_AUTH: refused, or too late.
 */
int device_wait(struct device *d, const struct provider_sink *sink,
		const volatile sig_atomic_t *cancel, char **ret_token,
		struct provider_error *ret_error);
void device_free(struct device *d);
