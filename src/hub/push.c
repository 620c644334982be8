// SPDX-License-Identifier: Apache-2.0
/* push.c: weft_push: files to a repository, by the server's commit API and Git LFS (hub.h). One thread per call. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/json.h"
#include "base/params.h"
#include "base/sha256.h"
#include "hub/remote.h"
#include "weft/weft.h"

enum { SAMPLE = 512, PIECE = 1 << 20, HEADERS_MAX = 8 };
#define REGULAR_MAX ((uint64_t)16 << 20)
#define LFS_JSON "application/vnd.git-lfs+json"

typedef struct push_file {
    int fd; /* -1: text */
    const char *text, *name;
    uint64_t n_bytes;
    char sha256[65];
    int is_lfs, ignored;
} push_file;

typedef struct push {
    weft__hub_name name;
    weft_push_params params;
    weft_pull_state state;
    weft__remote remote;
    push_file *files;
    int32_t n;
    weft_push_result *result;
} push;

void(weft_push_params_default)(weft_push_params *params)
{
    *params = (weft_push_params){.size = sizeof *params};
}

void weft_push_params_init(weft_push_params *params, uint32_t size)
{
    weft_push_params own;
    (weft_push_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_push_params), params, size, &own);
}

static int push_tick(void *arg)
{
    push *p = arg;
    return p->params.progress && p->params.progress(p->params.progress_arg, &p->state);
}

/* ---- files ---- */

static weft_status push_read(const push_file *f, uint64_t at, void *out, size_t n, weft_error *err)
{
    if (f->fd < 0) {
        memcpy(out, f->text + at, n);
        return WEFT_OK;
    }
    for (size_t have = 0; have < n;) {
        const ssize_t got = pread(f->fd, (char *)out + have, n - have, (off_t)(at + have));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0)
            return weft_fail(err, WEFT_IO, "reading %s: %s", f->name, got < 0 ? strerror(errno) : "it shrank");
        have += (size_t)got;
    }
    return WEFT_OK;
}

static weft_status hash_file(push *p, push_file *f, weft_error *err)
{
    weft__sha256 h = {0};
    char *piece = weft__alloc(PIECE);
    if (!piece) return weft_fail(err, WEFT_NO_MEMORY, "no memory to read %s", f->name);
    weft_status st = weft__sha256_begin(&h, err);
    for (uint64_t at = 0; at < f->n_bytes && !st;) {
        const size_t n = f->n_bytes - at < PIECE ? (size_t)(f->n_bytes - at) : PIECE;
        st = push_read(f, at, piece, n, err);
        if (!st) st = weft__sha256_add(&h, piece, n, err);
        at += n;
        p->state.done += n;
        if (!st && push_tick(p)) st = weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    if (!st) weft__sha256_end(&h, f->sha256);
    weft__sha256_free(&h);
    weft__free(piece);
    return st;
}

static weft_status open_file(const weft_push_file *given, push_file *f, weft_error *err)
{
    struct stat s;
    const char *why = weft__hub_path_fault(given->name, strlen(given->name));
    *f = (push_file){.fd = -1, .text = given->text, .name = given->name};
    if (why) return weft_fail(err, WEFT_ARGUMENT, "the name \"%.100s\" %s", given->name, why);
    if (!given->path) {
        f->n_bytes = strlen(given->text);
        return WEFT_OK;
    }
    f->fd = open(given->path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &s)) return weft_fail(err, WEFT_NOT_FOUND, "%s: %s", given->path, strerror(errno));
    if (!S_ISREG(s.st_mode)) return weft_fail(err, WEFT_ARGUMENT, "%s is no file", given->path);
    f->n_bytes = (uint64_t)s.st_size;
    return WEFT_OK;
}

/* ---- text that is sent ---- */

/* n bytes of a file from its beginning, as base64. */
static weft_status put_bytes(weft__strbuf *t, const push_file *f, uint64_t n, weft_error *err)
{
    uint8_t *bytes = weft__alloc((size_t)n + 1);
    if (!bytes) return weft_fail(err, WEFT_NO_MEMORY, "no memory to send %s", f->name);
    weft_status st = push_read(f, 0, bytes, (size_t)n, err);
    if (!st) weft__base64_put(t, bytes, (size_t)n);
    weft__free(bytes);
    return st;
}

static void put_member(weft__strbuf *t, const char *name, const char *value)
{
    weft__strbuf_printf(t, "\"%s\": ", name);
    weft__json_write_string(t, value, strlen(value));
}

/* ---- requests ---- */

