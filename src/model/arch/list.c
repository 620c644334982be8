// SPDX-License-Identifier: Apache-2.0
/* list.c: architectures by name. */
#include <string.h>

#include "model/arch/arch.h"

#define ADDRESS(name) &weft__arch_##name,
static const weft__arch *const ALL[] = {WEFT__ARCH_LIST(ADDRESS)};
#undef ADDRESS

#define NAME(name) #name,
static const char *const NAMES[] = {WEFT__ARCH_LIST(NAME) NULL};
#undef NAME

const weft__arch *weft__arch_find(const char *name)
{
    for (size_t i = 0; i < sizeof ALL / sizeof *ALL; i++)
        if (!strcmp(ALL[i]->name, name)) return ALL[i];
    return NULL;
}

const char *const *weft__arch_names(void)
{
    return NAMES;
}
