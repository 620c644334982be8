# SPDX-License-Identifier: Apache-2.0
"""Tokenizers, chat templates and chats say what the commands say."""

import json
import os
import subprocess

import pytest

import weft

TALK = [{"role": "user", "content": "Who are you?"}]


def test_tokens_there_and_back(model, paths):
    tokenizer = model.tokenizer
    for text in ("Once upon a time", "  two  spaces", "äöü €", "<|im_end|>", ""):
        ids = tokenizer.encode(text, bos=False, special=False)
        assert tokenizer.decode(ids, continues=True, special=True).endswith(text)
        assert b"".join(map(tokenizer.bytes_of, ids)).decode().endswith(text)
    assert tokenizer.encode("a") == tokenizer.encode("a", bos=False)[:0] + tokenizer.encode("a")
    assert len(tokenizer.encode("<|im_end|>", bos=False)) == 1 < len(tokenizer.encode("<|im_end|>", bos=False, special=False))
    assert tokenizer.is_end(tokenizer.encode("<|im_end|>", bos=False)[0]) and tokenizer.piece(4) == "<|im_end|>"
    with pytest.raises(IndexError, match="2047"):
        tokenizer.piece(2048)
    alone = weft.Tokenizer(paths["model"])
    assert alone.encode("Once upon") == tokenizer.encode("Once upon") and alone.n_vocab == tokenizer.n_vocab == 2048


def test_templates(model):
    template = model.template()
    text = template.render(TALK)
    assert "Who are you?" in text and template.source and template.format
    assert template.encode(TALK) == model.tokenizer.encode(text, bos=not text.startswith("<|startoftext|>"))
    own = model.template("{% for m in messages %}[{{ m.role }}:{{ m.content }}:{{ mood }}]{% endfor %}")
    assert own.render(TALK, mood="calm", add_generation_prompt=False) == "[user:Who are you?:calm]" and own.reads("mood") and not own.reads("tools")
    with pytest.raises(weft.FormatError):
        model.template("{% for %}")
    with pytest.raises(weft.ArgumentError, match=r"messages\[0\]"):
        template.render([{"role": "user", "content": 1}])


def test_chats(model):
    answer = model.chat(TALK, max_tokens=40, temperature=0)
    assert answer and "".join(model.chat(TALK, max_tokens=40, temperature=0, stream=True)) == answer
    done = model.complete_chat(TALK, max_tokens=40, temperature=0)
    assert done.text == answer and done.finish == "end" and not done.calls
    assert model.chat(TALK, choices=["yes", "no"], seed=1) in ("yes", "no")


def test_a_chat_says_what_the_program_says(model, paths):
    program = os.environ.get("WEFT_PROGRAM")
    if not program:
        pytest.skip("WEFT_PROGRAM does not say where the program is")
    words = [program, "chat", paths["model"], "--temp", "0", "--threads", "2"]
    said = subprocess.run(words, input="Who are you?\n", capture_output=True, text=True, check=True)
    assert model.chat(TALK, temperature=0).strip() in said.stdout


def test_tools(model):
    tools = [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "parameters": {"type": "object", "properties": {"place": {"enum": ["here", "there"]}}, "required": ["place"], "additionalProperties": False},
            },
        }
    ]
    done = model.complete_chat(TALK, tools=tools, tool_choice="required", max_tokens=200, seed=3)
    assert done.finish == "end" and done.calls and {call.name for call in done.calls} == {"weather"}
    assert done.calls[0].parsed()["place"] in ("here", "there") and json.loads(done.calls[0].arguments)
    assert not model.complete_chat(TALK, tools=tools, tool_choice="none", max_tokens=20, temperature=0).calls
