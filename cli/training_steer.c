// SPDX-License-Identifier: Apache-2.0
/* training_steer.c: see training.h: when a training ends, what is kept of it, what must stay as it is, and what one
 * sees of it meanwhile. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "terminal.h"
#include "training.h"

int training_steer_options(training *t, option_spec *table, int at)
{
    weft_train_params *p = &t->p;
    const option_spec own[] = {
        {"neighbors", 0, OPT_LIST, &t->neighbors, "F",
         "records mixed in that are to stay as they are: the model's own answers about other things of the kind; may "
         "be "
         "given several times",
         0, 0, NULL},
        {"neighbor-ratio", 0, OPT_FLOAT, &p->neighbor_ratio, "R",
         "neighbours beside each text of the data (1), in turns", OPTION_ABOVE_0, 1000, NULL},
        {"answers", 0, OPT_LIST, &t->answers, "F",
         "records whose answers must come out word for word, by the likeliest token each time; asked between steps", 0,
         0, NULL},
        {"keep", 0, OPT_LIST, &t->keep, "F",
         "records whose answers must stay: those that come out before training are asked again at the end", 0, 0, NULL},
        {"check-every", 0, OPT_INT, &t->check_every, "N", "steps between asking for --answers (1; 0 at the end only)",
         0, 1 << 30, NULL},
        {"stop", 0, OPT_TEXT, &t->stop, "S",
         "end before the last step: answers (all of --answers come out), heldout (the held-out loss was no better "
         "--patience times) or never (never)",
         0, 0, NULL},
        {"patience", 0, OPT_INT, &t->patience, "N", "of --stop heldout: measurements (3)", 1, 1 << 30, NULL},
        {"best", 0, OPT_FLAG, &t->keep_best, NULL,
         "the result has the weights of the step whose held-out loss was least, instead of the last step's", 0, 0,
         NULL},
        {"show", 0, OPT_INT, &t->show, "N",
         "print the first N texts of the data as they are learned, what is learned marked, and train nothing", 1,
         1 << 30, NULL},
        {"sample-every", 0, OPT_INT, &t->sample_every, "N",
         "steps between samples (0: only before the first and behind the last)", 0, 1 << 30, NULL},
        {"sample-prompt", 0, OPT_LIST, &t->prompts, "P",
         "print what the model answers to this, the likeliest token each time; may be given several times", 0, 0, NULL},
        {"sample-tokens", 0, OPT_INT, &p->sample_tokens, "N", "of an answer at most (48)", 1, 65536, NULL},
        {"sample-raw", 0, OPT_FLAG, &t->raw, NULL, "prompts are texts that go on, not questions of a user", 0, 0, NULL},
    };
    const option_spec of_adapters[] = {
        {"init-adapter", 0, OPT_TEXT, &p->init_adapter, "F",
         "go on with this adapter (a GGUF file or a PEFT folder): its rank, alpha and targets are those of the new "
         "one, "
         "unless they are given",
         0, 0, NULL},
        {"scales", 0, OPT_TEXT, &t->scales, "LIST",
         "after the last step: the first of these scales at which all of --answers come out and all of --keep stay: "
         "1,0.75,0.5,0.35,0.25",
         0, 0, NULL},
    };
    const int n = sizeof own / sizeof *own, n_more = t->adapts ? (int)(sizeof of_adapters / sizeof *of_adapters) : 0;
    memcpy(table + at, own, sizeof own);
    memcpy(table + at + n, of_adapters, (size_t)n_more * sizeof *of_adapters);
    return n + n_more;
}

static int steer_usage(const char *command, const char *what)
{
    fprintf(stderr, "weft %s: %s\n", command, what);
    return EXIT_USAGE;
}

/* "1,0.75,0.5" */
static int read_scales(training *t, const char *command)
{
    int n = 0;
    for (const char *at = t->scales; at && *at; n++) {
        char *end;
        errno = 0;
        const double x = strtod(at, &end);
        if (end == at || (*end && *end != ',') || errno || !(fabs(x) <= 100))
            return steer_usage(command, "--scales are numbers from -100 to 100 with commas between: 1,0.75,0.5");
        if (n == LIST_MAX) return steer_usage(command, "too many --scales");
        t->scale[n] = (float)x;
        at = *end ? end + 1 : end;
    }
    t->p.scales = n ? t->scale : NULL;
    t->p.n_scales = n;
    return EXIT_DONE;
}

int training_steer_check(training *t, const char *command)
{
    static const char *const words[] = {"never", "heldout", "answers"};
    int on = 0;
    while (on < 3 && strcmp(words[on], t->stop)) on++;
    if (on == 3) return steer_usage(command, "--stop is answers, heldout or never");
    t->p.stop_on = on;
    if (on == WEFT_TRAIN_STOP_HELDOUT && (!t->heldout.n || !t->heldout_every))
        return steer_usage(command, "--stop heldout needs --heldout F, and --heldout-every above 0");
    if (on == WEFT_TRAIN_STOP_ANSWERS && (!t->answers.n || !t->check_every))
        return steer_usage(command, "--stop answers needs --answers F, and --check-every above 0");
    if (on == WEFT_TRAIN_STOP_ANSWERS && t->keep_best)
        return steer_usage(command, "--best and --stop answers want different steps; leave one out");
    if (t->keep_best && !t->heldout.n) return steer_usage(command, "--best needs --heldout F");
    if (t->scales && !t->answers.n && !t->keep.n)
        return steer_usage(command, "--scales needs --answers F or --keep F: what must hold");
    if (t->sample_every && !t->prompts.n) return steer_usage(command, "--sample-every needs --sample-prompt P");
    return read_scales(t, command);
}

/* ---- what is told ---- */

