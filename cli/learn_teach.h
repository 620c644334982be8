// SPDX-License-Identifier: Apache-2.0
/* learn_teach.h: the kinds of weft learn that make versions of adapters, or choose one. Each takes its own argv and
 * returns the exit status. */
#ifndef WEFT_CLI_LEARN_TEACH_H
#define WEFT_CLI_LEARN_TEACH_H

int learn_teach(int argc, char **argv);
int learn_consolidate(int argc, char **argv);
int learn_rollback(int argc, char **argv);

#endif
