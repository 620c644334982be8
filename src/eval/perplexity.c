// SPDX-License-Identifier: Apache-2.0
/* perplexity.c: the perplexity of texts, and their divergence from a base (weft/eval.h). Logits of PIECE tokens are
 * held at once, and looked at token by token. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/params.h"
#include "eval/base_file.h"
#include "eval/divergence.h"
#include "weft/weft.h"

enum { PIECE = 64, USUAL_CTX = 512, CTX_MOST = 1 << 24 };

/* Everything one call needs; released by reading_free. */
typedef struct perplexity_reading {
    weft_perplexity_params p;
    const weft_perplexity_text *texts; /* [n_texts] */
    int32_t n_texts;
    weft_model *model;
    weft_session *session, *base; /* base: NULL without one that is computed */
    int32_t n_vocab, bos;         /* bos -1: none */
    int32_t *tokens;              /* [n_chunks * n_ctx] of WEFT_PERPLEXITY_CHUNKS */
    int64_t n_chunks;
    size_t room;      /* of tokens */
    int32_t *text_of; /* [n_chunks] */
    size_t text_of_room;
    int32_t *row;                /* [n_ctx] */
    float *logits, *base_logits; /* [PIECE, n_vocab] */
    uint16_t *record;
    weft__eval_base against;
    weft__out_file save;
    int saving;
    weft__eval_totals all;
    double nll_sum, nll_squares; /* of the chunk at hand */
    weft_perplexity_result result;
} perplexity_reading;

void(weft_perplexity_params_default)(weft_perplexity_params *p)
{
    *p = (weft_perplexity_params){.size = sizeof *p, .kv_dtype = WEFT_F16, .tokenize = WEFT_TOKENIZE_BOS};
}

void weft_perplexity_params_init(weft_perplexity_params *params, uint32_t size)
{
    weft_perplexity_params own;
    (weft_perplexity_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_perplexity_params), params, size, &own);
}

static void reading_free(perplexity_reading *r)
{
    if (r->saving) weft__out_file_close(&r->save);
    weft__eval_base_close(&r->against);
    weft__eval_totals_free(&r->all);
    weft__free(r->record);
    weft__free(r->base_logits);
    weft__free(r->logits);
    weft__free(r->row);
    weft__free(r->text_of);
    weft__free(r->tokens);
    weft_session_free(&r->base);
    weft_session_free(&r->session);
}

static int is_compared(const perplexity_reading *r)
{
    return r->base != NULL || r->p.base_file != NULL;
}

/* ---- texts as tokens ---- */

static weft_status encode(const perplexity_reading *r, const char *text, size_t n, uint32_t flags, int32_t **ids,
                          size_t *n_ids, weft_error *err)
{
    const weft_tokenizer *tokenizer = weft_model_tokenizer(r->model);
    size_t room = n + 16; /* a token per byte is the usual bound; prefixes and special tokens add a few */
    *ids = NULL;
    if (!tokenizer) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    for (int attempt = 0;; attempt++) {
        *ids = weft__alloc_array(room, sizeof **ids);
        if (!*ids) return weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu tokens", room);
        weft_status st = weft_tokenize(tokenizer, text, n, flags, *ids, room, n_ids, err);
        if (!st) return WEFT_OK;
        weft__free(*ids);
        *ids = NULL;
        if (st != WEFT_LIMIT || attempt) return st;
        room = *n_ids;
    }
}

static weft_status check_ids(const perplexity_reading *r, const int32_t *ids, size_t n, weft_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= r->n_vocab)
            return weft_fail(err, WEFT_ARGUMENT, "token %d is not in the vocabulary", ids[i]);
    return WEFT_OK;
}

/* Of several texts the one is named. */
static weft_status name_text(const perplexity_reading *r, int32_t i, weft_status st, weft_error *err)
{
    return st && r->n_texts > 1 ? weft_fail_within(err, st, "text %d", i + 1) : st;
}

/* The tokens of text i, which `own` keeps where they are not the caller's. */
static weft_status ids_of(const perplexity_reading *r, int32_t i, const int32_t **ids, size_t *n, int32_t **own,
                          weft_error *err)
{
    const weft_perplexity_text *t = &r->texts[i];
    weft_status st = WEFT_OK;
    *own = NULL;
    *ids = t->tokens;
    *n = (size_t)t->n;
    if (t->tokens) st = check_ids(r, t->tokens, *n, err);
    else {
        st = encode(r, t->text ? t->text : "", *n, r->p.tokenize, own, n, err);
        *ids = *own;
    }
    return st;
}

