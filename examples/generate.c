/* generate.c: continues a text, token by token.  Usage: generate MODEL TEXT [TOKENS]
 *
 * A model is loaded once; a session is one sequence of tokens with its keys and values; a sampler picks from the logits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { MAX_PROMPT = 4096 };

/* Every function that can fail returns a status and fills an error whose message names the thing and the remedy. */
static void check(weft_status status, const weft_error *err)
{
    if (!status) return;
    fprintf(stderr, "generate: %s\n", err->message);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: generate MODEL TEXT [TOKENS]\n"), 2;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    weft_detok *detok = NULL;
    weft_model_params mp;
    weft_session_params sp;
    weft_model_params_default(&mp);
    weft_session_params_default(&sp);
    check(weft_model_open(argv[1], &mp, &model, &err), &err);
    check(weft_session_new(model, &sp, &session, &err), &err);

    weft_sampler_params how;
    weft_sampler_params_default(&how);
    how.temperature = 0; /* always the likeliest token */
    weft_model_info info = {.size = sizeof info};
    check(weft_model_describe(model, &info, &err), &err);
    check(weft_sampler_for(model, &how, &sampler, &err), &err);

    const weft_tokenizer *tokenizer = weft_model_tokenizer(model);
    int32_t tokens[MAX_PROMPT], token;
    size_t n, length;
    const char *text;
    check(weft_tokenize(tokenizer, argv[2], strlen(argv[2]), WEFT_TOKENIZE_BOS, tokens, MAX_PROMPT, &n, &err), &err);
    check(weft_detok_new(tokenizer, WEFT_DETOK_CONTINUE, &detok, &err), &err);
    float *logits = malloc((size_t)info.n_vocab * sizeof *logits);
    if (!logits) return fprintf(stderr, "generate: no memory for logits\n"), 1;

    check(weft_session_eval(session, tokens, (int32_t)n, 0, logits, &err), &err);
    fputs(argv[2], stdout);
    for (int left = argc > 3 ? atoi(argv[3]) : 64; left > 0; left--) {
        check(weft_sampler_pick(sampler, logits, &token, &err), &err);
        check(weft_sampler_accept(sampler, token, &err), &err); /* for penalties */
        if (weft_token_is_end(tokenizer, token)) break;
        check(weft_detok_push(detok, token, &text, &length, &err), &err);
        fwrite(text, 1, length, stdout);
        fflush(stdout);
        if (left > 1) check(weft_session_eval(session, &token, 1, 0, logits, &err), &err);
    }
    putchar('\n');

    free(logits);
    weft_detok_free(&detok);
    weft_sampler_free(&sampler);
    weft_session_free(&session);
    weft_model_close(&model);
    return 0;
}
