// SPDX-License-Identifier: Apache-2.0
/* text_jinja.c: the Jinja interpreter and the chat-template front by their API: where each byte comes from, limits,
 * errors, memory. What the language prints is compared with jinja2 itself in jinja_oracle.py. */
#include "unit/fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "text/chat/template.h"

static weft__json *json_of(const char *text)
{
    weft__json *v = NULL;
    weft_error err = {0};
    if (text && weft__json_parse(text, strlen(text), &v, &err)) fail_msg("%s: %s", text, err.message);
    return v;
}

/* Renders with one variable `v`, the user's, and `t`, trusted. */
static weft_status render(const char *source, const char *v, const weft__jinja_limits *limits, weft__jinja_output *out,
                          weft_error *err)
{
    weft__jinja *t;
    weft__jinja_call *call = NULL;
    weft__json *json = json_of(v);
    memset(out, 0, sizeof *out);
    weft_status status = weft__jinja_compile(source, strlen(source), &t, err);
    if (!status) status = weft__jinja_call_create(limits, &call, err);
    if (!status && json) status = weft__jinja_set_json(call, "v", json, NULL, NULL, err);
    if (!status) status = weft__jinja_set_string(call, "t", "Trusted", 7, 0, err);
    if (!status) status = weft__jinja_render(t, call, out, err);
    weft__jinja_call_destroy(&call);
    weft__jinja_destroy(&t);
    weft__json_free(&json);
    return status;
}

/* The output with the user's parts in «». */
static char *marked(const weft__jinja_output *out)
{
    static char text[4096];
    size_t n = 0, at = 0;
    for (size_t i = 0; i < out->n_segments; i++) {
        const weft__jinja_segment *s = &out->segments[i];
        assert_int_equal(s->offset, at);
        assert_true(s->len > 0);
        if (i) assert_int_not_equal(s->from_user != 0, out->segments[i - 1].from_user != 0);
        n += (size_t)snprintf(text + n, sizeof text - n, s->from_user ? "«%.*s»" : "%.*s", (int)s->len,
                              out->text + s->offset);
        at += s->len;
    }
    assert_int_equal(at, out->len);
    text[n] = 0;
    return text;
}

static void expect(const char *source, const char *v, const char *wanted)
{
    weft__jinja_output out;
    weft_error err = {0};
    if (render(source, v, NULL, &out, &err)) fail_msg("%s: %s", source, err.message);
    if (strcmp(marked(&out), wanted) != 0) fail_msg("%s\n  gives  %s\n  wanted %s", source, marked(&out), wanted);
    weft__jinja_output_free(&out);
}

static void expect_error(const char *source, const char *v, weft_status wanted, const char *part)
{
    weft__jinja_output out;
    weft_error err = {0};
    weft_status status = render(source, v, NULL, &out, &err);
    if (status != wanted || !strstr(err.message, part)) {
        fail_msg("%s\n  gives %d: %s\n  wanted %d: %s", source, (int)status, err.message, (int)wanted, part);
    }
    assert_null(out.text);
}

static void text_keeps_its_origin(void **state)
{
    (void)state;
    expect("a{{ v }}b{{ t }}{{ 1 }}", "\"x\"", "a«x»bTrusted1");
    expect("{{ '<' ~ v ~ '>' }}{{ '<' + v + '>' }}", "\"x\"", "<«x»><«x»>");
    expect("{% set s = '<|' ~ v ~ '|>' %}{{ s[1:4] }}{{ s|upper }}{{ s[::-1] }}", "\"ab\"", "|«ab»<|«AB»|>>|«ba»|<");
    expect("{{ ('[' ~ v ~ ']').split(' ') | join('-') }}", "\"a b\"", "[«a»-«b»]");
    expect("{{ v.replace('x', '<s>') }}", "\"axb\"", "«a»<s>«b»");
    expect("{{ 'axb'.replace('x', v) }}{{ 'axb'|replace(v, '-') }}", "\"x\"", "a«x»ba-b");
    expect("{{ v|trim }}|{{ (v ~ ' ')|trim }}|{{ v.strip('x') }}", "\" x \"", "«x»|«x»|« x »");
    expect("{{ '%s:%s' % (v, 1) }}{{ '{}={}'.format(v, t) }}{{ '%5s'|format(v) }}", "\"x\"", "«x»:1«x»=Trusted    «x»");
    expect("{{ v|indent(2, true) }}{{ v|capitalize }}{{ v|title }}{{ v|e }}", "\"a<\"", "  «a<A<A<a&lt;»");
    expect("{% macro m(x) %}({{ x }}){% endmacro %}{{ m(v) }}{% set b %}<{{ v }}>{% endset %}{{ b }}", "\"x\"",
           "(«x»)<«x»>");
    expect("{% filter upper %}a{{ v }}{% endfilter %}{% for c in 'a' ~ v %}{{ c }},{% endfor %}", "\"x\"",
           "A«X»a,«x»,");
    expect("{{ (v ~ 'b' ~ v)[0] }}{{ (v ~ 'b' ~ v)[1] }}{{ 'b' * 2 }}{{ v * 2 }}", "\"é\"", "«é»bbb«éé»");
    expect("{{ v.keys()|list|first }}{{ v.k }}{% for k in v %}{{ k }}{% endfor %}", "{\"k\": \"x\"}", "«kxk»");
}

