// SPDX-License-Identifier: Apache-2.0
/* training.c: see training.h. A run that is interrupted (Ctrl-C, SIGTERM, SIGHUP) saves its state first; while data are
 * still read there is none, and it ends at once. */
#include "training.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "outputs.h"
#include "prompt.h"
#include "terminal.h"

enum { BAR = 24 };

static volatile sig_atomic_t interrupted, planned; /* planned: there is something to save */
static const char *volatile made_folder;           /* what the run makes, or NULL where it was there */

static void training_put(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; /* there is no one left to tell */
}

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    if (planned) return;
    if (made_folder) rmdir(made_folder); /* while it is empty, as it was made */
    training_put("\nweft: stopped before the first step; there was nothing to save\n");
    _exit(EXIT_FAILED);
}

static int is_interrupted(void *arg)
{
    (void)arg;
    return interrupted;
}

void training_init(training *t)
{
    *t = (training){.optimizer = "adamw",
                    .schedule = "cosine",
                    .warmup = -1,
                    .save_every = 200,
                    .heldout_every = 200,
                    .check_every = 1,
                    .patience = 3,
                    .answers_right = -1,
                    .keep_right = -1,
                    .result_scale = NAN,
                    .stop = "never",
                    .batch_help = "tokens computed at once (2048); memory grows with it",
                    .lr_help = "highest learning rate (1e-3)",
                    .epochs_help = "how often the data are seen (1); may be a fraction"};
    weft_train_params_default(&t->p);
}

void training_options(training *t, option_spec *table, int at)
{
    weft_train_params *p = &t->p;
    const option_spec common[] = {
        {"out", 'o', OPT_TEXT, &p->out, "DIR", "folder for the result, checkpoints and the loss curve", 0, 0, NULL},
        {"heldout", 0, OPT_LIST, &t->heldout, "F",
         "data to measure the loss on that are not learned; may be given several times", 0, 0, NULL},
        {"heldout-tokens", 0, OPT_INT, &p->heldout_tokens, "N", "of those, so many each time (16384; 0 all)", 0,
         1 << 30, NULL},
        {"heldout-every", 0, OPT_INT, &t->heldout_every, "N", "steps between measurements (200; 0 at the end only)", 0,
         1 << 30, NULL},
        {"ctx", 'c', OPT_INT, &p->n_ctx, "N",
         "tokens of a text at most (512, or the base's context): longer texts are cut into several, conversations lose "
         "their end",
         1, 65536, NULL},
        {"batch", 'b', OPT_INT, &p->batch, "N", t->batch_help, 1, 65536, NULL},
        {"accumulate", 0, OPT_INT, &p->accumulate, "N", "batches of a step (1)", 1, 1 << 20, NULL},
        {"steps", 0, OPT_INT, &t->steps, "N", "steps to make, instead of --epochs", 1, 1 << 30, NULL},
        {"epochs", 0, OPT_FLOAT, &p->epochs, "X", t->epochs_help, OPTION_ABOVE_0, 1e6, NULL},
        {"lr", 0, OPT_FLOAT, &p->lr, "X", t->lr_help, OPTION_ABOVE_0, 100, NULL},
        {"schedule", 0, OPT_TEXT, &t->schedule, "S", "cosine, constant or one-cycle (cosine)", 0, 0, NULL},
        {"warmup", 0, OPT_INT, &t->warmup, "N", "steps in which the rate rises from 0 (a fiftieth of all)", 0, 1 << 30,
         NULL},
        {"lr-floor", 0, OPT_FLOAT, &p->lr_floor, "X", "where cosine ends, as a share of the highest rate (0.1)", 0, 1,
         NULL},
        {"optimizer", 0, OPT_TEXT, &t->optimizer, "S", "adamw, sgd or muon (adamw)", 0, 0, NULL},
        {"weight-decay", 0, OPT_FLOAT, &p->weight_decay, "X", "of matrices, times the rate (0.01)", 0, 100, NULL},
        {"l2-sp", 0, OPT_FLOAT, &p->l2_sp, "X", "decay to where the weights began, instead of to 0, times the rate (0)",
         0, 100, NULL},
        {"clip", 0, OPT_FLOAT, &p->clip_norm, "X", "largest norm of all gradients together (1; 0 any)", 0, 1e6, NULL},
        {"chat-template", 0, OPT_TEXT, &t->chat_template, "F", "a Jinja template instead of the model's own", 0, 0,
         NULL},
        {"learn-prompts", 0, OPT_FLAG, &t->learn_prompts, NULL,
         "prompts of records are learned too, not only the answers", 0, 0, NULL},
        {"recompute", 0, OPT_FLAG, &t->recompute, NULL, "less memory, a third slower", 0, 0, NULL},
        {"save-every", 0, OPT_INT, &t->save_every, "N", "steps between checkpoints (200; 0 at the end only)", 0,
         1 << 30, NULL},
        {"resume", 0, OPT_FLAG, &t->resume, NULL,
         "go on from DIR's checkpoint, with the same options: the result is that of a run without a stop, bit for bit",
         0, 0, NULL},
        {"seed", 0, OPT_SEED, &p->seed, "S", "of the order of texts and of what is drawn (1)", 0, 0, NULL},
        {"name", 0, OPT_TEXT, &p->name, "NAME", "what the result is called", 0, 0, NULL},
        {"threads", 't', OPT_INT, &p->n_threads, "THREADS", "threads (one per core); the result does not depend on it",
         1, WEFT_THREADS_MAX, NULL},
        {"json", 0, OPT_FLAG, &t->json, NULL, "at the end one JSON object: steps, tokens, loss", 0, 0, NULL},
    };
    const int n = sizeof common / sizeof *common;
    memcpy(table + at, common, sizeof common);
    at += n + training_steer_options(t, table, at + n);
    table[at] = (option_spec){0};
}

