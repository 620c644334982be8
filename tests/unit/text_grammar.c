// SPDX-License-Identifier: Apache-2.0
/* text_grammar.c: claims about grammars: GBNF as it is written, what is refused and by which name and line; JSON
 * against the JSON reader; ends, control tokens, and vocabularies that cannot spell what a grammar wants. */
#include "unit/grammar_world.h"

#include "base/json.h"

enum { N_DOCUMENTS = CLAIMS_REPEATED(20000, 3000, 500) };

/* ---- GBNF as it is written ---- */

static void gbnf_reads_what_it_says(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        const char *whole[4], *not [6];
    } cases[] = {
        {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"y", "yesno", "No", "", "noo"}},
        {"# list\nroot ::= item (\",\" item)* # items\nitem ::=\n  [a-z]+ |\n  [0-9]{2,3}\n",
         {"a", "ab,12,c", "123"},
         {"1", "1234", "a,", ",a", "A"}},
        {"root ::= (\n \"a\"\n | \"b\"\n){2} end\nend ::= \"!\"?", {"ab", "ba!", "aa"}, {"a", "aba", "ab!!"}},
        {"root ::= \"a\"\n  | \"b\"\n\nother ::= \"c\"", {"a", "b"}, {"c", "ab"}},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\t\\\\\\\"\\[\\]\"",
         {"A\xC3\xA9\xF0\x9F\x98\x80\n\t\\\"[]"},
         {"A", "a"}},
        {"root ::= [^a-c\\]\"]{3}", {"xyz", "\xC3\xA9\n ", "[-^"}, {"xya", "x]z", "x\"z", "xy", "wxyz"}},
        {"root ::= [a+z-]+", {"a-z", "--+"}, {"b"}},
        {"root ::= . .", {"ab", "\n\xE4\xB8\xAD"}, {"a", "abc", "\xE4\xB8"}},
        {"root ::= a-b_1 \"\" a-b_1*\na-b_1 ::= \"x\"{1,}", {"x", "xxx"}, {"", "y"}},
        {"root ::= \"a\"{0} \"b\"{3} \"c\"{2,}", {"bbbcc", "bbbcccc"}, {"abbbcc", "bbcc", "bbbc"}},
        {"root ::= \"ab\"* \"c\"+?", {"abab", "c", "ababccc", ""}, {"aba", "abb"}},
        {"root ::= paren\nparen ::= \"(\" paren* \")\"", {"()", "(()())"}, {"(", "())", "()()"}},
        {"root::=x\r\nx::=\"1\"\r\n", {"1"}, {"2"}},
        {"root ::= | \"a\"", {"", "a"}, {"aa"}},
        {"root ::= r \"b\"\nr ::= (\"a\" r \"c\")?",
         {"b", "acb", "aaccb"},
         {"", "a", "ab", "aacb"}}, /* a call that may be empty */
    };
    static vocab v;
    vocab_make(&v, 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__gram_tables *g = grammar(cases[i].source, &v);
        for (int k = 0; k < 4 && cases[i].whole[k]; k++)
            if (follow(g, cases[i].whole[k], strlen(cases[i].whole[k])) < 1)
                fail_msg("%s\nmust allow '%s'", cases[i].source, cases[i].whole[k]);
        for (int k = 0; k < 6 && cases[i].not [k]; k++)
            if (follow(g, cases[i].not [k], strlen(cases[i].not [k])) > 0)
                fail_msg("%s\nmust not allow '%s'", cases[i].source, cases[i].not [k]);
        weft__gram_tables_release(&g);
    }
    vocab_close(&v);
}

