// SPDX-License-Identifier: Apache-2.0
/* text_calls.c: what the grammar of a format's calls allows, its parser takes as calls whose arguments are valid:
 * random answers of each format, over bytes and markers, with and without control tokens. Also lazy ones, large sets
 * of tools, and refusals by place. */
#include "unit/grammar_world.h"

#include "base/json.h"
#include "text/answer/answer.h"
#include "text/grammar/calls.h"
#include "text/grammar/lazy.h"
#include "text/grammar/parts.h"

#define N_ANSWERS CLAIMS_REPEATED(CLAIMS_SWEPT(10, 200), 4, 2)
#define EVERY CLAIMS_REPEATED(1, 3, 9) /* of so many formats one */
enum { MAX_SPELLED = 400, MAX_ANSWER = 1 << 16 };

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"x\",\"strict\":true,"
    "\"parameters\":"
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\",\"minimum\":0,"
    "\"maximum\":14},\"unit\":{\"enum\":[\"C\",\"F\",\"true\"]},\"note\":{\"type\":[\"string\",\"null\"]},"
    "\"at\":{\"type\":\"string\",\"format\":\"date\"},\"code\":{\"type\":\"string\",\"pattern\":\"^[^a-z]{2,3}<?$\"}},"
    "\"required\":[\"city\",\"unit\"],\"additionalProperties\":false}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"no-arguments\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"send\",\"parameters\":{\"type\":\"object\",\"$defs\":{\"kind\":{"
    "\"enum\":[\"a/b\",\"7\",\"say \\\"<hi>\\\"\"]},\"leaf\":{\"type\":\"object\",\"properties\":{\"x\":{\"type\":"
    "\"number\"},\"s\":{\"type\":\"string\",\"maxLength\":12},\"wide\":{\"type\":\"string\",\"pattern\":"
    "\"^[ !#-[\\\\]-~]*$\"},\"both\":{\"type\":\"string\",\"minLength\":3,\"pattern\":\"^[ !#-[\\\\]-~]*$\"}},"
    "\"required\":[\"s\",\"wide\",\"both\"],\"additionalProperties\":false}},"
    "\"properties\":{\"kind\":{\"$ref\":\"#/$defs/kind\"},\"tree\":{\"type\":\"array\",\"items\":{\"$ref\":"
    "\"#/$defs/leaf\"},\"maxItems\":3},\"flag\":{\"type\":\"boolean\"},\"leaf\":{\"$ref\":\"#/$defs/leaf\"},"
    "\"mixed\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"maximum\":5}]}},\"required\":[\"kind\","
    "\"leaf\"],\"additionalProperties\":false}}}]";

/* ---- a vocabulary of bytes, a format's markers, and some pieces of JSON ---- */

typedef struct words {
    char spelled[MAX_SPELLED][96];
    int32_t types[MAX_SPELLED];
    int n;
    weft__tok *tok;
    weft__gram_trie *trie;
} words;

static void put_word(words *w, const char *s, size_t n, int32_t type)
{
    for (int i = 0; i < w->n; i++)
        if (strlen(w->spelled[i]) == n && !memcmp(w->spelled[i], s, n)) return;
    assert_true(n > 1 && n < sizeof w->spelled[0] && w->n < MAX_SPELLED);
    memcpy(w->spelled[w->n], s, n);
    w->types[w->n++] = type;
}

/* The pieces <...> of a marker as control tokens, or the marker itself. */
static void put_marker(words *w, const char *s, int control)
{
    if (!s || strlen(s) < 2 || strchr(s, '\n')) return;
    for (const char *at = control ? strchr(s, '<') : NULL; at; at = strchr(at + 1, '<')) {
        const char *end = strchr(at, '>');
        if (end && end - at > 3 && (at[1] == '|' || end[-1] == '|' || !memcmp(at + 1, "\xEF\xBD\x9C", 3)))
            put_word(w, at, (size_t)(end + 1 - at), WEFT__TOK_CONTROL);
    }
    put_word(w, s, strlen(s), WEFT__TOK_NORMAL);
}

static void put_steps(words *w, const weft__answer_step *s, int control)
{
    for (; s && s->op; s++) put_marker(w, s->text, control);
}

