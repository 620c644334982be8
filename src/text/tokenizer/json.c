// SPDX-License-Identifier: Apache-2.0
/* json.c: tokenizer.json's model, added tokens and roles (json.h). */
#include "text/tokenizer/json.h"

#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/json_parts.h"
#include "text/tokenizer/parts.h"

#define MAX_ID 10000000 /* more tokens than any vocabulary has */

/* ---- helpers ---- */

static weft_status json_no_memory(weft__tok_json_vocab *v)
{
    return weft_fail(v->err, WEFT_NO_MEMORY, "tokenizer.json: out of memory");
}

weft_status weft__tok_json_text(weft__tok_json_vocab *v, const weft__json *value, const char *what,
                                weft__tok_slice *out)
{
    if (weft__json_string(value, &out->data, &out->len)) return WEFT_OK;
    return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: %s is no string", what);
}

weft_status weft__tok_json_flag(weft__tok_json_vocab *v, const weft__json *object, const char *key, int missing,
                                int *out)
{
    const weft__json *value = weft__json_get(object, key);
    *out = missing;
    if (!value || weft__json_is_null(value) || weft__json_bool(value, out)) return WEFT_OK;
    return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: %s is neither true nor false", key);
}

weft__tok_slice weft__tok_json_keep(weft__tok_json_vocab *v, const char *s, size_t n)
{
    if (!weft__grow(&v->made, &v->made_capacity, v->n_made + 1, sizeof *v->made)) return (weft__tok_slice){NULL, 0};
    char *copy = weft__strndup(s, n);
    if (!copy) return (weft__tok_slice){NULL, 0};
    v->made[v->n_made++] = copy;
    return (weft__tok_slice){copy, n};
}

weft_status weft__tok_json_type(weft__tok_json_vocab *v, const weft__json *object, const char *what,
                                weft__tok_slice *out)
{
    if (weft__json_kind_of(object) != WEFT__JSON_OBJECT) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: %s is no object", what);
    }
    if (weft__json_string(weft__json_get(object, "type"), &out->data, &out->len)) return WEFT_OK;
    return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: %s has no type", what);
}

int weft__tok_slice_is(weft__tok_slice s, const char *text)
{
    return s.len == strlen(text) && !memcmp(s.data, text, s.len);
}

weft_status weft__tok_json_refuse(weft__tok_json_vocab *v, const char *what, weft__tok_slice name)
{
    char quote[WEFT__TOK_QUOTE];
    return weft_fail(v->err, WEFT_UNSUPPORTED, "tokenizer.json: %s '%s' is not supported", what,
                     weft__tok_quote(quote, name.data, name.len));
}

int32_t weft__tok_json_find(const weft__tok_json_vocab *v, weft__tok_slice text)
{
    if (!text.len) return -1;
    if (v->index.n) {
        const int32_t at = weft__strings_find(&v->index, text.data, text.len);
        return at < 0 ? -1 : v->index_ids[at];
    }
    for (size_t i = 0; i < v->n_tokens; i++) {
        if (v->tokens[i].len == text.len && !memcmp(v->tokens[i].data, text.data, text.len)) return (int32_t)i;
    }
    return -1;
}

weft_status weft__tok_json_index_add(weft__tok_json_vocab *v, weft__tok_slice text, int64_t id)
{
    if (!weft__grow(&v->index_ids, &v->index_capacity, v->index.n + 1, sizeof *v->index_ids)) return json_no_memory(v);
    v->index_ids[v->index.n] = (int32_t)id;
    return weft__strings_add(&v->index, text.data, text.len, 1) ? WEFT_OK : json_no_memory(v);
}

weft_status weft__tok_json_index(weft__tok_json_vocab *v)
{
    weft_status status = WEFT_OK;
    for (size_t i = 0; !status && i < v->n_tokens; i++)
        if (v->tokens[i].len) status = weft__tok_json_index_add(v, v->tokens[i], (int64_t)i);
    return status;
}

