// SPDX-License-Identifier: Apache-2.0
/* commands.h: one function per command; each takes its own argv (argv[0] the command's name) and returns the exit
 * status. */
#ifndef WEFT_CLI_COMMANDS_H
#define WEFT_CLI_COMMANDS_H

/* What of the environment commands read: a paragraph, for all of weft (main.c). */
extern const char ENVIRONMENT[];

int cmd_run(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_serve(int argc, char **argv);
int cmd_key(int argc, char **argv);
int cmd_learn(int argc, char **argv);
int cmd_log(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
int cmd_adapter(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_compile(int argc, char **argv);
int cmd_quantize(int argc, char **argv);
int cmd_imatrix(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_train_tokenizer(int argc, char **argv);
int cmd_pull(int argc, char **argv);
int cmd_push(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_fit(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_manual(int argc, char **argv);

#endif
