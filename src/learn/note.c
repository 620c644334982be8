// SPDX-License-Identifier: Apache-2.0
/* note.c: see note.h. Any thread. */
#include "learn/note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/sha256.h"

static const char DASH[] = "\xe2\x80\x94 "; /* what signature lines begin with */
enum { N_DASH = sizeof DASH - 1, ED25519 = 1, SIGNED = 4 + WEFT__LEARN_SIGNATURE_BYTES };

/* ---- parts of text ---- */

typedef struct text_part {
    const char *at;
    size_t n;
} text_part;

/* The next line, without its end, which goes from *rest. 0: there is no whole one. */
static int take_line(text_part *rest, text_part *line)
{
    const char *end = rest->n ? memchr(rest->at, '\n', rest->n) : NULL;
    if (!end) return 0;
    *line = (text_part){rest->at, (size_t)(end - rest->at)};
    rest->n -= line->n + 1;
    rest->at = end + 1;
    return 1;
}

static int begins(text_part line, const char *with)
{
    const size_t n = strlen(with);
    return line.n >= n && !memcmp(line.at, with, n);
}

/* A decimal number, written in the one way that it can be. */
static int read_number(text_part t, uint64_t *out)
{
    uint64_t v = 0;
    if (!t.n || t.n > 19 || (t.n > 1 && t.at[0] == '0')) return 0;
    for (size_t i = 0; i < t.n; i++) {
        if (t.at[i] < '0' || t.at[i] > '9') return 0;
        v = v * 10 + (uint64_t)(t.at[i] - '0');
    }
    *out = v;
    return 1;
}

static int read_hash(text_part t, weft__learn_hash *out)
{
    size_t n;
    return weft__base64_read(t.at, t.n, out->bytes, sizeof out->bytes, &n) && n == sizeof out->bytes;
}

/* A name as notes take it: visible ASCII without '+'; others are none of ours. */
static int read_name(text_part t, char out[WEFT__LEARN_ORIGIN])
{
    if (!t.n || t.n >= WEFT__LEARN_ORIGIN) return 0;
    for (size_t i = 0; i < t.n; i++)
        if (t.at[i] <= ' ' || t.at[i] > '~' || t.at[i] == '+') return 0;
    memcpy(out, t.at, t.n);
    out[t.n] = 0;
    return 1;
}

/* ---- keys ---- */

