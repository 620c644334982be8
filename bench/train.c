// SPDX-License-Identifier: Apache-2.0
/* train.c: how fast training is, against what the machine's multiply-add units reach on registers in the same run.
 *
 * bench_train [-s SHAPE | -f LAYERS] [-q TYPE] [-r RANK] [-m ROWS] [-c CONTEXT] [-t THREADS] [-n STEPS] [-k] [-e]
 *             [-b SHARE] [-x TIMES]
 *   -s SHAPE    LoRA on a synthetic model (tinyllama-1.1b), its matrices of TYPE (q4_0)
 *   -f LAYERS   instead: all weights of a fresh model of width 256 with so many layers
 *   -k          recompute layers on the way back
 *   -e          exact: products with frozen matrices in f32
 *   -b SHARE    exit status 1 when the median is below this share of the peak of f32, in percent
 *   -x TIMES    beside an exact trainer, in turns: exit status 1 when the median is not so many times as fast, where
 *               the processor multiplies BF16
 * Tokens are random: their values do not change the time. One line per step, and one with the median. A step of which
 * others took more than 3 % of the time is taken again while that helps; where half of those that count and more stay
 * above, -b judges nothing (exit status 75). */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/taken.h"
#include "kernels/kernels.h"
#include "model/synthetic.h"
#include "train/fresh.h"
#include "train/train.h"

enum { MAX_STEPS = 100, NOT_JUDGED = 75 /* EX_TEMPFAIL */ };

struct run {
    const char *shape;
    int fresh_layers, n_steps;
    uint32_t dtype;
    double bound; /* percent of the peak; 0: none */
    double times; /* as fast as exact; 0: not beside it */
    weft__train_options o;
};

