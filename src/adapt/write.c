// SPDX-License-Identifier: Apache-2.0
/* write.c: adapters to files: GGUF as llama.cpp reads it (with this engine's suffixes where a file means more:
 * read_gguf.c), and PEFT folders.
 *
 * Invariant: what is read back has the same id. A file appears under its name only when it is complete. One thread. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapt/parts.h"
#include "base/alloc.h"
#include "format/gguf_write.h"
#include "format/out_file.h"
#include "quant/encode.h"

/* ---- values as they lie in a file ---- */

/* One half, in float32, as a matrix of rows. */
typedef struct write_half_state {
    char name[320];
    uint32_t dtype;
    int64_t rows, columns; /* 1 row: a vector, unless: */
    int matrix;
    const float *values; /* borrowed, or: */
    float *own;
} write_half_state;

/* Only types that hold every value that was read from them. */
static uint32_t written_type(uint32_t dtype)
{
    return dtype == WEFT_F16 || dtype == WEFT_BF16 ? dtype : WEFT_F32;
}

static float *transposed(const float *in, int64_t rows, int64_t columns)
{
    float *out = weft__alloc_array((size_t)(rows * columns), sizeof *out);
    for (int64_t r = 0; out && r < rows; r++)
        for (int64_t c = 0; c < columns; c++) out[c * rows + r] = in[r * columns + c];
    return out;
}

/* Rows of GGUF in a folder's order. */
static float *in_halves(const float *in, int64_t n, int64_t width, int32_t heads)
{
    float *out = weft__alloc_array((size_t)(n * width), sizeof *out);
    for (int64_t r = 0; out && r < n; r++)
        memcpy(out + weft__adapt_folder_row(r, n / heads) * width, in + r * width, (size_t)width * sizeof *out);
    return out;
}

/* The half's bytes in its type, handed to `put` in one piece. */
static weft_status encode(const write_half_state *h, void *bytes, weft_error *err)
{
    weft_status st =
        weft__quant_encode_rows(h->dtype, h->own ? h->own : h->values, bytes, h->rows, h->columns, NULL, err);
    return st ? weft_fail_within(err, st, "%s", h->name) : WEFT_OK;
}

static uint64_t half_bytes(const write_half_state *h)
{
    return weft__quant_row_bytes(h->dtype, h->columns) * (uint64_t)h->rows;
}

/* ---- GGUF ---- */

/* 0 where float32 has none: then every pair says its own scale. */
static float alpha_of(const weft__adapt *a)
{
    float alpha = (float)((double)a->pairs[0].scale * a->pairs[0].rank);
    return isfinite(alpha) ? alpha : 0;
}

/* Is the pair's scale what a reader makes of alpha? */
static int by_alpha(const weft__adapt_pair *p, float alpha)
{
    return alpha != 0 && (float)((double)alpha / p->rank) == p->scale;
}

/* The tensors of a pair for GGUF: 2 to 4. */
static int gguf_halves(const weft__adapt_pair *p, float alpha, write_half_state out[4], weft_error *err)
{
    int n = 2, table = weft__adapt_is_table(p->name);
    out[0] = (write_half_state){.matrix = 1,
                                .dtype = written_type(p->a_dtype),
                                .rows = p->n_experts * p->rank,
                                .columns = p->k,
                                .values = p->a};
    out[1] = (write_half_state){.matrix = 1,
                                .dtype = written_type(p->b_dtype),
                                .rows = p->n_experts * p->n,
                                .columns = p->rank,
                                .values = p->b};
    if (table) {
        out[0] = (write_half_state){
            .matrix = 1, .dtype = written_type(p->a_dtype), .rows = p->n, .columns = p->rank, .values = p->b};
        out[1] = (write_half_state){.matrix = 1,
                                    .dtype = written_type(p->b_dtype),
                                    .rows = p->k,
                                    .columns = p->rank,
                                    .own = transposed(p->a, p->rank, p->k)};
        if (!out[1].own) return (int)weft_fail(err, WEFT_NO_MEMORY, "no memory to write %s", p->name), 0;
    }
    snprintf(out[0].name, sizeof out[0].name, "%s.lora_a", p->name);
    snprintf(out[1].name, sizeof out[1].name, "%s.lora_b", p->name);
    if (p->magnitude) {
        out[n] = (write_half_state){.dtype = WEFT_F32,
                                    .rows = p->n_experts,
                                    .columns = weft__adapt_n_magnitudes(p) / p->n_experts,
                                    .values = p->magnitude};
        snprintf(out[n].name, sizeof out[n].name, "%s.lora_magnitude", p->name);
        n++;
    }
    if (!by_alpha(p, alpha)) {
        out[n] = (write_half_state){.dtype = WEFT_F32, .rows = 1, .columns = 1, .values = &p->scale};
        snprintf(out[n].name, sizeof out[n].name, "%s.lora_scale", p->name);
        n++;
    }
    return n;
}

