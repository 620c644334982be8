// SPDX-License-Identifier: Apache-2.0
/* swap.h: pages of sequences that gave way, until they go on: byte for byte, from memory to the store's swap file
 * (store_swap.h) and back.
 *
 * A sequence that gives its pages up is *parked*: a record says which they were. Most of them stand in the prefix tree
 * then, idle, and nothing is done as long as they stay there; the first that others need go to the disk. So the bytes
 * that move are those that had to leave, a page at a time, whoever takes it: it is copied when it leaves the tree, and
 * written by the store's thread. A page that the tree does not have (of a request that is kept out of it) is copied
 * when its sequence is parked.
 *
 * A page is never on its way for more than WEFT__KV_SWAP_STAGING bytes of copies, nor on the disk for more than the
 * file's limit: beyond them it is lost, and so is one that cannot be written or read back as it was. What is lost is
 * computed again; that is never an error. Pages have no names here: only the record of the sequence that held one leads
 * to it. Several that shared it share it here.
 *
 * When is it worth it? The rule (weft__kv_swap_pays), of what was measured in this process:
 *
 *     bytes per token / bytes per second that come back   <   1 / tokens per second that prompts are computed with
 *
 * where the left rate is that of whole sequences, from the moment they are asked for until they can go on, the queue of
 * the store included; until one came back, that at which the disk took pages, and until then it is tried. Where it does
 * not pay, one in WEFT__KV_SWAP_PROBE sequences is parked nevertheless: disks, and what else they do, change.
 * It moves no bit of an answer: pages hold the same, computed or kept.
 *
 * Owner: the engine's thread. */
#ifndef WEFT_KV_SWAP_H
#define WEFT_KV_SWAP_H

#include "kv/store_swap.h"

enum { WEFT__KV_SWAP_STAGING = 32 << 20, WEFT__KV_SWAP_PROBE = 16 };

typedef struct weft__kv_swap weft__kv_swap;
typedef struct weft__kv_parked weft__kv_parked;

typedef struct weft__kv_swap_stats {
    uint64_t limit_bytes, used_bytes; /* on the disk: at most; by pages that may come back */
    uint64_t staged_bytes;            /* of copies in memory, now */
    uint64_t pages_out, bytes_out;    /* that were written; */
    uint64_t pages_in, bytes_in;      /* that were read, or came back from a copy in memory */
    uint64_t pages_lost;              /* for want of room, or by a disk that failed */
    uint64_t n_parked, n_restored;    /* sequences; those that went on from what was kept of them */
    uint64_t out_ns, in_ns;           /* that writes took the disk; from asking until a sequence could go on */
    double bytes_per_second;          /* the rule's; 0: not known yet */
} weft__kv_swap_stats;

/* Over a pool, those that joined it, and the store of their pages, with at most limit bytes on the disk. news: pages
 * have come or gone (the store's thread; it must not wait). WEFT_ARGUMENT (limit), WEFT_IO, WEFT_NO_MEMORY. Pool and
 * store outlive it: but the store is closed first, as it calls back. */
weft_status weft__kv_swap_create(weft__kv_pool *pool, weft__kv_store *store, uint64_t limit, void (*news)(void *arg),
                                 void *arg, weft__kv_swap **out, weft_error *err);
/* After the store was closed; nothing is parked. NULL is fine. */
void weft__kv_swap_destroy(weft__kv_swap **swap);

/* The rule; rates of 0 are not known yet. */
int weft__kv_swap_pays(double bytes_per_token, double bytes_per_second, double tokens_per_second);
/* Is a sequence of n tokens worth parking? Counts the question (the probe). */
int weft__kv_swap_wants(weft__kv_swap *swap, const weft__kv_seq *seq, double tokens_per_second);

/* Parks what seq holds, which is about to be trimmed, and of which the tree has taken what it takes. NULL: there is
 * nothing, or no memory. */
weft__kv_parked *weft__kv_swap_park(weft__kv_swap *swap, const weft__kv_seq *seq);
/* Forgets it, whatever is under way. NULL is fine. */
void weft__kv_swap_forget(weft__kv_swap *swap, weft__kv_parked **parked);

/* How many of the first n_max tokens can come back, as far as is known now. */
int32_t weft__kv_swap_has(const weft__kv_swap *swap, const weft__kv_parked *parked, int32_t n_max);
/* Gives seq, empty, the pages of n tokens as weft__kv_swap_has said, and asks for those on the disk. Its length is 0
 * until they are there. 0: there are no pages; seq is empty, and what is parked is still. */
int weft__kv_swap_begin(weft__kv_swap *swap, weft__kv_parked *parked, weft__kv_seq *seq, int32_t n);
/* Is it begun? */
int weft__kv_swap_is_begun(const weft__kv_parked *parked);
/* 1: seq has the length that was asked for, and can go on. 0: later. -1: something was lost; seq is empty, and less
 * can come back. Both ends leave it parked. */
int weft__kv_swap_end(weft__kv_swap *swap, weft__kv_parked *parked);
/* How long nothing of what was begun has come, ns. How many are begun. */
uint64_t weft__kv_swap_idle_ns(const weft__kv_parked *parked);
int32_t weft__kv_swap_n_begun(const weft__kv_swap *swap);
/* Bytes that come from outside of the pool, of what was begun last. */
uint64_t weft__kv_swap_bytes(const weft__kv_parked *parked);
/* Takes seq's pages away again before the end of what was begun; seq is empty. */
void weft__kv_swap_stop(weft__kv_swap *swap, weft__kv_parked *parked);

/* Takes in what the store has done, asks it for more, and copies at most `budget` bytes into pages (one page more). 1:
 * something of what was begun has changed, or can change with another call; else news will come first. */
int weft__kv_swap_some(weft__kv_swap *swap, uint64_t budget);

void weft__kv_swap_get_stats(const weft__kv_swap *swap, weft__kv_swap_stats *out);

#endif
