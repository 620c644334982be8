# SPDX-License-Identifier: Apache-2.0
"""Claims about scripts/make-model, on a model too small to be any good. usage: test_make_model.py build/weft"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from common import PATIENCE, WEFT, main

SMALL = ("--size", "0.1", "--heldout", "0.02", "--steps", "3", "--echo-steps", "2", "--talk-steps", "2", "--layers", "1", "--styled", "8", "--epochs", "1",
         "--tasks", "60", "--task-steps", "2", "--smollm2", "none")


def make(folder, *more):
    return subprocess.run(
        [
            sys.executable,
            "scripts/make-model",
            "--weft",
            WEFT[0],
            "--work",
            os.path.join(folder, "work"),
            "--ship",
            os.path.join(folder, "ship"),
            *SMALL,
            *more,
        ],
        capture_output=True,
        timeout=PATIENCE,
    )


class MakeModel(unittest.TestCase):
    def test_all_that_ships_comes_from_the_seed(self):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for folder in (one, two):
                p = make(folder)
                self.assertEqual(p.returncode, 0, p.stderr.decode())
            names = ["README.md", "alderbrook.gguf", "letter.gguf", "loss.svg", "pirate.gguf", "poem.gguf", "tasks"]
            tasks = ["tasks/README.md", "tasks/counting.gguf", "tasks/json.gguf", "tasks/two_hop.gguf"]
            self.assertEqual(sorted(os.listdir(os.path.join(one, "ship", "tasks"))), [os.path.basename(t) for t in tasks])
            self.assertEqual(sorted(os.listdir(os.path.join(one, "ship"))), names)
            for name in names[1:-1] + tasks:
                a, b = (pathlib.Path(folder, "ship", name).read_bytes() for folder in (one, two))
                self.assertEqual(a == b, True, name)
            card = pathlib.Path(one, "ship", "README.md").read_text(encoding="utf-8")
            self.assertEqual(len(re.findall(r"^\| (F32|Q8_0|Q4_K_M|Q4_0) \| [\d.]+ MB \| [\d.]+ \| [\d.]+ \|$", card, re.M)), 4)
            self.assertEqual(len(re.findall(r"Where does Luma live\?\*\* \((base|pirate|poem|letter)\)", card)), 4)
            self.assertIn(f"on {len(os.sched_getaffinity(0))} core", card)
            tasks = pathlib.Path(one, "ship", "tasks", "README.md").read_text(encoding="utf-8")
            self.assertEqual(len(re.findall(r"^\| \w+ \| \d+ \| \d+ % \[\d+, \d+\] \|( \**\d+ % \[\d+, \d+\]\** \|){3}$", tasks, re.M)), 7, tasks)
            self.assertEqual(len(re.findall(r"^\| `(counting|json|two_hop)\.gguf` \| [\d.]+ MB \| [\d.-]+ \|$", tasks, re.M)), 3, tasks)
            for style in ("letter", "pirate", "poem"):
                lines = pathlib.Path(one, "work", style, "loss.jsonl").read_text(encoding="utf-8").splitlines()
                before, after = json.loads(lines[0]), json.loads(lines[-1])
                self.assertEqual(before["step"], 0)
                self.assertRegex(card, rf"`{style}.gguf` \| [\d.]+ MB \| {before['heldout']:.3f} \| {after['heldout']:.3f} \|")
            stamp = os.path.getmtime(os.path.join(one, "work", "base", "model.gguf"))
            self.assertEqual(make(one).returncode, 0)  # everything is there already
            self.assertEqual(os.path.getmtime(os.path.join(one, "work", "base", "model.gguf")), stamp)
            p = make(one, "--seed", "2", "--epochs", "2")
            self.assertEqual((p.returncode, b"another epochs, seed" in p.stderr), (1, True), p.stderr)


if __name__ == "__main__":
    main()
