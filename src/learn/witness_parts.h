// SPDX-License-Identifier: Apache-2.0
/* witness_parts.h: what the files of the witness log share: names of its files, and reading them. */
#ifndef WEFT_LEARN_WITNESS_PARTS_H
#define WEFT_LEARN_WITNESS_PARTS_H

#include "learn/witness.h"

#define WEFT__LEARN_LOG_ENTRIES "entries.jsonl"
#define WEFT__LEARN_LOG_HASHES "hashes"
#define WEFT__LEARN_LOG_CHECKPOINTS "checkpoints"
#define WEFT__LEARN_LOG_KEY "key"
#define WEFT__LEARN_LOG_PUBLIC "public"

/* dir/log/name; weft__free(). NULL: no memory. */
char *weft__learn_log_path(const char *dir, const char *name);
/* Opens one of them for reading; -1 with the error set, WEFT_NOT_FOUND where there is none. */
int weft__learn_log_open(const char *dir, const char *name, weft_error *err);

/* A row of hashes in a file. */
weft_status weft__learn_row_of_file(void *fd /* int * */, uint64_t place, weft__learn_hash *out, weft_error *err);

/* Lines of a file, one after the other. Zero-initialise with fd. */
typedef struct weft__learn_lines {
    int fd;
    char *buffer;     /* the reader's, weft__learn_lines_end */
    size_t n, at;     /* in the buffer: bytes, and where the next line begins */
    uint64_t offset;  /* of the next line in the file */
    const char *line; /* [n_line], without its end */
    size_t n_line;
    int is_long; /* it is longer than an entry may be, and cut */
} weft__learn_lines;
/* 1: there is one more that is whole; 0: there is none, or *st is set. */
int weft__learn_lines_next(weft__learn_lines *l, weft_status *st, weft_error *err);
void weft__learn_lines_end(weft__learn_lines *l);

/* The last whole checkpoint of a file of them: appends it to out, *end is where it ends. 0: there is none. */
int weft__learn_last_checkpoint(int fd, weft__strbuf *out, uint64_t *end, weft_status *st, weft_error *err);

#endif
