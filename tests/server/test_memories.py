# SPDX-License-Identifier: Apache-2.0
"""Feedback teaches the router and becomes memories, each of its own tenant: the arm that is rewarded answers more and more, also after a restart;
memories are listed, added, corrected, deleted, and stand in the prompts of chats that ask for them; without --memories there are none.

usage: test_memories.py build/fake_server"""
import json
import os
import re
import resource
import subprocess
import tempfile
import unittest

from servers import CHAT, FAKE, TEXT, Server, user

KEYS = {"ada": "ada-secret-key", "bob": "bob-secret-key"}


def as_(who):
    return {"Authorization": "Bearer " + KEYS[who]}


class Learned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def serve(self, *more, keys=True, **env):
        named = [x for k in KEYS.values() if keys for x in ("--api-key", k)]
        server = Server([*FAKE, "--learn", os.path.join(self.dir, "learned"), "--log-sync", "1", *named, *more], env={**os.environ, **env})
        self.addCleanup(lambda: server.process.stdout.closed or server.stop())
        return server

    def end(self, server):
        status, err = server.stop()
        self.assertEqual(status, 0, err)

    def ok(self, answer):
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def feedback(self, server, who, body):
        return self.ok(server.post("/v1/feedback", body, headers=as_(who)))


class Router(Learned):
    def config(self):
        path = os.path.join(self.dir, "weft.yaml")
        with open(path, "w") as f:
            json.dump({"presets": {"calm": {"sampling": {"temperature": 0}}, "wild": {"sampling": {"temperature": 1.5}}}}, f)
        return ["--config", path, "--alias", "one", "--route", "one", "--route", "calm", "--route", "wild"]

    def ask(self, server, who, i):
        answer = server.post(TEXT, {"model": "auto", "prompt": f"[say a] question {i % 7}"}, headers=as_(who))
        return answer, self.ok(answer)["model"]

    def test_sees_embeddings(self):
        """With --route-embed a choice is logged with its request's embedding, from which it is made again; what is not kept, and what there is no
        choice about, costs none."""
        server = self.serve(*self.config(), "--route-embed", "1")
        for i in range(3):
            self.ask(server, "ada", i)
        self.ok(server.post(TEXT, {"model": "auto", "prompt": "[say a]", "store": False}, headers=as_("ada")))
        self.ok(server.post(TEXT, {"model": "one", "prompt": "[say a]"}, headers=as_("ada")))
        metrics = server.ask("GET", "/metrics", headers=as_("ada")).body.decode()
        self.assertIn('weft_route_embeddings_total{by="embedding"} 3\n', metrics)
        self.assertIn('weft_route_embeddings_total{by="words"} 0\n', metrics)
        self.end(server)
        seen = self.seen()
        self.assertEqual([max(map(int, x)) for x in seen], [47] * 3, seen)
        for x in seen:  # of length 1, whatever the words are
            self.assertAlmostEqual(sum(x.get(str(i), 0) ** 2 for i in range(32, 48)), 1, 5)
        server = self.serve(*self.config())
        self.ask(server, "ada", 3)
        self.end(server)
        self.assertLess(max(map(int, self.seen()[3])), 32)

    def seen(self):
        """The features in the only router's log."""
        tenants = os.path.join(self.dir, "learned", "tenants")
        with open(os.path.join(tenants, os.listdir(tenants)[0], "route.jsonl"), "rb") as f:
            return [e["x"] for e in map(json.loads, f) if "x" in e]

    def test_learns_from_feedback(self):
        server = self.serve(*self.config(), "--feedback-per-hour", "1000")
        arms = []
        for i in range(60):
            answer, arm = self.ask(server, "ada", i)
            arms.append(arm)
            said = {"reward": 1} if arm == "wild" else {"correction": "no"} if i % 2 else {"thumb": "down"}
            self.feedback(server, "ada", {"request_id": answer.json["id"], **said})
        self.assertEqual(arms[0], "one")
        self.assertGreater(arms[30:].count("wild"), 20)
        self.assertEqual(server.ask("GET", "/metrics", headers=as_("ada")).body.decode().count("weft_route_rewards_total 60\n"), 1)
        # another's router has learned nothing
        for i in range(5):
            answer, arm = self.ask(server, "bob", i)
            self.assertEqual((arm, answer.headers["x-weft-routed"]), ("one", "one;p=1"))
        next_one = [self.ask(server, "ada", i)[0].headers["x-weft-routed"] for i in range(3)]
        self.end(server)
        # its log makes it again: the numbers of choices go on, and what it learned is there
        server = self.serve(*self.config())
        again = [self.ask(server, "ada", i)[1] for i in range(10)]
        self.assertGreater(again.count("wild"), 6, (again, next_one))
        self.assertEqual(self.ask(server, "bob", 0)[1], "one")
        # and with the tenant it goes
        self.ok(server.post("/v1/learn/forget", {}, headers=as_("ada")))
        self.assertEqual(self.ask(server, "ada", 0)[1], "one")
        self.end(server)


    def test_keeps_out_what_is_not_to_be_stored(self):
        server = self.serve(*self.config(), "--feedback-per-hour", "1000")
        for i in range(30):
            answer, arm = self.ask(server, "ada", i)
            self.feedback(server, "ada", {"request_id": answer.json["id"], "reward": int(arm == "wild")})
        tenants = os.path.join(self.dir, "learned", "tenants")
        before = os.listdir(tenants)
        with open(os.path.join(tenants, before[0], "route.jsonl"), "rb") as f:
            log = f.read()
        for who in ("ada", "bob"):
            for path, more in ((TEXT, {"prompt": "[say a]"}), (CHAT, {"messages": [{"role": "user", "content": "[say a]"}]})):
                answer = server.post(path, {"model": "auto", "store": False, **more}, headers=as_(who))
                self.assertEqual((self.ok(answer)["model"], answer.headers["x-weft-routed"]), ("one", "one;p=1"))
        self.assertEqual(os.listdir(tenants), before)
        with open(os.path.join(tenants, before[0], "route.jsonl"), "rb") as f:
            self.assertEqual(f.read(), log)
        self.end(server)


