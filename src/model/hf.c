// SPDX-License-Identifier: Apache-2.0
/* hf.c: a folder from opening to closing, and the small reads that its other files share (hf.h, hf_parts.h). */
#include "model/hf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/text.h"
#include "format/names.h"
#include "mem/mem.h"
#include "model/hf_parts.h"

#define JSON_BYTES (512u << 20) /* of any JSON file of a folder */

int weft__hf_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* ---- files ---- */

weft_status weft__hf_map(const weft__hf *hf, const char *name, weft_buffer **out, weft_error *err)
{
    size_t n = strlen(hf->folder) + strlen(name) + 2;
    char *path = weft__alloc(n);
    *out = NULL;
    if (!path) return weft_fail(err, WEFT_NO_MEMORY, "no memory to read %s", name);
    snprintf(path, n, "%s/%s", hf->folder, name);
    weft_status status = weft__mem_map(path, out, err);
    weft__free(path);
    return status;
}

weft_status weft__hf_json(const weft__hf *hf, const char *name, weft__json **out, weft_error *err)
{
    weft_buffer *b;
    *out = NULL;
    weft_status status = weft__hf_map(hf, name, &b, err);
    if (status) return status;
    if (b->n_bytes > JSON_BYTES) status = weft_fail(err, WEFT_LIMIT, "%s: exceeds %u bytes", name, JSON_BYTES);
    else if ((status = weft__json_parse(b->data, (size_t)b->n_bytes, out, err)))
        weft_fail_within(err, status, "%s", name);
    weft_buffer_release(&b);
    return status;
}

/* ---- fields ---- */

/* The field, or NULL when it is absent or null; then *status is set if it is required. */
static const weft__json *field(const weft__json *object, const char *key, int required, weft_status *status,
                               weft_error *err)
{
    const weft__json *v = weft__json_get(object, key);
    *status = WEFT_OK;
    if (v && !weft__json_is_null(v)) return v;
    if (required) *status = weft_fail(err, WEFT_FORMAT, "config.json: %s is missing", key);
    return NULL;
}

weft_status weft__hf_int(const weft__json *object, const char *key, int required, int64_t min, int64_t max,
                         int32_t *out, weft_error *err)
{
    weft_status status;
    int64_t i;
    const weft__json *v = field(object, key, required, &status, err);
    if (!v) return status;
    if (!weft__json_int(v, &i)) return weft_fail(err, WEFT_FORMAT, "config.json: %s is no whole number", key);
    if (i < min || i > max)
        return weft_fail(err, WEFT_FORMAT, "config.json: %s is %lld, not in %lld..%lld", key, (long long)i,
                         (long long)min, (long long)max);
    *out = (int32_t)i;
    return WEFT_OK;
}

weft_status weft__hf_number(const weft__json *object, const char *key, int required, double *out, weft_error *err)
{
    weft_status status;
    const weft__json *v = field(object, key, required, &status, err);
    if (!v) return status;
    if (!weft__json_double(v, out) || !isfinite((float)*out))
        return weft_fail(err, WEFT_FORMAT, "config.json: %s is no number", key);
    return WEFT_OK;
}

weft_status weft__hf_flag(const weft__json *object, const char *key, int *out, weft_error *err)
{
    weft_status status;
    const weft__json *v = field(object, key, 0, &status, err);
    if (!v || weft__json_bool(v, out)) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "config.json: %s is neither true nor false", key);
}

weft_status weft__hf_string(const weft__json *object, const char *key, const char **out, weft_error *err)
{
    weft_status status;
    size_t n;
    const weft__json *v = field(object, key, 0, &status, err);
    *out = NULL;
    if (!v || weft__json_string(v, out, &n)) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "config.json: %s is no string", key);
}

/* ---- tensors ---- */

static weft_status hf_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the list of tensors");
}

weft_status weft__hf_add(weft__hf *hf, const weft__tensor_desc *desc, const weft__hf_tensor *how, weft_error *err)
{
    weft__tensor_desc t = *desc;
    weft_status status = weft__tensor_measure(t.dtype, t.n_dims, t.d, &t.n_elems, &t.n_bytes, err);
    if (status) return weft_fail_within(err, status, "tensor %s", t.name);
    if (!weft__grow(&hf->how, &hf->how_capacity, hf->tensors.n + 1, sizeof *hf->how)) return hf_no_memory(err);
    hf->how[hf->tensors.n] = *how;
    t.name = weft__arena_string(&hf->arena, t.name, strlen(t.name));
    int added = t.name ? weft__tensor_set_add(&hf->tensors, &t, NULL) : -1;
    if (added < 0) return hf_no_memory(err);
    return added ? WEFT_OK : weft_fail(err, WEFT_FORMAT, "two tensors would be called %s", t.name);
}

weft_status weft__hf_add_values(weft__hf *hf, const char *name, const float *values, size_t n, weft_error *err)
{
    float *copy = weft__arena_array(&hf->arena, n, sizeof *copy);
    if (!copy) return hf_no_memory(err);
    memcpy(copy, values, n * sizeof *copy);
    weft__tensor_desc t = {.name = name, .dtype = WEFT_F32, .n_dims = 1, .d = {n, 1, 1, 1}};
    weft__hf_tensor how = {.values = copy};
    return weft__hf_add(hf, &t, &how, err);
}

const weft__tensor_set *weft__hf_tensors(const weft__hf *hf)
{
    return &hf->tensors;
}

