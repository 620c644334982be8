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
#include "places.h"

enum { FILE_BYTES = 1 << 20, KEY_BYTES = 192 };

static const char NAME[] = "machines.json";

static void key_of(const weft_machine *m, char key[KEY_BYTES])
{
    snprintf(key, KEY_BYTES, "%s, %d cores, %d processors", m->processor, m->n_cores, m->n_cpus);
}

static weft__json *read_kept(const char *path)
{
    size_t n;
    char *text = read_small(path, FILE_BYTES, &n);
    weft__json *kept = NULL;
    if (text && weft__json_parse(text, n, &kept, NULL)) kept = NULL;
    free(text);
    if (weft__json_kind_of(kept) == WEFT__JSON_OBJECT) return kept;
    weft__json_free(&kept);
    return NULL;
}

int32_t threads_to_use(int32_t asked)
{
    weft_machine m = {.size = sizeof m};
    char path[PATH_MAX], key[KEY_BYTES];
    const char *wish = getenv("WEFT_THREADS");
    int64_t per_core = 0;
    if (asked > 0 || (wish && *wish) || !place_in_cache(path, sizeof path, NAME) || access(path, R_OK)) return asked;
    weft__json *kept = read_kept(path);
    if (!kept || weft_machine_describe(&m, NULL)) m.n_threads_smt = 0;
    key_of(&m, key);
    weft__json_int(weft__json_get(weft__json_get(kept, key), "threads_per_core"), &per_core);
    weft__json_free(&kept);
    return per_core == 2 ? m.n_threads_smt : 0;
}

/* The file appears as a whole. */
static int replace(const char *path, const weft__strbuf *text)
{
    char beside[PATH_MAX];
    const int n = snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid());
    if (text->failed || n < 0 || (size_t)n >= sizeof beside || make_folders_above(path)) return 0;
    FILE *f = fopen(beside, "wbe");
    int ok = f && fwrite(text->data, 1, text->len, f) == text->len;
    if (f && fclose(f)) ok = 0;
    if (ok && !rename(beside, path)) return 1;
    remove(beside);
    return 0;
}

int threads_keep(const weft_machine *m, int threads_per_core)
{
    char path[PATH_MAX], key[KEY_BYTES];
    if (!place_in_cache(path, sizeof path, NAME)) return 0;
    weft__json *kept = read_kept(path), *entry = weft__json_new_object();
    weft__strbuf text = {0};
    if (!kept) kept = weft__json_new_object();
    key_of(m, key);
    int ok = weft__json_set(entry, "threads_per_core", weft__json_new_int(threads_per_core));
    ok = weft__json_set(kept, key, entry) && ok;
    if (ok) weft__json_write(&text, kept, WEFT__JSON_INDENTED);
    ok = ok && replace(path, &text);
    weft__strbuf_free(&text);
    weft__json_free(&kept);
    return ok;
}
