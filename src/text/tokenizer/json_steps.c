// SPDX-License-Identifier: Apache-2.0
/* json_steps.c: tokenizer.json's normalizers, pre-tokenizers, post-processors and decoders, as the steps and options
 * that tokenizer.h knows. Whatever has no equal there is refused by name. */
#include <string.h>

#include "base/alloc.h"
#include "text/tokenizer/json_parts.h"
#include "text/tokenizer/parts.h"

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static weft_status too_deep(weft__tok_json_vocab *v)
{
    return weft_fail(v->err, WEFT_LIMIT, "tokenizer.json: sequences nest more than %d deep", WEFT__TOK_JSON_NESTED);
}

/* Runs `read` on each element of object[key]. */
static weft_status each(weft__tok_json_vocab *v, const weft__json *object, const char *key, int depth,
                        weft_status (*read)(weft__tok_json_vocab *, const weft__json *, int))
{
    const weft__json *list = weft__json_get(object, key);
    if (depth >= WEFT__TOK_JSON_NESTED) return too_deep(v);
    if (weft__json_kind_of(list) != WEFT__JSON_ARRAY) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: a Sequence has no %s", key);
    }
    for (size_t i = 0; i < weft__json_size(list); i++) {
        weft_status status = read(v, weft__json_at(list, i), depth + 1);
        if (status) return status;
    }
    return WEFT_OK;
}

/* {"String": "..."} or {"Regex": "..."}. */
static weft_status read_pattern(weft__tok_json_vocab *v, const weft__json *object, const char *what,
                                weft__tok_slice *text, int *regex)
{
    const weft__json *pattern = weft__json_get(object, "pattern");
    *regex = 1;
    if (weft__json_string(weft__json_get(pattern, "Regex"), &text->data, &text->len)) return WEFT_OK;
    *regex = 0;
    if (weft__json_string(weft__json_get(pattern, "String"), &text->data, &text->len)) return WEFT_OK;
    return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: %s has no pattern that is a String or a Regex", what);
}

/* ---- normalizers ---- */

static weft_status add_norm(weft__tok_json_vocab *v, weft__tok_norm_step step)
{
    if (v->spec.n_norms == WEFT__TOK_JSON_STEPS) {
        return weft_fail(v->err, WEFT_LIMIT, "tokenizer.json: more than %d normalizers", WEFT__TOK_JSON_STEPS);
    }
    v->norms[v->spec.n_norms++] = step;
    return WEFT_OK;
}

static weft_status add_norm_kind(weft__tok_json_vocab *v, weft__tok_norm_kind kind)
{
    return add_norm(v, (weft__tok_norm_step){.kind = kind});
}

static weft_status read_replace(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_norm_step step = {.kind = WEFT__TOK_NORM_REPLACE};
    int regex;
    weft_status status = read_pattern(v, object, "a Replace normalizer", &step.a, &regex);
    if (!status)
        status = weft__tok_json_text(v, weft__json_get(object, "content"), "a Replace normalizer's content", &step.b);
    if (regex) step.kind = WEFT__TOK_NORM_REPLACE_REGEX;
    return status ? status : add_norm(v, step);
}

static weft_status read_bert_normalizer(weft__tok_json_vocab *v, const weft__json *object)
{
    int clean, chinese, lower, accents;
    weft_status status = weft__tok_json_flag(v, object, "clean_text", 1, &clean);
    if (!status) status = weft__tok_json_flag(v, object, "handle_chinese_chars", 1, &chinese);
    if (!status) status = weft__tok_json_flag(v, object, "lowercase", 1, &lower);
    if (!status) status = weft__tok_json_flag(v, object, "strip_accents", lower, &accents);
    if (!status && clean) status = add_norm_kind(v, WEFT__TOK_NORM_CLEAN);
    if (!status && chinese) status = add_norm_kind(v, WEFT__TOK_NORM_SPACE_CJK);
    if (!status && accents) status = add_norm_kind(v, WEFT__TOK_NORM_NFD);
    if (!status && accents) status = add_norm_kind(v, WEFT__TOK_NORM_STRIP_ACCENTS);
    if (!status && lower) status = add_norm_kind(v, WEFT__TOK_NORM_LOWERCASE);
    return status;
}

