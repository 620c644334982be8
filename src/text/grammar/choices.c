// SPDX-License-Identifier: Apache-2.0
/* choices.c: a list of texts, of which an answer is one, as a rule. */
#include "base/alloc.h"
#include "base/json.h"
#include "text/grammar/build.h"

static void choice_texts(weft__gram *g, const weft__json *list)
{
    size_t count = weft__json_size(list);
    int32_t *items = weft__alloc_array(count, sizeof *items), root = GRAM_RULE("root");
    if (!items) weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
    for (size_t i = 0; i < count && !weft__gram_failed(g); i++) {
        const char *s;
        size_t n;
        if (weft__json_string(weft__json_at(list, i), &s, &n)) items[i] = weft__gram_text(g, s, n);
        else weft__gram_fail(g, WEFT_ARGUMENT, "choices: #/%zu: must be a string", i);
    }
    if (!weft__gram_failed(g)) weft__gram_define(g, root, weft__gram_alt(g, items, count));
    weft__free(items);
}

int32_t weft__gram_read_choices(weft__gram *g, const char *source, size_t n)
{
    weft__json *list = NULL;
    weft_error err = {0};
    if (n > WEFT__GRAM_MAX_SOURCE) {
        weft__gram_fail(g, WEFT_LIMIT, "choices: %zu bytes of text; at most %d", n, WEFT__GRAM_MAX_SOURCE);
        return -1;
    }
    weft_status st = weft__json_parse(source, n, &list, &err);
    if (st) weft__gram_fail(g, st == WEFT_FORMAT ? WEFT_ARGUMENT : st, "choices: %s", err.message);
    else if (weft__json_kind_of(list) != WEFT__JSON_ARRAY || !weft__json_size(list))
        weft__gram_fail(g, WEFT_ARGUMENT, "choices: #: must be a list of at least one string");
    else choice_texts(g, list);
    weft__json_free(&list);
    return weft__gram_failed(g) ? -1 : GRAM_RULE("root");
}
