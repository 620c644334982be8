// SPDX-License-Identifier: Apache-2.0
/* score.c: answers to lines of samples (score.h). */
#include "eval/score.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "eval/fields.h"
#include "eval/stats.h"
#include "text/unicode.h"

/* What is right about a document. */
typedef struct right {
    weft__json *golds;   /* texts */
    weft__json *choices; /* texts; NULL: none */
    weft__json *label;   /* doc_to_target or, where the choices are questions, doc_to_text */
    int *is_right;       /* [choices] */
    size_t n;
} right;

static void free_right(right *r)
{
    weft__json_free(&r->golds);
    weft__json_free(&r->choices);
    weft__json_free(&r->label);
    weft__free(r->is_right);
}

/* The label is a choice's number, or its text. */
static void mark(right *r, const weft__json *label)
{
    int64_t at;
    const char *s;
    size_t n;
    if (weft__json_int(label, &at)) {
        if (at >= 0 && (size_t)at < r->n) r->is_right[at] = 1;
    } else if (weft__json_string(label, &s, &n)) {
        for (size_t i = 0; i < r->n; i++) {
            if (!weft__json_equal(weft__json_at(r->choices, i), label)) continue;
            r->is_right[i] = 1;
            return;
        }
    } else {
        for (size_t i = 0; i < weft__json_size(label); i++) mark(r, weft__json_at(label, i));
    }
}

static weft_status right_of(const weft__eval_task *t, const weft__json *doc, right *r, weft_error *err)
{
    weft__json *q = NULL;
    weft_status st = WEFT_OK;
    *r = (right){0};
    if (t->output != WEFT__EVAL_CHOICE) return weft__eval_golds_of(t, doc, &r->golds, err);
    st = weft__eval_choices_of(t, doc, &r->choices, err);
    if (!st && (t->text.source || t->text.constant))
        st = weft__eval_field_of(t, &t->text, "doc_to_text", doc, 0, &q, err);
    if (!st && weft__json_kind_of(q) == WEFT__JSON_INT) r->label = q, q = NULL;
    else if (!st) st = weft__eval_field_of(t, &t->target, "doc_to_target", doc, 1, &r->label, err);
    weft__json_free(&q);
    r->n = weft__json_size(r->choices);
    r->is_right = weft__alloc_zero(r->n + 1, sizeof *r->is_right);
    if (!st && !r->is_right) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a document's choices");
    if (!st) mark(r, r->label);
    int n_right = 0;
    for (size_t i = 0; !st && i < r->n; i++) n_right += r->is_right[i];
    if (!st && !n_right) st = weft_fail(err, WEFT_FORMAT, "doc_to_target: is none of its choices");
    return st;
}

/* ---- choices ---- */

static size_t characters(const char *s, size_t n)
{
    size_t c = 0;
    for (size_t i = 0; i < n; i++) c += ((unsigned char)s[i] & 0xc0) != 0x80;
    return c;
}

/* What a choice is compared by: 0: its log-probability, 1: per character, 2: per byte. */
static double weight_of(const right *r, size_t i, int by)
{
    const char *s = "";
    size_t n = 0;
    weft__json_string(weft__json_at(r->choices, i), &s, &n);
    return !by ? 1 : by == 1 ? (double)characters(s, n) : (double)n;
}

static double choice_score(const weft__eval_task *t, const weft__eval_response *a)
{
    return t->span == WEFT__EVAL_BEHIND || !a->n_scored ? a->logprob : a->logprob / a->n_scored;
}

/* The first of the best. */
static size_t best(const weft__eval_task *t, const weft__eval_answers *a, const right *r, int by)
{
    size_t at = 0;
    double most = NAN;
    for (size_t i = 0; i < a->n; i++) {
        const double v = choice_score(t, &a->items[i]) / weight_of(r, i, by);
        if (!(v <= most)) most = v, at = i;
    }
    return at;
}

static double brier(const weft__eval_answers *a, const right *r)
{
    double largest = -INFINITY, sum = 0, score = 0;
    for (size_t i = 0; i < a->n; i++) largest = fmax(largest, a->items[i].logprob);
    for (size_t i = 0; i < a->n; i++) sum += exp(a->items[i].logprob - largest);
    for (size_t i = 0; i < a->n; i++) {
        const double rest = exp(a->items[i].logprob - largest) / sum - r->is_right[i];
        score += rest * rest;
    }
    return score;
}

