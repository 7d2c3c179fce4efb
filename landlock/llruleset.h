/*
 * llruleset: builds the one ruleset of a run, in the parent, and applies it, in the child.
 *
 * A ruleset handles every right on files that the ABI it is given has (REFER always, where it
 * exists: a ruleset without it refuses all reparenting), the scopes asked for, and nothing of the
 * network. What it was told is remembered beside the kernel's copy, for llmodel and for reports.
 *
 * Keep it until the last process it restricts is gone: it pins what would otherwise go stale. A
 * rule is on an inode, and procfs makes new inodes when its dentries are reclaimed, so that a rule
 * on /proc/PID stops matching (Linux 6.18); a descriptor held open prevents that.
 *
 * A filesystem can be unmounted under a rule (procfs, being pinned, can't), and the kernel's rule
 * is gone with it. Here it stays remembered: another filesystem that gets the same device number
 * would seem to have it.
 *
 * Functions return 0 or -errno and do not block beyond what opening a path may.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "landlock/llabi.h"

struct llruleset;

/* One inode's rule: the union of all that was allowed on it, as Landlock itself joins them. */
struct llrule {
	dev_t dev;
	ino_t ino;
	mode_t mode;	 /* st_mode when the rule was made */
	uint64_t rights; /* LLR_*, after masking: what the kernel has */
	int pin;	 /* the descriptor that keeps it alive, or -1; the ruleset's */
	char *label;	 /* the first label given, or NULL; the ruleset's */
};

/* scopes: LLR_SCOPE_*, those the ABI lacks are left out (llruleset_scoped says what is in). `abi`
 * is copied, and its fs field is what is handled; *ret is the caller's, to llruleset_free. -ENOMEM,
 * -EMFILE, -EINVAL: abi->abi < 1 or nothing to handle, or the errors of llsys_create_ruleset. */
int llruleset_new(const struct llabi *abi, uint64_t scopes, struct llruleset **ret);
void llruleset_free(struct llruleset *rs);

/* Allow `rights` (LLR_*) on what the descriptor refers to and on everything below it. Rights that
 * the ABI lacks or that can't stand on a non-directory are masked out; if none is left that is
 * success without a rule. The descriptor stays the caller's; any descriptor will do, O_PATH is
 * enough. -EINVAL: a bit that access.def does not know, -EBADF, -EBADFD: a pipe, memfd or another
 * thing that Landlock never restricts, -ENOMEM, -EMFILE. After an error nothing has changed.
 * The _as form keeps a copy of `label` (may be NULL) with a rule that has none yet. */
int llruleset_allow_fd(struct llruleset *rs, int o_path_fd, uint64_t rights);
int llruleset_allow_fd_as(struct llruleset *rs, int o_path_fd, uint64_t rights, const char *label);
/* The same where fstat(2) said already what the descriptor refers to. */
int llruleset_allow_known(struct llruleset *rs, int o_path_fd, const struct stat *st,
			  uint64_t rights, const char *label);

/* The same for a path, which becomes the label; the last symlink is followed. Also the errors of
 * open(2), -ENOENT among them: a path that does not exist is for the caller to judge. */
int llruleset_allow_path(struct llruleset *rs, const char *path, uint64_t rights);

/* Restrict the calling thread and all it will fork, for ever. Call it in the forked child: only
 * async-signal-safe calls, sets no_new_privs. On failure nothing may be run: -E2BIG: 16 layers are
 * there already, -ENOMEM, -EBADF. */
int llruleset_restrict(const struct llruleset *rs);
/* The same by llsys_restrict_self_marked(). */
int llruleset_restrict_marked(const struct llruleset *rs, uint32_t mark);

/* The kernel's ruleset; stays the ruleset's. */
int llruleset_fd(const struct llruleset *rs);

/* What the kernel was asked to handle. */
const struct llabi *llruleset_abi(const struct llruleset *rs);
uint64_t llruleset_handled(const struct llruleset *rs);
uint64_t llruleset_scoped(const struct llruleset *rs);

/* The rights that a policy needs and this ABI can't enforce: of refer, truncate and ioctl_dev those
 * that came later. Without truncate and ioctl_dev these accesses are free; without refer (ABI 1)
 * links and renames into another directory always fail. */
uint64_t llruleset_unenforced(const struct llruleset *rs);

/* The remembered rules, in the order they were first made; the pointer is good until the next
 * allow. NULL past the end. */
size_t llruleset_count(const struct llruleset *rs);
const struct llrule *llruleset_rule(const struct llruleset *rs, size_t i);

/* The rights of the rule on this inode, 0 if there is none. Constant time. */
uint64_t llruleset_lookup(const struct llruleset *rs, dev_t dev, ino_t ino);
