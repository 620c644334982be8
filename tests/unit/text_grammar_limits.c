/* text_grammar_limits.c: grammars that attack time and memory, texts without end, refused allocations, and threads that share one. */
#include <pthread.h>
#include <time.h>

#include "text/grammar_run.h"
#include "unit/grammar_world.h"

/* ---- attacks ---- */

/* This thread's own time: others use the machine too. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t largest_block, total_bytes;
static int count_bytes(void *arg, size_t n)
{
    (void)arg;
    if (n > largest_block) largest_block = n;
    total_bytes += n;
    return 1;
}

/* `times` copies of a text. */
static void repeat(weft__text *out, const char *s, int times)
{
    for (int i = 0; i < times; i++) weft__text_puts(out, s);
}

/* Compiles, and follows a text with a mask at each byte; time and blocks of memory stay small whatever comes of it. */
static weft_status attack(const char *name, const weft__text *source, const char *text, const vocab *v)
{
    static uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__automaton *a = NULL;
    weft__grammar *g = NULL;
    weft__matcher *m = NULL;
    double start = seconds();
    largest_block = 0;
    weft__alloc_set_gate(count_bytes, NULL);
    weft_status st = gbnf(source->data, source->len, &a, NULL);
    if (!st) st = weft__grammar_create(a, v->trie, &g, NULL);
    if (!st) st = weft__matcher_create(g, &m, NULL);
    for (; !st && *text; text++) {
        st = weft__matcher_mask(m, bits, NULL);
        if (!st) st = weft__matcher_accept(m, (unsigned char)*text, NULL);
    }
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    weft__alloc_set_gate(NULL, NULL);
    print_message("  %s: %.2f s\n", name, seconds() - start);
    if (seconds() - start > (CLAIMS_OF_SPEED ? 0.5 : 20) || largest_block > (size_t)128 << 20)
        fail_msg("%s: %.1f s, a block of %zu bytes", name, seconds() - start, largest_block);
    return st;
}

static void attacks_meet_a_limit(void **state)
{
    (void)state;
    static vocab v;
    weft__text s = {0}, text = {0};
    vocab_make(&v, 1, 30);

    weft__text_puts(&s, "root ::= ");
    repeat(&s, "(", 20);
    weft__text_puts(&s, "\"a\"");
    repeat(&s, "{0,99})", 20);
    assert_int_equal(attack("nested quantifiers", &s, "", &v), WEFT_LIMIT);

    s.len = 0;
    weft__text_puts(&s, "root ::= ");
    repeat(&s, "(", 40);
    weft__text_puts(&s, "\"a\"");
    repeat(&s, "*)+", 40);
    assert_int_equal(attack("nested stars", &s, "aaaaaaaaaa", &v), WEFT_OK);

    s.len = 0;
    weft__text_puts(&s, "root ::= \"");
    repeat(&s, "0123456789", 1 << 20);
    weft__text_puts(&s, "\"");
    assert_int_equal(attack("10 MB", &s, "", &v), WEFT_LIMIT);

    s.len = 0;
    weft__text_puts(&s, "root ::= ");
    repeat(&s, "(", 100000);
    assert_int_equal(attack("nested groups", &s, "", &v), WEFT_LIMIT);

    s.len = 0; /* each rule is twice the one before it */
    weft__text_puts(&s, "root ::= r0\n");
    for (int i = 0; i < 60; i++) weft__text_printf(&s, "r%d ::= r%d r%d\n", i, i + 1, i + 1);
    weft__text_puts(&s, "r60 ::= \"a\" | \"b\"\n");
    assert_int_equal(attack("doubling rules", &s, "abababababab", &v), WEFT_OK);

    s.len = 0; /* a chain of names */
    weft__text_puts(&s, "root ::= r0\n");
    for (int i = 0; i < 16000; i++) weft__text_printf(&s, "r%d ::= r%d\n", i, i + 1);
    weft__text_puts(&s, "r16000 ::= \"a\"\n");
    assert_int_equal(attack("a chain", &s, "a", &v), WEFT_OK);

    s.len = 0;
    weft__text_puts(&s, "root ::= \"a\"\n");
    for (int i = 0; i < 20000; i++) weft__text_printf(&s, "r%d ::= \"a\"\n", i);
    assert_int_equal(attack("many rules", &s, "", &v), WEFT_LIMIT);

    s.len = 0; /* a deterministic automaton would need 2^40 states */
    weft__text_puts(&s, "root ::= [ab]* \"a\" [ab]{40}");
    repeat(&text, "ab", 100);
    assert_int_equal(attack("subsets", &s, text.data, &v), WEFT_OK);

    s.len = 0; /* sets that grow with the text, up to a hundred thousand states: limits are for work, too */
    weft__text_puts(&s, "root ::= ([ -~]? ){20000} \"z\"");
    assert_int_equal(attack("growing sets", &s, "", &v), WEFT_LIMIT);
    s.len = 0;
    weft__text_puts(&s, "root ::= ([a-z]? [a-z]? [a-z]? [a-z]? [a-z]?){6000} \"z\"");
    assert_int_equal(attack("optional letters", &s, "", &v), WEFT_LIMIT);
    s.len = 0;
    weft__text_puts(&s, "root ::= (. | .. | ...){5000} \"z\"");
    assert_int_equal(attack("wide characters", &s, "", &v), WEFT_LIMIT);

    s.len = 0; /* 2^n stacks; derivations without number */
    weft__text_puts(&s, "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\"");
    text.len = 0;
    repeat(&text, "a", 300);
    assert_int_equal(attack("stacks", &s, text.data, &v), WEFT_OK);
    s.len = 0;
    weft__text_puts(&s, "root ::= \"a\" root root | \"a\" root root root | \"a\"");
    text.len = 0;
    repeat(&text, "a", 150);
    weft_status st = attack("derivations", &s, text.data, &v);
    assert_true(st == WEFT_OK || st == WEFT_LIMIT);
    s.len = 0;
    weft__text_puts(&s, "root ::= x{0,300}\nx ::= \"a\"{0,200} \"b\"?");
    st = attack("ambiguous repetition", &s, text.data, &v);
    assert_true(st == WEFT_OK || st == WEFT_LIMIT);

    s.len = 0;
    weft__text_puts(&s, "root ::= ");
    repeat(&s, "r|", 250000);
    weft__text_puts(&s, "r\nr ::= \"a\" r \"a\" | \"a\"");
    st = attack("alternatives", &s, "aaa", &v);
    assert_true(st == WEFT_OK || st == WEFT_LIMIT);
    weft__text_free(&s);
    weft__text_free(&text);
    vocab_close(&v);
}

