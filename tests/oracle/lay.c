/* Random layers: what each handles, and its rules. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "oracle.h"

#define MOVING                                                                                     \
	(LLR_REFER | LLR_MAKE_REG | LLR_MAKE_DIR | LLR_REMOVE_FILE | LLR_REMOVE_DIR |              \
	 LLR_MAKE_FIFO | LLR_MAKE_SYM)

static uint64_t some_rights(struct oracle_world *w)
{
	switch (oracle_below(w, 7)) {
	case 0:
		return LLR_ALL;
	case 1:
		return oracle_draw(w) & LLR_ALL;
	case 2:
		return oracle_draw(w) & oracle_draw(w) & LLR_ALL;
	case 3:
		return (oracle_draw(w) | oracle_draw(w)) & LLR_ALL;
	case 4:
		return MOVING;
	case 5:
		return LLR_ALL & ~(1ULL << oracle_below(w, 16));
	default:
		return MOVING | (oracle_draw(w) & oracle_draw(w) & LLR_CONTENT);
	}
}

static int add_rule(struct oracle_world *w, struct llruleset *rs, const char *path, uint64_t rights)
{
	size_t len = strlen(w->rules);
	char names[256];
	int fd, r;

	fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = llruleset_allow_fd(rs, fd, rights);
	close(fd);
	llright_format(rights, names, sizeof(names));
	oracle_say(w->rules + len, sizeof(w->rules) - len, "  %s: %s\n", path, names);
	return r;
}

/* All that some ABI has (the first among them, without refer), some of it, or no files at all. */
static struct llabi some_handled(struct oracle_world *w, uint64_t *ret_scopes)
{
	struct llabi abi = llabi_of(1 + oracle_below(w, w->kernel.abi));

	*ret_scopes = 0;
	switch (oracle_below(w, 6)) {
	case 0:
		abi.fs &= oracle_draw(w) | LLR_EXECUTE | LLR_REFER;
		break;
	case 1:
		abi.fs = w->kernel.fs & (MOVING | (1ULL << oracle_below(w, 16)));
		break;
	case 2:
		if (w->kernel.scoped & LLR_SCOPE_SIGNAL) {
			abi = w->kernel;
			abi.fs = 0;
			*ret_scopes = LLR_SCOPE_SIGNAL;
		}
		break;
	default:
		abi = w->kernel;
	}
	return abi;
}

/* Many layers of little would refuse everything: above the first, most grant most. */
static int add_rules(struct oracle_world *w, struct llruleset *rs, bool generous)
{
	static const char *const above[] = {"/", "/tmp", "/dev", "/dev/null"};
	int n = oracle_below(w, 12), r = 0;
	const struct oracle_node *node;

	for (size_t i = 0; r == 0 && i < sizeof(above) / sizeof(above[0]); i++)
		if (oracle_below(w, 3) == 0)
			r = add_rule(w, rs, above[i], some_rights(w));
	if (r == 0 && generous)
		r = add_rule(
			w, rs, oracle_below(w, 2) ? w->root : "/",
			MOVING | ((oracle_draw(w) | oracle_draw(w) | oracle_draw(w)) & LLR_ALL));
	if (r == 0 && oracle_below(w, 3))
		r = add_rule(w, rs, w->root, some_rights(w) | (oracle_below(w, 3) ? MOVING : 0));
	for (int i = 0; r == 0 && i < n; i++)
		if ((node = oracle_pick(w, oracle_is_any)))
			r = add_rule(w, rs, node->path, some_rights(w));
	return r;
}

static int add_layer(struct oracle_world *w)
{
	uint64_t scopes;
	struct llabi abi = some_handled(w, &scopes);
	size_t len = strlen(w->rules);
	struct llruleset *rs;
	char names[256];
	int r;

	r = llruleset_new(&abi, scopes, &rs);
	if (r < 0)
		return r;
	llright_format(abi.fs, names, sizeof(names));
	oracle_say(w->rules + len, sizeof(w->rules) - len, " layer that handles %s\n", names);
	r = lldomain_push(&w->domain, rs);
	if (r < 0)
		llruleset_free(rs);
	else
		r = add_rules(w, rs, w->domain.count > 1 && oracle_below(w, 8));
	return r;
}

static void choose_focus(struct oracle_world *w)
{
	static const char *const parts[] = {"", "/tmpfs", "/merged"};
	int part = w->bound_ino ? oracle_below(w, w->overlay ? 3 : 2) : 0;

	/* Many rounds stay within an inner mount, where one can move from one place to another and
	 * the real root is another mount's. */
	oracle_say(w->focus, sizeof(w->focus), "%s%s", w->root, parts[part]);
}

int oracle_lay(struct oracle_world *w)
{
	static const int depths[] = {1, 1, 1, 1, 2, 2, 2, 3, 3, 16};
	int n = depths[oracle_below(w, 10)], r = 0;

	if (n == 16)
		n = 1 + oracle_below(w, 16);
	w->domain = lldomain_on(&w->kernel);
	w->rules[0] = '\0';
	choose_focus(w);
	for (int i = 0; r == 0 && i < n; i++)
		r = add_layer(w);
	return r;
}

void oracle_unlay(struct oracle_world *w)
{
	while (w->domain.count > 0)
		llruleset_free((struct llruleset *)w->domain.layers[--w->domain.count]);
}
