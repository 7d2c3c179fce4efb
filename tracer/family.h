/*
 * family: threads and processes as they begin, take on a new image and end. Inside the room.
 */
#pragma once

#include "tracer/act.h"

/*
 * A tracee's first stop came before its creator's word, or the creator died before it could say it:
 * the kernel knows whose it is. 0 with *ret, or with *ret untouched where it is gone by now;
 * -ENOMEM.
 */
int family_adopt(struct tracer *tr, pid_t tid, struct tracee **ret);
/* `t` made another one (fork, vfork, clone), and goes on. 0 or -ENOMEM. */
int family_cloned(struct tracer *tr, struct tracee *t);
/* `t` has a new image: void is every other thread of its process. 0. */
int family_execed(struct tracer *tr, struct tracee *t);
/* It died; frees `t`. `status` as waitpid's. */
void family_ended(struct tracer *tr, struct tracee *t, int status);
