// SPDX-License-Identifier: Apache-2.0
/* adapter_train.h: the part of 'weft adapter' that learns. */
#ifndef WEFT_CLI_ADAPTER_TRAIN_H
#define WEFT_CLI_ADAPTER_TRAIN_H

/* argv[0] is "train". Returns the exit status. */
int adapter_train(int argc, char **argv);

#endif
