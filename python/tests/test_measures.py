# SPDX-License-Identifier: Apache-2.0
"""Measures are those of the library: perplexity of text, ids and documents, divergence of adapters and from files, scores of tasks."""

import json
import math

import pytest

import weft

STORY = "The miller lives by the river. He has a cat and a dog. The baker is at the inn, and the smith is in the mill. "
TEXT = STORY * 4


def test_perplexity_of_a_text(model):
    ids = model.tokenizer.encode(TEXT)
    told = []
    found = model.perplexity(TEXT, context=32, progress=told.append)
    assert found.context == 32 and found.n_chunks == len(ids) // 32 == len(told) and told[-1] == 1
    assert found.n_tokens == found.n_chunks * 15 and found.perplexity.value == pytest.approx(math.exp(found.nll.value))
    assert found.perplexity.error > 0 and model.perplexity(ids, context=32) == found
    assert model.perplexity(TEXT, context=32, chunks=2).n_chunks == 2
    assert model.perplexity(TEXT, context=32, kv="q8").nll.value == pytest.approx(found.nll.value, abs=0.05)
    with pytest.raises(weft.ArgumentError, match="two chunks of 512"):
        model.perplexity(TEXT)
    with pytest.raises(weft.CancelledError):
        model.perplexity(TEXT, context=32, progress=lambda fraction: True)
    with pytest.raises(ZeroDivisionError):
        model.perplexity(TEXT, context=32, progress=lambda fraction: 1 / 0)


def test_perplexity_of_documents_is_that_of_their_logits(model):
    np = pytest.importorskip("numpy")
    texts = ["The cat is in the mill.", "Once upon a time", [3, 4, 5]]
    total, n = 0.0, 0
    for text in texts:
        ids = model.tokenizer.encode(text) if isinstance(text, str) else text
        rows = model.logits(ids).astype(np.float64)
        probs = rows - np.log(np.exp(rows - rows.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) - rows.max(axis=1, keepdims=True)
        total -= sum(probs[i, ids[i + 1]] for i in range(len(ids) - 1))
        n += len(ids) - 1
    found = model.perplexity(texts)
    assert (found.n_tokens, found.n_chunks, found.n_cut) == (n, 3, 0) and found.nll.value == pytest.approx(total / n, abs=1e-5)
    with pytest.raises(weft.ArgumentError, match="text 2: token -1"):
        model.perplexity(["a cat", [1, -1]])


def test_what_an_adapter_makes_it_forget(model, paths, tmp_path):
    pirate = weft.Adapter(paths["pirate"], base=paths["model"])
    base = tmp_path / "base"
    plain = model.perplexity(TEXT, context=32, save_base=base)
    found = model.kl(TEXT, adapter={pirate: 1.0}, context=32)
    assert found.kl.value > 0.01 and 0 < found.same_top.value < 1 and found.base_perplexity == plain.perplexity
    assert found.kl_at[0.5] < found.kl.value < found.kl_at[1.0] and list(found.kl_at) == sorted(found.kl_at)
    assert model.perplexity(TEXT, adapter={pirate: 1.0}, context=32).perplexity == found.perplexity
    assert model.kl(base=base, adapter={pirate: 1.0}).kl.value == pytest.approx(found.kl.value, abs=1e-3)
    assert model.kl(["The cat"], base=model).kl.value == pytest.approx(0, abs=1e-9)
    assert model.kl(TEXT, adapter={pirate: 0.1}, context=32).kl.value < found.kl.value
    with pytest.raises(ValueError, match="give one of them"):
        model.kl(TEXT)


QUESTIONS = [{"prompt": f"Where does {name} live? In", "choices": [" the mill", " the inn", " a tree"], "answer": i % 3}
             for i, name in enumerate("Anna Bella Carl Dora Emil".split())]  # fmt: skip


def test_tasks(model, tmp_path):
    path, samples = tmp_path / "places.jsonl", tmp_path / "samples"
    path.write_text("".join(json.dumps(q) + "\n" for q in QUESTIONS))
    told = []
    found = model.eval_task(path, samples=samples, progress=lambda what, fraction: told.append(fraction))
    assert (found.output, found.n_documents, found.n_resumed) == ("choice", 5, 0) and told[-1] == 1
    acc = found["acc"]
    assert acc.is_rate and acc.low <= acc.value <= acc.high and acc.baseline is None and acc == found["acc", acc.filter]
    assert "acc" in found.table and found.svg.startswith("<svg")
    with pytest.raises(KeyError):
        found["bleu"]
    other = model.eval_task(path, adapter={"pirate": 1.0}, baseline=samples)
    paired = other["acc"].baseline
    assert paired.is_exact and paired.value == acc.value and paired.difference == pytest.approx(other["acc"].value - acc.value)
    assert model.eval_task(path, samples=samples).n_resumed == 5
    with pytest.raises(weft.ExistsError):
        model.eval_task(path, samples=samples, adapter="pirate")
    assert model.eval_task(path, limit=2).n_documents == 2
    with pytest.raises(weft.CancelledError):
        model.eval_task(path, progress=lambda what, fraction: True)


def test_tasks_that_are_answered(model, tmp_path):
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Say {word}.", "answer": word}) + "\n" for word in ("cat", "dog")))
    found = model.eval_task(path, chat=True, system="Be brief.", max_tokens=4, temperature=0)
    assert found.output == "generate" and found["exact_match"].is_rate and found.n_tokens <= 8
    with pytest.raises(weft.FormatError):
        model.eval_task(path, form="winogrande")
    with pytest.raises(weft.NotFoundError):
        model.eval_task(tmp_path / "absent.jsonl")
    task = tmp_path / "task.yaml"
    task.write_text("task: t\ndataset_path: json\ntest_split: test\ndoc_to_text: '{{prompt}}'\ndoc_to_target: answer\n")
    assert model.eval_task(task, data={"test": path}, max_tokens=2).task == "t"
