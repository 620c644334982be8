// SPDX-License-Identifier: Apache-2.0
/* job_open.c: see job.h: parameters are checked, files opened, data read, and a checkpoint taken up, before the first
 * step. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/params.h"
#include "text/chat/stand_in.h"
#include "train/job.h"

void(weft_train_params_default)(weft_train_params *p)
{
    weft__train_options o;
    weft__train_options_default(&o);
    *p = (weft_train_params){.size = sizeof *p,
                             .n_layers = 6,
                             .d_model = 256,
                             .d_ff = 768,
                             .n_heads = 4,
                             .n_kv_heads = 2,
                             .tied = 1,
                             .rope_base = 10000,
                             .lora_alpha = 16,
                             .batch = 2048,
                             .accumulate = 1,
                             .seed = 1,
                             .schedule = WEFT_TRAIN_COSINE,
                             .lr = o.lr,
                             .lr_floor = o.lr_floor,
                             .beta1 = o.beta1,
                             .beta2 = o.beta2,
                             .momentum = 0.9f,
                             .weight_decay = o.weight_decay,
                             .clip_norm = o.clip_norm,
                             .n_warmup = -1,
                             .epochs = 1,
                             .heldout_tokens = 16384,
                             .group = 8,
                             .prompts = 8,
                             .answer_tokens = 64,
                             .teacher_top = 64,
                             .clip_low = 0.2f,
                             .clip_high = 0.2f,
                             .neighbor_ratio = 1,
                             .patience = 3,
                             .check_every = 1,
                             .sample_tokens = 48};
}

void weft_train_params_init(weft_train_params *params, uint32_t size)
{
    weft_train_params own;
    (weft_train_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_train_params), params, size, &own);
}

/* ---- parameters ---- */

static weft_status check_steering(const weft_train_params *p, weft_error *err)
{
    const int heldout = p->heldout && p->heldout[0], answers = p->answers && p->answers[0];
    if (p->stop_on < WEFT_TRAIN_STOP_NEVER || p->stop_on > WEFT_TRAIN_STOP_ANSWERS)
        return weft_fail(err, WEFT_ARGUMENT, "there is nothing numbered %d to stop on", p->stop_on);
    if ((p->stop_on == WEFT_TRAIN_STOP_HELDOUT || p->keep_best) && !heldout)
        return weft_fail(err, WEFT_ARGUMENT, "%s is known by held-out data; give some",
                         p->keep_best ? "the best step" : "when to stop");
    if (p->stop_on == WEFT_TRAIN_STOP_HELDOUT && (p->patience < 1 || p->heldout_every < 1))
        return weft_fail(err, WEFT_ARGUMENT,
                         "stopping on held-out data needs steps between measurements and a patience of 1 or more");
    if (p->stop_on == WEFT_TRAIN_STOP_ANSWERS && (!answers || p->check_every < 1))
        return weft_fail(err, WEFT_ARGUMENT, "stopping on answers needs some, and steps between asking for them");
    if (p->stop_on == WEFT_TRAIN_STOP_ANSWERS && p->keep_best)
        return weft_fail(err, WEFT_ARGUMENT,
                         "the result is of the best step, or of the first at which the answers come out; choose one");
    if (p->n_scales && (!p->lora_rank || !p->scales || p->n_scales < 0))
        return weft_fail(err, WEFT_ARGUMENT, "scales are tried of an adapter; it needs a base and a rank");
    if (p->n_scales && !answers && !(p->keep && p->keep[0]))
        return weft_fail(err, WEFT_ARGUMENT,
                         "which scale fits is known by answers; give some that must come out, or stay");
    for (int32_t i = 0; i < p->n_scales; i++)
        if (!(fabsf(p->scales[i]) <= 100))
            return weft_fail(err, WEFT_ARGUMENT, "a scale of %g; it must be between -100 and 100",
                             (double)p->scales[i]);
    if (p->sample_prompts && p->sample_prompts[0] && p->sample_tokens < 1)
        return weft_fail(err, WEFT_ARGUMENT, "samples of %d tokens: it must be 1 or more", p->sample_tokens);
    return WEFT_OK;
}

