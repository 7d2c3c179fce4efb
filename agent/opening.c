#include "agent/opening.h"

#include "agent/interrupt.h"
#include "agent/offer.h"
#include "agent/trust.h"
#include "supervisor/redact.h"
#include "tracer/util.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

int opening_trouble(const char *what, int err)
{
	cli_complain("%s: %s", what, strerror(-err));
	return CLI_EXIT_TROUBLE;
}

void opening_locale(void)
{
	if (!setlocale(LC_CTYPE, "") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
}

/*
 * What was read is taken out of our own environment, the bytes too: /proc/PID/environ shows them to
 * a tool that is root (CAP_SYS_ADMIN is enough for it on 6.18, whatever Landlock says of ptrace).
 */
void opening_hide_secrets(void)
{
	char **to = environ;
	for (char **e = environ; *e; e++) {
		AUTOFREE
		char *name = strndup(*e, strcspn(*e, "="));
		/* Without memory it is taken for a secret; a URL may hold a password. */
		if (!name || redact_is_secret_name(name) || !strcmp(name, "OPENAI_BASE_URL"))
			explicit_bzero(*e, strlen(*e));
		else
			*to++ = *e;
	}
	*to = NULL;
}

/* ---- the session ---- */

static int make_session(const struct cli_options *o, struct session **ret)
{
	struct session_options s;
	struct policy_error why = {0};
	cli_session_options(o, environ, &s);
	int err = session_new(&s, ret, &why);
	if (!err)
		return 0;
	cli_complain("%s", why.text[0] ? why.text : strerror(-err));
	return CLI_EXIT_TROUBLE;
}

/* The command line says itself what becomes of the project, or nothing would be open anyway. */
static bool is_settled(const struct session *s, const struct cli_options *o)
{
	const struct cli_list *no = &o->no_presets;
	for (size_t i = 0; i < no->len; i++)
		if (!strcmp(no->item[i], "project"))
			return true;
	return o->no_default_presets || o->policies.len || session_project(s)->too_wide;
}

/* Where nobody sits, and nothing is known, it is as run has it. */
static int find_trust(const struct session *s, bool ask, enum trust *ret)
{
	*ret = trust_recall(s);
	if (*ret || !ask)
		return 0;
	*ret = trust_ask(s);
	if (!*ret)
		return OPENING_DECLINED;
	int err = trust_remember(s, *ret);
	if (err)
		cli_complain("the answer could not be saved: %s", strerror(-err));
	return 0;
}

static int apply_trust(struct cli_options *o, enum trust t, struct session **s)
{
	if (!t || t == TRUST_WRITE)
		return 0;
	if (!cli_list_add(&o->no_presets, "project"))
		return opening_trouble("the policy", -ENOMEM);
	session_free(TAKE_PTR(*s));
	int status = make_session(o, s);
	int err = status ? 0 : trust_open(*s, t);
	return err ? opening_trouble("the policy", err) : status;
}

int opening_session(struct cli_options *o, bool ask, struct session **ret)
{
	enum trust t = TRUST_UNKNOWN;
	int status = make_session(o, ret);
	ask = ask && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (!status && !is_settled(*ret, o))
		status = find_trust(*ret, ask, &t);
	if (!status && ask && !o->policies.len && offer_proposal(*ret)) {
		session_free(TAKE_PTR(*ret));
		status = make_session(o, ret);
	}
	if (!status)
		status = apply_trust(o, t, ret);
	if (status)
		return status;
	for (char *const *note = session_notes(*ret); *note; note++)
		cli_complain("%s", *note);
	return 0;
}

int opening_tools(const struct cli_options *o, struct session *s, struct toolrun *ret)
{
	int err = toolrun_init(ret, s, environ);
	if (err)
		return opening_trouble("the tools", err);
	ret->mode = o->mode;
	ret->ask = o->ask;
	ret->yes = o->yes;
	ret->events = o->events;
	ret->answers = o->answers;
	ret->answer_timeout_ms = o->answer_timeout_ms;
	ret->cancel = interrupt_flag();
	if (o->yes)
		cli_complain("--yes: what is not on the sensitive list is allowed once");
	return 0;
}
