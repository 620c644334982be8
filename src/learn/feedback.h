// SPDX-License-Identifier: Apache-2.0
/* feedback.h: what a client says of an answer, as JSON. Pure. */
#ifndef WEFT_LEARN_FEEDBACK_H
#define WEFT_LEARN_FEEDBACK_H

#include "base/json.h"
#include "learn/store.h"

typedef struct weft__learn_said {
    weft__json *root;              /* the caller's */
    weft__learn_feedback feedback; /* borrows from root; tenant and time are the caller's to fill */
    const char *user;              /* as in other requests; NULL: none */
} weft__learn_said;

/* Reads text[0..n): an object of request_id, index, user, idempotency_key, and one of correction, edit, preferred,
 * thumb, reward and verifier. WEFT_ARGUMENT: what is wrong, by the name of the member, which stands in field too (""
 * when it is about none); WEFT_FORMAT: no JSON; WEFT_NO_MEMORY. out->root is NULL then. */
weft_status weft__learn_feedback_read(const char *text, size_t n, weft__learn_said *out, char field[32],
                                      weft_error *err);

/* The value of a header Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): a String of RFC 9651 ("a\"b"), or,
 * as many clients send it, the bare key. A key is 1 to 255 bytes of printable ASCII, bare without blanks, quotes and
 * commas: a list would be several. WEFT_ARGUMENT. */
weft_status weft__learn_key_read(const char *value, char out[WEFT__LEARN_KEY], weft_error *err);

#endif
