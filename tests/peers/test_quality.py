# SPDX-License-Identifier: Apache-2.0
"""Perplexity, base files and importance matrices: what Weft writes llama.cpp's own tools read, and the other way round, with the same
numbers. usage: test_quality.py build/weft

Needs python3-numpy, and llama-perplexity and llama-imatrix in the folder WEFT_LLAMA_TOOLS (`make peers` builds them). Skipped where
one of them is absent."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "cli"), os.path.join(HERE, "..", "model")]
import gguf_file  # noqa: E402
import numpy as np  # noqa: E402
from common import HAVE_MODELS, NO_MODELS, STORIES, shared, weft  # noqa: E402

TOOLS = os.environ.get("WEFT_LLAMA_TOOLS", "")
TEXT = shared("golden", "stories.txt")
MIXTRAL = shared("models", "tiny-mixtral.f16.gguf")
HAVE_TOOLS = all(os.path.exists(os.path.join(TOOLS, name)) for name in ("llama-perplexity", "llama-imatrix"))


def theirs(name, *args):
    p = subprocess.run([os.path.join(TOOLS, name), *args, "-t", "2"], capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert p.returncode == 0, (p.stdout + p.stderr).decode(errors="replace")[-3000:]
    return (p.stdout + p.stderr).decode(errors="replace")


def ours(*args, **environment):
    p = weft(*args, env={**os.environ, **environment})
    assert p.returncode == 0, p.stderr.decode()
    return p.stdout.decode()


def estimate(text):
    return float(re.search(r"Final estimate: PPL = ([\d.]+)", text)[1])


def figures(text):
    """The named figures of a summary: {"Mean PPL(Q)": 3.326403, ...}."""
    text = re.sub(r"^\d+(\.\d+){3} .*$", "", text, flags=re.M)  # lines of a log
    found = re.findall(r"^(\S.*?)\s*: +(-?[\d.]+)", text.replace("%:", ":"), re.M)
    return {re.sub(r"\s+", " ", name): float(value) for name, value in found}


@unittest.skipUnless(HAVE_MODELS, NO_MODELS)
@unittest.skipUnless(HAVE_TOOLS, "llama-perplexity and llama-imatrix are not there; set WEFT_LLAMA_TOOLS to their folder")
class Quality(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def path(self, name):
        return os.path.join(self.dir, name)

    def test_perplexity(self):
        """To four digits, of the real model and of one whose probabilities are nearly all alike."""
        for model, context in ((STORIES, "256"), (STORIES, "128"), (shared("models", "tiny-qwen3.f16.gguf"), "128")):
            a = estimate(ours("eval", "perplexity", model, "-f", TEXT, "-c", context))
            b = estimate(theirs("llama-perplexity", "-m", model, "-f", TEXT, "-c", context, "-b", context))
            print(f"{os.path.basename(model)}, -c {context}: perplexity {a}, llama.cpp's {b}")
            self.assertEqual(f"{a:.4g}", f"{b:.4g}")

    def test_base_files_both_ways(self):
        """Each tool writes a base and reads the other's; comparing the same Q4_0 weights gives the same summary."""
        base = {"ours": self.path("ours"), "theirs": self.path("theirs")}
        common = ("-f", TEXT, "-c", "256")
        ours("eval", "perplexity", STORIES, *common, "--kl-base", base["ours"])
        theirs("llama-perplexity", "-m", STORIES, *common, "-b", "256", "--kl-divergence-base", base["theirs"])
        self.assertEqual(os.path.getsize(base["ours"]), os.path.getsize(base["theirs"]))
        quantized = self.path("q.gguf")
        ours("quantize", STORIES, quantized, "Q4_0")
        read = {}
        for whose in base:
            read["we", whose] = figures(ours("eval", "perplexity", quantized, "--kl-against", base[whose], WEFT_CPU="ref"))
            read["they", whose] = figures(theirs("llama-perplexity", "-m", quantized, "-c", "256", "-b", "256", "--kl-divergence",
                                                 "--kl-divergence-base", base[whose]))
            for who in ("we", "they"):
                print(f"base of {whose}, read by {who}: mean KLD {read[who, whose]['Mean KLD']}, same top {read[who, whose]['Same top p']} %")
        reference = read["they", "theirs"]
        self.assertGreater(reference["Mean KLD"], 1e-3)
        for key, summary in read.items():
            self.assertEqual(set(reference) - set(summary), set(), key)
            self.assertAlmostEqual(summary["Mean KLD"] / reference["Mean KLD"], 1, delta=0.1, msg=str(key))  # they round activations
            self.assertAlmostEqual(summary["Same top p"], reference["Same top p"], delta=1.0, msg=str(key))
            self.assertAlmostEqual(summary["Mean PPL(base)"], reference["Mean PPL(base)"], delta=1e-3, msg=str(key))
        for who in ("we", "they"):  # the same reader sees the same in both
            self.assertAlmostEqual(read[who, "ours"]["Mean KLD"] / read[who, "theirs"]["Mean KLD"], 1, delta=0.01)

    def test_importance_matrices(self):
        """Sums and counts are llama-imatrix's, those of routed experts included; its file is taken by weft quantize."""
        for model in (STORIES, MIXTRAL):
            a, b, c, old = (self.path(name) for name in ("ours.gguf", "theirs.gguf", "q.gguf", "theirs.dat"))
            ours("imatrix", model, "-f", TEXT, "-o", a, "-c", "128", "--chunks", "8")
            theirs("llama-imatrix", "-m", model, "-f", TEXT, "-o", b, "-c", "128", "-b", "128", "--chunks", "8", "--no-ppl")
            mine, other = gguf_file.read(a)[1], gguf_file.read(b)[1]
            self.assertEqual(set(mine), set(other))
            worst = 0
            for name in other:
                if name.endswith(".counts"):  # a near tie may send a token to another expert
                    self.assertLessEqual(np.abs(mine[name] - other[name]).max(), 0.01 * other[name].sum(), name)
                    continue
                error = np.sqrt(np.sum((mine[name].astype(float) - other[name]) ** 2) / np.sum(other[name].astype(float) ** 2))
                worst = max(worst, error)
                self.assertLess(error, 0.02, name)
            print(f"{os.path.basename(model)}: {len(other) // 2} matrices, importance differs by at most {worst:.1e}")
            theirs("llama-imatrix", "-m", model, "-f", TEXT, "-o", old, "--output-format", "dat", "-c", "128", "-b", "128", "--chunks", "8", "--no-ppl")
            files = []
            for matrix in (b, old):  # the form of today, and the older one
                ours("quantize", model, c, "Q4_0", "--imatrix", matrix)
                with open(c, "rb") as f:
                    files.append(np.frombuffer(f.read(), np.uint8))
            ours("quantize", model, c, "Q4_0")
            with open(c, "rb") as f:
                plain = np.frombuffer(f.read(), np.uint8)
            self.assertEqual(len(files[0]), len(files[1]))
            self.assertLess(np.mean(files[0] != files[1]), 0.002)
            self.assertGreater(np.mean(files[0] != plain), 0.01)


if __name__ == "__main__":
    unittest.main(verbosity=1)
