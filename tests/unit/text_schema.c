// SPDX-License-Identifier: Apache-2.0
/* text_schema.c: claims about JSON Schemas as grammars: a table of schemas with what is valid and what is not, what is
 * refused and by which place, white space, and schemas that attack time and memory. */
#include "unit/grammar_world.h"

#include "base/json.h"

static weft__json *table;
static vocab bytes;

static weft_status compile(const char *source, size_t n, weft__gram_automaton **out, weft_error *err)
{
    weft__gram *g = weft__gram_create();
    assert_non_null(g);
    int32_t root = weft__gram_read_schema(g, source, n);
    weft_status st = weft__gram_compile(g, root, WEFT__GRAM_JSON_DEPTH - 1, out, err);
    weft__gram_destroy(&g);
    return st;
}

static weft__gram_tables *schema_tables(const char *source, size_t n)
{
    weft__gram_automaton *a;
    weft__gram_tables *g;
    weft_error err = {0};
    if (compile(source, n, &a, &err)) fail_msg("%.*s\n%s", (int)n, source, err.message);
    assert_int_equal(weft__gram_tables_create(a, bytes.trie, &g, NULL), WEFT_OK);
    return g;
}

static size_t instances(weft__gram_tables *g, const weft__json *list, int taken, const char *schema)
{
    for (size_t i = 0; i < weft__json_size(list); i++)
        for (int style = WEFT__JSON_COMPACT; style <= WEFT__JSON_INDENTED; style++) {
            weft__strbuf text = {0};
            weft__json_write(&text, weft__json_at(list, i), (weft__json_style)style);
            if ((follow(g, text.data, text.len) >= 1) != taken)
                fail_msg("%s\n%s allow %.*s", schema, taken ? "must" : "must not", (int)text.len, text.data);
            weft__strbuf_free(&text);
        }
    return weft__json_size(list);
}

static void the_table_is_followed(void **state)
{
    (void)state;
    const weft__json *cases = weft__json_get(table, "cases");
    size_t valid = 0, invalid = 0;
    for (size_t i = 0; i < weft__json_size(cases); i++) {
        const weft__json *one = weft__json_at(cases, i);
        weft__strbuf text = {0};
        weft__json_write(&text, weft__json_get(one, "schema"), WEFT__JSON_COMPACT);
        weft__strbuf_putc(&text, 0);
        weft__gram_tables *g = schema_tables(text.data, text.len - 1);
        valid += instances(g, weft__json_get(one, "valid"), 1, text.data);
        invalid += instances(g, weft__json_get(one, "invalid"), 0, text.data);
        instances(g, weft__json_get(one, "unwritten"), 0, text.data);
        weft__gram_tables_release(&g);
        weft__strbuf_free(&text);
    }
    assert_true(valid >= 500 && invalid >= 500);
}

static void what_cannot_be_held_is_refused_by_its_place(void **state)
{
    (void)state;
    const weft__json *refused = weft__json_get(table, "refused");
    for (size_t i = 0; i < weft__json_size(refused); i++) {
        const weft__json *one = weft__json_at(refused, i);
        const char *place;
        size_t n;
        weft__gram_automaton *a;
        weft_error err = {0};
        weft__strbuf text = {0};
        weft__json_write(&text, weft__json_at(one, 0), WEFT__JSON_COMPACT);
        assert_true(weft__json_string(weft__json_at(one, 1), &place, &n));
        weft_status st = compile(text.data, text.len, &a, &err);
        if (!st) fail_msg("%.*s: taken", (int)text.len, text.data);
        if (strncmp(err.message, "schema: #", 9) != 0 || !strstr(err.message, place))
            fail_msg("%.*s: %s", (int)text.len, text.data, err.message);
        assert_true(st == WEFT_ARGUMENT || st == WEFT_UNSUPPORTED || st == WEFT_LIMIT);
        weft__strbuf_free(&text);
    }
}

/* A decimal of `places` digits behind the point, as short as it goes. */
static size_t put_decimal(char text[32], int v, int places)
{
    int power = places == 1 ? 10 : places == 2 ? 100 : 1;
    int n = snprintf(text, 32, "%s%d", v < 0 ? "-" : "", abs(v) / power);
    if (abs(v) % power) n += snprintf(text + n, 32 - (size_t)n, ".%0*d", places, abs(v) % power);
    while (abs(v) % power && text[n - 1] == '0') text[--n] = 0;
    return (size_t)n;
}