static int base64_value(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

static weft_status read_charsmap(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice text;
    weft__strbuf bytes = {0};
    weft_status status =
        weft__tok_json_text(v, weft__json_get(object, "precompiled_charsmap"), "precompiled_charsmap", &text);
    if (status) return status;
    uint32_t bits = 0;
    while (text.len && text.data[text.len - 1] == '=') text.len--;
    for (size_t i = 0; i < text.len; i++) {
        int value = base64_value(text.data[i]);
        if (value < 0) {
            weft__strbuf_free(&bytes);
            return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: precompiled_charsmap is no base64");
        }
        bits = bits << 6 | (uint32_t)value;
        if (i % 4) weft__strbuf_putc(&bytes, (char)(bits >> (6 - 2 * (i % 4))));
    }
    weft__tok_slice kept =
        bytes.failed ? (weft__tok_slice){NULL, 0} : weft__tok_json_keep(v, bytes.data ? bytes.data : "", bytes.len);
    weft__strbuf_free(&bytes);
    if (!kept.data) return weft_fail(v->err, WEFT_NO_MEMORY, "tokenizer.json: out of memory");
    if (!kept.len) return WEFT_OK; /* an empty map changes nothing */
    return add_norm(v, (weft__tok_norm_step){.kind = WEFT__TOK_NORM_CHARSMAP, .a = kept});
}

static weft_status read_strip(weft__tok_json_vocab *v, const weft__json *object)
{
    int left = 0, right = 0;
    weft_status status = weft__tok_json_flag(v, object, "strip_left", 1, &left);
    if (!status) status = weft__tok_json_flag(v, object, "strip_right", 1, &right);
    unsigned flags = (left ? WEFT__TOK_STRIP_LEFT : 0u) | (right ? WEFT__TOK_STRIP_RIGHT : 0u);
    return status ? status : add_norm(v, (weft__tok_norm_step){.kind = WEFT__TOK_NORM_STRIP, .flags = flags});
}

weft_status weft__tok_json_normalizer(weft__tok_json_vocab *v, const weft__json *object, int depth)
{
    static const struct {
        const char *type;
        weft__tok_norm_kind kind;
    } plain[] = {{"NFC", WEFT__TOK_NORM_NFC},
                 {"NFD", WEFT__TOK_NORM_NFD},
                 {"NFKC", WEFT__TOK_NORM_NFKC},
                 {"NFKD", WEFT__TOK_NORM_NFKD},
                 {"Lowercase", WEFT__TOK_NORM_LOWERCASE},
                 {"StripAccents", WEFT__TOK_NORM_STRIP_ACCENTS}};
    weft__tok_slice type;
    if (!object || weft__json_is_null(object)) return WEFT_OK;
    weft_status status = weft__tok_json_type(v, object, "a normalizer", &type);
    if (status) return status;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (weft__tok_slice_is(type, plain[i].type)) return add_norm_kind(v, plain[i].kind);
    }
    if (weft__tok_slice_is(type, "Sequence")) return each(v, object, "normalizers", depth, weft__tok_json_normalizer);
    if (weft__tok_slice_is(type, "Replace")) return read_replace(v, object);
    if (weft__tok_slice_is(type, "BertNormalizer")) return read_bert_normalizer(v, object);
    if (weft__tok_slice_is(type, "Precompiled")) return read_charsmap(v, object);
    if (weft__tok_slice_is(type, "Strip")) return read_strip(v, object);
    if (!weft__tok_slice_is(type, "Prepend")) return weft__tok_json_refuse(v, "the normalizer", type);
    weft__tok_norm_step step = {.kind = WEFT__TOK_NORM_PREPEND};
    status = weft__tok_json_text(v, weft__json_get(object, "prepend"), "a Prepend normalizer's prepend", &step.a);
    return status ? status : add_norm(v, step);
}

/* ---- pre-tokenizers ---- */

