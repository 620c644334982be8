// SPDX-License-Identifier: Apache-2.0
/* sha256.c: see sha256.h. */
#include "base/sha256.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

weft_status weft__sha256_begin(weft__sha256 *h, weft_error *err)
{
    gnutls_hash_hd_t state;
    weft__sha256_free(h);
    int rc = gnutls_hash_init(&state, GNUTLS_DIG_SHA256);
    if (rc == GNUTLS_E_MEMORY_ERROR) return weft_fail(err, WEFT_NO_MEMORY, "no memory for SHA-256");
    if (rc < 0) return weft_fail(err, WEFT_INTERNAL, "SHA-256 is not available: %s", gnutls_strerror(rc));
    h->state = state;
    return WEFT_OK;
}

weft_status weft__sha256_add(weft__sha256 *h, const void *bytes, size_t n, weft_error *err)
{
    int rc = n ? gnutls_hash(h->state, bytes, n) : 0;
    return rc < 0 ? weft_fail(err, WEFT_INTERNAL, "SHA-256 failed: %s", gnutls_strerror(rc)) : WEFT_OK;
}

void weft__sha256_end_bytes(weft__sha256 *h, unsigned char digest[32])
{
    gnutls_hash_deinit(h->state, digest);
    h->state = NULL;
}

void weft__sha256_end(weft__sha256 *h, char hex[65])
{
    unsigned char digest[32];
    weft__sha256_end_bytes(h, digest);
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void weft__sha256_end_words(weft__sha256 *h, uint64_t words[2])
{
    unsigned char digest[32];
    weft__sha256_end_bytes(h, digest);
    words[0] = words[1] = 0;
    for (int i = 0; i < 16; i++) words[i / 8] = words[i / 8] << 8 | digest[i];
}

void weft__sha256_free(weft__sha256 *h)
{
    if (h->state) gnutls_hash_deinit(h->state, NULL);
    h->state = NULL;
}