static weft_status check_params(const weft_train_params *p, weft_error *err)
{
    if (!p->data || !p->data[0]) return weft_fail(err, WEFT_ARGUMENT, "no data to learn from");
    if (!p->base && !p->tokenizer)
        return weft_fail(err, WEFT_ARGUMENT, "a fresh model needs a vocabulary ('weft train-tokenizer' makes one)");
    if (p->accumulate < 1 || p->batch < 0)
        return weft_fail(err, WEFT_ARGUMENT,
                         "%d batches of %d tokens in a step: both must be 1 or more (or 0 tokens: by the data)",
                         p->accumulate, p->batch);
    if (p->n_ctx < 0) return weft_fail(err, WEFT_ARGUMENT, "texts of %d tokens: it must be 1 or more", p->n_ctx);
    if (p->n_steps < 0 || !(p->epochs >= 0 && p->epochs <= 1e6f))
        return weft_fail(err, WEFT_ARGUMENT, "steps and epochs must be above 0, or 0: by the data");
    weft_status st = weft__train_job_check_loss(p, err);
    if (st) return st;
    if (p->schedule == WEFT_TRAIN_ONE_CYCLE && p->n_warmup > 0)
        return weft_fail(err, WEFT_ARGUMENT, "%lld steps of warm-up: one-cycle rises by itself; leave them out",
                         (long long)p->n_warmup);
    if (p->lora_rank && !p->base) return weft_fail(err, WEFT_ARGUMENT, "an adapter needs a base");
    return check_steering(p, err);
}

static int is_steered(const weft_train_params *p)
{
    return p->init_adapter || p->stop_on || p->keep_best;
}

/* With what decides which steps are made, and what with. Scales are tried after the last one, and may be others when a
 * run is gone on with. */
static uint64_t steered_plan(const weft__train_job *j, uint64_t plan)
{
    const weft_train_params *p = j->p;
    const uint64_t numbers[] = {plan,
                                (uint64_t)p->stop_on,
                                (uint64_t)p->patience,
                                (uint64_t)p->keep_best,
                                (uint64_t)p->check_every,
                                (uint64_t)p->heldout_every,
                                (uint64_t)p->heldout_tokens,
                                j->heldout ? weft__dataset_hash(j->heldout) : 0,
                                j->answers.d ? weft__dataset_hash(j->answers.d) : 0,
                                j->start_id[0],
                                j->start_id[1]};
    return weft__hash(numbers, sizeof numbers);
}

/* A text as a number that a double holds. */
static uint32_t text_number(const char *s)
{
    return s ? (uint32_t)weft__hash(s, strlen(s)) : 0;
}

/* What came after 0.1.0. Of DPO the data's pairs tell, as they did then. */
enum { N_LATER = 16 };
static void later_numbers(const weft_train_params *p, double out[N_LATER])
{
    const double numbers[N_LATER] = {p->loss == WEFT_TRAIN_DPO ? WEFT_TRAIN_SFT : p->loss,
                                     p->smoothing,
                                     p->chosen,
                                     p->anchor,
                                     p->l2_sp,
                                     p->norm_cap,
                                     p->beta,
                                     p->reward_min,
                                     p->group,
                                     p->prompts,
                                     p->answer_tokens,
                                     p->clip_low,
                                     p->clip_high,
                                     p->teacher_top,
                                     (double)text_number(p->rule),
                                     (double)text_number(p->verifier)};
    memcpy(out, numbers, sizeof numbers);
}

/* Of what decides the result and is neither the data's, the model's, nor checked by the trainer. What later versions
 * added counts where it is not as usual, so that checkpoints of releases go on (upgrade_check). */
