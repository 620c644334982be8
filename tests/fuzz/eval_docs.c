// SPDX-License-Identifier: Apache-2.0
/* eval_docs.c: any bytes as the documents of each form, as a Python literal, and as texts to be found (records, or
 * BEIR's three files, a byte 1 between them): read or refused with a message, and all memory comes back. The first
 * byte chooses. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/literal.h"
#include "eval/retrieval.h"
#include "eval/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_set(const weft__eval_retrieval_set *s)
{
    for (size_t i = 0; i < s->n_links; i++) {
        if (s->links[i].query >= s->n_queries || s->links[i].text >= s->n_texts || !(s->links[i].grade > 0)) abort();
        if (i && s->links[i].query < s->links[i - 1].query) abort();
    }
}

static void retrieval(const char *text, size_t n, int beir)
{
    weft__eval_retrieval_set s = {0};
    weft__eval_retrieval_file files[3] = {{"a", text, 0}, {"b", text, 0}, {"c", text, 0}};
    weft_error err = {0};
    for (int i = 0; i < 3 && n; i++) {
        const char *stop = i < 2 ? memchr(text, 1, n) : NULL;
        files[i].text = text;
        files[i].n = stop ? (size_t)(stop - text) : n;
        text += files[i].n + (stop != NULL);
        n -= files[i].n + (stop != NULL);
    }
    const weft_status st = beir ? weft__eval_retrieval_beir_parse(&s, files, &err)
                                : weft__eval_retrieval_parse(&s, "f", files[0].text, files[0].n, &err);
    if (st ? !*err.message : !s.n_links) abort();
    if (!st) check_set(&s);
    weft__eval_retrieval_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const forms[] = {"jsonl", "hellaswag", "winogrande", "multiple-choice", "humaneval", "swebench"};
    const size_t before = weft__alloc_live();
    weft_error err = {0};
    if (!n) return 0;
    if (*data % 8 == 7) {
        retrieval((const char *)data + 1, n - 1, *data & 8);
    } else if (*data % 8 == 6) {
        weft__json *v = NULL;
        if (weft__eval_literal((const char *)data + 1, n - 1, &v, &err) && (v || !*err.message)) abort();
        weft__json_free(&v);
    } else {
        weft__eval_task *t = weft__alloc_zero(1, sizeof *t);
        if (!t) abort();
        const weft_status st = weft__eval_form_parse(forms[*data % 8], "f", (const char *)data + 1, n - 1, t, &err);
        if (st ? !*err.message : !t->docs.n) abort();
        weft__eval_task_free(&t);
    }
    if (weft__alloc_live() != before) abort();
    return 0;
}
