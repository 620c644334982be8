// SPDX-License-Identifier: Apache-2.0
/* setting.c: what every file of settings needs, the server's or another's: its bytes, a setting of it, and the first of
 * what is wrong as an error (reader.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "config/reader.h"

static const char *value_of(weft__config_reader *r, const weft__config_node *v)
{
    if (v->text && v->kind != WEFT__CONFIG_NONE) return v->text;
    weft__config_say(r, v, "must be a value, not %s", weft__config_kind_text(v));
    return "";
}

void weft__config_setting_of(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_setting *s = into;
    const int is_list = v->kind == WEFT__CONFIG_LIST;
    const size_t n = is_list ? v->n : 1;
    const char **values = weft__config_take(r, n, sizeof *values);
    if (!values) return;
    *s = (weft__config_setting){v->key,       is_list && v->first ? v->first->kind : v->kind, values, 0, v->key_line,
                                v->key_column};
    for (const weft__config_node *m = is_list ? v->first : v; m; m = is_list ? m->next : NULL)
        values[s->n++] =
            m->kind == WEFT__CONFIG_BOOL ? (*m->text == 't' || *m->text == 'T' ? "true" : "false") : value_of(r, m);
    if (!s->n) weft__config_say(r, v, "must be a value, or a list of some");
}

weft_status weft__config_faulty(const char *path, weft__config_faults *faults, weft_error *err)
{
    weft__config_faults_sort(faults);
    if (!faults->n) return WEFT_OK;
    return weft_fail(err, WEFT_FORMAT, "%s:%d:%d: %s", path, faults->items[0].line, faults->items[0].column,
                     faults->items[0].message);
}

weft_status weft__config_load(const char *path, char **text, size_t *n, weft_error *err)
{
    *text = NULL;
    FILE *f = fopen(path, "rb");
    if (!f) return weft_fail(err, errno == ENOENT ? WEFT_NOT_FOUND : WEFT_IO, "%s: %s", path, strerror(errno));
    *text = weft__alloc(WEFT__CONFIG_BYTES + 1);
    *n = *text ? fread(*text, 1, WEFT__CONFIG_BYTES + 1, f) : 0;
    const weft_status st = !*text      ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the settings")
                           : ferror(f) ? weft_fail(err, WEFT_IO, "%s: %s", path, strerror(errno))
                                       : WEFT_OK;
    fclose(f);
    return st;
}