static void words_open(words *w, const weft__answer_style *style, int control)
{
    static weft__tok_slice tokens[MAX_SPELLED];
    static const char *const pieces[] = {"\"}", "\",", "true", "null", "\": ", "{\"", "12", "</", "5\n"};
    const weft__answer_format *f = style->format;
    float scores[MAX_SPELLED] = {0};
    weft__tok_spec spec;
    memset(w, 0, sizeof *w);
    for (int i = 0; i < 256; i++) {
        snprintf(w->spelled[i], 8, "<0x%02X>", (unsigned)i);
        w->types[i] = WEFT__TOK_BYTE;
    }
    w->n = 256;
    put_word(w, "</s>", 4, WEFT__TOK_CONTROL);
    if (control) { /* where a turn ends with these, <|end|> ends a message */
        put_word(w, "<|return|>", 10, WEFT__TOK_CONTROL);
        put_word(w, "<|flush|>", 9, WEFT__TOK_CONTROL);
    }
    for (size_t k = 0; k < f->n_forms; k++) {
        put_steps(w, f->forms[k].open, control);
        put_steps(w, f->forms[k].call, control);
        put_steps(w, f->forms[k].between, control);
        put_steps(w, f->forms[k].close, control);
    }
    put_steps(w, f->parameter, control);
    put_marker(w, f->tag, control);
    put_marker(w, f->resume, control);
    put_marker(w, "<|\"|>", control);
    if (style->reasoning) put_marker(w, style->reasoning->begin, control);
    if (style->reasoning) put_marker(w, style->reasoning->end, control);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        put_word(w, pieces[i], strlen(pieces[i]), WEFT__TOK_NORMAL);
    for (int i = 0; i < w->n; i++) tokens[i] = (weft__tok_slice){w->spelled[i], strlen(w->spelled[i])};
    weft__tok_spec_init(&spec);
    spec.model = WEFT__TOK_SLICE("llama");
    spec.tokens = tokens;
    spec.types = w->types;
    spec.scores = scores;
    spec.n_tokens = spec.n_types = spec.n_scores = (size_t)w->n;
    spec.eos = 256;
    assert_int_equal(weft__tok_create(&spec, &w->tok, NULL), WEFT_OK);
    assert_int_equal(weft__gram_trie_create(w->tok, &w->trie, NULL), WEFT_OK);
}

static void words_close(words *w)
{
    weft__gram_trie_release(&w->trie);
    weft__tok_destroy(&w->tok);
}

/* ---- grammars ---- */

static weft_status calls_grammar(const words *w, const weft__gram_calls_spec *spec, weft__gram_tables **out,
                                 weft_error *err)
{
    weft__gram *g = weft__gram_create();
    weft__gram_automaton *a = NULL;
    *out = NULL;
    if (!g) return WEFT_NO_MEMORY;
    weft__gram_vocabulary(g, w->tok);
    int32_t root = weft__gram_calls(g, spec);
    weft_status st = weft__gram_compile(g, root, WEFT__GRAM_JSON_DEPTH - 1, &a, err);
    weft__gram_destroy(&g);
    return st ? st : weft__gram_tables_create(a, w->trie, out, err);
}

static weft__json *parsed(const char *text)
{
    weft__json *v = NULL;
    weft_error err = {0};
    if (weft__json_parse(text, strlen(text), &v, &err)) fail_msg("%s\n%s", text, err.message);
    return v;
}

/* ---- random answers, and what the parser makes of them ---- */

/* A token at random of those that are allowed; -1: the answer ends. */
static int pick(weft__gram_matcher *m, const words *w, weft__rng *rng)
{
    uint64_t bits[MAX_SPELLED / 64 + 1];
    weft_error err = {0};
    int chosen = -1, n = 0;
    if (weft__gram_matcher_complete(m) == 2) return -1;
    if (weft__gram_matcher_mask(m, bits, &err)) fail_msg("%s", err.message);
    if (weft__gram_matcher_complete(m) && weft__rng_below(rng, 2)) return -1;
    for (int id = 0; id < w->n; id++) {
        int end = weft__tok_is_end(w->tok, id);
        if (bit(bits, id) && !end && weft__rng_below(rng, (uint64_t)++n) == 0) chosen = id;
    }
    return chosen;
}

