// SPDX-License-Identifier: Apache-2.0
/* text_grammar_limits.c: grammars that attack time and memory, texts without end, refused allocations, and threads that
 * share one. */
#include <pthread.h>

#include "growth.h"
#include "text/grammar/run.h"
#include "unit/grammar_attacks.h"

/* ---- attacks ---- */

static size_t largest_block, total_bytes;
static int count_bytes(void *arg, size_t n)
{
    (void)arg;
    if (n > largest_block) largest_block = n;
    total_bytes += n;
    return 1;
}

typedef struct meeting {
    int attack;
    const vocab *v;
    char name[64];
} meeting;

/* Meets so many eighths of an attack, within memory, a growth_work. Less than all of it may be taken. */
static double meet(void *arg, size_t eighths)
{
    meeting *m = arg;
    attack k;
    attack_make(&k, m->attack, (int)eighths);
    snprintf(m->name, sizeof m->name, "%s (%d)", k.name, m->attack);
    largest_block = 0;
    weft__alloc_set_gate(count_bytes, NULL);
    double before = own_seconds();
    weft_status st = attack_run(&k, m->v);
    double took = own_seconds() - before;
    weft__alloc_set_gate(NULL, NULL);
    if (k.status == ANY || eighths < EIGHTHS ? st != WEFT_OK && st != WEFT_LIMIT : (int)st != k.status)
        fail_msg("%s: status %d", m->name, (int)st);
    if (largest_block > (size_t)128 << 20) fail_msg("%s: a block of %zu bytes", m->name, largest_block);
    attack_free(&k);
    return took;
}

/* What an attacker writes costs him as it costs us: eight times the attack does not take squares of that. */
static void attacks_grow_no_faster_than_they_are_long(void **state)
{
    (void)state;
    static vocab v;
    assert_int_equal(EIGHTHS, GROWTH_SIZES);
    vocab_make(&v, 1, 30);
    for (int i = 0; i < N_ATTACKS; i++) {
        meeting m = {i, &v, ""};
        double times = growth_of(meet, &m, EIGHTHS);
        if (times > GROWTH_MOST) fail_msg("%s: %.1f times as long for %d times as much", m.name, times, GROWTH_SIZES);
    }
    vocab_close(&v);
}

/* Long lists of literals have nothing that grows: whatever they begin with, they are made deterministic, and a mask
 * looks at one way. */
static void lists_of_words_are_no_attack(void **state)
{
    (void)state;
    for (int i = FIRST_OF_WORDS; i < N_ATTACKS; i++) {
        weft__gram_automaton *a;
        weft_error err = {0};
        attack k;
        attack_make(&k, i, EIGHTHS);
        if (gbnf(k.source.data, k.source.len, &a, &err) || weft__gram_probe(a, &err))
            fail_msg("%d: %s", i, err.message);
        weft__gram_automaton_destroy(&a);
        attack_free(&k);
    }
}

/* What is too wide is refused as that. */
static void width_is_not_called_growth(void **state)
{
    (void)state;
    weft__strbuf s = {0};
    weft__gram_automaton *a;
    weft_error err = {0};
    weft__strbuf_puts(
        &s,
        "root ::= \"x\" item\nitem ::= [ab]* \"a\" [ab]{40}"); /* which keeps the words from being made deterministic */
    for (int i = 0; i < 3000; i++) weft__strbuf_printf(&s, " | \"w%d\"", i);
    assert_int_equal(gbnf(s.data, s.len, &a, &err), WEFT_OK);
    assert_int_equal(weft__gram_probe(a, &err), WEFT_LIMIT);
    if (!strstr(err.message, "side by side") || strstr(err.message, "grows")) fail_msg("%s", err.message);
    weft__gram_automaton_destroy(&a);
    weft__strbuf_free(&s);
}

/* Refused before a text is begun, by a probe that asks for little memory, where reading it would take more and more;
 * what is bounded, or nests, is not. */
