// SPDX-License-Identifier: Apache-2.0
/* eval_kv.c: weft eval kv: what keys and values of another type than F16 cost a model, and whether that is more than a
 * gate allows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "kv_quality.h"
#include "kv_recall.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "prompt.h"
#include "provider.h"
#include "rope.h"
#include "terminal.h"

enum { PIECE = 64, USUAL_TOKENS = 16384 }; /* tokens whose logits are held at once; tokens of the text that are read */

struct kv_options {
    const char *text, *type, *picture;
    int32_t n_ctx, n_tokens, n_tries, threads;
    uint64_t seed;
    double max_kld, min_top;
    int json;
    rope_options rope;
};

/* Everything one run needs; released by measuring_free. */
struct measuring {
    const struct kv_options *o;
    weft_model *model;
    weft_session *sessions[KV_ALL];
    int32_t n_vocab, bos; /* bos -1: none */
    int32_t *tokens;      /* [n_tokens] of the text */
    size_t n_tokens;
    float *logits[KV_ALL]; /* [PIECE, n_vocab] */
    int n_types;           /* KV_BOTH, or KV_ALL */
    int32_t *row;          /* [n_ctx] */
    kv_quality q;
};

static void measuring_free(struct measuring *m)
{
    kv_quality_free(&m->q);
    free(m->row);
    for (int i = 0; i < KV_ALL; i++) free(m->logits[i]);
    free(m->tokens);
    for (int i = 0; i < KV_ALL; i++) weft_session_free(&m->sessions[i]);
    weft_model_close(&m->model);
}

/* ---- what is read ---- */

static weft_status read_tokens(struct measuring *m, weft_error *err)
{
    const weft_tokenizer *tokenizer = weft_model_tokenizer(m->model);
    char *text = NULL;
    int32_t *bos = NULL;
    size_t n = 0, n_bos = 0;
    weft_status st = read_text(m->o->text, &text, &n, err);
    /* What the model puts before an empty text is its BOS. */
    if (!st) st = tokenize_text(tokenizer, "", 0, WEFT_TOKENIZE_BOS, &bos, &n_bos, err);
    if (!st) st = tokenize_text(tokenizer, text, n, 0, &m->tokens, &m->n_tokens, err);
    m->bos = n_bos > 0 ? bos[0] : -1;
    free(bos);
    free(text);
    if (st) return st;
    if (m->n_tokens > (size_t)m->o->n_tokens) m->n_tokens = (size_t)m->o->n_tokens;
    if (m->n_tokens < 2)
        return weft_fail(err, WEFT_ARGUMENT, "%s: %zu tokens; two at least are needed", m->o->text, m->n_tokens);
    return WEFT_OK;
}

/* The context is the trained one, unless told otherwise, of sessions of both types. */
static weft_status open_sessions(struct measuring *m, int32_t n_ctx, weft_error *err)
{
    const char *const types[KV_ALL] = {"f16", m->o->type, "f32"};
    weft_status st = WEFT_OK;
    m->q.n_ctx = n_ctx;
    m->row = malloc((size_t)n_ctx * sizeof *m->row);
    m->n_types = strcmp(m->o->type, "f32") ? KV_ALL : KV_BOTH;
    for (int i = 0; i < m->n_types && !st; i++) {
        weft_session_params sp;
        weft_session_params_default(&sp);
        sp.kv_dtype = kv_type_of(types[i]);
        sp.n_ctx = n_ctx;
        m->logits[i] = malloc((size_t)PIECE * (size_t)m->n_vocab * sizeof **m->logits);
        if (!m->logits[i] || !m->row) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for logits");
        else st = weft_session_new(m->model, &sp, &m->sessions[i], err);
    }
    return st;
}

static weft_status eval_kv_prepare(struct measuring *m, const char *path, weft_error *err)
{
    const struct kv_options *o = m->o;
    weft_model_info info = {.size = sizeof info};
    weft_status st = open_shown(path, o->threads, o->n_ctx, &o->rope.params, &m->model, err);
    if (st || (st = weft_model_describe(m->model, &info, err))) return st;
    if (!weft_model_tokenizer(m->model)) return weft_fail(err, WEFT_UNSUPPORTED, "the model has no tokenizer");
    m->n_vocab = info.n_vocab;
    m->q.type = o->type;
    m->q.max_kld = o->max_kld;
    m->q.min_top = o->min_top / 100;
    snprintf(m->q.model, sizeof m->q.model, "%s", info.name);
    weft_model_fingerprint(m->model, m->q.fingerprint);
    if ((st = read_tokens(m, err))) return st;
    return open_sessions(m, o->n_ctx ? o->n_ctx : info.n_ctx_train, err);
}

