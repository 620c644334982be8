# SPDX-License-Identifier: Apache-2.0
"""Same answer, always, over HTTP against the real program: requests of mixed prompts, lengths, seeds and temperatures give the same
bytes alone and many at once, with chunks of 16 and 512, from a warm prefix tree, where pages are so few that requests give way to
each other, and from the disk store of a server that has ended. A third of them name an adapter, or two: the same openings under others.
Some have stop strings, up to four choices, log-probabilities. All but the server that the answers are held against guess tokens ahead.

usage: test_same.py build/weft"""
import concurrent.futures
import json
import os
import random
import tempfile
import unittest

import real
from servers import LLAMA, SANITIZED, SWEEPS, TEXT

N = 200 if SWEEPS else 40 if SANITIZED else 80
N_LONG = 12 if SWEEPS else 4  # of several choices at once, so long that they give way to each other where pages are few
OF_OPENINGS = (1, 5, 7)  # requests that begin with one, under two adapters and none
WORDS = "once upon a time there was little girl named lily who liked to play in the park with her mom and big red ball".split()
STOPS = [" the", "ed ", ". "]


def make_requests():
    rng = random.Random(5)
    openings = [" ".join(rng.choice(WORDS) for _ in range(50)) for _ in range(3)]
    requests = []
    for i in range(N):
        long_answer = i >= N - N_LONG
        prompt = (rng.choice(openings) + " " if i % 2 and not long_answer else "") + " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 30)))
        body = {"prompt": prompt, "seed": i, "temperature": rng.choice((0, 0.5, 1, 1.3)), "max_tokens": 200 if long_answer else rng.randrange(1, 40)}
        if i % 4 == 0:
            body["logprobs"] = 2
        if long_answer:
            body.update(n=4, ignore_eos=True)
        elif i % 5 == 0:
            body.update(n=2 if i % 10 else 4, top_p=0.9, presence_penalty=0.5)
        if i % 8 == 1:
            body.update(echo=True)
        if i % 7 == 2:
            body["logit_bias"] = {"300": 5, "301": -100}
        if i % 10 == 3 and not long_answer:
            body = {"prompt": prompt, "seed": i, "n_predict": 30, "temperature": 0.8, "n_probs": 2, "return_tokens": True}
            if i % 20 == 3:
                body["lora"] = [{"id": 0, "scale": 0.75}, {"id": i // 20 % 2 + 1, "scale": -0.5}]
        elif i % 3 == 1:
            body["model"] = list(real.STYLES)[i // 3 % 3]
        if i % 4 == 3 or i % 20 == 10:
            body["stop"] = STOPS
        requests.append((LLAMA if "n_predict" in body else TEXT, body))
    return requests


class SameAnswer(unittest.TestCase):
    requests = make_requests()

    @classmethod
    def setUpClass(cls):
        """The answers that all others are held against: alone, one after the other, in one slot."""
        alone = real.serve("--ctx", 384, *real.ADAPTERS, "--slots", 1, "--spec", "off")
        cls.addClassCleanup(lambda: alone.process.stdout.closed or alone.kill())
        self = cls()
        cls.wanted = self.ask_all(alone, 1)
        self.assertEqual(alone.metric_sum("weft_drafts_total"), 0)
        real.checked_stop(alone)
        self.assertGreater(len(set(cls.wanted)), N * 3 // 4)
        stopped = [w for w, (_, body) in zip(cls.wanted, self.requests) if "stop" in body and ('"word"' in w or '"finish_reason": "stop"' in w)]
        self.assertGreater(len(stopped), N // 6)
        self.assertTrue([w for w in stopped if '"word"' in w])

    def ask(self, server, path, body):
        answer = server.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        if path == LLAMA:
            return json.dumps([answer.json[k] for k in ("content", "tokens", "completion_probabilities", "stop_type")])
        return json.dumps(answer.json["choices"])

    def ask_all(self, server, at_once):
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda r: self.ask(server, *r), self.requests))

    def check(self, what, server, at_once=16):
        for i, (got, want) in enumerate(zip(self.ask_all(server, at_once), self.wanted)):
            self.assertEqual(got, want, "%s: request %d: %s" % (what, i, self.requests[i]))

    def guessed_right(self, server):
        return server.metric_sum("weft_draft_accepted_tokens_total")

    def serve(self, *options):
        server = real.serve("--ctx", 384, *real.ADAPTERS, *options)
        self.addCleanup(lambda: server.process.stdout.closed or server.kill())
        return server

    def test_same_answer(self):
        for chunk in (16, 512):
            server = self.serve("--chunk", chunk)
            self.check("chunk %d" % chunk, server)
            before = server.metric("weft_prefix_hit_tokens_total")
            if chunk == 512:
                self.check("after prefix hits", server)
                self.assertGreater(server.metric("weft_prefix_hit_tokens_total"), before + N)
                self.assertGreater(self.guessed_right(server), N)  # each answer is known by now
            real.checked_stop(server)
        few = self.serve("--kv-tokens", 384)
        self.check("after preemption", few)
        self.assertGreater(few.metric("weft_preempted_total"), 0)
        self.assertGreater(self.guessed_right(few), 0)
        real.checked_stop(few)

    def test_same_answer_from_disk(self):
        with tempfile.TemporaryDirectory() as folder:
            store = os.path.join(folder, "store")
            first = self.serve("--store", store)
            self.check("with a store", first, 4)
            for i in OF_OPENINGS:  # once more: what a busy server has not written before its pages were wanted is not on the disk
                self.assertEqual(self.ask(first, *self.requests[i]), self.wanted[i])
            real.checked_stop(first)
            self.assertTrue([name for name in os.listdir(store) if name.startswith("p-")])
            again = self.serve("--store", store)
            hits = 0
            for i in OF_OPENINGS:  # the first requests of this process, with an adapter and without
                self.assertEqual(self.ask(again, *self.requests[i]), self.wanted[i])
                self.assertGreater(again.metric("weft_prefix_hit_tokens_total"), hits)
                hits = again.metric("weft_prefix_hit_tokens_total")
            self.check("after a restart", again, 4)
            self.assertGreater(self.guessed_right(again), 0)
            real.checked_stop(again)


if __name__ == "__main__":
    unittest.main(verbosity=1)