static void what_grows_is_refused_at_once(void **state)
{
    (void)state;
    enum { MOST_ASKED = 64 << 20 };
    static const struct {
        const char *source;
        weft_status status;
    } cases[] = {
        {"root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]", WEFT_LIMIT},
        {"root ::= \"a\" root root | \"a\" root root root | \"a\"", WEFT_LIMIT},
        {"root ::= \"x: \" (\"no\" | s)\ns ::= \"(\" s \")\" | \"-\" s s | \"-\" s \".\" | \"-\"", WEFT_LIMIT},
        {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"", WEFT_OK},
        {"root ::= [ab]* \"a\" [ab]{40}", WEFT_OK},
        {"root ::= [a-z ]{1,4000}", WEFT_OK},
        {"root ::= e\ne ::= t ([-+] t)*\nt ::= f ([*/] f)*\nf ::= [0-9]+ | [a-z]+ \"(\" (e (\",\" e)*)? \")\" | \"(\" "
         "e \")\"",
         WEFT_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__gram_automaton *a;
        weft_error err = {0};
        total_bytes = 0;
        weft__alloc_set_gate(count_bytes, NULL);
        assert_int_equal(gbnf(cases[i].source, strlen(cases[i].source), &a, &err), WEFT_OK);
        if (weft__gram_probe(a, &err) != cases[i].status) fail_msg("%s: %s", cases[i].source, err.message);
        weft__alloc_set_gate(NULL, NULL);
        if (cases[i].status) assert_non_null(strstr(err.message, "rule"));
        if (total_bytes > MOST_ASKED) fail_msg("%s: %zu bytes asked for", cases[i].source, total_bytes);
        weft__gram_automaton_destroy(&a);
    }
}

/* A text may take so much and no more, whatever the probe said: ambiguity ends it by name, after few tokens, however
 * long it would go on (the attack of that name). */
static void a_text_has_a_budget(void **state)
{
    (void)state;
    static vocab v;
    static uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram_matcher *m;
    weft_error err = {0};
    weft_status st = WEFT_OK;
    int n = 0;
    vocab_make(&v, 1, 200);
    weft__gram_tables *g = grammar("root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]", &v);
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    for (; n < 2000 && !st; n++)
        if (!(st = weft__gram_matcher_mask(m, bits, &err))) st = weft__gram_matcher_accept(m, 'a', &err);
    assert_int_equal(st, WEFT_LIMIT);
    assert_true(n < 200);
    assert_non_null(strstr(err.message, "less ambiguous"));
    weft__gram_matcher_destroy(&m);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* A text without end: lists by right recursion and by repetition, and braces that open and close, in memory that does
 * not grow. */
static void long_texts_need_no_more_memory(void **state)
{
    (void)state;
    static const char *const sources[] = {"root ::= \"a\" root | \"b\" root | \"!\"",
                                          "root ::= (\"a\" | \"b\" | x)* \"!\"\nx ::= \"(\" x* \")\"",
                                          "root ::= x root | \"!\"\nx ::= \"a\" | \"b\" | \"(\" x x \")\""};
    static vocab v;
    enum { EARLY = 1000, LAST = CLAIMS_REPEATED(99999, 99999, 9999) };
    vocab_make(&v, 1, 0);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        weft__gram_tables *g = grammar(sources[i], &v);
        weft__gram_matcher *m, *copy;
        size_t early = 0;
        assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
        for (int k = 0; k <= LAST; k++) {
            const char *s = i && k % 3 == 0 ? "(" : i && k % 3 == 1 ? "ab)" : "ab";
            if (i == 1 && k % 3 == 1) s = ")";
            for (; *s; s++) assert_int_equal(weft__gram_matcher_accept(m, *s, NULL), WEFT_OK);
            if (k != EARLY && k != LAST) continue;
            total_bytes = 0;
            weft__alloc_set_gate(count_bytes, NULL);
            assert_int_equal(weft__gram_matcher_copy(m, &copy, NULL), WEFT_OK);
            weft__alloc_set_gate(NULL, NULL);
            weft__gram_matcher_destroy(&copy);
            if (k == EARLY) early = total_bytes;
        }
        assert_true(total_bytes < early + LAST);
        weft__gram_matcher_destroy(&m);
        weft__gram_tables_release(&g);
    }
    vocab_close(&v);
}

/* ---- memory and threads ---- */

struct everything {
    const vocab *v;
    int json;
};

static int use_everything(void *arg)
{
    static const char source[] = "root ::= (item | \"x\"{2,40})* (\"[\" root \"]\")? # c\nitem ::= \"(\" item* \")\" | "
                                 "[^a-c\\n\xE4\xB8\xAD]+ \"b\"";
    const struct everything *e = arg;
    weft__gram_trie *trie = NULL;
    weft__gram_automaton *a = NULL;
    weft__gram_tables *g = NULL;
    weft__gram_matcher *m = NULL, *copy = NULL;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram *rules = weft__gram_create();
    if (!rules) return 0;
    int32_t root = e->json ? weft__gram_json_object(rules) : weft__gram_read_gbnf(rules, source, sizeof source - 1);
    weft_status st = weft__gram_compile(rules, root, 100, &a, NULL);
    weft__gram_destroy(&rules);
    if (!st) st = weft__gram_trie_create(e->v->tok, &trie, NULL);
    if (st) weft__gram_automaton_destroy(&a);
    else st = weft__gram_tables_create(a, trie, &g, NULL);
    weft__gram_trie_release(&trie);
    if (!st) st = weft__gram_matcher_create(g, &m, NULL);
    for (const char *s = e->json ? "{\"a\":[[{" : "((db"; !st && *s; s++) {
        if (!(st = weft__gram_matcher_mask(m, bits, NULL))) st = weft__gram_matcher_accept(m, (unsigned char)*s, NULL);
    }
    if (!st) st = weft__gram_matcher_copy(m, &copy, NULL);
    weft__gram_matcher_destroy(&copy);
    weft__gram_matcher_destroy(&m);
    weft__gram_tables_release(&g);
    return st == WEFT_OK;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    static vocab v;
    vocab_make(&v, 1, 20);
    assert_true(fail_each(use_everything, &(struct everything){&v, 0}) > 30);
    /* JSON's grammar has hundreds of tables, each an allocation that fails as the one before it. */
    enum { WITH_JSON = CLAIMS_REPEATED(1, 0, 0), STRIDE = 11 };
    if (WITH_JSON) assert_true(fail_some(use_everything, &(struct everything){&v, 1}, STRIDE) > 30);
    vocab_close(&v);
}

static void *follow_json(void *arg)
{
    static const char text[] = "{\"a\": [1, \"b\", {\"c\": null}]}";
    return (void *)(intptr_t)follow(arg, text, sizeof text - 1);
}

static void threads_share_a_grammar(void **state)
{
    (void)state;
    static vocab v;
    pthread_t threads[4];
    void *result;
    vocab_make(&v, 5, 80);
    weft__gram_tables *g = json_grammar(&v);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, follow_json, g), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, 2);
    }
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest with_threads[] = {cmocka_unit_test(threads_share_a_grammar)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attacks_grow_no_faster_than_they_are_long),
        cmocka_unit_test(lists_of_words_are_no_attack),
        cmocka_unit_test(width_is_not_called_growth),
        cmocka_unit_test(what_grows_is_refused_at_once),
        cmocka_unit_test(a_text_has_a_budget),
        cmocka_unit_test(long_texts_need_no_more_memory),
        cmocka_unit_test(refused_allocations_leave_nothing),
        cmocka_unit_test(threads_share_a_grammar),
    };
    enum { THREADS_ALONE = CLAIMS_REPEATED(0, 0, 1) }; /* the thread sanitizer has nothing to see in the others */
    if (THREADS_ALONE) return cmocka_run_group_tests(with_threads, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
