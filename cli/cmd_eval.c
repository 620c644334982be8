// SPDX-License-Identifier: Apache-2.0
/* cmd_eval.c: weft eval: numbers for researchers; finds the subcommand. */
#include <stddef.h>

#include "commands.h"
#include "eval.h"
#include "kinds.h"
#include "options.h"

static const command_kind KINDS[] = {
    {"logits", "the logits at every position of a token sequence", eval_logits_command, NULL, 0},
    {"documents", "perplexity of documents, each alone", eval_documents_command, NULL, 0},
    {"perplexity", "perplexity of a text; divergence from another model's probabilities", eval_perplexity_command, NULL,
     0},
    {"task", "scores on a task of lm-evaluation-harness, or of plain JSONL", eval_task_command, NULL, 0},
    {"retrieval", "whether embeddings bring texts to their queries", eval_retrieval_command, NULL, 0},
    {"kv", "what keys and values of another type cost, and a gate for it", eval_kv_command, NULL, 0},
};
const kind_list EVAL_KINDS = {"eval", "KIND MODEL [options]", "Numbers for researchers.", KINDS,
                              sizeof KINDS / sizeof *KINDS};

int cmd_eval(int argc, char **argv)
{
    return kinds_run(&EVAL_KINDS, argc, argv);
}
