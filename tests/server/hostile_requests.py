# SPDX-License-Identifier: Apache-2.0
"""Requests that are refused, by the field and in the dialect of their path; and those that are slow and hold up nobody else."""
import os
import threading
import time

from servers import CHAT, LLAMA, TEXT, of_one_thread, user, wait_until
from bad_requests import Facts, bad_requests


class Wrong:
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


class Slow:
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