/* What mixes the user's structure with punctuation of ours is the user's as a whole. */
static void containers_with_user_text_are_the_users(void **state)
{
    (void)state;
    expect("<{{ v|tojson }}>", "{\"a\": [1]}", "<«{\"a\": [1]}»>");
    expect("<{{ v|tojson }}>", "[1, null]", "<[1, null]>");
    expect("<{{ v }}|{{ [v, t] }}|{{ [t] }}>", "[\"x\"]", "<«['x']»|«[['x'], 'Trusted']»|['Trusted']>");
    expect("{{ {'a': t}|tojson }}{{ v|from_json }}{{ '[\"x\"]'|from_json }}", "\"[\\\"x\\\"]\"",
           "{\"a\": \"Trusted\"}«['x']»['x']");
    expect("{{ v|tojson(indent=1) }}", "[\"\\u00e9\"]", "«[\n \"é\"\n]»");
}

static int trust_b(void *arg, const char *key, int depth, const char *text, size_t n)
{
    assert_ptr_equal(arg, &trust_b);
    return depth == 2 && !strcmp(key, "b") && n == 1 && text[0] == 'B';
}

static void trust_is_asked_for_each_string(void **state)
{
    (void)state;
    weft__json *v = json_of("[{\"a\": \"B\", \"b\": \"B\"}, {\"b\": \"C\"}]");
    weft__jinja *t;
    weft__jinja_call *call;
    weft__jinja_output out;
    const char *source = "{{ v[0].a }}{{ v[0].b }}{{ v[1].b }}";
    assert_int_equal(weft__jinja_compile(source, strlen(source), &t, NULL), WEFT_OK);
    assert_int_equal(weft__jinja_call_create(NULL, &call, NULL), WEFT_OK);
    assert_int_equal(weft__jinja_set_json(call, "v", v, trust_b, (void *)&trust_b, NULL), WEFT_OK);
    assert_int_equal(weft__jinja_render(t, call, &out, NULL), WEFT_OK);
    assert_string_equal(marked(&out), "«B»B«C»");
    weft__jinja_output_free(&out);
    assert_int_equal(weft__jinja_render(t, call, &out, NULL), WEFT_STATE);
    weft__jinja_call_destroy(&call);
    weft__jinja_destroy(&t);
    weft__json_free(&v);
}

