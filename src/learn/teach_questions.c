// SPDX-License-Identifier: Apache-2.0
/* teach_questions.c: see teach_questions.h. */
#include "learn/teach_questions.h"

#include <string.h>

#include "base/alloc.h"
#include "base/random.h"

/* What all prompts have in common: tokens before, and behind; `longest`: of the others. */
typedef struct frame {
    const int32_t *before, *behind;
    int32_t n_before, n_behind, longest;
} frame;

static frame frame_of(const weft__teach_asked *asked)
{
    const weft__teach_text *a = &asked->text[0];
    frame f = {.before = a->ids, .n_before = a->n_prompt, .n_behind = a->n_prompt};
    int32_t least = a->n_prompt;
    for (size_t i = 0; i < asked->n; i++) {
        const weft__teach_text *x = &asked->text[i];
        int32_t n = 0;
        if (x->n_prompt < least) least = x->n_prompt;
        if (x->n_prompt > f.longest) f.longest = x->n_prompt;
        while (n < f.n_before && n < x->n_prompt && x->ids[n] == a->ids[n]) n++;
        f.n_before = n;
        for (n = 0; n < f.n_behind && n < x->n_prompt; n++)
            if (x->ids[x->n_prompt - 1 - n] != a->ids[a->n_prompt - 1 - n]) break;
        f.n_behind = n;
    }
    if (f.n_before + f.n_behind > least) f.n_behind = least - f.n_before;
    f.behind = a->ids + a->n_prompt - f.n_behind;
    f.longest -= f.n_before + f.n_behind;
    return f;
}

int weft__teach_has_prompt(const weft__teach_text *texts, size_t n, const int32_t *ids, int32_t n_ids)
{
    for (size_t i = 0; i < n; i++)
        if (texts[i].n_prompt == n_ids && !memcmp(texts[i].ids, ids, (size_t)n_ids * sizeof *ids)) return 1;
    return 0;
}

/* What was drawn behind the beginning, with the end in place of the token that ended it, where it is new. 0: no memory.
 */
static int put_question(const frame *f, const weft__teach_text *drawn, const weft__teach_asked *asked, size_t n_asked,
                        weft__teach_texts *out)
{
    const int32_t n = drawn->n - 1;
    int is_there = n <= f->n_before || n > f->n_before + f->longest || drawn->ids[n] != f->behind[0];
    if (is_there || !weft__teach_texts_add(out, drawn->ids, n, f->behind, f->n_behind, -1)) return is_there;
    weft__teach_text *mine = &out->text[--out->n];
    mine->n_prompt = mine->n;
    is_there = weft__teach_has_prompt(out->text, out->n, mine->ids, mine->n);
    for (size_t i = 0; i < n_asked; i++)
        is_there |= weft__teach_has_prompt(asked[i].text, asked[i].n, mine->ids, mine->n);
    if (is_there) weft__free((void *)(uintptr_t)mine->ids);
    else out->n++;
    return 1;
}

/* Where each drawing begins: as some question that was asked does, up to anywhere in it; and its key. */
static void begin_drawings(const frame *f, const weft__teach_asked *asked, uint64_t seed, weft__teach_text *text,
                           uint64_t *key, size_t n)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++) {
        const weft__teach_text *x = &asked->text[weft__rng_below(&rng, asked->n)];
        const int32_t own = x->n_prompt - f->n_before - f->n_behind;
        const int32_t cut = f->n_before + (int32_t)weft__rng_below(&rng, (uint64_t)own + 1);
        text[i] = (weft__teach_text){x->ids, cut, cut};
        key[i] = weft__rng_u64(&rng) | 1;
    }
}

weft_status weft__teach_questions(weft__trainer *t, const weft__tok *tok, const weft__teach_asked *asked,
                                  size_t n_asked, const weft__teach_questioning *how, weft__teach_texts *out,
                                  weft_error *err)
{
    const size_t n = how->draws > 0 && how->most > 0 ? (size_t)how->draws : 0;
    if (!n || !n_asked || asked->n < 2) return WEFT_OK;
    const frame f = frame_of(asked);
    if (f.n_before < 1 || f.n_behind < 1 || f.longest < 1) return WEFT_OK;
    weft__teach_text *text = weft__alloc_array(n, sizeof *text);
    uint64_t *key = weft__alloc_array(n, sizeof *key);
    weft__teach_texts drawn = {0};
    weft_status st = text && key ? WEFT_OK : weft__teach_no_memory(err);
    if (!st) begin_drawings(&f, asked, how->seed, text, key, n);
    const weft__teach_drawing d = {text, key, n, how->temperature, f.behind[0]};
    const size_t had = out->n;
    if (!st) st = weft__teach_draw(t, tok, &d, f.longest + 1, &drawn, err);
    for (size_t i = 0; !st && i < drawn.n && out->n < had + (size_t)how->most; i++)
        if (!put_question(&f, &drawn.text[i], asked, n_asked, out)) st = weft__teach_no_memory(err);
    weft__teach_texts_free(&drawn);
    weft__free(text);
    weft__free(key);
    return st;
}
