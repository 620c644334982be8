// SPDX-License-Identifier: Apache-2.0
/* vocab.c: from a GGUF file's tokenizer.ggml.* keys to the vocabulary that the text room takes (vocab.h). The arrays
 * made on the way live for the call; their strings are the file's. */
#include "model/vocab.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "format/names.h"
#include "model/vocab_weft.h"

#define KEY(name) "tokenizer.ggml." name

/* What the specification's arrays point to. */
typedef struct arrays {
    weft__tok_slice *tokens;
    float *scores;
    int32_t *types;
    uint8_t *strips;
    weft__tok_merge_pair *merges;
    weft__vocab_extra extra;
} arrays;

static weft_status vocab_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
}

/* 1 when the key is there. */
static int has(const weft__gguf *g, const char *key)
{
    return weft__gguf_find(g, key) >= 0;
}

static weft_status list_of(const weft__gguf *g, const char *key, uint32_t type, const weft__gguf_list **list,
                           weft_error *err)
{
    weft_status status = weft__gguf_array(g, key, list, err);
    if (status) return status;
    if ((*list)->type != type) {
        const char *found = weft__gguf_type_name((*list)->type);
        return weft_fail(err, WEFT_FORMAT, "%s is an array of %s, not of %s", key, found ? found : "?",
                         weft__gguf_type_name(type));
    }
    return WEFT_OK;
}

static weft_status read_tokens(const weft__gguf *g, weft__tok_spec *spec, arrays *a, weft_error *err)
{
    const weft__gguf_list *list;
    weft_status status = list_of(g, KEY("tokens"), WEFT__GGUF_STRING, &list, err);
    if (status) return status;
    a->tokens = weft__alloc_array(list->n, sizeof *a->tokens);
    if (!a->tokens) return vocab_no_memory(err);
    for (uint64_t i = 0; i < list->n; i++) {
        weft__gguf_str s = weft__gguf_list_string(list, i);
        a->tokens[i] = (weft__tok_slice){s.data, s.len};
    }
    spec->tokens = a->tokens;
    spec->n_tokens = list->n;
    return WEFT_OK;
}

/* Scores are f32; some converters wrote integers. */
static weft_status read_scores(const weft__gguf *g, weft__tok_spec *spec, arrays *a, weft_error *err)
{
    const weft__gguf_list *list;
    if (!has(g, KEY("scores"))) return WEFT_OK;
    weft_status status = weft__gguf_array(g, KEY("scores"), &list, err);
    if (status) return status;
    a->scores = weft__alloc_array(list->n, sizeof *a->scores);
    if (!a->scores) return vocab_no_memory(err);
    for (uint64_t i = 0; i < list->n; i++) {
        double score;
        int64_t integer;
        if (weft__gguf_list_f64(list, i, &score)) {
            a->scores[i] = (float)score;
        } else if (weft__gguf_list_i64(list, i, &integer)) {
            a->scores[i] = (float)integer;
        } else {
            return weft_fail(err, WEFT_FORMAT, KEY("scores") " holds something else than numbers");
        }
    }
    spec->scores = a->scores;
    spec->n_scores = list->n;
    return WEFT_OK;
}

static weft_status read_types(const weft__gguf *g, weft__tok_spec *spec, arrays *a, weft_error *err)
{
    const weft__gguf_list *list;
    if (!has(g, KEY("token_type"))) return WEFT_OK;
    weft_status status = weft__gguf_array(g, KEY("token_type"), &list, err);
    if (status) return status;
    a->types = weft__alloc_array(list->n, sizeof *a->types);
    if (!a->types) return vocab_no_memory(err);
    for (uint64_t i = 0; i < list->n; i++) {
        int64_t type;
        if (!weft__gguf_list_i64(list, i, &type) || type < INT32_MIN || type > INT32_MAX) {
            return weft_fail(err, WEFT_FORMAT, KEY("token_type") " holds something else than small integers");
        }
        a->types[i] = (int32_t)type;
    }
    spec->types = a->types;
    spec->n_types = list->n;
    return WEFT_OK;
}

