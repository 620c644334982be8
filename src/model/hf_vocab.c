// SPDX-License-Identifier: Apache-2.0
/* hf_vocab.c: a folder's tokenizer: tokenizer.json or tokenizer.model, and what the files beside it add: roles,
 * template, tokens that end generation (hf.h, hf_parts.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "mem/mem.h"
#include "model/hf_parts.h"
#include "text/tokenizer/spm_proto.h"
#include "text/tokenizer/json.h"

enum { MAX_ADDED = 1 << 20, MAX_ENDS = 4096 };

struct weft__hf_vocab {
    weft__tok_spec spec;
    /* Where it came from; the texts are theirs. */
    weft_buffer *main_file, *config_file, *added_file, *map_file, *template_file;
    weft__tok_json_vocab *json;
    weft__tok_spm_model *spm;
    weft__json *config, *added, *generation, *template_json;
    /* Copies of the arrays, where tokens were added. */
    weft__tok_slice *tokens;
    float *scores;
    int32_t *types;
    uint8_t *strips;
    int32_t *ends;
    size_t ends_capacity;
    weft__tok_template *templates; /* of tokenizer.model's configuration */
};

static weft_status hf_vocab_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the vocabulary");
}

/* What a file that need not be there says about its absence. */
static weft_status optional(weft_status status, const weft_error *why, weft_error *err)
{
    if (status == WEFT_OK || status == WEFT_NOT_FOUND) return WEFT_OK;
    if (err) *err = *why;
    return status;
}

static weft_status map_optional(const weft__hf *hf, const char *name, weft_buffer **out, weft_error *err)
{
    weft_error why = {0};
    return optional(weft__hf_map(hf, name, out, &why), &why, err);
}

static weft_status json_optional(const weft__hf *hf, const char *name, weft__json **out, weft_error *err)
{
    weft_error why = {0};
    return optional(weft__hf_json(hf, name, out, &why), &why, err);
}

/* "text", or {"content": "text"}. */
static weft__tok_slice text_of(const weft__json *value)
{
    weft__tok_slice s = {NULL, 0};
    if (!weft__json_string(value, &s.data, &s.len))
        weft__json_string(weft__json_get(value, "content"), &s.data, &s.len);
    return s;
}

static int32_t find_token(const weft__tok_spec *spec, weft__tok_slice text)
{
    for (size_t i = 0; text.data && i < spec->n_tokens; i++)
        if (spec->tokens[i].len == text.len && !memcmp(spec->tokens[i].data, text.data, text.len)) return (int32_t)i;
    return -1;
}

/* ---- tokens beyond tokenizer.model ---- */

/* Puts arrays of our own, of n >= n_tokens entries, in the place of the specification's; the new entries are unused. */
static weft_status own_arrays(weft__hf_vocab *v, size_t n, weft_error *err)
{
    weft__tok_spec *s = &v->spec;
    weft__tok_slice *tokens = weft__alloc_zero(n, sizeof *tokens);
    float *scores = weft__alloc_zero(n, sizeof *scores);
    int32_t *types = weft__alloc_array(n, sizeof *types);
    uint8_t *strips = weft__alloc_zero(n, sizeof *strips);
    int ok = tokens && scores && types && strips;
    for (size_t i = 0; ok && i < n; i++) {
        int old = i < s->n_tokens;
        if (old) tokens[i] = s->tokens[i];
        if (old && s->n_scores) scores[i] = s->scores[i];
        types[i] = !old ? WEFT__TOK_UNUSED : s->n_types ? s->types[i] : WEFT__TOK_NORMAL;
        if (old && s->n_strips) strips[i] = s->strips[i];
    }
    weft__free(ok ? v->strips : strips);
    weft__free(ok ? v->types : types);
    weft__free(ok ? v->scores : scores);
    weft__free(ok ? v->tokens : tokens);
    if (!ok) return hf_vocab_no_memory(err);
    s->tokens = v->tokens = tokens;
    s->scores = v->scores = scores;
    s->types = v->types = types;
    s->strips = v->strips = strips;
    s->n_tokens = s->n_scores = s->n_types = s->n_strips = n;
    return WEFT_OK;
}

/* The id that a member is about: its key in added_tokens_decoder ("32000": {...}), its value in added_tokens.json
 * ("<pad>": 32000). */
