// SPDX-License-Identifier: Apache-2.0
/* teach_hold.c: what was asked before is asked of others (teach_inner.h). Most of what the model makes up nobody would
 * ask, but it names of whom it can be asked: each question is asked of all of these. Some of this the gate of a style
 * alone has. */
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "learn/teach_inner.h"
#include "learn/teach_questions.h"
#include "learn/teach_words.h"

/* A kept text as words. */
typedef struct spoken {
    weft__teach_list question, answer;
} spoken;

/* Where two questions differ: words [from, from + n) of the one, and m of the other. */
typedef struct asked_place {
    int32_t from, n, m;
} asked_place;

typedef struct holding {
    weft__teach_inner *s;
    size_t first; /* of what was made up */
    weft__teach_words words;
    spoken *all;         /* [n_read] of what is kept */
    size_t n_read, from; /* from: of what the gate may have */
    int32_t frame;       /* words that all questions begin and end with */
    uint8_t *can;        /* [kept - first] be asked by the gate */
    float *least;        /* log p of the least likely token of each */
    uint8_t *differs;    /* of an answer */
    size_t differs_room;
} holding;

/* Tokens that the style puts in beside what it takes out, at most. */
static int32_t growth_of(const weft__teach_task *k)
{
    int32_t most = 0;
    for (int32_t i = 0; i < k->n_events; i++) {
        const weft__teach_text *c = &k->events[i].correction;
        const int32_t more = c->n - c->n_prompt - 1 - k->events[i].n_wrong;
        if (more > most) most = more;
    }
    return most;
}

/* ---- what was asked before, of another ---- */

/* Have two answers half of their words in common, in order? -1: no memory. */
static int says_alike(holding *h, const weft__teach_list *a, const weft__teach_list *b)
{
    int32_t common = 0;
    if (!weft__grow(&h->differs, &h->differs_room, (size_t)a->n + 1, 1) ||
        !weft__teach_mark(a->id, a->n, b->id, b->n, h->differs))
        return -1;
    for (int32_t i = 0; i < a->n; i++) common += !h->differs[i];
    return 4 * common >= a->n + b->n;
}

/* Is x the question of y about another, whom its answer names, and answered alike? The one place where they differ is
 * less than what else they have in common. -1: no memory. */
static int asks_the_same(holding *h, const spoken *x, const spoken *y, asked_place *where)
{
    const weft__teach_list *a = &x->question, *b = &y->question;
    const int32_t least = a->n < b->n ? a->n : b->n;
    int32_t from = 0, behind = 0;
    while (from < least && a->id[from] == b->id[from]) from++;
    while (from + behind < least && a->id[a->n - 1 - behind] == b->id[b->n - 1 - behind]) behind++;
    const int32_t n = a->n - from - behind, m = b->n - from - behind;
    *where = (asked_place){from, n, m};
    if (n < 1 || m < 1 || from + behind - h->frame <= (n > m ? n : m)) return 0;
    return weft__teach_holds(x->answer.id, x->answer.n, a->id + from, n) ? says_alike(h, &x->answer, &y->answer) : 0;
}

static weft_status read_all(holding *h, weft_error *err)
{
    const weft__teach_texts *k = &h->s->kept;
    weft_status st = WEFT_OK;
    for (size_t i = 0; !st && i < k->n; i++) {
        const weft__teach_text *x = &k->text[i];
        st = weft__teach_words_read(&h->words, x->ids, x->n_prompt, &h->all[i].question, err);
        if (!st && x->n > x->n_prompt)
            st =
                weft__teach_words_read(&h->words, x->ids + x->n_prompt, x->n - x->n_prompt - 1, &h->all[i].answer, err);
    }
    return st;
}

static void find_frame(holding *h)
{
    const weft__teach_list *a = &h->all[0].question;
    int32_t before = h->first ? a->n : 0, behind = before;
    for (size_t i = 1; i < h->first; i++) {
        const weft__teach_list *q = &h->all[i].question;
        int32_t n = 0;
        while (n < before && n < q->n && q->id[n] == a->id[n]) n++;
        before = n;
        for (n = 0; n < behind && n < q->n && q->id[q->n - 1 - n] == a->id[a->n - 1 - n];) n++;
        behind = n;
    }
    h->frame = before + behind;
}

