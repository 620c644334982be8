# SPDX-License-Identifier: Apache-2.0
"""Requests to a model's engine: what they ask for, and their answers as they come.

A call has an inbox of its own (``weft/engine.h``), from which its thread, or its event loop, takes what the engine tells. No Python runs on
the engine's thread. A call that is left early, by an exception or Ctrl-C, cancels its requests, which end with the step that runs.
"""

from __future__ import annotations

import asyncio
import collections
import json
import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, AsyncIterator, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._errors import ArgumentError, BusyError, LimitError, error_of
from ._native import Handle, as_list, call, check, encoded, ffi, kv_type, lib, new_error, params, set_fields, text_of
from ._text import Detok, Grammar, Template, Tokenizer

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from ._model import Model

    Prompt = Union[str, Sequence[int]]
    AdapterChoice = Union[str, Sequence[str], Mapping[str, float]]

    class Options(TypedDict, total=False):
        """What every call that generates takes."""

        max_tokens: int
        temperature: float
        top_k: int
        top_p: float
        min_p: float
        repeat_penalty: float
        presence_penalty: float
        frequency_penalty: float
        penalty_last_n: int
        seed: Optional[int]
        logit_bias: Mapping[int, float]
        stop: Union[str, Sequence[str]]
        ignore_end: bool
        adapter: Optional[AdapterChoice]
        grammar: Union[str, Grammar]
        regex: str
        choices: Sequence[str]
        logprobs: int
        prompt_logprobs: bool
        priority: int
        tenant: str
        timeout: float
        cache: bool
        cut_to_fit: bool
        kv: str
        shift: bool
        keep: int
        prediction: Prompt
        draft_max: int
        draft_min: int
        draft_p_min: float

    class ChatOptions(Options, total=False):
        """And what chats take."""

        template: Optional[Template]
        variables: Optional[Mapping[str, Any]]


SAMPLING = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty", "penalty_last_n")
OTHERS = ("max_tokens", "seed", "logit_bias", "stop", "ignore_end", "adapter", "grammar", "regex", "choices", "logprobs", "priority", "tenant")
PLAIN = ("priority", "cut_to_fit", "shift", "draft_max", "draft_min", "draft_p_min")  # as the library has them
OPTIONS = SAMPLING + OTHERS + PLAIN[1:] + ("timeout", "cache", "kv", "keep", "prediction", "prompt_logprobs")
FINISH = ("end", "length", "stop", "cancelled", "failed")
WAIT_MS = 100  # a signal that comes just before a wait is seen this late


@dataclass(frozen=True)
class TokenProb:
    """A token of an answer with its natural log-probability by the model's own distribution, and the likeliest ones in its place."""

    token: int
    logprob: float
    top: Tuple[Tuple[int, float], ...] = ()


@dataclass(frozen=True)
class ToolCall:
    """A function that the model calls."""

    name: str
    arguments: str
    id: str = ""

    def parsed(self) -> Dict[str, Any]:
        """The arguments as a dict."""
        loaded: Dict[str, Any] = json.loads(self.arguments)
        return loaded


@dataclass
class Completion:
    """An answer and what is known of it.

    Attributes:
        text: the answer; of a chat without reasoning and calls.
        tokens: ids of the answer, an end token left out.
        finish: "end" (an end token, or a complete grammar), "length", "stop" (a stop text) or "cancelled".
        n_prompt, n_cached: tokens of the prompt, and those among them that were known from before.
        logprobs: one for each token where ``logprobs`` asked for them.
        reasoning, calls: of a chat, what the model thought, and the tools that it calls.
        seconds: (waiting in the queue, reading the prompt, generating).
        prompt_logprobs: one for each token of the prompt where ``prompt_logprobs`` asked for them; the first is NaN.
        n_drafted, n_accepted: tokens that were guessed ahead, and those of them that were right (``spec``, ``prediction``).
        n_shifts, n_dropped: how often the context was full, and the tokens that were left out since (``shift``).
    """

    text: str = ""
    tokens: List[int] = field(default_factory=list)
    finish: str = ""
    n_prompt: int = 0
    n_cached: int = 0
    logprobs: List[TokenProb] = field(default_factory=list)
    reasoning: str = ""
    calls: List[ToolCall] = field(default_factory=list)
    seconds: Tuple[float, float, float] = (0.0, 0.0, 0.0)
    prompt_logprobs: List[TokenProb] = field(default_factory=list)
    n_drafted: int = 0
    n_accepted: int = 0
    n_shifts: int = 0
    n_dropped: int = 0


