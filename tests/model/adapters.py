# SPDX-License-Identifier: Apache-2.0
"""Claims about adapters on whole models: random PEFT folders over random models of every architecture give the logits of a plain forward pass
over the changed weights, alone and in stacks, from folders, GGUF files and merged models; files are converted without loss; adapters are
merged with each other as their formulas say.

usage: adapters.py build/weft [unittest options]. Exit status 77: NumPy is missing."""
import json
import os
import shutil
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIP: python3-numpy is not installed")
    sys.exit(77)

import hf_cases as ref  # noqa: E402  (beside this file; it finds the others)
import common  # noqa: E402
import gguf_file  # noqa: E402
import hf_folder as hf  # noqa: E402

PREFIX = "base_model.model."


class Lora:
    """A random adapter of a case: of every matrix, or of those whose module ends in one of `only`."""

    def __init__(self, case, seed, only=None, r=4, alpha=8, rslora=False, dora=False, dtype="F32", ranks=None, alphas=None, size=0.15):
        rng = np.random.default_rng(seed)
        self.config = {"peft_type": "LORA", "r": r, "lora_alpha": alpha, "use_rslora": rslora, "use_dora": dora, "bias": "none", "fan_in_fan_out": False,
                       "target_modules": "all-linear", "rank_pattern": ranks or {}, "alpha_pattern": alphas or {}, "modules_to_save": None}
        self.tensors, self.of, self.dtype = {}, {}, dtype
        shapes = hf.shapes_of(case.config)
        shapes.setdefault("lm_head.weight", shapes["model.embed_tokens.weight"])  # the head of a tied table can be changed by itself
        for name, shape in shapes.items():
            module = name[:-len(".weight")]
            if len(shape) != 2 or not name.endswith(".weight") or (only and not module.endswith(tuple(only))):
                continue
            rank, a = (next((v for k, v in (p or {}).items() if module.endswith("." + k) or module == k), d) for p, d in ((ranks, r), (alphas, alpha)))
            scale = a / (np.sqrt(rank) if rslora else rank)
            n, k = shape
            if "embed_tokens" in module:
                parts = {".lora_embedding_A": rng.normal(0, size, (rank, n)), ".lora_embedding_B": rng.normal(0, size, (k, rank))}
            else:
                parts = {".lora_A.weight": rng.normal(0, size, (rank, k)), ".lora_B.weight": rng.normal(0, size, (n, rank))}
            if dora:
                parts[".lora_magnitude_vector"] = rng.uniform(4, 16, k) if "embed_tokens" in module else rng.uniform(0.5, 2, n)
            self.of[name] = (PREFIX + module, list(parts), scale)
            self.tensors.update({PREFIX + module + s: v for s, v in parts.items()})

    def write(self, folder):
        os.makedirs(folder)
        with open(os.path.join(folder, "adapter_config.json"), "w") as f:
            json.dump(self.config, f)
        self.values = hf.write_safetensors(os.path.join(folder, "adapter_model.safetensors"), self.tensors, self.dtype)
        return self

    def changed(self, name, w):
        """What the matrix becomes under this adapter alone."""
        if name not in self.of:
            return w
        module, parts, scale = self.of[name]
        a, b = (self.values[module + p] for p in parts[:2])
        v = w + scale * (a.T @ b.T if "embed_tokens" in name else b @ a)
        if len(parts) < 3:
            return v
        m = self.values[module + parts[2]]  # of rows; of an embedding, PEFT's DoraEmbeddingLayer has those of its columns
        return v * (m / np.linalg.norm(v, axis=0))[None, :] if "embed_tokens" in name else v * (m / np.linalg.norm(v, axis=1))[:, None]


def changed(weights, stack):
    """The weights under a weighted stack: W + sum of weight * (W changed - W). An embedding's change leaves a head that is tied to it alone."""
    before = {"lm_head.weight": weights["model.embed_tokens.weight"], **weights}
    return {n: w + sum(s * (lora.changed(n, w) - w) for lora, s in stack) for n, w in before.items()}


LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "gate_proj", "up_proj", "gate_up_proj", "down_proj"]
EXPERTS = ["w1", "w2", "w3"]
SOME_EXPERTS = [
    f"experts.{e}.{m}" for e, m in ((0, "w1"), (1, "w2"), (2, "w3"), (1, "gate_proj"), (2, "down_proj"), (0, "up_proj"))
]  # the others stay as they are
KINDS = [
    dict(seed=1),
    dict(seed=2, only=["q_proj", "v_proj", "qkv_proj"], r=8, rslora=True, dtype="BF16"),
    dict(seed=3, only=["k_proj", "o_proj", "down_proj", "qkv_proj", "w2", "embed_tokens"], r=2, alpha=3, alphas={"down_proj": 5}, ranks={"o_proj": 6}),
]


class Adapted(ref.Folder):
    def lora(self, case, name, **kind):
        lora = Lora(case, **kind).write(self.path(name))
        return lora, self.path(name)

    def ok(self, *args):
        p = ref.weft(*args)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return p.stdout

    def check(self, got, expected, what, bound=1e-8):
        self.assertLess(ref.nmse(got, expected), bound, what)


class Architectures(Adapted):
    """One test per case, added below."""

    def compare(self, case):
        weights, tokens = case.write(self.folder), ref.tokens_for(case)
        plain = hf.forward(case.config, weights, tokens)
        kinds = KINDS + [
            dict(seed=4, only=LINEARS + EXPERTS + ["lm_head", "embed_tokens"], dora=True),
            dict(seed=5, only=SOME_EXPERTS + ["v_proj", "qkv_proj"], dora=True),
        ]
        loras = [self.lora(case, f"lora{i}", **kind) for i, kind in enumerate(kinds)]
        f32, gguf, merged = self.convert("--type", "f32"), self.path("lora.gguf"), self.path("merged.gguf")
        for i, (lora, path) in enumerate(loras):
            expected = hf.forward(case.config, changed(weights, [(lora, 1)]), tokens)
            self.assertGreater(ref.nmse(plain, expected), 1e-3, "it shows")
            self.check(self.logits(self.folder, tokens, "--adapter", f"a={path}"), expected, f"folder and folder, {i}")
            if i % 2 == 0:
                self.ok("adapter", "convert", path, gguf, "--base", f32)
                self.check(self.logits(f32, tokens, "--adapter", f"a={gguf}"), expected, f"file and file, {i}")
        stack = [(lora, s) for (lora, _), s in zip(loras, (0.5, 1, -0.75, 0.25, 0.5))]
        options = [o for i, (_, s) in enumerate(stack) for o in ("--adapter", f"a{i}={loras[i][1]}:{s}")]
        expected = hf.forward(case.config, changed(weights, stack), tokens)
        self.check(self.logits(self.folder, tokens, *options), expected, "a stack over the folder")
        self.ok("adapter", "merge", f32, merged, *options)
        self.check(self.logits(merged, tokens), expected, "a stack, merged")


ARCHITECTURES = ("llama", "mixtral", "phi3", "gemma3-eyes", "llama-tied", "qwen2", "qwen3moe")
for name in ARCHITECTURES[:common.repeated(len(ARCHITECTURES), 3, 2)]:
    setattr(Architectures, "test_" + name, lambda self, case=ref.NAMED[name]: self.compare(case))


