// SPDX-License-Identifier: Apache-2.0
/* eval.h: the subcommands of weft eval; each takes its own argv (argv[0] its name) and returns the exit status. */
#ifndef WEFT_CLI_EVAL_H
#define WEFT_CLI_EVAL_H

int eval_logits_command(int argc, char **argv);
int eval_documents_command(int argc, char **argv);
int eval_perplexity_command(int argc, char **argv);
int eval_kv_command(int argc, char **argv);
int eval_task_command(int argc, char **argv);
int eval_retrieval_command(int argc, char **argv);

#endif