/* The text of a random answer, as the parser gets it; its tokens in ids. 0: it does not end. */
static size_t random_answer(weft__gram_tables *g, const words *w, weft__rng *rng, char *text, int *ids, size_t *n_ids)
{
    weft__gram_matcher *m;
    size_t n = 0;
    *n_ids = 0;
    assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
    for (int id; (id = pick(m, w, rng)) >= 0;) {
        weft__tok_slice s =
            w->types[id] == WEFT__TOK_CONTROL ? weft__tok_text(w->tok, id) : weft__tok_piece_of(w->tok, id);
        if (n + s.len >= MAX_ANSWER) break;
        memcpy(text + n, s.data, s.len);
        n += s.len;
        ids[(*n_ids)++] = id;
        assert_int_equal(weft__gram_matcher_accept(m, id, NULL), WEFT_OK);
    }
    if (!weft__gram_matcher_complete(m)) n = 0;
    weft__gram_matcher_destroy(&m);
    return n;
}

typedef struct heard {
    const weft__json *tools;
    int n_calls, n_text, n_wrong;
} heard;

static vocab bytes;
static weft__gram_tables *schemas[3]; /* of the functions, by their place; made when first needed */

static weft__gram_tables *tables_of(const weft__json *schema)
{
    weft__strbuf source = {0};
    weft__gram_automaton *a;
    weft__gram_tables *t;
    weft__gram *g = weft__gram_create();
    weft__json_write(&source, schema, WEFT__JSON_COMPACT);
    int32_t root = weft__gram_read_schema(g, source.data, source.len);
    assert_int_equal(weft__gram_compile(g, root, WEFT__GRAM_JSON_DEPTH - 1, &a, NULL), WEFT_OK);
    weft__gram_destroy(&g);
    assert_int_equal(weft__gram_tables_create(a, bytes.trie, &t, NULL), WEFT_OK);
    weft__strbuf_free(&source);
    return t;
}

/* Whether arguments are valid under the schema of the function, whose values stand in the schema's order. */
static int is_valid(const weft__json *tools, const weft_chat_part *p)
{
    static char text[8 * MAX_ANSWER];
    assert_true(p->n_text < sizeof text);
    if (memchr(p->text, 0, p->n_text)) return 0;
    memcpy(text, p->text, p->n_text);
    text[p->n_text] = 0;
    for (char *at = text; (at = strstr(at, "\\u007f"));) { /* a pattern has it as it is */
        *at++ = '\x7F';
        memmove(at, at + 5, strlen(at + 5) + 1);
    }
    for (size_t i = 0; i < weft__json_size(tools); i++) {
        const weft__json *f = weft__json_get(weft__json_at(tools, i), "function"),
                         *schema = weft__json_get(f, "parameters");
        const char *name;
        size_t n;
        if (!weft__json_string(weft__json_get(f, "name"), &name, &n) || n != p->n_name || memcmp(name, p->name, n))
            continue;
        if (schema && !schemas[i]) schemas[i] = tables_of(schema);
        if (schema) return follow(schemas[i], text, strlen(text)) > 0;
        weft__json *v = NULL;
        assert_int_equal(weft__json_parse(p->text, p->n_text, &v, NULL), WEFT_OK);
        n = weft__json_size(v);
        weft__json_free(&v);
        return n == 0;
    }
    return 0;
}

static int hear(void *arg, const weft_chat_part *p, size_t from, size_t to)
{
    heard *h = arg;
    (void)from, (void)to;
    if (p->kind == WEFT_CHAT_TEXT) h->n_text++;
    if (p->kind != WEFT_CHAT_CALL) return 0;
    h->n_calls++;
    if (is_valid(h->tools, p)) return 0;
    print_message("%.*s with %.*s\n", (int)p->n_name, p->name, (int)p->n_text, p->text);
    h->n_wrong++;
    return 0;
}

