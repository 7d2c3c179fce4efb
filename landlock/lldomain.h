/*
 * lldomain: a stack of rulesets, as a thread has it after several landlock_restrict_self(2).
 *
 * An access needs every layer's consent; a layer that does not handle a right leaves it alone.
 * refer is the exception: as soon as any layer handles files, every layer that does not handle
 * refer refuses it (LANDLOCK_ACCESS_FS_INITIALLY_DENIED in security/landlock, Linux 5.19).
 *
 * A plain value; the rulesets stay their owners' and must outlive it. Nothing here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "landlock/llruleset.h"

#define LLDOMAIN_LAYERS_MAX 16

struct lldomain {
	int abi;	 /* of the kernel that judges: it may be newer than a layer's */
	uint32_t errata; /* LLABI_ERRATUM_* that are fixed in it */
	unsigned int count;
	const struct llruleset *layers[LLDOMAIN_LAYERS_MAX];
};

/* Rights by layer; those past the domain's count mean nothing. */
struct lldomain_rights {
	uint64_t layer[LLDOMAIN_LAYERS_MAX];
};

/* Still without layers: everything is allowed. */
struct lldomain lldomain_on(const struct llabi *kernel);

/* The usual one: a single ruleset, on the kernel that it was made for. */
struct lldomain lldomain_of(const struct llruleset *rs);

/* -E2BIG: there are 16, as the kernel answers. */
int lldomain_push(struct lldomain *d, const struct llruleset *rs);

/* Does any layer handle a right on files? Else nothing is asked of this domain. */
bool lldomain_is_asked(const struct lldomain *d);

/* The rights that layer i has a say in, refer among them. */
uint64_t lldomain_handled(const struct lldomain *d, unsigned int i);

/* Join what each layer's rule on this inode grants. */
void lldomain_join(const struct lldomain *d, dev_t dev, ino_t ino, struct lldomain_rights *rights);

/* What all layers together grant, given what each layer's rules do. */
uint64_t lldomain_granted(const struct lldomain *d, const struct lldomain_rights *rights);
