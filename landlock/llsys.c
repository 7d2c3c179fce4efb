#include "landlock/llsys.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same numbers on every architecture that has Landlock. */
#define NR_CREATE_RULESET 444
#define NR_ADD_RULE	  445
#define NR_RESTRICT_SELF  446

#define RULE_PATH_BENEATH 1

_Static_assert(sizeof(struct llsys_ruleset_attr) == 48, "the kernel's size");
_Static_assert(sizeof(struct llsys_path_beneath) == 12, "the kernel's size");

static int result(long ret)
{
	return ret < 0 ? -errno : (int)ret;
}

int llsys_create_ruleset(const struct llsys_ruleset_attr *attr, size_t size, uint32_t flags)
{
	return result(syscall(NR_CREATE_RULESET, attr, size, flags));
}

int llsys_add_path_rule(int ruleset_fd, int path_fd, uint64_t rights)
{
	struct llsys_path_beneath rule = {.allowed_access = rights, .parent_fd = path_fd};

	return result(syscall(NR_ADD_RULE, ruleset_fd, RULE_PATH_BENEATH, &rule, 0));
}

int llsys_restrict_self(int ruleset_fd, uint32_t flags)
{
	return llsys_restrict_self_marked(ruleset_fd, flags, 0);
}

int llsys_restrict_self_marked(int ruleset_fd, uint32_t flags, uint32_t mark)
{
	return result(syscall(NR_RESTRICT_SELF, ruleset_fd, flags, 0, 0, mark));
}
