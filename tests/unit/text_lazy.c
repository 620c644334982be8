// SPDX-License-Identifier: Apache-2.0
/* text_lazy.c: lazy grammars against a search from scratch: what is allowed at each place of a text, token by token,
 * before a trigger and behind it. Also what is skipped, triggers that are tokens, refusals and refused allocations. */
#include "unit/lazy_world.h"

#define N_LANGUAGES CLAIMS_REPEATED(CLAIMS_SWEPT(120, 600), 60, 12)

/* ---- a language, and what may follow a text in it ---- */

enum { MAX_WORDS = 3, MAX_TEXT = 4096 };

typedef struct language {
    char words[MAX_WORDS][8];
    int n_words;
    int by_token; /* 1: the control token is a trigger, too */
    int skips;    /* 1: nothing counts between "(" and ")" */
    char source[512];
    weft__gram_tables *g;
    weft__gram_lazy *lazy;
} language;

static void make_lazy(language *x, const vocab *v, int skipping)
{
    weft__gram_trigger triggers[MAX_WORDS + 1];
    size_t n = 0;
    weft_error err = {0};
    for (int i = 0; i < x->n_words; i++) triggers[n++] = (weft__gram_trigger){-1, x->words[i], strlen(x->words[i]), 0};
    if (x->by_token) triggers[n++] = (weft__gram_trigger){CONTROL, NULL, 0, 0};
    weft__gram_lazy_spec spec = {.triggers = triggers, .n = n, .skipping = skipping};
    if (x->skips) spec.skip_from = "(", spec.skip_to = ")";
    if (weft__gram_lazy_create(x->g, v->tok, &spec, &x->lazy, &err)) fail_msg("%s\n%s", x->source, err.message);
}

static void language_open(language *x, const vocab *v, weft__rng *rng, int skipping)
{
    static const char *const letters[] = {"a", "b", "c", "\xC3\xA9"};
    memset(x, 0, sizeof *x);
    x->n_words = 1 + (int)weft__rng_below(rng, MAX_WORDS);
    x->by_token = weft__rng_below(rng, 2) == 0;
    x->skips = skipping || weft__rng_below(rng, 2) == 0;
    strcpy(x->source, "root ::= (");
    for (int i = 0; i < x->n_words; i++) {
        for (uint64_t n = 1 + weft__rng_below(rng, 3); n > 0; n--)
            strcat(x->words[i], letters[weft__rng_below(rng, 4)]);
        snprintf(x->source + strlen(x->source), 40, "%s\"%s\"", i ? " | " : "", x->words[i]);
    }
    if (x->by_token) strcat(x->source, " | <ctl>");
    strcat(x->source, weft__rng_below(rng, 2) ? ") [a-b]{0,3} <ctl>? \"c\"" : ") \"\xC3\xA9\"* [(cab]");
    x->g = grammar(x->source, v);
    make_lazy(x, v, skipping);
}

static void language_close(language *x)
{
    weft__gram_lazy_release(&x->lazy);
    weft__gram_tables_release(&x->g);
}

/* The end of the first trigger of the text, whose tokens end at `ends`, and where it begins; n: there is none. */
static size_t find_trigger(const language *x, const char *s, size_t n, int skipping, size_t *from)
{
    size_t begun = 0; /* what was read before does not count */
    for (size_t end = 1; end <= n; end++) {
        const char *control = memchr(s + begun, '\xFF', end - begun);
        if (control) {
            if (end - (size_t)(control - s) < sizeof CONTROL_BYTES - 1) continue;
            *from = (size_t)(control - s);
            if (x->by_token && !skipping) return end;
            begun = end;
            continue;
        }
        *from = SIZE_MAX;
        for (int i = 0; i < x->n_words && !skipping; i++) {
            size_t length = strlen(x->words[i]);
            if (end - begun < length || memcmp(s + end - length, x->words[i], length)) continue;
            if (end - length < *from) *from = end - length;
        }
        if (*from != SIZE_MAX) return end;
        if (x->skips && s[end - 1] == (skipping ? ')' : '(')) {
            skipping = !skipping;
            begun = end;
        }
    }
    return n + 1;
}

/* 1 when the text may be so far; *done: it may end. */
static int may_be(const language *x, const char *s, size_t n, int skipping, int *done)
{
    size_t from;
    *done = 1;
    if (find_trigger(x, s, n, skipping, &from) > n) return 1;
    weft__gram_matcher *m;
    assert_int_equal(weft__gram_matcher_create(x->g, &m, NULL), WEFT_OK);
    int fits = weft__gram_matcher_feed(m, s + from, n - from, NULL) == WEFT_OK;
    *done = fits && weft__gram_matcher_complete(m) > 0;
    weft__gram_matcher_destroy(&m);
    return fits;
}

/* A random text of tokens: at each place the mask is what the search from scratch says of every token. Returns 1 when
 * a trigger was met. */
