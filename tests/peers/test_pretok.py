# SPDX-License-Identifier: Apache-2.0
"""Every pre-tokenizer cuts texts where llama.cpp cuts them: the same vocabulary under each name gives the same ids.
usage: test_pretok.py build/weft

Needs Node.js and the npm package node-llama-cpp; WEFT_NODE_LLAMA names the folder it was installed in. Skipped where it is absent."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "cli"))
from common import NEEDS_REFERENCE, shared, weft  # noqa: E402

PACKAGE = os.environ.get("WEFT_NODE_LLAMA", "")
VOCAB = shared("tokenizers", "ggml-vocab-gpt-2.gguf")
END, END_ID = "<|endoftext|>", 50256
# Of names that mean the same, one.
NAMES = ("gpt-2 llama-bpe qwen2 qwen35 tekken gpt-4o smollm command-r falcon starcoder deepseek-llm deepseek-coder deepseek-v3 dbrx "
         "bloom viking bailingmoe seed-coder kimi-k2 exaone4").split()
# Their published patterns count combining marks among the letters; llama.cpp, which approximates those patterns, does not.
WITH_MARKS = ("gpt-4o", "tekken", "kimi-k2")
PARTS = [
    "hello",
    "World",
    "THE",
    "don't",
    "I'LL",
    "'s",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\r\n",
    "\t",
    "1",
    "22",
    "333",
    "12345",
    ".",
    ",",
    "!?",
    "...",
    "(",
    ")",
    "=>",
    "$",
    "+",
    "_",
    "-",
    "/",
    "\u00e9",
    "\u00c9t\u00e9",
    "na\u00efve",
    "\u4e2d\u6587",
    "\u65e5\u672c\u8a9e",
    "\u30ab\u30bf",
    "\ud55c\uad6d\uc5b4",
    "\u0440\u0443\u0441",
    "\u0395\u03bb",
    "\u0639\u0631\u0628",
    "\u0928\u092e",
    "\U0001f600",
    "e\u0301",
    "\u2014",
    "\u3002",
    "\u00a0",
    "\u0663",
    "\u00bd",
    "`",
    "^",
    "a1b2",
    "camelCase",
    "snake_case",
    "x = y;",
    "http://a.b/c?d=e",
]


def texts():
    rng = random.Random(5)
    with open(VOCAB + ".inp", encoding="utf-8") as f:
        out = f.read().split("\n__ggml_vocab_test__\n")
    return [t for t in out if t] + ["".join(rng.choice(PARTS) for _ in range(rng.randint(1, 12))) for _ in range(1000)]


def renamed(name, path):
    """The vocabulary with another tokenizer.ggml.pre. There are no tensors, so nothing behind the metadata moves."""
    with open(VOCAB, "rb") as f:
        data = f.read()
    key = b"tokenizer.ggml.pre"
    at = data.index(struct.pack("<Q", len(key)) + key) + 8 + len(key) + 4
    n = struct.unpack_from("<Q", data, at)[0]
    with open(path, "wb") as f:
        f.write(data[:at] + struct.pack("<Q", len(name)) + name.encode() + data[at + 8 + n:])


@unittest.skipUnless(os.path.exists(VOCAB), NEEDS_REFERENCE + "the vocabulary of GPT-2")
@unittest.skipUnless(PACKAGE and shutil.which("node"), "node-llama-cpp is not installed; set WEFT_NODE_LLAMA to its folder")
class Pretok(unittest.TestCase):
    def check(self, name):
        strings = [t for t in texts() if name not in WITH_MARKS or "\u0301" not in t]
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "vocab.gguf")
            renamed(name, path)
            p = subprocess.run(["node", os.path.join(HERE, "tokens.mjs"), PACKAGE, path, json.dumps(strings)], capture_output=True, timeout=300)
            self.assertEqual(p.returncode, 0, p.stderr.decode())
            theirs = json.loads(p.stdout)
            p = weft("tokenize", path, "-", "--no-bos", stdin=END.join(strings).encode())  # what stands between END is cut on its own
            self.assertEqual(p.returncode, 0, p.stderr)
            ours = [[]]
            for i in p.stdout.split():
                if int(i) == END_ID:
                    ours.append([])
                else:
                    ours[-1].append(int(i))
            self.assertEqual(len(ours), len(strings))
            different = [text for text, a, b in zip(strings, ours, theirs) if a != b]
        print(f"{name:16} {len(strings) - len(different)} of {len(strings)} texts alike")
        self.assertEqual(different, [])


def add_case(name):
    def test(self):
        self.check(name)
    setattr(Pretok, "test_" + name.replace("-", "_"), test)


for each in NAMES:
    add_case(each)

if __name__ == "__main__":
    unittest.main()
