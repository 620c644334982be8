// SPDX-License-Identifier: Apache-2.0
/* known.h: well-known models by short names: the table known.def, then known.json of the user's configuration folder
 * (an array of objects with name and repository, and, where they are known, files, parameters, licence, source), whose
 * names go before the table's. One thread. */
#ifndef WEFT_CLI_KNOWN_H
#define WEFT_CLI_KNOWN_H

#include <stddef.h>

#include "weft/error.h"

/* Of what is not known: "". */
typedef struct known_model {
    const char *name, *repository, *files, *parameters, *licence, *source;
    int is_own; /* of the user's file */
} known_model;

typedef void known_fn(void *arg, const known_model *m);
/* Calls `each` for the user's, then for the table's but for those that have a name of the user's. WEFT_FORMAT
 * where the user's file is none, naming it and what is wrong. */
weft_status known_each(known_fn *each, void *arg, weft_error *err);
/* OWNER/NAME, with the ":WHAT" that NAME has, for a NAME of the list; 0: there is none. */
int known_find(const char *name, char *out, size_t room);
/* What MODEL of a command stands for: OWNER/NAME for a NAME of the list, unless a file or folder is called so; all else
 * as it is. The text lives as long as the program. */
const char *known_model_of(const char *model);

#endif
