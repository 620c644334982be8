// SPDX-License-Identifier: Apache-2.0
/* schema_one_of.c: the alternatives of oneOf as such that no value fits two of them: as they are where they exclude
 * each other; else with the member required that tells them apart (`discriminator`, or one that each names other values
 * of); else without what the others take. One thread. */
#include <string.h>

#include "base/alloc.h"
#include "text/grammar/schema_parts.h"

enum { MAX_CHOICES = 250, MAX_TAGS = 32, MAX_DEEP = 8 };

typedef struct choices {
    weft__gram_schema *c;
    const char *at;
    const weft__json *list, *beside; /* alternatives; what stands beside them, as schemas without combinations */
    size_t n;
    int depth;
    uint8_t *overlap;        /* [n * n] some value may fit both */
    weft__json **own, **any; /* [n] schemas without combinations, put together with `beside`: what is written of each,
                              * and all that may fit it. NULL: not asked for yet */
} choices;

static const weft__json *own_of(choices *x, size_t i)
{
    if (!x->own[i]) x->own[i] = weft__gram_schema_beside(x->c, x->beside, weft__json_at(x->list, i), x->at, x->depth);
    return x->own[i];
}

static const weft__json *any_of(choices *x, size_t i)
{
    const int before = x->c->superset;
    x->c->superset = 1;
    if (!x->any[i]) x->any[i] = weft__gram_schema_beside(x->c, x->beside, weft__json_at(x->list, i), x->at, x->depth);
    x->c->superset = before;
    return x->any[i];
}

/* 1 when no schema of a fits a value that one of b fits. */
static int all_apart(choices *x, const weft__json *a, const weft__json *b)
{
    for (size_t i = 0; i < weft__json_size(a); i++)
        for (size_t k = 0; k < weft__json_size(b); k++)
            if (!weft__gram_schema_disjoint(x->c, weft__json_at(a, i), weft__json_at(b, k), x->at, 0)) return 0;
    return a && b;
}

/* How many pairs overlap. */
static size_t find_overlaps(choices *x)
{
    size_t count = 0;
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < i && !weft__gram_schema_failed(x->c); k++) {
            if (weft__gram_schema_disjoint(x->c, weft__json_at(x->list, i), weft__json_at(x->list, k), x->at, 0))
                continue;
            /* What is written of one must not fit the other, whatever of that is written. */
            if (weft__gram_schema_failed(x->c) ||
                (all_apart(x, own_of(x, i), any_of(x, k)) && all_apart(x, own_of(x, k), any_of(x, i))))
                continue;
            x->overlap[i * x->n + k] = x->overlap[k * x->n + i] = 1;
            count++;
        }
    return count;
}

/* ---- a member that tells them apart ---- */

/* Whether objects that have the member and fit a do not fit b. */
static int told_apart(choices *x, const weft__json *a, const weft__json *b, const char *tag)
{
    for (size_t i = 0; i < weft__json_size(a); i++)
        for (size_t k = 0; k < weft__json_size(b); k++) {
            const weft__json *p = weft__json_get(weft__json_get(weft__json_at(a, i), "properties"), tag),
                             *q = weft__json_get(weft__json_get(weft__json_at(b, k), "properties"), tag);
            if (!p || !q || !weft__gram_schema_disjoint(x->c, p, q, x->at, 0)) return 0;
        }
    return a && b;
}

static int is_tag(choices *x, const char *tag)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t k = 0; k < x->n; k++)
            if (x->overlap[i * x->n + k] && !told_apart(x, own_of(x, i), any_of(x, k), tag)) return 0;
    return !weft__gram_schema_failed(x->c);
}

static int overlaps(const choices *x, size_t i)
{
    return memchr(x->overlap + i * x->n, 1, x->n) != NULL;
}

/* Whether each value of a schema that is an object with members of `tag` says of what kind: all that it offers name
 * one. */
static int names_tag(choices *x, const weft__json *schema, const char *tag, int depth)
{
    static const char *const keys[] = {"anyOf", "oneOf"};
    const weft__json *ref = weft__json_get(schema, "$ref"), *all = weft__json_get(schema, "allOf");
    if (depth > MAX_DEEP || !weft__gram_schema_step(x->c, x->at)) return 0;
    if (ref) return names_tag(x, weft__gram_schema_follow(x->c, ref, x->at), tag, depth + 1);
    if (weft__json_get(weft__json_get(schema, "properties"), tag)) return 1;
    for (size_t i = 0; i < weft__json_size(all); i++)
        if (names_tag(x, weft__json_at(all, i), tag, depth + 1)) return 1;
    for (size_t k = 0; k < 2; k++) {
        const weft__json *some = weft__json_get(schema, keys[k]);
        size_t i = 0, n = weft__json_size(some);
        while (i < n && names_tag(x, weft__json_at(some, i), tag, depth + 1)) i++;
        if (n && i == n) return 1;
    }
    return 0;
}

/* Whether a schema requires it itself. */
static int requires(choices *x, const weft__json *schema, const char *tag)
{
    for (int i = 0; i < MAX_DEEP && weft__json_get(schema, "$ref"); i++)
        schema = weft__gram_schema_follow(x->c, weft__json_get(schema, "$ref"), x->at);
    const weft__json *names = weft__json_get(schema, "required");
    for (size_t i = 0; i < weft__json_size(names); i++)
        if (weft__json_is(weft__json_at(names, i), tag)) return 1;
    return 0;
}

