# SPDX-License-Identifier: Apache-2.0
"""The library as cffi shows it: its functions, errors as exceptions, handles that are freed once, parameters from keywords.

Every call into the library gives up the interpreter's lock while it runs. Threads share handles; what a handle stands for is freed when its
last user has left. In a process that was forked off, a handle is refused and nothing is freed: the threads of the library did not come along.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, Callable, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._abi import ffi as _ffi  # made of the headers when the package is built
from ._errors import StateError, error_of

ffi: Any = _ffi
Path = Union[str, "os.PathLike[str]"]
PATIENCE_S = 30.0  # how long a handle that is closed waits for those who use it


def _open() -> Any:
    path = os.environ.get("WEFT_LIBRARY") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "libweft.so")
    return ffi.dlopen(path)


lib: Any = _open()


def text_of(pointer: Any, length: Optional[int] = None) -> str:
    """A C string as text."""
    raw: bytes = ffi.string(pointer) if length is None else ffi.buffer(pointer, length)[:]
    return raw.decode("utf-8", "replace")


def new_error() -> Any:
    """An error to be filled by a call."""
    return ffi.new("weft_error *")


def check(status: int, err: Any) -> None:
    """Raises what a status stands for."""
    if status:
        raise error_of(status, text_of(err.message) or text_of(lib.weft_status_text(status)))


def call(function: Any, *args: Any) -> None:
    """Calls a function whose last argument is an error."""
    err = new_error()
    check(function(*args, err), err)


class _State:
    """Of a handle: what it points to, and who uses it. Threads within a call keep it from being freed; so do children, the last of which frees
    it where that is due."""

    def __init__(self, box: Any, free: Any, parents: Tuple[_State, ...]) -> None:
        self.box, self.free, self.parents = box, free, parents
        self.pid = os.getpid()
        self.left = threading.Condition(threading.RLock())  # the collector may come by in a thread that holds it
        self.n_users = self.n_children = 0
        self.closing = self.due = self.freed = False
        for parent in parents:
            with parent.left:
                parent.n_children += 1

    def enter(self) -> None:
        with self.left:
            self.n_users += 1

    def leave(self) -> None:
        with self.left:
            self.n_users -= 1
            if not self.n_users:
                self.left.notify_all()

    def end(self, patience_s: float) -> bool:
        """Frees it now, or with the last child. False: a thread still uses it, and it stays."""
        if os.getpid() != self.pid:
            return True
        until = time.monotonic() + patience_s
        self.closing = True
        with self.left:
            while self.n_users and time.monotonic() < until:
                self.left.wait(0.1)
            if self.n_users:
                return False
            self.due = True
        self._free_if_due()
        return True

    def _free_if_due(self) -> None:
        with self.left:
            if not self.due or self.freed or self.n_children:
                return
            self.freed = True
        self.free(self.box)
        for parent in self.parents:
            with parent.left:
                parent.n_children -= 1
            parent._free_if_due()


class Handle:
    """What the library made, and the function that frees it; a context whose value is the pointer."""

    def __init__(self, what: str, box: Any, free: Any, *parents: Handle) -> None:
        self._what = what
        self._parents = parents
        self._state: _State = _State(box, free, tuple(parent._state for parent in parents))
        self._children: weakref.WeakSet[Handle] = weakref.WeakSet()
        weakref.finalize(self, _State.end, self._state, 5.0)
        for parent in parents:
            parent._children.add(self)

    @property
    def pointer(self) -> Any:
        """For who keeps the handle in use otherwise."""
        return self._state.box[0]

    def check(self) -> None:
        """Raises StateError in a process that was forked off, and when it is closed."""
        if os.getpid() != self._state.pid:
            raise StateError(f"{self._what} was opened before this process was forked off: open it in the process that uses it")
        if self._state.closing:
            raise StateError(f"{self._what} is closed")

    def __enter__(self) -> Any:
        self.check()
        self._state.enter()
        if self._state.closing:
            self._state.leave()
            raise StateError(f"{self._what} is closed")
        return self._state.box[0]

    def __exit__(self, *_: object) -> None:
        self._state.leave()

    def close(self) -> None:
        """Frees it, behind what was made of it, when nobody uses it any more."""
        if os.getpid() != self._state.pid:
            return
        self._state.closing = True
        for child in list(self._children):
            child.close()
        if not self._state.end(PATIENCE_S):
            raise StateError(f"{self._what} is in use by another thread")


class Callback:
    """A Python function as the library calls it. What it raises ends the work, and is raised again by ``finish``."""

    def __init__(self, kind: str, function: Callable[..., Any]) -> None:
        self.error: Optional[BaseException] = None
        self.pointer = ffi.callback(kind, lambda *args: 1 if function(*args) else 0, error=1, onerror=self._failed)

    def _failed(self, _kind: Any, value: BaseException, _traceback: Any) -> None:
        if self.error is None:
            self.error = value

    def finish(self, status: int, err: Any) -> None:
        """Behind the call that used it."""
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        check(status, err)


Progress = Callable[[str, float], Any]


def progress_callback(progress: Optional[Progress]) -> Callback:
    """For a ``weft_progress_fn``. Without a function of the caller's it still lets Ctrl-C through."""

    def report(_arg: Any, what: Any, fraction: float) -> Any:
        return progress(text_of(what), fraction) if progress else 0

    return Callback("weft_progress_fn", report)


