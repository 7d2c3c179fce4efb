/*
 * A session with a name: its answers are read at the start, written as they are given, and read
 * again as other runs give theirs.
 */
#include "supervisor/session.h"

#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

int session_share(struct session *s, const char *name, struct policy_error *ret_error)
{
	int err = named_open(s->store.state_dir, name, &s->named, ret_error);
	if (err)
		return err;
	s->shared_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (s->shared_fd < 0 ||
	    inotify_add_watch(s->shared_fd, s->named.dir, IN_MOVED_TO | IN_CLOSE_WRITE) < 0) {
		err = -errno;
		snprintf(ret_error->text, sizeof ret_error->text,
			 "the session %s can't be watched: %s", name, strerror(-err));
	}
	return err;
}

void session_unshare(struct session *s)
{
	if (s->shared_fd >= 0)
		close(s->shared_fd);
	s->shared_fd = -1;
	named_close(&s->named);
}

int session_tell_others(struct session *s, const struct rule *rule, const char *preset,
			const char *comment, struct policy_error *ret_error)
{
	if (!s->named.answers)
		return 0;
	return rule ? store_append_rule(s->named.answers, rule, comment, ret_error)
		    : store_append_use(s->named.answers, preset, comment, ret_error);
}

static bool has(const struct policy *p, const struct rule *rule)
{
	for (size_t i = policy_len(p); i-- > 0;) {
		const struct rule *r = policy_at(p, i);
		if (r->effect == rule->effect && r->kind == rule->kind &&
		    r->source == rule->source && r->access == rule->access &&
		    !strcmp(r->path, rule->path))
			return true;
	}
	return false;
}

/* What is new in `from`, unless a link on its way can be the command's own. Number added. */
static int take_new(struct session *s, const struct policy *from)
{
	int added = 0;
	for (size_t i = 0; i < policy_len(from); i++) {
		const struct rule *rule = policy_at(from, i);
		if (has(s->policy, rule) || session_doubts(s, rule))
			continue;
		int err = session_add_rule(s, rule);
		if (err)
			return err;
		added++;
	}
	return added;
}

int session_hear_others(struct session *s, char *const *env)
{
	char events[4096] __attribute__((aligned(8)));
	struct policy_vars vars = session_vars(s, env);
	struct policy_error why;
	struct policy *heard;
	while (s->shared_fd >= 0 && read(s->shared_fd, events, sizeof events) > 0)
		;
	int r = policy_new(&heard);
	if (r)
		return r;
	r = policyfile_load(heard, s->named.answers, RULE_ANSWER, &vars, &why);
	if (!r)
		r = take_new(s, heard);
	policy_free(heard);
	return r == -ENOENT ? 0 : r;
}
