// SPDX-License-Identifier: Apache-2.0
/* teach_style.c: see teach_style.h. */
#include "learn/teach_style.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

enum { LEAST = 4 /* corrections of a style */ };

/* ---- sets ---- */

/* Where id is, or belongs. */
static size_t place_in(const weft__teach_set *s, int32_t id)
{
    size_t from = 0, to = s->n;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        if (s->id[mid] < id) from = mid + 1;
        else to = mid;
    }
    return from;
}

int weft__teach_set_has(const weft__teach_set *s, int32_t id)
{
    const size_t at = place_in(s, id);
    return at < s->n && s->id[at] == id;
}

static int put_token(weft__teach_set *s, int32_t id)
{
    const size_t at = place_in(s, id);
    if (at < s->n && s->id[at] == id) return 1;
    if (!weft__grow(&s->id, &s->room, s->n + 1, sizeof *s->id)) return 0;
    memmove(s->id + at + 1, s->id + at, (s->n++ - at) * sizeof *s->id);
    s->id[at] = id;
    return 1;
}

/* Which of a[n] b[m] has not in their longest common subsequence: [n], to be freed. NULL: no memory. */
static uint8_t *differing(const int32_t *a, int32_t n, const int32_t *b, int32_t m)
{
    uint8_t *differs = weft__alloc_zero((size_t)n + 1, 1);
    if (differs && weft__teach_mark(a, n, b, m, differs)) return differs;
    weft__free(differs);
    return NULL;
}

/* These tokens. 0: no memory. */
static int put_differing(weft__teach_set *to, const int32_t *a, int32_t n, const int32_t *b, int32_t m)
{
    uint8_t *differs = differing(a, n, b, m);
    int ok = differs != NULL;
    for (int32_t i = 0; ok && i < n; i++)
        if (differs[i]) ok = put_token(to, a[i]);
    weft__free(differs);
    return ok;
}

/* ---- what corrections change ---- */

/* What one does to a token: it puts it in somewhere (weft__teach_place), or another of these. */
enum { OUT = WEFT__TEACH_PLACES, DROPPED, STARTS, HAD /* the wrong answer has it */ };

typedef struct use {
    int32_t how, id, by; /* by: which correction */
} use;

typedef struct change {
    const weft__teach_event *e;
    const int32_t *right;
    int32_t n;               /* without the token that ends it */
    int32_t question, wrong; /* the same number: the same text */
    int32_t of[2], found[2]; /* tokens put in, and taken out; those of them that others do, too */
    int is_spaced, belongs;
} change;

typedef struct search {
    change *all; /* [n] */
    int32_t n;
    use *uses; /* [n_uses] */
    size_t n_uses, room;
} search;

/* Comparators have no argument. */
static _Thread_local int64_t n_looked;

static int put_use(search *s, int how, int32_t id, int32_t by)
{
    if (!weft__grow(&s->uses, &s->room, s->n_uses + 1, sizeof *s->uses)) return 0;
    s->uses[s->n_uses++] = (use){how, id, by};
    return 1;
}

/* What each token of the right answer is put in as, where `is_new`; gap[k], where k tokens stay before: 0, or 1, as
 * something is taken out there, and then 2, as something is put in instead. */
static int put_new(search *s, int32_t by, const uint8_t *is_new, uint8_t *gap, int32_t common)
{
    const change *c = &s->all[by];
    int ok = 1;
    for (int32_t i = 0, stays = 0; ok && i < c->n; i++) {
        const enum weft__teach_place place = !stays            ? WEFT__TEACH_BEFORE
                                             : stays == common ? WEFT__TEACH_BEHIND
                                             : gap[stays]      ? WEFT__TEACH_INSTEAD
                                                               : WEFT__TEACH_WITHIN;
        stays += !is_new[i];
        if (!is_new[i]) continue;
        ok = put_use(s, place, c->right[i], by);
        if (place != WEFT__TEACH_INSTEAD) continue;
        gap[stays] = 2;
        if (ok && !is_new[i - 1]) ok = put_use(s, STARTS, c->right[i], by);
    }
    return ok;
}