/* Long lists of literals have nothing that grows: whatever they begin with, they are made deterministic, and a mask looks at one way. */
static void lists_of_words_are_no_attack(void **state)
{
    (void)state;
    enum { WORDS = 15000, LETTERS = 12, SHAPES = 4 };
    static vocab v;
    weft__rng rng;
    weft__text s = {0}, text = {0};
    vocab_make(&v, 1, 30);
    for (int shape = 0; shape < SHAPES; shape++) {
        weft__rng_seed(&rng, 3);
        s.len = text.len = 0;
        weft__text_puts(&s, shape < 2 ? "root ::= " : "root ::= \"[\" item (\",\" item)* \"]\"\nitem ::= ");
        if (shape >= 2) weft__text_puts(&text, "[");
        for (int i = 0; i < (shape % 2 ? WORDS * 2 / 3 : WORDS); i++) {
            char word[LETTERS + 1] = {0};
            for (int k = 0; k < LETTERS; k++) word[k] = (char)('a' + weft__rng_below(&rng, 26));
            if (shape % 2 == 0) snprintf(word, sizeof word, "w%d", i);
            weft__text_printf(&s, i ? " | \"%s\"" : "\"%s\"", word);
            if (i == WORDS / 2) weft__text_puts(&text, word);
        }
        weft__automaton *a;
        weft_error err = {0};
        assert_int_equal(attack("words", &s, text.data, &v), WEFT_OK);
        if (gbnf(s.data, s.len, &a, &err) || weft__automaton_probe(a, &err)) fail_msg("shape %d: %s", shape, err.message);
        weft__automaton_destroy(&a);
    }
    weft__text_free(&s);
    weft__text_free(&text);
    vocab_close(&v);
}

/* What is too wide is refused as that. */
static void width_is_not_called_growth(void **state)
{
    (void)state;
    weft__text s = {0};
    weft__automaton *a;
    weft_error err = {0};
    weft__text_puts(
        &s, "root ::= \"x\" item\nitem ::= [ab]* \"a\" [ab]{40}"); /* which keeps the words from being made deterministic */
    for (int i = 0; i < 3000; i++) weft__text_printf(&s, " | \"w%d\"", i);
    assert_int_equal(gbnf(s.data, s.len, &a, &err), WEFT_OK);
    assert_int_equal(weft__automaton_probe(a, &err), WEFT_LIMIT);
    if (!strstr(err.message, "side by side") || strstr(err.message, "grows")) fail_msg("%s", err.message);
    weft__automaton_destroy(&a);
    weft__text_free(&s);
}

/* Refused before a text is begun where reading it would take more and more; what is bounded, or nests, is not. */
static void what_grows_is_refused_at_once(void **state)
{
    (void)state;
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
        {"root ::= e\ne ::= t ([-+] t)*\nt ::= f ([*/] f)*\nf ::= [0-9]+ | [a-z]+ \"(\" (e (\",\" e)*)? \")\" | \"(\" e \")\"",
         WEFT_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__automaton *a;
        weft_error err = {0};
        double start = seconds();
        assert_int_equal(gbnf(cases[i].source, strlen(cases[i].source), &a, &err), WEFT_OK);
        if (weft__automaton_probe(a, &err) != cases[i].status) fail_msg("%s: %s", cases[i].source, err.message);
        if (cases[i].status) assert_non_null(strstr(err.message, "rule"));
        assert_true(seconds() - start < (CLAIMS_OF_SPEED ? 0.25 : 10));
        weft__automaton_destroy(&a);
    }
}

