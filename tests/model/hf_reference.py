# SPDX-License-Identifier: Apache-2.0
"""Claims about Hugging Face folders: every architecture gives the logits of a plain forward pass in double precision, from the folder
itself and from the GGUF file that `weft convert` makes of it; and what is malformed is refused by name.

usage: hf_reference.py build/weft [unittest options]. Exit status 77: NumPy is missing."""
import json
import os
import re
import shutil

from hf_cases import CASES, NAMED, TEXTS, Folder, nmse, tokens_for, weft  # noqa: I001  (first: it says where NumPy is missing)
import numpy as np
import common
import gguf_file
import hf_folder as hf
from hf_features import Features  # noqa: F401
from hf_refused import Refused  # noqa: F401


class Logits(Folder):
    """One test per case, added below."""

    def check(self, case):
        weights = case.write(self.folder)
        tokens = tokens_for(case)
        expected = hf.forward(case.config, weights, tokens)
        got = self.logits(self.folder, tokens)
        self.assertLess(nmse(got, expected), 1e-8, "the folder itself")
        f32 = self.convert("--type", "f32")
        self.assertLess(nmse(self.logits(f32, tokens), expected), 1e-8, "converted to F32")
        if case.dtype != "F16":  # what fits BF16 need not fit F16
            stored = self.logits(self.convert(name="stored.gguf"), tokens)
            self.assertLess(nmse(stored, expected), 1e-8, "converted, types as stored")
        self.assertLess(nmse(self.logits(self.convert("--type", "bf16", name="bf16.gguf"), tokens), expected), 2e-3, "converted to BF16")
        self.assertLess(nmse(self.logits(self.convert("--type", "q8_0", name="q8.gguf"), tokens), expected), 2e-2, "converted to Q8_0")
        if common.repeated(1, 0, 0):  # NumPy alone
            self.check_that_it_shows(case, weights, tokens, expected)
        if case.name == "phi3-long":
            short = hf.forward(case.config, weights, tokens, length=32)
            self.assertGreater(nmse(short, expected), 1e-4)
            for model in (self.folder, f32):
                self.assertLess(nmse(self.logits(model, tokens, "-c", "32"), short), 1e-8, "short factors")
        self.check_files(case, f32)

    def check_that_it_shows(self, case, weights, tokens, expected):
        """Without the window, or the scaling of rope, these tokens give other logits: so the comparisons above see both."""
        for field in ("sliding_window", "rope_scaling"):
            if case.config.get(field) and not (field == "sliding_window" and case.config["model_type"] == "qwen2"):
                self.assertGreater(nmse(hf.forward({**case.config, field: None}, weights, tokens), expected), 1e-4, field)

    def check_files(self, case, f32):
        for i, text in enumerate(TEXTS):
            for options in ([], ["--no-bos", "--no-special"])[i % common.repeated(1, 2, 2)::common.repeated(1, 2, 2)]:
                self.assertEqual(self.tokenize(self.folder, text, *options), self.tokenize(f32, text, *options), (text, options))
        folder, file = (json.loads(weft("info", "--json", m).stdout) for m in (self.folder, f32))
        self.assertEqual(folder["version"], 0)
        self.assertEqual(file["version"], 3)
        meta = file["metadata"]
        self.assertEqual(meta["general.architecture"], case.arch)
        self.assertEqual(meta["general.file_type"], 0)
        self.assertEqual(meta["tokenizer.chat_template"], "{{ bos_token }}new")
        self.assertEqual(len(meta["tokenizer.ggml.tokens"]), hf.V)
        self.assertEqual(len(meta["tokenizer.ggml.token_type"]), hf.V)
        self.assertEqual(meta["tokenizer.ggml.pre"], {"bpe": "llama-bpe", "qwen": "qwen2"}.get(case.tokenizer, "default"))
        spm = "spm" in case.tokenizer
        self.assertEqual(meta["tokenizer.ggml.model"], "llama" if spm else "gpt2")
        self.assertEqual("tokenizer.ggml.scores" in meta, spm)
        self.assertEqual("tokenizer.ggml.merges" in meta, not spm)
        self.assertEqual(meta["tokenizer.ggml.eot_token_id"], 310 if spm else 1 if case.tokenizer == "never" else meta["tokenizer.ggml.eot_token_id"])
        self.assertFalse([k for k in meta if k.startswith("weft.")])
        names = {t["name"]: t["shape"] for t in file["tensors"]}
        self.assertEqual(names, {t["name"]: t["shape"] for t in folder["tensors"]})
        self.assertEqual("output.weight" in names, not case.config["tie_word_embeddings"])


