// SPDX-License-Identifier: Apache-2.0
/* answer_form.c: the grammar of a file, an expression or a list of choices. One thread. */
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

const char *answer_form_text(const answer_form *f)
{
    return f->json_object ? "the JSON object"
           : f->schema    ? "what the schema wants"
           : f->grammar   ? "what the grammar wants"
           : f->regex     ? "what the expression wants"
           : f->choices   ? "the choice"
                          : NULL;
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

static weft_status of_file(const weft_tokenizer *tokenizer, const char *path, int schema, weft_grammar **out,
                           weft_error *err)
{
    char *source = NULL;
    size_t n = 0, length = strlen(path);
    uint32_t kind = length > 5 && !strcmp(path + length - 5, ".lark") ? WEFT_GRAMMAR_LARK : WEFT_GRAMMAR_GBNF;
    weft_status st = read_form(path, schema, &source, &n, err);
    if (st) return st;
    st = schema ? weft_grammar_from_schema(tokenizer, source, n, out, err)
                : weft_grammar_new(tokenizer, kind, source, n, out, err);
    if (st) weft_fail_within(err, st, "%s", path);
    if (st && !schema && kind == WEFT_GRAMMAR_GBNF && !strstr(source, "::="))
        weft_fail(err, st, "%s; this was read as GBNF, and a file named .lark is read as Lark's EBNF", err->message);
    free(source);
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

static weft_status of_choices(const weft_tokenizer *tokenizer, const char *list, weft_grammar **out, weft_error *err)
{
    weft__strbuf text = {0};
    if (list[0] == '[') weft__strbuf_puts(&text, list);
    else put_words(&text, list);
    weft_status st = text.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a grammar")
                                 : weft_grammar_new(tokenizer, WEFT_GRAMMAR_CHOICES, text.data, text.len, out, err);
    weft__strbuf_free(&text);
    return st;
}

weft_status answer_form_grammar(const answer_form *f, const weft_tokenizer *tokenizer, weft_grammar **out,
                                weft_error *err)
{
    weft_status st = WEFT_OK;
    *out = NULL;
    if (f->grammar || f->schema) return of_file(tokenizer, f->grammar ? f->grammar : f->schema, !f->grammar, out, err);
    if (f->json_object) return weft_grammar_new(tokenizer, WEFT_GRAMMAR_JSON, NULL, 0, out, err);
    if (f->regex) st = weft_grammar_new(tokenizer, WEFT_GRAMMAR_REGEX, f->regex, strlen(f->regex), out, err);
    else if (f->choices) st = of_choices(tokenizer, f->choices, out, err);
    if (st) weft_fail_within(err, st, f->regex ? "--regex" : "--choices");
    return st;
}