static double choice_metric(const weft__eval_task *t, const weft__eval_metric *m, const weft__eval_answers *a,
                            const right *r)
{
    int any = 0;
    switch (m->kind) {
    case WEFT__EVAL_ACC: return r->is_right[best(t, a, r, 0)];
    case WEFT__EVAL_ACC_NORM: return r->is_right[best(t, a, r, 1)];
    case WEFT__EVAL_ACC_BYTES: return r->is_right[best(t, a, r, 2)];
    case WEFT__EVAL_BRIER: return brier(a, r);
    default:
        for (size_t i = 0; i < a->n; i++) any |= r->is_right[i] && a->items[i].is_greedy;
        return any;
    }
}

/* ---- texts ---- */

static weft_status remove_matches(const weft__regex *regex, weft__regex_scratch *scratch, weft__strbuf *t,
                                  weft_error *err)
{
    weft__strbuf rest = {0};
    const char *s = t->data ? t->data : "";
    int found = 1, was_empty = 0;
    size_t from = 0;
    weft_status st = WEFT_OK;
    while (!st && found) {
        weft__regex_groups m;
        st = weft__regex_match(regex, scratch, s, t->len, from, was_empty, &found, &m, err);
        if (st || !found) break;
        weft__strbuf_put(&rest, s + from, m.start[0] - from);
        from = m.end[0];
        was_empty = m.end[0] == m.start[0];
    }
    weft__strbuf_put(&rest, s + from, t->len - from);
    weft__strbuf_free(t);
    *t = rest;
    return st;
}

/* A text as exact_match compares it. */
static weft_status compared(const weft__eval_metric *m, weft__regex_scratch *scratch, const char *s, size_t n,
                            weft__strbuf *out, weft_error *err)
{
    weft__strbuf kept = {0};
    uint32_t cp;
    weft_status st = WEFT_OK;
    weft__strbuf_put(out, s, n);
    for (size_t i = 0; !st && i < m->n_ignore; i++) st = remove_matches(m->ignore[i], scratch, out, err);
    for (size_t i = 0; !st && i < out->len;) {
        const size_t step = weft__utf8_decode(out->data + i, out->len - i, &cp, NULL);
        const int drops = (m->ignore_punctuation && cp < 0x80 && cp > ' ' && !weft__unicode_is_word(cp)) ||
                          (m->ignore_punctuation && cp == '_') || (m->ignore_numbers && cp >= '0' && cp <= '9');
        if (!drops && m->ignore_case) weft__unicode_put_lower(&kept, cp);
        else if (!drops) weft__strbuf_put(&kept, out->data + i, step);
        i += step;
    }
    if (!st && (kept.failed || out->failed)) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for an answer");
    weft__strbuf_free(out);
    *out = kept;
    return st;
}

static weft_status is_right(const weft__eval_metric *m, weft__regex_scratch *scratch, const weft__strbuf *text,
                            const weft__json *golds, int *yes, weft_error *err)
{
    weft__strbuf a = {0};
    const char *s;
    size_t n;
    weft_status st = compared(m, scratch, text->data ? text->data : "", text->len, &a, err);
    *yes = 0;
    for (size_t i = 0; !st && !*yes && i < weft__json_size(golds); i++) {
        weft__strbuf b = {0};
        if (!weft__json_string(weft__json_at(golds, i), &s, &n)) continue;
        st = compared(m, scratch, s, n, &b, err);
        *yes = !st && a.len == b.len && (!a.len || !memcmp(a.data, b.data, a.len));
        weft__strbuf_free(&b);
    }
    weft__strbuf_free(&a);
    return st;
}

/* Texts that are no JSON are equal to nothing, and no fault. */
static weft_status is_right_json(const weft__strbuf *text, const weft__json *golds, int *yes, weft_error *err)
{
    weft__json *said = NULL, *gold = NULL;
    weft_error why = {0};
    const char *s;
    size_t n;
    weft_status st = weft__json_parse(text->data ? text->data : "", text->len, &said, &why);
    *yes = 0;
    for (size_t i = 0; !st && !*yes && i < weft__json_size(golds); i++) {
        if (!weft__json_string(weft__json_at(golds, i), &s, &n)) continue;
        st = weft__json_parse(s, n, &gold, &why);
        *yes = !st && weft__json_equal(said, gold);
        if (st == WEFT_FORMAT) st = WEFT_OK;
        weft__json_free(&gold);
    }
    weft__json_free(&said);
    return st == WEFT_NO_MEMORY ? weft_fail(err, st, "%s", why.message) : WEFT_OK;
}

