# SPDX-License-Identifier: Apache-2.0
"""Answers under random JSON Schemas are valid to the package jsonschema, or prefixes of valid ones where they break off: 1000 from the shipped
model, SmolLM2 where it was fetched, and the reference models. usage: test_schema.py build/weft

WEFT_SCHEMAS=N is how many answers (1000), WEFT_SEED=N the first seed (1). Needs the packages jsonschema and regex. What a prefix is, is asked
of regular expressions that random_schema.py makes of the schemas."""
import collections
import concurrent.futures
import glob
import json
import os
import random
import sys
import tempfile
import unittest

import jsonschema
import regex

NEEDED = {"date", "time", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "json-pointer", "regex", "uri", "uri-reference", "uri-template", "uuid"}

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
from common import shared, weft  # noqa: E402
from random_schema import document  # noqa: E402

CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER
COUNT, SEED = int(os.environ.get("WEFT_SCHEMAS") or 1000), int(os.environ.get("WEFT_SEED") or 1)
SMOL = "build/material/SmolLM2-135M-Instruct.Q4_1.gguf"
TINY = [path for path in sorted(glob.glob(shared("models", "tiny-*.f16.gguf"))) + [shared("models", "stories260K.gguf")] if os.path.exists(path)]


def model_of(i):
    """Half of the answers from the shipped model, one of twenty from SmolLM2, the others from models of random weights."""
    if os.path.exists(SMOL) and i % 20 == 7:
        return SMOL
    return "models/alderbrook.gguf" if i % 2 or not TINY else TINY[i // 2 % len(TINY)]


def answer(i, tokens):
    """Schema, expression, and what the command said."""
    made, expression = document(random.Random(SEED + i))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(made, f)
        f.flush()
        p = weft("run", model_of(i), "A value as JSON: ", "--json", "-t", "1", "--schema", f.name, "-n", str(tokens), "--seed", str(SEED + i), "--temp", "1")
    return made, expression, p


class Schemas(unittest.TestCase):
    def check_answers(self, tokens, count):
        reasons, models = collections.Counter(), collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for i, (made, expression, p) in enumerate(pool.map(lambda i: answer(i, tokens), range(count))):
                self.assertTrue(p.stdout, (made, p.stderr))
                out = json.loads(p.stdout)
                reasons[out["finish_reason"]] += 1
                models[os.path.basename(model_of(i)), out["finish_reason"]] += 1
                cut = p.returncode != 0  # a number that might go on is whole at the limit, too
                text = out["text"].rstrip("\ufffd") if cut else out["text"]  # half a character
                self.assertTrue(regex.fullmatch(expression, text, partial=cut), (SEED + i, made, expression, text))
                if cut:
                    self.assertEqual((p.returncode, out["finish_reason"]), (1, "length"), (SEED + i, p.stderr))
                    continue
                validator = jsonschema.Draft202012Validator(made, format_checker=CHECKER)
                errors = [e.message for e in validator.iter_errors(json.loads(out["text"]))]
                self.assertFalse(errors, (SEED + i, made, out["text"]))
        print(f"{tokens} tokens at most: {dict(reasons)}; {dict(models)}")
        return reasons

    def test_each_format_is_checked(self):
        """Which they are depends on packages beside jsonschema."""
        self.assertFalse(NEEDED - set(CHECKER.checkers))

    def test_answers_are_valid(self):
        reasons = self.check_answers(1200, COUNT)
        self.assertGreaterEqual(reasons["stop"], COUNT * 9 // 10)

    def test_answers_that_break_off_are_prefixes(self):
        reasons = self.check_answers(12, max(COUNT // 5, 1))
        self.assertGreater(reasons["length"], 0)


if __name__ == "__main__":
    unittest.main()
