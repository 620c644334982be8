// SPDX-License-Identifier: Apache-2.0
/* sign.h: Ed25519 (RFC 8032); the only door to the library that computes it (GnuTLS). Any thread. */
#ifndef WEFT_LEARN_SIGN_H
#define WEFT_LEARN_SIGN_H

#include <stddef.h>

#include "weft/error.h"

enum { WEFT__LEARN_KEY_BYTES = 32, WEFT__LEARN_SIGNATURE_BYTES = 64 };

/* A key pair. */
typedef struct weft__learn_pair {
    unsigned char secret[WEFT__LEARN_KEY_BYTES], public_key[WEFT__LEARN_KEY_BYTES];
} weft__learn_pair;

/* From the system's entropy. WEFT_NO_MEMORY, WEFT_INTERNAL. */
weft_status weft__learn_pair_new(weft__learn_pair *out, weft_error *err);
/* WEFT_NO_MEMORY, WEFT_INTERNAL; WEFT_FORMAT: the halves do not belong together. */
weft_status weft__learn_sign(const weft__learn_pair *pair, const void *bytes, size_t n,
                             unsigned char out[WEFT__LEARN_SIGNATURE_BYTES], weft_error *err);
/* 1: the signature is that key's of these bytes. */
int weft__learn_check_signature(const unsigned char public_key[WEFT__LEARN_KEY_BYTES], const void *bytes, size_t n,
                                const unsigned char signature[WEFT__LEARN_SIGNATURE_BYTES]);

#endif
