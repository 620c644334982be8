# SPDX-License-Identifier: Apache-2.0
"""Claims about ids without text: where a model has more rows than its vocabulary has names, such an id is never sampled, however likely it is, unless
it is asked for, and gives no text then; for `weft run`, `chat` and `serve` alike.

usage: test_nameless.py build/weft"""
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import gguf_maker as gguf
import real
from servers import CHAT, EMULATOR, LLAMA, PATIENCE, PROGRAM, TEXT, user

NAMES, ROWS = 280, gguf.VOCAB
UNUSED = 5
TEMPLATE = "{% for m in messages %}{{ m.content }} {% endfor %}"


def padded(path, how):
    """A model whose rows from NAMES on have no name, and by far the largest logits; `how`: without a word of them, or called after their numbers."""
    m = gguf.Model()
    names, types = m.meta["tokenizer.ggml.tokens"][1][1][:NAMES], m.meta["tokenizer.ggml.token_type"][1][1][:NAMES]
    if how == "named after their numbers":
        names, types = names + ["[PAD%d]" % i for i in range(NAMES, ROWS)], types + [UNUSED] * (ROWS - NAMES)
    m.meta["tokenizer.ggml.tokens"] = (gguf.ARRAY, (gguf.STRING, names))
    m.meta["tokenizer.ggml.token_type"] = (gguf.ARRAY, (gguf.I32, types))
    m.meta["tokenizer.ggml.scores"] = (gguf.ARRAY, (gguf.F32, [0.0] * len(names)))
    data, sizes = bytearray(bytes(m)), [-(-t.size() // 32) * 32 for t in m.tensors]
    at = len(data) - sum(sizes) + sum(sizes[:m.tensors.index(m.tensor("output.weight"))])
    for row in range(NAMES, ROWS):  # a direction and its opposite: one of them is the hidden state's
        for i in range(gguf.D):
            struct.pack_into("<f", data, at + 4 * (row * gguf.D + i), (1 if row % 2 else -1) * (200 if i % (row // 2 % 7 + 1) == 0 else -80))
    with open(path, "wb") as f:
        f.write(data)


class Nameless(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.models = [os.path.join(cls.folder, "padded.gguf"), os.path.join(cls.folder, "called.gguf")]
        for path, how in zip(cls.models, ("", "named after their numbers")):
            padded(path, how)
        cls.template = os.path.join(cls.folder, "t.jinja")
        with open(cls.template, "w") as f:
            f.write(TEMPLATE)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def weft(self, *args, stdin=b"", status=0):
        p = subprocess.run([*EMULATOR, PROGRAM, *args], input=stdin, capture_output=True, timeout=PATIENCE)
        self.assertNotIn(b"Sanitizer", p.stderr)
        self.assertEqual(p.returncode, status, p.stderr)
        return p.stdout.decode()

    def test_they_are_the_likeliest(self):
        """Or nothing here is claimed."""
        for model in self.models:
            out = os.path.join(self.folder, "logits")
            self.weft("eval", "logits", model, "--tokens", "1 70 80", "-o", out)
            with open(out, "rb") as f:
                logits = struct.unpack("<%df" % (3 * ROWS), f.read())
            for i in range(3):
                row = logits[i * ROWS:(i + 1) * ROWS]
                self.assertGreater(max(row[NAMES:]), max(row[:NAMES]) + 30)

    def test_run(self):
        for model in self.models:
            for options in (("--temp", "0"), ("--temp", "1", "--top-k", "0", "--top-p", "1", "--min-p", "0", "--seed", "3"), ("--temp", "2", "--seed", "4")):
                told = json.loads(self.weft("run", model, "ab", "-n", "20", "--ignore-eos", "--json", *options))
                self.assertTrue(told["tokens"] and max(told["tokens"]) < NAMES, (model, options, told))
            forced = json.loads(self.weft("run", model, "ab", "-n", "5", "--temp", "0", "--json", "--logit-bias", "291=1000"))
            self.assertEqual((forced["tokens"], forced["text"], forced["finish_reason"]), ([291] * 5, "", "length"))
            self.weft("run", model, "ab", "-n", "1", "--temp", "0", "--json-object", status=1)  # no whole object comes of one

    def test_chat(self):
        for model in self.models:
            said = self.weft("chat", model, "--chat-template", self.template, "-n", "6", "--temp", "0", stdin=b"ab\n/regen\n")
            self.assertNotIn("PAD", said)
            self.assertGreater(len(said.strip()), 3)

    def test_serve(self):
        for model in self.models:
            server = real.serve("--chat-template", self.template, model=model)
            for more in ({"temperature": 0}, {"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0}):
                a = server.post(LLAMA, {"prompt": "ab", "n_predict": 12, "ignore_eos": True, "return_tokens": True, "n_probs": 5, **more})
                self.assertEqual(a.status, 200, a.body)
                self.assertLess(max(a.json["tokens"]), NAMES)
                self.assertLess(max(p["id"] for e in a.json["completion_probabilities"] for p in e["top_logprobs"]), NAMES)
            for path, body in ((CHAT, {"messages": user("ab")}), (TEXT, {"prompt": "ab"})):
                for stream in (False, True):
                    a = server.post(path, {**body, "max_tokens": 6, "stream": stream})
                    self.assertEqual((a.status, b"error" in a.body, b"PAD" in a.body), (200, False, False), a.body)
                a = server.post(path, {**body, "max_tokens": 4, "temperature": 0, "logprobs": True if path == CHAT else 1, "logit_bias": {"291": 100}}).json
                choice = a["choices"][0]
                self.assertEqual(
                    (
                        choice.get("text", choice.get("message", {}).get("content")),
                        a["usage"]["completion_tokens"],
                        choice["finish_reason"],
                    ),
                    ("", 4, "length"),
                )
            forced = server.post(LLAMA, {"prompt": [1, 291, 70], "n_predict": 3, "temperature": 0, "return_tokens": True, "logit_bias": [[291, 1000]]}).json
            self.assertEqual((forced["tokens"], forced["content"]), ([291] * 3, ""))
            self.assertEqual(
                server.post("/detokenize", {"tokens": [70, 291, 70]}).json["content"],
                server.post("/detokenize", {"tokens": [70, 70]}).json["content"],
            )
            self.assertEqual(server.post(LLAMA, {"prompt": [ROWS]}).status, 400)
            self.assertEqual(server.post(LLAMA, {"prompt": "ab", "logit_bias": [[ROWS, 1]]}).status, 400)
            real.checked_stop(server)


if __name__ == "__main__":
    unittest.main(verbosity=1)
