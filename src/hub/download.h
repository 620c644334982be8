// SPDX-License-Identifier: Apache-2.0
/* download.h: one file from the server into the cache, whole and verified or not at all.
 *
 * Bytes go to LEAF.part; LEAF.part.json says which content they are of (ETag, size, id), so that a later run goes on
 * where this one stopped. Only when size and SHA-256 are right is the file flushed to the disk and renamed. One thread;
 * the caller holds the repository's lock. */
#ifndef WEFT_HUB_DOWNLOAD_H
#define WEFT_HUB_DOWNLOAD_H

#include "hub/remote.h"

typedef struct weft__download {
    weft__remote *remote;
    const weft__hub_name *name;
    const weft__hub_file *file;
    int dir;          /* folder that will hold the file */
    const char *leaf; /* its name there */
    /* Called as bytes come; what: "fetching" or "checking"; done: bytes of this file. Non-zero cancels. */
    int (*progress)(void *arg, const char *what, uint64_t done);
    void *arg;
} weft__download;

/* Bytes of a usable unfinished download, 0 when there is none. */
uint64_t weft__download_begun(const weft__download *d);
/* Fetches what is missing. On success sha256 (65 bytes) is that of the file and *n_bytes its size; *verified tells
 * whether the server had announced that hash. On failure the file does not appear; the part stays, unless its content
 * was wrong. Fails with WEFT_IO, WEFT_FORMAT (lengths or hash are not as announced), WEFT_CANCELLED, WEFT_LIMIT (disk),
 * WEFT_NO_MEMORY. */
weft_status weft__download_run(const weft__download *d, char sha256[65], uint64_t *n_bytes, int *verified,
                               weft_error *err);
/* Fails with WEFT_LIMIT when the file system of folder dir has no room for n_bytes and a little more. */
weft_status weft__hub_disk_room(int dir, uint64_t n_bytes, weft_error *err);

#endif
