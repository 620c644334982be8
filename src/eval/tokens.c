// SPDX-License-Identifier: Apache-2.0
/* tokens.c: questions as tokens (tokens.h). Context and continuation are encoded together and cut where the context
 * alone ends, white space at the context's end belonging to the continuation, as lm-evaluation-harness does: encoded
 * apart they would be other tokens than a model was trained on. */
#include "eval/tokens.h"

#include <string.h>

#include "base/alloc.h"
#include "engine/handles.h"

typedef struct ids {
    int32_t *items; /* weft__free() */
    size_t n;
} ids;

static weft_status encode(const weft__eval_tokens *t, const char *s, size_t n, uint32_t flags, ids *out,
                          weft_error *err)
{
    *out = (ids){0};
    out->items = weft__alloc_array(n + 8, sizeof *out->items);
    if (!out->items) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt's tokens");
    weft_status st = weft_tokenize(t->tokenizer, s, n, flags, out->items, n + 8, &out->n, err);
    if (st) weft__free(out->items), out->items = NULL;
    return st;
}

/* What the file puts in front of a text; -1: nothing. */
static weft_status leading(const weft__eval_tokens *t, int32_t *bos, weft_error *err)
{
    ids with, without;
    weft_status st = encode(t, "a", 1, WEFT_TOKENIZE_BOS, &with, err);
    *bos = -1;
    if (st) return st;
    st = encode(t, "a", 1, 0, &without, err);
    if (!st && with.n > without.n && without.n && with.items[0] != without.items[0]) *bos = with.items[0];
    weft__free(with.items);
    if (!st) weft__free(without.items);
    return st;
}

weft_status weft__eval_tokens_begin(weft__eval_tokens *t, const weft_model *model, int32_t n_ctx, int no_bos,
                                    weft_error *err)
{
    *t = (weft__eval_tokens){.tokenizer = weft_model_tokenizer(model), .n_ctx = n_ctx, .prefix = -1};
    if (!t->tokenizer) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    weft_status st = leading(t, &t->bos, err);
    t->prefix = weft__tok_id_of_role(t->tokenizer->t, WEFT__TOK_ROLE_BOS);
    if (t->prefix < 0) t->prefix = weft__tok_id_of_role(t->tokenizer->t, WEFT__TOK_ROLE_EOS);
    if (no_bos) t->bos = -1;
    return st;
}

void weft__eval_passes_free(weft__eval_passes *p)
{
    for (size_t i = 0; i < p->n; i++) weft__free(p->items[i].ids);
    weft__free(p->items);
    *p = (weft__eval_passes){0};
}

/* Takes `from`, also on failure: of from->items, those before `scored` are the context. Too much is cut off the front,
 * but for BOS. */
static weft_status add(const weft__eval_tokens *t, weft__eval_passes *out, ids *from, size_t scored, size_t most,
                       size_t ask, weft_error *err)
{
    weft_status st = WEFT_OK;
    const size_t cut = from->n > most ? from->n - most : 0, keeps = t->bos >= 0 && from->n && from->items[0] == t->bos;
    if (!weft__grow(&out->items, &out->capacity, out->n + 1, sizeof *out->items))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for questions");
    else if (cut && scored < from->n && cut + keeps >= scored)
        st = weft_fail(err, WEFT_LIMIT, "%zu tokens are to be scored, and the context holds %d; raise --ctx",
                       from->n - scored, t->n_ctx);
    if (st) {
        weft__free(from->items);
        return st;
    }
    memmove(from->items + keeps, from->items + keeps + cut, (from->n - cut - keeps) * sizeof *from->items);
    out->items[out->n++] = (weft__eval_pass){
        from->items, (int32_t)(from->n - cut), (int32_t)(scored - cut), (int32_t)(from->n - cut), (int32_t)cut, ask};
    return WEFT_OK;
}

/* BOS in front, where there is to be one and it does not stand there already. */
static weft_status put_bos(const weft__eval_tokens *t, ids *v, weft_error *err)
{
    if (t->bos < 0 || (v->n && v->items[0] == t->bos)) return WEFT_OK;
    int32_t *grown = weft__realloc_array(v->items, v->n + 9, sizeof *grown);
    if (!grown) return weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt's tokens");
    memmove(grown + 1, grown, v->n * sizeof *grown);
    grown[0] = t->bos;
    v->items = grown;
    v->n++;
    return WEFT_OK;
}

