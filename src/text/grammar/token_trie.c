// SPDX-License-Identifier: Apache-2.0
/* token_trie.c: builds the trie from the tokens in the order of their bytes, where each token shares its beginning with
 * the one before it. Until it is built, the bytes of control tokens lie in a text of their own. */
#include "text/grammar/token_trie.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/parts.h"

typedef struct token_trie_entry {
    weft__tok_slice piece;
    int32_t id;
} token_trie_entry;

static int by_bytes(const void *x, const void *y)
{
    const token_trie_entry *a = x, *b = y;
    size_t n = a->piece.len < b->piece.len ? a->piece.len : b->piece.len;
    int order = memcmp(a->piece.data, b->piece.data, n);
    if (order) return order;
    if (a->piece.len != b->piece.len) return a->piece.len < b->piece.len ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

static int has_control_byte(weft__tok_slice s)
{
    return s.len > 0 && memchr(s.data, WEFT__GRAM_TRIE_CONTROL, s.len) != NULL;
}

static int is_text(const weft__tok *tok, int32_t id)
{
    int type = weft__tok_type_of(tok, id);
    weft__tok_slice piece = weft__tok_piece_of(tok, id);
    if (type != WEFT__TOK_NORMAL && type != WEFT__TOK_USER_DEFINED && type != WEFT__TOK_BYTE) return 0;
    return !weft__tok_is_end(tok, id) && piece.len > 0 && !has_control_byte(piece);
}

int weft__gram_trie_is_control(const weft__tok *tok, int32_t id)
{
    weft__tok_slice text = weft__tok_text(tok, id);
    return weft__tok_type_of(tok, id) == WEFT__TOK_CONTROL && !weft__tok_is_end(tok, id) && text.len > 0 &&
           text.len <= WEFT__TOK_SPECIAL_MAX_BYTES && !has_control_byte(text);
}

/* Appends the bytes of all control tokens to `text`, one after the other. */
static int put_controls(const weft__tok *tok, weft__strbuf *text)
{
    for (int32_t id = 0; id < weft__tok_n(tok); id++) {
        weft__tok_slice s = weft__tok_text(tok, id);
        if (!weft__gram_trie_is_control(tok, id)) continue;
        weft__strbuf_putc(text, (char)WEFT__GRAM_TRIE_CONTROL);
        weft__strbuf_put(text, s.data, s.len);
        weft__strbuf_putc(text, (char)WEFT__GRAM_TRIE_CONTROL);
    }
    return !text->failed;
}

/* The tokens, sorted; n receives how many. They borrow `controls`. NULL when there is no memory. */
static token_trie_entry *sorted_entries(const weft__tok *tok, weft__strbuf *controls, size_t *n)
{
    int32_t n_tokens = weft__tok_n(tok);
    size_t at = 0;
    token_trie_entry *entries = weft__alloc_array((size_t)n_tokens, sizeof *entries);
    *n = 0;
    if (entries && !put_controls(tok, controls)) {
        weft__free(entries);
        return NULL;
    }
    for (int32_t id = 0; entries && id < n_tokens; id++) {
        weft__tok_slice piece = weft__tok_piece_of(tok, id);
        int control = weft__gram_trie_is_control(tok, id);
        if (control) piece = (weft__tok_slice){controls->data + at, weft__tok_text(tok, id).len + 2};
        if (control) at += piece.len;
        if (control || is_text(tok, id)) entries[(*n)++] = (token_trie_entry){piece, id};
    }
    if (entries) qsort(entries, *n, sizeof *entries, by_bytes);
    return entries;
}

static size_t common(weft__tok_slice a, weft__tok_slice b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.data[n] == b.data[n]) n++;
    return n;
}