/* ---- divergence ---- */

static weft_status kv_compare(struct measuring *m, int32_t position, int i, int32_t next, weft_error *err)
{
    const size_t at = (size_t)i * (size_t)m->n_vocab;
    const weft__eval_compared sample =
        weft__eval_between(m->logits[KV_TYPE] + at, m->logits[KV_BASE] + at, m->n_vocab, next);
    if (!isfinite(sample.kld) || !isfinite(sample.nll) || !isfinite(sample.nll_base))
        return weft_fail(err, WEFT_FORMAT, WEFT__EVAL_LOST, (long long)m->q.all.n);
    if (m->n_types == KV_ALL) {
        const weft__eval_compared f32 =
            weft__eval_between(m->logits[KV_FLOOR] + at, m->logits[KV_BASE] + at, m->n_vocab, next);
        if (!weft__eval_totals_compare(&m->q.floor, &f32))
            return weft_fail(err, WEFT_NO_MEMORY, "no memory for samples");
    }
    if (!weft__eval_totals_compare(&m->q.all, &sample) ||
        !weft__eval_totals_compare(&m->q.by_depth[kv_depth_of(position)], &sample))
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for samples");
    return WEFT_OK;
}

/* One context: m->row[0, n), of which each position's probabilities are compared. */
static weft_status score_context(struct measuring *m, int32_t n, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int which = 0; which < m->n_types; which++) weft_session_trim(m->sessions[which], 0);
    for (int32_t at = 0, k; at < n && !st; at += k) {
        k = n - at < PIECE ? n - at : PIECE;
        for (int which = 0; which < m->n_types && !st; which++)
            st = weft_session_eval(m->sessions[which], m->row + at, k, 1, m->logits[which], err);
        for (int32_t i = 0; i < k && !st; i++)
            st = kv_compare(m, at + i, i, at + i + 1 < n ? m->row[at + i + 1] : -1, err);
    }
    return st;
}

static weft_status score_text(struct measuring *m, progress *bar, weft_error *err)
{
    weft_status st = WEFT_OK;
    const size_t room = (size_t)m->q.n_ctx - (m->bos >= 0);
    for (size_t at = 0, n; at < m->n_tokens && !st; at += n) {
        int32_t filled = 0;
        n = m->n_tokens - at < room ? m->n_tokens - at : room;
        if (m->bos >= 0) m->row[filled++] = m->bos;
        memcpy(m->row + filled, m->tokens + at, n * sizeof *m->row);
        st = score_context(m, filled + (int32_t)n, err);
        m->q.n_texts++;
        if (!st && progress_update(bar, "divergence", (double)(at + n) / (double)m->n_tokens))
            st = weft_fail(err, WEFT_CANCELLED, "cancelled");
    }
    return st;
}

static weft_status eval_kv(struct measuring *m, const char *path, weft_error *err)
{
    progress bar = {0};
    weft_status st = eval_kv_prepare(m, path, err);
    if (!st) st = score_text(m, &bar, err);
    const kv_recall recall = {.model = m->model,
                              .sessions = m->sessions,
                              .text = m->tokens,
                              .n_text = m->n_tokens,
                              .n_ctx = m->q.n_ctx,
                              .n_vocab = m->n_vocab,
                              .bos = m->bos,
                              .n_tries = m->o->n_tries,
                              .seed = m->o->seed};
    if (!st) st = kv_recall_run(&recall, &m->q, progress_update, &bar, err);
    progress_end(&bar);
    return st;
}

/* What was measured is told, drawn and kept. */
static int finish(struct measuring *m, weft_error *err)
{
    weft_status st = m->o->picture ? kv_draw(&m->q, m->o->picture, err) : WEFT_OK;
    if (!st && m->o->json) st = kv_print_json(&m->q, err);
    else if (!st) kv_print(&m->q);
    if (st) return report("eval kv", err);
    if (!kv_gate_keep(&m->q))
        fprintf(stderr, "weft eval kv: the result could not be kept in the cache (WEFT_CACHE), for 'weft serve' to "
                        "warn of it\n");
    if (kv_gate_kept(&m->q)) return EXIT_DONE;
    fprintf(stderr, "weft eval kv: %s is further from f16 than the gate allows (--max-kld, --min-top)\n", m->q.type);
    return EXIT_FAILED;
}

struct gate {
    double max_kld, min_top;
};

