// SPDX-License-Identifier: Apache-2.0
/* kinds.c: commands by name (kinds.h). */
#include "kinds.h"

#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "options.h"

const command_kind *kind_find(const kind_list *list, const char *word)
{
    for (int i = 0; i < list->n; i++)
        if (!strcmp(word, list->items[i].name)) return &list->items[i];
    return NULL;
}

static const char *name_at(const void *arg, size_t i)
{
    const kind_list *list = arg;
    return i < (size_t)list->n ? list->items[i].name : NULL;
}

const char *kind_near(const kind_list *list, const char *word)
{
    return weft__near_match(word, name_at, list);
}

static void usage(const kind_list *list, FILE *f)
{
    fprintf(f, "weft %s %s\n\n%s 'weft %s KIND --help' explains each.\n\nOptions: those of each kind\n\n",
            list->command, list->synopsis, list->about, list->command);
    for (int i = 0; i < list->n; i++) fprintf(f, "  %-12s %s\n", list->items[i].name, list->items[i].about);
}

int kinds_run(const kind_list *list, int argc, char **argv)
{
    if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        usage(list, stdout);
        return EXIT_DONE;
    }
    const command_kind *found = argc > 1 ? kind_find(list, argv[1]) : NULL;
    if (found) return found->run(argc - 1, argv + 1);
    const char *meant = argc > 1 ? kind_near(list, argv[1]) : NULL;
    if (argc > 1) fprintf(stderr, "weft %s: there is no '%s'", list->command, argv[1]);
    if (meant) fprintf(stderr, "; did you mean 'weft %s %s'?", list->command, meant);
    if (argc > 1) putc('\n', stderr);
    if (!meant) usage(list, stderr);
    return EXIT_USAGE;
}

struct visit {
    const command_kind *kind;
    kind_visitor *visit;
    void *arg;
};

static void visit_table(const command_spec *spec, void *arg)
{
    const struct visit *v = arg;
    v->visit(v->kind, spec, v->arg);
}

void kinds_visit(const kind_list *list, kind_visitor *visit, void *arg)
{
    for (int i = 0; i < list->n; i++) {
        const command_kind *k = &list->items[i];
        char name[32];
        char *argv[] = {name, NULL};
        struct visit v = {k, visit, arg};
        snprintf(name, sizeof name, "%s", k->name);
        if (k->kinds) kinds_visit(k->kinds, visit, arg);
        else if (!k->absent) {
            options_visit(visit_table, &v);
            k->run(1, argv);
            options_visit(NULL, NULL);
        }
    }
}
