// SPDX-License-Identifier: Apache-2.0
/* threads.h: how many threads run, chat and serve use where nobody said it: what weft doctor found on this machine. */
#ifndef WEFT_CLI_THREADS_H
#define WEFT_CLI_THREADS_H

#include "weft/weft.h"

/* `asked` where that is above 0; else what was kept for this machine, as long as it still has as many processors and
 * WEFT_THREADS is not set; else 0. */
int32_t threads_to_use(int32_t asked);
/* Keeps what was found for this machine: threads per core, 1 or 2. 0: it could not be written. */
int threads_keep(const weft_machine *machine, int threads_per_core);

#endif
