# SPDX-License-Identifier: Apache-2.0
"""Logits and embeddings are NumPy arrays that the library writes into; without NumPy all else works."""

import subprocess
import sys

import pytest

import weft

np = pytest.importorskip("numpy")


def test_logits(model, paths):
    ids = model.tokenizer.encode("Once upon a time, a dog")
    logits = model.logits("Once upon a time, a dog")
    assert logits.dtype == np.float32 and logits.shape == (len(ids), model.info.n_vocab) and logits.flags["OWNDATA"]
    assert np.array_equal(model.logits(ids, last=True), logits[-1])
    with model.session() as session:
        one_by_one = np.stack([session.eval([token]) for token in ids])
        assert np.array_equal(one_by_one, logits) and session.n_tokens == len(ids)
        assert session.trim(2) == 2
        assert np.array_equal(session.eval(ids[2:], all=True), logits[2:])
        with pytest.raises(weft.LimitError):
            session.eval([1] * 600)
        with pytest.raises(weft.ArgumentError):
            session.eval([])
    long = [3 + n % 500 for n in range(400)]
    assert np.array_equal(model.logits(long)[-1], model.logits(long, last=True))


def test_picking_by_hand_is_generating(model):
    ids = model.tokenizer.encode("Once upon a time")
    sampler = weft.Sampler(model, seed=5, repeat_penalty=1.2)
    taken = []
    with model.session() as session:
        logits = session.eval(ids)
        for token in ids:
            sampler.accept(token)
        for _ in range(10):
            taken.append(sampler.pick(logits))
            sampler.accept(taken[-1])
            logits = session.eval(taken[-1:])
    assert taken == model.complete("Once upon a time", max_tokens=10, seed=5, repeat_penalty=1.2).tokens
    with pytest.raises(ValueError):
        sampler.pick(logits[:5])


def test_embeddings(model):
    texts = ["a dog in the garden", "winter", "a dog in the garden", "the harbour at night"]
    rows = model.embed(texts)
    assert rows.dtype == np.float32 and rows.shape == (4, model.info.d_model) and rows.flags["OWNDATA"]
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)
    assert np.array_equal(rows[0], rows[2]) and not np.array_equal(rows[0], rows[1])
    assert np.array_equal(model.embed("winter"), rows[1])
    assert not np.array_equal(model.embed("winter", adapter="pirate"), rows[1])
    means, lasts = (model.embed(texts, pooling=how) for how in ("mean", "last"))
    assert np.array_equal(means, rows)  # this model's file says nothing
    assert not np.allclose(lasts, rows, atol=1e-2) and np.allclose(np.linalg.norm(lasts, axis=1), 1, atol=1e-4)
    with pytest.raises(ValueError, match="'mean' or 'last'"):
        model.embed(texts, pooling="cls")
    assert model.embed([]).shape == (0, model.info.d_model)


def test_adapters_of_a_session(model, paths):
    pirate = weft.Adapter(paths["pirate"], base=paths["model"])
    plain, changed = model.logits("Once"), model.logits("Once", adapter={pirate: 1.0})
    assert not np.array_equal(plain, changed)
    assert np.array_equal(model.logits("Once", adapter={pirate: 0.0}), plain)


def test_without_numpy_all_else_works(paths):
    program = f"""
import sys
sys.modules["numpy"] = None
import weft
model = weft.Model({paths["model"]!r}, threads=1)
assert model.generate("Once", max_tokens=2, temperature=0)
try:
    model.embed("Once")
except ImportError:
    print("refused")
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "refused\n"
