// SPDX-License-Identifier: Apache-2.0
/* chat_grammar.c: what an answer to a prompt is held to: weft_chat_grammar where tools are offered, weft_chat_form with
 * a grammar of the caller's, weft_chat_form_or_calls with both. A grammar may be shared by threads. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "engine/chat.h"
#include "engine/grammar.h"
#include "engine/handles.h"
#include "text/grammar/calls.h"

static size_t without_space(const char *s, size_t n)
{
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    return n;
}

/* Whether the model may think, or has begun to, where this prompt ends. */
static weft__gram_thinking thinking_at(const weft__answer_params *how)
{
    const weft__answer_reasoning *r = how->style.reasoning;
    if (!r || how->style.format->ends_reasoning) return WEFT__GRAM_THINKS_NOT;
    if (weft__answer_begun(how)) return WEFT__GRAM_THINKS;
    size_t n = without_space(how->prompt, how->n_prompt), length = without_space(r->end, strlen(r->end));
    int ended = n >= length && !memcmp(how->prompt + n - length, r->end, length);
    return ended || how->n_begun ? WEFT__GRAM_THINKS_NOT : WEFT__GRAM_MAY_THINK;
}

/* A failure of all functions together, with the one that has most to it. */
static weft_status name_the_largest(const weft__json *tools, weft_status st, weft_error *err)
{
    char why[WEFT_ERROR_TEXT];
    const char *name = "";
    size_t largest = 0, most = 0, n;
    if (st != WEFT_LIMIT || !err) return st;
    if (strncmp(err->message, "grammar: rule", 13) != 0 && !strstr(err->message, "too ambiguous")) return st;
    for (size_t i = 0; i < weft__json_size(tools); i++) {
        weft__strbuf text = {0};
        weft__json_write(&text, weft__json_at(tools, i), WEFT__JSON_COMPACT);
        if (text.len > most) {
            most = text.len;
            largest = i;
        }
        weft__strbuf_free(&text);
    }
    const weft__json *tool = weft__json_at(tools, largest), *function = weft__json_get(tool, "function");
    weft__json_string(weft__json_get(function ? function : tool, "name"), &name, &n);
    snprintf(why, sizeof why, "%s", err->message);
    return weft_fail(err, st, "tools: these %zu take too much together, most of it tools[%zu] ('%.64s', %zu bytes): %s",
                     weft__json_size(tools), largest, name, most, why);
}

/* The rules of the calls, compiled. */
static weft_status calls_grammar(const weft_tokenizer *tokenizer, const weft__gram_calls_spec *spec, weft_grammar **out,
                                 weft_error *err)
{
    weft__gram *rules = weft__gram_create();
    if (!rules) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_vocabulary(rules, tokenizer->t);
    int32_t root = weft__gram_calls(rules, spec);
    weft_status st = weft__engine_grammar_of(tokenizer, rules, root, WEFT__GRAM_JSON_DEPTH - 1, 0, out, err);
    return name_the_largest(spec->tools, st, err);
}

/* From the beginning of a call on; what is thought is none. */
static weft_status from_a_call_on(const weft_tokenizer *tokenizer, const weft__gram_calls_spec *spec,
                                  weft__gram_thinking thinking, const weft_grammar *whole, weft_grammar **out,
                                  weft_error *err)
{
    weft__gram *rules = weft__gram_create();
    if (!rules) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
    weft__gram_vocabulary(rules, tokenizer->t);
    weft__gram_lazy_spec lazy = {.rules = rules, .words = weft__gram_calls_begin(rules, spec)};
    if (thinking) {
        lazy.skip_from = spec->style.reasoning->begin;
        lazy.skip_to = spec->style.reasoning->end;
        lazy.skipping = thinking == WEFT__GRAM_THINKS;
    }
    weft_status st = weft__engine_grammar_lazy(tokenizer, whole, &lazy, out, err);
    weft__gram_destroy(&rules);
    return st;
}

/* The same before calls that must be; those of some formats may stand in reasoning, which they end. */
static weft__gram_thinking thinking_of_calls(const weft_chat_prompt *prompt, const weft__answer_params *how)
{
    const weft__gram_thinking thinking = thinking_at(how);
    if (!prompt->thinks_not) return thinking;
    return thinking == WEFT__GRAM_THINKS ? WEFT__GRAM_ENDS_THINKING : WEFT__GRAM_THINKS_NOT;
}

