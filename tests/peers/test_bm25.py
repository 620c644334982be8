# SPDX-License-Identifier: Apache-2.0
"""Scores of words are rank_bm25's, on texts of random words. usage: test_bm25.py build/weft

Needs rank_bm25 (tests/peers/run installs it) and bench_search beside weft. Skipped where one of them is absent."""
import os
import random
import subprocess
import sys
import unittest

try:
    from rank_bm25 import BM25Okapi
except ImportError:
    BM25Okapi = None
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(sys.argv.pop(1))), "bench_search") if len(sys.argv) > 1 else ""


@unittest.skipUnless(BM25Okapi, "no rank_bm25")
@unittest.skipUnless(os.path.exists(PROGRAM), "no bench_search: scripts/build bench_search")
class Scores(unittest.TestCase):
    def test_are_the_same(self):
        for seed in range(20):
            dice = random.Random(seed)
            words = ["w%d" % i for i in range(dice.choice((5, 30, 300)))]
            texts = [[words[int(len(words) * dice.random() ** 3)] for _ in range(dice.randint(1, 40))] for _ in range(dice.randint(3, 200))]
            peer = BM25Okapi(texts)
            for _ in range(5):
                query = [dice.choice(words) for _ in range(dice.randint(1, 6))]
                p = subprocess.run([PROGRAM, "--bm25", " ".join(query)], input="\n".join(map(" ".join, texts)) + "\n", text=True,
                                   stdout=subprocess.PIPE, check=True)
                ours, theirs = list(map(float, p.stdout.split())), peer.get_scores(query)
                self.assertEqual(len(ours), len(theirs))
                for a, b in zip(ours, theirs):
                    self.assertAlmostEqual(a, b, delta=1e-9 * max(1, abs(b)))


if __name__ == "__main__":
    unittest.main(verbosity=1)
