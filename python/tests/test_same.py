# SPDX-License-Identifier: Apache-2.0
"""Answers are those of `weft run`, bit for bit: greedy, sampled, held to forms, cut by stop texts, with adapters; alone, streamed and in batches."""

import answers
import pytest


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