static void what_cannot_work_is_refused_by_name_and_line(void **state)
{
    (void)state;
    static const struct {
        const char *source;
        weft_status status;
        const char *message[3];
    } cases[] = {
        {"", WEFT_ARGUMENT, {"rule 'root' is not defined; a grammar begins with it"}},
        {"main ::= \"a\"", WEFT_ARGUMENT, {"rule 'root' is not defined; a grammar begins with it"}},
        {"root ::= \"a\"\nx ::= \"b\" |\n  missing", WEFT_ARGUMENT, {"'missing'", "line 3", "not defined"}},
        {"root ::= \"a\"\nroot ::= \"b\"", WEFT_ARGUMENT, {"line 2", "'root'", "again"}},
        {"root ::= \"a\"\n\nx ::= x \"b\" | \"c\"", WEFT_ARGUMENT, {"'x'", "line 3", "left-recursive"}},
        {"root ::= a\na ::= \"\"? b\nb ::= a \"x\" | \"y\"",
         WEFT_ARGUMENT,
         {"left-recursive", "'a' (line 2)", "'b' (line 3)"}},
        {"root ::= (\" \"* root)*", WEFT_ARGUMENT, {"'root'", "line 1", "left-recursive"}},
        {"root ::= \"a\" | x\nx ::= \"b\" y\ny ::= \"c\" x", WEFT_ARGUMENT, {"'x'", "line 2", "no finite text"}},
        {"root ::= [^\\x00-\\U0010FFFF]", WEFT_ARGUMENT, {"line 1", "no character"}},
        {"root ::= []", WEFT_ARGUMENT, {"line 1", "empty character class"}},
        {"root ::= [a", WEFT_ARGUMENT, {"line 1", "closing ']'"}},
        {"root ::= \"a", WEFT_ARGUMENT, {"line 1", "closing '\"'"}},
        {"root ::= (\"a\"\n\n", WEFT_ARGUMENT, {"line 1", "closing ')'"}},
        {"root ::= [z-a]", WEFT_ARGUMENT, {"line 1", "U+007A down to U+0061"}},
        {"root ::= \"\\q\"", WEFT_ARGUMENT, {"line 1", "unknown escape"}},
        {"root ::= \"\\u12\"", WEFT_ARGUMENT, {"line 1", "hexadecimal"}},
        {"root ::= \"\\uD800\"", WEFT_ARGUMENT, {"line 1", "U+D800"}},
        {"root ::= \"\\U00110000\"", WEFT_ARGUMENT, {"line 1", "U+110000"}},
        {"root ::= * \"a\"", WEFT_ARGUMENT, {"line 1", "nothing to be repeated"}},
        {"root ::= \"a\"{}", WEFT_ARGUMENT, {"line 1", "number"}},
        {"root ::= \"a\"{2", WEFT_ARGUMENT, {"line 1", "'}'"}},
        {"root ::= \"a\"{3,2}", WEFT_ARGUMENT, {"line 1", "{3,2}"}},
        {"root ::= \"a\"{99999999999999999999}", WEFT_LIMIT, {"line 1", "repetition"}},
        {"root ::= \"a\" )", WEFT_ARGUMENT, {"line 1", "')'"}},
        {"root = \"a\"", WEFT_ARGUMENT, {"line 1", "'::='"}},
        {"root ::= \"a\"\n<think>", WEFT_ARGUMENT, {"line 2", "'::='"}},
        {"root ::= <think>", WEFT_ARGUMENT, {"line 1", "spelled '<think>'"}},
        {"root ::= \"a\"\n | <ctl", WEFT_ARGUMENT, {"line 2", "<[ID]>"}},
        {"root ::= <[300]>", WEFT_ARGUMENT, {"line 1", "token 300", "0 to 257"}},
        {"root ::= <[99999999999]>", WEFT_ARGUMENT, {"line 1", "<[99999999999]>"}},
        {"root ::= <end>", WEFT_ARGUMENT, {"line 1", "token 257", "ends the answer"}},
        {"root ::= <[200]>", WEFT_UNSUPPORTED, {"line 1", "token 200", "whole characters"}},
        {"root ::= !<ctl>", WEFT_UNSUPPORTED, {"line 1", "any token but one"}},
        {"root ::= \"\xFF\"", WEFT_ARGUMENT, {"line 1", "UTF-8"}},
    };
    static vocab v;
    vocab_make(&v, 1, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__gram_automaton *a;
        weft_error err = {0};
        weft_status st = gbnf_over(v.tok, cases[i].source, strlen(cases[i].source), WEFT__GRAM_DEPTH, &a, &err);
        assert_null(a);
        if (st != cases[i].status) fail_msg("%s\n%d: %s", cases[i].source, st, err.message);
        for (int k = 0; k < 3 && cases[i].message[k]; k++)
            if (!strstr(err.message, cases[i].message[k]))
                fail_msg("%s\n'%s' lacks '%s'", cases[i].source, err.message, cases[i].message[k]);
    }
    vocab_close(&v);
}

/* ---- JSON ---- */

