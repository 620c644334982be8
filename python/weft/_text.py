# SPDX-License-Identifier: Apache-2.0
"""Tokenizers, chat templates and grammars."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Union

from ._native import Handle, Path, call, encoded, ffi, grown, lib, text_of

Message = Mapping[str, Any]
Tool = Mapping[str, Any]


class Tokenizer:
    """From text to token ids and back. ``model.tokenizer`` is a model's; ``Tokenizer(path)`` reads a file, which may hold a vocabulary only.

    Threads may share it. Raises: NotFoundError, InputOutputError, FormatError, UnsupportedError (a file without tokenizer).
    """

    def __init__(self, path: Path) -> None:
        file = ffi.new("weft_file **")
        call(lib.weft_file_open, encoded(path), file)
        try:
            box = ffi.new("weft_tokenizer **")
            call(lib.weft_tokenizer_open, file[0], box)
        finally:
            lib.weft_file_close(file)
        self._handle = Handle("the tokenizer", box, lib.weft_tokenizer_close)
        self._pointer = box[0]

    @classmethod
    def _of_model(cls, handle: Handle, pointer: Any) -> Tokenizer:
        self = cls.__new__(cls)
        self._handle, self._pointer = handle, pointer
        return self

    @property
    def n_vocab(self) -> int:
        """How many ids there are: 0 to n_vocab - 1."""
        with self._handle:
            return int(lib.weft_tokenizer_n_vocab(self._pointer))

    def encode(self, text: str, *, bos: bool = True, special: bool = True) -> List[int]:
        """Token ids of a text.

        Args:
            bos: with the special tokens that the model wants around a text.
            special: special tokens that are spelled in the text become those tokens; False: they stay text.
        """
        raw = text.encode("utf-8", "surrogateescape")
        flags = (lib.WEFT_TOKENIZE_BOS if bos else 0) | (lib.WEFT_TOKENIZE_SPECIAL if special else 0)
        with self._handle:
            return grown(lambda ids, n, out, err: int(lib.weft_tokenize(self._pointer, raw, len(raw), flags, ids, n, out, err)), len(raw) + 16)

    def decode(self, tokens: Iterable[int], *, special: bool = False, continues: bool = False) -> str:
        """The text of token ids.

        Args:
            special: special tokens as they are spelled; False: they give nothing.
            continues: the ids go on with a text: the first one keeps its leading space.
        """
        with self._handle:
            detok = Detok(self, special, continues)
            return "".join([detok.push(token) for token in tokens]) + detok.finish()

    def piece(self, token: int) -> str:
        """The token as the vocabulary spells it. Raises IndexError for an id out of range."""
        return self._look_up(lib.weft_token_piece, token).decode("utf-8", "replace")

    def bytes_of(self, token: int) -> bytes:
        """The bytes that the token stands for, which may be a part of a character. Raises IndexError as above."""
        return self._look_up(lib.weft_token_bytes, token)

    def _look_up(self, function: Any, token: int) -> bytes:
        length = ffi.new("size_t *")
        with self._handle:
            found = function(self._pointer, token, length)
            if not found:
                raise IndexError(f"token {token}: there are ids 0 to {lib.weft_tokenizer_n_vocab(self._pointer) - 1}")
            return bytes(ffi.buffer(found, length[0])[:])

    def is_end(self, token: int) -> bool:
        """Does the token end a text, a turn or a message?"""
        with self._handle:
            return bool(lib.weft_token_is_end(self._pointer, token))


class Detok:
    """Ids to text as they come; one thread."""

    def __init__(self, tokenizer: Tokenizer, special: bool, continues: bool) -> None:
        flags = (lib.WEFT_DETOK_SPECIAL if special else 0) | (lib.WEFT_DETOK_CONTINUE if continues else 0)
        box = ffi.new("weft_detok **")
        call(lib.weft_detok_new, tokenizer._pointer, flags, box)
        self._handle = Handle("the text", box, lib.weft_detok_free, tokenizer._handle)
        self._text = ffi.new("char **")
        self._length = ffi.new("size_t *")

    def push(self, token: int) -> str:
        """The text that became complete."""
        with self._handle as detok:
            call(lib.weft_detok_push, detok, token, self._text, self._length)
            return text_of(self._text[0], self._length[0])

    def finish(self) -> str:
        """What is left."""
        with self._handle as detok:
            call(lib.weft_detok_finish, detok, self._text, self._length)
            return text_of(self._text[0], self._length[0])


def dumped(value: Any) -> Any:
    """JSON for the library; NULL for None."""
    return ffi.NULL if value is None else json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Template:
    """A chat template: a conversation to the text that the model was trained on. ``model.template(source)`` makes one.

    Raises: FormatError for a template that is no Jinja.
    """

    def __init__(self, model: Handle, source: Optional[str]) -> None:
        box = ffi.new("weft_chat **")
        raw = None if source is None else source.encode("utf-8")
        with model as pointer:
            call(lib.weft_chat_open, pointer, raw if raw is not None else ffi.NULL, len(raw or b""), box)
        self._handle = Handle("the chat template", box, lib.weft_chat_close, model)

    @property
    def source(self) -> str:
        """The template's text."""
        length = ffi.new("size_t *")
        with self._handle as chat:
            return text_of(lib.weft_chat_source(chat, length), length[0])

    @property
    def format(self) -> str:
        """The format in which its models answer: "hermes", "harmony", "generic", "none" and others."""
        with self._handle as chat:
            return text_of(lib.weft_chat_format(chat))

    @property
    def reasons(self) -> bool:
        """Do its models think before they answer?"""
        with self._handle as chat:
            return bool(lib.weft_chat_reasons(chat))

    def reads(self, variable: str) -> bool:
        """Does the template read this variable?"""
        with self._handle as chat:
            return bool(lib.weft_chat_reads(chat, encoded(variable)))

    def _prompt(
        self, messages: Sequence[Message], tools: Optional[Sequence[Tool]], variables: Mapping[str, Any], add_generation_prompt: bool, go_on: bool
    ) -> Handle:
        box = ffi.new("weft_chat_prompt **")
        begin = lib.WEFT_CHAT_CONTINUE if go_on else int(add_generation_prompt)
        listed = None if tools is None else [dict(tool) for tool in tools]
        with self._handle as chat:
            call(
                lib.weft_chat_render,
                chat,
                dumped([dict(message) for message in messages]),
                dumped(listed),
                dumped(dict(variables)) if variables else ffi.NULL,
                begin,
                box,
            )
        return Handle("the prompt", box, lib.weft_chat_prompt_free, self._handle)

    def render(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Tool]] = None,
        add_generation_prompt: bool = True,
        go_on: bool = False,
        **variables: Any,
    ) -> str:
        """The text of a conversation.

        Args:
            messages: ``[{"role": "user", "content": "..."}, ...]``, as OpenAI has them.
            tools: functions as OpenAI describes them.
            add_generation_prompt: the assistant begins.
            go_on: the last message, the assistant's, is left open, and its answer goes on from there.
            variables: of the template (``enable_thinking=False``).

        Raises: ArgumentError when the template refuses the conversation, or a message is none, by its place.
        """
        length = ffi.new("size_t *")
        with self._prompt(messages, tools, variables, add_generation_prompt, go_on) as prompt:
            return text_of(lib.weft_chat_prompt_text(prompt, length), length[0])

    def encode(
        self,
        messages: Sequence[Message],
        *,
        tools: Optional[Sequence[Tool]] = None,
        add_generation_prompt: bool = True,
        go_on: bool = False,
        **variables: Any,
    ) -> List[int]:
        """The same as token ids: special tokens are recognized in what the template wrote, never in what messages say."""
        with self._prompt(messages, tools, variables, add_generation_prompt, go_on) as prompt:
            return prompt_ids(prompt)


