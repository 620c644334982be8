// SPDX-License-Identifier: Apache-2.0
/* learn_tenants.c: see learn_tenants.h. */
#include "learn_tenants.h"

#include <stdio.h>
#include <string.h>

#include "options.h"
#include "terminal.h"

enum { TOLD = 8 /* tenants that a message names */ };

static const char user_prefix[] = "user-";

/* The first tenants of a store, and what is to be known of them all. */
typedef struct tenant_list {
    const char *given; /* NULL: none */
    int n, has_given, has_user;
    char first[TOLD][WEFT__LEARN_TENANT];
} tenant_list;

static int note_tenant(void *arg, const char *name)
{
    tenant_list *t = arg;
    if (t->n < TOLD) snprintf(t->first[t->n], sizeof t->first[t->n], "%s", name);
    t->n++;
    if (!t->given) return 0;
    t->has_given |= !strcmp(name, t->given);
    t->has_user |=
        !strncmp(name, user_prefix, sizeof user_prefix - 1) && !strcmp(name + sizeof user_prefix - 1, t->given);
    return 0;
}

const char *learn_tenant_named(const char *given)
{
    return given && !strcmp(given, LEARN_NO_KEY) ? "" : given;
}

const char *learn_tenant_shown(const char *name)
{
    return *name ? name : LEARN_NO_KEY;
}

static void print_tenant(const char *name)
{
    fputc('\'', stderr);
    print_clean(stderr, learn_tenant_shown(name), strlen(learn_tenant_shown(name)), 0);
    fputc('\'', stderr);
}

static void print_tenants(const tenant_list *t)
{
    const int told = t->n < TOLD ? t->n : TOLD;
    if (!t->n) fputs("; nothing is kept there of anybody\n", stderr);
    if (!t->n) return;
    fputs("; there is ", stderr);
    for (int i = 0; i < told; i++) {
        if (i) fputs(i + 1 == t->n ? " and " : ", ", stderr);
        print_tenant(t->first[i]);
    }
    if (t->n > told) fprintf(stderr, ", and %d more ('weft learn status' lists them)", t->n - told);
    fputc('\n', stderr);
}

static int list_tenants(const char *command, weft__learn_store *store, tenant_list *out, int *rc)
{
    weft_error err = {0};
    if (!weft__learn_tenants(store, note_tenant, out, &err)) return 1;
    *rc = report(command, &err);
    return 0;
}

int learn_tenant_is_there(const char *command, weft__learn_store *store, const char *given, int *rc)
{
    tenant_list all = {.given = given};
    if (!list_tenants(command, store, &all, rc)) return 0;
    if (all.has_given) return 1;
    fprintf(stderr, "weft %s: nothing is kept of ", command);
    print_tenant(given);
    if (all.has_user) {
        fprintf(stderr, "; did you mean '%s", user_prefix);
        print_clean(stderr, given, strlen(given), 0);
        fputs("'?\n", stderr);
    } else print_tenants(&all);
    *rc = EXIT_FAILED;
    return 0;
}

int learn_tenant_is_in(const char *command, const char *dir, const char *given, int *rc)
{
    weft__learn_store *store = NULL;
    if (!given || weft__learn_open(&(weft__learn_options){.dir = dir, .exists = 1, .read_only = 1}, &store, NULL))
        return 1;
    const int is_there = learn_tenant_is_there(command, store, given, rc);
    weft__learn_close(&store);
    return is_there;
}

const char *learn_tenant_settle(const char *command, weft__learn_store *store, const char *given, char *only_one,
                                int *rc)
{
    tenant_list all = {0};
    if (given) return learn_tenant_is_there(command, store, given, rc) ? given : NULL;
    if (!list_tenants(command, store, &all, rc)) return NULL;
    if (all.n == 1) return memcpy(only_one, all.first[0], WEFT__LEARN_TENANT);
    fprintf(stderr, "weft %s: ", command);
    if (all.n) {
        fputs("--tenant is missing: whose", stderr);
        print_tenants(&all);
    } else fputs("nothing is kept there\n", stderr);
    *rc = all.n ? EXIT_USAGE : EXIT_FAILED;
    return NULL;
}