static void malformed_templates_are_refused_with_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *source, *part;
        weft_status status;
    } cases[] = {
        {"a\nb {{ x", "line 2: expected '}}', found the end of the template", WEFT_FORMAT},
        {"\n\n{{ 1 + }}", "line 3: expected an expression, found '}}'", WEFT_FORMAT},
        {"{% if v %}\n\n", "'if' of line 1 is never closed", WEFT_FORMAT},
        {"{% for x in v %}{% if x %}{% endfor %}", "'endfor', but 'if' of line 1 is open", WEFT_FORMAT},
        {"\n{% endif %}", "line 2: 'endif', but nothing is open", WEFT_FORMAT},
        {"{% else %}", "'else', but nothing is open", WEFT_FORMAT},
        {"{% foo %}", "unknown tag 'foo'", WEFT_FORMAT},
        {"{% %}", "expected a tag, found '%}'", WEFT_FORMAT},
        {"{{ }}", "expected an expression", WEFT_FORMAT},
        {"{{ 'abc }}", "a string is never closed", WEFT_FORMAT},
        {"{# abc", "a comment is never closed", WEFT_FORMAT},
        {"{% raw %} abc", "'raw' is never closed", WEFT_FORMAT},
        {"{{ a b }}", "expected '}}', found 'b'", WEFT_FORMAT},
        {"{{ a. }}", "expected a name or number after '.'", WEFT_FORMAT},
        {"{{ (1] }}", "unexpected ']', expected ')'", WEFT_FORMAT},
        {"{{ 1 ) }}", "unexpected ')'", WEFT_FORMAT},
        {"{{ a $ b }}", "unexpected character '$' (U+0024)", WEFT_FORMAT},
        {"{{ a|nothing }}", "there is no filter named 'nothing'", WEFT_FORMAT},
        {"{{ a is nothing }}", "there is no test named 'nothing'", WEFT_FORMAT},
        {"{{ a|pprint }}", "the filter 'pprint' is not supported", WEFT_UNSUPPORTED},
        {"{% include 'x' %}", "'include' is not supported", WEFT_UNSUPPORTED},
        {"{% extends 'x' %}", "'extends' is not supported", WEFT_UNSUPPORTED},
        {"{% block x %}{% endblock %}", "'block' is not supported", WEFT_UNSUPPORTED},
        {"{% set 1 = 2 %}", "only names can be assigned to", WEFT_FORMAT},
        {"{% set none = 2 %}", "only names can be assigned to", WEFT_FORMAT},
        {"{% macro true() %}{% endmacro %}", "'true' cannot be assigned to", WEFT_FORMAT},
        {"{% for x v %}{% endfor %}", "expected 'in'", WEFT_FORMAT},
        {"{% macro m(a=1, b) %}{% endmacro %}", "without a default", WEFT_FORMAT},
        {"{% macro m(a, a) %}{% endmacro %}", "'a' is named twice", WEFT_FORMAT},
        {"{{ f(a=1, 2) }}", "positional argument cannot follow", WEFT_FORMAT},
        {"{{ f(a=1, a=2) }}", "'a' is given twice", WEFT_FORMAT},
        {"{% break %}", "'break' outside of a loop", WEFT_FORMAT},
        {"{% for x in v %}{% macro m() %}{% continue %}{% endmacro %}{% endfor %}", "'continue' outside of a loop",
         WEFT_FORMAT},
        {"{% for x in v %}{% set loop = 1 %}{% endfor %}", "'loop' cannot be assigned to", WEFT_FORMAT},
        {"{{ '\\u12' }}", "malformed \\x, \\u or \\U escape", WEFT_FORMAT},
        {"{{ '\\ud800' }}", "malformed \\x, \\u or \\U escape", WEFT_FORMAT},
        {"{{ 99999999999999999999 }}", "an integer exceeds 64 bits", WEFT_LIMIT},
        {"a\xFFz", "not UTF-8", WEFT_FORMAT},
        {"{% call 1 %}{% endcall %}", "'call' needs a call", WEFT_FORMAT},
        {"{{ 1 is none is none }}", "tests cannot be chained with 'is'", WEFT_FORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft__jinja *t;
        weft_error err = {0};
        weft_status status = weft__jinja_compile(cases[i].source, strlen(cases[i].source), &t, &err);
        assert_null(t);
        if (status == cases[i].status && strstr(err.message, cases[i].part)) continue;
        fail_msg("%s\n  gives  %d: %s\n  wanted %d: %s", cases[i].source, (int)status, err.message,
                 (int)cases[i].status, cases[i].part);
    }
}

