// SPDX-License-Identifier: Apache-2.0
/* sha256.h: SHA-256 of a stream; the only door to the library that computes it (GnuTLS). One thread per object. */
#ifndef WEFT_BASE_SHA256_H
#define WEFT_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "weft/error.h"

/* Zero-initialise. */
typedef struct weft__sha256 {
    void *state;
} weft__sha256;

/* Begins anew, whatever came before. Fails with WEFT_NO_MEMORY or WEFT_INTERNAL. */
weft_status weft__sha256_begin(weft__sha256 *h, weft_error *err);
weft_status weft__sha256_add(weft__sha256 *h, const void *bytes, size_t n, weft_error *err);
/* Writes 64 lower-case hexadecimal digits and a NUL, and frees the state. */
void weft__sha256_end(weft__sha256 *h, char hex[65]);
/* Instead of it: the digest itself. */
void weft__sha256_end_bytes(weft__sha256 *h, unsigned char digest[32]);
/* Instead of it: the first 128 bits as two big-endian numbers, for keys. */
void weft__sha256_end_words(weft__sha256 *h, uint64_t words[2]);
void weft__sha256_free(weft__sha256 *h);

#endif
