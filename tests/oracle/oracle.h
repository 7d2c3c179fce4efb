/*
 * oracle: the model against the running kernel. A world is a random tree; a round puts random
 * layers on it and asks both, in a restricted child and of llmodel, the same random requests.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "landlock/lldomain.h"
#include "landlock/llright.h"

#define ORACLE_NODES_MAX  512
#define ORACLE_PATH_BYTES 512

enum oracle_op {
	ORACLE_OPEN,
	ORACLE_CREATE,
	ORACLE_TMPFILE,
	ORACLE_TRUNCATE,
	ORACLE_FTRUNCATE,
	ORACLE_EXEC,
	ORACLE_IOCTL,
	ORACLE_MAKE,
	ORACLE_SYMLINK,
	ORACLE_BIND,
	ORACLE_REMOVE,
	ORACLE_RENAME,
	ORACLE_LINK,
	ORACLE_OPS,
};

struct oracle_request {
	enum oracle_op op;
	int flags; /* of open or renameat2 */
	mode_t mode;
	dev_t dev;
	unsigned long ioctl;
	char path[ORACLE_PATH_BYTES];
	char path2[ORACLE_PATH_BYTES];
};

struct oracle_node {
	char path[ORACLE_PATH_BYTES];
	mode_t mode;
	bool mount; /* a mount point, or what is bound elsewhere: not renamed or removed here */
};

struct oracle_world {
	uint64_t random;
	uint64_t seed;
	char root[64];
	struct oracle_node nodes[ORACLE_NODES_MAX];
	int count;
	int serial;		       /* of new names */
	char focus[ORACLE_PATH_BYTES]; /* only nodes whose paths begin so are picked */
	ino_t bound_ino;	       /* of the directory that is bound elsewhere, while it is */
	bool overlay;
	struct llabi kernel;
	struct lldomain domain;
	char rules[16384]; /* what is in force, for a report */
};

/* snprintf; false: it was cut. */
__attribute__((format(printf, 3, 4))) bool oracle_say(char *to, size_t n, const char *fmt, ...);

/* The same numbers for the same seed. n > 0. */
uint64_t oracle_draw(struct oracle_world *w);
int oracle_below(struct oracle_world *w, int n);

/* Read the tree again, in an order that its names alone decide. */
void oracle_rescan(struct oracle_world *w);
/* One thing more, without reading it all again. */
void oracle_remember(struct oracle_world *w, const char *path);
/* Add some things; remove all that can be removed. */
void oracle_grow(struct oracle_world *w);
void oracle_clear(struct oracle_world *w);
/* Only root: a tmpfs, a bind mount and (where it can be had) an overlay inside the tree; 0 or -1.
 */
int oracle_mount_inside(struct oracle_world *w);
/* One that fits, or NULL. */
const struct oracle_node *oracle_pick(struct oracle_world *w,
				      bool (*fits)(const struct oracle_node *));
bool oracle_is_any(const struct oracle_node *n);
/* A free name in that directory; false: too long. */
bool oracle_new_name(struct oracle_world *w, const char *dir, char path[ORACLE_PATH_BYTES]);

/* New layers in w->domain and their rules; 0 or -errno. */
int oracle_lay(struct oracle_world *w);
void oracle_unlay(struct oracle_world *w);

/* A request that makes sense here; false: none was found. */
bool oracle_choose(struct oracle_world *w, struct oracle_request *ret);

/* What the kernel says to it: 0 or -errno. Makes the change. */
int oracle_try(const struct oracle_request *q);

/* What the model says: 0, -EACCES or -EXDEV in *ret. */
int oracle_predict(const struct oracle_world *w, const struct oracle_request *q, int *ret);

/* What the kernel answers before it asks Landlock; ORACLE_LANDLOCKS: nothing. */
#define ORACLE_LANDLOCKS 0
#define ORACLE_VFS_XDEV	 1 /* EXDEV between two mounts */
#define ORACLE_VFS_OTHER 2
int oracle_vfs_matter(const struct oracle_request *q);
