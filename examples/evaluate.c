// SPDX-License-Identifier: Apache-2.0
/* evaluate.c: what an adapter does to a model.  Usage: evaluate MODEL ADAPTER TEXT QUESTIONS.jsonl
 *
 * Tells how well the model with the adapter predicts a text, how far it is from the model alone there (what it makes it
 * forget), and how many questions it answers rightly. A line of QUESTIONS is {"prompt": "...", "choices": ["...",
 * "..."], "answer": 0}. */
#include <stdio.h>
#include <stdlib.h>

#include <weft/eval.h>
#include <weft/weft.h>

static int failed(const weft_error *err)
{
    return fprintf(stderr, "evaluate: %s\n", err->message), 1;
}

static int of_text(weft_model *model, const weft_adapter_use *use, const char *path)
{
    static char text[1 << 16];
    weft_error err = {0};
    FILE *f = fopen(path, "r");
    if (!f) return perror(path), 1;
    const weft_perplexity_text one = {.text = text, .n = fread(text, 1, sizeof text, f)};
    fclose(f);
    weft_perplexity_params p;
    weft_perplexity_params_default(&p);
    p.form = WEFT_PERPLEXITY_TEXTS; /* every token of it; WEFT_PERPLEXITY_CHUNKS is llama-perplexity's way */
    p.adapters = use;
    p.n_adapters = 1;
    p.base = model;
    weft_perplexity_result r = {.size = sizeof r};
    if (weft_perplexity(model, &one, 1, &p, &r, &err)) return failed(&err);
    printf("perplexity %.3f, %.3f without the adapter\n", r.perplexity.value, r.base_perplexity.value);
    printf("KL %.5f, the same likeliest token at %.1f %%\n", r.kl.value, 100 * r.same_top.value);
    return 0;
}

static int of_questions(weft_engine *engine, const char *path)
{
    weft_error err = {0};
    weft_task *task = NULL;
    weft_scores *scores = NULL;
    weft_score score = {.size = sizeof score};
    const weft_request_adapter named = {.name = "own", .scale = 1};
    weft_eval_params p;
    weft_eval_params_default(&p);
    p.adapters = &named;
    p.n_adapters = 1;
    if (weft_task_open(path, NULL, &task, &err) || weft_eval_task(engine, task, &p, &scores, &err)) return failed(&err);
    weft_scores_get(scores, 0, &score, &err);
    printf("%s %.3f [%.3f, %.3f]\n", score.metric, score.value, score.low, score.high);
    weft_scores_free(&scores);
    weft_task_close(&task);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "usage: evaluate MODEL ADAPTER TEXT QUESTIONS.jsonl\n"), 2;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_engine *engine = NULL;
    weft_adapter_use use = {.scale = 1};
    if (weft_model_open(argv[1], NULL, &model, &err)) return failed(&err);
    weft_adapter_file *file = NULL;
    if (weft_adapter_file_open(argv[2], weft_model_file(model), &file, &err)) return failed(&err);
    use.file = file;
    int status = of_text(model, &use, argv[3]);
    if (weft_engine_new(model, NULL, &engine, &err) || weft_engine_adapter_add(engine, "own", argv[2], 1, 0, &err))
        return failed(&err);
    if (!status) status = of_questions(engine, argv[4]);
    weft_engine_free(&engine);
    weft_adapter_file_close(&file);
    weft_model_close(&model);
    return status;
}
