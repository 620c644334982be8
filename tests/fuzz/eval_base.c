// SPDX-License-Identifier: Apache-2.0
/* eval_base.c: fuzzes the reader of base files: any bytes are refused with a message that names the file, or all
 * records that the head announces are there, each of them probabilities, and what is summed of them is a number.
 *
 * The first byte of an input is the vocabulary asked for. Seeds are built here and put into the first corpus folder
 * named on the command line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "eval/base_file.h"
#include "eval/divergence.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_VOCAB = 255, N_CTX = 8, N_CHUNKS = 2 };

static float logits[MOST_VOCAB];

static void save_seed(const char *folder, int32_t n_vocab)
{
    char path[4096];
    uint16_t record[MOST_VOCAB + 5];
    int32_t head[] = {N_CTX, n_vocab, N_CHUNKS}, tokens[N_CTX * N_CHUNKS];
    snprintf(path, sizeof path, "%s/seed-%d", folder, n_vocab);
    FILE *f = fopen(path, "wb");
    if (!f) abort();
    for (int32_t i = 0; i < N_CTX * N_CHUNKS; i++) tokens[i] = i % n_vocab;
    fputc(n_vocab, f);
    fwrite("_logits_", 1, 8, f);
    fwrite(head, sizeof *head, 3, f);
    fwrite(tokens, sizeof *tokens, N_CTX * N_CHUNKS, f);
    for (int32_t i = 0; i < N_CHUNKS * (N_CTX - 1 - N_CTX / 2); i++) {
        weft__eval_nll(logits, n_vocab, tokens[i], record);
        fwrite(record, sizeof *record, (size_t)weft__eval_record_size(n_vocab), f);
    }
    if (fclose(f)) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    for (int i = 0; i < MOST_VOCAB; i++) logits[i] = (float)(i * 37 % 23) - 11;
    for (int i = 1; i < *argc; i++) {
        if (stat((*argv)[i], &st) || !S_ISDIR(st.st_mode)) continue;
        save_seed((*argv)[i], 5);
        save_seed((*argv)[i], 64);
        break;
    }
    return 0;
}

/* Reads it as eval perplexity does. */
static void walk(weft__eval_base *b, weft_error *err)
{
    uint16_t *record = malloc((size_t)weft__eval_record_size(b->n_vocab) * sizeof *record);
    weft__eval_totals sums = {0};
    int64_t scored = (int64_t)b->n_chunks * (b->n_ctx - 1 - b->n_ctx / 2);
    weft_status st = WEFT_OK;
    if (!record) abort();
    for (int64_t i = 0; i < scored && !st; i++) {
        st = weft__eval_base_next(b, record, err);
        if (st) break;
        const weft__eval_compared q = weft__eval_against(logits, b->n_vocab, b->tokens[i], record);
        if (!weft__eval_totals_compare(&sums, &q)) abort();
    }
    if (!st && (sums.n != scored || !isfinite(sums.kld) || !isfinite(sums.nll_base) || !isfinite(sums.p_diff4)))
        abort();
    if (st && !strstr(err->message, "fuzz: record")) abort(); /* its size was checked: no record is missing */
    weft__eval_totals_free(&sums);
    free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__eval_base b = {0};
    weft_error err = {0};
    if (size < 2 || data[0] == 0) return -1;
    FILE *f = fmemopen((void *)(data + 1), size - 1, "rb");
    if (!f) abort();
    if (weft__eval_base_read(&b, f, "fuzz", data[0], &err) == WEFT_OK) walk(&b, &err);
    else if (!strstr(err.message, "fuzz: ")) abort();
    weft__eval_base_close(&b);
    return 0;
}
