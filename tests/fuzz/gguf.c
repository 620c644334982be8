// SPDX-License-Identifier: Apache-2.0
/* gguf.c: fuzzes the GGUF reader: any bytes are either refused with a message or can be walked from end to end.
 *
 * Seeds come from the builder of the unit tests: they are put into the first corpus folder named on the command
 * line. */
#include <sys/stat.h>

#include "../unit/gguf_build.h"

#include "base/alloc.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void save_seed(const char *folder, const char *name, bytes b)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!bytes_save(&b, path)) fprintf(stderr, "cannot write the seed %s\n", path), exit(1);
    free(b.p);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    const char *folder = NULL;
    for (int i = 1; i < *argc && !folder; i++)
        if (stat((*argv)[i], &st) == 0 && S_ISDIR(st.st_mode)) folder = (*argv)[i];
    if (!folder) return 0;
    sample v2 = {0}, v3 = {0};
    bytes empty = {0}, one = {0};
    uint64_t d[] = {256, 2};
    sample_build(&v2, 2);
    sample_build(&v3, 3);
    put_head(&empty, 3, 0, 0);
    put_head(&one, 3, 1, 1);
    put_key(&one, "general.alignment", 4), put_u32(&one, 8);
    put_tensor(&one, "t", 2, d, 12, 0);
    pad(&one, 8);
    for (int i = 0; i < 288; i++) put_u8(&one, 0);
    save_seed(folder, "seed-sample-v2", v2.b);
    save_seed(folder, "seed-sample-v3", v3.b);
    save_seed(folder, "seed-empty", empty);
    save_seed(folder, "seed-one-tensor", one);
    save_seed(folder, "seed-part", part_build(0, 1, 1, "t", 1));
    return 0;
}

static uint64_t touched; /* keeps the reads alive */

static void touch(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) touched += p[i];
}

static void walk_list(const weft__gguf_list *list, int depth)
{
    if (depth > WEFT__GGUF_DEPTH) abort();
    for (uint64_t i = 0; i < list->n; i++) {
        uint64_t u = 0;
        int64_t s = 0;
        double f = 0;
        int b = 0;
        weft__gguf_list_u64(list, i, &u);
        weft__gguf_list_i64(list, i, &s);
        weft__gguf_list_f64(list, i, &f);
        weft__gguf_list_bool(list, i, &b);
        weft__gguf_str str = weft__gguf_list_string(list, i);
        touch((const unsigned char *)str.data, str.len);
        const weft__gguf_list *inner = weft__gguf_list_list(list, i);
        if (inner) walk_list(inner, depth + 1);
        touched += u + (uint64_t)s + (f > 0) + (unsigned)b;
    }
}

static void walk_entry(const weft__gguf *g, const weft__gguf_entry *e)
{
    uint32_t u = 0;
    int32_t i = 0;
    float f = 0;
    double d = 0;
    int b = 0;
    weft__gguf_str str;
    if (e->key_len != strlen(e->key) || weft__gguf_find(g, e->key) < 0) abort();
    touch(e->raw, (size_t)e->raw_bytes);
    int fits = weft__gguf_u32(g, e->key, &u, NULL) == WEFT_OK;
    fits += weft__gguf_i32(g, e->key, &i, NULL) == WEFT_OK;
    fits += weft__gguf_f32(g, e->key, &f, NULL) == WEFT_OK;
    fits += weft__gguf_f64(g, e->key, &d, NULL) == WEFT_OK;
    fits += weft__gguf_bool(g, e->key, &b, NULL) == WEFT_OK;
    if (weft__gguf_string(g, e->key, &str, NULL) == WEFT_OK) touch((const unsigned char *)str.data, str.len);
    if ((e->type == WEFT__GGUF_ARRAY) != (e->list != NULL)) abort();
    if (e->list) walk_list(e->list, 1);
    touched += (unsigned)fits;
}

static void walk(const weft__gguf *g)
{
    const weft__tensor_set *set = weft__gguf_tensors(g);
    for (size_t i = 0; i < weft__gguf_n_meta(g); i++) walk_entry(g, weft__gguf_meta(g, i));
    for (size_t i = 0; i < set->n; i++) {
        const weft__tensor_desc *t = &set->items[i];
        if (weft__tensor_find(set, t->name) != t || t->n_bytes == 0) abort();
        touch(weft__tensor_data(t), (size_t)t->n_bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    weft__gguf *g;
    weft_error err = {0};
    size_t live = weft__alloc_live();
    if (weft__gguf_parse(data, size, "fuzz", &g, &err) == WEFT_OK) walk(g);
    else if (g || !strstr(err.message, "fuzz: ")) abort();
    weft__gguf_close(&g);
    if (weft__alloc_live() != live) abort();
    return 0;
}
