# SPDX-License-Identifier: Apache-2.0
"""One client holds all that it can of what all need, and every request of another is answered: bodies, answers, connections, workers, queues,
grammars and the disk have shares, of keys or without them of addresses. Over a scripted model (fake_engine.c).

usage: test_shares.py build/fake_server"""
import os
import socket
import subprocess
import tempfile
import threading
import unittest

from servers import CHAT, FAKE, LLAMA, PATIENCE, TEXT, Case, of_one_thread, request, user, wait_until

SIZE = 4 << 20
KEYS = ("key-of-the-greedy", "key-of-the-other")


def head(path, n, more=b""):
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), more, n)


class Shares(Case):
    def send(self, server, data, **more):
        s = server.connect(**more)
        self.addCleanup(s.close)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(data)
        return s

    def check_other(self, server, **other):
        """Whatever the other asks for is answered, what is held up apart."""
        def ok(answer, *status):
            self.assertIn(answer.status, status or (200,), answer.body[:300])
            return answer
        for path, body in (
            (TEXT, {"prompt": "[say x]"}),
            (CHAT, {"messages": user("[say x]"), "n": 3}),
            (LLAMA, {"prompt": "[say x]", "n_predict": 5}),
            (TEXT, {"prompt": "[say x]", "stream": True}),
            ("/v1/embeddings", {"input": ["x"] * 20}),
            ("/tokenize", {"content": "x" * 1_000_000}),
            ("/detokenize", {"tokens": [97] * 1000}),
            ("/apply-template", {"messages": user("x")}),
        ):
            ok(server.post(path, body, **other))
        for path in ("/v1/models", "/v1/models/fake", "/props", "/slots", "/lora-adapters", "/metrics"):
            ok(server.get(path, **other))
        ok(server.post("/tokenize", {"content": "x", "pad": "y" * (7 << 20)}, **other))  # the longest body there may be, nearly
        ok(server.post("/slots/0?action=restore", {"filename": "none"}, **other), 404)

    def hold_all(self, server, greedy, key):
        """All that one can: answers that are not read, bodies that never end, the queue, connections."""
        lazy = [self.send(server, request({"content": "a" * 3_500_000, "with_pieces": True}, "/tokenize", key), **greedy) for _ in range(2)]
        self.assertTrue(wait_until(lambda: self.number(server, "weft_http_answer_bytes") >= 128 << 20))
        # Its share of answers is full: its bodies are refused until it has read one.
        refused = self.send(server, request({"content": "x"}, "/tokenize", key), **greedy)
        self.assertTrue(refused.recv(65536).startswith(b"HTTP/1.1 429 "))
        lazy.pop().close()
        self.assertTrue(wait_until(lambda: self.number(server, "weft_http_answer_bytes") < 128 << 20))
        for n in (2, 4, 6, 7):  # a few at a time: an eighth would fill its share
            for _ in range(min(2, 7 - n + 1)):
                self.send(server, head("/tokenize", SIZE, key) + b"x" * (SIZE - 1), **greedy)
            self.assertTrue(wait_until(lambda: self.number(server, "weft_http_body_bytes") >= n * (SIZE - 1)))
        stream, rest = request({"prompt": "[queue 600000]", "n_predict": 5, "stream": True}, LLAMA, key), head("/tokenize", SIZE, key) + b"x" * (SIZE - 1)
        for _ in range(90):
            self.send(server, stream, **greedy)
        self.assertTrue(wait_until(lambda: self.number(server, "weft_waiting") >= 90))
        for data in [rest] * 8 + [stream] * 100:
            self.send(server, data, **greedy)

    def number(self, server, name):
        page = server.get("/metrics", **self.who).body.decode()
        return float(page.split("\n" + name + " ")[1].split("\n")[0])

    def check_all(self, server, greedy, other, key):
        self.who = other
        self.hold_all(server, greedy, key)
        self.check_other(server, **other)
        for name, least in (("answer_bytes", 64 << 20), ("body_bytes", 7 * (SIZE - 1)), ("requests", 80)):  # it was held all the time
            self.assertGreaterEqual(self.number(server, "weft_http_" + name), least)

    def test_of_keys(self):
        """By one address, as behind a proxy that is not named."""
        server = self.own("--per-ip", 512, "--slow", 600, "--idle", 600, *(o for key in KEYS for o in ("--api-key", key)))
        self.check_all(server, {}, {"headers": {"X-Api-Key": KEYS[1]}}, b"X-Api-Key: %s\r\n" % KEYS[0].encode())

    @of_one_thread  # in other words: the threads are those of test_of_keys
    def test_of_addresses(self):
        server = self.own("--slow", 600, "--idle", 600)
        self.check_all(server, {"source": "127.0.0.2"}, {"source": "127.0.0.3"}, b"")

    def test_users_of_an_address(self):
        """Names that an address gives itself are no further shares of the queue."""
        server = self.own("--per-ip", 512, "--queue", 28)  # and 8 that run: one user gets 32 of 36, one address 34
        for i in range(40):
            self.send(server, request({"prompt": "[queue 600000]", "max_tokens": 5, "user": f"name{i}"}, TEXT))
        self.assertTrue(wait_until(lambda: server.metric("weft_running") + server.metric("weft_waiting") == 34))
        answer = server.post(TEXT, {"prompt": "[say x]", "user": "one more"})
        self.assertEqual((answer.status, "of this address" in answer.json["error"]["message"]), (429, True), answer.body)
        self.assertEqual(server.metric("weft_waiting") + server.metric("weft_running"), 34)
        other = self.send(server, request({"prompt": "[say x]", "timeout_ms": 10}, TEXT), source="127.0.0.2")
        self.assertRegex(other.recv(65536), rb"^HTTP/1.1 (200|504) ")  # it had a place

    def test_many_inputs_need_few_places(self):
        """Where one has all places that it gets, what another wants to be embedded is asked for as there is room, and not refused for want of it."""
        server = self.own("--queue", 28, *(o for key in KEYS for o in ("--api-key", key)))
        self.who = other = {"headers": {"X-Api-Key": KEYS[1]}}
        self.send(server, request({"prompt": "[queue 600000]", "max_tokens": 5, "n": 32}, TEXT, b"X-Api-Key: %s\r\n" % KEYS[0].encode()))
        self.assertTrue(wait_until(lambda: self.number(server, "weft_waiting") == 32))
        early = ["x"] + ["[submit 20]"] * 3 + ["[queue 50]"] * 12  # the first ends while those beside it have no place yet
        for texts in (["x"] * 40, early):
            answer = server.post("/v1/embeddings", {"input": texts}, **other)
            self.assertEqual((answer.status, len(answer.json.get("data", ()))), (200, len(texts)), answer.body)

    def test_the_disk(self):
        """A key whose slots are being saved leaves a place at the disk."""
        server, hold = self.own_held(*(o for key in KEYS for o in ("--api-key", key)))
        greedy, other = ({"X-Api-Key": key} for key in KEYS)
        for who in (greedy, greedy, greedy, other):
            self.assertEqual(server.post(LLAMA, {"prompt": "[say x]"}, headers=who).status, 200)
        mine = [s["id"] for s in server.get("/slots", headers=other).json if s.get("n_tokens")][0]
        open(hold, "w").close()
        try:
            answers = []
            self.run_all(4, lambda: answers.append(server.post("/slots/0?action=save", {"filename": "hung"}, headers=greedy).status))
            self.assertTrue(wait_until(lambda: len(answers) == 2))
            self.assertEqual(answers, [429, 429])
            self.assertEqual(server.post(f"/slots/{mine}?action=save", {"filename": "y"}, headers=other).status, 200)
        finally:
            os.remove(hold)

    def check_workers(self, greedy, other, n_workers, *options):
        """Of a crowd whose texts take long, one worker fewer than there are is busy; when they end, all have been answered."""
        server, hold = self.own_held("--workers", n_workers, *options)
        self.who = other
        open(hold, "w").close()
        answers = []
        crowd = self.run_all(2 * n_workers, lambda: answers.append(server.post("/tokenize", {"content": "[held]"}, **greedy).status))
        try:
            self.assertTrue(wait_until(lambda: self.number(server, "weft_http_requests") == 2 * n_workers + 1))
            for _ in range(3):
                self.assertEqual(server.post("/tokenize", {"content": "x"}, **other).status, 200)
            self.assertEqual(answers, [])
        finally:
            os.remove(hold)
            for t in crowd:
                t.join()
        self.assertEqual(answers, [200] * 2 * n_workers)

    def test_a_worker_is_left(self):
        """For another client, of keys or of addresses, however long what one asks for takes; one worker serves all in turns."""
        by_key = [{"headers": {"X-Api-Key": key}} for key in KEYS]
        self.check_workers(*by_key, 4, *(o for key in KEYS for o in ("--api-key", key)))
        self.check_workers({"source": "127.0.0.2"}, {"source": "127.0.0.3"}, 2)
        server = self.own("--workers", 1)
        self.assertEqual(server.post("/tokenize", {"content": "x"}).status, 200)

    def test_turns_in_a_line(self):
        """Who brings one grammar waits for one of a crowd of another's, not for all: in the order of those that stand in line when it moves."""
        (server, hold), done = self.own_held(), []
        open(hold, "w").close()

        def ask(i, **how):
            """Each has a text of its own, which the server has not kept; the first one holds up the line."""
            answer = server.post(TEXT, {"prompt": "[say x]", "grammar": "root ::= slow # %s %d" % ("held" if i == 0 else "", i)}, **how)
            done.append(i if answer.status == 200 else answer.body)

        crowd = [threading.Thread(target=ask, args=(i,)) for i in range(21)]
        try:
            for n, t in enumerate(crowd, 1):
                t.start()
                self.assertTrue(wait_until(lambda: server.metric("weft_http_requests") > n - 1, 0.001))
            alone = threading.Thread(target=ask, args=(21,), kwargs={"source": "127.0.0.2"})
            alone.start()
            self.assertTrue(wait_until(lambda: server.metric("weft_http_requests") > len(crowd), 0.001))
        finally:
            os.remove(hold)
        for t in [*crowd, alone]:
            t.join()
        self.assertEqual(sorted(done), list(range(22)))
        self.assertLess(done.index(21), 7)

    def crowd(self, server, n):
        """Statuses of so many of one address that are open at once."""
        got = []
        for s in [self.send(server, b"") for _ in range(n)]:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            got.append(s.recv(1000).split()[1])
        return got

    def bodies(self, server, n):
        """Status of a body of 5 MB while n more of 4 MB lack their last byte."""
        before = server.metric("weft_http_body_bytes")
        for _ in range(n):
            self.send(server, head("/nowhere", SIZE) + b"x" * (SIZE - 1))
        self.assertTrue(wait_until(lambda: server.metric("weft_http_body_bytes") >= n * (SIZE - 1) + before))
        return server.post("/nowhere", b"x" * (5 << 20)).status

    def test_a_proxy_has_no_share(self):
        """Of an address that many come from, and of a unix socket, no limit of one address counts, but those of all do."""
        self.assertEqual(set(self.crowd(self.own("--per-ip", 4), 8)), {b"200", b"429"})
        self.assertEqual(self.bodies(self.own(), 7), 429)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for options in (("--proxy", "10.0.0.1", "--proxy", "127.0.0.1"), ("--unix", folder.name + "/s")):
            server = self.own("--per-ip", 4, *options)
            self.assertEqual(self.crowd(server, 8), [b"200"] * 8)
            self.assertEqual((self.bodies(server, 7), self.bodies(server, 8)), (404, 503))
        p = subprocess.run([*FAKE, "--proxy", "no-address"], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((p.returncode, "proxy no-address: must be an address in digits" in p.stderr), (1, True), p.stderr)

    def test_who_is_refused_takes_no_place(self):
        """However many of an address are too many, there is room for others, and for that address when it leaves."""
        server = self.own("--connections", 12, "--per-ip", 4)
        held = [self.send(server, b"", source="127.0.0.2") for _ in range(18)]
        self.assertTrue(wait_until(lambda: server.metric("weft_http_connections") >= 18))
        for source in ("127.0.0.3", "127.0.0.4"):
            self.assertEqual(server.get("/health", source=source).status, 200)
        self.assertEqual(server.get("/health", source="127.0.0.2").status, 429)
        for s in held:  # which of them have its places, the server's threads decide
            s.close()
        self.assertTrue(wait_until(lambda: server.get("/health", source="127.0.0.2").status == 200))

    def test_a_key_leaves_connections(self):
        """However many may come from an address, requests of one key take no more connections than are left for all others."""
        server = self.own("--connections", 20, "--per-ip", 20, *(o for key in KEYS for o in ("--api-key", key)))
        body = request({"prompt": "[queue 600000]", "n_predict": 5}, LLAMA, b"X-Api-Key: %s\r\n" % KEYS[0].encode())
        sent = [self.send(server, body) for _ in range(15)]
        other = {"headers": {"X-Api-Key": KEYS[1]}}
        self.who = other
        refused = []

        def all_are_told():
            for s in sent:
                s.setblocking(False)
                try:
                    refused.append(s.recv(100)[:12])
                    sent.remove(s)
                except BlockingIOError:
                    pass
            return len(refused) >= 4 and self.number(server, "weft_running") + self.number(server, "weft_waiting") + len(refused) == 15
        self.assertTrue(wait_until(all_are_told))
        self.assertEqual(set(refused), {b"HTTP/1.1 429"})
        self.assertEqual(server.post(TEXT, {"prompt": "[say x]"}, **other).status, 200)


if __name__ == "__main__":
    unittest.main(verbosity=1)