static int32_t n_common(const uint8_t *differs, int32_t n)
{
    int32_t common = 0;
    for (int32_t i = 0; i < n; i++) common += !differs[i];
    return common;
}

/* What correction `by` makes of a wrong answer [m]. Where nothing of it stays, nothing tells what is dropped. */
static int put_uses(search *s, int32_t by, const int32_t *wrong, int32_t m, const uint8_t *is_new)
{
    const change *c = &s->all[by];
    const int32_t common = n_common(is_new, c->n);
    uint8_t *is_out = weft__alloc_zero((size_t)m + 1, 1), *gap = weft__alloc_zero((size_t)common + 1, 1);
    int ok = is_out && gap;
    if (ok) weft__teach_mark_other(c->right, c->n, is_new, wrong, m, is_out);
    for (int32_t i = 0, stays = 0; ok && i < m; i++) {
        if (is_out[i]) gap[stays] = 1;
        else stays++;
    }
    if (ok) ok = put_new(s, by, is_new, gap, common);
    for (int32_t i = 0, stays = 0; ok && i < m; i++) {
        stays += !is_out[i];
        ok = put_use(s, HAD, wrong[i], by);
        if (!ok || !is_out[i]) continue;
        ok = put_use(s, OUT, wrong[i], by);
        if (ok && common && gap[stays] == 1) ok = put_use(s, DROPPED, wrong[i], by);
    }
    weft__free(is_out);
    weft__free(gap);
    return ok;
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

static weft_status change_of(const weft__tok *tok, search *s, int32_t by, weft_error *err)
{
    change *c = &s->all[by];
    const weft__teach_event *e = c->e;
    weft__tok_ids spaced = {0};
    weft_status st = WEFT_OK;
    c->right = e->correction.ids + e->correction.n_prompt;
    c->n = e->correction.n - e->correction.n_prompt - 1;
    if (!e->wrong) return WEFT_OK;
    uint8_t *is_new = differing(c->right, c->n, e->wrong, e->n_wrong), *behind = NULL;
    if (!is_new) st = weft__teach_no_memory(err);
    if (!st && tok) st = with_space(tok, e->wrong, e->n_wrong, &spaced, err);
    if (!st && tok && !(behind = differing(c->right, c->n, spaced.data, (int32_t)spaced.n)))
        st = weft__teach_no_memory(err);
    c->is_spaced = !st && behind && n_common(behind, c->n) > n_common(is_new, c->n);
    if (!st && !(c->is_spaced ? put_uses(s, by, spaced.data, (int32_t)spaced.n, behind)
                              : put_uses(s, by, e->wrong, e->n_wrong, is_new)))
        st = weft__teach_no_memory(err);
    weft__tok_ids_free(&spaced);
    weft__free(is_new);
    weft__free(behind);
    return st;
}

/* ---- which change alike ---- */

static int by_use(const void *a, const void *b)
{
    const use *x = a, *y = b;
    n_looked++;
    if (x->how != y->how) return x->how < y->how ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return (x->by > y->by) - (x->by < y->by);
}

/* In order, each once. */
static void sort_uses(search *s)
{
    size_t n = 0;
    if (s->n_uses) qsort(s->uses, s->n_uses, sizeof *s->uses, by_use);
    for (size_t i = 0; i < s->n_uses; i++)
        if (!n || by_use(&s->uses[n - 1], &s->uses[i])) s->uses[n++] = s->uses[i];
    s->n_uses = n;
}

typedef struct numbered {
    const int32_t *ids;
    int32_t n, of;
} numbered;

static int by_text(const void *a, const void *b)
{
    const numbered *x = a, *y = b;
    n_looked++;
    if (x->n != y->n) return x->n < y->n ? -1 : 1;
    return x->n ? memcmp(x->ids, y->ids, (size_t)x->n * sizeof *x->ids) : 0;
}

/* Gives all questions and wrong answers their numbers. 0: no memory. */
static int number_texts(search *s)
{
    numbered *k = weft__alloc_array((size_t)s->n + 1, sizeof *k);
    for (int is_wrong = 0; k && is_wrong < 2; is_wrong++) {
        int32_t number = 0;
        for (int32_t i = 0; i < s->n; i++) {
            const weft__teach_event *e = s->all[i].e;
            k[i] = is_wrong ? (numbered){e->wrong, e->wrong ? e->n_wrong : 0, i}
                            : (numbered){e->correction.ids, e->correction.n_prompt, i};
        }
        if (s->n > 1) qsort(k, (size_t)s->n, sizeof *k, by_text);
        for (int32_t i = 0; i < s->n; i++) {
            number += i && by_text(&k[i - 1], &k[i]);
            *(is_wrong ? &s->all[k[i].of].wrong : &s->all[k[i].of].question) = number;
        }
    }
    weft__free(k);
    return k != NULL;
}

/* The same question, or the same answer, tells nothing of others. */
static int is_other(const change *a, const change *b)
{
    n_looked++;
    return a->question != b->question && a->wrong != b->wrong;
}

enum { WITNESSES = 5 };

/* Of the corrections that do the same to a token, those that speak for all: to whom none of them is another, none is.
 * The first is no other to whom has its question or its wrong answer; of those with another question two with two
 * wrong answers are enough, and of those with another wrong answer two with two questions. */
static void choose_witnesses(const search *s, const use *u, size_t n, const change *w[WITNESSES])
{
    memset(w, 0, WITNESSES * sizeof *w);
    w[0] = &s->all[u->by];
    for (size_t i = 1; i < n; i++) {
        const change *c = &s->all[u[i].by];
        n_looked++;
        if (c->question != w[0]->question) {
            if (!w[1]) w[1] = c;
            else if (!w[2] && c->wrong != w[1]->wrong) w[2] = c;
        }
        if (c->wrong != w[0]->wrong) {
            if (!w[3]) w[3] = c;
            else if (!w[4] && c->question != w[3]->question) w[4] = c;
        }
    }
}

/* How many uses from the first on are of the same token in the same way. */
static size_t n_alike(const search *s, size_t first)
{
    size_t i = first + 1;
    while (i < s->n_uses && s->uses[i].how == s->uses[first].how && s->uses[i].id == s->uses[first].id) i++;
    return i - first;
}

/* Counts of each correction what it changes, and what of that others do. */
static void count_found(search *s)
{
    for (size_t at = 0, n; at < s->n_uses && s->uses[at].how <= OUT; at += n) {
        const int is_out = s->uses[at].how == OUT;
        const change *w[WITNESSES];
        n = n_alike(s, at);
        choose_witnesses(s, &s->uses[at], n, w);
        for (size_t i = at; i < at + n; i++) {
            change *c = &s->all[s->uses[i].by];
            int found = 0;
            for (int k = 0; k < WITNESSES && !found; k++) found = w[k] && is_other(c, w[k]);
            c->of[is_out]++;
            c->found[is_out] += found;
        }
    }
}

/* Do others change two thirds of the same tokens: of what is put in, and of what is taken out? */
static int is_foretold(const change *c)
{
    return c->of[0] + c->of[1] && 3 * c->found[0] >= 2 * c->of[0] && 3 * c->found[1] >= 2 * c->of[1];
}

/* ---- a style ---- */

/* How many corrections of the style take a token out. */
static int32_t times_out(const search *s, int32_t id)
{
    size_t from = 0, to = s->n_uses;
    int32_t times = 0;
    while (from < to) {
        const size_t mid = from + (to - from) / 2;
        n_looked++;
        if (s->uses[mid].how < OUT || (s->uses[mid].how == OUT && s->uses[mid].id < id)) from = mid + 1;
        else to = mid;
    }
    for (; from < s->n_uses && s->uses[from].how == OUT && s->uses[from].id == id; from++)
        times += s->all[s->uses[from].by].belongs;
    return times;
}

/* A token, which so many corrections of the style use so. What is put in instead of something is no mark: an answer
 * without that cannot have it. */
static int put_in_style(const search *s, weft__teach_style *out, int how, int32_t id, int32_t times)
{
    weft__teach_set *const set[] = {&out->out, &out->dropped, &out->starts};
    const int least = how == STARTS ? 1 : 2;
    if (how == HAD) {
        const int32_t n = times_out(s, id);
        return n < 2 || 4 * n < 3 * times || put_token(&out->gone, id);
    }
    if (times >= least && !put_token(how < OUT ? &out->in[how] : set[how - OUT], id)) return 0;
    return how >= OUT || how == WEFT__TEACH_INSTEAD || 4 * times < 3 * out->n || put_token(&out->marks, id);
}

static int collect(const search *s, weft__teach_style *out)
{
    int ok = 1;
    int32_t n_spaced = 0;
    for (int32_t i = 0; i < s->n; i++) n_spaced += s->all[i].belongs && s->all[i].is_spaced;
    for (size_t at = 0, n; ok && at < s->n_uses; at += n) {
        int32_t times = 0;
        n = n_alike(s, at);
        for (size_t i = at; i < at + n; i++) times += s->all[s->uses[i].by].belongs;
        ok = put_in_style(s, out, s->uses[at].how, s->uses[at].id, times);
    }
    out->is_spaced = 2 * n_spaced > out->n;
    return ok;
}

/* How those that belong to it rewrite their answers. */
static weft_status see_rewrites(const weft__tok *tok, const search *s, weft__teach_rewrite *out, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && i < s->n; i++) {
        const change *c = &s->all[i];
        const weft__teach_event *e = c->e;
        weft__tok_ids spaced = {0};
        if (!c->belongs) continue;
        if (c->is_spaced) st = with_space(tok, e->wrong, e->n_wrong, &spaced, err);
        if (!st && !(c->is_spaced ? weft__teach_rewrite_see(out, spaced.data, (int32_t)spaced.n, c->right, c->n)
                                  : weft__teach_rewrite_see(out, e->wrong, e->n_wrong, c->right, c->n)))
            st = weft__teach_no_memory(err);
        weft__tok_ids_free(&spaced);
    }
    return st ? st : weft__teach_rewrite_settle(out, err);
}