static void parse_answer(const weft__answer_style *style, const char *prompt, const char *text, size_t n, heard *h)
{
    const weft__answer_params how = {
        .style = *style, .calls = 1, .reasoning = 1, .prompt = prompt, .n_prompt = strlen(prompt)};
    weft__answer *a;
    h->tools = parsed(tools_text);
    assert_int_equal(weft__answer_create(&how, parsed(tools_text), &a, NULL), WEFT_OK);
    assert_int_equal(weft__answer_push(a, text, n, hear, h, NULL), WEFT_OK);
    assert_int_equal(weft__answer_finish(a, hear, h, NULL), WEFT_OK);
    weft__answer_destroy(&a);
    weft__json_free((weft__json **)&h->tools);
}

/* The lazy grammar takes the same answer behind some text, where the form does not want to be first. */
static void begins_late(const weft__gram_calls_spec *spec, const words *w, weft__gram_tables *g, const int *ids,
                        size_t n)
{
    weft__gram *rules = weft__gram_create();
    weft__gram_lazy *lazy;
    weft__gram_watch *watch;
    weft__gram_matcher *m = NULL;
    weft_error err = {0};
    weft__gram_vocabulary(rules, w->tok);
    weft__gram_lazy_spec how = {.rules = rules, .words = weft__gram_calls_begin(rules, spec)};
    if (weft__gram_lazy_create(g, w->tok, &how, &lazy, &err)) fail_msg("%s: %s", spec->style.format->name, err.message);
    weft__gram_destroy(&rules);
    assert_int_equal(weft__gram_watch_create(lazy, &watch, NULL), WEFT_OK);
    for (const char *s = "Well, {\"a\": 1} <b> "; *s; s++)
        assert_int_equal(weft__gram_watch_accept(watch, *s, &m, NULL), WEFT_OK);
    for (size_t i = 0; i < n; i++)
        if (m ? weft__gram_matcher_accept(m, ids[i], &err) : weft__gram_watch_accept(watch, ids[i], &m, &err))
            fail_msg("%s: token %zu: %s", spec->style.format->name, i, err.message);
    if (!m) fail_msg("%s: it did not begin", spec->style.format->name);
    assert_true(weft__gram_matcher_complete(m) > 0);
    weft__gram_matcher_destroy(&m);
    weft__gram_watch_destroy(&watch);
    weft__gram_lazy_release(&lazy);
}

static const weft__answer_reasoning think = {.begin = "<think>", .end = "</think>"};

/* How many ways there are in which it is not so. */
static int one_format(const weft__answer_format *f, int control, long *n_calls)
{
    int n_wrong = 0;
    static words w;
    static char text[MAX_ANSWER];
    static int ids[MAX_ANSWER];
    weft__json *tools = parsed(tools_text);
    const weft__answer_style style = {f, f->reasoning ? f->reasoning : &think};
    weft__rng rng;
    weft__rng_seed(&rng, claims_seed());
    words_open(&w, &style, control);
    for (int way = control; way < 4 - control; way++) {
        const weft__gram_thinking thinking = f->ends_reasoning ? WEFT__GRAM_THINKS_NOT : (weft__gram_thinking)(way % 3);
        const weft__gram_calls_spec spec = {.style = style,
                                            .tools = tools,
                                            .name = way == 3 ? "send" : NULL,
                                            .parallel = way & 1,
                                            .thinking = thinking};
        const char *prompt = thinking == WEFT__GRAM_THINKS ? style.reasoning->begin : "";
        weft__gram_tables *g;
        weft_error err = {0};
        if (calls_grammar(&w, &spec, &g, &err)) fail_msg("%s: %s", f->name, err.message);
        for (int i = 0; i < N_ANSWERS; i++) {
            heard h = {0};
            size_t n_ids, n = random_answer(g, &w, &rng, text, ids, &n_ids);
            parse_answer(&style, prompt, text, n, &h);
            if (!n || h.n_calls < 1 || h.n_text || h.n_wrong || (h.n_calls > 1 && !spec.parallel)) {
                print_message(
                    "%s, way %d: %zu bytes; %d calls, %d texts, %d with arguments that are not valid, of\n%.*s\n",
                    f->name, way, n, h.n_calls, h.n_text, h.n_wrong, (int)n, text);
                n_wrong++;
                break;
            }
            *n_calls += h.n_calls;
            if (!thinking && i < 3) begins_late(&spec, &w, g, ids, n_ids);
        }
        weft__gram_tables_release(&g);
    }
    words_close(&w);
    weft__json_free(&tools);
    return n_wrong;
}