static weft_status declare(weft__gguf_writer *w, const weft__adapt_pair *p, const write_half_state *h, weft_error *err)
{
    uint64_t e = (uint64_t)p->n_experts, d[3] = {(uint64_t)h->columns, (uint64_t)h->rows / (h->matrix ? e : 1), e};
    return weft__gguf_declare(w, h->name, h->dtype, h->matrix ? 2 + (e > 1) : 1 + (h->rows > 1), d, err);
}

static weft_status write_half(weft__gguf_writer *w, const write_half_state *h, weft_error *err)
{
    uint64_t n = half_bytes(h);
    void *bytes = weft__alloc((size_t)n);
    if (!bytes) return weft_fail(err, WEFT_NO_MEMORY, "no memory to write %s", h->name);
    weft_status st = encode(h, bytes, err);
    if (!st) st = weft__gguf_write(w, bytes, (size_t)n, err);
    weft__free(bytes);
    return st;
}

/* Declares, or writes, all tensors. */
static weft_status gguf_tensors(weft__gguf_writer *w, const weft__adapt *a, int write, weft_error *err)
{
    weft_status st = WEFT_OK;
    float alpha = alpha_of(a);
    for (int32_t i = 0; i < a->n_pairs && !st; i++) {
        write_half_state halves[4] = {0};
        int n = gguf_halves(&a->pairs[i], alpha, halves, err);
        if (n == 0) return WEFT_NO_MEMORY;
        for (int k = 0; k < n && !st; k++)
            st = write ? write_half(w, &halves[k], err) : declare(w, &a->pairs[i], &halves[k], err);
        for (int k = 0; k < n; k++) weft__free(halves[k].own);
    }
    return st;
}

weft_status weft__adapt_put_fingerprint(weft__gguf_writer *w, uint64_t fingerprint, weft_error *err)
{
    char digits[17];
    if (!fingerprint) return WEFT_OK;
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)fingerprint);
    return weft__gguf_put_string(w, WEFT__ADAPT_FINGERPRINT_KEY, digits, 16, err);
}

weft_status weft__adapt_write_gguf(const weft__adapt *a, const char *arch, const char *path, weft_error *err)
{
    weft__gguf_writer *w;
    weft_status st = weft__gguf_writer_create(path, 0, &w, err);
    if (st) return st;
    if (!(st = weft__gguf_put_string(w, "general.architecture", arch, strlen(arch), err)) &&
        !(st = weft__gguf_put_string(w, "general.type", "adapter", 7, err)) &&
        !(st = weft__gguf_put_string(w, "adapter.type", "lora", 4, err)) &&
        !(st = weft__gguf_put_f32(w, "adapter.lora.alpha", alpha_of(a), err)) &&
        !(st = weft__adapt_put_fingerprint(w, a->base_fingerprint, err)) && !(st = gguf_tensors(w, a, 0, err)) &&
        !(st = weft__gguf_begin(w, err)) && !(st = gguf_tensors(w, a, 1, err)))
        st = weft__gguf_finish(w, err);
    weft__gguf_writer_destroy(&w);
    return st;
}

/* ---- PEFT ---- */

