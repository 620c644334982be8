// SPDX-License-Identifier: Apache-2.0
/* answer.c: any bytes as an answer in a format that the first byte chooses: however it is cut, the same is told, in
 * the answer's order, and the arguments of calls are JSON objects. The second byte says
 * what is told apart, the third how the answer is cut. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/answer/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char tools[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\": \"object\", \"properties\": {"
    "\"s\": {\"type\": \"string\"}, \"n\": {\"type\": \"integer\"}, \"b\": {\"type\": [\"boolean\", \"null\"]}, "
    "\"o\": {\"type\": \"object\"}, \"l\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}}}}}}]";

typedef struct seen {
    weft__strbuf line;
    int kind; /* the last part's, or -1 */
    size_t end;
} seen;

static void check_arguments(const weft_chat_part *p)
{
    weft__json *v = NULL;
    if (weft__json_parse_repeated(p->text, p->n_text, &v, NULL) || weft__json_kind_of(v) != WEFT__JSON_OBJECT) abort();
    if (!p->n_name) abort();
    weft__json_free(&v);
}

static int see(void *arg, const weft_chat_part *p, size_t from, size_t to)
{
    seen *s = arg;
    if (from < s->end || to <= from) abort();
    s->end = to;
    if ((int)p->kind != s->kind || p->kind == WEFT_CHAT_CALL) weft__strbuf_printf(&s->line, "\n%u:", p->kind);
    s->kind = (int)p->kind;
    if (p->kind == WEFT_CHAT_CALL) {
        check_arguments(p);
        weft__strbuf_put(&s->line, p->name, p->n_name);
        weft__strbuf_putc(&s->line, '|');
        if (p->n_id) weft__strbuf_put(&s->line, p->id, p->n_id);
    } else if (p->n_text != to - from) {
        abort();
    }
    weft__strbuf_put(&s->line, p->text, p->n_text);
    return 0;
}

static weft__strbuf apart(const weft__answer_params *how, const char *text, size_t n, size_t piece)
{
    seen s = {.kind = -1};
    weft__json *tree = NULL;
    weft__answer *a = NULL;
    if (weft__json_parse(tools, sizeof tools - 1, &tree, NULL) || weft__answer_create(how, tree, &a, NULL)) abort();
    for (size_t at = 0; at < n; at += piece)
        if (weft__answer_push(a, text + at, n - at < piece ? n - at : piece, see, &s, NULL)) abort();
    if (weft__answer_finish(a, see, &s, NULL)) abort();
    weft__answer_destroy(&a);
    weft__strbuf_puts(&s.line, "\n");
    return s.line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const weft__answer_reasoning think = {.begin = "<think>", .end = "</think>"};
    if (size < 3) return 0;
    const weft__answer_format *f = &weft__answer_formats[data[0] % weft__answer_n_formats];
    const weft__answer_params how = {.style = {f, f->reasoning ? f->reasoning : &think},
                                     .calls = !(data[1] & 1),
                                     .reasoning = !(data[1] & 2),
                                     .prompt = data[1] & 4 ? "<think>\n" : "",
                                     .n_prompt = data[1] & 4 ? 8 : 0};
    const char *text = (const char *)data + 3;
    weft__strbuf whole = apart(&how, text, size - 3, size), cut = apart(&how, text, size - 3, 1 + data[2] % 16);
    if (whole.len != cut.len || memcmp(whole.data, cut.data, cut.len)) abort();
    weft__strbuf_free(&whole);
    weft__strbuf_free(&cut);
    return 0;
}