static void what_is_allowed_becomes_valid_calls(void **state)
{
    (void)state;
    long n_calls = 0;
    int n_wrong = 0;
    vocab_make(&bytes, 1, 0);
    size_t first = (size_t)claims_seed() % EVERY;
    for (size_t i = first; i < weft__answer_n_formats; i += EVERY)
        for (int control = 0; control < 2; control++)
            n_wrong += one_format(&weft__answer_formats[i], control, &n_calls);
    assert_int_equal(n_wrong, 0);
    assert_true(n_calls > (long)(weft__answer_n_formats / EVERY) * 6 * N_ANSWERS);
    for (size_t i = 0; i < 3; i++) weft__gram_tables_release(&schemas[i]);
    vocab_close(&bytes);
}

/* ---- large sets, refusals ---- */

static size_t total;
static int count_bytes(void *arg, size_t n)
{
    (void)arg;
    total += n;
    return 1;
}

static weft__answer_style style_of(const char *name)
{
    weft__answer_style style = {.reasoning = &think};
    for (size_t i = 0; i < weft__answer_n_formats; i++)
        if (!strcmp(weft__answer_formats[i].name, name)) style.format = &weft__answer_formats[i];
    assert_non_null(style.format);
    return style;
}

/* What ends a parameter is in no value, however a schema spells it; and as JSON it is written so that it is not. */
static void no_value_has_what_ends_it(void **state)
{
    (void)state;
    static const char head[] = "<tool_call>\n<function=f>\n<parameter=a>\n",
                      tail[] = "\n</parameter>\n</function>\n</tool_call>";
    static const struct {
        const char *schema, *value;
        int goes;
    } cases[] = {
        {"{\"pattern\": \"^x(</parameter>|<b>)?y$\", \"type\": \"string\"}", "xy", 1},
        {"{\"pattern\": \"^x(</parameter>|<b>)?y$\", \"type\": \"string\"}", "x<b>y", 1},
        {"{\"pattern\": \"^x(</parameter>|<b>)?y$\", \"type\": \"string\"}", "x</parameter>y", 0},
        {"{\"pattern\": \"^x[<]/param.*$\", \"type\": \"string\"}", "x</param", 1},
        {"{\"pattern\": \"^x[<]/param.*$\", \"type\": \"string\"}", "x</parameter>", 0},
        {"{\"enum\": [\"a\", \"b</parameter>\"]}", "a", 1},
        {"{\"enum\": [\"a\", \"b</parameter>\"]}", "b</parameter>", 0},
        {"{\"type\": \"string\", \"enum\": [\"a\", \"b\"], \"pattern\": \"^a\"}", "a", 1},
        {"{\"type\": \"string\", \"enum\": [\"a\", \"b\"], \"pattern\": \"^a\"}", "b", 0},
        {"{\"type\": \"integer\", \"maximum\": 1e19}", "9223372036854775807", 1}, /* who reads it has 64 bits */
        {"{\"type\": \"integer\", \"maximum\": 1e19}", "9223372036854775808", 0},
        {"{\"const\": [\"b</parameter>\"]}", "[\"b\\u003c/parameter>\"]", 1},
        {"{\"const\": [\"b</parameter>\"]}", "[\"b</parameter>\"]", 0},
        {"{\"const\": {\"</parameter>\": 1}}", "{\"\\u003c/parameter>\": 1}", 1},
        {"{\"type\": \"object\", \"properties\": {\"</parameter>\": {\"type\": \"null\"}}}",
         "{\"\\u003c/parameter>\": null}", 1},
    };
    words w;
    const weft__answer_style style = style_of("qwen3-coder");
    words_open(&w, &style, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char tools[512], text[256];
        weft__gram_tables *g;
        weft__gram_matcher *m;
        weft_error err = {0};
        snprintf(
            tools, sizeof tools,
            "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {\"a\": %s}, \"required\": [\"a\"]}}}]",
            cases[i].schema);
        weft__json *list = parsed(tools);
        const weft__gram_calls_spec spec = {.style = style, .tools = list};
        if (calls_grammar(&w, &spec, &g, &err)) fail_msg("%s: %s", cases[i].schema, err.message);
        assert_int_equal(weft__gram_matcher_create(g, &m, NULL), WEFT_OK);
        const int n = snprintf(text, sizeof text, "%s%s%s", head, cases[i].value, tail);
        const int goes = !weft__gram_matcher_feed(m, text, (size_t)n, NULL) && weft__gram_matcher_complete(m);
        if (goes != cases[i].goes) fail_msg("%s: '%s' %s", cases[i].schema, cases[i].value, goes ? "goes" : "goes not");
        weft__gram_matcher_destroy(&m);
        weft__gram_tables_release(&g);
        weft__json_free(&list);
    }
    words_close(&w);
}

