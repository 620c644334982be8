// SPDX-License-Identifier: Apache-2.0
/* regex.h: the regular expressions of pre-tokenizers; the only door to PCRE2.
 *
 * Patterns are written for Oniguruma (Ruby's dialect), which is what tokenizer files mean; they are translated where
 * PCRE2 would read them differently, and refused by name where a construct has no translation. Subjects must be
 * well-formed UTF-8. A compiled expression is immutable and shared by threads; scratch belongs to one call. */
#ifndef WEFT_TEXT_REGEX_H
#define WEFT_TEXT_REGEX_H

#include <stddef.h>

#include "base/text.h"
#include "weft/error.h"

typedef struct weft__regex weft__regex;

#define WEFT__REGEX_MAX_BYTES 65536 /* of a pattern */

/* Fails with WEFT_FORMAT (malformed; the message has the position), WEFT_UNSUPPORTED (a construct, by name), WEFT_LIMIT
 * or WEFT_NO_MEMORY. */
weft_status weft__regex_compile(const char *pattern, size_t n, weft__regex **out, weft_error *err);
void weft__regex_free(weft__regex **regex);

/* Memory of searches, made on first use. Zero-initialise. budget: of a search, in steps of going back; where it is used
 * up, that is WEFT_LIMIT at once. 0: seconds, for patterns of files. */
typedef struct weft__regex_scratch {
    void *general, *match_data, *context, *jit_stack;
    unsigned budget;
} weft__regex_scratch;
void weft__regex_scratch_free(weft__regex_scratch *scratch);

/* The first match in s[0..n) at or after `from`, which lies between characters. Returns WEFT_OK with *found 1 and the
 * match [*start, *end), or *found 0. Fails with WEFT_LIMIT when the search exceeds its budget even without the
 * just-in-time compiler, or WEFT_NO_MEMORY. */
weft_status weft__regex_find(const weft__regex *regex, weft__regex_scratch *scratch, const char *s, size_t n,
                             size_t from, int *found, size_t *start, size_t *end, weft_error *err);

/* ---- the dialect of Python's `re`, with groups: what task files extract answers with ----
 * As re reads it, but for \N{...}, POSIX classes' spelling ([[:alpha:]]) and other escapes that re refuses, too; \s
 * lacks U+001C to U+001F. */

enum { WEFT__REGEX_GROUPS = 32 }; /* the whole match among them */

/* As weft__regex_compile; WEFT_LIMIT for more groups. The expression is for weft__regex_match alone. */
weft_status weft__regex_compile_python(const char *pattern, size_t n, weft__regex **out, weft_error *err);

/* A group that took no part has start and end SIZE_MAX. [0]: the whole match. */
typedef struct weft__regex_groups {
    int n;
    size_t start[WEFT__REGEX_GROUPS], end[WEFT__REGEX_GROUPS];
} weft__regex_groups;

/* As weft__regex_find. not_empty: a match that begins at `from` has a character, so that all matches are found by
 * searching from the end of each, with not_empty where that one was empty. */
weft_status weft__regex_match(const weft__regex *regex, weft__regex_scratch *scratch, const char *s, size_t n,
                              size_t from, int not_empty, int *found, weft__regex_groups *out, weft_error *err);

/* Oniguruma's dialect to PCRE2's; appends to out. */
weft_status weft__regex_translate(const char *pattern, size_t n, weft__strbuf *out, weft_error *err);
/* Python's. */
weft_status weft__regex_translate_python(const char *pattern, size_t n, weft__strbuf *out, weft_error *err);

#endif
