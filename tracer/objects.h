/*
 * objects: what is known of mapped files: where in them watched calls are made, and how these can
 * be changed. Learned from a tracee's memory, for the rest of the run; addresses are kept as file
 * offsets. What a file held then is compared byte for byte with what a tracee has mapped before
 * anything is written there.
 *
 * Where the places are is kept for later runs, too, of files with a build id (tracer/sitefile.h).
 * What these find there they look at as if they had come upon it by themselves, all of it or
 * nothing. (A program that changes its own copy of a library before it is looked at can have places
 * left out in later runs. These are learned, and kept, when a call has stopped there.)
 */
#pragma once

#include "tracer/elfmem.h"
#include "tracer/maps.h"
#include "tracer/sitefile.h"
#include "tracer/stub.h"
#include "tracer/tracee.h"

/*
 * Raise it when something else is learned of a text, or another way: then nothing is used that was
 * kept before.
 */
#define OBJECTS_RULES 1

struct objects;

struct object_site {
	uint64_t offset;   /* of the syscall instruction in the file */
	uint32_t function; /* so many bytes before it, if its function was decoded; else 0 */
	struct stub_site site;
};

struct object {
	struct object *next;
	dev_t dev;
	ino_t ino;
	uint64_t room; /* file offset of the first stub */
	size_t slots;  /* stubs that there is room for */
	size_t len;
	struct object_site *site; /* owned; site i has slot i */
	struct sitefile_key key;  /* in the file of earlier runs; id_len 0: not in it */
	bool whole;		  /* all of the text was looked at, now or by an earlier run */
	bool news;		  /* there is something that the file does not have */
	bool doubtful;		  /* not to be kept: there is one of another text, or no end */
};

/* state_dir: where earlier runs' knowledge is kept; NULL: nowhere. NULL without memory. */
struct objects *objects_new(const char *state_dir);
/* What is new is kept. */
void objects_free(struct objects *os);
/* The object that is mapped there at base, if a site at this address is known of it. */
const struct object *objects_find(struct objects *os, pid_t tid, const struct maps_region *where,
				  uint64_t base, uint64_t syscall);
/*
 * Look at the site that t is stopped behind, and the first time at the whole text: what opens files
 * with the number moved right before is learned, too (some 100 us a MiB). A program may have more
 * than one thread when it comes there first, and then it is too late. The object, or NULL where it
 * can't be changed.
 */
const struct object *objects_learn(struct objects *os, const struct tracee *t,
				   const struct sysent *ent, const struct maps_region *where,
				   uint64_t base);
/* What is mapped there at base, if any site is known of it. */
const struct object *objects_known(struct objects *os, pid_t tid, const struct maps_region *where,
				   uint64_t base);
/*
 * The same, whether anything of it has called yet or not: looked at as a whole, once.
 */
const struct object *objects_survey(struct objects *os, pid_t tid, const struct maps_region *where,
				    uint64_t base);
/* So many stubs fit behind this text. */
size_t objects_room(const struct maps_region *where, const struct elfmem_text *text);
/* Does something stand before this `syscall` that can be replaced? */
bool objects_can_change(pid_t tid, const struct sysent *ent, const struct elfmem_text *text,
			uint64_t syscall);
/* Site i as it lies in a tracee, and the address of its stub. False: not in this region. */
bool object_site(const struct object *o, size_t i, const struct maps_region *where,
		 struct stub_site *ret, uint64_t *ret_stub);
