# SPDX-License-Identifier: Apache-2.0
"""Adapters: named, used, described, merged, written; and models made of them."""

import pytest

import weft


def test_names(paths):
    with weft.Model(paths["model"], threads=1) as model:
        assert len(model.adapters) == 0 and "a" not in model.adapters
        model.adapters.add("a", paths["pirate"], scale=0.5)
        model.adapters.add("b", paths["poem"], lazy=True)
        assert [info.name for info in model.adapters] == ["a", "b"] and "a" in model.adapters
        assert model.adapters["a"].scale == 0.5 and model.adapters["a"].id and not model.adapters["b"].id
        with pytest.raises(weft.ExistsError):
            model.adapters.add("a", paths["poem"])
        half = model.generate("Once", adapter="a", max_tokens=8, temperature=0)
        assert half == model.generate("Once", adapter={"a": 0.5}, max_tokens=8, temperature=0)
        model.adapters.add("a", paths["letter"], replace=True)
        assert model.adapters["a"].version == 2
        model.adapters.remove("a")
        with pytest.raises(weft.NotFoundError):
            model.adapters["a"]
        with pytest.raises(weft.ArgumentError):
            model.adapters.add("no/name", paths["poem"])


def test_files(paths, tmp_path):
    pirate, poem = weft.Adapter(paths["pirate"], base=paths["model"]), weft.Adapter(paths["poem"])
    assert pirate.rank > 0 and pirate.n_params > 1000 and any("attn_q" in name for name in pirate.matrices)
    both = weft.Adapter.merge({pirate: 0.7, poem: 0.3})
    both.save(tmp_path / "both.gguf")
    assert weft.Adapter(tmp_path / "both.gguf").id == both.id != pirate.id
    both.save(tmp_path / "both", base=paths["model"])
    assert weft.Adapter(tmp_path / "both", base=paths["model"]).id == both.id
    small = both.compress(2)
    assert small.rank == 2 < both.rank and 0 < max(small.errors.values()) < 1 and set(small.matrices) == set(both.matrices)
    assert max(both.compress(keep=0.99).errors.values()) ** 2 <= 0.01 + 1e-9 and not any(both.errors.values())
    with pytest.raises(weft.ArgumentError):
        both.compress(keep=2)
    ties = weft.Adapter.merge({pirate: 1, poem: 1}, method="ties", density=0.5)
    assert ties.id not in (both.id, pirate.id)
    with pytest.raises(ValueError, match="method"):
        weft.Adapter.merge({pirate: 1}, method="sum")
    weft.merge_adapters(paths["model"], tmp_path / "merged.gguf", {pirate: 1.0}, type="F16")
    with weft.Model(tmp_path / "merged.gguf", threads=1) as merged, weft.Model(paths["model"], threads=1, adapters={"p": paths["pirate"]}) as model:
        assert merged.generate("Who goes there?", max_tokens=6, temperature=0) == model.generate("Who goes there?", adapter="p", max_tokens=6, temperature=0)
    weft.quantize(paths["model"], tmp_path / "small.gguf", "Q4_0")
    with weft.Model(tmp_path / "small.gguf", threads=1) as small:
        assert small.info.type == "Q4_0"
    with pytest.raises(weft.ArgumentError):
        weft.quantize(paths["model"], tmp_path / "none.gguf", "Q17")
