# SPDX-License-Identifier: Apache-2.0
"""Claims about scripts/gate: a format that is as good passes with an adapter, one that is not ends with status 1 before it is asked, and answers that
were lost are counted by pairs. usage: test_gate.py build/weft"""
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import unittest

from common import PATIENCE, WEFT, InFolder, main

sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("gate", os.path.join("scripts", "gate"))
gate = importlib.util.module_from_spec(importlib.util.spec_from_loader("gate", loader))
loader.exec_module(gate)


class Judged(unittest.TestCase):
    def test_pairs_are_counted_exactly(self):
        self.assertEqual(gate.binomial(0, 0), 1)
        self.assertAlmostEqual(gate.binomial(5, 0), 2 / 32)
        self.assertAlmostEqual(gate.binomial(10, 2), 2 * (1 + 10 + 45) / 1024)
        self.assertEqual(gate.binomial(4, 2), 1)
        r = gate.compared([True, True, True, False], [True, False, False, True])
        self.assertEqual((r["asked"], r["base"], r["accuracy"], r["lost"], r["won"]), (4, 75, 50, 2, 1))
        with self.assertRaises(SystemExit):
            gate.compared([True], [])

    def test_accuracy_is_held_to_its_bound(self):
        """400 right answers of 1000 in BF16: three fewer pass, four do not; and KL decides first."""
        class Doubled(gate.Gate):
            def __init__(self, kl, n_lost):
                self.told, self.n_lost, self.asked = kl, n_lost, 0

            def kl(self, *_):
                return self.told

            def answers(self, *_):
                self.asked += 1
                return [False] * self.n_lost + [i >= self.n_lost and i < 400 for i in range(self.n_lost, 1000)]

        base = [i < 400 for i in range(1000)]
        for kl, n_lost, missed, asked in (((1e-4, 99.9), 3, 0, 1), ((1e-4, 99.9), 4, 1, 1), ((2e-3, 99.9), 0, 1, 0), ((1e-4, 90.0), 0, 1, 0),
                                          ((float("nan"), 99.9), 0, 1, 0)):
            g = Doubled(kl, n_lost)
            row = g.one("Q8_0", "best", None, base)
            self.assertEqual((len(row["missed"]), g.asked), (missed, asked), row)


class Run(InFolder):
    def test_good_formats_pass_and_bad_ones_do_not(self):
        def run(*args):
            return subprocess.run([sys.executable, "scripts/gate", "--weft", WEFT[0], "--work", self.path("gate"), "--asked", "8", "--stories", "8",
                                   "--tier", "best", *args], capture_output=True, text=True, timeout=PATIENCE)

        p = run("--format", "Q8_0", "--adapter", "pirate=models/pirate.gguf", "--json")
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        rows = json.loads(p.stdout)["rows"]
        self.assertEqual([r["adapter"] for r in rows], [None, "pirate"])
        self.assertTrue(all(0 < r["kl"] < 1.5e-3 for r in rows), rows)
        self.assertEqual([r.get("asked") for r in rows], [16, None])  # what the adapter changes is how answers are said
        p = run("--format", "Q2_K", "--no-adapters")
        self.assertEqual((p.returncode, "MISSED: KL above" in p.stdout, "accuracy" in p.stdout), (1, True, False), p.stdout + p.stderr)
        self.assertIn("0 of 1 within", p.stdout)
        p = run("--format", "Q9", "--no-adapters")
        self.assertEqual((p.returncode, "Q9" in p.stderr), (1, True), p.stderr)


if __name__ == "__main__":
    main()
