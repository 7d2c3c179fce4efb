#include "supervisor/replayask.h"

#include "supervisor/ask.h"
#include "supervisor/environ.h"
#include "supervisor/prompt.h"
#include "tracer/util.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

struct asking {
	struct loop *loop;
	struct ask *ask;
	struct prompt *prompt;
	struct denial_list *list;
	struct policy *policy; /* owned: the replay's, and the answers */
	const char *home;
	struct buf *rules;
	size_t at;     /* the denial that is asked about, or comes next */
	uint64_t next; /* a timer */
	bool over;     /* Ctrl-C: what is left stays as it was */
	int error;
};

static bool is_open(const struct denial *d)
{
	return denial_stayed(d) && !d->forbidden && !d->nameless && d->by != BY_POLICY;
}

static bool is_allowed(const struct asking *k, const char *path, uint32_t access)
{
	return policy_decide_all(k->policy, path, access, NULL).effect == EFFECT_ALLOW;
}

static void allow(struct denial *d, enum lifetime lifetime)
{
	d->allowed = true;
	d->by = BY_USER;
	d->lifetime = lifetime;
}

/* A rule was given: what waits may be covered by it. */
static void settle(struct asking *k)
{
	for (size_t i = k->at; i < k->list->len; i++) {
		struct denial *d = &k->list->item[i];
		if (is_open(d) && is_allowed(k, d->path, d->access) &&
		    (!d->path2 || d->path2_open || is_allowed(k, d->path2, d->access)))
			allow(d, LIFETIME_SESSION);
	}
}

static void add_rule(struct asking *k, const struct scope *s, const char *path)
{
	struct rule rule = {.effect = EFFECT_ALLOW,
			    .kind = s->kind == SCOPE_EXACT ? RULE_EXACT : RULE_TREE,
			    .source = RULE_ANSWER,
			    .access = s->access,
			    .path = (char *)path,
			    .origin = (char *)"an answer"};
	int err = policy_add(k->policy, &rule);
	k->error = k->error ? k->error : err;
}

static void on_answered(void *arg, const struct question *q, const struct answer *a)
{
	struct asking *k = arg;
	struct denial *d = &k->list->item[k->at];
	if (a->by != BY_USER)
		return; /* left unanswered: it stays as it was */
	d->by = BY_USER;
	d->lifetime = a->lifetime;
	k->at++;
	if (!a->allow)
		return;
	allow(d, a->lifetime);
	if (a->lifetime == LIFETIME_ONCE)
		return;
	const struct scope *s = &q->scopes.item[a->scope];
	add_rule(k, s, s->path);
	if (s->path2)
		add_rule(k, s, s->path2);
	buf_add_str(k->rules, s->rule);
	buf_add_char(k->rules, '\n');
	settle(k);
}

static char **argv_of(const struct denial *d)
{
	size_t n = 0;
	while (d->argv && d->argv[n])
		n++;
	char **argv = calloc(n + 2, sizeof *argv);
	for (size_t i = 0; argv && i < n; i++)
		argv[i] = strdup(d->argv[i]);
	if (argv && !n)
		argv[0] = strdup(d->argv0 ? d->argv0 : d->exe ? d->exe : "?");
	return argv;
}

static struct question *question_about(const struct asking *k, const struct denial *d)
{
	struct question *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	*q = (struct question){.pid = d->pid,
			       .call = d->call,
			       .access = d->access,
			       .exists = d->exists,
			       .no_saving = true,
			       .exe = strdup(d->exe ? d->exe : ""),
			       .argv = argv_of(d),
			       .cwd = strdup(""),
			       .path = strdup(d->path),
			       .given = d->given ? strdup(d->given) : NULL,
			       .path2 = d->path2 ? strdup(d->path2) : NULL,
			       .note = denial_note(d)};
	q->sensitive = policy_sensitive_for(k->policy, d->path, d->access);
	clock_gettime(CLOCK_REALTIME, &q->time);
	if (q->exe && q->argv && q->cwd && q->path &&
	    !plan_scopes_elsewhere(d, k->policy, k->home, &q->scopes))
		return q;
	question_free(q);
	return NULL;
}

static void on_next(void *arg)
{
	struct asking *k = arg;
	uint64_t id;
	k->next = 0;
	while (k->at < k->list->len && !is_open(&k->list->item[k->at]))
		k->at++;
	if (k->at == k->list->len || k->over || k->error) {
		loop_stop(k->loop);
		return;
	}
	struct question *q = question_about(k, &k->list->item[k->at]);
	k->error = q ? ask_push(k->ask, q, &id) : -ENOMEM;
	if (k->error)
		loop_stop(k->loop);
}

/* The next one, once this one is off the screen. */
static void on_settled(void *self, const struct question *q, const struct answer *a)
{
	struct asking *k = self;
	(void)q, (void)a;
	if (!k->next)
		k->error = loop_add_timer(k->loop, 0, on_next, k, &k->next);
}

static void on_interrupt(void *arg)
{
	struct asking *k = arg;
	k->over = true;
}

static void on_signal(void *arg, const struct signalfd_siginfo *info)
{
	struct asking *k = arg;
	(void)info;
	k->over = true;
	loop_stop(k->loop);
}

static int open_queue(struct asking *k)
{
	extern char **environ;
	const char *no = environ_get(environ, "NO_COLOR");
	const struct ask_front goes_on = {.self = k, .settled = on_settled};
	const struct prompt_options o = {.home = k->home,
					 .color = !(no && *no),
					 .dumb = prompt_is_dumb(environ),
					 .interrupt = on_interrupt,
					 .arg = k};
	int err = loop_new(&k->loop);
	if (!err)
		err = ask_new(k->loop, 0, on_answered, k, &k->ask);
	if (!err)
		err = ask_add_front(k->ask, &goes_on);
	if (!err)
		err = loop_take_signal(k->loop, SIGINT, on_signal, k);
	if (!err)
		err = loop_take_signal(k->loop, SIGTERM, on_signal, k);
	if (!err)
		err = prompt_new(k->loop, k->ask, NULL, &o, &k->prompt);
	return err ? err : loop_add_timer(k->loop, 0, on_next, k, &k->next);
}

int replayask_run(struct denial_list *l, const struct policy *policy, const char *home,
		  struct buf *rules)
{
	struct asking k = {.list = l, .home = home, .rules = rules};
	int err = policy ? policy_copy(policy, &k.policy) : policy_new(&k.policy);
	if (!err)
		err = open_queue(&k);
	if (!err)
		err = loop_run(k.loop);
	prompt_free(k.prompt);
	if (k.ask)
		ask_free(k.ask);
	if (k.loop)
		loop_free(k.loop);
	policy_free(k.policy);
	return err ? err : k.error ? k.error : buf_error(rules);
}
