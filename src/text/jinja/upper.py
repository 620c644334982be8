#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes upper.h: the characters whose upper or title case is more than one character (Unicode SpecialCasing), which the
simple mapping of the Unicode library leaves out."""
print("/* Written by upper.py; do not edit. X(code point, upper case, title case) in UTF-8, ordered. */")
print("/* clang-format off */")
print("#define WEFT__JINJA_LONG_CASE(X) \\")
rows = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and (len(chr(c).upper()) > 1 or len(chr(c).title()) > 1)]
for i, c in enumerate(rows):
    def lit(s):
        return '"' + "".join("\\x%02x" % b for b in s.encode()) + '"'
    line = "    X(0x%04X, %s, %s)" % (c, lit(chr(c).upper()), lit(chr(c).title()))
    print(line + " \\" if i + 1 < len(rows) else line)
