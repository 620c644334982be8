// SPDX-License-Identifier: Apache-2.0
/* teach_rewrite.c: see teach_rewrite.h. */
#include "learn/teach_rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { LEAST = 2 /* corrections that make a rule */ };

/* ---- seeing ---- */

/* Behind so many tokens that stay, of `common`: wrong[0 .. n_out) is taken out there, and right[0 .. n_in) put in. */
static int see_gap(weft__teach_rewrite *r, int32_t stays, int32_t common, const int32_t *wrong, int32_t n_out,
                   const int32_t *right, int32_t n_in)
{
    weft__teach_texts *const to = !stays ? &r->begin : stays == common ? &r->end : &r->within;
    if (to == &r->within && !n_out) return 1;
    return weft__teach_texts_add(to == &r->within && n_out > 1 ? &r->runs : to, wrong, n_out, right, n_in, -1);
}

int weft__teach_rewrite_see(weft__teach_rewrite *r, const int32_t *wrong, int32_t m, const int32_t *right, int32_t n)
{
    uint8_t *is_out = weft__alloc_zero((size_t)m + 1, 1), *is_in = weft__alloc_zero((size_t)n + 1, 1);
    int ok = is_out && is_in && weft__teach_mark(right, n, wrong, m, is_in);
    int32_t common = 0;
    if (ok) weft__teach_mark_other(right, n, is_in, wrong, m, is_out);
    for (int32_t i = 0; ok && i < m; i++) common += !is_out[i];
    for (int32_t stays = 0, i = 0, k = 0; ok && common && stays <= common; stays++, i++, k++) {
        const int32_t from = i, begin = k;
        while (i < m && is_out[i]) i++;
        while (k < n && is_in[k]) k++;
        ok = see_gap(r, stays, common, wrong + from, i - from, right + begin, k - begin);
    }
    weft__free(is_out);
    weft__free(is_in);
    return ok;
}

/* ---- settling ---- */

typedef struct rule_seen {
    weft__teach_text text;
    int32_t times;
} rule_seen;

static int by_text(const void *a, const void *b)
{
    const weft__teach_text *x = &((const rule_seen *)a)->text, *y = &((const rule_seen *)b)->text;
    if (x->n_prompt != y->n_prompt) return x->n_prompt < y->n_prompt ? -1 : 1;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->n ? memcmp(x->ids, y->ids, (size_t)x->n * sizeof *x->ids) : 0;
}

static int by_times(const void *a, const void *b)
{
    const rule_seen *x = a, *y = b;
    return x->times != y->times ? (x->times > y->times ? -1 : 1) : by_text(a, b);
}

/* Each once, with how often it was seen; what fewer than LEAST do goes. */
static weft_status keep_rules(weft__teach_texts *r, weft_error *err)
{
    const size_t n_seen = r->n;
    rule_seen *all = weft__alloc_array(n_seen + 1, sizeof *all);
    size_t n = 0;
    if (!all) return weft__teach_no_memory(err);
    for (size_t i = 0; i < n_seen; i++) all[i] = (rule_seen){r->text[i], 1};
    if (n_seen > 1) qsort(all, n_seen, sizeof *all, by_text);
    for (size_t i = 0; i < n_seen; i++) {
        if (n && !by_text(&all[n - 1], &all[i])) {
            all[n - 1].times++;
            weft__free((void *)(uintptr_t)all[i].text.ids);
        } else all[n++] = all[i];
    }
    if (n > 1) qsort(all, n, sizeof *all, by_times);
    for (; n && all[n - 1].times < LEAST; n--) weft__free((void *)(uintptr_t)all[n - 1].text.ids);
    for (size_t i = 0; i < n; i++) {
        r->text[i] = all[i].text;
    }
    r->n = n;
    weft__free(all);
    return WEFT_OK;
}

/* The rule that takes out most of what ids[0 .. n) begins with, or ends with; of several the commonest. NULL: none. */
static const weft__teach_text *rule_for(const weft__teach_texts *r, const int32_t *ids, int32_t n, int at_end)
{
    const weft__teach_text *best = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const weft__teach_text *x = &r->text[i];
        const int32_t m = x->n_prompt;
        if (m > n || (best && m <= best->n_prompt)) continue;
        if (!m || !memcmp(at_end ? ids + n - m : ids, x->ids, (size_t)m * sizeof *ids)) best = x;
    }
    return best;
}

/* Takes what a rule of one token says off one side of a run, and of what is put in instead. 0: there is none. */
static int peel(const weft__teach_texts *r, weft__teach_span *out, weft__teach_span *in, const weft__teach_text *run,
                int at_end)
{
    const weft__teach_text *rule = rule_for(r, run->ids + out->from, out->to - out->from, at_end);
    const int32_t n = rule ? rule->n - rule->n_prompt : 0;
    if (!rule || out->to - out->from < 2 || n > in->to - in->from) return 0;
    const int32_t *put = run->ids + (at_end ? in->to - n : in->from);
    if (n && memcmp(put, rule->ids + rule->n_prompt, (size_t)n * sizeof *put)) return 0;
    if (at_end) out->to--, in->to -= n;
    else out->from++, in->from += n;
    return 1;
}

