// SPDX-License-Identifier: Apache-2.0
/* adapter.c: what an adapter is, and what it changes: the likeliest next token with and without it. Usage: adapter
 * MODEL ADAPTER TEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { MAX_PROMPT = 1024 };

static void check(weft_status status, const weft_error *err)
{
    if (!status) return;
    fprintf(stderr, "adapter: %s\n", err->message);
    exit(1);
}

/* Reads the text in a session of its own, and says what comes next. */
static void say_next(weft_model *model, const weft_adapter_use *uses, int n_uses, const int32_t *tokens, size_t n,
                     int32_t n_vocab)
{
    weft_error err = {0};
    weft_session *session = NULL;
    float *logits = malloc((size_t)n_vocab * sizeof *logits);
    if (!logits) exit(1);
    weft_session_params sp;
    weft_session_params_default(&sp);
    check(weft_session_new(model, &sp, &session, &err), &err);
    check(weft_session_set_adapters(session, uses, n_uses, &err), &err);
    check(weft_session_eval(session, tokens, (int32_t)n, 0, logits, &err), &err);
    int32_t best = 0;
    for (int32_t i = 1; i < n_vocab; i++) best = logits[i] > logits[best] ? i : best;
    size_t length;
    const char *text = weft_token_bytes(weft_model_tokenizer(model), best, &length);
    printf("%-8s token %d, '%.*s'\n", n_uses ? "with" : "without", best, text ? (int)length : 0, text ? text : "");
    free(logits);
    weft_session_free(&session);
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: adapter MODEL ADAPTER TEXT\n"), 2;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_adapter_file *file = NULL;
    weft_model_info info = {.size = sizeof info};
    weft_adapter_info about = {.size = sizeof about};
    weft_model_params mp;
    weft_model_params_default(&mp);
    check(weft_model_open(argv[1], &mp, &model, &err), &err);
    check(weft_model_describe(model, &info, &err), &err);
    check(weft_adapter_file_open(argv[2], weft_model_file(model), &file, &err), &err);
    check(weft_adapter_file_describe(file, &about, &err), &err);
    printf("%s: %d matrices of rank %d to %d, %llu parameters\n", argv[2], about.n_matrices, about.min_rank,
           about.max_rank, (unsigned long long)about.n_params);
    int32_t tokens[MAX_PROMPT];
    size_t n;
    check(weft_tokenize(weft_model_tokenizer(model), argv[3], strlen(argv[3]), WEFT_TOKENIZE_BOS, tokens, MAX_PROMPT,
                        &n, &err),
          &err);
    const weft_adapter_use use = {.file = file, .scale = 1};
    say_next(model, NULL, 0, tokens, n, info.n_vocab);
    say_next(model, &use, 1, tokens, n, info.n_vocab);
    weft_adapter_file_close(&file);
    weft_model_close(&model);
    return 0;
}