weft_status weft__learn_vkey_of(const char *name, const unsigned char public_key[WEFT__LEARN_KEY_BYTES],
                                weft__learn_vkey *out, weft_error *err)
{
    unsigned char digest[32];
    weft__sha256 h = {0};
    weft_status st = weft__sha256_begin(&h, err);
    if (!st) st = weft__sha256_add(&h, name, strlen(name), err);
    if (!st) st = weft__sha256_add(&h, (const unsigned char[]){'\n', ED25519}, 2, err);
    if (!st) st = weft__sha256_add(&h, public_key, WEFT__LEARN_KEY_BYTES, err);
    if (!st) weft__sha256_end_bytes(&h, digest);
    weft__sha256_free(&h);
    if (st) return st;
    snprintf(out->name, sizeof out->name, "%s", name);
    out->id = (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 | digest[3];
    memcpy(out->public_key, public_key, WEFT__LEARN_KEY_BYTES);
    return WEFT_OK;
}

void weft__learn_vkey_write(const weft__learn_vkey *key, weft__strbuf *out)
{
    unsigned char bytes[1 + WEFT__LEARN_KEY_BYTES] = {ED25519};
    memcpy(bytes + 1, key->public_key, WEFT__LEARN_KEY_BYTES);
    weft__strbuf_printf(out, "%s+%08" PRIx32 "+", key->name, key->id);
    weft__base64_put(out, bytes, sizeof bytes);
}

weft_status weft__learn_vkey_read(const char *text, size_t n, weft__learn_vkey *out, weft_error *err)
{
    unsigned char bytes[1 + WEFT__LEARN_KEY_BYTES];
    char name[WEFT__LEARN_ORIGIN], id[9] = "";
    size_t n_bytes;
    if (n && text[n - 1] == '\n') n--;
    const char *first = n ? memchr(text, '+', n) : NULL;
    const size_t n_name = first ? (size_t)(first - text) : 0, rest = first ? n - n_name - 1 : 0;
    if (!first || !read_name((text_part){text, n_name}, name) || rest < 9 || first[9] != '+' ||
        !weft__base64_read(first + 10, rest - 9, bytes, sizeof bytes, &n_bytes) || n_bytes != sizeof bytes)
        return weft_fail(err, WEFT_FORMAT, "a public key is NAME+8 digits+base64");
    if (bytes[0] != ED25519)
        return weft_fail(err, WEFT_FORMAT, "the public key is of type %d; only Ed25519 (1) is known", bytes[0]);
    weft_status st = weft__learn_vkey_of(name, bytes + 1, out, err);
    if (st) return st;
    snprintf(id, sizeof id, "%08" PRIx32, out->id);
    if (memcmp(id, first + 1, 8)) return weft_fail(err, WEFT_FORMAT, "the digits of the public key are not its own");
    return WEFT_OK;
}

/* ---- checkpoints ---- */

weft_status weft__learn_checkpoint_write(const weft__learn_checkpoint *c, const weft__learn_vkey *key,
                                         const weft__learn_pair *pair, weft__strbuf *out, weft_error *err)
{
    unsigned char bytes[SIGNED] = {(unsigned char)(key->id >> 24), (unsigned char)(key->id >> 16),
                                   (unsigned char)(key->id >> 8), (unsigned char)key->id};
    const size_t from = out->len;
    weft__strbuf_printf(out, "%s\n%" PRIu64 "\n", c->origin, c->size);
    weft__base64_put(out, c->root.bytes, sizeof c->root.bytes);
    weft__strbuf_putc(out, '\n');
    if (out->failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a checkpoint");
    weft_status st = weft__learn_sign(pair, out->data + from, out->len - from, bytes + 4, err);
    if (st) return st;
    weft__strbuf_printf(out, "\n%s%s ", DASH, key->name);
    weft__base64_put(out, bytes, sizeof bytes);
    weft__strbuf_putc(out, '\n');
    return out->failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a checkpoint") : WEFT_OK;
}

size_t weft__learn_note_length(const char *text, size_t n)
{
    text_part rest = {text, n}, line;
    for (;;) { /* the text */
        if (!take_line(&rest, &line)) return 0;
        if (!line.n && begins(rest, DASH)) break;
    }
    while (begins(rest, DASH))
        if (!take_line(&rest, &line)) return 0;
    return n - rest.n;
}

/* 1: the line is a signature of this key over the text; 0: of another; -1: it is false, or none. */
static int check_line(text_part line, text_part text, const weft__learn_vkey *key)
{
    unsigned char bytes[SIGNED];
    size_t n;
    if (!begins(line, DASH)) return -1;
    line.at += N_DASH;
    line.n -= N_DASH;
    const char *blank = line.n ? memchr(line.at, ' ', line.n) : NULL;
    if (!blank || blank == line.at) return -1;
    const size_t n_name = (size_t)(blank - line.at), n_rest = line.n - n_name - 1;
    if (!key || n_name != strlen(key->name) || memcmp(line.at, key->name, n_name)) return 0;
    /* others' keys may have longer signatures */
    if (!weft__base64_read(blank + 1, n_rest, bytes, sizeof bytes, &n) || n < 4) return n_rest > 2 * SIGNED ? 0 : -1;
    const uint32_t id = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    if (id != key->id) return 0;
    return n == SIGNED && weft__learn_check_signature(key->public_key, text.at, text.n, bytes + 4) ? 1 : -1;
}

weft_status weft__learn_checkpoint_read(const char *text, size_t n, const weft__learn_vkey *key,
                                        weft__learn_checkpoint *out, weft_error *err)
{
    text_part rest = {text, n}, lines[3], line;
    int n_signed = 0;
    if (n > WEFT__LEARN_NOTE_MOST)
        return weft_fail(err, WEFT_FORMAT, "a checkpoint has at most %d bytes", WEFT__LEARN_NOTE_MOST);
    for (int i = 0; i < 3; i++)
        if (!take_line(&rest, &lines[i])) return weft_fail(err, WEFT_FORMAT, "a checkpoint has at least five lines");
    const text_part signed_text = {text, n - rest.n};
    if (!read_name(lines[0], out->origin) || !read_number(lines[1], &out->size) || !read_hash(lines[2], &out->root))
        return weft_fail(err, WEFT_FORMAT,
                         "a checkpoint begins with three lines: the name of its log, a number of entries, and a hash "
                         "in base64");
    if (!take_line(&rest, &line) || line.n || !rest.n)
        return weft_fail(err, WEFT_FORMAT, "an empty line and signatures stand behind the three of a checkpoint");
    while (rest.n) {
        const int is = take_line(&rest, &line) ? check_line(line, signed_text, key) : -1;
        if (is < 0) return weft_fail(err, WEFT_FORMAT, "a signature of the checkpoint is false, or none");
        n_signed += is;
    }
    if (key && strcmp(out->origin, key->name))
        return weft_fail(err, WEFT_FORMAT, "the checkpoint is of the log '%s', the key of '%s'", out->origin,
                         key->name);
    if (key && !n_signed) return weft_fail(err, WEFT_FORMAT, "the checkpoint is not signed by '%s'", key->name);
    return WEFT_OK;
}

/* ---- proofs ---- */

static const char PROOF[] = "c2sp.org/tlog-proof@v1", EXTRA[] = "extra ", INDEX[] = "index ";

void weft__learn_proof_write(uint64_t index, const weft__learn_proof *proof, const void *entry, size_t n_entry,
                             const char *checkpoint, size_t n_checkpoint, weft__strbuf *out)
{
    weft__strbuf_printf(out, "%s\n%s", PROOF, EXTRA);
    weft__base64_put(out, entry, n_entry);
    weft__strbuf_printf(out, "\n%s%" PRIu64 "\n", INDEX, index);
    for (int i = 0; i < proof->n; i++) {
        weft__base64_put(out, proof->items[i].bytes, sizeof proof->items[i].bytes);
        weft__strbuf_putc(out, '\n');
    }
    weft__strbuf_putc(out, '\n');
    weft__strbuf_put(out, checkpoint, n_checkpoint);
}

/* The lines in front of the checkpoint, which *rest is then. */
static weft_status read_proof(text_part *rest, weft__learn_proof *proof, weft__learn_proven *out, weft_error *err)
{
    text_part line;
    size_t n;
    proof->n = 0;
    if (!take_line(rest, &line) || line.n != sizeof PROOF - 1 || !begins(line, PROOF))
        return weft_fail(err, WEFT_FORMAT, "a proof begins with the line %s", PROOF);
    if (!take_line(rest, &line) || !begins(line, EXTRA))
        return weft_fail(err, WEFT_FORMAT, "the proof does not hold its entry: its second line is no 'extra ...'");
    const size_t n_text = line.n - (sizeof EXTRA - 1);
    if (n_text > 2 * WEFT__LEARN_ENTRY_MOST) return weft_fail(err, WEFT_FORMAT, "the entry of the proof is too long");
    char *room = weft__alloc(n_text);
    if (!room) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a proof");
    const int is_read = weft__base64_read(line.at + sizeof EXTRA - 1, n_text, room, n_text, &n);
    if (is_read) weft__strbuf_put(&out->entry, room, n);
    weft__free(room);
    if (!is_read) return weft_fail(err, WEFT_FORMAT, "the entry of the proof is no base64");
    if (out->entry.failed) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a proof");
    if (!take_line(rest, &line) || !begins(line, INDEX) ||
        !read_number((text_part){line.at + sizeof INDEX - 1, line.n - (sizeof INDEX - 1)}, &out->index))
        return weft_fail(err, WEFT_FORMAT, "the proof's third line is no 'index N'");
    for (;;) {
        if (!take_line(rest, &line)) return weft_fail(err, WEFT_FORMAT, "the proof ends before its checkpoint");
        if (!line.n) return WEFT_OK;
        if (proof->n == WEFT__LEARN_PROOF_MOST || !read_hash(line, &proof->items[proof->n++]))
            return weft_fail(err, WEFT_FORMAT, "the proof has a line that is no hash, or too many of them");
    }
}

weft_status weft__learn_proof_check(const char *text, size_t n, const weft__learn_vkey *key, weft__learn_proven *out,
                                    weft_error *err)
{
    text_part rest = {text, n};
    weft__learn_proof proof;
    weft__learn_hash leaf;
    *out = (weft__learn_proven){0};
    weft_status st = read_proof(&rest, &proof, out, err);
    if (!st) st = weft__learn_checkpoint_read(rest.at, rest.n, key, &out->checkpoint, err);
    if (!st) st = weft__learn_hash_leaf(out->entry.data, out->entry.len, &leaf, err);
    if (!st && !weft__learn_check_inclusion(&leaf, out->index, out->checkpoint.size, &proof, &out->checkpoint.root))
        st = weft_fail(err, WEFT_FORMAT, "the entry is not number %" PRIu64 " of the log of %" PRIu64 " entries",
                       out->index, out->checkpoint.size);
    if (st) weft__strbuf_free(&out->entry);
    return st;
}
