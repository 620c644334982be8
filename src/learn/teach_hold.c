// SPDX-License-Identifier: Apache-2.0
/* teach_hold.c: which of the questions that the model made up the gate of a style alone has (teach_inner.h). Most of
 * what is made up nobody would ask: the gate asks what was asked before, of somebody else. */
#include <string.h>

#include "base/alloc.h"
#include "learn/teach_inner.h"
#include "learn/teach_words.h"

enum { SHARE_HELD = 6 /* one of so many at most */ };

/* A kept text as words. */
typedef struct spoken {
    weft__teach_list question, answer;
} spoken;

typedef struct holding {
    weft__teach_inner *s;
    size_t first; /* of what was made up */
    weft__teach_words words;
    spoken *all;      /* [kept] */
    int32_t frame;    /* words that all questions begin and end with */
    uint8_t *can;     /* [kept - first] be asked by the gate */
    float *least;     /* log p of the least likely token of each */
    uint8_t *differs; /* of an answer */
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
static int asks_the_same(holding *h, const spoken *x, const spoken *y)
{
    const weft__teach_list *a = &x->question, *b = &y->question;
    const int32_t least = a->n < b->n ? a->n : b->n;
    int32_t from = 0, behind = 0;
    while (from < least && a->id[from] == b->id[from]) from++;
    while (from + behind < least && a->id[a->n - 1 - behind] == b->id[b->n - 1 - behind]) behind++;
    const int32_t n = a->n - from - behind, m = b->n - from - behind;
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

/* Which can be asked, and how many. */
static weft_status choose_askable(holding *h, size_t *n_can, weft_error *err)
{
    weft__teach_inner *s = h->s;
    const size_t n = s->kept.n - h->first;
    const int32_t room = WEFT__TEACH_ANSWER - growth_of(s->task);
    weft_status st = weft__teach_check(s->t, s->kept.text + h->first, n, h->can, h->least, err);
    *n_can = 0;
    for (size_t i = 0; !st && i < n; i++) {
        const weft__teach_text *x = &s->kept.text[h->first + i];
        int can = 0;
        for (size_t k = 0; h->least[i] >= s->o->style.sure_at && x->n - x->n_prompt <= room && !can && k < h->first;
             k++)
            can = asks_the_same(h, &h->all[h->first + i], &h->all[k]);
        if (can < 0) st = weft__teach_no_memory(err);
        h->can[i] = can > 0;
        *n_can += h->can[i];
    }
    return st;
}

/* Moves n_held of n_can to the gate's, evenly. */
static weft_status move(holding *h, size_t n_can, size_t n_held, weft_error *err)
{
    weft__teach_texts *kept = &h->s->kept, *held = &h->s->held;
    size_t nth = 0, left = h->first;
    if (!weft__grow(&held->text, &held->room, n_held + 1, sizeof *held->text)) return weft__teach_no_memory(err);
    for (size_t i = h->first; i < kept->n; i++) {
        const weft__teach_text x = kept->text[i];
        const size_t before = n_can ? nth * n_held / n_can : 0;
        nth += h->can[i - h->first];
        if (n_can && nth * n_held / n_can > before) held->text[held->n++] = x;
        else kept->text[left++] = x;
    }
    kept->n = left;
    return WEFT_OK;
}

/* ---- all of it ---- */

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

weft_status weft__teach_hold_out(weft__teach_inner *s, size_t first, weft_error *err)
{
    const size_t n_kept = s->kept.n, n = n_kept - first;
    size_t n_can = 0, n_held = n / SHARE_HELD;
    holding h = {.s = s,
                 .first = first,
                 .words.tok = s->task->tok,
                 .all = weft__alloc_zero(n_kept + 1, sizeof *h.all),
                 .can = weft__alloc_zero(n + 1, 1),
                 .least = weft__alloc_zero(n + 1, sizeof *h.least)};
    weft_status st = h.all && h.can && h.least ? read_all(&h, err) : weft__teach_no_memory(err);
    if (!st) find_frame(&h);
    if (!st) st = choose_askable(&h, &n_can, err);
    if (n_held > (size_t)s->o->style.held) n_held = (size_t)s->o->style.held;
    if (!st) st = move(&h, n_can, n_held < n_can ? n_held : n_can, err);
    for (size_t i = 0; h.all && i < n_kept; i++) {
        weft__teach_list_free(&h.all[i].question);
        weft__teach_list_free(&h.all[i].answer);
    }
    weft__free(h.all);
    weft__free(h.can);
    weft__free(h.least);
    weft__free(h.differs);
    weft__teach_words_free(&h.words);
    return st ? st : ask_held(s, err);
}