static void two_hundred_tools_with_nested_schemas_compile(void **state)
{
    (void)state;
    static const char *const formats[] = {"hermes", "qwen3-coder", "deepseek-v3.2", "lfm2", "gemma4"};
    weft__strbuf text = {0};
    for (int i = 0; i < 200; i++)
        weft__strbuf_printf(
            &text,
            "%s{\"type\":\"function\",\"function\":{\"name\":\"tool_%d\",\"parameters\":{\"type\":\"object\","
            "\"properties\":{"
            "\"name_%d\":{\"type\":\"string\"},\"filter\":{\"type\":\"object\",\"properties\":{\"field_%d\":{\"enum\":["
            "\"a%d\","
            "\"b\"]},\"range\":{\"type\":\"object\",\"properties\":{\"from\":{\"type\":\"integer\"},\"to\":{\"type\":"
            "\"integer\"}},\"required\":[\"from\"]}}},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
            "\"limit\":{"
            "\"type\":\"integer\",\"minimum\":1,\"maximum\":%d}},\"required\":[\"name_%d\"]}}}",
            i ? "," : "[", i, i, i, i, 10 + i, i);
    weft__strbuf_puts(&text, "]");
    weft__strbuf_putc(&text, 0);
    weft__json *tools = parsed(text.data);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const weft__gram_calls_spec spec = {
            .style = style_of(formats[i]), .tools = tools, .parallel = 1, .thinking = WEFT__GRAM_MAY_THINK};
        weft__gram *g = weft__gram_create();
        weft__gram_automaton *a = NULL;
        weft_error err = {0};
        total = 0;
        weft__alloc_set_gate(count_bytes, NULL);
        int32_t root = weft__gram_calls(g, &spec);
        weft_status st = weft__gram_compile(g, root, WEFT__GRAM_JSON_DEPTH - 1, &a, &err);
        weft__alloc_set_gate(NULL, NULL);
        if (st) fail_msg("%s: %s", formats[i], err.message);
        print_message("  %s: %zu states, %zu edges, %zu KiB asked for\n", formats[i], a->n_states, a->n_edges,
                      total >> 10);
        assert_true(a->n_states < WEFT__GRAM_MAX_STATES);
        assert_true(total < (size_t)64 << 20);
        weft__gram_automaton_destroy(&a);
        weft__gram_destroy(&g);
    }
    weft__json_free(&tools);
    weft__strbuf_free(&text);
}

#define RECURSION                                                                                                      \
    "[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\",\"parameters\":{\"type\":\"object\","              \
    "\"properties\":{"                                                                                                 \
    "\"l\":{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#/properties/l\"}}},\"required\":[\"l\"]}}}]"

