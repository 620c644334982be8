// SPDX-License-Identifier: Apache-2.0
/* reply.c: answers that are there at once: errors, and JSON that is whole. Any thread. */
#include <stdio.h>

#include "server/reply.h"
#include "server/response.h"

void weft__server_reply_error(weft__http_request *r, const weft__api_error *error)
{
    size_t n;
    weft__server_response *failed = weft__http_set_beside(r, NULL);
    if (failed) {
        weft__server_response_tell_failed(failed, r);
        return;
    }
    char *body = weft__api_error_body(weft__api_dialect_of(weft__http_path(r)), error, &n);
    if (error->status == 401) weft__http_add_header(r, "WWW-Authenticate", "Bearer");
    if (error->status == 429 ||
        error->status == 503) { /* clients that heed nothing else come again at once, all together */
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", error->retry_s > 1 ? error->retry_s : 1);
        weft__http_add_header(r, "Retry-After", seconds);
    }
    weft__http_reply(r, error->status, "application/json; charset=utf-8", body, n);
}

void weft__server_reply_json(weft__http_request *r, int status, weft__strbuf *body)
{
    weft__api_error error = {0};
    if (body->failed) {
        weft__strbuf_free(body);
        weft__api_error_set(&error, 503, NULL, "no memory for the answer");
        weft__server_reply_error(r, &error);
        return;
    }
    weft__http_reply(r, status, "application/json; charset=utf-8", body->data, body->len);
    *body = (weft__strbuf){0};
}

void weft__server_reply_end(weft__http_request *r, weft__strbuf *body, const weft__api_error *error)
{
    if (error->status) {
        weft__strbuf_free(body);
        weft__server_reply_error(r, error);
    } else {
        weft__server_reply_json(r, 200, body);
    }
    weft__http_release(r);
}
