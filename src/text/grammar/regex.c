// SPDX-License-Identifier: Apache-2.0
/* regex.c: regular expressions (a subset of ECMA-262) as rules, over plain text or over the inside of a JSON string,
 * where what matches a character matches its escape if JSON wants one. Readers differ about \d, \w and \s beyond ASCII,
 * and about which line breaks `.` leaves out: taken is what all of them match, or with WEFT__GRAM_REGEX_WIDE what any
 * of them does. Depth is bounded before the machine's stack is. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "text/grammar/build.h"
#include "text/grammar/parts.h"
#include "text/grammar/product.h"
#include "text/grammar/regex_set.h"

enum {
    MAX_RANGES = WEFT__GRAM_REGEX_RANGES,
    MAX_GROUPS = 24,
    MAX_PIECES = 1024,
    MAX_BRANCHES = 256,
    MAX_MARKED = 63,       /* groups */
    MAX_NAMED = 32,        /* likewise */
    MAX_BOUNDED = 1 << 15, /* states, about, that what is bounded may take */
    BOUNDED_WORK = 1 << 18 /* on the language of what is repeated */
};

typedef weft__gram_regex_set regex_set;

typedef struct regex_reader {
    weft__gram *g;
    const char *begin, *s, *end, *why, *place; /* why: it is refused; place: there */
    unsigned flags;
    int depth;
    uint32_t n_groups; /* that can be referred to */
    int n_named;       /* of them */
    uint32_t room;     /* characters that a repetition without an end may take; UINT32_MAX: it has none */
    int repeated;      /* groups around that are repeated without an end */
    int measuring;     /* lengths and sizes are asked for, not the expression */
} regex_reader;

typedef struct regex_piece {
    int32_t node;
    uint32_t min, max; /* characters */
    uint32_t size;     /* states when written out, about */
} regex_piece;

static int refuse(regex_reader *r, const char *why)
{
    if (!r->why) {
        r->why = why;
        r->place = r->s;
    }
    return 0;
}

static int broken(const regex_reader *r)
{
    return r->why || weft__gram_failed(r->g);
}

