# SPDX-License-Identifier: Apache-2.0
"""Options of a request beyond sampling, and of a model's engine: types of keys and values, guesses, contexts that go on, the prompt's
log-probabilities."""

import math

import pytest

import weft

PROMPT = "Once upon a time there was a cat, and the cat"


def test_requests_choose_the_type_of_their_keys_and_values(model, paths):
    assert model.kv_types == ["f16"]
    with pytest.raises(weft.ArgumentError, match="q8"):
        model.generate(PROMPT, max_tokens=2, kv="q8")
    with weft.Model(paths["model"], threads=2, slots=2, kv_types=["q8", "k=q8,v=q4"]) as several:
        assert several.kv_types == ["f16", "q8", "k=q8,v=q4"]
        said = {kv: several.complete(PROMPT, max_tokens=12, temperature=0, logprobs=0, kv=kv) for kv in several.kv_types}
    plain = model.complete(PROMPT, max_tokens=12, temperature=0, logprobs=0)
    assert said["f16"].logprobs == plain.logprobs
    with weft.Model(paths["model"], threads=2, slots=2, kv="q8") as alone:
        assert alone.complete(PROMPT, max_tokens=12, temperature=0, logprobs=0).logprobs == said["q8"].logprobs != plain.logprobs
    with pytest.raises(TypeError, match="list of names"):
        weft.Model(paths["model"], kv_types="q8")
    with pytest.raises(weft.ArgumentError):
        model.generate(PROMPT, kv="q9")


def test_guesses_change_no_answer(model, paths):
    """The likeliest answer is its own best prediction."""
    with weft.Model(paths["model"], threads=2, slots=2, spec="off") as plain:
        said = plain.complete(PROMPT, max_tokens=40, temperature=0, logprobs=0)
        assert said.n_drafted == 0 == plain.complete(PROMPT, max_tokens=4, temperature=0, prediction=said.text).n_drafted
    before = model.stats.drafts["prediction"]
    for told in (said.text, said.tokens):
        guessed = model.complete(PROMPT, max_tokens=40, temperature=0, logprobs=0, prediction=told)
        assert (guessed.tokens, guessed.logprobs) == (said.tokens, said.logprobs)
    after = model.stats.drafts["prediction"]
    assert guessed.n_drafted >= guessed.n_accepted > 0
    assert after.n_tokens - before.n_tokens >= guessed.n_accepted and after.n_accepted > before.n_accepted
    assert set(model.stats.drafts) == {"suffix", "prediction", "forced", "model"}
    none = model.complete(PROMPT, max_tokens=40, temperature=0, logprobs=0, prediction=said.text, draft_max=0)
    assert none.n_drafted == 0 and none.tokens == said.tokens


def test_a_draft_model_guesses(model, paths):
    with weft.Model(paths["model"], threads=2, slots=2, spec="draft", draft=model) as helped:
        done = helped.complete(PROMPT, max_tokens=24, temperature=0)
        assert done.tokens == model.complete(PROMPT, max_tokens=24, temperature=0).tokens
        assert helped.stats.drafts["suffix"].n_drafts == 0
    assert model.generate(PROMPT, max_tokens=2, temperature=0)  # it is not closed with the one that it helped
    with weft.Model(paths["model"], threads=1, slots=1, draft=paths["model"]) as helped:
        assert helped.complete(PROMPT, max_tokens=8, temperature=0).tokens == done.tokens[:8]
    with pytest.raises(weft.NotFoundError):
        weft.Model(paths["model"], draft="absent.gguf")


def test_log_probabilities_of_a_prompt(model):
    ids = model.tokenizer.encode(PROMPT)
    done = model.complete(PROMPT, max_tokens=2, temperature=0, prompt_logprobs=True)
    assert [one.token for one in done.prompt_logprobs] == ids and math.isnan(done.prompt_logprobs[0].logprob)
    assert done.logprobs == [] and done.n_cached == 0
    total = -sum(one.logprob for one in done.prompt_logprobs[1:])
    assert total / (len(ids) - 1) == pytest.approx(model.perplexity([ids]).nll.value, abs=1e-5)
    assert len(model.complete(PROMPT, max_tokens=0, prompt_logprobs=True, logprobs=3).prompt_logprobs[1].top) == 3


def test_a_context_that_is_full_goes_on(paths):
    with weft.Model(paths["model"], threads=2, slots=1, context=64) as short:
        ended = short.complete(PROMPT, temperature=0, ignore_end=True)
        done = short.complete(PROMPT, max_tokens=100, temperature=0, ignore_end=True, shift=True, keep=8)
        cut = short.complete(PROMPT, max_tokens=100, temperature=0, ignore_end=True, cut_to_fit=True)
        with pytest.raises(weft.LimitError, match="exceed the context"):
            short.complete(PROMPT, max_tokens=100)
    assert (ended.finish, ended.n_shifts) == ("length", 0) and len(ended.tokens) < 64
    assert len(done.tokens) == 100 and done.n_shifts >= 2 and done.n_dropped > 0
    assert done.tokens[: len(ended.tokens)] == ended.tokens == cut.tokens


def test_what_an_engine_is_told(paths, tmp_path):
    trace = tmp_path / "trace.json"
    with weft.Model(paths["model"], threads=1, slots=1, chunk=16, step_rows=64, swap="off", trace=trace, isolate_tenants=True) as told:
        assert told.generate(PROMPT, max_tokens=2, temperature=0)
    assert trace.exists()
    for wrong, says in (({"spec": "fast"}, "spec is one of off, auto"), ({"swap": "never"}, "swap is one of")):
        with pytest.raises(ValueError, match=says):
            weft.Model(paths["model"], **wrong)
    with pytest.raises(TypeError, match="there is no option 'stepp'"):
        weft.Model(paths["model"], stepp=1)
