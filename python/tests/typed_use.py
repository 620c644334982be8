# SPDX-License-Identifier: Apache-2.0
"""What type checkers see of the package: mypy --strict reads this (python_check), and nothing runs it."""

from __future__ import annotations

from typing import AsyncIterator, Iterator, List, Optional

import numpy as np
import pydantic
from numpy.typing import NDArray
from typing_extensions import assert_type

import weft


class Dog(pydantic.BaseModel):
    name: str


def use(model: weft.Model) -> None:
    assert_type(model.generate("a", max_tokens=1, temperature=0), str)
    assert_type(model.generate([1, 2], stream=False, stop=["a"]), str)
    assert_type(model.generate("a", stream=True), Iterator[str])
    assert_type(model.generate("a", schema=Dog), Dog)
    assert_type(model.generate("a", schema={"type": "object"}), str)
    assert_type(model.chat([{"role": "user", "content": "a"}], variables={"x": 1}), str)
    assert_type(model.chat([], schema=Dog, adapter={"a": 0.5}), Dog)
    assert_type(model.chat([], stream=True), Iterator[str])
    assert_type(model.complete("a").logprobs, List[weft.TokenProb])
    assert_type(model.complete_chat([], tools=[{}]).calls, List[weft.ToolCall])
    assert_type(model.generate_batch(["a", [1]], adapters=["x", None, {"y": 1.0}]), List[str])
    assert_type(model.embed("a"), NDArray[np.float32])
    assert_type(model.logits("a"), NDArray[np.float32])
    assert_type(model.tokenizer.encode("a"), List[int])
    assert_type(model.perplexity("a", context=4).nll, weft.Estimate)
    assert_type(model.perplexity(["a", "b"], progress=lambda fraction: fraction > 1), weft.Perplexity)
    assert_type(model.kl("a", adapter={weft.Adapter("a"): 1.0}), weft.Divergence)
    assert_type(model.kl(base="file"), weft.Divergence)
    assert_type(model.eval_task("t.yaml", adapter="a", data={"test": "a.jsonl"})["acc"].baseline, Optional[weft.Paired])
    assert_type(model.generate("a", kv="q8", prediction="b", draft_max=4, shift=True), str)
    assert_type(model.complete("a", prompt_logprobs=True).prompt_logprobs, List[weft.TokenProb])
    assert_type(model.stats.drafts["suffix"], weft.DraftStats)
    weft.Model("a", kv_types=["q8"], spec="suffix", draft="b", swap="off", steady_ms=50)
    weft.Model("a", spec="fast")  # type: ignore[arg-type]
    model.eval_task("t", form="xml")  # type: ignore[arg-type]
    assert_type(weft.train("out", "data", base="b", lora_rank=4, progress=lambda event: event.loss > 1), str)
    model.generate("a", temprature=1)  # type: ignore[call-overload]
    model.generate("a", temperature="hot")  # type: ignore[call-overload]
    weft.train("out", "data", optimizer="lion")  # type: ignore[arg-type]
    with weft.Server(model, api_keys=["k"]) as server:
        assert_type(server.address, str)


async def ause(model: weft.Model) -> None:
    assert_type(await model.agenerate("a"), str)
    assert_type(await model.agenerate("a", schema=Dog), Dog)
    assert_type(await model.achat([]), str)
    assert_type(model.agenerate("a", stream=True), AsyncIterator[str])
    async for piece in model.achat([], stream=True):
        assert_type(piece, str)
    assert_type(await model.agenerate_batch(["a"]), List[str])
