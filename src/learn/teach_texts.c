// SPDX-License-Identifier: Apache-2.0
/* teach_texts.c: see teach_texts.h; teach_ask.c has what a model makes of them. */
#include "learn/teach_texts.h"

#include <string.h>

#include "base/alloc.h"

weft_status weft__teach_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory to learn");
}

/* ---- texts ---- */

int weft__teach_texts_add(weft__teach_texts *t, const int32_t *prompt, int32_t n_prompt, const int32_t *answer,
                          int32_t n_answer, int32_t end)
{
    const int32_t n = n_prompt + n_answer + (end >= 0);
    if (!weft__grow(&t->text, &t->room, t->n + 1, sizeof *t->text)) return 0;
    int32_t *ids = weft__alloc_array((size_t)n + !n, sizeof *ids);
    if (!ids) return 0;
    if (n_prompt) memcpy(ids, prompt, (size_t)n_prompt * sizeof *ids);
    if (n_answer) memcpy(ids + n_prompt, answer, (size_t)n_answer * sizeof *ids);
    if (end >= 0) ids[n - 1] = end;
    t->text[t->n++] = (weft__teach_text){ids, n, n_prompt};
    return 1;
}

void weft__teach_texts_free(weft__teach_texts *t)
{
    for (size_t i = 0; i < t->n; i++) weft__free((void *)(uintptr_t)t->text[i].ids);
    weft__free(t->text);
    *t = (weft__teach_texts){0};
}

weft__teach_span weft__teach_differ(const int32_t *a, int32_t n, const int32_t *b, int32_t m)
{
    weft__teach_span s = {0, n};
    int32_t end = m;
    while (s.from < n && s.from < m && a[s.from] == b[s.from]) s.from++;
    while (s.to > s.from && end > s.from && a[s.to - 1] == b[end - 1]) s.to--, end--;
    if (s.from == s.to && s.to < n) s.to++;
    else if (s.from == s.to && n) s.from--;
    return s;
}

int weft__teach_mark(const int32_t *a, int32_t n, const int32_t *b, int32_t m, uint8_t *differs)
{
    const size_t width = (size_t)m + 1;
    /* [i][j]: how many a[i, n) and b[j, m) have in common */
    int32_t *common = weft__alloc_zero(((size_t)n + 1) * width, sizeof *common);
    if (!common) return 0;
    for (int32_t i = n - 1; i >= 0; i--) {
        int32_t *row = common + (size_t)i * width, *below = row + width;
        for (int32_t j = m - 1; j >= 0; j--)
            row[j] = a[i] == b[j] ? below[j + 1] + 1 : below[j] > row[j + 1] ? below[j] : row[j + 1];
    }
    for (int32_t i = 0, j = 0; i < n; i++) {
        const int32_t *row = common + (size_t)i * width;
        while (j < m && a[i] != b[j] && row[j + 1] == row[j]) j++;
        differs[i] = !(j < m && a[i] == b[j]);
        if (!differs[i]) j++;
    }
    weft__free(common);
    return 1;
}

void weft__teach_mark_other(const int32_t *a, int32_t n, const uint8_t *differs, const int32_t *b, int32_t m,
                            uint8_t *differs_of_b)
{
    memset(differs_of_b, 1, (size_t)m);
    for (int32_t i = 0, k = 0; i < n; i++) {
        if (differs[i]) continue;
        while (k < m && b[k] != a[i]) k++;
        if (k < m) differs_of_b[k++] = 0;
    }
}

int weft__teach_holds(const int32_t *ids, int32_t m, const int32_t *part, int32_t n)
{
    for (int32_t i = 0; n > 0 && i + n <= m; i++)
        if (!memcmp(ids + i, part, (size_t)n * sizeof *ids)) return 1;
    return 0;
}

weft__teach_span weft__teach_event_span(const weft__teach_event *e)
{
    const weft__teach_text *c = &e->correction;
    const int32_t n = c->n - c->n_prompt - 1; /* without the token that ends it */
    return e->wrong ? weft__teach_differ(c->ids + c->n_prompt, n, e->wrong, e->n_wrong) : (weft__teach_span){0, n};
}

/* ---- rows ---- */

int weft__teach_rows_put(weft__teach_rows *r, const weft__teach_text *text, const float *weight)
{
    size_t rooms[4] = {r->room, r->room, r->room, r->room};
    const size_t n = (size_t)r->n + (size_t)text->n;
    if (!weft__grow(&r->token, &rooms[0], n, sizeof *r->token) ||
        !weft__grow(&r->segment, &rooms[1], n, sizeof *r->segment) ||
        !weft__grow(&r->target, &rooms[2], n, sizeof *r->target) ||
        !weft__grow(&r->weight, &rooms[3], n, sizeof *r->weight))
        return 0;
    r->room = rooms[0];
    for (int32_t i = 0; i + 1 < text->n; i++) {
        const int32_t of_answer = i + 1 - text->n_prompt;
        r->token[r->n] = text->ids[i];
        r->segment[r->n] = r->n_texts;
        r->target[r->n] = of_answer >= 0 ? text->ids[i + 1] : -1;
        r->weight[r->n++] = of_answer >= 0 && weight ? weight[of_answer] : 1;
    }
    r->n_texts += text->n > 1;
    return 1;
}

weft__train_batch weft__teach_rows_batch(const weft__teach_rows *r)
{
    return (weft__train_batch){
        .n_rows = r->n, .token = r->token, .segment = r->segment, .target = r->target, .weight = r->weight};
}

void weft__teach_rows_clear(weft__teach_rows *r)
{
    r->n = r->n_texts = 0;
}

void weft__teach_rows_free(weft__teach_rows *r)
{
    weft__free(r->token);
    weft__free(r->segment);
    weft__free(r->target);
    weft__free(r->weight);
    *r = (weft__teach_rows){0};
}