/* Each number of two digits behind the point is allowed exactly when arithmetic says that it is. */
static void bounds_and_multiples_are_those_of_arithmetic(void **state)
{
    (void)state;
    static const char *const lows[] = {"minimum", "exclusiveMinimum"}, *const highs[] = {"maximum", "exclusiveMaximum"};
    enum { RANGES = CLAIMS_REPEATED(150, 40, 15), MOST = 320 };
    weft__rng rng;
    weft__rng_seed(&rng, 46);
    for (int i = 0; i < RANGES; i++) {
        int low = (int)weft__rng_below(&rng, 500) - 250, high = low + (int)weft__rng_below(&rng, 300);
        int open = (int)weft__rng_below(&rng, 4), whole = !weft__rng_below(&rng, 3), unit = 0, seen = 0;
        static const int units[] = {25, 50, 75, 125, 100, 300}; /* hundredths that binary numbers hold */
        int closed = weft__rng_below(&rng, 3) > 0;              /* multiples that have no end are not listed */
        if (!closed) high = INT32_MAX / 2;
        if (weft__rng_below(&rng, 2)) unit = units[weft__rng_below(&rng, 6)];
        char a[32], b[32], m[32] = "", text[32];
        weft__strbuf schema = {0};
        weft__gram_automaton *automaton;
        put_decimal(a, low, 2);
        put_decimal(b, high, 2);
        put_decimal(m, unit, 2);
        weft__strbuf_printf(&schema, "{\"type\":\"%s\",\"%s\":%s", whole ? "integer" : "number", lows[open & 1], a);
        if (closed) weft__strbuf_printf(&schema, ",\"%s\":%s", highs[open >> 1], b);
        if (unit) weft__strbuf_printf(&schema, ",\"multipleOf\":%s", m);
        weft__strbuf_putc(&schema, '}');
        weft__strbuf_putc(&schema, 0);
        weft_status st = compile(schema.data, schema.len - 1, &automaton, NULL);
        weft__gram_tables *g = NULL;
        if (!st) assert_int_equal(weft__gram_tables_create(automaton, bytes.trie, &g, NULL), WEFT_OK);
        for (int v = -MOST; v <= MOST + 60; v++) {
            int within = v >= low + (open & 1) && v <= high - (open >> 1) && (!whole || v % 100 == 0) &&
                         (!unit || v % unit == 0);
            size_t n = put_decimal(text, v, 2);
            seen |= within;
            if (g && (follow(g, text, n) >= 1) != within) fail_msg("%s: %s, not %d", schema.data, text, within);
        }
        if (!g && seen) fail_msg("%s: refused", schema.data);
        weft__gram_tables_release(&g);
        weft__strbuf_free(&schema);
    }
}

static void white_space_is_bounded(void **state)
{
    (void)state;
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\"}},\"required\":[\"a\"]}";
    static const char *const good[] = {"{\"a\":[]}", "{ \"a\": [1, 2] }", "{\n\t\t\"a\": [\n    1\n  ]\n}",
                                       "{\"a\":[{ \"b\": 1 }, {}]}"};
    static const char *const bad[] = {
        " {\"a\":[]}",    "\n{\"a\":[]}",   "{  \"a\":[]}",         "{\"a\":[]} ",
        "{\n\n\"a\":[]}", "{\"a\" :[]}",    "{\r\n\"a\":[]}",       "{\n                                 \"a\":[]}",
        "{\"a\":\n[]}",   "{\"a\":\t[]}",   "{\t\"a\":[]}",         "{\n \t\"a\":[]}",
        "{ \n\"a\":[]}",  "{\"a\":[1 ,2]}", "{\"a\":[{\"b\" :1}]}", "{\"a\":[{\"b\":\n1}]}",
        "{\"a\":[1]\t}",  "{\"a\":[]\n\n}", "{\"a\":[ \n ]}"};
    weft__gram_tables *g = schema_tables(schema, sizeof schema - 1);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (follow(g, good[i], strlen(good[i])) < 1) fail_msg("must allow '%s'", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (follow(g, bad[i], strlen(bad[i])) > 0) fail_msg("must not allow '%s'", bad[i]);
    weft__gram_tables_release(&g);
}

/* What no string is to be is not written in another spelling either. */
static void what_is_lacked_has_one_spelling(void **state)
{
    (void)state;
    static const char *const schemas[] = {
        "{\"type\":\"string\",\"not\":{\"const\":\"a\"}}", "{\"type\":\"string\",\"pattern\":\"^(?!a)\"}",
        "{\"type\":\"string\",\"maxLength\":3,\"not\":{\"pattern\":\"^a\"}}",
        "{\"type\":\"string\",\"if\":{\"enum\":[\"a\",\"ab\"]},\"then\":false}",
        "{\"oneOf\":[{\"type\":\"string\",\"pattern\":\"^a\"},{\"type\":\"string\",\"maxLength\":2}]}"};
    static const char *const bad[] = {"\"\\u0061\"", "\"\\u0061b\""};
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        weft__gram_tables *g = schema_tables(schemas[i], strlen(schemas[i]));
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
            if (follow(g, bad[k], strlen(bad[k])) > 0) fail_msg("%s must not allow %s", schemas[i], bad[k]);
        assert_true(follow(g, "\"c\\n\"", 5) >= 1);
        weft__gram_tables_release(&g);
    }
}

