// SPDX-License-Identifier: Apache-2.0
/* requests.c: many requests in one batch, an adapter each.  Usage: requests MODEL PROMPT [NAME=ADAPTER ...]
 * An engine owns a thread that steps the model. Answers arrive as events on that thread; what a request answers does
 * not depend on what runs beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { MAX_REQUESTS = 16, MAX_PROMPT = 1024, MAX_TEXT = 4096 };

typedef struct answer {
    const char *adapter; /* NULL: the model as it is */
    weft_detok *detok;
    uint64_t number; /* for weft_engine_cancel */
    char text[MAX_TEXT];
    size_t n;
} answer;

static void check(weft_status status, const weft_error *err)
{
    if (status) fprintf(stderr, "requests: %s\n", err->message), exit(1);
}

static int on_event(void *arg, const weft_event *event)
{
    answer *a = arg;
    const char *text;
    size_t length;
    if (event->kind == WEFT_EVENT_FINISHED && event->status) fprintf(stderr, "requests: %s\n", event->message);
    if (event->kind != WEFT_EVENT_TOKEN || weft_detok_push(a->detok, event->token, &text, &length, NULL)) return 0;
    if (length > MAX_TEXT - 1 - a->n) return 1; /* enough: finish this request */
    memcpy(a->text + a->n, text, length);
    a->n += length;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 3 || argc - 2 > MAX_REQUESTS)
        return fprintf(stderr, "usage: requests MODEL PROMPT [NAME=ADAPTER ...]\n"), 2;
    static answer answers[MAX_REQUESTS];
    weft_error err = {0};
    weft_model *model = NULL;
    weft_engine *engine = NULL;
    check(weft_model_open(argv[1], NULL, &model, &err), &err); /* NULL: parameters as they are by default */
    check(weft_engine_new(model, NULL, &engine, &err), &err);

    int32_t tokens[MAX_PROMPT];
    size_t n;
    const weft_tokenizer *tokenizer = weft_model_tokenizer(model);
    check(weft_tokenize(tokenizer, argv[2], strlen(argv[2]), WEFT_TOKENIZE_BOS, tokens, MAX_PROMPT, &n, &err), &err);
    for (int i = 0; i < argc - 2; i++) { /* the first without an adapter */
        answer *a = &answers[i];
        weft_request_params p;
        weft_request_params_default(&p);
        weft_request_adapter use = {.scale = 1};
        if (i) {
            char *path = strchr(argv[i + 2], '=');
            if (!path) return fprintf(stderr, "requests: %s is no NAME=ADAPTER\n", argv[i + 2]), 2;
            *path++ = 0;
            a->adapter = use.name = argv[i + 2];
            check(weft_engine_adapter_add(engine, a->adapter, path, 1, 0, &err), &err);
            p.adapters = &use, p.n_adapters = 1;
        }
        check(weft_detok_new(tokenizer, WEFT_DETOK_CONTINUE, &a->detok, &err), &err);
        p.tokens = tokens, p.n_tokens = (int32_t)n, p.max_tokens = 40, p.sampler.temperature = 0;
        p.event = on_event, p.arg = a;
        check(weft_engine_submit(engine, &p, &a->number, NULL, &err), &err);
    }
    weft_engine_drain(engine, 600000); /* until all have finished, or ten minutes */
    for (int i = 0; i < argc - 2; i++) {
        printf("--- %s\n%s%s\n", answers[i].adapter ? answers[i].adapter : "base", argv[2], answers[i].text);
        weft_detok_free(&answers[i].detok);
    }
    weft_engine_free(&engine);
    weft_model_close(&model);
    return 0;
}
