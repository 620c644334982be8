// SPDX-License-Identifier: Apache-2.0
/* reply.h: answers that are there at once: errors, and JSON that is whole. Any thread. */
#ifndef WEFT_SERVER_REPLY_H
#define WEFT_SERVER_REPLY_H

#include "api/errors.h"
#include "base/text.h"
#include "http/http.h"

/* Where an answer failed and the request is asked again, that answer instead. */
void weft__server_reply_error(weft__http_request *r, const weft__api_error *error);
/* Takes the text's bytes. */
void weft__server_reply_json(weft__http_request *r, int status, weft__strbuf *body);
/* One of them, by whether the error is set, and lets go of the request. Takes the text's bytes in any case. */
void weft__server_reply_end(weft__http_request *r, weft__strbuf *body, const weft__api_error *error);

#endif
