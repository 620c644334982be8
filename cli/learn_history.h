// SPDX-License-Identifier: Apache-2.0
/* learn_history.h: what was said of a tenant's answers and what became of its adapter, as tables or as lines of JSON on
 * stdout. One thread. */
#ifndef WEFT_CLI_LEARN_HISTORY_H
#define WEFT_CLI_LEARN_HISTORY_H

#include "learn/store.h"

/* "2026-11-30 09:00", UTC; 0: "-". */
const char *learn_time_text(int64_t ms, char out[32]);

weft_status learn_history_print(weft__learn_store *store, const char *tenant, int as_json, weft_error *err);

#endif
