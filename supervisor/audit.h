/*
 * audit: one JSON line a decision, appended to ${state}/audit.jsonl (0600) by a descriptor opened
 * before any tracee exists. A line is written whole by one write(2) with O_APPEND.
 */
#pragma once

#include "supervisor/denial.h"

struct audit {
	int fd;       /* -1: closed */
	char run[33];
	const char *label;
};

int audit_open(const char *state_dir, const char *run, const char *label, struct audit *ret);
void audit_close(struct audit *a);
/* 0, or -errno (a full disk is reported once by the caller, and loses nothing else). */
int audit_decision(const struct audit *a, const struct denial *d);
