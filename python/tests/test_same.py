# SPDX-License-Identifier: Apache-2.0
"""Answers are those of `weft run`, bit for bit: greedy, sampled, held to forms, cut by stop texts, with adapters; alone, streamed and in batches."""

import os

import answers
import pytest

import weft


@pytest.mark.parametrize("case", answers.CASES)
def test_answers_are_those_of_the_program(model, case):
    for prompt in answers.PROMPTS:
        expected = answers.answer(case, prompt)
        if expected is None:
            pytest.skip("neither WEFT_PROGRAM nor WEFT_ANSWERS says what the program answers")
        done = model.complete(prompt, max_tokens=answers.N, **answers.CASES[case][1])
        assert done.text == expected["text"]
        # An end token is no token of the answer here; what a stop text cuts off may differ by those that were already on their way.
        tokens = [token for token in expected["tokens"] if not model.tokenizer.is_end(token)]
        assert done.tokens[: len(tokens)] == tokens
        assert {"end": "stop"}.get(done.finish, done.finish) == expected["finish"]


def test_answers_of_a_vocabulary_that_writes_blanks_in_front(paths):
    """SentencePiece: a text goes on with a blank, and a chat's answer begins without."""
    program = os.environ.get("WEFT_PROGRAM")
    folders = [os.environ.get("WEFT_SHARED"), os.path.join(paths["root"], "..", "shared"), os.path.join(paths["root"], "build", "material")]
    found = [path for path in (os.path.join(folder, "models", "stories260K.gguf") for folder in folders if folder) if os.path.exists(path)]
    if not program or not found:
        pytest.skip("no program, or no model stories260K of the material")
    with weft.Model(found[0], threads=2) as model:
        for prompt in ("Once upon a time", "Lily", "", "One day,"):
            for case in ("greedy", "sampled", "stops"):
                expected = answers.of_program(program, case, prompt, found[0])
                done = model.complete(prompt, max_tokens=answers.N, **answers.CASES[case][1])
                assert done.text == expected["text"]
        assert model.generate("Once", max_tokens=2, temperature=0).startswith(" ")
        blank = next(token for token in range(3, model.tokenizer.n_vocab) if model.tokenizer.bytes_of(token) == b" a")
        done = model.complete_chat([{"role": "user", "content": "Tell"}], max_tokens=1, temperature=0, logit_bias={blank: 1000.0})
        assert done.tokens == [blank] and done.text == "a"


@pytest.mark.parametrize("case", answers.CASES)
def test_streams_say_the_same(model, case):
    for prompt in answers.PROMPTS:
        options = answers.CASES[case][1]
        assert "".join(model.generate(prompt, max_tokens=answers.N, stream=True, **options)) == model.generate(prompt, max_tokens=answers.N, **options)


def test_a_batch_says_what_each_prompt_says_alone(model):
    prompts = [prompt for prompt in answers.PROMPTS for _ in range(4)]
    adapters = [None, "pirate", {"poem": 0.5}, ["letter", "pirate"]] * len(answers.PROMPTS)
    together = model.generate_batch(prompts, adapters=adapters, max_tokens=12, temperature=0)
    assert together == [model.generate(prompt, adapter=adapter, max_tokens=12, temperature=0) for prompt, adapter in zip(prompts, adapters)]
    assert len(set(together)) > len(answers.PROMPTS)
