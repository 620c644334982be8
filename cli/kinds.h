// SPDX-License-Identifier: Apache-2.0
/* kinds.h: commands by name: those of weft, and the kinds that some of them have (weft adapter train). */
#ifndef WEFT_CLI_KINDS_H
#define WEFT_CLI_KINDS_H

#include "options.h"

struct kind_list;

typedef struct command_kind {
    const char *name, *about;          /* one line */
    int (*run)(int argc, char **argv); /* argv[0]: its name; the exit status */
    const struct kind_list *kinds;     /* its own; NULL: none */
    int absent;                        /* this build is without it */
} command_kind;

typedef struct kind_list {
    const char *command;       /* "adapter" */
    const char *synopsis;      /* "KIND ... [options]" */
    const char *about;         /* a sentence */
    const command_kind *items; /* [n] */
    int n;
} kind_list;

/* What is called `word`; NULL: none. */
const command_kind *kind_find(const kind_list *list, const char *word);
/* The name nearest to `word` (base/near.h), or NULL. */
const char *kind_near(const kind_list *list, const char *word);
/* The kind that argv[1] names, run with what follows it; --help; or a message and EXIT_USAGE. */
int kinds_run(const kind_list *list, int argc, char **argv);

/* The table of a command's options, given to `visit` while that runs (options.h), with what the lists say of it. */
typedef void kind_visitor(const command_kind *k, const command_spec *spec, void *arg);
/* Each command and each kind, in order; those that this build is without have no table and are left out. */
void kinds_visit(const kind_list *list, kind_visitor *visit, void *arg);

/* cmd_adapter.c, cmd_eval.c, cmd_key.c, cmd_learn.c, cmd_log.c, main.c */
extern const kind_list ADAPTER_KINDS, EVAL_KINDS, KEY_KINDS, LEARN_KINDS, LOG_KINDS, COMMANDS;

#endif
