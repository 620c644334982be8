// SPDX-License-Identifier: Apache-2.0
/* grammar.c: weft.h's grammars and matchers over those of room text. A grammar is shared by threads; a matcher belongs
 * to one. */
#include "base/alloc.h"
#include "engine/handles.h"
#include "sample/mask.h"
#include "text/grammar/run.h"
#include "text/grammar/matcher.h"

struct weft_matcher {
    weft__gram_matcher *m;
    int32_t n_tokens;
    uint64_t *bits; /* [(n_tokens + 63) / 64] */
};

/* weft_grammar is weft__gram_tables under its public name; owners may hold it const, for only its count changes. */
static weft__gram_tables *inner(const weft_grammar *g)
{
    return (weft__gram_tables *)(uintptr_t)g;
}

/* The tokenizer's trie, made when first asked for; whoever comes second drops his own. */
static weft_status trie_of(const weft_tokenizer *tokenizer, weft__gram_trie **out, weft_error *err)
{
    weft_tokenizer *t = (weft_tokenizer *)(uintptr_t)tokenizer;
    weft__gram_trie *trie = atomic_load(&t->trie), *made = NULL;
    if (!trie) {
        weft_status st = weft__gram_trie_create(t->t, &made, err);
        if (st) return st;
        if (atomic_compare_exchange_strong(&t->trie, &trie, made)) trie = made;
        else weft__gram_trie_release(&made);
    }
    *out = trie;
    return WEFT_OK;
}

/* What `rules`, which it takes over, says of `root`. `own`: it is one of ours, which need not be probed. */
static weft_status tables_of(const weft_tokenizer *tokenizer, weft__gram *rules, int32_t root, uint32_t depth, int own,
                             weft_grammar **out, weft_error *err)
{
    weft__gram_automaton *a = NULL;
    weft__gram_trie *trie = NULL;
    weft__gram_tables *g = NULL;
    weft_status st = weft__gram_compile(rules, root, depth, &a, err);
    weft__gram_destroy(&rules);
    if (!st && !own) st = weft__gram_probe(a, err);
    if (!st) st = trie_of(tokenizer, &trie, err);
    if (st) weft__gram_automaton_destroy(&a);
    else st = weft__gram_tables_create(a, trie, &g, err);
    *out = (weft_grammar *)g;
    return st;
}

weft_status weft_grammar_new(const weft_tokenizer *tokenizer, uint32_t kind, const char *source, size_t length,
                             weft_grammar **out, weft_error *err)
{
    static const struct {
        const char *name;
        int32_t (*read)(weft__gram *g, const char *source, size_t n);
        int32_t (*build)(weft__gram *g);
    } kinds[] = {
        [WEFT_GRAMMAR_GBNF] = {"GBNF", weft__gram_read_gbnf, NULL},
        [WEFT_GRAMMAR_JSON] = {"JSON", NULL, weft__gram_json_object},
        [WEFT_GRAMMAR_JSON_VALUE] = {"JSON", NULL, weft__gram_json_value},
        [WEFT_GRAMMAR_REGEX] = {"a regular expression", weft__gram_read_regex, NULL},
        [WEFT_GRAMMAR_CHOICES] = {"choices", weft__gram_read_choices, NULL},
        [WEFT_GRAMMAR_LARK] = {"EBNF", weft__gram_read_lark, NULL},
    };
    *out = NULL;
    if (kind >= sizeof kinds / sizeof *kinds) return weft_fail(err, WEFT_ARGUMENT, "grammar: unknown kind %u", kind);
    const int json = kinds[kind].build != NULL;
    if (!json && !source) return weft_fail(err, WEFT_ARGUMENT, "grammar: %s without a text", kinds[kind].name);
    weft__gram *rules = weft__gram_create();
    if (!rules) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t root = json ? kinds[kind].build(rules) : kinds[kind].read(rules, source, length);
    return tables_of(tokenizer, rules, root, json ? WEFT__GRAM_JSON_DEPTH - 1 : WEFT__GRAM_DEPTH, json, out, err);
}

weft_status weft_grammar_from_schema(const weft_tokenizer *tokenizer, const char *source, size_t length,
                                     weft_grammar **out, weft_error *err)
{
    *out = NULL;
    if (!source) return weft_fail(err, WEFT_ARGUMENT, "schema: no text");
    weft__gram *rules = weft__gram_create();
    if (!rules) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t root = weft__gram_read_schema(rules, source, length);
    return tables_of(tokenizer, rules, root, WEFT__GRAM_JSON_DEPTH - 1, 0, out, err);
}

weft_grammar *weft_grammar_retain(const weft_grammar *g)
{
    return (weft_grammar *)weft__gram_tables_retain(inner(g));
}

void weft_grammar_free(weft_grammar **p)
{
    weft__gram_tables *g = p ? inner(*p) : NULL;
    weft__gram_tables_release(&g);
    if (p) *p = NULL;
}

/* Takes over inner matcher m, which may be NULL after a failure `st`. */
static weft_status wrap(weft_status st, weft__gram_matcher *m, int32_t n_tokens, weft_matcher **out, weft_error *err)
{
    *out = NULL;
    if (st) return st;
    weft_matcher *w = weft__alloc_zero(1, sizeof *w);
    if (w) {
        *w = (weft_matcher){m, n_tokens, weft__alloc_array(((size_t)n_tokens + 63) / 64, sizeof *w->bits)};
        *out = w;
        if (w->bits) return WEFT_OK;
        weft_matcher_free(out);
    } else {
        weft__gram_matcher_destroy(&m);
    }
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a text in a grammar");
}

weft_status weft_matcher_new(const weft_grammar *g, weft_matcher **out, weft_error *err)
{
    weft__gram_matcher *m = NULL;
    weft_status st = weft__gram_matcher_create(inner(g), &m, err);
    return wrap(st, m, weft__gram_tables_n_tokens(inner(g)), out, err);
}

weft_status weft_matcher_copy(const weft_matcher *from, weft_matcher **out, weft_error *err)
{
    weft__gram_matcher *m = NULL;
    weft_status st = weft__gram_matcher_copy(from->m, &m, err);
    return wrap(st, m, from->n_tokens, out, err);
}

void weft_matcher_free(weft_matcher **p)
{
    weft_matcher *w = p ? *p : NULL;
    if (!w) return;
    weft__free(w->bits);
    weft__gram_matcher_destroy(&w->m);
    weft__free(w);
    *p = NULL;
}

weft_status weft_matcher_mask(weft_matcher *w, uint64_t *bits, size_t n_words, weft_error *err)
{
    size_t need = ((size_t)w->n_tokens + 63) / 64;
    if (n_words != need)
        return weft_fail(err, WEFT_ARGUMENT, "a mask of %zu words; %d tokens take %zu", n_words, w->n_tokens, need);
    return weft__gram_matcher_mask(w->m, bits, err);
}

weft_status weft_matcher_apply(weft_matcher *w, float *logits, int32_t n, weft_error *err)
{
    weft_status st = weft__gram_matcher_mask(w->m, w->bits, err);
    if (!st) weft__sample_mask_apply(w->bits, w->n_tokens, logits, n);
    return st;
}

weft_status weft_matcher_accept(weft_matcher *w, int32_t token, weft_error *err)
{
    return weft__gram_matcher_accept(w->m, token, err);
}

int weft_matcher_complete(const weft_matcher *w)
{
    return weft__gram_matcher_complete(w->m);
}
