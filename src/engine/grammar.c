// SPDX-License-Identifier: Apache-2.0
/* grammar.c: weft.h's grammars and matchers over those of room text. A grammar is shared by threads; a matcher belongs
 * to one. */
#include "base/alloc.h"
#include "engine/grammar.h"
#include "engine/handles.h"
#include "sample/mask.h"
#include "text/grammar/run.h"
#include "text/grammar/matcher.h"

struct weft_grammar {
    atomic_size_t refs;
    weft__gram_tables *tables;
    weft__gram_lazy *lazy; /* NULL: the grammar holds from the beginning */
};

struct weft_matcher {
    weft__gram_matcher *m;   /* NULL while the text is free */
    weft__gram_watch *watch; /* NULL when it is not */
    int32_t n_tokens;
    uint64_t *bits; /* [(n_tokens + 63) / 64] */
};

/* Takes over tables and lazy, on failure too. */
static weft_status wrap_grammar(weft__gram_tables *tables, weft__gram_lazy *lazy, weft_grammar **out, weft_error *err)
{
    weft_grammar *g = weft__alloc_zero(1, sizeof *g);
    *out = g;
    if (!g) {
        weft__gram_lazy_release(&lazy);
        weft__gram_tables_release(&tables);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    }
    atomic_init(&g->refs, 1);
    g->tables = tables;
    g->lazy = lazy;
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
    return st ? st : wrap_grammar(g, NULL, out, err);
}

weft_status weft__engine_grammar_read(const weft_tokenizer *tokenizer, uint32_t kind, const char *source, size_t length,
                                      weft__engine_rules *out, weft_error *err)
{
    static const struct {
        const char *name;
        int32_t (*read)(weft__gram *g, const char *source, size_t n);
        int32_t (*build)(weft__gram *g);
    } kinds[] = {
        [WEFT_GRAMMAR_GBNF] = {"grammar: GBNF", weft__gram_read_gbnf, NULL},
        [WEFT_GRAMMAR_JSON] = {"JSON", NULL, weft__gram_json_object},
        [WEFT_GRAMMAR_JSON_VALUE] = {"JSON", NULL, weft__gram_json_value},
        [WEFT_GRAMMAR_REGEX] = {"grammar: a regular expression", weft__gram_read_regex, NULL},
        [WEFT_GRAMMAR_CHOICES] = {"grammar: choices", weft__gram_read_choices, NULL},
        [WEFT_GRAMMAR_LARK] = {"grammar: EBNF", weft__gram_read_lark, NULL},
        [WEFT_GRAMMAR_SCHEMA] = {"schema:", weft__gram_read_schema, NULL},
    };
    if (kind >= sizeof kinds / sizeof *kinds) return weft_fail(err, WEFT_ARGUMENT, "grammar: unknown kind %u", kind);
    out->own = kinds[kind].build != NULL;
    out->depth = out->own || kind == WEFT_GRAMMAR_SCHEMA ? WEFT__GRAM_JSON_DEPTH - 1 : WEFT__GRAM_DEPTH;
    if (!out->own && !source) return weft_fail(err, WEFT_ARGUMENT, "%s without a text", kinds[kind].name);
    out->g = weft__gram_create();
    if (!out->g) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_vocabulary(out->g, tokenizer->t);
    out->root = out->own ? kinds[kind].build(out->g) : kinds[kind].read(out->g, source, length);
    return WEFT_OK;
}

weft_status weft_grammar_new(const weft_tokenizer *tokenizer, uint32_t kind, const char *source, size_t length,
                             weft_grammar **out, weft_error *err)
{
    weft__engine_rules rules = {0};
    *out = NULL;
    weft_status st = weft__engine_grammar_read(tokenizer, kind, source, length, &rules, err);
    return st ? st : weft__engine_grammar_of(tokenizer, rules.g, rules.root, rules.depth, rules.own, out, err);
}

weft_status weft_grammar_from_schema(const weft_tokenizer *tokenizer, const char *source, size_t length,
                                     weft_grammar **out, weft_error *err)
{
    return weft_grammar_new(tokenizer, WEFT_GRAMMAR_SCHEMA, source, length, out, err);
}

weft_status weft__engine_grammar_lazy(const weft_tokenizer *tokenizer, const weft_grammar *grammar,
                                      const weft__gram_lazy_spec *spec, weft_grammar **out, weft_error *err)
{
    weft__gram_lazy *lazy = NULL;
    *out = NULL;
    weft_status st = weft__gram_lazy_create(grammar->tables, tokenizer->t, spec, &lazy, err);
    return st ? st : wrap_grammar(weft__gram_tables_retain(grammar->tables), lazy, out, err);
}

