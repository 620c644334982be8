# SPDX-License-Identifier: Apache-2.0
"""Measuring: the perplexity of texts, the divergence from a base, scores on tasks; what `weft eval` does."""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._adapters import uses_of
from ._native import Callback, Handle, Path, Progress, check, encoded, ffi, lib, new_error, params, progress_callback, result, text_of
from ._requests import add_adapters

if TYPE_CHECKING:
    from typing_extensions import Literal

    from ._requests import AdapterChoice, Prompt

    Texts = Union[Prompt, Sequence[Prompt]]
    Form = Literal["yaml", "jsonl", "hellaswag", "winogrande", "multiple-choice", "humaneval", "swebench"]

SHARES = (0.0, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
OUTPUTS = ("generate", "loglikelihood", "rolling", "choice")


@dataclass(frozen=True)
class Estimate:
    """A figure and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Perplexity:
    """How well a model predicts texts.

    Attributes:
        perplexity: exp of the mean of -log p over the tokens that were scored; nll: that mean.
        n_tokens: that were scored; n_chunks: chunks, or texts, that were read; n_cut: texts that did not fit.
        context: tokens of a chunk, or of a text at most.
    """

    perplexity: Estimate
    nll: Estimate
    n_tokens: int
    n_chunks: int
    n_cut: int
    context: int


@dataclass(frozen=True)
class Divergence(Perplexity):
    """How far a model's probabilities are from a base's.

    Attributes:
        kl: the mean of KL(base || this), over the whole vocabulary; kl_at: its quantiles, by their share (0 to 1).
        same_top: the share of tokens at which the likeliest one is the base's.
        p_diff: of the probability of the token that follows, this less the base's; p_diff_at: its quantiles; p_rms: its root mean square.
        base_perplexity: of the base; difference: of the two; log_ratio: ln(perplexity / base_perplexity).
        correlation: of the two -log p.
    """

    kl: Estimate
    kl_at: Mapping[float, float]
    same_top: Estimate
    p_diff: Estimate
    p_diff_at: Mapping[float, float]
    p_rms: Estimate
    base_perplexity: Estimate
    difference: Estimate
    log_ratio: Estimate
    correlation: float


@dataclass(frozen=True)
class Paired:
    """A score beside that of another run over the same documents.

    Attributes:
        value: the other's; difference: this less the other's.
        p: that chance alone makes them so different (McNemar's where ``is_exact``, else of the normal distribution); NaN: cannot be told.
        only_here, only_there: documents that are better here, and there.
    """

    value: float
    difference: float
    p: float
    only_here: int
    only_there: int
    is_exact: bool


@dataclass(frozen=True)
class Score:
    """A metric of the answers as a filter leaves them. ``low``, ``high``: 95 %, Wilson's where ``is_rate``."""

    filter: str
    metric: str
    value: float
    low: float
    high: float
    error: float
    is_rate: bool
    higher_is_better: bool
    baseline: Optional[Paired]


@dataclass(frozen=True)
class Scores:
    """What a task's documents add up to: ``scores["acc"]``, or ``scores["exact_match", "strict"]`` of a filter.

    Attributes:
        task, version: what the task is called; output: "generate", "loglikelihood", "rolling" or "choice".
        scores: one for each filter and metric.
        n_documents: that were asked; n_cut: those whose prompts lost their beginning; n_unended: answers that ``max_tokens`` ended.
        n_tokens: generated, or scored; n_resumed: documents that stood in the file of samples already.
        table: all of it for people; svg: as a picture.
    """

    task: str
    version: str
    output: str
    scores: Tuple[Score, ...]
    n_documents: int
    n_cut: int
    n_unended: int
    n_tokens: int
    n_resumed: int
    table: str
    svg: str

    def __getitem__(self, name: Union[str, Tuple[str, str]]) -> Score:
        metric, wanted = (name, None) if isinstance(name, str) else name
        for score in self.scores:
            if score.metric == metric and wanted in (None, score.filter):
                return score
        raise KeyError(name)


# ---- texts ----


def are_many(texts: Texts) -> bool:
    """Several texts, not one: no text, and no list of ids."""
    return not isinstance(texts, str) and not (len(texts) > 0 and all(isinstance(one, int) for one in texts))


def _texts_of(texts: Optional[Texts], keep: List[Any]) -> Any:
    many: Sequence[Any] = [] if texts is None else texts if are_many(texts) else [texts]
    out = ffi.new("weft_perplexity_text[]", max(len(many), 1))
    for one, given in zip(out, many):
        if isinstance(given, str):
            raw = given.encode("utf-8", "surrogateescape")
            keep.append(ffi.new("char[]", raw))
            one.text, one.n = keep[-1], len(raw)
        else:
            keep.append(ffi.new("int32_t[]", [int(token) for token in given]))
            one.tokens, one.n = keep[-1], len(given)
    return out, len(many)


def measured(
    model: Handle,
    texts: Optional[Texts],
    base: Optional[Handle],
    adapter: Optional[Mapping[Any, float]],
    progress: Optional[Callable[[float], Any]],
    options: Mapping[str, Any],
) -> Any:
    """A ``weft_perplexity_result``; options: fields of ``weft_perplexity_params``."""
    keep: List[Any] = []
    told = Callback("weft_perplexity_fn", lambda _arg, event: progress(event.fraction) if progress else 0)
    values = dict(options, report=told.pointer)
    if texts is not None and are_many(texts):
        values.update(form=lib.WEFT_PERPLEXITY_TEXTS, tokenize=lib.WEFT_TOKENIZE_BOS | lib.WEFT_TOKENIZE_SPECIAL)
    p = params("weft_perplexity_params", values, keep)
    given, n = _texts_of(texts, keep)
    out, err = result("weft_perplexity_result"), new_error()
    with ExitStack() as used:
        pointer = used.enter_context(model)
        if base is not None:
            p.base = used.enter_context(base)
        if adapter:
            p.adapters, p.n_adapters = uses_of(adapter, keep), len(adapter)
        told.finish(lib.weft_perplexity(pointer, given, n, p, out, err), err)
    return out


def _estimate(found: Any) -> Estimate:
    return Estimate(found.value, found.error)


def _of_text(r: Any) -> Dict[str, Any]:
    return dict(
        perplexity=_estimate(r.perplexity), nll=_estimate(r.nll), n_tokens=r.n_scored, n_chunks=r.n_chunks, n_cut=r.n_cut, context=r.n_ctx
    )


def perplexity_of(r: Any) -> Perplexity:
    """As the library fills it."""
    return Perplexity(**_of_text(r))


def divergence_of(r: Any) -> Divergence:
    """As the library fills it."""
    names = ("kl", "same_top", "p_diff", "p_rms", "base_perplexity", "difference", "log_ratio")
    estimates: Dict[str, Any] = {name: _estimate(getattr(r, name)) for name in names}
    quantiles: Dict[str, Any] = {name: dict(zip(SHARES, getattr(r, name))) for name in ("kl_at", "p_diff_at")}
    return Divergence(**_of_text(r), **estimates, **quantiles, correlation=r.correlation)


# ---- tasks ----


def _data_of(data: Union[None, Path, Sequence[Path], Mapping[str, Path]]) -> Optional[List[Any]]:
    if data is None:
        return None
    if isinstance(data, Mapping):
        return [f"{split}={os.fspath(path)}" for split, path in data.items()]
    return [data] if isinstance(data, (str, os.PathLike)) else list(data)


def task_scores(
    engine: Handle,
    path: Path,
    data: Any,
    adapter: Optional[AdapterChoice],
    baseline: Optional[Path],
    progress: Optional[Progress],
    task_options: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Scores:
    """What ``weft_eval_task`` gives; options: fields of ``weft_task_params`` and ``weft_eval_params``."""
    keep: List[Any] = []
    err = new_error()
    told = progress_callback(progress)
    task, scores = ffi.new("weft_task **"), ffi.new("weft_scores **")
    try:
        asked = params("weft_task_params", dict(task_options, data=_data_of(data)), keep)
        check(lib.weft_task_open(encoded(path), asked, task, err), err)
        p = params("weft_eval_params", dict(options, progress=told.pointer), keep)
        add_adapters(p, adapter, keep)
        with engine as pointer:
            told.finish(lib.weft_eval_task(pointer, task[0], p, scores, err), err)
        if baseline is not None:
            check(lib.weft_scores_compare(scores[0], encoded(baseline), err), err)
        return _scores_of(task[0], scores[0])
    finally:
        lib.weft_scores_free(scores)
        lib.weft_task_close(task)


def _scores_of(task: Any, scores: Any) -> Scores:
    err = new_error()
    info, sums = result("weft_task_info"), result("weft_scores_info")
    check(lib.weft_task_describe(task, info, err), err)
    check(lib.weft_scores_describe(scores, sums, err), err)
    found = []
    for i in range(sums.n_scores):
        one = result("weft_score")
        check(lib.weft_scores_get(scores, i, one, err), err)
        found.append(_score_of(one))
    counts = {name: getattr(sums, name) for name in ("n_documents", "n_cut", "n_unended", "n_tokens", "n_resumed")}
    table, svg = (_written(scores, form) for form in (lib.WEFT_SCORES_TABLE, lib.WEFT_SCORES_SVG))
    return Scores(text_of(info.name), text_of(info.version), OUTPUTS[info.output], tuple(found), **counts, table=table, svg=svg)


def _score_of(one: Any) -> Score:
    paired = Paired(one.baseline, one.difference, one.p, one.only_here, one.only_there, bool(one.is_exact)) if one.has_baseline else None
    return Score(
        text_of(one.filter), text_of(one.metric), one.value, one.low, one.high, one.error, bool(one.is_rate), bool(one.higher_is_better), paired
    )


def _written(scores: Any, form: int) -> str:
    text, n, err = ffi.new("char **"), ffi.new("size_t *"), new_error()
    check(lib.weft_scores_write(scores, form, text, n, err), err)
    return text_of(text[0], n[0])
