// SPDX-License-Identifier: Apache-2.0
/* teach_plain.c: what corrections change, as words (teach_plain.h), and an answer without it. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "learn/teach_plain.h"

/* A correction: n words, of which is_new were not in the wrong answer; `lead` and `tail` of them stand before and
 * behind all others. */
typedef struct one_change {
    weft__teach_list right, wrong;
    int32_t lead, tail;
    int left_out; /* the wrong answer is not known */
} one_change;

/* A word taken out (-1: none), and one put in there (-1: none), by a correction. */
typedef struct swap {
    int32_t out, in, by;
} swap;

typedef struct finding {
    one_change *all; /* [n] */
    int32_t n;
    swap *swap; /* [n_swaps] */
    size_t n_swaps, room;
    uint8_t *is_new, *is_out; /* of the correction in work */
    size_t is_new_room, is_out_room;
} finding;

/* Marks what a[n] and b[m] do not have in common (weft__teach_mark), by the same words of both. 0: no memory. */
static int align(const int32_t *a, int32_t n, const int32_t *b, int32_t m, uint8_t *of_a, uint8_t *of_b)
{
    if (!weft__teach_mark(a, n, b, m, of_a)) return 0;
    for (int32_t i = 0, k = 0; i < n || k < m; k++) {
        while (i < n && of_a[i]) i++;
        if (k == m) break;
        of_b[k] = i == n || a[i] != b[k];
        i += !of_b[k];
    }
    return 1;
}

/* ---- corrections ---- */

static int mark(finding *f, const int32_t *right, int32_t n, const weft__teach_list *wrong)
{
    return weft__grow(&f->is_new, &f->is_new_room, (size_t)n + 1, 1) &&
           weft__grow(&f->is_out, &f->is_out_room, (size_t)wrong->n + 1, 1) &&
           align(right, n, wrong->id, wrong->n, f->is_new, f->is_out);
}

static weft_status read_one(finding *f, weft__teach_words *words, const weft__teach_event *e, one_change *c,
                            weft_error *err)
{
    const weft__teach_text *x = &e->correction;
    c->left_out = !e->wrong;
    if (c->left_out) return WEFT_OK;
    weft_status st = weft__teach_words_read(words, x->ids + x->n_prompt, x->n - x->n_prompt - 1, &c->right, err);
    if (!st) st = weft__teach_words_read(words, e->wrong, e->n_wrong, &c->wrong, err);
    if (!st && !mark(f, c->right.id, c->right.n, &c->wrong)) st = weft__teach_no_memory(err);
    while (!st && c->lead < c->right.n && f->is_new[c->lead]) c->lead++;
    while (!st && c->lead + c->tail < c->right.n && f->is_new[c->right.n - 1 - c->tail]) c->tail++;
    return st;
}

/* ---- before and behind ---- */

static const int32_t *end_of(const one_change *c, int behind, int32_t n)
{
    return c->right.id + (behind ? c->right.n - n : 0);
}

/* Has one the same n new words there as `like`? */
static int has_frame(const one_change *c, const one_change *like, int behind, int32_t n)
{
    return n > 0 && !c->left_out && (behind ? c->tail : c->lead) >= n &&
           !memcmp(end_of(c, behind, n), end_of(like, behind, n), (size_t)n * sizeof(int32_t));
}

/* The longest that three quarters of them have. 0: no memory. */
static int find_frame(const finding *f, int behind, weft__teach_list *out)
{
    const one_change *best = NULL;
    int32_t longest = 0;
    for (int32_t i = 0; i < f->n; i++) {
        const one_change *c = &f->all[i];
        for (int32_t n = behind ? c->tail : c->lead; !c->left_out && n > longest; n--) {
            int32_t times = 0;
            for (int32_t k = 0; k < f->n; k++) times += has_frame(&f->all[k], c, behind, n);
            if (4 * times < 3 * f->n) continue;
            best = c;
            longest = n;
        }
    }
    if (!longest) return 1;
    if (!weft__grow(&out->id, &out->room, (size_t)longest, sizeof *out->id)) return 0;
    memcpy(out->id, end_of(best, behind, longest), (size_t)longest * sizeof *out->id);
    out->n = longest;
    return 1;
}

/* ---- what is put in for what ---- */

static int put_swap(finding *f, int32_t out, int32_t in, int32_t by)
{
    if (!weft__grow(&f->swap, &f->room, f->n_swaps + 1, sizeof *f->swap)) return 0;
    f->swap[f->n_swaps++] = (swap){out, in, by};
    return 1;
}

