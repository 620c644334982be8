// SPDX-License-Identifier: Apache-2.0
/* note.h: what a log says of itself, as text that others can check: keys, checkpoints and proofs of inclusion.
 *
 * Forms: C2SP signed-note with Ed25519 (type 0x01), tlog-checkpoint without extension lines, tlog-proof@v1 (c2sp.org).
 * Readers take bytes from anywhere; what is not exactly of the form is refused (WEFT_FORMAT). Any thread. */
#ifndef WEFT_LEARN_NOTE_H
#define WEFT_LEARN_NOTE_H

#include "base/text.h"
#include "learn/merkle.h"
#include "learn/sign.h"

enum {
    WEFT__LEARN_ORIGIN = 128,         /* bytes of a log's name with its NUL */
    WEFT__LEARN_NOTE_MOST = 64 << 10, /* bytes of a signed note */
    WEFT__LEARN_ENTRY_MOST = 64 << 10 /* bytes of an entry */
};

/* A key by which checkpoints are checked. */
typedef struct weft__learn_vkey {
    char name[WEFT__LEARN_ORIGIN];
    uint32_t id;
    unsigned char public_key[WEFT__LEARN_KEY_BYTES];
} weft__learn_vkey;

/* The key of this name: "name+01234567+base64". WEFT_NO_MEMORY, WEFT_INTERNAL. */
weft_status weft__learn_vkey_of(const char *name, const unsigned char public_key[WEFT__LEARN_KEY_BYTES],
                                weft__learn_vkey *out, weft_error *err);
void weft__learn_vkey_write(const weft__learn_vkey *key, weft__strbuf *out);
/* A line break at the end is none of it. */
weft_status weft__learn_vkey_read(const char *text, size_t n, weft__learn_vkey *out, weft_error *err);

typedef struct weft__learn_checkpoint {
    char origin[WEFT__LEARN_ORIGIN];
    uint64_t size; /* leaves */
    weft__learn_hash root;
} weft__learn_checkpoint;

/* Appends the signed note; the key's name is its origin. Fails as weft__learn_sign does. */
weft_status weft__learn_checkpoint_write(const weft__learn_checkpoint *c, const weft__learn_vkey *key,
                                         const weft__learn_pair *pair, weft__strbuf *out, weft_error *err);
/* Reads text[0..n), one signed note and nothing behind it. key: it must be signed by it, and of its name, and no
 * signature in its name may be false; NULL: signatures are not checked. */
weft_status weft__learn_checkpoint_read(const char *text, size_t n, const weft__learn_vkey *key,
                                        weft__learn_checkpoint *out, weft_error *err);
/* Bytes of the signed note that text[0..n) begins with; 0: it begins with no whole one. Looks at lines alone. */
size_t weft__learn_note_length(const char *text, size_t n);

/* ---- proofs ---- */

/* Appends that entry[0..n_entry), which stands in it as `extra`, is the index-th of the log of this checkpoint. */
void weft__learn_proof_write(uint64_t index, const weft__learn_proof *proof, const void *entry, size_t n_entry,
                             const char *checkpoint, size_t n_checkpoint, weft__strbuf *out);

typedef struct weft__learn_proven {
    uint64_t index;
    weft__learn_checkpoint checkpoint;
    weft__strbuf entry; /* the caller's */
} weft__learn_proven;

/* Reads text[0..n) and checks all of it: the entry's hash, the proof, the signature. WEFT_FORMAT: what does not hold;
 * WEFT_NO_MEMORY. out->entry is empty then. */
weft_status weft__learn_proof_check(const char *text, size_t n, const weft__learn_vkey *key, weft__learn_proven *out,
                                    weft_error *err);

#endif
