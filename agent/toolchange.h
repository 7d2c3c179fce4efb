/*
 * toolchange: write_file and edit_file, in the walled child. What would change is read and told as
 * a diff before the file is opened for writing, so that whoever is asked about it sees it first.
 */
#pragma once

#include "agent/toolwork.h"

/* Bytes of a diff: for the one who looks on, and for the model. */
#define TOOLCHANGE_PREVIEW_MAX (64u << 10)
#define TOOLCHANGE_ANSWER_MAX  (8u << 10)
/* A file larger than this is not edited, and replaced without a diff. */
#define TOOLCHANGE_FILE_MAX (16u << 20)

void toolchange_write(const struct toolwork *t);
void toolchange_edit(const struct toolwork *t);
