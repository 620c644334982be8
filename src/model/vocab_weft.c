// SPDX-License-Identifier: Apache-2.0
/* vocab_weft.c: the keys tokenizer.weft.*, written and read (vocab_weft.h). Steps are spelled out as the text room has
 * them, so that a file's tokenizer is its folder's, member by member. */
#include "model/vocab_weft.h"

#include <string.h>

#include "base/alloc.h"
#include "model/vocab.h"

#define KEY(name) "tokenizer.weft." name

enum { MAX_STEPS = 256, FLAG_FIRST_NORM = 4, FLAG_INVERT = 1, FLAG_FIRST_SPLIT = 2 };

/* By weft__tok_norm_kind and weft__tok_split_kind. */
static const char *const norm_names[] = {"prepend", "prepend-once", "append",   "replace",   "replace-regex", "nfc",
                                         "nfd",     "nfkc",         "nfkd",     "lowercase", "strip-accents", "strip",
                                         "clean",   "space-cjk",    "charsmap", "squeeze"};
static const char *const split_names[] = {"isolate",    "remove",   "merge-previous", "merge-next",
                                          "contiguous", "alphabet", "rewrite"};
enum { N_NORMS = sizeof norm_names / sizeof *norm_names, N_SPLITS = sizeof split_names / sizeof *split_names };
_Static_assert(N_NORMS == WEFT__TOK_NORM_SQUEEZE + 1, "a name for each");
_Static_assert(N_SPLITS == WEFT__TOK_SPLIT_REWRITE + 1, "a name for each");

static weft_status vocab_weft_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for the vocabulary");
}

void weft__vocab_extra_free(weft__vocab_extra *x)
{
    weft__free(x->ends);
    weft__free(x->merges);
    weft__free(x->splits);
    weft__free(x->norms);
    memset(x, 0, sizeof *x);
}

/* ---- options, by key ---- */

typedef struct option {
    const char *key;
    int *flag;
} option;
enum { N_OPTIONS = 8 };

static void list_options(weft__tok_spec *s, option out[N_OPTIONS])
{
    out[0] = (option){KEY("byte_level"), &s->byte_level};
    out[1] = (option){KEY("spelled"), &s->spelled};
    out[2] = (option){KEY("byte_fallback"), &s->byte_fallback};
    out[3] = (option){KEY("fuse_unknown"), &s->fuse_unk};
    out[4] = (option){KEY("ignore_merges"), &s->ignore_merges};
    out[5] = (option){KEY("strip_leading"), &s->strip_leading};
    out[6] = (option){KEY("add_first"), &s->add_bos}; /* of tokens that need not be BOS and EOS */
    out[7] = (option){KEY("add_last"), &s->add_eos};
}

/* ---- writing ---- */

/* Steps as three arrays: kinds, two texts each, flags. */
typedef struct vocab_weft_steps {
    weft__gguf_str *kinds, *texts;
    uint8_t *flags;
} vocab_weft_steps;

static weft_status put_steps(const char *const keys[3], const vocab_weft_steps *s, size_t n, weft__gguf_writer *w,
                             weft_error *err)
{
    weft_status status = weft__gguf_put_strings(w, keys[0], s->kinds, n, err);
    if (!status) status = weft__gguf_put_strings(w, keys[1], s->texts, 2 * n, err);
    return status ? status : weft__gguf_put_array(w, keys[2], WEFT__GGUF_U8, s->flags, n, err);
}

static int make_steps(vocab_weft_steps *s, size_t n)
{
    s->kinds = weft__alloc_array(n + 1, sizeof *s->kinds);
    s->texts = weft__alloc_array(2 * n + 1, sizeof *s->texts);
    s->flags = weft__alloc_zero(n + 1, 1);
    return s->kinds && s->texts && s->flags;
}

static void free_steps(vocab_weft_steps *s)
{
    weft__free(s->flags);
    weft__free(s->texts);
    weft__free(s->kinds);
}

static weft__gguf_str text_of(weft__tok_slice s)
{
    return (weft__gguf_str){s.data ? s.data : "", s.len};
}

static weft__gguf_str name_of(const char *name)
{
    return (weft__gguf_str){name, strlen(name)};
}