def encoded(value: Path) -> bytes:
    """Text or a path as the library takes it; it has no NUL within."""
    raw = os.fsencode(value) if isinstance(value, os.PathLike) else value.encode("utf-8", "surrogateescape")
    if b"\0" in raw:
        raise ValueError("a text for the library must not contain NUL")
    return raw


def _to_c(kind: Any, key: str, value: Any, keep: List[Any]) -> Any:
    if kind.kind in ("primitive", "enum"):
        return float(value) if kind.cname in ("float", "double") else int(value)
    if kind.cname == "char *":
        keep.append(ffi.new("char[]", encoded(value)))
        return keep[-1]
    if kind.cname == "char * *":
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{key} must be a list of texts")
        texts = [ffi.new("char[]", encoded(one)) for one in value]
        keep.extend(texts)
        keep.append(ffi.new("char *[]", texts + [ffi.NULL]))
        return keep[-1]
    return value


def set_fields(name: str, struct: Any, values: Mapping[str, Any], keep: List[Any]) -> None:
    """Sets fields by their names; None leaves the default. Raises TypeError for a name that is no field."""
    fields = dict(ffi.typeof(name).fields)
    for key, value in values.items():
        if key not in fields or key in ("size", "reserved"):
            raise TypeError(f"there is no option {key!r} ({name} has none)")
        if value is not None:
            setattr(struct, key, _to_c(fields[key].type, key, value, keep))


def params(name: str, values: Mapping[str, Any], keep: List[Any]) -> Any:
    """A struct of parameters with the library's defaults and these values. ``keep`` lives as long as it is used."""
    struct = ffi.new(f"{name} *")
    getattr(lib, f"{name}_init")(struct, ffi.sizeof(name))
    set_fields(name, struct, values, keep)
    return struct


def result(name: str) -> Any:
    """A struct to be filled, with its size."""
    struct = ffi.new(f"{name} *")
    struct.size = ffi.sizeof(name)
    return struct


def ids_of(tokens: Iterable[int]) -> Any:
    """Token ids as a C array."""
    return ffi.new("int32_t[]", list(tokens))


def grown(fill: Callable[[Any, int, Any, Any], int], capacity: int) -> List[int]:
    """Ids from a function that says how many there are, and WEFT_LIMIT where they did not fit."""
    n, err = ffi.new("size_t *"), new_error()
    for _ in range(2):
        ids = ffi.new("int32_t[]", max(capacity, 1))
        status = fill(ids, capacity, n, err)
        if status != lib.WEFT_LIMIT or n[0] <= capacity:
            break
        capacity = n[0]
    check(status, err)
    return ffi.unpack(ids, n[0]) if n[0] else []


def kv_type(name: str) -> int:
    """The number of a type of keys and values, by its name."""
    box = ffi.new("uint32_t *")
    call(lib.weft_kv_type_parse, encoded(name), box)
    return int(box[0])


def as_list(value: Union[str, Sequence[str], None]) -> List[str]:
    """One text or several as a list."""
    return [] if value is None else [value] if isinstance(value, str) else list(value)
