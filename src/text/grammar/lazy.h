// SPDX-License-Identifier: Apache-2.0
/* lazy.h: a grammar that begins later: the text is free until a trigger was written, and from the trigger's first
 * byte on it is a text of the grammar.
 *
 * What is free may be anything, control tokens and ends too, but a token that completes a trigger must go on as the
 * grammar does. Between skip_from and skip_to (thinking) nothing is a trigger. Invariant: a token is allowed exactly
 * when weft__gram_watch_accept would take it. */
#ifndef WEFT_TEXT_LAZY_H
#define WEFT_TEXT_LAZY_H

#include "text/grammar/matcher.h"

/* A pattern is a regular expression of any part of the text, or of all of it, which is anchored at the ends only. It is
 * complete with the first byte at which some text ends that it matches, and where it asks for the text's end, with the
 * first token. Of what it matches by then the grammar has what begins with the first of its groups, by number, that has
 * text, or all. */
enum { WEFT__GRAM_TRIGGER_WORD, WEFT__GRAM_TRIGGER_PATTERN, WEFT__GRAM_TRIGGER_PATTERN_FULL };
typedef struct weft__gram_trigger {
    int32_t token;    /* -1: a word, or a pattern */
    const char *text; /* UTF-8; where a control token is spelled so, that one, too */
    size_t n;
    int kind; /* of text */
} weft__gram_trigger;

typedef struct weft__gram_lazy_spec {
    const weft__gram_trigger *triggers; /* [n], at least one */
    size_t n;
    weft__gram *rules; /* or NULL and triggers: the rule `words` of it says what is one; borrowed, for the creation */
    int32_t words;
    const char *skip_from, *skip_to; /* markers (weft__gram_marker); both or neither */
    int skipping;                    /* 1: the text begins behind skip_from */
} weft__gram_lazy_spec;

enum {
    WEFT__GRAM_LAZY_TRIGGERS = 256,
    WEFT__GRAM_LAZY_WORD = 1024,     /* bytes of a word */
    WEFT__GRAM_LAZY_PATTERN = 4096,  /* and of a pattern */
    WEFT__GRAM_LAZY_PLACES = 1 << 14 /* of the vocabulary at which a trigger is complete */
};

/* Reference counted; threads may share it. */
typedef struct weft__gram_lazy weft__gram_lazy;

/* Takes a reference to g. Fails with WEFT_ARGUMENT for a trigger that is empty, no UTF-8 or no token, or with which no
 * text of the grammar begins, but for patterns; WEFT_UNSUPPORTED for what patterns cannot say; WEFT_LIMIT;
 * WEFT_NO_MEMORY. */
weft_status weft__gram_lazy_create(weft__gram_tables *g, const weft__tok *tok, const weft__gram_lazy_spec *spec,
                                   weft__gram_lazy **out, weft_error *err);
weft__gram_lazy *weft__gram_lazy_retain(weft__gram_lazy *l);
void weft__gram_lazy_release(weft__gram_lazy **l);

/* A text that is free; belongs to one thread. Keeps the grammar alive. */
typedef struct weft__gram_watch weft__gram_watch;

weft_status weft__gram_watch_create(weft__gram_lazy *l, weft__gram_watch **out, weft_error *err);
weft_status weft__gram_watch_copy(const weft__gram_watch *w, weft__gram_watch **out, weft_error *err);
void weft__gram_watch_destroy(weft__gram_watch **w);
/* Goes on by a token. *begun: NULL while the text is free; else a matcher, the caller's, that holds from here on. Fails
 * as weft__gram_matcher_accept does; nothing has changed then. */
weft_status weft__gram_watch_accept(weft__gram_watch *w, int32_t token, weft__gram_matcher **begun, weft_error *err);
/* As weft__gram_matcher_mask; also WEFT_LIMIT where patterns leave too many tokens to be tried. */
weft_status weft__gram_watch_mask(weft__gram_watch *w, uint64_t *bits, weft_error *err);
/* 1: the text may end here; 2: it has ended. */
int weft__gram_watch_complete(const weft__gram_watch *w);

#endif
