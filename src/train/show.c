// SPDX-License-Identifier: Apache-2.0
/* show.c: weft_train_show (weft/train.h): texts as a training learns them, token by token. */
#include <string.h>

#include "base/alloc.h"
#include "base/params.h"
#include "base/text.h"
#include "train/job.h"

/* One text's columns. */
struct show_columns {
    float *weights;
    uint32_t *at;
    size_t room, at_room;
    weft__strbuf text;
};

static weft_status show_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to show a text");
}

static weft_status fill(struct show_columns *s, const weft__tok *tok, const weft__dataset_text *x, weft_error *err)
{
    if (!weft__grow(&s->weights, &s->room, x->n, sizeof *s->weights) ||
        !weft__grow(&s->at, &s->at_room, x->n + 1, sizeof *s->at))
        return show_no_memory(err);
    s->text.len = 0;
    for (size_t i = 0; i < x->n; i++) {
        /* the first token is what a text begins with: nothing predicts it */
        s->weights[i] = i && x->learn[i] ? x->weight : 0;
        s->at[i] = (uint32_t)s->text.len;
        weft_status st = weft__tok_decode(
            tok, x->ids + i, 1, WEFT__TOK_DECODE_SPECIAL | (i ? WEFT__TOK_DECODE_CONTINUE : 0), &s->text, err);
        if (st) return st;
    }
    s->at[x->n] = (uint32_t)s->text.len;
    weft__strbuf_putc(&s->text, 0);
    return s->text.failed ? show_no_memory(err) : WEFT_OK;
}

weft_status weft_train_show(const weft_train_params *params, int64_t n, weft_train_show_fn show, void *arg,
                            weft_error *err)
{
    weft_train_params p;
    weft__train_job j = {0};
    struct show_columns s = {0};
    weft_train_params_default(&p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_train_params), &p, params, err);
    if (!st) st = weft__train_job_open_texts(&j, &p, err);
    const size_t per = weft__train_job_pairs(&p) ? 2 : 1, most = st ? 0 : weft__dataset_n_texts(j.data);
    for (size_t i = 0; !st && i < most && (int64_t)(i / per) < n; i++) {
        const weft__dataset_text x = weft__dataset_text_at(j.data, i);
        if ((st = fill(&s, j.base.tok, &x, err))) break;
        const weft_train_shown shown = {.size = sizeof shown,
                                        .n = (int32_t)x.n,
                                        .tokens = x.ids,
                                        .weights = s.weights,
                                        .text = s.text.data,
                                        .at = s.at,
                                        .rejected = per == 2 && i % 2};
        if (show(arg, &shown)) break;
    }
    weft__strbuf_free(&s.text);
    weft__free(s.at);
    weft__free(s.weights);
    weft__train_job_close(&j);
    return st;
}