uint64_t weft__train_job_plan(const weft__train_job *j)
{
    const weft_train_params *p = j->p;
    const double numbers[] = {p->accumulate, (double)j->n_steps, (double)p->n_warmup,
                              p->schedule,   p->optimizer,       p->lr,
                              p->lr_floor,   p->beta1,           p->beta2,
                              p->momentum,   p->weight_decay,    p->clip_norm,
                              p->dpo_beta,   p->lora_rank,       p->lora_alpha,
                              p->lora_rs};
    uint64_t plan = weft__hash(numbers, sizeof numbers);
    struct {
        double plan[2], later[N_LATER];
    } more = {{(double)(uint32_t)plan, (double)(plan >> 32)}, {0}};
    double usual[N_LATER];
    weft_train_params defaults;
    weft_train_params_default(&defaults);
    later_numbers(&defaults, usual);
    later_numbers(p, more.later);
    if (memcmp(more.later, usual, sizeof usual)) plan = weft__hash(&more, sizeof more);
    if (p->lora_rank && !p->exact) plan = weft__hash(&plan, sizeof plan); /* what earlier versions made was exact */
    return is_steered(p) ? steered_plan(j, plan) : plan;
}

/* ---- the folder ---- */

static char *path_in(const char *folder, const char *name)
{
    weft__strbuf t = {0};
    weft__strbuf_printf(&t, "%s/%s", folder, name);
    if (t.failed) weft__strbuf_free(&t);
    return t.data;
}

static int exists(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0;
}

static int is_folder(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* Makes the folder, and its name last; a file system that cannot is let pass. *made: it was not there. */
static weft_status make_folder(const char *out, int *made, weft_error *err)
{
    if (mkdir(out, 0777)) {
        if (errno != EEXIST) return weft_fail(err, WEFT_IO, "%s: %s", out, strerror(errno));
        return is_folder(out)
                   ? WEFT_OK
                   : weft_fail(err, WEFT_EXISTS, "%s is no folder; give one, or a name that is not there yet", out);
    }
    *made = 1;
    char *parent = path_in(out, "..");
    if (!parent) return weft_fail(err, WEFT_NO_MEMORY, "no memory for training");
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
    weft__free(parent);
    return WEFT_OK;
}

/* 1 for "NAME.tmp-" and 16 hexadecimal digits (format/out_file.h), NAME one that a run writes. */
static int is_leftover(const char *name)
{
    static const char *const written[] = {"checkpoint.gguf", "answers.gguf", "model.gguf",
                                          "adapter.gguf",    "loss.jsonl",   "loss.svg"};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        size_t n = strlen(written[i]);
        if (!strncmp(name, written[i], n) && !strncmp(name + n, ".tmp-", 5))
            return strlen(name) == n + 21 && strspn(name + n + 5, "0123456789abcdef") == 16;
    }
    return 0;
}

/* Removes what a run that was killed while it wrote left behind. */
static void remove_leftovers(const char *out)
{
    DIR *d = opendir(out);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));)
        if (is_leftover(e->d_name)) unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static weft_status open_folder(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    if (!p->out) return weft_fail(err, WEFT_ARGUMENT, "no folder for what is learned");
    weft_status st = make_folder(p->out, &j->made_folder, err);
    if (st) return st;
    if (access(p->out, W_OK | X_OK)) return weft_fail(err, WEFT_IO, "%s: %s", p->out, strerror(errno));
    j->checkpoint = path_in(p->out, "checkpoint.gguf");
    j->result = path_in(p->out, p->lora_rank ? "adapter.gguf" : "model.gguf");
    if (!j->checkpoint || !j->result) return weft_fail(err, WEFT_NO_MEMORY, "no memory for training");
    if (p->resume && !exists(j->checkpoint))
        return weft_fail(err, WEFT_NOT_FOUND, "%s holds no checkpoint to go on from", p->out);
    if (p->resume) remove_leftovers(p->out);
    else if (exists(j->checkpoint) || exists(j->result))
        return weft_fail(err, WEFT_EXISTS, "%s holds a run already: go on with it (--resume), or give another folder",
                         p->out);
    return WEFT_OK;
}

/* ---- model and data ---- */