static int id_of(const weft__json_member *m, int by_key, int64_t *id)
{
    char *end;
    if (!by_key) return weft__json_int(m->value, id) && *id >= 0 && *id < MAX_ADDED * 16;
    *id = strtol(m->key, &end, 10);
    return end != m->key && !*end && *id >= 0 && *id < MAX_ADDED * 16;
}

/* Does the configuration name the token as a special one? added_tokens.json says nothing about that. */
static int is_role(const weft__json *config, weft__tok_slice text)
{
    static const char *const roles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    const weft__json *more = weft__json_get(config, "additional_special_tokens");
    for (size_t i = 0; i < sizeof roles / sizeof *roles + weft__json_size(more); i++) {
        const size_t n = sizeof roles / sizeof *roles;
        const weft__tok_slice s = text_of(i < n ? weft__json_get(config, roles[i]) : weft__json_at(more, i - n));
        if (s.data && s.len == text.len && !memcmp(s.data, text.data, s.len)) return 1;
    }
    return 0;
}

static weft_status add_tokens(weft__hf_vocab *v, const weft__json *list, int by_key, const char *what, weft_error *err)
{
    weft__json_member m = {0};
    int64_t id, most = (int64_t)v->spec.n_tokens - 1;
    if (weft__json_size(list) == 0) return WEFT_OK;
    if (weft__json_size(list) > MAX_ADDED)
        return weft_fail(err, WEFT_LIMIT, "%s: more than %d tokens", what, MAX_ADDED);
    while (weft__json_next(list, &m)) {
        if (!id_of(&m, by_key, &id)) return weft_fail(err, WEFT_FORMAT, "%s: an entry has no id", what);
        if (id > most) most = id;
    }
    if (most >= (int64_t)v->spec.n_tokens + MAX_ADDED)
        return weft_fail(err, WEFT_FORMAT, "%s: the id %lld is far beyond the vocabulary", what, (long long)most);
    weft_status status = own_arrays(v, (size_t)most + 1, err);
    memset(&m, 0, sizeof m);
    while (!status && weft__json_next(list, &m)) {
        int special = 0, on;
        weft__tok_slice text = by_key ? text_of(m.value) : (weft__tok_slice){m.key, m.key_len};
        if (!text.data) return weft_fail(err, WEFT_FORMAT, "%s: an entry has no content", what);
        id_of(&m, by_key, &id);
        if (by_key) weft__json_bool(weft__json_get(m.value, "special"), &special);
        else special = is_role(v->config, text);
        if (!v->tokens[id].len) v->strips[id] |= WEFT__TOK_ADDED_OUTSIDE;
        v->tokens[id] = text;
        if (v->types[id] == WEFT__TOK_UNUSED || v->types[id] == WEFT__TOK_NORMAL)
            v->types[id] = special ? WEFT__TOK_CONTROL : WEFT__TOK_USER_DEFINED;
        if (weft__json_bool(weft__json_get(m.value, "lstrip"), &on) && on) v->strips[id] |= WEFT__TOK_STRIP_LEFT;
        if (weft__json_bool(weft__json_get(m.value, "rstrip"), &on) && on) v->strips[id] |= WEFT__TOK_STRIP_RIGHT;
        if (weft__json_bool(weft__json_get(m.value, "single_word"), &on) && on) v->strips[id] |= WEFT__TOK_ADDED_WORD;
    }
    return status;
}

static void spm_roles(weft__hf_vocab *v)
{
    const struct {
        const char *key;
        int32_t *id;
    } roles[] = {{"bos_token", &v->spec.bos},
                 {"eos_token", &v->spec.eos},
                 {"pad_token", &v->spec.pad},
                 {"unk_token", &v->spec.unk}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        int32_t id = find_token(&v->spec, text_of(weft__json_get(v->config, roles[i].key)));
        if (id >= 0) *roles[i].id = id;
    }
    weft__json_bool(weft__json_get(v->config, "add_bos_token"), &v->spec.add_bos);
    weft__json_bool(weft__json_get(v->config, "add_eos_token"), &v->spec.add_eos);
}

