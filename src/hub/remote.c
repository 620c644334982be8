// SPDX-License-Identifier: Apache-2.0
/* remote.c: see remote.h. */
#include "hub/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/log.h"

enum { PAGE_BYTES_MAX = 16 << 20, LISTING_BYTES_MAX = 48 << 20, PAGES_MAX = 64, TOKEN_MAX = 900, LIST_TRIES = 3 };

static weft_status number_from(const char *variable, int fallback, int min, int max, int *out, weft_error *err)
{
    const char *s = getenv(variable);
    char *stop;
    *out = fallback;
    if (!s || !s[0]) return WEFT_OK;
    long v = strtol(s, &stop, 10);
    if (*stop || v < min || v > max)
        return weft_fail(err, WEFT_ARGUMENT, "%s must be a whole number from %d to %d", variable, min, max);
    *out = (int)v;
    return WEFT_OK;
}

static weft_status read_endpoint(weft__remote *r, weft_error *err)
{
    const char *s = getenv("HF_ENDPOINT");
    if (!s || !s[0]) s = "https://huggingface.co";
    size_t n = strlen(s);
    while (n && s[n - 1] == '/') n--;
    if (n == 0 || n >= sizeof r->endpoint) return weft_fail(err, WEFT_ARGUMENT, "HF_ENDPOINT is no usable address");
    memcpy(r->endpoint, s, n);
    r->endpoint[n] = 0;
    if (!weft__hub_http_is_plain(r->endpoint, r->host, sizeof r->host))
        return weft_fail(err, WEFT_ARGUMENT,
                         "HF_ENDPOINT must be an http or https address without user, query and fragment");
    return WEFT_OK;
}

/* A token that could smuggle a header is refused; one that would travel unprotected is left out, loudly. */
static weft_status read_token(weft__remote *r, weft_error *err)
{
    const char *s = getenv("HF_TOKEN");
    if (!s || !s[0]) return WEFT_OK;
    if (strlen(s) > TOKEN_MAX) return weft_fail(err, WEFT_ARGUMENT, "HF_TOKEN is too long to be a token");
    for (const char *c = s; *c; c++)
        if (*c <= 0x20 || *c > 0x7e)
            return weft_fail(err, WEFT_ARGUMENT, "HF_TOKEN holds characters that no token has (a space or line end?)");
    if (weft__hub_http_is_safe(r->endpoint)) r->token = s;
    else weft__log(WEFT__LOG_WARN, "HF_TOKEN is not sent to %s: HF_ENDPOINT is not https", r->host);
    return WEFT_OK;
}

weft_status weft__remote_open(weft__remote *r, int (*poll)(void *arg), void *arg, weft_error *err)
{
    int timeout;
    *r = (weft__remote){.poll = poll, .arg = arg};
    weft_status st = number_from("WEFT_PULL_TIMEOUT", 30, 1, 3600, &timeout, err);
    if (!st) st = number_from("WEFT_PULL_RETRIES", 5, 0, 100, &r->retries, err);
    if (!st) st = read_endpoint(r, err);
    if (!st) st = read_token(r, err);
    return st ? st : weft__hub_http_open(timeout, &r->http, err);
}

void weft__remote_close(weft__remote *r)
{
    weft__hub_http_close(&r->http);
}

weft_status weft__remote_pause(const weft__remote *r, int tries, weft_error *err)
{
    int ms = tries < 6 ? 250 << (tries - 1) : 8000;
    for (; ms > 0; ms -= 50) {
        if (r->poll && r->poll(r->arg)) return weft_fail(err, WEFT_CANCELLED, "cancelled");
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    return WEFT_OK;
}

/* Everything but unreserved characters and '/' as %XX. */
static void put_escaped(weft__strbuf *t, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || strchr("-_.~/", c))
            weft__strbuf_putc(t, *s);
        else weft__strbuf_printf(t, "%%%02X", c);
    }
}

