// SPDX-License-Identifier: Apache-2.0
/* teach_style.c: see teach_style.h. */
#include "learn/teach_style.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum { LEAST = 4 /* corrections of a style */ };

static weft_status style_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for a style");
}

/* ---- sets ---- */

int weft__teach_set_has(const weft__teach_set *s, int32_t id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->id[i] == id) return 1;
    return 0;
}

static int put_token(weft__teach_set *s, int32_t id)
{
    if (weft__teach_set_has(s, id)) return 1;
    if (!weft__grow(&s->id, &s->room, s->n + 1, sizeof *s->id)) return 0;
    s->id[s->n++] = id;
    return 1;
}

/* Those of a[n] that b[m] has not in their longest common subsequence. 0: no memory. */
static int put_differing(weft__teach_set *to, const int32_t *a, int32_t n, const int32_t *b, int32_t m)
{
    uint8_t *differs = weft__alloc_zero((size_t)n + 1, 1);
    int ok = differs && weft__teach_mark(a, n, b, m, differs);
    for (int32_t i = 0; ok && i < n; i++)
        if (differs[i]) ok = put_token(to, a[i]);
    weft__free(differs);
    return ok;
}

/* ---- what a correction changes ---- */

typedef struct change {
    weft__teach_set in[WEFT__TEACH_PLACES], out, starts;
    const weft__teach_event *e;
    const int32_t *right;
    int32_t n; /* without the token that ends it */
    int is_spaced, belongs;
} change;

static int32_t n_common(const int32_t *a, int32_t n, const int32_t *b, int32_t m)
{
    uint8_t *differs = weft__alloc_zero((size_t)n + 1, 1);
    int32_t common = 0;
    const int ok = differs && weft__teach_mark(a, n, b, m, differs);
    for (int32_t i = 0; ok && i < n; i++) common += !differs[i];
    weft__free(differs);
    return ok ? common : -1;
}

/* gap[k]: is something of wrong[m] taken out where k tokens of it stay before? [common + 1], to be freed. */
static uint8_t *gaps_of(const change *c, const int32_t *wrong, int32_t m, int32_t common)
{
    uint8_t *differs = weft__alloc_zero((size_t)m + 1, 1), *gap = weft__alloc_zero((size_t)common + 1, 1);
    const int ok = differs && gap && weft__teach_mark(wrong, m, c->right, c->n, differs);
    for (int32_t i = 0, stays = 0; ok && i < m; i++) {
        if (differs[i]) gap[stays] = 1;
        else stays++;
    }
    weft__free(differs);
    if (!ok) weft__free(gap);
    return ok ? gap : NULL;
}

static int put_places(change *c, const int32_t *wrong, int32_t m)
{
    const int32_t common = n_common(c->right, c->n, wrong, m);
    uint8_t *differs = weft__alloc_zero((size_t)c->n + 1, 1), *gap = common < 0 ? NULL : gaps_of(c, wrong, m, common);
    int ok = differs && gap && weft__teach_mark(c->right, c->n, wrong, m, differs);
    for (int32_t i = 0, stays = 0; ok && i < c->n; i++) {
        const enum weft__teach_place place = !stays            ? WEFT__TEACH_BEFORE
                                             : stays == common ? WEFT__TEACH_BEHIND
                                             : gap[stays]      ? WEFT__TEACH_INSTEAD
                                                               : WEFT__TEACH_WITHIN;
        stays += !differs[i];
        if (!differs[i]) continue;
        ok = put_token(&c->in[place], c->right[i]);
        if (ok && place == WEFT__TEACH_INSTEAD && !differs[i - 1]) ok = put_token(&c->starts, c->right[i]);
    }
    weft__free(differs);
    weft__free(gap);
    return ok && put_differing(&c->out, wrong, m, c->right, c->n);
}

/* Text that stood first has no space before it, and another token than behind other words. */
static weft_status with_space(const weft__tok *tok, const int32_t *ids, int32_t n, weft__tok_ids *out, weft_error *err)
{
    weft__strbuf text = {0};
    weft__strbuf_put(&text, " ", 1);
    weft_status st = weft__tok_decode(tok, ids, (size_t)n, 0, &text, err);
    if (!st) st = weft__tok_encode(tok, text.data, text.len, 0, out, err);
    weft__strbuf_free(&text);
    return st;
}

