// SPDX-License-Identifier: Apache-2.0
/* page.c: the web page at / and its files at /page/NAME. They say nothing about the model, so that they need no key;
 * what the page asks for then does. Any worker; only reads. */
#include "server/page.h"
#include "server/routes.h"

#include <string.h>

#include "base/alloc.h"
#include "server/server.h"

/* Nothing comes from anywhere else, no script or style stands within HTML, and no text becomes HTML by script. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static const weft__server_page_file *page_find(const char *name)
{
    const weft__server_page_file *f = weft__server_page_files;
    while (f->name && strcmp(f->name, name)) f++;
    return f->name ? f : NULL;
}

/* Does a list of a header ("a, b;q=0.5, c") have that word, and not with the weight 0 (RFC 9110 12.4.2)? */
static int has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    while (list && *list) {
        list += strspn(list, " \t,");
        const size_t item = strcspn(list, ","), name = strcspn(list, "; \t,");
        if (name == n && !strncasecmp(list, word, n)) {
            const char *q = memchr(list, '=', item);
            return !q || strcspn(q, "123456789") < item - (size_t)(q - list);
        }
        list += item;
    }
    return 0;
}

/* If-None-Match: "*", or tags, each maybe weak (W/"..."): for this comparison that makes no difference. */
static int is_known(const char *tags, const char *etag)
{
    return tags && (!strcmp(tags, "*") || strstr(tags, etag));
}

static void put_headers(weft__http_request *r, const char *etag)
{
    weft__http_add_header(r, "Cache-Control", "no-cache"); /* is asked again, by its ETag */
    weft__http_add_header(r, "ETag", etag);
    weft__http_add_header(r, "Vary", "Accept-Encoding");
    weft__http_add_header(r, "Content-Security-Policy", policy);
    weft__http_add_header(r, "Referrer-Policy", "no-referrer");
    weft__http_add_header(r, "Cross-Origin-Opener-Policy", "same-origin");
    weft__http_add_header(r, "Cross-Origin-Resource-Policy", "same-origin");
}

void weft__server_page(weft_server *s, weft__http_request *r, const weft__server_caller *who)
{
    const char *path = weft__http_path(r);
    const weft__server_page_file *f = page_find(!strcmp(path, "/") ? "index.html" : path + strlen("/page/"));
    weft__api_error error = {0};
    (void)who;
    if (s->no_page || !f) {
        weft__api_error_set(&error, 404, NULL, "there is no %.100s here%s", path,
                            s->no_page ? ": the server was started without its page" : "");
        weft__server_reply_error(r, &error);
        weft__http_release(r);
        return;
    }
    const int packed = f->packed && has_word(weft__http_header(r, "Accept-Encoding"), "gzip");
    const size_t n = packed ? f->n_packed : f->n;
    const char *etag = packed ? f->packed_etag : f->etag;
    if (is_known(weft__http_header(r, "If-None-Match"), etag)) {
        put_headers(r, etag);
        weft__http_reply(r, 304, NULL, NULL, 0);
        weft__http_release(r);
        return;
    }
    weft__strbuf body = {0};
    weft__strbuf_put(&body, packed ? f->packed : f->bytes, n);
    if (body.failed) {
        weft__server_reply_json(r, 200, &body); /* says that there is no memory */
    } else {
        put_headers(r, etag);
        if (packed) weft__http_add_header(r, "Content-Encoding", "gzip");
        weft__http_reply(r, 200, f->type, body.data, body.len);
    }
    weft__http_release(r);
}