/* ---- tokens ---- */

weft_status weft__tok_json_reach(weft__tok_json_vocab *v, int64_t id)
{
    if (id < 0 || id >= MAX_ID)
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: the id %lld is out of range", (long long)id);
    size_t need = (size_t)id + 1;
    if (need <= v->n_tokens) return WEFT_OK;
    if (!weft__grow(&v->tokens, &v->tokens_capacity, need, sizeof *v->tokens) ||
        !weft__grow(&v->scores, &v->scores_capacity, need, sizeof *v->scores) ||
        !weft__grow(&v->types, &v->types_capacity, need, sizeof *v->types) ||
        !weft__grow(&v->strips, &v->strips_capacity, need, sizeof *v->strips)) {
        return json_no_memory(v);
    }
    for (size_t i = v->n_tokens; i < need; i++) {
        v->tokens[i] = (weft__tok_slice){NULL, 0};
        v->scores[i] = 0;
        v->types[i] = WEFT__TOK_UNUSED;
        v->strips[i] = 0;
    }
    v->n_tokens = need;
    return WEFT_OK;
}

static weft_status put_token(weft__tok_json_vocab *v, int64_t id, const char *s, size_t n, float score)
{
    weft_status status = weft__tok_json_reach(v, id);
    if (status) return status;
    if (v->tokens[id].data)
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: two tokens have the id %lld", (long long)id);
    v->tokens[id] = (weft__tok_slice){s, n};
    v->types[id] = WEFT__TOK_NORMAL;
    v->scores[id] = score;
    return WEFT_OK;
}

/* {"token": id, ...} of BPE and WordPiece. */
static weft_status read_vocab_object(weft__tok_json_vocab *v, const weft__json *vocab)
{
    if (weft__json_kind_of(vocab) != WEFT__JSON_OBJECT) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: model.vocab is no object");
    }
    weft__json_member m = {0};
    while (weft__json_next(vocab, &m)) {
        int64_t id;
        if (!weft__json_int(m.value, &id)) {
            char quote[WEFT__TOK_QUOTE];
            return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: the id of '%s' in model.vocab is no integer",
                             weft__tok_quote(quote, m.key, m.key_len));
        }
        weft_status status = put_token(v, id, m.key, m.key_len, 0);
        if (status) return status;
    }
    return WEFT_OK;
}

/* [["token", score], ...] of Unigram. */
static weft_status read_vocab_array(weft__tok_json_vocab *v, const weft__json *vocab)
{
    if (weft__json_kind_of(vocab) != WEFT__JSON_ARRAY) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: model.vocab is no array");
    }
    size_t n = weft__json_size(vocab);
    for (size_t i = 0; i < n; i++) {
        const weft__json *entry = weft__json_at(vocab, i);
        const char *s;
        size_t len;
        double score;
        if (!weft__json_string(weft__json_at(entry, 0), &s, &len) ||
            !weft__json_double(weft__json_at(entry, 1), &score)) {
            return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: entry %zu of model.vocab is no [text, score]", i);
        }
        weft_status status = put_token(v, (int64_t)i, s, len, (float)score);
        if (status) return status;
    }
    return WEFT_OK;
}

/* "left right" or ["left", "right"]. */
static weft_status read_merge(weft__tok_json_vocab *v, const weft__json *entry, size_t i, weft__tok_merge_pair *out)
{
    const char *s;
    size_t n;
    if (weft__json_string(entry, &s, &n)) {
        const char *space = n > 1 ? memchr(s + 1, ' ', n - 1) : NULL;
        if (!space) return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: entry %zu of model.merges has no space", i);
        size_t left = (size_t)(space - s);
        *out = (weft__tok_merge_pair){{s, left}, {space + 1, n - left - 1}};
        return WEFT_OK;
    }
    if (weft__json_size(entry) != 2 || !weft__json_string(weft__json_at(entry, 0), &out->left.data, &out->left.len) ||
        !weft__json_string(weft__json_at(entry, 1), &out->right.data, &out->right.len)) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: entry %zu of model.merges is no pair of symbols", i);
    }
    return WEFT_OK;
}

