// SPDX-License-Identifier: Apache-2.0
/* options.h: a subcommand's options as a table: parsing, range checks and help come from the one table. */
#ifndef WEFT_CLI_OPTIONS_H
#define WEFT_CLI_OPTIONS_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2

typedef enum option_kind {
    OPT_FLAG,    /* int *: set to 1 */
    OPT_INT,     /* int32_t *: within [min, max] */
    OPT_SEED,    /* uint64_t * */
    OPT_FLOAT,   /* float *: within [min, max] */
    OPT_DOUBLE,  /* double *: the same, where a share of many must not be off by one */
    OPT_TEXT,    /* const char ** */
    OPT_LIST,    /* struct text_list *: may be given several times */
    OPT_INT_LIST /* struct int_list *: comma-separated, each within [min, max] */
} option_kind;

/* Bounds of an OPT_FLOAT that are none of its values, or all. */
#define OPTION_ABOVE_0 ((double)FLT_MIN)
#define OPTION_FINITE ((double)FLT_MAX)

#define LIST_MAX 64
struct text_list {
    int n;
    const char *items[LIST_MAX];
};
struct int_list {
    int n;
    int32_t items[LIST_MAX];
};

typedef struct option_spec {
    const char *name; /* "temp"; NULL ends the table */
    char letter;      /* 't', or 0 */
    option_kind kind;
    void *out;
    const char *argument; /* "T", for help; NULL for flags */
    const char *help;
    /* both 0: no check. For numbers: OPTION_ABOVE_0 excludes 0, -OPTION_FINITE and OPTION_FINITE only infinities */
    double min, max;
    int *given; /* set to 1 when the option occurs; may be NULL */
    /* of an OPT_TEXT: those that it may be, with blanks between; NULL: any. Of an OPT_INT: one that stands for -1 */
    const char *words;
    /* Of an OPT_TEXT, or of each value of an OPT_LIST: whether it is right; if not, why. `words` are then some of many.
     * NULL: words say. */
    int (*check)(const char *value, char *why, size_t room);
} option_spec;

typedef struct command_spec {
    const char *name;     /* "run" */
    const char *synopsis; /* "MODEL [PROMPT] [options]" */
    const char *about;    /* a paragraph */
    const char *examples; /* lines */
    const option_spec *options;
    int min_args, max_args; /* positional; max -1: any */
} command_spec;

/* From now on options_parse gives each table to `visit` and parses nothing, as if --help stood there: so what is made
 * of all tables (manual pages, completions) asks the commands themselves. NULL ends it. One thread. */
typedef void option_visitor(const command_spec *spec, void *arg);
void options_visit(option_visitor *visit, void *arg);

/* Parses argv (argv[0] is the command's name). Positional arguments are moved to the end of argv from *first on.
 * Where the table says MODEL (the synopsis' first word, BASE and IN too, or an option's argument) a known model's short
 * name becomes its OWNER/NAME (known.h). Returns EXIT_DONE; -1 after --help was printed; or EXIT_USAGE after a message.
 */
int options_parse(const command_spec *spec, int argc, char **argv, int *first);

/* Did the option occur in the last options_parse? */
int options_given(const command_spec *spec, const char *name);
/* The name of an option that is nearest to `name` (base/near.h), or NULL. */
const char *options_near(const command_spec *spec, const char *name);
/* Gives an option its value as a file has it: values[0..n), of a flag "true" or "false". only_look: nothing is stored.
 * The values must stay. 1; or 0 with what is wrong in why. */
int options_set(const command_spec *spec, const char *name, const char *const *values, size_t n, int only_look,
                char *why, size_t room);

#endif