/* ---- metadata and the view as a source ---- */

/* The last part of the folder's path, links followed: a model's files lie under its name. */
static weft_status put_name(const weft__hf *hf, weft__gguf_writer *w, weft_error *err)
{
    char *real = realpath(hf->folder, NULL); /* the C library's memory */
    size_t n;
    const char *name = weft__path_last(real ? real : "", &n);
    weft_status status = n ? weft__gguf_put_string(w, "general.name", name, n, err)
                           : weft__gguf_put_string(w, "general.name", "model", strlen("model"), err);
    free(real);
    return status;
}

static weft_status make_meta(weft__hf *hf, weft_error *err)
{
    weft__gguf_writer *w;
    weft_status status = weft__gguf_writer_memory("config.json", &w, err);
    if (status) return status;
    if (!(status = weft__gguf_put_string(w, "general.architecture", hf->arch, strlen(hf->arch), err)) &&
        !(status = weft__gguf_put_string(w, "general.type", "model", 5, err)) && !(status = put_name(hf, w, err)) &&
        !(status = weft__hf_put_keys(hf, w, err)) && !(status = weft__hf_put_rope(hf, w, err)))
        status = weft__gguf_writer_bytes(w, &hf->meta_bytes, err);
    weft__gguf_writer_destroy(&w);
    if (status) return status;
    if ((status = weft__gguf_parse(hf->meta_bytes.data, hf->meta_bytes.len, hf->folder, &hf->meta, err))) return status;
    weft__source_gguf(hf->meta, hf->folder, &hf->meta_view);
    return WEFT_OK;
}

const weft__gguf *weft__hf_meta(const weft__hf *hf)
{
    return hf->meta;
}

static int source_meta(const weft__source *src, const char *key, weft__source_value *out)
{
    const weft__source *view = &((const weft__hf *)src->impl)->meta_view;
    return view->meta(view, key, out);
}

static double source_meta_at(const weft__source *src, const char *key, uint64_t i)
{
    const weft__source *view = &((const weft__hf *)src->impl)->meta_view;
    return view->meta_at(view, key, i);
}

static const weft__tensor_desc *source_tensor(const weft__source *src, const char *name)
{
    return weft__tensor_find(&((const weft__hf *)src->impl)->tensors, name);
}

void weft__hf_source(const weft__hf *hf, weft__source *out)
{
    *out = (weft__source){hf->folder, source_meta, source_meta_at, source_tensor, hf, &hf->tensors};
}

/* ---- opening and closing ---- */

/* With the name of its base, as far as it says that. */
static weft_status refuse_adapter(const weft__hf *hf, weft_error *err)
{
    char shown[WEFT__NAME_SHOW] = "";
    weft__json *config = NULL;
    const char *base;
    size_t n = 0;
    if (weft__hf_json(hf, "adapter_config.json", &config, NULL)) config = NULL;
    if (weft__json_string(weft__json_get(config, "base_model_name_or_path"), &base, &n) && n)
        weft__name_show(shown, base, n);
    weft__json_free(&config);
    return weft_fail(err, WEFT_UNSUPPORTED, "it is an adapter (PEFT)%s%s%s" WEFT__SOURCE_ADAPTER, n ? " of '" : "",
                     shown, n ? "'" : "");
}

static weft_status open_all(weft__hf *hf, weft_error *err)
{
    weft_status status = weft__hf_json(hf, "config.json", &hf->config, err);
    weft_buffer *peft;
    if (status == WEFT_NOT_FOUND && !weft__hf_map(hf, "adapter_config.json", &peft, NULL)) {
        weft_buffer_release(&peft);
        return refuse_adapter(hf, err);
    }
    if (status == WEFT_NOT_FOUND)
        return weft_fail(err, status, "there is no config.json: it is no Hugging Face folder");
    if (status) return status;
    if ((status = weft__hf_read_sizes(hf, err)) ||
        (status = weft__safetensors_open_folder(hf->folder, &hf->weights, err)) ||
        (status = weft__hf_read_tensors(hf, err)))
        return status;
    return make_meta(hf, err);
}

weft_status weft__hf_open(const char *path, weft__hf **out, weft_error *err)
{
    char label[WEFT__NAME_SHOW * 2];
    *out = NULL;
    weft__hf *hf = weft__alloc_zero(1, sizeof *hf);
    if (!hf) return weft_fail(err, WEFT_NO_MEMORY, "%s: no memory to open it", path);
    hf->folder = weft__strdup(path);
    weft_status status = hf->folder ? open_all(hf, err) : weft_fail(err, WEFT_NO_MEMORY, "no memory to open it");
    if (status) {
        weft__hf_close(&hf);
        return weft_fail_within(err, status, "%s", weft__name_show_path(label, path));
    }
    *out = hf;
    return WEFT_OK;
}

void weft__hf_close(weft__hf **p)
{
    weft__hf *hf = p ? *p : NULL;
    if (!hf) return;
    weft__gguf_close(&hf->meta);
    weft__strbuf_free(&hf->meta_bytes);
    for (size_t i = 0; i < hf->n_made; i++) weft_buffer_release(&hf->made[i]);
    weft__free(hf->made);
    weft__free(hf->how);
    weft__tensor_set_free(&hf->tensors);
    weft__safetensors_close(&hf->weights);
    weft__arena_free(&hf->arena);
    weft__json_free(&hf->config);
    weft__free(hf->folder);
    weft__free(hf);
    *p = NULL;
}
