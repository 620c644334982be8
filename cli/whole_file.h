/* whole_file.h: a file that appears under its name only when it is complete. */
#ifndef WEFT_CLI_WHOLE_FILE_H
#define WEFT_CLI_WHOLE_FILE_H

#include <stdio.h>

#include "weft/error.h"

typedef struct whole_file {
    FILE *f; /* write here; NULL when not open */
    char *path, *temporary;
} whole_file;

/* Opens a temporary file beside `path`. On failure nothing needs to be abandoned. */
weft_status whole_file_open(whole_file *w, const char *path, weft_error *err);
/* Flushes it to the disk and renames it; on failure removes it, and `path` is as it was. */
weft_status whole_file_finish(whole_file *w, weft_error *err);
/* Removes what was not finished; nothing on one that is zeroed or finished. */
void whole_file_abandon(whole_file *w);
weft_status whole_file_failed(const whole_file *w, weft_error *err); /* errno, with the path */

#endif