/* `head`, then n times `part`, with commas between where it does not begin with '+', then `tail`. */
static void attack(const char *head, const char *part, size_t n, const char *tail, int refused)
{
    weft__strbuf text = {0};
    weft__gram_automaton *a;
    weft_error err = {0};
    weft__strbuf_puts(&text, head);
    for (size_t i = 0; i < n; i++) {
        if (i && part[0] != '+') weft__strbuf_putc(&text, ',');
        weft__strbuf_puts(&text, part[0] == '+' ? part + 1 : part);
    }
    weft__strbuf_puts(&text, tail);
    weft_status st = compile(text.data, text.len, &a, &err);
    if (!st) weft__gram_automaton_destroy(&a);
    if ((st != WEFT_OK) != refused) fail_msg("%s...: %s", head, st ? err.message : "taken");
    if (st && strncmp(err.message, "schema: ", 8) != 0) fail_msg("%s...: %s", head, err.message);
    weft__strbuf_free(&text);
}

static void what_attacks_ends(void **state)
{
    (void)state;
    attack("{\"enum\":[", "\"0123456789012345678901234567890123456789\"", 300000, "]}", 1);
    attack("{\"anyOf\":[", "{\"type\":\"null\"}", 10000, "]}", 1);
    attack("{\"type\":\"string\",\"pattern\":\"", "+(", 5000, "\"}", 1);
    attack("{\"type\":\"string\",\"pattern\":\"^", "+(a|aa)*", 500, "$\"}", 0);
    attack("{\"type\":\"string\",\"pattern\":\"^", "+((((a{99}){99}){99}){99})", 4, "$\"}", 1);
    attack("{\"type\":\"string\",\"pattern\":\"", "+(a|", 20, "b))))))))))))))))))))\"}", 0);
    attack("", "+{\"items\":", 250, "1", 1);
    attack("{\"type\":\"object\",\"required\":[", "\"a\"", 100000, "]}", 1);
    attack("{\"allOf\":[", "{\"anyOf\":[{\"minimum\":1},{\"maximum\":0}]}", 60, "]}", 1);
    attack("{\"allOf\":[", "{\"$ref\":\"#/$defs/a\"}", 9,
           "],\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}}}", 1);
    attack("{\"enum\":[[1]],\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"items\":{\"anyOf\":[",
           "{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"null\"}]}", 2000, "]}}}}", 1);
    attack("{\"type\":\"object\",\"patternProperties\":{\"a\":true,\"^.*b.{", "+", 1, "40}$\":false}}", 1);
    attack("{\"type\":\"string\",\"maxLength\":50,\"pattern\":\"", "+(a|b)*a(a|b){14}", 1, "$\"}", 1);
    attack("{\"type\":\"object\",\"minProperties\":2,\"required\":[\"a\"", "+,\"a\"", 3000, "]}", 0);
    attack("{\"type\":\"object\",\"minProperties\":50,\"properties\":{\"p\":true", "+", 1, "}}", 1);
    attack("{\"type\":\"array\",\"minItems\":100000,\"items\":{\"type\":\"string\",\"maxLength\":1000", "+", 1, "}}",
           1);
}

/* n alternatives that name as many values each: how they are told apart is bounded, whatever their bytes allow. */
static weft_status told_apart(int n)
{
    weft__strbuf text = {0};
    weft__gram_automaton *a;
    weft_error err = {0};
    weft__strbuf_puts(&text, "{\"oneOf\":[");
    for (int i = 0; i < n; i++) {
        weft__strbuf_puts(&text, i ? ",{\"enum\":[" : "{\"enum\":[");
        for (int k = 0; k < n; k++) weft__strbuf_printf(&text, "%s\"%d_%d\"", k ? "," : "", i, k);
        weft__strbuf_puts(&text, "]}");
    }
    weft__strbuf_puts(&text, "]}");
    weft_status st = compile(text.data, text.len, &a, &err);
    if (!st) weft__gram_automaton_destroy(&a);
    weft__strbuf_free(&text);
    return st;
}