class Memories(Learned):
    def list(self, server, who="ada", status=200):
        answer = server.ask("GET", "/v1/memories", headers=as_(who))
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def put(self, server, status=200, who="ada", **body):
        answer = server.post("/v1/memories", body, headers=as_(who))
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def say(self, server, text, who="ada", **more):
        return self.ok(server.post(CHAT, {"messages": user(text), "memory": True, **more}, headers=as_(who)))["choices"][0]["message"]["content"]

    def test_are_put_and_found(self):
        server = self.serve("--memories", "1")
        self.assertEqual(server.ask("GET", "/props", headers=as_("ada")).json["learns"], {"feedback": True, "memories": True})
        self.assertEqual(self.list(server)["data"], [])
        one = self.put(server, kind="semantic", key="owls", text="[pick wise]")
        self.assertEqual((one["kind"], one["key"], one["text"], one["valid_to_ms"]), ("semantic", "owls", "[pick wise]", 0))
        self.assertEqual(self.say(server, "[say nothing] of owls"), "wise")
        self.assertEqual(self.say(server, "[say nothing] of foxes"), "nothing")
        self.assertEqual(self.say(server, "[say nothing] of owls", memory=False), "nothing")
        self.assertEqual(self.say(server, "[say nothing] of owls", who="bob"), "nothing")
        self.put(server, id=one["id"], kind="semantic", key="owls", text="[pick old]")
        self.assertEqual(self.say(server, "[say nothing] of owls"), "old")
        newer = self.put(server, kind="semantic", key="owls", text="[pick new]")
        self.assertEqual(self.say(server, "[say nothing] of owls"), "new")
        self.assertEqual([bool(m["valid_to_ms"]) for m in self.list(server)["data"]], [True, False])
        self.assertEqual(self.list(server, "bob")["data"], [])
        for number, who, status in ((newer["id"], "bob", 404), (newer["id"], "ada", 200), (newer["id"], "ada", 404), (99, "ada", 404), ("x", "ada", 404)):
            self.assertEqual(server.ask("DELETE", f"/v1/memories/{number}", headers=as_(who)).status, status)
        self.assertEqual(self.say(server, "[say nothing] of owls"), "nothing")
        for body, said in (({"kind": "odd", "text": "x"}, "episodic, semantic or procedural"), ({"kind": "semantic"}, "text"),
                           ({"kind": "semantic", "text": ""}, "1 to 4096"),
                           ({"kind": "semantic", "text": "x", "id": 77}, ""),
                           ({"kind": "semantic", "text": "x", "valid_from_ms": 5, "valid_to_ms": 4}, "before its end")):
            self.assertIn(said, self.put(server, 404 if "id" in body else 400, **body)["error"]["message"])
        self.assertEqual(server.ask("GET", "/v1/memories/1", headers=as_("ada")).status, 405)
        self.end(server)

    def test_those_that_fit_are_taken_and_each_once(self):
        server = self.serve("--memories", "1")
        tokens = lambda **more: self.ok(server.post(CHAT, {"messages": user("owls"), **more}, headers=as_("ada")))["usage"]["prompt_tokens"]
        plain = tokens()
        self.put(server, kind="semantic", text="owls are wise")
        one = tokens(memory=True)
        self.assertGreater(one, plain)
        self.put(server, kind="episodic", text="owls are wise")
        self.assertEqual(tokens(memory=True), one)
        self.put(server, kind="semantic", text="owls are grey")
        two = tokens(memory=True)
        self.assertGreater(two, one)
        n_ctx = server.get("/props", headers=as_("ada")).json["default_generation_settings"]["n_ctx"]
        self.assertEqual(tokens(memory=True, max_tokens=n_ctx - one), one)
        self.assertEqual(tokens(memory=True, max_tokens=n_ctx - one + 1), plain)
        self.end(server)

    def test_of_many_as_many_as_fit_are_found_in_a_few_prompts(self):
        """By halves: one that fits nothing, or one of many, makes no prompt for each."""
        renders = os.path.join(self.dir, "renders")
        server = self.serve("--memories", "1", WEFT_FAKE_RENDERS=renders)

        def tokens(**more):
            open(renders, "w").close()
            answer = self.ok(server.post(CHAT, {"messages": user("owls"), **more}, headers=as_("ada")))
            told.append(answer["choices"][0].get("memories", []))
            return answer["usage"]["prompt_tokens"], os.path.getsize(renders)
        told = []
        sizes = [tokens()[0]]
        for i in range(8):
            self.put(server, kind="semantic", text=f"owls are number {i}")
            sizes.append(tokens(memory=True)[0])
        self.assertEqual(sizes, sorted(set(sizes)))
        self.assertEqual(tokens(memory=True), (sizes[8], 1))
        n_ctx = server.get("/props", headers=as_("ada")).json["default_generation_settings"]["n_ctx"]
        for i, size in enumerate(sizes):
            n, made = tokens(memory=True, max_tokens=n_ctx - size)
            self.assertEqual((n, len(told[-1])), (size, i))
            self.assertLessEqual(made, 5, i)
        self.end(server)

    def test_an_answer_says_which_it_was_given(self):
        """By their ids, in each choice of a whole answer and with the end of each of a stream; of an answer that was given none nothing is said, so
        that it is, but for its id and time, byte for byte what it is without memories."""
        server = self.serve("--memories", "1")
        ids = [self.put(server, kind=kind, text=text)["id"] for kind, text in (("semantic", "owls are wise"), ("semantic", "foxes"), ("episodic", "owls see"))]
        ask = lambda text, **more: server.post(CHAT, {"messages": user(f"[say a] {text}"), "temperature": 0, **more}, headers=as_("ada"))
        events = lambda answer: [json.loads(line[6:]) for line in answer.body.decode().split("\n") if line.startswith("data: {")]
        told = self.ok(ask("owls", memory=True, n=2))["choices"]
        self.assertEqual([c["memories"] for c in told], 2 * [[ids[0], ids[2]]])
        for found in (False, True):
            chunks = [c for e in events(ask("owls" if found else "badgers", memory=True, n=2, stream=True)) for c in e["choices"]]
            ends = [c for c in chunks if c["finish_reason"]]
            self.assertEqual([c.get("memories") for c in ends], 2 * [[ids[0], ids[2]] if found else None])
            self.assertFalse(any("memories" in c for c in chunks if not c["finish_reason"]))
        same = lambda answer: re.sub(rb'"(id|created)":("[^"]*"|[0-9]+)', b"", answer.body)
        for stream in (False, True):
            self.assertEqual(same(ask("badgers", memory=True, stream=stream)), same(ask("badgers", stream=stream)))
            self.assertNotIn(b"memories", ask("owls", stream=stream).body)
        self.end(server)

    def test_are_found_by_embeddings(self):
        """With --memory-embed what is near is found without a common word: texts of the fake engine are near that are as long. Once it was
        embedded, the engine is asked for questions alone; it is of the tenant's own memories, and goes with them."""
        near, far = "[pick wise]", "[pick old] ones"
        question = "[say nothing]".ljust(16 + len(near), "?")

        def rows(server, name):
            rows = server.ask("GET", "/metrics", headers=as_("ada")).body.decode().split("\n")
            return [int(row.split()[-1]) for row in rows if row.startswith(name)]

        def read(server):
            return sum(rows(server, "weft_key_prompt_tokens_total"))

        def embedded(server):
            """Of memories and of questions; those that were asked for are counted by another name."""
            self.assertEqual(rows(server, "weft_embeddings_total"), [0])
            return rows(server, "weft_memory_embeddings_total")
        for how, said in (("0", "nothing"), ("1", "wise")):
            server = self.serve("--memories", "1", "--memory-embed", how)
            if how == "0":
                for text in (near, far):
                    self.put(server, kind="semantic", text=text)
                    self.put(server, who="bob", kind="semantic", text="[pick bob]" + text)
            before = read(server)
            self.assertEqual(self.say(server, question), said)
            first = read(server) - before
            self.assertEqual(self.say(server, question), said)
            again = read(server) - before - first
            self.assertEqual(first - again, len(near) + len(far) + len(question) + 3 if how == "1" else 0)
            self.assertEqual(embedded(server), [2, 1] if how == "1" else [])
            self.assertEqual(self.say(server, question, memory=False), "nothing")
            self.assertNotEqual(self.say(server, question, who="bob"), "wise")
            self.assertEqual(embedded(server), [4, 2] if how == "1" else [])
            if how == "1":
                self.ok(server.post("/v1/learn/forget", {}, headers=as_("ada")))
                self.assertEqual(self.say(server, question), "nothing")
            self.end(server)

    def test_embeddings_want_memories_and_one_model(self):
        for more, said in (((), "there are no memories"), (("--memories", "1", "--learn", os.path.join(self.dir, "x"), "--memory", "1000000000"), "one model")):
            p = subprocess.run([*FAKE, "--memory-embed", "1", *more], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(said, p.stderr)

    def test_have_a_rate(self):
        server = self.serve("--memories", "1", "--feedback-per-hour", "3")
        first = self.put(server, kind="semantic", key="mill", text="Mira has it.")
        self.put(server, id=first["id"], kind="semantic", key="mill", text="Mara has it.")
        self.put(server, kind="semantic", key="pond", text="Mira has it.")
        self.put(server, status=429, kind="semantic", key="barn", text="Mira has it.")
        self.put(server, status=429, id=first["id"], kind="semantic", key="mill", text="Mira has it.")
        self.put(server, who="bob", kind="semantic", key="barn", text="Bob has it.")
        self.end(server)

    def test_come_of_feedback(self):
        server = self.serve("--memories", "1")
        answer = self.ok(server.post(CHAT, {"messages": user("[say mill] Where is Mira?")}, headers=as_("ada")))
        self.feedback(server, "ada", {"request_id": answer["id"], "correction": "In the inn."})
        self.assertEqual([(m["kind"], m["key"], m["text"], m["source"]) for m in self.list(server)["data"]],
                         [("semantic", "[say mill] Where is Mira?", "In the inn.", answer["id"])])
        self.assertEqual(self.list(server, "bob")["data"], [])
        self.ok(server.post("/v1/learn/forget", {}, headers=as_("ada")))
        self.assertEqual(self.list(server)["data"], [])
        self.end(server)

    def test_what_is_said_again_makes_good_what_was_missed(self):
        """Of feedback whose memory was not made (its server was killed in between, here: it remembered nothing) one is made when it is sent again,
        and once: not when it was deleted meanwhile."""
        server = self.serve()
        a = self.ok(server.post(CHAT, {"messages": user("Where do owls live?")}, headers=as_("ada")))
        said = {"request_id": a["id"], "correction": "In barns.", "idempotency_key": "k"}
        self.assertFalse(self.feedback(server, "ada", said)["repeated"])
        self.end(server)
        server = self.serve("--memories", "1")
        for _ in range(2):
            self.assertTrue(self.feedback(server, "ada", said)["repeated"])
            made, = self.list(server)["data"]
            self.assertEqual((made["text"], made["source"]), ("In barns.", a["id"]))
        self.assertEqual(server.ask("DELETE", f"/v1/memories/{made['id']}", headers=as_("ada")).status, 200)
        for again in (said, {**said, "idempotency_key": None}):
            self.assertTrue(self.feedback(server, "ada", again)["repeated"])
            self.assertEqual(self.list(server)["data"], [])
        self.end(server)

    def test_a_full_disk_takes_none(self):
        server = self.serve("--memories", "1")
        self.put(server, kind="semantic", text="before")
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        said = self.put(server, 503, kind="semantic", text="while it is full")["error"]["message"]
        self.assertIn(os.path.join(self.dir, "learned", "learn.db"), said)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.put(server, kind="semantic", text="after")
        self.assertEqual([m["text"] for m in self.list(server)["data"]], ["before", "after"])
        self.end(server)

    def test_want_a_folder(self):
        p = subprocess.run([*FAKE, "--memories", "1"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        self.assertNotEqual(p.returncode, 0)
        self.assertIn("--learn DIR", p.stderr)

    def test_are_off(self):
        server = self.serve()
        for answer in (server.ask("GET", "/v1/memories", headers=as_("ada")),
                       server.post("/v1/memories", {"kind": "semantic", "text": "x"}, headers=as_("ada")),
                       server.post(CHAT, {"messages": user("[say a]"), "memory": True}, headers=as_("ada"))):
            self.assertEqual(answer.status, 501, answer.body)
        self.end(server)


if __name__ == "__main__":
    unittest.main(verbosity=1)
