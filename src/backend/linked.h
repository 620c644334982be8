// SPDX-License-Identifier: Apache-2.0
/* linked.h: the entries of the providers that are linked in; each has the contract of a plugin's weft_backend_entry. */
#ifndef WEFT_BACKEND_LINKED_H
#define WEFT_BACKEND_LINKED_H

#include "weft/backend.h"

const weft_backend_api *weft__cpu_entry(uint32_t host_abi);

#endif
