# SPDX-License-Identifier: Apache-2.0
"""What compiled schemas of random_conditions.py allow is valid to the package jsonschema: random texts of 2000 schemas, and values of which none
that is invalid may be taken. usage: test_schema_walks.py build/weft    (schema_driver stands beside it)

WEFT_SCHEMAS=N is how many schemas (2000), WEFT_SEED=N the first seed (1)."""
import collections
import json
import os
import random
import subprocess
import sys
import unittest

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from random_conditions import document, texts  # noqa: E402

CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER
COUNT, SEED = int(os.environ.get("WEFT_SCHEMAS") or 2000), int(os.environ.get("WEFT_SEED") or 1)
DRIVER = os.path.join(os.path.dirname(sys.argv.pop(1)), "schema_driver")


def python(v):
    """The schema with its patterns as Python spells them."""
    if isinstance(v, dict):
        return {k: python(x) if k != "pattern" else x.replace("(?<", "(?P<").replace("[^]", r"[\s\S]").replace(r"\u{78}", "x").replace(r"\cA", r"\x01")
                for k, x in v.items()}
    return [python(x) for x in v] if isinstance(v, list) else v


class Walks(unittest.TestCase):
    def test_what_is_allowed_is_valid(self):
        driver = subprocess.Popen([DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        seen, refused = collections.Counter(), collections.Counter()
        for i in range(COUNT):
            r = random.Random(SEED + i)
            made = document(r)
            tried = texts(r, made, 12)
            driver.stdin.write(json.dumps({"schema": made, "walks": 6, "seed": SEED + i, "texts": tried}).encode() + b"\n")
            driver.stdin.flush()
            said = json.loads(driver.stdout.readline())
            validator = jsonschema.Draft202012Validator(python(made), format_checker=CHECKER)
            if "error" in said:
                refused[said["error"].partition(": ")[2].partition(": ")[2][:60]] += 1
                seen["refused"] += 1
                continue
            seen["compiled"] += 1
            for text in said["walks"]:
                if text is None:
                    seen["unended"] += 1
                    continue
                seen["walks"] += 1
                errors = [e.message for e in validator.iter_errors(json.loads(text))]
                self.assertFalse(errors, (SEED + i, json.dumps(made), text))
            for text, taken in zip(tried, said["taken"]):
                valid = validator.is_valid(json.loads(text))
                seen["valid, taken" if valid and taken else "valid, not taken" if valid else "invalid"] += 1
                self.assertFalse(taken and not valid, (SEED + i, json.dumps(made), text))
        driver.communicate()
        self.assertEqual(driver.returncode, 0)
        print(dict(seen))
        for why, n in refused.most_common(12):
            print(f"{n:5}  {why}")
        self.assertGreater(seen["compiled"], COUNT // 2)


if __name__ == "__main__":
    unittest.main()
