// SPDX-License-Identifier: Apache-2.0
/* kv_store.c: fuzzes the files of the disk store: any bytes are refused, or are a snapshot that loads into pages and
 * matches no more than its own tokens.
 *
 * The first byte says what is made right beforehand, so that what lies behind a sum can be reached: bit 0 the sums, bit
 * 1 the fixed fields and the size. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "../kv_load.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const weft_kv_group groups[] = {
    {.kind = WEFT_KV_FULL, .n_layers = 1, .n_kv_heads = 1, .head_dim_k = 2, .head_dim_v = 2, .page_tokens = 8},
    {.kind = WEFT_KV_WINDOW,
     .window = 10,
     .n_layers = 1,
     .n_kv_heads = 1,
     .head_dim_k = 1,
     .head_dim_v = 1,
     .page_tokens = 4},
};
static const int32_t n_pages[] = {8, 16};
static const weft__kv_key model = {{1, 2}};

enum { CTX = 64 };

static weft__kv_pool *pool;
static weft__kv_seq *seq;
static weft__kv_layout layout;

/* The snapshot of n tokens, with a first byte in front. */
static void save_seed(const char *folder, int32_t n)
{
    char path[4096];
    int32_t tokens[CTX];
    weft__kv_snapshot *s;
    uint64_t at = 0;
    for (int32_t i = 0; i < CTX; i++) tokens[i] = i;
    if (weft__kv_seq_reserve(seq, n, NULL)) abort();
    weft__kv_seq_advance(seq, n);
    if (weft__kv_snapshot_begin(&layout, model, tokens, n, seq, &s, NULL)) abort();
    if (!weft__kv_snapshot_copy(s, &layout, seq, &at, UINT64_MAX)) abort();
    weft__kv_snapshot_seal(s);
    for (int first = 0; first < 4; first++) {
        snprintf(path, sizeof path, "%s/seed-%d-%d", folder, n, first);
        FILE *f = fopen(path, "w");
        if (!f || fputc(first, f) == EOF || fwrite(s->bytes, 1, s->n_bytes, f) != s->n_bytes || fclose(f)) abort();
    }
    weft__kv_snapshot_free(&s);
    weft__kv_seq_trim(seq, 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    if (weft__kv_pool_create(groups, 2, n_pages, WEFT_F16, &pool, NULL)) abort();
    if (weft__kv_layout_of(pool, model, &layout, NULL) || weft__kv_seq_create(pool, CTX, &seq, NULL)) abort();
    for (int i = 1; i < *argc; i++) {
        if (stat((*argv)[i], &st) || !S_ISDIR(st.st_mode)) continue;
        save_seed((*argv)[i], 1);
        save_seed((*argv)[i], 13);
        save_seed((*argv)[i], 40);
        break;
    }
    return 0;
}

static void repair(weft__kv_snapshot *s, unsigned what)
{
    weft__kv_snapshot_head *head = (weft__kv_snapshot_head *)s->bytes;
    if (s->n_bytes < sizeof *head) return;
    if (what & 2) {
        memcpy(head->magic, "weft-kv\n", 8);
        head->version = WEFT__KV_SNAPSHOT_VERSION;
        head->n_groups = layout.n_groups;
        head->model = layout.model;
        head->layout = layout.digest;
        head->n_bytes = s->n_bytes;
    }
    if (what & 1 && !weft__kv_snapshot_check_head(head, s->n_bytes, &layout, NULL)) weft__kv_snapshot_seal(s);
}

/* Loads every prefix that it says it serves. */
static void load_all(const weft__kv_snapshot *s)
{
    const weft__kv_snapshot_head *head = weft__kv_snapshot_head_of(s);
    const int32_t *tokens = weft__kv_snapshot_tokens(s);
    for (int32_t n = 1; n <= head->n_tokens && n <= 200; n++) {
        int32_t serves = weft__kv_snapshot_match(s, &layout, head->root, tokens, n);
        if (serves != 0 && serves != n) abort();
        weft_status st = kv_load(s, &layout, n, seq);
        if ((st == WEFT_OK) != (serves == n && n <= CTX)) abort();
        weft__kv_seq_trim(seq, 0);
    }
    for (int g = 0; g < 2; g++)
        if (weft__kv_pool_free_pages(pool, g) != n_pages[g]) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t live = weft__alloc_live();
    weft_error err = {0};
    if (size < 1) return 0;
    weft__kv_snapshot *s = weft__kv_snapshot_alloc(size - 1);
    if (!s) abort();
    memcpy(s->bytes, data + 1, size - 1);
    repair(s, data[0]);
    if (!weft__kv_snapshot_check(s, &layout, &err)) load_all(s);
    else if (!err.message[0]) abort();
    weft__kv_snapshot_free(&s);
    if (weft__alloc_live() != live) abort();
    return 0;
}