/* A text may take so much and no more, whatever the probe said: ambiguity ends it by name, long before it has cost a second. */
static void a_text_has_a_budget(void **state)
{
    (void)state;
    static vocab v;
    static uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__matcher *m;
    weft_error err = {0};
    weft_status st = WEFT_OK;
    int n = 0;
    vocab_make(&v, 1, 200);
    weft__grammar *g = grammar("root ::= s\ns ::= [a-z ] s s | [a-z ] s | [a-z ]", &v);
    assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
    double start = seconds();
    for (; n < 2000 && !st; n++)
        if (!(st = weft__matcher_mask(m, bits, &err))) st = weft__matcher_accept(m, 'a', &err);
    print_message("  budget spent after %d tokens, %.3f s\n", n, seconds() - start);
    assert_int_equal(st, WEFT_LIMIT);
    assert_non_null(strstr(err.message, "less ambiguous"));
    assert_true(seconds() - start < (CLAIMS_OF_SPEED ? 0.3 : 10));
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    vocab_close(&v);
}

/* A text without end: lists by right recursion and by repetition, and braces that open and close, in memory that does not grow. */
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
        weft__grammar *g = grammar(sources[i], &v);
        weft__matcher *m, *copy;
        size_t early = 0;
        assert_int_equal(weft__matcher_create(g, &m, NULL), WEFT_OK);
        for (int k = 0; k <= LAST; k++) {
            const char *s = i && k % 3 == 0 ? "(" : i && k % 3 == 1 ? "ab)" : "ab";
            if (i == 1 && k % 3 == 1) s = ")";
            for (; *s; s++) assert_int_equal(weft__matcher_accept(m, *s, NULL), WEFT_OK);
            if (k != EARLY && k != LAST) continue;
            total_bytes = 0;
            weft__alloc_set_gate(count_bytes, NULL);
            assert_int_equal(weft__matcher_copy(m, &copy, NULL), WEFT_OK);
            weft__alloc_set_gate(NULL, NULL);
            weft__matcher_destroy(&copy);
            if (k == EARLY) early = total_bytes;
        }
        assert_true(total_bytes < early + LAST);
        weft__matcher_destroy(&m);
        weft__grammar_release(&g);
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
    static const char source[] =
        "root ::= (item | \"x\"{2,40})* (\"[\" root \"]\")? # c\nitem ::= \"(\" item* \")\" | [^a-c\\n\xE4\xB8\xAD]+ \"b\"";
    const struct everything *e = arg;
    weft__token_trie *trie = NULL;
    weft__automaton *a = NULL;
    weft__grammar *g = NULL;
    weft__matcher *m = NULL, *copy = NULL;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram *rules = weft__gram_create();
    if (!rules) return 0;
    int32_t root = e->json ? weft__json_rules(rules) : weft__gbnf_read(rules, source, sizeof source - 1);
    weft_status st = weft__gram_compile(rules, root, 100, &a, NULL);
    weft__gram_destroy(&rules);
    if (!st) st = weft__token_trie_create(e->v->tok, &trie, NULL);
    if (st) weft__automaton_destroy(&a);
    else st = weft__grammar_create(a, trie, &g, NULL);
    weft__token_trie_release(&trie);
    if (!st) st = weft__matcher_create(g, &m, NULL);
    for (const char *s = e->json ? "{\"a\":[[{" : "((db"; !st && *s; s++) {
        if (!(st = weft__matcher_mask(m, bits, NULL))) st = weft__matcher_accept(m, (unsigned char)*s, NULL);
    }
    if (!st) st = weft__matcher_copy(m, &copy, NULL);
    weft__matcher_destroy(&copy);
    weft__matcher_destroy(&m);
    weft__grammar_release(&g);
    return st == WEFT_OK;
}

static void refused_allocations_leave_nothing(void **state)
{
    (void)state;
    static vocab v;
    enum { KINDS = CLAIMS_REPEATED(2, 1, 1) }; /* JSON's grammar, hundreds of times, takes minutes when it is slow */
    vocab_make(&v, 1, 20);
    for (int json = 0; json < KINDS; json++) assert_true(fail_each(use_everything, &(struct everything){&v, json}) > 30);
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
    weft__grammar *g = json_grammar(&v);
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, follow_json, g), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_int_equal((intptr_t)result, 2);
    }
    weft__grammar_release(&g);
    vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attacks_meet_a_limit),
        cmocka_unit_test(lists_of_words_are_no_attack),
        cmocka_unit_test(width_is_not_called_growth),
        cmocka_unit_test(what_grows_is_refused_at_once),
        cmocka_unit_test(a_text_has_a_budget),
        cmocka_unit_test(long_texts_need_no_more_memory),
        cmocka_unit_test(refused_allocations_leave_nothing),
        cmocka_unit_test(threads_share_a_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
