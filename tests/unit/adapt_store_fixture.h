// SPDX-License-Identifier: Apache-2.0
/* adapt_store_fixture.h: for tests of stacks and of the store: a folder of adapters, a base with weights, a store whose
 * packed stacks are the first numbers of what was woven. */
#ifndef WEFT_TESTS_ADAPT_STORE_FIXTURE_H
#define WEFT_TESTS_ADAPT_STORE_FIXTURE_H

#include "unit/fixture.h"

#include <dirent.h>
#include <stdatomic.h>
#include <unistd.h>

#include "adapt/store.h"
#include "unit/adapt_files.h"
#include "unit/own_nice.h"

static char folder[64];
static float base_q[N * K];

static inline const char *place(const char *name)
{
    static _Thread_local char paths[8][512];
    static _Thread_local int next;
    char *p = paths[next++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", folder, name);
    return p;
}

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') unlink(place(e->d_name));
    if (d) closedir(d);
    return rmdir(folder);
}

/* An adapter of attn_q whose values depend on `seed`; DoRA with magnitudes. */
static inline const char *write_adapter(const char *name, uint64_t seed, uint32_t rank, float alpha, int dora)
{
    float *a = made_values(seed, K * rank), *b = made_values(seed + 1, N * rank), *m = made_values(seed + 2, N);
    for (int i = 0; i < N; i++) m[i] += 2;
    const made t[] = {{"blk.0.attn_q.weight.lora_a", 2, {K, rank}, a},
                      {"blk.0.attn_q.weight.lora_b", 2, {rank, N}, b},
                      {"blk.0.attn_q.weight.lora_magnitude", 1, {N}, m}};
    recipe r = {"adapter", "lora", "llama", alpha, t, dora ? 3 : 2};
    const char *path = place(name);
    assert_true(made_gguf(path, &r));
    free(a);
    free(b);
    free(m);
    return path;
}

static inline weft__adapt *open_adapter(const char *path)
{
    weft__adapt *a;
    weft_error err = {0};
    if (weft__adapt_open(path, NULL, UINT64_MAX, &a, &err)) fail_msg("%s", err.message);
    return a;
}

static inline weft__adapt_base base_with_weights(void)
{
    weft__adapt_base base = made_base();
    for (int i = 0; i < N * K; i++) base_q[i] = made_value(99, (size_t)i);
    base.targets[0].data = base_q;
    return base;
}

/* What is packed: the first numbers of what was woven, 1000 bytes each. */
typedef struct packed {
    float b0;
    int32_t rank;
} packed;
static _Atomic int n_packs, n_unpacks, pack_nice;

static inline weft_status pack(void *arg, const weft__adapt_woven *w, void **out, uint64_t *n_bytes, weft_error *err)
{
    (void)arg;
    packed *p = weft__alloc(sizeof *p);
    if (!p) return weft_fail(err, WEFT_NO_MEMORY, "no memory");
    *p = (packed){w->lora[0].rank ? ((const float *)w->lora[0].b)[0] * w->lora[0].scale : 0, w->lora[0].rank};
    *out = p;
    *n_bytes = 1000;
    pack_nice = own_nice();
    n_packs++;
    return WEFT_OK;
}

static inline void unpack(void *arg, void *p)
{
    (void)arg;
    ((packed *)p)->rank = -1;
    weft__free(p);
    n_unpacks++;
}

static weft__adapt_base store_base;
static inline weft__adapt_store *new_store(uint64_t n_bytes)
{
    static const weft__adapt_packer packer = {NULL, pack, unpack};
    weft__adapt_store *s;
    store_base = base_with_weights();
    n_packs = n_unpacks = 0;
    assert_int_equal(weft__adapt_store_create(&store_base, &made_names, &packer, n_bytes, &s, NULL), WEFT_OK);
    return s;
}

static inline void add(weft__adapt_store *s, const char *name, const char *path, uint32_t flags)
{
    weft_error err = {0};
    if (weft__adapt_store_add(s, name, path, 1, flags, &err)) fail_msg("%s", err.message);
}

static inline weft__adapt_lease *lease(weft__adapt_store *s, const char *name, float scale)
{
    weft__adapt_ref ask = {name, scale, 0};
    weft__adapt_lease *l;
    weft_error err = {0};
    if (weft__adapt_store_lease(s, &ask, 1, &l, &err)) fail_msg("%s", err.message);
    return l;
}

static inline weft_status no_lease(weft__adapt_store *s, const char *name, const char *says)
{
    weft__adapt_ref ask = {name, 1, 0};
    weft__adapt_lease *l;
    weft_error err = {0};
    weft_status st = weft__adapt_store_lease(s, &ask, 1, &l, &err);
    assert_null(l);
    if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    return st;
}

#endif
