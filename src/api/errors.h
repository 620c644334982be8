// SPDX-License-Identifier: Apache-2.0
/* errors.h: errors as the dialects spell them. Any thread. */
#ifndef WEFT_API_ERRORS_H
#define WEFT_API_ERRORS_H

#include "api/fields.h"

typedef enum weft__api_dialect { WEFT__API_OPENAI, WEFT__API_LLAMA } weft__api_dialect;
weft__api_dialect weft__api_dialect_of(const char *path);

/* An error's JSON in the dialect, [*n], weft__free; NULL when memory runs out. */
char *weft__api_error_body(weft__api_dialect dialect, const weft__api_error *error, size_t *n);
/* The error of a failed call of the engine. message NULL or "": what the status says. */
void weft__api_error_of(weft__api_error *error, weft_status status, const char *message);
/* Takes the tenants out of what stands in a message by a name of the engine's: "key-0123456789ab.mine" is "mine" to
 * its tenant, and "?" to any other. tenant: of the reader, NULL: it is the name's own. */
void weft__api_hide_tenants(char *message, const char *tenant);

/* Of a stream: the event of an error of the engine. out->failed when memory runs out. */
void weft__api_put_error_event(weft__api_dialect dialect, weft_status status, const char *message, weft__strbuf *out);
/* Of a stream: the event of an answer that there is no memory for; it needs none. Static. */
const char *weft__api_no_memory_event(weft__api_dialect dialect);

#endif
