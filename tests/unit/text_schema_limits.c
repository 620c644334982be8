// SPDX-License-Identifier: Apache-2.0
/* text_schema_limits.c: schemas that attack time and memory end within a counted bound of states and bytes: choices and
 * references that multiply, recursion, patterns, counts, long lists, and ten megabytes of values. */
#include "unit/grammar_world.h"

#include "text/grammar/parts.h"
#include "text/grammar/run.h"

enum {
    MOST_BYTES = 512 << 20, /* asked for in all, what was given back and asked for again included */
    MOST_KEPT = 72 << 20,   /* by what is compiled: tables have 64 MB */
    MOST_TOKENS = 60        /* of a text that is written with it */
};

static size_t asked;
static int count(void *arg, size_t n)
{
    (void)arg;
    asked += n;
    return 1;
}

/* n times `part`, with its number in place of each '#'. */
static void many(weft__strbuf *out, const char *part, int n, const char *between)
{
    for (int i = 0; i < n; i++) {
        if (i) weft__strbuf_puts(out, between);
        for (const char *c = part; *c; c++) {
            if (*c == '#') weft__strbuf_printf(out, "%d", i);
            else weft__strbuf_putc(out, *c);
        }
    }
}

/* Definitions of which each mentions the next one twice, `n` of them. */
static void doubling(weft__strbuf *out, const char *head, const char *middle, const char *tail, int n)
{
    weft__strbuf_puts(out, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < n; i++)
        weft__strbuf_printf(out, "\"d%d\":{%s{\"$ref\":\"#/$defs/d%d\"}%s{\"$ref\":\"#/$defs/d%d\"}%s},", i, head,
                            i + 1, middle, i + 1, tail);
    weft__strbuf_printf(out, "\"d%d\":{\"type\":\"string\",\"maxLength\":%d}}}", n, n);
}

static void choices_of_choices(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"allOf\":[");
    many(out,
         "{\"anyOf\":[{\"properties\":{\"a#\":{\"type\":\"string\"}}},{\"properties\":{\"b#\":{\"type\":\"null\"}}}]}",
         40, ",");
    weft__strbuf_puts(out, "]}");
}

static void doubling_choices(weft__strbuf *out)
{
    doubling(out, "\"anyOf\":[{\"type\":\"array\",\"items\":", "},{\"type\":\"array\",\"maxItems\":3,\"items\":", "}]",
             60);
}

static void doubling_members(weft__strbuf *out)
{
    doubling(out, "\"type\":\"object\",\"properties\":{\"a\":", ",\"b\":", "}", 60);
}

static void doubling_sums(weft__strbuf *out)
{
    doubling(out, "\"allOf\":[", ",", "]", 40);
}

static void chain_of_references(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 12000; i++) weft__strbuf_printf(out, "\"%d\":{\"$ref\":\"#/$defs/%d\"},", i, i + 1);
    weft__strbuf_puts(out, "\"12000\":{\"type\":\"null\"}}}");
}

static void circle_of_references(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 100; i++)
        weft__strbuf_printf(out, "%s\"%d\":{\"$ref\":\"#/$defs/%d\"}", i ? "," : "", i, (i + 1) % 100);
    weft__strbuf_puts(out, "}}");
}

static void endless_recursion(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}");
}

static void recursion_everywhere(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"$ref\":\"#/$defs/d0\",\"$defs\":{");
    for (int i = 0; i < 40; i++) {
        weft__strbuf_printf(out, "%s\"d%d\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"array\",\"prefixItems\":[",
                            i ? "," : "", i);
        many(out, "{\"$ref\":\"#/$defs/d#\"}", 40, ",");
        weft__strbuf_puts(out, "]}]}");
    }
    weft__strbuf_puts(out, "}}");
}

static void nested(weft__strbuf *out)
{
    many(out, "{\"items\":", 20000, "");
}

static void many_members(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{");
    many(out, "\"member_#\":{\"type\":\"string\",\"maxLength\":50}", 8000, ",");
    weft__strbuf_puts(out, "}}");
}

static void many_patterns(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"type\":\"object\",\"patternProperties\":{");
    many(out, "\"^[a-z]*#[a-z]{0,30}$\":{\"type\":\"integer\"}", 300, ",");
    weft__strbuf_puts(out, "}}");
}

static void overlapping_objects(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"anyOf\":[");
    many(out,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"maxLength\":4#},\"b#\":{\"type\":"
         "\"string\"}}}",
         500, ",");
    weft__strbuf_puts(out, "]}");
}

static void counts_of_counts(weft__strbuf *out)
{
    many(out, "{\"type\":\"array\",\"minItems\":50,\"maxItems\":100,\"items\":", 6, "");
    weft__strbuf_puts(out, "{\"type\":\"string\",\"maxLength\":1000}");
    many(out, "}", 6, "");
}

static void megabytes_of_values(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"enum\":[");
    many(out, "\"value number # of very many\"", 320000, ",");
    weft__strbuf_puts(out, "]}");
}

static void a_megabyte_of_values(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"enum\":[");
    many(out, "\"value number #\"", 45000, ",");
    weft__strbuf_puts(out, "]}");
}