static weft_status read_merges(weft__tok_json_vocab *v, const weft__json *merges)
{
    if (weft__json_kind_of(merges) != WEFT__JSON_ARRAY) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: model.merges is no array");
    }
    size_t n = weft__json_size(merges);
    v->merges = weft__alloc_array(n, sizeof *v->merges);
    if (!v->merges) return json_no_memory(v);
    for (size_t i = 0; i < n; i++) {
        weft_status status = read_merge(v, weft__json_at(merges, i), i, &v->merges[i]);
        if (status) return status;
    }
    v->spec.merges = v->merges;
    v->spec.n_merges = n;
    return WEFT_OK;
}

/* ---- the model ---- */

/* A member that must be missing, null, empty or zero, since what it asks for is not done here. */
static weft_status must_be_off(weft__tok_json_vocab *v, const weft__json *model, const char *key)
{
    const weft__json *value = weft__json_get(model, key);
    const char *s;
    size_t n;
    double number;
    if (!value || weft__json_is_null(value)) return WEFT_OK;
    if (weft__json_string(value, &s, &n) && n == 0) return WEFT_OK;
    if (weft__json_double(value, &number) && number == 0) return WEFT_OK;
    return weft_fail(v->err, WEFT_UNSUPPORTED, "tokenizer.json: model.%s is not supported", key);
}

/* The unknown token, by its text. */
static weft_status read_unk(weft__tok_json_vocab *v, const weft__json *model, const char *usual)
{
    const weft__json *value = weft__json_get(model, "unk_token");
    weft__tok_slice text = {usual, usual ? strlen(usual) : 0};
    if (value && !weft__json_is_null(value)) {
        weft_status status = weft__tok_json_text(v, value, "model.unk_token", &text);
        if (status) return status;
    }
    if (!text.len) return WEFT_OK;
    v->spec.unk = weft__tok_json_find(v, text);
    if (v->spec.unk < 0)
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: model.unk_token is not in the vocabulary");
    return WEFT_OK;
}

static weft_status read_bpe(weft__tok_json_vocab *v, const weft__json *model)
{
    static const char *const off[] = {"dropout", "continuing_subword_prefix", "end_of_word_suffix"};
    int ignore;
    v->spec.model = WEFT__TOK_SLICE("gpt2");
    weft_status status = WEFT_OK;
    for (size_t i = 0; !status && i < sizeof off / sizeof *off; i++) status = must_be_off(v, model, off[i]);
    if (!status) status = weft__tok_json_flag(v, model, "fuse_unk", 0, &v->spec.fuse_unk);
    if (!status) status = weft__tok_json_flag(v, model, "byte_fallback", 0, &v->spec.byte_fallback);
    if (!status) status = weft__tok_json_flag(v, model, "ignore_merges", 0, &ignore);
    if (!status) v->spec.ignore_merges = ignore;
    if (!status) status = read_vocab_object(v, weft__json_get(model, "vocab"));
    if (!status) status = read_merges(v, weft__json_get(model, "merges"));
    return status;
}

static weft_status read_unigram(weft__tok_json_vocab *v, const weft__json *model)
{
    v->unigram = 1;
    v->spec.model = WEFT__TOK_SLICE("t5");
    v->spec.fuse_unk = 1;
    weft_status status = weft__tok_json_flag(v, model, "byte_fallback", 0, &v->spec.byte_fallback);
    if (!status) status = read_vocab_array(v, weft__json_get(model, "vocab"));
    return status;
}