static weft_status read_spm(const weft__hf *hf, weft__hf_vocab *v, weft_error *err)
{
    weft_status status = weft__tok_spm_model_read(v->main_file->data, (size_t)v->main_file->n_bytes, &v->spm, err);
    if (status) return status;
    v->spec = *weft__tok_spm_model_spec(v->spm);
    if ((status = json_optional(hf, "tokenizer_config.json", &v->config, err)) ||
        (status = json_optional(hf, "added_tokens.json", &v->added, err)) ||
        (status = add_tokens(v, v->added, 0, "added_tokens.json", err)) ||
        (status = add_tokens(v, weft__json_get(v->config, "added_tokens_decoder"), 1, "tokenizer_config.json", err)))
        return status;
    /* That no token swallows whitespace is said, too: files without a word about it are judged by their model's
     * name. */
    if (!v->strips && (status = own_arrays(v, v->spec.n_tokens, err))) return status;
    spm_roles(v);
    return weft__tok_json_templates(weft__json_get(v->config, "chat_template"), &v->spec, &v->templates, err);
}

static weft__tok_slice bytes_of(const weft_buffer *file)
{
    return file ? (weft__tok_slice){file->data, (size_t)file->n_bytes} : (weft__tok_slice){NULL, 0};
}

static weft_status read_json(const weft__hf *hf, weft__hf_vocab *v, weft_error *err)
{
    weft_status status = map_optional(hf, "tokenizer_config.json", &v->config_file, err);
    if (!status) status = map_optional(hf, "added_tokens.json", &v->added_file, err);
    if (!status) status = map_optional(hf, "special_tokens_map.json", &v->map_file, err);
    if (status) return status;
    const weft__tok_json_files files = {bytes_of(v->main_file), bytes_of(v->config_file), bytes_of(v->added_file),
                                        bytes_of(v->map_file)};
    status = weft__tok_json_vocab_read(&files, &v->json, err);
    if (!status) v->spec = *weft__tok_json_vocab_spec(v->json);
    return status;
}

/* ---- what the other files add ---- */

static weft_status add_end(weft__hf_vocab *v, const weft__json *value, weft_error *err)
{
    int64_t id;
    if (!weft__json_int(value, &id) || id < 0 || (uint64_t)id >= v->spec.n_tokens) return WEFT_OK;
    for (size_t i = 0; i < v->spec.n_ends; i++)
        if (v->ends[i] == id) return WEFT_OK;
    if (!weft__grow(&v->ends, &v->ends_capacity, v->spec.n_ends + 1, sizeof *v->ends)) return hf_vocab_no_memory(err);
    v->ends[v->spec.n_ends++] = (int32_t)id;
    v->spec.ends = v->ends;
    return WEFT_OK;
}

/* An id or a list of them. */
static weft_status add_ends(weft__hf_vocab *v, const weft__json *value, const char *file, weft_error *err)
{
    weft_status status = add_end(v, value, err);
    if (weft__json_size(value) > MAX_ENDS)
        return weft_fail(err, WEFT_LIMIT, "%s: eos_token_id lists %zu tokens, more than %d", file,
                         weft__json_size(value), MAX_ENDS);
    for (size_t i = 0; !status && i < weft__json_size(value); i++) status = add_end(v, weft__json_at(value, i), err);
    return status;
}

static void id_if_unset(const weft__hf_vocab *v, const weft__json *config, const char *key, int32_t *id)
{
    int64_t i;
    if (*id < 0 && weft__json_int(weft__json_get(config, key), &i) && i >= 0 && (uint64_t)i < v->spec.n_tokens)
        *id = (int32_t)i;
}

/* Ids beyond the embedding's rows can only be of added tokens that the model was never given; they are left out. */
static weft_status fit_embedding(const weft__hf *hf, weft__hf_vocab *v, weft_error *err)
{
    weft__tok_spec *s = &v->spec;
    size_t rows = (size_t)hf->size.n_vocab;
    if (s->n_tokens <= rows) return WEFT_OK;
    for (size_t i = rows; i < s->n_tokens; i++)
        if (!s->n_types || s->types[i] == WEFT__TOK_NORMAL || s->types[i] == WEFT__TOK_BYTE)
            return weft_fail(err, WEFT_FORMAT, "the tokenizer has %zu tokens, the embedding %zu rows", s->n_tokens,
                             rows);
    s->n_tokens = rows;
    if (s->n_scores) s->n_scores = rows;
    if (s->n_types) s->n_types = rows;
    if (s->n_strips) s->n_strips = rows;
    int32_t *const roles[] = {&s->bos, &s->eos, &s->unk, &s->sep, &s->pad, &s->cls, &s->mask};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (*roles[i] >= (int32_t)rows) *roles[i] = -1;
    return WEFT_OK;
}