typedef struct saving {
    const weft__adapt *a;
    const weft__adapt_names *names;
    weft__json *targets, *ranks, *alphas;
    weft__strbuf header;
    uint64_t n_bytes;    /* of data so far */
    weft__out_file *out; /* NULL: the header is being made */
    weft_error *err;
} saving;

static weft_status write_no_memory(saving *s)
{
    return weft_fail(s->err, WEFT_NO_MEMORY, "no memory to write an adapter");
}

static weft_status put_half(saving *s, const write_half_state *h)
{
    static const char *const types[] = {[WEFT_F32] = "F32", [WEFT_F16] = "F16", [WEFT_BF16] = "BF16"};
    uint64_t n = half_bytes(h);
    if (!s->out) {
        weft__strbuf_puts(&s->header, s->header.len > 1 ? "," : "");
        weft__json_write_string(&s->header, h->name, strlen(h->name));
        weft__strbuf_printf(&s->header, ":{\"dtype\":\"%s\",\"shape\":[", types[h->dtype]);
        if (h->rows > 1 || h->matrix) weft__strbuf_printf(&s->header, "%lld,", (long long)h->rows);
        weft__strbuf_printf(&s->header, "%lld],\"data_offsets\":[%llu,%llu]}", (long long)h->columns,
                            (unsigned long long)s->n_bytes, (unsigned long long)(s->n_bytes + n));
        s->n_bytes += n;
        return s->header.failed ? write_no_memory(s) : WEFT_OK;
    }
    void *bytes = weft__alloc((size_t)n);
    if (!bytes) return write_no_memory(s);
    weft_status st = encode(h, bytes, s->err);
    if (!st) st = weft__out_file_write(s->out, bytes, (size_t)n, s->err);
    weft__free(bytes);
    return st;
}

/* Puts a half, whose own values are freed. */
static weft_status put_named(saving *s, write_half_state *h, const char *module, const char *suffix)
{
    snprintf(h->name, sizeof h->name, "base_model.model.%.255s%s", module, suffix);
    weft_status st = h->own || h->values ? put_half(s, h) : write_no_memory(s);
    weft__free(h->own);
    return st;
}

/* The tensors of a module: a pair, or one expert of it. */
static weft_status put_module(saving *s, const weft__adapt_pair *p, int32_t expert, const char *module, int32_t heads)
{
    int64_t e = expert < 0 ? 0 : expert;
    const int table = weft__adapt_is_table(p->name);
    const float *a = p->a + e * p->rank * p->k, *b = p->b + e * p->n * p->rank;
    write_half_state
        first = {.matrix = 1, .dtype = written_type(p->a_dtype), .rows = p->rank, .columns = p->k, .values = a},
        second = {.matrix = 1, .dtype = written_type(p->b_dtype), .rows = p->n, .columns = p->rank, .values = b},
        third = {.dtype = WEFT_F32, .rows = 1, .columns = weft__adapt_n_magnitudes(p) / p->n_experts};
    if (p->magnitude) third.values = p->magnitude + e * third.columns;
    weft_status st;
    if (heads > 0) {
        second.values = NULL;
        second.own = in_halves(b, p->n, p->rank, heads);
    }
    if (table) {
        first = (write_half_state){.matrix = 1,
                                   .dtype = written_type(p->a_dtype),
                                   .rows = p->rank,
                                   .columns = p->n,
                                   .own = transposed(p->b, p->n, p->rank)};
        second = (write_half_state){.matrix = 1,
                                    .dtype = written_type(p->b_dtype),
                                    .rows = p->k,
                                    .columns = p->rank,
                                    .own = transposed(p->a, p->rank, p->k)};
    }
    if ((st = put_named(s, &first, module, table ? ".lora_embedding_A" : ".lora_A.weight"))) {
        weft__free(second.own);
        return st;
    }
    if ((st = put_named(s, &second, module, table ? ".lora_embedding_B" : ".lora_B.weight")) || !p->magnitude)
        return st;
    if (heads > 0) {
        third.values = NULL;
        third.own = in_halves(p->magnitude, p->n, 1, heads);
    }
    return put_named(s, &third, module, ".lora_magnitude_vector");
}