static weft_status add_split(weft__tok_json_vocab *v, weft__tok_split_step step)
{
    if (v->spec.n_splits == WEFT__TOK_JSON_STEPS) {
        return weft_fail(v->err, WEFT_LIMIT, "tokenizer.json: more than %d pre-tokenizers", WEFT__TOK_JSON_STEPS);
    }
    v->splits[v->spec.n_splits++] = step;
    return WEFT_OK;
}

static weft_status add_split_kind(weft__tok_json_vocab *v, weft__tok_split_kind kind, weft__tok_slice pattern,
                                  int invert)
{
    return add_split(v, (weft__tok_split_step){kind, pattern, invert, {NULL, 0}, 0});
}

static weft_status read_behavior(weft__tok_json_vocab *v, const weft__json *object, const char *missing,
                                 weft__tok_split_kind *kind)
{
    static const struct {
        const char *name;
        weft__tok_split_kind kind;
    } behaviors[] = {{"Isolated", WEFT__TOK_SPLIT_ISOLATE},
                     {"Removed", WEFT__TOK_SPLIT_REMOVE},
                     {"MergedWithPrevious", WEFT__TOK_SPLIT_MERGE_PREV},
                     {"MergedWithNext", WEFT__TOK_SPLIT_MERGE_NEXT},
                     {"Contiguous", WEFT__TOK_SPLIT_CONTIGUOUS}};
    weft__tok_slice name = {missing, missing ? strlen(missing) : 0};
    const weft__json *value = weft__json_get(object, "behavior");
    if (value || !missing) {
        weft_status status = weft__tok_json_text(v, value, "a pre-tokenizer's behavior", &name);
        if (status) return status;
    }
    for (size_t i = 0; i < sizeof behaviors / sizeof *behaviors; i++) {
        if (!weft__tok_slice_is(name, behaviors[i].name)) continue;
        *kind = behaviors[i].kind;
        return WEFT_OK;
    }
    return weft__tok_json_refuse(v, "the behavior", name);
}

/* A pattern that matches the text literally. */
static weft_status quote_pattern(weft__tok_json_vocab *v, weft__tok_slice *text)
{
    weft__strbuf quoted = {0};
    for (size_t i = 0; i < text->len; i++) {
        if (text->data[i] > ' ' && strchr("\\^$.|?*+()[]{}#-&", text->data[i])) weft__strbuf_putc(&quoted, '\\');
        weft__strbuf_putc(&quoted, text->data[i]);
    }
    *text =
        quoted.failed ? (weft__tok_slice){NULL, 0} : weft__tok_json_keep(v, quoted.data ? quoted.data : "", quoted.len);
    weft__strbuf_free(&quoted);
    return text->data ? WEFT_OK : weft_fail(v->err, WEFT_NO_MEMORY, "tokenizer.json: out of memory");
}

static weft_status read_split(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice pattern;
    weft__tok_split_kind kind;
    int regex, invert;
    weft_status status = read_pattern(v, object, "a Split pre-tokenizer", &pattern, &regex);
    if (!status) status = read_behavior(v, object, NULL, &kind);
    if (!status) status = weft__tok_json_flag(v, object, "invert", 0, &invert);
    if (!status && !regex) status = quote_pattern(v, &pattern);
    return status ? status : add_split_kind(v, kind, pattern, invert);
}

static weft_status read_byte_level(weft__tok_json_vocab *v, const weft__json *object)
{
    int prefix, use_regex;
    weft_status status = weft__tok_json_flag(v, object, "add_prefix_space", 1, &prefix);
    if (!status) status = weft__tok_json_flag(v, object, "use_regex", 1, &use_regex);
    if (!status && prefix) {
        v->spec.strip_leading = 0; /* its decoder keeps the space */
        status = add_split(v, (weft__tok_split_step){WEFT__TOK_SPLIT_REWRITE, {NULL, 0}, 0, WEFT__TOK_SLICE(" "), 0});
    }
    if (!status && use_regex) status = add_split_kind(v, WEFT__TOK_SPLIT_ISOLATE, WEFT__TOK_SLICE(GPT2), 0);
    v->spec.byte_level = 1;
    return status;
}

