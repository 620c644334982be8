// SPDX-License-Identifier: Apache-2.0
/* grammar.c: weft.h's grammars and matchers over those of room text. A grammar is shared by threads; a matcher belongs
 * to one. */
#include <string.h>

#include "base/alloc.h"
#include "engine/grammar.h"
#include "engine/handles.h"
#include "sample/mask.h"
#include "text/grammar/run.h"
#include "text/grammar/thinking.h"
#include "text/grammar/matcher.h"

struct weft_grammar {
    atomic_size_t refs;
    weft__gram_tables *tables; /* NULL: any text */
    weft__gram_lazy *lazy;     /* NULL: the grammar holds from the beginning */
    weft__gram_budget *budget; /* of thinking, or NULL */
    int32_t n_tokens;          /* of the vocabulary */
};

struct weft_matcher {
    weft__gram_matcher *m;         /* NULL while the text is free */
    weft__gram_watch *watch;       /* NULL when it is not, or remains so */
    weft__gram_thoughts *thoughts; /* NULL: they have no budget */
    int32_t n_tokens;
    uint64_t *bits; /* [(n_tokens + 63) / 64] */
};

/* Takes over what `parts` has, on failure too. */
static weft_status wrap_grammar(weft_grammar parts, weft_grammar **out, weft_error *err)
{
    weft_grammar *g = weft__alloc_zero(1, sizeof *g);
    *out = g;
    if (!g) {
        weft__gram_budget_release(&parts.budget);
        weft__gram_lazy_release(&parts.lazy);
        weft__gram_tables_release(&parts.tables);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    }
    *g = parts;
    atomic_init(&g->refs, 1);
    if (g->tables) g->n_tokens = weft__gram_tables_n_tokens(g->tables);
    return WEFT_OK;
}

/* The tokenizer's trie, made when first asked for; a thread that comes second drops its own. */
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

weft_status weft__engine_grammar_of(const weft_tokenizer *tokenizer, weft__gram *rules, int32_t root, uint32_t depth,
                                    int own, weft_grammar **out, weft_error *err)
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
    return st ? st : wrap_grammar((weft_grammar){.tables = g}, out, err);
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
    weft__gram_vocabulary(rules, tokenizer->t);
    int32_t root = json ? kinds[kind].build(rules) : kinds[kind].read(rules, source, length);
    return weft__engine_grammar_of(tokenizer, rules, root, json ? WEFT__GRAM_JSON_DEPTH - 1 : WEFT__GRAM_DEPTH, json,
                                   out, err);
}

weft_status weft_grammar_from_schema(const weft_tokenizer *tokenizer, const char *source, size_t length,
                                     weft_grammar **out, weft_error *err)
{
    *out = NULL;
    if (!source) return weft_fail(err, WEFT_ARGUMENT, "schema: no text");
    weft__gram *rules = weft__gram_create();
    if (!rules) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    int32_t root = weft__gram_read_schema(rules, source, length);
    return weft__engine_grammar_of(tokenizer, rules, root, WEFT__GRAM_JSON_DEPTH - 1, 0, out, err);
}

weft_status weft__engine_grammar_lazy(const weft_tokenizer *tokenizer, const weft_grammar *grammar,
                                      const weft__gram_lazy_spec *spec, weft_grammar **out, weft_error *err)
{
    weft__gram_lazy *lazy = NULL;
    *out = NULL;
    weft_status st = weft__gram_lazy_create(grammar->tables, tokenizer->t, spec, &lazy, err);
    if (st) return st;
    return wrap_grammar((weft_grammar){.tables = weft__gram_tables_retain(grammar->tables), .lazy = lazy}, out, err);
}

weft_status weft__engine_grammar_budget(const weft_tokenizer *tokenizer, const weft_grammar *grammar, const char *begin,
                                        const char *end, int begun, int32_t n_tokens, weft_grammar **out,
                                        weft_error *err)
{
    weft_grammar parts = {.n_tokens = weft__tok_n(tokenizer->t)};
    *out = NULL;
    if (grammar && grammar->budget) return weft_fail(err, WEFT_ARGUMENT, "grammar: it has a budget already");
    weft_status st = weft__gram_budget_create(tokenizer->t, begin, end, begun, n_tokens, &parts.budget, err);
    if (st) return st;
    if (grammar && grammar->tables) parts.tables = weft__gram_tables_retain(grammar->tables);
    if (grammar && grammar->lazy) parts.lazy = weft__gram_lazy_retain(grammar->lazy);
    return wrap_grammar(parts, out, err);
}

weft_status weft_grammar_lazy(const weft_tokenizer *tokenizer, const weft_grammar *grammar,
                              const weft_trigger *triggers, size_t n, weft_grammar **out, weft_error *err)
{
    weft__gram_trigger inner[WEFT__GRAM_LAZY_TRIGGERS];
    *out = NULL;
    if (grammar->lazy || grammar->budget)
        return weft_fail(err, WEFT_ARGUMENT, "grammar: it is lazy already, or has a budget of thinking");
    for (size_t i = 0; i < n && i < WEFT__GRAM_LAZY_TRIGGERS; i++) {
        if (triggers[i].kind > WEFT_TRIGGER_TOKEN)
            return weft_fail(err, WEFT_ARGUMENT, "grammar: unknown kind %u of a trigger", triggers[i].kind);
        int is_token = triggers[i].kind == WEFT_TRIGGER_TOKEN;
        if (is_token && triggers[i].token < 0)
            return weft_fail(err, WEFT_ARGUMENT, "grammar: trigger token %d", triggers[i].token);
        inner[i] = (weft__gram_trigger){is_token ? triggers[i].token : -1, triggers[i].text, triggers[i].length};
    }
    return weft__engine_grammar_lazy(tokenizer, grammar, &(weft__gram_lazy_spec){.triggers = inner, .n = n}, out, err);
}