/* Between two words that stay, as many put in as taken out are put in for each other, one by one. */
static int put_swaps(finding *f, int32_t by, const int32_t *right, int32_t n)
{
    const one_change *c = &f->all[by];
    int ok = mark(f, right, n, &c->wrong);
    for (int32_t i = 0, k = 0; ok && (i < n || k < c->wrong.n); i++, k++) {
        int32_t to = i, until = k;
        while (to < n && f->is_new[to]) to++;
        while (until < c->wrong.n && f->is_out[until]) until++;
        const int paired = to - i == until - k;
        for (int32_t j = 0; ok && paired && j < to - i; j++) ok = put_swap(f, c->wrong.id[k + j], right[i + j], by);
        for (int32_t j = i; ok && j < to; j++) ok = put_swap(f, -1, right[j], by);
        for (int32_t j = k; ok && j < until; j++) ok = put_swap(f, c->wrong.id[j], -1, by);
        i = to;
        k = until;
    }
    return ok;
}

static int by_swap(const void *a, const void *b)
{
    const swap *x = a, *y = b;
    if (x->out != y->out) return x->out < y->out ? -1 : 1;
    if (x->in != y->in) return x->in < y->in ? -1 : 1;
    return (x->by > y->by) - (x->by < y->by);
}

/* How many corrections do this, from swap[*at] on; *at is then behind them. */
static int32_t times(const finding *f, size_t *at)
{
    const swap s = f->swap[*at];
    int32_t n = 0;
    for (int32_t by = -1; *at < f->n_swaps && f->swap[*at].out == s.out && f->swap[*at].in == s.in; (*at)++) {
        n += f->swap[*at].by != by;
        by = f->swap[*at].by;
    }
    return n;
}

static int find_mates(finding *f, weft__teach_change *c)
{
    int32_t *n_in = weft__alloc_zero((size_t)c->n + 1, sizeof *n_in);
    int32_t *n_out = weft__alloc_zero((size_t)c->n + 1, sizeof *n_out);
    const int ok = n_in && n_out;
    if (f->n_swaps) qsort(f->swap, f->n_swaps, sizeof *f->swap, by_swap);
    for (int pass = 0; ok && pass < 2; pass++) {
        for (size_t at = 0; at < f->n_swaps;) {
            const swap s = f->swap[at];
            const int32_t n = times(f, &at);
            if (!pass && s.out < 0) n_in[s.in] = n;
            else if (!pass && s.in < 0) n_out[s.out] = n;
            else if (pass && s.out >= 0 && s.in >= 0 && n > 1 && 4 * n >= 3 * n_in[s.in] && 4 * n >= 3 * n_out[s.out]) {
                c->mate[s.in] = s.out;
                c->in[s.in] = 0;
            }
        }
        for (int32_t i = 0; !pass && i < c->n; i++) c->in[i] = n_in[i] > 1;
    }
    weft__free(n_in);
    weft__free(n_out);
    return ok;
}

static int find_all(finding *f, weft__teach_change *out)
{
    int ok = find_frame(f, 0, &out->before) && find_frame(f, 1, &out->behind);
    out->n = out->words.n;
    out->mate = weft__alloc_array((size_t)out->n + 1, sizeof *out->mate);
    out->in = weft__alloc_zero((size_t)out->n + 1, 1);
    ok = ok && out->mate && out->in;
    for (int32_t i = 0; ok && i < out->n; i++) out->mate[i] = -1;
    for (int32_t i = 0; ok && i < f->n; i++) {
        const one_change *c = &f->all[i];
        const one_change before = {.right = out->before, .lead = out->before.n},
                         behind = {.right = out->behind, .tail = out->behind.n};
        const int32_t from = has_frame(c, &before, 0, out->before.n) ? out->before.n : 0;
        const int32_t to = c->right.n - (has_frame(c, &behind, 1, out->behind.n) ? out->behind.n : 0);
        if (!c->left_out) ok = put_swaps(f, i, c->right.id + from, to - from);
    }
    return ok && find_mates(f, out);
}

