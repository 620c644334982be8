// SPDX-License-Identifier: Apache-2.0
/* sign.c: see sign.h. */
#include "learn/sign.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <string.h>

static weft_status gnutls_fault(int rc, weft_error *err)
{
    if (rc == GNUTLS_E_MEMORY_ERROR) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a signature");
    return weft_fail(err, WEFT_INTERNAL, "Ed25519: %s", gnutls_strerror(rc));
}

weft_status weft__learn_pair_new(weft__learn_pair *out, weft_error *err)
{
    gnutls_privkey_t key = NULL;
    gnutls_datum_t x = {0}, k = {0};
    gnutls_ecc_curve_t curve;
    int rc = gnutls_privkey_init(&key);
    if (rc >= 0) rc = gnutls_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, 0, 0);
    if (rc >= 0) rc = gnutls_privkey_export_ecc_raw(key, &curve, &x, NULL, &k);
    if (rc >= 0 && (x.size != sizeof out->public_key || k.size != sizeof out->secret)) rc = GNUTLS_E_INTERNAL_ERROR;
    if (rc >= 0) {
        memcpy(out->public_key, x.data, x.size);
        memcpy(out->secret, k.data, k.size);
    }
    if (k.data) gnutls_memset(k.data, 0, k.size);
    gnutls_free(x.data);
    gnutls_free(k.data);
    if (key) gnutls_privkey_deinit(key);
    return rc < 0 ? gnutls_fault(rc, err) : WEFT_OK;
}

weft_status weft__learn_sign(const weft__learn_pair *pair, const void *bytes, size_t n,
                             unsigned char out[WEFT__LEARN_SIGNATURE_BYTES], weft_error *err)
{
    weft__learn_pair own = *pair;
    gnutls_datum_t x = {own.public_key, sizeof own.public_key}, k = {own.secret, sizeof own.secret}, signature = {0};
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)bytes, (unsigned)n};
    gnutls_privkey_t key = NULL;
    int rc = gnutls_privkey_init(&key);
    if (rc >= 0) rc = gnutls_privkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_ED25519, &x, NULL, &k);
    if (rc >= 0) rc = gnutls_privkey_sign_data2(key, GNUTLS_SIGN_EDDSA_ED25519, 0, &text, &signature);
    if (rc >= 0 && signature.size != WEFT__LEARN_SIGNATURE_BYTES) rc = GNUTLS_E_INTERNAL_ERROR;
    if (rc >= 0) memcpy(out, signature.data, signature.size);
    gnutls_free(signature.data);
    if (key) gnutls_privkey_deinit(key);
    gnutls_memset(&own, 0, sizeof own);
    if (rc < 0) return gnutls_fault(rc, err);
    if (!weft__learn_check_signature(pair->public_key, bytes, n, out))
        return weft_fail(err, WEFT_FORMAT, "the private and the public key do not belong together");
    return WEFT_OK;
}

int weft__learn_check_signature(const unsigned char public_key[WEFT__LEARN_KEY_BYTES], const void *bytes, size_t n,
                                const unsigned char signature[WEFT__LEARN_SIGNATURE_BYTES])
{
    unsigned char x_bytes[WEFT__LEARN_KEY_BYTES], s_bytes[WEFT__LEARN_SIGNATURE_BYTES];
    memcpy(x_bytes, public_key, sizeof x_bytes);
    memcpy(s_bytes, signature, sizeof s_bytes);
    gnutls_datum_t x = {x_bytes, sizeof x_bytes}, s = {s_bytes, sizeof s_bytes};
    gnutls_datum_t text = {(unsigned char *)(uintptr_t)bytes, (unsigned)n};
    gnutls_pubkey_t key = NULL;
    int rc = gnutls_pubkey_init(&key);
    if (rc >= 0) rc = gnutls_pubkey_import_ecc_raw(key, GNUTLS_ECC_CURVE_ED25519, &x, NULL);
    if (rc >= 0) rc = gnutls_pubkey_verify_data2(key, GNUTLS_SIGN_EDDSA_ED25519, 0, &text, &s);
    if (key) gnutls_pubkey_deinit(key);
    return rc >= 0;
}
