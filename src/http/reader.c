// SPDX-License-Identifier: Apache-2.0
/* reader.c: see reader.h. A line is looked at when all of it is there, a body as it comes. */
#include "http/reader.h"

#include <ctype.h>
#include <string.h>

enum { REQUEST_LINE, FIELDS, FRAMING, BODY, CHUNK_SIZE, CHUNK, CHUNK_END, TRAILERS, COMPLETE, REFUSED };

static enum weft__http_read reader_refuse(weft__http_reader *r, int status, const char *message)
{
    r->state = REFUSED;
    r->status = status;
    r->message = message;
    return WEFT__HTTP_READ_REFUSED;
}

static int is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] > 0x7E ||
            (!isalnum((unsigned char)s[i]) && (!s[i] || !strchr("!#$%&'*+-.^_`|~", s[i]))))
            return 0;
    return n > 0;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Appends a part of the target with %XX decoded, and '+' to a blank in arguments. 0: it is malformed, or has a NUL. */
static int decode(weft__strbuf *out, const char *s, size_t n, int is_argument)
{
    int ok = 1;
    for (size_t i = 0; i < n && ok; i++) {
        char c = s[i];
        if (c == '%') {
            ok = n - i >= 3 && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0 && memcmp(s + i + 1, "00", 2);
            if (!ok) break;
            c = (char)(hex(s[i + 1]) * 16 + hex(s[i + 2]));
            i += 2;
        } else if (is_argument && c == '+') c = ' ';
        weft__strbuf_putc(out, c);
    }
    weft__strbuf_putc(out, 0); /* also behind what is refused, whose path is shown */
    return ok;
}

/* "a=b&c" */
static int read_query(weft__http_reader *r, const char *s, const char *end)
{
    while (s < end) {
        const char *stop = memchr(s, '&', (size_t)(end - s));
        if (!stop) stop = end;
        const char *equals = memchr(s, '=', (size_t)(stop - s)), *name_end = equals ? equals : stop;
        const char *value = equals ? equals + 1 : stop;
        if (!decode(&r->text, s, (size_t)(name_end - s), 1) || !decode(&r->text, value, (size_t)(stop - value), 1))
            return 0;
        r->n_query++;
        s = stop < end ? stop + 1 : end;
    }
    return 1;
}

/* "/path", or "scheme://host/path" with no escape before the path, which could be another host to another program. */
static int is_target(const char *s, const char *end)
{
    const char *host = memmem(s, (size_t)(end - s), "//", 2);
    if (*s == '/') return 1;
    const char *path = host ? memchr(host + 2, '/', (size_t)(end - host - 2)) : NULL;
    return !memchr(s, '%', (size_t)((path ? path : end) - s));
}

/* METHOD SP TARGET SP VERSION, with one blank each. */
static enum weft__http_read read_request_line(weft__http_reader *r, const char *s, size_t n)
{
    static const char malformed[] = "the request line is malformed";
    const char *end = s + n, *target = memchr(s, ' ', n),
               *version = target ? memchr(target + 1, ' ', (size_t)(end - target - 1)) : NULL;
    for (const char *p = s; p < end; p++)
        if (*p < 0x20 || *p > 0x7E)
            return reader_refuse(r, 400, malformed); /* chars are signed, or not: both are refused */
    if (!version || target == s || version == target + 1 || memchr(version + 1, ' ', (size_t)(end - version - 1)))
        return reader_refuse(r, 400, malformed);
    if (!is_token(s, (size_t)(target - s)) || target - s > WEFT__HTTP_MAX_METHOD)
        return reader_refuse(r, 400, malformed);
    const char *v = version + 1;
    if (end - v != 8 || memcmp(v, "HTTP/", 5) || !isdigit((unsigned char)v[5]) || v[6] != '.' ||
        !isdigit((unsigned char)v[7]))
        return reader_refuse(r, 400, malformed);
    memcpy(r->method, s, (size_t)(target - s));
    r->method[target - s] = 0;
    target++;
    const char *query = memchr(target, '?', (size_t)(version - target));
    const char *path_end = query ? query : version;
    int ok = decode(&r->text, target, (size_t)(path_end - target), 0) && is_target(target, path_end);
    if (ok && query) ok = read_query(r, query + 1, version);
    if (r->text.failed) return reader_refuse(r, 503, "no memory for the head");
    if (!ok) return reader_refuse(r, 400, "the target is not a path");
    if (v[5] != '1' || v[7] > '1') return reader_refuse(r, 505, "HTTP/1.0 or HTTP/1.1 is wanted");
    r->is_modern = v[7] == '1';
    r->state = FIELDS;
    return WEFT__HTTP_READ_LINE;
}