/* path[d]: the open node of depth d + 1; there is room for max_depth. */
static int add_nodes(weft__gram_trie *t, const token_trie_entry *entries, size_t n, uint32_t *path)
{
    size_t capacity = 0, open = 0;
    for (size_t i = 0; i <= n; i++) {
        weft__tok_slice piece = i < n ? entries[i].piece : (weft__tok_slice){"", 0};
        size_t shared = i ? common(entries[i - 1].piece, piece) : 0;
        while (open > shared) t->nodes[path[--open]].next = t->n_nodes;
        if (!weft__grow(&t->nodes, &capacity, t->n_nodes + piece.len + 1, sizeof *t->nodes)) return 0;
        for (; open < piece.len; open++) {
            t->nodes[t->n_nodes] = (weft__gram_trie_node){0, (uint32_t)i, open ? path[open - 1] : t->n_nodes,
                                                          (uint16_t)(open + 1), (uint8_t)piece.data[open]};
            path[open] = t->n_nodes++;
        }
        if (i == n) break;
        t->ids[i] = entries[i].id;
        t->node_of[entries[i].id] = path[open - 1];
    }
    t->nodes[t->n_nodes] = (weft__gram_trie_node){t->n_nodes, (uint32_t)n, t->n_nodes, 0, 0};
    return 1;
}

static int find_ends(weft__gram_trie *t, const weft__tok *tok)
{
    for (int pass = 0; pass < 2; pass++) {
        t->n_ends = 0;
        for (int32_t id = 0; id < t->n_tokens; id++) {
            if (!weft__tok_is_end(tok, id)) continue;
            if (pass) t->ends[t->n_ends] = id;
            t->n_ends++;
        }
        if (!pass && !(t->ends = weft__alloc_array((size_t)t->n_ends, sizeof *t->ends))) return 0;
    }
    return 1;
}

weft_status weft__gram_trie_create(const weft__tok *tok, weft__gram_trie **out, weft_error *err)
{
    size_t n = 0;
    uint32_t *path = NULL;
    token_trie_entry *entries = NULL;
    weft__strbuf controls = {0};
    *out = NULL;
    if (tok->model == WEFT__TOK_MODEL_WPM)
        return weft_fail(err, WEFT_UNSUPPORTED,
                         "grammar: a WordPiece vocabulary's tokens do not spell text by themselves");
    weft__gram_trie *t = weft__alloc_zero(1, sizeof *t);
    if (!t) goto no_memory;
    atomic_init(&t->refs, 1);
    t->n_tokens = weft__tok_n(tok);
    if (!(entries = sorted_entries(tok, &controls, &n))) goto no_memory;
    for (size_t i = 0; i < n; i++)
        if (entries[i].piece.len > t->max_depth) t->max_depth = (uint32_t)entries[i].piece.len;
    for (size_t i = 0, sum = 0; i < n; i++) {
        if ((sum += entries[i].piece.len) < UINT32_MAX) continue;
        weft__free(entries);
        weft__strbuf_free(&controls);
        weft__gram_trie_release(&t);
        return weft_fail(err, WEFT_LIMIT, "grammar: the tokens have more than 4 GiB of text");
    }
    path = weft__alloc_array(t->max_depth, sizeof *path);
    t->ids = weft__alloc_array(n, sizeof *t->ids);
    t->node_of = weft__alloc_array((size_t)t->n_tokens, sizeof *t->node_of);
    if (!path || !t->ids || !t->node_of) goto no_memory;
    memset(t->node_of, 0xFF, (size_t)t->n_tokens * sizeof *t->node_of);
    if (!add_nodes(t, entries, n, path) || !find_ends(t, tok)) goto no_memory;
    if (!(t->subtrees = weft__gram_subtrees_make(t)) || !weft__gram_token_lengths_make(&t->lengths, t)) goto no_memory;
    weft__free(path);
    weft__free(entries);
    weft__strbuf_free(&controls);
    *out = t;
    return WEFT_OK;
no_memory:
    weft__free(path);
    weft__free(entries);
    weft__strbuf_free(&controls);
    weft__gram_trie_release(&t);
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the index of tokens");
}

weft__gram_trie *weft__gram_trie_retain(weft__gram_trie *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void weft__gram_trie_release(weft__gram_trie **p)
{
    weft__gram_trie *t = p ? *p : NULL;
    if (!t) return;
    *p = NULL;
    if (atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1) return;
    weft__gram_token_lengths_free(&t->lengths);
    weft__free(t->subtrees);
    weft__free(t->ends);
    weft__free(t->node_of);
    weft__free(t->ids);
    weft__free(t->nodes);
    weft__free(t);
}