weft_status weft__teach_change_find(const weft__tok *tok, const weft__teach_event *events, int32_t n,
                                    weft__teach_change *out, weft_error *err)
{
    finding f = {.all = weft__alloc_zero((size_t)n + 1, sizeof *f.all), .n = n};
    weft_status st = f.all ? WEFT_OK : weft__teach_no_memory(err);
    *out = (weft__teach_change){.words.tok = tok};
    for (int32_t i = 0; !st && i < n; i++) st = read_one(&f, &out->words, &events[i], &f.all[i], err);
    if (!st && !find_all(&f, out)) st = weft__teach_no_memory(err);
    for (int32_t i = 0; f.all && i < n; i++) {
        weft__teach_list_free(&f.all[i].right);
        weft__teach_list_free(&f.all[i].wrong);
    }
    weft__free(f.all);
    weft__free(f.swap);
    weft__free(f.is_new);
    weft__free(f.is_out);
    return st;
}

void weft__teach_change_free(weft__teach_change *c)
{
    weft__teach_words_free(&c->words);
    weft__teach_list_free(&c->before);
    weft__teach_list_free(&c->behind);
    weft__free(c->mate);
    weft__free(c->in);
    *c = (weft__teach_change){0};
}

/* ---- an answer without it ---- */

static int has_word(const weft__teach_list *l, int32_t word)
{
    return l->n && weft__teach_holds(l->id, l->n, &word, 1);
}

/* A word as another, with a capital letter where that has one. */
static void put_as(weft__strbuf *out, const weft__teach_words *w, int32_t word, char first)
{
    const char *s = w->bytes.data + w->from[word];
    const size_t n = w->from[word + 1] - w->from[word];
    const int is_capital = first >= 'A' && first <= 'Z' && s[0] >= 'a' && s[0] <= 'z';
    if (is_capital) weft__strbuf_putc(out, (char)(s[0] - 'a' + 'A'));
    weft__strbuf_put(out, s + is_capital, n - (size_t)is_capital);
}

/* The words between what is said before and behind. */
static void find_body(const weft__teach_change *c, const weft__teach_list *said, int32_t *from, int32_t *to)
{
    const int32_t n_before = c->before.n, n_behind = c->behind.n;
    *from = 0;
    *to = said->n;
    if (n_before && *to >= n_before && !memcmp(said->id, c->before.id, (size_t)n_before * sizeof *said->id))
        *from = n_before;
    if (n_behind && *to - *from >= n_behind &&
        !memcmp(said->id + *to - n_behind, c->behind.id, (size_t)n_behind * sizeof *said->id))
        *to -= n_behind;
}

static int write_plain(const weft__teach_change *c, const weft__teach_list *plain, const weft__teach_list *said,
                       weft__strbuf *out)
{
    int32_t from, to;
    find_body(c, said, &from, &to);
    for (int32_t i = from; i < to; i++) {
        const int32_t word = said->id[i], begin = said->at[2 * i], end = said->at[2 * i + 1];
        const int is_styled = word < c->n && !has_word(plain, word);
        if (is_styled && c->in[word]) continue;
        const int32_t gap = i > from ? said->at[2 * i - 1] : begin;
        if (out->len) weft__strbuf_put(out, said->text.data + gap, (size_t)(begin - gap));
        if (is_styled && c->mate[word] >= 0) put_as(out, &c->words, c->mate[word], said->text.data[begin]);
        else weft__strbuf_put(out, said->text.data + begin, (size_t)(end - begin));
    }
    return !out->failed;
}

weft_status weft__teach_plain_of(weft__teach_change *c, const weft__teach_text *plain, const weft__teach_text *said,
                                 weft__teach_texts *out, weft_error *err)
{
    const int32_t n = said->n - said->n_prompt, m = plain->n - plain->n_prompt;
    weft__teach_list as_is = {0}, now = {0};
    weft__strbuf text = {0};
    weft__tok_ids ids = {0};
    weft_status st = WEFT_OK;
    if (n > 0) st = weft__teach_words_read(&c->words, said->ids + said->n_prompt, n - 1, &now, err);
    if (!st && m > 0) st = weft__teach_words_read(&c->words, plain->ids + plain->n_prompt, m - 1, &as_is, err);
    if (!st && !write_plain(c, &as_is, &now, &text)) st = weft__teach_no_memory(err);
    if (!st) st = weft__tok_encode(c->words.tok, text.data ? text.data : "", text.len, 0, &ids, err);
    if (!st && !weft__teach_texts_add(out, said->ids, said->n_prompt, ids.data, (int32_t)ids.n,
                                      n > 0 ? said->ids[said->n - 1] : -1))
        st = weft__teach_no_memory(err);
    weft__teach_list_free(&as_is);
    weft__teach_list_free(&now);
    weft__strbuf_free(&text);
    weft__tok_ids_free(&ids);
    return st;
}