static weft_status read_word_piece(weft__tok_json_vocab *v, const weft__json *model)
{
    int64_t longest = 100;
    v->word_piece = 1;
    v->spec.model = WEFT__TOK_SLICE("bert");
    v->spec.strip_leading = 1;
    const weft__json *max = weft__json_get(model, "max_input_chars_per_word");
    if (max && (!weft__json_int(max, &longest) || longest < 1 || longest > INT32_MAX)) {
        return weft_fail(v->err, WEFT_FORMAT,
                         "tokenizer.json: model.max_input_chars_per_word is no number of characters");
    }
    v->spec.max_word_chars = (int)longest;
    return read_vocab_object(v, weft__json_get(model, "vocab"));
}

/* WordPiece marks what continues a word; here, what begins one is marked: "##s" becomes "s", and "the" becomes
 * "▁the". */
static weft_status respell_word_piece(weft__tok_json_vocab *v, const weft__json *model)
{
    weft__tok_slice prefix = WEFT__TOK_SLICE("##");
    const weft__json *value = weft__json_get(model, "continuing_subword_prefix");
    weft_status status = value ? weft__tok_json_text(v, value, "model.continuing_subword_prefix", &prefix) : WEFT_OK;
    weft__strbuf spelled = {0};
    for (size_t i = 0; !status && i < v->n_tokens; i++) {
        weft__tok_slice *t = &v->tokens[i];
        if (v->types[i] != WEFT__TOK_NORMAL || (int32_t)i == v->spec.unk) continue;
        if (prefix.len && t->len > prefix.len && !memcmp(t->data, prefix.data, prefix.len)) {
            *t = (weft__tok_slice){t->data + prefix.len, t->len - prefix.len};
            continue;
        }
        spelled.len = 0;
        weft__strbuf_puts(&spelled, WEFT__TOK_LOWER_BLOCK);
        weft__strbuf_put(&spelled, t->data, t->len);
        *t = spelled.failed ? (weft__tok_slice){NULL, 0} : weft__tok_json_keep(v, spelled.data, spelled.len);
        if (!t->data) status = json_no_memory(v);
    }
    weft__strbuf_free(&spelled);
    return status;
}

static weft_status read_unigram_unk(weft__tok_json_vocab *v, const weft__json *model)
{
    const weft__json *value = weft__json_get(model, "unk_id");
    int64_t id;
    if (!value || weft__json_is_null(value)) return WEFT_OK;
    if (!weft__json_int(value, &id) || id < 0 || (size_t)id >= v->n_tokens) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: model.unk_id is not in the vocabulary");
    }
    v->spec.unk = (int32_t)id;
    return WEFT_OK;
}

/* Types that no field states: the unknown token, and byte tokens where there is a fallback to them. */
static void set_types(weft__tok_json_vocab *v)
{
    if (v->spec.unk >= 0 && v->types[v->spec.unk] == WEFT__TOK_NORMAL) v->types[v->spec.unk] = WEFT__TOK_UNKNOWN;
    for (size_t i = 0; v->spec.byte_fallback && i < v->n_tokens; i++) {
        const weft__tok_slice *t = &v->tokens[i];
        if (v->types[i] == WEFT__TOK_NORMAL && t->len == 6 && weft__tok_byte_token(t->data, 6) >= 0) {
            v->types[i] = WEFT__TOK_BYTE;
        }
    }
}

static weft_status read_model(weft__tok_json_vocab *v, const weft__json *model, const weft__json *added)
{
    weft__tok_slice type = {NULL, 0};
    if (weft__json_kind_of(model) != WEFT__JSON_OBJECT)
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: there is no model");
    /* Old files leave the type out; what the model has tells it. */
    if (!weft__json_string(weft__json_get(model, "type"), &type.data, &type.len)) {
        type = weft__json_get(model, "merges") ? WEFT__TOK_SLICE("BPE") : WEFT__TOK_SLICE("WordPiece");
    }
    weft_status status;
    if (weft__tok_slice_is(type, "BPE")) {
        status = read_bpe(v, model);
    } else if (weft__tok_slice_is(type, "Unigram")) {
        status = read_unigram(v, model);
    } else if (weft__tok_slice_is(type, "WordPiece")) {
        status = read_word_piece(v, model);
    } else {
        return weft__tok_json_refuse(v, "model", type);
    }
    if (!status) status = weft__tok_json_added_tokens(v, added);
    if (!status) status = v->unigram ? read_unigram_unk(v, model) : read_unk(v, model, v->word_piece ? "[UNK]" : NULL);
    if (!status) set_types(v);
    return status;
}