class Stops:
    """Stop texts in a text as it grows: the one that is complete first ends it, of several at one place the longest."""

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise ArgumentError("a stop text is empty")
        self._stops, self._held, self.found = list(stops), "", False

    def push(self, text: str) -> str:
        """What became certain."""
        if not self._stops:
            return text
        held = self._held + text
        ends = [(at + len(stop), -len(stop)) for stop in self._stops for at in [held.find(stop)] if at >= 0]
        if ends:
            self.found = True
            end, length = min(ends)
            self._held = ""
            return held[: end + length]
        keep = max((n for stop in self._stops for n in range(1, len(stop)) if held.endswith(stop[:n])), default=0)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def flush(self) -> str:
        """What was held back: the text ends."""
        held, self._held = self._held, ""
        return held


class Heard:
    """The parts of an answer as a parser told them. It knows no parser, so that no circle keeps one."""

    def __init__(self) -> None:
        self.text: List[str] = []
        self.reasoning: List[str] = []
        self.calls: List[ToolCall] = []
        self.error: Optional[BaseException] = None

    def take(self, _arg: Any, part: Any) -> int:
        """A ``weft_chat_on_part``."""
        text = text_of(part.text, part.n_text) if part.n_text else ""
        if part.kind == lib.WEFT_CHAT_CALL:
            self.calls.append(ToolCall(text_of(part.name, part.n_name), text, text_of(part.id, part.n_id) if part.n_id else ""))
        else:
            (self.reasoning if part.kind == lib.WEFT_CHAT_REASONING else self.text).append(text)
        return 0

    def failed(self, _kind: Any, value: BaseException, _traceback: Any) -> None:
        """What was raised there."""
        self.error = value


class ChatParser:
    """Takes the answer to a prompt of a chat apart."""

    def __init__(self, prompt: Handle, tools: Optional[Sequence[Mapping[str, Any]]], constrained: bool) -> None:
        keep: List[Any] = []
        offered = None if tools is None else json.dumps([dict(tool) for tool in tools], ensure_ascii=False)
        p = params("weft_chat_parser_params", {"calls": tools is not None, "tools": offered}, keep)
        box = ffi.new("weft_chat_parser **")
        with prompt as pointer:
            call(lib.weft_chat_parser_new, pointer, p, box)
        self._handle = Handle("the answer", box, lib.weft_chat_parser_free, prompt)
        # What holds the whole answer to a form leaves no room for the end of thinking.
        self.off = constrained and bool(lib.weft_chat_parser_thinks(box[0]))
        self._heard = Heard()
        self._on_part = ffi.callback("int(void *, weft_chat_part *)", self._heard.take, error=1, onerror=self._heard.failed)

    @property
    def reasoning(self) -> str:
        """What the model thought."""
        return "".join(self._heard.reasoning)

    @property
    def calls(self) -> List[ToolCall]:
        """The tools that it calls."""
        return self._heard.calls

    def _said(self, status: int, err: Any) -> str:
        heard = self._heard
        if heard.error is not None:
            raise heard.error
        check(status, err)
        said, heard.text = "".join(heard.text), []
        return said

    def shows(self, token: int) -> bool:
        """Is the token a marker of the format?"""
        with self._handle as parser:
            return not self.off and bool(lib.weft_chat_parser_shows(parser, token))

    def push(self, text: str) -> str:
        """The text of the answer that became certain."""
        if self.off:
            return text
        raw, err = text.encode("utf-8", "replace"), new_error()
        with self._handle as parser:
            return self._said(lib.weft_chat_parser_push(parser, raw, len(raw), self._on_part, ffi.NULL, err), err)

    def finish(self) -> str:
        """What was held back."""
        err = new_error()
        with self._handle as parser:
            return "" if self.off else self._said(lib.weft_chat_parser_finish(parser, self._on_part, ffi.NULL, err), err)