static weft_status open_base(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    const weft__train_base_overrides words = {p->name, p->chat_template}, none = {NULL, NULL};
    weft_status st;
    if (p->base) {
        st = weft__train_base_open(&j->base, p->base, p->lora_rank > 0, p->lora_rank ? &none : &words, err);
    } else {
        const weft__train_scratch_shape shape = {.n_ctx = p->n_ctx ? p->n_ctx : WEFT__TRAIN_USUAL_CTX,
                                                 .n_layers = p->n_layers,
                                                 .d_model = p->d_model,
                                                 .d_ff = p->d_ff,
                                                 .n_heads = p->n_heads,
                                                 .n_kv_heads = p->n_kv_heads,
                                                 .head_dim = p->head_dim      ? p->head_dim
                                                             : p->n_heads > 0 ? p->d_model / p->n_heads
                                                                              : 0,
                                                 .rope_base = p->rope_base,
                                                 .tied = p->tied,
                                                 .name = p->name,
                                                 .seed = p->seed};
        st = weft__train_base_scratch(&j->base, &shape, p->tokenizer, &words, err);
    }
    if (st) return st;
    if ((st = weft__train_base_context(&j->base, p->n_ctx, &j->n_ctx, err))) return st;
    j->base_hash = weft__train_base_hash(&j->base);
    return weft__train_renderer_init(&j->renderer, j->base.tok, p->chat_template,
                                     p->chat_template ? strlen(p->chat_template) : 0, err);
}

static weft_status open_trainer(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    weft__train_options o;
    weft__train_options_default(&o);
    o.n_threads = p->n_threads;
    o.max_rows = j->batch;
    o.n_ctx = j->n_ctx;
    o.lora_rank = p->lora_rank;
    o.lora_alpha = p->lora_alpha;
    o.lora_rs = p->lora_rs;
    o.lora_targets = p->lora_targets;
    o.recompute = p->recompute;
    o.exact = p->exact;
    o.seed = p->seed;
    o.optimizer = p->optimizer;
    o.schedule = p->schedule;
    o.lr = p->lr;
    o.lr_floor = p->lr_floor;
    o.n_warmup = p->n_warmup < 0 ? j->n_steps / 50 : p->n_warmup;
    o.n_steps = j->n_steps;
    o.beta1 = p->beta1;
    o.beta2 = p->beta2;
    o.momentum = p->momentum;
    o.weight_decay = p->weight_decay;
    o.clip_norm = p->clip_norm;
    o.l2_sp = p->l2_sp;
    o.norm_cap = p->norm_cap;
    o.stop = p->stop;
    o.stop_arg = p->arg;
    weft_status st = weft__trainer_create(&j->base.source, &o, &j->trainer, err);
    if (st) return st;
    weft__trainer_info info;
    weft__trainer_describe(j->trainer, &info);
    if (weft__tok_n(j->base.tok) > info.n_vocab)
        return weft_fail(err, WEFT_FORMAT, "%s: its tokenizer has %d tokens, its embedding %d; convert the model again",
                         p->base, weft__tok_n(j->base.tok), info.n_vocab);
    return WEFT_OK;
}

/* ---- going on ---- */

static weft_status take_state(weft__train_job *j, const weft__train_job_state *s, weft_error *err)
{
    if (s->magic == WEFT__TRAIN_JOB_MAGIC_ENDS)
        return weft_fail(err, WEFT_STATE,
                         "%s was written by an earlier weft, which did not look at the whole model and so cannot tell "
                         "that it is the "
                         "same; go on with that weft, or begin anew in another folder",
                         j->checkpoint);
    if (s->magic != WEFT__TRAIN_JOB_MAGIC)
        return weft_fail(err, WEFT_FORMAT, "%s was not written by this command", j->checkpoint);
    if (s->data != weft__dataset_hash(j->data))
        return weft_fail(
            err, WEFT_STATE,
            "%s was made with other data, another vocabulary, seed, batch or length of texts; give those of the run",
            j->checkpoint);
    if (s->plan != weft__train_job_plan(j))
        return weft_fail(err, WEFT_STATE,
                         "%s was made with other steps, rates or ranks, or with products that were rounded "
                         "otherwise (--exact; earlier versions were); give those of the run",
                         j->checkpoint);
    if (s->base != j->base_hash)
        return weft_fail(err, WEFT_STATE,
                         "%s was made with another model: other heads, positions or weights; give that of the run",
                         j->checkpoint);
    j->n_rows = s->n_rows;
    j->seconds = s->seconds;
    j->steering = s->steering;
    return weft__dataset_seek(j->data, s->position, err);
}

