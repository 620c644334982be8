// SPDX-License-Identifier: Apache-2.0
/* Patterns as triggers against a search that backtracks: what is allowed at each place of a text, token by token, and
 * where in it the grammar begins; expressions by hand, what is refused, and that no expression makes a text slow. */
#include "unit/backtrack.h"
#include "unit/lazy_world.h"

#include "text/grammar/search.h"

#define N_LANGUAGES CLAIMS_REPEATED(CLAIMS_SWEPT(150, 900), 60, 12)

enum { MAX_TRIGGERS = 3 };

/* ---- a language, and what may follow a text in it ---- */

typedef struct language {
    expression patterns[MAX_TRIGGERS];
    int full[MAX_TRIGGERS], n_patterns;
    char word[8], source[512];
    weft__gram_tables *g;
    weft__gram_lazy *lazy;
} language;

static void describe(const language *x, const char *why)
{
    for (int i = 0; i < x->n_patterns; i++) print_message("%s/%s/\n", x->full[i] ? "full " : "", x->patterns[i].text);
    fail_msg("%s word '%s'\n%s", why, x->word, x->source);
}

static weft_status language_open(language *x, const vocab *v, weft__rng *rng)
{
    static const char *const grammars[] = {"root ::= [a-c]+ \"<\"",
                                           "root ::= (\"a\" | \"b\" | \"\xC3\xA9\"){1,9} [a-c]",
                                           "root ::= \"<ctl>\" [abc]* | [a-c<]+", "root ::= <ctl>? .+"};
    weft__gram_trigger triggers[MAX_TRIGGERS + 1];
    size_t n = 0;
    weft_error err = {0};
    memset(x, 0, sizeof *x);
    x->n_patterns = 1 + (int)weft__rng_below(rng, MAX_TRIGGERS);
    strcpy(x->source, grammars[weft__rng_below(rng, 4)]);
    x->g = grammar(x->source, v);
    if (weft__rng_below(rng, 3) == 0) {
        strcpy(x->word, weft__rng_below(rng, 2) ? "aa" : "acb");
        triggers[n++] = (weft__gram_trigger){-1, x->word, strlen(x->word), WEFT__GRAM_TRIGGER_WORD};
    }
    for (int i = 0; i < x->n_patterns; i++) {
        make_expression(&x->patterns[i], rng);
        x->full[i] = weft__rng_below(rng, 4) == 0;
        triggers[n++] = (weft__gram_trigger){-1, x->patterns[i].text, strlen(x->patterns[i].text),
                                             x->full[i] ? WEFT__GRAM_TRIGGER_PATTERN_FULL : WEFT__GRAM_TRIGGER_PATTERN};
    }
    weft__gram_lazy_spec spec = {.triggers = triggers, .n = n};
    weft_status st = weft__gram_lazy_create(x->g, v->tok, &spec, &x->lazy, &err);
    if (st && st != WEFT_LIMIT && st != WEFT_ARGUMENT) describe(x, err.message);
    return st;
}

static void language_close(language *x)
{
    weft__gram_lazy_release(&x->lazy);
    weft__gram_tables_release(&x->g);
}

/* 1: a trigger is complete with the text, and what the grammar has begins at *from. */
static int complete(const language *x, const char *s, size_t n, int token_ends, size_t *from)
{
    static seen t;
    const size_t word = strlen(x->word);
    size_t begin;
    see(&t, s, n);
    for (size_t at = 0; at < t.n; at++) {
        if (t.inside[at]) continue;
        if (word && n >= word && t.raw[at] == n - word && !memcmp(s + n - word, x->word, word)) {
            *from = n - word;
            return 1;
        }
        for (int i = 0; i < x->n_patterns; i++) {
            const expression *p = &x->patterns[i];
            if ((p->first || x->full[i]) && at > 0) continue;
            if ((p->last || x->full[i]) && !token_ends) continue;
            if (!matches(p, &t, at, t.n, &begin)) continue;
            *from = begin;
            return 1;
        }
    }
    return 0;
}

