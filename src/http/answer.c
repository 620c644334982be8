// SPDX-License-Identifier: Apache-2.0
/* answer.c: heads of answers. By the loop of the connection, under the request's lock. */
#include "http/parts.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {201, "Created"},
                   {202, "Accepted"},
                   {204, "No Content"},
                   {304, "Not Modified"},
                   {400, "Bad Request"},
                   {401, "Unauthorized"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {408, "Request Timeout"},
                   {409, "Conflict"},
                   {411, "Length Required"},
                   {413, "Content Too Large"},
                   {414, "URI Too Long"},
                   {415, "Unsupported Media Type"},
                   {422, "Unprocessable Content"},
                   {429, "Too Many Requests"},
                   {431, "Request Header Fields Too Large"},
                   {499, "Client Closed Request"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {502, "Bad Gateway"},
                   {503, "Service Unavailable"},
                   {504, "Gateway Timeout"},
                   {505, "HTTP Version Not Supported"},
                   {507, "Insufficient Storage"}};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status) return reasons[i].reason;
    return "Status";
}

/* What the page wants to send, when those are names; clients add headers of their own (X-Stainless-...), and none is
 * kept from them. */
static const char *asked_headers(const weft__http_request *r)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_, ";
    const char *asked = weft__http_header(r, "Access-Control-Request-Headers");
    size_t n = asked ? strlen(asked) : 0;
    return n && n <= 1024 && strspn(asked, letters) == n ? asked : "Authorization, Content-Type, X-Api-Key";
}

static void answer_put(weft__strbuf *out, const char *name, const char *value)
{
    weft__strbuf_puts(out, name);
    weft__strbuf_puts(out, ": ");
    weft__strbuf_puts(out, value);
    weft__strbuf_puts(out, "\r\n");
}

static void put_cors(const weft__http_request *r, weft__strbuf *out)
{
    if (!r->cors) return;
    answer_put(out, "Access-Control-Allow-Origin", r->cors);
    answer_put(out, "Vary", "Origin");
    answer_put(out, "Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
    if (strcmp(r->method, "OPTIONS")) return;
    answer_put(out, "Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    answer_put(out, "Access-Control-Allow-Headers", asked_headers(r));
    answer_put(out, "Access-Control-Max-Age", "600");
}

/* As RFC 9110 5.6.7 has it, whatever the locale is. */
static void put_date(weft__strbuf *out)
{
    static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const time_t now = time(NULL);
    struct tm t;
    if (!gmtime_r(&now, &t)) return;
    weft__strbuf_printf(out, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d GMT\r\n", days + 3 * t.tm_wday, t.tm_mday,
                        months + 3 * t.tm_mon, t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

/* How it ends: by its length, in chunks, or with the connection. */
static void put_framing(const weft__http_request *r, struct weft__http_connection *k)
{
    int kept = !weft__http_has_word(r, "Connection", "close") &&
               (r->modern || weft__http_has_word(r, "Connection", "keep-alive"));
    k->is_chunked = r->stream && r->modern;
    k->closes = !kept || r->closes || r->http->quiet || (r->stream && !r->modern);
    if (k->closes) answer_put(&k->out, "Connection", "close");
    else if (!r->modern) answer_put(&k->out, "Connection", "keep-alive");
    if (k->is_chunked) answer_put(&k->out, "Transfer-Encoding", "chunked");
    else if (!r->stream && r->status != 204 && r->status != 304)
        weft__strbuf_printf(&k->out, "Content-Length: %zu\r\n", r->n_whole);
}

/* 1: the handler gave this header a value of its own. */
static int is_given(const weft__http_request *r, const char *header)
{
    for (size_t i = 0; !r->extra.failed && i < r->extra.len;) {
        const char *name = r->extra.data + i, *value = name + strlen(name) + 1;
        if (!strcmp(name, header)) return 1;
        i += strlen(name) + strlen(value) + 2;
    }
    return 0;
}

void weft__http_answer_head(weft__http_request *r, struct weft__http_connection *k)
{
    weft__strbuf *out = &k->out;
    weft__strbuf_printf(out, "HTTP/1.1 %d %s\r\n", r->status, reason_of(r->status));
    put_date(out);
    put_framing(r, k);
    if (r->content_type && (r->n_whole || r->stream)) answer_put(out, "Content-Type", r->content_type);
    answer_put(out, "X-Content-Type-Options", "nosniff");
    if (!is_given(r, "Cache-Control")) answer_put(out, "Cache-Control", r->stream ? "no-cache" : "no-store");
    answer_put(out, "X-Request-Id", r->name);
    put_cors(r, out);
    for (size_t i = 0; !r->extra.failed && i < r->extra.len;) {
        const char *name = r->extra.data + i, *value = name + strlen(name) + 1;
        answer_put(out, name, value);
        i += strlen(name) + strlen(value) + 2;
    }
    weft__strbuf_puts(out, "\r\n");
}
