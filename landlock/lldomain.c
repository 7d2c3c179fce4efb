#include "landlock/lldomain.h"

#include <errno.h>

#include "landlock/llright.h"

struct lldomain lldomain_on(const struct llabi *kernel)
{
	return (struct lldomain){.abi = kernel->abi, .errata = kernel->errata};
}

struct lldomain lldomain_of(const struct llruleset *rs)
{
	struct lldomain d = lldomain_on(llruleset_abi(rs));

	d.layers[d.count++] = rs;
	return d;
}

int lldomain_push(struct lldomain *d, const struct llruleset *rs)
{
	if (d->count == LLDOMAIN_LAYERS_MAX)
		return -E2BIG;
	d->layers[d->count++] = rs;
	return 0;
}

bool lldomain_is_asked(const struct lldomain *d)
{
	for (unsigned int i = 0; i < d->count; i++)
		if (llruleset_handled(d->layers[i]))
			return true;
	return false;
}

uint64_t lldomain_handled(const struct lldomain *d, unsigned int i)
{
	return llruleset_handled(d->layers[i]) | LLR_REFER;
}

void lldomain_join(const struct lldomain *d, dev_t dev, ino_t ino, struct lldomain_rights *rights)
{
	for (unsigned int i = 0; i < d->count; i++)
		rights->layer[i] |= llruleset_lookup(d->layers[i], dev, ino);
}

uint64_t lldomain_granted(const struct lldomain *d, const struct lldomain_rights *rights)
{
	uint64_t granted = LLR_ALL;

	if (!lldomain_is_asked(d))
		return granted;
	for (unsigned int i = 0; i < d->count; i++)
		granted &= rights->layer[i] | ~lldomain_handled(d, i);
	return granted;
}