char *weft__remote_file_url(const weft__remote *r, const weft__hub_name *name, const char *path)
{
    weft__strbuf t = {0};
    weft__strbuf_printf(&t, "%s/%s/%s/resolve/main/", r->endpoint, name->owner, name->repo);
    put_escaped(&t, path);
    if (!t.failed) return t.data; /* from weft__alloc, as everything of a weft__strbuf */
    weft__strbuf_free(&t);
    return NULL;
}

weft_status weft__remote_refused(const weft__remote *r, const weft__hub_name *name, weft__hub_http_reply *reply,
                                 weft_error *err)
{
    const char *said = reply->message, *sep = said[0] ? ": " : "";
    long s = reply->status;
    reply->transient = s == 408 || s == 429 || s >= 500;
    if (s == 401 && !r->token)
        return weft_fail(err, WEFT_NOT_FOUND,
                         "%s/%s: %s has no such model, or it is private or gated: check the name, or set HF_TOKEN%s%s",
                         name->owner, name->repo, r->host, sep, said);
    if (s == 401)
        return weft_fail(err, WEFT_IO, "%s/%s: %s does not accept HF_TOKEN: is it still valid?%s%s", name->owner,
                         name->repo, r->host, sep, said);
    if (s == 403)
        return weft_fail(err, WEFT_IO,
                         "%s/%s: %s refuses access: accept the model's terms at %s/%s/%s and set HF_TOKEN%s%s",
                         name->owner, name->repo, r->host, r->endpoint, name->owner, name->repo, sep, said);
    if (s == 404)
        return weft_fail(err, WEFT_NOT_FOUND, "%s/%s: not found on %s%s%s", name->owner, name->repo, r->host, sep,
                         said);
    if (s == 429)
        return weft_fail(err, WEFT_IO, "%s/%s: %s asks to wait (too many requests); try again later, or set HF_TOKEN",
                         name->owner, name->repo, r->host);
    return weft_fail(err, WEFT_IO, "%s/%s: %s answers with status %ld%s%s", name->owner, name->repo, r->host, s, sep,
                     said);
}

/* ---- small answers ---- */

static weft_status take_text(void *arg, const weft__hub_http_reply *reply, const void *bytes, size_t n, weft_error *err)
{
    weft__strbuf *t = ((weft__strbuf **)arg)[0];
    (void)reply;
    if (n > PAGE_BYTES_MAX - t->len)
        return weft_fail(err, WEFT_LIMIT, "the answer is longer than %d MB: refused", PAGE_BYTES_MAX >> 20);
    weft__strbuf_put(t, bytes, n);
    return t->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the listing") : WEFT_OK;
}

/* What a small answer's call needs: the text that grows, and the remote whose poll is asked. */
struct remote_answer {
    weft__strbuf *text; /* first: take_text reads it */
    weft__remote *r;
};

static int poll_answer(void *arg)
{
    weft__remote *r = ((struct remote_answer *)arg)->r;
    return r->poll && r->poll(r->arg);
}

/* One page into *t, again after passing troubles. */
static weft_status get_text(weft__remote *r, const weft__hub_name *name, const char *url, weft__strbuf *t,
                            weft__hub_http_reply *reply, weft_error *err)
{
    struct remote_answer a = {t, r};
    weft__hub_http_call call = {
        .url = url, .token = r->token, .total_limit = 1, .body = take_text, .poll = poll_answer, .arg = &a};
    for (int tries = 1;; tries++) {
        t->len = 0;
        weft_status st = weft__hub_http_get(r->http, &call, reply, err);
        if (!st && reply->status == 200) return WEFT_OK;
        if (!st) st = weft__remote_refused(r, name, reply, err);
        if (!reply->transient || tries >= LIST_TRIES || tries > r->retries) return st;
        if (weft__remote_pause(r, tries, err)) return WEFT_CANCELLED;
    }
}