static weft_status open_holding(holding *h, weft__teach_inner *s, size_t first, weft_error *err)
{
    const size_t n = s->kept.n - first;
    *h = (holding){.s = s,
                   .first = first,
                   .n_read = s->kept.n,
                   .words.tok = s->task->tok,
                   .all = weft__alloc_zero(s->kept.n + 1, sizeof *h->all),
                   .can = weft__alloc_zero(n + 1, 1),
                   .least = weft__alloc_zero(n + 1, sizeof *h->least)};
    weft_status st = h->all && h->can && h->least ? read_all(h, err) : weft__teach_no_memory(err);
    if (!st) find_frame(h);
    return st;
}

static void close_holding(holding *h)
{
    for (size_t i = 0; h->all && i < h->n_read; i++) {
        weft__teach_list_free(&h->all[i].question);
        weft__teach_list_free(&h->all[i].answer);
    }
    weft__free(h->all);
    weft__free(h->can);
    weft__free(h->least);
    weft__free(h->differs);
    weft__teach_words_free(&h->words);
}

/* ---- each question of all ---- */

/* Of whom a question is asked: its tokens [from, to), and words [word, word + n). */
typedef struct asked_slot {
    const weft__teach_text *x;
    int32_t from, to;
    const weft__teach_list *words;
    int32_t word, n;
} asked_slot;

typedef struct all_asking {
    weft__teach_texts whom; /* each once */
    asked_slot *slot;       /* [n] of the questions that were asked before */
    size_t n, room;
} all_asking;

/* Are these tokens those words? -1: no memory. */
static int are_words(holding *h, const asked_slot *t, const int32_t *words, int32_t n)
{
    weft__teach_list l = {0};
    const weft_status st = weft__teach_words_read(&h->words, t->x->ids + t->from, t->to - t->from, &l, NULL);
    const int are = l.n == n && !memcmp(l.id, words, (size_t)n * sizeof *words);
    weft__teach_list_free(&l);
    return st ? -1 : are;
}

/* Kept text i asks as the k-th does, of another: whom that one asks of, and where the k-th does. 0: no memory. */
static int put_asking(holding *h, all_asking *a, size_t i, size_t k, const asked_place *p)
{
    const weft__teach_text *x = &h->s->kept.text[i], *y = &h->s->kept.text[k];
    const int32_t least = x->n_prompt < y->n_prompt ? x->n_prompt : y->n_prompt;
    int32_t from = 0, behind = 0;
    while (from < least && x->ids[from] == y->ids[from]) from++;
    while (from + behind < least && x->ids[x->n_prompt - 1 - behind] == y->ids[y->n_prompt - 1 - behind]) behind++;
    const asked_slot of_x = {x, from, x->n_prompt - behind, &h->all[i].question, p->from, p->n},
                     of_y = {y, from, y->n_prompt - behind, &h->all[k].question, p->from, p->m};
    const int is_x = are_words(h, &of_x, h->all[i].question.id + p->from, p->n);
    const int is_y = are_words(h, &of_y, h->all[k].question.id + p->from, p->m);
    if (is_x < 0 || is_y < 0) return 0;
    if (!is_x || !is_y) return 1; /* a token reaches beyond it */
    if (!weft__teach_has_prompt(a->whom.text, a->whom.n, x->ids + from, of_x.to - from) &&
        !weft__teach_texts_add(&a->whom, x->ids + from, of_x.to - from, NULL, 0, -1))
        return 0;
    for (size_t t = 0; t < a->n; t++)
        if (a->slot[t].x == y && a->slot[t].from == from && a->slot[t].to == of_y.to) return 1;
    if (!weft__grow(&a->slot, &a->room, a->n + 1, sizeof *a->slot)) return 0;
    a->slot[a->n++] = of_y;
    return 1;
}