/* What the configuration says of a module. */
static weft_status note_module(saving *s, const weft__adapt_pair *p, const char *module)
{
    const weft__adapt_pair *first = &s->a->pairs[0];
    const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module, *known;
    double alpha = (double)p->scale * p->rank, usual = (double)first->scale * first->rank;
    size_t n;
    int ok = 1, there = 0;
    for (size_t i = 0; i < weft__json_size(s->targets); i++)
        there |= weft__json_string(weft__json_at(s->targets, i), &known, &n) && !strcmp(known, last);
    if (!there) ok = weft__json_append(s->targets, weft__json_new_string(last, strlen(last)));
    if (p->rank != first->rank) ok = ok && weft__json_set(s->ranks, module, weft__json_new_int(p->rank));
    if (alpha != usual) ok = ok && weft__json_set(s->alphas, module, weft__json_new_double(alpha));
    return ok ? WEFT_OK : write_no_memory(s);
}

static weft_status each_module(saving *s)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < s->a->n_pairs && !st; i++) {
        const weft__adapt_pair *p = &s->a->pairs[i];
        for (int64_t e = 0; e < p->n_experts && !st; e++) {
            char module[256];
            weft__adapt_place place;
            int32_t expert = p->n_experts > 1 ? (int32_t)e : -1;
            if (!s->names->module(s->names->arg, p->name, expert, module, sizeof module, &place))
                return weft_fail(s->err, WEFT_UNSUPPORTED, "%s has no module in a folder of architecture '%s'", p->name,
                                 s->names->arch);
            if (place.heads > 0 && p->n % (2 * (int64_t)place.heads))
                return weft_fail(s->err, WEFT_ARGUMENT, "%s has %lld rows, which are not those of %d heads", p->name,
                                 (long long)p->n, place.heads);
            if (expert >= 0 && weft__adapt_all_zero(p->a + e * p->rank * p->k, p->rank * p->k) &&
                weft__adapt_all_zero(p->b + e * p->n * p->rank, p->n * p->rank) &&
                (!p->magnitude || weft__adapt_is_identity(p, e)))
                continue;
            if (!s->out) st = note_module(s, p, module);
            if (!st) st = put_module(s, p, expert, module, place.heads);
        }
    }
    return st;
}

/* All or none of the pairs have magnitudes: the configuration has one word for all. Its alphas are read as float32. */
static weft_status check_said(const weft__adapt *a, weft_error *err)
{
    int n = 0;
    for (int32_t i = 0; i < a->n_pairs; i++) {
        const weft__adapt_pair *p = &a->pairs[i];
        double alpha = (double)p->scale * p->rank;
        n += p->magnitude != NULL;
        if (!isfinite((float)alpha))
            return weft_fail(err, WEFT_UNSUPPORTED, "%s: its alpha would be %g, which a PEFT folder cannot say",
                             p->name, alpha);
    }
    return n == 0 || n == a->n_pairs
               ? WEFT_OK
               : weft_fail(
                     err, WEFT_UNSUPPORTED,
                     "some of its matrices have DoRA's magnitudes and some have not, which a PEFT folder cannot say");
}

