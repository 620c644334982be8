# SPDX-License-Identifier: Apache-2.0
"""Claims about the gradient of a whole model: what one step of `weft adapter train` with plain descent moves is the learning rate times the
gradient that NumPy computes in 64 bits, for every value of A and B of every linear layer. The reference shares nothing with the trainer but the
format of files: its way forth and back are written below.

usage: gradient.py build/weft [unittest options]. Exit status 77: NumPy is missing."""
import os
import pathlib
import struct
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIP: python3-numpy is not installed")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import common  # noqa: E402
import gguf_file  # noqa: E402

LINEARS = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
MOMENTUM = 0.9
TEXT = "the owl sat by the mill and the fox sat by the owl, who is there asked the mole\n" * 4


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


class Llama:
    """A llama over one text, with pairs {matrix: (A, B)} beside its matrices; all in 64 bits."""

    def __init__(self, path, scale):
        meta, tensors = gguf_file.read(path)
        self.w = {k.removesuffix(".weight"): v.astype(np.float64) for k, v in tensors.items()}
        self.scale, self.eps = scale, meta["llama.attention.layer_norm_rms_epsilon"]
        self.layers, self.heads, self.kv_heads = (meta["llama." + k] for k in ("block_count", "attention.head_count", "attention.head_count_kv"))
        self.dim = self.w["blk.0.attn_q"].shape[0] // self.heads
        self.base = meta.get("llama.rope.freq_base", 10000.0)

    def rope(self, x, sign):
        """Neighbouring numbers of a head are turned together, by position * base ** (-2i / dim)."""
        angle = np.arange(x.shape[0])[:, None] * self.base ** (-np.arange(0, self.dim, 2) / self.dim)
        c, s = np.cos(angle)[:, None], sign * np.sin(angle)[:, None]
        out = np.empty_like(x)
        out[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
        out[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
        return out

    def norm(self, name, x):
        inverse = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + self.eps)
        return x * inverse * self.w[name], inverse

    def norm_back(self, name, x, inverse, g):
        g = g * self.w[name]
        return inverse * g - x * inverse ** 3 * (g * x).mean(axis=1, keepdims=True)

    def linear(self, name, x):
        a, b = self.pairs[name]
        return x @ self.w[name].T + self.scale * (x @ a.T) @ b.T

    def linear_back(self, name, x, g):
        a, b = self.pairs[name]
        self.grads[name] = self.scale * (g @ b).T @ x, self.scale * g.T @ (x @ a.T)
        return g @ self.w[name] + self.scale * (g @ b) @ a

    def attend(self, q, k, v):
        n, group = len(q), self.heads // self.kv_heads
        k, v = (np.repeat(t, group, axis=1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(self.dim)
        p = softmax(np.where(np.tril(np.ones((n, n), bool)), scores, -np.inf))
        return np.einsum("hqk,khd->qhd", p, v), p

    def attend_back(self, q, k, v, p, g):
        group = self.heads // self.kv_heads
        kk, vv = (np.repeat(t, group, axis=1) for t in (k, v))
        gp = np.einsum("qhd,khd->hqk", g, vv)
        gs = p * (gp - (gp * p).sum(axis=2, keepdims=True)) / np.sqrt(self.dim)
        gq, gk, gv = np.einsum("hqk,khd->qhd", gs, kk), np.einsum("hqk,qhd->khd", gs, q), np.einsum("hqk,qhd->khd", p, g)
        return gq, *(t.reshape(len(q), self.kv_heads, group, self.dim).sum(axis=2) for t in (gk, gv))

    def layer(self, i, x):
        """The layer's output, and the way back through it."""
        name, n = f"blk.{i}.".__add__, len(x)
        h, inverse = self.norm(name("attn_norm"), x)
        q, k, v = (self.linear(name("attn_" + c), h).reshape(n, -1, self.dim) for c in "qkv")
        q, k = self.rope(q, 1), self.rope(k, 1)
        o, p = self.attend(q, k, v)
        o = o.reshape(n, -1)
        y = x + self.linear(name("attn_output"), o)
        h2, inverse2 = self.norm(name("ffn_norm"), y)
        gate, up = self.linear(name("ffn_gate"), h2), self.linear(name("ffn_up"), h2)
        s = 1 / (1 + np.exp(-gate))
        act = gate * s * up

        def back(g):
            ga = self.linear_back(name("ffn_down"), act, g)
            gh = self.linear_back(name("ffn_gate"), h2, ga * up * s * (1 + gate * (1 - s))) + self.linear_back(name("ffn_up"), h2, ga * gate * s)
            g = g + self.norm_back(name("ffn_norm"), y, inverse2, gh)
            go = self.linear_back(name("attn_output"), o, g).reshape(n, self.heads, self.dim)
            gq, gk, gv = self.attend_back(q, k, v, p, go)
            gs = (self.rope(gq, -1), self.rope(gk, -1), gv)
            gh = sum(self.linear_back(name("attn_" + c), h, t.reshape(n, -1)) for c, t in zip("qkv", gs))
            return g + self.norm_back(name("attn_norm"), x, inverse, gh)

        return y + self.linear(name("ffn_down"), act), back

    def run(self, tokens, pairs):
        """The mean of -log p over the tokens behind the first, and its gradient."""
        self.pairs, self.grads = pairs, {}
        x, backs = self.w["token_embd"][tokens[:-1]], []
        for i in range(self.layers):
            x, back = self.layer(i, x)
            backs.append(back)
        h, inverse = self.norm("output_norm", x)
        head = self.w.get("output", self.w["token_embd"])
        p = softmax(h @ head.T)
        rows = np.arange(len(p))
        loss = -np.log(p[rows, tokens[1:]]).mean()
        p[rows, tokens[1:]] -= 1
        g = self.norm_back("output_norm", x, inverse, p @ head / len(rows))
        for back in reversed(backs):
            g = back(g)
        return loss, self.grads


class Gradient(common.InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        text = cls.path("text.txt")
        pathlib.Path(text).write_text(TEXT, encoding="utf-8")
        cls.ok("train-tokenizer", text, "-o", cls.path("vocab.gguf"), "--vocab", "300")
        cls.ok("train", text, "--tokenizer", cls.path("vocab.gguf"), "--out", cls.path("base"), "--layers", "2", "--width", "32", "--ff", "48", "--heads", "4",
               "--kv-heads", "2", "--rope-base", "500", "-c", "64", "-b", "64", "--steps", "60", "--lr", "1e-2")
        rng = np.random.default_rng(3)
        cls.tokens = rng.integers(5, 290, 40)
        pathlib.Path(cls.path("ids.u16")).write_bytes(struct.pack("<40H", *cls.tokens))

    @classmethod
    def ok(cls, *args):
        p = common.weft(*args)
        assert p.returncode == 0, p.stderr

    def pairs(self, steps, lr, *more):
        """A and B of every matrix behind so many steps."""
        out = self.path(f"run{steps}-{len(more)}")
        self.ok("adapter", "train", self.path("base/model.gguf"), "--exact", "--data", self.path("ids.u16"), "--out", out,
                "-c", "64", "-b", "64", "--steps", str(steps), "--optimizer", "sgd", "--lr", str(lr), "--clip", "0", "--weight-decay", "0",
                "--schedule", "constant", "--warmup", "0", *more)
        _, t = gguf_file.read(os.path.join(out, "adapter.gguf"))
        names = [f"blk.{i}.{c}" for i in range(2) for c in LINEARS]
        self.assertEqual(len(t), 2 * len(names))
        return {n: tuple(t[f"{n}.weight.lora_{h}"].astype(np.float64) for h in "ab") for n in names}

    def check(self, scale, *more):
        lr = 2.0
        model = Llama(self.path("base/model.gguf"), scale)
        first, second = self.pairs(1, lr, *more), self.pairs(2, lr, *more)
        zeros = {n: (a, 0 * b) for n, (a, b) in first.items()}  # A has not moved yet: where B is 0 its gradient is
        before, g0 = model.run(self.tokens, zeros)
        _, g1 = model.run(self.tokens, first)
        self.assertGreater(before, 3)
        biggest = {}
        for n, (a, b) in first.items():
            moved = {"b, first step": (-b / lr, g0[n][1]),  # B began as 0
                     "a": ((a - second[n][0]) / lr, MOMENTUM * g0[n][0] + g1[n][0]),
                     "b": ((b - second[n][1]) / lr, MOMENTUM * g0[n][1] + g1[n][1])}
            for what, (got, want) in moved.items():
                size = np.abs(want).max()
                biggest[what[0]] = max(biggest.get(what[0], 0), size)
                self.assertLess(np.abs(got - want).max(), 2e-3 * size + 1e-7 / lr, (n, what))  # 1e-7: what a value near 1 is rounded by
        self.assertGreater(min(biggest.values()), 1e-4, "it shows")

    def test_the_reference_is_the_slope_of_its_loss(self):
        """Else two errors could agree: along random directions, against differences."""
        model, rng = Llama(self.path("base/model.gguf"), 1.5), np.random.default_rng(1)
        shapes = {n: (a.shape, b.shape) for n, (a, b) in self.pairs(1, 2.0, "--rank", "3").items()}
        at = {n: tuple(rng.normal(0, 0.2, s) for s in two) for n, two in shapes.items()}
        _, grads = model.run(self.tokens, at)
        for n in shapes:
            for half in (0, 1):
                d = rng.normal(0, 1, shapes[n][half])
                ends = []
                for h in (1e-5, -1e-5):
                    there = dict(at)
                    there[n] = tuple(v + h * d if i == half else v for i, v in enumerate(at[n]))
                    ends.append(model.run(self.tokens, there)[0])
                slope = (ends[0] - ends[1]) / 2e-5
                self.assertAlmostEqual(slope, (grads[n][half] * d).sum(), delta=1e-6 + 1e-5 * abs(slope), msg=(n, half))

    def test_alpha_over_rank(self):
        self.check(6 / 3, "--rank", "3", "--alpha", "6")

    def test_alpha_over_the_root_of_the_rank(self):
        self.check(3 / 2, "--rank", "4", "--alpha", "3", "--rslora")


if __name__ == "__main__":
    unittest.main()