static const char *const json_refuses[] = {"[]",
                                           " {}",
                                           "\n{}",
                                           "{  }",
                                           "{\n\n}",
                                           "{\r\n}",
                                           "{\t}",
                                           "{\n                                 }",
                                           "1",
                                           "\"a\"",
                                           "{} ",
                                           "{",
                                           "{\"a\"}",
                                           "{\"a\":}",
                                           "{\"a\":1,}",
                                           "{,}",
                                           "{a:1}",
                                           "{'a':1}",
                                           "{\"a\":01}",
                                           "{\"a\":1.}",
                                           "{\"a\":.5}",
                                           "{\"a\":+1}",
                                           "{\"a\":1e}",
                                           "{\"a\":-}",
                                           "{\"a\":NaN}",
                                           "{\"a\":tru}",
                                           "{\"a\":[1,]}",
                                           "{\"a\":[}",
                                           "{\"a\":\"\n\"}",
                                           "{\"a\":\"\t\"}",
                                           "{\"a\":\"\\x\"}",
                                           "{\"a\":\"\\u12\"}",
                                           "{\"a\":\"\\uD800\"}",
                                           "{\"a\":\"\\uDC00\"}",
                                           "{\"a\":\"\\uD83D\\u0041\"}",
                                           "{\"a\":\"\\uDC00\\uDC00\"}",
                                           "{\"a\":\"\\uD83Dx\"}",
                                           "{\"a\":\"\xED\xA0\x80\"}",
                                           "{\"a\":\"\xC0\x80\"}",
                                           "{\"a\":\"\xFF\"}",
                                           "{\"a\":1}}",
                                           "{\"a\" 1}",
                                           "{\"a\" :1}",
                                           "{\"a\":\n1}",
                                           "{\"a\":  1}",
                                           "{\"a\":1 ,\"b\":2}",
                                           "{\"a\":[1\n,2]}",
                                           "{\n \t\"a\":1}",
                                           "{\n\t \"a\":1}",
                                           "{ \n\"a\":1}",
                                           "{\"a\":1\t}",
                                           "{\"a\":1 \"b\":2}",
                                           "{\"a\":12345678901234567890123}"};

