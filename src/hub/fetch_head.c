// SPDX-License-Identifier: Apache-2.0
/* fetch_head.c: see fetch_head.h. Bytes are asked for by ranges, each as long as all before it, until the head is
 * whole. */
#include "hub/fetch_head.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "hub/head.h"

#define FIRST ((size_t)1 << 20)
#define WHOLE_MAX ((uint64_t)64 << 20)

typedef struct head_job {
    weft__remote *remote;
    weft__strbuf bytes;
    size_t wanted;   /* bytes in all after this request */
    uint64_t passed; /* of a server that knows no ranges: bytes that were there before */
    int begun;
} head_job;

static weft_status take_head(void *arg, const weft__hub_http_reply *reply, const void *bytes, size_t n, weft_error *err)
{
    head_job *j = arg;
    const char *s = bytes;
    if (!j->begun && reply->status == 206 && (uint64_t)reply->range_first != j->bytes.len)
        return weft_fail(err, WEFT_FORMAT, "the server answers with another range than it was asked for");
    if (!j->begun) j->passed = reply->status == 206 ? 0 : j->bytes.len;
    j->begun = 1;
    const size_t old = j->passed < n ? (size_t)j->passed : n;
    j->passed -= old;
    s += old;
    n -= old;
    const size_t room = j->wanted - j->bytes.len, more = n < room ? n : room;
    weft__strbuf_put(&j->bytes, s, more);
    if (j->bytes.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for the head of a file");
    /* Of a server that sends more than was asked for, the rest is not waited for. */
    return more < n ? weft_fail(err, WEFT_STATE, "enough") : WEFT_OK;
}

static int poll_head(void *arg)
{
    const head_job *j = arg;
    return j->remote->poll && j->remote->poll(j->remote->arg);
}

/* Until there are `wanted` bytes. */
static weft_status fetch_to(head_job *j, const weft__hub_name *name, const char *url, weft_error *err)
{
    weft__hub_http_reply reply;
    for (int tries = 1; j->bytes.len < j->wanted; tries++) {
        weft__hub_http_call call = {.url = url,
                                    .token = j->remote->token,
                                    .from = j->bytes.len,
                                    .n_most = j->wanted - j->bytes.len,
                                    .body = take_head,
                                    .poll = poll_head,
                                    .arg = j};
        const size_t before = j->bytes.len;
        j->begun = 0;
        weft_status st = weft__hub_http_get(j->remote->http, &call, &reply, err);
        if (st == WEFT_STATE && j->bytes.len == j->wanted) return WEFT_OK;
        if (!st && (reply.status < 200 || reply.status > 299)) st = weft__remote_refused(j->remote, name, &reply, err);
        else if (!st && j->bytes.len < j->wanted) st = weft_fail(err, WEFT_IO, "the server ended too early");
        if (!st) break;
        if (j->bytes.len > before) tries = 0;
        else if (!reply.transient || tries > j->remote->retries) return st;
        if (weft__remote_pause(j->remote, tries ? tries : 1, err)) return WEFT_CANCELLED;
    }
    return WEFT_OK;
}

static int has_suffix(const char *path, const char *suffix)
{
    const size_t n = strlen(path), k = strlen(suffix);
    return n >= k && !strcasecmp(path + n - k, suffix);
}

/* The head, or all of a file that has none. */
static weft_status read_head(head_job *j, const weft__hub_name *name, const weft__hub_file *file, const char *url,
                             weft_error *err)
{
    const int gguf = has_suffix(file->path, ".gguf"), tensors = has_suffix(file->path, ".safetensors");
    weft__hub_head_found found = WEFT__HUB_HEAD_MORE;
    char shown[WEFT__HUB_SHOW];
    size_t end = 0;
    weft__hub_show(shown, file->path, strlen(file->path));
    if (!gguf && !tensors && file->n_bytes > WHOLE_MAX)
        return weft_fail(err, WEFT_LIMIT, "%s: has %llu bytes, at most %llu are looked at", shown,
                         (unsigned long long)file->n_bytes, (unsigned long long)WHOLE_MAX);
    j->wanted = gguf || tensors ? FIRST : (size_t)file->n_bytes;
    for (;;) {
        if (j->wanted > file->n_bytes) j->wanted = (size_t)file->n_bytes;
        weft_status st = fetch_to(j, name, url, err);
        if (st) return weft_fail_within(err, st, "%s", shown);
        const uint8_t *p = (const uint8_t *)j->bytes.data;
        if (gguf && p) found = weft__hub_head_gguf(p, j->bytes.len, &end);
        else if (tensors && p) found = weft__hub_head_safetensors(p, j->bytes.len, &end);
        else found = WEFT__HUB_HEAD_WHOLE;
        if (found == WEFT__HUB_HEAD_WHOLE) return WEFT_OK;
        if (found == WEFT__HUB_HEAD_NONE || j->wanted == file->n_bytes)
            return weft_fail(err, WEFT_FORMAT, "%s: is no %s file", shown, gguf ? "GGUF" : "safetensors");
        if (j->wanted >= WEFT__HUB_HEAD_MAX)
            return weft_fail(err, WEFT_LIMIT, "%s: its head is longer than %llu MB", shown,
                             (unsigned long long)(WEFT__HUB_HEAD_MAX >> 20));
        j->wanted *= 2;
    }
}

static weft_status write_hole(int dir, const char *leaf, const weft__strbuf *head, uint64_t n_bytes, weft_error *err)
{
    const int fd = openat(dir, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int ok = fd >= 0;
    for (size_t at = 0; ok && at < head->len;) {
        const ssize_t n = write(fd, head->data + at, head->len - at);
        ok = n > 0 || (n < 0 && errno == EINTR);
        if (n > 0) at += (size_t)n;
    }
    ok = ok && !ftruncate(fd, (off_t)n_bytes);
    const int why = errno;
    if (fd >= 0) close(fd);
    return ok ? WEFT_OK : weft_fail(err, WEFT_IO, "the head of a file in the temporary folder: %s", strerror(why));
}

weft_status weft__hub_fetch_head(weft__remote *remote, const weft__hub_name *name, const weft__hub_file *file, int dir,
                                 const char *leaf, weft_error *err)
{
    head_job j = {.remote = remote};
    char *url = weft__remote_file_url(remote, name, file->path);
    weft_status st = url ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for an address");
    if (!st && (!file->has_size || file->n_bytes > (uint64_t)1 << 46))
        st = weft_fail(err, WEFT_FORMAT, "the listing gives no usable size of \"%.60s\"", leaf);
    if (!st) st = read_head(&j, name, file, url, err);
    if (!st) st = write_hole(dir, leaf, &j.bytes, file->n_bytes, err);
    weft__strbuf_free(&j.bytes);
    weft__free(url);
    return st;
}
