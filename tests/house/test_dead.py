#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The check of dead code names each internal function that no program reaches, and no other.  Usage: test_dead.py"""
import os
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check-dead")
ROOM = """
#include "a.h"
const char *weft__quoted = "weft__in_a_string()";
static int shared(void) { return weft__by_a_static(); }
int weft__by_a_static(void) { return 1; }
int weft__by_a_table(void) { return 2; }
int weft__by_a_macro(void) { return 3; }
int weft__pasted_one(void) { return 4; }
int weft__in_a_string(void) { return 5; }
int weft__by_the_dead(void) { return 6; }
int weft__dead(void) { return weft__by_the_dead() + (0 /* weft__in_a_string() */); }
int weft__tested(void) { return 7; }
int weft__wanted(void) { return 8; }
static int (*const table[])(void) = {weft__by_a_table};
int weft_public(void) { return shared() + table[0]() + CALL(); }
"""
HEADER = """
#define CALL() weft__by_a_macro()
#define PASTE(name) extern int weft__pasted_##name(void);
int weft__by_a_static(void), weft__by_a_table(void), weft__by_a_macro(void), weft__by_the_dead(void);
static inline int weft__inline_used(void) { return 9; }
static inline int weft__inline_dead(void) { return 10; }
PASTE(one)
"""


class Dead(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        for path, text in (("src/a/a.h", HEADER), ("src/a/a.c", ROOM), ("tests/a.c", "int main(void) { return weft__tested() + weft__wanted(); }\n"),
                           ("cli/main.c", "int main(void) { return weft_public() + weft__inline_used(); }\n")):
            os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
            self.write(path, text)
        self.write_allowed("weft__wanted  a test needs it\n")
        os.makedirs(os.path.join(self.root, "build/src/a"))
        subprocess.run("gcc -c src/a/a.c -o build/a.o && ar qcs build/src/a/libweft_a.a build/a.o", shell=True, cwd=self.root, check=True)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        with open(os.path.join(self.root, path), "w") as f:
            f.write(text)

    def write_allowed(self, text):
        os.makedirs(os.path.join(self.root, "scripts"), exist_ok=True)
        self.write("scripts/check-dead.allow", "# NAME REASON\n" + text)

    def run_check(self, build="build"):
        done = subprocess.run([sys.executable, CHECK, os.path.join(self.root, build), self.root], capture_output=True, text=True)
        return done.returncode, done.stdout.splitlines()

    def test_what_is_dead_is_named(self):
        status, lines = self.run_check()
        self.assertEqual((status, lines[:-1]), (1, [
            "a: weft__by_the_dead: nothing reaches it", "a: weft__dead: nothing reaches it", "a: weft__in_a_string: nothing reaches it",
            "a: weft__inline_dead: nothing reaches it", "a: weft__tested: tests alone reach it"]))

    def test_what_is_allowed_needs_a_reason_and_a_function(self):
        dead = "".join(f"weft__{name}  kept\n" for name in ("by_the_dead", "dead", "in_a_string", "inline_dead", "tested"))
        self.write_allowed(dead + "weft__wanted  a test needs it\n")
        self.assertEqual(self.run_check()[0], 0)
        for line, said in (("weft__wanted\n", "weft__wanted: no reason"), ("weft__by_a_table  kept\n", "weft__by_a_table: is in use"),
                           ("weft__absent  kept\n", "weft__absent: is no function of the libraries")):
            self.write_allowed(dead + line)
            status, lines = self.run_check()
            self.assertEqual(status, 1)
            self.assertIn("scripts/check-dead.allow: " + said, lines)

    def test_without_libraries_it_is_skipped(self):
        self.assertEqual(self.run_check("absent")[0], 77)


if __name__ == "__main__":
    unittest.main()
