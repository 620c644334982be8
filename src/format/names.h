// SPDX-License-Identifier: Apache-2.0
/* names.h: from names (of tensors, of metadata keys) to positions in a list, and names made fit for a message.
 *
 * Invariant: the table borrows its names, which must not move while it lives. Its hash is keyed with a secret of this
 * process, so that a prepared file cannot make it slow. Zero-initialise. One writer; any number of readers while there
 * is none. */
#ifndef WEFT_FORMAT_NAMES_H
#define WEFT_FORMAT_NAMES_H

#include <stddef.h>
#include <stdint.h>

typedef struct weft__name_slot {
    const char *name; /* NULL: free */
    uint32_t len;     /* bytes */
    uint32_t index;
} weft__name_slot;

typedef struct weft__name_table {
    weft__name_slot *slots;
    size_t n_slots, n; /* n_slots is 0 or a power of two, at least 2 n */
    uint64_t secret[2];
} weft__name_table;

/* Adds name[0..len) at `index`. Returns 1; 0 when the name is there already, with its index in *existing; -1 without
 * memory. */
int weft__name_table_put(weft__name_table *names, const char *name, size_t len, uint32_t index, uint32_t *existing);
/* The index of name[0..len), or -1. */
int64_t weft__name_table_find(const weft__name_table *names, const char *name, size_t len);
void weft__name_table_free(weft__name_table *names);

/* Room for a name in a message, and the name put there: printable, NUL-terminated, cut with "..." when long. Control
 * characters and malformed UTF-8 become '?'. Returns out. */
#define WEFT__NAME_SHOW 100
const char *weft__name_show(char out[WEFT__NAME_SHOW], const char *name, size_t len);
/* The same for a path, which keeps its end: that is where paths differ. */
const char *weft__name_show_path(char out[WEFT__NAME_SHOW * 2], const char *path);

#endif