static weft_status change_of(const weft__tok *tok, change *c, weft_error *err)
{
    const weft__teach_event *e = c->e;
    weft__tok_ids spaced = {0};
    weft_status st = WEFT_OK;
    c->right = e->correction.ids + e->correction.n_prompt;
    c->n = e->correction.n - e->correction.n_prompt - 1;
    if (!e->wrong) return WEFT_OK;
    if (!tok) return put_places(c, e->wrong, e->n_wrong) ? WEFT_OK : style_no_memory(err);
    if ((st = with_space(tok, e->wrong, e->n_wrong, &spaced, err))) return st;
    const int32_t as_is = n_common(c->right, c->n, e->wrong, e->n_wrong);
    const int32_t behind = n_common(c->right, c->n, spaced.data, (int32_t)spaced.n);
    c->is_spaced = behind > as_is;
    const int ok = as_is >= 0 && behind >= 0 &&
                   (c->is_spaced ? put_places(c, spaced.data, (int32_t)spaced.n) : put_places(c, e->wrong, e->n_wrong));
    weft__tok_ids_free(&spaced);
    return ok ? WEFT_OK : style_no_memory(err);
}

/* ---- a style ---- */

/* The same question, or the same answer, tells nothing of others. */
static int is_other(const weft__teach_event *a, const weft__teach_event *b)
{
    const weft__teach_text *p = &a->correction, *q = &b->correction;
    const int same_prompt = p->n_prompt == q->n_prompt && !memcmp(p->ids, q->ids, (size_t)p->n_prompt * sizeof *p->ids);
    const int same_wrong =
        a->n_wrong == b->n_wrong && (!a->n_wrong || !memcmp(a->wrong, b->wrong, (size_t)a->n_wrong * sizeof *a->wrong));
    return !same_prompt && !same_wrong;
}

static const weft__teach_set *set_of(const change *c, int which)
{
    return which < WEFT__TEACH_PLACES ? &c->in[which] : &c->out;
}

/* Does another correction change that token there? */
static int others_have(const change *all, int32_t n, int32_t at, int which, int32_t id)
{
    for (int32_t i = 0; i < n; i++)
        if (i != at && weft__teach_set_has(set_of(&all[i], which), id) && is_other(all[at].e, all[i].e)) return 1;
    return 0;
}

/* Do others change two thirds of the same tokens: of what is put in, and of what is taken out? */
static int is_foretold(const change *all, int32_t n, int32_t at)
{
    size_t of[2] = {0}, found[2] = {0};
    for (int which = 0; which <= WEFT__TEACH_PLACES; which++) {
        const weft__teach_set *s = set_of(&all[at], which);
        const int is_out = which == WEFT__TEACH_PLACES;
        for (size_t k = 0; k < s->n; k++) {
            of[is_out]++;
            found[is_out] += (size_t)others_have(all, n, at, which, s->id[k]);
        }
    }
    return of[0] + of[1] && 3 * found[0] >= 2 * of[0] && 3 * found[1] >= 2 * of[1];
}

static int32_t n_have(const change *all, int32_t n, int which, int32_t id)
{
    int32_t times = 0;
    for (int32_t i = 0; i < n; i++) times += all[i].belongs && weft__teach_set_has(set_of(&all[i], which), id);
    return times;
}

static int collect(const change *all, int32_t n, weft__teach_style *out)
{
    int ok = 1;
    int32_t n_spaced = 0;
    for (int32_t i = 0; ok && i < n; i++) {
        if (!all[i].belongs) continue;
        n_spaced += all[i].is_spaced;
        for (int which = 0; which <= WEFT__TEACH_PLACES; which++) {
            const weft__teach_set *s = set_of(&all[i], which);
            const int is_out = which == WEFT__TEACH_PLACES;
            for (size_t k = 0; ok && k < s->n; k++) {
                const int32_t times = n_have(all, n, which, s->id[k]);
                if (times > 1) ok = put_token(is_out ? &out->out : &out->in[which], s->id[k]);
                if (ok && !is_out && 4 * times >= 3 * out->n) ok = put_token(&out->marks, s->id[k]);
            }
        }
    }
    for (int32_t i = 0; ok && i < n; i++)
        for (size_t k = 0; ok && all[i].belongs && k < all[i].starts.n; k++)
            ok = put_token(&out->starts, all[i].starts.id[k]);
    out->is_spaced = 2 * n_spaced > out->n;
    return ok;
}