/* Nobody has to leave out what no two corrections say the same for. */
static void drop_without_rule(weft__teach_style *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->gone.n; i++)
        if (weft__teach_rewrite_takes(&s->rewrite, s->gone.id[i])) s->gone.id[n++] = s->gone.id[i];
    s->gone.n = n;
}

weft_status weft__teach_style_find(const weft__tok *tok, const weft__teach_event *events, int32_t n,
                                   int (*stop)(void *arg), void *stop_arg, weft__teach_style *out, weft_error *err)
{
    search s = {.all = weft__alloc_zero((size_t)n + 1, sizeof *s.all), .n = n};
    weft_status st = s.all ? WEFT_OK : weft__teach_no_memory(err);
    *out = (weft__teach_style){0};
    n_looked = 0;
    for (int32_t i = 0; !st && i < n; i++) {
        s.all[i].e = &events[i];
        st = stop && stop(stop_arg) ? weft_fail(err, WEFT_CANCELLED, "cancelled") : change_of(tok, &s, i, err);
    }
    if (!st && !number_texts(&s)) st = weft__teach_no_memory(err);
    if (!st) {
        sort_uses(&s);
        count_found(&s);
        for (int32_t i = 0; i < n; i++) out->n += s.all[i].belongs = is_foretold(&s.all[i]);
    }
    if (out->n < LEAST) out->n = 0;
    if (!st && out->n && !collect(&s, out)) st = weft__teach_no_memory(err);
    if (!st && out->n) st = see_rewrites(tok, &s, &out->rewrite, err);
    if (!st) drop_without_rule(out);
    out->n_looked = n_looked;
    weft__free(s.all);
    weft__free(s.uses);
    return st;
}