static const char *const norm_keys[] = {KEY("normalizers"), KEY("normalizer_texts"), KEY("normalizer_flags")};
static const char *const split_keys[] = {KEY("splits"), KEY("split_texts"), KEY("split_flags")};

static weft_status put_norms(const weft__tok_spec *spec, weft__gguf_writer *w, weft_error *err)
{
    vocab_weft_steps s = {0};
    weft_status status = make_steps(&s, spec->n_norms) ? WEFT_OK : vocab_weft_no_memory(err);
    for (size_t i = 0; !status && i < spec->n_norms; i++) {
        const weft__tok_norm_step *n = &spec->norms[i];
        s.kinds[i] = name_of(norm_names[n->kind]);
        s.texts[2 * i] = text_of(n->a);
        s.texts[2 * i + 1] = text_of(n->b);
        s.flags[i] = (uint8_t)(n->flags | (n->first_only ? FLAG_FIRST_NORM : 0u));
    }
    if (!status) status = put_steps(norm_keys, &s, spec->n_norms, w, err);
    free_steps(&s);
    return status;
}

static weft_status put_splits(const weft__tok_spec *spec, weft__gguf_writer *w, weft_error *err)
{
    vocab_weft_steps s = {0};
    weft_status status = make_steps(&s, spec->n_splits) ? WEFT_OK : vocab_weft_no_memory(err);
    for (size_t i = 0; !status && i < spec->n_splits; i++) {
        const weft__tok_split_step *p = &spec->splits[i];
        s.kinds[i] = name_of(split_names[p->kind]);
        s.texts[2 * i] = text_of(p->pattern);
        s.texts[2 * i + 1] = text_of(p->prefix);
        s.flags[i] = (uint8_t)((p->invert ? FLAG_INVERT : 0) | (p->first_only ? FLAG_FIRST_SPLIT : 0));
    }
    if (!status) status = put_steps(split_keys, &s, spec->n_splits, w, err);
    free_steps(&s);
    return status;
}

/* Left, right, left, right ...: symbols may hold spaces. */
static weft_status put_merges(const weft__tok_spec *spec, weft__gguf_writer *w, weft_error *err)
{
    weft__gguf_str *sides = weft__alloc_array(2 * spec->n_merges + 1, sizeof *sides);
    if (!sides) return vocab_weft_no_memory(err);
    for (size_t i = 0; i < spec->n_merges; i++) {
        sides[2 * i] = text_of(spec->merges[i].left);
        sides[2 * i + 1] = text_of(spec->merges[i].right);
    }
    weft_status status = weft__gguf_put_strings(w, KEY("merges"), sides, 2 * spec->n_merges, err);
    weft__free(sides);
    return status;
}

static weft_status put_explicit(const weft__tok_spec *spec, unsigned differences, weft__gguf_writer *w, weft_error *err)
{
    weft__tok_spec copy = *spec;
    option options[N_OPTIONS];
    list_options(&copy, options);
    weft_status status = weft__gguf_put_string(w, KEY("model"), spec->model.data, spec->model.len, err);
    if (!status) status = put_norms(spec, w, err);
    if (!status) status = put_splits(spec, w, err);
    for (size_t i = 0; !status && i < N_OPTIONS; i++)
        status = weft__gguf_put_bool(w, options[i].key, *options[i].flag > 0, err);
    if (!status && spec->max_word_chars > 0)
        status = weft__gguf_put_u32(w, KEY("max_word_chars"), (uint32_t)spec->max_word_chars, err);
    if (!status && spec->first >= 0) status = weft__gguf_put_u32(w, KEY("first"), (uint32_t)spec->first, err);
    if (!status && spec->last >= 0) status = weft__gguf_put_u32(w, KEY("last"), (uint32_t)spec->last, err);
    return !status && differences & WEFT__TOK_DIFFERS_MODEL ? put_merges(spec, w, err) : status;
}

