// SPDX-License-Identifier: Apache-2.0
/* faults.h: what is said when a mapped file ends before its mapping does. */
#ifndef WEFT_CLI_FAULTS_H
#define WEFT_CLI_FAULTS_H

/* Models are mapped, not copied: where one is made shorter while it is used, or its disk fails, the system ends the
 * program that reads what is gone with SIGBUS, which names nothing. From now on a message names the file, and the exit
 * status is EXIT_FAILED. Any other SIGBUS does what it did. Call it once, before there are threads. */
void faults_explain(void);

#endif
