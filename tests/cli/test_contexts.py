# SPDX-License-Identifier: Apache-2.0
"""A context beyond the one that a model was trained for is refused with the number, by every command, unless the file's keys or the options of
rope scaling stretch it; and what options say is what keys say, bit for bit. usage: test_contexts.py build/weft"""
import json
import os
import re
import signal
import subprocess
import urllib.request

from gguf_maker import D, F32, FF, STRING, U32, Model
from common import EMULATED, PATIENCE, WEFT, InFolder, leave_out, main, weft

ALDERBROOK = "models/alderbrook.gguf"  # trained for 512
TRAINED = 64  # the small model
IDS = " ".join(str(3 + i * 7 % 250) for i in range(150))
FEW = " ".join(IDS.split()[:30])


class Contexts(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text = cls.path("text")
        with open(cls.text, "w") as f:
            f.write("once upon a time there was a village by the river\n" * 200)
        cls.plain = cls.make("plain.gguf")

    @classmethod
    def make(cls, name, **keys):
        """The model with keys of rope: their names with __ for the points."""
        model = Model()
        for key, value in keys.items():
            kind = {str: STRING, int: U32, float: F32}[type(value)]
            model.meta["llama.rope." + key.replace("__", ".")] = (kind, value)
        path = cls.path(name)
        with open(path, "wb") as f:
            f.write(bytes(model))
        return path

    def logits(self, model, *options, ids=IDS):
        p = weft("eval", "logits", model, "--tokens", ids, "-o", "-", *options)
        self.assertEqual(p.returncode, 0, p.stderr)
        return p.stdout

    def refused(self, most, *command):
        p = weft(*command)
        self.assertEqual(p.returncode, 1, (command, p.stderr))
        self.assertRegex(p.stderr.decode(), rf"a context of \d+ tokens: .*\b{most}\b")
        self.assertEqual(p.stdout, b"")
        return p.stderr.decode()

    def test_every_command_refuses(self):
        m, t = self.plain, self.text
        for command in (("run", m, "a", "-c", "65"), ("run", m, "a", "-c", "99999"), ("eval", "logits", m, "--tokens", IDS, "-o", "-"),
                        ("eval", "logits", m, "--tokens", FEW, "-c", "65", "-o", "-"), ("eval", "perplexity", m, "-f", t, "-c", "65"),
                        ("eval", "documents", m, "-f", t, "-c", "65"), ("imatrix", m, "-f", t, "-c", "65", "-o", self.path("no")),
                        ("bench", m, "-p", "65", "-n", "0", "-r", "1", "-o", "jsonl"), ("bench", m, "-p", "0", "-n", "1", "-d", "64", "-r", "1", "-o", "jsonl"),
                        ("info", m, "--plan", "-c", "65"), ("compare", m, "a", "--raw", "--json", "-c", "65"), ("serve", m, "--port", "0", "-c", "65")):
            with self.subTest(command):
                if command[0] == "bench":  # whose table may have begun
                    p = weft(*command)
                    self.assertEqual((p.returncode, p.stdout), (1, b""))
                    self.assertRegex(p.stderr.decode(), r"a context of 65 tokens: .* trained for 64\b")
                    continue
                self.assertIn("--rope-scaling", self.refused(TRAINED, *command))
        self.refused(512, "chat", ALDERBROOK, "-c", "513")
        self.assertFalse(os.path.exists(self.path("no")))

    def test_no_default_goes_beyond(self):
        """Chunks and sizes that nobody gave are such as the model has room for."""
        m, t = self.plain, self.text
        for command in (
            ("eval", "perplexity", m, "-f", t),
            ("eval", "documents", m, "-f", t),
            ("imatrix", m, "-f", t, "-o", self.path("matrix"), "--chunks", "1"),
            ("bench", m, "-r", "1", "--no-warmup"),
            ("bench", m, "-r", "1", "--no-warmup", "--batched"),
            ("bench", m, "-r", "1", "--no-warmup", "-d", "32"),
            ("run", m, "a", "-n", "-1", "--ignore-eos"),
        ):
            with self.subTest(command):
                p = weft(*command)
                self.assertEqual(p.returncode, 0, p.stderr)

    def test_a_full_context_advises_what_can_be_had(self):
        p = weft("run", self.plain, "a" * 30, "-c", "16", "-n", "1")
        self.assertIn(b"use a larger -c", p.stderr)
        p = weft("run", self.plain, "a b c d " * 60, "-n", "1")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"context's 64 are used", p.stderr)
        self.assertNotIn(b"-c", p.stderr)
        p = weft("chat", ALDERBROOK, stdin=b"once upon a time " * 400 + b"\n")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"context's 512 are used", p.stderr)
        self.assertNotIn(b"-c", p.stderr)

    def test_options_are_keys(self):
        """Linear and YaRN, bit for bit; and neither is the model without them."""
        plain = self.logits(self.plain, ids=FEW)
        cases = (
            (
                "linear",
                {"scaling__type": "linear", "scaling__factor": 4.0},
                [
                    ("--rope-scaling", "linear", "--rope-scale", "4"),
                    ("--rope-scale", "4"),
                    ("--rope-freq-scale", "0.25"),
                ],
            ),
            ("oldest", {"scale_linear": 3.0}, [("--rope-scale", "3")]),
            (
                "yarn",
                {"scaling__type": "yarn", "scaling__factor": 4.0, "scaling__original_context_length": 64},
                [
                    ("--rope-scaling", "yarn", "--rope-scale", "4"),
                    ("--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "64"),
                ],
            ),
            (
                "tuned",
                {
                    "scaling__type": "yarn",
                    "scaling__factor": 8.0,
                    "scaling__original_context_length": 32,
                    "scaling__attn_factor": 0.75,
                    "scaling__yarn_beta_fast": 24.0,
                    "scaling__yarn_beta_slow": 2.0,
                    "scaling__yarn_ext_factor": 0.5,
                },
                [
                    (
                        "--rope-scaling",
                        "yarn",
                        "--rope-scale",
                        "8",
                        "--yarn-orig-ctx",
                        "32",
                        "--yarn-attn-factor",
                        "0.75",
                        "--yarn-beta-fast",
                        "24",
                        "--yarn-beta-slow",
                        "2",
                        "--yarn-ext-factor",
                        "0.5",
                    )
                ],
            ),
            ("base", {"freq_base": 500000.0}, [("--rope-freq-base", "500000")]),
        )
        seen = {plain}
        for name, keys, options in cases:
            with self.subTest(name):
                file = self.make(name + ".gguf", **keys)
                short = self.logits(file, ids=FEW)
                self.assertNotIn(short, seen)
                seen.add(short)
                long = self.logits(file) if name != "base" else None
                for o in options:
                    self.assertEqual(self.logits(self.plain, *o, ids=FEW), short, o)
                    if long:
                        self.assertEqual(self.logits(self.plain, *o), long, o)
                if name == "tuned":
                    continue  # how scores are scaled is a key of its own, which `none` leaves
                self.assertEqual(self.logits(file, "--rope-scaling", "none", *(("--rope-freq-base", "10000") if name == "base" else ()), ids=FEW), plain)
        again = self.logits(self.path("yarn.gguf"), "--yarn-ext-factor", "0", ids=FEW)
        self.assertEqual(again, self.logits(self.path("linear.gguf"), ids=FEW))

    def test_a_compiled_plan_takes_them_too(self):
        plan = self.path("plan")
        self.assertEqual(weft("compile", self.plain, plan).returncode, 0)
        options = ("--rope-scaling", "yarn", "--rope-scale", "4")
        self.assertEqual(self.logits(plan, *options), self.logits(self.plain, *options))
        self.refused(TRAINED, "run", plan, "a", "-c", "65")

    def test_a_plan_is_of_any_context(self):
        """Where the context chooses the table of frequencies (LongRoPE), a plan has both, and takes the one that the model would."""
        model = Model()
        keys = {k.replace("llama.", "phi3."): v for k, v in model.meta.items()}
        keys.update(
            {
                "general.architecture": (STRING, "phi3"),
                "phi3.rope.scaling.type": (STRING, "longrope"),
                "phi3.rope.scaling.original_context_length": (U32, 32),
            }
        )
        model.meta = keys
        for layer in range(2):
            for name in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
                model.remove(f"blk.{layer}.{name}.weight")
            model.tensor(f"blk.{layer}.ffn_up.weight").dims = [D, 2 * FF]
            model.add(f"blk.{layer}.attn_qkv.weight", [D, 2 * D])
        for at, name in enumerate(("long", "short")):
            model.add(f"rope_factors_{name}.weight", [4])
            model.values.update({(f"rope_factors_{name}.weight", i): 1.0 + i * (2 - at) for i in range(4)})
        path, plan = self.path("phi3.gguf"), self.path("phi3.plan")
        with open(path, "wb") as f:
            f.write(bytes(model))
        self.assertEqual(weft("compile", path, plan).returncode, 0)
        both = [[self.logits(m, "-c", c, ids="5 6 7 8 9 10") for c in ("32", "64")] for m in (path, plan)]
        self.assertEqual(*both)
        self.assertNotEqual(*both[0])

    def test_how_far_they_reach(self):
        """The file's own, an option's, and what is left without them."""
        keyed = self.make("keyed.gguf", scaling__type="yarn", scaling__factor=4.0, scaling__original_context_length=64)
        inner = self.make("inner.gguf", scaling__type="yarn", scaling__factor=2.0, scaling__original_context_length=32)  # the file names what it reaches
        for model, options, most in ((keyed, (), 256), (inner, (), 64), (keyed, ("--rope-scaling", "none"), 64), (inner, ("--rope-scaling", "none"), 32),
                                     (keyed, ("--rope-scale", "2"), 128), (inner, ("--rope-scale", "8"), 256), (self.plain, ("--rope-scale", "2.5"), 160),
                                     (self.plain, ("--rope-scaling", "yarn", "--rope-scale", "4", "--yarn-orig-ctx", "48"), 192),
                                     (self.plain, ("--rope-scaling", "yarn"), 64), (self.plain, ("--rope-scaling", "linear"), 64),
                                     (self.plain, ("--rope-freq-base", "160000"), 512)):  # 16 times the base, heads of 8: 16 ** (6 / 8) = 8
            with self.subTest(model=os.path.basename(model), options=options):
                p = weft("run", model, "a", "-n", "1", "-q", "-c", str(most), *options)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.refused(most, "run", model, "a", "-n", "1", "-c", str(most + 1), *options)

    def test_engines_take_them(self):
        """compare runs in the engine that serve has, run in a session; perplexity, documents and bench take them as well."""
        options = ("--rope-scaling", "yarn", "--rope-scale", "2", "-c", "1024")
        ask = ("Once upon a time", "-n", "24", "--temp", "0")
        one = weft("run", ALDERBROOK, *ask, "-q", *options)
        other = weft("compare", ALDERBROOK, *ask, "--raw", "--json", *options)
        self.assertEqual((one.returncode, other.returncode), (0, 0), one.stderr + other.stderr)
        self.assertIn(one.stdout.decode().strip(), other.stdout.decode().replace("\\n", "\n"))
        for command in (
            ("eval", "perplexity", self.plain, "-f", self.text, "-c", "128", "--chunks", "2"),
            ("eval", "documents", self.plain, "-f", self.text, "-c", "128"),
            ("bench", self.plain, "-p", "100", "-n", "4", "-d", "100", "-r", "1"),
            ("imatrix", self.plain, "-f", self.text, "-c", "128", "--chunks", "1", "-o", self.path("m")),
            ("info", self.plain, "--plan", "-c", "256"),
        ):
            p = weft(*command, "--rope-scaling", "linear", "--rope-scale", "4")
            self.assertEqual(p.returncode, 0, (command, p.stderr))
        self.assertEqual(weft("info", self.plain, "--rope-scale", "4").returncode, 2)

    def test_what_they_cannot_be_is_usage(self):
        for options in (
            ("--rope-scaling", "ntk"),
            ("--rope-scale", "0"),
            ("--rope-scale", "-2"),
            ("--rope-scale", "nan"),
            ("--rope-scale", "2", "--rope-freq-scale", "0.5"),
            ("--rope-scaling", "none", "--rope-scale", "2"),
            ("--yarn-orig-ctx", "-1"),
            ("--rope-freq-base", "inf"),
            ("--yarn-beta-fast", "0"),
        ):
            p = weft("run", "/nonexistent", "a", *options)
            self.assertEqual(p.returncode, 2, options)

    @leave_out(EMULATED, "serve is a program of this machine")
    def test_prefixes_on_a_disk_are_of_one_scaling(self):
        """A server does not take up keys and values that were turned otherwise."""
        store, cached = self.path("store"), []
        for options in (("--rope-scale", "2"), ("--rope-scale", "2"), ("--rope-scaling", "yarn", "--rope-scale", "2")):
            p = subprocess.Popen(WEFT + ["serve", ALDERBROOK, "--port", "0", "-c", "600", "--store", store, *options], stderr=subprocess.PIPE, text=True)
            try:
                lines = iter(p.stderr.readline, "")  # the first may be about the store
                address = next(found.group(0) for found in (re.search(r"http://\S+", line) for line in lines) if found)
                body = json.dumps({"prompt": list(range(5, 205)), "n_predict": 1, "cache_prompt": True}).encode()
                urllib.request.urlopen(address + "/completion", body, timeout=PATIENCE).close()
                with urllib.request.urlopen(address + "/metrics", timeout=PATIENCE) as answer:
                    cached.append(float(re.search(r"^weft_cached_tokens_total (\S+)", answer.read().decode(), re.M).group(1)))
            finally:
                p.send_signal(signal.SIGTERM)
                p.stderr.read()
                p.stderr.close()
                self.assertEqual(p.wait(PATIENCE), 0)
        self.assertEqual((cached[0], cached[1] > 0, cached[2]), (0, True, 0), cached)


if __name__ == "__main__":
    main()