/* The tokens that the usual keys spell otherwise; without a tokenizer of these, all. */
static weft_status put_texts(const weft__tok_spec *spec, const weft__tok *usual, weft__gguf_writer *w, weft_error *err)
{
    uint32_t *ids = weft__alloc_array(spec->n_tokens + 1, sizeof *ids);
    weft__gguf_str *texts = weft__alloc_array(spec->n_tokens + 1, sizeof *texts);
    weft_status status = ids && texts ? WEFT_OK : vocab_weft_no_memory(err);
    size_t n = 0;
    for (size_t i = 0; !status && i < spec->n_tokens; i++) {
        const weft__tok_slice t = spec->tokens[i],
                              u = usual ? weft__tok_text(usual, (int32_t)i) : (weft__tok_slice){NULL, 0};
        if (usual && t.len == u.len && (!t.len || !memcmp(t.data, u.data, t.len))) continue;
        ids[n] = (uint32_t)i;
        texts[n++] = text_of(t);
    }
    if (!status) status = weft__gguf_put_array(w, KEY("token_ids"), WEFT__GGUF_U32, ids, n, err);
    if (!status) status = weft__gguf_put_strings(w, KEY("token_texts"), texts, n, err);
    weft__free(texts);
    weft__free(ids);
    return status;
}

weft_status weft__vocab_put_weft(const weft__tok_spec *spec, unsigned differences, const weft__tok *usual,
                                 weft__gguf_writer *w, weft_error *err)
{
    const unsigned in_steps = WEFT__TOK_DIFFERS_MODEL | WEFT__TOK_DIFFERS_STEPS | WEFT__TOK_DIFFERS_OPTIONS |
                              WEFT__TOK_DIFFERS_ROLES | WEFT__TOK_DIFFERS_AROUND;
    weft_status status = WEFT_OK;
    if (spec->n_strips)
        status = weft__gguf_put_array(w, WEFT__VOCAB_STRIPS, WEFT__GGUF_U8, spec->strips, spec->n_strips, err);
    if (!status && differences & WEFT__TOK_DIFFERS_ENDS)
        status = weft__gguf_put_array(w, KEY("ends"), WEFT__GGUF_I32, spec->n_ends ? spec->ends : &spec->eos,
                                      spec->n_ends, err);
    if (!status && differences & WEFT__TOK_DIFFERS_TEXTS) status = put_texts(spec, usual, w, err);
    return !status && differences & in_steps && spec->explicit_steps ? put_explicit(spec, differences, w, err) : status;
}

/* ---- reading ---- */

static int has(const weft__gguf *g, const char *key)
{
    return weft__gguf_find(g, key) >= 0;
}

static weft_status list_of(const weft__gguf *g, const char *key, weft__gguf_type type, uint64_t n,
                           const weft__gguf_list **list, weft_error *err)
{
    weft_status status = weft__gguf_array(g, key, list, err);
    if (status) return status;
    if ((*list)->type != (uint32_t)type) {
        const char *found = weft__gguf_type_name((*list)->type);
        return weft_fail(err, WEFT_FORMAT, "%s is an array of %s, not of %s", key, found ? found : "?",
                         weft__gguf_type_name(type));
    }
    if (n != UINT64_MAX && (*list)->n != n)
        return weft_fail(err, WEFT_FORMAT, "%s has %llu entries, not %llu", key, (unsigned long long)(*list)->n,
                         (unsigned long long)n);
    return WEFT_OK;
}

static weft__tok_slice slice_at(const weft__gguf_list *list, uint64_t i)
{
    const weft__gguf_str s = weft__gguf_list_string(list, i);
    return (weft__tok_slice){s.data, s.len};
}

static weft_status read_kinds(const weft__gguf *g, const char *const keys[3], const weft__gguf_list *lists[3],
                              weft_error *err)
{
    weft_status status = list_of(g, keys[0], WEFT__GGUF_STRING, UINT64_MAX, &lists[0], err);
    if (status) return status;
    const uint64_t n = lists[0]->n;
    if (n > MAX_STEPS)
        return weft_fail(err, WEFT_LIMIT, "%s: %llu steps are more than %d", keys[0], (unsigned long long)n, MAX_STEPS);
    status = list_of(g, keys[1], WEFT__GGUF_STRING, 2 * n, &lists[1], err);
    return status ? status : list_of(g, keys[2], WEFT__GGUF_U8, n, &lists[2], err);
}