/* chat_template.jinja, else what the tokenizer's configuration says, else {"chat_template": ...} in a file of its
 * own. */
static weft_status read_template(const weft__hf *hf, weft__hf_vocab *v, weft_error *err)
{
    weft__tok_spec *s = &v->spec;
    weft_status status = map_optional(hf, "chat_template.jinja", &v->template_file, err);
    if (status) return status;
    if (v->template_file) s->chat_template = bytes_of(v->template_file);
    if (s->chat_template.len || s->n_templates) return WEFT_OK;
    status = json_optional(hf, "chat_template.json", &v->template_json, err);
    if (!status) s->chat_template = text_of(weft__json_get(v->template_json, "chat_template"));
    return status;
}

static weft_status add_rest(const weft__hf *hf, weft__hf_vocab *v, weft_error *err)
{
    weft__tok_spec *s = &v->spec;
    weft_status status = fit_embedding(hf, v, err);
    if (!status) status = json_optional(hf, "generation_config.json", &v->generation, err);
    if (!status) status = read_template(hf, v, err);
    if (status) return status;
    id_if_unset(v, hf->text, "bos_token_id", &s->bos);
    id_if_unset(v, hf->text, "eos_token_id", &s->eos);
    id_if_unset(v, hf->text, "pad_token_id", &s->pad);
    if ((status = add_ends(v, weft__json_get(v->generation, "eos_token_id"), "generation_config.json", err)) ||
        (status = add_ends(v, weft__json_get(hf->config, "eos_token_id"), "config.json", err)) ||
        (status = add_ends(v, weft__json_get(hf->text, "eos_token_id"), "config.json", err)))
        return status;
    if (s->eos < 0 && s->n_ends) s->eos = v->ends[0];
    return WEFT_OK;
}

/* ---- the whole ---- */

static weft_status hf_vocab_read_all(const weft__hf *hf, weft__hf_vocab *v, weft_error *err)
{
    weft_status status = map_optional(hf, "tokenizer.json", &v->main_file, err);
    if (status) return status;
    if (v->main_file) {
        status = read_json(hf, v, err);
    } else {
        status = weft__hf_map(hf, "tokenizer.model", &v->main_file, err);
        if (status == WEFT_NOT_FOUND)
            return weft_fail(err, status, "the folder has neither tokenizer.json nor tokenizer.model");
        if (!status) status = read_spm(hf, v, err);
    }
    return status ? status : add_rest(hf, v, err);
}

weft_status weft__hf_vocab_read(const weft__hf *hf, weft__hf_vocab **out, weft_error *err)
{
    *out = NULL;
    weft__hf_vocab *v = weft__alloc_zero(1, sizeof *v);
    if (!v) return hf_vocab_no_memory(err);
    weft__tok_spec_init(&v->spec);
    weft_status status = hf_vocab_read_all(hf, v, err);
    if (status) weft__hf_vocab_free(&v);
    *out = v;
    return status;
}

const weft__tok_spec *weft__hf_vocab_spec(const weft__hf_vocab *v)
{
    return &v->spec;
}

void weft__hf_vocab_free(weft__hf_vocab **p)
{
    weft__hf_vocab *v = p ? *p : NULL;
    if (!v) return;
    weft__free(v->templates);
    weft__free(v->ends);
    weft__free(v->strips);
    weft__free(v->types);
    weft__free(v->scores);
    weft__free(v->tokens);
    weft__json_free(&v->template_json);
    weft__json_free(&v->generation);
    weft__json_free(&v->added);
    weft__json_free(&v->config);
    weft__tok_spm_model_free(&v->spm);
    weft__tok_json_vocab_free(&v->json);
    weft_buffer_release(&v->template_file);
    weft_buffer_release(&v->map_file);
    weft_buffer_release(&v->added_file);
    weft_buffer_release(&v->config_file);
    weft_buffer_release(&v->main_file);
    weft__free(v);
    *p = NULL;
}

weft_status weft__hf_tokenizer(const weft__hf *hf, weft__tok **out, weft_error *err)
{
    weft__hf_vocab *v;
    char label[WEFT__NAME_SHOW * 2];
    *out = NULL;
    weft_status status = weft__hf_vocab_read(hf, &v, err);
    if (!status) status = weft__tok_create(&v->spec, out, err);
    if (status) weft_fail_within(err, status, "%s", weft__name_show_path(label, hf->folder));
    weft__hf_vocab_free(&v);
    return status;
}
