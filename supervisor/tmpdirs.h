/*
 * tmpdirs: which private temporary directories there are, so that one whose warder was killed is
 * removed by the next that starts.
 *
 * Each has a note in STATE/tmpdirs, where no command behind the wall reaches; whoever made it holds
 * a lock (flock) on the note as long as it lives. A note that can be locked is a dead one's. It
 * says the host, for the state directory may be another machine's too, and the directory's device
 * and inode, for something else may lie at its path by now.
 *
 * Between the directory's making and its note's there is a moment: killed there, an empty directory
 * stays.
 */
#pragma once

#include "tracer/buf.h"

struct tmpdirs_note {
	int fd;	    /* holds the lock; -1: none */
	char *file; /* owned */
};

/*
 * A note of dir (absolute, real, ours), named by id, which no other has. 0, or -errno with *ret
 * released.
 */
int tmpdirs_note(const char *state_dir, const char *id, const char *dir, struct tmpdirs_note *ret);
/* The directory is gone, or to be left where it is. A released one is fine. */
void tmpdirs_forget(struct tmpdirs_note *n);

/* What one start does at most: a run is not held up by what another left. */
#define TMPDIRS_LOOKED_AT 64
#define TMPDIRS_ENTRIES	  2000 /* files and directories that are removed */

/*
 * Remove what dead ones left, as far as the bounds go; nothing of another user, of a living one, or
 * that is not the directory that was noted. A line (escaped) for each that can't be removed; it is
 * not tried again. 0, also where nothing was ever noted; or -errno: the notes can't be read.
 */
int tmpdirs_sweep(const char *state_dir, struct buf *ret_lines);
