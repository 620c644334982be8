// SPDX-License-Identifier: Apache-2.0
/* job_steer.c: see job.h: what a run begins with, when it ends, which of its steps is kept, how much its adapter
 * counts, and what it says meanwhile. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "engine/handles.h"
#include "train/job.h"

#define START_BYTES (8ull << 30) /* of an adapter's values that are read */

/* ---- the adapter to begin with ---- */

/* Its base's names, for folders; the model itself is opened later. */
static weft_status read_start(weft__train_job *j, weft_error *err)
{
    weft__train_base b = {0};
    weft__engine_base_names *names = weft__alloc_zero(1, sizeof *names);
    const weft__train_base_overrides none = {NULL, NULL};
    weft_status st = names ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for training");
    if (!st) st = weft__train_base_open(&b, j->p->base, 1, &none, err);
    if (!st) st = weft__engine_base_names_read(&b.source, names, err);
    if (!st) st = weft__adapt_open(j->p->init_adapter, &names->names, START_BYTES, &j->start, err);
    weft__train_base_close(&b);
    weft__free(names);
    return st;
}

weft_status weft__train_job_open_start(weft__train_job *j, weft_error *err)
{
    weft_train_params *p = &j->own;
    int32_t rank;
    float scale;
    if (!p->init_adapter) return WEFT_OK;
    if (!p->base) return weft_fail(err, WEFT_ARGUMENT, "an adapter to begin with needs a base");
    weft_status st = read_start(j, err);
    if (!st) st = weft__train_adapter_options(j->start, &rank, &scale, &j->targets, err);
    if (st) return st;
    memcpy(j->start_id, j->start->id.word, sizeof j->start_id);
    if (!p->lora_rank) p->lora_rank = rank;
    if (p->lora_alpha == 0) p->lora_alpha = scale * (p->lora_rs ? sqrtf((float)p->lora_rank) : (float)p->lora_rank);
    if (!p->lora_targets) p->lora_targets = j->targets;
    return WEFT_OK;
}

weft_status weft__train_job_start(weft__train_job *j, weft_error *err)
{
    weft__train_asked *k = &j->keep;
    weft_status st = j->start ? weft__trainer_start_adapter(j->trainer, j->start, err) : WEFT_OK;
    weft__adapt_close(&j->start);
    if (!st && k->d) st = weft__train_answers_of(j->trainer, k->d, k->right, &k->n, err);
    if (!st && k->d) memcpy(k->counts, k->right, weft__dataset_n_texts(k->d));
    return st;
}

/* ---- between steps ---- */

int weft__train_job_over(const weft__train_job *j)
{
    return j->steering.ended || weft__trainer_steps(j->trainer) >= j->n_steps;
}

int weft__train_job_due(const weft__train_job *j, int64_t n)
{
    const int64_t step = weft__trainer_steps(j->trainer);
    return weft__train_job_over(j) || step == 0 || (n > 0 && step % n == 0);
}

/* -1: there is nothing to ask. */
static weft_status ask(weft__train_job *j, weft__train_asked *a, int64_t *right, weft_error *err)
{
    int64_t all;
    if (!a->d) return WEFT_OK;
    weft_status st = weft__train_answers_of(j->trainer, a->d, a->right, &all, err);
    if (st) return st;
    *right = 0;
    for (size_t i = 0; i < weft__dataset_n_texts(a->d); i++) *right += a->right[i] && a->counts[i];
    return WEFT_OK;
}

/* The best step so far is known by its held-out loss; its weights are put aside where the result is to have them. */
static weft_status note_heldout(weft__train_job *j, double heldout, weft_error *err)
{
    weft__train_steering *s = &j->steering;
    if (heldout < s->best_heldout) {
        s->best_heldout = heldout;
        s->best_step = weft__trainer_steps(j->trainer);
        s->n_worse = 0;
        return j->p->keep_best ? weft__trainer_put_aside(j->trainer, err) : WEFT_OK;
    }
    s->n_worse++;
    if (j->p->stop_on == WEFT_TRAIN_STOP_HELDOUT && s->n_worse >= j->p->patience) s->ended = 1;
    return WEFT_OK;
}

/* Changes nothing of the job before everything was measured, so that it can be done again from the start. */
weft_status weft__train_job_judge(weft__train_job *j, weft_train_event *e, weft_error *err)
{
    const int last = weft__train_job_over(j);
    int measures = j->heldout && weft__train_job_due(j, j->p->heldout_every);
    weft_status st = WEFT_OK;
    j->steering.unjudged = 1;
    if (weft__train_job_due(j, j->p->check_every)) st = ask(j, &j->answers, &e->answers_right, err);
    const int answered = e->n_answers > 0 && e->answers_right == e->n_answers;
    const int ends = j->p->stop_on == WEFT_TRAIN_STOP_ANSWERS && answered;
    if (!st && (ends || last || !weft__trainer_steps(j->trainer))) st = ask(j, &j->keep, &e->keep_right, err);
    measures |= ends && j->heldout;
    if (!st && measures) st = weft__train_job_heldout(j, e, err);
    if (!st && measures) st = note_heldout(j, e->heldout, err);
    if (st) return st;
    if (ends && !last) j->steering.ended = 1;
    j->steering.unjudged = 0;
    e->best_step = j->steering.best_step;
    return WEFT_OK;
}