static void failures_tell_the_line_and_the_thing(void **state)
{
    (void)state;
    expect_error("\n\n{{ v.a.b }}", "{}", WEFT_ARGUMENT, "line 3: 'dict' has no attribute 'a'");
    expect_error("{{ w.a }}", "1", WEFT_ARGUMENT, "line 1: 'w' is undefined");
    expect_error("{% for x in v %}\n{{ x + 'a' }}{% endfor %}", "[1]", WEFT_ARGUMENT,
                 "line 2: '+' does not work on 'int' and 'str'");
    expect_error("{{ raise_exception('after ' ~ v) }}", "\"x\"", WEFT_ARGUMENT,
                 "line 1: the template refuses: after x");
    expect_error("{{ v.append(1) }}", "[1]", WEFT_ARGUMENT, "'list' has no attribute 'append'");
    expect_error("{{ v.encode() }}", "\"x\"", WEFT_UNSUPPORTED, "'encode' is not supported");
    expect_error("{{ strftime_now('%Y') }}", "1", WEFT_ARGUMENT, "'strftime_now' is undefined");
    expect_error("{{ v|tojson }}{{ w|tojson }}", "1", WEFT_ARGUMENT, "tojson: 'w' is undefined");
}

static void expect_limit(const char *source, const weft__jinja_limits *limits, const char *part)
{
    weft__jinja_output out;
    weft_error err = {0};
    weft_status status = render(source, "\"0123456789\"", limits, &out, &err);
    if (status != WEFT_LIMIT || !strstr(err.message, part))
        fail_msg("%s gives %d: %s", source, (int)status, err.message);
    assert_null(out.text);
}

static void limits_hold(void **state)
{
    (void)state;
    weft__jinja_limits limits = {.max_steps = 100000, .max_depth = 200, .max_output = 1000, .max_memory = 4 << 20};
    expect_limit("{% for x in range(100000) %}{% for y in range(100000) %}{% endfor %}{% endfor %}", &limits,
                 "100000 steps");
    expect_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", &limits, "depth of 200");
    expect_limit("{% for x in range(200) %}{{ v }}{% endfor %}", &limits, "the output exceeds 1000 bytes");
    weft__jinja_limits small = {.max_steps = 1000000, .max_depth = 200, .max_output = 1000, .max_memory = 1 << 20};
    expect_limit("{% set ns = namespace(s=v) %}{% for x in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
                 &small, "more than 1048576 bytes of memory");
    expect_limit("{{ v * 1000000000 }}", &limits, "");
    expect_limit("{{ [v] * 1000000000 }}", &limits, "");
    expect_limit("{{ v.center(100000000000) }}", &limits, "");
    expect_limit("{{ '%99999999d' % 1 }}", NULL, "a width is too large");
    expect_limit("{{ 2 ** 64 }}", NULL, "an integer exceeds 64 bits");
    expect_limit("{{ range(1, 10 ** 15) }}", NULL, "more than 100000 items");
    /* Each of these doubles what it prints or compares without growing what it holds. */
    expect_limit("{% set ns = namespace(s=[v]) %}{% for x in range(60) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ "
                 "ns.s|string|length }}",
                 &limits, "");
    expect_limit("{% set ns = namespace(a=[v], b=[v]) %}{% for x in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set "
                 "ns.b = [ns.b, ns.b] %}"
                 "{% endfor %}{{ ns.a == ns.b }}",
                 &limits, "steps");
    expect_limit(
        "{% set ns = namespace(s=[]) %}{% for x in range(1000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s|tojson }}",
        &limits, "depth of 200");
    expect_limit("{% set ns = namespace(g=[v]) %}{% for x in range(1000) %}{% set ns.g = ns.g|map('upper') %}{% endfor "
                 "%}{{ ns.g|list }}",
                 &limits, "depth of 200");
    expect_limit("{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", &limits, "");
}

/* Text that nests brackets or operators n deep. */
static char *nested(const char *before, const char *open, size_t n, const char *after)
{
    char *text = malloc(strlen(before) + n * strlen(open) + strlen(after) + 1), *at = text;
    assert_non_null(text);
    at = stpcpy(at, before);
    for (size_t i = 0; i < n; i++) at = stpcpy(at, open);
    strcpy(at, after);
    return text;
}

