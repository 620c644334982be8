// SPDX-License-Identifier: Apache-2.0
/* history.c: see history.h. An entry is a line; a newline in it is "\n", a backslash "\\". A lock keeps what several
 * processes write apart. */
#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"
#include "places.h"

/* Of a file that is read; only its last part where it is longer. */
#define FILE_BYTES_MAX ((size_t)8 << 20)

int history_place(char *out, size_t room)
{
    const char *own = getenv("WEFT_HISTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n;
    if (own) n = own[0] && strcmp(own, "off") ? snprintf(out, room, "%s", own) : -1;
    else if (state && state[0] == '/') n = snprintf(out, room, "%s/weft/chat_history", state);
    else n = home && home[0] == '/' ? snprintf(out, room, "%s/.local/state/weft/chat_history", home) : -1;
    return n >= 0 && (size_t)n < room;
}

static int append(history *h, const char *text, size_t n)
{
    if (h->n == h->room) {
        const int room = h->room ? 2 * h->room : 64;
        char **entries = realloc(h->entries, (size_t)room * sizeof *entries);
        if (!entries) return 0;
        h->entries = entries;
        h->room = room;
    }
    char *copy = malloc(n + 1);
    if (!copy) return 0;
    memcpy(copy, text, n);
    copy[n] = 0;
    h->entries[h->n++] = copy;
    return 1;
}

static void drop_oldest(history *h, int n)
{
    if (n == 0) return;
    for (int i = 0; i < n; i++) free(h->entries[i]);
    h->n -= n;
    memmove(h->entries, h->entries + n, (size_t)h->n * sizeof *h->entries);
}

/* ---- the file ---- */

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        text += done;
        n -= (size_t)done;
    }
    return 1;
}

static void escape(const char *entry, weft__strbuf *out)
{
    for (; *entry; entry++) {
        if (*entry == '\n' || *entry == '\\') weft__strbuf_putc(out, '\\');
        weft__strbuf_putc(out, *entry == '\n' ? 'n' : *entry);
    }
    weft__strbuf_putc(out, '\n');
}

/* A line of the file, in place; returns its bytes. */
static size_t unescape(char *line, size_t n)
{
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        const int escaped = line[i] == '\\' && i + 1 < n;
        if (escaped) i++;
        line[to++] = escaped && line[i] == 'n' ? '\n' : line[i];
    }
    return to;
}

/* Lines of text[0..n); one without an end was not written whole. */
static void take_lines(history *h, char *text, size_t n)
{
    for (char *end; (end = memchr(text, '\n', n)); n -= (size_t)(end + 1 - text), text = end + 1) {
        const size_t length = unescape(text, (size_t)(end - text));
        if (length > 0 && length <= HISTORY_ENTRY_MAX && !memchr(text, 0, length) && weft__utf8_valid(text, length) &&
            !append(h, text, length))
            return;
    }
}

/* With the lock. 0 when it cannot be read. *too_long: it has more than is kept. */
static int history_load(history *h, int *too_long)
{
    struct stat s;
    if (fstat(h->fd, &s)) return 0;
    const size_t size = (size_t)s.st_size, n = size < FILE_BYTES_MAX ? size : FILE_BYTES_MAX;
    char *text = malloc(n + 1), *from = text;
    const ssize_t got = text ? pread(h->fd, text, n, (off_t)(size - n)) : -1;
    if (got >= 0) {
        size_t left = (size_t)got;
        if (size > n) { /* the first line is a part of one */
            char *end = memchr(text, '\n', left);
            from = end ? end + 1 : text + left;
            left -= (size_t)(from - text);
        }
        take_lines(h, from, left);
    }
    free(text);
    *too_long = size > n || h->n > HISTORY_MAX;
    return got >= 0;
}

/* With the lock: the file has these entries and no others. */
static int rewrite(const history *h)
{
    weft__strbuf t = {0};
    for (int i = 0; i < h->n; i++) escape(h->entries[i], &t);
    const int ok = !t.failed && !ftruncate(h->fd, 0) && write_all(h->fd, t.data ? t.data : "", t.len);
    weft__strbuf_free(&t);
    return ok;
}

static int open_file(const char *path)
{
    struct stat s;
    if (weft__place_folders(path)) return -1;
    const int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600); /* a pipe would wait */
    if (fd < 0) return -1;
    if (!fstat(fd, &s) && S_ISREG(s.st_mode) && (!(s.st_mode & 077) || !fchmod(fd, 0600))) return fd;
    if (!S_ISREG(s.st_mode)) errno = EINVAL;
    const int why = errno;
    close(fd);
    errno = why;
    return -1;
}

weft_status history_open(history *h, const char *path, weft_error *err)
{
    *h = (history){.fd = -1};
    if (!path) return WEFT_OK;
    h->fd = open_file(path);
    int ok = h->fd >= 0;
    if (ok) {
        int too_long = 0;
        flock(h->fd, LOCK_EX);
        ok = history_load(h, &too_long);
        if (h->n > HISTORY_MAX) drop_oldest(h, h->n - HISTORY_MAX);
        if (ok && too_long) ok = rewrite(h);
        flock(h->fd, LOCK_UN);
    }
    if (ok) return WEFT_OK;
    weft_fail(err, WEFT_IO,
              "%s: %s; nothing that is typed is kept (--no-history, or WEFT_HISTORY=FILE for another file)", path,
              strerror(errno));
    if (h->fd >= 0) close(h->fd);
    h->fd = -1;
    return WEFT_IO;
}

/* A line at the end of the file; one that another process could not write whole is ended before. */
static void keep(const history *h, const char *entry)
{
    weft__strbuf line = {0};
    struct stat s;
    char last = '\n';
    flock(h->fd, LOCK_EX);
    if (!fstat(h->fd, &s) && s.st_size > 0 && pread(h->fd, &last, 1, s.st_size - 1) == 1 && last != '\n')
        weft__strbuf_putc(&line, '\n');
    escape(entry, &line);
    if (!line.failed) write_all(h->fd, line.data, line.len);
    flock(h->fd, LOCK_UN);
    weft__strbuf_free(&line);
}

void history_add(history *h, const char *text, size_t n)
{
    size_t blanks = 0;
    while (blanks < n && (text[blanks] == ' ' || text[blanks] == '\n' || text[blanks] == '\t')) blanks++;
    if (blanks == n || memchr(text, 0, n)) return;
    if (h->n > 0 && strlen(h->entries[h->n - 1]) == n && !memcmp(h->entries[h->n - 1], text, n)) return;
    if (h->n >= 2 * HISTORY_MAX) drop_oldest(h, h->n - HISTORY_MAX);
    if (append(h, text, n) && h->fd >= 0 && text[0] != ' ' && n <= HISTORY_ENTRY_MAX) keep(h, h->entries[h->n - 1]);
}

void history_free(history *h)
{
    drop_oldest(h, h->n);
    free(h->entries);
    if (h->fd >= 0) close(h->fd);
    *h = (history){.fd = -1};
}
