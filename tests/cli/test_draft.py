#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small model that guesses changes no byte of what `weft run` and `weft chat` write, is found among pulled ones, and refused by name.

Usage: test_draft.py WEFT"""
import json
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import WEFT, main, run  # noqa: E402

MODEL = os.path.abspath("models/alderbrook.gguf")


class Draft(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.small = os.path.join(cls.folder, "small.gguf")
        cls.words = os.path.join(cls.folder, "words.gguf")
        cls.checked(cls, "quantize", MODEL, cls.small, "Q3_K_S")
        cls.checked(cls, "bench", "--synthetic", "tiny-128", "--write", cls.words)

    def weft(self, *args, stdin=b"", cache=None):
        return run(WEFT + list(args), input=stdin, env={**os.environ, "WEFT_CACHE": cache or os.path.join(self.folder, "none")})

    def checked(self, *args):
        p = run(WEFT + list(args))
        assert p.returncode == 0, p.stderr
        return p

    def test_same_text(self):
        for temperature in ("0", "0.9"):
            ask = ("run", MODEL, "Once upon a time", "-n", "60", "--temp", temperature, "--seed", "3", "--json")
            plain = json.loads(self.weft(*ask, "--spec", "off").stdout)
            self.assertEqual(plain["timings"]["draft_n"], 0)
            for spec in ("auto", "draft"):
                p = self.weft(*ask, "--spec", spec, "--draft", self.small)
                self.assertEqual(p.returncode, 0, p.stderr)
                guessed = json.loads(p.stdout)
                self.assertEqual((guessed["tokens"], guessed["text"]), (plain["tokens"], plain["text"]))
                self.assertLessEqual(guessed["timings"]["draft_n_accepted"], guessed["timings"]["draft_n"])

    def test_same_conversation(self):
        talk = (b"Who are you?\nAnd where?\n", "-n", "30", "--temp", "0.8", "--seed", "4")
        plain = self.weft("chat", MODEL, *talk[1:], "--spec", "off", stdin=talk[0])
        guessed = self.weft("chat", MODEL, *talk[1:], "--draft", self.small, stdin=talk[0])
        self.assertEqual((guessed.returncode, guessed.stdout), (0, plain.stdout), guessed.stderr)
        self.assertTrue(plain.stdout)

    def test_auto(self):
        """The smallest pulled model of the vocabulary that should gain; without one it goes on, and says so."""
        cache = os.path.join(self.folder, "cache")
        place = os.path.join(cache, "models", "me", "mine")
        os.makedirs(place)
        shutil.copy(self.words, place)  # smaller, of another vocabulary
        ask = ("run", MODEL, "Once", "-n", "20", "--temp", "0", "--draft", "auto")
        plain = self.weft("run", MODEL, "Once", "-n", "20", "--temp", "0", "--spec", "off").stdout
        for spec in ("auto", "draft"):
            p = self.weft(*ask, "--spec", spec, cache=cache)
            self.assertEqual((p.returncode, p.stdout), (0, plain), p.stderr)
            self.assertIn(b"--draft auto: of 1 pulled models none has this vocabulary and is small enough", p.stderr)
        shutil.copy(MODEL, place)  # fits, and gains nothing
        shutil.copy(self.small, place)
        p = self.weft(*ask, cache=cache)
        self.assertEqual((p.returncode, p.stdout), (0, plain), p.stderr)
        self.assertIn(b"--draft auto: me/mine:small.gguf guesses", p.stderr)

    def test_refusals(self):
        for command in (("run", MODEL, "x"), ("chat", MODEL), ("serve", MODEL)):
            p = self.weft(*command, "--draft", self.words)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertRegex(p.stderr, rb"--draft: \S*words\.gguf cannot guess for \S*alderbrook\.gguf: its vocabulary has 512 tokens, and that one 2048")
            for more, text in ((("--spec", "draft"), b"--draft MODEL"), (("--spec", "suffix", "--draft", self.small), b"--spec suffix no model guesses"),
                               (("--spec", "off", "--draft", "auto"), b"--spec off no model guesses")):
                p = self.weft(*command, *more)
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn(text, p.stderr)
            p = self.weft(*command, "--draft", os.path.join(self.folder, "absent.gguf"))
            self.assertEqual((p.returncode, b"absent.gguf" in p.stderr), (1, True), p.stderr)

    def counted(self, row):
        """By place: together all guesses, each tried no more often than the one before it, and right no more often than tried."""
        tried, right = row["draft_n_at"], row["draft_n_accepted_at"]
        self.assertEqual((sum(tried), len(tried)), (row["draft_n"], len(right)))
        self.assertEqual(sum(right), row["draft_n_accepted"])
        for at in (tried, right):
            self.assertEqual(at, sorted(at, reverse=True))
        self.assertTrue(all(r <= t and t > 0 for r, t in zip(right, tried)), row)

    def test_bench_by_place(self):
        """What was tried and what was right is counted by place, in the last repetition, and more is right of a prediction that is."""
        size = ("-p", "16", "-n", "100", "-r", "2", "-b", "1,2", "--spec", "1,0")
        p = self.weft("bench", MODEL, *size, "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        rows = json.loads(p.stdout)
        self.assertEqual([r["predicted_right"] for r in rows], [None, 1, 0] * 2)
        for r in rows:
            self.counted(r)
        for plain, right, wrong in (rows[:3], rows[3:]):
            self.assertEqual((plain["draft_n_at"], plain["draft_n_accepted_at"]), ([], []))
            self.assertGreater(sum(right["draft_n_accepted_at"]), sum(wrong["draft_n_accepted_at"]))
        table = self.weft("bench", MODEL, *size).stdout.decode().splitlines()
        self.assertIn("| accepted at 1, 2, .. |", table[0])
        self.assertTrue(table[2].endswith(" - |"), table)
        self.assertRegex(table[3], r"\|( [01]\.[0-9][0-9])+ \|$")

    def test_bench(self):
        """Rows of what a draft model guesses, and of what is guessed of a text."""
        size = ("-p", "16", "-n", "8", "-r", "1", "--no-warmup", "--json")
        rows = json.loads(self.weft("bench", MODEL, *size, "--draft", self.small).stdout)
        self.assertEqual([(r["drafters"], r["predicted_right"]) for r in rows], [(False, None), (True, None)])
        rows = json.loads(self.weft("bench", MODEL, *size, "--text", "README.md", "--spec", "0.5").stdout)
        self.assertEqual([(r["drafters"], r["predicted_right"]) for r in rows], [(False, None), (False, 0.5), (True, None)])
        for r in rows:
            self.counted(r)
        for parts in ("0.5,", ",0.5", "0.5,,1", "1.5", "nan", "x"):
            p = self.weft("bench", MODEL, *size, "--spec", parts)
            self.assertEqual((p.returncode, b"--spec: parts from 0 to 1" in p.stderr), (2, True), (parts, p.stderr))
        p = self.weft("bench", MODEL, "-p", "256", "-n", "2", "-r", "1", "-b", "16", "--spec", "0")
        self.assertEqual((p.returncode, b"so that there is no rate: give -n more than 2" in p.stderr), (1, True), p.stderr)
        p = self.weft("bench", "--synthetic", "tiny-128", *size, "--text", "README.md")
        self.assertEqual((p.returncode, b"no tokenizer" in p.stderr), (1, True), p.stderr)


if __name__ == "__main__":
    main()
