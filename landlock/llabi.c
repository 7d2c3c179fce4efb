#include "landlock/llabi.h"

#include <errno.h>
#include <stddef.h>

#include "landlock/llright.h"
#include "landlock/llsys.h"

int llabi_probe(void)
{
	return llsys_create_ruleset(NULL, 0, LLSYS_CREATE_VERSION);
}

int llabi_errata(uint32_t *ret)
{
	int errata = llsys_create_ruleset(NULL, 0, LLSYS_CREATE_ERRATA);

	if (errata < 0)
		return errata;
	*ret = (uint32_t)errata;
	return 0;
}

struct llabi llabi_of(int abi)
{
	int known = abi > LLRIGHT_ABI_MAX ? LLRIGHT_ABI_MAX : abi;

	return (struct llabi){
		.abi = known,
		.fs = llright_supported(known),
		.net = llright_net_supported(known),
		.scoped = llright_scope_supported(known),
	};
}

int llabi_detect(struct llabi *ret)
{
	int abi = llabi_probe();
	struct llabi found;
	int r;

	if (abi < 0)
		return abi;
	found = llabi_of(abi);
	r = llabi_errata(&found.errata);
	/* EINVAL is an older kernel's answer to an unknown flag. */
	if (r < 0 && r != -EINVAL)
		return r;
	*ret = found;
	return 0;
}