/* n values, of which n_lacked are not to be, each by a `not` of its own. */
static weft_status listed_but_for(int n, int n_lacked)
{
    weft__strbuf text = {0};
    weft__gram_automaton *a;
    weft_error err = {0};
    weft__strbuf_puts(&text, "{\"enum\":[");
    for (int i = 0; i < n; i++) weft__strbuf_printf(&text, "%s\"e%d\"", i ? "," : "", i);
    weft__strbuf_puts(&text, "],\"allOf\":[");
    for (int i = 0; i < n_lacked; i++) weft__strbuf_printf(&text, "%s{\"not\":{\"const\":\"e%d\"}}", i ? "," : "", i);
    weft__strbuf_puts(&text, "]}");
    weft_status st = compile(text.data, text.len, &a, &err);
    if (!st) weft__gram_automaton_destroy(&a);
    weft__strbuf_free(&text);
    return st;
}

static void values_that_are_compared_are_counted(void **state)
{
    (void)state;
    assert_int_equal(told_apart(40), WEFT_OK);
    assert_int_equal(told_apart(250), WEFT_LIMIT);
    assert_int_equal(listed_but_for(1000, 8), WEFT_OK);
    assert_int_equal(listed_but_for(10000, 40), WEFT_LIMIT);
}

static int build(void *arg)
{
    const char *source = arg;
    weft__gram_automaton *a = NULL;
    weft__gram *g = weft__gram_create();
    if (!g) return 0;
    int32_t root = weft__gram_read_schema(g, source, strlen(source));
    weft_status st = weft__gram_compile(g, root, 64, &a, NULL);
    weft__gram_destroy(&g);
    weft__gram_automaton_destroy(&a);
    return st == WEFT_OK;
}

static void refused_memory_is_an_error(void **state)
{
    (void)state;
    static const char *const sources[] = {
        "{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[[1],\"b\"]}}},{\"properties\":"
        "{\"b\":{\"type\":\"string\",\"pattern\":\"a|b\",\"maxLength\":2}},\"required\":[\"b\"]}]}",
        "{\"type\":\"object\",\"properties\":{\"ab\":true},\"patternProperties\":{\"^a\":{\"type\":\"null\"},\"b$\":"
        "true},"
        "\"propertyNames\":{\"maxLength\":2},\"minProperties\":1}",
        "{\"$ref\":\"#/$defs/"
        "a\",\"const\":4,\"$defs\":{\"a\":{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"integer\",\"multipleOf\":2,"
        "\"minimum\":0.5},{"
        "\"type\":\"string\"}]}}}",
        "{\"type\":\"integer\",\"multipleOf\":7}",
        "{\"$ref\":\"#a\",\"note\":1,\"$defs\":{\"x\":{\"$anchor\":\"a\",\"type\":\"string\",\"pattern\":\"^(?!b)(ab?)*"
        "$\","
        "\"maxLength\":3}}}",
        "{\"type\":\"object\",\"minProperties\":2,\"additionalProperties\":{\"oneOf\":[{\"const\":\"a\"},{\"pattern\":"
        "\"^b\","
        "\"type\":\"string\"}]}}"};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        assert_true(fail_some(build, (void *)(uintptr_t)sources[i], CLAIMS_REPEATED(5, 5, 15)) > 20);
}

static int open_table(void **state)
{
    (void)state;
    size_t n = 0;
    weft_error err = {0};
    char *text = NULL;
    FILE *f = fopen("tests/unit/schema_cases.json", "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    n = (size_t)ftell(f);
    rewind(f);
    text = malloc(n + 1);
    assert_int_equal(fread(text, 1, n, f), n);
    fclose(f);
    if (weft__json_parse(text, n, &table, &err)) fail_msg("%s", err.message);
    free(text);
    vocab_make(&bytes, 1, 0);
    return 0;
}

static int close_table(void **state)
{
    (void)state;
    vocab_close(&bytes);
    weft__json_free(&table);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_followed),
        cmocka_unit_test(what_cannot_be_held_is_refused_by_its_place),
        cmocka_unit_test(bounds_and_multiples_are_those_of_arithmetic),
        cmocka_unit_test(white_space_is_bounded),
        cmocka_unit_test(what_is_lacked_has_one_spelling),
        cmocka_unit_test(what_attacks_ends),
        cmocka_unit_test(values_that_are_compared_are_counted),
        cmocka_unit_test(refused_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, open_table, close_table);
}