static int compare_text(const language *x, const vocab *v, weft__rng *rng, int skipping)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    static char text[MAX_TEXT];
    size_t n = 0;
    place p = {0}, copy;
    assert_int_equal(weft__gram_watch_create(x->lazy, &p.watch, NULL), WEFT_OK);
    for (int step = 0; step < 12; step++) {
        int chosen = -1, n_allowed = 0, done, then, free = !p.m;
        may_be(x, text, n, skipping, &done);
        weft_status st = place_mask(&p, bits);
        for (int id = 0; id < v->n; id++) {
            char one[1];
            size_t length;
            const char *piece = token_bytes(v, id, &length, one);
            memcpy(text + n, piece, length);
            /* A byte 0xFF is no text; before a trigger it may come, like an end. */
            int expected = id == END ? done : id == 0xFF ? free : may_be(x, text, n + length, skipping, &then);
            if (bit(bits, id) != expected)
                fail_msg("%s\nafter '%.*s' token %d '%.*s': %d, expected %d", x->source, (int)n, text, id, (int)length,
                         piece, bit(bits, id), expected);
            if (id % 7 == 0) { /* accept says the same, and changes nothing where it refuses */
                place_copy(&p, &copy);
                assert_int_equal(place_accept(&copy, id), expected ? WEFT_OK : WEFT_ARGUMENT);
                if (!expected) {
                    uint64_t again[MAX_TOKENS / 64 + 1];
                    if (!place_mask(&copy, again)) assert_memory_equal(bits, again, (size_t)(v->n + 63) / 64 * 8);
                }
                place_close(&copy);
            }
            if (expected && id != END && id != 0xFF && weft__rng_below(rng, (uint64_t)++n_allowed) == 0) chosen = id;
        }
        if (free) { /* of what is free, mostly what the words are made of */
            int id = FIRST + (int)weft__rng_below(rng, (uint64_t)(v->n - FIRST));
            if (weft__rng_below(rng, 8) == 0) id = weft__rng_below(rng, 2) ? CONTROL : "()"[weft__rng_below(rng, 2)];
            if (bit(bits, id)) chosen = id;
        }
        assert_int_equal(st, n_allowed || done ? WEFT_OK : WEFT_STATE);
        if (chosen < 0) break;
        char one[1];
        size_t length;
        const char *piece = token_bytes(v, chosen, &length, one);
        memcpy(text + n, piece, length);
        n += length;
        assert_int_equal(place_accept(&p, chosen), WEFT_OK);
    }
    int met = p.m != NULL;
    place_close(&p);
    return met;
}

static void masks_are_what_a_search_from_scratch_says(void **state)
{
    (void)state;
    static vocab v;
    weft__rng rng;
    language x;
    int met = 0;
    vocab_make(&v, 5, 120);
    for (int i = 0; i < N_LANGUAGES; i++) {
        weft__rng_seed(&rng, claims_seed() + (uint64_t)i);
        int skipping = i % 4 == 0;
        language_open(&x, &v, &rng, skipping);
        for (int k = 0; k < 3; k++) met += compare_text(&x, &v, &rng, skipping);
        language_close(&x);
    }
    assert_true(met > N_LANGUAGES);
    vocab_close(&v);
}

/* A marker within words and text: a control token and text, looked for as one. */
static void a_trigger_may_be_a_token_and_text(void **state)
{
    (void)state;
    static vocab v;
    vocab_make(&v, 5, 20);
    weft__gram_tables *g = grammar("root ::= <ctl> \"ab\" <ctl> \"c\"", &v);
    weft__gram *rules = weft__gram_create();
    weft__gram_lazy *lazy;
    place p = {0};
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram_vocabulary(rules, v.tok);
    int32_t word = weft__gram_rule(rules, "w", 1);
    weft__gram_define(rules, word, weft__gram_marker(rules, "<ctl>ab<ctl>", 12));
    weft__gram_lazy_spec spec = {.rules = rules, .words = word, .skip_from = "<ctl>x", .skip_to = "y<ctl>"};
    assert_int_equal(weft__gram_lazy_create(g, v.tok, &spec, &lazy, NULL), WEFT_OK);
    weft__gram_destroy(&rules);
    assert_int_equal(weft__gram_watch_create(lazy, &p.watch, NULL), WEFT_OK);
    static const int tokens[] = {CONTROL, 'a', 'c',     CONTROL, 'x', CONTROL, 'a',     'b',
                                 CONTROL, 'y', CONTROL, CONTROL, 'a', 'b',     CONTROL, 'c'};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        assert_null(i < 14 ? p.m : NULL);
        assert_int_equal(place_mask(&p, bits), WEFT_OK);
        assert_true(bit(bits, tokens[i]));
        assert_int_equal(place_accept(&p, tokens[i]), WEFT_OK);
    }
    assert_int_equal(weft__gram_matcher_complete(p.m), 2);
    place_close(&p);
    weft__gram_lazy_release(&lazy);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* ---- what is refused ---- */

