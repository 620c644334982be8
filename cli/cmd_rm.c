// SPDX-License-Identifier: Apache-2.0
/* cmd_rm.c: weft rm: removes pulled models. */
#include <stdio.h>

#include "commands.h"
#include "known.h"
#include "options.h"
#include "terminal.h"

int cmd_rm(int argc, char **argv)
{
    const option_spec options[] = {{0}};
    const command_spec spec = {"rm",
                               "OWNER/NAME[:FILE-OR-QUANTIZATION]|NAME...",
                               "Removes models that 'weft pull' fetched, unfinished ones too: OWNER/NAME all that is "
                               "there of it, with ':' one file.\n"
                               "Nothing outside the cache is ever touched.",
                               NULL,
                               options,
                               1,
                               -1};
    int first, failed = 0, rc = options_parse(&spec, argc, argv, &first);
    if (rc) return rc < 0 ? EXIT_DONE : rc;
    for (int i = first; i < argc; i++) {
        weft_error err = {0};
        uint64_t n_bytes;
        char known[1400];
        const char *name = known_find(argv[i], known, sizeof known) ? known : argv[i];
        if (weft_pulled_remove(name, &n_bytes, &err)) failed = report("rm", &err);
        else fprintf(stderr, "%s: removed, %.3f GB\n", name, (double)n_bytes / 1e9);
    }
    return failed ? EXIT_FAILED : EXIT_DONE;
}
