/* out_file.h: a file that appears under its name only when it is complete: written aside, flushed, renamed.
 *
 * Invariant: until weft__out_commit succeeds, `path` is untouched; weft__out_close removes the temporary file unless it was
 * committed. After a failure every later call fails with WEFT_STATE. One thread. */
#ifndef WEFT_FORMAT_OUT_FILE_H
#define WEFT_FORMAT_OUT_FILE_H

#include "format/names.h"
#include "weft/error.h"

typedef struct weft__out {
    char *path, *temporary;
    unsigned char *buffer;
    size_t n_buffered;
    int fd, failed, committed;
    char label[WEFT__SHOW * 2];
} weft__out;

/* On failure nothing needs to be closed. Fails with WEFT_IO or WEFT_NO_MEMORY. */
weft_status weft__out_open(weft__out *o, const char *path, weft_error *err);
/* Asks for room for a file of n_bytes; file systems that cannot reserve are let pass. */
weft_status weft__out_reserve(weft__out *o, uint64_t n_bytes, weft_error *err);
/* For work that takes long before the first byte is written. Fails with WEFT_LIMIT when the disk on which `path` is to appear has fewer
 * than n_bytes left, as far as it tells; with WEFT_IO when `path` is a folder, or nothing can be written into the one that it is in. */
weft_status weft__out_room(const char *path, uint64_t n_bytes, weft_error *err);
weft_status weft__out_write(weft__out *o, const void *bytes, size_t n, weft_error *err);
weft_status weft__out_zeros(weft__out *o, uint64_t n, weft_error *err);
/* All that was written is on the disk, still aside: what may fail for want of room has not. */
weft_status weft__out_sync(weft__out *o, weft_error *err);
weft_status weft__out_commit(weft__out *o, weft_error *err);
void weft__out_close(weft__out *o);

#endif