weft_status weft__teach_style_space(const weft__teach_style *s, const weft__tok *tok, const weft__teach_text *plain,
                                    weft__teach_texts *out, weft_error *err)
{
    const int32_t *ids = plain->ids + plain->n_prompt, n = plain->n - plain->n_prompt;
    weft__tok_ids spaced = {0};
    if (!s->is_spaced || n < 1)
        return weft__teach_texts_add(out, plain->ids, plain->n_prompt, ids, n, -1) ? WEFT_OK
                                                                                   : weft__teach_no_memory(err);
    weft_status st = with_space(tok, ids, n - 1, &spaced, err);
    if (!st && !weft__teach_texts_add(out, plain->ids, plain->n_prompt, spaced.data, (int32_t)spaced.n, ids[n - 1]))
        st = weft__teach_no_memory(err);
    weft__tok_ids_free(&spaced);
    return st;
}

static int is_gone(const void *style, int32_t id)
{
    return weft__teach_set_has(&((const weft__teach_style *)style)->gone, id);
}

weft_status weft__teach_style_rewrite(const weft__teach_style *s, const weft__teach_text *plain, weft__teach_texts *out,
                                      weft_error *err)
{
    return weft__teach_rewrite_apply(&s->rewrite, is_gone, s, plain, out, err);
}

