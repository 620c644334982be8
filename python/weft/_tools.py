# SPDX-License-Identifier: Apache-2.0
"""Learning, and files made of files: what the commands train, quantize, convert, adapter merge and pull do."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Union

from ._adapters import Adapter, uses_of
from ._native import Callback, Path, Progress, encoded, ffi, lib, new_error, params, progress_callback, text_of

if TYPE_CHECKING:
    from typing_extensions import Literal, TypedDict, Unpack

    class TrainOptions(TypedDict, total=False):
        """Fields of ``weft_train_params`` (``weft/train.h``)."""

        n_threads: int
        base: Path
        tokenizer: Path
        name: str
        n_layers: int
        d_model: int
        d_ff: int
        n_heads: int
        n_kv_heads: int
        head_dim: int
        tied: bool
        n_ctx: int
        rope_base: float
        lora_rank: int
        lora_alpha: float
        lora_rs: bool
        lora_targets: str
        dpo_beta: float
        loss: Literal["sft", "dpo", "unlikelihood", "reward", "filtered", "grpo", "dr_grpo", "distill"]
        smoothing: float
        chosen: float
        anchor: float
        l2_sp: float
        beta: float
        reward_min: float
        group: int
        prompts: int
        answer_tokens: int
        clip_low: float
        clip_high: float
        rule: str
        verifier: str
        teacher: Path
        teacher_top: int
        norm_cap: float
        chat_template: str
        learn_prompts: bool
        batch: int
        accumulate: int
        seed: int
        optimizer: Literal["adamw", "sgd", "muon"]
        schedule: Literal["constant", "cosine", "one_cycle"]
        lr: float
        lr_floor: float
        beta1: float
        beta2: float
        momentum: float
        weight_decay: float
        clip_norm: float
        n_steps: int
        n_warmup: int
        epochs: float
        recompute: bool
        exact: bool
        resume: bool
        heldout_tokens: int
        save_every: int
        heldout_every: int
        init_adapter: Path
        neighbor_ratio: float
        stop_on: Literal["never", "heldout", "answers"]
        patience: int
        check_every: int
        keep_best: bool
        scales: Sequence[float]
        sample_every: int
        sample_prompts: Sequence[str]
        sample_tokens: int
        sample_raw: bool

    class VocabOptions(TypedDict, total=False):
        """Fields of ``weft_vocab_params``."""

        n_vocab: int
        min_count: int
        pre: str
        specials: Sequence[str]
        words: Sequence[str]
        chat_template: str


KINDS = ("planned", "step", "saved", "measured", "sample", "scaled", "ended")
CHOICES = {
    "loss": {
        name: "WEFT_TRAIN_" + name.upper() for name in ("sft", "dpo", "unlikelihood", "reward", "filtered", "grpo", "dr_grpo", "distill", "infonce")
    },
    "optimizer": {"adamw": "WEFT_TRAIN_ADAMW", "sgd": "WEFT_TRAIN_SGD", "muon": "WEFT_TRAIN_MUON"},
    "schedule": {"constant": "WEFT_TRAIN_CONSTANT", "cosine": "WEFT_TRAIN_COSINE", "one_cycle": "WEFT_TRAIN_ONE_CYCLE"},
    "stop_on": {"never": "WEFT_TRAIN_STOP_NEVER", "heldout": "WEFT_TRAIN_STOP_HELDOUT", "answers": "WEFT_TRAIN_STOP_ANSWERS"},
}


@dataclass(frozen=True)
class TrainEvent:
    """How far training is. ``kind``: "planned" (all is open and checked), "step", "saved", "measured" (before the first step), "sample" (of
    ``prompt``: ``text``), "scaled" (the adapter was tried at ``scale``) or "ended" (the result has the weights of ``best_step``).

    ``loss`` and ``heldout`` are means of -log p per token; NaN where they were not measured. ``answers_right`` and ``keep_right``: -1 there.
    """

    kind: str
    step: int
    n_steps: int
    n_rows: int
    loss: float
    heldout: float
    lr: float
    grad_norm: float
    rows_per_s: float
    seconds: float
    seconds_left: float
    n_params: int
    n_frozen: int
    n_bytes: int
    n_answers: int
    answers_right: int
    n_keep: int
    keep_right: int
    best_step: int
    scale: float
    prompt: Optional[str]
    text: Optional[str]


def train(
    out: Path,
    data: Union[Path, Sequence[Path]],
    *,
    heldout: Union[Path, Sequence[Path], None] = None,
    neighbors: Union[Path, Sequence[Path], None] = None,
    answers: Union[Path, Sequence[Path], None] = None,
    keep: Union[Path, Sequence[Path], None] = None,
    progress: Optional[Callable[[TrainEvent], Any]] = None,
    **options: Unpack[TrainOptions],
) -> str:
    """Trains a fresh model, a whole model, or an adapter of ``base`` (``lora_rank`` above 0).

    Args:
        out: a folder, made when it is missing; in it appear model.gguf or adapter.gguf, checkpoint.gguf, loss.jsonl and loss.svg.
        data: files of text, .jsonl, .u16 or .u32; ``weft train --help`` says what they hold.
        heldout: of the same kind, measured and not learned.
        neighbors: records mixed in that are to stay as they are, ``neighbor_ratio`` for each text.
        answers: records whose answers must come out word for word (``stop_on="answers"``, ``scales``); keep: those that must stay.
        progress: called with a TrainEvent; a true answer saves a checkpoint and ends it (CancelledError). Ctrl-C does the same at once, and
            raises KeyboardInterrupt; ``resume=True`` goes on from there.
        options: the fields of ``weft_train_params`` in ``weft/train.h``; ``optimizer`` and ``schedule`` by name.

    Returns: the path of what was learned. Raises: ArgumentError, FormatError (a record, with file and line), UnsupportedError, NotFoundError,
    ExistsError (the folder holds a run), StateError (a checkpoint of another run), LimitError (losses that are not finite), CancelledError.
    """
    alive: List[Any] = []
    values: Dict[str, Any] = dict(options)
    if "scales" in values:
        alive.append(ffi.new("float[]", [float(x) for x in values["scales"]]))
        values.update(scales=alive[-1], n_scales=len(values["scales"]))
    for key, names in CHOICES.items():
        if key in values:
            if values[key] not in names:
                raise ValueError(f"{key} is one of {', '.join(names)}; not {values[key]!r}")
            values[key] = getattr(lib, names[values[key]])
    for key in ("report", "arg", "stop"):
        if key in values:
            raise TypeError(f"there is no option {key!r}")

    def report(_arg: Any, event: Any) -> Any:
        return progress(_event(event)) if progress else 0

    told = Callback("weft_train_fn", report)
    stop = Callback("int(void *)", lambda _arg: told.error is not None)
    values.update(out=out, data=_paths(data), heldout=_paths(heldout), neighbors=_paths(neighbors), answers=_paths(answers), keep=_paths(keep))
    values.update(report=told.pointer, stop=stop.pointer)
    p = params("weft_train_params", values, alive)
    err = new_error()
    status = lib.weft_train(p, err)
    if stop.error is not None:
        stop.finish(status, err)
    told.finish(status, err)
    return os.path.join(os.fspath(out), "adapter.gguf" if values.get("lora_rank") or values.get("init_adapter") else "model.gguf")


def _paths(paths: Any) -> Optional[List[Any]]:
    return None if paths is None else [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def _event(event: Any) -> TrainEvent:
    values = {name: getattr(event, name) for name in TrainEvent.__dataclass_fields__}
    shown = {name: text_of(values[name]) if values[name] else None for name in ("prompt", "text")}
    return TrainEvent(**dict(values, kind=KINDS[event.kind], **shown))


def train_tokenizer(files: Union[Path, Sequence[Path]], out: Path, *, progress: Optional[Progress] = None, **options: Unpack[VocabOptions]) -> int:
    """Learns a byte-level BPE vocabulary from text files and writes it as a GGUF file without tensors.

    Returns: how many tokens it has. Raises: ArgumentError, UnsupportedError, FormatError, NotFoundError, CancelledError.
    """
    keep: List[Any] = []
    told = progress_callback(progress)
    p = params("weft_vocab_params", dict(options, progress=told.pointer), keep)
    names = [ffi.new("char[]", encoded(path)) for path in _paths(files) or []]
    found, err = ffi.new("weft_vocab_result *"), new_error()
    told.finish(lib.weft_train_tokenizer(ffi.new("char *[]", names), len(names), encoded(out), p, found, err), err)
    return int(found.n_tokens)


def quantize(
    path: Path, out: Path, type: str, *, threads: int = 0, imatrix: Optional[Path] = None, pure: bool = False, progress: Optional[Progress] = None
) -> None:
    """Writes a GGUF file with its matrices in another type ("Q4_K_M", "q8_0"). Raises: ArgumentError, NotFoundError, InputOutputError."""
    keep: List[Any] = []
    told = progress_callback(progress)
    p = params("weft_quantize_params", {"n_threads": threads, "imatrix": imatrix, "pure": pure, "progress": told.pointer}, keep)
    err = new_error()
    told.finish(lib.weft_quantize(encoded(path), encoded(out), encoded(type), p, ffi.new("weft_quantize_result *"), err), err)


def merge_adapters(
    path: Path, out: Path, adapters: Mapping[Adapter, float], *, type: Optional[str] = None, threads: int = 0, progress: Optional[Progress] = None
) -> None:
    """Writes a model with a weighted stack of adapters merged into its matrices.

    Args:
        adapters: {Adapter: weight}.
        type: of the matrices ("Q8_0"); None: each keeps its own.

    Raises: ArgumentError (an adapter fits no tensor), NotFoundError, InputOutputError.
    """
    keep: List[Any] = []
    told = progress_callback(progress)
    p = params("weft_quantize_params", {"n_threads": threads, "progress": told.pointer}, keep)
    name = ffi.NULL if type is None else encoded(type)
    err = new_error()
    uses, found = uses_of(adapters, keep), ffi.new("weft_quantize_result *")
    told.finish(lib.weft_adapter_apply(encoded(path), encoded(out), uses, len(adapters), name, p, found, err), err)


def convert(path: Path, out: Path, *, type: Optional[str] = None, progress: Optional[Progress] = None) -> None:
    """Writes a Hugging Face folder as a GGUF file. ``type``: of the matrices ("BF16"); None: as they are stored.

    Raises: UnsupportedError, ArgumentError, FormatError, NotFoundError, InputOutputError.
    """
    keep: List[Any] = []
    told = progress_callback(progress)
    dtype = -1 if type is None else lib.weft_dtype_from_name(encoded(type))
    if type is not None and dtype < 0:
        raise ValueError(f"there is no type {type!r}")
    p = params("weft_convert_params", {"dtype": dtype, "progress": told.pointer}, keep)
    err = new_error()
    told.finish(lib.weft_convert(encoded(path), encoded(out), p, err), err)


def pull(name: str, *, progress: Optional[Callable[[str, int, int], Any]] = None) -> str:
    """Fetches a model (OWNER/NAME, OWNER/NAME:Q4_K_M) as ``weft pull`` does, and returns its path.

    Args:
        progress: called with (what, bytes done, bytes in all) at least once a second; a true answer stops it, and what was fetched stays.

    Raises: NotFoundError, ArgumentError, LimitError (disk), InputOutputError, UnsupportedError (a library without it), CancelledError.
    """

    def report(_arg: Any, state: Any) -> Any:
        return progress(text_of(state.what), state.done, state.bytes) if progress else 0

    told = Callback("weft_pull_fn", report)
    keep: List[Any] = []
    found, err = ffi.new("weft_pull_result *"), new_error()
    told.finish(lib.weft_pull(encoded(name), params("weft_pull_params", {"progress": told.pointer}, keep), found, err), err)
    return os.fsdecode(ffi.string(found.path))


__all__ = ["TrainEvent", "convert", "merge_adapters", "pull", "quantize", "train", "train_tokenizer"]