/* A text, whose tokens end where `ends` says, without the last one, in which no trigger is complete; and the last one's
 * bytes. 1 when it may be. *begun: it has a trigger. */
static int may_follow(const language *x, char *s, size_t n, const char *piece, size_t length, int *begun)
{
    size_t from = 0;
    int within = 0;
    memcpy(s + n, piece, length);
    *begun = 0;
    for (size_t end = n + 1; end <= n + length && !*begun; end++) {
        if (s[end - 1] == '\xFF') within = !within;
        if (within || !complete(x, s, end, end == n + length, &from)) continue;
        *begun = 1;
        weft__gram_matcher *m;
        char spelled[MAX_TEXT];
        size_t n_spelled = 0;
        assert_int_equal(weft__gram_matcher_create(x->g, &m, NULL), WEFT_OK);
        int fits = weft__gram_matcher_feed(m, s + from, end - from, NULL) == WEFT_OK;
        for (size_t i = from; i < end; i++)
            if (s[i] != '\xFF') spelled[n_spelled++] = s[i];
        if (!fits && n_spelled < end - from) {
            assert_int_equal(weft__gram_matcher_restart(m, NULL), WEFT_OK);
            fits = weft__gram_matcher_feed(m, spelled, n_spelled, NULL) == WEFT_OK;
        }
        if (fits) fits = weft__gram_matcher_feed(m, s + end, n + length - end, NULL) == WEFT_OK;
        weft__gram_matcher_destroy(&m);
        if (!fits) return 0;
    }
    return 1;
}

/* A random text up to its trigger: at each place the mask and what is accepted are what the search says of every
 * token. Returns 1 when a trigger was met. */
static int compare_text(const language *x, const vocab *v, weft__rng *rng)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    static char text[MAX_TEXT];
    size_t n = 0;
    place p = {0}, copy;
    assert_int_equal(weft__gram_watch_create(x->lazy, &p.watch, NULL), WEFT_OK);
    steps = 0;
    for (int step = 0; step < 8 && !p.m; step++) {
        char one[1];
        size_t length;
        int begun;
        assert_int_equal(place_mask(&p, bits), WEFT_OK);
        for (int id = '<'; id < v->n && steps < MAX_STEPS; id += id == '<'               ? 'a' - '<'
                                                                 : id < 'c' || id > 0xF0 ? 1
                                                                                         : 13) {
            const char *piece = token_bytes(v, id, &length, one);
            int expected = id == END || id == 0xFF || may_follow(x, text, n, piece, length, &begun);
            if (steps == MAX_STEPS) break; /* the search gave up; the other does not */
            if (bit(bits, id) != expected) {
                print_message("after '%.*s' token %d '%.*s': %d, expected %d\n", (int)n, text, id, (int)length, piece,
                              bit(bits, id), expected);
                describe(x, "mask");
            }
            if (id == END || id == 0xFF || id % 5) continue;
            place_copy(&p, &copy); /* accept says the same */
            assert_int_equal(place_accept(&copy, id), expected ? WEFT_OK : WEFT_ARGUMENT);
            if (expected) assert_int_equal(copy.m != NULL, begun);
            place_close(&copy);
        }
        int id = FIRST + (int)weft__rng_below(rng, (uint64_t)(v->n - FIRST));
        if (weft__rng_below(rng, 8) == 0) id = CONTROL;
        if (!bit(bits, id)) continue;
        const char *piece = token_bytes(v, id, &length, one);
        memcpy(text + n, piece, length);
        n += length;
        assert_int_equal(place_accept(&p, id), WEFT_OK);
    }
    int met = p.m != NULL;
    place_close(&p);
    return met;
}

static void masks_are_what_a_search_that_backtracks_says(void **state)
{
    (void)state;
    static vocab v;
    static language x;
    weft__rng rng;
    int met = 0, refused = 0;
    vocab_make(&v, 5, 40);
    for (int i = 0; i < N_LANGUAGES; i++) {
        weft__rng_seed(&rng, claims_seed() + (uint64_t)i);
        if (language_open(&x, &v, &rng)) refused++;
        for (int k = 0; k < 3 && x.lazy; k++) met += compare_text(&x, &v, &rng);
        language_close(&x);
    }
    assert_true(met > N_LANGUAGES / 2);
    assert_true(refused < N_LANGUAGES / 10);
    vocab_close(&v);
}

