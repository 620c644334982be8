// SPDX-License-Identifier: Apache-2.0
/* learn_teach.h: the kinds of weft learn that make versions of adapters, or choose one. Each takes its own argv and
 * returns the exit status. */
#ifndef WEFT_CLI_LEARN_TEACH_H
#define WEFT_CLI_LEARN_TEACH_H

/* "(no key)" as `status` lists the tenant of requests without a key and without `user`, whose name is "". */
#define LEARN_NO_KEY "(no key)"
/* The tenant that --tenant names; NULL: none. */
const char *learn_tenant_named(const char *given);

int learn_teach(int argc, char **argv);
int learn_consolidate(int argc, char **argv);
int learn_rollback(int argc, char **argv);

#endif
