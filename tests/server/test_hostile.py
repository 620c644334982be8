# SPDX-License-Identifier: Apache-2.0
"""Claims about refusals, over a scripted model (fake_engine.c): bad requests, hostile heads and bodies, keys, hosts and origins.

usage: test_hostile.py build/fake_server"""
import hashlib
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from servers import CHAT, FAKE, LLAMA, PATIENCE, TEXT, Case, of_one_thread, request, user, wait_until
from bad_requests import BIG, Facts, bad_requests


class Refusals(Case):
    options = ("--body", 4 << 20, "--head", 16384, "--headers", 50)

    def check_shape(self, path, answer, field):
        error = answer.json["error"]
        if path.startswith("/v1/"):
            self.assertEqual(set(error), {"message", "type", "param", "code"})
            if field:
                self.assertEqual(error["param"], field)
        else:
            self.assertGreaterEqual(set(error), {"message", "type", "code"})
            self.assertEqual(error["code"], answer.status)
        return error["message"]

    @of_one_thread
    def test_bad_requests(self):
        """Each is refused with its own status and a message that names the field; and the server lives on."""
        cases = bad_requests(Facts("fake", 300, 2048, 8))
        self.assertGreaterEqual(len(cases), 120)
        for path, body, status, words, field in cases:
            with self.subTest(path=path, body=repr(body)[:80]):
                answer = self.server.post(path, body)
                self.assertEqual(answer.status, status, answer.body[:300])
                self.assertIn(words, self.check_shape(path, answer, field))
        self.assertEqual(self.server.post(TEXT, {"prompt": "[say ok]"}).json["choices"][0]["text"], "ok")
        self.assertEqual(self.server.metric("weft_running"), 0)

    @of_one_thread
    def test_context_size_errors(self):
        e = self.server.post(LLAMA, {"prompt": "z" * 3000}).json["error"]
        self.assertEqual((e["type"], e["n_prompt_tokens"], e["n_ctx"]), ("exceed_context_size_error", 3001, 2048))
        self.assertEqual(self.server.post(TEXT, {"prompt": "z" * 3000}).json["error"]["code"], "context_length_exceeded")

    @of_one_thread
    def test_more_log_probabilities_than_a_request_may_have(self):
        """Answers keep them until the last one has ended: 128 of 2,000 tokens, with 20 likeliest beside each, would have 240 MB of JSON."""
        chat, text = {"messages": user("[say x]"), "logprobs": True, "top_logprobs": 20}, {"prompt": "[say x]", "logprobs": 5}
        server = self.own("--ctx", 60000)
        for path, body, field, words in (
            (
                CHAT,
                {**chat, "n": 128, "max_tokens": 2000},
                "n",
                (
                    "128 answers ('n' times the prompts), 256000 tokens in all, with 20 likeliest ones beside each"
                    " ('top_logprobs'), come to more than the 1048576 that a request may have; give at most 390 as"
                    " 'max_tokens', or a smaller 'n' or 'top_logprobs'"
                ),
            ),
            (
                CHAT,
                {**chat, "n": 128, "max_completion_tokens": 391, "stream": True},
                "n",
                "at most 390 as 'max_tokens'",
            ),
            (CHAT, {**chat, "n": 13}, "n", "at most 3840 as"),  # fewer than a request may have that sets no limit
            (CHAT, {**chat, "max_tokens": 49933}, "top_logprobs", "at most 49932 as"),
            (TEXT, {**text, "n": 128, "max_tokens": 2000}, "n", "with 5 likeliest ones beside each ('logprobs')"),
            (TEXT, {**text, "prompt": ["[say x]"] * 128, "max_tokens": 2000}, "logprobs", "128 answers"),
            (
                TEXT,
                {**text, "prompt": "[say x]" + "z" * 50000, "n": 4, "echo": True},
                "n",
                (
                    "their prompts included, 200096 tokens in all, with 5 likeliest ones beside each ('logprobs'), come"
                    " to more than the 1048576 that a request may have; give a smaller 'n'"
                ),
            ),
            (
                LLAMA,
                {"prompt": "[say x]", "n_cmpl": 128, "n_predict": 2000, "n_probs": 20},
                None,
                "at most 390 as 'n_predict', or a smaller 'n_cmpl' or 'n_probs'",
            ),
            (
                LLAMA,
                {"prompt": "[say x]", "n_cmpl": 128, "n_predict": 9000, "return_tokens": True},
                None,
                "at most 8192 as 'n_predict'",
            ),
        ):
            with self.subTest(path=path, body=repr(body)[:200]):
                answer = server.post(path, body)
                self.assertEqual(answer.status, 400, answer.body[:300])
                self.assertIn(words, self.check_shape(path, answer, field))
        for path, body in (
            (CHAT, {**chat, "n": 8, "max_tokens": 4096}),
            (CHAT, {**chat, "n": 12}),
            (CHAT, {**chat, "n": 128, "max_tokens": 390}),
            (CHAT, {**chat, "max_tokens": 49932}),
            (CHAT, {"messages": user("[say x]"), "n": 128}),
            (TEXT, {**text, "n": 128}),
            (TEXT, {**text, "prompt": ["[say x]"] * 128}),
            (TEXT, {**text, "prompt": "[say x]" + "z" * 50000, "n": 3, "echo": True}),
        ):
            self.assertEqual(server.post(path, body).status, 200, repr(body)[:200])
        # What sets no limit ends where all are used up, if the context does not end before.
        for body, limit in (
            ({}, -1),
            ({"n_probs": 20}, 49932),
            ({"n_probs": 20, "n_predict": 100000}, None),
            ({"n_probs": 10}, -1),
            ({"n_probs": 1, "n_cmpl": 10}, 52428),
        ):
            answer = server.post(LLAMA, {"prompt": "[say x]", **body})
            self.assertEqual(answer.status, 400 if limit is None else 200, answer.body[:300])
            if limit is not None:
                first = answer.json[0] if body.get("n_cmpl") else answer.json
                self.assertEqual(first["generation_settings"]["n_predict"], limit, body)

    @of_one_thread
    def test_more_answers_than_the_server_holds(self):
        """What can never be held, however often it is tried, is no 429; what fits when nothing else runs is taken."""
        server = self.own("--queue", 2)
        for path, body, field in (
            (TEXT, {"prompt": "[say x]", "n": 11}, "n"),
            (CHAT, {"messages": user("[say x]"), "n": 11}, "n"),
            (TEXT, {"prompt": ["[say x]"] * 11}, "prompt"),
            (TEXT, {"prompt": ["[say x]"] * 6, "n": 2}, "n"),
        ):
            answer = server.post(path, body)
            self.assertEqual((answer.status, answer.json["error"]["param"]), (400, field), answer.body)
            self.assertIn("takes 9 together", answer.json["error"]["message"])
        self.assertEqual(len(server.post(TEXT, {"prompt": "[say x]", "n": 9}).json["choices"]), 9)
        self.assertEqual(len(server.post("/v1/embeddings", {"input": ["x"] * 11}).json["data"]), 11)  # they come in turns

    def test_slow_grammars_hold_up_nobody_else(self):
        """Of a flood of grammars as many wait as there is room for, but for that of others; /health and requests without one are answered meanwhile."""
        (server, hold), held = self.own_held(), {"prompt": "[say x]", "grammar": "root ::= held", "user": "one"}
        answers, others = [], []
        open(hold, "w").close()
        flood = [threading.Thread(target=lambda: answers.append(server.post(TEXT, held))) for _ in range(80)]
        for t in flood:
            t.start()
        while not any(a.status == 429 for a in list(answers)):
            time.sleep(0.001)
        flood.append(threading.Thread(target=lambda: others.append(server.post(TEXT, {**held, "user": "two"}))))
        flood[-1].start()
        for _ in range(10):
            for ask in (lambda: server.get("/health"), lambda: server.get("/metrics"), lambda: server.post(TEXT, {"prompt": "[say quick]"})):
                self.assertEqual(ask().status, 200)
        self.assertEqual({a.status for a in answers}, {429})  # none of the flood has ended
        os.unlink(hold)
        for t in flood:
            t.join()
        refused = [a for a in answers if a.status == 429]
        self.assertEqual({a.status for a in answers}, {200, 429})
        self.assertLess(len(refused), 36)
        self.assertEqual([a.status for a in others], [200])
        self.assertEqual({(a.headers["retry-after"], a.json["error"]["param"]) for a in refused}, {("2", "grammar")})

    def test_who_gives_no_name_leaves_room_for_others(self):
        """A flood of grammars is not let in as many because it comes without a `user`."""
        server, slow, answers = self.own(), {"prompt": "[say x]", "timeout_ms": 2000}, []
        ask = lambda i, **more: server.post(TEXT, {**slow, "grammar": f"root ::= slow # {i}", **more})  # which no other has compiled
        flood = [threading.Thread(target=lambda i=i: answers.append(ask(i))) for i in range(100)]
        for t in flood:
            t.start()
        while not any(a.status == 429 for a in list(answers)):
            time.sleep(0.001)
        self.assertIn(ask("two", user="two").status, (200, 504))
        for t in flood:
            t.join()
        self.assertEqual({a.status for a in answers} - {504}, {200, 429})  # all that were let in may be in time

    @of_one_thread
    def test_paths_and_methods(self):
        for method, path, status in (
            ("GET", "/page/", 404),
            ("GET", "/v1/nope", 404),
            ("GET", CHAT, 405),
            ("POST", "/v1/models", 405),
            ("DELETE", "/v1/models/fake", 405),
            ("PUT", CHAT, 405),
            ("PATCH", CHAT, 405),
            ("GET", "/slots/", 404),
            ("OPTIONS", CHAT, 405),
            ("GET", "/v1/models/", 404),
            ("GET", "/../etc/passwd", 404),
            ("GET", "//", 404),
            ("GET", "/v1/models%00x", 400),
            ("GET", "/health%0a", 400),
            ("TRACE", "/health", 405),
        ):
            with self.subTest(method=method, path=path):
                answer = self.server.ask(method, path, b"" if method == "POST" else None)
                self.assertEqual(answer.status, status, answer.body)
                self.check_shape(path, answer, None)
                self.assertEqual("allow" in answer.headers, status == 405)
        self.assertEqual(self.server.ask("DELETE", "/lora-adapters").headers["allow"], "GET, HEAD, POST")

    def test_body_too_long(self):
        answer = self.server.post(TEXT, {"prompt": "x", "stop": BIG})  # 10 MB
        self.assertEqual((answer.status, answer.json["error"]["code"]), (413, "request_too_large"))
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        out = self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 6 + b"0\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 413 "), out[:100])
        out = self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx")
        self.assertTrue(out.startswith(b"HTTP/1.1 413 "), out[:100])

    def test_bodies_together(self):
        """All bodies that are held have a limit (64 MB here), and one address no more than it leaves the others: who is beyond is told to come again, and
        what is let go counts no more."""
        size, clients, held = 4 << 20, [], 0
        for source, n in (("127.0.0.2", 8), ("127.0.0.3", 4), ("127.0.0.4", 2)):
            for _ in range(n):  # all but the last byte of each
                s = self.server.connect(source=source)
                self.addCleanup(s.close)
                s.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size + b"x" * (size - 1))
                clients.append(s)
            held += n * (size - 1)
            self.assertTrue(wait_until(lambda: self.server.metric("weft_http_body_bytes") >= held))
            self.assertLessEqual(self.server.metric("weft_http_body_bytes"), 64 << 20)
            refused = self.server.post("/nowhere", b"x" * size, source=source)  # more than is its share
            self.assertEqual((refused.status, refused.headers.get("retry-after")), (429, "1"), refused.body)
            self.assertIn(b"too many bodies at once of this client", refused.body)
        for s in clients:
            s.sendall(b"x")
            self.assertRegex(s.recv(65536), b"^HTTP/1.1 (404|429) ")  # who came first is beyond his share, now that others have theirs
            s.close()
        self.assertEqual(self.server.wait_metric("weft_http_body_bytes", 0), 0)
        self.assertEqual(self.server.post("/nowhere", b"x" * size, source="127.0.0.2").status, 404)

    @of_one_thread
    def test_values_have_a_limit(self):
        """Few bytes can be many values: what their tree would take is bounded before it is made, and what no field wants is not kept."""
        for body in (b'{"content":"x","z":[' + b"{}," * 1000000 + b"0]}", b'{"content":"x"' + b"".join(b',"k%x":0' % i for i in range(300000)) + b"}"):
            answer = self.server.post("/tokenize", body)
            self.assertEqual(answer.status, 413, answer.body)
            self.assertIn("too many values", answer.json["error"]["message"])
        answer = self.server.post("/lora-adapters", b"[" + b"{}," * 1000000 + b"0]")
        self.assertEqual(answer.status, 413, answer.body)
        self.assertEqual(self.server.post("/tokenize", b'{"content":"x","z":[' + b"[]," * 50000 + b"0]}").status, 200)

    @of_one_thread
    def test_a_body_is_let_go_when_it_was_read(self):
        """Neither a request that runs nor an answer that nobody reads keeps it; the answer itself counts, and has a deadline of its own."""
        server = self.own("--slow", 1)
        with server.connect() as s, server.connect() as lazy:
            s.sendall(request({"prompt": "[delay 50][loop a]", "n_predict": 2000, "stream": True, "pad": "x" * 1000000}, LLAMA))
            got = b""
            while b"data: " not in got:
                got += s.recv(1000)
            self.assertEqual((server.metric("weft_running"), server.metric("weft_http_body_bytes")), (1, 0))
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            cut = server.metric("weft_http_cut_slow_total")
            lazy.sendall(request({"content": "a" * 30000, "with_pieces": True, "pad": "x" * 500000}, "/tokenize"))
            self.assertTrue(wait_until(lambda: server.metric("weft_http_answer_bytes") > 300000))
            self.assertEqual(server.metric("weft_http_body_bytes"), 0)
            self.assertEqual(server.wait_metric("weft_http_cut_slow_total", cut + 1), cut + 1)  # at 1 KB/s it had a quarter of an hour

    @of_one_thread
    def test_answers_that_nobody_reads(self):
        """Are memory: who has too many of them asks for nothing more until one has gone, and nobody else is refused because of it."""
        server = self.own("--slow", 60)
        with server.connect() as lazy, server.connect() as lazier:
            for s in (lazy, lazier):
                s.sendall(request({"content": "a" * 3_500_000, "with_pieces": True}, "/tokenize"))
            self.assertTrue(wait_until(lambda: server.metric("weft_http_answer_bytes") >= 128 << 20))
            answer = server.post("/tokenize", {"content": "x"})
            self.assertEqual((answer.status, answer.headers["retry-after"]), (429, "1"), answer.body[:300])
            self.assertIn("read it first", answer.json["error"]["message"])
            self.assertEqual(server.post("/tokenize", {"content": "x"}, source="127.0.0.2").status, 200)
        self.assertEqual(server.wait_metric("weft_http_answer_bytes", 0), 0)
        self.assertEqual(server.post("/tokenize", {"content": "x"}).status, 200)

    @of_one_thread
    def test_slow_bodies(self):
        """Time for a body is by its length, not by the longest there may be: who sends it in drops is cut before it is whole."""
        server = self.own("--idle", 1)
        with server.connect() as s:
            s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            with self.assertRaises(OSError):
                for _ in range(999):
                    s.sendall(b"x")
                    time.sleep(0.1)

    def test_bodies_do_not_hold_up_health(self):
        """Who asks without a body waits for none that is being parsed."""
        server, answers = self.own("--workers", 1), []
        body = b'{"content":"x"' + b"".join(b',"k%x":0' % i for i in range(40000)) + b"}"
        flood = [threading.Thread(target=lambda: answers.append(server.post("/tokenize", body))) for _ in range(16)]
        for t in flood:
            t.start()
        while not answers:
            time.sleep(0.001)
        for _ in range(3):
            before = len(answers)
            self.assertEqual(server.get("/health").status, 200)
            self.assertLess(len(answers) - before, 8)
        for t in flood:
            t.join()
        self.assertEqual({a.status for a in answers}, {200})

    def test_slots_on_a_slow_disk_leave_a_worker(self):
        """Of four workers three may wait for the disk, for one address two; who comes meanwhile is answered, and told to come again if he wants the disk
        as well."""
        (server, hold), answers = self.own_held(), []
        server.post(LLAMA, {"prompt": "[say x]", "id_slot": 0})
        open(hold, "w").close()
        def hung(source):
            return lambda: answers.append(server.post("/slots/0?action=save", {"filename": "hung"}, source=source))
        save = self.run_all(6, hung("127.0.0.2"))
        self.assertTrue(wait_until(lambda: len(answers) == 4))
        self.assertEqual([(a.status, a.headers["retry-after"]) for a in answers], [(429, "1")] * 4)
        save += self.run_all(4, hung("127.0.0.3"))
        self.assertTrue(wait_until(lambda: len(answers) == 7))
        self.assertEqual([(a.status, a.headers["retry-after"]) for a in answers[4:]], [(503, "1")] * 3)
        self.assertEqual(server.post("/tokenize", {"content": "x"}).status, 200)
        self.assertEqual(len(answers), 7)
        os.unlink(hold)
        for t in save:
            t.join()
        self.assertEqual([a.status for a in answers[7:]], [200] * 3)

    def test_deadlines_count_from_the_request(self):
        """Also while a grammar waits for others to be compiled, and while it is compiled itself: which takes as long as `hold` is there."""
        (server, hold), held = self.own_held(), {"prompt": "[say x]", "grammar": "root ::= held"}
        open(hold, "w").close()
        flood = self.run_all(40, lambda: server.post(TEXT, held))
        self.assertTrue(wait_until(lambda: server.metric("weft_http_requests") >= 20))
        for path in (TEXT, LLAMA):
            answer = server.post(path, {**held, "timeout_ms": 20})
            self.assertEqual(answer.status, 504, answer.body)
            self.assertIn("before its grammar", answer.json["error"]["message"])
        os.unlink(hold)
        for t in flood:
            t.join()
        open(hold, "w").close()
        self.assertEqual(server.post(TEXT, {**held, "grammar": "root ::= held again", "timeout_ms": 20}).status, 504)
        os.unlink(hold)
        self.assertEqual(server.post(TEXT, held).status, 200)

    @of_one_thread
    def test_bad_heads(self):
        """Heads that a proxy might read otherwise, floods, and rubbish: one refusal, and the connection is closed."""
        server = self.own(*self.options)  # whose answers are counted

        def post(head, body=b"{}"):
            return b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + body
        get = b"GET /health HTTP/1.1\r\n"
        smuggled = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        cases = {
            "CL and TE": (post(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + smuggled), (400,)),
            "TE and CL": (post(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled), (400,)),
            "two CL": (post(b"Content-Length: 2\r\nContent-Length: 40", b"{}" + smuggled), (400,)),
            "two equal CL": (post(b"Content-Length: 2\r\nContent-Length: 2", b"{}" + smuggled), (400,)),
            "CL list": (post(b"Content-Length: 2, 2", b"{}" + smuggled), (400,)),
            "CL +2": (post(b"Content-Length: +2", b"{}" + smuggled), (400,)),
            "CL -1": (post(b"Content-Length: -1", b"{}" + smuggled), (400,)),
            "CL hex": (post(b"Content-Length: 0x2", b"{}" + smuggled), (400,)),
            "CL huge": (post(b"Content-Length: 99999999999999999999999", b"{}"), (413,)),
            "CL empty": (post(b"Content-Length:", b"{}" + smuggled), (400,)),
            "CL behind bare LF": (post(b"X: y\nContent-Length: 2\r\nContent-Length: 40", b"{}" + smuggled), (400,)),
            "TE behind bare LF": (
                post(b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled),
                (400,),
            ),
            "TE behind bare CR": (
                post(b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled),
                (400,),
            ),
            "TE gzip": (post(b"Transfer-Encoding: gzip", b"x"), (400, 501)),
            "TE chunked twice": (
                post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + smuggled),
                (400,),
            ),
            "TE xchunked": (post(b"Transfer-Encoding: xchunked", b"0\r\n\r\n" + smuggled), (400, 501)),
            "TE chunked, identity": (
                post(b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n" + smuggled),
                (400, 501),
            ),
            "chunked in HTTP/1.0": (
                b"POST /tokenize HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
                + smuggled,
                (400,),
            ),
            "target of another host": (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "target of a rebound host": (
                b"GET http://evil.example/health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                (403,),
            ),
            "target of another scheme": (b"GET ftp://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "space before colon": (post(b"Content-Length : 2", b"{}" + smuggled), (400,)),
            "name with a space": (post(b"Bad Name: x\r\nContent-Length: 2"), (400,)),
            "no colon": (post(b"rubbish\r\nContent-Length: 2"), (400,)),
            "control in a value": (post(b"X: a\x01b\r\nContent-Length: 2"), (400,)),
            "compressed": (post(b"Content-Encoding: gzip\r\nContent-Length: 2"), (415,)),
            "body of a GET": (get + b"Host: localhost\r\nContent-Length: 5\r\n\r\nhello" + smuggled, (400,)),
            "chunked GET": (get + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, (400,)),
            "no Host": (get + b"\r\n", (400,)),
            "Host folded away": (b"GET /health HTTP/1.1\r\nX: y\r\n Host: localhost\r\n\r\n", (400,)),
            "two Hosts": (get + b"Host: localhost\r\nHost: evil.example\r\n\r\n", (400,)),
            "Host with a path": (get + b"Host: localhost/x\r\n\r\n", (400,)),
            "Host with a user": (get + b"Host: localhost@evil.example\r\n\r\n", (400,)),
            "rebinding": (get + b"Host: evil.example\r\n\r\n", (403,)),
            "rebinding with port": (get + b"Host: evil.example:%d\r\n\r\n" % server.port, (403,)),
            "rebinding, lookalike": (get + b"Host: localhost.evil.example\r\n\r\n", (403,)),
            "rebinding, 127.": (get + b"Host: 127.evil.example\r\n\r\n", (403,)),
            "rebinding, suffix": (get + b"Host: xlocalhost\r\n\r\n", (403,)),
            "page of another origin": (post(b"Origin: http://evil.example\r\nContent-Length: 2"), (403,)),
            "page of a file": (post(b"Origin: null\r\nContent-Length: 2"), (403,)),
            "many headers": (
                get + b"Host: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(60)) + b"\r\n",
                (431,),
            ),
            "long headers": (get + b"Host: localhost\r\nX: " + b"y" * 20000 + b"\r\n\r\n", (431,)),
            "flood of headers": (get + b"Host: localhost\r\n" + b"X: y\r\n" * 200000, (431,)),
            "flood in one header": (get + b"Host: localhost\r\nX: " + b"y" * 2000000, (431,)),
            "long path": (b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (414,)),
            "no method": (b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "rubbish": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", (400,)),
            "a word": (b"HELLO\r\n\r\n", (400,)),
            "no version": (b"GET /health\r\n\r\n", (400,)),
            "another protocol": (b"GET /health FTP/1.1\r\n\r\n", (400,)),
            "blank in the target": (b"GET /health x HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505,)),
            "HTTP/9": (b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", (505,)),
            "bad chunk": (post(b"Transfer-Encoding: chunked", b"zz\r\n"), (400,)),
            "negative chunk": (post(b"Transfer-Encoding: chunked", b"-5\r\nhello\r\n0\r\n\r\n"), (400,)),
            "huge chunk": (post(b"Transfer-Encoding: chunked", b"ffffffffffffffffff\r\nx"), (413,)),
            "chunk without an end": (post(b"Transfer-Encoding: chunked", b"2\r\n{}xx\r\n0\r\n\r\n"), (400,)),
            "long line of a chunk": (post(b"Transfer-Encoding: chunked", b"2;" + b"x" * 200000), (400,)),
            "rubbish behind the chunks": (
                post(b"Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\nrubbish\r\n\r\n"),
                (400,),
            ),
            "flood behind the chunks": (
                post(b"Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 200000),
                (431,),
            ),
        }
        before = self.responses(server)
        for name, (data, wanted) in cases.items():
            with self.subTest(name):
                out = server.raw(data)
                statuses = [int(s) for s in re.findall(rb"HTTP/1\.[01] (\d+) ", out)]
                self.assertEqual(len(statuses), 1, out[:600])  # what was smuggled is not answered
                self.assertIn(statuses[0], wanted, out[:300])
                self.assertIn(b"\r\nContent-Type: application/json", out)
                error = json.loads(out[out.index(b"\r\n\r\n"):])["error"]
                self.assertEqual((error["code"], set(error)), (statuses[0], {"code", "message", "type"}))
        self.assertTrue(wait_until(lambda: sum(self.responses(server).values()) - sum(before.values()) >= len(cases)))  # it counts when it is sent
        after = self.responses(server)
        gained = {status: n - before.get(status, 0) for status, n in after.items() if n != before.get(status, 0)}
        self.assertEqual((sum(gained.values()), gained[505], gained[431], gained.get(0)), (len(cases), 2, 5, None), gained)
        self.assertEqual(server.get("/health").status, 200)
        out = server.raw(b"GET http://LOCALHOST/health?x=y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 200 "), out[:300])  # a whole address is a target, too

    def responses(self, server):
        """How many answers of each status /metrics counts, but for those of /metrics itself."""
        found, out = re.findall(r'^weft_http_responses_total\{path="(.*?)",status="(\d+)"\} (\d+)$', server.get("/metrics").body.decode(), re.M), {}
        for path, status, n in found:
            if path != "/metrics":
                out[int(status)] = out.get(int(status), 0) + int(n)
        return out

    @of_one_thread
    def test_heads_in_the_dialect_of_the_path(self):
        """Also what the HTTP library refuses, before anybody has looked at the request."""
        head = b"POST /v1/completions?x=y HTTP/1.1\r\nHost: localhost\r\n"
        for data, status in ((head + b"rubbish\r\n\r\n", 400), (head + b"Content-Length: x\r\n\r\n", 400), (head + b"X: y\r\n" * 200000, 431),
                             (head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400)):
            out = self.server.raw(data)
            self.assertTrue(out.startswith(b"HTTP/1.1 %d " % status), out[:300])
            self.assertRegex(out, rb"\r\nX-Request-Id: req-[0-9a-f]{8}-\d+\r\n")
            self.assertEqual(set(json.loads(out[out.index(b"\r\n\r\n"):])["error"]), {"message", "type", "param", "code"})

    @of_one_thread
    def test_what_is_no_request(self):
        """A second one on a connection that is no request is refused, and ends that; who says nothing, or leaves, is told nothing and counts
        as nobody. Nor is anything said behind an answer that ends the connection."""
        server = self.own("--idle", 1)
        get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        for head in (b"", b"Connection: Keep-Alive\r\n"):
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", server.raw(get % head + b"rubbish\r\n\r\n")), [b"200", b"400"])
        for data in (get % b"Connection: x, close\r\n" + b"rubbish\r\n\r\n", get.replace(b"1.1", b"1.0") % b"" + b"rubbish\r\n\r\n", get % b""):
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", server.raw(data)), [b"200"])
        for data in (b"", b"GET /hea"):
            with server.connect() as s:
                s.sendall(data)
        self.assertEqual(server.raw(b""), b"")
        self.assertEqual(server.raw(b"GET /hea"), b"")
        self.assertEqual(server.metric("weft_http_requests_total"), 8)  # /health, what was refused, and the one that asks
        self.assertEqual(server.wait_metric("weft_http_requests", 1), 1)
        self.assertEqual(self.responses(server), {200: 5, 400: 2})

    def test_pipelined(self):
        """Requests one behind the other are answered in order: a body ends where it says."""
        body = b'{"content":"a"}'
        one = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        two = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        out = self.server.raw(one + two)
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", out), [b"200", b"200"])
        self.assertLess(out.index(b'"tokens"'), out.index(b'"status"'))

    def test_head_byte_by_byte(self):
        with self.server.connect() as s:
            for c in b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n":
                s.sendall(bytes([c]))
            self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 "))


@of_one_thread
class Access(Case):
    options = ("--api-key", "correct-horse-battery", "--api-key", "sha256:" + "ab" * 32, "--origin", "https://app.example", "--allow-host", "ai.example")

    def test_keys(self):
        body = {"prompt": "[say ok]"}
        good = {"Authorization": "Bearer correct-horse-battery"}
        self.assertEqual(self.server.post(TEXT, body, headers=good).status, 200)
        self.assertEqual(self.server.post(LLAMA, body, headers={"X-Api-Key": "correct-horse-battery"}).status, 200)
        for key in ("", "correct-horse-batter", "correct-horse-batteryy", "ab" * 32, "sha256:" + "ab" * 32, "CORRECT-HORSE-BATTERY"):
            for path in (TEXT, LLAMA, "/slots/0?action=erase"):
                answer = self.server.post(path, body, headers={"Authorization": "Bearer " + key})
                self.assertEqual(answer.status, 401, key)
                self.assertEqual(answer.json["error"]["type"], "authentication_error")
        for path in ("/v1/models", "/metrics", "/slots", "/props"):
            self.assertEqual(self.server.get(path).status, 401)
            self.assertEqual(self.server.get(path).headers["www-authenticate"], "Bearer")
        self.assertEqual(self.server.get("/health").status, 200)

    def test_all_of_a_hash_counts(self):
        """A key whose hash differs from a key's in one digit, wherever, is none."""
        key = "a-key-of-somebody"
        right = hashlib.sha256(key.encode()).hexdigest()
        near = [right[:i] + ("1" if right[i] == "0" else "0") + right[i + 1:] for i in (0, 1, 31, 32, 62, 63)]
        for hashes, status in ((near, 401), ([*near, right], 200), ([right, *near], 200)):
            server = self.own(*(option for h in hashes for option in ("--api-key", "sha256:" + h)))
            self.assertEqual(server.get("/props", headers={"X-Api-Key": key}).status, status)
            server.stop()

    def test_bodies_want_a_key(self):
        """Nothing is kept of a body whose head has no key that counts; its sender still reads why."""
        key = b"Authorization: Bearer correct-horse-battery\r\n"
        good = {"Authorization": "Bearer correct-horse-battery"}
        def held():
            return float(re.search(rb"^weft_http_body_bytes (\S+)$", self.server.get("/metrics", headers=good).body, re.M).group(1))
        for head, kept in ((b"", 0), (b"X-Api-Key: rubbish-rubbish\r\n", 0), (key, (1 << 20) - 1)):
            for path in (b"/tokenize", b"/nowhere", b"/health"):
                with self.server.connect() as s:
                    s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (path, head, 1 << 20) + b"x" * ((1 << 20) - 1))
                    wait_until(lambda: held() == (kept or -1), 0.02, PATIENCE if kept else 0.2)  # nothing is nothing for a while
                    self.assertEqual(held(), kept)
                    s.sendall(b"x")
                    status = s.recv(65536).split()[1]
                    self.assertEqual(status, b"404" if path == b"/nowhere" else b"405" if path == b"/health" else b"400" if kept else b"401")

    def test_key_files(self):
        """What is read as a key is what stands there as one."""
        def file(text):
            f = tempfile.NamedTemporaryFile("w")
            self.addCleanup(f.close)
            f.write(text)
            f.flush()
            return f.name
        server = self.own("--api-key-file", file("#a-comment\n  # another-one\nkey#with-a-hash # and a comment\nlast-key-of-all"))
        for key, status in (("key#with-a-hash", 200), ("last-key-of-all", 200), ("key", 401), ("a-comment", 401), ("another-one", 401), ("#a-comment", 401)):
            self.assertEqual(server.get("/props", headers={"X-Api-Key": key}).status, status, key)
        for text in ("good-key-here\n# " + "x" * 1021 + "tail-of-the-comment\n", "good-key-here\n\0" + "x" * 1022 + "tail-behind-a-nul\n"):
            p = subprocess.run([*FAKE, "--api-key-file", file(text)], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(p.returncode, 1, p)
            self.assertIn("line 2: longer than 1022 bytes", p.stderr)

    def test_slots_belong_to_their_tenant(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("# keys\nfirst-key-of-two\n  second-key-of-two  # of Bob\n")
            f.flush()
            server = self.own("--api-key-file", f.name)
        first, second = ({"Authorization": "Bearer %s-key-of-two" % who} for who in ("first", "second"))
        self.assertEqual(server.post(LLAMA, {"prompt": "[say abc]"}, headers=first).status, 200)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}, headers=second).status, 400)
        self.assertEqual(server.post("/slots/0?action=erase", {}, headers=second).status, 400)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}, headers=first).status, 200)
        # Nor is another's file found, written over, or put in another's slot.
        self.assertEqual(server.post("/slots/1?action=restore", {"filename": "mine"}, headers=second).status, 404)
        self.assertEqual(server.post(LLAMA, {"prompt": "[say abcdef]", "id_slot": 1}, headers=second).status, 200)
        longer = server.post("/slots/1?action=save", {"filename": "mine"}, headers=second).json["n_saved"]
        shorter = server.post("/slots/2?action=restore", {"filename": "mine"}, headers=first).json["n_restored"]
        self.assertLess(shorter, longer)
        answer = server.post("/slots/0?action=restore", {"filename": "mine"}, headers=second)
        self.assertEqual((answer.status, answer.json["error"]["message"]), (400, "slot 0 holds nothing of yours to restore over; slot 3 may be restored over"))
        self.assertEqual(server.post("/slots/0?action=erase", {}, headers=first).json["n_erased"], shorter)
        self.assertEqual(server.post("/slots/0?action=restore", {"filename": "mine"}, headers=second).json["n_restored"], longer)
        for n, status in ((111, 404), (112, 400)):
            self.assertEqual(server.post("/slots/3?action=restore", {"filename": "x" * n}, headers=first).status, status)

    def test_unix_sockets_have_no_addresses(self):
        """Who comes by a unix socket comes from everywhere: a limit per address is none there."""
        with tempfile.TemporaryDirectory() as folder:
            server = self.own("--unix", folder + "/s", "--per-ip", 2)
            for s in [server.connect() for _ in range(4)]:
                with s:
                    s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 "))
            server.stop()

    def test_sockets_of_others_stay(self):
        """Only what a server that was killed left behind is replaced; at the end only what is still ours is removed."""
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/s"
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                with socket.socket(socket.AF_UNIX, kind) as other:
                    other.bind(path)
                    if kind == socket.SOCK_STREAM:
                        other.listen(0)
                        waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
                        for s in waiting:  # its backlog is full
                            s.setblocking(False)
                            s.connect_ex(path)
                    file = os.stat(path).st_ino
                    ended = subprocess.run([*FAKE, "--unix", path], capture_output=True, text=True, timeout=PATIENCE)
                    self.assertEqual((ended.returncode, "another program's socket" in ended.stderr), (1, True), ended.stderr)
                    self.assertEqual(os.stat(path).st_ino, file)
                    if kind == socket.SOCK_DGRAM:
                        os.unlink(path)
            for s in waiting:
                s.close()
            server = self.own("--unix", path)  # left behind
            os.rename(path, path + ".old")
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(path)
                server.stop()
                self.assertTrue(os.path.exists(path))

    def test_mapped_loopback(self):
        """127.0.0.1 written as an address of IPv6 is loopback all the same: pages that point their name at it stay out."""
        try:
            with socket.create_server(("::ffff:127.0.0.1", 0), family=socket.AF_INET6, dualstack_ipv6=True):
                pass
        except OSError as e:
            self.skipTest(f"no IPv6 here: {e}")
        server = self.own("--host", "::ffff:127.0.0.1")
        for host, status in (("evil.example", 403), ("localhost", 200), ("127.0.0.1:80", 200), ("[::ffff:127.0.0.1]:80", 200)):
            self.assertEqual(server.get("/health", headers={"Host": host}).status, status, host)

    def test_cors(self):
        origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        answer = self.server.ask("OPTIONS", CHAT, headers=origin)
        self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (204, "https://app.example"))
        self.assertIn("Authorization", answer.headers["access-control-allow-headers"])
        for asked, allowed in (
            ("x-stainless-lang, content-type", "x-stainless-lang, content-type"),
            ("a\tb", "Authorization, Content-Type, X-Api-Key"),
            ("x" * 2000, "Authorization, Content-Type, X-Api-Key"),
        ):
            self.assertEqual(
                self.server.ask("OPTIONS", CHAT, headers={**origin, "Access-Control-Request-Headers": asked}).headers[
                    "access-control-allow-headers"
                ],
                allowed,
            )
        read = self.server.get("/health", headers=origin).headers
        self.assertEqual((read["access-control-allow-origin"], read["access-control-expose-headers"]), ("https://app.example", "X-Request-Id, Retry-After"))
        other = self.server.ask("OPTIONS", CHAT, headers={"Origin": "https://evil.example"})
        self.assertEqual(other.status, 403)
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertNotIn("access-control-allow-origin", self.server.get("/health").headers)
        same = self.server.get("/health", headers={"Origin": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(same.status, 200)

    def test_hosts(self):
        for host, status in (
            ("ai.example", 200),
            ("AI.example:80", 200),
            ("localhost:1", 200),
            ("[::1]", 200),
            ("127.3.2.1", 200),
            ("me.localhost", 200),
            ("ai.example.org", 403),
        ):
            self.assertEqual(self.server.get("/health", headers={"Host": host}).status, status, host)

    def test_aliases(self):
        server = self.own("--alias", "gpt-4o", "--alias", "other")
        self.assertEqual([(m["id"], m["aliases"]) for m in server.get("/v1/models").json["data"]], [("gpt-4o", ["other"])])
        self.assertEqual(server.get("/v1/models/other").json["id"], "other")
        self.assertEqual(server.post(TEXT, {"model": "other", "prompt": "x"}).json["model"], "other")
        self.assertEqual(server.post(TEXT, {"prompt": "x"}).json["model"], "gpt-4o")
        self.assertEqual(server.post(TEXT, {"model": "third", "prompt": "x"}).status, 404)

    def test_bad_settings(self):
        for options, words in (
            (("--api-key", "short"), "shorter than 8"),
            (("--api-key", "sha256:xyz"), "64 hexadecimal"),
            (("--api-key-file", "/nonexistent"), "/nonexistent"),
            (("--port", 70000), "port 70000"),
            (("--cert", "x"), "both a certificate and a key"),
            (("--slow", -1), "slow_s -1"),
            (("--host", "no.such.host.invalid"), "no.such.host"),
            (("--unix", "/nonexistent/x.sock"), "/nonexistent/x.sock"),
            (("--unix", "/tmp/" + "x" * 200), "longer than"),
        ):
            p = subprocess.run([*FAKE, *map(str, options)], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(p.returncode, 1, options)
            self.assertIn(words, p.stderr)

    def test_port_taken(self):
        p = subprocess.run([*FAKE, "--port", str(self.server.port)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, 1)
        self.assertIn("in use by another program; take another port", p.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