/* Where Metaspace puts its mark: "always", "first" or "never"; old files say add_prefix_space. */
static weft_status read_scheme(weft__tok_json_vocab *v, const weft__json *object, weft__tok_slice *scheme)
{
    const weft__json *value = weft__json_get(object, "prepend_scheme");
    int add;
    weft_status status = weft__tok_json_flag(v, object, "add_prefix_space", 1, &add);
    *scheme = add ? WEFT__TOK_SLICE("always") : WEFT__TOK_SLICE("never");
    if (!status && value) status = weft__tok_json_text(v, value, "Metaspace's prepend_scheme", scheme);
    if (status) return status;
    if (weft__tok_slice_is(*scheme, "always") || weft__tok_slice_is(*scheme, "first") ||
        weft__tok_slice_is(*scheme, "never"))
        return WEFT_OK;
    return weft__tok_json_refuse(v, "the prepend_scheme", *scheme);
}

static weft_status check_replacement(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice mark;
    weft_status status =
        weft__tok_json_text(v, weft__json_get(object, "replacement"), "Metaspace's replacement", &mark);
    if (status || weft__tok_slice_is(mark, WEFT__TOK_LOWER_BLOCK)) return status;
    return weft__tok_json_refuse(v, "Metaspace's replacement", mark);
}

static weft_status read_metaspace(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice mark = WEFT__TOK_SLICE(WEFT__TOK_LOWER_BLOCK), scheme;
    int split;
    weft_status status = check_replacement(v, object);
    if (!status) status = read_scheme(v, object, &scheme);
    if (!status) status = weft__tok_json_flag(v, object, "split", 1, &split);
    if (status) return status;
    weft__tok_slice prefix = weft__tok_slice_is(scheme, "never") ? (weft__tok_slice){NULL, 0} : mark;
    status = add_split(
        v, (weft__tok_split_step){WEFT__TOK_SPLIT_REWRITE, mark, 0, prefix, weft__tok_slice_is(scheme, "first")});
    if (!status && split) status = add_split_kind(v, WEFT__TOK_SPLIT_MERGE_NEXT, mark, 0);
    return status;
}

static weft_status read_digits(weft__tok_json_vocab *v, const weft__json *object)
{
    int individual;
    weft_status status = weft__tok_json_flag(v, object, "individual_digits", 0, &individual);
    if (status) return status;
    return add_split_kind(v, individual ? WEFT__TOK_SPLIT_ISOLATE : WEFT__TOK_SPLIT_CONTIGUOUS,
                          WEFT__TOK_SLICE("\\p{N}"), 0);
}

static weft_status read_punctuation(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_split_kind kind;
    weft_status status = read_behavior(v, object, "Isolated", &kind);
    return status ? status : add_split_kind(v, kind, WEFT__TOK_SLICE(WEFT__TOK_PUNCTUATION), 0);
}

static weft_status read_delimiter(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice delimiter;
    weft_status status =
        weft__tok_json_text(v, weft__json_get(object, "delimiter"), "the delimiter of CharDelimiterSplit", &delimiter);
    if (!status) status = quote_pattern(v, &delimiter);
    return status ? status : add_split_kind(v, WEFT__TOK_SPLIT_REMOVE, delimiter, 0);
}

static weft_status read_bert_pre_tokenizer(weft__tok_json_vocab *v)
{
    weft_status status = add_split_kind(v, WEFT__TOK_SPLIT_REMOVE, WEFT__TOK_SLICE("\\s+"), 0);
    return status ? status : add_split_kind(v, WEFT__TOK_SPLIT_ISOLATE, WEFT__TOK_SLICE(WEFT__TOK_PUNCTUATION), 0);
}

