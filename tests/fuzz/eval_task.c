// SPDX-License-Identifier: Apache-2.0
/* eval_task.c: any bytes as a task file, and a document for it: it is read, or refused with a message; prompts of it
 * are, too; and all memory comes back. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "eval/prompt.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* The engine's, which no prompt without a chat asks: with them all kernels would be compiled for this program. */
weft_status weft_chat_render(const weft_chat *chat, const char *messages, const char *tools, const char *kwargs,
                             int add_generation_prompt, weft_chat_prompt **out, weft_error *err)
{
    (void)chat, (void)messages, (void)tools, (void)kwargs, (void)add_generation_prompt, (void)out, (void)err;
    abort();
}

const char *weft_chat_prompt_text(const weft_chat_prompt *prompt, size_t *length)
{
    (void)prompt, (void)length;
    abort();
}

void weft_chat_prompt_free(weft_chat_prompt **prompt)
{
    if (*prompt) abort();
}

static void make_prompts(weft__eval_task *t)
{
    static const char doc[] = "{\"q\": \"A b?\", \"c\": [\"x\", \"y\"], \"l\": 1, \"a\": \"7\"}\n{\"q\": \"\", \"c\": "
                              "[\"u\"], \"l\": 0, \"a\": 3}";
    const weft__eval_style style = {0};
    weft__eval_shots shots;
    weft__eval_asks asks = {0};
    weft_error err = {0};
    if (weft__eval_docs_parse("d", doc, sizeof doc - 1, &t->docs, NULL)) abort();
    t->shots_are_docs = 1;
    if (t->n_fewshot > 1) t->n_fewshot = 1;
    if (weft__eval_shots_begin(&shots, t, 1, NULL)) abort();
    if (!weft__eval_shots_next(&shots, 0, &err) && weft__eval_ask_make(&shots, &style, 0, &asks, &err) && !*err.message)
        abort();
    weft__eval_asks_free(&asks);
    weft__eval_shots_free(&shots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const files[] = {"d.jsonl"};
    static const weft__eval_task_options o = {.n_fewshot = -1, .temperature = -1, .data = files, .n_data = 1};
    const size_t before = weft__alloc_live();
    weft__eval_places places = {0};
    weft_error err = {0};
    weft__eval_task *t = weft__alloc_zero(1, sizeof *t);
    if (!t) abort();
    t->repeats = 1;
    if (memmem(data, n, "include", 7)) n = 0; /* files of the machine are none of the input */
    const weft_status st = weft__eval_task_parse("t.yaml", (const char *)data, n, &o, t, &places, &err);
    if (st && !*err.message) abort();
    if (!st && !weft__eval_task_defaults(t, NULL)) make_prompts(t);
    weft__eval_task_free(&t);
    if (weft__alloc_live() != before) abort();
    return 0;
}
