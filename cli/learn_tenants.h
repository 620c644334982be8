// SPDX-License-Identifier: Apache-2.0
/* learn_tenants.h: whose records a command of weft learn is about: --tenant, as people write it, held against the
 * tenants that a store has. One thread. */
#ifndef WEFT_CLI_LEARN_TENANTS_H
#define WEFT_CLI_LEARN_TENANTS_H

#include "learn/store.h"

/* "(no key)" as `status` lists the tenant of requests without a key and without `user`, whose name is "". */
#define LEARN_NO_KEY "(no key)"

/* For the help of commands that take --tenant. */
#define LEARN_TENANTS_HELP                                                                                             \
    "A tenant is a key (key- and 12 digits of its hash) or, of a server without keys, the user that requests name\n"   \
    "(user- and that name); '(no key)' are those that name none."

/* The tenant that --tenant names; NULL: none. */
const char *learn_tenant_named(const char *given);
/* As it is shown to people. */
const char *learn_tenant_shown(const char *name);

/* Whether the store has the tenant `given` (learn_tenant_named made it). 0 after a message that names those that there
 * are; *rc is the exit status then. */
int learn_tenant_is_there(const char *command, weft__learn_store *store, const char *given, int *rc);
/* The same of the store in `dir`, before work that takes long; given NULL: none is meant, which is fine. 1 also where
 * there is no store: who opens it says so. */
int learn_tenant_is_in(const char *command, const char *dir, const char *given, int *rc);
/* The tenant that is meant: given, or the only one that there is, which only_one [WEFT__LEARN_TENANT] gets. NULL after
 * a message. */
const char *learn_tenant_settle(const char *command, weft__learn_store *store, const char *given, char *only_one,
                                int *rc);

#endif