def prompt_ids(prompt: Any) -> List[int]:
    """Of a rendered prompt."""
    length = ffi.new("size_t *")
    lib.weft_chat_prompt_text(prompt, length)
    return grown(lambda ids, n, out, err: int(lib.weft_chat_prompt_tokenize(prompt, 0, ids, n, out, err)), length[0] + 16)


KINDS: Dict[str, str] = {
    "gbnf": "WEFT_GRAMMAR_GBNF",
    "json": "WEFT_GRAMMAR_JSON",
    "json_value": "WEFT_GRAMMAR_JSON_VALUE",
    "regex": "WEFT_GRAMMAR_REGEX",
    "choices": "WEFT_GRAMMAR_CHOICES",
    "lark": "WEFT_GRAMMAR_LARK",
}


class Grammar:
    """What a model may write, compiled for a tokenizer; requests and threads may share it. ``model.grammar(...)`` makes one.

    Args:
        kind: "gbnf", "lark", "regex", "choices", "json" (any object), "json_value" or "schema".
        source: the grammar; of "choices" a list of texts, of "schema" a dict.

    Raises: ArgumentError (malformed, by place), UnsupportedError (what cannot be held to), LimitError (too large).
    """

    def __init__(self, tokenizer: Tokenizer, kind: str, source: Union[str, Sequence[str], Mapping[str, Any]] = "") -> None:
        if kind not in KINDS and kind != "schema":
            raise ValueError(f"a grammar is one of schema, {', '.join(KINDS)}; not {kind!r}")
        text = source if isinstance(source, str) else json.dumps(source, ensure_ascii=False)
        raw = text.encode("utf-8")
        box = ffi.new("weft_grammar **")
        with tokenizer._handle:
            if kind == "schema":
                call(lib.weft_grammar_from_schema, tokenizer._pointer, raw, len(raw), box)
            else:
                call(lib.weft_grammar_new, tokenizer._pointer, getattr(lib, KINDS[kind]), raw, len(raw), box)
        self._handle = Handle("the grammar", box, lib.weft_grammar_free)

    @classmethod
    def _of_tools(cls, prompt: Any, tools: Sequence[Tool], choice: Optional[str], parallel: bool) -> Optional[Grammar]:
        box = ffi.new("weft_grammar **")
        name = ffi.NULL if choice is None else encoded(choice)
        call(lib.weft_chat_grammar, prompt, dumped([dict(tool) for tool in tools]), name, int(parallel), box)
        if not box[0]:
            return None
        self = cls.__new__(cls)
        self._handle = Handle("the grammar", box, lib.weft_grammar_free)
        return self

    @property
    def n_bytes(self) -> int:
        """Bytes that it holds now."""
        with self._handle as grammar:
            return int(lib.weft_grammar_bytes(grammar))


__all__ = ["Detok", "Grammar", "Message", "Template", "Tokenizer", "Tool", "prompt_ids"]
