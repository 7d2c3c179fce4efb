/*
 * sha256: FIPS 180-4. Pure.
 */
#pragma once

#include <stddef.h>

/* 64 lower-case hexadecimal digits and a NUL. */
void sha256_hex(const void *bytes, size_t n, char ret[65]);
