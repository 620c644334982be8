# SPDX-License-Identifier: Apache-2.0
"""Threads, forks, signals, memory: what a process does to the library, and the other way round."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import weft


def test_threads_share_a_model(model):
    alone = [model.generate([5 + n, 6, 7], max_tokens=8, seed=n) for n in range(6)]
    said, failed = {}, []

    def work(n):
        try:
            for _ in range(5):
                said.setdefault(n, set()).add(model.generate([5 + n, 6, 7], max_tokens=8, seed=n))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and said == {n: {text} for n, text in enumerate(alone)}


def test_other_threads_run_while_one_generates(model):
    turns, done = 0, threading.Event()

    def work():
        model.generate("Once", max_tokens=300, ignore_end=True)
        done.set()

    thread = threading.Thread(target=work)
    before = model.stats.n_generated
    thread.start()
    while not done.is_set():
        turns += 1
    thread.join()
    assert model.stats.n_generated - before == 300 and turns > 300


def test_closing_in_one_thread_ends_what_another_does(paths):
    model = weft.Model(paths["model"], threads=1)
    ended = []

    def work():
        try:
            for _ in range(1000):
                model.generate("Once", max_tokens=400, ignore_end=True)
        except weft.StateError:
            ended.append(True)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not model.stats.n_generated:
        pass
    model.close()
    for thread in threads:
        thread.join()
    assert ended == [True] * 3


def in_child(work):
    """The exit status of a child that is forked off: 0 when work() is true."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if work() else 3)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(4)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_process_opens_its_own(model, paths):
    stream = model.generate("Once", max_tokens=60, temperature=0, ignore_end=True, stream=True)
    first = next(stream)

    def child():
        for use in (lambda: model.generate("Once"), lambda: next(stream), lambda: model.tokenizer.encode("a"), lambda: model.info):
            try:
                use()
                return False
            except weft.StateError as error:
                assert "forked" in str(error)
        model.close()
        with weft.Model(paths["model"], threads=2) as own:
            said = own.generate("Once", max_tokens=5, temperature=0)
        gc.collect()
        return len(said) > 0

    assert in_child(child) == 0
    assert first + "".join(stream) == model.generate("Once", max_tokens=60, temperature=0, ignore_end=True)


def test_ctrl_c_ends_a_generation_before_its_next_step_ends(paths):
    """Steps are long here, of 512 rows of prompts each: the signal comes in one, which may end, and no other follows."""
    with weft.Model(paths["model"], threads=1, slots=4, queue=100) as model:
        prompts = [[3 + (7 * n + k) % 2000 for k in range(300)] for n in range(60)]
        seen = []

        def interrupt():
            while model.stats.n_steps < 2:
                pass
            os.kill(os.getpid(), signal.SIGINT)
            seen.append(model.stats.n_steps)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            model.generate_batch(prompts, max_tokens=1, cache=False)
        n_steps = model.stats.n_steps
        thread.join()
        assert n_steps <= seen[0] + 1, "steps went on behind the signal"
        assert model.stats.n_running == 0 and model.stats.n_waiting == 0
        assert model.generate("Once", max_tokens=3)


def test_a_signal_with_a_handler_interrupts_nothing(model):
    came = []
    before = signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
    try:
        timer = threading.Timer(0.02, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        text = model.generate("Once", max_tokens=200, temperature=0, ignore_end=True)
        timer.join()
        time.sleep(0)
        assert came == [1]
        assert text == model.generate("Once", max_tokens=200, temperature=0, ignore_end=True)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_program_may_end_at_any_time(paths):
    """With a generation left open, on the main thread and on one that nobody waits for."""
    program = f"""
import threading, weft
model = weft.Model({paths["model"]!r}, threads=2)
stream = model.generate("Once", max_tokens=400, ignore_end=True, stream=True)
next(stream)
started = threading.Event()
def work():
    for piece in model.generate("Once", max_tokens=400, ignore_end=True, stream=True):
        started.set()
threading.Thread(target=work, daemon=True).start()
started.wait()
server = weft.Server(model)
print("end")
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def calls(model, n):
    for i in range(n):
        kind = i % 4
        if kind == 0:
            model.generate("Once", max_tokens=1, seed=i)
        elif kind == 1:
            model.complete("Once", max_tokens=1, seed=i, logprobs=2, stop="x")
        elif kind == 2:
            list(model.generate("Once", max_tokens=1, seed=i, stream=True))
        else:
            model.generate("Once", max_tokens=1, seed=i, adapter="pirate")


@pytest.mark.parametrize("n", [400, pytest.param(10000, marks=pytest.mark.full)])
def test_calls_leave_nothing_behind(model, n):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    calls(model, max(n // 10, 200))
    gc.collect()
    open_before, before = descriptors(), resident()
    calls(model, n)
    gc.collect()
    assert descriptors() == open_before
    assert resident() - before < 1 << 20, f"{resident() - before} bytes in {n} calls"