/* 0: no memory. */
static int find_asking(holding *h, all_asking *a)
{
    int is = 0;
    for (size_t i = 0; is >= 0 && i < h->n_read; i++)
        for (size_t k = 0; is >= 0 && k < h->first; k++) {
            asked_place p;
            is = i == k ? 0 : asks_the_same(h, &h->all[i], &h->all[k], &p);
            if (is > 0 && !put_asking(h, a, i, k, &p)) return 0;
        }
    return is >= 0;
}

/* Is a word said of whom something is asked less often than it stands beside that? inside[], outside[]: slots. */
static int is_of_question(const int32_t *inside, const int32_t *outside, const int32_t *id, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (outside[id[i]] > inside[id[i]]) return 1;
    return 0;
}

/* Whoever has such a word in it is nobody. 0: no memory. */
static int drop_nobody(holding *h, weft__teach_texts *whom, const int32_t *inside, const int32_t *outside)
{
    size_t n = 0;
    int ok = 1;
    for (size_t i = 0; i < whom->n; i++) {
        weft__teach_list words = {0};
        const weft__teach_text x = whom->text[i];
        ok = ok && !weft__teach_words_read(&h->words, x.ids, x.n, &words, NULL);
        if (!ok || !is_of_question(inside, outside, words.id, words.n)) whom->text[n++] = x;
        else weft__free((void *)(uintptr_t)x.ids);
        weft__teach_list_free(&words);
    }
    whom->n = n;
    return ok;
}

/* Two questions that differ in one place may differ in more than whom they ask of ("who is [Odo's] friend", "who is
 * [Mira] friend"): words that mostly stand beside a slot are in none. 0: no memory. */
static int drop_ill_formed(holding *h, all_asking *a)
{
    const size_t n_words = (size_t)h->words.n + 1;
    int32_t *inside = weft__alloc_zero(n_words, sizeof *inside), *outside = weft__alloc_zero(n_words, sizeof *outside);
    int ok = inside && outside;
    size_t n = 0;
    for (size_t t = 0; ok && t < a->n; t++) {
        const asked_slot *s = &a->slot[t];
        for (int32_t i = 0; i < s->words->n; i++)
            (i >= s->word && i < s->word + s->n ? inside : outside)[s->words->id[i]]++;
    }
    for (size_t t = 0; ok && t < a->n; t++)
        if (!is_of_question(inside, outside, a->slot[t].words->id + a->slot[t].word, a->slot[t].n))
            a->slot[n++] = a->slot[t];
    if (ok) a->n = n;
    ok = ok && drop_nobody(h, &a->whom, inside, outside);
    weft__free(inside);
    weft__free(outside);
    return ok;
}

/* The question of a slot, of somebody, where it is new. 0: no memory. */
static int put_asked(const asked_slot *t, const weft__teach_text *whom, const weft__teach_texts *kept,
                     const weft__teach_asked *asked, size_t n_asked, weft__teach_texts *out)
{
    const weft__teach_text *x = t->x;
    weft__teach_texts one = {0};
    int ok = weft__teach_texts_add(&one, x->ids, t->from, whom->ids, whom->n, -1) &&
             weft__teach_texts_add(&one, one.text[0].ids, one.text[0].n, x->ids + t->to, x->n_prompt - t->to, -1);
    int is_there = ok && (weft__teach_has_prompt(out->text, out->n, one.text[1].ids, one.text[1].n) ||
                          weft__teach_has_prompt(kept->text, kept->n, one.text[1].ids, one.text[1].n));
    for (size_t i = 0; ok && i < n_asked; i++)
        is_there |= weft__teach_has_prompt(asked[i].text, asked[i].n, one.text[1].ids, one.text[1].n);
    if (ok && !is_there) ok = weft__teach_texts_add(out, one.text[1].ids, one.text[1].n, NULL, 0, -1);
    weft__teach_texts_free(&one);
    return ok;
}

