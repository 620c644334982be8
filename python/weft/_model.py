# SPDX-License-Identifier: Apache-2.0
"""A model: text, chats, batches, embeddings and logits from one object."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, AsyncIterator, Coroutine, Dict, Iterator, List, Mapping, Optional, Sequence, Type, TypeVar, Union, overload

from ._adapters import Adapters
from ._errors import UnsupportedError
from ._facts import DraftStats, ModelInfo, Stats, engine_options
from ._measures import Measures
from ._native import Handle, Path, Progress, call, encoded, ffi, kv_type, lib, new_error, params, progress_callback, result, text_of
from ._requests import (
    ChatParser,
    Completion,
    Request,
    Running,
    acompleted,
    astreamed,
    completed,
    instance_of,
    is_class,
    streamed,
)
from ._session import Session
from ._text import Grammar, Message, Template, Tokenizer, Tool, prompt_ids

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Literal, Unpack

    from ._facts import EngineOptions, Spec
    from ._requests import AdapterChoice, ChatOptions, Options, Prompt

T = TypeVar("T")
Schema = Union[Mapping[str, Any], None]


def resolved(path: Path) -> bytes:
    """A path, or where the pulled model of that name lies."""
    found = ffi.new("char[4096]")
    call(lib.weft_resolve_model, encoded(path), found, 4096)
    return bytes(ffi.string(found))


class Model(Measures):
    """A model of a file (GGUF, a compiled plan, a Hugging Face folder) or of the name that it was pulled by.

    Args:
        path: the file, the folder, or OWNER/NAME of ``weft pull``.
        threads: that compute; 0: one per core that may be used.
        context: tokens of one request at most, prompt and answer; 0: the model's own, at most 4096.
        slots: requests that run at once; more wait.
        kv: type of keys and values, "f16", "f32", "bf16", "f8", "q8", "q4" or two of them, "k=q8,v=q4" (docs/howto/kv-types.md).
        kv_types: types that requests may have instead (their option ``kv``).
        kv_tokens: tokens that all requests together hold; 0: slots * context, within half of the free memory.
        queue: requests that wait at most.
        provider: a plugin beside the CPU.
        store: folder in which prefixes outlive the process.
        spec: who guesses tokens ahead, where that pays; answers stay the same: "auto" (all that there are), "suffix" (what followed in texts
            that ended alike, and ``prediction``), "draft" (a draft model alone), "off".
        draft: a smaller model of the same vocabulary that guesses; of ``spec`` "auto" and "draft".
        adapters: names and paths of adapters, as ``model.adapters.add`` takes them.
        progress: called with (what, fraction) while the model loads; a true answer stops it (CancelledError).
        engine: further fields of ``weft_engine_params``: chunk, steady_ms, swap ("auto", "off", "always"), lock_memory, ...

    The model is loaded here; what serves requests is made with the first one. Threads may share a model: their requests run in common steps,
    and no answer depends on what runs beside it. A ``with`` block closes it at its end. A model does not come along to a process that is
    forked off: there every call raises StateError.

    Raises: NotFoundError, InputOutputError, FormatError, UnsupportedError, ArgumentError, LimitError, OutOfMemoryError.
    """

    def __init__(
        self,
        path: Path,
        *,
        threads: int = 0,
        context: int = 0,
        slots: int = 16,
        kv: str = "f16",
        kv_types: Sequence[str] = (),
        kv_tokens: int = 0,
        queue: int = 256,
        provider: Optional[str] = None,
        store: Optional[Path] = None,
        spec: Spec = "auto",
        draft: Union[Model, Path, None] = None,
        adapters: Optional[Mapping[str, Path]] = None,
        progress: Optional[Progress] = None,
        **engine: Unpack[EngineOptions],
    ) -> None:
        keep: List[Any] = []
        self._kv = kv_type(kv)
        if isinstance(kv_types, str):
            raise TypeError("kv_types is a list of names")
        self._kv_types = [kv_type(name) for name in kv_types]
        more = engine_options(spec, engine)
        told = progress_callback(progress)
        p = params("weft_model_params", {"n_threads": threads, "n_ctx": context, "provider": provider, "progress": told.pointer}, keep)
        box, err = ffi.new("weft_model **"), new_error()
        told.finish(lib.weft_model_open(resolved(path), p, box, err), err)
        self._handle = Handle("the model", box, lib.weft_model_close)
        self._engine_options: Dict[str, Any] = {
            "n_slots": slots,
            "n_ctx": context,
            "kv_dtype": self._kv,
            "n_kv_tokens": kv_tokens,
            "max_queue": queue,
            "store_dir": store,
            **more,
        }
        self._draft: Optional[Model] = draft if isinstance(draft, Model) else None
        self._making = threading.Lock()
        self._engine: Optional[Handle] = None
        self._template: Optional[Template] = None
        self._tokenizer: Optional[Tokenizer] = None
        self._context = context
        pointer = lib.weft_model_tokenizer(box[0])
        if pointer:
            self._tokenizer = Tokenizer._of_model(self._handle, pointer)
        self.adapters = Adapters(self)
        try:
            if draft is not None and not isinstance(draft, Model):
                self._draft = Model(draft, threads=threads)
            if self._draft is not None:
                with self._draft._handle as small, self._handle as large:
                    call(lib.weft_draft_fits, large, small, ffi.NULL)
            for name, file in (adapters or {}).items():
                self.adapters.add(name, file)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        try:
            info = self.info
        except Exception:
            return "<weft.Model, closed>"
        return f"<weft.Model {info.name!r}, {info.arch} {info.type}, {info.n_params} parameters>"

    def close(self) -> None:
        """Ends what runs and frees the model. Whatever was made of it is closed, too."""
        self._handle.close()

    def _engine_handle(self) -> Handle:
        """The engine, made when it is first needed."""
        self._handle.check()
        with self._making:
            if self._engine is None:
                keep: List[Any] = []
                box = ffi.new("weft_engine **")
                p = params("weft_engine_params", self._engine_options, keep)
                types = ffi.new("uint32_t[]", self._kv_types)
                p.kv_types, p.n_kv_types = types, len(self._kv_types)
                parents = [self._handle]
                with ExitStack() as used:
                    model = used.enter_context(self._handle)
                    if self._draft is not None:
                        parents.append(self._draft._handle)
                        p.draft = used.enter_context(self._draft._handle)
                    call(lib.weft_engine_new, model, p, box)
                self._engine = Handle("the engine", box, lib.weft_engine_free, *parents)
            return self._engine

    # ---- what it is ----

    @property
    def info(self) -> ModelInfo:
        """Architecture, sizes, type."""
        out = result("weft_model_info")
        with self._handle as model:
            call(lib.weft_model_describe, model, out)
        found = {name: getattr(out, name) for name in ModelInfo.__dataclass_fields__}
        values: Dict[str, Any] = {name: text_of(value) if isinstance(value, ffi.CData) else value for name, value in found.items()}
        return ModelInfo(**values)

    @property
    def stats(self) -> Stats:
        """Counters of its requests."""
        out = result("weft_engine_stats")
        with self._engine_handle() as engine:
            lib.weft_engine_get_stats(engine, out)
        drafts = {
            text_of(lib.weft_drafter_name(i)): DraftStats(out.drafts[i].n_drafts, out.drafts[i].n_tokens, out.drafts[i].n_accepted)
            for i in range(lib.WEFT_DRAFTERS)
        }
        return Stats(**{name: getattr(out, name) for name in Stats.__dataclass_fields__ if name != "drafts"}, drafts=drafts)

    @property
    def kv_types(self) -> List[str]:
        """Types that the keys and values of its requests may have, its own first."""
        numbers, name = ffi.new("uint32_t[]", lib.WEFT_KV_TYPES_MAX), ffi.new("char[]", lib.WEFT_KV_NAME_MAX)
        with self._engine_handle() as engine:
            n = lib.weft_engine_kv_types(engine, numbers)
        return [text_of(lib.weft_kv_type_name(numbers[i], name)) for i in range(n)]

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's. Raises UnsupportedError where its file has none."""
        self._handle.check()
        if self._tokenizer is None:
            raise UnsupportedError("the model has no tokenizer, and so no text")
        return self._tokenizer

    def template(self, source: Optional[str] = None) -> Template:
        """The model's chat template, or that of a Jinja source."""
        self._handle.check()
        if source is not None:
            return Template(self._handle, source)
        if self._template is None:
            self._template = Template(self._handle, None)
        return self._template

    def grammar(
        self,
        source: Union[str, Sequence[str], Mapping[str, Any]] = "",
        kind: str = "gbnf",
    ) -> Grammar:
        """A form for answers, compiled once for many requests; see Grammar for the kinds."""
        return Grammar(self.tokenizer, kind, source)

    # ---- requests ----

    def _ids(self, prompt: Prompt) -> List[int]:
        return self.tokenizer.encode(prompt) if isinstance(prompt, str) else [int(token) for token in prompt]

    def _form(self, options: Dict[str, Any], schema: Any) -> Optional[Grammar]:
        given = [name for name in ("grammar", "regex", "choices") if options.get(name) is not None]
        if len(given) + (schema is not None) > 1:
            raise ValueError(f"an answer has one form: {' and '.join(given + ['schema'] * (schema is not None))} are given")
        if schema is not None:
            return self.grammar(schema.model_json_schema() if is_class(schema) else schema, "schema")
        if not given:
            return None
        form = options[given[0]]
        return form if isinstance(form, Grammar) else self.grammar(form, {"grammar": "gbnf"}.get(given[0], given[0]))

    def _run(self, requests: Sequence[Request]) -> Running:
        return Running(self._engine_handle(), self._tokenizer, requests)

    def _text_request(self, prompt: Prompt, schema: Any, options: Mapping[str, Any]) -> Request:
        own = dict(options)
        return Request(self._ids(prompt), own, self._form(own, schema), continues=len(prompt) > 0, predicted=self._predicted(own))

    def _chat_request(
        self,
        messages: Sequence[Message],
        schema: Any,
        tools: Optional[Sequence[Tool]],
        tool_choice: Optional[str],
        options: Mapping[str, Any],
    ) -> Request:
        own = dict(options)
        chat, variables = own.pop("template", None) or self.template(), own.pop("variables", None)
        offered = None if tool_choice == "none" else tools
        prompt = chat._prompt(messages, offered, variables or {}, True, False)
        form = self._form(own, schema)
        constrained = form is not None
        with prompt as pointer:
            ids = prompt_ids(pointer)
            if offered:
                if constrained:
                    raise ValueError("an answer has one form: tools cannot be called in it")
                form = Grammar._of_tools(pointer, offered, tool_choice, True)
        return Request(ids, own, form, continues=False, parser=ChatParser(prompt, offered, constrained), predicted=self._predicted(own))

    def _predicted(self, options: Mapping[str, Any]) -> List[int]:
        told = options.get("prediction")
        return [] if told is None else self.tokenizer.encode(told, bos=False) if isinstance(told, str) else [int(token) for token in told]

    # ---- text ----

    @overload
    def generate(self, prompt: Prompt, *, schema: Type[T], stream: Literal[False] = ..., **options: Unpack[Options]) -> T: ...
    @overload
    def generate(self, prompt: Prompt, *, schema: Schema = ..., stream: Literal[False] = ..., **options: Unpack[Options]) -> str: ...
    @overload
    def generate(self, prompt: Prompt, *, stream: Literal[True], schema: Schema = ..., **options: Unpack[Options]) -> Iterator[str]: ...
    def generate(self, prompt: Prompt, *, schema: Any = None, stream: bool = False, **options: Any) -> Any:
        """Continues a text.

        Args:
            prompt: text, or token ids as they are.
            stream: an iterator of texts, each as soon as it is certain; else one text.
            schema: JSON Schema as a dict, which the answer is valid under; or a pydantic class, an instance of which is returned.
            options: max_tokens (-1: until the context is full), temperature (0: greedy), top_k, top_p, min_p, repeat_penalty,
                presence_penalty, frequency_penalty, penalty_last_n, seed, logit_bias ({token: bias}), stop (a text or several, before which
                the answer ends), ignore_end, cut_to_fit (max_tokens that the context cannot hold is lowered, and not refused), adapter (a
                name, several, or {name: scale}), grammar (GBNF, or a Grammar), regex, choices, logprobs (0 to 20), prompt_logprobs,
                priority (-8 to 7), tenant, timeout (seconds), cache, kv (a type of keys and values, of
                ``model.kv_types``), shift (where the context is full the answer goes on without what stands behind the first ``keep``
                tokens), prediction (what the answer will be for the most part), draft_max, draft_min, draft_p_min (of tokens guessed ahead).

        Raises: ArgumentError, LimitError (the prompt does not fit; an answer for a class broke off), BusyError, TimedOutError, StateError.
        """
        request = self._text_request(prompt, schema, options)
        return self._answered(request, schema, stream)

    def _answered(self, request: Request, schema: Any, stream: bool) -> Any:
        _no_class_in_stream(schema, stream)
        running = self._run([request])
        if stream:
            running.submit()
            return streamed(running)
        done = completed(running)[0]
        return instance_of(schema, done) if is_class(schema) else done.text

    def complete(self, prompt: Prompt, *, schema: Schema = None, **options: Unpack[Options]) -> Completion:
        """As ``generate``, with all that is known of the answer: tokens, log-probabilities, why it ended."""
        return completed(self._run([self._text_request(prompt, schema, options)]))[0]

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        adapters: Optional[Sequence[Optional[AdapterChoice]]] = None,
        schema: Schema = None,
        **options: Unpack[Options],
    ) -> List[str]:
        """Continues many texts at once, each with an adapter of its own; the answers are those that each prompt gets alone.

        Args:
            prompts: texts or token ids; more than the queue holds follow as others end.
            adapters: one for each prompt (None: none), instead of ``adapter`` for all.

        Raises: as ``generate``; then all are cancelled.
        """
        return [done.text for done in self.complete_batch(prompts, adapters=adapters, schema=schema, **options)]

    def complete_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        adapters: Optional[Sequence[Optional[AdapterChoice]]] = None,
        schema: Schema = None,
        **options: Unpack[Options],
    ) -> List[Completion]:
        """As ``generate_batch``, with all that is known of the answers."""
        requests = self._batch(prompts, adapters, schema, options)
        return completed(self._run(requests)) if requests else []

    def _batch(self, prompts: Sequence[Prompt], adapters: Any, schema: Any, options: Any) -> List[Request]:
        if isinstance(prompts, str):
            raise TypeError("prompts is a list of texts; `generate` takes one")
        if adapters is not None and len(adapters) != len(prompts):
            raise ValueError(f"{len(adapters)} adapters for {len(prompts)} prompts")
        own = dict(options)
        form = self._form(own, schema)
        each = [own] * len(prompts) if adapters is None else [dict(own, adapter=adapter) for adapter in adapters]
        told = self._predicted(own)
        return [Request(self._ids(prompt), some, form, continues=len(prompt) > 0, predicted=told) for prompt, some in zip(prompts, each)]

    # ---- chats ----

    @overload
    def chat(self, messages: Sequence[Message], *, schema: Type[T], stream: Literal[False] = ..., **options: Unpack[ChatOptions]) -> T: ...
    @overload
    def chat(self, messages: Sequence[Message], *, schema: Schema = ..., stream: Literal[False] = ..., **options: Unpack[ChatOptions]) -> str: ...
    @overload
    def chat(self, messages: Sequence[Message], *, stream: Literal[True], schema: Schema = ..., **options: Unpack[ChatOptions]) -> Iterator[str]: ...
    def chat(self, messages: Sequence[Message], *, schema: Any = None, stream: bool = False, **options: Any) -> Any:
        """Answers a conversation; reasoning is left out (``complete_chat`` has it).

        Args:
            messages: ``[{"role": "user", "content": "..."}, ...]``, as OpenAI has them.
            schema, stream: as ``generate``.
            options: as ``generate``; and template (instead of the model's own), variables (of the template:
                ``{"enable_thinking": False}``).

        Raises: as ``generate``; ArgumentError when the template refuses the conversation.
        """
        request = self._chat_request(messages, schema, None, None, options)
        return self._answered(request, schema, stream)

    def complete_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Tool]] = None,
        tool_choice: Optional[str] = None,
        schema: Schema = None,
        **options: Unpack[ChatOptions],
    ) -> Completion:
        """As ``chat``, with reasoning, calls of tools, tokens and why it ended.

        Args:
            tools: functions as OpenAI describes them.
            tool_choice: "auto", "required", "none", or the name of a function.
        """
        return completed(self._run([self._chat_request(messages, schema, tools, tool_choice, options)]))[0]

    # ---- the same for event loops ----

    @overload
    def agenerate(self, prompt: Prompt, *, schema: Type[T], stream: Literal[False] = ..., **options: Unpack[Options]) -> Coroutine[Any, Any, T]: ...
    @overload
    def agenerate(self, prompt: Prompt, *, schema: Schema = ..., stream: Literal[False] = ..., **options: Unpack[Options]) -> Coroutine[Any, Any, str]: ...
    @overload
    def agenerate(self, prompt: Prompt, *, stream: Literal[True], schema: Schema = ..., **options: Unpack[Options]) -> AsyncIterator[str]: ...
    def agenerate(self, prompt: Prompt, *, schema: Any = None, stream: bool = False, **options: Any) -> Any:
        """``await model.agenerate(...)`` gives a text, ``async for`` over it with ``stream=True`` its pieces; otherwise as ``generate``.

        A task that is cancelled cancels its request.
        """
        return self._aanswered(self._text_request(prompt, schema, options), schema, stream)

    def _aanswered(self, request: Request, schema: Any, stream: bool) -> Any:
        _no_class_in_stream(schema, stream)
        return astreamed(self._run([request])) if stream else self._aone(request, schema)

    async def _aone(self, request: Request, schema: Any) -> Any:
        done = (await acompleted(self._run([request])))[0]
        return instance_of(schema, done) if is_class(schema) else done.text

    @overload
    def achat(
        self, messages: Sequence[Message], *, schema: Type[T], stream: Literal[False] = ..., **options: Unpack[ChatOptions]
    ) -> Coroutine[Any, Any, T]: ...
    @overload
    def achat(
        self, messages: Sequence[Message], *, schema: Schema = ..., stream: Literal[False] = ..., **options: Unpack[ChatOptions]
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def achat(self, messages: Sequence[Message], *, stream: Literal[True], schema: Schema = ..., **options: Unpack[ChatOptions]) -> AsyncIterator[str]: ...
    def achat(self, messages: Sequence[Message], *, schema: Any = None, stream: bool = False, **options: Any) -> Any:
        """As ``chat``, for event loops."""
        return self._aanswered(self._chat_request(messages, schema, None, None, options), schema, stream)

    async def agenerate_batch(
        self,
        prompts: Sequence[Prompt],
        *,
        adapters: Optional[Sequence[Optional[AdapterChoice]]] = None,
        schema: Schema = None,
        **options: Unpack[Options],
    ) -> List[str]:
        """As ``generate_batch``, for event loops."""
        requests = self._batch(prompts, adapters, schema, options)
        return [done.text for done in await acompleted(self._run(requests))] if requests else []

    # ---- arrays ----

    @overload
    def embed(self, texts: str, *, adapter: Optional[AdapterChoice] = ..., pooling: Optional[str] = ...) -> NDArray[np.float32]: ...
    @overload
    def embed(self, texts: Sequence[Prompt], *, adapter: Optional[AdapterChoice] = ..., pooling: Optional[str] = ...) -> NDArray[np.float32]: ...
    def embed(self, texts: Union[str, Sequence[Prompt]], *, adapter: Optional[AdapterChoice] = None, pooling: Optional[str] = None) -> NDArray[np.float32]:
        """Embeddings, of length 1; the engine writes them where the array lies.

        Args:
            texts: one text, for an array [d_model]; or several texts or lists of token ids, for [n, d_model].
            pooling: "mean" of the last hidden states, or that of the "last" token; as the model's file says, else the mean.

        Returns: float32. Raises: as ``generate``; ImportError without NumPy.
        """
        import numpy as np

        many = [texts] if isinstance(texts, str) else list(texts)
        rows = np.zeros((len(many), self.info.d_model), np.float32)
        options = {} if adapter is None else {"adapter": adapter}
        kinds = {None: lib.WEFT_POOLING_MODEL, "mean": lib.WEFT_POOLING_MEAN, "last": lib.WEFT_POOLING_LAST}
        if pooling not in kinds:
            raise ValueError(f"pooling is {pooling!r}; it must be 'mean' or 'last'")
        requests = [Request(self._ids(text), options, pooling=kinds[pooling], embedding=ffi.from_buffer("float[]", row)) for text, row in zip(many, rows)]
        if requests:
            completed(self._run(requests))
        return rows[0] if isinstance(texts, str) else rows

    def logits(self, prompt: Prompt, *, last: bool = False, adapter: Optional[Mapping[Any, float]] = None) -> NDArray[np.float32]:
        """Logits of a prompt's positions, written by the model where the array lies.

        Args:
            last: of the last position alone.
            adapter: {Adapter: weight}, a stack.

        Returns: float32 [n_tokens, n_vocab], or [n_vocab] with ``last``.
        Raises: LimitError (the prompt does not fit), ImportError without NumPy.
        """
        ids = self._ids(prompt)
        with self.session(context=max(len(ids), 1), adapter=adapter) as session:
            return session.eval(ids, all=not last)

    def session(self, *, context: int = 0, kv: Optional[str] = None, adapter: Optional[Mapping[Any, float]] = None) -> Session:
        """One sequence of tokens, for programs that pick tokens themselves; see Session."""
        return Session(self._handle, context or self._context, self._kv if kv is None else kv_type(kv), adapter)


def _no_class_in_stream(schema: Any, stream: bool) -> None:
    if stream and is_class(schema):
        raise TypeError("a class is for whole answers: with stream=True give its schema as a dict (model_json_schema())")
