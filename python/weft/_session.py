# SPDX-License-Identifier: Apache-2.0
"""One sequence of tokens, and a sampler: for programs that look at logits and pick tokens themselves."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence

from ._adapters import uses_of
from ._errors import ArgumentError
from ._native import Handle, call, ffi, ids_of, lib, params, result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._model import Model

STEP = 256  # tokens between two looks at signals


class Session:
    """One sequence of tokens with its keys and values. ``model.session()`` makes one; used by one thread at a time, and in a ``with`` block.

    Raises: LimitError (the context is larger than the model's), OutOfMemoryError, ArgumentError (an adapter fits nothing).
    """

    def __init__(self, model: Handle, context: int, kv: int, adapter: Optional[Mapping[Any, float]]) -> None:
        keep: List[Any] = []
        box = ffi.new("weft_session **")
        info = result("weft_model_info")
        with model as pointer:
            call(lib.weft_model_describe, pointer, info)
            call(lib.weft_session_new, pointer, params("weft_session_params", {"n_ctx": context, "kv_dtype": kv}, keep), box)
        self._handle = Handle("the session", box, lib.weft_session_free, model)
        self._turn = threading.Lock()
        self.n_vocab: int = info.n_vocab
        if adapter:
            with self._handle as session:
                uses = uses_of(adapter, keep)
                call(lib.weft_session_set_adapters, session, uses, len(adapter))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees it."""
        self._handle.close()

    @property
    def n_tokens(self) -> int:
        """Tokens that it holds."""
        with self._handle as session:
            return int(lib.weft_session_n_tokens(session))

    @property
    def n_ctx(self) -> int:
        """Tokens that it can hold."""
        with self._handle as session:
            return int(lib.weft_session_n_ctx(session))

    def eval(self, tokens: Sequence[int], *, all: bool = False) -> NDArray[np.float32]:
        """Appends tokens; their logits are written where the array lies.

        Args:
            tokens: one at least.
            all: logits behind each token, not behind the last alone.

        Returns: float32 [n_vocab], or [n, n_vocab] with ``all``.
        Raises: LimitError (the context is full), ArgumentError; what was read before is held. Ctrl-C ends it between two steps.
        """
        import numpy as np

        n = len(tokens)
        if not n:
            raise ArgumentError("there are no tokens to evaluate")
        logits = np.empty((n if all else 1, self.n_vocab), np.float32)
        with self._turn, self._handle as session:
            for first in range(0, n, STEP):
                some = tokens[first : first + STEP]
                last = first + STEP >= n
                row = logits[first] if all else logits[0]
                into = ffi.from_buffer("float[]", row if not all else logits[first : first + len(some)]) if all or last else ffi.NULL
                call(lib.weft_session_eval, session, ids_of(some), len(some), int(all), into)
        return logits if all else logits[0]

    def trim(self, n: int) -> int:
        """Forgets all but the first n tokens, as far as their state is still there; returns how many are kept."""
        with self._turn, self._handle as session:
            return int(lib.weft_session_trim(session, n))


class Sampler:
    """Picks tokens from logits.

    Args:
        model: whose vocabulary it is for.
        options: temperature, top_k, top_p, min_p, repeat_penalty, presence_penalty, frequency_penalty, penalty_last_n, seed, logit_bias.

    Raises: ArgumentError for a value out of range, by name.
    """

    def __init__(self, model: Model, **options: Any) -> None:
        from ._requests import SAMPLING, sampler_fields

        unknown = set(options) - {*SAMPLING, "seed", "logit_bias"}
        if unknown:
            raise TypeError(f"there is no option {min(unknown)!r}")
        keep: List[Any] = []
        p = params("weft_sampler_params", {}, keep)
        sampler_fields(p[0], options, keep)
        box = ffi.new("weft_sampler **")
        with model._handle as pointer:
            call(lib.weft_sampler_for, pointer, p, box)
        self._handle = Handle("the sampler", box, lib.weft_sampler_free)
        self._turn = threading.Lock()
        self._n_vocab = model.info.n_vocab

    def pick(self, logits: NDArray[np.float32]) -> int:
        """A token of logits [n_vocab], float32, which it may change. Raises ArgumentError when none can be picked."""
        import numpy as np

        if logits.dtype != np.float32 or logits.shape != (self._n_vocab,) or not logits.flags["C_CONTIGUOUS"]:
            raise ValueError(f"logits must be a contiguous float32 array [{self._n_vocab}]")
        token = ffi.new("int32_t *")
        with self._turn, self._handle as sampler:
            call(lib.weft_sampler_pick, sampler, ffi.from_buffer("float[]", logits, require_writable=True), token)
        return int(token[0])

    def accept(self, token: int) -> None:
        """Tells it what was taken, for penalties."""
        with self._turn, self._handle as sampler:
            call(lib.weft_sampler_accept, sampler, token)
