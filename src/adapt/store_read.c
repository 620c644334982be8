// SPDX-License-Identifier: Apache-2.0
/* store_read.c: files of named adapters, read and checked against the base (store.h). */
#include <ctype.h>
#include <string.h>

#include "adapt/store_parts.h"
#include "base/log.h"
#include "base/text.h"
#include "format/names.h"

void weft__adapt_read_checked(void *arg)
{
    weft__adapt_reading *r = arg;
    weft__adapt *a;
    r->status = weft__adapt_open(r->path, r->s->names, weft__adapt_store_max_read(r->s), &a, r->err);
    if (!r->status) r->status = weft__adapt_check(a, &r->s->base, r->err);
    if (!r->status) {
        r->id = a->id;
        r->n_packed = a->n_bytes / WEFT__ADAPT_SHRINK;
    }
    if (!r->status && !r->out && (r->status = weft__adapt_check_values(a, r->scale, r->err))) {
        char shown[WEFT__NAME_SHOW * 2];
        weft_fail_within(r->err, r->status, "adapter %s", weft__name_show_path(shown, r->path));
    }
    if (!r->status && r->out) *r->out = a;
    else weft__adapt_close(&a);
}

/* Is a path at `at` in the message that begins at `text` a whole one, or the folder of one? */
static int is_whole(const char *text, const char *at, size_t n_path)
{
    const unsigned char before = at == text ? ' ' : (unsigned char)at[-1], after = (unsigned char)at[n_path];
    return !isalnum(before) && !strchr("/._-", before) && !isalnum(after) && (!after || !strchr("._-", after));
}

weft_status weft__adapt_fail_by_name(const weft_error *why, const char *name, const char *path, weft_error *err)
{
    char text[sizeof why->message];
    size_t n = 0, n_path = strlen(path), n_name = strlen(name);
    weft__log(WEFT__LOG_WARN, "adapter '%s': %s", name, why->message);
    if (n_path > WEFT__NAME_SHOW)
        return weft_fail(err, why->status, "adapter %s: its file cannot be used; the log says why",
                         name); /* long paths are shown in parts */
    for (const char *from = why->message; *from && n + 1 < sizeof text;) {
        int here = n_path > 0 && !strncmp(from, path, n_path) && is_whole(why->message, from, n_path);
        if (here && n + n_name + 1 < sizeof text) memcpy(text + n, name, n_name), n += n_name;
        else if (!here) text[n++] = *from;
        from += here ? n_path : 1;
    }
    text[n] = 0;
    return weft_fail(err, why->status, "%s", text);
}