weft_status weft_grammar_lazy(const weft_tokenizer *tokenizer, const weft_grammar *grammar,
                              const weft_trigger *triggers, size_t n, weft_grammar **out, weft_error *err)
{
    static const int kinds[] = {[WEFT_TRIGGER_PATTERN] = WEFT__GRAM_TRIGGER_PATTERN,
                                [WEFT_TRIGGER_PATTERN_FULL] = WEFT__GRAM_TRIGGER_PATTERN_FULL};
    weft__gram_trigger inner[WEFT__GRAM_LAZY_TRIGGERS];
    *out = NULL;
    if (grammar->lazy) return weft_fail(err, WEFT_ARGUMENT, "grammar: it is lazy already");
    for (size_t i = 0; i < n && i < WEFT__GRAM_LAZY_TRIGGERS; i++) {
        if (triggers[i].kind > WEFT_TRIGGER_PATTERN_FULL)
            return weft_fail(err, WEFT_ARGUMENT, "grammar: unknown kind %u of a trigger", triggers[i].kind);
        int is_token = triggers[i].kind == WEFT_TRIGGER_TOKEN;
        if (is_token && triggers[i].token < 0)
            return weft_fail(err, WEFT_ARGUMENT, "grammar: trigger token %d", triggers[i].token);
        inner[i] = (weft__gram_trigger){is_token ? triggers[i].token : -1, triggers[i].text, triggers[i].length,
                                        kinds[triggers[i].kind]};
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
    weft__gram_lazy_release(&g->lazy);
    weft__gram_tables_release(&g->tables);
    weft__free(g);
}

uint64_t weft_grammar_bytes(const weft_grammar *g)
{
    return weft__gram_tables_bytes(g->tables);
}

/* Takes over m and watch, of which one may be there; after a failure `st` neither is. */
static weft_status wrap(weft_status st, weft__gram_matcher *m, weft__gram_watch *watch, int32_t n_tokens,
                        weft_matcher **out, weft_error *err)
{
    *out = NULL;
    if (st) return st;
    weft_matcher *w = weft__alloc_zero(1, sizeof *w);
    if (w) {
        *w = (weft_matcher){m, watch, n_tokens, weft__alloc_array(((size_t)n_tokens + 63) / 64, sizeof *w->bits)};
        *out = w;
        if (w->bits) return WEFT_OK;
        weft_matcher_free(out);
    } else {
        weft__gram_watch_destroy(&watch);
        weft__gram_matcher_destroy(&m);
    }
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a text in a grammar");
}

weft_status weft_matcher_new(const weft_grammar *g, weft_matcher **out, weft_error *err)
{
    weft__gram_matcher *m = NULL;
    weft__gram_watch *watch = NULL;
    weft_status st =
        g->lazy ? weft__gram_watch_create(g->lazy, &watch, err) : weft__gram_matcher_create(g->tables, &m, err);
    return wrap(st, m, watch, weft__gram_tables_n_tokens(g->tables), out, err);
}

weft_status weft_matcher_copy(const weft_matcher *from, weft_matcher **out, weft_error *err)
{
    weft__gram_matcher *m = NULL;
    weft__gram_watch *watch = NULL;
    weft_status st =
        from->m ? weft__gram_matcher_copy(from->m, &m, err) : weft__gram_watch_copy(from->watch, &watch, err);
    return wrap(st, m, watch, from->n_tokens, out, err);
}

void weft_matcher_free(weft_matcher **p)
{
    weft_matcher *w = p ? *p : NULL;
    if (!w) return;
    weft__free(w->bits);
    weft__gram_watch_destroy(&w->watch);
    weft__gram_matcher_destroy(&w->m);
    weft__free(w);
    *p = NULL;
}

static weft_status mask(weft_matcher *w, uint64_t *bits, weft_error *err)
{
    return w->m ? weft__gram_matcher_mask(w->m, bits, err) : weft__gram_watch_mask(w->watch, bits, err);
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
    if (w->m) return weft__gram_matcher_accept(w->m, token, err);
    weft_status st = weft__gram_watch_accept(w->watch, token, &w->m, err);
    if (w->m) weft__gram_watch_destroy(&w->watch);
    return st;
}

int weft_matcher_complete(const weft_matcher *w)
{
    return w->m ? weft__gram_matcher_complete(w->m) : weft__gram_watch_complete(w->watch);
}

size_t weft__engine_matcher_forced(weft_matcher *w, char *bytes, size_t n)
{
    return w->m ? weft__gram_matcher_forced(w->m, bytes, n) : 0;
}