def add_case(case):
    def test(self):
        self.check(case)
    setattr(Logits, "test_" + case.name.replace("-", "_"), test)


for each in CASES[::common.repeated(1, 3, 3)]:
    add_case(each)


class Importance(Folder):
    """weft imatrix against the inputs of every matrix in the plain forward pass."""
    WORDS = "hello world the theater in her nation on another thing he ran and the world 1234 then "
    PLACES = [(r"self_attn\.(qkv|q|k|v)_proj", r"attn_\1"), (r"self_attn\.o_proj", "attn_output"), (r"block_sparse_moe\.gate|mlp\.gate", "ffn_gate_inp"),
              (r"mlp\.gate_up_proj", "ffn_up"), (r"mlp\.(gate|up|down)_proj", r"ffn_\1"), (r"mlp\.experts\.(\d+)\.(gate|up|down)_proj", r"ffn_\2_exps"),
              (r"block_sparse_moe\.experts\.(\d+)\.w1", "ffn_gate_exps"), (r"block_sparse_moe\.experts\.(\d+)\.w3", "ffn_up_exps"),
              (r"block_sparse_moe\.experts\.(\d+)\.w2", "ffn_down_exps")]

    def place(self, name):
        """("blk.1.ffn_up_exps.weight", expert) of a matrix of the folder."""
        layer, rest = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name).groups()
        for pattern, ours in self.PLACES:
            m = re.fullmatch(pattern, rest)
            if m:
                return f"blk.{layer}.{m.expand(ours)}.weight", int(m[1]) if "exps" in ours else 0
        raise KeyError(name)

    def check(self, case, chunk=16):
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        weights = case.write(self.folder)
        text, out = self.path("text"), self.path("matrix")
        with open(text, "w") as f:
            f.write(self.WORDS * 3)
        p = weft("imatrix", self.folder, "-f", text, "-o", out, "-c", str(chunk))
        self.assertEqual(p.returncode, 0, p.stderr)
        ids = [int(i) for i in self.tokenize(self.folder, self.WORDS * 3).split()]
        bos = [int(i) for i in self.tokenize(self.folder, "").split()]
        sums, counts = {}, {}

        def seen(name, rows):
            at = self.place(name)
            sums[at] = sums.get(at, 0) + (rows ** 2).sum(0)
            counts[at] = counts.get(at, 0) + len(rows)

        n_chunks = len(ids) // chunk
        self.assertGreater(n_chunks, 2)
        for i in range(n_chunks):
            hf.forward(case.config, weights, bos + ids[i * chunk + len(bos):(i + 1) * chunk], seen=seen)
        meta, tensors = gguf_file.read(out)
        self.assertEqual((meta["imatrix.chunk_count"], meta["imatrix.chunk_size"]), (n_chunks, chunk))
        for (name, expert), expected in sums.items():
            # Keys and values are rounded to f16 there, and a near tie may send a token to another expert.
            moved = abs(tensors[name + ".counts"][expert, 0] - counts[name, expert])
            self.assertLessEqual(moved, 2 if "exps" in name else 0, (case.name, name, expert))
            error = np.sqrt(nmse(tensors[name + ".in_sum2"][expert], expected))
            self.assertLess(error, 0.2 if moved else 0.01, (case.name, name, expert))
        self.assertEqual({n[:-len(".counts")] for n in tensors if n.endswith(".counts")}, {name for name, _ in sums})
        for name, a in tensors.items():  # what no token went to
            if name.endswith(".counts"):
                for expert in np.flatnonzero(a[:, 0] == 0):
                    self.assertNotIn((name[:-len(".counts")], expert), sums)

    def test_sums_of_squares(self):
        for name in ("qwen3moe", "phi3", "llama", "mixtral", "mixtral-window", "gemma2", "llama-tied")[:common.repeated(7, 3, 2)]:
            with self.subTest(name):
                self.check(NAMED[name])


if __name__ == "__main__":
    common.main()
