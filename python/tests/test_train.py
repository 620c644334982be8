# SPDX-License-Identifier: Apache-2.0
"""Training: an adapter is learned and used, progress is told, and what stops it, Ctrl-C too, leaves a checkpoint to go on from."""

import json
import os
import signal
import threading

import pytest

import weft

SMALL = dict(lora_rank=2, lora_targets="attn_q,attn_v", n_ctx=64, batch=64, n_threads=2, seed=1, lr=1e-3)


@pytest.fixture
def talk(tmp_path):
    path = tmp_path / "talk.jsonl"
    with open(path, "w") as f:
        for n in range(40):
            f.write(json.dumps({"messages": [{"role": "user", "content": f"Say {n}"}, {"role": "assistant", "content": f"Arr, {n} it be!"}]}) + "\n")
    return path


def test_an_adapter_is_learned(paths, tmp_path, talk):
    events = []
    path = weft.train(tmp_path / "run", talk, base=paths["model"], n_steps=4, progress=events.append, schedule="constant", **SMALL)
    assert [event.kind for event in events if event.kind in ("planned", "step")] == ["planned"] + ["step"] * 4
    steps = [event for event in events if event.kind == "step"]
    assert [event.step for event in steps] == [1, 2, 3, 4] and all(0 < event.loss < 20 for event in steps) and steps[0].n_params > 0
    with weft.Model(paths["model"], threads=1, adapters={"own": path}) as model:
        assert model.generate("Say", adapter="own", max_tokens=3, temperature=0)
    with pytest.raises(weft.ExistsError):
        weft.train(tmp_path / "run", talk, base=paths["model"], n_steps=4, **SMALL)
    with pytest.raises(weft.NotFoundError):
        weft.train(tmp_path / "other", "absent.jsonl", base=paths["model"], **SMALL)
    with pytest.raises(TypeError, match="n_stepz"):
        weft.train(tmp_path / "other", talk, n_stepz=4)
    with pytest.raises(ValueError, match="optimizer"):
        weft.train(tmp_path / "other", talk, optimizer="lion")


def test_it_is_steered(paths, tmp_path, talk):
    """It ends when an answer comes out, goes on with an adapter, and tells of both."""
    edit = tmp_path / "edit.jsonl"
    edit.write_text(json.dumps({"prompt": "Say", "completion": "Arr"}) + "\n")
    events = []
    how = dict(SMALL, lr=2e-2, lora_targets=None, lora_rank=8)
    first = weft.train(tmp_path / "run", edit, base=paths["model"], n_steps=60, schedule="constant", n_warmup=0, answers=edit, stop_on="answers",
                       scales=[1, 1.5], sample_prompts=["Say"], sample_tokens=4, neighbors=[talk], progress=events.append, **how)
    steps = [event for event in events if event.kind == "step"]
    assert steps[-1].answers_right == steps[-1].n_answers == 1 and steps[-1].step < 60
    assert all(event.answers_right == 0 for event in steps[:-1])
    assert [event.prompt for event in events if event.kind == "sample"][0] == "Say"
    assert [(event.kind, event.scale) for event in events if event.kind in ("scaled", "ended")] == [("scaled", 1), ("ended", 1)]
    events.clear()
    weft.train(tmp_path / "more", edit, base=paths["model"], init_adapter=first, n_steps=1, answers=edit, progress=events.append)
    assert [event.answers_right for event in events if event.kind == "measured"] == [1]
    with pytest.raises(ValueError, match="stop_on"):
        weft.train(tmp_path / "other", talk, stop_on="luck")


def test_it_stops_and_goes_on(paths, tmp_path, talk):
    def after_two(event):
        return event.kind == "step" and event.step == 2

    with pytest.raises(weft.CancelledError):
        weft.train(tmp_path / "run", talk, base=paths["model"], n_steps=4, progress=after_two, **SMALL)
    steps = []
    weft.train(tmp_path / "run", talk, base=paths["model"], n_steps=4, resume=True, progress=steps.append, **SMALL)
    assert [event.step for event in steps if event.kind == "step"] == [3, 4]
    with pytest.raises(ZeroDivisionError):
        weft.train(tmp_path / "third", talk, base=paths["model"], n_steps=4, progress=lambda event: 1 // 0, **SMALL)


def test_ctrl_c_ends_it_within_a_step(paths, tmp_path, talk):
    """Steps are long here, of many batches each."""
    running, last = threading.Event(), []

    def note(event):
        last.append(event.step)
        if event.kind == "step":
            running.set()

    def interrupt():
        running.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        weft.train(tmp_path / "run", talk, base=paths["model"], n_steps=100000, accumulate=32, progress=note, **SMALL)
    thread.join()
    assert max(last) == 1 and os.path.exists(tmp_path / "run" / "checkpoint.gguf")


def test_a_vocabulary(paths, tmp_path):
    with open(tmp_path / "text", "w") as f:
        f.write("the dog and the cat and the mouse\n" * 50)
    n = weft.train_tokenizer(tmp_path / "text", tmp_path / "vocab.gguf", n_vocab=300, words=["<tool_call>"])
    tokenizer = weft.Tokenizer(tmp_path / "vocab.gguf")
    assert n == tokenizer.n_vocab and tokenizer.decode(tokenizer.encode("the dog", bos=False), continues=True) == "the dog"
