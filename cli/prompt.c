// SPDX-License-Identifier: Apache-2.0
/* prompt.c: see prompt.h. */
#include "prompt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)1 << 30)

static weft_status read_stream(FILE *f, const char *path, char **out, size_t *n, weft_error *err)
{
    size_t capacity = 1 << 16, len = 0;
    char *text = malloc(capacity + 1);
    while (text) {
        len += fread(text + len, 1, capacity - len, f);
        if (len < capacity) break;
        if (capacity >= TEXT_MAX) {
            free(text);
            return weft_fail(err, WEFT_LIMIT, "%s: longer than 1 GiB", path);
        }
        char *grown = realloc(text, 2 * capacity + 1);
        if (!grown) free(text);
        text = grown;
        capacity *= 2;
    }
    if (!text) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory for its text", path);
    if (ferror(f)) {
        free(text);
        return weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno));
    }
    text[len] = 0;
    *out = text;
    *n = len;
    return WEFT_OK;
}

weft_status read_text(const char *path, char **out, size_t *n, weft_error *err)
{
    if (!strcmp(path, "-")) return read_stream(stdin, "standard input", out, n, err);
    FILE *f = fopen(path, "rb");
    if (!f) return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", path, strerror(errno));
    weft_status st = read_stream(f, path, out, n, err);
    fclose(f);
    return st;
}

weft_status tokenize_text(const weft_tokenizer *tokenizer, const char *text, size_t n, uint32_t flags, int32_t **ids,
                          size_t *n_ids, weft_error *err)
{
    /* A token per byte is the usual bound; prefixes and special tokens add a few. */
    size_t capacity = n + 16;
    for (int attempt = 0;; attempt++) {
        *ids = malloc(capacity * sizeof **ids);
        if (!*ids) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu tokens", capacity);
        weft_status st = weft_tokenize(tokenizer, text, n, flags, *ids, capacity, n_ids, err);
        if (st == WEFT_OK) return WEFT_OK;
        free(*ids);
        *ids = NULL;
        if (st != WEFT_LIMIT || attempt) return st;
        capacity = *n_ids;
    }
}
