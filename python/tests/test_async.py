# SPDX-License-Identifier: Apache-2.0
"""The same for event loops: texts, streams, batches, many at once, and tasks that are cancelled."""

import asyncio


def test_texts_and_streams(model):
    async def work():
        text = await model.agenerate("Once upon a time", max_tokens=12, temperature=0)
        pieces = [piece async for piece in model.agenerate("Once upon a time", max_tokens=12, temperature=0, stream=True)]
        batch = await model.agenerate_batch(["Once", "In winter"], adapters=["pirate", None], max_tokens=8, temperature=0)
        talk = [{"role": "user", "content": "Who are you?"}]
        return text, pieces, batch, await model.achat(talk, temperature=0), [piece async for piece in model.achat(talk, temperature=0, stream=True)]

    text, pieces, batch, answer, parts = asyncio.run(work())
    assert text == "".join(pieces) == model.generate("Once upon a time", max_tokens=12, temperature=0) and len(pieces) > 6
    assert batch == model.generate_batch(["Once", "In winter"], adapters=["pirate", None], max_tokens=8, temperature=0)
    assert answer == "".join(parts) == model.chat([{"role": "user", "content": "Who are you?"}], temperature=0)


def test_many_at_once(model):
    async def work():
        return await asyncio.gather(*(model.agenerate([3 + n, 7, 9], max_tokens=10, seed=n) for n in range(40)))

    assert asyncio.run(work()) == [model.generate([3 + n, 7, 9], max_tokens=10, seed=n) for n in range(40)]


def test_the_loop_goes_on_meanwhile(model):
    async def work():
        turns = 0
        task = asyncio.ensure_future(model.agenerate("Once", max_tokens=200, ignore_end=True))
        while not task.done():
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert asyncio.run(work()) > 20


def test_a_cancelled_task_cancels_its_request(model):
    async def work():
        before = model.stats
        task = asyncio.ensure_future(model.agenerate("Once", max_tokens=400, ignore_end=True))
        while not model.stats.n_generated > before.n_generated:
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        while model.stats.n_running:
            await asyncio.sleep(0)
        stream = model.agenerate("Once", max_tokens=400, ignore_end=True, stream=True)
        async for _ in stream:
            break
        await stream.aclose()
        while model.stats.n_running:
            await asyncio.sleep(0)
        return model.stats.n_cancelled - before.n_cancelled

    assert asyncio.run(work()) == 2
