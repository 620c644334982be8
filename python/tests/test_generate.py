# SPDX-License-Identifier: Apache-2.0
"""What a generation takes and gives: pieces, completions, stop texts, forms, errors by their status."""

import json

import pytest

import weft
from weft._requests import Stops


def test_pieces_come_one_by_one(model):
    stream = model.generate("Once upon a time", max_tokens=8, temperature=0, stream=True)
    first = next(stream)
    assert first and len(list(stream)) >= 4


def test_a_stream_that_is_left_cancels_its_request(model):
    before = model.stats.n_cancelled
    stream = model.generate("Once", max_tokens=400, ignore_end=True, stream=True)
    next(stream)
    stream.close()
    while model.stats.n_running:
        pass
    assert model.stats.n_cancelled == before + 1


def test_a_completion_tells_all(model):
    done = model.complete("Once upon a time", max_tokens=6, temperature=0, logprobs=3)
    assert done.finish == "length" and done.n_prompt == len(model.tokenizer.encode("Once upon a time"))
    assert len(done.tokens) == 6 == len(done.logprobs)
    for token, probs in zip(done.tokens, done.logprobs):
        assert probs.token == token == probs.top[0][0] and probs.logprob == probs.top[0][1] <= 0 and len(probs.top) == 3
    assert model.tokenizer.decode(done.tokens, continues=True) == done.text
    again = model.complete(model.tokenizer.encode("Once upon a time"), max_tokens=6, temperature=0)
    assert again.text == done.text and again.n_cached > 0


def test_stop_texts_end_as_the_library_ends_them():
    def told(stops, pieces):
        s, said = Stops(stops), ""
        for piece in pieces:
            said += s.push(piece)
            if s.found:
                return said, True
        return said + s.flush(), False

    text = "abcabdabca"
    for size in range(1, len(text)):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert told(["abd"], pieces) == ("abc", True)
        assert told(["abda", "bd"], pieces) == ("abca", True)
        assert told(["xbd", "cab", "ab"], pieces) == ("", True)
        assert told(["bca", "abca"], pieces) == ("", True)  # at one place the longest
        assert told(["caz"], pieces) == (text, False)
    assert told([], ["ab", "c"]) == ("abc", False)


def test_forms(model):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    said = json.loads(model.generate("A person:", schema=schema, max_tokens=100, seed=1))
    assert set(said) == {"name", "age"} and 0 <= said["age"] <= 99
    assert model.generate("?", grammar='root ::= "a" [0-9]', seed=1)[0] == "a"
    form = model.grammar(["red", "green"], "choices")
    assert {model.generate("?", grammar=form, seed=n) for n in range(8)} <= {"red", "green"}
    with pytest.raises(ValueError, match="one form"):
        model.generate("?", regex="a", schema=schema)
    with pytest.raises(weft.ArgumentError):
        model.generate("?", grammar="root ::= nothing")


class Person:
    """As a pydantic class has it."""

    def __init__(self, data):
        self.data = data

    @classmethod
    def model_json_schema(cls):
        return {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["n"], "additionalProperties": False}

    @classmethod
    def model_validate_json(cls, text):
        return cls(json.loads(text))


def test_a_class_is_given_back_as_an_instance(model):
    person = model.generate("?", schema=Person, max_tokens=60, seed=2)
    assert isinstance(person, Person) and 1 <= person.data["n"] <= 9
    with pytest.raises(weft.LimitError, match="broke off"):
        model.generate("?", schema=Person, max_tokens=2)
    with pytest.raises(TypeError, match="whole answers"):
        model.generate("?", schema=Person, stream=True)


def test_a_pydantic_class(model):
    pydantic = pytest.importorskip("pydantic")

    class Pet(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=6)
        legs: int = pydantic.Field(ge=0, le=8)
        tags: list = pydantic.Field(default=[], max_length=0)

    class House(pydantic.BaseModel):
        pet: Pet
        rooms: int = pydantic.Field(ge=1, le=3)

    house = model.generate("A house:", schema=House, max_tokens=200, seed=4)
    assert isinstance(house, House) and isinstance(house.pet, Pet) and 1 <= house.rooms <= 3


def test_what_is_wrong_is_said_by_name(model, paths):
    with pytest.raises(TypeError, match="temprature"):
        model.generate("?", temprature=1)
    with pytest.raises(weft.ArgumentError, match="temperature") as caught:
        model.generate("?", temperature=-1)
    assert isinstance(caught.value, ValueError) and caught.value.status == 5
    with pytest.raises(weft.LimitError, match="context"):
        model.generate([1] * 600)
    with pytest.raises(weft.NotFoundError, match="nobody"):
        model.generate("?", adapter="nobody")
    with pytest.raises(weft.NotFoundError, match="absent"):
        weft.Model("absent.gguf")
    with pytest.raises(weft.FormatError):
        weft.Model(__file__)
    with pytest.raises(weft.TimedOutError):
        model.generate("?", max_tokens=400, ignore_end=True, timeout=0.001)
    with pytest.raises(TypeError):
        model.generate_batch("one text")
    with pytest.raises(ValueError):
        model.generate_batch(["a", "b"], adapters=["pirate"])
    with pytest.raises(weft.ArgumentError, match="stop text"):
        model.generate("?", stop="")
    assert model.generate_batch([]) == []


def test_more_than_the_queue_holds_follow(paths):
    with weft.Model(paths["model"], threads=1, slots=1, queue=2) as small:
        prompts = [[3 + n, 4, 5] for n in range(12)]
        together = small.generate_batch(prompts, max_tokens=2, temperature=0)
        assert together == [small.generate(prompt, max_tokens=2, temperature=0) for prompt in prompts]


def test_loading_tells_and_stops(paths):
    seen = []
    weft.Model(paths["model"], progress=lambda what, fraction: seen.append((what, fraction))).close()
    assert seen and all(0 <= fraction <= 1 for _, fraction in seen)
    with pytest.raises(weft.CancelledError):
        weft.Model(paths["model"], progress=lambda *_: True)
    with pytest.raises(ZeroDivisionError):
        weft.Model(paths["model"], progress=lambda *_: 1 // 0)


def test_a_closed_model_says_so(paths):
    model = weft.Model(paths["model"], threads=1)
    stream = model.generate("Once", stream=True, max_tokens=300, ignore_end=True)
    next(stream)
    session, tokenizer = model.session(), model.tokenizer
    model.close()
    model.close()
    uses = [lambda: model.generate("?"), lambda: next(stream), lambda: session.n_tokens, lambda: tokenizer.encode("a"), lambda: model.info]
    for use in (*uses, lambda: model.stats, lambda: model.chat([])):
        with pytest.raises(weft.StateError, match="closed"):
            use()
    assert "closed" in repr(model)
