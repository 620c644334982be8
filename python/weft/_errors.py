# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: one class for each status of the library."""

from __future__ import annotations

from typing import Dict, Optional, Type


class Error(Exception):
    """What the library refused or could not do; the message names the thing and, where there is one, the remedy.

    Attributes:
        status: the number of the status (``weft_status`` of ``weft/error.h``).
    """

    status: int = -1


class OutOfMemoryError(Error, MemoryError):
    """Out of memory (``WEFT_NO_MEMORY``)."""

    status = 1


class InputOutputError(Error, OSError):
    """Reading, writing or the network failed (``WEFT_IO``)."""

    status = 2


class FormatError(Error, ValueError):
    """A file, a template or JSON is malformed (``WEFT_FORMAT``)."""

    status = 3


class UnsupportedError(Error, NotImplementedError):
    """This engine does not do that (``WEFT_UNSUPPORTED``)."""

    status = 4


class ArgumentError(Error, ValueError):
    """A value is out of its range, or does not fit (``WEFT_ARGUMENT``)."""

    status = 5


class LimitError(Error):
    """A limit was reached: context, pages, disk (``WEFT_LIMIT``)."""

    status = 6


class StateError(Error, RuntimeError):
    """Not possible now: what is closed, what came through a fork (``WEFT_STATE``)."""

    status = 7


class AbiError(Error):
    """The library is of another version than this package (``WEFT_ABI``)."""

    status = 8


class CancelledError(Error):
    """A progress function said stop (``WEFT_CANCELLED``)."""

    status = 9


class NotFoundError(Error, LookupError):
    """No such file, adapter or name (``WEFT_NOT_FOUND``)."""

    status = 10


class ExistsError(Error):
    """The name, or the folder, is taken (``WEFT_EXISTS``)."""

    status = 11


class InternalError(Error):
    """A fault of the library or of the model's file (``WEFT_INTERNAL``)."""

    status = 12


class BusyError(Error):
    """The queue is full, or adapters in use fill their room (``WEFT_BUSY``).

    Attributes:
        retry_after: seconds to wait, where the engine could tell; else None.
    """

    status = 13
    retry_after: Optional[float] = None


class TimedOutError(Error, TimeoutError):
    """The deadline has passed (``WEFT_TIMEOUT``)."""

    status = 14


BY_STATUS: Dict[int, Type[Error]] = {
    kind.status: kind
    for kind in (
        OutOfMemoryError,
        InputOutputError,
        FormatError,
        UnsupportedError,
        ArgumentError,
        LimitError,
        StateError,
        AbiError,
        CancelledError,
        NotFoundError,
        ExistsError,
        InternalError,
        BusyError,
        TimedOutError,
    )
}


def error_of(status: int, message: str) -> Error:
    """The exception that stands for a status."""
    return BY_STATUS.get(status, Error)(message)