/* What is asked of a type where nothing else is said. */
static struct gate gate_of(uint32_t type)
{
    const uint32_t k = type & 255, v = type >> 8 & 255 ? (type >> 8 & 255) - 1 : k;
    if (k == WEFT_KV_Q4 || v == WEFT_KV_Q4) return (struct gate){0.02, 97};
    return k == WEFT_KV_Q8 && v == WEFT_KV_Q8 ? (struct gate){0.001, 99.5} : (struct gate){0.01, 98};
}

static const char ABOUT[] =
    "What keys and values in TYPE cost the model, against F16 over the same weights: the Kullback-Leibler divergence\n"
    "of the next token's probabilities on the text, by depth, and how often the likeliest token is the same, beside "
    "what\n"
    "F32 differs from F16 by, which is rounding alone (of activations in 8 bits above all); and how\n"
    "often a pass key and random tokens that stand that far back are found again, for F16, too: a model that finds\n"
    "nothing there is not the type's fault. The exit status is 1 where the gate (--max-kld, --min-top) is exceeded.\n"
    "The result is kept in the cache, by model and type: 'weft serve' warns where it is started with a type whose\n"
    "gate was exceeded.\n" OUTPUT_RULE("The F of --svg");

int eval_kv_command(int argc, char **argv)
{
    struct kv_options o = {.n_tokens = USUAL_TOKENS, .n_tries = 4, .seed = 1};
    const option_spec options[] = {
        {"file", 'f', OPT_TEXT, &o.text, "TEXT", "the text", 0, 0, NULL},
        {"kv-type", 0, OPT_TEXT, &o.type, "TYPE", "the type that is measured: f32, bf16, f8, q8, q4, k=q8,v=q4", 0, 0,
         NULL, KV_TYPE_WORDS, kv_type_check},
        {"ctx", 'c', OPT_INT, &o.n_ctx, "N", "tokens of a context, and how deep it is looked (the model's trained one)",
         16, 1 << 24, NULL},
        {"tokens", 0, OPT_INT, &o.n_tokens, "N", "of the text at most (16384)", 2, 1 << 30, NULL},
        {"tries", 0, OPT_INT, &o.n_tries, "N", "pass keys at each depth; 0: neither these nor copies (4)", 0, 1000,
         NULL},
        {"seed", 0, OPT_SEED, &o.seed, "S", "of what is drawn for them (1)", 0, 0, NULL},
        {"max-kld", 0, OPT_DOUBLE, &o.max_kld, "D", "the gate: mean divergence at most (0.01; q8 0.001, q4 0.02)", 0,
         OPTION_FINITE, NULL},
        {"min-top", 0, OPT_DOUBLE, &o.min_top, "P",
         "the gate: per cent of the same likeliest token at least (98; q8 99.5, q4 97)", 0, 100, NULL},
        {"svg", 0, OPT_TEXT, &o.picture, "F.svg", "a picture of all of it, by depth", 0, 0, NULL},
        ROPE_OPTIONS(&o.rope),
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads (one per core)", 1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &o.json, NULL, "one JSON object", 0, 0, NULL},
        {0},
    };
    const command_spec spec = {"eval kv",
                               "MODEL -f TEXT --kv-type TYPE [options]",
                               ABOUT,
                               "  weft eval kv model.gguf -f wiki.txt --kv-type q8\n"
                               "  weft eval kv model.gguf -f wiki.txt --kv-type q8 -c 8192 --svg kv.svg --json\n",
                               options,
                               1,
                               1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!o.text || !o.type) {
        fprintf(stderr, "weft eval kv: %s is missing\n", o.text ? "--kv-type TYPE" : "-f TEXT");
        return EXIT_USAGE;
    }
    if (!rope_options_check("eval kv", &o.rope)) return EXIT_USAGE;
    if (o.picture && (output_refused("eval kv", o.picture) || output_is_input("eval kv", o.picture, argv[first]) ||
                      output_is_input("eval kv", o.picture, o.text)))
        return EXIT_FAILED;
    const struct gate gate = gate_of(kv_type_of(o.type));
    if (!options_given(&spec, "max-kld")) o.max_kld = gate.max_kld;
    if (!options_given(&spec, "min-top")) o.min_top = gate.min_top;
    char name[WEFT_KV_NAME_MAX];
    o.type = weft_kv_type_name(kv_type_of(o.type), name);
    struct measuring m = {.o = &o};
    weft_error err = {0};
    rc = eval_kv(&m, argv[first], &err) ? report("eval kv", &err) : finish(&m, &err);
    measuring_free(&m);
    return rc;
}
