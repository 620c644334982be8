// SPDX-License-Identifier: Apache-2.0
/* witness_files.c: reading the files of a witness log (witness_parts.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "learn/witness_parts.h"

char *weft__learn_log_path(const char *dir, const char *name)
{
    weft__strbuf path = {0};
    weft__strbuf_printf(&path, "%s/log/%s", dir, name);
    if (path.failed) weft__strbuf_free(&path);
    return path.data;
}

int weft__learn_log_open(const char *dir, const char *name, weft_error *err)
{
    char *path = weft__learn_log_path(dir, name);
    const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (!path) weft_fail(err, WEFT_NO_MEMORY, "no memory for a path");
    else if (fd < 0) weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", path, strerror(errno));
    weft__free(path);
    return fd;
}

weft_status weft__learn_row_of_file(void *fd, uint64_t place, weft__learn_hash *out, weft_error *err)
{
    ssize_t got = pread(*(int *)fd, out->bytes, sizeof out->bytes, (off_t)(place * sizeof out->bytes));
    if (got == (ssize_t)sizeof out->bytes) return WEFT_OK;
    if (got < 0) return weft_fail(err, WEFT_IO, "the log's hashes: %s", strerror(errno));
    return weft_fail(err, WEFT_FORMAT, "the log's hashes end before number %llu", (unsigned long long)place);
}

enum { ROOM = WEFT__LEARN_ENTRY_MOST + 1 };

/* Makes room behind what is left and reads more. 0: there is no more, or *st is set. */
static int fill(weft__learn_lines *l, weft_status *st, weft_error *err)
{
    memmove(l->buffer, l->buffer + l->at, l->n - l->at);
    l->n -= l->at;
    l->at = 0;
    ssize_t got;
    while ((got = read(l->fd, l->buffer + l->n, ROOM - l->n)) < 0 && errno == EINTR) continue;
    if (got < 0) *st = weft_fail(err, WEFT_IO, "the log's entries: %s", strerror(errno));
    if (got > 0) l->n += (size_t)got;
    return got > 0;
}

int weft__learn_lines_next(weft__learn_lines *l, weft_status *st, weft_error *err)
{
    *st = WEFT_OK;
    l->is_long = 0;
    if (!l->buffer && !(l->buffer = weft__alloc(ROOM))) {
        *st = weft_fail(err, WEFT_NO_MEMORY, "no memory to read the log");
        return 0;
    }
    for (;;) {
        const char *from = l->buffer + l->at, *end = l->n > l->at ? memchr(from, '\n', l->n - l->at) : NULL;
        if (end) {
            l->line = from;
            l->n_line = (size_t)(end - from);
            l->at += l->n_line + 1;
            l->offset += l->n_line + 1;
            return 1;
        }
        if (l->n - l->at == ROOM) { /* the rest of it is skipped */
            l->is_long = 1;
            l->offset += l->n - l->at;
            l->at = l->n;
        }
        if (!fill(l, st, err)) return 0;
    }
}

void weft__learn_lines_end(weft__learn_lines *l)
{
    weft__free(l->buffer);
    l->buffer = NULL;
}

/* The end of the file is enough: a checkpoint of ours has some hundred bytes. */
int weft__learn_last_checkpoint(int fd, weft__strbuf *out, uint64_t *end, weft_status *st, weft_error *err)
{
    enum { TAIL = 8192 };
    static const char mark[] = "\n\n\xe2\x80\x94 ";
    char tail[TAIL];
    struct stat s;
    *st = WEFT_OK;
    *end = 0;
    if (fstat(fd, &s)) *st = weft_fail(err, WEFT_IO, "the log's checkpoints: %s", strerror(errno));
    if (*st) return 0;
    const off_t from = s.st_size > TAIL ? s.st_size - TAIL : 0;
    ssize_t n = pread(fd, tail, TAIL, from);
    if (n < 0) *st = weft_fail(err, WEFT_IO, "the log's checkpoints: %s", strerror(errno));
    for (ssize_t at = n - (ssize_t)(sizeof mark - 1); at > 0; at--) {
        if (memcmp(tail + at, mark, sizeof mark - 1)) continue;
        const char *line = memchr(tail + at + 2, '\n', (size_t)(n - at - 2));
        if (!line) continue;
        ssize_t begin = at;
        for (int lines = 0; begin > 0 && (tail[begin - 1] != '\n' || ++lines < 3); begin--) continue;
        weft__strbuf_put(out, tail + begin, (size_t)(line + 1 - (tail + begin)));
        if (out->failed) *st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a checkpoint");
        *end = (uint64_t)(from + (line + 1 - tail));
        return !*st;
    }
    return 0;
}