static weft_status text_metric(const weft__eval_metric *m, const weft__eval_filter *f, const weft__eval_texts *texts,
                               const weft__json *golds, weft__regex_scratch *scratch, double *out, weft_error *err)
{
    int64_t n_right = 0;
    weft_status st = WEFT_OK;
    for (size_t i = 0; !st && i < texts->n; i++) {
        int yes = 0;
        if (texts->is_none[i]) continue;
        st = m->kind == WEFT__EVAL_JSON_MATCH ? is_right_json(&texts->items[i], golds, &yes, err)
                                              : is_right(m, scratch, &texts->items[i], golds, &yes, err);
        n_right += yes;
    }
    if (st) return st;
    if (m->kind == WEFT__EVAL_PASS_AT_K) {
        if (m->k > (int64_t)texts->n)
            return weft_fail(err, WEFT_ARGUMENT,
                             "%s needs %lld answers, and the filter '%.60s' leaves %zu; raise `repeats`", m->name,
                             (long long)m->k, f->name, texts->n);
        *out = weft__eval_pass_at((int64_t)texts->n, n_right, m->k);
        return WEFT_OK;
    }
    if (texts->n != 1)
        return weft_fail(err, WEFT_ARGUMENT, "the filter '%.60s' leaves %zu answers; end it with take_first", f->name,
                         texts->n);
    *out = (double)n_right;
    return WEFT_OK;
}

/* ---- the line ---- */

static size_t words(const char *s, size_t n)
{
    size_t count = 1;
    for (size_t i = 0; i < n;) {
        if (!weft__eval_begins_blank(s + i, n - i)) {
            i++;
            continue;
        }
        count++;
        while (i < n && weft__eval_begins_blank(s + i, n - i)) i += (size_t)weft__utf8_length((unsigned char)s[i]);
    }
    return count; /* pieces of re.split(r"\s+") */
}

static void put_rolling(weft__strbuf *out, const weft__eval_metric *m, const weft__eval_answers *a, const right *r)
{
    const char *s = "";
    size_t n = 0;
    weft__json_string(weft__json_at(r->golds, 0), &s, &n);
    weft__strbuf_puts(out, "[");
    weft__json_write_double(out, a->items[0].logprob);
    weft__strbuf_printf(out, ", %zu]", m->kind == WEFT__EVAL_WORD_PERPLEXITY ? words(s, n) : n);
}

/* The score behind one filter; texts: what it left of generated answers. */
static weft_status put_score(const weft__eval_task *t, const weft__eval_metric *m, const weft__eval_filter *f,
                             const weft__eval_answers *a, const right *r, const weft__eval_texts *texts,
                             weft__regex_scratch *scratch, weft__strbuf *out, weft_error *err)
{
    double v = 0;
    weft_status st = WEFT_OK;
    weft__json_write_string(out, m->name, strlen(m->name));
    weft__strbuf_puts(out, ": ");
    switch (t->output) {
    case WEFT__EVAL_ROLLING: put_rolling(out, m, a, r); return WEFT_OK;
    case WEFT__EVAL_CHOICE: v = choice_metric(t, m, a, r); break;
    case WEFT__EVAL_LOGLIKELIHOOD: v = m->kind == WEFT__EVAL_ACC ? a->items[0].is_greedy : a->items[0].logprob; break;
    case WEFT__EVAL_GENERATE: st = text_metric(m, f, texts, r->golds, scratch, &v, err); break;
    }
    if (v == floor(v) && fabs(v) < 1e9) weft__strbuf_printf(out, "%.0f", v + 0.0);
    else weft__json_write_double(out, v);
    return st;
}

static void put_texts(weft__strbuf *out, const weft__eval_texts *t)
{
    const int alone = t->is_one && t->n == 1;
    if (!alone) weft__strbuf_puts(out, "[");
    for (size_t i = 0; i < t->n; i++) {
        if (i) weft__strbuf_puts(out, ", ");
        if (t->is_none[i]) weft__strbuf_puts(out, "null");
        else weft__json_write_string(out, t->items[i].data ? t->items[i].data : "", t->items[i].len);
    }
    if (!alone) weft__strbuf_puts(out, "]");
}

static weft_status copy_texts(const weft__eval_answers *a, weft__eval_texts *out, weft_error *err)
{
    *out = (weft__eval_texts){.items = weft__alloc_zero(a->n + 1, sizeof *out->items),
                              .is_none = weft__alloc_zero(a->n + 1, sizeof *out->is_none)};
    if (!out->items || !out->is_none) return weft_fail(err, WEFT_NO_MEMORY, "no memory for answers");
    for (out->n = 0; out->n < a->n; out->n++)
        weft__strbuf_put(&out->items[out->n], a->items[out->n].text.data ? a->items[out->n].text.data : "",
                         a->items[out->n].text.len);
    return WEFT_OK;
}