static weft_status put_config(saving *s, weft__out_file *out)
{
    const weft__adapt_pair *first = &s->a->pairs[0];
    double alpha = (double)first->scale * first->rank;
    weft__strbuf text = {0};
    weft__json *c = weft__json_new_object();
    int whole = alpha == floor(alpha) && fabs(alpha) < 1e9;
    int ok =
        weft__json_set(c, "peft_type", weft__json_new_string("LORA", 4)) &&
        weft__json_set(c, "task_type", weft__json_new_string("CAUSAL_LM", 9)) &&
        weft__json_set(c, "base_model_name_or_path", weft__json_new_null()) &&
        weft__json_set(c, "r", weft__json_new_int(first->rank)) &&
        weft__json_set(c, "lora_alpha", whole ? weft__json_new_int((int64_t)alpha) : weft__json_new_double(alpha)) &&
        weft__json_set(c, "target_modules", weft__json_copy(s->targets)) &&
        weft__json_set(c, "rank_pattern", weft__json_copy(s->ranks)) &&
        weft__json_set(c, "alpha_pattern", weft__json_copy(s->alphas)) &&
        weft__json_set(c, "use_rslora", weft__json_new_bool(0)) &&
        weft__json_set(c, "use_dora", weft__json_new_bool(first->magnitude != NULL)) &&
        weft__json_set(c, "bias", weft__json_new_string("none", 4)) &&
        weft__json_set(c, "fan_in_fan_out", weft__json_new_bool(0)) &&
        weft__json_set(c, "inference_mode", weft__json_new_bool(1)) &&
        weft__json_set(c, "lora_dropout", weft__json_new_double(0)) &&
        weft__json_set(c, "modules_to_save", weft__json_new_null());
    if (ok) weft__json_write(&text, c, WEFT__JSON_INDENTED);
    weft__json_free(&c);
    weft__strbuf_puts(&text, "\n");
    weft_status st = ok && !text.failed ? weft__out_file_write(out, text.data, text.len, s->err) : write_no_memory(s);
    weft__strbuf_free(&text);
    return st;
}

static weft_status put_tensors(saving *s, weft__out_file *out)
{
    weft__strbuf_puts(&s->header, "}");
    while (s->header.len % 8 && !s->header.failed) weft__strbuf_putc(&s->header, ' ');
    if (s->header.failed) return write_no_memory(s);
    uint64_t n = s->header.len;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(n >> 8 * i);
    s->out = out;
    weft_status st = weft__out_file_reserve(out, 8 + n + s->n_bytes, s->err);
    if (st || (st = weft__out_file_write(out, length, 8, s->err)) ||
        (st = weft__out_file_write(out, s->header.data, s->header.len, s->err)))
        return st;
    return each_module(s);
}

/* Without its configuration a folder is no adapter: an old one goes first and the new one comes last, so that weights
 * never meet numbers that are not theirs, whenever the program ends. */
static weft_status put_both(saving *s, const char *folder)
{
    char path[4096];
    weft__out_file weights, config;
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    weft_status st = weft__out_file_open(&weights, path, s->err);
    if (st) return st;
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    if (!(st = put_tensors(s, &weights)) && !(st = weft__out_file_open(&config, path, s->err))) {
        st = put_config(s, &config);
        if (!st) st = weft__out_file_sync(&weights, s->err);
        if (!st) st = weft__out_file_sync(&config, s->err);
        if (!st && config.temporary && unlink(config.path) && errno != ENOENT)
            st = weft_fail(s->err, WEFT_IO, "%s: %s", path, strerror(errno));
        if (!st) st = weft__out_file_commit(&weights, s->err);
        if (!st) st = weft__out_file_commit(&config, s->err);
        weft__out_file_close(&config);
    }
    weft__out_file_close(&weights);
    return st;
}

weft_status weft__adapt_write_peft(const weft__adapt *a, const weft__adapt_names *names, const char *folder,
                                   weft_error *err)
{
    saving s = {.a = a, .names = names, .err = err};
    weft_status st = check_said(a, err);
    if (st) return st;
    if (strlen(folder) > 4000) return weft_fail(err, WEFT_ARGUMENT, "the folder's path is too long");
    const int made = !mkdir(folder, 0777);
    if (!made && errno != EEXIST) return weft_fail(err, WEFT_IO, "%s: %s", folder, strerror(errno));
    s.targets = weft__json_new_array();
    s.ranks = weft__json_new_object();
    s.alphas = weft__json_new_object();
    weft__strbuf_puts(&s.header, "{");
    st = s.targets && s.ranks && s.alphas ? each_module(&s) : write_no_memory(&s);
    if (!st) st = put_both(&s, folder);
    if (st && made) rmdir(folder);
    weft__strbuf_free(&s.header);
    weft__json_free(&s.alphas);
    weft__json_free(&s.ranks);
    weft__json_free(&s.targets);
    return st;
}