weft_status weft_chat_grammar(const weft_chat_prompt *prompt, const char *tools, const char *choice, int32_t parallel,
                              weft_grammar **out, weft_error *err)
{
    const weft_tokenizer *tokenizer = prompt->chat->vocabulary;
    const weft__answer_params how = weft__engine_chat_answer(prompt);
    int is_auto = !choice || !strcmp(choice, "auto");
    const weft__gram_thinking thinking = is_auto ? thinking_at(&how) : thinking_of_calls(prompt, &how);
    weft__json *list = NULL;
    weft_grammar *whole = NULL;
    *out = NULL;
    weft_status st = weft__engine_chat_tools(tools, &list, err);
    const weft__gram_calls_spec spec = {.style = how.style,
                                        .tools = list,
                                        .name = is_auto || !strcmp(choice, "required") ? NULL : choice,
                                        .parallel = parallel,
                                        .lenient = is_auto,
                                        .thinking = is_auto ? WEFT__GRAM_THINKS_NOT : thinking};
    if (st || (is_auto && (!weft__json_size(list) || !weft__gram_calls_tell(&spec)))) {
        weft__json_free(&list);
        return st;
    }
    st = calls_grammar(tokenizer, &spec, is_auto ? &whole : out, err);
    if (!st && is_auto) st = from_a_call_on(tokenizer, &spec, thinking, whole, out, err);
    weft_grammar_free(&whole);
    weft__json_free(&list);
    return st;
}

/* As thinking_at; and where there are to be no thoughts, those that the prompt has begun end. */
static weft__gram_thinking thinking_before(const weft_chat_prompt *prompt, const weft__answer_params *how)
{
    const weft__answer_reasoning *r = how->style.reasoning;
    if (r && weft__answer_begun(how)) return prompt->thinks_not ? WEFT__GRAM_ENDS_THINKING : WEFT__GRAM_THINKS;
    return !r || prompt->thinks_not ? WEFT__GRAM_THINKS_NOT : thinking_at(how);
}

void weft_chat_prompt_end_thinking(weft_chat_prompt *prompt)
{
    prompt->thinks_not = 1;
}

int weft_chat_prompt_ends_thinking(const weft_chat_prompt *prompt)
{
    return prompt->thinks_not;
}

int32_t weft_chat_form_lead(const weft_chat_prompt *prompt)
{
    const weft__answer_params how = weft__engine_chat_answer(prompt);
    const weft__gram_thinking thinking = thinking_before(prompt, &how);
    if (!thinking && how.n_begun) return 0; /* the text has begun */
    return weft__gram_has_lead(&how.style, thinking) ? 1 + (int32_t)thinking : 0;
}

weft_status weft_chat_form(const weft_chat_prompt *prompt, uint32_t kind, const char *source, size_t length,
                           weft_grammar **out, weft_error *err)
{
    const weft_tokenizer *tokenizer = prompt->chat->vocabulary;
    const int32_t lead = weft_chat_form_lead(prompt);
    weft__engine_rules rules = {0};
    *out = NULL;
    weft_status st = weft__engine_grammar_read(tokenizer, kind, source, length, &rules, err);
    if (st) return st;
    if (lead)
        rules.root =
            weft__gram_behind_thoughts(rules.g, &prompt->chat->style, (weft__gram_thinking)(lead - 1), rules.root);
    return weft__engine_grammar_of(tokenizer, rules.g, rules.root, rules.depth + (lead != 0), rules.own, out, err);
}

weft_status weft_chat_form_or_calls(const weft_chat_prompt *prompt, uint32_t kind, const char *source, size_t length,
                                    const char *tools, int32_t parallel, weft_grammar **out, weft_error *err)
{
    const weft_tokenizer *tokenizer = prompt->chat->vocabulary;
    const weft__answer_params how = weft__engine_chat_answer(prompt);
    weft__gram_calls_spec spec = {
        .style = how.style, .parallel = parallel, .lenient = 1, .thinking = thinking_before(prompt, &how)};
    weft__engine_rules rules = {0};
    weft__json *list = NULL;
    *out = NULL;
    if (!spec.thinking && how.n_begun) return weft_chat_form(prompt, kind, source, length, out, err);
    weft_status st = weft__engine_chat_tools(tools, &list, err);
    if (!st) st = weft__engine_grammar_read(tokenizer, kind, source, length, &rules, err);
    if (!st) {
        weft__gram_apart(rules.g);
        spec.tools = list;
        spec.form = 1 + rules.root;
        int32_t root = weft__gram_calls(rules.g, &spec);
        st = weft__engine_grammar_of(tokenizer, rules.g, root, rules.depth + 1, 0, out, err);
        st = name_the_largest(list, st, err);
    }
    weft__json_free(&list);
    return st;
}