/* What the model puts before an empty text is its BOS. */
static weft_status find_bos(perplexity_reading *r, weft_error *err)
{
    int32_t *ids = NULL;
    size_t n = 0;
    r->bos = -1;
    if (!weft_model_tokenizer(r->model)) return WEFT_OK;
    weft_status st = encode(r, "", 0, WEFT_TOKENIZE_BOS, &ids, &n, err);
    if (!st && n) r->bos = ids[0];
    weft__free(ids);
    return st;
}

/* Appends the chunks of text i, no more than are asked for. */
static weft_status cut_text(perplexity_reading *r, int32_t i, weft_error *err)
{
    const int32_t *ids;
    int32_t *own;
    size_t n = 0;
    const size_t n_ctx = (size_t)r->result.n_ctx, most = r->p.n_chunks ? (size_t)r->p.n_chunks : SIZE_MAX;
    weft_status st = ids_of(r, i, &ids, &n, &own, err);
    if (!st && n < 2 * n_ctx)
        st = weft_fail(err, WEFT_ARGUMENT,
                       "%zu tokens; at least two chunks of %zu are needed (use a longer text or a smaller context)", n,
                       n_ctx);
    const size_t there = (size_t)r->n_chunks, wanted = most > there ? most - there : 0;
    const size_t more = n / n_ctx < wanted ? n / n_ctx : wanted;
    if (!st && (!weft__grow(&r->tokens, &r->room, (there + more) * n_ctx, sizeof *r->tokens) ||
                !weft__grow(&r->text_of, &r->text_of_room, there + more, sizeof *r->text_of)))
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu tokens", more * n_ctx);
    if (!st && more) {
        memcpy(r->tokens + there * n_ctx, ids, more * n_ctx * sizeof *ids);
        for (size_t k = 0; k < more; k++) r->text_of[there + k] = i;
        r->n_chunks += (int64_t)more;
    }
    weft__free(own);
    return name_text(r, i, st, err);
}

/* Text and chunk size come from the base file. */
static weft_status open_against(perplexity_reading *r, weft_error *err)
{
    weft_status st = weft__eval_base_open(&r->against, r->p.base_file, r->n_vocab, err);
    if (st) return st;
    r->result.n_ctx = r->against.n_ctx;
    r->n_chunks = r->against.n_chunks;
    r->tokens = r->against.tokens;
    r->against.tokens = NULL;
    if (r->p.n_chunks > 0 && r->p.n_chunks < r->n_chunks) r->n_chunks = r->p.n_chunks;
    return WEFT_OK;
}

static weft_status cut_texts(perplexity_reading *r, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < r->n_texts && !st; i++) st = cut_text(r, i, err);
    if (!st && r->n_chunks > INT32_MAX / r->result.n_ctx)
        st = weft_fail(err, WEFT_LIMIT, "%lld chunks of %d tokens are too many", (long long)r->n_chunks,
                       r->result.n_ctx);
    if (st || !r->p.save_base) return st;
    st = weft__eval_base_begin(&r->save, r->p.save_base, r->result.n_ctx, r->n_vocab, (int32_t)r->n_chunks, r->tokens,
                               err);
    r->saving = !st;
    return st;
}

/* ---- scoring ---- */

/* Of row i of those whose logits are held. */
static weft_status score(perplexity_reading *r, int32_t i, int32_t next, weft_error *err)
{
    const size_t at = (size_t)i * (size_t)r->n_vocab;
    const float *logits = r->logits + at;
    double nll;
    weft_status st = r->against.f ? weft__eval_base_next(&r->against, r->record, err) : WEFT_OK;
    if (st) return st;
    if (is_compared(r)) {
        const weft__eval_compared one = r->base ? weft__eval_between(logits, r->base_logits + at, r->n_vocab, next)
                                                : weft__eval_against(logits, r->n_vocab, next, r->record);
        nll = one.nll;
        if (r->saving) weft__eval_nll(logits, r->n_vocab, next, r->record);
        if (!weft__eval_totals_compare(&r->all, &one)) return weft_fail(err, WEFT_NO_MEMORY, "no memory for samples");
    } else {
        nll = weft__eval_nll(logits, r->n_vocab, next, r->saving ? r->record : NULL);
        weft__eval_totals_add(&r->all, nll);
    }
    r->nll_sum += nll;
    r->nll_squares += nll * nll;
    if (!weft__eval_totals_known(&r->all)) return weft_fail(err, WEFT_FORMAT, WEFT__EVAL_LOST, (long long)r->all.n);
    const size_t size = (size_t)weft__eval_record_size(r->n_vocab) * sizeof *r->record;
    return r->saving ? weft__out_file_write(&r->save, r->record, size, err) : WEFT_OK;
}

