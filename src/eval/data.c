// SPDX-License-Identifier: Apache-2.0
/* data.c: files, and the documents in them (task.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "eval/task.h"

static const size_t MOST_BYTES = (size_t)1 << 30, MOST_DOCS = (size_t)1 << 24;

weft_status weft__eval_read_file(const char *path, char **out, size_t *n, weft_error *err)
{
    weft__strbuf t = {0};
    char piece[1 << 16];
    ssize_t got = 1;
    *out = NULL;
    *n = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", path, strerror(errno));
    while (got > 0 && t.len <= MOST_BYTES && !t.failed) {
        got = read(fd, piece, sizeof piece);
        if (got < 0 && errno == EINTR) got = 1;
        else if (got > 0) weft__strbuf_put(&t, piece, (size_t)got);
    }
    const int why = errno;
    close(fd);
    weft__strbuf_put(&t, "", 0);
    if (got < 0 || t.failed || t.len > MOST_BYTES) {
        const size_t len = t.len;
        weft__strbuf_free(&t);
        return got < 0            ? weft_fail(err, WEFT_IO, "%s: %s", path, strerror(why))
               : len > MOST_BYTES ? weft_fail(err, WEFT_LIMIT, "%s: larger than %zu bytes; split it", path, MOST_BYTES)
                                  : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to read it", path);
    }
    *out = t.data ? t.data : weft__strdup("");
    *n = t.len;
    return *out ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to read it", path);
}

void weft__eval_docs_free(weft__eval_docs *docs)
{
    for (size_t i = 0; i < docs->n; i++) weft__json_free(&docs->items[i]);
    weft__free(docs->items);
    *docs = (weft__eval_docs){0};
}

/* Takes v, also on failure. */
static weft_status take_docs(const char *name, weft__eval_docs *docs, weft__json *v, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (!v || (docs->n < MOST_DOCS && !weft__grow(&docs->items, &docs->capacity, docs->n + 1, sizeof *docs->items)))
        st = weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its documents", name);
    else if (docs->n == MOST_DOCS) st = weft_fail(err, WEFT_LIMIT, "%s: more than %zu documents", name, MOST_DOCS);
    else if (weft__json_kind_of(v) != WEFT__JSON_OBJECT)
        st = weft_fail(err, WEFT_FORMAT, "document %zu is no object", docs->n + 1);
    if (st) weft__json_free(&v);
    else docs->items[docs->n++] = v;
    return st;
}

static int is_blank_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] != ' ' && s[i] != '\t' && s[i] != '\r' && s[i] != '\n') return 0;
    return 1;
}

static weft_status check_some(const char *name, const weft__eval_docs *docs, weft_error *err)
{
    return docs->n ? WEFT_OK : weft_fail(err, WEFT_FORMAT, "%s: no documents in it", name);
}

static weft_status array(const char *name, const char *text, size_t n, weft__eval_docs *docs, weft_error *err)
{
    weft__json *root = NULL;
    weft_error why = {0};
    weft_status st = weft__json_parse(text, n, &root, &why);
    if (st) return weft_fail(err, st, "%s: %s", name, why.message);
    for (size_t i = 0; !st && i < weft__json_size(root); i++) {
        st = take_docs(name, docs, weft__json_copy(weft__json_at(root, i)), &why);
        if (st) weft_fail(err, st, "%s: %s", name, why.message);
    }
    weft__json_free(&root);
    return st ? st : check_some(name, docs, err);
}

weft_status weft__eval_docs_parse(const char *name, const char *text, size_t n, weft__eval_docs *docs, weft_error *err)
{
    size_t at = n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0, line = 1;
    size_t first = at;
    while (first < n && is_blank_text(text + first, 1)) first++;
    if (first < n && text[first] == '[') return array(name, text + first, n - first, docs, err);
    for (size_t end; at < n; at = end + 1, line++) {
        const char *stop = memchr(text + at, '\n', n - at);
        weft__json *v = NULL;
        weft_error why = {0};
        end = stop ? (size_t)(stop - text) : n;
        if (is_blank_text(text + at, end - at)) continue;
        weft_status st = weft__json_parse(text + at, end - at, &v, &why);
        if (!st) st = take_docs(name, docs, v, &why);
        if (st) return weft_fail(err, st, "%s:%zu: %s", name, line, why.message);
    }
    return check_some(name, docs, err);
}
