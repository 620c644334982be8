// SPDX-License-Identifier: Apache-2.0
/* Checkpoints, keys and proofs of anybody: what is read of them is in its bounds, and reads the same when it is written
 * again. */
#include <stdlib.h>
#include <string.h>

#include "learn/note.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t n)
{
    static weft__learn_vkey own; /* signs nothing of these */
    weft__learn_vkey key, again;
    weft__learn_checkpoint c;
    weft__learn_proven proven;
    weft__strbuf text = {0};
    char *exact = malloc(n + 1); /* so that reading past its end is seen */
    if (!exact) return 0;
    if (!own.id && weft__learn_vkey_of("example.com/behind-the-sofa", own.public_key, &own, NULL)) abort();
    if (n) memcpy(exact, data, n);
    char *all = realloc(exact, n ? n : 1);
    if (!all) abort();
    if (!weft__learn_checkpoint_read(all, n, NULL, &c, NULL)) {
        if (!*c.origin || strlen(c.origin) >= sizeof c.origin) abort();
        if (weft__learn_note_length(all, n) > n) abort();
        if (!weft__learn_checkpoint_read(all, n, &own, &c, NULL)) abort(); /* nobody has that key */
    }
    if (weft__learn_note_length(all, n) > n) abort();
    if (!weft__learn_vkey_read(all, n, &key, NULL)) {
        weft__learn_vkey_write(&key, &text);
        if (text.failed || weft__learn_vkey_read(text.data, text.len, &again, NULL) || key.id != again.id) abort();
    }
    if (!weft__learn_proof_check(all, n, NULL, &proven, NULL) && proven.index >= proven.checkpoint.size) abort();
    weft__strbuf_free(&proven.entry);
    weft__strbuf_free(&text);
    free(all);
    return 0;
}
