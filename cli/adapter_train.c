// SPDX-License-Identifier: Apache-2.0
/* adapter_train.c: weft adapter train: a LoRA adapter from records of conversations, or from pairs of answers. */
#include <stdio.h>
#include <string.h>

#include "adapter_train.h"
#include "losses.h"
#include "training.h"

static const char ABOUT[] =
    "Trains an adapter (LoRA: two thin matrices beside each linear layer) on a model that stays as it is, quantized or "
    "not. F.jsonl holds a\n"
    "record per line:\n"
    "  {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}, {\"role\": \"assistant\", \"content\": \"...\"}], "
    "\"tools\": [...]}\n"
    "  {\"prompt\": \"...\", \"completion\": \"...\"}\n"
    "  {\"prompt\": \"...\", \"chosen\": \"...\", \"rejected\": \"...\"}      with --loss dpo: the chosen answer is to "
    "become likelier than the rejected;\n"
    "                                                               with unlikelihood, each by itself\n"
    "with \"weight\" beside them how much the record counts (1; below 0: it is to become less likely),\n"
    "or ShareGPT's {\"conversations\": [{\"from\", \"value\"}]}, or Alpaca's {\"instruction\", \"input\", \"output\"}, "
    "or a chat that /save of\n"
    "'weft chat' saved. F.json holds a list of such records, or one.\n"
    "Conversations and prompts go through the model's chat template, and the assistant's words are learned. Other "
    "files are text, of which every\n"
    "token is learned. In DIR appear adapter.gguf (for 'weft run --adapter'), checkpoint.gguf, loss.jsonl and "
    "loss.svg. Ctrl-C saves and stops;\n"
    "--resume goes on; before the first step there is nothing to save. A few hundred records and a minute or two give "
    "a small model a new\n"
    "way of speaking: what is not given follows the data, and the steps are said before they begin.";

static void adapter_init(training *t)
{
    training_init(t);
    t->adapts = 1;
    t->p.lora_rank = 0;
    t->p.lora_alpha = 0;
    t->p.lr = 2e-3f;
    t->p.batch = 0; /* both by the data */
    t->p.epochs = 0;
    t->lr_help = "highest learning rate (2e-3)";
    t->epochs_help = "how often the data are seen; may be a fraction (2, but as often as makes 200 steps, at most 12)";
    t->batch_help = "tokens computed at once; memory grows with it (16 records of the mean length: -c to 2048)";
}

/* The table, its command's and what all trainings have. */
static void adapter_table(training *t, option_spec *table)
{
    weft_train_params *p = &t->p;
    const option_spec own[] = {
        {"data", 'd', OPT_LIST, &t->data, "F", "records to learn from; may be given several times", 0, 0, NULL},
        {"rank", 'r', OPT_INT, &p->lora_rank, "N", "(16)", 1, 1024, NULL},
        {"alpha", 0, OPT_FLOAT, &p->lora_alpha, "X", "the adapter counts alpha / rank times (as the rank)",
         OPTION_ABOVE_0, 1e6, NULL},
        {"rslora", 0, OPT_FLAG, &t->rs, NULL, "alpha / sqrt(rank) times", 0, 0, NULL},
        {"targets", 0, OPT_TEXT, &p->lora_targets, "LIST",
         "which matrices, separated by commas; ffn_down@20-29 is of those layers alone, @20-29 all in them (every "
         "linear "
         "layer: "
         "attn_q,attn_k,attn_v,attn_output,ffn_gate,ffn_up,ffn_down)",
         0, 0, NULL},
        {"exact", 0, OPT_FLAG, &t->exact, NULL,
         "products with the model in f32; without, where the processor is faster so, forward they are what serving "
         "computes, and back in BF16",
         0, 0, NULL},
    };
    int n = sizeof own / sizeof *own;
    memcpy(table, own, sizeof own);
    n += losses_options(p, &t->losses, table + n);
    training_options(t, table, n);
}

static int adapter_finish(training *t)
{
    weft_train_params *p = &t->p;
    const int rc = losses_choose(p, &t->losses);
    p->lora_rs = t->rs;
    if (!p->lora_rank && !p->init_adapter) p->lora_rank = 16;
    if (!p->lora_alpha && !p->init_adapter) p->lora_alpha = (float)p->lora_rank;
    return rc;
}

const training_kind training_of_adapters = {"adapter train", adapter_init, adapter_table, adapter_finish};

int adapter_train(int argc, char **argv)
{
    training t;
    option_spec options[TRAINING_OPTIONS];
    int first;
    adapter_init(&t);
    adapter_table(&t, options);
    const command_spec spec = {"adapter train",
                               "BASE --data F.jsonl --out DIR [options]",
                               ABOUT,
                               "  weft adapter train model.gguf --data pirate.jsonl --out pirate\n"
                               "  weft run model.gguf \"Tell me a story.\" --adapter pirate=pirate/adapter.gguf\n"
                               "  weft adapter train model.gguf --loss dpo --data pairs.jsonl --out kinder --lr 5e-4\n"
                               "  weft adapter train model.gguf --loss grpo --judge exact --data questions.jsonl --out "
                               "sums --steps 30\n",
                               options,
                               1,
                               1};
    int rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    t.p.base = argv[first];
    if ((rc = adapter_finish(&t))) return rc;
    return training_run(&t, "adapter train");
}