static weft_status find_kind(const char *key, weft__tok_slice name, const char *const *names, int n, int *kind,
                             weft_error *err)
{
    for (*kind = 0; *kind < n; ++*kind)
        if (name.len == strlen(names[*kind]) && !memcmp(name.data, names[*kind], name.len)) return WEFT_OK;
    char quote[64];
    return weft_fail(err, WEFT_UNSUPPORTED, "%s: the step '%s' is unknown to this version", key,
                     weft__utf8_show(quote, sizeof quote, name.data, name.len));
}

static weft_status read_norms(const weft__gguf *g, weft__tok_spec *spec, weft__vocab_extra *x, weft_error *err)
{
    const weft__gguf_list *lists[3];
    weft_status status = read_kinds(g, norm_keys, lists, err);
    if (status) return status;
    if (!(x->norms = weft__alloc_zero((size_t)lists[0]->n + 1, sizeof *x->norms))) return vocab_weft_no_memory(err);
    for (uint64_t i = 0; i < lists[0]->n; i++) {
        int kind;
        if ((status = find_kind(norm_keys[0], slice_at(lists[0], i), norm_names, N_NORMS, &kind, err))) return status;
        const uint8_t flags = lists[2]->data[i];
        x->norms[i] = (weft__tok_norm_step){
            (weft__tok_norm_kind)kind, slice_at(lists[1], 2 * i), slice_at(lists[1], 2 * i + 1),
            flags & (WEFT__TOK_STRIP_LEFT | WEFT__TOK_STRIP_RIGHT), (flags & FLAG_FIRST_NORM) != 0};
    }
    spec->norms = x->norms;
    spec->n_norms = (size_t)lists[0]->n;
    return WEFT_OK;
}

static weft_status read_splits(const weft__gguf *g, weft__tok_spec *spec, weft__vocab_extra *x, weft_error *err)
{
    const weft__gguf_list *lists[3];
    weft_status status = read_kinds(g, split_keys, lists, err);
    if (status) return status;
    if (!(x->splits = weft__alloc_zero((size_t)lists[0]->n + 1, sizeof *x->splits))) return vocab_weft_no_memory(err);
    for (uint64_t i = 0; i < lists[0]->n; i++) {
        int kind;
        if ((status = find_kind(split_keys[0], slice_at(lists[0], i), split_names, N_SPLITS, &kind, err)))
            return status;
        const uint8_t flags = lists[2]->data[i];
        x->splits[i] =
            (weft__tok_split_step){(weft__tok_split_kind)kind, slice_at(lists[1], 2 * i), (flags & FLAG_INVERT) != 0,
                                   slice_at(lists[1], 2 * i + 1), (flags & FLAG_FIRST_SPLIT) != 0};
    }
    spec->splits = x->splits;
    spec->n_splits = (size_t)lists[0]->n;
    return WEFT_OK;
}

static weft_status read_merges(const weft__gguf *g, weft__tok_spec *spec, weft__vocab_extra *x, weft_error *err)
{
    const weft__gguf_list *list;
    weft_status status = list_of(g, KEY("merges"), WEFT__GGUF_STRING, UINT64_MAX, &list, err);
    if (status) return status;
    if (list->n % 2)
        return weft_fail(err, WEFT_FORMAT, KEY("merges") " has %llu entries, which are no pairs",
                         (unsigned long long)list->n);
    spec->n_merges = (size_t)list->n / 2;
    if (!(x->merges = weft__alloc_array(spec->n_merges + 1, sizeof *x->merges))) return vocab_weft_no_memory(err);
    for (size_t i = 0; i < spec->n_merges; i++)
        x->merges[i] = (weft__tok_merge_pair){slice_at(list, 2 * i), slice_at(list, 2 * i + 1)};
    spec->merges = x->merges;
    return WEFT_OK;
}

static weft_status read_id(const weft__gguf *g, const char *key, int32_t *out, weft_error *err)
{
    return has(g, key) ? weft__gguf_i32(g, key, out, err) : WEFT_OK;
}

