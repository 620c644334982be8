# SPDX-License-Identifier: Apache-2.0
"""Claims about the pages of `weft serve`: requests choose the type of their keys and values among those that it has, and get what a server
of that type alone answers; and what gives way to others, goes to the disk and comes back is counted in /metrics and /slots.

usage: PROGRAM build/weft"""
import json
import os
import tempfile
import threading
import unittest

from real import checked_stop, serve

PROMPT = "Once upon a time, a dog named Kit lived in the gatehouse. He was a cheerful watchman. Every summer there was a great race."
TYPES = ("f16", "q8", "k=q8,v=q4")
SERVES = ("--ctx", 384, "--slots", 4)


def completion(server, seed, **more):
    return server.post("/completion", {"prompt": PROMPT, "n_predict": 40, "seed": seed, "temperature": 0.9, "n_probs": 2, "ignore_eos": True,
                                       "post_sampling_probs": False, **more})


def essence(answer):
    assert answer.status == 200, answer.body
    return answer.json["content"], answer.json.get("completion_probabilities")


def at_once(n, what):
    """what(0) .. what(n - 1), all at the same time."""
    out = [None] * n

    def one(i):
        out[i] = what(i)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return out


class Types(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = {}
        for kind in TYPES:
            server = serve(*SERVES, "--kv-type", kind)
            cls.alone[kind] = essence(completion(server, 1))
            checked_stop(server)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.server = serve(*SERVES, "--kv-types", ",".join(TYPES[1:]), "--store", os.path.join(folder.name, "store"))
        self.addCleanup(lambda: checked_stop(self.server))

    def test_answers(self):
        self.assertEqual(len({json.dumps(a) for a in self.alone.values()}), len(TYPES), "the types must differ")
        for _ in range(2):  # the second time with a prefix
            answers = at_once(len(TYPES), lambda i: completion(self.server, 1, kv_type=TYPES[i]))
            for kind, a in zip(TYPES, answers):
                self.assertEqual(essence(a), self.alone[kind], kind)
                self.assertEqual(a.json["generation_settings"]["kv_type"], kind if "v=" not in kind else "k=q8,v=q4")
        self.assertTrue(all(a.json["tokens_cached"] for a in answers))
        self.assertEqual(essence(completion(self.server, 1)), self.alone["f16"])  # the server's

    def test_refusals(self):
        for body, says in (({"kv_type": "q4"}, "'kv_type' is q4; this server has f16, q8, k=q8,v=q4 (--kv-types)"),
                           ({"kv_type": "q9"}, "'kv_type': keys and values as 'q9'"), ({"kv_type": ["q8"]}, "'kv_type' must be a string")):
            for path, more in (("/completion", {"prompt": "x"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]})):
                a = self.server.post(path, {**body, **more})
                self.assertEqual((a.status, a.json["error"].get("param", "kv_type")), (400, "kv_type"), a.body)
                self.assertIn(says, a.json["error"]["message"])

    def test_slots(self):
        first = completion(self.server, 1, kv_type="q8", id_slot=2)
        self.assertEqual([s.get("kv_type") for s in self.server.get("/slots").json], [None, None, "q8", None])
        saved = self.server.post("/slots/2?action=save", {"filename": "kept"})
        self.assertEqual(saved.status, 200, saved.body)
        completion(self.server, 1, id_slot=1)
        self.server.post("/slots/2?action=erase", {})
        back = self.server.post("/slots/2?action=restore", {"filename": "kept"}).json
        self.assertEqual(back["n_restored"], saved.json["n_saved"])
        self.assertEqual([s.get("kv_type") for s in self.server.get("/slots").json], [None, "f16", None, None])
        self.assertEqual(essence(completion(self.server, 1, kv_type="q8")), essence(first))


class Swaps(unittest.TestCase):
    """Four that outgrow what they start with, in pages for little more than one."""
    N, OPTIONS = 4, ("--spec", "off")

    def answers(self, server):
        return [essence(a) for a in at_once(self.N, lambda i: completion(server, i, n_predict=220))]

    def test_counts(self):
        server = serve(*SERVES, *self.OPTIONS)
        alone = self.answers(server)
        self.assertEqual(server.metric("weft_preempted_total"), 0)
        checked_stop(server)
        with tempfile.TemporaryDirectory() as folder:
            tight = (*SERVES, *self.OPTIONS, "--kv-tokens", 448, "--store", os.path.join(folder, "store"), "--swap-mb", 8)
            server = serve(*tight, "--swap", "always")
            for _ in range(4):
                self.assertEqual(self.answers(server), alone)
                if server.metric("weft_swap_restored_total"):
                    break
            slots = server.get("/slots").json
            swaps = [s["swaps"] for s in slots if "swaps" in s]
            told = {name: server.metric(f"weft_swap_{name}") for name in
                    ("restored_total", "tokens_total", "limit_bytes", "bytes", 'pages_total{what="in"}', 'pages_total{what="out"}',
                     'bytes_total{what="in"}', 'seconds_total{what="in"}')}
            n = server.metric("weft_swaps_total")
            self.assertTrue(server.metric("weft_preempted_total") >= n >= told["restored_total"] > 0, told)
            self.assertTrue(told["tokens_total"] > 0 and told['pages_total{what="in"}'] > 0 and told['bytes_total{what="in"}'] > 0, told)
            self.assertTrue(told['seconds_total{what="in"}'] > 0 and 0 < told["limit_bytes"] <= 8 << 20 and told["bytes"] == 0, told)
            self.assertTrue(all(set(s) == {"n", "bytes", "ms"} for s in swaps))
            checked_stop(server)
            server = serve(*tight, "--swap", "off")
            self.assertEqual(self.answers(server), alone)
            self.assertEqual(server.metric("weft_swaps_total"), 0)
            checked_stop(server)


if __name__ == "__main__":
    unittest.main()
