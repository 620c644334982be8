// SPDX-License-Identifier: Apache-2.0
/* plan.c: fuzzes the reader of compiled plans behind its checksums: a plan is made around the input, signed, and
 * opened.
 *
 * An input is 10 bits of tensor bytes, 10 bits of image bytes (in steps of 64, in two bytes each), and metadata. What
 * is accepted is walked from end to end; what is refused has a message that names the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "format/plan_parts.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD = 4, ROOM = 8 << 20, MOST = 1 << 20 };

static uint64_t touched; /* keeps the reads alive */

static void touch(const void *bytes, uint64_t n)
{
    const unsigned char *p = bytes;
    for (uint64_t i = 0; i < n; i++) touched += p[i];
}

/* A valid input, into the first corpus folder named on the command line. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    const char *folder = NULL;
    for (int i = 1; i < *argc && !folder; i++)
        if (stat((*argv)[i], &st) == 0 && S_ISDIR(st.st_mode)) folder = (*argv)[i];
    if (!folder) return 0;
    const uint64_t id = 7, offset[] = {0, UINT64_MAX},
                   numbers[] = {WEFT_Q4_0, 2, 32, 4, 1, 1, UINT64_MAX, WEFT_F32, 1, 16, 1, 1, 1, 64};
    const weft__gguf_str names[] = {{"a.weight", 8}, {"b.weight", 8}};
    weft__gguf_writer *w;
    weft__strbuf meta = {0};
    char path[4096];
    if (weft__gguf_writer_memory("seed", &w, NULL) ||
        weft__gguf_put_string(w, WEFT__PLAN_FILE_PROVIDER, "cpu", 3, NULL) ||
        weft__gguf_put_string(w, WEFT__PLAN_FILE_MADE_BY, "weft", 4, NULL) ||
        weft__gguf_put_string(w, WEFT__PLAN_FILE_LAYOUT, "Q4_0: k", 7, NULL) ||
        weft__gguf_put(w, WEFT__PLAN_FILE_WEIGHTS, WEFT__GGUF_U64, &id, NULL) ||
        weft__gguf_put_array(w, WEFT__PLAN_FILE_OFFSETS, WEFT__GGUF_U64, offset, 2, NULL) ||
        weft__gguf_put_strings(w, WEFT__PLAN_FILE_NAMES, names, 2, NULL) ||
        weft__gguf_put_array(w, WEFT__PLAN_FILE_TENSORS, WEFT__GGUF_U64, numbers, 14, NULL) ||
        weft__gguf_writer_bytes(w, &meta, NULL))
        abort();
    snprintf(path, sizeof path, "%s/seed-plan", folder);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite("\2\0\2\0", 1, HEAD, f) != HEAD || fwrite(meta.data, 1, meta.len, f) != meta.len || fclose(f))
        abort();
    weft__strbuf_free(&meta);
    weft__gguf_writer_destroy(&w);
    return 0;
}

static void walk(weft__plan_file *f)
{
    const weft__tensor_set *set = weft__plan_file_tensors(f);
    const weft__plan_file_summary *info = weft__plan_file_info(f);
    for (size_t i = 0; i < set->n; i++) {
        const weft__tensor_desc *t = &set->items[i];
        if (weft__tensor_find(set, t->name) != t || t->n_bytes == 0) abort();
        if (t->buffer->data) touch(weft__tensor_data(t), t->n_bytes);
    }
    touch(info->provider, strlen(info->provider));
    touch(info->image.layout, strlen(info->image.layout));
    touch(info->image.data, info->image.n_bytes);
    touch(info->image.offset, (uint64_t)info->image.n_weights * sizeof *info->image.offset);
    (void)weft__plan_file_check(f, NULL, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char *room;
    weft__plan_file_header h = {
        .magic = WEFT__PLAN_FILE_MAGIC, .version = WEFT__PLAN_FILE_VERSION, .order = WEFT__PLAN_FILE_ORDER};
    weft__plan_file *f;
    weft_error err = {0};
    uint64_t tensors, image, end;
    if (size < HEAD || size > MOST) return -1;
    if (!room && !(room = calloc(1, ROOM))) abort();
    h.meta_bytes = size - HEAD;
    h.meta_hash = weft__hash(data + HEAD, size - HEAD);
    h.data_bytes = (uint64_t)(data[0] | (data[1] & 3) << 8) * 64;
    h.image_bytes = (uint64_t)(data[2] | (data[3] & 3) << 8) * 64;
    if (!weft__plan_file_places(&h, &tensors, &image, &end) || end > ROOM) abort();
    h.file_bytes = end;
    h.hash = weft__hash(&h, offsetof(weft__plan_file_header, hash));
    unsigned char *p = room + ROOM - end; /* what follows it is forbidden ground */
    memcpy(p, &h, sizeof h);
    memcpy(p + sizeof h, data + HEAD, size - HEAD);
    size_t live = weft__alloc_live();
    if (weft__plan_file_parse(p, (size_t)end, "fuzz", &f, &err) == WEFT_OK) walk(f);
    else if (f || !strstr(err.message, "fuzz: ")) abort();
    weft__plan_file_close(&f);
    if (weft__alloc_live() != live) abort();
    memset(p, 0, sizeof h + size - HEAD);
    return 0;
}