class Files(Adapted):
    def info(self, adapter):
        return json.loads(self.ok("adapter", "info", adapter, "--base", self.folder, "--json"))

    def test_conversion_loses_nothing(self):
        for name in ("llama", "mixtral", "gemma2")[:common.repeated(3, 2, 1)]:
            case = ref.NAMED[name]
            case.write(self.folder)
            kinds = KINDS + [dict(seed=4, only=LINEARS + (SOME_EXPERTS if name == "mixtral" else []) + ["embed_tokens"], dora=True, dtype="F16")]
            for i, kind in enumerate(kinds):
                _, first = self.lora(case, f"{name}{i}", **kind)
                gguf, second, again = (self.path(f"{name}{i}{end}") for end in (".gguf", "-back", "-again.gguf"))
                self.ok("adapter", "convert", first, gguf, "--base", self.folder)
                self.ok("adapter", "convert", gguf, second, "--base", self.folder)
                self.ok("adapter", "convert", second, again, "--base", self.folder)
                infos = [self.info(p) for p in (first, gguf, second, again)]
                self.assertEqual(len({x["id"] for x in infos}), 1, (name, i))
                self.assertEqual([x["format"] for x in infos], ["peft", "gguf", "peft", "gguf"])
                with open(gguf, "rb") as a, open(again, "rb") as b:
                    self.assertEqual(a.read(), b.read(), (name, i))
                if name == "llama" and not kind.get("dora"):
                    with open(os.path.join(first, "adapter_model.safetensors"), "rb") as a, open(os.path.join(second, "adapter_model.safetensors"), "rb") as b:
                        self.assertEqual(self.tensors(a.read()), self.tensors(b.read()), "bit for bit")
            shutil.rmtree(self.folder)
            os.mkdir(self.folder)

    def tensors(self, data):
        n = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + n])
        return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]]) for k, v in header.items() if k != "__metadata__"}

    def test_merged_models_of_any_type(self):
        case = ref.Case("llama-wide", "LlamaForCausalLM", {"model_type": "llama", "hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1})
        weights, tokens = case.write(self.folder), ref.tokens_for(case)
        lora, path = self.lora(case, "lora", seed=5, only=LINEARS)
        base = self.convert("--type", "f32")
        expected = hf.forward(case.config, changed(weights, [(lora, 1)]), tokens)
        whole = self.path("whole.gguf")
        self.ok("adapter", "merge", base, whole, "--adapter", f"a={path}")
        self.check(self.logits(whole, tokens), expected, "merged")
        for kind in ("F16", "Q8_0", "Q4_K_M")[-common.repeated(3, 3, 1):]:
            at_once, later = self.path(kind + ".gguf"), self.path(kind + "-later.gguf")
            self.ok("adapter", "merge", base, at_once, "--adapter", f"a={path}", "--type", kind)
            self.ok("quantize", whole, later, kind)
            with open(at_once, "rb") as a, open(later, "rb") as b:
                self.assertEqual(a.read(), b.read(), kind)

    def test_compiled_plans_give_what_the_model_gives(self):
        """Bit for bit, on this processor; DoRA where the plan has the weights, refused by name where it has them only packed."""
        case = ref.NAMED["llama"]
        case.write(self.folder)
        out, plan, kept, base = self.path("logits"), self.path("model.plan"), self.path("kept.plan"), self.convert("--type", "q8_0")
        lora, dora = (self.lora(case, name, seed=6, only=LINEARS, dora=name == "dora")[1] for name in ("lora", "dora"))

        def logits(model, adapter):
            p = common.weft("eval", "logits", model, "--tokens", "1 2 3", "-o", out, *(("--adapter", "a=" + adapter) if adapter else ()))
            self.assertIn(p.returncode, (0, 1), p.stderr)
            return p.stderr.decode() if p.returncode else np.fromfile(out, dtype="<u4").tolist()

        for args in ((base, plan), (base, kept, "--keep-weights")):
            self.assertEqual(common.weft("compile", *args).returncode, 0)
        expected = {adapter: logits(base, adapter) for adapter in (None, lora, dora)}
        self.assertEqual(len({str(x) for x in expected.values()}), 3)
        for adapter, want in expected.items():
            self.assertEqual(logits(kept, adapter), want)
        self.assertEqual([logits(plan, adapter) for adapter in (None, lora)], [expected[None], expected[lora]])
        got = logits(plan, dora)
        self.assertTrue(got == expected[dora] or "--keep-weights" in got, got)  # what is not packed is there

    def test_errors_name_the_thing(self):
        case, other = ref.NAMED["llama"], ref.NAMED["qwen2"]
        case.write(self.folder)
        _, path = self.lora(case, "lora", seed=1, only=["q_proj"])
        gguf, elsewhere = self.path("lora.gguf"), self.path("other")
        self.ok("adapter", "convert", path, gguf, "--base", self.folder)
        os.mkdir(elsewhere)
        other.write(elsewhere)
        for args, status, words in (
            (("info", path), 1, "give the base"),
            (("info", self.folder), 1, "give the base"),
            (("info", path + "/adapter_config.json"), 1, ""),
            (("info", gguf, "--base", elsewhere), 1, "architecture 'llama'"),
            (("convert", gguf, self.path("x")), 2, "--base"),
            (("convert", gguf, self.path("no/such/x.gguf"), "--base", self.folder), 1, "no/such"),
            (("merge", self.folder, self.path("x.gguf")), 2, "--adapter is missing"),
            (("merge", self.folder, self.path("x.gguf"), "--adapter", "a"), 2, "NAME=PATH"),
            (
                ("merge", self.folder, self.path("x.gguf"), "--adapter", f"a={gguf}", "--adapter", f"a={gguf}"),
                2,
                "twice",
            ),
            (("merge", self.folder, self.path("x.gguf"), "--adapter", f"a={gguf}", "--method", "svd"), 2, "--method"),
            (("frob",), 2, "no 'frob'"),
        ):
            p = ref.weft("adapter", *args)
            self.assertEqual(p.returncode, status, (args, p.stderr))
            self.assertIn(words, p.stderr.decode(), args)
        self.assertFalse(os.path.exists(self.path("x.gguf")))


class Trained(Adapted):
    def test_a_folder_as_base(self):
        """An adapter of Llama's kin is trained over a folder as over the file that is made of it, whose rows of q and k stand otherwise."""
        case = ref.NAMED["llama"]
        case.write(self.folder)
        base, tokens, data, out = self.convert("--type", "f32"), ref.tokens_for(case), self.path("texts.jsonl"), []
        with open(data, "w") as f:
            f.writelines(json.dumps({"text": t}) + "\n" for t in ("hello world, the theater in her nation", "the nation and the theater ran", "then the world"))
        for i, model in enumerate((self.folder, base)):
            self.ok(
                "adapter",
                "train",
                model,
                "--data",
                data,
                "--out",
                self.path(f"run{i}"),
                "--rank",
                "4",
                "--steps",
                "5",
                "--lr",
                "1e-2",
                "-c",
                "32",
                "-b",
                "64",
            )
            out.append(self.logits(self.folder, tokens, "--adapter", "a=" + self.path(f"run{i}/adapter.gguf")))
        self.assertGreater(ref.nmse(out[0], self.logits(self.folder, tokens)), 1e-3, "it shows")
        self.check(out[0], out[1], "over the folder and over the file", 1e-6)
        p = ref.weft("train", data, "--base", self.folder, "--out", self.path("whole"))
        self.assertEqual(p.returncode, 1)
        self.assertIn("'weft convert' makes a file of it", p.stderr.decode())


# ---- adapters with each other ----

def largest(v, density):
    """The largest of its values by size; the others are zero."""
    keep = int(density * v.size)
    out = np.zeros(v.size)
    at = np.argsort(-np.abs(v.ravel()), kind="stable")[:keep]
    out[at] = v.ravel()[at]
    return out.reshape(v.shape)


def ties(halves, density):
    kept = [(largest(v, density), s) for v, s in halves]
    sign = np.where(sum(v for v, _ in kept) >= 0, 1, -1)
    count = sum((np.sign(v) == sign).astype(int) for v, _ in kept)
    return sum(s * v * (np.sign(v) == sign) for v, s in kept) / np.maximum(count, 1)


def slerp(x, y, t):
    angle = np.arccos(np.sum(x * y) / np.linalg.norm(x) / np.linalg.norm(y))
    return (np.sin((1 - t) * angle) * x + np.sin(t * angle) * y) / np.sin(angle)


class Merging(Adapted):
    def setUp(self):
        super().setUp()
        self.case = ref.NAMED["qwen3"]  # rows stay where they are
        self.weights = self.case.write(self.folder)
        self.loras = [self.lora(self.case, f"l{i}", seed=i + 10, only=["q_proj", "up_proj"], alpha=a) for i, a in enumerate((8, 2))]

    def merge(self, method, *options, weights=(0.7, 0.4)):
        out = self.path("merged.gguf")
        adapters = [o for (_, path), w in zip(self.loras, weights) for o in ("--adapter", f"{os.path.basename(path)}={path}:{w}")]
        self.out = self.ok("adapter", "merge", self.folder, out, *adapters, "--method", method, *options)
        return gguf_file.read(out)[1]

    def change(self, merged, name):
        a, b = (merged[f"blk.0.{name}.weight.lora_{end}"].astype(np.float64) for end in "ab")
        return b @ a

    def halves(self, i, part, weights):
        module, parts, scale = self.loras[i][0].of["model.layers.0.mlp.up_proj.weight"]
        return self.loras[i][0].values[module + parts[part]], np.sqrt(abs(weights[i]) * scale) * (np.sign(weights[i]) if part else 1)

    def compare(self, merged, wanted):
        for part, end in enumerate("ab"):
            got, want = merged["blk.0.ffn_up.weight.lora_" + end].astype(np.float64), wanted(part)
            self.assertEqual(got.shape, want.shape)
            self.assertLess(np.abs(got - want).max(), 1e-5, end)

    def test_concatenation_is_the_sum(self):
        merged = self.merge("cat")
        got = merged["blk.0.ffn_up.weight.lora_b"].astype(np.float64) @ merged["blk.0.ffn_up.weight.lora_a"]
        want = 0
        for (lora, _), w in zip(self.loras, (0.7, 0.4)):
            module, parts, scale = lora.of["model.layers.0.mlp.up_proj.weight"]
            want = want + w * scale * lora.values[module + parts[1]] @ lora.values[module + parts[0]]
        self.assertLess(np.abs(got - want).max(), 1e-5)

    def test_compression_is_the_nearest(self):
        """As numpy's SVD of the whole product cuts it: the product, the singular values in both halves, the errors that are told."""
        exact = {n: self.change(self.merge("cat"), n) for n in ("attn_q", "ffn_up")}
        for options, rank in ((("--rank", "3"), 3), (("--keep", "0.9"), None), (("--rank", "4", "--keep", "0.9999999"), 4)):
            merged = self.merge("cat", *options, "--json")
            told = {m["name"]: m for m in json.loads(self.out)["matrices"]}
            for name, c in exact.items():
                u, s, v = np.linalg.svd(c)
                r = rank or 1 + int(np.searchsorted(np.cumsum(s**2), 0.9 * np.sum(s**2)))
                near = (u[:, :r] * s[:r]) @ v[:r]
                self.assertLess(np.abs(self.change(merged, name) - near).max(), 1e-5, (name, options))
                for end, axis in (("a", 1), ("b", 0)):
                    half = merged[f"blk.0.{name}.weight.lora_{end}"].astype(np.float64)
                    self.assertLess(np.abs(np.sum(half**2, axis=axis) / s[:r] - 1).max(), 1e-4, "singular values")
                m = told[f"blk.0.{name}.weight"]
                self.assertEqual((m["rank_before"], m["rank"]), (8, r))
                self.assertLess(abs(m["error"] - np.sqrt(np.sum(s[r:]**2) / np.sum(s**2))), 1e-6)
        for args, words in ((("--rank", "2"), "--method"), (("--method", "cat", "--json"), "--json"), (("--method", "cat", "--keep", "0"), "--keep")):
            p = ref.weft("adapter", "merge", self.folder, self.path("x.gguf"), "--adapter", f"a={self.loras[0][1]}", *args)
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(words, p.stderr.decode())

    def test_linear(self):
        for weights in ((0.7, 0.4), (1, -0.5)):
            self.compare(self.merge("linear", weights=weights), lambda p: sum(v * s for v, s in (self.halves(i, p, weights) for i in (0, 1))))

    def test_ties(self):
        self.compare(self.merge("ties", "--density", "0.5"), lambda p: ties([self.halves(i, p, (0.7, 0.4)) for i in (0, 1)], 0.5))

    def test_a_density_is_a_share_to_the_last_value(self):
        """0.7 of 320 is 224, and in 32 bits a little less."""
        self.loras = [self.lora(self.case, f"five{i}", seed=i + 20, only=["q_proj", "up_proj"], r=5, alpha=a) for i, a in enumerate((8, 2))]
        sizes = [self.halves(0, part, (1, 1))[0].size for part in (0, 1)]
        self.assertTrue(all(int(0.7 * n) != int(float(np.float32(0.7)) * n) for n in sizes), sizes)
        self.compare(self.merge("ties", "--density", "0.7"), lambda p: ties([self.halves(i, p, (0.7, 0.4)) for i in (0, 1)], 0.7))

    def test_slerp(self):
        self.compare(self.merge("slerp", weights=(0.25, 0.75)), lambda p: slerp(*(v * s for v, s in (self.halves(i, p, (1, 1)) for i in (0, 1))), 0.75))

    def test_dare(self):
        """Each value of the sum is one of the four that keeping and dropping allow, dropped about as often as asked for; a seed repeats it."""
        merged, again, other = (self.merge("dare", "--density", "0.6", "--seed", s) for s in ("1", "1", "2"))
        name = "blk.0.ffn_up.weight.lora_a"
        self.assertTrue((merged[name] == again[name]).all())
        self.assertFalse((merged[name] == other[name]).all())
        (x, s), (y, t) = (self.halves(i, 0, (0.7, 0.4)) for i in (0, 1))
        kept, seen = 0, np.zeros(merged[name].shape, bool)
        for a in (0, 1):
            for b in (0, 1):
                here = np.abs(merged[name] - (a * x * s + b * y * t) / 0.6) < 1e-5
                kept += (a + b) * np.sum(here & ~seen)
                seen |= here
        self.assertTrue(seen.all())
        self.assertAlmostEqual(kept / (2 * seen.size), 0.6, delta=0.1)
        full = self.merge("dare")  # density 1 keeps all
        self.compare(full, lambda p: sum(v * s for v, s in (self.halves(i, p, (0.7, 0.4)) for i in (0, 1))))

    def test_ranks_may_differ(self):
        """Of a rank of 4 and one of 6, in either order, the smaller counts with zeros in what it lacks; its share of values is of its own ones. By
        itself, it is what it was."""
        for i, ranks in enumerate(((4, 6), (6, 4))):
            self.loras = [
                self.lora(self.case, f"uneven{i}{j}", seed=j + 30, only=["q_proj", "up_proj"], r=r, alpha=a)
                for j, (r, a) in enumerate(zip(ranks, (8, 2)))
            ]
            pad = [lambda v, r=r: np.pad(v, ((0, 6 - r), (0, 0)) if v.shape[0] == r else ((0, 0), (0, 6 - r))) for r in ranks]

            def halves(p, weights, change=lambda v: v):
                return [(pad[j](change(v)), s) for j, (v, s) in enumerate(self.halves(j, p, weights) for j in (0, 1))]

            for weights in ((0.7, 0.4), (1, -0.5)):
                self.compare(self.merge("linear", weights=weights), lambda p: sum(v * s for v, s in halves(p, weights)))
            self.compare(self.merge("dare"), lambda p: sum(v * s for v, s in halves(p, (0.7, 0.4))))
            self.compare(self.merge("ties", "--density", "0.3"), lambda p: ties(halves(p, (0.7, 0.4), lambda v: largest(v, 0.3)), 1))
            self.compare(self.merge("slerp", weights=(0.25, 0.75)), lambda p: slerp(*(v * s for v, s in halves(p, (1, 1))), 0.75))
            for method in ("linear", "slerp", "dare"):
                for j in (0, 1):
                    merged = self.merge(method, weights=(1 - j, j))
                    (b, s), (a, _) = (self.halves(j, p, (1, 1)) for p in (1, 0))
                    got = merged["blk.0.ffn_up.weight.lora_b"].astype(np.float64) @ merged["blk.0.ffn_up.weight.lora_a"]
                    self.assertLess(np.abs(got - s * s * b @ a).max(), 1e-5, method)

    def test_ranks_of_experts_may_differ(self):
        case = ref.NAMED["mixtral"]
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        case.write(self.folder)
        self.loras = [self.lora(case, f"experts{r}", seed=r, only=["w3"], r=r) for r in (2, 5)]
        merged = self.merge("linear", weights=(1, 0))
        lora, n = self.loras[0][0], 0
        for name, (module, parts, scale) in lora.of.items():
            if ".layers.0." in name:
                expert = int(name.split("experts.")[1].split(".")[0])
                got = merged["blk.0.ffn_up_exps.weight.lora_b"][expert].astype(np.float64) @ merged["blk.0.ffn_up_exps.weight.lora_a"][expert]
                self.assertLess(np.abs(got - scale * lora.values[module + parts[1]] @ lora.values[module + parts[0]]).max(), 1e-5, name)
                n += 1
        self.assertEqual(merged["blk.0.ffn_up_exps.weight.lora_a"].shape[:2], (n, 5))

    def test_what_cannot_be_merged(self):
        _, wide = self.lora(self.case, "wide", seed=3, only=["up_proj"], r=6)
        _, dora = self.lora(self.case, "dora", seed=3, only=["up_proj"], dora=True)
        first = "a=" + self.loras[0][1]
        for args, words in ((("--adapter", first, "--adapter", "b=" + dora, "--method", "cat"), "DoRA's magnitudes"),
                            (("--adapter", first, "--adapter", "b=" + dora, "--method", "linear"), "merge them into the base (without --method)"),
                            (("--adapter", first, "--method", "slerp"), "two adapters"),
                            (("--adapter", first + ":-1", "--adapter", "b=" + wide, "--method", "slerp"), "two adapters")):
            p = ref.weft("adapter", "merge", self.folder, self.path("x.gguf"), *args)
            self.assertEqual(p.returncode, 1, args)
            self.assertIn(words, p.stderr.decode(), args)


if __name__ == "__main__":
    unittest.main()
