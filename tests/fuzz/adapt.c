// SPDX-License-Identifier: Apache-2.0
/* adapt.c: fuzzes the readers of adapters: any bytes, as a GGUF file or as a PEFT folder (the configuration, a NUL
 * byte, the tensors), are refused with a message or give pairs that are whole and finite. With WEFT_FUZZ_WHOLE in the
 * environment nothing may be refused: so seeds are looked at (adapt_seeds.py), which a reader that has become stricter
 * would otherwise make useless without a word. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapt/parts.h"
#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Modules are what they are called; those with a q have two heads, "e0." to "e2." are experts of one tensor. */
static int place_of(const void *arg, const char *module, weft__adapt_place *out)
{
    (void)arg;
    *out = (weft__adapt_place){.expert = -1, .n_experts = 1, .heads = strchr(module, 'q') ? 2 : 0};
    if (module[0] == 'e' && module[1] >= '0' && module[1] < '3' && module[2] == '.') {
        out->expert = module[1] - '0';
        out->n_experts = 3;
        module += 3;
    }
    return (size_t)snprintf(out->name, sizeof out->name, "%s", strcmp(module, "table") ? module : "token_embd.weight") <
               sizeof out->name &&
           out->name[0];
}

static const weft__adapt_names made_names = {.arch = "llama", .place = place_of};

static void check(const weft__adapt *a)
{
    for (int32_t i = 0; i < a->n_pairs; i++) {
        const weft__adapt_pair *p = &a->pairs[i];
        if (a->n_bytes > a->max_bytes) abort();
        if (p->k < 1 || p->n < 1 || p->n_experts < 1 || p->rank < 1 || p->rank > WEFT__ADAPT_RANK_MAX ||
            !isfinite(p->scale))
            abort();
        if (i > 0 && strcmp(a->pairs[i - 1].name, p->name) >= 0) abort();
        for (int64_t j = 0; j < p->n_experts * p->rank * p->k; j++)
            if (!isfinite(p->a[j])) abort();
        for (int64_t j = 0; j < p->n_experts * p->rank * p->n; j++)
            if (!isfinite(p->b[j])) abort();
        for (int64_t j = 0; j < weft__adapt_n_magnitudes(p); j++)
            if (!isfinite(p->magnitude[j])) abort();
        for (int64_t e = 0; p->magnitude && e < p->n_experts; e++)
            if (weft__adapt_is_identity(p, e) && (!weft__adapt_all_zero(p->a + e * p->rank * p->k, p->rank * p->k) ||
                                                  !weft__adapt_all_zero(p->b + e * p->n * p->rank, p->n * p->rank)))
                abort();
    }
}

static weft_status read_folder(weft__adapt *a, const void *config, size_t n_config, const void *weights, size_t n,
                               weft_error *err)
{
    weft__adapt_peft_config *c;
    weft_status st = weft__adapt_peft_config_read(config, n_config, &c, err);
    if (!st) st = weft__adapt_read_peft(a, c, weights, n, &made_names, err);
    weft__adapt_peft_config_free(&c);
    return st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__adapt *a = weft__alloc_zero(1, sizeof *a);
    weft_error err = {0};
    weft_status st;
    size_t live = weft__alloc_live() - 1;
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    if (!a) abort();
    a->label = weft__strdup("fuzz");
    a->max_bytes = 1 << 26;
    if (size >= 4 && !memcmp(data, "GGUF", 4)) st = weft__adapt_read_gguf(a, data, size, &err);
    else if (cut) st = read_folder(a, data, (size_t)(cut - data), cut + 1, size - (size_t)(cut - data) - 1, &err);
    else st = read_folder(a, data, size, data, size, &err);
    if (!st) check(a);
    else if (!err.message[0]) abort();
    if (st && getenv("WEFT_FUZZ_WHOLE")) {
        fprintf(stderr, "refused: %s\n", err.message);
        abort();
    }
    weft__adapt_close(&a);
    if (weft__alloc_live() != live) abort();
    return 0;
}
