# SPDX-License-Identifier: Apache-2.0
"""A server in this process: the endpoints of OpenAI and llama.cpp over a model that Python uses, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from ._model import Model
from ._native import Handle, Path, call, ffi, lib, params, text_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class ServerOptions(TypedDict, total=False):
        """Fields of ``weft_server_params`` (``weft/server.h``)."""

        unix_path: Path
        tls_cert_file: Path
        tls_key_file: Path
        api_keys: Sequence[str]
        api_key_file: Path
        admin_keys: Sequence[str]
        cors_origins: Sequence[str]
        allow_hosts: Sequence[str]
        aliases: Sequence[str]
        proxies: Sequence[str]
        chat_template: str
        adapter_dir: Path
        add_adapters: bool
        log_file: Path
        n_threads: int
        n_workers: int
        max_connections: int
        max_per_ip: int
        max_headers: int
        idle_s: int
        slow_s: int
        ping_s: int
        drain_s: int
        max_body: int
        max_head: int
        max_buffer: int
        no_page: bool
        listen_fd: int
        config_file: Path
        otlp_url: str
        metrics_file: Path
        metrics_every_s: int
        shift: bool
        learn_dir: Path
        learn_bytes: int
        learn_days: int
        feedback_per_hour: int
        log_sync: int
        memories: bool
        memory_embed: bool
        route: Sequence[str]
        route_by: str
        route_cost: float
        learn_share: float
        route_embed: bool
        learn_consolidate: str


class Server:
    """Serves a model over HTTP, on threads of its own, from here on until it is closed; requests of Python run beside those of clients.

    Args:
        model: what is served; it stays usable.
        port: 0: any that is free.
        host: the address to listen at.
        options: the fields of ``weft_server_params`` in ``weft/server.h``.

    Raises: InputOutputError (address, files), ArgumentError (by name), UnsupportedError (TLS; a model without tokenizer).
    """

    def __init__(self, model: Model, port: int = 0, host: str = "127.0.0.1", **options: Unpack[ServerOptions]) -> None:
        keep: List[Any] = []
        values: Dict[str, Any] = dict(options, port=port or -1, host=host)
        box = ffi.new("weft_server **")
        engine = model._engine_handle()
        with model._handle as model_pointer, engine as engine_pointer:
            call(lib.weft_server_new, model_pointer, engine_pointer, params("weft_server_params", values, keep), box)
        self._handle = Handle("the server", box, lib.weft_server_free, model._handle, engine)

    @property
    def address(self) -> str:
        """ "http://127.0.0.1:8080", where it listens."""
        with self._handle as server:
            return text_of(lib.weft_server_address(server))

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> int:
        """Refuses what is new, lets requests end for ``drain_s``, cancels what is left, and closes. Returns how many that were."""
        with self._handle as server:
            lib.weft_server_stop(server)
            n = int(lib.weft_server_run(server))
        self._handle.close()
        return n

    def close(self) -> None:
        """Closes its connections at once."""
        self._handle.close()
