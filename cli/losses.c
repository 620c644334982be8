// SPDX-License-Identifier: Apache-2.0
/* losses.c: see losses.h. */
#include "losses.h"

#include <stdio.h>
#include <string.h>

/* What losses are called, by weft_train_loss. */
static const char *const LOSSES[] = {"sft",  "dpo",     "unlikelihood", "reward", "filtered",
                                     "grpo", "dr-grpo", "distill",      "infonce"};
enum { N_LOSSES = sizeof LOSSES / sizeof *LOSSES };

/* 0 after a message: an option was given that this loss does not use. */
static int fits_loss(const weft_train_params *p, const losses_given *g)
{
    const int32_t loss = p->loss;
    const int samples = loss == WEFT_TRAIN_GRPO || loss == WEFT_TRAIN_DR_GRPO;
    const struct {
        const char *option, *losses;
        int given, used;
    } all[] = {{"--beta", "dpo, reward, grpo and dr-grpo", g->beta_given,
                loss == WEFT_TRAIN_DPO || loss == WEFT_TRAIN_REWARD || samples},
               {"--group", "grpo and dr-grpo", g->group_given, samples},
               {"--prompts", "grpo and dr-grpo", g->prompts_given, samples},
               {"--answer-tokens", "grpo and dr-grpo", g->answer_given, samples},
               {"--judge", "grpo and dr-grpo", p->rule != NULL, samples},
               {"--verifier", "grpo and dr-grpo", p->verifier != NULL, samples},
               {"--teacher", "distill", p->teacher != NULL, loss == WEFT_TRAIN_DISTILL},
               {"--top", "distill", g->top_given, loss == WEFT_TRAIN_DISTILL},
               {"--smoothing", "dpo", g->smoothing_given, loss == WEFT_TRAIN_DPO},
               {"--chosen", "dpo", g->chosen_given, loss == WEFT_TRAIN_DPO},
               {"--temperature", "infonce", g->temperature_given, loss == WEFT_TRAIN_INFONCE},
               {"--reward-min", "filtered", g->reward_min_given, loss == WEFT_TRAIN_FILTERED}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].given && !all[i].used) {
            fprintf(stderr, "weft adapter train: %s is for --loss %s; leave it out\n", all[i].option, all[i].losses);
            return 0;
        }
    return 1;
}

int losses_choose(weft_train_params *p, const losses_given *g)
{
    if (g->dpo && g->name && strcmp(g->name, "dpo") != 0) {
        fprintf(stderr, "weft adapter train: --dpo is --loss dpo; give one of --dpo and --loss %s\n", g->name);
        return EXIT_USAGE;
    }
    p->loss = g->dpo ? WEFT_TRAIN_DPO : WEFT_TRAIN_SFT;
    if (g->name)
        for (p->loss = 0; p->loss < N_LOSSES && strcmp(LOSSES[p->loss], g->name) != 0;) p->loss++;
    if (p->loss == N_LOSSES) {
        fprintf(stderr,
                "weft adapter train: --loss is sft, dpo, unlikelihood, reward, filtered, grpo, dr-grpo, distill or "
                "infonce, not %s\n",
                g->name);
        return EXIT_USAGE;
    }
    if (!fits_loss(p, g)) return EXIT_USAGE;
    if ((p->loss == WEFT_TRAIN_GRPO || p->loss == WEFT_TRAIN_DR_GRPO) && !p->rule == !p->verifier) {
        fprintf(stderr, "weft adapter train: --loss %s: who judges the answers? Give --judge or --verifier\n", g->name);
        return EXIT_USAGE;
    }
    if (p->loss == WEFT_TRAIN_DISTILL && !p->teacher) {
        fprintf(stderr, "weft adapter train: --loss distill: whose tokens? Give --teacher MODEL\n");
        return EXIT_USAGE;
    }
    if (p->loss == WEFT_TRAIN_DPO) p->dpo_beta = g->beta_given ? g->beta : 0.1f;
    else p->beta = p->loss == WEFT_TRAIN_INFONCE ? g->temperature : g->beta;
    return EXIT_DONE;
}

int losses_options(weft_train_params *p, losses_given *g, option_spec *table)
{
    const option_spec own[] = {
        {"loss", 0, OPT_TEXT, &g->name, "NAME",
         "what is minimised: sft; of pairs dpo or unlikelihood; of records with a \"reward\" reward or filtered; of "
         "answers that are sampled and judged grpo or dr-grpo; of what another model says distill; of texts to tell "
         "apart by "
         "their embeddings infonce (sft)",
         0, 0, NULL},
        {"dpo", 0, OPT_FLAG, &g->dpo, NULL, "as --loss dpo", 0, 0, NULL},
        {"beta", 0, OPT_FLOAT, &g->beta, "X",
         "dpo: how near to the base the adapter stays (0.1); reward: the smaller, the more the best answers count (1); "
         "grpo: weight of the KL to the base (0)",
         OPTION_ABOVE_0, 1000, &g->beta_given},
        {"temperature", 0, OPT_FLOAT, &g->temperature, "X",
         "infonce: cosines are divided by it; the smaller, the more the nearest wrong texts count (0.05)", 0.001, 1000,
         &g->temperature_given},
        {"smoothing", 0, OPT_FLOAT, &p->smoothing, "X", "dpo: share of the pairs that may be the wrong way round (0)",
         0, 0.5, &g->smoothing_given},
        {"chosen", 0, OPT_FLOAT, &p->chosen, "X",
         "dpo: weight of the chosen answer's own likelihood, which DPO alone may lower (0)", 0, 100, &g->chosen_given},
        {"reward-min", 0, OPT_FLOAT, &p->reward_min, "X", "filtered: the least reward of a record that is learned (0)",
         -1e6, 1e6, &g->reward_min_given},
        {"judge", 0, OPT_TEXT, &p->rule, "RULE",
         "grpo: exact, contains, number or json: how an answer is held against the record's own", 0, 0, NULL},
        {"verifier", 0, OPT_TEXT, &p->verifier, "COMMAND",
         "grpo: a program that judges instead: for each line {\"prompt\", \"answer\", \"reference\"} it writes a line "
         "with a number",
         0, 0, NULL},
        {"teacher", 0, OPT_TEXT, &p->teacher, "MODEL",
         "distill: a model with the same vocabulary, whose likeliest tokens are the target", 0, 0, NULL},
        {"top", 0, OPT_INT, &p->teacher_top, "N", "distill: how many of them (64)", 1, 4096, &g->top_given},
        {"group", 0, OPT_INT, &p->group, "N", "grpo: answers to each prompt (8)", 2, 1024, &g->group_given},
        {"prompts", 0, OPT_INT, &p->prompts, "N", "grpo: prompts of a step, times --accumulate (8)", 1, 4096,
         &g->prompts_given},
        {"answer-tokens", 0, OPT_INT, &p->answer_tokens, "N", "grpo: tokens of an answer at most (64)", 1, 65536,
         &g->answer_given},
        {"norm-cap", 0, OPT_FLOAT, &p->norm_cap, "X",
         "the adapter's change of a matrix is at most so large a part of it (any; 0.01 is gentle)", OPTION_ABOVE_0, 1e6,
         NULL},
        {"anchor", 0, OPT_FLOAT, &p->anchor, "X",
         "weight of the KL divergence from the base at every learned token (0): forgets less, learns slower", 0, 1000,
         NULL},
    };
    memcpy(table, own, sizeof own);
    return (int)(sizeof own / sizeof *own);
}