/* What runs tell beside what single tokens do, of which they may be another correction that does so. */
static weft_status split_runs(weft__teach_rewrite *r, weft_error *err)
{
    weft__teach_texts known = {0};
    weft_status st = WEFT_OK;
    for (size_t i = 0; !st && i < r->within.n; i++) {
        const weft__teach_text *x = &r->within.text[i];
        if (!weft__teach_texts_add(&known, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1))
            st = weft__teach_no_memory(err);
    }
    if (!st) st = keep_rules(&known, err);
    for (size_t i = 0; !st && i < r->runs.n; i++) {
        const weft__teach_text *x = &r->runs.text[i];
        weft__teach_span out = {0, x->n_prompt}, in = {x->n_prompt, x->n};
        while (peel(&known, &out, &in, x, 0) || peel(&known, &out, &in, x, 1)) continue;
        if (out.to - out.from == 1 &&
            !weft__teach_texts_add(&r->within, x->ids + out.from, 1, x->ids + in.from, in.to - in.from, -1))
            st = weft__teach_no_memory(err);
    }
    weft__teach_texts_free(&known);
    weft__teach_texts_free(&r->runs);
    return st;
}

weft_status weft__teach_rewrite_settle(weft__teach_rewrite *r, weft_error *err)
{
    weft_status st = keep_rules(&r->begin, err);
    if (!st) st = split_runs(r, err);
    if (!st) st = keep_rules(&r->within, err);
    return st ? st : keep_rules(&r->end, err);
}

int weft__teach_rewrite_takes(const weft__teach_rewrite *r, int32_t id)
{
    const weft__teach_texts *const all[] = {&r->begin, &r->within, &r->end};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        for (size_t i = 0; i < all[k]->n; i++)
            if (weft__teach_holds(all[k]->text[i].ids, all[k]->text[i].n_prompt, &id, 1)) return 1;
    return 0;
}

void weft__teach_rewrite_free(weft__teach_rewrite *r)
{
    weft__teach_texts_free(&r->begin);
    weft__teach_texts_free(&r->within);
    weft__teach_texts_free(&r->end);
    weft__teach_texts_free(&r->runs);
}

/* ---- rewriting ---- */

typedef struct rewritten {
    int32_t *ids;
    size_t n, room;
} rewritten;

static int put_ids(rewritten *to, const int32_t *ids, int32_t n)
{
    if (n < 1) return 1;
    if (!weft__grow(&to->ids, &to->room, to->n + (size_t)n, sizeof *to->ids)) return 0;
    memcpy(to->ids + to->n, ids, (size_t)n * sizeof *ids);
    to->n += (size_t)n;
    return 1;
}

static int put_in(rewritten *to, const weft__teach_text *rule)
{
    return !rule || put_ids(to, rule->ids + rule->n_prompt, rule->n - rule->n_prompt);
}

weft_status weft__teach_rewrite_apply(const weft__teach_rewrite *r, int (*replaces)(const void *arg, int32_t id),
                                      const void *arg, const weft__teach_text *plain, weft__teach_texts *out,
                                      weft_error *err)
{
    const int32_t *ids = plain->ids + plain->n_prompt;
    int32_t from = 0, to = plain->n - plain->n_prompt - 1;
    rewritten said = {0};
    if (to < 0)
        return weft__teach_texts_add(out, plain->ids, plain->n_prompt, NULL, 0, -1) ? WEFT_OK
                                                                                    : weft__teach_no_memory(err);
    const int32_t ends_with = ids[to];
    const weft__teach_text *begin = rule_for(&r->begin, ids, to, 0);
    if (begin) from = begin->n_prompt;
    const weft__teach_text *end = rule_for(&r->end, ids + from, to - from, 1);
    if (end) to -= end->n_prompt;
    int ok = put_in(&said, begin);
    for (int32_t i = from; ok && i < to; i++) {
        const weft__teach_text *rule = replaces(arg, ids[i]) ? rule_for(&r->within, ids + i, 1, 0) : NULL;
        ok = rule ? put_in(&said, rule) : put_ids(&said, ids + i, 1);
    }
    if (ok) ok = put_in(&said, end);
    if (ok) ok = weft__teach_texts_add(out, plain->ids, plain->n_prompt, said.ids, (int32_t)said.n, ends_with);
    weft__free(said.ids);
    return ok ? WEFT_OK : weft__teach_no_memory(err);
}