@dataclass
class Request:
    """One request, ready to be submitted. ``embedding``: room for its embedding, made by ``pooling``; then it generates nothing."""

    tokens: Sequence[int]
    options: Mapping[str, Any]
    grammar: Optional[Grammar] = None
    continues: bool = True
    parser: Optional[ChatParser] = None
    embedding: Any = None
    pooling: int = lib.WEFT_POOLING_MODEL
    predicted: Sequence[int] = ()

    def struct(self, keep: List[Any]) -> Any:
        """As the library takes it; ``keep`` lives until it was submitted."""
        options = self.options
        unknown = set(options) - set(OPTIONS)
        if unknown:
            raise TypeError(f"there is no option {min(unknown)!r}; there are schema, {', '.join(OPTIONS)}")
        p = ffi.new("weft_request_params *")
        lib.weft_request_params_init(p, ffi.sizeof("weft_request_params"))
        ids = ffi.new("int32_t[]", list(self.tokens))
        keep.append(ids)
        p.tokens, p.n_tokens = ids, len(self.tokens)
        p.max_tokens = options.get("max_tokens", -1)
        p.ignore_end = int(options.get("ignore_end", False))
        set_fields("weft_request_params", p, {key: options[key] for key in PLAIN if key in options}, keep)
        p.n_keep = options.get("keep", 0)
        if options.get("kv") is not None:
            p.kv_dtype = kv_type(options["kv"])
        if self.predicted:
            keep.append(ffi.new("int32_t[]", list(self.predicted)))
            p.predicted, p.n_predicted = keep[-1], len(self.predicted)
        p.no_cache = int(not options.get("cache", True))
        p.n_top = options.get("logprobs", -1)
        if options.get("prompt_logprobs"):
            p.prompt_logprobs, p.n_top = 1, max(p.n_top, 0)
        if options.get("timeout") is not None:
            p.deadline_ms = max(1, math.ceil(options["timeout"] * 1000))
        if options.get("tenant") is not None:
            keep.append(ffi.new("char[]", encoded(options["tenant"])))
            p.tenant = keep[-1]
        if self.grammar is not None:
            keep.append(self.grammar)
            p.grammar = self.grammar._handle.pointer
        if self.embedding is not None:
            p.embedding, p.max_tokens = self.pooling, 0
        sampler_fields(p.sampler, options, keep)
        add_adapters(p, options.get("adapter"), keep)
        return p


def sampler_fields(sampler: Any, options: Mapping[str, Any], keep: List[Any]) -> None:
    """Sampling options into a ``weft_sampler_params``."""
    set_fields("weft_sampler_params", sampler, {key: options[key] for key in SAMPLING if key in options}, keep)
    if options.get("seed") is not None:
        sampler.seed, sampler.seed_given = options["seed"] % 2**64, 1
    bias = options.get("logit_bias") or {}
    if bias:
        keep.append(ffi.new("weft_logit_bias[]", [(int(token), float(value)) for token, value in bias.items()]))
        sampler.bias, sampler.n_bias = keep[-1], len(bias)


def add_adapters(p: Any, choice: Any, keep: List[Any]) -> None:
    """A name, several, or names with their scales."""
    if not choice:
        return
    scales = dict(choice) if isinstance(choice, Mapping) else {name: math.nan for name in as_list(choice)}
    uses = ffi.new("weft_request_adapter[]", len(scales))
    keep.append(uses)
    for use, (name, scale) in zip(uses, scales.items()):
        keep.append(ffi.new("char[]", encoded(name)))
        use.name, use.scale = keep[-1], float(scale)
    p.adapters, p.n_adapters = uses, len(scales)


def _prob_of(event: Any) -> TokenProb:
    return TokenProb(event.token, event.logprob, tuple((event.top[i].token, event.top[i].logprob) for i in range(event.n_top)))