/* NAME ":" VALUE. Of a trailer only whether it is one. 0: refused. */
static int read_field(weft__http_reader *r, const char *s, size_t n, int is_trailer)
{
    size_t *count = is_trailer ? &r->n_trailers : &r->n_headers;
    const char *colon = memchr(s, ':', n), *value = colon ? colon + 1 : NULL, *end = s + n;
    if (*count >= r->max_headers) return reader_refuse(r, 431, "too many headers"), 0;
    if (*s == ' ' || *s == '\t') return reader_refuse(r, 400, "a header is folded over two lines"), 0;
    if (!colon) return reader_refuse(r, 400, is_trailer ? "the body is malformed" : "a header has no colon"), 0;
    if (!is_token(s, (size_t)(colon - s))) return reader_refuse(r, 400, "a header's name is not a token"), 0;
    while (value < end && (*value == ' ' || *value == '\t')) value++;
    while (end > value && (end[-1] == ' ' || end[-1] == '\t')) end--;
    for (const char *p = value; p < end; p++)
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7F)
            return reader_refuse(r, 400, "a header's value has control characters"), 0;
    ++*count; /* only what is in the text counts: others walk through it */
    if (is_trailer) return 1;
    weft__strbuf_put(&r->text, s, (size_t)(colon - s));
    weft__strbuf_putc(&r->text, 0);
    weft__strbuf_put(&r->text, value, (size_t)(end - value));
    weft__strbuf_putc(&r->text, 0);
    return r->text.failed ? (reader_refuse(r, 503, "no memory for the head"), 0) : 1;
}

/* 1*HEX [";" ...] */
static enum weft__http_read read_chunk_size(weft__http_reader *r, const char *s, size_t n)
{
    static const char malformed[] = "the size of a chunk is malformed";
    uint64_t size = 0;
    size_t i = 0;
    for (; i < n && hex(s[i]) >= 0; i++) {
        if (size >> 56) return reader_refuse(r, 413, "the body is too long");
        size = size * 16 + (uint64_t)hex(s[i]);
    }
    if (!i || (i < n && s[i] != ';')) return reader_refuse(r, 400, malformed);
    for (size_t at = i; at < n; at++)
        if (((unsigned char)s[at] < 0x20 && s[at] != '\t') || s[at] == 0x7F) return reader_refuse(r, 400, malformed);
    r->n_extensions += n - i;
    if (r->n_extensions > WEFT__HTTP_MAX_EXTENSIONS)
        return reader_refuse(r, 400, "the extensions of chunks are too long");
    r->left = size;
    r->state = size ? CHUNK : TRAILERS;
    return WEFT__HTTP_READ_MORE;
}

static enum weft__http_read take_line(weft__http_reader *r, const char *s, size_t n)
{
    switch (r->state) {
    case REQUEST_LINE:
        if (!n && r->n_lines == 2)
            return WEFT__HTTP_READ_MORE; /* one may stand behind the last request (RFC 9112 2.2) */
        return read_request_line(r, s, n);
    case FIELDS:
        if (n) return read_field(r, s, n, 0) ? WEFT__HTTP_READ_MORE : WEFT__HTTP_READ_REFUSED;
        r->state = FRAMING;
        return WEFT__HTTP_READ_HEAD;
    case CHUNK_SIZE: return read_chunk_size(r, s, n);
    case CHUNK_END:
        if (n) return reader_refuse(r, 400, "a chunk is longer than its size");
        r->state = CHUNK_SIZE;
        return WEFT__HTTP_READ_MORE;
    default: /* TRAILERS */
        if (n) return read_field(r, s, n, 1) ? WEFT__HTTP_READ_MORE : WEFT__HTTP_READ_REFUSED;
        r->state = COMPLETE;
        return WEFT__HTTP_READ_END;
    }
}