weft_status weft__tok_json_pre_tokenizer(weft__tok_json_vocab *v, const weft__json *object, int depth)
{
    weft__tok_slice type;
    if (!object || weft__json_is_null(object)) return WEFT_OK;
    weft_status status = weft__tok_json_type(v, object, "a pre-tokenizer", &type);
    if (status) return status;
    if (weft__tok_slice_is(type, "Sequence"))
        return each(v, object, "pretokenizers", depth, weft__tok_json_pre_tokenizer);
    if (weft__tok_slice_is(type, "ByteLevel") && v->spec.byte_level)
        return weft__tok_json_refuse(v, "a second pre-tokenizer", type);
    if (v->spec.byte_level && !v->spec.spelled) { /* what stands behind ByteLevel sees its alphabet */
        v->spec.spelled = 1;
        status = add_split_kind(v, WEFT__TOK_SPLIT_ALPHABET, (weft__tok_slice){NULL, 0}, 0);
        if (status) return status;
    }
    if (weft__tok_slice_is(type, "ByteLevel")) return read_byte_level(v, object);
    if (weft__tok_slice_is(type, "Split")) return read_split(v, object);
    if (weft__tok_slice_is(type, "Metaspace")) return read_metaspace(v, object);
    if (weft__tok_slice_is(type, "Digits")) return read_digits(v, object);
    if (weft__tok_slice_is(type, "Punctuation")) return read_punctuation(v, object);
    if (weft__tok_slice_is(type, "BertPreTokenizer")) return read_bert_pre_tokenizer(v);
    if (weft__tok_slice_is(type, "CharDelimiterSplit")) return read_delimiter(v, object);
    if (weft__tok_slice_is(type, "WhitespaceSplit"))
        return add_split_kind(v, WEFT__TOK_SPLIT_REMOVE, WEFT__TOK_SLICE("\\s+"), 0);
    if (weft__tok_slice_is(type, "Whitespace")) {
        return add_split_kind(v, WEFT__TOK_SPLIT_REMOVE, WEFT__TOK_SLICE("\\w+|[^\\w\\s]+"), 1);
    }
    return weft__tok_json_refuse(v, "the pre-tokenizer", type);
}

/* ---- post-processors ---- */

/* One token before the text, or one behind it. */
static weft_status add_around(weft__tok_json_vocab *v, int behind, int64_t id)
{
    int32_t *slot = behind ? &v->spec.last : &v->spec.first;
    if (id < 0 || (size_t)id >= v->n_tokens) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: the post-processor's id %lld is not in the vocabulary",
                         (long long)id);
    }
    if (*slot >= 0) {
        return weft_fail(v->err, WEFT_UNSUPPORTED,
                         "tokenizer.json: a post-processor with two tokens %s the text is not supported",
                         behind ? "behind" : "before");
    }
    *slot = (int32_t)id;
    if (behind) {
        v->spec.add_eos = 1;
    } else {
        v->spec.add_bos = 1;
    }
    return WEFT_OK;
}

static weft_status read_template(weft__tok_json_vocab *v, const weft__json *object)
{
    const weft__json *single = weft__json_get(object, "single"), *table = weft__json_get(object, "special_tokens");
    int behind = 0;
    if (weft__json_kind_of(single) != WEFT__JSON_ARRAY) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: TemplateProcessing has no single template");
    }
    for (size_t i = 0; i < weft__json_size(single); i++) {
        const weft__json *part = weft__json_at(single, i), *special = weft__json_get(part, "SpecialToken");
        if (weft__json_get(part, "Sequence")) {
            behind = 1;
            continue;
        }
        const char *name = NULL;
        size_t n;
        int64_t id;
        weft__json_string(weft__json_get(special, "id"), &name, &n);
        const weft__json *ids = weft__json_get(name ? weft__json_get(table, name) : NULL, "ids");
        if (weft__json_size(ids) != 1 || !weft__json_int(weft__json_at(ids, 0), &id)) {
            return weft_fail(v->err, WEFT_FORMAT,
                             "tokenizer.json: part %zu of TemplateProcessing is no special token of one id", i);
        }
        weft_status status = add_around(v, behind, id);
        if (status) return status;
    }
    return WEFT_OK;
}

