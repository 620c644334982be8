// SPDX-License-Identifier: Apache-2.0
/* reader.h: reads requests of HTTP/1.0 and HTTP/1.1 (RFC 9112) out of bytes: request line, fields, a body by length or
 * in chunks.
 *
 * It reads what the standard's grammar has and nothing beside it: what a proxy in front of us could take for something
 * else is refused, and nothing is mended. Lines end in CR LF. There is no NUL, no lone CR or LF, no folded field, no
 * blank before a colon or in a target; of chunks' extensions there are WEFT__HTTP_MAX_EXTENSIONS bytes per body at
 * most. Trailers are held to the same rules, and dropped. Invariant: nothing is read beyond max_head bytes of lines,
 * whatever comes. One thread per reader; no sockets, no clocks. */
#ifndef WEFT_HTTP_READER_H
#define WEFT_HTTP_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum { WEFT__HTTP_MAX_METHOD = 15, WEFT__HTTP_MAX_EXTENSIONS = 4096 /* bytes */ };

enum weft__http_read {
    WEFT__HTTP_READ_MORE,   /* more bytes are wanted */
    WEFT__HTTP_READ_LINE,   /* the request line was read: method, version, path and arguments are there */
    WEFT__HTTP_READ_HEAD,   /* the head is complete; weft__http_reader_body is to be called */
    WEFT__HTTP_READ_BODY,   /* bytes of the body */
    WEFT__HTTP_READ_END,    /* the request is complete; what follows is the next one's */
    WEFT__HTTP_READ_REFUSED /* status and message tell why; nothing more is read */
};

/* Zero-initialise but for the limits. */
typedef struct weft__http_reader {
    size_t max_head, max_headers; /* bytes of all lines, and how many fields */
    int state;                    /* what comes next (reader.c) */
    size_t n_lines, n_seen;       /* bytes of lines read; of the next line, looked at already */
    size_t n_trailers, n_extensions;
    uint64_t left; /* bytes of the body, or of its chunk, to come */
    char method[WEFT__HTTP_MAX_METHOD + 1];
    int is_modern; /* HTTP/1.1 */
    /* The path NUL, n_query times argument NUL value NUL, n_headers times name NUL value NUL. Path, arguments and their
     * values are decoded. */
    weft__strbuf text;
    size_t n_query, n_headers;
    int status; /* of the refusal */
    const char *message;
} weft__http_reader;

/* Reads on in bytes[0..n), which begin where the last call stopped: *n_used of them are used up. BODY:
 * piece[0..n_piece), within them, is of the body. An allocation that fails is a refusal with 503. */
enum weft__http_read weft__http_reader_next(weft__http_reader *r, const char *bytes, size_t n, size_t *n_used,
                                            const char **piece, size_t *n_piece);
/* After HEAD: how the body comes, in chunks or as so many bytes. */
void weft__http_reader_body(weft__http_reader *r, int is_chunked, uint64_t length);
/* Makes it ready for the next request. A caller that wants to keep the text takes it out before. */
void weft__http_reader_reset(weft__http_reader *r);

#endif
