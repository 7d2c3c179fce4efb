/*
 * sha256: FIPS 180-4's SHA-256, to name a text in a report or remember what was accepted.
 */
#pragma once

#include <stddef.h>

#define SHA256_BYTES 32
#define SHA256_HEX   65 /* with the NUL */

void sha256_digest(const void *bytes, size_t n, unsigned char ret[SHA256_BYTES]);
/* The same in lower-case hex. */
void sha256_hex(const void *bytes, size_t n, char ret[SHA256_HEX]);