static weft_status resume(weft__train_job *j, weft_error *err)
{
    enum { EARLIER = offsetof(weft__train_job_state, steering) };
    weft__train_job_state s = {.steering = j->steering};
    void *bytes = NULL;
    size_t n = 0;
    weft_status st = weft__trainer_load(j->trainer, j->checkpoint, &bytes, &n, err);
    if (st) return st;
    if (n == sizeof s || n == EARLIER) memcpy(&s, bytes, n);
    weft__free(bytes);
    return take_state(j, &s, err);
}

static weft_status open_curve(weft__train_job *j, weft_error *err)
{
    const weft_train_params *p = j->p;
    char *lines = path_in(p->out, "loss.jsonl"), *picture = path_in(p->out, "loss.svg");
    weft_status st = lines && picture ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory for training");
    const char *title = weft__train_job_title(p);
    if (!st) st = weft__curve_open(&j->curve, lines, picture, title, weft__trainer_steps(j->trainer), err);
    weft__free(picture);
    weft__free(lines);
    return st;
}

/* Says once what conversations were rendered with. */
static void tell_stand_in(const weft__train_job *j)
{
    const weft__dataset *data[] = {j->data, j->heldout};
    weft__dataset_totals c;
    int stood_in = 0;
    for (int i = 0; i < 2; i++) {
        if (data[i]) weft__dataset_counts(data[i], &c);
        stood_in |= data[i] && c.stood_in;
    }
    if (stood_in) weft__chat_tell_stand_in(j->p->base ? j->p->base : j->p->tokenizer);
}

static weft_status begin_job(weft__train_job *j, const weft_train_params *p, weft_error *err)
{
    j->own = *p;
    j->p = &j->own;
    j->steering.best_step = -1;
    j->steering.best_heldout = INFINITY;
    j->scale = 1;
    weft_status st = weft__train_job_open_start(j, err);
    return st ? st : check_params(j->p, err);
}

/* The texts alone, for a look at them. */
weft_status weft__train_job_open_texts(weft__train_job *j, const weft_train_params *p, weft_error *err)
{
    weft_status st = begin_job(j, p, err);
    if (!st) st = open_base(j, err);
    return st ? st : weft__train_job_read_data(j, err);
}

weft_status weft__train_job_open(weft__train_job *j, const weft_train_params *p, weft_error *err)
{
    weft_status st = begin_job(j, p, err);
    if (!st) st = open_folder(j, err);
    if (!st) st = open_base(j, err);
    if (!st) st = weft__train_job_read(j, err);
    if (!st) tell_stand_in(j);
    if (!st) st = weft__train_job_open_loss(j, err);
    if (!st) st = open_trainer(j, err);
    if (!st) st = weft__train_job_open_policy(j, err);
    if (!st) st = weft__train_job_start(j, err);
    if (!st && p->resume) st = resume(j, err);
    if (!st) st = open_curve(j, err);
    if (st && j->made_folder) rmdir(p->out); /* while it is empty, as it was made */
    return st;
}

void weft__train_job_close(weft__train_job *j)
{
    weft__train_policy_close(&j->policy);
    weft__train_teacher_close(&j->teacher);
    weft__curve_close(&j->curve);
    weft__trainer_destroy(&j->trainer);
    weft__train_asked_free(&j->keep);
    weft__train_asked_free(&j->answers);
    weft__dataset_destroy(&j->heldout);
    weft__dataset_destroy(&j->data);
    weft__train_renderer_free(&j->renderer);
    weft__train_base_close(&j->base);
    weft__adapt_close(&j->start);
    weft__free(j->targets);
    weft__free(j->weight);
    weft__free(j->result);
    weft__free(j->checkpoint);
}