static const struct {
    const char *format, *name, *tools;
    weft_status status;
    const char *message[2];
} refusals[] = {
    {"hermes", NULL, "[]", WEFT_ARGUMENT, {"tools: must be"}},
    {"hermes", NULL, "[5]", WEFT_ARGUMENT, {"tools[0]", "'name'"}},
    {"hermes", "g", "[{\"function\":{\"name\":\"f\"}}]", WEFT_ARGUMENT, {"no function 'g'"}},
    {"hermes",
     NULL,
     "[{\"function\":{\"name\":\"f\"}},{\"function\":{\"name\":\"g\",\"parameters\":{\"type\":\"object\","
     "\"properties\":{"
     "\"a\":{\"contains\":{\"type\":\"null\"}}}}}}]",
     WEFT_UNSUPPORTED,
     {"tools[1].function.parameters", "#/properties/a"}},
    {"hermes",
     NULL,
     "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"string\"}}}]",
     WEFT_ARGUMENT,
     {"tools[0].function.parameters", "an object"}},
    {"mistral", NULL, "[{\"function\":{\"name\":\"f g\"}}]", WEFT_UNSUPPORTED, {"tools[0]", "name"}},
    {"qwen3-coder",
     NULL,
     "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"minProperties\":1}}}]",
     WEFT_UNSUPPORTED,
     {"tools[0].function.parameters", "one by one"}},
    {"qwen3-coder",
     NULL,
     "[{\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\\nb\":{}}}}}]",
     WEFT_UNSUPPORTED,
     {"tools[0].function.parameters", "#/properties"}},
    {"qwen3-coder",
     NULL,
     "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\","
     "\"not\":{\"const\":\"b\"}}}}}}]",
     WEFT_UNSUPPORTED,
     {"tools[0].function.parameters", "conditions"}},
    {"hermes",
     NULL,
     "[{\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"integer\","
     "\"minimum\":1e19}}}}}]",
     WEFT_LIMIT,
     {"tools[0].function.parameters", "with a sign"}},
    {"hermes", NULL, RECURSION, WEFT_ARGUMENT, {"tools[1].function.parameters: schema: #/properties/l: no finite"}},
    {"qwen3-coder",
     NULL,
     RECURSION,
     WEFT_ARGUMENT,
     {"tools[1].function.parameters: schema: #/properties/l: no finite"}},
};

static void refusals_name_the_tool_and_the_place(void **state)
{
    (void)state;
    static words w;
    const weft__answer_style hermes = style_of("hermes");
    words_open(&w, &hermes, 0);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        weft__json *tools = parsed(refusals[i].tools);
        const weft__gram_calls_spec spec = {
            .style = style_of(refusals[i].format), .tools = tools, .name = refusals[i].name};
        weft__gram_tables *g;
        weft_error err = {0};
        weft_status st = calls_grammar(&w, &spec, &g, &err);
        if (st != refusals[i].status) fail_msg("%zu: %d %s", i, (int)st, err.message);
        for (int k = 0; k < 2 && refusals[i].message[k]; k++)
            if (!strstr(err.message, refusals[i].message[k]))
                fail_msg("'%s' lacks '%s'", err.message, refusals[i].message[k]);
        weft__json_free(&tools);
    }
    words_close(&w);
}

static int make_calls(void *arg)
{
    const weft__gram_calls_spec *spec = arg;
    weft__gram *g = weft__gram_create();
    weft__gram_automaton *a = NULL;
    if (!g) return 0;
    int32_t root = weft__gram_calls(g, spec);
    weft_error err = {0};
    weft_status st = weft__gram_compile(g, root, WEFT__GRAM_JSON_DEPTH - 1, &a, &err);
    weft__gram_automaton_destroy(&a);
    weft__gram_destroy(&g);
    if (st && st != WEFT_NO_MEMORY) fail_msg("%s: %s", spec->style.format->name, err.message);
    return !st;
}

static void refused_allocations_are_reported(void **state)
{
    (void)state;
    static const char *const formats[] = {"hermes", "qwen3-coder", "gemma4"};
    weft__json *tools = parsed(tools_text);
    for (int i = 0; i < 3; i++) {
        weft__gram_calls_spec spec = {.style = style_of(formats[i]), .tools = tools, .parallel = 1, .thinking = 1};
        assert_true(fail_some(make_calls, &spec, 7) > 50);
    }
    weft__json_free(&tools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_allowed_becomes_valid_calls),
        cmocka_unit_test(no_value_has_what_ends_it),
        cmocka_unit_test(two_hundred_tools_with_nested_schemas_compile),
        cmocka_unit_test(refusals_name_the_tool_and_the_place),
        cmocka_unit_test(refused_allocations_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
