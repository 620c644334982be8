// SPDX-License-Identifier: Apache-2.0
/* json.h: JSON values; the only door to the JSON library (jansson), so that another one can take its place.
 *
 * A value tree has one owner, who frees its root; everything reached through a reader borrows from that root. Object
 * members keep their order. All heap comes from alloc.h. Thread safety: different trees are independent; one tree may
 * be read by several threads at once, and written by one that has it alone. */
#ifndef WEFT_BASE_JSON_H
#define WEFT_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "weft/error.h"

typedef struct weft__json weft__json;

typedef enum weft__json_kind {
    WEFT__JSON_NULL,
    WEFT__JSON_BOOL,
    WEFT__JSON_INT,    /* written without fraction and exponent, within int64 */
    WEFT__JSON_DOUBLE, /* any other number */
    WEFT__JSON_STRING,
    WEFT__JSON_ARRAY,
    WEFT__JSON_OBJECT
} weft__json_kind;

/* Arrays and objects may nest this deep. */
#define WEFT__JSON_MAX_DEPTH 256

/* Parses text[0..n), one JSON value and nothing after it. Strict: well-formed UTF-8, no duplicate keys, no NUL in a
 * key, no integer beyond int64, no number beyond double. Strings may contain NUL (\u0000). Fails with WEFT_FORMAT
 * ("line 3, column 7: ..."), WEFT_LIMIT (too deep) or WEFT_NO_MEMORY, and *out is NULL then. */
weft_status weft__json_parse(const char *text, size_t n, weft__json **out, weft_error *err);

/* As weft__json_parse, but integers beyond int64 that are bounds of a JSON Schema (`maximum`, `minimum` and the
 * exclusive ones) are doubles: what is to be exact stays refused. Within 64 bits without a sign they are rounded to
 * the side that allows less, but for the largest, which is 2^64. */
weft_status weft__json_parse_bounds(const char *text, size_t n, weft__json **out, weft_error *err);
/* As weft__json_parse, but members of an object may repeat, as in what models write: the last of a name counts. */
weft_status weft__json_parse_repeated(const char *text, size_t n, weft__json **out, weft_error *err);

/* Frees a root and sets *v to NULL; NULL and a pointer to NULL are fine. */
void weft__json_free(weft__json **v);

/* A deep copy with an owner of its own, or NULL when memory runs out. */
weft__json *weft__json_copy(const weft__json *v);

/* Readers. A NULL value is accepted everywhere and has no kind: each reader returns 0 or NULL for it. */

/* -1 for a NULL pointer. */
int weft__json_kind_of(const weft__json *v);
int weft__json_is_null(const weft__json *v);
/* Each returns 1 and stores when the value is of that kind; 0 and stores nothing otherwise. */
int weft__json_bool(const weft__json *v, int *out);
/* Takes a double too when it is a whole number of at most 2^53 (clients write 5.0 or 1e3). */
int weft__json_int(const weft__json *v, int64_t *out);
/* Takes integers too. */
int weft__json_double(const weft__json *v, double *out);
/* *s is borrowed, UTF-8, NUL-terminated; n bytes without the NUL, and there may be NULs among them. */
int weft__json_string(const weft__json *v, const char **s, size_t *n);
/* 1 when v is the string `text`. */
int weft__json_is(const weft__json *v, const char *text);

/* 1 when both are the same value: members in any order, 1 and 1.0 apart. NULL equals nothing. */
int weft__json_equal(const weft__json *a, const weft__json *b);

/* Elements of an array or members of an object; 0 for anything else. */
size_t weft__json_size(const weft__json *v);
/* Element i of an array, or NULL when v is no array or has no such element. */
const weft__json *weft__json_at(const weft__json *v, size_t i);
/* The member named key, or NULL when v is no object or has no such member. */
const weft__json *weft__json_get(const weft__json *v, const char *key);

/* Walks an object's members in order: `weft__json_member m = {0}; while (weft__json_next(v, &m)) ...`. */
typedef struct weft__json_member {
    const char *key; /* borrowed */
    size_t key_len;  /* bytes */
    const weft__json *value;
    void *position; /* the walk's own */
} weft__json_member;
int weft__json_next(const weft__json *object, weft__json_member *m);

/* Builders: NULL when memory runs out (or when a string is not UTF-8, a double not finite). */
weft__json *weft__json_new_null(void);
weft__json *weft__json_new_bool(int value);
weft__json *weft__json_new_int(int64_t value);
weft__json *weft__json_new_double(double value);
weft__json *weft__json_new_string(const char *s, size_t n);
weft__json *weft__json_new_array(void);
weft__json *weft__json_new_object(void);

/* Adds `value`, whose ownership passes in any case, also on failure. Returns 1, or 0 when value is NULL, the container
 * is of another kind, the key is not UTF-8, or memory runs out: so builders may be nested and checked once per call. */
int weft__json_append(weft__json *array, weft__json *value);
/* Replaces the member if there is one of that name. */
int weft__json_set(weft__json *object, const char *key, weft__json *value);

/* Removes the members of an object that are not wanted; what was reached through them is gone. */
void weft__json_filter(weft__json *object, int (*wanted)(const void *arg, const char *key), const void *arg);

/* About how many bytes of heap the tree of a text will take, more rather than less; 0 <= it for any bytes. O(n). */
size_t weft__json_tree_bytes(const char *text, size_t n);

typedef enum weft__json_style {
    WEFT__JSON_COMPACT, /* {"a":1,"b":[2,3]} */
    WEFT__JSON_SPACED,  /* {"a": 1, "b": [2, 3]} */
    WEFT__JSON_INDENTED /* a member or element per line, two spaces per level */
} weft__json_style;

/* Appends v to out; a failure shows in out->failed. Doubles are written with the fewest digits that read back as the
 * same number, and always with a point or an exponent. */
void weft__json_write(weft__strbuf *out, const weft__json *v, weft__json_style style);

/* Appends one string or number as JSON, for writers that need no tree. Malformed UTF-8 is replaced by U+FFFD;
 * infinities and NaN, which JSON lacks, become null. */
void weft__json_write_string(weft__strbuf *out, const char *s, size_t n);
void weft__json_write_double(weft__strbuf *out, double value);

#endif
