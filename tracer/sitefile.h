/*
 * sitefile: what earlier runs have learned of mapped files (tracer/objects.h), kept in one file of
 * the state directory. x86-64.
 *
 * Nothing in it is believed: it says where to look, and whoever uses it looks at the bytes there,
 * in the tracee, as if it had come upon them by itself. What is wrong in it can make a run slower,
 * never otherwise. So a file whose build id was copied from another's harms nobody: its bytes are
 * its own, and in the file it has an entry of its own, by its device and inode.
 *
 * The file is "sites", 0600, of at most SITEFILE_SIZE_MAX bytes: the oldest entries go first. It
 * is read when it is first asked, and used only where it and its directory belong to the effective
 * user and nobody else can write them; replaced as a whole, by rename, when something new is known
 * at the end. Two runs that end at once may lose what one of them learned. Where it can't be read
 * or written, all is as without it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SITEFILE_ID_MAX	   32 /* bytes of a build id; the usual ones have 20 */
#define SITEFILE_SITES_MAX 24
#define SITEFILE_SIZE_MAX  (64u << 10)

/* A mapped file; what is not used of id is 0. */
struct sitefile_key {
	uint64_t dev, ino;
	uint64_t room;	/* file offset behind the text, where stubs go, */
	uint32_t slots; /* and how many */
	uint32_t id_len;
	uint8_t id[SITEFILE_ID_MAX]; /* its build id */
};

struct sitefile_site {
	uint64_t offset;   /* of a syscall instruction in the file */
	int32_t nr;	   /* what it is watched for */
	uint32_t function; /* decoded from so many bytes before it; 0: its bytes say what it is */
};

struct sitefile;

/*
 * dir: the state directory, copied. rules: of learning; what was written by others is not used.
 * Nothing is opened yet. NULL without memory.
 */
struct sitefile *sitefile_new(const char *dir, uint32_t rules);
/* Writes the file, if anything was put into it. NULL is fine. */
void sitefile_free(struct sitefile *f);
/*
 * The sites of a file, up to SITEFILE_SITES_MAX: how many, or -ENOENT where nothing is known of it.
 * (None is something, too.) The first call reads the file: some 20 us.
 */
int sitefile_find(struct sitefile *f, const struct sitefile_key *key,
		  struct sitefile_site ret[SITEFILE_SITES_MAX]);
/* To be written in the place of what was known. Without memory it is not. */
void sitefile_put(struct sitefile *f, const struct sitefile_key *key,
		  const struct sitefile_site *site, size_t n);
