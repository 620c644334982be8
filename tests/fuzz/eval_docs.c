// SPDX-License-Identifier: Apache-2.0
/* eval_docs.c: any bytes as the documents of each form, and as a Python literal: read or refused with a message, and
 * all memory comes back. The first byte chooses. */
#include <stdlib.h>

#include "base/alloc.h"
#include "eval/literal.h"
#include "eval/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const forms[] = {"jsonl", "hellaswag", "winogrande", "multiple-choice", "humaneval", "swebench"};
    const size_t before = weft__alloc_live();
    weft_error err = {0};
    if (!n) return 0;
    if (*data % 8 >= 6) {
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
