// SPDX-License-Identifier: Apache-2.0
/* job_open.c: see job.h: parameters are checked, files opened, data read, and a checkpoint taken up, before the first
 * step. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
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
                             .clip_low = 0.2f,
                             .clip_high = 0.2f};
}

void weft_train_params_init(weft_train_params *params, uint32_t size)
{
    weft_train_params own;
    (weft_train_params_default)(&own);
    weft__params_init(WEFT__PARAMS_TYPE(weft_train_params), params, size, &own);
}

/* ---- parameters ---- */

static weft_status check_params(const weft_train_params *p, weft_error *err)
{
    if (!p->data || !p->data[0]) return weft_fail(err, WEFT_ARGUMENT, "no data to learn from");
    if (!p->out) return weft_fail(err, WEFT_ARGUMENT, "no folder for what is learned");
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
    return WEFT_OK;
}

/* A text as a number that a double holds. */
static uint32_t text_number(const char *s)
{
    return s ? (uint32_t)weft__hash(s, strlen(s)) : 0;
}

/* Of what decides the result and is neither the data's, the model's, nor checked by the trainer. */
uint64_t weft__train_job_plan(const weft__train_job *j)
{
    const weft_train_params *p = j->p;
    const double numbers[] = {p->accumulate,
                              (double)j->n_steps,
                              (double)p->n_warmup,
                              p->schedule,
                              p->optimizer,
                              p->lr,
                              p->lr_floor,
                              p->beta1,
                              p->beta2,
                              p->momentum,
                              p->weight_decay,
                              p->clip_norm,
                              p->dpo_beta,
                              p->lora_rank,
                              p->lora_alpha,
                              p->lora_rs,
                              p->loss,
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
                              (double)text_number(p->rule),
                              (double)text_number(p->verifier)};
    return weft__hash(numbers, sizeof numbers);
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

static const char *why_nothing(const weft__dataset_options *o, const weft__dataset_totals *c)
{
    if (o->pairs && c->n_dropped)
        return c->n_cut ? ": of every pair the prompt is longer than the texts may be, or the two answers are the same "
                          "as far as they fit"
                        : ": of every pair the two answers are the same";
    if (c->n_filtered) return ": no record has a reward of the least that is asked for";
    return c->n_cut ? ": every prompt is longer than the texts may be" : "";
}

/* Tokens of a batch that holds any text, or pair of them. */
static int64_t smallest_batch(const weft__train_job *j)
{
    return (int64_t)j->n_ctx * (weft__train_job_pairs(j->p) ? 2 : 1);
}

static weft_status read_data(weft__train_job *j, const char *const *files, int in_order, weft__dataset **out,
                             weft_error *err)
{
    const weft_train_params *p = j->p;
    const weft__dataset_options o = {.n_ctx = j->n_ctx,
                                     .max_rows = j->batch,
                                     .in_order = in_order,
                                     .learn_all = p->learn_prompts,
                                     .most = weft__train_job_samples(p) ? p->prompts : 0,
                                     .pairs = weft__train_job_pairs(p),
                                     .rewards = weft__train_job_rewards(p),
                                     .least = p->loss == WEFT_TRAIN_FILTERED ? (double)p->reward_min : -INFINITY,
                                     .seed = p->seed};
    weft_status st = weft__dataset_create(&j->renderer, &o, out, err);
    weft__dataset_totals c;
    for (size_t i = 0; !st && files[i]; i++) st = weft__dataset_add(*out, files[i], err);
    if (st) return st;
    weft__dataset_counts(*out, &c);
    if (p->loss == WEFT_TRAIN_REWARD && c.n_segments) weft__dataset_weigh(*out, p->beta > 0 ? (double)p->beta : 1);
    if (!c.n_segments)
        return weft_fail(err, WEFT_ARGUMENT, "%s: there is nothing to learn in it%s", files[0], why_nothing(&o, &c));
    return WEFT_OK;
}

/* What was not given follows the data. A step of RECORDS records, as far as the largest usual batch holds them, is
 * small enough for a few hundred records to make many steps, and large enough for their gradients to agree; and what is
 * seen so often that FEW_STEPS come together leaves a trace, however few records there are. */
static weft_status follow_data(weft__train_job *j, weft_error *err)
{
    enum { RECORDS = 16, LARGEST = 2048, FEW_STEPS = 200, EPOCHS = 2, EPOCHS_MOST = 12 };
    const weft_train_params *p = j->p;
    weft__dataset_totals c;
    weft_status st = WEFT_OK;
    weft__dataset_counts(j->data, &c);
    j->epochs = p->epochs > 0 ? (double)p->epochs : EPOCHS;
    if (!p->batch) {
        int64_t wanted = weft__train_job_samples(p) ? LARGEST : c.n_tokens * RECORDS / c.n_segments,
                least = smallest_batch(j);
        j->batch = (int32_t)(wanted > LARGEST ? LARGEST : wanted);
        if (j->batch < least) j->batch = (int32_t)least;
        st = weft__dataset_set_rows(j->data, j->batch, err);
        if (!st && j->heldout) st = weft__dataset_set_rows(j->heldout, j->batch, err);
    }
    if (st || p->epochs > 0 || p->n_steps) return st;
    const double of_epoch = ceil((double)c.n_tokens / ((double)j->batch * p->accumulate));
    j->epochs = fmin(EPOCHS_MOST, fmax(EPOCHS, ceil(FEW_STEPS / of_epoch)));
    return WEFT_OK;
}

/* Batches from the start to the end of `epochs`, of which the last may be a part. */
static weft_status count_steps(weft__train_job *j, weft_error *err)
{
    weft__train_batch b;
    weft__dataset_totals c;
    double whole = floor(j->epochs), part = j->epochs - whole, n = 0, of_last = 0;
    weft_status st = WEFT_OK;
    weft__dataset_counts(j->data, &c);
    j->epoch_rows = c.n_tokens;
    if (j->p->n_steps) {
        j->n_steps = j->p->n_steps;
        return WEFT_OK;
    }
    while (!st && (double)weft__dataset_position(j->data).epoch < whole + (part > 0)) {
        if ((double)weft__dataset_position(j->data).epoch < whole) n++;
        else of_last++;
        st = weft__dataset_next(j->data, &b, err);
    }
    if (!st) st = weft__dataset_seek(j->data, (weft__dataset_cursor){0, 0}, err);
    j->n_steps = (int64_t)ceil((n + part * of_last) / j->p->accumulate);
    return st;
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
        return weft_fail(err, WEFT_STATE, "%s was made with other steps, rates or ranks; give those of the run",
                         j->checkpoint);
    if (s->base != j->base_hash)
        return weft_fail(err, WEFT_STATE,
                         "%s was made with another model: other heads, positions or weights; give that of the run",
                         j->checkpoint);
    j->n_rows = s->n_rows;
    j->seconds = s->seconds;
    return weft__dataset_seek(j->data, s->position, err);
}

static weft_status resume(weft__train_job *j, weft_error *err)
{
    weft__train_job_state s = {0};
    void *bytes = NULL;
    size_t n = 0;
    weft_status st = weft__trainer_load(j->trainer, j->checkpoint, &bytes, &n, err);
    if (st) return st;
    if (n == sizeof s) memcpy(&s, bytes, n);
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

weft_status weft__train_job_open(weft__train_job *j, const weft_train_params *p, weft_error *err)
{
    weft_status st = check_params(p, err);
    j->p = p;
    if (!st) st = open_folder(j, err);
    if (!st) st = open_base(j, err);
    if (!st) j->batch = p->batch ? p->batch : (int32_t)smallest_batch(j); /* until the data are known */
    if (!st) st = read_data(j, p->data, 0, &j->data, err);
    if (!st && p->heldout && p->heldout[0]) st = read_data(j, p->heldout, 1, &j->heldout, err);
    if (!st) tell_stand_in(j);
    if (!st) st = follow_data(j, err);
    if (!st) st = weft__train_job_open_loss(j, err);
    if (!st) st = count_steps(j, err);
    if (!st) st = open_trainer(j, err);
    if (!st) st = weft__train_job_open_policy(j, err);
    if (!st && p->resume) st = resume(j, err);
    if (!st) st = open_curve(j, err);
    if (st && j->made_folder) rmdir(p->out); /* while it is empty, as it was made */
    return st;
}

void weft__train_job_close(weft__train_job *j)
{
    weft__train_policy_close(&j->policy);
    weft__curve_close(&j->curve);
    weft__trainer_destroy(&j->trainer);
    weft__dataset_destroy(&j->heldout);
    weft__dataset_destroy(&j->data);
    weft__train_renderer_free(&j->renderer);
    weft__train_base_close(&j->base);
    weft__free(j->weight);
    weft__free(j->result);
    weft__free(j->checkpoint);
}