/* ---- tokenizer_config.json ---- */

weft__tok_slice weft__tok_json_content(const weft__json *value)
{
    weft__tok_slice s = {NULL, 0};
    if (!weft__json_string(value, &s.data, &s.len))
        weft__json_string(weft__json_get(value, "content"), &s.data, &s.len);
    return s;
}

weft_status weft__tok_json_templates(const weft__json *value, weft__tok_spec *spec, weft__tok_template **list,
                                     weft_error *err)
{
    const size_t n = weft__json_kind_of(value) == WEFT__JSON_ARRAY ? weft__json_size(value) : 0;
    if (!n) {
        spec->chat_template = weft__tok_json_content(value);
        return WEFT_OK;
    }
    *list = weft__alloc_array(n, sizeof **list);
    if (!*list) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu chat templates", n);
    for (size_t i = 0; i < n; i++) {
        const weft__json *entry = weft__json_at(value, i);
        const weft__tok_template t = {weft__tok_json_content(weft__json_get(entry, "name")),
                                      weft__tok_json_content(weft__json_get(entry, "template"))};
        if (weft__tok_slice_is(t.name, "default")) spec->chat_template = t.text;
        else if (t.name.len && t.text.data) (*list)[spec->n_templates++] = t;
    }
    spec->templates = *list;
    return WEFT_OK;
}

/* Does the class put add_bos_token and add_eos_token in the place of the file's post-processor? Those with an
 * update_post_processor in transformers do so whenever they are loaded; PreTrainedTokenizerFast takes the file as it
 * is. */
static int class_has_flags(const weft__json *config)
{
    static const char *const classes[] = {"LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer", "CohereTokenizer"};
    const weft__tok_slice name = weft__tok_json_content(weft__json_get(config, "tokenizer_class"));
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        const size_t n = strlen(classes[i]);
        if (name.len < n || memcmp(name.data, classes[i], n) != 0) continue;
        if (name.len == n || weft__tok_slice_is((weft__tok_slice){name.data + n, name.len - n}, "Fast")) return 1;
    }
    return 0;
}

/* Whether a token is put around the text, as a flag of the configuration says. slot: of the token, at one end. */
static void read_flag(const weft__json *flag, int id, int *add, int32_t *slot)
{
    if (!weft__json_bool(flag, add)) return;
    if (id < 0) *add = 0;
    *slot = *add ? id : -1;
}

static weft_status read_config(weft__tok_json_vocab *v, const weft__json *config)
{
    const struct {
        const char *key;
        int32_t *id;
    } roles[] = {{"bos_token", &v->spec.bos}, {"eos_token", &v->spec.eos}, {"pad_token", &v->spec.pad},
                 {"sep_token", &v->spec.sep}, {"cls_token", &v->spec.cls}, {"mask_token", &v->spec.mask}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        *roles[i].id = weft__tok_json_find(v, weft__tok_json_content(weft__tok_json_special(v, roles[i].key)));
    }
    const weft__json *add_bos = weft__json_get(config, "add_bos_token");
    int add = 0;
    if (class_has_flags(config)) {
        read_flag(add_bos, v->spec.bos, &v->spec.add_bos, &v->spec.first);
        read_flag(weft__json_get(config, "add_eos_token"), v->spec.eos, &v->spec.add_eos, &v->spec.last);
    } else if (weft__json_bool(add_bos, &add) && add && v->spec.add_bos != 1 && v->spec.bos >= 0) {
        read_flag(add_bos, v->spec.bos, &v->spec.add_bos, &v->spec.first);
    }
    return weft__tok_json_templates(weft__json_get(config, "chat_template"), &v->spec, &v->templates, v->err);
}

