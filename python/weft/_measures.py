# SPDX-License-Identifier: Apache-2.0
"""What a model is measured by: perplexity, divergence from a base, scores on tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Sequence, Union

from ._eval import Divergence, Perplexity, Scores, divergence_of, measured, perplexity_of, task_scores
from ._native import Handle, Path, Progress, kv_type

if TYPE_CHECKING:
    from ._eval import Form, Texts
    from ._model import Model
    from ._requests import AdapterChoice


class Measures:
    """The part of a Model that measures it."""

    _handle: Handle
    _kv: int

    def _engine_handle(self) -> Handle:
        raise NotImplementedError

    def perplexity(
        self,
        texts: Texts,
        *,
        adapter: Optional[Mapping[Any, float]] = None,
        context: int = 0,
        chunks: int = 0,
        kv: Optional[str] = None,
        save_base: Optional[Path] = None,
        progress: Optional[Callable[[float], Any]] = None,
    ) -> Perplexity:
        """How well the model predicts a text, as ``weft eval perplexity`` and llama-perplexity have it; or texts, as ``weft eval documents``.

        Args:
            texts: one text, or its token ids: it is cut into chunks, of two at least, the second half of each of which is scored. A list of
                them: each is read from its beginning, and every token but the first is scored.
            adapter: {Adapter: weight}, a stack.
            context: tokens of a chunk, or of a text at most; 0: 512, or the model's where that is less.
            chunks: no more than so many; 0: all.
            kv: type of keys and values; None: the model's.
            save_base: a file for the model's probabilities, which ``kl`` takes as ``base``; of one text.
            progress: called with the fraction that is done; a true answer stops it (CancelledError).

        Raises: ArgumentError (too short, ids out of range), UnsupportedError (text, and no tokenizer), LimitError (the context), FormatError
        (a token without a finite log-probability), InputOutputError, CancelledError.
        """
        options = {"n_ctx": context, "n_chunks": chunks, "kv_dtype": self._kv if kv is None else kv_type(kv), "save_base": save_base}
        return perplexity_of(measured(self._handle, texts, None, adapter, progress, options))

    def kl(
        self,
        texts: Optional[Texts] = None,
        *,
        adapter: Optional[Mapping[Any, float]] = None,
        base: Union[Model, Path, None] = None,
        context: int = 0,
        chunks: int = 0,
        kv: Optional[str] = None,
        progress: Optional[Callable[[float], Any]] = None,
    ) -> Divergence:
        """How far the model's probabilities are from a base's, KL(base || this), and both perplexities.

        Args:
            texts: as ``perplexity``; with a file as the base there are none, as it has the text.
            base: None: the model without the adapters, so that this is what they make it forget; another model of the same vocabulary; or the
                file of ``perplexity(..., save_base=...)``, of ``weft eval perplexity --kl-base`` or of llama-perplexity.
            adapter, context, chunks, kv, progress: as ``perplexity``.

        Raises: as ``perplexity``; ArgumentError (another vocabulary), FormatError (no such file); ValueError with neither base nor adapter.
        """
        if base is None and not adapter:
            raise ValueError("the divergence is of an adapter, or from a base: give one of them")
        options: Dict[str, Any] = {"n_ctx": context, "n_chunks": chunks, "kv_dtype": self._kv if kv is None else kv_type(kv)}
        beside = self._handle if base is None else base._handle if isinstance(base, Measures) else None
        if beside is None:
            options["base_file"] = base
        return divergence_of(measured(self._handle, texts, beside, adapter, progress, options))

    def eval_task(
        self,
        path: Path,
        *,
        form: Optional[Form] = None,
        data: Union[Path, Sequence[Path], Mapping[str, Path], None] = None,
        fewshot: Optional[int] = None,
        repeats: int = 0,
        max_tokens: int = 0,
        temperature: Optional[float] = None,
        adapter: Optional[AdapterChoice] = None,
        chat: bool = False,
        multiturn: bool = False,
        system: Optional[str] = None,
        bos: bool = True,
        limit: int = 0,
        seed: int = 1234,
        fewshot_seed: int = 1234,
        samples: Optional[Path] = None,
        predictions: Optional[Path] = None,
        baseline: Optional[Path] = None,
        progress: Optional[Progress] = None,
    ) -> Scores:
        """Scores on a task: a task file of lm-evaluation-harness, plain JSONL, or what llama-perplexity reads; docs/howto/evaluate.md.

        The documents run in common steps, beside whatever else the model does; no score depends on that.

        Args:
            form: what the file is; None: by its name.
            data: JSONL in place of what the task names: a file, or {split: file}.
            fewshot, repeats, max_tokens, temperature: examples, answers to a question, and how these are made; the task's where not given.
            adapter: as ``generate``.
            chat: prompts are messages in the model's chat template; multiturn: examples are turns of their own; system: stands in front.
            bos: False: no BOS before texts, whatever the model's file says.
            limit: the first documents alone; 0: all.
            seed, fewshot_seed: of sampled answers; of the examples.
            samples: a file with a line of JSON per document, from which a run that was stopped goes on.
            predictions: a file for the answers to a task that is judged elsewhere.
            baseline: samples of another run, to compare with.
            progress: called with (task, fraction); a true answer stops it (CancelledError).

        Raises: FormatError (the task, by line), ArgumentError, UnsupportedError, NotFoundError, ExistsError (samples of another run),
        LimitError, InputOutputError, CancelledError.
        """
        task = {"form": form, "n_fewshot": fewshot, "repeats": repeats, "max_tokens": max_tokens, "temperature": temperature}
        options: Dict[str, Any] = {"chat": chat, "multiturn": multiturn, "system": system, "no_bos": not bos, "limit": limit, "seed": seed}
        options.update(fewshot_seed=fewshot_seed, samples=samples, predictions=predictions)
        return task_scores(self._engine_handle(), path, data, adapter, baseline, progress, task, options)
