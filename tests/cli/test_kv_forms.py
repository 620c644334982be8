# SPDX-License-Identifier: Apache-2.0
"""Tests of bench/kv_forms: what a row sees in F16 follows from its position alone, as the words say, and bytes are those of the arithmetic."""
import importlib.machinery
import os
import sys
import unittest

from common import main

sys.dont_write_bytecode = True
PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "kv_forms")
kv_forms = importlib.machinery.SourceFileLoader("kv_forms", PATH).load_module()  # says so, and ends with 77, where there is no NumPy
np = kv_forms.np
FORMS = {form.name: form for form in kv_forms.forms()}
TOKENS, CUT = 200, 171  # more than a tile; no bound of a tile, a group or a window


class Small(kv_forms.Llama):
    def __init__(self, heads=4, kv=2):
        self.layers, self.heads, self.kv, self.dim, self.base = 30, heads, kv, 64, 10000.0


def rows(n):
    r = np.random.default_rng(1)
    return [3 * r.standard_normal((heads, n, 64)).astype(np.float32) for heads in (4, 2, 2)]


def by_row(model, q, k, v, form, in_f16):
    """Attention row by row; `in_f16`: of a row, from where on keys and values are in F16."""
    q, k = model.rope(q), model.rope(k)
    own = q.reshape(model.kv, -1, model.dim)
    keys, values, out = form.keys(k, own), form.values(v), np.empty_like(q)
    for h in range(model.heads):
        g = h // (model.heads // model.kv)
        for i in range(q.shape[1]):
            from_k, from_v = in_f16(i)
            seen_k = np.concatenate([keys[g, :from_k], kv_forms.half(k[g, from_k:i + 1])])
            seen_v = np.concatenate([values[g, :from_v], kv_forms.half(v[g, from_v:i + 1])])
            p = np.exp((s := seen_k @ q[h, i] / 8) - s.max())
            out[h, i] = p @ seen_v / p.sum()
    return out


class Windows(unittest.TestCase):
    def setUp(self):
        self.model, self.rows = Small(), rows(TOKENS)

    def same(self, a, b):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-4)

    def test_a_row_sees_the_last_tokens_in_f16(self):
        expected = {"q4": lambda i: (i + 1, i + 1),
                    "q4+32": lambda i: (max(i - 31, 0), max(i - 31, 0)),
                    "q4+128": lambda i: (max(i - 127, 0), max(i - 127, 0)),
                    "kivi 4+64": lambda i: (max(i - 63, 0) // 32 * 32, max(i - 63, 0)),
                    "kivi 4+kivi": lambda i: ((i + 1) // 128 * 128, max(i - 127, 0))}
        for name, in_f16 in expected.items():
            with self.subTest(name):
                self.same(self.model.attention(*self.rows, FORMS[name]), by_row(self.model, *self.rows, FORMS[name], in_f16))

    def test_what_follows_changes_nothing(self):
        """Of forms that know nothing beforehand: a text that ends earlier has the same rows."""
        for name in ("q8", "q4", "q4+64", "q4 first+64", "q4+kivi", "kivi 4+32", "kivi 4+128", "kivi 2+kivi"):
            with self.subTest(name):
                whole = self.model.attention(*self.rows, FORMS[name])
                self.same(self.model.attention(*(x[:, :CUT] for x in self.rows), FORMS[name]), whole[:, :CUT])

    def test_a_window_over_all_is_f16(self):
        q, k, v = (x[:, :128] for x in self.rows)
        f16 = self.model.attention(q, k, v, FORMS["f16"])
        for name in ("q4+128", "kivi 4+128", "kvquant 4+128"):
            with self.subTest(name):
                self.same(self.model.attention(q, k, v, FORMS[name]), f16)
        self.assertGreater(np.abs(self.model.attention(q, k, v, FORMS["q4+64"]) - f16).max(), 1e-3)

    def test_the_first_tokens_are_in_f16(self):
        q, k, v = (x[:, :kv_forms.FIRST + 1] for x in self.rows)
        f16, first = (self.model.attention(q, k, v, FORMS[name]) for name in ("f16", "q4 first"))
        self.same(first[:, :-1], f16[:, :-1])
        self.assertGreater(np.abs(first[:, -1] - f16[:, -1]).max(), 1e-3)

    def test_bytes(self):
        """2 * 30 layers * 3 heads * 64 elements: 23,040 bytes in F16."""
        for name, depth, expected in (("f16", 1024, 23040), ("q4", 4096, 6480), ("q4+64", 1024, 6480 + 64 * 23040 / 1024),
                                      ("q4 edges", 1024, 6480 * 26 / 30 + 23040 * 4 / 30), ("q4+128", 64, 6480 + 23040),
                                      ("kivi 4+64", 1024, 7200 + (95 + 64) / 2 * 23040 / 1024), ("q4+kivi", 16384, 6480 + 180),
                                      ("q4 first", 1024, 6480 + 360)):
            with self.subTest(name):
                self.assertAlmostEqual(FORMS[name].bytes(Small(9, 3), depth), expected)


if __name__ == "__main__":
    main()
