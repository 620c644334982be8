// SPDX-License-Identifier: Apache-2.0
/* schema_object.h: what the files about objects of a JSON Schema share. */
#ifndef WEFT_TEXT_GRAMMAR_SCHEMA_OBJECT_H
#define WEFT_TEXT_GRAMMAR_SCHEMA_OBJECT_H

#include "text/grammar/schema_parts.h"

typedef struct weft__gram_schema_member {
    const char *name;
    size_t n;
    const weft__json *schema; /* NULL: what additionalProperties says */
    int required, forbidden;
} weft__gram_schema_member;

typedef struct weft__gram_schema_members {
    weft__gram_schema *c;
    weft__gram *g;
    const char *at;
    const weft__json *schema, *more; /* what other members hold; NULL: anything */
    int closed;                      /* there are none */
    weft__gram_schema_member *members;
    size_t n, capacity;
    int32_t others; /* the rule of another member, -1: none */
    weft__gram_list items;
} weft__gram_schema_members;

/* schema_object.c. A rule of this object, for a part of it that is used more than once; a member; a comma and what
 * white space is behind it. */
int32_t weft__gram_schema_part(weft__gram_schema_members *o, const char *what, size_t number);
int32_t weft__gram_schema_member_node(weft__gram_schema_members *o, const weft__gram_schema_member *m);
int32_t weft__gram_schema_comma(weft__gram *g);
/* `min` to `max` other members, where there can be any, behind at least one member. */
int32_t weft__gram_schema_more_others(const weft__gram_schema_members *o, uint32_t min, uint32_t max);

/* schema_names.c. Defines o->others, where there can be other members. */
void weft__gram_schema_define_others(weft__gram_schema_members *o);
/* The rules of other members in n classes, of which no two have the same name; 0: one has none, or a failure. */
int weft__gram_schema_define_distinct(weft__gram_schema_members *o, uint32_t n, int by_length, int32_t *rules);
/* Puts the schemas of patterns that its name matches, and what is asked of names, together with a member's own. */
void weft__gram_schema_name_member(weft__gram_schema_members *o, weft__gram_schema_member *m);

/* schema_order.c. The same of an object of which each member of the schema may stand anywhere among them, with
 * others behind; members need not be counted. */
enum { WEFT__GRAM_SCHEMA_MAX_ANY = 10 /* members of the schema */ };
int32_t weft__gram_schema_any_order(weft__gram_schema_members *o);

/* schema_count.c. The inside of an object of `low` to `high` members, with the white space behind it. -1 after a
 * failure. */
int32_t weft__gram_schema_counted(weft__gram_schema_members *o, uint32_t low, uint32_t high);

#endif
