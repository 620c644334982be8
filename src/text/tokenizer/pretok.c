// SPDX-License-Identifier: Apache-2.0
/* pretok.c: the normalization and splitting that a model's name and tokenizer.ggml.pre stand for.
 *
 * Sources: the tokenizer.json files of the models, as collected in llama.cpp's conversion table; each list is applied
 * in order, every pattern within the pieces that the ones before left. Owns nothing but what it puts into the
 * tokenizer. */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "text/tokenizer/parts.h"

#define MAX_PATTERNS 6

/* How a family of BPE models differs from the rest. */
enum { WHOLE_FIRST = 1, /* a piece that is a token is not merged (ignore_merges) */ ADD_BOS = 2 };

typedef struct recipe {
    unsigned flags;
    const char *patterns[MAX_PATTERNS];
} recipe;

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
/* Words with one leading character, then how numbers and the rest go. */
#define TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LETTERS "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(suffix)                                                                                                  \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" suffix "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" suffix
#define SLASH_TAIL "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define HAN_KANA "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
#define DEEPSEEK_HAN "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define DEEPSEEK3                                                                                                      \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"                \
    "| ?[\\p{P}\\p{S}]+[\\r\\n]*"                                                                                      \
    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* The letters with case that deepseek-llm's pattern lists one by one. */
#define CASED_LETTERS                                                                                                  \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}"   \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}"     \
    "\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}"       \
    "\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{"    \
    "1D9A}"                                                                                                            \
    "\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{"     \
    "1F5B}"                                                                                                            \
    "\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{"     \
    "1FCC}"                                                                                                            \
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{"     \
    "2107}"                                                                                                            \
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}" \
    "\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}" \
    "\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{"     \
    "A787}"                                                                                                            \
    "\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{"    \
    "FF5A}"                                                                                                            \
    "\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"        \
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"

static const recipe plain = {0, {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}};
static const recipe gpt2 = {0, {GPT2}};
static const recipe digits = {0, {"\\p{N}", GPT2}};
static const recipe llama3 = {WHOLE_FIRST | ADD_BOS, {CONTRACTIONS "|" LETTERS "|\\p{N}{1,3}" TAIL}};
static const recipe threes = {0, {CONTRACTIONS "|" LETTERS "|\\p{N}{1,3}" TAIL}};
static const recipe qwen2 = {0, {CONTRACTIONS "|" LETTERS "|\\p{N}" TAIL}};
static const recipe qwen35 = {0,
                              {CONTRACTIONS
                               "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
                               "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}};
static const recipe falcon = {0, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}};
static const recipe deepseek_coder = {0, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_HAN, "\\p{N}"}};
static const recipe deepseek_llm = {
    0,
    {"[\\r\\n]", "\\s?[" CASED_LETTERS "]+",
     "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+", "\\s+$", DEEPSEEK_HAN,
     "\\p{N}+"}};
