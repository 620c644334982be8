// SPDX-License-Identifier: Apache-2.0
/* threads.c: threads per core, by machine, in machines.json of the cache:
 *   {"PROCESSOR, 64 cores, 128 processors": {"threads_per_core": 2}}
 * so that machines which share a home do not mix theirs up. What is missing or damaged says nothing. */
#include "threads.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/place.h"
#include "kept.h"

enum { KEY_BYTES = 192 };

static const char NAME[] = "machines.json";

static void key_of(const weft_machine *m, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%s, %d cores, %d processors", m->processor, m->n_cores, m->n_cpus);
}

int32_t threads_to_use(int32_t asked)
{
    weft_machine m = {.size = sizeof m};
    char path[PATH_MAX], key[KEY_BYTES];
    const char *wish = getenv("WEFT_THREADS");
    int64_t per_core = 0;
    if (asked > 0 || (wish && *wish)) return asked;
    if (weft__place_in_cache(path, sizeof path, NAME) != 1 || access(path, R_OK)) return asked;
    weft__json *kept = kept_read(path);
    if (!kept || weft_machine_describe(&m, NULL)) m.n_threads_smt = 0;
    key_of(&m, key);
    weft__json_int(weft__json_get(weft__json_get(kept, key), "threads_per_core"), &per_core);
    weft__json_free(&kept);
    return per_core == 2 ? m.n_threads_smt : 0;
}

int threads_keep(const weft_machine *m, int threads_per_core)
{
    char path[PATH_MAX], key[KEY_BYTES];
    if (weft__place_in_cache(path, sizeof path, NAME) != 1) return 0;
    weft__json *entry = weft__json_new_object();
    key_of(m, key);
    if (weft__json_set(entry, "threads_per_core", weft__json_new_int(threads_per_core)))
        return kept_put(path, key, entry);
    weft__json_free(&entry);
    return 0;
}