static const char *const patterns[] = {
    "^(a+)+$",
    "^(a|a)*$",
    "^(a|aa|aaa)*$",
    "^([ab]*a[ab]{30})+$",
    "^[ab]*a[ab]{40}$",
    "^(.*a){30}$",
    "^((((a{0,20}){0,20}){0,20}){0,20}){0,20}$",
    "^(a?){1000}a{1000}$",
    "^.{0,100000}$",
    "(x+x+)+y",
    "^([a-z]+[0-9]*)*([a-z0-9]+)*!$",
    "^(((((((((([^a])*b)*c)*d)*e)*f)*g)*h)*i)*j)*$",
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

static const struct {
    const char *name;
    void (*write)(weft__strbuf *out);
    int refused; /* it must be; else it may */
} schemas[] = {
    {"choices of choices", choices_of_choices, 0},
    {"doubling choices", doubling_choices, 0},
    {"doubling members", doubling_members, 0},
    {"doubling sums", doubling_sums, 0},
    {"a chain of references", chain_of_references, 0},
    {"a circle of references", circle_of_references, 1},
    {"recursion without end", endless_recursion, 1},
    {"recursion everywhere", recursion_everywhere, 0},
    {"nested items", nested, 1},
    {"many members", many_members, 0},
    {"many patterns", many_patterns, 0},
    {"overlapping objects", overlapping_objects, 0},
    {"counts of counts", counts_of_counts, 0},
    {"10 MB of values", megabytes_of_values, 1},
    {"1 MB of values", a_megabyte_of_values, 0},
};

/* Writes a text with it, by the mask's first token of each place or some other. */
static void write_text(weft__gram_tables *g, const vocab *v)
{
    uint64_t bits[MAX_TOKENS / 64 + 1];
    weft__gram_matcher *m;
    weft__rng rng;
    weft__rng_seed(&rng, 1);
    if (weft__gram_matcher_create(g, &m, NULL)) return; /* too many ways to begin */
    for (int i = 0; i < MOST_TOKENS && !weft__gram_matcher_mask(m, bits, NULL); i++) {
        int chosen = -1, n = 0;
        for (int id = 0; id < v->n; id++)
            if (id != END && bit(bits, id) && weft__rng_below(&rng, (uint64_t)++n) == 0) chosen = id;
        if (chosen < 0 || weft__gram_matcher_accept(m, chosen, NULL)) break;
    }
    weft__gram_matcher_destroy(&m);
}

/* As weft_grammar_from_schema does it, and then a text. */
static void meet(const char *name, const weft__strbuf *source, int refused, const vocab *v)
{
    weft__gram_automaton *a = NULL;
    weft__gram_tables *g = NULL;
    weft_error err = {0};
    asked = 0;
    weft__alloc_set_gate(count, NULL);
    weft__gram *rules = weft__gram_create();
    assert_non_null(rules);
    int32_t root = weft__gram_read_schema(rules, source->data, source->len);
    weft_status st = weft__gram_compile(rules, root, WEFT__GRAM_JSON_DEPTH - 1, &a, &err);
    weft__gram_destroy(&rules);
    if (!st) st = weft__gram_probe(a, &err);
    size_t states = a ? a->n_states : 0, kept = 0;
    if (st) {
        weft__gram_automaton_destroy(&a);
    } else {
        assert_int_equal(weft__gram_tables_create(a, v->trie, &g, &err), WEFT_OK);
        write_text(g, v);
        kept = weft__gram_tables_bytes(g);
        weft__gram_tables_release(&g);
    }
    weft__alloc_set_gate(NULL, NULL);
    if (st && st != WEFT_ARGUMENT && st != WEFT_UNSUPPORTED && st != WEFT_LIMIT)
        fail_msg("%s: status %d: %s", name, (int)st, err.message);
    if (refused && !st) fail_msg("%s: taken", name);
    if (st && strncmp(err.message, "schema: ", 8) != 0) fail_msg("%s: %s", name, err.message);
    if (states > WEFT__GRAM_MAX_STATES || asked > MOST_BYTES || kept > MOST_KEPT)
        fail_msg("%s: %zu states, %zu bytes asked for, %zu kept", name, states, asked, kept);
}

static void hostile_schemas_end_within_bounds(void **state)
{
    static vocab v;
    (void)state;
    vocab_make(&v, 1, 100);
    for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
        weft__strbuf source = {0};
        schemas[i].write(&source);
        assert_false(source.failed);
        meet(schemas[i].name, &source, schemas[i].refused, &v);
        weft__strbuf_free(&source);
    }
    vocab_close(&v);
}

static void catastrophic_patterns_end_within_bounds(void **state)
{
    static vocab v;
    (void)state;
    vocab_make(&v, 1, 100);
    for (int i = 0; i < N_PATTERNS; i++) {
        weft__strbuf source = {0};
        weft__strbuf_printf(&source,
                            "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":\"%s\"}},"
                            "\"required\":[\"a\"]}",
                            patterns[i]);
        meet(patterns[i], &source, 0, &v);
        weft__strbuf_free(&source);
    }
    vocab_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hostile_schemas_end_within_bounds),
        cmocka_unit_test(catastrophic_patterns_end_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