class Answer:
    """The answer to one request as it grows."""

    def __init__(self, tokenizer: Optional[Tokenizer], request: Request) -> None:
        self.request = request
        self.completion = Completion()
        self.done = self.stopped = False
        self._parts: List[str] = []
        self._stops = Stops(as_list(request.options.get("stop")))
        self._tokenizer = tokenizer
        self._detok = None if tokenizer is None else Detok(tokenizer, False, request.continues or request.grammar is not None)

    def _add(self, text: str) -> str:
        parser = self.request.parser
        said = self._stops.push(text)
        if parser:
            said = parser.push(said)
        self._parts.append(said)
        return said

    def take(self, event: Any) -> str:
        """The text that became certain with an event."""
        if event.kind == lib.WEFT_EVENT_TOKEN and not self.stopped:
            return self._take_token(event)
        if event.kind == lib.WEFT_EVENT_PROMPT_TOKEN:
            self.completion.prompt_logprobs.append(_prob_of(event))
        if event.kind == lib.WEFT_EVENT_FINISHED:
            return self._finish(event)
        return ""

    def _take_token(self, event: Any) -> str:
        token, done = event.token, self.completion
        done.tokens.append(token)
        if self.request.options.get("logprobs", -1) >= 0:
            done.logprobs.append(_prob_of(event))
        if self._detok is None or self._tokenizer is None:
            return ""
        text = self._detok.push(token)
        if self.request.parser and self.request.parser.shows(token):
            text = self._tokenizer.piece(token)
        said = self._add(text) if text else ""
        self.stopped = self._stops.found
        return said

    def _finish(self, event: Any) -> str:
        done, parser, said = self.completion, self.request.parser, ""
        self.done = True
        if event.finish == lib.WEFT_FINISH_FAILED:
            raise error_of(event.status, text_of(event.message))
        if self._detok and not self.stopped:
            said = self._add(self._detok.finish())
            self.stopped = self._stops.found
            if not self.stopped:
                rest = self._stops.flush()
                rest = parser.push(rest) if parser else rest
                self._parts.append(rest)
                said += rest
        if parser:
            rest = parser.finish()
            self._parts.append(rest)
            said += rest
            done.reasoning, done.calls = parser.reasoning, parser.calls
        done.text = "".join(self._parts)
        done.finish = "stop" if self.stopped else FINISH[event.finish]
        done.n_prompt, done.n_cached = event.n_prompt, event.n_cached
        done.n_drafted, done.n_accepted = event.n_drafted, sum(event.accepted)
        done.n_shifts, done.n_dropped = event.n_shifts, event.n_dropped
        done.seconds = (event.queue_ms / 1e3, event.prompt_ms / 1e3, event.generate_ms / 1e3)
        return said


