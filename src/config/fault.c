// SPDX-License-Identifier: Apache-2.0
/* fault.c: what is wrong in a file, all of it (node.h). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "config/node.h"

void weft__config_fault_add(weft__config_faults *f, int line, int column, const char *format, ...)
{
    va_list args;
    char text[600];
    if (f->n == WEFT__CONFIG_FAULTS) {
        f->n_more++;
        return;
    }
    if (!weft__grow(&f->items, &f->capacity, f->n + 1, sizeof *f->items)) {
        f->failed = 1;
        return;
    }
    weft__config_fault *one = &f->items[f->n++];
    *one = (weft__config_fault){.line = line > 0 ? line : 1, .column = column > 0 ? column : 1};
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    weft__utf8_show(one->message, sizeof one->message, text,
                    n < (int)sizeof text ? (size_t)(n > 0 ? n : 0) : sizeof text - 1);
}

static int by_place(const void *a, const void *b)
{
    const weft__config_fault *x = a, *y = b;
    return x->line != y->line ? (x->line > y->line) - (x->line < y->line)
                              : (x->column > y->column) - (x->column < y->column);
}

void weft__config_faults_sort(weft__config_faults *f)
{
    if (f->n > 1) qsort(f->items, f->n, sizeof *f->items, by_place);
}

void weft__config_faults_write(const weft__config_faults *f, const char *path, weft__strbuf *out)
{
    for (size_t i = 0; i < f->n; i++)
        weft__strbuf_printf(out, "%s:%d:%d: %s\n", path, f->items[i].line, f->items[i].column, f->items[i].message);
    if (f->n_more) weft__strbuf_printf(out, "%s: and %zu more\n", path, f->n_more);
}

void weft__config_faults_free(weft__config_faults *f)
{
    weft__free(f->items);
    *f = (weft__config_faults){0};
}