weft_status weft__teach_ask_others(weft__teach_inner *s, size_t first, const weft__teach_asked *asked, size_t n_asked,
                                   weft__teach_texts *out, weft_error *err)
{
    holding h;
    all_asking a = {0};
    weft__rng rng;
    size_t *order = NULL;
    weft_status st = open_holding(&h, s, first, err);
    if (!st && (!find_asking(&h, &a) || !drop_ill_formed(&h, &a))) st = weft__teach_no_memory(err);
    const size_t n = a.n * a.whom.n;
    if (!st && !(order = weft__alloc_array(n + 1, sizeof *order))) st = weft__teach_no_memory(err);
    weft__rng_seed(&rng, s->o->seed);
    for (size_t i = 0; !st && i < n; i++) {
        const size_t k = (size_t)weft__rng_below(&rng, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (size_t i = 0; !st && i < n && out->n < (size_t)s->o->style.others; i++)
        if (!put_asked(&a.slot[order[i] / a.whom.n], &a.whom.text[order[i] % a.whom.n], &s->kept, asked, n_asked, out))
            st = weft__teach_no_memory(err);
    weft__free(order);
    weft__free(a.slot);
    weft__teach_texts_free(&a.whom);
    close_holding(&h);
    return st;
}

/* ---- some of it is the gate's ---- */

/* Which can be asked, and how many. */
static weft_status choose_askable(holding *h, size_t *n_can, weft_error *err)
{
    weft__teach_inner *s = h->s;
    const size_t n = s->kept.n - h->from;
    const int32_t room = WEFT__TEACH_ANSWER - growth_of(s->task);
    weft_status st = weft__teach_check(s->t, s->kept.text + h->from, n, h->can, h->least, err);
    *n_can = 0;
    for (size_t i = 0; !st && i < n; i++) {
        const weft__teach_text *x = &s->kept.text[h->from + i];
        int can = 0;
        for (size_t k = 0; h->least[i] >= s->o->style.sure_at && x->n - x->n_prompt <= room && !can && k < h->first;
             k++)
            can = asks_the_same(h, &h->all[h->from + i], &h->all[k], &(asked_place){0});
        if (can < 0) st = weft__teach_no_memory(err);
        h->can[i] = can > 0;
        *n_can += h->can[i];
    }
    return st;
}

/* n_held of n_can become the gate's, evenly; the others stay kept. */
static weft_status move(holding *h, size_t n_can, size_t n_held, weft_error *err)
{
    weft__teach_texts *kept = &h->s->kept, *held = &h->s->held;
    size_t nth = 0, n = h->from;
    if (!weft__grow(&held->text, &held->room, n_held + 1, sizeof *held->text)) return weft__teach_no_memory(err);
    for (size_t i = h->from; i < kept->n; i++) {
        const weft__teach_text x = kept->text[i];
        const size_t before = n_can ? nth * n_held / n_can : 0;
        nth += h->can[i - h->from];
        if (n_can && nth * n_held / n_can > before) held->text[held->n++] = x;
        else kept->text[n++] = x;
    }
    kept->n = n;
    return WEFT_OK;
}

/* The gate asks these, too. */
static weft_status ask_held(weft__teach_inner *s, weft_error *err)
{
    weft__gate_material *m = &s->judge;
    const size_t n = (size_t)m->n_neighbours;
    s->asked = weft__alloc_array(n + s->held.n + 1, sizeof *s->asked);
    if (!s->asked) return weft__teach_no_memory(err);
    for (size_t i = 0; i < n; i++) s->asked[i] = m->neighbours[i];
    for (size_t i = 0; i < s->held.n; i++) s->asked[n + i] = s->held.text[i];
    m->neighbours = s->asked;
    m->n_neighbours = (int32_t)(n + s->held.n);
    return WEFT_OK;
}

weft_status weft__teach_hold_out(weft__teach_inner *s, size_t first, size_t from, weft_error *err)
{
    holding h;
    size_t n_can = 0;
    weft_status st = open_holding(&h, s, first, err);
    h.from = from;
    if (!st) st = choose_askable(&h, &n_can, err);
    const size_t most = (size_t)s->o->style.held;
    if (!st) st = move(&h, n_can, n_can < most ? n_can : most, err);
    close_holding(&h);
    return st ? st : ask_held(s, err);
}
