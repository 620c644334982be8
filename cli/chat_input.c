// SPDX-License-Identifier: Apache-2.0
/* chat_input.c: see chat_input.h. */
#include "chat_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tty.h"

#define QUOTES "\"\"\""
enum { N_QUOTES = 3 };

void chat_input_open(chat_input *in, int fd, int out)
{
    *in = (chat_input){.fd = fd, .out = out, .read = chat_input_line};
    in->arg = in;
}

void chat_input_close(chat_input *in)
{
    weft__strbuf_free(&in->pending);
    weft__strbuf_free(&in->raw);
}

/* ---- lines of a descriptor ---- */

/* More bytes; INPUT_END when there are none. */
static input_outcome take_bytes(chat_input *in)
{
    char bytes[1 << 16];
    if (in->out >= 0) {
        const int events = tty_wait(-1);
        if (events & TTY_SIGNALLED) return INPUT_INTERRUPTED;
        if (!(events & TTY_INPUT)) return INPUT_SAID;
    }
    const ssize_t n = read(in->fd, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) return INPUT_SAID;
    if (n <= 0) return INPUT_END;
    if (in->at > 0) {
        memmove(in->pending.data, in->pending.data + in->at, in->pending.len - in->at);
        in->pending.len -= in->at;
        in->at = 0;
    }
    weft__strbuf_put(&in->pending, bytes, (size_t)n);
    return in->pending.failed ? INPUT_END : INPUT_SAID;
}

/* A line is there: pending[at..*end), and `next` behind its end. */
static input_outcome find_line(chat_input *in, size_t *end, size_t *next, int *too_long)
{
    size_t looked = 0;
    *too_long = 0;
    for (;;) {
        const size_t n = in->pending.len - in->at;
        const char *from = n ? in->pending.data + in->at : "",
                   *newline = n > looked ? memchr(from + looked, '\n', n - looked) : NULL;
        if (newline) {
            *end = in->at + (size_t)(newline - from);
            *next = *end + 1;
            return INPUT_SAID;
        }
        if (in->ended) {
            *end = *next = in->pending.len;
            return n || *too_long ? INPUT_SAID : INPUT_END;
        }
        looked = n;
        if (n > INPUT_MAX) { /* the rest of it is passed over */
            *too_long = 1;
            in->at = in->pending.len;
            looked = 0;
        }
        const input_outcome got = take_bytes(in);
        if (got == INPUT_END) in->ended = 1;
        if (got == INPUT_INTERRUPTED) {
            in->at = in->pending.len;
            return got;
        }
    }
}

/* The byte, from 1 on, that is no UTF-8; 0: all is. */
static size_t first_bad(const char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int bad = 0;
        const size_t used = weft__utf8_decode(s + i, n - i, &cp, &bad);
        if (bad) return i + 1;
        i += used;
    }
    return 0;
}

input_outcome chat_input_line(void *arg, const char *prompt, char **text, size_t *n, weft_error *err)
{
    chat_input *in = arg;
    size_t end = 0, next = 0;
    int too_long;
    *text = NULL;
    if (in->out >= 0) tty_write(in->out, prompt, strlen(prompt));
    const input_outcome found = find_line(in, &end, &next, &too_long);
    if (found != INPUT_SAID) {
        if (in->out >= 0) tty_write(in->out, "\n", 1);
        return found;
    }
    const char *from = in->pending.data ? in->pending.data + in->at : "";
    *n = end - in->at;
    in->at = next;
    in->line++;
    if (!in->begun && *n >= 3 && !memcmp(from, "\xEF\xBB\xBF", 3)) {
        from += 3;
        *n -= 3;
    }
    in->begun = 1;
    if (*n > 0 && from[*n - 1] == '\r') --*n;
    const size_t bad = first_bad(from, *n);
    if (too_long || *n > INPUT_MAX)
        weft_fail(err, WEFT_LIMIT, "line %ld has more than %zu MiB; it is not said", in->line, INPUT_MAX >> 20);
    else if (bad)
        weft_fail(err, WEFT_ARGUMENT,
                  "line %ld is not UTF-8 (its byte %zu); it is not said (iconv converts other encodings)", in->line,
                  bad);
    else if (!(*text = malloc(*n + 1))) weft_fail(err, WEFT_NO_MEMORY, "no memory for line %ld", in->line);
    if (!*text) return INPUT_REFUSED;
    memcpy(*text, from, *n);
    (*text)[*n] = 0;
    return INPUT_SAID;
}

/* ---- blocks ---- */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t without_blanks(const char *s, size_t n)
{
    while (n > 0 && is_blank(s[n - 1])) n--;
    return n;
}