/* A merge is written "left right"; the first character belongs to the left part even where it is a space. */
static weft_status read_merges(const weft__gguf *g, weft__tok_spec *spec, arrays *a, weft_error *err)
{
    const weft__gguf_list *list;
    if (!has(g, KEY("merges"))) return WEFT_OK;
    weft_status status = list_of(g, KEY("merges"), WEFT__GGUF_STRING, &list, err);
    if (status) return status;
    a->merges = weft__alloc_array(list->n, sizeof *a->merges);
    if (!a->merges) return vocab_no_memory(err);
    for (uint64_t i = 0; i < list->n; i++) {
        weft__gguf_str s = weft__gguf_list_string(list, i);
        const char *space = s.len > 1 ? memchr(s.data + 1, ' ', s.len - 1) : NULL;
        if (!space)
            return weft_fail(err, WEFT_FORMAT, KEY("merges") ": entry %llu has no space", (unsigned long long)i);
        size_t left = (size_t)(space - s.data);
        a->merges[i] = (weft__tok_merge_pair){{s.data, left}, {space + 1, s.len - left - 1}};
    }
    spec->merges = a->merges;
    spec->n_merges = list->n;
    return WEFT_OK;
}

static weft_status read_ids(const weft__gguf *g, weft__tok_spec *spec, weft_error *err)
{
    const struct {
        const char *key;
        int32_t *id;
    } ids[] = {{KEY("bos_token_id"), &spec->bos},     {KEY("eos_token_id"), &spec->eos},
               {KEY("unknown_token_id"), &spec->unk}, {KEY("seperator_token_id"), &spec->sep},
               {KEY("padding_token_id"), &spec->pad}, {KEY("cls_token_id"), &spec->cls},
               {KEY("mask_token_id"), &spec->mask},   {KEY("eot_token_id"), &spec->eot},
               {KEY("eom_token_id"), &spec->eom}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        int64_t id;
        if (!has(g, ids[i].key)) continue;
        weft_status status = weft__gguf_i64(g, ids[i].key, &id, err);
        if (status) return status;
        if (id == -1 || id == UINT32_MAX) continue; /* both are written for "none" */
        if (id < 0 || id >= INT32_MAX) return weft_fail(err, WEFT_FORMAT, "%s is %lld", ids[i].key, (long long)id);
        *ids[i].id = (int32_t)id;
    }
    return WEFT_OK;
}

static weft_status read_flags(const weft__gguf *g, weft__tok_spec *spec, weft_error *err)
{
    const struct {
        const char *key;
        int *flag;
    } flags[] = {{KEY("add_bos_token"), &spec->add_bos},
                 {KEY("add_eos_token"), &spec->add_eos},
                 {KEY("add_space_prefix"), &spec->add_space_prefix},
                 {KEY("remove_extra_whitespaces"), &spec->remove_extra_whitespaces},
                 {KEY("normalizer.lowercase"), &spec->lowercase}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!has(g, flags[i].key)) continue;
        weft_status status = weft__gguf_bool(g, flags[i].key, flags[i].flag, err);
        if (status) return status;
    }
    return WEFT_OK;
}

static weft_status read_string(const weft__gguf *g, const char *key, weft__tok_slice *out, weft_error *err)
{
    weft__gguf_str s;
    if (!has(g, key)) return WEFT_OK;
    weft_status status = weft__gguf_string(g, key, &s, err);
    if (!status) *out = (weft__tok_slice){s.data, s.len};
    return status;
}

static weft_status read_charsmap(const weft__gguf *g, weft__tok_spec *spec, weft_error *err)
{
    const weft__gguf_list *list;
    if (!has(g, KEY("precompiled_charsmap"))) return WEFT_OK;
    weft_status status = weft__gguf_array(g, KEY("precompiled_charsmap"), &list, err);
    if (status) return status;
    if (list->elem_bytes != 1)
        return weft_fail(err, WEFT_FORMAT, KEY("precompiled_charsmap") " is not an array of bytes");
    spec->charsmap = (weft__tok_slice){(const char *)list->data, list->n};
    return WEFT_OK;
}

static int is_phi3(const weft__gguf *g)
{
    weft__gguf_str name;
    if (!has(g, "general.name") || weft__gguf_string(g, "general.name", &name, NULL)) return 0;
    for (size_t i = 0; i + 4 <= name.len; i++) {
        if (!strncasecmp(name.data + i, "phi3", 4)) return 1;
        if (i + 5 <= name.len && !strncasecmp(name.data + i, "phi-3", 5)) return 1;
    }
    return 0;
}

