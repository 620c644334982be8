// SPDX-License-Identifier: Apache-2.0
/* answer_form.c: the grammar of a file, an expression or a list of choices (answer_form.h). One thread. */
#include "answer_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "prompt.h"

/* Is there an empty word in a list with commas between its words? A JSON array is another form of list. */
static int has_empty_word(const char *list)
{
    const size_t n = strlen(list);
    return !n || (list[0] != '[' && (list[0] == ',' || list[n - 1] == ',' || strstr(list, ",,")));
}

int answer_form_check(const char *command, const answer_form *f)
{
    const char *why = NULL;
    if (!!f->grammar + !!f->schema + !!f->regex + !!f->choices + !!f->json_object > 1)
        why = "--grammar, --schema, --regex, --choices and --json-object exclude each other";
    else if (f->regex && !*f->regex) why = "--regex: the expression is empty, and so would every answer be";
    else if (f->choices && has_empty_word(f->choices))
        why = "--choices: a word is empty; where an empty answer is meant, give a JSON array, which may hold \"\"";
    if (why) fprintf(stderr, "weft %s: %s\n", command, why);
    return !why;
}

/* What is complete when an answer ends by itself. */
static const char *form_text(const answer_form *f)
{
    return f->json_object ? "the JSON object"
           : f->schema    ? "what the schema wants"
           : f->grammar   ? "what the grammar wants"
           : f->regex     ? "what the expression wants"
                          : "the choice";
}

weft_status answer_form_broken_off(const answer_form *f, const char *what, const generate_result *r, weft_error *err)
{
    /* An end token comes only where it is complete. */
    const char *why = !strcmp(r->finish_reason, "stop")     ? ": a text of --stop ended it; leave that out"
                      : !strcmp(r->finish_reason, "length") ? "; give it more (-n, -c)"
                                                            : "";
    return weft_fail(err, WEFT_LIMIT, "the %s breaks off after %d tokens (%s), before %s is complete%s", what,
                     r->n_tokens, r->finish_reason, form_text(f), why);
}

/* Names the option where the file is not to be had: what stands there may be what should stand in a file. */
static weft_status read_form(const char *path, int schema, char **source, size_t *n, weft_error *err)
{
    const weft_status st = read_text(path, source, n, err);
    if (st == WEFT_NO_MEMORY) return st;
    if (st && (path[0] == '{' || strchr(path, '\n') || strstr(path, "::=")))
        return weft_fail(err, st, "%s wants the name of a FILE, not what stands in it; '-' is standard input",
                         schema ? "--schema" : "--grammar");
    if (st) weft_fail_within(err, st, "%s FILE", schema ? "--schema" : "--grammar");
    return st;
}

/* Words with commas between them as a JSON array. */
static void put_words(weft__strbuf *out, const char *s)
{
    weft__strbuf_putc(out, '[');
    for (;; s++) {
        size_t n = strcspn(s, ",");
        weft__json_write_string(out, s, n);
        s += n;
        if (!*s) break;
        weft__strbuf_putc(out, ',');
    }
    weft__strbuf_putc(out, ']');
}

/* A list of words as it is compiled. */
static weft_status read_choices(const char *list, answer_form_source *out, weft_error *err)
{
    weft__strbuf text = {0};
    if (list[0] == '[') weft__strbuf_puts(&text, list);
    else put_words(&text, list);
    out->text = text.failed ? NULL : strdup(text.data);
    out->n = text.len;
    weft__strbuf_free(&text);
    return out->text ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
}

static int is_lark(const char *path)
{
    const size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".lark");
}

weft_status answer_form_read(const answer_form *f, answer_form_source *out, weft_error *err)
{
    *out = (answer_form_source){.form = f};
    if (f->json_object) out->kind = WEFT_GRAMMAR_JSON;
    if (f->grammar) out->kind = is_lark(f->grammar) ? WEFT_GRAMMAR_LARK : WEFT_GRAMMAR_GBNF;
    if (f->schema) out->kind = WEFT_GRAMMAR_SCHEMA;
    if (f->grammar || f->schema)
        return read_form(f->grammar ? f->grammar : f->schema, !f->grammar, &out->text, &out->n, err);
    if (f->choices) {
        out->kind = WEFT_GRAMMAR_CHOICES;
        return read_choices(f->choices, out, err);
    }
    if (!f->regex) return WEFT_OK;
    out->kind = WEFT_GRAMMAR_REGEX;
    out->text = strdup(f->regex);
    out->n = strlen(f->regex);
    return out->text ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar");
}

void answer_form_source_free(answer_form_source *s)
{
    free(s->text);
    *s = (answer_form_source){0};
}

int32_t answer_form_lead(const answer_form_source *s, const weft_chat_prompt *prompt)
{
    const int bound = !s->form || s->form->grammar || (!s->text && !s->form->json_object);
    return bound ? 0 : weft_chat_form_lead(prompt);
}

weft_status answer_form_compile(const answer_form_source *s, const weft_tokenizer *tokenizer,
                                const weft_chat_prompt *prompt, weft_grammar **out, weft_error *err)
{
    const answer_form *f = s->form;
    *out = NULL;
    if (!f || (!s->text && !f->json_object)) return WEFT_OK;
    weft_status st = prompt && answer_form_lead(s, prompt)
                         ? weft_chat_form(prompt, s->kind, s->text, s->n, out, err)
                         : weft_grammar_new(tokenizer, s->kind, s->text, s->n, out, err);
    if (st)
        weft_fail_within(err, st, "%s",
                         f->grammar  ? f->grammar
                         : f->schema ? f->schema
                         : f->regex  ? "--regex"
                                     : "--choices");
    if (st && f->grammar && s->kind == WEFT_GRAMMAR_GBNF && !strstr(s->text, "::="))
        weft_fail(err, st, "%s; this was read as GBNF, and a file named .lark is read as Lark's EBNF", err->message);
    return st;
}