/* Where """ opens a block in a line: at its beginning or that of the argument of /system. *at: behind it. */
static int opens_block(const char *s, size_t n, size_t *at)
{
    size_t i = 0;
    if (n > 7 && !memcmp(s, "/system", 7)) i = 7;
    while (i < n && (s[i] == ' ' || s[i] == '\t')) i++;
    *at = i + N_QUOTES;
    return n >= i + N_QUOTES && !memcmp(s + i, QUOTES, N_QUOTES);
}

/* Does s[0..n) end with """? *end: before it. */
static int closes_block(const char *s, size_t n, size_t *end)
{
    const size_t n_all = without_blanks(s, n);
    if (n_all < N_QUOTES || memcmp(s + n_all - N_QUOTES, QUOTES, N_QUOTES)) return 0;
    *end = n_all - N_QUOTES;
    return 1;
}

/* What is behind the quotes of the first line, and the lines up to the closing ones. */
static input_outcome read_block(chat_input *in, const char *first, size_t n_first, weft__strbuf *out, weft_error *err)
{
    int refused = 0; /* the lines up to the end are none of their own, then */
    weft__strbuf_put(out, first, n_first);
    for (;;) {
        char *line;
        size_t n, end;
        const input_outcome got = in->read(in->arg, "... ", &line, &n, refused ? NULL : err);
        if (got == INPUT_END) {
            if (!refused)
                weft_fail(err, WEFT_ARGUMENT,
                          "the block that " QUOTES " began is not closed by " QUOTES "; it is not said");
            return INPUT_REFUSED;
        }
        if (got == INPUT_INTERRUPTED) return got;
        if (got == INPUT_REFUSED) {
            refused = 1;
            continue;
        }
        const int closed = closes_block(line, n, &end), is_end = closed && end == 0;
        if (!refused && out->len + n >= INPUT_MAX) {
            weft_fail(err, WEFT_LIMIT, "the block has more than %zu MiB; it is not said", INPUT_MAX >> 20);
            refused = 1;
        }
        if (!refused) {
            weft__strbuf_putc(&in->raw, '\n');
            weft__strbuf_put(&in->raw, line, n);
            if (!is_end) weft__strbuf_putc(out, '\n');
            weft__strbuf_put(out, line, closed ? end : n);
        }
        free(line);
        if (closed) return refused ? INPUT_REFUSED : INPUT_SAID;
    }
}

/* A block without the newline in front of its first line, where that stood alone. */
static char *text_of_block(const weft__strbuf *prefix, const weft__strbuf *block, size_t *n)
{
    const size_t skip = block->len > 0 && block->data[0] == '\n';
    char *text = block->failed || prefix->failed ? NULL : malloc(prefix->len + block->len + 1);
    if (!text) return NULL;
    if (prefix->len) memcpy(text, prefix->data, prefix->len);
    memcpy(text + prefix->len, block->data + skip, block->len - skip);
    *n = prefix->len + block->len - skip;
    text[*n] = 0;
    return text;
}

/* The block that `line` opens; of one that is closed there, what is between. Takes `line`. */
static input_outcome finish_block(chat_input *in, char *line, size_t n_line, size_t at, char **text, size_t *n,
                                  weft_error *err)
{
    weft__strbuf block = {0}, prefix = {0};
    size_t end;
    input_outcome got = INPUT_SAID;
    if (line[0] == '/') weft__strbuf_put(&prefix, line, at - N_QUOTES);
    weft__strbuf_puts(&block, "");
    if (closes_block(line + at, n_line - at, &end)) weft__strbuf_put(&block, line + at, end);
    else got = read_block(in, line + at, n_line - at, &block, err);
    if (got == INPUT_SAID && !(*text = text_of_block(&prefix, &block, n))) {
        weft_fail(err, WEFT_NO_MEMORY, "no memory for a block");
        got = INPUT_REFUSED;
    }
    const int is_command = prefix.len > 0;
    weft__strbuf_free(&block);
    weft__strbuf_free(&prefix);
    free(line);
    return got == INPUT_SAID && !is_command ? INPUT_BLOCK : got;
}

input_outcome chat_input_next(chat_input *in, char **text, size_t *n, weft_error *err)
{
    for (;;) {
        char *line;
        size_t at, end;
        *text = NULL;
        input_outcome got = in->read(in->arg, "> ", &line, n, err);
        if (got != INPUT_SAID) return got;
        in->raw.len = 0;
        weft__strbuf_put(&in->raw, line, *n);
        const int many = memchr(line, '\n', *n) != NULL; /* pasted, or from the history */
        if (opens_block(line, *n, &at) && (!many || closes_block(line + at, *n - at, &end)))
            got = finish_block(in, line, *n, at, text, n, err);
        else *text = line;
        if (*text && many && *n > 0 && (*text)[*n - 1] == '\n') (*text)[--*n] = 0;
        if (!*text || without_blanks(*text, *n) > 0) return got;
        free(*text);
    }
}