weft_status weft__teach_style_find(const weft__tok *tok, const weft__teach_event *events, int32_t n,
                                   weft__teach_style *out, weft_error *err)
{
    change *all = weft__alloc_zero((size_t)n + 1, sizeof *all);
    weft_status st = all ? WEFT_OK : style_no_memory(err);
    *out = (weft__teach_style){0};
    for (int32_t i = 0; !st && i < n; i++) {
        all[i].e = &events[i];
        st = change_of(tok, &all[i], err);
    }
    for (int32_t i = 0; !st && i < n; i++) out->n += all[i].belongs = is_foretold(all, n, i);
    if (out->n < LEAST) out->n = 0;
    if (!st && out->n && !collect(all, n, out)) st = style_no_memory(err);
    for (int32_t i = 0; all && i < n; i++)
        for (int which = 0; which <= WEFT__TEACH_PLACES; which++) weft__free(set_of(&all[i], which)->id);
    for (int32_t i = 0; all && i < n; i++) weft__free(all[i].starts.id);
    weft__free(all);
    return st;
}

weft_status weft__teach_style_space(const weft__teach_style *s, const weft__tok *tok, const weft__teach_text *plain,
                                    weft__teach_texts *out, weft_error *err)
{
    const int32_t *ids = plain->ids + plain->n_prompt, n = plain->n - plain->n_prompt;
    weft__tok_ids spaced = {0};
    if (!s->is_spaced || n < 1)
        return weft__teach_texts_add(out, plain->ids, plain->n_prompt, ids, n, -1) ? WEFT_OK : style_no_memory(err);
    weft_status st = with_space(tok, ids, n - 1, &spaced, err);
    if (!st && !weft__teach_texts_add(out, plain->ids, plain->n_prompt, spaced.data, (int32_t)spaced.n, ids[n - 1]))
        st = style_no_memory(err);
    weft__tok_ids_free(&spaced);
    return st;
}

void weft__teach_style_free(weft__teach_style *s)
{
    for (int i = 0; i < WEFT__TEACH_PLACES; i++) weft__free(s->in[i].id);
    weft__free(s->out.id);
    weft__free(s->dropped.id);
    weft__free(s->starts.id);
    weft__free(s->marks.id);
    *s = (weft__teach_style){0};
}

static int is_put_in(const weft__teach_style *s, int32_t id)
{
    for (int i = 0; i < WEFT__TEACH_PLACES; i++)
        if (weft__teach_set_has(&s->in[i], id)) return 1;
    return 0;
}

int weft__teach_style_of(const weft__teach_style *s, const weft__teach_text *as_is, const weft__teach_text *said)
{
    const int32_t *plain = as_is->ids + as_is->n_prompt, *answer = said->ids + said->n_prompt;
    const int32_t m = as_is->n - as_is->n_prompt - 1, n = said->n - said->n_prompt - 1;
    weft__teach_set more = {0}, less = {0};
    if (m < 0 || n < 0 || plain[m] != answer[n]) return WEFT__TEACH_SAID_OTHER;
    int how = put_differing(&more, answer, n, plain, m) && put_differing(&less, plain, m, answer, n)
                  ? WEFT__TEACH_SAID_STYLED
                  : -1;
    for (size_t i = 0; how > 0 && i < s->marks.n; i++)
        if (!weft__teach_holds(answer, n, &s->marks.id[i], 1)) how = WEFT__TEACH_SAID_PLAIN;
    for (size_t i = 0; how > 0 && i < more.n; i++)
        if (!is_put_in(s, more.id[i])) how = WEFT__TEACH_SAID_OTHER;
    for (size_t i = 0; how > 0 && i < less.n; i++)
        if (!weft__teach_set_has(&s->out, less.id[i])) how = WEFT__TEACH_SAID_OTHER;
    weft__free(more.id);
    weft__free(less.id);
    return how;
}