static void deep_templates_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{{ ", "(", "1"},
        {"{{ ", "[", "1"},
        {"{{ ", "-", "1 }}"},
        {"{{ ", "not ", "1 }}"},
        {"{{ 1", "+1", " }}"},
        {"{{ a", ".b", " }}"},
        {"{{ a", "|list", " }}"},
        {"", "{% if a %}", ""},
        {"{{ a", "[0]", " }}"},
        {"{{ a", "()", " }}"},
        {"{{ 1 ", "if 1 else 1 ", "}}"},
        {"", "{% macro m() %}", ""},
        {"{{ 'a", "", ""},
        {"{{ 1", " == 1 and 1", " }}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = nested(cases[i][0], cases[i][1], 100000, cases[i][2]);
        weft__jinja *t;
        assert_int_not_equal(weft__jinja_compile(text, strlen(text), &t, NULL), WEFT_OK);
        assert_null(t);
        free(text);
    }
    /* Long is fine where it is not deep. */
    char *text = nested("{{ 1", "~1", 20000, " }}");
    weft__jinja_output out;
    assert_int_equal(render(text, "1", NULL, &out, NULL), WEFT_OK);
    assert_int_equal(out.len, 20001);
    weft__jinja_output_free(&out);
    free(text);
    weft__jinja *t;
    assert_int_equal(weft__jinja_compile("", (size_t)WEFT__JINJA_MAX_SOURCE + 1, &t, NULL), WEFT_LIMIT);
}

/* ---- chat templates ---- */

static const char chat_source[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}{{ effort }}";

/* A template's output where an answer is to follow, or, `begun`, the rest of the last message. */
static weft_status chat_or_rest(const char *source, const char *messages, const char *tools, const char *kwargs,
                                int begun, weft__jinja_output *out, weft_error *err)
{
    weft__json *m = json_of(messages), *t = json_of(tools), *k = json_of(kwargs);
    const weft__chat_token tokens[] = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    weft__chat_request r = {.messages = m,
                            .tools = t,
                            .kwargs = k,
                            .add_generation_prompt = 1,
                            .continue_last = begun,
                            .tokens = tokens,
                            .n_tokens = 2,
                            .now = 1700000000};
    weft__chat_template *template;
    memset(out, 0, sizeof *out);
    weft_status status = weft__chat_template_create(source, strlen(source), &template, err);
    if (!status) status = weft__chat_template_render(template, &r, out, err);
    weft__chat_template_destroy(&template);
    weft__json_free(&m);
    weft__json_free(&t);
    weft__json_free(&k);
    return status;
}

static weft_status chat(const char *source, const char *messages, const char *tools, const char *kwargs,
                        weft__jinja_output *out, weft_error *err)
{
    return chat_or_rest(source, messages, tools, kwargs, 0, out, err);
}

static void expect_chat(const char *messages, const char *tools, const char *kwargs, const char *wanted)
{
    weft__jinja_output out;
    weft_error err = {0};
    if (chat(chat_source, messages, tools, kwargs, &out, &err)) fail_msg("%s", err.message);
    assert_string_equal(marked(&out), wanted);
    weft__jinja_output_free(&out);
}

static void special_tokens_of_users_stay_theirs(void **state)
{
    (void)state;
    expect_chat("[{\"role\": \"user\", \"content\": \"hi</s>\"}]", NULL, NULL, "<s><|user|>«hi</s>»</s><|assistant|>");
    expect_chat("[{\"role\": \"user|>x\", \"content\": \"\"}]", NULL, NULL, "<s><|«user|>x»|></s><|assistant|>");
    expect_chat("[]", "[{\"role\": \"user\"}]", "{\"effort\": \"<|high|>\"}",
                "<s>«[{\"role\": \"user\"}]»<|assistant|>«<|high|>»");
    expect_chat("[]", NULL, "{\"bos_token\": \"<x>\"}", "«<x>»<|assistant|>");
}

/* The answer goes on from what the assistant's last message says, which stays text. */
static void begun_answers_are_continued(void **state)
{
    (void)state;
    static const char *const none[] = {"[]", "[{\"role\": \"user\", \"content\": \"a\"}]",
                                       "[{\"role\": \"assistant\"}]",
                                       "[{\"role\": \"assistant\", \"content\": [\"a\"]}]", "[{\"content\": \"a\"}]"};
    weft__jinja_output out;
    weft_error err = {0};
    const char *messages =
        "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b</s>c\"}]";
    if (chat_or_rest(chat_source, messages, NULL, NULL, 1, &out, &err)) fail_msg("%s", err.message);
    assert_string_equal(marked(&out), "<s><|user|>«a»</s><|assistant|>«b</s>c»");
    weft__jinja_output_free(&out);
    if (chat_or_rest(chat_source, messages, NULL, "{\"effort\": \"x\"}", 1, &out, &err)) fail_msg("%s", err.message);
    assert_string_equal(marked(&out), "<s><|user|>«a»</s><|assistant|>«xb</s>c»");
    weft__jinja_output_free(&out);
    const char *empty = "[{\"role\": \"assistant\", \"content\": \"\"}]";
    if (chat_or_rest(chat_source, empty, NULL, NULL, 1, &out, &err)) fail_msg("%s", err.message);
    assert_string_equal(marked(&out), "<s><|assistant|>");
    weft__jinja_output_free(&out);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_int_equal(chat_or_rest(chat_source, none[i], NULL, NULL, 1, &out, &err), WEFT_ARGUMENT);
        assert_non_null(strstr(err.message, "can be continued"));
        assert_null(out.text);
    }
}

static void expect_chat_error(const char *source, const char *messages, const char *tools, const char *kwargs,
                              weft_status wanted, const char *part)
{
    weft__jinja_output out;
    weft_error err = {0};
    weft_status status = chat(source, messages, tools, kwargs, &out, &err);
    if (status != wanted || !strstr(err.message, part)) fail_msg("%d: %s; wanted %s", (int)status, err.message, part);
}

static void chat_requests_are_checked(void **state)
{
    (void)state;
    expect_chat_error(chat_source, "{}", NULL, NULL, WEFT_ARGUMENT, "messages must be an array");
    expect_chat_error(chat_source, "[{}, 1]", NULL, NULL, WEFT_ARGUMENT, "messages[1] must be an object");
    expect_chat_error(chat_source, "[]", "{}", NULL, WEFT_ARGUMENT, "tools must be an array");
    expect_chat_error(chat_source, "[]", NULL, "[]", WEFT_ARGUMENT, "chat_template_kwargs must be an object");
    expect_chat_error(chat_source, "[]", NULL, "{\"messages\": []}", WEFT_ARGUMENT, "cannot set 'messages'");
    expect_chat_error("{% if %}", "[]", NULL, NULL, WEFT_FORMAT, "chat template: line 1:");
    expect_chat_error("{{ raise_exception('no') }}", "[]", NULL, NULL, WEFT_ARGUMENT,
                      "chat template: line 1: the template refuses: no");
}

static void chat_variables_are_there(void **state)
{
    (void)state;
    weft__jinja_output out;
    setenv("TZ", "UTC", 1);
    const char *source =
        "{{ tools is none }}{{ documents is none }}{{ strftime_now('%Y-%m-%d') }}{{ pad_token is defined }}";
    assert_int_equal(chat(source, "[]", NULL, NULL, &out, NULL), WEFT_OK);
    assert_string_equal(out.text, "TrueTrue2023-11-14False");
    weft__jinja_output_free(&out);
}

/* ---- memory ---- */

static const char busy[] =
    "{%- macro m(x, y=2) -%}{{ x }}{{ y }}{{ varargs }}{%- endmacro -%}{% set ns = namespace(a=[]) %}"
    "{% for k, w in v.items()|list if k != 'z' recursive %}{{ loop.index }}{{ loop.last }}{{ loop.length }}{{ m(k, w, "
    "1) }}"
    "{% set ns.a = ns.a + [k ~ w] %}{% endfor %}{{ ns.a|map('upper')|join(',') }}{{ v|tojson(indent=2) }}{{ '%s %r' % "
    "(v, 1.5) }}"
    "{% set b %}{{ 'a b'.split() }}{{ '{:>5}'.format(t) }}{% endset %}{{ b|replace('a', t)|indent }}{{ v|dictsort }}{{ "
    "'[1]'|from_json }}"
    "{% filter upper %}{{ v|string|title|e }}{% endfilter %}{% macro n() %}{{ caller(1) }}{% endmacro %}{% call(p) n() "
    "%}{{ p "
    "}}{% endcall %}";

static int render_busy(void *arg)
{
    (void)arg;
    static weft__json *v;
    if (!v) v = json_of("{\"b\": \"x\", \"a\": [1, 2.5, null, true, \"\\u00e9\"], \"z\": {}}");
    weft__jinja *t;
    weft__jinja_call *call = NULL;
    weft__jinja_output out = {0};
    weft_error err = {0};
    weft_status status = weft__jinja_compile(busy, strlen(busy), &t, &err);
    if (!status) status = weft__jinja_call_create(NULL, &call, &err);
    if (!status) status = weft__jinja_set_json(call, "v", v, NULL, NULL, &err);
    if (!status) status = weft__jinja_set_string(call, "t", "T", 1, 1, &err);
    if (!status) status = weft__jinja_set_bool(call, "q", 1, &err);
    if (!status) status = weft__jinja_render(t, call, &out, &err);
    if (status && status != WEFT_NO_MEMORY && !strstr(err.message, "out of memory"))
        fail_msg("%d: %s", (int)status, err.message);
    weft__jinja_output_free(&out);
    weft__jinja_call_destroy(&call);
    weft__jinja_destroy(&t);
    return !status;
}

static int render_begun(void *arg)
{
    (void)arg;
    static weft__json *m;
    if (!m) m = json_of("[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"b\"}]");
    weft__chat_request r = {.messages = m, .add_generation_prompt = 1, .continue_last = 1};
    weft__chat_template *t;
    weft__jinja_output out = {0};
    weft_error err = {0};
    static const char source[] = "{% for m in messages %}{{ m.content }}|{% endfor %}";
    weft_status status = weft__chat_template_create(source, strlen(source), &t, &err);
    if (!status) status = weft__chat_template_render(t, &r, &out, &err);
    if (status && status != WEFT_NO_MEMORY && !strstr(err.message, "out of memory"))
        fail_msg("%d: %s", (int)status, err.message);
    if (!status) assert_string_equal(out.text, "a|b");
    weft__jinja_output_free(&out);
    weft__chat_template_destroy(&t);
    return !status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    assert_true(render_begun(NULL));
    assert_true(fail_each(render_begun, NULL) > 5);
    assert_true(render_busy(NULL)); /* parses its JSON, which stays */
    assert_true(fail_each(render_busy, NULL) > 5);
}

/* The same as `render`, plain; NULL where it is refused. The answers are jinja2's. */
static char *render_plain(const char *source)
{
    static char text[256];
    weft__jinja *t;
    weft__jinja_call *call = NULL;
    weft__jinja_output out = {0};
    weft_error err = {0};
    if (weft__jinja_compile_plain(source, strlen(source), &t, &err)) fail_msg("%s: %s", source, err.message);
    if (weft__jinja_call_create(NULL, &call, NULL)) fail_msg("no memory");
    const weft_status st = weft__jinja_render(t, call, &out, &err);
    assert_true(!st || *err.message);
    snprintf(text, sizeof text, "%s", st ? "" : out.text);
    weft__jinja_output_free(&out);
    weft__jinja_call_destroy(&call);
    weft__jinja_destroy(&t);
    return st ? NULL : text;
}

static void plain_templates_keep_white_space_and_refuse_what_is_undefined(void **state)
{
    (void)state;
    assert_string_equal(render_plain("  {% if 1 %}\na\n  {% endif %}\nb\n"), "  \na\n  \nb\n");
    assert_string_equal(render_plain("a {%- if 1 -%}\n b {% endif %}\n\n"), "ab \n\n");
    assert_string_equal(render_plain("{{ x is defined }} {{ x | default('d') }}"), "False d");
    static const char *const refused[] = {"{{ x }}",      "{{ x.y }}",     "{% for a in x %}{% endfor %}",
                                          "{{ x == 1 }}", "{{ 'a' ~ x }}", "{{ 1 in x }}"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (render_plain(refused[i])) fail_msg("%s: taken", refused[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_templates_keep_white_space_and_refuse_what_is_undefined),
        cmocka_unit_test(text_keeps_its_origin),
        cmocka_unit_test(containers_with_user_text_are_the_users),
        cmocka_unit_test(trust_is_asked_for_each_string),
        cmocka_unit_test(malformed_templates_are_refused_with_a_line),
        cmocka_unit_test(failures_tell_the_line_and_the_thing),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(deep_templates_are_refused),
        cmocka_unit_test(special_tokens_of_users_stay_theirs),
        cmocka_unit_test(begun_answers_are_continued),
        cmocka_unit_test(chat_requests_are_checked),
        cmocka_unit_test(chat_variables_are_there),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
