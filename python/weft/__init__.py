# SPDX-License-Identifier: Apache-2.0
"""Weft: language models on this machine's processor.

    import weft

    model = weft.Model("model.gguf")
    print(model.generate("Once upon a time", max_tokens=32))

``help(weft.Model)`` has the rest; so has ``docs/howto/python.md``. NumPy is needed for embeddings and logits alone.
"""

from ._adapters import Adapter, AdapterInfo, Adapters
from ._errors import (
    AbiError,
    ArgumentError,
    BusyError,
    CancelledError,
    Error,
    ExistsError,
    FormatError,
    InputOutputError,
    InternalError,
    LimitError,
    NotFoundError,
    OutOfMemoryError,
    StateError,
    TimedOutError,
    UnsupportedError,
)
from ._eval import Divergence, Estimate, Paired, Perplexity, Score, Scores
from ._facts import DraftStats, ModelInfo, Stats
from ._model import Model
from ._native import lib as _lib
from ._native import text_of as _text_of
from ._requests import Completion, TokenProb, ToolCall
from ._server import Server
from ._session import Sampler, Session
from ._text import Grammar, Template, Tokenizer
from ._tools import TrainEvent, convert, merge_adapters, pull, quantize, train, train_tokenizer

__version__: str = _text_of(_lib.weft_version())

__all__ = [
    "AbiError",
    "Adapter",
    "AdapterInfo",
    "Adapters",
    "ArgumentError",
    "BusyError",
    "CancelledError",
    "Completion",
    "Divergence",
    "Error",
    "DraftStats",
    "Estimate",
    "ExistsError",
    "FormatError",
    "Grammar",
    "InputOutputError",
    "InternalError",
    "LimitError",
    "Model",
    "ModelInfo",
    "NotFoundError",
    "OutOfMemoryError",
    "Paired",
    "Perplexity",
    "Sampler",
    "Score",
    "Scores",
    "Server",
    "Session",
    "StateError",
    "Stats",
    "Template",
    "TimedOutError",
    "TokenProb",
    "Tokenizer",
    "ToolCall",
    "TrainEvent",
    "UnsupportedError",
    "convert",
    "merge_adapters",
    "pull",
    "quantize",
    "train",
    "train_tokenizer",
]
