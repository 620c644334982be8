/* absent.c: the commands that this build was configured without (WEFT_HUB, WEFT_SERVER of CMakeLists.txt): they say so, and the remedy. */
#include <stdio.h>

#include "commands.h"
#include "options.h"

static int refuse(const char *command, const char *option, const char *library)
{
    fprintf(stderr, "weft %s: this build has no '%s' (-D%s=OFF): build with -D%s=ON, which needs %s\n", command, command, option,
            option, library);
    return EXIT_FAILED;
}

#define ABSENT(command, option, library)                                                                                         \
    int cmd_##command(int argc, char **argv)                                                                                     \
    {                                                                                                                            \
        (void)argc;                                                                                                              \
        (void)argv;                                                                                                              \
        return refuse(#command, option, library);                                                                                \
    }

#if !WEFT_WITH_HUB
ABSENT(pull, "WEFT_HUB", "libcurl")
ABSENT(list, "WEFT_HUB", "libcurl")
ABSENT(rm, "WEFT_HUB", "libcurl")
ABSENT(top, "WEFT_HUB", "libcurl")
#endif
#if !WEFT_WITH_SERVER
ABSENT(serve, "WEFT_SERVER", "GnuTLS")
#endif