/* How long the line in state may be, without its end, beyond which it is refused before it is whole. */
static size_t line_limit(const weft__http_reader *r)
{
    if (r->state == CHUNK_END) return 0;
    if (r->state == CHUNK_SIZE) return WEFT__HTTP_MAX_EXTENSIONS + 16;
    return r->max_head > r->n_lines ? r->max_head - r->n_lines : 0;
}

static enum weft__http_read refuse_long(weft__http_reader *r)
{
    if (r->state == REQUEST_LINE) return reader_refuse(r, 414, "the target is too long");
    if (r->state == CHUNK_SIZE) return reader_refuse(r, 400, "the extensions of chunks are too long");
    if (r->state == CHUNK_END) return reader_refuse(r, 400, "a chunk is longer than its size");
    return reader_refuse(r, 431, "the headers are too long");
}

/* Looks for a line in bytes[0..n); what ends it otherwise than CR LF is refused as soon as it is there. */
static enum weft__http_read next_line(weft__http_reader *r, const char *bytes, size_t n, size_t *n_used)
{
    const size_t limit = line_limit(r);
    size_t i = r->n_seen;
    while (i < n && i <= limit && bytes[i] != '\r' && bytes[i] != '\n' && bytes[i]) i++;
    if (i > limit) return refuse_long(r);
    r->n_seen = i;
    if (i == n || (bytes[i] == '\r' && i + 1 == n)) return WEFT__HTTP_READ_MORE;
    if (!bytes[i]) return reader_refuse(r, 400, "there is a NUL in a line");
    if (bytes[i] == '\n' || bytes[i + 1] != '\n') return reader_refuse(r, 400, "a line must end in CR LF");
    if (r->state != CHUNK_SIZE && r->state != CHUNK_END) r->n_lines += i + 2;
    r->n_seen = 0;
    *n_used += i + 2;
    return take_line(r, bytes, i);
}

/* Bytes of a body or chunk; 0 left: what comes next. */
static enum weft__http_read next_piece(weft__http_reader *r, size_t n, size_t *n_used, size_t *n_piece)
{
    if (!n) return WEFT__HTTP_READ_MORE;
    *n_piece = r->left < n ? (size_t)r->left : n;
    *n_used += *n_piece;
    r->left -= *n_piece;
    if (!r->left) r->state = r->state == CHUNK ? CHUNK_END : COMPLETE;
    return WEFT__HTTP_READ_BODY;
}

enum weft__http_read weft__http_reader_next(weft__http_reader *r, const char *bytes, size_t n, size_t *n_used,
                                            const char **piece, size_t *n_piece)
{
    enum weft__http_read got = WEFT__HTTP_READ_MORE;
    *n_used = *n_piece = 0;
    for (size_t before = 1; got == WEFT__HTTP_READ_MORE && before != *n_used;) {
        before = *n_used;
        if (r->state == REFUSED) return WEFT__HTTP_READ_REFUSED;
        if (r->state == FRAMING) return WEFT__HTTP_READ_HEAD;
        if (r->state == COMPLETE) return WEFT__HTTP_READ_END;
        *piece = bytes + before;
        if (r->state == BODY || r->state == CHUNK) got = next_piece(r, n - before, n_used, n_piece);
        else got = next_line(r, bytes + before, n - before, n_used);
    }
    return got;
}

void weft__http_reader_body(weft__http_reader *r, int is_chunked, uint64_t length)
{
    r->left = length;
    r->state = is_chunked ? CHUNK_SIZE : length ? BODY : COMPLETE;
}

void weft__http_reader_reset(weft__http_reader *r)
{
    const size_t max_head = r->max_head, max_headers = r->max_headers;
    weft__strbuf_free(&r->text);
    *r = (weft__http_reader){.max_head = max_head, .max_headers = max_headers};
}