class Running:
    """The requests of one call. Used by one thread at a time; ``close`` from any."""

    def __init__(self, engine: Handle, tokenizer: Optional[Tokenizer], requests: Sequence[Request]) -> None:
        self._engine = engine
        self.answers = [Answer(tokenizer, request) for request in requests]
        box = ffi.new("weft_inbox **")
        with engine as pointer:
            call(lib.weft_inbox_new, pointer, box)
        self._inbox = Handle("the generation", box, lib.weft_inbox_free, engine)
        self._taking = threading.Lock()
        self._waiting: Deque[Answer] = collections.deque(self.answers)
        self._live: Dict[int, Answer] = {}
        self.n_left = len(requests)

    def submit(self) -> None:
        """As many as the engine takes now; the others follow as those end. Raises BusyError where it takes none."""
        try:
            while self._waiting:
                if not self._submit_one(self._waiting[0]):
                    return
                self._waiting.popleft()
        except BaseException:
            self.close()
            raise

    def _submit_one(self, answer: Answer) -> bool:
        keep: List[Any] = []
        err, number, seconds = new_error(), ffi.new("uint64_t *"), ffi.new("double *")
        p = answer.request.struct(keep)
        into = ffi.NULL if answer.request.embedding is None else answer.request.embedding
        with self._engine, self._inbox as inbox:
            status = lib.weft_inbox_submit(inbox, p, into, number, seconds, err)
        if status == lib.WEFT_BUSY and self._live:
            return False
        if status:
            error = error_of(status, text_of(err.message))
            if isinstance(error, BusyError) and seconds[0] > 0:
                error.retry_after = seconds[0]
            raise error
        self._live[number[0]] = answer
        return True

    def _take(self, wait_ms: int) -> Tuple[bool, Optional[Answer], str]:
        """(was there an event, its answer, the text that became certain)"""
        with self._taking, self._inbox as inbox:
            event = lib.weft_inbox_take(inbox, wait_ms)
            if not event:
                return False, None, ""
            number = event.request
            answer = self._live[number]
            was_stopped = answer.stopped
            finished = event.kind == lib.WEFT_EVENT_FINISHED
            if finished:
                del self._live[number]
                self.n_left -= 1
            text = answer.take(event)
        if answer.stopped and not was_stopped and not finished:
            with self._engine as engine:
                lib.weft_engine_cancel(engine, number)
        if finished and self._waiting:
            self.submit()
        return True, answer, text

    def pieces(self) -> Iterator[Tuple[Answer, str]]:
        """Each text that became certain, and the end of each answer."""
        try:
            while self.n_left:
                there, answer, text = self._take(WAIT_MS)
                if there and answer and (text or answer.done):
                    yield answer, text
        finally:
            self.close()

    async def apieces(self) -> AsyncIterator[Tuple[Answer, str]]:
        """The same for an event loop."""
        loop = asyncio.get_running_loop()
        try:
            while self.n_left:
                there, answer, text = self._take(0)
                if not there:
                    await self._readable(loop)
                elif answer and (text or answer.done):
                    yield answer, text
        finally:
            if self.n_left:  # its end is waited for
                await loop.run_in_executor(None, self.close)
            else:
                self.close()

    async def _readable(self, loop: asyncio.AbstractEventLoop) -> None:
        ready: asyncio.Future[None] = loop.create_future()
        with self._inbox as inbox:
            fd = lib.weft_inbox_fd(inbox)

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(fd, wake)
        try:
            await ready
        finally:
            loop.remove_reader(fd)

    def close(self) -> None:
        """Cancels what runs, and returns when that has ended."""
        self._waiting.clear()
        self._inbox.close()


def completed(running: Running) -> List[Completion]:
    """All answers, when they are there."""
    running.submit()
    for _ in running.pieces():
        pass
    return [answer.completion for answer in running.answers]


def streamed(running: Running) -> Iterator[str]:
    """The text of one answer as it comes."""
    for _, text in running.pieces():
        if text:
            yield text


async def asubmitted(running: Running) -> None:
    """Submits without holding up the loop: adapters may have to be read."""
    if any(answer.request.options.get("adapter") for answer in running.answers):
        await asyncio.get_running_loop().run_in_executor(None, running.submit)
    else:
        running.submit()


async def acompleted(running: Running) -> List[Completion]:
    """As ``completed``."""
    await asubmitted(running)
    pieces = running.apieces()
    async for _ in pieces:
        pass
    return [answer.completion for answer in running.answers]


async def astreamed(running: Running) -> AsyncIterator[str]:
    """As ``streamed``."""
    await asubmitted(running)
    pieces = running.apieces()
    try:
        async for _, text in pieces:
            if text:
                yield text
    finally:
        await pieces.aclose()  # type: ignore[attr-defined]


def instance_of(schema: Any, done: Completion) -> Any:
    """A pydantic class's instance of an answer. Raises LimitError for one that was broken off."""
    if done.finish in ("length", "stop"):
        raise LimitError(f"the answer broke off ({done.finish}), so that it is no {schema.__name__}: give it more tokens, and no stop texts")
    return schema.model_validate_json(done.text)


def is_class(schema: Any) -> bool:
    """Is it a class of pydantic's, or one that can do the same?"""
    return isinstance(schema, type) and hasattr(schema, "model_json_schema") and hasattr(schema, "model_validate_json")