static void json_takes_what_the_standard_allows(void **state)
{
    (void)state;
    static const char *const yes[] = {
        "{}",
        "{ }",
        "{\n\t\t\"a\": [\n    1\n  ]\n}",
        "{\"a\":1}",
        "{ \"a\": [ ], \"b\": { } }",
        "{\"\":-0.5e+10}",
        "{\"a\":[1,2.25,-3,0,1E5,true,false,null,\"x\"]}",
        "{\"\\u00e9\\uD83D\\uDE00\\n\\/\\\"\\\\\":\"\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80\x7F\"}",
        "{\"a\":[[[{\"b\":{}}]]]}",
        "{\"a\":\"\\ud7FF\\uE000\"}",
        "{\"a\":123456789012345678.12345678901234567890e-123}"};
    static vocab v;
    vocab_make(&v, 1, 0);
    weft__gram_tables *g = json_grammar(&v);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (follow(g, yes[i], strlen(yes[i])) != 2) fail_msg("must allow %s", yes[i]);
    for (size_t i = 0; i < sizeof json_refuses / sizeof *json_refuses; i++)
        if (follow(g, json_refuses[i], strlen(json_refuses[i])) > 0) fail_msg("must not allow %s", json_refuses[i]);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

static void any_value_is_more_than_objects(void **state)
{
    (void)state;
    static const char *const yes[] = {"{}", "[ 1,{\"a\":[]}]", "\"a\"", "-1.5e3", "0", "true", "false", "null"};
    static const char *const no[] = {"",    " ",   "[",    "tru", "nulls", "01", "1 ",
                                     "[] ", "{} ", "[1,]", "\"",  "a",     " 1", "\n[]"};
    static vocab v;
    char deep[2 * (WEFT__GRAM_JSON_DEPTH + 1)];
    vocab_make(&v, 1, 0);
    weft__gram_tables *g = built_in_grammar(weft__gram_json_value, &v);
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (follow(g, yes[i], strlen(yes[i])) < 1) fail_msg("must allow %s", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (follow(g, no[i], strlen(no[i])) > 0) fail_msg("must not allow %s", no[i]);
    for (int depth = WEFT__GRAM_JSON_DEPTH; depth <= WEFT__GRAM_JSON_DEPTH + 1; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        assert_int_equal(follow(g, deep, 2 * (size_t)depth), depth == WEFT__GRAM_JSON_DEPTH ? 2 : -1);
    }
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* 1 for a space, or a line break and its indent, of n bytes. */
static int is_one_break(const char *s, size_t n)
{
    if (n == 1 && *s == ' ') return 1;
    for (size_t i = 1; i < n; i++)
        if ((s[i] != ' ' && s[i] != '\t') || s[i] != s[1]) return 0;
    return *s == '\n';
}

/* 1 when there is no white space but where JSON's writers put some: a space behind a colon, and that or a line break
 * with its indent behind what opens a list or parts it, and before what closes it. */
static int is_sparing(const char *s, size_t n)
{
    for (size_t i = 0, quoted = 0, k; i < n; i++) {
        if (quoted && s[i] == '\\') i++;
        else if (s[i] == '"') quoted = !quoted;
        if (quoted || !memchr(" \t\r\n", s[i], 4)) continue;
        for (k = i; k < n && memchr(" \t\r\n", s[k], 4);) k++;
        if (!i || k == n || memchr(":,", s[k], 2)) return 0;
        if (s[i - 1] == ':' ? k - i != 1 || s[i] != ' ' : !is_one_break(s + i, k - i)) return 0;
        if (!memchr(":{[,", s[i - 1], 4) && !memchr("}]", s[k], 2)) return 0;
        i = k - 1;
    }
    return 1;
}

/* Random bytes changed, left out and doubled in a document: the grammar and the reader agree. */
static void json_agrees_with_the_reader(void **state)
{
    (void)state;
    static const char seed_text[] =
        "{\"a\\u10e9\": [1, -2.5e3, true, null, \"\xC3\xA9\\n\"], \"b\": {\"c\": {}, \"d\": [[], false]}, \"e\": 0}";
    static const char spice[] = "{}[]\",:\\u0123456789.eE+-tfn \n\xC3\xA9";
    static vocab v;
    weft__rng rng;
    int n_good = 0;
    vocab_make(&v, 1, 0);
    weft__gram_tables *g = json_grammar(&v);
    for (uint64_t seed = 0; seed < N_DOCUMENTS; seed++) {
        char s[2 * sizeof seed_text];
        size_t n = sizeof seed_text - 1;
        weft__json *doc = NULL;
        weft__rng_seed(&rng, seed);
        memcpy(s, seed_text, n);
        for (uint64_t k = 1 + weft__rng_below(&rng, 3); k > 0; k--) {
            size_t at = weft__rng_below(&rng, n);
            uint64_t what = weft__rng_below(&rng, 3);
            if (what == 0) {
                s[at] = spice[weft__rng_below(&rng, sizeof spice - 1)];
            } else if (what == 1) {
                memmove(s + at, s + at + 1, --n - at);
            } else {
                memmove(s + at + 1, s + at, n++ - at);
            }
        }
        weft_error err = {0};
        int expected = !weft__json_parse(s, n, &doc, &err) && s[n - 1] == '}' && s[0] == '{' && is_sparing(s, n);
        /* Beyond the grammar: keys that occur twice or contain NUL, numbers that are too large. */
        if (strstr(err.message, "duplicate") || strstr(err.message, "overflow") || strstr(err.message, "too big") ||
            strstr(err.message, "NUL"))
            continue;
        if (expected != (follow(g, s, n) == 2)) fail_msg("%.*s: the reader says %d", (int)n, s, expected);
        n_good += expected;
        weft__json_free(&doc);
    }
    assert_true(n_good > N_DOCUMENTS / 40 && n_good < N_DOCUMENTS / 20 * 19);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

static void json_has_a_depth_and_never_gets_stuck(void **state)
{
    (void)state;
    static vocab v;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    vocab_make(&v, 1, 0);
    strcpy(v.text[v.n++], "[[[[[[[");
    strcpy(v.text[v.n++], "[[");
    strcpy(v.text[v.n++], "[1");
    vocab_close(&v);
    vocab_open(&v);
    weft__gram_tables *g = json_grammar(&v);
    weft__gram_matcher *m;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    for (const char *s = "{\"a\":"; *s; s++)
        assert_int_equal(weft__gram_matcher_accept(m, (unsigned char)*s, NULL), WEFT_OK);
    for (int depth = 2; depth <= WEFT__GRAM_JSON_DEPTH; depth++) {
        assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
        int left = WEFT__GRAM_JSON_DEPTH - depth + 1; /* arrays that may still begin */
        assert_int_equal(bit(bits, FIRST), left >= 7);
        assert_int_equal(bit(bits, FIRST + 1), left >= 2);
        assert_int_equal(bit(bits, FIRST + 2), left >= 1);
        assert_int_equal(weft__gram_matcher_accept(m, '[', NULL), WEFT_OK);
    }
    assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
    assert_true(!bit(bits, '[') && !bit(bits, '{') && bit(bits, '1') && bit(bits, '"') && bit(bits, ']'));
    assert_int_equal(weft__gram_matcher_accept(m, '[', NULL), WEFT_ARGUMENT);
    for (int depth = WEFT__GRAM_JSON_DEPTH; depth > 1; depth--)
        assert_int_equal(weft__gram_matcher_accept(m, ']', NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_accept(m, '}', NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_complete(m), 2);
    weft__gram_matcher_destroy(&m);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* ---- ends ---- */

static void ends_and_control_tokens(void **state)
{
    (void)state;
    static vocab v;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft_error err = {0};
    vocab_make(&v, 1, 0);
    weft__gram_tables *g = grammar("root ::= \"<ctl>\" \"<end>\"?", &v);
    weft__gram_matcher *m, *other;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    weft__gram_tables_release(&g); /* the matcher keeps it */
    assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
    assert_true(bit(bits, '<') && !bit(bits, CONTROL) && !bit(bits, END));
    assert_int_equal(weft__gram_matcher_accept(m, CONTROL, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__gram_matcher_accept(m, END, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__gram_matcher_accept(m, v.n, NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__gram_matcher_accept(m, -1, NULL), WEFT_ARGUMENT);
    for (const char *s = "<ctl>"; *s; s++) assert_int_equal(weft__gram_matcher_accept(m, *s, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_copy(m, &other, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_accept(m, END, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_complete(m), 2);
    assert_int_equal(weft__gram_matcher_mask(m, bits, &err), WEFT_STATE);
    assert_int_equal(weft__gram_matcher_accept(m, '<', NULL), WEFT_ARGUMENT);
    assert_int_equal(weft__gram_matcher_complete(other), 1); /* the copy went its own way */
    for (const char *s = "<end>"; *s; s++) assert_int_equal(weft__gram_matcher_accept(other, *s, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_complete(other), 2);
    weft__gram_matcher_destroy(&other);
    weft__gram_matcher_destroy(&m);
    vocab_close(&v);
}

/* A control token and the text of its spelling are two things, and each stands where the grammar has it. */
static void a_control_token_is_not_its_spelling(void **state)
{
    (void)state;
    static vocab v;
    uint64_t bits[MAX_TOKENS / 64 + 1];
    vocab_make(&v, 1, 0);
    weft__gram_tables *g = grammar("root ::= <ctl> \"a\" <[97]> | \"<ctl>b\" | .", &v);
    for (int as_token = 0; as_token < 2; as_token++) {
        weft__gram_matcher *m;
        assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
        assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
        assert_true(bit(bits, '<') && bit(bits, CONTROL) && bit(bits, 'x') && !bit(bits, 0xFF) && !bit(bits, END));
        assert_int_equal(weft__gram_matcher_accept(m, 0xFF, NULL), WEFT_ARGUMENT);
        for (const char *s = as_token ? "" : "<ctl>"; *s; s++)
            assert_int_equal(weft__gram_matcher_accept(m, *s, NULL), WEFT_OK);
        if (as_token) assert_int_equal(weft__gram_matcher_accept(m, CONTROL, NULL), WEFT_OK);
        assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
        for (int id = 0; id < v.n; id++) assert_int_equal(bit(bits, id), id == (as_token ? 'a' : 'b'));
        weft__gram_matcher_destroy(&m);
    }
    assert_int_equal(follow(g,
                            "\xFF<ctl>\xFF"
                            "aa",
                            9),
                     -1); /* its bytes one by one */
    weft__gram_tables_release(&g);
    vocab_close(&v);
}

/* Every text of up to six letters: it is what stands before the word, and the word, when the word is nowhere else. */
static void a_text_without_a_word_ends_where_the_word_begins(void **state)
{
    (void)state;
    static const char *const words[] = {"ab", "aab", "a\xC3\xA9", "\xC3\xA9\xC3\xA9z", "abac"}, *const letters[] = {
                                                                                                    "a", "b", "c",
                                                                                                    "\xC3\xA9", "z"};
    static vocab v;
    vocab_make(&v, 1, 0);
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        const size_t length = strlen(words[w]);
        weft__gram *rules = weft__gram_create();
        weft__gram_automaton *a;
        weft__gram_tables *g;
        int32_t root = weft__gram_rule(rules, "root", 4);
        int32_t items[] = {weft__gram_without(rules, words[w], length), weft__gram_text(rules, words[w], length)};
        weft__gram_define(rules, root, weft__gram_seq(rules, items, 2));
        assert_int_equal(weft__gram_compile(rules, root, 1, &a, NULL), WEFT_OK);
        assert_int_equal(weft__gram_tables_create(a, v.trie, &g, NULL), WEFT_OK);
        for (int code = 0; code < 5 * 5 * 5 * 5 * 5 * 5; code++) {
            char text[16] = "";
            for (int rest = code, i = 0; i < 6; rest /= 5, i++) strcat(text, letters[rest % 5]);
            for (size_t n = strlen(text); n > 0; n = strlen(text)) {
                const char *at = strstr(text, words[w]);
                if ((follow(g, text, n) == 2) != (at && at + length == text + n))
                    fail_msg("'%s' of '%s'", text, words[w]);
                if (code % 7 || n < 2 || (text[n - 1] & 0x80)) break;
                text[n - 1] = 0;
            }
        }
        weft__gram_tables_release(&g);
        weft__gram_destroy(&rules);
    }
    vocab_close(&v);
}

/* A vocabulary that cannot spell what the grammar wants is an error that names the place, never a mask without a
 * token. */
static void fails_closed(void **state)
{
    (void)state;
    weft__tok_slice tokens[] = {WEFT__TOK_SLICE("<unk>"), WEFT__TOK_SLICE("<s>"), WEFT__TOK_SLICE("</s>"),
                                WEFT__TOK_SLICE("a"), WEFT__TOK_SLICE("b")};
    int32_t types[] = {WEFT__TOK_UNKNOWN, WEFT__TOK_CONTROL, WEFT__TOK_CONTROL, WEFT__TOK_NORMAL, WEFT__TOK_NORMAL};
    float scores[5] = {0};
    weft__tok_spec spec;
    vocab v;
    uint64_t bits[1];
    weft_error err = {0};
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("llama");
    spec.tokens = tokens;
    spec.types = types;
    spec.scores = scores;
    spec.n_tokens = spec.n_types = spec.n_scores = 5;
    assert_int_equal(weft__tok_create(&spec, &v.tok, NULL), WEFT_OK);
    assert_int_equal(weft__gram_trie_create(v.tok, &v.trie, NULL), WEFT_OK);
    weft__gram_tables *g = grammar("root ::= \"ab\" rest\n\nrest ::= \"c\" rest \"c\" | \"c\"", &v);
    weft__gram_matcher *m;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_accept(m, 3, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_mask(m, bits, NULL), WEFT_OK);
    assert_int_equal(bits[0], 1 << 4);
    assert_int_equal(weft__gram_matcher_accept(m, 4, NULL), WEFT_OK);
    assert_int_equal(weft__gram_matcher_mask(m, bits, &err), WEFT_STATE);
    assert_int_equal(bits[0], 0);
    assert_non_null(strstr(err.message, "at byte 2"));
    assert_non_null(strstr(err.message, "rule 'rest' (line 3)"));
    weft__gram_matcher_destroy(&m);
    weft__gram_tables_release(&g);
    vocab_close(&v);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gbnf_reads_what_it_says),
        cmocka_unit_test(what_cannot_work_is_refused_by_name_and_line),
        cmocka_unit_test(json_takes_what_the_standard_allows),
        cmocka_unit_test(any_value_is_more_than_objects),
        cmocka_unit_test(json_agrees_with_the_reader),
        cmocka_unit_test(json_has_a_depth_and_never_gets_stuck),
        cmocka_unit_test(ends_and_control_tokens),
        cmocka_unit_test(a_control_token_is_not_its_spelling),
        cmocka_unit_test(a_text_without_a_word_ends_where_the_word_begins),
        cmocka_unit_test(fails_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