/* ---- by hand ---- */

/* Where the grammar begins in a text, byte by byte, or all of it in one token; -1: nowhere. *end: the byte with which
 * that was known. */
static int begins_at(const char *pattern, int kind, const char *text, int one_token, size_t *end)
{
    static vocab v;
    weft__gram_lazy *lazy = NULL;
    weft_error err = {0};
    memset(&v, 0, sizeof v);
    v.n = FIRST + 1;
    snprintf(v.text[FIRST], sizeof v.text[FIRST], "%s", one_token ? text : "?");
    vocab_open(&v);
    weft__gram_tables *g = grammar("root ::= .+", &v);
    weft__gram_lazy_spec spec = {.triggers = &(weft__gram_trigger){-1, pattern, strlen(pattern), kind}, .n = 1};
    if (weft__gram_lazy_create(g, v.tok, &spec, &lazy, &err)) fail_msg("%s: %s", pattern, err.message);
    place p = {0};
    int from = -1;
    assert_int_equal(weft__gram_watch_create(lazy, &p.watch, NULL), WEFT_OK);
    for (*end = 0; one_token && !*end; *end = strlen(text)) assert_int_equal(place_accept(&p, FIRST), WEFT_OK);
    for (; text[*end] && !p.m; ++*end)
        assert_int_equal(place_accept(&p, text[*end] == '#' ? CONTROL : (unsigned char)text[*end]), WEFT_OK);
    if (p.m) { /* which beginnings it has: the grammar takes any text, and counts bytes where it cannot go on */
        assert_int_not_equal(weft__gram_matcher_feed(p.m, "\xFF", 1, &err), WEFT_OK);
        from = (int)*end - atoi(strstr(err.message, "at byte ") + 8);
    }
    place_close(&p);
    weft__gram_lazy_release(&lazy);
    weft__gram_tables_release(&g);
    vocab_close(&v);
    return from;
}

static void expressions_begin_where_their_groups_do(void **state)
{
    (void)state;
    enum { PART = WEFT__GRAM_TRIGGER_PATTERN, ALL = WEFT__GRAM_TRIGGER_PATTERN_FULL };
    static const struct {
        const char *pattern, *text;
        int kind, from;
        size_t end;
    } cases[] = {
        {"<tool>", "so <tool>{", PART, 3, 9},
        {"<start>assistant(\\s+to)", "<start>assistant  to=", PART, 16, 20},
        {"^\\s+to$", "  to=", PART, 0, 4},
        {"^\\s+to$", "x to=", PART, -1, 5},
        {"^[\\s\\S]*?(<tool>)", "thought <tool>", PART, 8, 14},
        {"(?:<think>[\\s\\S]*?</think>\\s*)?(<tool>)[\\s\\S]*", "<think>x</think> <tool>y", ALL, 17, 23},
        {"(?:<think>[\\s\\S]*?</think>\\s*)?(<tool>)[\\s\\S]*", "no <tool>", ALL, -1, 9},
        {"a|b", "ab", ALL, 0, 1},
        {"a|b", "xa", ALL, -1, 2},
        {"\\s*(\\s*x)", "   x", PART, 3, 4},  /* the first takes what it can */
        {"\\s*?(\\s*x)", "   x", PART, 0, 4}, /* as little as it can */
        {"(y)?(x)", "..x", PART, 2, 3},       /* of groups without text nothing is known */
        {"a()b", "ab", PART, 0, 2},           /* nor of this one */
        {"((a)b)(c)", "abc", PART, 0, 3},
        {"(?:(a)|(b))+c", "bac", PART, 1, 3}, /* the first by number */
        {"b(c)|abc", "abc", PART, 0, 3},      /* what began first */
        {"[^\\w]\\d{2,}?", "a-123", PART, 1, 4},
        {".\\n", "a\nb", PART, 0, 2},
        {"\xC3\xA9.", "\xC3\xA9\xC3\xA9", PART, 0, 4},
        {"<ctl>x", "a#x", PART, -3, 3}, /* six bytes of spelling, three tokens */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t end;
        int from = begins_at(cases[i].pattern, cases[i].kind, cases[i].text, 0, &end);
        if (from != cases[i].from || end != cases[i].end)
            fail_msg("%s in '%s': %d, known at %zu; expected %d, %zu", cases[i].pattern, cases[i].text, from, end,
                     cases[i].from, cases[i].end);
    }
}

