// SPDX-License-Identifier: Apache-2.0
/* absent.c: the commands that this build was configured without (WEFT_HUB, WEFT_SERVER of CMakeLists.txt): they say so,
 * and the remedy. */
#include <stdio.h>

#include "commands.h"
#include "options.h"
#include "pull.h"
#include "training.h"

static int absent_refuse(const char *command, const char *option, const char *needs)
{
    fprintf(stderr, "weft %s: this build has no '%s' (-DWEFT_%s=OFF): build with -DWEFT_%s=ON%s\n", command, command,
            option, option, needs);
    return EXIT_FAILED;
}

#define ABSENT(command, option, needs)                                                                                 \
    int cmd_##command(int argc, char **argv)                                                                           \
    {                                                                                                                  \
        (void)argc;                                                                                                    \
        (void)argv;                                                                                                    \
        return absent_refuse(#command, option, needs);                                                                 \
    }

#if !WEFT_WITH_HUB
int pull_given;

weft_status pull_if_missing(const char *model, weft_error *err)
{
    (void)model, (void)err;
    return WEFT_OK; /* opening it says that this build pulls none */
}

ABSENT(pull, "HUB", ", which needs libcurl")
ABSENT(push, "HUB", ", which needs libcurl")
ABSENT(list, "HUB", ", which needs libcurl")
ABSENT(rm, "HUB", ", which needs libcurl")
ABSENT(top, "HUB", ", which needs libcurl")
#endif
#if !WEFT_WITH_SERVER
ABSENT(serve, "SERVER", "")

int training_stages(const training *t, const command_spec *spec, int n_positional)
{
    (void)t, (void)spec, (void)n_positional;
    return absent_refuse("train", "SERVER", "");
}
#endif
