# SPDX-License-Identifier: Apache-2.0
"""What a model tells of itself, and the options that its engine is made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Mapping

if TYPE_CHECKING:
    from typing_extensions import Literal, TypedDict

    from ._native import Path

    Spec = Literal["off", "auto", "suffix", "draft"]

    class EngineOptions(TypedDict, total=False):
        """Further fields of ``weft_engine_params`` (``weft/engine.h``)."""

        step_rows: int
        chunk: int
        steady_ms: int
        isolate_tenants: bool
        store_bytes: int
        disk_wait_ms: int
        swap: Literal["auto", "off", "always"]
        swap_bytes: int
        trace: Path
        adapter_bytes: int
        lock_memory: bool
        kv_bytes: int


SPECS = ("off", "auto", "suffix", "draft")
SWAPS = ("auto", "off", "always")
ENGINE_OPTIONS = tuple("step_rows chunk steady_ms isolate_tenants store_bytes disk_wait_ms swap swap_bytes trace adapter_bytes lock_memory kv_bytes".split())


@dataclass(frozen=True)
class ModelInfo:
    """What a model is. ``n_ctx_max``: tokens of a context at most; ``n_bytes``: of all tensors."""

    arch: str
    name: str
    type: str
    device: str
    n_vocab: int
    n_ctx_train: int
    n_ctx_max: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_model: int
    d_ff: int
    n_params: int
    n_bytes: int
    n_threads: int


@dataclass(frozen=True)
class DraftStats:
    """Of one that guesses tokens ahead: drafts that were tried, their tokens, and those that answers went on with."""

    n_drafts: int
    n_tokens: int
    n_accepted: int


@dataclass(frozen=True)
class Stats:
    """What a model's engine has done, and holds now (``weft_engine_stats``); counts are of the last step that ended.

    ``drafts``: by who guessed them, "suffix", "prediction", "forced" (by a form of the answer) and "model".
    """

    n_running: int
    n_waiting: int
    n_steps: int
    n_submitted: int
    n_finished: int
    n_cancelled: int
    n_failed: int
    n_generated: int
    prompt_tokens: int
    cached_tokens: int
    kv_pages: int
    kv_pages_used: int
    kv_pages_cached: int
    n_preempted: int
    n_rows_prompt: int
    n_rows_decode: int
    drafts: Mapping[str, DraftStats]


def engine_options(spec: str, given: Mapping[str, Any]) -> Dict[str, Any]:
    """Fields of ``weft_engine_params`` by their names, choices among them as numbers."""
    unknown = set(given) - set(ENGINE_OPTIONS)
    if unknown:
        raise TypeError(f"there is no option {min(unknown)!r}; there are {', '.join(ENGINE_OPTIONS)}")
    values = dict(given)
    for key, value, names in (("spec", spec, SPECS), ("swap", given.get("swap", "auto"), SWAPS)):
        if value not in names:
            raise ValueError(f"{key} is one of {', '.join(names)}; not {value!r}")
        values[key] = names.index(value)
    return values
