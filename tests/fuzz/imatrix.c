// SPDX-License-Identifier: Apache-2.0
/* imatrix.c: fuzzes the reader of importance matrices, both forms: any bytes are refused with a message that names the
 * file, or every value of every entry is finite, not negative and within reach.
 *
 * Seeds are built here and put into the first corpus folder named on the command line. */
#include <math.h>
#include <sys/stat.h>

#include "../unit/gguf_build.h"

#include "base/alloc.h"
#include "engine/imatrix.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { K = 4, EXPERTS = 2 };
/* What seeds, and so most inputs, call their tensors. */
static const char *const names[] = {"blk.0.attn_q.weight", "blk.0.ffn_up_exps.weight", "w"};

static void put_f32(bytes *b, float v)
{
    put(b, &v, sizeof v);
}

static void save_seed(const char *folder, const char *name, bytes b)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!bytes_save(&b, path)) fprintf(stderr, "cannot write the seed %s\n", path), exit(1);
    free(b.p);
}

/* Sums and counts of one matrix and of a set of experts. */
static bytes new_form(void)
{
    static const char *const tensors[] = {"blk.0.attn_q.weight.in_sum2", "blk.0.attn_q.weight.counts",
                                          "blk.0.ffn_up_exps.weight.in_sum2", "blk.0.ffn_up_exps.weight.counts"};
    static const uint64_t d[][2] = {{K, 1}, {1, 1}, {K, EXPERTS}, {1, EXPERTS}};
    bytes b = {0};
    put_head(&b, 3, 4, 1);
    put_key(&b, "general.type", 8);
    put_text(&b, "imatrix");
    for (uint64_t i = 0; i < 4; i++) put_tensor(&b, tensors[i], 2, d[i], 0, 32 * i);
    pad(&b, 32);
    for (int i = 0; i < 4; i++, pad(&b, 32))
        for (uint64_t j = 0; j < d[i][0] * d[i][1]; j++) put_f32(&b, (float)(j + 1));
    return b;
}

static bytes old_form(void)
{
    bytes b = {0};
    put_u32(&b, 2);
    for (int i = 0; i < 2; i++) {
        put_u32(&b, (uint32_t)strlen(names[i]));
        put(&b, names[i], strlen(names[i]));
        put_u32(&b, 3); /* calls */
        put_u32(&b, i ? K * EXPERTS : K);
        for (int j = 0; j < (i ? K * EXPERTS : K); j++) put_f32(&b, (float)j);
    }
    return b;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    const char *folder = NULL;
    for (int i = 1; i < *argc && !folder; i++)
        if (stat((*argv)[i], &st) == 0 && S_ISDIR(st.st_mode)) folder = (*argv)[i];
    if (!folder) return 0;
    save_seed(folder, "seed-gguf", new_form());
    save_seed(folder, "seed-old", old_form());
    return 0;
}

/* All values of what a model with such a tensor would ask for. */
static void ask(const weft__imatrix *m, const char *name, uint64_t n_experts, int64_t k)
{
    const float *values = NULL;
    for (uint64_t e = 0; e < n_experts; e++) {
        weft_error err = {0};
        if (weft__imatrix_get(m, name, e, n_experts, k, &values, &err)) {
            if (values || !err.message[0]) abort();
            return;
        }
        for (int64_t i = 0; values && i < k; i++)
            if (!(values[i] >= 0) || isinf(values[i])) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__imatrix *m;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    if (weft__imatrix_parse(data, size, "fuzz", &m, &err) == WEFT_OK) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (int64_t k = 1; k <= 2 * K; k++)
                for (uint64_t experts = 1; experts <= EXPERTS; experts++) ask(m, names[i], experts, k);
    } else if (m || !strstr(err.message, "fuzz: ")) {
        abort();
    }
    weft__imatrix_close(&m);
    if (weft__alloc_live() != live) abort();
    return 0;
}