static const recipe deepseek3 = {0, {"\\p{N}{1,3}", HAN_KANA, DEEPSEEK3}};
static const recipe tekken = {WHOLE_FIRST | ADD_BOS, {CASED("") "|\\p{N}" SLASH_TAIL}};
static const recipe gpt4o = {0, {CASED(CONTRACTIONS "?") "|\\p{N}{1,3}" SLASH_TAIL}};
static const recipe bloom = {0, {BLOOM}};
static const recipe viking = {0, {BLOOM, "\\p{N}"}};
static const recipe bailing = {
    0,
    {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*"
     "|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}};
static const recipe seed_coder = {
    0, {CONTRACTIONS "|" LETTERS "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}};
static const recipe kimi = {
    0,
    {"\\p{Han}+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}"
     "\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
     "" CONTRACTIONS "?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+"
     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*" CONTRACTIONS "?|\\p{N}{1,3}" TAIL}};

static const struct {
    const char *names; /* separated by spaces */
    const recipe *recipe;
} recipes[] = {
    {"default", &plain},
    {"gpt-2 phi-2 mpt olmo jais trillion jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe "
     "gigachat",
     &gpt2},
    {"a.x-4.0 mellum modern-bert exaone4 granite-docling", &gpt2},
    {"starcoder refact command-r smollm codeshell exaone minerva-7b mellum2", &digits},
    {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", &llama3},
    {"dbrx smaug-bpe glm4 chatglm-bpe", &threes},
    {"qwen2 deepseek-r1-qwen stablelm2 megrez hunyuan solar-open grok-2 kormo f2llmv2", &qwen2},
    {"qwen35", &qwen35},
    {"falcon", &falcon},
    {"deepseek-llm", &deepseek_llm},
    {"deepseek-coder", &deepseek_coder},
    {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", &deepseek3},
    {"tekken", &tekken},
    {"gpt-4o llama4 kanana2 talkie minimax-m2", &gpt4o},
    {"bloom gpt3-finnish poro-chat", &bloom},
    {"viking", &viking},
    {"bailingmoe bailingmoe2 llada-moe", &bailing},
    {"seed-coder", &seed_coder},
    {"kimi-k2", &kimi},
};

static weft_status pretok_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "tokenizer: out of memory");
}

/* 1 when name is one of the words of `names`. */
static int listed(const char *names, weft__tok_slice name)
{
    for (const char *at = names; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        if (n == name.len && !memcmp(at, name.data, n)) return 1;
        at += n;
    }
    return 0;
}

static const recipe *find_recipe(weft__tok_slice pre)
{
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        if (listed(recipes[i].names, pre)) return recipes[i].recipe;
    }
    return NULL;
}

/* ---- the way back: from explicit steps to a name ---- */

/* Writes the pattern with its \\x{...} as characters, so that spellings of one pattern compare equal. */
static void spell_out(weft__strbuf *out, const char *s, size_t n)
{
    out->len = 0;
    for (size_t i = 0; i < n;) {
        uint32_t cp = 0;
        size_t end = i + 3;
        if (n - i > 3 && !memcmp(s + i, "\\x{", 3)) {
            for (; end < n && cp < 0x110000 && s[end] != '}'; end++) {
                const char *hex = "0123456789abcdefABCDEF", *digit = strchr(hex, s[end]);
                if (!digit || !s[end]) break;
                cp = cp * 16 + (uint32_t)(digit - hex >= 16 ? digit - hex - 6 : digit - hex);
            }
        }
        if (end > i + 3 && end < n && s[end] == '}') {
            weft__strbuf_put_utf8(out, cp);
            i = end + 1;
        } else {
            weft__strbuf_putc(out, s[i++]);
        }
    }
}

static int same_pattern(const char *a, weft__tok_slice b)
{
    weft__strbuf x = {0}, y = {0};
    spell_out(&x, a, strlen(a));
    spell_out(&y, b.data, b.len);
    int same = !x.failed && !y.failed && x.len == y.len && !memcmp(x.data, y.data, x.len);
    weft__strbuf_free(&y);
    weft__strbuf_free(&x);
    return same;
}

static int splits_as(const recipe *r, const weft__tok_spec *spec)
{
    size_t n = 0;
    while (n < MAX_PATTERNS && r->patterns[n]) n++;
    if (spec->n_splits != n || ((r->flags & WHOLE_FIRST) != 0) != (spec->ignore_merges == 1)) return 0;
    for (size_t i = 0; i < n; i++) {
        const weft__tok_split_step *step = &spec->splits[i];
        if (step->kind != WEFT__TOK_SPLIT_ISOLATE || step->invert || !same_pattern(r->patterns[i], step->pattern))
            return 0;
    }
    return 1;
}

weft__tok_slice weft__tok_pretok_name(const weft__tok_spec *spec)
{
    for (size_t i = 0; i < spec->n_norms; i++) {
        if (spec->norms[i].kind != WEFT__TOK_NORM_NFC) return (weft__tok_slice){NULL, 0};
    }
    for (size_t i = 0; spec->byte_level && i < sizeof recipes / sizeof *recipes; i++) {
        if (splits_as(recipes[i].recipe, spec))
            return (weft__tok_slice){recipes[i].names, strcspn(recipes[i].names, " ")};
    }
    return (weft__tok_slice){NULL, 0};
}

int weft__tok_pretok_known(weft__tok_slice pre)
{
    return find_recipe(pre) != NULL;
}

static weft_status unknown_pre(weft__tok_slice pre, weft_error *err)
{
    char quote[WEFT__TOK_QUOTE];
    return weft_fail(err, WEFT_UNSUPPORTED,
                     "tokenizer: unknown pre-tokenizer '%s' (tokenizer.ggml.pre); known are, among others, "
                     "default, gpt-2, llama-bpe, qwen2, tekken, gpt-4o, deepseek-v3, smollm, command-r",
                     weft__tok_quote(quote, pre.data, pre.len));
}

/* ---- putting steps into the tokenizer ---- */

static int copy_slice(weft__tok_slice *s)
{
    char *copy = weft__strndup(s->data ? s->data : "", s->len);
    if (!copy) {
        *s = (weft__tok_slice){NULL, 0};
        return 0;
    }
    s->data = copy;
    return 1;
}

static weft_status check_charsmap(weft__tok_slice blob, weft_error *err)
{
    const unsigned char *p = (const unsigned char *)blob.data;
    uint32_t bytes =
        blob.len >= 4 ? (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24 : 0;
    if (blob.len < 4 || bytes % 4 || bytes > blob.len - 4) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: precompiled_charsmap of %zu bytes is damaged", blob.len);
    }
    return WEFT_OK;
}

/* Patterns are matched against characters, in which no text of a step may leave anything else. */
static weft_status check_utf8(weft__tok_slice a, weft__tok_slice b, weft_error *err)
{
    if ((!a.len || weft__utf8_valid(a.data, a.len)) && (!b.len || weft__utf8_valid(b.data, b.len))) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "tokenizer: a text of a step is not UTF-8");
}

static weft_status add_norm(weft__tok *tok, const weft__tok_norm_step *step, weft_error *err)
{
    const weft__tok_slice map = {NULL, 0};
    weft_status status = check_utf8(step->kind == WEFT__TOK_NORM_CHARSMAP ? map : step->a, step->b, err);
    if (status) return status;
    weft__tok_norm *norm = &tok->norms[tok->n_norms++];
    norm->step = *step;
    norm->step.b = (weft__tok_slice){NULL, 0};
    if (!copy_slice(&norm->step.a)) return pretok_no_memory(err);
    norm->step.b = step->b;
    if (!copy_slice(&norm->step.b)) return pretok_no_memory(err);
    if (step->kind == WEFT__TOK_NORM_CHARSMAP) return check_charsmap(step->a, err);
    if (step->kind == WEFT__TOK_NORM_REPLACE && !step->a.len) {
        return weft_fail(err, WEFT_FORMAT, "tokenizer: a normalizer replaces the empty string");
    }
    if (step->kind != WEFT__TOK_NORM_REPLACE_REGEX) return WEFT_OK;
    return weft__regex_compile(step->a.data, step->a.len, &norm->regex, err);
}

static weft_status add_split(weft__tok *tok, const weft__tok_split_step *step, weft_error *err)
{
    weft_status status = check_utf8(step->pattern, step->prefix, err);
    if (status) return status;
    weft__tok_split *split = &tok->splits[tok->n_splits++];
    split->step = *step;
    split->step.pattern = (weft__tok_slice){NULL, 0};
    if (!copy_slice(&split->step.prefix)) return pretok_no_memory(err);
    split->step.pattern = step->pattern;
    if (!copy_slice(&split->step.pattern)) return pretok_no_memory(err);
    if (step->kind == WEFT__TOK_SPLIT_ALPHABET || step->kind == WEFT__TOK_SPLIT_REWRITE) return WEFT_OK;
    return weft__regex_compile(step->pattern.data, step->pattern.len, &split->regex, err);
}

static weft_status add_all(weft__tok *tok, const weft__tok_norm_step *norms, size_t n_norms,
                           const weft__tok_split_step *splits, size_t n_splits, weft_error *err)
{
    tok->norms = weft__alloc_zero(n_norms, sizeof *tok->norms);
    tok->splits = weft__alloc_zero(n_splits, sizeof *tok->splits);
    if (!tok->norms || !tok->splits) return pretok_no_memory(err);
    for (size_t i = 0; i < n_norms; i++) {
        weft_status status = add_norm(tok, &norms[i], err);
        if (status) return weft_fail_within(err, status, "normalizer %zu", i);
    }
    for (size_t i = 0; i < n_splits; i++) {
        weft_status status = add_split(tok, &splits[i], err);
        if (status) return weft_fail_within(err, status, "pre-tokenizer %zu", i);
    }
    return WEFT_OK;
}

void weft__tok_steps_free(weft__tok *tok)
{
    for (size_t i = 0; i < tok->n_norms; i++) {
        weft__regex_free(&tok->norms[i].regex);
        weft__free((char *)tok->norms[i].step.a.data);
        weft__free((char *)tok->norms[i].step.b.data);
    }
    for (size_t i = 0; i < tok->n_splits; i++) {
        weft__regex_free(&tok->splits[i].regex);
        weft__free((char *)tok->splits[i].step.prefix.data);
        weft__free((char *)tok->splits[i].step.pattern.data);
    }
    weft__free(tok->norms);
    weft__free(tok->splits);
    tok->norms = NULL;
    tok->splits = NULL;
    tok->n_norms = tok->n_splits = 0;
}

/* ---- what the models stand for ---- */

static int choose(int given, int usual)
{
    return given < 0 ? usual : given != 0;
}

static const weft__tok_norm_step escape_spaces = {WEFT__TOK_NORM_REPLACE, {" ", 1}, {WEFT__TOK_LOWER_BLOCK, 3}, 0, 0};
static const weft__tok_norm_step prepend_space = {WEFT__TOK_NORM_PREPEND, {" ", 1}, {NULL, 0}, 0, 0};

static weft_status spm_steps(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    weft__tok_norm_step norms[2];
    size_t n = 0;
    tok->add_bos = choose(spec->add_bos, tok->role[WEFT__TOK_ROLE_BOS] >= 0);
    tok->add_eos = choose(spec->add_eos, 0);
    tok->strip_leading = choose(spec->add_space_prefix, 1);
    tok->byte_fallback = tok->fuse_unk = 1;
    if (tok->strip_leading) norms[n++] = prepend_space;
    norms[n++] = escape_spaces;
    return add_all(tok, norms, n, NULL, 0, err);
}

static weft_status bpe_steps(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    weft__tok_slice pre = spec->pre;
    if (!pre.len) {
        weft__log(WEFT__LOG_WARN,
                  "tokenizer: the file names no pre-tokenizer (tokenizer.ggml.pre); using 'default', which may "
                  "not be what the model was trained with");
        pre = WEFT__TOK_SLICE("default");
    }
    const recipe *r = find_recipe(pre);
    if (!r) return unknown_pre(pre, err);
    weft__tok_split_step splits[MAX_PATTERNS];
    size_t n = 0;
    for (; n < MAX_PATTERNS && r->patterns[n]; n++) {
        splits[n] =
            (weft__tok_split_step){WEFT__TOK_SPLIT_ISOLATE, {r->patterns[n], strlen(r->patterns[n])}, 0, {NULL, 0}, 0};
    }
    tok->add_bos = choose(spec->add_bos, (r->flags & ADD_BOS) != 0 && tok->role[WEFT__TOK_ROLE_BOS] >= 0);
    tok->add_eos = choose(spec->add_eos, 0);
    tok->ignore_merges = choose(spec->ignore_merges, (r->flags & WHOLE_FIRST) != 0);
    tok->byte_level = 1;
    return add_all(tok, NULL, 0, splits, n, err);
}

static weft_status wpm_steps(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    static const weft__tok_norm_step norms[] = {{WEFT__TOK_NORM_CLEAN},
                                                {WEFT__TOK_NORM_SPACE_CJK},
                                                {WEFT__TOK_NORM_NFD},
                                                {WEFT__TOK_NORM_STRIP_ACCENTS},
                                                {WEFT__TOK_NORM_LOWERCASE}};
    const weft__tok_split_step splits[] = {
        {WEFT__TOK_SPLIT_REMOVE, WEFT__TOK_SLICE("\\s+"), 0, {NULL, 0}, 0},
        {WEFT__TOK_SPLIT_ISOLATE, WEFT__TOK_SLICE(WEFT__TOK_PUNCTUATION), 0, {NULL, 0}, 0}};
    int cased = spec->lowercase == 0;
    tok->add_bos = choose(spec->add_bos, 1);
    tok->add_eos = choose(spec->add_eos, 1);
    tok->strip_leading = 1;
    return add_all(tok, norms, cased ? 2 : 5, splits, 2, err);
}

static weft_status unigram_steps(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    weft__tok_norm_step norms[4];
    size_t n = 0;
    tok->add_bos = choose(spec->add_bos, 0);
    tok->add_eos = choose(spec->add_eos, tok->role[WEFT__TOK_ROLE_EOS] >= 0);
    tok->strip_leading = choose(spec->add_space_prefix, 1);
    tok->fuse_unk = 1;
    if (spec->charsmap.len)
        norms[n++] = (weft__tok_norm_step){WEFT__TOK_NORM_CHARSMAP, spec->charsmap, {NULL, 0}, 0, 0};
    if (choose(spec->remove_extra_whitespaces, 0)) norms[n++] = (weft__tok_norm_step){.kind = WEFT__TOK_NORM_SQUEEZE};
    if (tok->strip_leading) norms[n++] = prepend_space;
    norms[n++] = escape_spaces;
    return add_all(tok, norms, n, NULL, 0, err);
}

weft_status weft__tok_steps_build(weft__tok *tok, const weft__tok_spec *spec, weft_error *err)
{
    tok->max_word_chars = spec->max_word_chars;
    if (spec->explicit_steps) {
        tok->add_bos = choose(spec->add_bos, 0);
        tok->add_eos = choose(spec->add_eos, 0);
        tok->ignore_merges = choose(spec->ignore_merges, 0);
        tok->byte_level = spec->byte_level;
        tok->spelled = spec->spelled;
        tok->byte_fallback = spec->byte_fallback;
        tok->fuse_unk = spec->fuse_unk;
        tok->strip_leading = spec->strip_leading;
        return add_all(tok, spec->norms, spec->n_norms, spec->splits, spec->n_splits, err);
    }
    switch (tok->model) {
    case WEFT__TOK_MODEL_SPM: return spm_steps(tok, spec, err);
    case WEFT__TOK_MODEL_BPE: return bpe_steps(tok, spec, err);
    case WEFT__TOK_MODEL_WPM: return wpm_steps(tok, spec, err);
    default: return unigram_steps(tok, spec, err);
    }
}
