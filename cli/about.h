// SPDX-License-Identifier: Apache-2.0
/* about.h: weft --version: what this program is. */
#ifndef WEFT_CLI_ABOUT_H
#define WEFT_CLI_ABOUT_H

/* On stdout: the version, alone in the first line; then the commit, the processor with the tiers of kernels that may
 * run on it, and the plugins that --provider finds by name. Returns the exit status. */
int about_version(void);

#endif