weft_status weft__remote_send(weft__remote *r, weft__hub_http_call *call, weft__strbuf *answer,
                              weft__hub_http_reply *reply, weft_error *err)
{
    struct remote_answer a = {answer, r};
    answer->len = 0;
    call->body = take_text;
    call->poll = poll_answer;
    call->arg = &a;
    return weft__hub_http_get(r->http, call, reply, err);
}

/* All pages of a listing that begins at url. *status: of the page that failed, 0 when it was no answer. */
static weft_status read_pages(weft__remote *r, const weft__hub_name *name, const char *first, weft__listing *l,
                              long *status, weft_error *err)
{
    weft__hub_http_reply reply;
    weft__strbuf t = {0};
    size_t sum = 0;
    char url[sizeof reply.next];
    weft_status st = WEFT_OK;
    snprintf(url, sizeof url, "%s", first);
    for (int page = 0; !st && url[0]; page++) {
        if (page == PAGES_MAX || sum > LISTING_BYTES_MAX) {
            st = weft_fail(err, WEFT_LIMIT, "the listing is longer than any repository's should be: refused");
            break;
        }
        st = get_text(r, name, url, &t, &reply, err);
        *status = st ? reply.status : 0;
        if (!st) st = weft__listing_parse(l, t.data ? t.data : "", t.len, err);
        if (st) break;
        sum += t.len;
        memcpy(url, reply.next, sizeof url);
    }
    weft__strbuf_free(&t);
    return st;
}

/* ---- listings ---- */

/* Appends "; did you mean A or B?" from the server's search; best effort. */
static void suggest(weft__remote *r, const weft__hub_name *name, weft_error *err)
{
    char url[2048], shown[WEFT__HUB_SHOW];
    weft__hub_http_reply reply;
    weft__strbuf t = {0}, found = {0};
    weft__json *v = NULL;
    const char *id;
    size_t n;
    snprintf(url, sizeof url, "%s/api/models?search=%s&limit=3", r->endpoint, name->repo);
    struct remote_answer a = {&t, r};
    weft__hub_http_call call = {
        .url = url, .token = r->token, .total_limit = 1, .body = take_text, .poll = poll_answer, .arg = &a};
    if (!err || weft__hub_http_get(r->http, &call, &reply, NULL) || reply.status != 200 || !t.data ||
        weft__json_parse(t.data, t.len, &v, NULL))
        goto done;
    for (size_t i = 0; i < weft__json_size(v) && i < 3; i++)
        if (weft__json_string(weft__json_get(weft__json_at(v, i), "id"), &id, &n))
            weft__strbuf_printf(&found, "%s%s", found.len ? ", " : "", weft__hub_show(shown, id, n));
    if (found.len && !found.failed)
        weft_fail(err, (weft_status)err->status, "%s; did you mean %s?", err->message, found.data);
done:
    weft__json_free(&v);
    weft__strbuf_free(&t);
    weft__strbuf_free(&found);
}

weft_status weft__remote_list(weft__remote *r, const weft__hub_name *name, weft__listing *out, weft_error *err)
{
    char url[2048];
    long status = 0;
    *out = (weft__listing){0};
    snprintf(url, sizeof url, "%s/api/models/%s/%s/tree/main?recursive=true", r->endpoint, name->owner, name->repo);
    weft_status st = read_pages(r, name, url, out, &status, err);
    if (st && (status == 404 || status == 405 || status == 501)) {
        /* Mirrors may know only the older form, which has everything in one object. */
        weft__listing_free(out);
        snprintf(url, sizeof url, "%s/api/models/%s/%s?blobs=true", r->endpoint, name->owner, name->repo);
        st = read_pages(r, name, url, out, &status, err);
    }
    if (st && (status == 404 || (status == 401 && !r->token))) suggest(r, name, err);
    if (!st) st = weft__listing_sort(out, err);
    if (st) weft__listing_free(out);
    return st;
}
