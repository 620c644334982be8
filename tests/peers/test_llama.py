# SPDX-License-Identifier: Apache-2.0
"""What Weft writes, llama.cpp reads: quantized files give the same logits there. usage: test_llama.py build/weft

Needs Node.js and the npm package node-llama-cpp, which carries llama.cpp prebuilt; WEFT_NODE_LLAMA names the folder it was
installed in (npm install node-llama-cpp). Run by `make peers`; skipped where the package is absent."""
import array
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from common import HAVE_MODELS, NO_MODELS, TINY_LLAMA, shared, weft  # noqa: E402

PACKAGE = os.environ.get("WEFT_NODE_LLAMA", "")
SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "probabilities.mjs")
VOCAB = 512
FLOATS = ("F32", "F16", "BF16")
QUANTIZED = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ4_NL IQ4_XS".split()


def prompt():
    with open(shared("golden", "tiny-llama.f16.tokens.txt")) as f:
        return f.readline().split(":")[1].strip()


def theirs(model):
    """log-probabilities [n][V] by llama.cpp"""
    out = subprocess.run(["node", SCRIPT, PACKAGE, model, prompt()], capture_output=True, timeout=300, check=True).stdout
    return [[math.log(p) for p in row] for row in json.loads(out)]


def ours(model):
    """the same by Weft's reference tier, which does not round activations"""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "logits")
        p = weft("eval", "logits", model, "--tokens", prompt(), "-o", path, env={**os.environ, "WEFT_CPU": "ref"})
        assert p.returncode == 0, p.stderr
        values = array.array("f")
        with open(path, "rb") as f:
            values.frombytes(f.read())
    rows = []
    for i in range(0, len(values), VOCAB):
        row = values[i:i + VOCAB]
        top = max(row)
        total = math.log(sum(math.exp(x - top) for x in row)) + top
        rows.append([x - total for x in row])
    return rows


def nmse(a, b):
    """of log-probabilities around their row's mean, which is what logits are up to a constant"""
    error = power = 0.0
    for x, y in zip(a, b):
        mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
        error += sum((p - mean_x - q + mean_y) ** 2 for p, q in zip(x, y))
        power += sum((q - mean_y) ** 2 for q in y)
    return error / power


@unittest.skipUnless(HAVE_MODELS, NO_MODELS)
@unittest.skipUnless(PACKAGE and shutil.which("node"), "node-llama-cpp is not installed; set WEFT_NODE_LLAMA to its folder")
class Llama(unittest.TestCase):
    def compare(self, model, bound, name):
        a, b = ours(model), theirs(model)
        self.assertEqual(len(a), len(b), name)
        error = nmse(b, a)
        print(f"{name:8} NMSE of llama.cpp's logits against ours {error:.2e} (at most {bound:.1e})")
        self.assertLess(error, bound, name)

    def test_quantized_files_mean_the_same_there(self):
        with tempfile.TemporaryDirectory() as d:
            for t in FLOATS + tuple(QUANTIZED):
                path = os.path.join(d, t + ".gguf")
                p = weft("quantize", TINY_LLAMA, path, t)
                self.assertEqual(p.returncode, 0, p.stderr)
                # llama.cpp rounds activations to 8 bits (to bf16 for bf16 weights) and keeps an f16 cache.
                self.compare(path, 2e-5 if t in ("F32", "F16") else 2e-4 if t == "BF16" else 3e-3, t)


if __name__ == "__main__":
    unittest.main(verbosity=1)