/* Also where a match could go on, or another begin first, if the rest of the token were looked at. */
static void where_a_grammar_begins_depends_on_no_token(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *text;
        int from;
    } cases[] = {
        {"<tool>", "so <tool>{", 3},
        {"b|abc", "abc", 1},
        {"a(b)?", "ab", 0},
        {"x(a+)", "xaaa", 1},
        {"</t>(\\s+)?", "</t>\n\n", 0},
        {"</t>\\s*(<c>)", "</t> <c>z", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t end;
        for (int one_token = 0; one_token < 2; one_token++) {
            int from = begins_at(cases[i].pattern, WEFT__GRAM_TRIGGER_PATTERN, cases[i].text, one_token, &end);
            if (from != cases[i].from)
                fail_msg("%s in '%s', %d: %d, expected %d", cases[i].pattern, cases[i].text, one_token, from,
                         cases[i].from);
        }
    }
}

static void what_no_pattern_is_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *message;
        weft_status status;
    } cases[] = {
        {">>>(?!all)", "near byte 4: groups that begin with '(?'", WEFT_UNSUPPORTED},
        {"(a)\\1", "references to groups", WEFT_UNSUPPORTED},
        {"a\\b", "word boundaries", WEFT_UNSUPPORTED},
        {"(?:^|x)a", "an anchor within the expression", WEFT_UNSUPPORTED},
        {"(a", "without a closing ')'", WEFT_UNSUPPORTED},
        {"a*", "must not be empty", WEFT_ARGUMENT},
        {"^$", "must not be empty", WEFT_ARGUMENT},
        {"(?:a?b?)$", "must not be empty", WEFT_ARGUMENT},
        {"", "1 to 4096 bytes", WEFT_ARGUMENT},
        {"\xC3", "UTF-8", WEFT_ARGUMENT},
        {"(?:a|b)*a(?:a|b){20}", "states", WEFT_LIMIT},
        {"(?:[^a]{90}){90}", "states", WEFT_LIMIT},
        {"((((((((((((a|b)?){9})?){9})?){9})?){9})?){9})?){9}c", "states", WEFT_LIMIT},
    };
    static vocab v;
    vocab_make(&v, 5, 20);
    weft__gram_tables *g = grammar("root ::= \"ab\"", &v);
    weft__gram_lazy *lazy;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_error err = {0};
        const weft__gram_trigger t = {-1, cases[i].pattern, strlen(cases[i].pattern), WEFT__GRAM_TRIGGER_PATTERN};
        weft_status st = weft__gram_lazy_create(g, v.tok, &(weft__gram_lazy_spec){.triggers = &t, .n = 1}, &lazy, &err);
        if (st != cases[i].status || !strstr(err.message, cases[i].message))
            fail_msg("%s: %d, '%s' lacks '%s'", cases[i].pattern, st, err.message, cases[i].message);
        assert_null(lazy);
    }
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* An end that is passed over is no text: what was open is not any more, and the text does not begin anew. */
static void what_is_no_text_interrupts(void **state)
{
    (void)state;
    static vocab v;
    vocab_make(&v, 5, 0);
    weft__gram_tables *g = grammar("root ::= .+", &v);
    const weft__gram_trigger triggers[] = {{-1, "^ab", 3, WEFT__GRAM_TRIGGER_PATTERN},
                                           {-1, "cd+e", 4, WEFT__GRAM_TRIGGER_PATTERN}};
    weft__gram_lazy *lazy;
    place p = {0};
    weft__gram_lazy_spec spec = {.triggers = triggers, .n = 2};
    assert_int_equal(weft__gram_lazy_create(g, v.tok, &spec, &lazy, NULL), WEFT_OK);
    assert_int_equal(weft__gram_watch_create(lazy, &p.watch, NULL), WEFT_OK);
    static const int tokens[] = {'a', 0xFF, 'b', 'a', 'b', 'c', 'd', 0xFF, 'd', 'e', 'c', 'd', 'd', 'e'};
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        assert_null(p.m);
        assert_int_equal(place_accept(&p, tokens[i]), WEFT_OK);
    }
    assert_non_null(p.m);
    place_close(&p);
    weft__gram_lazy_release(&lazy);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* The work that a text of one letter takes is that of all states for each byte at most. */
