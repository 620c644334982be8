// SPDX-License-Identifier: Apache-2.0
/* out_file.h: the one way in which files are written whose names people give.
 *
 * What stands at a path decides how: nothing, or a regular file, becomes a file that appears under its name only when
 * it is complete: written aside, flushed, renamed. It has the permissions of the file that it replaces, and its owner
 * and group where the system lets it; a new one has what the umask leaves. A symbolic link is followed, and stays: what
 * it leads to is written. A device of characters, a FIFO or a pipe is written into, as the bytes come. A folder, a
 * socket, a disk, a file that may not be written and an empty name are refused. Invariant: until weft__out_file_commit
 * succeeds, a regular file is untouched; weft__out_file_close removes the temporary file unless it was committed,
 * weft__out_file_abandon_all those of a program that ends. After a failure every later call fails with WEFT_STATE. One
 * thread. */
#ifndef WEFT_FORMAT_OUT_FILE_H
#define WEFT_FORMAT_OUT_FILE_H

#include <stdio.h>

#include "format/names.h"
#include "weft/error.h"

typedef struct weft__out_file {
    char *path, *temporary; /* behind all links; temporary NULL: the bytes go into what stands there */
    unsigned char *buffer;
    size_t n_buffered;
    int fd, failed, committed;
    int noted; /* among those that weft__out_file_abandon_all removes; -1: not */
    char label[WEFT__NAME_SHOW * 2];
} weft__out_file;

/* Where the links at `path` lead, though nothing may stand there yet; weft__free(). NULL with errno set. */
char *weft__out_file_behind_links(const char *path);
/* Can `path` be written? For before work that takes long. WEFT_IO tells why not. */
weft_status weft__out_file_check(const char *path, weft_error *err);
/* On failure nothing needs to be closed. A FIFO is opened when it has a reader. Fails with WEFT_IO, WEFT_NO_MEMORY,
 * WEFT_CANCELLED (see weft__out_file_interrupt). */
weft_status weft__out_file_open(weft__out_file *o, const char *path, weft_error *err);
/* For what is to be seen while it is written, and is of use without its end: a regular file is emptied (or, `append`,
 * goes on) and grows in place; all else is as above. The caller closes the stream. NULL when it fails. */
FILE *weft__out_file_grow(const char *path, int append, weft_error *err);
/* Asks for room for a file of n_bytes; file systems that cannot reserve are let pass. */
weft_status weft__out_file_reserve(weft__out_file *o, uint64_t n_bytes, weft_error *err);
/* weft__out_file_check, and WEFT_LIMIT when the disk on which the file is to appear has fewer than n_bytes left, as far
 * as it tells. */
weft_status weft__out_file_room(const char *path, uint64_t n_bytes, weft_error *err);
weft_status weft__out_file_write(weft__out_file *o, const void *bytes, size_t n, weft_error *err);
weft_status weft__out_file_zeros(weft__out_file *o, uint64_t n, weft_error *err);
/* All that was written is on the disk, still aside: what may fail for want of room has not. */
weft_status weft__out_file_sync(weft__out_file *o, weft_error *err);
weft_status weft__out_file_commit(weft__out_file *o, weft_error *err);
void weft__out_file_close(weft__out_file *o);
/* A whole file at once. Fails as weft__out_file_open, _write and _commit do. */
weft_status weft__out_file_put(const char *path, const void *bytes, size_t n, weft_error *err);

/* For a handler of signals that end the program: removes the temporary files of all threads, of which none is committed
 * then. */
void weft__out_file_abandon_all(void);
/* From now on no call waits for the reader of a FIFO. May be called by a signal handler. */
void weft__out_file_interrupt(void);

#endif
