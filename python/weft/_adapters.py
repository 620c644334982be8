# SPDX-License-Identifier: Apache-2.0
"""Adapters: low-rank changes of a model, as files and by the names that requests use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional

from ._native import Handle, Path, call, encoded, ffi, lib, params, result, text_of

if TYPE_CHECKING:
    from typing_extensions import Literal

    from ._model import Model

    Method = Literal["cat", "linear", "slerp", "ties", "dare"]


@dataclass(frozen=True)
class AdapterInfo:
    """An adapter of a model: what it is called, which content that is, and what a request means that names no scale."""

    name: str
    path: str
    scale: float
    version: int
    n_requests: int
    n_bytes: int
    id: str


class Adapters:
    """The adapters of a model by name: ``model.adapters``. Requests name them with ``adapter=``. Threads may share it."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def add(self, name: str, path: Path, *, scale: float = 1.0, lazy: bool = False, replace: bool = False) -> None:
        """Gives an adapter (a GGUF file or a PEFT folder) a name.

        Args:
            scale: what a request means that gives none.
            lazy: the file is first read when a request asks for it.
            replace: the name may be there already; requests that run go on with what they began with.

        Raises: NotFoundError, FormatError, UnsupportedError, ArgumentError (another base, or values too large), ExistsError.
        """
        flags = (lib.WEFT_ADAPTER_LAZY if lazy else 0) | (lib.WEFT_ADAPTER_REPLACE if replace else 0)
        with self._model._engine_handle() as engine:
            call(lib.weft_engine_adapter_add, engine, encoded(name), encoded(path), scale, flags)

    def remove(self, name: str) -> None:
        """Takes the name away. Raises NotFoundError."""
        with self._model._engine_handle() as engine:
            call(lib.weft_engine_adapter_remove, engine, encoded(name))

    def __getitem__(self, name: str) -> AdapterInfo:
        out = result("weft_engine_adapter")
        with self._model._engine_handle() as engine:
            call(lib.weft_engine_adapter_find, engine, encoded(name), out)
        return _info(out)

    def __iter__(self) -> Iterator[AdapterInfo]:
        with self._model._engine_handle() as engine:
            n = lib.weft_engine_adapters(engine, 0, ffi.NULL, 0)
            room = ffi.new("weft_engine_adapter[]", max(n, 1))
            for one in room:
                one.size = ffi.sizeof("weft_engine_adapter")
            n = min(n, lib.weft_engine_adapters(engine, 0, room, n))
        return iter([_info(room[i]) for i in range(n)])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return any(info.name == name for info in self)


def _info(found: Any) -> AdapterInfo:
    return AdapterInfo(
        text_of(found.name), text_of(found.path), found.scale, found.version, found.n_requests, found.n_bytes, text_of(found.id) if found.known else ""
    )