static uint32_t add_lengths(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

static uint32_t times(uint32_t a, uint32_t b)
{
    uint64_t n = (uint64_t)a * b;
    return a == 0 || b == 0 ? 0 : a == UINT32_MAX || b == UINT32_MAX || n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* ---- sets of characters ---- */

static void set_put(regex_reader *r, regex_set *x, uint32_t lo, uint32_t hi)
{
    if (x->n == MAX_RANGES) refuse(r, "a class of too many ranges");
    else x->r[x->n++] = (weft__gram_range){lo, hi};
}

static int by_first(const void *a, const void *b)
{
    const weft__gram_range *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Appends what x does not hold to out. */
static void put_complement(regex_reader *r, regex_set *x, regex_set *out)
{
    uint32_t next = 0;
    qsort(x->r, x->n, sizeof *x->r, by_first);
    for (size_t i = 0; i < x->n; i++) {
        if (x->r[i].lo > next) set_put(r, out, next, x->r[i].lo - 1);
        if (x->r[i].hi >= next) next = x->r[i].hi + 1;
    }
    if (next <= 0x10FFFF) set_put(r, out, next, 0x10FFFF);
}

/* \d \w \s and their complements; `wide`: with what any reader takes for one. */
static void put_named(regex_reader *r, regex_set *out, char name, int wide)
{
    static const weft__gram_range spaces[] = {{0x1C, 0x1F},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
                                              {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                              {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
    regex_set x = {.n = 0};
    char kind = (char)(name | 32);
    if (kind == 'd' || kind == 'w') set_put(r, &x, '0', '9');
    if (kind == 'w') {
        set_put(r, &x, 'A', 'Z');
        set_put(r, &x, '_', '_');
        set_put(r, &x, 'a', 'z');
    } else if (kind == 's') {
        set_put(r, &x, '\t', '\r');
        set_put(r, &x, ' ', ' ');
    }
    if (wide == (name == kind) && !(r->flags & WEFT__GRAM_REGEX_MARKED)) {
        for (size_t i = 0; kind == 's' && i < sizeof spaces / sizeof *spaces; i++)
            set_put(r, &x, spaces[i].lo, spaces[i].hi);
        if (kind != 's') set_put(r, &x, 0x80, 0x10FFFF); /* letters and digits there */
    }
    if (name != kind) put_complement(r, &x, out);
    for (size_t i = 0; name == kind && i < x.n; i++) set_put(r, out, x.r[i].lo, x.r[i].hi);
}

/* Letters of ASCII in both cases; others are refused, for their cases are many. */
static void fold_case(regex_reader *r, regex_set *x)
{
    for (size_t i = 0, n = x->n; i < n; i++)
        for (uint32_t c = x->r[i].lo; c <= x->r[i].hi && c < 0x80; c++)
            if ((c | 32) >= 'a' && (c | 32) <= 'z') set_put(r, x, c ^ 32, c ^ 32);
    for (size_t i = 0; i < x->n; i++)
        if (x->r[i].lo >= 0x80) refuse(r, "characters beyond ASCII where case does not matter");
}

static int32_t emit_set(regex_reader *r, const regex_set *x)
{
    const char *why = NULL;
    const int32_t node = weft__gram_regex_set_emit(r->g, x, r->flags, &why);
    return why ? refuse(r, why) - 1 : node;
}

/* ---- reading ---- */

static int regex_hex(regex_reader *r, int digits, uint32_t *cp)
{
    *cp = 0;
    for (int i = 0; i < digits; i++, r->s++) {
        char c = r->s < r->end ? *r->s : 0;
        if (c >= '0' && c <= '9') *cp = *cp << 4 | (uint32_t)(c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f') *cp = *cp << 4 | (uint32_t)((c | 32) - 'a' + 10);
        else return refuse(r, "an escape \\x or \\u without its hexadecimal digits");
    }
    return *cp < 0xD800 || *cp > 0xDFFF ? 1 : refuse(r, "half a surrogate pair");
}

/* Behind \u: four digits, or in braces a code point. */
static int read_unicode(regex_reader *r, uint32_t *cp)
{
    if (r->s == r->end || *r->s != '{') return regex_hex(r, 4, cp);
    if (!weft__gram_regex_code_point(&r->s, r->end, cp)) return refuse(r, "an escape \\u{...} of no character");
    return *cp < 0xD800 || *cp > 0xDFFF ? 1 : refuse(r, "half a surrogate pair");
}

/* What follows a backslash: a named class is put into x (returns 2), a character is stored (1); 0 after a refusal. */
static int read_escape(regex_reader *r, regex_set *x, uint32_t *cp, int wide)
{
    static const char names[] = "nrtfv", values[] = "\n\r\t\f\v";
    char c = r->s < r->end ? *r->s++ : 0;
    const char *at = c ? strchr(names, c) : NULL;
    if (c && strchr("dDwWsS", c)) {
        put_named(r, x, c, wide);
        return 2;
    }
    if (at) *cp = (uint32_t)values[at - names];
    else if (c == 'x') return regex_hex(r, 2, cp);
    else if (c == 'u') return read_unicode(r, cp);
    else if (c == 'c' && r->s < r->end && (*r->s | 32) >= 'a' && (*r->s | 32) <= 'z') *cp = (uint32_t)(*r->s++ & 31);
    else if (c == '0' && (r->s == r->end || *r->s < '0' || *r->s > '9')) *cp = 0;
    else if (c == 'b' || c == 'B') return refuse(r, "word boundaries (\\b, \\B)");
    else if (c == 'p' || c == 'P') return refuse(r, "Unicode classes (\\p)");
    else if ((c >= '0' && c <= '9') || c == 'k') return refuse(r, "references to groups (\\1)");
    else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c < 0x20 || (unsigned char)c > 0x7E)
        return refuse(r, "an unknown escape");
    else *cp = (uint32_t)c;
    return 1;
}

static int read_one(regex_reader *r, regex_set *x, uint32_t *cp, int wide)
{
    int bad = 0;
    if (*r->s == '\\') {
        r->s++;
        return read_escape(r, x, cp, wide);
    }
    r->s += weft__utf8_decode(r->s, (size_t)(r->end - r->s), cp, &bad);
    return bad ? refuse(r, "malformed UTF-8") : 1;
}

/* Behind '['. */
static void read_bracket(regex_reader *r, regex_set *out)
{
    regex_set x = {.n = 0};
    int negated = r->s < r->end && *r->s == '^', wide = (r->flags & WEFT__GRAM_REGEX_WIDE ? 1 : 0) != negated;
    r->s += negated;
    while (r->s < r->end && *r->s != ']' && !r->why) {
        uint32_t lo = 0, hi;
        int kind = read_one(r, &x, &lo, wide);
        if (kind != 1) continue;
        hi = lo;
        if (r->end - r->s > 1 && *r->s == '-' && r->s[1] != ']') {
            r->s++;
            if (read_one(r, &x, &hi, wide) == 2) refuse(r, "a range that ends in a class");
        }
        if (hi < lo) refuse(r, "a range that runs backwards");
        set_put(r, &x, lo, hi);
    }
    if (r->s == r->end) refuse(r, "a class without a closing ']'");
    else r->s++;
    if (r->flags & WEFT__GRAM_REGEX_ANY_CASE) fold_case(r, &x);
    if (negated) put_complement(r, &x, out);
    else *out = x;
}

static int32_t mark(const regex_reader *r, int32_t node, uint32_t what)
{
    return r->flags & WEFT__GRAM_REGEX_MARKED && !broken(r) ? weft__gram_mark(r->g, node, what) : node;
}

static regex_piece read_alternatives(regex_reader *r);

/* Whether the group that begins here is repeated without an end. */
static int is_repeated(const regex_reader *r)
{
    int depth = 1, in_class = 0;
    const char *s = r->s;
    for (; s < r->end && depth; s++) {
        if (*s == '\\') s += s + 1 < r->end;
        else if (in_class) in_class = *s != ']';
        else if (*s == '[') in_class = 1;
        else depth += (*s == '(') - (*s == ')');
    }
    if (s >= r->end || *s != '{') return s < r->end && (*s == '*' || *s == '+');
    const char *close = memchr(s, '}', (size_t)(r->end - s));
    return close && close[-1] == ',';
}

/* Behind '(': the name that a group may have. */
static int read_name(regex_reader *r)
{
    const char *why = NULL;
    const size_t n = weft__gram_regex_name(r->begin, r->s, r->end, &why);
    if (n && r->n_named++ >= MAX_NAMED) return refuse(r, "more than 32 named groups");
    if (why) return refuse(r, why);
    r->s += n;
    return n > 0;
}

static regex_piece read_regex_group(regex_reader *r)
{
    regex_piece x = {-1, 0, 0, 0};
    uint32_t number = 0;
    const int repeated = r->room != UINT32_MAX && is_repeated(r), named = read_name(r);
    if (!named && r->s < r->end && *r->s == '?') {
        if (r->end - r->s > 1 && r->s[1] == ':') {
            r->s += 2;
        } else {
            refuse(r, "groups that begin with '(?', but for '(?:' and '(?<name>'");
            return x;
        }
    } else if ((number = ++r->n_groups) > MAX_MARKED && r->flags & WEFT__GRAM_REGEX_MARKED) {
        refuse(r, "more than 63 groups; '(?:' begins one that nothing is told of");
        return x;
    }
    if (r->depth >= MAX_GROUPS) {
        refuse(r, "groups nested too deep");
        return x;
    }
    r->depth++;
    r->repeated += repeated;
    x = read_alternatives(r);
    r->repeated -= repeated;
    r->depth--;
    if (r->s == r->end) refuse(r, "a group without a closing ')'");
    else r->s++;
    if (number) x.node = mark(r, x.node, WEFT__GRAM_MARK_GROUP + number);
    return x;
}

static regex_piece read_atom(regex_reader *r)
{
    regex_set x = {.n = 0};
    uint32_t cp = 0;
    char c = *r->s;
    int wide = (r->flags & WEFT__GRAM_REGEX_WIDE) != 0;
    if (c == '(') {
        r->s++;
        return read_regex_group(r);
    }
    if (c == '[') {
        r->s++;
        read_bracket(r, &x);
    } else if (c == '.') {
        r->s++;
        x = (regex_set){{{'\n', '\n'}, {'\r', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}, wide ? 1 : 4};
        if (r->flags & WEFT__GRAM_REGEX_MARKED) x.n = 2;
        if (r->flags & WEFT__GRAM_REGEX_DOT_ALL) x.n = 0;
        regex_set out = {.n = 0};
        put_complement(r, &x, &out);
        x = out;
    } else if (strchr("*+?{}]", c)) {
        r->s++;
        refuse(r, "one of *+?{}] where nothing stands before it");
    } else if (c == '^' || c == '$') {
        r->s++;
        refuse(r, "an anchor within the expression");
    } else if (read_one(r, &x, &cp, wide) == 1) {
        set_put(r, &x, cp, cp);
        if (r->flags & WEFT__GRAM_REGEX_ANY_CASE) fold_case(r, &x);
    }
    return (regex_piece){broken(r) ? -1 : emit_set(r, &x), 1, 1, weft__gram_regex_set_size(r->flags, &x)};
}

static int read_times(regex_reader *r, uint32_t *out)
{
    uint32_t n = 0;
    if (r->s == r->end || *r->s < '0' || *r->s > '9') return refuse(r, "'{' without a number");
    for (; r->s < r->end && *r->s >= '0' && *r->s <= '9'; r->s++)
        if (n <= WEFT__GRAM_MAX_STATES) n = 10 * n + (uint32_t)(*r->s - '0');
    *out = n;
    return n <= WEFT__GRAM_MAX_STATES ? 1 : refuse(r, "a repetition of too many times");
}

static regex_piece read_regex(regex_reader *r);

static int32_t any_char(regex_reader *r)
{
    weft__gram *g = r->g;
    return r->flags & WEFT__GRAM_REGEX_QUOTED ? GRAM_REF(GRAM_RULE("char")) : GRAM_CLASS({0, 0x10FFFF});
}

/* The language of what is read from `text`, any number of times from `min` on; of text NULL, of any characters, spelled
 * as those of the reader. NULL: it takes too much. */
static weft__gram_automaton *language_of_repeated(const regex_reader *r, const char *text, size_t n, uint32_t min)
{
    weft__gram *g = weft__gram_create();
    weft__gram_automaton *a = NULL;
    size_t work = BOUNDED_WORK;
    if (!g) return NULL;
    weft__gram_json_parts(g);
    regex_reader all = {
        .g = g, .begin = text, .s = text, .end = text ? text + n : NULL, .room = UINT32_MAX, .flags = r->flags};
    all.flags |= WEFT__GRAM_REGEX_WHOLE;
    int32_t root = GRAM_RULE("root"), body = text ? read_regex(&all).node : any_char(&all);
    weft__gram_define(g, root, GRAM_REPEAT(min, UINT32_MAX, body));
    weft__gram_language(g, root, &work, &a, NULL);
    weft__gram_destroy(&g);
    return a;
}

/* What was read from `text` on, repeated without an end, but in no more characters than there is room for. */
static regex_piece bounded(regex_reader *r, const char *text, const char *end, regex_piece x, uint32_t min)
{
    const uint32_t least = times(x.min, min), room = r->room > least ? r->room : least;
    if (x.min == x.max) { /* characters can be told from repetitions */
        const uint32_t most = x.max ? room / x.max : 0, max = most > min ? most : min;
        return (regex_piece){weft__gram_repeat(r->g, x.node, min, max), least, times(x.max, max), times(x.size, max)};
    }
    regex_piece out = {x.node, least, room, times(x.size, room)};
    if (r->measuring) return out;
    weft__gram_automaton *all = language_of_repeated(r, text, (size_t)(end - text), min),
                         *characters = language_of_repeated(r, NULL, 0, 0);
    out.node = all && characters ? weft__gram_counted(r->g, &(weft__gram_part){all, 0}, 1, characters, room) : -1;
    weft__gram_automaton_destroy(&characters);
    weft__gram_automaton_destroy(&all);
    if (out.node < 0) refuse(r, "with its length bounded it takes too much; write the lengths as repetitions");
    return out;
}

static regex_piece read_repeated(regex_reader *r)
{
    const char *text = r->s;
    regex_piece x = read_atom(r);
    const char *end = r->s;
    uint32_t min = 0, max = UINT32_MAX;
    char c = r->s < r->end && !broken(r) ? *r->s : 0;
    if (c != '*' && c != '+' && c != '?' && c != '{') return x;
    r->s++;
    if (c == '+') min = 1;
    if (c == '?') max = 1;
    if (c == '{') {
        if (!read_times(r, &min)) return x;
        max = min;
        if (r->s < r->end && *r->s == ',') {
            r->s++;
            max = UINT32_MAX;
            if (r->s < r->end && *r->s != '}' && !read_times(r, &max)) return x;
        }
        if (r->s == r->end || *r->s != '}') refuse(r, "a repetition without '}'");
        else r->s++;
        if (min > max) refuse(r, "a repetition that asks for more than it allows");
    }
    const int lazy = r->s < r->end && *r->s == '?'; /* which match is found matters to searches only */
    r->s += lazy;
    if (broken(r)) return x;
    if (max == UINT32_MAX && r->room != UINT32_MAX && !r->repeated) return bounded(r, text, end, x, min);
    x.node = weft__gram_repeat(r->g, x.node, min, max);
    if (lazy) x.node = mark(r, x.node, WEFT__GRAM_MARK_LAZY);
    return (regex_piece){x.node, times(x.min, min), times(x.max, max),
                         times(x.size, max == UINT32_MAX ? min + 1 : max)};
}

/* Anything, as what is not anchored may have around it. */
static regex_piece anything(regex_reader *r)
{
    weft__gram *g = r->g;
    const regex_set all = {{{0, 0x10FFFF}}, 1};
    int32_t one = any_char(r);
    uint32_t most = r->room, size = times(weft__gram_regex_set_size(r->flags, &all), most == UINT32_MAX ? 1 : most);
    return (regex_piece){GRAM_REPEAT(0, most, one), 0, most, size};
}

/* Before a line break at the end some readers take it for the end. */
static regex_piece last_line_break(regex_reader *r)
{
    const regex_set one = {{{'\n', '\n'}}, 1};
    return (regex_piece){weft__gram_repeat(r->g, emit_set(r, &one), 0, 1), 0, 1,
                         weft__gram_regex_set_size(r->flags, &one)};
}

static int32_t put_piece(regex_piece *all, regex_piece x)
{
    all->min = add_lengths(all->min, x.min);
    all->max = add_lengths(all->max, x.max);
    all->size = add_lengths(all->size, x.size);
    return x.node;
}

/* One alternative; only those outside of groups may be anchored, and what is not may have anything around it. */
static regex_piece read_branch(regex_reader *r)
{
    weft__gram *g = r->g;
    regex_piece all = {-1, 0, 0, 1};
    int32_t items[MAX_PIECES + 2];
    size_t n = 0;
    const int whole = !r->depth && r->flags & WEFT__GRAM_REGEX_WHOLE;
    const int around = !r->depth && !(r->flags & (WEFT__GRAM_REGEX_WHOLE | WEFT__GRAM_REGEX_MARKED));
    const int anchored = !r->depth && r->s < r->end && *r->s == '^', begun = whole || anchored;
    int ended = whole;
    r->s += anchored;
    if (around && !begun) items[n++] = put_piece(&all, anything(r));
    while (r->s < r->end && *r->s != '|' && !(*r->s == ')' && r->depth) && !broken(r)) {
        if (!r->depth && *r->s == '$' && (r->s + 1 == r->end || r->s[1] == '|')) {
            r->s++;
            ended = 1;
            break;
        }
        if (*r->s == ')') {
            r->s++;
            refuse(r, "a ')' without its '('");
        } else if (n >= MAX_PIECES) {
            refuse(r, "too many pieces in a row");
        }
        if (broken(r)) break;
        items[n++] = put_piece(&all, read_repeated(r));
    }
    if (around && !ended) items[n++] = put_piece(&all, anything(r));
    if (around && ended && r->flags & WEFT__GRAM_REGEX_WIDE) items[n++] = put_piece(&all, last_line_break(r));
    if (!broken(r)) all.node = weft__gram_seq(g, items, n);
    if (begun) all.node = mark(r, all.node, WEFT__GRAM_MARK_FIRST);
    if (ended) all.node = mark(r, all.node, WEFT__GRAM_MARK_LAST);
    return all;
}

static regex_piece read_alternatives(regex_reader *r)
{
    regex_piece all = {-1, UINT32_MAX, 0, 1};
    int32_t items[MAX_BRANCHES];
    size_t n = 0;
    for (;;) {
        regex_piece x = read_branch(r);
        if (n == sizeof items / sizeof *items) refuse(r, "too many alternatives");
        if (broken(r)) return all;
        items[n++] = x.node;
        if (x.min < all.min) all.min = x.min;
        if (x.max > all.max) all.max = x.max;
        all.size = add_lengths(all.size, x.size);
        if (r->s == r->end || *r->s != '|') break;
        r->s++;
    }
    all.node = weft__gram_alt(r->g, items, n);
    return all;
}

static regex_piece read_regex(regex_reader *r)
{
    regex_piece x = read_alternatives(r);
    if (broken(r)) x.node = -1;
    return x;
}

static int32_t read_with_facts(weft__gram *g, const char *s, size_t n, unsigned flags, uint32_t room,
                               weft__gram_regex_facts *out)
{
    regex_reader r = {.g = g, .begin = s, .s = s, .end = s + n, .flags = flags, .room = room};
    regex_piece x = read_regex(&r);
    *out = (weft__gram_regex_facts){x.min, x.max, r.why, r.why ? (size_t)(r.place - s) : 0};
    return x.node;
}

int32_t weft__gram_regex(weft__gram *g, const char *s, size_t n, unsigned flags, weft__gram_regex_facts *out)
{
    return read_with_facts(g, s, n, flags, UINT32_MAX, out);
}

/* Whether all that matches with so much room has at most so many characters, and takes no more states than it may. */
static int is_within(const char *s, size_t n, unsigned flags, uint32_t room, uint32_t most)
{
    weft__gram *g = weft__gram_create();
    if (!g) return 0;
    regex_reader r = {.g = g, .begin = s, .s = s, .end = s + n, .flags = flags, .room = room, .measuring = 1};
    regex_piece x = read_regex(&r);
    const int within = x.node >= 0 && x.max <= most && x.size <= MAX_BOUNDED;
    weft__gram_destroy(&g);
    return within;
}

int32_t weft__gram_regex_bounded(weft__gram *g, const char *s, size_t n, unsigned flags, uint32_t most,
                                 weft__gram_regex_facts *out)
{
    uint32_t low = 0, high = most < MAX_BOUNDED ? most : MAX_BOUNDED; /* room that is not too much, and what may be */
    if (!is_within(s, n, flags, 0, most)) return weft__gram_regex(g, s, n, flags, out);
    while (low < high) {
        const uint32_t middle = high - (high - low) / 2;
        if (is_within(s, n, flags, middle, most)) low = middle;
        else high = middle - 1;
    }
    return read_with_facts(g, s, n, flags, low, out);
}
