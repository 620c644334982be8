# SPDX-License-Identifier: Apache-2.0
"""Whom the real program takes a request to be of, and what follows: API keys, and without them the field `user`, share the one slot in turns;
a lower `priority` comes after all others; and with --isolate-tenants nobody finds what another has left in the cache.

Claims are of orders alone. What is overtaken takes hundreds of tokens, what overtakes it takes few, so that an answer which a busy machine
sends or reads a little late changes nothing.

usage: test_tenants.py build/weft"""
import re
import selectors
import time
import unittest

import real
from servers import CHAT, LLAMA, PATIENCE, TEXT, request, user

KEYS = {"a": "key-of-a-0123", "b": "key-of-b-0123"}
WITH_KEYS = [o for key in KEYS.values() for o in ("--api-key", key)]
PATHS = (TEXT, CHAT, LLAMA)
LONG, SHORT = 400, 8  # tokens of an answer
WORDS = "once upon a time there was little girl named lily who liked to play in the park with her mom and big red ball".split()


def ask(path, text, tokens, **more):
    return {"ignore_eos": True, "seed": 1, "n_predict" if path == LLAMA else "max_tokens": tokens,
            **({"messages": user(text)} if path == CHAT else {"prompt": text}), **more}


class Tenants(unittest.TestCase):
    def serve(self, *options):
        server = real.serve("--slots", 1, *options)
        self.addCleanup(lambda: server.process.stdout.closed or server.kill())
        return server

    def accepted(self, server):
        """Texts that run, wait or have ended."""
        page = server.get("/metrics", headers={"X-Api-Key": KEYS["a"]}).body.decode()
        return sum(float(n) for n in re.findall(r"^weft_(?:running|waiting|requests_total\{.*\}) (\S+)$", page, re.M))

    def send(self, server, path, body, key=None):
        s = server.connect()
        self.addCleanup(s.close)
        s.sendall(request(body, path, b"Authorization: Bearer %s\r\n" % KEYS[key].encode() if key else b""))
        return s

    def not_overtaken(self, server, first, then):
        """How many of `first`, which are queued before `then` and as yet without an answer, are answered before all of `then`."""
        with selectors.DefaultSelector() as answers:
            def answered(wait):
                came = [key.fileobj for key, _ in answers.select(wait)]
                for s in came:
                    answers.unregister(s)
                    self.assertTrue(s.recv(65536).startswith(b"HTTP/1.1 200 "))
                return set(came)
            early = [self.send(server, *what) for what in first]
            for s in early:
                answers.register(s, selectors.EVENT_READ)
            until, texts = time.time() + PATIENCE, sum(body.get("n", 1) for _, body, *_ in first)
            while (n := self.accepted(server)) < texts:
                self.assertLess(time.time(), until, n)
            late = [self.send(server, *what) for what in then]
            before = answered(0)
            self.assertGreater(len(early) - len(before), len(early) // 2)  # or the claims would claim nothing
            for s in late:
                answers.register(s, selectors.EVENT_READ)
            got = set()
            while not got >= set(late):
                more = answered(PATIENCE)
                self.assertTrue(more)
                got |= more
        for s in early:
            s.close()
        real.checked_stop(server)
        return len(got) - len(late)

    def check_turns(self, server, who):
        """who(name): (fields of the body, key) of a request of that name. a has queued much when b comes: b waits for what runs, and at most
        one more."""
        def of(name, path, tokens):
            more, key = who(name)
            return path, ask(path, "Once", tokens, **more), key
        many, few = [of("a", path, LONG) for path in PATHS * 4], [of("b", path, SHORT) for path in PATHS]
        self.assertLess(self.not_overtaken(server, many, few), 4)

    def test_keys_take_turns(self):
        self.check_turns(self.serve(*WITH_KEYS), lambda name: ({}, name))

    def test_users_take_turns(self):
        self.check_turns(self.serve(), lambda name: ({"user": name}, None))

    def test_priority(self):
        """One of the low ones has begun; its other texts, and the others, come after all that is usual."""
        low = [(path, ask(path, "Once", LONG, n=8, priority=-1)) for path in PATHS]
        usual = [(path, ask(path, "Lily", SHORT)) for path in PATHS]
        self.assertEqual(self.not_overtaken(self.serve(), low, usual), 0)
        lowest = [(path, ask(path, "Once", LONG, n=8, priority=-8)) for path in PATHS]
        low = [(path, ask(path, "Lily", SHORT, priority=-7)) for path in PATHS]
        self.assertEqual(self.not_overtaken(self.serve(), lowest, low), 0)

    def found(self, server, path, more, key):
        """Whether most of a prompt, which is the same for all who ask there, was in the cache."""
        text = " ".join([path.strip("/").replace("/", " "), *(WORDS[i * i % 23] for i in range(160))])
        headers = {"Authorization": "Bearer " + KEYS[key]} if key else {}
        answer = server.post(path, ask(path, text, 1, **more), headers=headers)
        self.assertEqual(answer.status, 200, answer.body)
        if path == LLAMA:
            timings = answer.json["timings"]
            cached, n = timings["cache_n"], timings["cache_n"] + timings["prompt_n"]
        else:
            usage = answer.json["usage"]
            cached, n = usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]
        self.assertTrue(n >= 160 and (cached < 16 or cached > n // 2), (cached, n))
        return cached > n // 2

    def check_isolated(self, options, who):
        """who: (fields, key) of a, b, ... who share nothing with --isolate-tenants."""
        for isolated in (False, True):
            server = self.serve("--kv-tokens", 8192, *options, *["--isolate-tenants"] * isolated)
            for path in PATHS:
                first = [self.found(server, path, *w) for w in who]
                again = [self.found(server, path, *w) for w in who]
                self.assertEqual(first, [False] + [not isolated] * (len(who) - 1), (isolated, path))
                self.assertEqual(again, [True] * len(who), (isolated, path))
            if options:  # with keys it is they who count
                self.assertTrue(self.found(server, TEXT, {"user": "somebody else"}, "a"))
            real.checked_stop(server)

    def test_keys_isolated(self):
        self.check_isolated(WITH_KEYS, [({}, "a"), ({}, "b")])

    def test_users_isolated(self):
        """Also those whose long names begin alike, and who gives none."""
        self.check_isolated([], [({"user": "a"}, None), ({"user": "b"}, None), ({"user": "x" * 70 + "a"}, None), ({"user": "x" * 70 + "b"}, None), ({}, None)])


if __name__ == "__main__":
    unittest.main(verbosity=1)