/* POST of `body` to ENDPOINT followed by `path`; an answer of 2xx, as JSON where json is not NULL. */
static weft_status post(push *p, const char *path, const char *type, const weft__strbuf *body, long also,
                        weft__json **json, weft_error *err)
{
    char url[2048];
    weft__hub_http_reply reply;
    weft__strbuf answer = {0};
    if (json) *json = NULL;
    if (body->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a request");
    const int n = snprintf(url, sizeof url, "%s%s", p->remote.endpoint, path);
    if (n < 0 || (size_t)n >= sizeof url) return weft_fail(err, WEFT_LIMIT, "the address is too long");
    weft__hub_http_call call = {.url = url,
                                .token = p->remote.token,
                                .method = "POST",
                                .content_type = type,
                                .accept = !strcmp(type, LFS_JSON) ? LFS_JSON : NULL,
                                .send = body->data ? body->data : "",
                                .n_send = body->len};
    weft_status st = weft__remote_send(&p->remote, &call, &answer, &reply, err);
    if (!st && reply.status != also && (reply.status < 200 || reply.status > 299))
        st = weft__remote_refused(&p->remote, &p->name, &reply, err);
    if (!st && json && weft__json_parse(answer.data ? answer.data : "", answer.len, json, NULL))
        st = weft_fail(err, WEFT_FORMAT, "%s answers with what is no JSON", p->remote.host);
    weft__strbuf_free(&answer);
    return st;
}

/* The repository, where it is to be made; one that is there (409) is as good. */
static weft_status create_repo(push *p, weft_error *err)
{
    weft__strbuf body = {0};
    if (!p->params.create) return WEFT_OK;
    weft__strbuf_puts(&body, "{\"type\": \"model\", ");
    put_member(&body, "name", p->name.repo);
    weft__strbuf_puts(&body, ", ");
    put_member(&body, "organization", p->name.owner);
    weft__strbuf_printf(&body, ", \"private\": %s}", p->params.is_private ? "true" : "false");
    weft_status st = post(p, "/api/repos/create", "application/json", &body, 409, NULL, err);
    weft__strbuf_free(&body);
    return st;
}

static void repo_path(const push *p, const char *what, char out[512])
{
    snprintf(out, 512, "/api/models/%s/%s/%s/main", p->name.owner, p->name.repo, what);
}

/* Which files go by LFS? */
static weft_status ask_modes(push *p, weft_error *err)
{
    char path[512];
    weft__strbuf body = {0};
    weft__json *answer = NULL;
    weft_status st = WEFT_OK;
    weft__strbuf_puts(&body, "{\"files\": [");
    for (int32_t i = 0; i < p->n && !st; i++) {
        const push_file *f = &p->files[i];
        weft__strbuf_puts(&body, i ? ", {" : "{");
        put_member(&body, "path", f->name);
        weft__strbuf_printf(&body, ", \"size\": %llu, \"sample\": \"", (unsigned long long)f->n_bytes);
        st = put_bytes(&body, f, f->n_bytes < SAMPLE ? f->n_bytes : SAMPLE, err);
        weft__strbuf_puts(&body, "\"}");
    }
    weft__strbuf_puts(&body, "]}");
    repo_path(p, "preupload", path);
    if (!st) st = post(p, path, "application/json", &body, 0, &answer, err);
    const weft__json *files = weft__json_get(answer, "files");
    for (int32_t i = 0; i < p->n && !st; i++) {
        push_file *f = &p->files[i];
        const weft__json *found = NULL;
        for (size_t k = 0; k < weft__json_size(files); k++)
            if (weft__json_is(weft__json_get(weft__json_at(files, k), "path"), f->name))
                found = weft__json_at(files, k);
        const weft__json *mode = weft__json_get(found, "uploadMode");
        f->is_lfs = weft__json_is(mode, "lfs");
        weft__json_bool(weft__json_get(found, "shouldIgnore"), &f->ignored);
        if (!f->is_lfs && !weft__json_is(mode, "regular"))
            st = weft_fail(err, WEFT_FORMAT, "%s does not say how to send %s", p->remote.host, f->name);
        else if (!f->is_lfs && f->n_bytes > REGULAR_MAX)
            st = weft_fail(err, WEFT_LIMIT, "%s: the server wants it within the commit, and it has more than %llu MB",
                           f->name, (unsigned long long)(REGULAR_MAX >> 20));
    }
    weft__json_free(&answer);
    weft__strbuf_free(&body);
    return st;
}

/* ---- Git LFS ---- */

/* PUT of the whole file to where the server says, with its headers; the token goes to no other address than ours. */
static weft_status put_object(push *p, const push_file *f, const weft__json *action, weft_error *err)
{
    const char *href = NULL, *value;
    size_t n;
    char lines[HEADERS_MAX][1024], host[256] = "the store";
    const char *headers[HEADERS_MAX + 1] = {NULL};
    int n_headers = 0;
    weft__json_member m = {0};
    if (!weft__json_string(weft__json_get(action, "href"), &href, &n) || strlen(href) != n)
        return weft_fail(err, WEFT_FORMAT, "%s: the server gives no address to send it to", f->name);
    while (weft__json_next(weft__json_get(action, "header"), &m)) {
        if (!strcmp(m.key, "chunk_size"))
            return weft_fail(err, WEFT_UNSUPPORTED, "%s: the server wants it in parts", f->name);
        if (n_headers == HEADERS_MAX || !weft__json_string(m.value, &value, &n) || strpbrk(m.key, "\r\n:") ||
            strpbrk(value, "\r\n") || m.key_len + n + 3 > sizeof *lines)
            return weft_fail(err, WEFT_FORMAT, "%s: the server gives headers that are none", f->name);
        snprintf(lines[n_headers], sizeof *lines, "%s: %s", m.key, value);
        headers[n_headers] = lines[n_headers];
        n_headers++;
    }
    if (!weft__hub_http_is_plain(href, host, sizeof host) && strncmp(href, "http", 4))
        return weft_fail(err, WEFT_FORMAT, "%s: the address to send it to is refused", f->name);
    weft__strbuf answer = {0};
    weft__hub_http_reply reply;
    weft__hub_http_call call = {
        .url = href, .method = "PUT", .send = f->text, .send_fd = f->fd, .n_send = f->n_bytes, .headers = headers};
    weft_status st = weft__remote_send(&p->remote, &call, &answer, &reply, err);
    if (!st && (reply.status < 200 || reply.status > 299))
        st = weft_fail(err, WEFT_IO, "%s: %s answers with status %ld", f->name, host, reply.status);
    weft__strbuf_free(&answer);
    if (!st) p->result->n_sent += f->n_bytes;
    return st;
}

static weft_status verify_object(push *p, const push_file *f, const weft__json *action, weft_error *err)
{
    const char *href;
    size_t n;
    const size_t n_own = strlen(p->remote.endpoint);
    weft__strbuf body = {0};
    if (!weft__json_string(weft__json_get(action, "href"), &href, &n)) return WEFT_OK;  /* it wants none */
    if (strncmp(href, p->remote.endpoint, n_own) || href[n_own] != '/') return WEFT_OK; /* not ours to ask */
    weft__strbuf_printf(&body, "{\"oid\": \"%s\", \"size\": %llu}", f->sha256, (unsigned long long)f->n_bytes);
    weft_status st = post(p, href + n_own, LFS_JSON, &body, 0, NULL, err);
    weft__strbuf_free(&body);
    return st ? weft_fail_within(err, st, "%s", f->name) : WEFT_OK;
}

static const weft__json *object_of(const weft__json *objects, const push_file *f)
{
    for (size_t k = 0; k < weft__json_size(objects); k++)
        if (weft__json_is(weft__json_get(weft__json_at(objects, k), "oid"), f->sha256))
            return weft__json_at(objects, k);
    return NULL;
}

static weft_status send_large(push *p, weft_error *err)
{
    char path[512];
    weft__strbuf body = {0};
    weft__json *answer = NULL;
    int n_large = 0;
    weft__strbuf_puts(&body, "{\"operation\": \"upload\", \"transfers\": [\"basic\"], \"hash_algo\": \"sha256\", "
                             "\"ref\": {\"name\": \"refs/heads/main\"}, \"objects\": [");
    for (int32_t i = 0; i < p->n; i++)
        if (p->files[i].is_lfs)
            weft__strbuf_printf(&body, "%s{\"oid\": \"%s\", \"size\": %llu}", n_large++ ? ", " : "", p->files[i].sha256,
                                (unsigned long long)p->files[i].n_bytes);
    weft__strbuf_puts(&body, "]}");
    snprintf(path, sizeof path, "/%s/%s.git/info/lfs/objects/batch", p->name.owner, p->name.repo);
    weft_status st = n_large ? post(p, path, LFS_JSON, &body, 0, &answer, err) : WEFT_OK;
    for (int32_t i = 0; i < p->n && !st; i++) {
        const push_file *f = &p->files[i];
        if (!f->is_lfs) continue;
        const weft__json *object = object_of(weft__json_get(answer, "objects"), f),
                         *actions = weft__json_get(object, "actions");
        const char *message = "no reason is given";
        size_t n;
        p->state.file = f->name;
        p->state.index = i;
        weft__json_string(weft__json_get(weft__json_get(object, "error"), "message"), &message, &n);
        if (!object || weft__json_get(object, "error"))
            st = weft_fail(err, WEFT_IO, "%s: the server does not take it: %.200s", f->name, message);
        else if (weft__json_get(actions, "upload")) { /* else it has it already */
            st = put_object(p, f, weft__json_get(actions, "upload"), err);
            if (!st) st = verify_object(p, f, weft__json_get(actions, "verify"), err);
        }
    }
    weft__json_free(&answer);
    weft__strbuf_free(&body);
    return st;
}

/* ---- the commit ---- */

/* One JSON value per line: a header, then the files. */
static weft_status commit(push *p, weft_error *err)
{
    char path[512];
    weft__strbuf body = {0};
    weft_status st = WEFT_OK;
    p->state.what = "committing";
    weft__strbuf_puts(&body, "{\"key\": \"header\", \"value\": {");
    put_member(&body, "summary", p->params.message ? p->params.message : "Upload with weft");
    weft__strbuf_puts(&body, ", \"description\": \"\"}}\n");
    for (int32_t i = 0; i < p->n && !st; i++) {
        const push_file *f = &p->files[i];
        if (f->ignored) continue;
        weft__strbuf_printf(&body, "{\"key\": \"%s\", \"value\": {", f->is_lfs ? "lfsFile" : "file");
        put_member(&body, "path", f->name);
        if (f->is_lfs) {
            weft__strbuf_printf(&body, ", \"algo\": \"sha256\", \"oid\": \"%s\", \"size\": %llu}}\n", f->sha256,
                                (unsigned long long)f->n_bytes);
            continue;
        }
        weft__strbuf_puts(&body, ", \"encoding\": \"base64\", \"content\": \"");
        st = put_bytes(&body, f, f->n_bytes, err);
        weft__strbuf_puts(&body, "\"}}\n");
        p->result->n_sent += f->n_bytes;
    }
    repo_path(p, "commit", path);
    if (!st) st = post(p, path, "application/x-ndjson", &body, 0, NULL, err);
    weft__strbuf_free(&body);
    return st;
}

static weft_status push_files(push *p, const weft_push_file *files, weft_error *err)
{
    weft_status st = WEFT_OK;
    p->state.what = "hashing";
    p->state.n_files = p->n;
    for (int32_t i = 0; i < p->n && !st; i++) {
        st = open_file(&files[i], &p->files[i], err);
        p->result->n_bytes += p->files[i].n_bytes;
    }
    p->state.bytes = p->result->n_bytes;
    for (int32_t i = 0; i < p->n && !st; i++) {
        p->state.file = p->files[i].name;
        p->state.index = i;
        st = hash_file(p, &p->files[i], err);
    }
    p->state.what = "sending";
    p->state.done = 0;
    if (!st) st = create_repo(p, err);
    if (!st) st = ask_modes(p, err);
    if (!st) st = send_large(p, err);
    return st ? st : commit(p, err);
}

weft_status weft_push(const char *name, const weft_push_file *files, int32_t n, const weft_push_params *params,
                      weft_push_result *result, weft_error *err)
{
    push own = {.n = n, .result = result}, *p = &own;
    *result = (weft_push_result){0};
    weft_push_params_default(&p->params);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_push_params), &p->params, params, err);
    if (!st) st = weft__hub_name_parse(name, &p->name, err);
    if (!st && p->name.what[0]) st = weft_fail(err, WEFT_ARGUMENT, "%.200s: push to OWNER/NAME, without a file", name);
    if (!st && n < 1) st = weft_fail(err, WEFT_ARGUMENT, "there is nothing to push");
    if (st) return st;
    p->files = weft__alloc_zero((size_t)n, sizeof *p->files);
    for (int32_t i = 0; p->files && i < n; i++) p->files[i].fd = -1;
    st = p->files ? weft__remote_open(&p->remote, push_tick, p, err)
                  : weft_fail(err, WEFT_NO_MEMORY, "no memory for %d files", n);
    if (!st && !p->remote.token)
        st = weft_fail(err, WEFT_ARGUMENT,
                       "HF_TOKEN is needed to push: one that may write (and HF_ENDPOINT over https)");
    if (!st) st = push_files(p, files, err);
    if (!st)
        snprintf(result->url, sizeof result->url, "%.700s/%.96s/%.96s", p->remote.endpoint, p->name.owner,
                 p->name.repo);
    for (int32_t i = 0; p->files && i < n; i++)
        if (p->files[i].fd >= 0) close(p->files[i].fd);
    weft__free(p->files);
    weft__remote_close(&p->remote);
    return st;
}