/* row[0, n) in both sessions, where there are two. */
static weft_status evaluate(perplexity_reading *r, const int32_t *row, int32_t n, int all_logits, weft_error *err)
{
    weft_status st = weft_session_eval(r->session, row, n, all_logits, all_logits ? r->logits : NULL, err);
    if (st || !r->base) return st;
    return weft_session_eval(r->base, row, n, all_logits, all_logits ? r->base_logits : NULL, err);
}

/* Reads row[0, n) from an empty context; of what stands behind row[from], and each behind it, next[i] is row i's. */
static weft_status score_row(perplexity_reading *r, const int32_t *row, const int32_t *next, int32_t from, int32_t n,
                             weft_error *err)
{
    weft_status st = WEFT_OK;
    weft_session_trim(r->session, 0);
    if (r->base) weft_session_trim(r->base, 0);
    if (from) st = evaluate(r, row, from, 0, err);
    for (int32_t at = from, k; at < n && !st; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        st = evaluate(r, row + at, k, 1, err);
        for (int32_t i = 0; i < k && !st; i++) st = score(r, i, next[at + i], err);
    }
    return st;
}

static void tell_totals(const perplexity_reading *r, weft_perplexity_result *out)
{
    weft__eval_figures_of(&r->all, is_compared(r), out);
}

/* What was scored since n_before tokens, of one chunk or text. */
static weft_status report(perplexity_reading *r, int32_t text, int64_t n_before, int cut, double fraction,
                          weft_error *err)
{
    tell_totals(r, &r->result);
    const weft_perplexity_event event = {.size = sizeof event,
                                         .text = text,
                                         .fraction = fraction,
                                         .n_cut = cut,
                                         .n_scored = r->all.n - n_before,
                                         .nll_sum = r->nll_sum,
                                         .nll_squares = r->nll_squares,
                                         .so_far = &r->result};
    r->nll_sum = r->nll_squares = 0;
    if (!r->p.report || !r->p.report(r->p.arg, &event)) return WEFT_OK;
    return weft_fail(err, WEFT_CANCELLED, "stopped after %lld tokens", (long long)r->all.n);
}

static weft_status score_chunks(perplexity_reading *r, weft_error *err)
{
    const int32_t n_ctx = r->result.n_ctx;
    weft_status st = WEFT_OK;
    for (int64_t i = 0; i < r->n_chunks && !st; i++) {
        const int32_t *chunk = r->tokens + i * n_ctx;
        const int64_t before = r->all.n;
        memcpy(r->row, chunk, (size_t)n_ctx * sizeof *r->row);
        if (r->bos >= 0) r->row[0] = r->bos;
        st = score_row(r, r->row, chunk + 1, n_ctx / 2, n_ctx - 1, err);
        if (st) break;
        r->result.n_chunks++;
        st = report(r, r->text_of ? r->text_of[i] : -1, before, 0, (double)(i + 1) / (double)r->n_chunks, err);
    }
    return st;
}

static weft_status score_texts(perplexity_reading *r, weft_error *err)
{
    double whole = 0, done = 0;
    weft_status st = WEFT_OK;
    for (int32_t i = 0; i < r->n_texts; i++) whole += (double)r->texts[i].n;
    for (int32_t i = 0; i < r->n_texts && !st; i++) {
        const int32_t *ids;
        int32_t *own;
        size_t n = 0;
        const size_t room = (size_t)r->result.n_ctx + 1;
        const int64_t before = r->all.n;
        st = name_text(r, i, ids_of(r, i, &ids, &n, &own, err), err);
        const int cut = !st && n > room;
        if (cut) n = room;
        if (!st && n > 1) {
            st = score_row(r, ids, ids + 1, 0, (int32_t)n - 1, err);
            r->result.n_chunks++;
            r->result.n_cut += cut;
        }
        weft__free(own);
        done += (double)r->texts[i].n;
        if (!st) st = report(r, i, before, cut, whole > 0 ? done / whole : 1, err);
    }
    if (!st && !r->all.n) st = weft_fail(err, WEFT_ARGUMENT, "no text of two tokens or more");
    return st;
}

/* ---- the call ---- */