class Adapter:
    """An adapter as a file: read, described, merged, written.

    Args:
        path: a GGUF adapter or a PEFT folder.
        base: the model file that it changes, which it is checked against; None: a GGUF adapter alone.

    Raises: NotFoundError, InputOutputError, FormatError, UnsupportedError, LimitError (rank), ArgumentError (another base).
    """

    def __init__(self, path: Path, base: Optional[Path] = None) -> None:
        box = ffi.new("weft_adapter_file **")
        with _Base(base) as file:
            call(lib.weft_adapter_file_open, encoded(path), file, box)
        self._handle = Handle("the adapter", box, lib.weft_adapter_file_close)

    @classmethod
    def merge(
        cls, adapters: Mapping[Adapter, float], *, method: Method = "cat", density: Optional[float] = None, seed: Optional[int] = None
    ) -> Adapter:
        """Several adapters of one base as one, by their weights.

        Args:
            adapters: {adapter: weight}.
            method: "cat" (the exact sum), "linear", "slerp" (of two), "ties", "dare".
            density: of "ties" and "dare", in (0, 1].
            seed: of "dare".

        Raises: ArgumentError, UnsupportedError (DoRA), LimitError.
        """
        methods = {name: getattr(lib, f"WEFT_MERGE_{name.upper()}") for name in ("cat", "linear", "slerp", "ties", "dare")}
        if method not in methods:
            raise ValueError(f"a method is one of {', '.join(methods)}; not {method!r}")
        keep: List[Any] = []
        box = ffi.new("weft_adapter_file **")
        p = params("weft_merge_params", {"method": methods[method], "density": density, "seed": seed}, keep)
        call(lib.weft_adapter_file_merge, uses_of(adapters, keep), len(adapters), p, box)
        self = cls.__new__(cls)
        self._handle = Handle("the adapter", box, lib.weft_adapter_file_close)
        return self

    def compress(self, rank: Optional[int] = None, *, keep: float = 1.0) -> Adapter:
        """The same at a smaller rank: each matrix's change becomes the nearest to it of that rank; `errors` tells what that cost.

        Args:
            rank: that a matrix has at most; None: any.
            keep: the share, in (0, 1], of a change's squared norm that is kept at least, as far as `rank` allows.

        Raises: ArgumentError, UnsupportedError (DoRA).
        """
        box = ffi.new("weft_adapter_file **")
        with self._handle as file:
            call(lib.weft_adapter_file_compress, file, rank or 0, keep, box)
        other = Adapter.__new__(Adapter)
        other._handle = Handle("the adapter", box, lib.weft_adapter_file_close)
        return other

    def _described(self) -> Any:
        out = result("weft_adapter_info")
        with self._handle as file:
            call(lib.weft_adapter_file_describe, file, out)
        return out

    @property
    def id(self) -> str:
        """Hexadecimal: of what it computes, whatever the format."""
        return text_of(self._described().id)

    @property
    def n_params(self) -> int:
        """How many values it has."""
        return int(self._described().n_params)

    @property
    def rank(self) -> int:
        """The largest rank of its matrices."""
        return int(self._described().max_rank)

    @property
    def matrices(self) -> List[str]:
        """Names of the tensors that it changes."""
        return list(self.errors)

    @property
    def errors(self) -> Dict[str, float]:
        """Of what `compress` made: {tensor: norm of what it lost, as a share of the norm of its change}; zeros otherwise."""
        found = {}
        with self._handle as file:
            for i in range(self._described().n_matrices):
                matrix = result("weft_adapter_matrix")
                call(lib.weft_adapter_file_matrix, file, i, matrix)
                found[text_of(matrix.name)] = float(matrix.error)
        return found

    def save(self, path: Path, base: Optional[Path] = None) -> None:
        """Writes it: a GGUF adapter where the path ends in ".gguf", else a PEFT folder, which needs the base.

        Raises: UnsupportedError where the format cannot say what it means, InputOutputError.
        """
        with _Base(base) as file, self._handle as adapter:
            call(lib.weft_adapter_file_save, adapter, file, encoded(path))

    def close(self) -> None:
        """Frees it."""
        self._handle.close()


class _Base:
    """A model's file, open for a moment."""

    def __init__(self, path: Optional[Path]) -> None:
        self._path = path
        self._box = ffi.new("weft_file **")

    def __enter__(self) -> Any:
        if self._path is not None:
            call(lib.weft_file_open, encoded(self._path), self._box)
        return self._box[0]

    def __exit__(self, *_: object) -> None:
        lib.weft_file_close(self._box)


def uses_of(adapters: Mapping[Any, float], keep: List[Any]) -> Any:
    """{Adapter: weight} as the library takes it."""
    uses = ffi.new("weft_adapter_use[]", max(len(adapters), 1))
    for use, (adapter, weight) in zip(uses, adapters.items()):
        if not isinstance(adapter, Adapter):
            raise TypeError(f"{{Adapter: weight}} is wanted here, not a {type(adapter).__name__}")
        adapter._handle.check()
        use.file, use.scale = adapter._handle.pointer, float(weight)
        keep.append(adapter)
    keep.append(uses)
    return uses