/* The member that tells alternatives apart, as who wrote the schema says; NULL: nothing is said, or some name none. */
static const char *said_tag(choices *x, const weft__json *discriminator)
{
    const char *name;
    size_t length;
    if (!weft__json_string(weft__json_get(discriminator, "propertyName"), &name, &length) || strlen(name) != length)
        return NULL;
    for (size_t i = 0; i < x->n; i++)
        if (!names_tag(x, weft__json_at(x->list, i), name, 0)) return NULL;
    return name;
}

/* NULL: there is none. */
static const char *find_tag(choices *x, const char *said)
{
    size_t first = 0, asked = 0;
    weft__json_member m = {0};
    if (said && is_tag(x, said)) return said;
    while (!overlaps(x, first)) first++;
    const weft__json *properties = weft__json_get(weft__json_at(own_of(x, first), 0), "properties");
    while (weft__json_next(properties, &m) && asked++ < MAX_TAGS)
        if (is_tag(x, m.key)) return m.key;
    return NULL;
}

/* ---- the alternatives ---- */

/* Alternative i with what is asked beside it; takes that. */
static weft__json *with(choices *x, size_t i, weft__json *asked)
{
    weft__json *all = weft__json_new_array(), *out = weft__json_new_object();
    weft__gram_schema_append(x->c, all, weft__json_copy(weft__json_at(x->list, i)));
    weft__gram_schema_append(x->c, all, asked);
    weft__gram_schema_set(x->c, out, "allOf", all);
    return out;
}

static weft__json *with_tag(choices *x, size_t i, const char *tag)
{
    weft__json *names = weft__json_new_array(), *asked = weft__json_new_object();
    weft__gram_schema_append(x->c, names, weft__json_new_string(tag, strlen(tag)));
    weft__gram_schema_set(x->c, asked, "type", weft__json_new_string("object", 6));
    weft__gram_schema_set(x->c, asked, "required", names);
    return with(x, i, asked);
}

static weft__json *without_others(choices *x, size_t i)
{
    weft__json *others = weft__json_new_array(), *any = weft__json_new_object(), *asked = weft__json_new_object();
    for (size_t k = 0; k < x->n; k++)
        if (x->overlap[i * x->n + k])
            weft__gram_schema_append(x->c, others, weft__json_copy(weft__json_at(x->list, k)));
    weft__gram_schema_set(x->c, any, "anyOf", others);
    weft__gram_schema_set(x->c, asked, "not", any);
    weft__json *out = with(x, i, asked), *flat = weft__gram_schema_beside(x->c, x->beside, out, x->at, x->depth);
    const int none = !weft__json_size(flat);
    weft__json_free(&flat);
    if (!none) return out;
    weft__json_free(&out);
    return weft__json_new_bool(0);
}

/* Whether it can be said what does not fit each that overlaps with another. */
static int can_be_lacked(choices *x)
{
    for (size_t i = 0; i < x->n; i++) {
        if (!overlaps(x, i)) continue;
        weft__json *lacked = weft__gram_schema_negated(x->c, weft__json_at(x->list, i), x->at, NULL);
        const int can = lacked != NULL;
        weft__json_free(&lacked);
        if (!can) return 0;
    }
    return 1;
}

/* `said`: the member that is required in any case, or NULL. */
static weft__json *tell_apart(choices *x, size_t n_overlaps, const char *said)
{
    const char *tag = n_overlaps ? find_tag(x, said) : said;
    if (weft__gram_schema_failed(x->c)) return NULL;
    if (!tag && !can_be_lacked(x)) {
        const uint8_t *first = memchr(x->overlap, 1, x->n * x->n);
        const size_t at = first ? (size_t)(first - x->overlap) : 0;
        weft__gram_schema_overlap(x->c, x->at, at / x->n, at % x->n);
        return NULL;
    }
    weft__json *out = weft__json_new_array();
    for (size_t i = 0; i < x->n && !weft__gram_schema_failed(x->c); i++)
        weft__gram_schema_append(
            x->c, out,
            tag && (overlaps(x, i) || (tag == said && !requires(x, weft__json_at(x->list, i), tag)))
                ? with_tag(x, i, tag)
            : overlaps(x, i) ? without_others(x, i)
                             : weft__json_copy(weft__json_at(x->list, i)));
    return out;
}

const weft__json *weft__gram_schema_exclusive(weft__gram_schema *c, const weft__json *schema, const char *at,
                                              const weft__json *beside, int depth)
{
    choices x = {.c = c, .at = at, .list = weft__json_get(schema, "oneOf"), .beside = beside, .depth = depth};
    const weft__json *out = x.list;
    x.n = weft__json_size(x.list);
    if (x.n > MAX_CHOICES) {
        weft__gram_schema_fail(c, WEFT_LIMIT, at, "oneOf", "at most %d alternatives", MAX_CHOICES);
        return NULL;
    }
    if (!x.n || c->superset) return out;
    x.overlap = weft__alloc_zero(x.n * x.n, 1);
    x.own = weft__alloc_zero(x.n, sizeof *x.own);
    x.any = weft__alloc_zero(x.n, sizeof *x.any);
    if (!x.overlap || !x.own || !x.any) {
        weft__gram_fail(weft__gram_schema_rules(c), WEFT_NO_MEMORY, "no memory for a grammar");
    } else {
        const char *said = said_tag(&x, weft__json_get(schema, "discriminator"));
        const size_t n = find_overlaps(&x);
        if ((n || said) && !weft__gram_schema_failed(c)) out = weft__gram_schema_keep(c, tell_apart(&x, n, said));
    }
    for (size_t i = 0; i < x.n; i++) {
        if (x.own) weft__json_free(&x.own[i]);
        if (x.any) weft__json_free(&x.any[i]);
    }
    weft__free(x.any);
    weft__free(x.own);
    weft__free(x.overlap);
    return weft__gram_schema_failed(c) ? NULL : out;
}
