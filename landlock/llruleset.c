#include "landlock/llruleset.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "landlock/llright.h"
#include "landlock/llsys.h"

#define PROCFS_MAGIC 0x9fa0

#define SLOTS_MIN 64u /* a power of two, as every later size */

struct llruleset {
	struct llabi abi;
	uint64_t handled;
	uint64_t scoped;
	int fd;
	struct llrule *rules;
	size_t count;
	size_t cap;
	/* Open addressing on (dev, ino): 0 is free, else a rule's index + 1. At most half full. */
	uint32_t *slots;
	size_t slot_count;
};

static size_t hash(dev_t dev, ino_t ino)
{
	uint64_t h = ((uint64_t)ino ^ ((uint64_t)dev << 40) ^ ((uint64_t)dev >> 24));

	h *= 0x9e3779b97f4a7c15ull;
	return (size_t)(h ^ (h >> 32));
}

/* The slot of this inode's rule, or the free one where it belongs. */
static size_t probe(const struct llruleset *rs, const uint32_t *slots, size_t n, dev_t dev,
		    ino_t ino)
{
	size_t i = hash(dev, ino) & (n - 1);

	while (slots[i]) {
		const struct llrule *rule = &rs->rules[slots[i] - 1];

		if (rule->dev == dev && rule->ino == ino)
			break;
		i = (i + 1) & (n - 1);
	}
	return i;
}

static int grow_slots(struct llruleset *rs)
{
	size_t n = rs->slot_count ? rs->slot_count * 2 : SLOTS_MIN;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < rs->count; i++)
		slots[probe(rs, slots, n, rs->rules[i].dev, rs->rules[i].ino)] = (uint32_t)i + 1;
	free(rs->slots);
	rs->slots = slots;
	rs->slot_count = n;
	return 0;
}

/* Make room for one rule more, so that remembering it can't fail after the kernel has it. */
static int reserve(struct llruleset *rs)
{
	if (rs->count == rs->cap) {
		size_t cap = rs->cap ? rs->cap * 2 : SLOTS_MIN / 2;
		struct llrule *rules = reallocarray(rs->rules, cap, sizeof(*rules));

		if (!rules)
			return -ENOMEM;
		rs->rules = rules;
		rs->cap = cap;
	}
	return (rs->count + 1) * 2 > rs->slot_count ? grow_slots(rs) : 0;
}

static struct llrule *find(const struct llruleset *rs, dev_t dev, ino_t ino)
{
	size_t i;

	if (!rs->slot_count)
		return NULL;
	i = probe(rs, rs->slots, rs->slot_count, dev, ino);
	return rs->slots[i] ? &rs->rules[rs->slots[i] - 1] : NULL;
}

int llruleset_new(const struct llabi *abi, uint64_t scopes, struct llruleset **ret)
{
	struct llsys_ruleset_attr attr = {0};
	struct llruleset *rs;

	if (abi->abi < 1 || !(abi->fs | (scopes & abi->scoped)))
		return -EINVAL;
	rs = calloc(1, sizeof(*rs));
	if (!rs)
		return -ENOMEM;
	rs->abi = *abi;
	rs->handled = abi->fs;
	rs->scoped = scopes & abi->scoped;
	attr.handled_access_fs = rs->handled;
	attr.scoped = rs->scoped;
	rs->fd = llsys_create_ruleset(&attr, sizeof(attr), 0);
	if (rs->fd < 0) {
		int r = rs->fd;

		free(rs);
		return r;
	}
	*ret = rs;
	return 0;
}

void llruleset_free(struct llruleset *rs)
{
	if (!rs)
		return;
	for (size_t i = 0; i < rs->count; i++) {
		if (rs->rules[i].pin >= 0)
			close(rs->rules[i].pin);
		free(rs->rules[i].label);
	}
	close(rs->fd);
	free(rs->rules);
	free(rs->slots);
	free(rs);
}

/* A descriptor to hold, if the inode is of a kind that does not last; else -1 in *ret. */
static int pin_of(int fd, dev_t dev, int *ret)
{
	struct statfs fs;
	int pin = -1;

	*ret = -1;
	if (major(dev)) /* on a disk: procfs is not */
		return 0;
	if (fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type == PROCFS_MAGIC) {
		pin = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (pin < 0)
			return -errno;
	}
	*ret = pin;
	return 0;
}