/* ---- the whole ---- */

static weft_status json_read_all(weft__tok_json_vocab *v, const weft__json *root, const weft__json *config)
{
    if (weft__json_kind_of(root) != WEFT__JSON_OBJECT)
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: it is no object");
    const weft__json *model = weft__json_get(root, "model");
    weft_status status = read_model(v, model, weft__json_get(root, "added_tokens"));
    if (!status) status = weft__tok_json_normalizer(v, weft__json_get(root, "normalizer"), 0);
    if (!status) status = weft__tok_json_pre_tokenizer(v, weft__json_get(root, "pre_tokenizer"), 0);
    if (!status) status = weft__tok_json_post_processor(v, weft__json_get(root, "post_processor"), 0);
    if (!status) status = weft__tok_json_decoder(v, weft__json_get(root, "decoder"), 0);
    if (status) return status;
    status = weft__tok_json_added_beside(v);
    if (!status && (config || v->map)) status = read_config(v, config);
    if (!status && v->word_piece) status = respell_word_piece(v, model);
    v->spec.explicit_steps = 1;
    v->spec.n_tokens = v->n_tokens;
    v->spec.n_types = v->n_tokens;
    v->spec.n_strips = v->n_tokens;
    v->spec.n_scores = v->unigram ? v->n_tokens : 0;
    v->spec.tokens = v->tokens;
    v->spec.types = v->types;
    v->spec.strips = v->strips;
    v->spec.scores = v->scores;
    v->spec.norms = v->norms;
    v->spec.splits = v->splits;
    return status;
}

void weft__tok_json_vocab_free(weft__tok_json_vocab **p)
{
    weft__tok_json_vocab *v = p ? *p : NULL;
    if (!v) return;
    for (size_t i = 0; i < v->n_made; i++) weft__free(v->made[i]);
    weft__free(v->made);
    weft__free(v->merges);
    weft__free(v->strips);
    weft__free(v->types);
    weft__free(v->scores);
    weft__free(v->tokens);
    weft__free(v->templates);
    weft__free(v->index_ids);
    weft__strings_free(&v->named);
    weft__strings_free(&v->index);
    weft__json_free(&v->map);
    weft__json_free(&v->added);
    weft__json_free(&v->beside);
    weft__json_free(&v->root);
    weft__free(v);
    *p = NULL;
}

const weft__tok_spec *weft__tok_json_vocab_spec(const weft__tok_json_vocab *v)
{
    return &v->spec;
}

static weft_status parse(weft__tok_slice file, const char *name, weft__json **out, weft_error *err)
{
    if (!file.data) return WEFT_OK;
    weft_status status = weft__json_parse(file.data, file.len, out, err);
    return status ? weft_fail_within(err, status, "%s", name) : WEFT_OK;
}

weft_status weft__tok_json_vocab_read(const weft__tok_json_files *files, weft__tok_json_vocab **out, weft_error *err)
{
    *out = NULL;
    weft__tok_json_vocab *v = weft__alloc_zero(1, sizeof *v);
    if (!v) return weft_fail(err, WEFT_NO_MEMORY, "tokenizer.json: out of memory");
    weft__tok_spec_init(&v->spec);
    v->err = err;
    weft_status status = parse(files->tokenizer, "tokenizer.json", &v->root, err);
    if (!status) status = parse(files->config, "tokenizer_config.json", &v->beside, err);
    /* What older versions wrote in files of their own counts where the configuration does not list the tokens
     * itself. */
    const int lists = weft__json_get(v->beside, "added_tokens_decoder") != NULL;
    if (!status && !lists) status = parse(files->added, "added_tokens.json", &v->added, err);
    if (!status && !lists) status = parse(files->map, "special_tokens_map.json", &v->map, err);
    if (!status) status = json_read_all(v, v->root, v->beside);
    v->err = NULL;
    if (status) weft__tok_json_vocab_free(&v);
    *out = v;
    return status;
}
