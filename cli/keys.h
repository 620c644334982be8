// SPDX-License-Identifier: Apache-2.0
/* keys.h: what a terminal sends, taken apart into keys and pasted blocks. One thread. */
#ifndef WEFT_CLI_KEYS_H
#define WEFT_CLI_KEYS_H

#include "base/text.h"

typedef enum key {
    KEY_NONE,  /* more bytes are needed */
    KEY_TEXT,  /* keys.text: a character, or a tab where it was pasted */
    KEY_PASTE, /* keys.text: a pasted block, lines ended by newlines */
    KEY_PASTE_TOO_LONG,
    KEY_CONTROL, /* keys.letter: 'A' for Ctrl-A, '[' ... '_', '?' for backspace; '@' */
    KEY_META,    /* keys.letter: the letter with Alt, or Escape before it; '\r' */
    KEY_UP,
    KEY_DOWN,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_WORD_LEFT,
    KEY_WORD_RIGHT,
    KEY_HOME,
    KEY_END,
    KEY_DELETE,
    KEY_OTHER /* one that means nothing here */
} key;

typedef struct keys {
    weft__strbuf pending; /* bytes that came, from `at` on not yet taken */
    size_t at;
    weft__strbuf text;
    int letter;
    int pasting, too_long;
} keys;

void keys_free(keys *k);
/* Adds bytes that came. */
void keys_feed(keys *k, const char *bytes, size_t n);
/* The next key of what came. */
key keys_next(keys *k);

#endif
