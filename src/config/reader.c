// SPDX-License-Identifier: Apache-2.0
/* reader.c: a tree by tables of keys (reader.h): what is unknown, missing or of another kind is told, all of it. */
#include "config/reader.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near.h"

void *weft__config_take(weft__config_reader *r, size_t n, size_t size)
{
    void *p = weft__arena_array(&r->config->arena, n ? n : 1, size);
    if (p) memset(p, 0, (n ? n : 1) * size);
    else r->no_memory = 1;
    return p;
}

/* ---- telling ---- */

static void say(weft__config_reader *r, int line, int column, const char *format, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    weft__config_fault_add(r->faults, line, column, "%s%s%s", r->path, *r->path ? ": " : "", text);
}

void weft__config_say(weft__config_reader *r, const weft__config_node *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(r, v ? v->line : 1, v ? v->column : 1, format, args);
    va_end(args);
}

void weft__config_say_key(weft__config_reader *r, const weft__config_node *v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(r, v->key ? v->key_line : v->line, v->key ? v->key_column : v->column, format, args);
    va_end(args);
}

size_t weft__config_enter(weft__config_reader *r, const char *key, size_t i)
{
    const size_t back = r->n_path, room = sizeof r->path - back;
    char shown[64];
    if (room < 2) return back;
    int n = key ? snprintf(r->path + back, room, "%s%s", back ? "." : "",
                           weft__utf8_show(shown, sizeof shown, key, strlen(key)))
                : snprintf(r->path + back, room, "[%zu]", i);
    r->n_path = back + ((size_t)n < room ? (size_t)n : room - 1);
    return back;
}

void weft__config_leave(weft__config_reader *r, size_t back)
{
    r->n_path = back;
    r->path[back] = 0;
}

const char *weft__config_meant(const char *word, const char *(*name)(const void *arg, size_t i), const void *arg,
                               char *out, size_t room)
{
    const char *meant = weft__near_match(word, name, arg);
    snprintf(out, room, "%s%.60s%s", meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
    return out;
}

static const char *field_name(const void *arg, size_t i)
{
    const weft__config_field *table = arg;
    return table[i].name;
}

/* ---- kinds ---- */

static const char *kind_text(weft__config_kind kind)
{
    static const char *const texts[] = {"nothing", "true or false", "a whole number", "a number",
                                        "a text",  "a list",        "a map"};
    return texts[kind];
}

const char *weft__config_kind_text(const weft__config_node *v)
{
    return kind_text(v->kind);
}

int weft__config_is(weft__config_reader *r, const weft__config_node *v, weft__config_kind kind)
{
    if (v->kind == kind) return 1;
    weft__config_say(r, v, "must be %s, not %s", kind_text(kind), kind_text(v->kind));
    return 0;
}

void weft__config_fields(weft__config_reader *r, const weft__config_node *v, const weft__config_field *table,
                         void *into)
{
    char meant[96], shown[64];
    unsigned long seen = 0;
    if (!weft__config_is(r, v, WEFT__CONFIG_MAP)) return;
    for (const weft__config_node *m = v->first; m; m = m->next) {
        size_t i = 0;
        while (table[i].name && strcmp(table[i].name, m->key)) i++;
        if (!table[i].name) {
            weft__config_say_key(r, m, "there is no '%s' here%s",
                                 weft__utf8_show(shown, sizeof shown, m->key, strlen(m->key)),
                                 weft__config_meant(m->key, field_name, table, meant, sizeof meant));
            continue;
        }
        const size_t back = weft__config_enter(r, m->key, 0);
        seen |= 1ul << i;
        table[i].read(r, m, (char *)into + table[i].offset);
        weft__config_leave(r, back);
    }
    for (size_t i = 0; table[i].name; i++)
        if (table[i].required && !(seen >> i & 1)) weft__config_say_key(r, v, "'%s' is missing", table[i].name);
}

void *weft__config_each(weft__config_reader *r, const weft__config_node *v, weft__config_kind kind, size_t size,
                        size_t *n, void (*one)(weft__config_reader *, const weft__config_node *, void *))
{
    size_t i = 0;
    *n = 0;
    if (!weft__config_is(r, v, kind)) return NULL;
    char *all = weft__config_take(r, v->n, size);
    for (const weft__config_node *m = all ? v->first : NULL; m; m = m->next, i++) {
        const size_t back = weft__config_enter(r, m->key, i);
        one(r, m, all + i * size);
        weft__config_leave(r, back);
    }
    *n = i;
    return all;
}

int weft__config_name_ok(weft__config_reader *r, const weft__config_node *v, const char *name, size_t most,
                         const char *more)
{
    const size_t n = strlen(name);
    size_t good = 0;
    while (good < n && ((name[good] >= 'a' && name[good] <= 'z') || (name[good] >= 'A' && name[good] <= 'Z') ||
                        (name[good] >= '0' && name[good] <= '9') || strchr(more, name[good])))
        good++;
    if (n && n < most && good == n) return 1;
    char shown[48];
    weft__config_say_key(r, v, "'%s' is no name; one has 1 to %zu letters, digits and %s",
                         weft__utf8_show(shown, sizeof shown, name, n), most - 1, more);
    return 0;
}

/* ---- readers ---- */

void weft__config_text(weft__config_reader *r, const weft__config_node *v, void *into)
{
    const char **to = into;
    if (v->kind == WEFT__CONFIG_NONE || !v->text || !*v->text)
        weft__config_say(r, v, "must be a text, not %s",
                         v->text && v->kind == WEFT__CONFIG_TEXT ? "an empty one" : kind_text(v->kind));
    else *to = v->text;
}

void weft__config_bool(weft__config_reader *r, const weft__config_node *v, void *into)
{
    char shown[48];
    if (v->kind == WEFT__CONFIG_BOOL) *(int *)into = *v->text == 't' || *v->text == 'T';
    else
        weft__config_say(r, v, "must be true or false, not %s",
                         v->kind == WEFT__CONFIG_TEXT ? weft__utf8_show(shown, sizeof shown, v->text, strlen(v->text))
                                                      : kind_text(v->kind));
}

void weft__config_count(weft__config_reader *r, const weft__config_node *v, void *into)
{
    const int64_t most = 1000000000000;
    errno = 0;
    const long long n = v->kind == WEFT__CONFIG_INT ? strtoll(v->text, NULL, 10) : 0;
    if (v->kind == WEFT__CONFIG_INT && !errno && n >= 1 && n <= most) *(int64_t *)into = n;
    else
        weft__config_say(r, v, "must be a whole number from 1 to %lld, not %.40s", (long long)most,
                         v->text && *v->text ? v->text : kind_text(v->kind));
}

static void one_name(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_text(r, v, into);
}

void weft__config_names_of(weft__config_reader *r, const weft__config_node *v, void *into)
{
    weft__config_names *names = into;
    names->items = weft__config_each(r, v, WEFT__CONFIG_LIST, sizeof *names->items, &names->n, one_name);
    names->given = 1;
}

int weft__config_double(const weft__config_node *v, double *out)
{
    if (v->kind != WEFT__CONFIG_INT && v->kind != WEFT__CONFIG_NUMBER) return 0;
    const double x = strtod(v->text, NULL);
    if (!(x >= -1e300 && x <= 1e300)) return 0;
    *out = x;
    return 1;
}

void weft__config_keep(weft__config_reader *r, const weft__config_node *v, void *into)
{
    (void)r;
    *(const weft__config_node **)into = v;
}