/* ---- how it goes ---- */

static void end_line(training *t)
{
    if (t->on_line) fprintf(stderr, "\r\x1b[K");
    t->on_line = 0;
}

static void show_plan(training *t, const weft_train_event *e)
{
    fprintf(stderr, "%.2f M parameters learn", (double)e->n_params / 1e6);
    if (e->n_frozen) fprintf(stderr, ", %.2f M are frozen", (double)e->n_frozen / 1e6);
    fprintf(stderr,
            "; %.0f MB of memory\n%lld texts of %.0f tokens, %lld tokens in an epoch; %lld steps of about %lld tokens",
            (double)e->n_bytes / 1e6, (long long)e->n_segments, (double)e->epoch_rows / (double)e->n_segments,
            (long long)e->epoch_rows, (long long)e->n_steps, (long long)e->batch * t->p.accumulate);
    if (!isnan(e->epochs)) fprintf(stderr, " (%g %s)", e->epochs, e->epochs == 1 ? "epoch" : "epochs");
    putc('\n', stderr);
    if (e->n_cut)
        fprintf(stderr, "%lld records are longer than %d tokens and lose their end (-c N)\n", (long long)e->n_cut,
                (int)e->n_ctx);
    if (e->n_dropped)
        fprintf(stderr, "%lld %s and are left out\n", (long long)e->n_dropped,
                t->p.loss == WEFT_TRAIN_DPO || t->p.loss == WEFT_TRAIN_UNLIKELIHOOD ? "pairs hold nothing to prefer"
                                                                                    : "texts hold nothing to learn");
    if (e->n_filtered)
        fprintf(stderr, "%lld records have a smaller reward than --reward-min and are left out\n",
                (long long)e->n_filtered);
    if (e->n_empty)
        fprintf(stderr, "%lld answers are empty: the end of the turn is all that is learned of them\n",
                (long long)e->n_empty);
    if (e->n_keep_lost)
        fprintf(stderr,
                "%lld of the answers that must stay (--keep) do not come out before training; they are not asked\n",
                (long long)e->n_keep_lost);
    if (e->step) fprintf(stderr, "going on after step %lld\n", (long long)e->step);
}

static void show_numbers(const training *t, const weft_train_event *e)
{
    if (!isnan(e->reward)) fprintf(stderr, "reward %.3f (%.0f %% of groups alike), ", e->reward, 100 * e->same);
    fprintf(stderr, "loss %.4f", e->loss);
    if (!isnan(e->anchor)) fprintf(stderr, " (KL to the base %.4f)", e->anchor);
    const char *better = t->p.loss == WEFT_TRAIN_INFONCE ? "nearest" : "better"; /* than all others of the batch */
    if (!isnan(e->better)) fprintf(stderr, ", %.0f %% %s", 100 * e->better, better);
    if (!isnan(e->chosen)) fprintf(stderr, ", log p %.1f chosen, %.1f rejected", e->chosen, e->rejected);
    if (!isnan(e->heldout)) fprintf(stderr, ", held out %.4f", e->heldout);
    if (!isnan(e->heldout_better)) fprintf(stderr, " (%.0f %% %s)", 100 * e->heldout_better, better);
    if (!isnan(e->heldout_reward)) fprintf(stderr, ", held out: reward %.3f", e->heldout_reward);
    fprintf(stderr, ", %.0f tokens/s", e->rows_per_s);
    if (!isnan(e->peak_gflops)) fprintf(stderr, " (%.0f %% of the multipliers)", 100 * e->gflops / e->peak_gflops);
    fprintf(stderr, ", ");
    double left = e->seconds_left;
    if (left >= 5400) fprintf(stderr, "%.1f h left", left / 3600);
    else if (left >= 90) fprintf(stderr, "%.0f min left", left / 60);
    else fprintf(stderr, "%.0f s left", left);
}

