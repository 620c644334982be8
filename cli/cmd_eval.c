// SPDX-License-Identifier: Apache-2.0
/* cmd_eval.c: weft eval: numbers for researchers; finds the subcommand. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "eval.h"
#include "near.h"
#include "options.h"

static const struct {
    const char *name, *about;
    int (*run)(int argc, char **argv);
} KINDS[] = {
    {"logits", "the logits at every position of a token sequence", eval_logits_command},
    {"documents", "perplexity of documents, each alone", eval_documents_command},
    {"perplexity", "perplexity of a text; divergence from another model's probabilities", eval_perplexity_command},
};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static void usage(FILE *f)
{
    fprintf(f, "weft eval KIND MODEL [options]\n\nNumbers for researchers. 'weft eval KIND --help' explains "
               "each.\n\nOptions: those of each kind\n\n");
    for (int i = 0; i < N_KINDS; i++) fprintf(f, "  %-12s %s\n", KINDS[i].name, KINDS[i].about);
}

static const char *kind_name(const void *arg, size_t i)
{
    (void)arg;
    return i < N_KINDS ? KINDS[i].name : NULL;
}

int cmd_eval(int argc, char **argv)
{
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        usage(stdout);
        return EXIT_DONE;
    }
    for (int i = 0; argc > 1 && i < N_KINDS; i++)
        if (!strcmp(argv[1], KINDS[i].name)) return KINDS[i].run(argc - 1, argv + 1);
    const char *meant = argc > 1 ? near_match(argv[1], kind_name, NULL) : NULL;
    if (meant) fprintf(stderr, "weft eval: there is no '%s'; did you mean 'weft eval %s'?\n", argv[1], meant);
    else if (argc > 1) fprintf(stderr, "weft eval: there is no '%s'\n", argv[1]);
    if (!meant) usage(stderr);
    return EXIT_USAGE;
}