/* Neither memory nor the pin may fail once the kernel has the rule: both come first. */
static int add_new(struct llruleset *rs, int fd, struct llrule rule, const char *label)
{
	int r = reserve(rs);

	if (r < 0)
		return r;
	r = pin_of(fd, rule.dev, &rule.pin);
	if (r < 0)
		return r;
	if (label && !(rule.label = strdup(label))) {
		r = -ENOMEM;
		goto out;
	}
	r = llsys_add_path_rule(rs->fd, fd, rule.rights);
	if (r < 0)
		goto out;
	rs->rules[rs->count++] = rule;
	rs->slots[probe(rs, rs->slots, rs->slot_count, rule.dev, rule.ino)] = (uint32_t)rs->count;
	return 0;
out:
	if (rule.pin >= 0)
		close(rule.pin);
	free(rule.label);
	return r;
}

static int add_to(struct llruleset *rs, int fd, struct llrule *rule, uint64_t rights,
		  const char *label)
{
	char *copy = NULL;
	int r;

	if (label && !rule->label && !(copy = strdup(label)))
		return -ENOMEM;
	r = llsys_add_path_rule(rs->fd, fd, rights);
	if (r < 0) {
		free(copy);
		return r;
	}
	rule->rights |= rights;
	if (copy)
		rule->label = copy;
	return 0;
}

int llruleset_allow_known(struct llruleset *rs, int o_path_fd, const struct stat *st,
			  uint64_t rights, const char *label)
{
	struct llrule *old;

	if (rights & ~(uint64_t)LLR_ALL)
		return -EINVAL;
	rights &= rs->handled;
	if (!S_ISDIR(st->st_mode))
		rights &= llright_for_file();
	if (!rights)
		return 0;
	old = find(rs, st->st_dev, st->st_ino);
	if (old)
		return add_to(rs, o_path_fd, old, rights, label);
	return add_new(rs, o_path_fd,
		       (struct llrule){.dev = st->st_dev,
				       .ino = st->st_ino,
				       .mode = st->st_mode,
				       .rights = rights,
				       .pin = -1},
		       label);
}

int llruleset_allow_fd_as(struct llruleset *rs, int o_path_fd, uint64_t rights, const char *label)
{
	struct stat st;

	if (rights & ~(uint64_t)LLR_ALL)
		return -EINVAL;
	if (fstat(o_path_fd, &st) < 0)
		return -errno;
	return llruleset_allow_known(rs, o_path_fd, &st, rights, label);
}

int llruleset_allow_fd(struct llruleset *rs, int o_path_fd, uint64_t rights)
{
	return llruleset_allow_fd_as(rs, o_path_fd, rights, NULL);
}

int llruleset_allow_path(struct llruleset *rs, const char *path, uint64_t rights)
{
	int fd = open(path, O_PATH | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = llruleset_allow_fd_as(rs, fd, rights, path);
	close(fd);
	return r;
}

int llruleset_restrict(const struct llruleset *rs)
{
	return llruleset_restrict_marked(rs, 0);
}

int llruleset_restrict_marked(const struct llruleset *rs, uint32_t mark)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return llsys_restrict_self_marked(rs->fd, 0, mark);
}

int llruleset_fd(const struct llruleset *rs)
{
	return rs->fd;
}

const struct llabi *llruleset_abi(const struct llruleset *rs)
{
	return &rs->abi;
}

uint64_t llruleset_handled(const struct llruleset *rs)
{
	return rs->handled;
}

uint64_t llruleset_scoped(const struct llruleset *rs)
{
	return rs->scoped;
}

uint64_t llruleset_unenforced(const struct llruleset *rs)
{
	return (LLR_REFER | LLR_TRUNCATE | LLR_IOCTL_DEV) & ~rs->handled;
}

size_t llruleset_count(const struct llruleset *rs)
{
	return rs->count;
}

const struct llrule *llruleset_rule(const struct llruleset *rs, size_t i)
{
	return i < rs->count ? &rs->rules[i] : NULL;
}

uint64_t llruleset_lookup(const struct llruleset *rs, dev_t dev, ino_t ino)
{
	const struct llrule *rule = find(rs, dev, ino);

	return rule ? rule->rights : 0;
}