static int failed(const weft_error *err)
{
    fprintf(stderr, "bench_train: %s\n", err->message);
    return 1;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Random rows in segments of the trainer's context; every row has a target. */
static void fill(weft__rng *rng, const weft__trainer_info *info, int32_t rows, int32_t *token, int32_t *segment,
                 int32_t *target)
{
    for (int32_t r = 0; r < rows; r++) {
        token[r] = (int32_t)weft__rng_below(rng, (uint64_t)info->n_vocab);
        segment[r] = r / info->n_ctx;
        target[r] = (int32_t)weft__rng_below(rng, (uint64_t)info->n_vocab);
    }
}

/* A step's seconds; 0: it failed. */
static double seconds_of(weft__trainer *t, const weft__train_batch *b, weft__train_loss *loss)
{
    weft_error err;
    const uint64_t begin = weft__clock_ns();
    if (!weft__trainer_add(t, b, loss, &err) && !weft__trainer_step(t, NULL, &err))
        return (double)(weft__clock_ns() - begin) * 1e-9;
    return failed(&err), 0;
}

/* How many times as fast it was; the exit status. */
static int finish_beside(const struct run *run, double *ratio, int disturbed)
{
    weft__peak_kernels peak;
    weft__peak_kernels_get(weft__tier_mask(), &peak);
    qsort(ratio, (size_t)run->n_steps, sizeof *ratio, compare);
    const double median = ratio[run->n_steps / 2];
    printf("median: %.2f times as fast as exact\n", median);
    if (!peak.bf16_dot) printf("not judged: this processor does not multiply BF16\n");
    if (!peak.bf16_dot || 2 * disturbed >= run->n_steps) return NOT_JUDGED;
    if (!(median < run->times)) return 0;
    printf("FAIL: at least %g times are wanted\n", run->times);
    return 1;
}

/* The last line; the exit status. */
static int finish(const struct run *run, double *speed, double *share, int disturbed)
{
    const int n = run->n_steps;
    qsort(speed, (size_t)n, sizeof *speed, compare);
    qsort(share, (size_t)n, sizeof *share, compare);
    printf("median: %.0f tokens/s, %.1f %% of the multiply-add peak\n", speed[n / 2], 100 * share[n / 2]);
    if (2 * disturbed >= n) printf("of %d of %d steps too much was taken to judge by\n", disturbed, n);
    if (run->bound > 0 && 2 * disturbed >= n) return NOT_JUDGED;
    if (!(100 * share[n / 2] < run->bound)) return 0;
    printf("FAIL: at least %g %% are wanted\n", run->bound);
    return 1;
}

static int measure(const struct run *run, const weft__source *src)
{
    weft_error err;
    weft__trainer *t, *exact = NULL;
    weft__train_options plain = run->o;
    weft__trainer_info info;
    weft__rng rng;
    double speed[MAX_STEPS], share[MAX_STEPS], ratio[MAX_STEPS];
    plain.exact = 1;
    if (weft__trainer_create(src, &run->o, &t, &err)) return failed(&err);
    if (run->times > 0 && weft__trainer_create(src, &plain, &exact, &err)) {
        weft__trainer_destroy(&t);
        return failed(&err);
    }
    weft__trainer_describe(t, &info);
    int32_t rows = run->o.max_rows, *token = weft__alloc_array(3 * (size_t)rows, sizeof *token), status = !token;
    printf("%s: %.1f M of %.1f M parameters learn, %d rows in segments of %d, %d threads, %.2f GB\n", src->label,
           (double)info.n_params / 1e6, (double)(info.n_params + info.n_frozen) / 1e6, rows, info.n_ctx, info.n_threads,
           (double)info.n_bytes / 1e9);
    weft__rng_seed(&rng, 1);
    weft__taken_again again = {.left = run->n_steps};
    int disturbed = 0;
    for (int i = -1; !status && i < run->n_steps;) { /* one to warm up */
        weft__train_loss loss, other;
        weft__taken_mark from, to;
        char text[WEFT__TAKEN_ROOM];
        weft__taken_now(&from);
        fill(&rng, &info, rows, token, token + rows, token + 2 * rows);
        weft__train_batch b = {rows, token, token + rows, token + 2 * rows, NULL};
        double peak = weft__trainer_peak(t, 20);
        const double seconds = seconds_of(t, &b, &loss), beside = exact ? seconds_of(exact, &b, &other) : 1;
        status = seconds == 0 || beside == 0;
        if (status || i++ < 0) continue;
        ratio[i - 1] = beside / seconds;
        weft__taken_now(&to);
        const weft__taken taken = weft__taken_between(&from, &to, info.n_threads);
        speed[i - 1] = rows / seconds;
        share[i - 1] = loss.flops / seconds * 1e-9 / peak;
        const int once_more = weft__taken_again_wanted(&again, &taken), above = weft__taken_above(&taken);
        printf("loss %.4f  %8.0f tokens/s  %6.1f GFLOP/s of %6.1f: %4.1f %%; taken %s%s\n", loss.loss / loss.weight,
               speed[i - 1], loss.flops / seconds * 1e-9, peak, 100 * share[i - 1],
               weft__taken_text(&taken, above, text), once_more ? ", again" : "");
        if (once_more) i--;
        else disturbed += above;
    }
    if (!status && exact) status = finish_beside(run, ratio, disturbed);
    else if (!status) status = finish(run, speed, share, disturbed);
    weft__trainer_destroy(&exact);
    weft__free(token);
    weft__trainer_destroy(&t);
    return status;
}

static int of_fresh(const struct run *run)
{
    weft__train_scratch_shape shape = {.n_vocab = 2048,
                                       .n_ctx = 512,
                                       .n_layers = run->fresh_layers,
                                       .d_model = 256,
                                       .d_ff = 768,
                                       .n_heads = 4,
                                       .n_kv_heads = 2,
                                       .head_dim = 64,
                                       .tied = 1,
                                       .seed = 1};
    weft__train_scratch *f;
    weft__source src;
    weft_error err;
    if (weft__train_scratch_create(&shape, NULL, &f, &err)) return failed(&err);
    weft__train_scratch_source(f, &src);
    int status = measure(run, &src);
    weft__train_scratch_destroy(&f);
    return status;
}

static int of_synthetic(const struct run *run)
{
    weft__synthetic *s;
    weft__source src;
    weft_error err;
    if (weft__synthetic_create(run->shape, run->dtype, NULL, NULL, &s, &err)) return failed(&err);
    weft__synthetic_source(s, &src);
    int status = measure(run, &src);
    weft__synthetic_destroy(&s);
    return status;
}

int main(int argc, char **argv)
{
    struct run run = {.shape = "tinyllama-1.1b", .n_steps = 3, .dtype = WEFT_Q4_0};
    weft__train_options_default(&run.o);
    run.o.lora_rank = 16;
    run.o.schedule = WEFT__TRAIN_LR_CONSTANT;
    int option, type = WEFT_Q4_0;
    while ((option = getopt(argc, argv, "s:f:q:r:m:c:t:n:b:x:ke")) != -1) {
        if (option == 's') run.shape = optarg;
        else if (option == 'f') run.fresh_layers = atoi(optarg), run.o.lora_rank = 0;
        else if (option == 'q') type = weft_dtype_from_name(optarg);
        else if (option == 'r') run.o.lora_rank = atoi(optarg);
        else if (option == 'm') run.o.max_rows = atoi(optarg);
        else if (option == 'c') run.o.n_ctx = atoi(optarg);
        else if (option == 't') run.o.n_threads = atoi(optarg);
        else if (option == 'n') run.n_steps = atoi(optarg);
        else if (option == 'b') run.bound = atof(optarg);
        else if (option == 'x') run.times = atof(optarg);
        else if (option == 'k') run.o.recompute = 1;
        else if (option == 'e') run.o.exact = 1;
        else type = -1;
    }
    if (type < 0 || run.n_steps < 1 || run.n_steps > MAX_STEPS || optind < argc) {
        fprintf(stderr, "usage: bench_train [-s SHAPE | -f LAYERS] [-q TYPE] [-r RANK] [-m ROWS] [-c CONTEXT] [-t "
                        "THREADS] [-n STEPS] [-k] [-e] [-b SHARE] [-x TIMES]\n");
        return 2;
    }
    run.dtype = (uint32_t)type;
    return run.fresh_layers > 0 ? of_fresh(&run) : of_synthetic(&run);
}