/* Special tokens are read in a conversation, whose template has written them, and nowhere else. */
static uint32_t flags_of(const weft__eval_ask *a)
{
    return a->prompt ? WEFT_TOKENIZE_SPECIAL : 0;
}

static weft_status scored_alone(const weft__eval_tokens *t, const weft__eval_ask *a, size_t ask, weft__eval_passes *out,
                                weft_error *err)
{
    ids v;
    weft_status st = encode(t, a->continuation.data ? a->continuation.data : "", a->continuation.len, 0, &v, err);
    if (st) return st;
    const int has_prefix = v.n && v.items[0] == t->prefix;
    if (!has_prefix && t->prefix < 0) {
        weft__free(v.items);
        return weft_fail(err, WEFT_ARGUMENT,
                         "the context is empty, and the model has neither BOS nor EOS to stand for it");
    }
    if (!has_prefix) {
        memmove(v.items + 1, v.items, v.n * sizeof *v.items); /* encode left room */
        v.items[0] = t->prefix;
        v.n++;
    }
    return add(t, out, &v, 1, (size_t)t->n_ctx, ask, err);
}

static weft_status scored(const weft__eval_tokens *t, const weft__eval_ask *a, size_t ask, weft__eval_passes *out,
                          weft_error *err)
{
    const char *context = a->context.data ? a->context.data : "";
    const size_t kept = weft__eval_without_blanks(context, a->context.len);
    weft__strbuf whole = {0};
    ids all = {0}, before = {0};
    if (!a->context.len) return scored_alone(t, a, ask, out, err);
    weft__strbuf_put(&whole, context, a->context.len);
    weft__strbuf_put(&whole, a->continuation.data ? a->continuation.data : "", a->continuation.len);
    weft_status st = whole.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt")
                                  : encode(t, whole.data, whole.len, flags_of(a), &all, err);
    if (!st) st = encode(t, context, kept, flags_of(a), &before, err);
    if (!st) st = put_bos(t, &all, err);
    if (!st) st = put_bos(t, &before, err);
    size_t n = before.n < all.n ? before.n : all.n;
    if (!st && !n && all.n) n = 1; /* a context of nothing but blanks: the first token is taken for it */
    weft__free(before.items);
    weft__strbuf_free(&whole);
    if (st) weft__free(all.items);
    return st ? st : add(t, out, &all, n, (size_t)t->n_ctx, ask, err);
}

/* Windows of a text, each predicted from the token before it. */
static weft_status rolling(const weft__eval_tokens *t, const weft__eval_ask *a, size_t ask, weft__eval_passes *out,
                           weft_error *err)
{
    ids v;
    const size_t most = (size_t)t->n_ctx - 1;
    weft_status st = encode(t, a->continuation.data ? a->continuation.data : "", a->continuation.len, 0, &v, err);
    if (!st && t->prefix < 0)
        st = weft_fail(err, WEFT_ARGUMENT, "the model has neither BOS nor EOS to begin a text with");
    for (size_t done = 0; !st && done < v.n;) {
        const size_t n = v.n - done < most ? v.n - done : most;
        /* The first is predicted from BOS; the others from as much as fits before them, which is one token but for the
         * last window. */
        const size_t begin = !done ? 0 : done + n > most ? done + n - most - 1 : 0;
        ids one = {weft__alloc_array(most + 9, sizeof *one.items), 0};
        if (!one.items) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a text's tokens");
        if (!st && !done) one.items[one.n++] = t->prefix;
        for (size_t i = begin; !st && i < done + n; i++) one.items[one.n++] = v.items[i];
        if (!st) st = add(t, out, &one, one.n - n, (size_t)t->n_ctx, ask, err);
        done += n;
    }
    weft__free(v.items);
    return st;
}

/* To be continued. */
static weft_status generated(const weft__eval_tokens *t, const weft__eval_task *task, const weft__eval_ask *a,
                             size_t ask, weft__eval_passes *out, weft_error *err)
{
    const char *context = a->context.data ? a->context.data : "";
    const size_t answer = (size_t)task->generation.max_tokens, half = (size_t)t->n_ctx / 2;
    ids v;
    weft_status st;
    if (a->prompt) {
        v = (ids){weft__alloc_array(a->context.len + 8, sizeof *v.items), 0};
        st = v.items ? weft_chat_prompt_tokenize(a->prompt, 0, v.items, a->context.len + 8, &v.n, err)
                     : weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt's tokens");
    } else {
        st = encode(t, context, a->context.len, 0, &v, err);
        if (!st) st = put_bos(t, &v, err);
    }
    if (!st && !v.n && t->prefix >= 0) v.items[v.n++] = t->prefix;
    if (!st && !v.n) st = weft_fail(err, WEFT_ARGUMENT, "the prompt is empty");
    if (st) weft__free(v.items);
    return st ? st
              : add(t, out, &v, v.n, answer < half ? (size_t)t->n_ctx - answer : (size_t)t->n_ctx - half, ask, err);
}

