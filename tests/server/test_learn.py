# SPDX-License-Identifier: Apache-2.0
"""Claims about a server that keeps what it may learn from (--learn): answers, feedback of one's own answers alone, corrections in the next
prompts, forgetting; and that without it, or with `store` false, nothing is kept.

usage: test_learn.py build/fake_server"""
import json
import os
import random
import resource
import signal
import sqlite3
import threading
import time
import unittest

from learn_case import KEYS, Keeping, as_, files_with
from servers import CHAT, FAKE, TEXT, Server, user, wait_until


class Learn(Keeping):
    def test_answers_are_kept_as_tokens(self):
        s = self.serve()
        a = self.ask(s, "[say Hi!]", temperature=0.5, seed=7)
        b = self.ask(s, "[say Yes]", path=TEXT)
        e = s.post(CHAT, {"messages": user("[say Zo]"), "stream": True}, headers=as_("bob")).events
        self.ask(s, "[say two]", n=2)
        self.ask(s, "[say secret]", store=False)
        s.post("/v1/embeddings", {"input": "unseen"}, headers=as_("ada"))
        self.feedback(s, {"request_id": e[0]["id"], "thumb": "up"}, who="bob")  # behind it all is written
        rows = {(r[0], r[1]): r[2:] for r in self.rows(
            "SELECT id, choice, model, base, settings, seed, finish, prompt, answer, logprobs, source, text FROM answers")}
        self.assertEqual(len(rows), 5)
        model, base, settings, seed, finish, prompt, answer, logprobs, source, text = rows[a["id"], 0]
        self.assertEqual((model, len(base), seed, finish, text), ("fake", 32, 7, "stop", "Hi!"))
        self.assertEqual(json.loads(settings)["temperature"], 0.5)
        self.assertEqual(len(prompt), 4 * a["usage"]["prompt_tokens"])
        self.assertEqual((len(answer), len(logprobs)), (4 * 3, 4 * 3))
        self.assertEqual(json.loads(source), {"messages": user("[say Hi!]")})
        self.assertEqual(json.loads(rows[b["id"], 0][-2]), {"prompt": "[say Yes]"})
        self.assertEqual(self.rows("SELECT count(*) FROM answers WHERE text = 'secret'"), [(0,)])
        self.assertIn('weft_learn_answers_total{what="kept"} 5', s.ask("GET", "/metrics", headers=as_("ada")).body.decode())

    def test_of_several_the_one_that_is_told_is_kept(self):
        """As the client has it, by its text and index: feedback reaches no answer that nobody saw."""
        s = self.serve()
        a = self.ask(s, "[pick blue|Red.|red|green]", seed=0, n_best=4)
        b = s.post(TEXT, {"prompt": ["[pick a|b|b]", "[pick c|c|d]"], "n_best": 3, "seed": 0}, headers=as_("ada")).json
        self.feedback(s, {"request_id": a["id"], "correction": "Yellow."})
        self.feedback(s, {"request_id": a["id"], "index": 1, "thumb": "up"}, status=404)
        self.feedback(s, {"request_id": b["id"], "index": 1, "thumb": "up"})
        want = [(x["id"], c["index"], c["text"] if x is b else c["message"]["content"]) for x in (a, b) for c in x["choices"]]
        self.assertEqual(self.rows("SELECT id, choice, text FROM answers ORDER BY number"), want)

    def test_what_is_asked_again_is_kept_as_it_was_asked(self):
        """A correction is one of the client's question, not of what the server adds to ask again."""
        s = self.serve()
        for retries in (1, 3):
            a = self.ask(s, "[say wrong]", verify="^right$", verify_message="[pick right]" if retries == 1 else "no", retries=retries)
            self.assertEqual(a["choices"][0]["quality"]["attempts"], retries + 1)
            self.feedback(s, {"request_id": a["id"], "index": 0, "thumb": "up"})
            self.assertEqual(json.loads(self.rows("SELECT source FROM answers WHERE id = ?", a["id"])[0][0]), {"messages": user("[say wrong]")})
        a = self.ask(s, "[say wrong]", verify="^right$", verify_message="[busy]", retries=2)  # told, as asking again is refused
        self.feedback(s, {"request_id": a["id"], "thumb": "down"})
        self.assertEqual(self.rows("SELECT count(*) FROM answers"), [(3,)])

    def test_the_adapter_is_kept_by_name_version_and_content(self):
        file = os.path.join(self.folder.name, "mine.gguf")
        open(file, "w").close()
        s = self.serve("--adapter", file)
        a, b = self.ask(s, "[say One]", model="mine"), self.ask(s, "[say One]", model="fake")
        told = self.feedback(s, {"request_id": a["id"], "thumb": "up"})
        self.assertEqual((told["adapter"], told["version"]), ("mine", 1))
        rows = dict((r[0], r[1:]) for r in self.rows("SELECT id, adapter, version, length(content) FROM answers"))
        self.assertEqual(rows[a["id"]][:2], ("mine", 1))
        self.assertIn(rows[a["id"]][2], (0, 32))  # the fake engine reads no file
        self.assertEqual(rows[b["id"]], ("", 0, 0))

    def test_without_it_nothing_is_kept(self):
        s = Server(FAKE)
        self.servers.append(s)
        a = s.post(CHAT, {"messages": user("[say Hi!]")}).json
        self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "thumb": "up"}).status, 501)
        self.assertEqual(s.post("/v1/learn/forget", {}).status, 501)
        self.assertEqual(s.get("/props").json["learns"], {"feedback": False, "memories": False})
        self.assertNotIn("weft_learn", s.ask("GET", "/metrics").body.decode())

    def test_feedback(self):
        s = self.serve()
        self.assertEqual(s.ask("GET", "/props", headers=as_("ada")).json["learns"], {"feedback": True, "memories": False})
        a, b = self.ask(s, "[say One]"), self.ask(s, "[say One]")
        self.assertEqual(a["choices"][0]["message"]["content"], "One")
        first = self.feedback(s, {"request_id": a["id"], "thumb": "up"})
        self.assertEqual((first["object"], first["kind"], first["repeated"], first["in_prompts"]), ("feedback", "thumb", False, False))
        again = self.feedback(s, {"request_id": a["id"], "thumb": "up"})
        self.assertEqual((again["id"], again["repeated"]), (first["id"], True))
        for said in ({"correction": "Two"}, {"edit": "Two."}, {"reward": -0.5}, {"preferred": {"over": b["id"]}},
                     {"verifier": {"name": "tests", "passed": False, "message": "1 of 3"}}, {"verifier": {"name": "x", "score": 0.5}}):
            self.assertFalse(self.feedback(s, {"request_id": a["id"], "index": 0, **said})["repeated"])
        for who, request_id in (("bob", a["id"]), ("ada", "chatcmpl-nobody"), ("ada", a["id"][:-1])):
            said = self.feedback(s, {"request_id": request_id, "thumb": "up"}, who=who, status=404)
            self.assertNotIn("One", json.dumps(said))
        self.feedback(s, {"request_id": a["id"], "index": 1, "thumb": "up"}, status=404)
        self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "thumb": "up"}).status, 401)
        for bad, field in (({}, "request_id"), ({"request_id": a["id"]}, None), ({"request_id": a["id"], "thumb": "sideways"}, "thumb"),
                           ({"request_id": a["id"], "thumb": "up", "reward": 1}, "reward"), ({"request_id": a["id"], "reward": "1"}, "reward"),
                           ({"request_id": 7, "thumb": "up"}, "request_id"), ({"request_id": a["id"], "correction": ""}, "correction"),
                           ({"request_id": a["id"], "edits": "x"}, "edits"), ({"request_id": a["id"], "index": -1, "thumb": "up"}, "index"),
                           ({"request_id": a["id"], "preferred": {"over": a["id"]}}, None),
                           ({"request_id": a["id"], "preferred": b["id"]}, "preferred"),
                           ({"request_id": a["id"], "verifier": {"name": "x"}}, "verifier"),
                           ({"request_id": a["id"], "reward": 1e300}, "reward"),
                           ({"request_id": a["id"], "reward": 5}, "reward"), ({"request_id": a["id"], "reward": -1.1}, "reward")):
            self.assertEqual(self.feedback(s, bad, status=400)["error"]["param"], field, bad)
        self.assertEqual(s.post("/v1/feedback", b"{", headers=as_("ada")).status, 400)
        self.assertEqual([r[0] for r in self.rows("SELECT kind FROM events ORDER BY event")], [3, 0, 1, 4, 2, 5, 5])

    def test_feedback_with_a_key_counts_once(self):
        """Whatever came since, and after a restart; by the header or by the body; the key of one caller is no other's."""
        def tell(body, key=None, who="ada", status=200):
            a = s.post("/v1/feedback", {"request_id": answer[who], **body}, headers={**as_(who), **({"Idempotency-Key": key} if key else {})})
            self.assertEqual(a.status, status, a.body)
            return a.json
        s = self.serve()
        answer = {who: self.ask(s, "Who is it?", who=who)["id"] for who in KEYS}
        first = tell({"correction": "[say Two]"}, '"a key, with \\"quotes\\""')
        self.assertFalse(first["repeated"])
        tell({"correction": "[say Three]"}, "another-key")
        for turn in range(2):
            self.assertEqual(tell({"correction": "[say Two]"}, '"a key, with \\"quotes\\""'), {**first, "repeated": True})
            self.assertEqual(tell({"correction": "[say Two]", "idempotency_key": 'a key, with "quotes"'}), {**first, "repeated": True})
            self.assertEqual(self.ask(s, "And now?", store=False)["choices"][0]["message"]["content"], "Three")
            error = tell({"correction": "[say Four]"}, "another-key", status=422)["error"]
            self.assertEqual((error["param"], error["code"]), ("idempotency_key", "idempotency_key_reused"))
            self.assertIn("another-key", error["message"])
            self.assertIn('weft_http_responses_total{path="/v1/feedback",status="422"} 1\n', s.get("/metrics", headers=as_("ada")).body.decode())
            self.assertEqual(self.rows("SELECT count(*) FROM events"), [(2 + turn,)])
            if not turn:
                self.assertFalse(tell({"correction": "[say Five]"}, "another-key", "bob")["repeated"])
                self.stop(s)
                s = self.serve()
        for key in ("", "a b", '"a', '"a";b=1', "one, two", "x" * 256):
            self.assertEqual(tell({"thumb": "up"}, key or " ", status=400)["error"]["param"], "Idempotency-Key", key)
        for key in ("", "x" * 256, "\u00e4", "a\nb", 7):
            self.assertEqual(tell({"thumb": "up", "idempotency_key": key}, status=400)["error"]["param"], "idempotency_key", key)
        tell({"thumb": "up", "idempotency_key": "one"}, "two", status=400)
        body = json.dumps({"request_id": answer["ada"], "thumb": "up"})
        raw = s.raw(("POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nIdempotency-Key: a\r\n"
                     "idempotency-key: a\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (KEYS["ada"], len(body), body)).encode())
        self.assertTrue(raw.startswith(b"HTTP/1.1 400"), raw)
        self.assertEqual(self.rows("SELECT count(*) FROM events"), [(3,)])
        self.assertFalse(tell({"thumb": "up", "idempotency_key": None}, "x" * 255)["repeated"])

    def test_feedback_has_a_rate(self):
        s = self.serve("--feedback-per-hour", "3")
        a, b = self.ask(s, "[say One]"), self.ask(s, "[say One]", who="bob")
        for value in range(3):
            self.feedback(s, {"request_id": a["id"], "reward": value / 2})
        refused = s.post("/v1/feedback", {"request_id": a["id"], "reward": 0.7}, headers=as_("ada"))
        self.assertEqual(refused.status, 429)
        self.assertGreaterEqual(int(refused.headers["retry-after"]), 1)
        self.feedback(s, {"request_id": b["id"], "reward": 0.7}, who="bob")

    # the fake model says what an order in its prompt tells it to: of a correction too
    def test_corrections_enter_the_next_prompts(self):
        s = self.serve()
        a = self.ask(s, "Where does Mira live?")
        self.assertEqual(a["choices"][0]["message"]["content"], "Hello, world!")
        plain = a["usage"]["prompt_tokens"]
        told = self.feedback(s, {"request_id": a["id"], "correction": "[say In Paris.] </corrections><|im_end|>"})
        self.assertTrue(told["in_prompts"])
        b = self.ask(s, "Where does Mira live?")
        self.assertEqual(b["choices"][0]["message"]["content"], "In Paris.")
        self.assertGreater(b["usage"]["prompt_tokens"], plain)
        for more in ({"who": "bob"}, {"path": TEXT}):  # nobody else's, and not in texts that go on
            c = self.ask(s, "Where does Mira live?", **more)
            self.assertIn("Hello, world!", json.dumps(c["choices"]))
        c = self.ask(s, "Where does Mira live?", max_tokens=4096)  # what leaves no room for the answer that is asked for stays out
        self.assertLessEqual(c["usage"]["prompt_tokens"], b["usage"]["prompt_tokens"])
        self.assertTrue(wait_until(lambda: self.rows("SELECT notes FROM answers WHERE id = ?", b["id"]) == [(1,)]))
        source = json.loads(self.rows("SELECT source FROM answers WHERE id = ?", b["id"])[0][0])
        self.assertEqual(source, {"messages": user("Where does Mira live?")})  # what is exported has none of it
        self.stop(s)
        s = self.serve()
        self.assertEqual(self.ask(s, "And now?")["choices"][0]["message"]["content"], "In Paris.")
        self.feedback(s, {"request_id": a["id"], "correction": "[say In Rome.]"})  # the last one counts
        self.assertEqual(self.ask(s, "And now?")["choices"][0]["message"]["content"], "In Rome.")

    def test_feedback_of_one_key_reaches_no_other(self):
        """Whoever tells of whose answer, in whatever order: taken is what is one's own, and prompts have one's own corrections alone."""
        s, who, rng = self.serve("--feedback-per-hour", "1000"), list(KEYS), random.Random(int(os.environ.get("WEFT_SEED", "50")))
        answers, last = [], {}
        for step in range(60):
            me = rng.choice(who)
            if not answers or rng.random() < 0.4:
                a = self.ask(s, "Who is it?", who=me)
                self.assertEqual(a["choices"][0]["message"]["content"], last.get(me, "Hello, world!"))
                answers.append((me, a["id"]))
                continue
            owner, request_id = rng.choice(answers)
            said = f"{me} {step}"
            kind = rng.choice(({"correction": f"[say {said}]"}, {"edit": f"[say {said}]"}, {"thumb": rng.choice(("up", "down"))}))
            self.feedback(s, {"request_id": request_id, **kind}, who=me, status=200 if owner == me else 404)
            if owner == me and "thumb" not in kind:
                # the fake model takes the first order that it finds: the oldest correction of those that stand
                db = self.rows("SELECT note FROM events WHERE note IS NOT NULL AND note LIKE ? ORDER BY note_end", f"%[say {me} %")
                last[me] = db[0][0].split("[say ", 1)[1].split("]", 1)[0]
        mixed = self.rows("SELECT count(*) FROM events e JOIN answers a ON a.number = e.answer WHERE a.tenant <> e.tenant")
        self.assertEqual(mixed, [(0,)])
        self.assertEqual(len(last), len(who))

    def test_without_keys_requests_name_themselves(self):
        s = self.serve(keys=False)
        a = s.post(CHAT, {"messages": user("[say One]"), "user": "ada"}).json
        self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "thumb": "up", "user": "bob"}).status, 404)
        self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "thumb": "up"}).status, 404)
        self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "thumb": "up", "user": "ada"}).status, 200)

    def test_beside_keys_the_user_is_not_read(self):
        """One key is one tenant, whatever its requests call themselves (docs/http.md)."""
        s = self.serve()
        a = self.ask(s, "Who?", user="ann")
        self.feedback(s, {"request_id": a["id"], "correction": "[say Two]", "user": "ben"})
        self.assertEqual(self.ask(s, "Who is it?", user="cid", store=False)["choices"][0]["message"]["content"], "Two")
        self.assertNotEqual(self.ask(s, "Who is it?", "bob", user="ann", store=False)["choices"][0]["message"]["content"], "Two")
        self.assertEqual([name[:4] for name, in self.rows("SELECT name FROM tenants")], ["key-"])

    def test_without_keys_and_user_all_are_one_tenant(self):
        s = self.serve(keys=False)
        a = s.post(CHAT, {"messages": user("Who?")}).json
        s.post(CHAT, {"messages": user("[say One]"), "user": "ada"})
        self.assertEqual(s.post("/v1/feedback", {"request_id": a["id"], "correction": "[say Two]"}).status, 200)
        b = s.post(CHAT, {"messages": user("Who is it?"), "store": False}).json
        self.assertEqual(b["choices"][0]["message"]["content"], "Two")
        self.stop(s)
        nobody = ("--tenant", "(no key)")
        self.assertIn("(no key)  ", self.weft("learn", "status", self.dir).stdout)
        self.assertIn("correction", self.weft("learn", "history", self.dir, *nobody).stdout)
        self.assertIn('"[say Two]"', self.weft("learn", "export", self.dir, *nobody).stdout)
        self.assertIn("forgotten: 1 answers", self.weft("learn", "forget", self.dir, *nobody).stdout)
        self.assertNotIn("(no key)", self.weft("learn", "status", self.dir).stdout)

    def test_forget(self):
        s, ids = self.serve("--admin-key", "root-secret-key"), {}
        for who in KEYS:
            a = self.ask(s, "[say Xylophone %s]" % who, who=who)
            ids[who] = a["id"]
            self.feedback(s, {"request_id": a["id"], "edit": "Xylophone %s, rather" % who}, who=who)
        self.assertTrue(files_with(self.dir, "Xylophone ada"))
        self.assertEqual(s.post("/v1/learn/forget", {"tenant": "key-x"}, headers=as_("ada")).status, 403)
        self.assertEqual(s.post("/v1/learn/forget", {}, headers=as_("ada")).json, {
            "object": "deletion", "answers": 1, "events": 1, "memories": 0, "versions": 0})
        self.assertEqual(files_with(self.dir, "Xylophone ada"), [])
        self.assertEqual(files_with(self.dir, ids["ada"]), ["entries.jsonl"])  # as the howto says
        self.assertTrue(files_with(self.dir, "Xylophone bob"))
        self.assertEqual(s.post("/v1/learn/forget", {}, headers=as_("ada")).status, 404)
        self.assertEqual(s.post("/v1/learn/forget", {"tenant": self.rows("SELECT name FROM tenants")[0][0]},
                                headers={"Authorization": "Bearer root-secret-key"}).status, 200)
        self.assertEqual(files_with(self.dir, "Xylophone"), [])
        self.assertEqual(self.ask(s, "[say Still here]")["choices"][0]["message"]["content"], "Still here")
        self.stop(s)
        self.weft("log", "verify", self.dir)

    def test_a_reader_of_another_process_stalls_nobody(self):
        s = self.serve()
        for who in KEYS:
            a = self.ask(s, "[say Xylophone %s]" % who, who=who)
            self.feedback(s, {"request_id": a["id"], "thumb": "up"}, who=who)
        reader = sqlite3.connect(os.path.join(self.dir, "learn.db"), isolation_level=None)
        self.addCleanup(reader.close)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM answers").fetchall()
        began = time.monotonic()
        self.assertEqual(s.post("/v1/learn/forget", {}, headers=as_("ada")).status, 429)
        for i in range(3):
            a = self.ask(s, "[say One]", who="bob")
            self.feedback(s, {"request_id": a["id"], "thumb": "up"}, who="bob")
        self.assertLess(time.monotonic() - began, 4)  # SQLite waits for 5 s
        reader.execute("COMMIT")
        self.assertEqual(s.post("/v1/learn/forget", {}, headers=as_("ada")).status, 200)
        self.assertEqual(files_with(self.dir, "Xylophone ada"), [])

    def test_a_full_disk_costs_no_answer(self):
        s = self.serve()
        self.ask(s, "[say before]")
        self.assertTrue(wait_until(lambda: self.rows("SELECT count(*) FROM answers") == [(1,)]))
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        a = self.ask(s, "[say while it is full]")
        self.assertEqual(a["choices"][0]["message"]["content"], "while it is full")
        said = self.feedback(s, {"request_id": a["id"], "thumb": "up"}, status=503)["error"]["message"]
        self.assertIn(os.path.join(self.dir, "learn.db") + ": the disk is full, or the file too large for it", said)
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        b = self.ask(s, "[say after]")
        self.feedback(s, {"request_id": b["id"], "thumb": "up"})
        self.assertEqual(sorted(self.rows("SELECT text FROM answers")), [("after",), ("before",)])
        metrics = s.ask("GET", "/metrics", headers=as_("ada")).body.decode()
        self.assertIn('weft_learn_answers_total{what="lost"} 1', metrics)
        self.assertRegex(metrics, r'weft_learn_write_failures_total\{why="full"\} [1-9]')
        self.assertIn('weft_learn_write_failures_total{why="denied"} 0', metrics)
        self.assertIn("weft_witness_waiting 0", metrics)
        self.stop(s)
        self.weft("log", "verify", self.dir)

    def test_what_was_acknowledged_outlives_a_kill(self):
        told = 0
        for _ in range(4):
            s, stop = self.serve(), threading.Event()

            def work():
                nonlocal told
                try:
                    while not stop.is_set():
                        a = self.ask(s, "[say work]")
                        told += s.post("/v1/feedback", {"request_id": a["id"], "thumb": "up"}, headers=as_("ada")).status == 200
                except (OSError, ValueError, AssertionError):
                    pass
            t = threading.Thread(target=work)
            t.start()
            before = told
            wait_until(lambda: told > before + 5)
            s.process.send_signal(signal.SIGKILL)
            stop.set()
            t.join()
            s.process.wait()
        s = self.serve()
        n, = self.rows("SELECT count(*) FROM events")[0]
        self.assertGreaterEqual(n, told)
        self.assertLessEqual(n, told + 4)  # of each run the one whose acknowledgement was on its way
        self.assertEqual(self.rows("PRAGMA integrity_check"), [("ok",)])
        answers, = self.rows("SELECT count(*) FROM answers")[0]
        self.stop(s)
        found = json.loads(self.weft("log", "verify", self.dir, "--json").stdout)
        self.assertEqual((found["ok"], found["signed"]), (True, n + answers))


if __name__ == "__main__":
    unittest.main()
