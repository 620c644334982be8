// SPDX-License-Identifier: Apache-2.0
/* generate.c: continues a text, token by token.  Usage: generate MODEL TEXT [TOKENS]
 *
 * A model is loaded once; a session is one sequence of tokens with its keys and values; a sampler picks from the
 * logits. */
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

/* Called with each token, and the text that became certain with it. */
static int print(void *arg, const weft_generated *piece)
{
    (void)arg;
    fwrite(piece->text, 1, piece->length, stdout);
    fflush(stdout);
    return 0; /* another value ends the text here */
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: generate MODEL TEXT [TOKENS]\n"), 2;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    check(weft_model_open(argv[1], NULL, &model, &err), &err); /* NULL: parameters as they are by default */
    check(weft_session_new(model, NULL, &session, &err), &err);

    weft_sampler_params how;
    weft_sampler_params_default(&how);
    how.temperature = 0; /* always the likeliest token */
    check(weft_sampler_for(model, &how, &sampler, &err), &err);

    int32_t tokens[MAX_PROMPT];
    size_t n;
    check(weft_tokenize(weft_model_tokenizer(model), argv[2], strlen(argv[2]), WEFT_TOKENIZE_BOS, tokens, MAX_PROMPT,
                        &n, &err),
          &err);
    weft_generate_params p;
    weft_generate_params_default(&p);
    p.tokens = tokens, p.n_tokens = (int32_t)n;
    p.max_tokens = argc > 3 ? atoi(argv[3]) : 64;
    p.detok_flags = WEFT_DETOK_CONTINUE; /* the text goes on where the prompt's ended */
    p.callback = print;
    fputs(argv[2], stdout);
    check(weft_generate(session, sampler, &p, NULL, &err), &err);
    putchar('\n');

    weft_sampler_free(&sampler);
    weft_session_free(&session);
    weft_model_close(&model);
    return 0;
}