/* {"sep": ["[SEP]", 102], "cls": ["[CLS]", 101]} */
static weft_status read_cls_sep(weft__tok_json_vocab *v, const weft__json *object)
{
    int64_t cls, sep;
    if (!weft__json_int(weft__json_at(weft__json_get(object, "cls"), 1), &cls) ||
        !weft__json_int(weft__json_at(weft__json_get(object, "sep"), 1), &sep)) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: the post-processor has no cls and sep");
    }
    weft_status status = add_around(v, 0, cls);
    return status ? status : add_around(v, 1, sep);
}

weft_status weft__tok_json_post_processor(weft__tok_json_vocab *v, const weft__json *object, int depth)
{
    weft__tok_slice type;
    if (!object || weft__json_is_null(object)) return WEFT_OK;
    weft_status status = weft__tok_json_type(v, object, "a post-processor", &type);
    if (status) return status;
    if (weft__tok_slice_is(type, "ByteLevel")) return WEFT_OK; /* it only moves offsets */
    if (weft__tok_slice_is(type, "TemplateProcessing")) return read_template(v, object);
    if (weft__tok_slice_is(type, "BertProcessing") || weft__tok_slice_is(type, "RobertaProcessing"))
        return read_cls_sep(v, object);
    if (weft__tok_slice_is(type, "Sequence"))
        return each(v, object, "processors", depth, weft__tok_json_post_processor);
    return weft__tok_json_refuse(v, "the post-processor", type);
}

/* ---- decoders: what they say beyond the model is whether a leading space goes ---- */

static weft_status read_replace_decoder(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice from, to;
    int regex;
    weft_status status = read_pattern(v, object, "a Replace decoder", &from, &regex);
    if (!status) status = weft__tok_json_text(v, weft__json_get(object, "content"), "a Replace decoder's content", &to);
    if (status) return status;
    if (!regex && weft__tok_slice_is(from, WEFT__TOK_LOWER_BLOCK) && weft__tok_slice_is(to, " ")) return WEFT_OK;
    return weft__tok_json_refuse(v, "the decoder that replaces", from);
}

static weft_status read_strip_decoder(weft__tok_json_vocab *v, const weft__json *object)
{
    weft__tok_slice content;
    int64_t start, stop;
    weft_status status =
        weft__tok_json_text(v, weft__json_get(object, "content"), "a Strip decoder's content", &content);
    if (status) return status;
    if (!weft__json_int(weft__json_get(object, "start"), &start) ||
        !weft__json_int(weft__json_get(object, "stop"), &stop)) {
        return weft_fail(v->err, WEFT_FORMAT, "tokenizer.json: a Strip decoder has no start and stop");
    }
    if (!weft__tok_slice_is(content, " ") || start > 1 || stop != 0)
        return weft__tok_json_refuse(v, "the decoder that strips", content);
    if (start == 1) v->spec.strip_leading = 1;
    return WEFT_OK;
}

weft_status weft__tok_json_decoder(weft__tok_json_vocab *v, const weft__json *object, int depth)
{
    weft__tok_slice type, scheme;
    if (!object || weft__json_is_null(object)) return WEFT_OK;
    weft_status status = weft__tok_json_type(v, object, "a decoder", &type);
    if (status) return status;
    if (weft__tok_slice_is(type, "Sequence")) return each(v, object, "decoders", depth, weft__tok_json_decoder);
    if (weft__tok_slice_is(type, "Replace")) return read_replace_decoder(v, object);
    if (weft__tok_slice_is(type, "Strip")) return read_strip_decoder(v, object);
    if (weft__tok_slice_is(type, "Metaspace")) {
        status = check_replacement(v, object);
        if (!status) status = read_scheme(v, object, &scheme);
        if (!status) v->spec.strip_leading = !weft__tok_slice_is(scheme, "never");
        return status;
    }
    if (weft__tok_slice_is(type, "ByteLevel") || weft__tok_slice_is(type, "ByteFallback") ||
        weft__tok_slice_is(type, "Fuse") || (weft__tok_slice_is(type, "WordPiece") && v->word_piece)) {
        return WEFT_OK;
    }
    return weft__tok_json_refuse(v, "the decoder", type);
}
