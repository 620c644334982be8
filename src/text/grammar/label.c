// SPDX-License-Identifier: Apache-2.0
/* label.c: what rules are called in messages (parts.h). Stateless. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "text/grammar/parts.h"
#include "text/tokenizer/parts.h"

enum { SHOWN = 224 /* bytes of a place */ };

static weft__gram_rule_name name_in(const weft__strings *names, const weft__strings *origins, int32_t rule, int line,
                                    int32_t origin)
{
    return (weft__gram_rule_name){weft__strings_data(names, (size_t)rule),
                                  origin ? weft__strings_data(origins, (size_t)origin - 1) : NULL,
                                  weft__strings_len(names, (size_t)rule), line};
}

weft__gram_rule_name weft__gram_name_of(const weft__gram *g, int32_t rule)
{
    const weft__gram_rule_def *r = &g->rules[rule];
    return name_in(&g->names, &g->origins, rule, r->body < 0 ? r->mention : r->line, r->origin);
}

weft__gram_rule_name weft__gram_automaton_name(const weft__gram_automaton *a, int32_t rule)
{
    return name_in(&a->names, &a->origins, rule, a->lines[rule], a->of_origin[rule]);
}

int weft__gram_is_of_schema(weft__gram_rule_name x)
{
    return x.origin || (x.n && x.name[0] == '#');
}

/* The place in its schema: the name, without what tells it from others of that place; of a rule without one, all. */
static const char *show_pointer(weft__gram_rule_name x, char out[SHOWN])
{
    const char *end = memchr(x.name, WEFT__GRAM_SAME_PLACE, x.n);
    if (!x.n || x.name[0] != '#') return "#";
    return weft__utf8_show(out, SHOWN, x.name, end ? (size_t)(end - x.name) : x.n);
}

const char *weft__gram_label(weft__gram_rule_name x, char out[WEFT__GRAM_LABEL])
{
    char pointer[SHOWN], name[WEFT__TOK_QUOTE];
    const char *end = memchr(x.name, WEFT__GRAM_SAME_PLACE, x.n);
    weft__tok_quote(name, x.name, end ? (size_t)(end - x.name) : x.n);
    if (weft__gram_is_of_schema(x)) snprintf(out, WEFT__GRAM_LABEL, "%s of the schema", show_pointer(x, pointer));
    else if (x.line) snprintf(out, WEFT__GRAM_LABEL, "rule '%s' (line %d)", name, x.line);
    else snprintf(out, WEFT__GRAM_LABEL, "rule '%s'", name);
    return out;
}

static const char *put_place(weft__gram_rule_name x, const char *behind, char out[WEFT__GRAM_LABEL])
{
    char text[WEFT__GRAM_LABEL];
    if (weft__gram_is_of_schema(x))
        snprintf(out, WEFT__GRAM_LABEL, "%s%sschema: %s%s", x.origin ? x.origin : "", x.origin ? ": " : "",
                 show_pointer(x, text), behind);
    else snprintf(out, WEFT__GRAM_LABEL, "grammar: %s", weft__gram_label(x, text));
    return out;
}

const char *weft__gram_place(weft__gram_rule_name x, char out[WEFT__GRAM_LABEL])
{
    return put_place(x, "", out);
}

const char *weft__gram_subject(weft__gram_rule_name x, char out[WEFT__GRAM_LABEL])
{
    return put_place(x, ":", out);
}

void weft__gram_origin(weft__gram *g, const char *origin)
{
    g->origin = 0;
    if (!origin || g->err.status) return;
    if (weft__strings_add(&g->origins, origin, strlen(origin), 0)) g->origin = (int32_t)g->origins.n;
    else weft__gram_fail(g, WEFT_NO_MEMORY, "no memory for a grammar");
}
