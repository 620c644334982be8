// SPDX-License-Identifier: Apache-2.0
/* peft_pattern.c: the patterns of adapter_config.json: Python's regular expressions, held against names of modules
 * (parts.h). */
#include <string.h>

#include "adapt/parts.h"

/* Python names groups as (?P<name>...). Nothing here asks for a group by its name. */
static void put_unnamed(weft__strbuf *to, const char *key, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *end = n - i > 4 && !memcmp(key + i, "(?P<", 4) ? memchr(key + i, '>', n - i) : NULL;
        if (key[i] == '\\' && i + 1 < n) weft__strbuf_putc(to, key[i++]);
        else if (end) {
            weft__strbuf_puts(to, "(?:");
            i = (size_t)(end - key);
            continue;
        }
        weft__strbuf_putc(to, key[i]);
    }
}

weft_status weft__adapt_peft_pattern_new(const char *what, const char *before, const char *key, size_t n,
                                         weft__regex **out, weft_error *err)
{
    char shown[WEFT__NAME_SHOW];
    weft__strbuf text = {0};
    *out = NULL;
    weft__strbuf_puts(&text, "\\A");
    weft__strbuf_puts(&text, before);
    weft__strbuf_puts(&text, "(?:");
    put_unnamed(&text, key, n);
    weft__strbuf_puts(&text, ")\\z");
    weft_status st = text.failed ? weft_fail(err, WEFT_NO_MEMORY, "no memory for the patterns of adapter_config.json")
                                 : weft__regex_compile(text.data, text.len, out, err);
    if (st && !text.failed)
        weft_fail_within(err, st, "adapter_config.json: %s '%s'", what, weft__name_show(shown, key, n));
    weft__strbuf_free(&text);
    return st;
}

weft_status weft__adapt_peft_pattern_match(const weft__regex *pattern, const char *s, size_t n, int *found,
                                           weft_error *err)
{
    weft__regex_scratch scratch = {0};
    size_t begin, end;
    weft_status st = weft__regex_find(pattern, &scratch, s, n, 0, found, &begin, &end, err);
    weft__regex_scratch_free(&scratch);
    return st;
}
