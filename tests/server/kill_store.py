# SPDX-License-Identifier: Apache-2.0
"""kill -9 while the disk store is being written, again and again: whatever was left half written, the next server starts, serves the
same answers, and reads no slot other than one that was saved as a whole.

usage: kill_store.py build/weft [TIMES]        5 times in the tests, 100 times by `make kill-store`; up to 30 more, until enough met a write"""
import os
import random
import sys
import tempfile
import threading
import time

import real
from servers import EMULATOR, TEXT

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 5
STORY = "Once upon a time there was a little girl named Lily. She liked to play in the park with her mom and her big red ball. "
LEAST_HALF = max(1, TIMES // 8)  # kills that must leave a file half written; of 100 it were 39 to 55
PROMPTS = ["%d. %s" % (i, STORY * (1 + i % 3)) for i in range(12)]


def ask(server, i):
    a = server.post(TEXT, {"prompt": PROMPTS[i], "max_tokens": 16, "seed": i, "temperature": 0.9})
    assert a.status == 200, a.body
    return a.json["choices"][0]["text"]


def load(server, seed, saved):
    """Requests and saves of slots, until the server is gone."""
    rng = random.Random(seed)
    try:
        while True:
            i, slot = rng.randrange(len(PROMPTS)), rng.randrange(4)
            server.post("/completion", {"prompt": PROMPTS[i], "n_predict": 1, "id_slot": slot, "seed": rng.randrange(1000)})
            name = "slot-%d" % i
            if server.post("/slots/%d?action=save" % slot, {"filename": name}).status == 200:
                saved.add(name)
    except (OSError, RuntimeError, ValueError):
        pass
    except Exception as e:  # what http.client says of an answer cut short
        if type(e).__module__ != "http.client":
            raise


def main():
    rng = random.Random(11)
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store")
        alone = real.serve("--slots", 1)
        began = time.time()
        wanted = [ask(alone, i) for i in range(len(PROMPTS))]
        answer = (time.time() - began) / len(PROMPTS)
        real.checked_stop(alone)
        saved, n_half, n_restored, n_read, k = set(), 0, 0, 0, -1
        # Seconds in which a kill comes: a few answers' time, more on machines that are too slow to write by then.
        within = most = max(3 if EMULATOR else 0.3, 3 * answer)
        while k + 1 < TIMES or (n_half < LEAST_HALF and k + 1 < TIMES + 30):
            k += 1
            server = real.serve("--store", store, "--slots", 4)
            threads = [threading.Thread(target=load, args=(server, 100 * k + j, saved)) for j in range(4)]
            for t in threads:
                t.start()
            time.sleep(rng.random() * within)
            server.kill()
            for t in threads:
                t.join()
            half = any(name.startswith("t-") for name in os.listdir(store))
            n_half += half
            within = within if n_half else min(1.1 * within, max(5, most))
            if k >= TIMES and not half:
                continue
            server = real.serve("--store", store, "--slots", 4)
            assert not [name for name in os.listdir(store) if name.startswith("t-")], "what was half written is removed at the start"
            for i in range(len(PROMPTS)):
                assert ask(server, i) == wanted[i], "after kill %d: another answer to prompt %d" % (k + 1, i)
            n_read += server.metric("weft_prefix_hit_tokens_total") > 0
            for name in sorted(saved):  # acknowledged: it is there, and whole
                a = server.post("/slots/0?action=restore", {"filename": name})
                assert a.status == 200 and a.json["n_restored"] > 0, (k + 1, name, a.body)
                n_restored += 1
            err = real.checked_stop(server)
            assert "damaged" not in err and "cannot be used" not in err, err
        print("%d kills: %d left a file half written; %d restarts with hits; %d slots restored, none lost or damaged" % (k + 1, n_half, n_read, n_restored))
        assert n_read and n_restored
        assert n_half >= LEAST_HALF, "only %d kills met the writing of a file, not %d" % (n_half, LEAST_HALF)


if __name__ == "__main__":
    main()
