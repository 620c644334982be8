// SPDX-License-Identifier: Apache-2.0
/* pull.h: pulling models, with a bar: weft pull, and what run, chat and serve offer for a model that is not there. One
 * thread. */
#ifndef WEFT_CLI_PULL_H
#define WEFT_CLI_PULL_H

#include "weft/weft.h"

/* --pull, of commands that open a model. */
extern int pull_given;
#define PULL_OPTION                                                                                                    \
    {                                                                                                                  \
        "pull", 0, OPT_FLAG, &pull_given, NULL, "fetch the model first where it is not there, without asking", 0, 0,   \
            NULL                                                                                                       \
    }

/* Fetches `name`; without a quantization that which fits (fit.h), and says on stderr why. WEFT_CANCELLED where the user
 * stops it. */
weft_status pull_shown(const char *name, weft_pull_result *result, weft_error *err);
/* Before MODEL is opened: where it is a name that was not pulled, pulls it if --pull is given or the user says so on a
 * terminal. WEFT_OK where there is nothing to do, or nobody to ask: opening says what is wrong then. */
weft_status pull_if_missing(const char *model, weft_error *err);
/* Where path is an adapter, says on stderr which base it names, and whether one of the pulled models is it. */
void pull_tell_adapter(const char *path);

#endif
