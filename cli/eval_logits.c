// SPDX-License-Identifier: Apache-2.0
/* eval_logits.c: weft eval logits: the logits at every position of a token sequence, as raw float32. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters.h"
#include "eval.h"
#include "format/out_file.h"
#include "kv_type.h"
#include "options.h"
#include "outputs.h"
#include "provider.h"
#include "rope.h"
#include "terminal.h"

struct eval_options {
    const char *tokens, *out, *kv_type;
    int32_t threads, chunk, n_ctx;
    struct text_list adapters;
    struct adapter_option adapter[LIST_MAX];
    rope_options rope;
};

/* Numbers separated by anything that is no digit or sign. */
static weft_status parse_ids(const char *text, int32_t **ids, int32_t *n, weft_error *err)
{
    size_t capacity = strlen(text) / 2 + 1;
    *n = 0;
    if (!(*ids = malloc(capacity * sizeof **ids))) return weft_fail(err, WEFT_NO_MEMORY, "no memory for token ids");
    for (const char *s = text;;) {
        s += strspn(s, " ,\t\r\n");
        if (!*s) break;
        char *end;
        errno = 0;
        long id = strtol(s, &end, 10);
        if (end == s || errno || id < 0 || id > INT32_MAX || !strchr(" ,\t\r\n", *end)) {
            free(*ids);
            *ids = NULL;
            return weft_fail(err, WEFT_ARGUMENT, "--tokens: '%.20s' is not a token id", s);
        }
        (*ids)[(*n)++] = (int32_t)id;
        s = end;
    }
    if (*n > 0) return WEFT_OK;
    free(*ids);
    *ids = NULL;
    return weft_fail(err, WEFT_ARGUMENT, "--tokens: no token ids given");
}

static weft_status write_floats(const char *path, const float *x, size_t n, weft_error *err)
{
    if (!strcmp(path, "-"))
        return fwrite(x, sizeof *x, n, stdout) != n || fflush(stdout)
                   ? weft_fail(err, WEFT_IO, "stdout: %s", strerror(errno))
                   : WEFT_OK;
    return weft__out_file_put(path, x, n * sizeof *x, err);
}

/* They are written as they are, for a look at the reason; but they are no logits. */
static weft_status check_floats(const float *x, size_t n, int32_t n_vocab, weft_error *err)
{
    size_t n_bad = 0, first = 0;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]) && !n_bad++) first = i;
    if (!n_bad) return WEFT_OK;
    return weft_fail(
        err, WEFT_FORMAT,
        "%zu of %zu logits are NaN or infinite, the first of them behind token %zu: are the model's weights "
        "damaged?",
        n_bad, n, first / (size_t)n_vocab);
}

static weft_status eval_logits(const struct eval_options *o, const char *path, const int32_t *ids, int32_t n,
                               weft_error *err)
{
    weft_session_params sp;
    weft_model *model = NULL;
    weft_session *session = NULL;
    weft_model_info info = {.size = sizeof info};
    float *logits = NULL;
    weft_status st = open_shown(path, o->threads, o->n_ctx, &o->rope.params, &model, err);
    if (st || (st = weft_model_describe(model, &info, err))) goto done;
    weft_session_params_default(&sp);
    sp.kv_dtype = kv_type_of(o->kv_type);
    sp.n_ctx = n;
    sp.chunk = o->chunk;
    size_t total = (size_t)n * (size_t)info.n_vocab;
    if (!(logits = malloc(total * sizeof *logits))) {
        st = weft_fail(err, WEFT_NO_MEMORY, "no memory for %zu logits", total);
        goto done;
    }
    if ((st = weft_session_new(model, &sp, &session, err)) ||
        (st = adapter_options_apply(o->adapter, o->adapters.n, model, session, err)) ||
        (st = weft_session_eval(session, ids, n, 1, logits, err)))
        goto done;
    if (!(st = write_floats(o->out, logits, total, err))) st = check_floats(logits, total, info.n_vocab, err);
done:
    free(logits);
    weft_session_free(&session);
    weft_model_close(&model);
    return st;
}

int eval_logits_command(int argc, char **argv)
{
    static struct eval_options o = {.kv_type = "f32", .out = NULL, .tokens = NULL};
    const option_spec options[] = {
        {"tokens", 0, OPT_TEXT, &o.tokens, "IDS", "token ids separated by spaces or commas", 0, 0, NULL},
        {"output", 'o', OPT_TEXT, &o.out, "F", "file for the logits, '-': stdout", 0, 0, NULL},
        {"adapter", 0, OPT_LIST, &o.adapters, "A", "[NAME=]PATH[:SCALE], a GGUF file or PEFT folder; may be repeated",
         0, 0, NULL},
        KV_TYPE_OPTION(&o.kv_type, "f32"),
        {"ctx", 'c', OPT_INT, &o.n_ctx, "CTX", "context that the rope scaling assumes (the model's)", 1, 1 << 28, NULL},
        ROPE_OPTIONS(&o.rope),
        {"chunk", 0, OPT_INT, &o.chunk, "N", "rows per step; never changes a bit (512)", 1, 512, NULL},
        PROVIDER_OPTION,
        {"threads", 't', OPT_INT, &o.threads, "THREADS", "threads; never changes a bit (one per core)", 1,
         WEFT_THREADS_MAX, NULL},
        {0},
    };
    const command_spec spec = {
        "eval logits",
        "MODEL --tokens IDS -o F [options]",
        "Evaluates the tokens and writes the logits after each as little-endian float32 [n, vocab].\n" OUTPUT_RULE("F"),
        "  weft eval logits model.gguf --tokens \"1 403 407\" -o logits.f32\n",
        options,
        1,
        1};
    int first;
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    if (!o.tokens || !o.out) {
        fprintf(stderr, "weft eval logits: %s\n", !o.tokens ? "--tokens is missing" : "-o is missing");
        return EXIT_USAGE;
    }
    if (!rope_options_check("eval logits", &o.rope)) return EXIT_USAGE;
    if (!adapter_options_parse("eval logits", &o.adapters, o.adapter)) return EXIT_USAGE;
    if ((strcmp(o.out, "-") && output_refused("eval logits", o.out)) ||
        output_is_input("eval logits", o.out, argv[first]))
        return EXIT_FAILED;
    weft_error err = {0};
    int32_t *ids = NULL, n = 0;
    weft_status st = parse_ids(o.tokens, &ids, &n, &err);
    if (st) {
        report("eval logits", &err);
        return st == WEFT_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    }
    st = eval_logits(&o, argv[first], ids, n, &err);
    free(ids);
    return st ? report("eval logits", &err) : EXIT_DONE;
}
