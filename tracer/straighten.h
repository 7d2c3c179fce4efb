/*
 * straighten: a seccomp program with fewer instructions that answers the same. The kernel turns
 * each of them into machine code whenever a command is started.
 *
 * Async-signal-safe; only jumps, loads, ALU and returns of constants are known. Every jump of the
 * program leads to one of its instructions, and every way through it ends in a return.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>

#define STRAIGHTEN_MAX 4096 /* the kernel's limit */

/* In place: n instructions, at most STRAIGHTEN_MAX. How many are left. */
size_t straighten(struct sock_filter *out, size_t n);
