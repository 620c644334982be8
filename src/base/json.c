// SPDX-License-Identifier: Apache-2.0
/* json.c: parsing, reading and building through jansson (json.h). Shared state: jansson's allocator and hash seed, set
 * once. A weft__json is a json_t under another name. Writing stands in json_write.c. */
#include "base/json.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* jansson loses some allocation failures, so they are noted here. Worse, a lexer that cannot grow its buffer drops
 * bytes, and when the closing quote of a string is among them, it reads and writes beyond its buffers. So while a text
 * is parsed there is a reserve for that buffer, whose sizes are powers of two, and the text ends at the first
 * failure. */
static _Thread_local int out_of_memory;
static _Thread_local struct {
    char *begin;
    size_t used, size;
} reserve;

static int in_reserve(const void *p)
{
    const char *c = p;
    return reserve.begin && c >= reserve.begin && c < reserve.begin + reserve.size;
}

static void *json_take(size_t n)
{
    void *p = weft__alloc(n);
    if (p) return p;
    out_of_memory = 1;
    if (!reserve.begin || n < 16 || (n & (n - 1)) || n > reserve.size - reserve.used) return NULL;
    p = reserve.begin + reserve.used;
    reserve.used += n;
    return p;
}

static void give(void *p)
{
    if (!in_reserve(p)) weft__free(p);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void set_up(void)
{
    json_set_alloc_funcs(json_take, give);
    json_object_seed(0); /* from the system's entropy: keys chosen to collide must not */
}

static void ready(void)
{
    pthread_once(&once, set_up);
    out_of_memory = 0;
}

static json_t *inner(const weft__json *v)
{
    return (json_t *)v;
}

static weft__json *outer(json_t *v)
{
    return (weft__json *)v;
}

/* What must hold before the parser may see the text: nesting within the limit (only brackets outside strings count;
 * whether they match is the parser's business), and no NUL byte, which jansson drops after a number. *longest gets the
 * bytes of the longest string or number. */
static weft_status check_first(const char *text, size_t n, size_t *longest, weft_error *err)
{
    size_t depth = 0, line = 1, token = 0;
    int in_string = 0;
    *longest = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (!in_string && strchr(" \n\r\t[]{},:\"", c)) token = i;
        if (i - token > *longest) *longest = i - token;
        if (c == 0) return weft_fail(err, WEFT_FORMAT, "line %zu: NUL byte", line);
        if (c == '\n') line++;
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = 0;
        } else if (c == '"') {
            in_string = 1;
        } else if (c == '[' || c == '{') {
            if (++depth > WEFT__JSON_MAX_DEPTH)
                return weft_fail(err, WEFT_LIMIT, "line %zu: nested deeper than %d levels", line, WEFT__JSON_MAX_DEPTH);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return WEFT_OK;
}

/* What is left of a text. */
typedef struct json_source {
    const char *at, *end;
} json_source;

/* Hands the parser a little at a time, so that it stops soon after a failure. */
static size_t feed(void *buffer, size_t room, void *arg)
{
    json_source *s = arg;
    size_t n = (size_t)(s->end - s->at);
    if (n > 64) n = 64;
    if (n > room) n = room;
    if (out_of_memory) return 0;
    if (n) memcpy(buffer, s->at, n);
    s->at += n;
    return n;
}

/* Whether the name of a member, with its quotes, is that of a bound in a JSON Schema. */
static int is_bound(const char *name, size_t n)
{
    static const char *const names[] = {"\"maximum\"", "\"minimum\"", "\"exclusiveMaximum\"", "\"exclusiveMinimum\""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && !memcmp(names[i], name, n)) return 1;
    return 0;
}

/* Appends an integer beyond int64, a bound, as a double: within 64 bits one that allows no more; the largest
 * of 64 bits as 2^64, for nothing of 64 bits lies between. */
static void put_bound(weft__strbuf *out, const char *digits, size_t n, int is_maximum, int exclusive)
{
    enum { MOST = 20 }; /* digits */
    char text[MOST + 2] = "";
    const size_t negative = *digits == '-';
    int plain = n - negative <= MOST && digits[negative] != '0';
    for (size_t i = negative; i < n; i++) plain &= digits[i] != '-';
    if (plain) memcpy(text, digits, n);
    errno = 0;
    const unsigned long long size = strtoull(text + negative, NULL, 10);
    if (!plain || errno || (size == UINT64_MAX && !exclusive)) { /* no number, or nothing of 64 bits is beyond */
        weft__strbuf_put(out, digits, n);
        weft__strbuf_puts(out, "e0");
        return;
    }
    double x = (double)size;
    const int below = x < 0x1p64 && (unsigned long long)x < size, same = x < 0x1p64 && (unsigned long long)x == size;
    if (!same && below != (is_maximum != (int)negative)) x = nextafter(x, below ? INFINITY : 0);
    weft__strbuf_printf(out, "%s%.0fe0", negative ? "-" : "", x);
}

/* The text with integers beyond int64 that are bounds spelled as doubles. Of what is no JSON it makes no JSON. */
static void widen_bounds(const char *text, size_t n, weft__strbuf *out)
{
    size_t string = 0, length = 0, from = 0; /* the last string; what is to be put */
    for (size_t i = 0; i < n;) {
        size_t begin = i++;
        if (text[begin] == '"') {
            while (i < n && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
            i = i < n ? i + 1 : n;
            string = begin, length = i - begin;
        } else if (text[begin] != ':' || !is_bound(text + string, length)) {
            continue;
        } else {
            char digits[24] = "";
            while (i < n && strchr(" \t\r\n", text[i])) i++;
            size_t number = i;
            while (i < n && strchr("-0123456789", text[i])) i++;
            if (i == n || strchr(".eE", text[i])) continue;
            if (i - number < sizeof digits) memcpy(digits, text + number, i - number);
            errno = i - number < sizeof digits ? 0 : ERANGE;
            if (*digits) (void)strtoll(digits, NULL, 10);
            if (errno != ERANGE) continue;
            weft__strbuf_put(out, text + from, number - from);
            put_bound(out, text + number, i - number, memmem(text + string, length, "aximum", 6) != NULL,
                      text[string + 1] == 'e');
            from = i;
        }
    }
    if (from < n) weft__strbuf_put(out, text + from, n - from);
}

static weft_status parse_as(const char *text, size_t n, size_t flags, weft__json **out, weft_error *err)
{
    *out = NULL;
    size_t longest;
    weft_status status = check_first(text, n, &longest, err);
    if (status) return status;
    ready();
    if (longest > SIZE_MAX / 32) return weft_fail(err, WEFT_LIMIT, "JSON text of %zu bytes: too long", n);
    reserve.size = 65536 + 16 * longest;
    reserve.used = 0;
    reserve.begin = weft__alloc(reserve.size);
    if (!reserve.begin) return weft_fail(err, WEFT_NO_MEMORY, "JSON text of %zu bytes: out of memory", n);
    json_error_t why;
    json_source s = {text, text + n};
    json_t *root = json_load_callback(feed, &s, flags | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (out_of_memory) {
        json_decref(root);
        root = NULL;
        status = weft_fail(err, WEFT_NO_MEMORY, "JSON text of %zu bytes: out of memory", n);
    } else if (!root) {
        int integer = strstr(why.text, "too big") != NULL; /* jansson says neither of what nor for what */
        status = weft_fail(err, WEFT_FORMAT, "line %d, column %d: %s", why.line, why.column,
                           integer ? "an integer out of range: it must fit in 64 bits, signed" : why.text);
    }
    weft__free(reserve.begin);
    reserve.begin = NULL;
    *out = outer(root);
    return status;
}

weft_status weft__json_parse_bounds(const char *text, size_t n, weft__json **out, weft_error *err)
{
    weft__strbuf wide = {0};
    weft_status status = weft__json_parse(text, n, out, err);
    if (status != WEFT_FORMAT) return status;
    widen_bounds(text, n, &wide);
    if (wide.failed) status = weft_fail(err, WEFT_NO_MEMORY, "JSON text of %zu bytes: out of memory", n);
    else if (wide.len > n) status = weft__json_parse(wide.data, wide.len, out, err);
    weft__strbuf_free(&wide);
    return status;
}

weft_status weft__json_parse_repeated(const char *text, size_t n, weft__json **out, weft_error *err)
{
    return parse_as(text, n, 0, out, err);
}

weft_status weft__json_parse(const char *text, size_t n, weft__json **out, weft_error *err)
{
    return parse_as(text, n, JSON_REJECT_DUPLICATES, out, err);
}

void weft__json_free(weft__json **v)
{
    if (!v || !*v) return;
    json_decref(inner(*v));
    *v = NULL;
}

weft__json *weft__json_copy(const weft__json *v)
{
    ready();
    json_t *copy = json_deep_copy(inner(v));
    if (!out_of_memory) return outer(copy);
    json_decref(copy);
    return NULL;
}

int weft__json_kind_of(const weft__json *v)
{
    if (!v) return -1;
    switch (json_typeof(inner(v))) {
    case JSON_OBJECT: return WEFT__JSON_OBJECT;
    case JSON_ARRAY: return WEFT__JSON_ARRAY;
    case JSON_STRING: return WEFT__JSON_STRING;
    case JSON_INTEGER: return WEFT__JSON_INT;
    case JSON_REAL: return WEFT__JSON_DOUBLE;
    case JSON_TRUE:
    case JSON_FALSE: return WEFT__JSON_BOOL;
    case JSON_NULL: break;
    }
    return WEFT__JSON_NULL;
}

int weft__json_is_null(const weft__json *v)
{
    return json_is_null(inner(v));
}

int weft__json_bool(const weft__json *v, int *out)
{
    if (!json_is_boolean(inner(v))) return 0;
    *out = json_is_true(inner(v));
    return 1;
}

int weft__json_int(const weft__json *v, int64_t *out)
{
    if (json_is_integer(inner(v))) {
        *out = json_integer_value(inner(v));
        return 1;
    }
    if (!json_is_real(inner(v))) return 0;
    double value = json_real_value(inner(v));
    if (value != floor(value) || fabs(value) > 0x1p53) return 0;
    *out = (int64_t)value;
    return 1;
}

int weft__json_double(const weft__json *v, double *out)
{
    if (!json_is_number(inner(v))) return 0;
    *out = json_number_value(inner(v));
    return 1;
}

int weft__json_string(const weft__json *v, const char **s, size_t *n)
{
    if (!json_is_string(inner(v))) return 0;
    *s = json_string_value(inner(v));
    *n = json_string_length(inner(v));
    return 1;
}

int weft__json_is(const weft__json *v, const char *text)
{
    const char *s;
    size_t n;
    return weft__json_string(v, &s, &n) && n == strlen(text) && !memcmp(s, text, n);
}

int weft__json_equal(const weft__json *a, const weft__json *b)
{
    return json_equal(inner(a), inner(b));
}

size_t weft__json_size(const weft__json *v)
{
    return json_is_array(inner(v)) ? json_array_size(inner(v)) : json_object_size(inner(v));
}

const weft__json *weft__json_at(const weft__json *v, size_t i)
{
    return outer(json_array_get(inner(v), i));
}

const weft__json *weft__json_get(const weft__json *v, const char *key)
{
    return outer(json_object_get(inner(v), key));
}

int weft__json_next(const weft__json *object, weft__json_member *m)
{
    json_t *o = inner(object);
    m->position = m->position ? json_object_iter_next(o, m->position) : json_object_iter(o);
    if (!m->position) return 0;
    m->key = json_object_iter_key(m->position);
    m->key_len = strlen(m->key);
    m->value = outer(json_object_iter_value(m->position));
    return 1;
}

void weft__json_filter(weft__json *object, int (*wanted)(const void *arg, const char *key), const void *arg)
{
    json_t *o = inner(object), *value;
    const char *key;
    void *next;
    json_object_foreach_safe(o, next, key, value) if (!wanted(arg, key)) json_object_del(o, key);
}

size_t weft__json_tree_bytes(const char *text, size_t n)
{
    enum {
        OBJECT = 224,
        ARRAY = 128,
        VALUE = 64,
        MEMBER = 80
    }; /* with what the allocator adds; arrays and tables may be half empty */
    size_t total = VALUE + n;
    int in_string = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = 0;
        } else if (c == '"') in_string = 1;
        else if (c == '{') total += OBJECT + VALUE;
        else if (c == '[') total += ARRAY + VALUE;
        else if (c == ',') total += VALUE;
        else if (c == ':') total += MEMBER;
    }
    return total;
}

weft__json *weft__json_new_null(void)
{
    return outer(json_null());
}

weft__json *weft__json_new_bool(int value)
{
    return outer(json_boolean(value));
}

weft__json *weft__json_new_int(int64_t value)
{
    ready();
    return outer(json_integer(value));
}

weft__json *weft__json_new_double(double value)
{
    ready();
    return outer(json_real(value));
}

weft__json *weft__json_new_string(const char *s, size_t n)
{
    ready();
    return outer(json_stringn(s, n));
}

weft__json *weft__json_new_array(void)
{
    ready();
    return outer(json_array());
}

weft__json *weft__json_new_object(void)
{
    ready();
    return outer(json_object());
}

int weft__json_append(weft__json *array, weft__json *value)
{
    return json_array_append_new(inner(array), inner(value)) == 0;
}

int weft__json_set(weft__json *object, const char *key, weft__json *value)
{
    return json_object_set_new(inner(object), key, inner(value)) == 0;
}
