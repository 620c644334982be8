// SPDX-License-Identifier: Apache-2.0
/* adapt_open.h: for tests of adapters: a folder with a GGUF file and a PEFT folder in it, made, opened or refused. */
#ifndef WEFT_TESTS_ADAPT_OPEN_H
#define WEFT_TESTS_ADAPT_OPEN_H

#include "unit/fixture.h"

#include <unistd.h>

#include "adapt/parts.h"
#include "unit/adapt_files.h"

static char folder[64], file[96], peft[96];

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(file, sizeof file, "%s/a.gguf", folder);
    snprintf(peft, sizeof peft, "%s/peft", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    unmake_peft(peft);
    return rmdir(folder);
}

#define Q_A "blk.0.attn_q.weight.lora_a"
#define Q_B "blk.0.attn_q.weight.lora_b"
static const made Q_PAIR[] = {{Q_A, 2, {K, 4}}, {Q_B, 2, {4, N}}};

static inline recipe q_recipe(void)
{
    return (recipe){"adapter", "lora", "llama", 8, Q_PAIR, 2};
}

static inline weft__adapt *open_made(const recipe *r)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_gguf(file, r));
    if (weft__adapt_open(file, NULL, UINT64_MAX, &a, &err)) fail_msg("%s", err.message);
    return a;
}

static inline void refuse_gguf(const recipe *r, weft_status want, const char *says)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_gguf(file, r));
    weft_status st = weft__adapt_open(file, NULL, UINT64_MAX, &a, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("status %d, \"%s\"; wanted %d with \"%s\"", st, err.message, want, says);
    assert_null(a);
    assert_non_null(strstr(err.message, "a.gguf"));
}

#define MODULE "base_model.model.model.layers.0."
#define CONFIG "{\"peft_type\":\"LORA\",\"r\":4,\"lora_alpha\":8,\"bias\":\"none\""
static const made PEFT_Q[] = {{MODULE "self_attn.q_proj.lora_A.weight", 2, {K, 4}},
                              {MODULE "self_attn.q_proj.lora_B.weight", 2, {4, N}}};

static inline weft__adapt *open_peft(const char *config, const made *tensors, size_t n)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_peft(peft, config, tensors, n));
    if (weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err)) fail_msg("%s", err.message);
    return a;
}

static inline void refuse_peft(const char *config, const made *tensors, size_t n, weft_status want, const char *says)
{
    weft__adapt *a;
    weft_error err = {0};
    assert_true(made_peft(peft, config, tensors, n));
    weft_status st = weft__adapt_open(peft, &made_names, UINT64_MAX, &a, &err);
    if (st != want || !strstr(err.message, says))
        fail_msg("%s: status %d, \"%s\"; wanted %d with \"%s\"", config, st, err.message, want, says);
    assert_null(a);
}

#endif