/* The steps and options; `model` says that there are some, and then all are. */
static weft_status read_explicit(const weft__gguf *g, weft__tok_spec *spec, weft__vocab_extra *x, weft_error *err)
{
    weft__gguf_str model;
    option options[N_OPTIONS];
    int32_t longest = 0;
    weft_status status = weft__gguf_string(g, KEY("model"), &model, err);
    if (status) return status;
    spec->model = (weft__tok_slice){model.data, model.len};
    spec->explicit_steps = 1;
    list_options(spec, options);
    for (size_t i = 0; !status && i < N_OPTIONS; i++) status = weft__gguf_bool(g, options[i].key, options[i].flag, err);
    if (!status) status = read_norms(g, spec, x, err);
    if (!status) status = read_splits(g, spec, x, err);
    if (!status && has(g, KEY("merges"))) status = read_merges(g, spec, x, err);
    if (!status) status = read_id(g, KEY("first"), &spec->first, err);
    if (!status) status = read_id(g, KEY("last"), &spec->last, err);
    if (!status) status = read_id(g, KEY("max_word_chars"), &longest, err);
    if (!status && longest < 0) return weft_fail(err, WEFT_FORMAT, KEY("max_word_chars") " is %d", longest);
    spec->max_word_chars = longest;
    return status;
}

static weft_status read_texts(const weft__gguf *g, const weft__tok_spec *spec, weft__tok_slice *texts, weft_error *err)
{
    const weft__gguf_list *ids, *list;
    weft_status status = list_of(g, KEY("token_ids"), WEFT__GGUF_U32, UINT64_MAX, &ids, err);
    if (!status) status = list_of(g, KEY("token_texts"), WEFT__GGUF_STRING, ids->n, &list, err);
    for (uint64_t i = 0, id; !status && i < ids->n; i++) {
        if (!weft__gguf_list_u64(ids, i, &id) || id >= spec->n_tokens)
            return weft_fail(err, WEFT_FORMAT, KEY("token_ids") ": entry %llu is not in a vocabulary of %zu",
                             (unsigned long long)i, spec->n_tokens);
        texts[id] = slice_at(list, i);
    }
    return status;
}

/* With this key the ends of turns and messages stand in the usual ones for other programs alone. */
static weft_status read_ends(const weft__gguf *g, weft__tok_spec *spec, weft__vocab_extra *x, weft_error *err)
{
    const weft__gguf_list *list;
    weft_status status = list_of(g, KEY("ends"), WEFT__GGUF_I32, UINT64_MAX, &list, err);
    if (status) return status;
    if (!(x->ends = weft__alloc_array((size_t)list->n + 1, sizeof *x->ends))) return vocab_weft_no_memory(err);
    for (uint64_t i = 0; i < list->n; i++) {
        int64_t id;
        if (!weft__gguf_list_i64(list, i, &id) || id < 0 || (uint64_t)id >= spec->n_tokens)
            return weft_fail(err, WEFT_FORMAT, KEY("ends") ": entry %llu is not in a vocabulary of %zu",
                             (unsigned long long)i, spec->n_tokens);
        x->ends[i] = (int32_t)id;
    }
    spec->ends = x->ends;
    spec->n_ends = (size_t)list->n;
    spec->eot = spec->eom = -1;
    return WEFT_OK;
}

static weft_status read_strips(const weft__gguf *g, weft__tok_spec *spec, weft_error *err)
{
    const weft__gguf_list *list;
    weft_status status = list_of(g, WEFT__VOCAB_STRIPS, WEFT__GGUF_U8, UINT64_MAX, &list, err);
    if (status) return status;
    if (list->n != spec->n_tokens)
        return weft_fail(err, WEFT_FORMAT, WEFT__VOCAB_STRIPS " has %llu entries for %zu tokens",
                         (unsigned long long)list->n, spec->n_tokens);
    spec->strips = list->data;
    spec->n_strips = (size_t)list->n;
    return WEFT_OK;
}

weft_status weft__vocab_read_weft(const weft__gguf *g, weft__tok_spec *spec, weft__tok_slice *texts,
                                  weft__vocab_extra *x, weft_error *err)
{
    weft_status status = has(g, WEFT__VOCAB_STRIPS) ? read_strips(g, spec, err) : WEFT_OK;
    if (!status && has(g, KEY("ends"))) status = read_ends(g, spec, x, err);
    if (!status && has(g, KEY("token_ids"))) status = read_texts(g, spec, texts, err);
    return !status && has(g, KEY("model")) ? read_explicit(g, spec, x, err) : status;
}
