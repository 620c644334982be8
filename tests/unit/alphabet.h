// SPDX-License-Identifier: Apache-2.0
/* alphabet.h: GPT-2's alphabet of bytes, from its definition, as an oracle for the library's own table. */
#ifndef WEFT_TESTS_ALPHABET_H
#define WEFT_TESTS_ALPHABET_H

#include <stdint.h>

/* The character that spells a byte. */
static inline uint32_t alphabet_of(int byte)
{
    uint32_t n = 0;
    for (int b = 0; b < 256; b++) {
        int itself = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        if (b == byte) return itself ? (uint32_t)byte : 256 + n;
        n += !itself;
    }
    return 0;
}

#endif
