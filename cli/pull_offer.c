// SPDX-License-Identifier: Apache-2.0
/* pull_offer.c: a model that is to be opened and was not pulled (pull.h). */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pull.h"

/* OWNER/NAME or OWNER/NAME:WHAT, and nothing else that a path could be. */
static int is_name(const char *model)
{
    const char *slash = strchr(model, '/');
    return slash && slash > model && slash[1] && model[0] != '.' && model[0] != '~' &&
           !memchr(slash + 1, '/', strcspn(slash + 1, ":"));
}

/* Is OWNER a folder here? Then a file in it was meant, whose name is misspelled, and nobody is asked. */
static int is_in_folder(const char *model)
{
    char owner[256];
    struct stat s;
    snprintf(owner, sizeof owner, "%.*s", (int)strcspn(model, "/"), model);
    return !stat(owner, &s) && S_ISDIR(s.st_mode);
}

static int agrees(const char *model)
{
    char line[64];
    fprintf(stderr, "%.200s is not here. Pull it? [Y/n] ", model);
    fflush(stderr);
    if (!fgets(line, sizeof line, stdin)) return 0;
    return line[0] == '\n' || line[0] == 'y' || line[0] == 'Y';
}

weft_status pull_if_missing(const char *model, weft_error *err)
{
    char path[4096];
    weft_pull_result result;
    if (!is_name(model) || !weft_resolve_model(model, path, sizeof path, NULL)) return WEFT_OK;
    if (!pull_given && (is_in_folder(model) || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) || !agrees(model)))
        return WEFT_OK;
    return pull_shown(model, &result, err);
}