weft_grammar *weft_grammar_retain(const weft_grammar *grammar)
{
    weft_grammar *g = (weft_grammar *)(uintptr_t)grammar; /* owners may hold it const, for only its count changes */
    atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
    return g;
}

void weft_grammar_free(weft_grammar **p)
{
    weft_grammar *g = p ? *p : NULL;
    if (!g) return;
    *p = NULL;
    if (atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) > 1) return;
    weft__gram_budget_release(&g->budget);
    weft__gram_lazy_release(&g->lazy);
    weft__gram_tables_release(&g->tables);
    weft__free(g);
}

uint64_t weft_grammar_bytes(const weft_grammar *g)
{
    return g->tables ? weft__gram_tables_bytes(g->tables) : sizeof *g;
}

/* Takes over what `parts` has; after a failure `st` too. */
static weft_status wrap(weft_status st, weft_matcher parts, weft_matcher **out, weft_error *err)
{
    weft_matcher *w = st ? NULL : weft__alloc_zero(1, sizeof *w);
    uint64_t *bits = w ? weft__alloc_array(((size_t)parts.n_tokens + 63) / 64, sizeof *bits) : NULL;
    *out = w;
    if (bits) {
        *w = parts;
        w->bits = bits;
        return WEFT_OK;
    }
    weft__free(w);
    *out = NULL;
    weft__gram_thoughts_destroy(&parts.thoughts);
    weft__gram_watch_destroy(&parts.watch);
    weft__gram_matcher_destroy(&parts.m);
    return st ? st : weft_fail(err, WEFT_NO_MEMORY, "no memory for a text in a grammar");
}

weft_status weft_matcher_new(const weft_grammar *g, weft_matcher **out, weft_error *err)
{
    weft_matcher parts = {.n_tokens = g->n_tokens};
    weft_status st = g->budget ? weft__gram_thoughts_create(g->budget, &parts.thoughts, err) : WEFT_OK;
    if (!st && g->lazy) st = weft__gram_watch_create(g->lazy, &parts.watch, err);
    else if (!st && g->tables) st = weft__gram_matcher_create(g->tables, &parts.m, err);
    return wrap(st, parts, out, err);
}

weft_status weft_matcher_copy(const weft_matcher *from, weft_matcher **out, weft_error *err)
{
    weft_matcher parts = {.n_tokens = from->n_tokens};
    weft_status st = from->thoughts ? weft__gram_thoughts_copy(from->thoughts, &parts.thoughts, err) : WEFT_OK;
    if (!st && from->m) st = weft__gram_matcher_copy(from->m, &parts.m, err);
    else if (!st && from->watch) st = weft__gram_watch_copy(from->watch, &parts.watch, err);
    return wrap(st, parts, out, err);
}

void weft_matcher_free(weft_matcher **p)
{
    weft_matcher *w = p ? *p : NULL;
    if (!w) return;
    weft__free(w->bits);
    weft__gram_thoughts_destroy(&w->thoughts);
    weft__gram_watch_destroy(&w->watch);
    weft__gram_matcher_destroy(&w->m);
    weft__free(w);
    *p = NULL;
}

static weft_status mask(weft_matcher *w, uint64_t *bits, weft_error *err)
{
    size_t n_words = ((size_t)w->n_tokens + 63) / 64;
    int32_t next = w->thoughts ? weft__gram_thoughts_next(w->thoughts) : -1;
    weft_status st = WEFT_OK;
    if (w->m) {
        st = weft__gram_matcher_mask(w->m, bits, err);
    } else if (w->watch) {
        st = weft__gram_watch_mask(w->watch, bits, err);
    } else {
        memset(bits, 0xFF, n_words * sizeof *bits);
        if (w->n_tokens % 64) bits[n_words - 1] = ((uint64_t)1 << (w->n_tokens % 64)) - 1;
    }
    if (st || next < 0 || !(bits[next / 64] >> (next % 64) & 1)) return st;
    memset(bits, 0, n_words * sizeof *bits);
    bits[next / 64] = (uint64_t)1 << (next % 64);
    return WEFT_OK;
}

weft_status weft_matcher_mask(weft_matcher *w, uint64_t *bits, size_t n_words, weft_error *err)
{
    size_t need = ((size_t)w->n_tokens + 63) / 64;
    if (n_words != need)
        return weft_fail(err, WEFT_ARGUMENT, "a mask of %zu words; %d tokens take %zu", n_words, w->n_tokens, need);
    return mask(w, bits, err);
}

weft_status weft_matcher_apply(weft_matcher *w, float *logits, int32_t n, weft_error *err)
{
    weft_status st = mask(w, w->bits, err);
    if (!st) weft__sample_mask_apply(w->bits, w->n_tokens, logits, n);
    return st;
}

weft_status weft_matcher_accept(weft_matcher *w, int32_t token, weft_error *err)
{
    weft_status st = WEFT_OK;
    if (token < 0 || token >= w->n_tokens)
        return weft_fail(err, WEFT_ARGUMENT, "grammar: token %d: the vocabulary has ids 0 to %d", token,
                         w->n_tokens - 1);
    if (w->m) {
        st = weft__gram_matcher_accept(w->m, token, err);
    } else if (w->watch) {
        st = weft__gram_watch_accept(w->watch, token, &w->m, err);
        if (w->m) weft__gram_watch_destroy(&w->watch);
    }
    return st || !w->thoughts ? st : weft__gram_thoughts_accept(w->thoughts, token, err);
}

int weft_matcher_complete(const weft_matcher *w)
{
    if (w->m) return weft__gram_matcher_complete(w->m);
    return w->watch ? weft__gram_watch_complete(w->watch) : 1;
}