/* On a terminal one line that changes, ten times a second at most; elsewhere a line whenever a tenth is done or the
 * loss was measured on held-out data. */
static void show_step(training *t, const weft_train_event *e)
{
    uint64_t now = now_ns();
    if (!isatty(STDERR_FILENO)) {
        if (e->step * 10 / e->n_steps == (e->step - 1) * 10 / e->n_steps && isnan(e->heldout)) return;
        fprintf(stderr, "step %lld of %lld: ", (long long)e->step, (long long)e->n_steps);
        show_numbers(t, e);
        putc('\n', stderr);
        return;
    }
    if (now - t->shown_ns < 100000000u && e->step < e->n_steps && isnan(e->heldout)) return;
    t->shown_ns = now;
    int full = (int)(BAR * e->step / e->n_steps);
    fprintf(stderr, "\r[%.*s%*s] %lld/%lld  ", full, "########################", BAR - full, "", (long long)e->step,
            (long long)e->n_steps);
    show_numbers(t, e);
    fprintf(stderr, "\x1b[K");
    t->on_line = 1;
    if (!isnan(e->heldout)) {
        putc('\n', stderr);
        t->on_line = 0;
    }
    fflush(stderr);
}

typedef struct telling {
    training *t;
    weft_train_event last;
} telling;

static int tell(void *arg, const weft_train_event *e)
{
    telling *x = arg;
    if (e->kind == WEFT_TRAIN_PLANNED) {
        planned = 1;
        show_plan(x->t, e);
        x->last = *e; /* of a run that is at its end already */
    }
    if (e->kind == WEFT_TRAIN_MEASURED && !isnan(e->heldout))
        fprintf(stderr, "held out %.4f %s\n", e->heldout, e->step ? "after it" : "before the first step");
    if (e->kind == WEFT_TRAIN_MEASURED && !isnan(e->heldout_reward))
        fprintf(stderr, "held out: reward %.3f %s\n", e->heldout_reward,
                e->step ? "after it" : "before the first step");
    if (e->kind == WEFT_TRAIN_STEP) {
        show_step(x->t, e);
        x->last = *e;
    }
    training_steer_tell(x->t, e);
    return interrupted;
}

static void put_json_number(const char *name, double v)
{
    if (isfinite(v)) printf(", \"%s\": %.6g", name, v);
}

static void show_end(const training *t, const weft_train_event *e)
{
    if (!t->json) {
        fprintf(stderr, "%s/%s: %lld steps, %lld tokens, %.0f s; the curve is in loss.svg and loss.jsonl beside it\n",
                t->p.out, t->adapts ? "adapter.gguf" : "model.gguf", (long long)e->n_steps, (long long)e->n_rows,
                e->seconds);
        training_steer_end(t);
        return;
    }
    printf("{\"steps\": %lld, \"tokens\": %lld, \"parameters\": %llu", (long long)e->n_steps, (long long)e->n_rows,
           (unsigned long long)e->n_params);
    put_json_number("loss", e->loss);
    put_json_number("heldout", e->heldout);
    put_json_number("better", e->better);
    put_json_number("heldout_better", e->heldout_better);
    put_json_number("chosen", e->chosen);
    put_json_number("rejected", e->rejected);
    put_json_number("anchor", e->anchor);
    put_json_number("reward", e->reward);
    put_json_number("heldout_reward", e->heldout_reward);
    put_json_number("apart", e->apart);
    put_json_number("seconds", e->seconds);
    put_json_number("tokens_per_s", e->rows_per_s);
    put_json_number("gflops", e->gflops);
    put_json_number("peak_gflops", e->peak_gflops);
    training_steer_json(t);
    printf("}\n");
}

/* ---- running ---- */