static weft_status check_params(const perplexity_reading *r, weft_error *err)
{
    const weft_perplexity_params *p = &r->p;
    const int texts = p->form == WEFT_PERPLEXITY_TEXTS;
    const char *wrong = p->form != WEFT_PERPLEXITY_CHUNKS && !texts ? "form is none of weft_perplexity_form"
                        : p->n_ctx < 0 || p->n_ctx > CTX_MOST || (!texts && p->n_ctx && p->n_ctx < 4)
                            ? "n_ctx is out of range"
                        : p->n_chunks < 0                                      ? "n_chunks is negative"
                        : p->n_adapters < 0 || (p->n_adapters && !p->adapters) ? "n_adapters is wrong"
                        : r->n_texts < 0 || (r->n_texts && !r->texts)          ? "the number of texts is wrong"
                        : p->base_file && (p->base || p->save_base) ? "base_file stands alone: no base, no save_base"
                        : texts && (p->base_file || p->save_base)   ? "files of bases are of chunks, not of texts"
                        : p->base_file && r->n_texts                ? "the text is that of base_file: give no other"
                        : !p->base_file && !r->n_texts              ? "there is no text"
                                                                    : NULL;
    return wrong ? weft_fail(err, WEFT_ARGUMENT, "weft_perplexity: %s", wrong) : WEFT_OK;
}

static weft_status open_sessions(perplexity_reading *r, weft_error *err)
{
    const size_t n = (size_t)PIECE * (size_t)r->n_vocab;
    weft_session_params sp;
    r->logits = weft__alloc_array(n, sizeof *r->logits);
    r->record = weft__alloc_array((size_t)weft__eval_record_size(r->n_vocab), sizeof *r->record);
    r->row = weft__alloc_array((size_t)r->result.n_ctx, sizeof *r->row);
    if (r->p.base) r->base_logits = weft__alloc_array(n, sizeof *r->base_logits);
    if (!r->logits || !r->record || !r->row || (r->p.base && !r->base_logits))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for logits");
    weft_session_params_default(&sp);
    sp.kv_dtype = r->p.kv_dtype;
    sp.n_ctx = r->result.n_ctx;
    weft_status st = weft_session_new(r->model, &sp, &r->session, err);
    if (!st && r->p.base) st = weft_session_new(r->p.base, &sp, &r->base, err);
    if (!st && r->p.n_adapters) st = weft_session_set_adapters(r->session, r->p.adapters, r->p.n_adapters, err);
    return st;
}

static weft_status prepare(perplexity_reading *r, weft_error *err)
{
    weft_model_info info = {.size = sizeof info}, base = {.size = sizeof base};
    weft_status st = check_params(r, err);
    if (!st) st = weft_model_describe(r->model, &info, err);
    if (!st && r->p.base) st = weft_model_describe(r->p.base, &base, err);
    if (st) return st;
    if (r->p.base && base.n_vocab != info.n_vocab)
        return weft_fail(err, WEFT_ARGUMENT, "the base has a vocabulary of %d tokens, the model one of %d",
                         base.n_vocab, info.n_vocab);
    r->n_vocab = info.n_vocab;
    r->result.n_ctx = r->p.n_ctx ? r->p.n_ctx : info.n_ctx_max < USUAL_CTX ? info.n_ctx_max : USUAL_CTX;
    st = find_bos(r, err);
    if (!st && r->p.base_file) st = open_against(r, err);
    else if (!st && r->p.form == WEFT_PERPLEXITY_CHUNKS) st = cut_texts(r, err);
    return st ? st : open_sessions(r, err);
}

weft_status weft_perplexity(weft_model *model, const weft_perplexity_text *texts, int32_t n,
                            const weft_perplexity_params *params, weft_perplexity_result *result, weft_error *err)
{
    perplexity_reading r = {.model = model, .texts = texts, .n_texts = n};
    weft_perplexity_params_default(&r.p);
    weft_status st = weft__params_read(WEFT__PARAMS_TYPE(weft_perplexity_params), &r.p, params, err);
    for (int i = 0; i < WEFT_QUANTILES; i++) r.result.kl_at[i] = r.result.p_diff_at[i] = NAN;
    if (!st) st = prepare(&r, err);
    if (!st) st = r.p.form == WEFT_PERPLEXITY_TEXTS ? score_texts(&r, err) : score_chunks(&r, err);
    if (!st && r.saving) st = weft__out_file_commit(&r.save, err);
    tell_totals(&r, &r.result);
    weft__eval_figures_sorted(&r.all, &r.result);
    const weft_status filled =
        weft__params_write(WEFT__PARAMS_TYPE(weft_perplexity_result), result, &r.result, st ? NULL : err);
    reading_free(&r);
    return st ? st : filled;
}