static void follow_letters(const char *pattern, size_t length)
{
    weft__gram *g = weft__gram_create();
    weft__gram_regex_facts facts;
    weft__gram_patterns *patterns;
    weft__gram_threads t = {0};
    int32_t rule = weft__gram_rule(g, "p", 1);
    weft__gram_define(g, rule, weft__gram_regex(g, pattern, strlen(pattern), WEFT__GRAM_REGEX_MARKED, &facts));
    assert_int_equal(weft__gram_patterns_create(g, rule, &patterns, NULL), WEFT_OK);
    weft__gram_destroy(&g);
    for (size_t i = 0; i < length; i++)
        assert_true(weft__gram_threads_step(patterns, &t, 'a', i, 0, WEFT__GRAM_PATTERN_LATER));
    assert_null(weft__gram_threads_found(patterns, &t, 1));
    assert_true(t.work <= length * (patterns->a->n_states + 1 + patterns->a->n_edges));
    weft__gram_threads_free(&t);
    weft__gram_patterns_destroy(&patterns);
}

/* Readers that backtrack take forever. */
static void no_expression_makes_a_text_slow(void **state)
{
    (void)state;
    static const char *const patterns[] = {"(a+)+b", "(a|a)*b", "(?:a?){30}a{30}b", "(.*)(.*)(.*)(.*)b"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) follow_letters(patterns[i], 2000);
}

static int use_everything(void *arg)
{
    const vocab *v = arg;
    static weft__gram_tables *g;
    weft__gram_lazy *lazy = NULL;
    place p = {0}, copy = {0};
    uint64_t bits[MAX_TOKENS / 64 + 1];
    if (!g) g = grammar("root ::= \"<ctl>\" \"c\"+", v);
    if (!v->n) weft__gram_tables_release(&g);
    if (!v->n) return 1;
    const weft__gram_trigger triggers[] = {{-1, "a(<ctl>)c$", 10, WEFT__GRAM_TRIGGER_PATTERN},
                                           {-1, "<ctl>", 5, WEFT__GRAM_TRIGGER_PATTERN_FULL}};
    weft__gram_lazy_spec spec = {.triggers = triggers, .n = 2};
    weft_status st = weft__gram_lazy_create(g, v->tok, &spec, &lazy, NULL);
    if (!st) st = weft__gram_watch_create(lazy, &p.watch, NULL);
    if (!st) st = place_accept(&p, 'a');
    if (!st) st = place_accept(&p, CONTROL);
    if (!st) st = weft__gram_watch_copy(p.watch, &copy.watch, NULL);
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
    assert_true(fail_each(use_everything, &v) > 30);
    vocab_close(&v);
    v.n = 0;
    use_everything(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_are_what_a_search_that_backtracks_says),
        cmocka_unit_test(expressions_begin_where_their_groups_do),
        cmocka_unit_test(where_a_grammar_begins_depends_on_no_token),
        cmocka_unit_test(what_no_pattern_is_is_refused),
        cmocka_unit_test(what_is_no_text_interrupts),
        cmocka_unit_test(no_expression_makes_a_text_slow),
        cmocka_unit_test(refused_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
