// SPDX-License-Identifier: Apache-2.0
/* store_swap.h: the store's swap file, for pages that will be wanted again by this process and by nobody else.
 *
 * The file has no name: it is removed as soon as it is open, so that the system frees it when the process ends, however
 * that happens (between the two it is a t-HEX, which the next that opens the folder removes). It counts as part of the
 * store's cap: prefixes make room for it, and saved slots leave it its quarter. It is never flushed.
 * What is read must be what was written under the same seed, or it is refused.
 *
 * The store's thread does it: reads overtake all writes, and what goes out overtakes prefixes and slots. Thread safety:
 * as store.h. */
#ifndef WEFT_KV_STORE_SWAP_H
#define WEFT_KV_STORE_SWAP_H

#include "kv/store.h"

/* One transfer. It belongs to the store from the call on until `done` is called with it; where the store is closed on a
 * disk that does not answer, it frees the transfer with its bytes, and calls nobody. */
typedef struct weft__kv_swap_io {
    void *arg;            /* the caller's */
    unsigned char *bytes; /* [n_bytes] */
    uint64_t at, n_bytes; /* in the file */
    uint64_t seed, sum;   /* of what the bytes are; reading: as the write has left them */
    weft_status status;   /* WEFT_OK, WEFT_LIMIT (no room), WEFT_IO, WEFT_FORMAT (other bytes), WEFT_STATE (closing) */
    uint64_t ns;          /* that the disk took */
} weft__kv_swap_io;

/* On the store's thread, as weft__kv_store_done. */
typedef void (*weft__kv_swap_done)(void *arg, weft__kv_swap_io *io);

/* One with room for n_bytes; NULL: no memory. */
weft__kv_swap_io *weft__kv_swap_io_new(uint64_t n_bytes);
void weft__kv_swap_io_free(weft__kv_swap_io **io);

/* A quarter of the store's cap: what can always be had. */
uint64_t weft__kv_store_swap_most(weft__kv_store *store);
/* Makes the file, which has at most limit bytes; once, before anything else is asked. WEFT_IO; WEFT_ARGUMENT (limit is
 * more than can always be had). */
weft_status weft__kv_store_swap_open(weft__kv_store *store, uint64_t limit, weft__kv_swap_done done, void *arg,
                                     weft_error *err);
/* 0: no memory to ask; the transfer is the caller's still. */
int weft__kv_store_swap_out(weft__kv_store *store, weft__kv_swap_io *io);
int weft__kv_store_swap_in(weft__kv_store *store, weft__kv_swap_io *io);
/* Gives the file's bytes back once what was asked for is done: nobody wants any of them. */
void weft__kv_store_swap_empty(weft__kv_store *store);

#endif