static void steer_line_end(training *t)
{
    if (t->on_line) fprintf(stderr, "\r\x1b[K");
    t->on_line = 0;
}

static void put_asked(const weft_train_event *e)
{
    if (e->n_answers)
        fprintf(stderr, "%lld of %lld answers come out", (long long)e->answers_right, (long long)e->n_answers);
    if (e->n_answers && e->keep_right >= 0) fprintf(stderr, ", ");
    if (e->keep_right >= 0) fprintf(stderr, "%lld of %lld stay", (long long)e->keep_right, (long long)e->n_keep);
    putc('\n', stderr);
}

void training_steer_tell(training *t, const weft_train_event *e)
{
    const int asked = e->answers_right >= 0 || e->keep_right >= 0;
    if (asked) {
        const int same = e->answers_right == t->answers_right && e->keep_right < 0;
        t->n_answers = e->n_answers;
        t->n_keep = e->n_keep;
        if (e->answers_right >= 0) t->answers_right = e->answers_right;
        if (e->keep_right >= 0) t->keep_right = e->keep_right;
        if (same) return;
        steer_line_end(t);
        if (e->kind == WEFT_TRAIN_SCALED) fprintf(stderr, "scale %g: ", e->scale);
        else fprintf(stderr, "step %lld: ", (long long)e->step);
        put_asked(e);
    }
    if (e->kind == WEFT_TRAIN_SAMPLE) {
        steer_line_end(t);
        fprintf(stderr, "step %lld: %s\n  > %s\n", (long long)e->step, e->prompt, e->text);
    }
    if (e->kind == WEFT_TRAIN_ENDED) {
        t->result_step = e->best_step;
        t->result_scale = e->scale;
    }
}

void training_steer_end(const training *t)
{
    if (t->keep_best) fprintf(stderr, "it has the weights of step %lld\n", (long long)t->result_step);
    if (t->scales) fprintf(stderr, "it counts %g of what it learned at\n", t->result_scale);
    if (t->answers_right >= 0 && t->answers_right < t->n_answers)
        fprintf(stderr, "%lld of %lld answers do not come out: more steps, or a higher rate\n",
                (long long)(t->n_answers - t->answers_right), (long long)t->n_answers);
    if (t->keep_right >= 0 && t->keep_right < t->n_keep)
        fprintf(stderr, "%lld of %lld answers did not stay: more neighbours (--neighbors), or --scales\n",
                (long long)(t->n_keep - t->keep_right), (long long)t->n_keep);
}

void training_steer_json(const training *t)
{
    if (t->answers_right >= 0)
        printf(", \"answers\": %lld, \"answers_right\": %lld", (long long)t->n_answers, (long long)t->answers_right);
    if (t->keep_right >= 0)
        printf(", \"keep\": %lld, \"keep_right\": %lld", (long long)t->n_keep, (long long)t->keep_right);
    printf(", \"result_step\": %lld", (long long)t->result_step);
    if (!isnan(t->result_scale)) printf(", \"scale\": %.6g", t->result_scale);
}

/* ---- --show ---- */

typedef struct showing {
    const training *t;
    int64_t n;
    int colours;
} showing;

static void show_json(const weft_train_shown *x)
{
    weft__strbuf line = {0};
    weft__strbuf_printf(&line, "{\"rejected\": %s, \"tokens\": [", x->rejected ? "true" : "false");
    for (int32_t i = 0; i < x->n; i++) {
        weft__strbuf_printf(&line, "%s{\"id\": %d, \"text\": ", i ? ", " : "", x->tokens[i]);
        weft__json_write_string(&line, x->text + x->at[i], x->at[i + 1] - x->at[i]);
        weft__strbuf_printf(&line, ", \"weight\": %g}", (double)x->weights[i]);
    }
    weft__strbuf_puts(&line, "]}");
    if (!line.failed) puts(line.data);
    weft__strbuf_free(&line);
}

/* What is learned stands in marks; on a terminal it is green too, or red where it is to become less likely. */
static void show_text(const showing *s, const weft_train_shown *x)
{
    int32_t n_learned = 0;
    for (int32_t i = 0; i < x->n; i++) n_learned += x->weights[i] != 0;
    printf("--- text %lld%s: %d tokens, %d learned\n", (long long)s->n, x->rejected ? " (rejected)" : "", x->n,
           n_learned);
    for (int32_t i = 0; i < x->n; i++) {
        const float w = x->weights[i], before = i ? x->weights[i - 1] : 0, after = i + 1 < x->n ? x->weights[i + 1] : 0;
        if (w != 0 && w != before) {
            if (s->colours) fputs(w > 0 ? "\x1b[32m" : "\x1b[31m", stdout);
            if (w == 1) fputs("\xE2\x9F\xA6", stdout);
            else printf("\xE2\x9F\xA6%g:", (double)w);
        }
        fwrite(x->text + x->at[i], 1, x->at[i + 1] - x->at[i], stdout);
        if (w != 0 && w != after) {
            fputs("\xE2\x9F\xA7", stdout);
            if (s->colours) fputs("\x1b[0m", stdout);
        }
    }
    putchar('\n');
}

static int show_one(void *arg, const weft_train_shown *x)
{
    showing *s = arg;
    s->n += !x->rejected;
    if (s->t->json) show_json(x);
    else show_text(s, x);
    return ferror(stdout);
}

int training_show(training *t, const char *command)
{
    showing s = {.t = t, .colours = isatty(STDOUT_FILENO)};
    weft_error err = {0};
    char *source;
    weft_status st = training_params(t, &source, &err);
    if (!st) st = weft_train_show(&t->p, t->show, show_one, &s, &err);
    free(source);
    if (st) return report(command, &err);
    return EXIT_DONE;
}
