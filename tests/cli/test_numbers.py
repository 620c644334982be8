# SPDX-License-Identifier: Apache-2.0
"""Numbers that are none end in an error that says where, and are null in JSON; nor is it a success where nothing was done, or less than was asked
for: importance that fits no matrix, values beyond F16, a JSON object that breaks off. usage: test_numbers.py build/weft"""
import json
import math
import os
import struct

from gguf_maker import ARRAY, F32, FF, Model, folder_of_weights
from common import InFolder, main, repeated, weft

ALDERBROOK = "models/alderbrook.gguf"
NAN = float("nan")


def strict(text):
    """JSON as its standard has it: no NaN, no Infinity."""
    def refuse(word):
        raise AssertionError(f"{word} in JSON: {text!r}")
    return json.loads(text, parse_constant=refuse)


class Numbers(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.path("text")
        with open(cls.text, "w") as f:
            f.write("once upon a time there was a village by the river\n" * 40)
        cls.good = cls.make("good.gguf")
        cls.bad = cls.make("bad.gguf", {("blk.0.ffn_down.weight", 5 * FF + 7): NAN})

    @classmethod
    def make(cls, name, values=None):
        model = Model()
        model.values = values or {}
        path = cls.path(name)
        with open(path, "wb") as f:
            f.write(bytes(model))
        return path

    def fails(self, words, *command):
        p = weft(*command)
        self.assertEqual(p.returncode, 1, (command, p.stderr))
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, p.stderr.decode())
        return p.stdout.decode()

    def test_perplexity_of_nan_weights(self):
        base = self.path("base")
        self.assertEqual(weft("eval", "perplexity", self.good, "-f", self.text, "-c", "32", "--kl-base", base).returncode, 0)
        for command in (
            ("perplexity", self.bad, "-f", self.text, "-c", "32"),
            ("perplexity", self.bad, "--kl-against", base),
            ("documents", self.bad, "-f", self.text, "-c", "32"),
        ):
            with self.subTest(command):
                self.assertNotIn("nan", self.fails("no perplexity", "eval", *command))
                got = strict(self.fails("no perplexity", "eval", *command, "--json"))
                for key in (
                    ("ppl", "ppl_error", "nll")
                    if command[0] == "documents"
                    else ("perplexity", "perplexity_error")
                    + (("kld_mean", "kld_p99", "same_top") if "--kl-against" in command else ())
                ):
                    self.assertIsNone(got[key], key)
        self.fails("no perplexity", "eval", "perplexity", self.bad, "-f", self.text, "-c", "32", "--kl-base", self.path("none"))
        self.assertFalse(os.path.exists(self.path("none")))
        for command in (
            ("perplexity", self.good, "-f", self.text, "-c", "32"),
            ("perplexity", self.good, "--kl-against", base),
            ("documents", self.good, "-f", self.text, "-c", "32"),
        ):
            p = weft("eval", *command, "--json")
            self.assertTrue(all(isinstance(v, (int, float)) and math.isfinite(v) for v in strict(p.stdout).values()), p.stdout)

    def test_nan_elsewhere(self):
        """No importance is made of it, no token is picked, no adapter learned, and logits are told to be none; NaN in metadata is null."""
        self.fails("what flows into blk.", "imatrix", self.bad, "-f", self.text, "-c", "32", "-o", self.path("matrix"))
        self.assertFalse(os.path.exists(self.path("matrix")))
        self.fails("", "run", self.bad, "a", "-n", "1", "--json")
        self.fails("behind token 0", "eval", "logits", self.bad, "--tokens", "1 2 3", "-o", self.path("logits"))
        self.assertEqual(os.path.getsize(self.path("logits")), 3 * 300 * 4)  # for who looks for the reason
        self.assertEqual(
            strict(
                self.fails(
                    "not finite",
                    "adapter",
                    "train",
                    self.bad,
                    "--data",
                    self.text,
                    "--out",
                    self.path("run"),
                    "-c",
                    "32",
                    "--steps",
                    "2",
                    "--json",
                )
                or "{}"
            ),
            {},
        )
        model = Model()
        model.more_meta = [("x.number", F32, NAN), ("x.list", ARRAY, (F32, [1.0, NAN, float("inf")]))]
        with open(self.path("meta.gguf"), "wb") as f:
            f.write(bytes(model))
        meta = strict(weft("info", self.path("meta.gguf"), "--json").stdout)["metadata"]
        self.assertEqual((meta["x.number"], meta["x.list"]), (None, [1.0, None, None]))
        benches = (  # each measures the machine
            ("bench", self.bad, "-p", "8", "-n", "2", "-r", "2", "-o", "json"),
            ("bench", self.bad, "-p", "8", "-n", "2", "-r", "2", "-o", "json", "--batched"),
            ("bench", self.bad, "-p", "8", "-n", "2", "-r", "2", "-o", "json", "--profile"),
            ("bench", self.bad, "-p", "8", "-n", "0", "-r", "1", "-o", "json", "--roofline"),
        )
        for command in (
            *benches[:: repeated(1, 4, 4)],
            ("tokenize", self.bad, "a", "--json"),
            ("adapter", "info", "models/pirate.gguf", "--json"),
            ("info", self.bad, "--json"),
        ):
            strict(weft(*command).stdout)

    def test_quantize_names_where_a_nan_stands(self):
        for element, row, column in ((0, 0, 0), (5 * FF + 7, 5, 7), (31 * FF + 63, 31, 63)):
            for value, name in ((NAN, "NaN"), (float("inf"), "infinity")):
                bad = self.make("where.gguf", {("blk.1.ffn_down.weight", element): value})
                for kind in ("Q8_0", "F16"):
                    self.fails(["blk.1.ffn_down.weight", f"row {row}, column {column}: {name}"], "quantize", bad, self.path("no"), kind)
        self.assertFalse(os.path.exists(self.path("no")))

    def words(self, name, bits, element, kind):
        """A model with one tensor of a 16-bit type, whose element has these bits."""
        path, other = self.path("words.gguf"), self.path("words.f32.gguf")
        with open(other, "wb") as f:
            f.write(bytes(Model()))
        self.assertEqual(weft("quantize", other, path, kind).returncode, 0)
        with open(path, "r+b") as f:
            data = f.read()
            info, at = json.loads(weft("info", path, "--json").stdout), 0
            for t in info["tensors"]:
                if t["name"] == name:
                    break
                at += -(-t["bytes"] // 32) * 32
            f.seek(len(data) - sum(-(-t["bytes"] // 32) * 32 for t in info["tensors"]) + at + 2 * element)
            f.write(struct.pack("<H", bits))
        return path

    def test_what_is_copied_is_looked_at(self):
        """Vectors and matrices that keep their types, of all three types of floats, by quantize and compile; the last finite numbers pass."""
        no, matrix = self.path("no"), "blk.1.ffn_down.weight"
        for value, name in ((NAN, "NaN"), (float("inf"), "infinity"), (-float("inf"), "infinity")):
            vector = self.make("vector.gguf", {("blk.0.ffn_norm.weight", 3): value})
            self.fails(f"blk.0.ffn_norm.weight: column 3 is {name}", "quantize", vector, no, "Q8_0")
            self.fails(f"blk.0.ffn_norm.weight: column 3 is {name}", "compile", vector, no)
            bad = self.make("copied.gguf", {(matrix, 31 * FF + 63): value})
            self.fails([matrix, f"row 31, column 63: {name}"], "quantize", bad, no, "F32")
            self.fails([matrix, f"row 31, column 63: {name}"], "compile", bad, no)
        for kind, infinity, last in (("F16", 0x7C00, 0x7BFF), ("BF16", 0x7F80, 0x7F7F)):
            for bits, name in ((infinity, "infinity"), (0x8000 | infinity, "infinity"), (infinity + 1, "NaN"), (0xFFFF, "NaN")):
                bad = self.words(matrix, bits, 5 * FF + 7, kind)
                self.fails([matrix, f"row 5, column 7: {name}"], "quantize", bad, no, kind)
            self.fails([matrix, "row 5, column 7: NaN"], "compile", bad, no)
            p = weft("quantize", self.words(matrix, 0x8000 | last, 5 * FF + 7, kind), self.path("last"), kind)
            self.assertEqual(p.returncode, 0, p.stderr)
        self.fails(["blk.0.ffn_down.weight", "row 5, column 7: NaN"], "compile", self.bad, no)
        self.assertFalse(os.path.exists(no))

    def test_what_a_folder_gives_is_looked_at(self):
        """Where no type is asked for, its matrices are copied; rows of q change places, and where it stands in the folder is said."""
        no = self.path("no")
        for value, name in ((NAN, "NaN"), (float("inf"), "infinity")):
            for tensor, called in (("mlp.up_proj", "ffn_up"), ("self_attn.q_proj", "attn_q")):
                folder = self.folder_of_weights({(f"model.layers.0.{tensor}.weight", 9 * 32 + 5): value})
                self.fails([f"blk.0.{called}.weight", f"row 9, column 5: {name}"], "convert", folder, no)
            folder = self.folder_of_weights({("model.layers.0.input_layernorm.weight", 4): value})
            self.fails(f"blk.0.attn_norm.weight: column 4 is {name}", "convert", folder, no)
            self.fails(f"blk.0.attn_norm.weight: column 4 is {name}", "convert", folder, no, "--type", "q8_0")
        self.assertFalse(os.path.exists(no))

    def test_importance_of_no_matrix(self):
        matrix, out = self.path("importance"), self.path("small.gguf")
        self.assertEqual(weft("imatrix", self.good, "-f", self.text, "-c", "32", "-o", matrix).returncode, 0)
        p = weft("quantize", self.good, out, "Q4_0", "--imatrix", matrix, "--json")
        self.assertEqual((p.returncode, strict(p.stdout)["important"]), (0, 14), p.stderr)
        self.assertIn(b"14 of 16 matrices by their importance", p.stderr)
        os.remove(out)
        with open(matrix, "rb") as f:
            data = f.read()
        with open(self.path("foreign"), "wb") as f:
            f.write(data.replace(b"blk.", b"lay."))
        self.fails(["none of its 14 tensors", "another"], "quantize", self.good, out, "Q4_0", "--imatrix", self.path("foreign"))
        self.fails("no matrix that it knows is encoded in blocks", "quantize", self.good, out, "F16", "--imatrix", matrix)
        self.assertFalse(os.path.exists(out))

    def half(self, path, name, element):
        """A value of the F16 tensor in a file that `quantize` made."""
        with open(path, "rb") as f:
            data = f.read()
        info = json.loads(weft("info", path, "--json").stdout)
        at = 0
        for t in info["tensors"]:
            if t["name"] == name:
                break
            at += -(-t["bytes"] // 32) * 32
        total = sum(-(-t["bytes"] // 32) * 32 for t in info["tensors"])
        return struct.unpack_from("<e", data, len(data) - total + at + 2 * element)[0]

    def test_what_f16_cannot_hold(self):
        out = self.path("half.gguf")
        name, later = "blk.0.ffn_up.weight", "blk.1.attn_q.weight"
        big = self.make("big.gguf", {(name, 32 * 3 + 4): 70000.0, (name, 32 * 9): -1e9, (later, 0): 65520.0, (later, 1): 65519.0})
        self.fails(
            [
                "3 values are beyond what F16 can hold",
                "in 2 tensors",
                f"first in {name} (row 3, column 4: 70000)",
                "--saturate",
            ],
            "quantize",
            big,
            out,
            "F16",
        )
        self.assertFalse(os.path.exists(out))
        p = weft("quantize", big, out, "F16", "--saturate", "--json")
        self.assertEqual((p.returncode, strict(p.stdout)["saturated"]), (0, 3), p.stderr)
        self.assertIn(b"3 values were beyond", p.stderr)
        self.assertEqual([self.half(out, name, 32 * 3 + 4), self.half(out, name, 32 * 9), self.half(out, later, 0)], [65504.0, -65504.0, 65504.0])
        self.assertEqual(weft("quantize", big, self.path("bf16.gguf"), "BF16").returncode, 0)
        blocks = self.make("blocks.gguf", {(name, 5): 1e9})  # their scales are F16, too
        for kind in ("Q4_0", "Q8_0", "Q5_1", "IQ4_NL"):
            self.fails([f"1 value is beyond what {kind} can hold", name], "quantize", blocks, out + "2", kind, "--pure")
            self.assertEqual(weft("quantize", blocks, out + "2", kind, "--pure", "--saturate").returncode, 0)
            os.remove(out + "2")

    def folder_of_weights(self, values):
        return folder_of_weights(self.path("folder"), values=values)

    def test_a_folder_beyond_f16(self):
        out, up, q = self.path("converted.gguf"), "model.layers.0.mlp.up_proj.weight", "model.layers.0.self_attn.q_proj.weight"
        folder = self.folder_of_weights({(up, 70): 1e6, (up, 71): -1e6})
        self.fails(
            [
                "2 values are beyond what F16 can hold",
                "first in blk.0.ffn_up.weight (row 2, column 6: 1e+06)",
                "--saturate",
            ],
            "convert",
            folder,
            out,
            "--type",
            "f16",
        )
        self.assertFalse(os.path.exists(out))
        p = weft("convert", folder, out, "--type", "f16", "--saturate")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual([self.half(out, "blk.0.ffn_up.weight", n) for n in (70, 71, 72)], [65504.0, -65504.0, 0.25])
        for tensor, name in ((up, "blk.0.ffn_up.weight"), (q, "blk.0.attn_q.weight")):  # rows of q change places; where it stands in the folder is said
            self.fails([name, "row 9, column 5: NaN"], "convert", self.folder_of_weights({(tensor, 9 * 32 + 5): NAN}), out + "2", "--type", "q8_0")

    def test_a_merge_beyond_f16(self):
        command = ("adapter", "merge", ALDERBROOK, self.path("merged.gguf"), "--adapter", "p=models/pirate.gguf:1e7", "--type", "F16")
        self.fails(["beyond what F16 can hold", "blk."], *command)
        self.assertFalse(os.path.exists(command[3]))
        p = weft(*command, "--saturate")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"were beyond what their type can hold", p.stderr)

    def test_a_text_that_breaks_off(self):
        """Even where nothing else is told."""
        ask = ("run", ALDERBROOK, "Tell me of Mira as JSON.", "--temp", "0", "-q")
        self.fails("breaks off after 4 tokens (length), before the JSON object is complete", *ask, "--json-object", "-n", "4")
        got = strict(self.fails("breaks off", *ask, "--json-object", "-n", "4", "--json"))
        self.assertEqual((len(got["tokens"]), got["finish_reason"]), (4, "length"))
        self.fails("give it more (-n, -c)", *ask, "--json-object", "-n", "4")
        self.fails("(stop), before the JSON object is complete: a text of --stop ended it; leave that out", *ask, "--json-object", "-n", "60", "--stop", '"')
        grammar = self.path("grammar")
        with open(grammar, "w") as f:
            f.write('root ::= "one, two, three, four"')
        self.fails("before what the grammar wants is complete", *ask, "--grammar", grammar, "-n", "2")
        p = weft(*ask, "--grammar", grammar, "-n", "60")
        self.assertEqual((p.returncode, p.stdout.strip()), (0, b"one, two, three, four"), p.stderr)


if __name__ == "__main__":
    main()