/* ---- samples ---- */

/* The prompt as the model sees it when it is asked. */
static weft_status render_prompt(const weft__train_job *j, const char *prompt, weft__train_rendered *out,
                                 weft_error *err)
{
    static const char empty[] = "";
    weft__json *root = weft__json_new_object();
    weft__train_record record = {0};
    weft_status st = WEFT_OK;
    if (!weft__json_set(root, "prompt", weft__json_new_string(prompt, strlen(prompt))) ||
        !weft__json_set(root, "completion", weft__json_new_string(empty, 0))) {
        weft__json_free(&root);
        return weft_fail(err, WEFT_NO_MEMORY, "no memory for a sample");
    }
    st = weft__train_record_of(&root, &record, err);
    if (!st) st = weft__train_render(&j->renderer, &record, 0, (size_t)j->n_ctx + 1, out, err);
    weft__train_record_free(&record);
    for (size_t i = 0; !st && i < out->ids.n; i++)
        if (out->learn[i]) out->ids.n = i;
    return st;
}

/* A text that goes on: without the token that ends it. */
static weft_status render_raw(const weft__train_job *j, const char *prompt, weft__train_rendered *out, weft_error *err)
{
    weft_status st = weft__train_render_text(&j->renderer, prompt, strlen(prompt), out, err);
    if (!st && out->ids.n && weft__tok_is_end(j->base.tok, out->ids.data[out->ids.n - 1])) out->ids.n--;
    return st;
}

static weft_status sample_one(weft__train_job *j, const char *prompt, int *stop, weft_error *err)
{
    weft__train_rendered shown = {0};
    weft__strbuf text = {0};
    weft_status st = j->p->sample_raw ? render_raw(j, prompt, &shown, err) : render_prompt(j, prompt, &shown, err);
    const size_t n = shown.ids.n;
    if (!st) st = weft__train_go_on(j->trainer, j->base.tok, &shown.ids, j->p->sample_tokens, err);
    if (!st) st = weft__tok_decode(j->base.tok, shown.ids.data + n, shown.ids.n - n, 0, &text, err);
    if (!st) weft__strbuf_putc(&text, 0);
    if (!st && text.failed) st = weft_fail(err, WEFT_NO_MEMORY, "no memory for a sample");
    if (!st) {
        weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_SAMPLE);
        e.prompt = prompt;
        e.text = text.data;
        *stop |= weft__train_job_tell(j, &e);
    }
    weft__strbuf_free(&text);
    weft__train_rendered_free(&shown);
    return st;
}

weft_status weft__train_job_sample(weft__train_job *j, int *stop, weft_error *err)
{
    const char *const *prompts = j->p->sample_prompts;
    weft_status st = WEFT_OK;
    if (!prompts || !weft__train_job_due(j, j->p->sample_every)) return WEFT_OK;
    for (size_t i = 0; !st && prompts[i] && !*stop; i++) st = sample_one(j, prompts[i], stop, err);
    if (st != WEFT_CANCELLED) return st;
    *stop = 1;
    return WEFT_OK;
}

/* ---- after the last step ---- */

/* Tries the adapter at a scale. */
static weft_status try_scale(weft__train_job *j, float scale, int *fits, weft__strbuf *tried, weft_error *err)
{
    weft_train_event e = weft__train_job_event(j, WEFT_TRAIN_SCALED);
    weft__trainer_set_scale(j->trainer, scale);
    weft_status st = ask(j, &j->answers, &e.answers_right, err);
    if (!st) st = ask(j, &j->keep, &e.keep_right, err);
    if (st) return st;
    e.scale = (double)scale;
    *fits = (!e.n_answers || e.answers_right == e.n_answers) && (!e.n_keep || e.keep_right == e.n_keep);
    weft__strbuf_printf(tried, "%s%g:", tried->len ? ", " : "", (double)scale);
    if (e.n_answers)
        weft__strbuf_printf(tried, " %lld of %lld come out", (long long)e.answers_right, (long long)e.n_answers);
    if (e.n_keep) weft__strbuf_printf(tried, " %lld of %lld stay", (long long)e.keep_right, (long long)e.n_keep);
    if (weft__train_job_tell(j, &e)) return weft_fail(err, WEFT_CANCELLED, "cancelled");
    return WEFT_OK;
}

weft_status weft__train_job_choose(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    weft__strbuf tried = {0};
    weft_status st = WEFT_OK;
    int fits = 0;
    if (p->keep_best) weft__trainer_take_aside(j->trainer);
    for (int32_t i = 0; !st && i < p->n_scales && !fits; i++) {
        st = try_scale(j, p->scales[i], &fits, &tried, err);
        j->scale = p->scales[i];
    }
    if (!st && p->n_scales && !fits)
        st = weft_fail(
            err, WEFT_STATE,
            "at none of the scales all answers come out and all stay that must (%s); the checkpoint is in %s: "
            "go on with other scales (--resume), or train with more neighbours",
            tried.data ? tried.data : "", p->out);
    weft__strbuf_free(&tried);
    return st;
}