/* Phi-3's special tokens swallow the whitespace behind them: known of files that others made. */
static weft_status mark_strips(weft__tok_spec *spec, arrays *a, weft_error *err)
{
    static const char *const kept[] = {"<unk>", "<s>", "<|endoftext|>"};
    if (spec->n_types != spec->n_tokens) return WEFT_OK;
    a->strips = weft__alloc_zero(spec->n_tokens, 1);
    if (!a->strips) return vocab_no_memory(err);
    for (size_t i = 0; i < spec->n_tokens; i++) {
        int type = spec->types[i];
        if (type == WEFT__TOK_CONTROL || type == WEFT__TOK_USER_DEFINED) a->strips[i] = WEFT__TOK_STRIP_RIGHT;
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
            const weft__tok_slice *t = &spec->tokens[i];
            if (t->len == strlen(kept[k]) && !memcmp(t->data, kept[k], t->len)) a->strips[i] = 0;
        }
    }
    spec->strips = a->strips;
    spec->n_strips = spec->n_tokens;
    return WEFT_OK;
}

/* Rows of the embedding without a token have names in files ("[PAD7]", marked unused); no text is to be taken for
 * one. */
static void clear_fillers(const weft__tok_spec *spec, arrays *a)
{
    char name[32];
    for (size_t i = 0; i < spec->n_tokens && i < spec->n_types; i++) {
        if (spec->types[i] != WEFT__TOK_UNUSED) continue;
        const size_t n = (size_t)snprintf(name, sizeof name, "[PAD%zu]", i);
        if (a->tokens[i].len == n && !memcmp(a->tokens[i].data, name, n)) a->tokens[i] = (weft__tok_slice){"", 0};
    }
}

static weft_status read_spec(const weft__gguf *g, weft__tok_spec *spec, arrays *a, weft_error *err)
{
    weft_status status = read_string(g, KEY("model"), &spec->model, err);
    if (!status) status = read_string(g, KEY("pre"), &spec->pre, err);
    if (!status) status = read_string(g, "tokenizer.chat_template", &spec->chat_template, err);
    if (!status) status = read_tokens(g, spec, a, err);
    if (!status) status = read_scores(g, spec, a, err);
    if (!status) status = read_types(g, spec, a, err);
    if (!status) status = read_merges(g, spec, a, err);
    if (!status) status = read_ids(g, spec, err);
    if (!status) status = read_flags(g, spec, err);
    if (!status) status = read_charsmap(g, spec, err);
    if (!status) status = weft__vocab_read_weft(g, spec, a->tokens, &a->extra, err);
    if (!status && !spec->n_strips && is_phi3(g)) status = mark_strips(spec, a, err);
    if (!status) clear_fillers(spec, a);
    return status;
}

/* Who gives an adapter means the model that it changes, of which its file may say the name. */
static weft_status no_tokenizer(const weft__gguf *g, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft__tok_slice type = {"", 0}, base = {"", 0};
    if (read_string(g, "general.type", &type, NULL) || type.len != 7 || memcmp(type.data, "adapter", 7))
        return weft_fail(err, WEFT_NOT_FOUND, "the file has no tokenizer (" KEY("model") " is missing)");
    if (read_string(g, "general.base_model.0.name", &base, NULL)) base.len = 0;
    const char *name = weft__name_show(shown, base.data, base.len);
    return weft_fail(err, WEFT_NOT_FOUND,
                     "it is an adapter, which has no tokenizer of its own: give the model that it was made for%s%s%s",
                     base.len ? ", '" : "", base.len ? name : "", base.len ? "'" : "");
}

weft_status weft__vocab_tokenizer(const weft__gguf *g, weft__tok **out, weft_error *err)
{
    *out = NULL;
    if (!has(g, KEY("model"))) return no_tokenizer(g, err);
    weft__tok_spec spec;
    arrays a = {0};
    weft__tok_spec_init(&spec);
    weft_status status = read_spec(g, &spec, &a, err);
    if (!status) status = weft__tok_create(&spec, out, err);
    weft__vocab_extra_free(&a.extra);
    weft__free(a.merges);
    weft__free(a.strips);
    weft__free(a.types);
    weft__free(a.scores);
    weft__free(a.tokens);
    return status;
}