static int index_of(const char *const *names, const char *name)
{
    for (int i = 0; names[i]; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

static int usage(const char *command, const char *what)
{
    fprintf(stderr, "weft %s: %s\n", command, what);
    return EXIT_USAGE;
}

int training_check(training *t, const char *command)
{
    static const char *const optimizers[] = {"adamw", "sgd", "muon", NULL}, *const schedules[] = {"constant", "cosine",
                                                                                                  "one-cycle", NULL};
    if (!t->p.out && !t->show) return usage(command, "--out is missing");
    if (!t->data.n) return usage(command, "--data is missing");
    const struct text_list *const lists[] = {&t->data, &t->heldout, &t->neighbors, &t->answers, &t->keep, &t->prompts};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (lists[i]->n >= LIST_MAX) return usage(command, "too many files of data, or prompts");
    if ((t->p.optimizer = index_of(optimizers, t->optimizer)) < 0)
        return usage(command, "--optimizer is adamw, sgd or muon");
    if ((t->p.schedule = index_of(schedules, t->schedule)) < 0)
        return usage(command, "--schedule is cosine, constant or one-cycle");
    if (t->p.schedule == WEFT_TRAIN_ONE_CYCLE && t->warmup > 0)
        return usage(command, "--warmup: one-cycle rises by itself, over 30 % of the steps; leave it out");
    return training_steer_check(t, command);
}

/* 1 after a message when one of the inputs is a file that the run writes. */
static int writes_over_input(const training *t, const char *command)
{
    const char *const written[] = {"checkpoint.gguf", t->adapts ? "adapter.gguf" : "model.gguf", "loss.jsonl",
                                   "loss.svg"};
    for (size_t i = 0; i < sizeof written / sizeof *written; i++) {
        char out[4096];
        int found = snprintf(out, sizeof out, "%s/%s", t->p.out, written[i]) < (int)sizeof out &&
                    (output_is_input(command, out, t->p.base) || output_is_input(command, out, t->p.tokenizer) ||
                     output_is_input(command, out, t->chat_template));
        for (int k = 0; k < t->data.n && !found; k++) found = output_is_input(command, out, t->data.items[k]);
        const struct text_list *const others[] = {&t->heldout, &t->neighbors, &t->answers, &t->keep};
        for (size_t l = 0; l < sizeof others / sizeof *others; l++)
            for (int k = 0; k < others[l]->n && !found; k++) found = output_is_input(command, out, others[l]->items[k]);
        found = found || output_is_input(command, out, t->p.init_adapter);
        if (found) return 1;
    }
    return 0;
}

weft_status training_params(training *t, char **source, weft_error *err)
{
    size_t n = 0;
    weft_train_params *p = &t->p;
    *source = NULL;
    weft_status st = t->chat_template ? read_text(t->chat_template, source, &n, err) : WEFT_OK;
    p->chat_template = *source;
    p->data = t->data.items;
    p->heldout = t->heldout.n ? t->heldout.items : NULL;
    p->n_steps = t->steps;
    p->n_warmup = t->warmup;
    p->save_every = t->save_every;
    p->heldout_every = t->heldout_every;
    p->learn_prompts = t->learn_prompts;
    p->recompute = t->recompute;
    p->exact = t->exact;
    p->resume = t->resume;
    p->neighbors = t->neighbors.n ? t->neighbors.items : NULL;
    p->answers = t->answers.n ? t->answers.items : NULL;
    p->keep = t->keep.n ? t->keep.items : NULL;
    p->sample_prompts = t->prompts.n ? t->prompts.items : NULL;
    p->check_every = t->check_every;
    p->sample_every = t->sample_every;
    p->patience = t->patience;
    p->keep_best = t->keep_best;
    p->sample_raw = t->raw;
    return st;
}

static weft_status run_steps_to_end(training *t, telling *x, weft_error *err)
{
    char *source;
    weft_train_params *p = &t->p;
    weft_status st = training_params(t, &source, err);
    p->report = tell;
    p->arg = x;
    p->stop = is_interrupted;
    struct stat there;
    made_folder = stat(p->out, &there) ? p->out : NULL;
    signals_once(on_signal);
    if (!st) st = weft_train(p, err);
    free(source);
    return st;
}

int training_run(training *t, const char *command)
{
    weft_error err = {0};
    telling x = {.t = t};
    int rc = training_check(t, command);
    planned = 0;
    if (rc) return rc;
    if (t->show) return training_show(t, command);
    if (writes_over_input(t, command)) return EXIT_FAILED;
    weft_status st = run_steps_to_end(t, &x, &err);
    end_line(t);
    if (st == WEFT_CANCELLED) fprintf(stderr, "weft %s: %s is saved; --resume goes on\n", command, t->p.out);
    if (st) return report(command, &err);
    show_end(t, &x.last);
    return EXIT_DONE;
}