/* One filter: what it makes of the answers, and the scores of that. */
static weft_status put_filter(const weft__eval_task *t, const weft__eval_filter *f, const weft__eval_answers *a,
                              const right *r, weft__regex_scratch *scratch, weft__strbuf *filtered,
                              weft__strbuf *scores, weft_error *err)
{
    weft__eval_texts texts = {0};
    const int is_first = f == t->filters;
    weft_status st = WEFT_OK;
    if (t->output == WEFT__EVAL_GENERATE) {
        st = copy_texts(a, &texts, err);
        if (!st) st = weft__eval_filter_apply(f, r->golds, scratch, &texts, err);
        weft__strbuf_puts(filtered, is_first ? "" : ", ");
        weft__json_write_string(filtered, f->name, strlen(f->name));
        weft__strbuf_puts(filtered, ": ");
        put_texts(filtered, &texts);
    }
    weft__strbuf_puts(scores, is_first ? "" : ", ");
    weft__json_write_string(scores, f->name, strlen(f->name));
    weft__strbuf_puts(scores, ": {");
    for (size_t i = 0; !st && i < t->n_metrics; i++) {
        weft__strbuf_puts(scores, i ? ", " : "");
        st = put_score(t, &t->metrics[i], f, a, r, &texts, scratch, scores, err);
    }
    weft__strbuf_puts(scores, "}");
    weft__eval_texts_free(&texts);
    return st;
}

static void put_response(weft__strbuf *out, const weft__eval_task *t, const weft__eval_response *a)
{
    if (t->output == WEFT__EVAL_GENERATE) {
        weft__json_write_string(out, a->text.data ? a->text.data : "", a->text.len);
        return;
    }
    weft__strbuf_puts(out, "[");
    weft__json_write_double(out, a->logprob);
    weft__strbuf_printf(out, ", %s, %d]", a->is_greedy ? "true" : "false", a->n_scored);
}

void weft__eval_doc_hash(const weft__json *doc, char out[17])
{
    weft__strbuf t = {0};
    weft__json_write(&t, doc, WEFT__JSON_COMPACT);
    snprintf(out, 17, "%016llx", (unsigned long long)weft__hash(t.data ? t.data : "", t.len));
    weft__strbuf_free(&t);
}

static void put_head(const weft__eval_task *t, const weft__eval_answers *a, const right *r, weft__strbuf *line)
{
    char hash[17];
    weft__eval_doc_hash(t->docs.items[a->doc], hash);
    weft__strbuf_printf(line, "{\"doc_id\": %zu, \"doc_hash\": \"%s\", \"prompt\": ", a->doc, hash);
    const weft__strbuf *prompt = a->asks->n ? &a->asks->items[0].context : NULL;
    weft__json_write_string(line, prompt && prompt->data ? prompt->data : "", prompt ? prompt->len : 0);
    weft__strbuf_puts(line, ", \"target\": ");
    if (r->label || r->golds) weft__json_write(line, r->label ? r->label : r->golds, WEFT__JSON_SPACED);
    else weft__strbuf_puts(line, "null");
    weft__strbuf_puts(line, ", \"resps\": [");
    for (size_t i = 0; i < a->n; i++) {
        if (i) weft__strbuf_puts(line, ", ");
        put_response(line, t, &a->items[i]);
    }
    weft__strbuf_puts(line, "]");
}

weft_status weft__eval_judge(const weft__eval_task *t, const weft__eval_answers *a, weft__regex_scratch *scratch,
                             weft__strbuf *line, weft_error *err)
{
    weft__strbuf filtered = {0}, scores = {0};
    weft_error why = {0};
    right r;
    weft_status st = right_of(t, t->docs.items[a->doc], &r, &why);
    for (size_t i = 0; !st && i < t->n_filters; i++)
        st = put_filter(t, &t->filters[i], a, &r, scratch, &filtered, &scores, &why);
    if (!st) put_head(t, a, &r, line);
    if (!st && t->output == WEFT__EVAL_GENERATE)
        weft__strbuf_printf(line, ", \"filtered\": {%s}", filtered.data ? filtered.data : "");
    if (!st)
        weft__strbuf_printf(line, ", \"scores\": {%s}, \"n_cut\": %lld, \"n_tokens\": %lld, \"n_unended\": %lld}",
                            scores.data ? scores.data : "", (long long)a->n_cut, (long long)a->n_tokens,
                            (long long)a->n_unended);
    if (!st && (line->failed || filtered.failed || scores.failed))
        st = weft_fail(&why, WEFT_NO_MEMORY, "no memory for a sample");
    weft__strbuf_free(&filtered);
    weft__strbuf_free(&scores);
    free_right(&r);
    return st ? weft_fail(err, st, "document %zu: %s", a->doc + 1, why.message) : WEFT_OK;
}