void weft__teach_style_free(weft__teach_style *s)
{
    for (int i = 0; i < WEFT__TEACH_PLACES; i++) weft__free(s->in[i].id);
    weft__free(s->out.id);
    weft__free(s->dropped.id);
    weft__free(s->starts.id);
    weft__free(s->marks.id);
    weft__free(s->gone.id);
    weft__teach_rewrite_free(&s->rewrite);
    *s = (weft__teach_style){0};
}

static int is_put_in(const weft__teach_style *s, int32_t id)
{
    for (int i = 0; i < WEFT__TEACH_PLACES; i++)
        if (weft__teach_set_has(&s->in[i], id)) return 1;
    return 0;
}

/* `less`: what the plain answer has and this one does not. */
static int has_marks(const weft__teach_style *s, const int32_t *plain, int32_t m, const int32_t *answer, int32_t n,
                     const weft__teach_set *less)
{
    for (size_t i = 0; i < s->marks.n; i++)
        if (!weft__teach_holds(answer, n, &s->marks.id[i], 1)) return 0;
    for (size_t i = 0; i < s->gone.n; i++)
        if (weft__teach_holds(plain, m, &s->gone.id[i], 1) && !weft__teach_set_has(less, s->gone.id[i])) return 0;
    return 1;
}

int weft__teach_style_has(const weft__teach_style *s, const weft__teach_text *as_is, const weft__teach_text *said)
{
    const int32_t *plain = as_is->ids + as_is->n_prompt, *answer = said->ids + said->n_prompt;
    const int32_t m = as_is->n - as_is->n_prompt, n = said->n - said->n_prompt;
    weft__teach_set less = {0};
    const int has = put_differing(&less, plain, m, answer, n) ? has_marks(s, plain, m, answer, n, &less) : -1;
    weft__free(less.id);
    return has;
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
    if (how > 0 && !has_marks(s, plain, m, answer, n, &less)) how = WEFT__TEACH_SAID_PLAIN;
    for (size_t i = 0; how > 0 && i < more.n; i++)
        if (!is_put_in(s, more.id[i])) how = WEFT__TEACH_SAID_OTHER;
    for (size_t i = 0; how > 0 && i < less.n; i++)
        if (!weft__teach_set_has(&s->out, less.id[i])) how = WEFT__TEACH_SAID_OTHER;
    weft__free(more.id);
    weft__free(less.id);
    return how;
}