/* Of whole texts, only what is behind their common beginning. */
static void behind_common(weft__eval_passes *p)
{
    int32_t common = 0;
    for (int same = p->n > 0; same; common += same)
        for (size_t i = 0; i < p->n; i++)
            same &= common < p->items[i].n && p->items[i].ids[common] == p->items[0].ids[common];
    for (size_t i = 0; i < p->n; i++)
        p->items[i].from = common < p->items[i].n ? (common ? common : 1) : p->items[i].n - 1;
}

/* Of two sentences what is behind the word put in, where there is enough of it, but for the last token; else what is
 * behind their common beginning. */
static void behind_blank(weft__eval_passes *p)
{
    enum { ENOUGH = 3 };
    weft__eval_passes whole = *p;
    int32_t words[2] = {0};
    if (p->n != 2) return;
    for (int i = 0; i < 2; i++) words[i] = p->items[i].from;
    behind_common(&whole);
    const int skips = p->items[0].n - p->items[0].from > ENOUGH && p->items[1].n - p->items[1].from > ENOUGH;
    for (int i = 0; i < 2; i++) {
        weft__eval_pass *one = &p->items[i];
        if (skips) one->from = words[i];
        one->to = one->n - (one->n - one->from > 1);
    }
}

static weft_status whole_text(const weft__eval_tokens *t, const weft__eval_task *task, const weft__eval_ask *a,
                              size_t ask, weft__eval_passes *out, weft_error *err);

weft_status weft__eval_tokens_of(const weft__eval_tokens *t, const weft__eval_task *task, const weft__eval_asks *asks,
                                 weft__eval_passes *out, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (size_t i = 0; !st && i < asks->n; i++) {
        const weft__eval_ask *a = &asks->items[i];
        st = task->span != WEFT__EVAL_BEHIND       ? whole_text(t, task, a, i, out, err)
             : task->output == WEFT__EVAL_GENERATE ? generated(t, task, a, i, out, err)
             : task->output == WEFT__EVAL_ROLLING  ? rolling(t, a, i, out, err)
                                                   : scored(t, a, i, out, err);
    }
    if (!st && task->span == WEFT__EVAL_COMMON) behind_common(out);
    if (!st && task->span == WEFT__EVAL_BLANK) behind_blank(out);
    for (size_t i = 0; !st && i < out->n && task->span != WEFT__EVAL_BEHIND; i++)
        if (out->items[i].from >= out->items[i].to || out->items[i].n_cut)
            st = weft_fail(err, WEFT_ARGUMENT,
                           out->items[i].n_cut ? "it is longer than the context; raise --ctx"
                                               : "a choice is too short to be scored");
    return st;
}

/* Context, blank and choice as one text; from: where the context, or with it the word put in, ends alone. */
static weft_status whole_text(const weft__eval_tokens *t, const weft__eval_task *task, const weft__eval_ask *a,
                              size_t ask, weft__eval_passes *out, weft_error *err)
{
    const char *gap = task->span == WEFT__EVAL_COMMON ? " " : "";
    weft__strbuf whole = {0};
    ids all = {0}, before = {0};
    weft__strbuf_put(&whole, a->context.data ? a->context.data : "", a->context.len);
    const size_t n_before = whole.len;
    weft__strbuf_puts(&whole, gap);
    weft__strbuf_put(&whole, a->continuation.data ? a->continuation.data : "", a->continuation.len);
    weft_status st = whole.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for a prompt")
                                  : encode(t, whole.data ? whole.data : "", whole.len, 0, &all, err);
    if (!st) st = encode(t, whole.data ? whole.data : "", n_before, 0, &before, err);
    if (!st) st = put_bos(t, &all, err);
    if (!st) st = put_bos(t, &before, err);
    weft__free(before.items);
    weft__strbuf_free(&whole);
    if (st) weft__free(all.items);
    if (st) return st;
    if (all.n < 2) {
        weft__free(all.items);
        return weft_fail(err, WEFT_ARGUMENT, "it is too short to be scored");
    }
    return add(t, out, &all, before.n && before.n < all.n ? before.n : all.n - 1, (size_t)t->n_ctx, ask, err);
}