static void a_trigger_with_which_no_text_begins_is_refused(void **state)
{
    (void)state;
    static const struct {
        weft__gram_trigger t;
        const char *message;
    } cases[] = {
        {{-1, "b", 1, 0}, "'b'"},        {{-1, "", 0, 0}, "1 to"},         {{-1, "\xFF", 1, 0}, "UTF-8"},
        {{'b', NULL, 0, 0}, "token 98"}, {{END, NULL, 0, 0}, "token 257"}, {{5000, NULL, 0, 0}, "0 to"},
    };
    static vocab v;
    vocab_make(&v, 5, 20);
    weft__gram_tables *g = grammar("root ::= \"ab\" | <ctl> \"x\" | \"q\"", &v);
    weft__gram_lazy *lazy;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_error err = {0};
        weft__gram_lazy_spec spec = {.triggers = &cases[i].t, .n = 1};
        assert_int_equal(weft__gram_lazy_create(g, v.tok, &spec, &lazy, &err), WEFT_ARGUMENT);
        assert_null(lazy);
        if (!strstr(err.message, cases[i].message)) fail_msg("'%s' lacks '%s'", err.message, cases[i].message);
    }
    assert_int_equal(weft__gram_lazy_create(g, v.tok, &(weft__gram_lazy_spec){0}, &lazy, NULL), WEFT_ARGUMENT);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* The token of a word is a trigger where the grammar has it as such, or as the text of its spelling. */
static void a_word_may_be_a_control_token(void **state)
{
    (void)state;
    static const char *const sources[] = {"root ::= <ctl> \"x\"", "root ::= \"<ctl>\" \"x\""};
    static vocab v;
    vocab_make(&v, 5, 0);
    for (int i = 0; i < 2; i++) {
        weft__gram_tables *g = grammar(sources[i], &v);
        weft__gram_lazy *lazy;
        place p = {0};
        uint64_t bits[MAX_TOKENS / 64 + 1];
        weft__gram_lazy_spec spec = {.triggers = &(weft__gram_trigger){-1, "<ctl>", 5, 0}, .n = 1};
        assert_int_equal(weft__gram_lazy_create(g, v.tok, &spec, &lazy, NULL), WEFT_OK);
        assert_int_equal(weft__gram_watch_create(lazy, &p.watch, NULL), WEFT_OK);
        for (const char *s = "x<ctl"; *s; s++) assert_int_equal(place_accept(&p, *s), WEFT_OK);
        assert_int_equal(place_mask(&p, bits), WEFT_OK);
        assert_int_equal(bit(bits, '>'), i); /* the text of the spelling is no control token */
        assert_int_equal(place_accept(&p, CONTROL), WEFT_OK);
        assert_non_null(p.m);
        assert_int_equal(place_mask(&p, bits), WEFT_OK);
        for (int id = 0; id < v.n; id++) assert_int_equal(bit(bits, id), id == 'x');
        place_close(&p);
        weft__gram_lazy_release(&lazy);
        weft__gram_tables_release(&g);
    }
    vocab_close(&v);
}

static int use_everything(void *arg)
{
    static const char text[] = "xab(ab)a";
    const vocab *v = arg;
    static weft__gram_tables *g;
    weft__gram_lazy *lazy = NULL;
    place p = {0}, copy = {0};
    uint64_t bits[MAX_TOKENS / 64 + 1];
    if (!g) g = grammar("root ::= \"abc\"", v);
    if (!v->n) weft__gram_tables_release(&g);
    if (!v->n) return 1;
    weft__gram_lazy_spec spec = {
        .triggers = &(weft__gram_trigger){-1, "abc", 3, 0}, .n = 1, .skip_from = "(", .skip_to = ")"};
    weft_status st = weft__gram_lazy_create(g, v->tok, &spec, &lazy, NULL);
    if (!st) st = weft__gram_watch_create(lazy, &p.watch, NULL);
    for (const char *s = text; *s && !st; s++) st = place_accept(&p, *s);
    if (!st) st = weft__gram_watch_copy(p.watch, &copy.watch, NULL);
    if (!st) st = place_accept(&copy, 'b');
    if (!st) st = place_mask(&copy, bits);
    if (!st) st = place_accept(&copy, 'c');
    if (!st && !copy.m) fail_msg("no trigger");
    place_close(&copy);
    place_close(&p);
    weft__gram_lazy_release(&lazy);
    if (st) assert_int_equal(st, WEFT_NO_MEMORY);
    return !st;
}

static void refused_allocations_are_reported(void **state)
{
    (void)state;
    static vocab v;
    vocab_make(&v, 5, 20);
    assert_true(use_everything(&v)); /* the grammar itself stays */
    assert_true(fail_each(use_everything, &v) > 20);
    vocab_close(&v);
    v.n = 0;
    use_everything(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_what_a_search_from_scratch_says),
        cmocka_unit_test(a_trigger_may_be_a_token_and_text),
        cmocka_unit_test(a_trigger_with_which_no_text_begins_is_refused),
        cmocka_unit_test(a_word_may_be_a_control_token),
        cmocka_unit_test(refused_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
