// SPDX-License-Identifier: Apache-2.0
/* answer_world.h: answers taken apart, as one line that can be compared, for tests of src/text/answer. */
#ifndef WEFT_TESTS_ANSWER_WORLD_H
#define WEFT_TESTS_ANSWER_WORLD_H

#include "base/random.h"
#include "text/answer/answer.h"

/* What was told: T{text} R{reasoning} C{name|id|arguments}, what is alike joined; and the bytes that it was made of. */
typedef struct told {
    weft__strbuf line;
    int open; /* the kind that is still open in it, or -1 */
    size_t calls;
    uint8_t *covered; /* [n] of the answer, or NULL */
    const char *answer;
} told;

static inline int tell_line(void *arg, const weft_chat_part *p, size_t from, size_t to)
{
    told *t = arg;
    const int kind = (int)p->kind;
    assert_true(from < to && p->size == sizeof *p);
    if (kind != WEFT_CHAT_CALL) {
        assert_true(p->n_text == to - from);
        assert_memory_equal(p->text, t->answer + from, p->n_text);
    }
    if (t->covered) memset(t->covered + from, kind == WEFT_CHAT_CALL ? 2 : 1, to - from);
    if (t->open != kind || kind == WEFT_CHAT_CALL) {
        if (t->open >= 0) weft__strbuf_putc(&t->line, '}');
        weft__strbuf_printf(&t->line, "%c{", "TRC"[kind]);
    }
    if (kind == WEFT_CHAT_CALL) {
        assert_int_equal(p->index, t->calls++);
        weft__strbuf_put(&t->line, p->name, p->n_name);
        weft__strbuf_putc(&t->line, '|');
        if (p->n_id) weft__strbuf_put(&t->line, p->id, p->n_id);
        weft__strbuf_putc(&t->line, '|');
    }
    weft__strbuf_put(&t->line, p->text, p->n_text);
    t->open = kind;
    return 0;
}

/* Bytes of the next piece: all of them, one, or, as tokens may be, a few. */
enum cut { WHOLE, BYTES, TOKENS };

static inline size_t cut_at(enum cut cut, weft__rng *rng, size_t left)
{
    size_t n = cut == WHOLE ? left : cut == BYTES ? 1 : 1 + (size_t)weft__rng_below(rng, 9);
    return n < left ? n : left;
}

/* The answer, pushed in pieces, as a line, which the caller frees with weft__strbuf_free; covered [n] or NULL: 1 for
 * each byte of text or reasoning, 2 of a call. `tools`: JSON or NULL. */
static inline weft__strbuf taken_apart(const weft__answer_params *how, const char *tools, const char *answer, size_t n,
                                       enum cut cut, uint8_t *covered)
{
    told t = {.open = -1, .covered = covered, .answer = answer};
    weft__json *tree = NULL;
    weft__answer *a = NULL;
    weft__rng rng;
    weft__rng_seed(&rng, n);
    if (tools) assert_int_equal(weft__json_parse(tools, strlen(tools), &tree, NULL), WEFT_OK);
    assert_int_equal(weft__answer_create(how, tree, &a, NULL), WEFT_OK);
    for (size_t at = 0, more; at < n; at += more) {
        more = cut_at(cut, &rng, n - at);
        assert_int_equal(weft__answer_push(a, answer + at, more, tell_line, &t, NULL), WEFT_OK);
    }
    assert_int_equal(weft__answer_finish(a, tell_line, &t, NULL), WEFT_OK);
    weft__answer_destroy(&a);
    if (t.open >= 0) weft__strbuf_putc(&t.line, '}');
    if (!t.line.data) weft__strbuf_puts(&t.line, "");
    return t.line;
}

/* The arguments of calls. */
static const char *const arguments[] = {
    "{}",
    "{\"q\": \"plain\"}",
    "{\"q\": \"\"}",
    "{\"q\": \"Zürich, 東京 🎉 é\"}",
    "{\"q\": \"say \\\"hi\\\" now\"}",
    "{\"q\": \"it's 'fine' `so`\"}",
    "{\"q\": \"one\\ntwo\\n\\nfour\"}",
    "{\"q\": \" around \"}",
    "{\"n\": 3, \"m\": -70, \"x\": 2.5, \"yes\": true, \"no\": false}",
    "{\"q\": null, \"n\": 1}",
    "{\"o\": {\"k\": [1, {\"z\": \"y\"}], \"deep\": {\"er\": {\"est\": true}}}, \"q\": \"x\"}",
    "{\"numbers\": [1, 2, 3], \"words\": [\"a\", \"b c\"]}",
    "{\"objects\": [{\"a\": 1}, {\"a\": 2}]}",
    "{\"q\": \"3\"}",
    "{\"q\": \"true\"}",
    "{\"q\": \"{\\\"a\\\": [1]}\"}",
    "{\"q\": \"</tool_call> <tool_call> [TOOL_CALLS] <|call|> }] ```\"}",
    "{\"q\": \"a\\\\b C:\\\\new\"}",
    "{\"code\": \"def f(x):\\n    return x < 1 and x > 2, [x]\\n\"}",
    "{\"q\": \"\\n\"}",
    "{\"a b\": \"a key with a space\", \"c-d\": 1, \"e.f\": 2}",
    "{\"q\": \"<p>1 &amp; 2</p>\", \"empty\": {}, \"none\": []}",
};
enum { N_ARGUMENTS = sizeof arguments / sizeof *arguments };

static inline const weft__answer_format *format_named(const char *name)
{
    for (size_t i = 0; i < weft__answer_n_formats; i++)
        if (!strcmp(weft__answer_formats[i].name, name)) return &weft__answer_formats[i];
    fail_msg("no format is called %s", name);
    return NULL;
}

static const weft__answer_reasoning think = {.begin = "<think>", .end = "</think>"};

/* By a format and, unless it has its own, <think>. */
static inline weft__answer_params by(const char *format)
{
    const weft__answer_format *f = format_named(format);
    return (weft__answer_params){
        .style = {f, f->reasoning ? f->reasoning : &think}, .calls = 1, .reasoning = 1, .prompt = ""};
}

/* However it is cut, the answer becomes that line. */
static inline void becomes_with(const weft__answer_params *how, const char *tools, const char *answer,
                                const char *wanted)
{
    for (enum cut cut = WHOLE; cut <= TOKENS; cut++) {
        weft__strbuf line = taken_apart(how, tools, answer, strlen(answer), cut, NULL);
        if (strcmp(line.data, wanted))
            fail_msg("%s, cut %d:\n  %s\n  became %s\n  not    %s", how->style.format->name, cut, answer, line.data,
                     wanted);
        weft__strbuf_free(&line);
    }
}

#endif
