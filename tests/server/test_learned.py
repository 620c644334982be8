# SPDX-License-Identifier: Apache-2.0
"""Claims about a server that learns by itself (--learn-share) over a scripted model, with the loop and the store as they are: what a version
is called and who may use it, that requests keep theirs, going back, and forgetting.

usage: test_learned.py build/fake_server"""
import hashlib
import json
import os
import random
import re
import threading
import time
import unittest

from learned_case import ADMIN, KEYS, Learning, as_
from servers import CHAT, FAKE, LLAMA, TEXT, Server, user, wait_until


class Learned(Learning):
    def test_a_correction_becomes_a_version_that_answers(self):
        s = self.serve()
        self.assertEqual(self.used(s), "-")
        empty = self.show(s)
        self.assertEqual((empty["object"], empty["on"], empty["current"], empty["waiting"], empty["versions"]), ("learning", True, 0, 0, []))
        first = self.learn(s, "Mira.")
        self.assertEqual((first["version"], first["what"], first["parent"], first["reason"], first["kl"]), (1, "published", 0, "", 0.004))
        self.assertRegex(first["content"], "^[0-9a-f]{32}$")
        self.assertLess(abs(first["time_ms"] / 1000 - time.time()), 3600)
        shown = self.show(s)
        name = shown["name"]
        self.assertRegex(name, r"^learned-\d+$")
        self.assertEqual((shown["current"], shown["counts"]["events"], shown["counts"]["versions"]), (1, 1, 1))
        second = self.learn(s, "Mira Bell.")
        self.assertEqual((second["version"], second["parent"]), (2, 1))
        self.assertNotEqual(first["content"], second["content"])
        for path in (TEXT, CHAT, LLAMA):
            for named in ({}, {"model": "fake"}):
                a = self.ask(s, path=path, **named)
                self.assertEqual(a["model"], "fake@2")
                self.assertIn(name + "@2", json.dumps(a))
            for model, version in (("fake@1", 1), ("fake@2", 2), (name + "@1", 1)):
                a = self.ask(s, path=path, model=model)
                self.assertEqual(a["model"], model)
                self.assertIn(f"{name}@{version}=", json.dumps(a))
            self.assertIn(name + "@2=", json.dumps(self.ask(s, path=path, model=name)))  # the name alone: the current one
            self.ask(s, who="bob", path=path, model=name, status=404)
            a = self.ask(s, path=path, model="fake@0")
            self.assertEqual(a["model"], "fake@0")
            self.assertNotIn("@1", json.dumps(a))
        chunks = s.post(CHAT, {"messages": user("[say Hi!]"), "stream": True}, headers=as_("ada")).events
        self.assertEqual({c["model"] for c in chunks if c != "[DONE]"}, {"fake@2"})
        told = s.post("/v1/feedback", {"request_id": chunks[0]["id"], "thumb": "up"}, headers=as_("ada")).json
        self.assertEqual((told["adapter"], told["version"]), (name + "@2", 2))
        for model in ("fake@3", name + "@3", name + "@01", "fake@", "fake@x", "nope@1", "learned-99@1", "fake@1@1"):
            self.assertEqual(self.ask(s, model=model, status=404)["error"]["code"], "model_not_found", model)
        models = {m["id"]: m for m in s.get("/v1/models", headers=as_("ada")).json["data"]}
        self.assertEqual(sorted(models), ["fake", "fake@2"])
        self.assertEqual((models["fake@2"]["learned"], models["fake@2"]["version"], models["fake@2"]["parent"]), (True, 2, "fake"))
        self.assertEqual(s.get("/v1/models/fake@1", headers=as_("ada")).json["version"], 1)
        base = s.get("/v1/models/fake@0", headers=as_("ada")).json
        self.assertEqual((base["id"], base["version"], base["content"]), ("fake@0", 0, ""))
        self.assertEqual(s.get("/v1/models/fake@9", headers=as_("ada")).status, 404)
        self.assertEqual(self.metric(s, 'versions_total{result="published"}'), 2)
        self.assertEqual(self.metric(s, "corrections_waiting"), 0)
        metrics = s.get("/metrics", headers=as_("ada")).body.decode()
        self.assertIn('adapter="(learned)"', metrics)
        self.assertNotIn("learned-", metrics)
        s.post("/v1/embeddings", {"input": "x"}, headers=as_("ada"))
        self.stop(s)

    def test_what_a_request_asks_for_goes_before_what_was_learned(self):
        file = os.path.join(self.folder.name, "mine.gguf")
        open(file, "w").close()
        s = self.serve("--adapter", file)
        self.learn(s, "Mira.")
        name = self.show(s)["name"] + "@1"
        self.assertEqual(self.used(s, model="mine"), "mine")
        self.assertEqual(self.used(s, lora=[{"id": 0, "scale": 0.5}]), "mine=0.5;")
        self.assertEqual(self.used(s, lora=[]), "-")
        listed = {a["name"]: a for a in s.get("/lora-adapters", headers=as_("ada")).json}
        self.assertEqual(sorted(listed), [name, "mine"])
        self.assertEqual(self.used(s, lora=[{"id": listed[name]["id"], "scale": 1}]), name + "=1;")
        self.assertEqual(s.post("/lora-adapters", [{"id": listed[name]["id"], "scale": 1}], headers=ADMIN).status, 400)  # for all?
        s.post("/lora-adapters", [{"id": 0, "scale": 0.25}], headers=ADMIN)
        self.assertEqual((self.used(s), self.used(s, model="fake")), ("mine=0.25;", name))  # set for those that name no model
        self.stop(s)

    def test_versions_are_nobody_elses(self):
        """Whoever asks for whose version, in whatever way: it is not there, and no answer, list or message tells that it is."""
        inside = os.path.join(self.folder.name, "inside")
        os.mkdir(inside)
        open(os.path.join(inside, "a.gguf"), "w").close()
        s, rng = self.serve("--adapter-dir", inside), random.Random(int(os.environ.get("WEFT_SEED", "50")))
        names, told = {}, {}
        for who in ("ada", "bob"):
            told[who] = self.learn(s, who + " says so", who)["content"]
            names[who] = self.show(s, who)["name"]
        ids = {a["name"]: a["id"] for a in s.get("/lora-adapters", headers=ADMIN).json}
        self.assertEqual(sorted(ids), sorted(n + "@1" for n in names.values()))
        self.assertNotEqual(told["ada"], told["bob"])
        for _ in range(80):
            owner, other = rng.sample(sorted(KEYS), 2)
            if owner == "eve":
                self.assertEqual((self.show(s, "eve")["versions"], self.used(s, "eve")), ([], "-"))
                continue
            full = f"{names[owner]}@{rng.randrange(3)}"
            path = rng.choice((TEXT, CHAT, LLAMA))
            if rng.random() < 0.4:
                a = self.ask(s, who=other, path=path, model=rng.choice((full, "fake:" + full)), status=404)
                self.assertNotIn(names[owner], json.dumps(a).replace(full, ""))
            elif rng.random() < 0.5:
                a = self.ask(s, who=other, path=path, lora=[{"id": ids[names[owner] + "@1"], "scale": 1}], status=400)
                self.assertIn("which no adapter has", a["error"]["message"])
            else:
                way = rng.choice(("/v1/models", "/v1/models/" + full, "/lora-adapters", "/v1/learn", "/metrics", "?tenant"))
                a = s.get("/v1/learn?tenant=key-x" if way == "?tenant" else way, headers=as_(other))
                self.assertEqual(a.status, 404 if full in way else 403 if way == "?tenant" else 200)
                self.assertNotIn(names[owner], a.body.decode().replace(full, "") if full in way else a.body.decode())
                self.assertNotIn(told[owner], a.body.decode())
            self.assertIn(self.used(s, owner), (names[owner] + "@1",))
            self.assertEqual(self.used(s, other), "-" if other == "eve" else names[other] + "@1")
        for call, body in (("/v1/unload_lora_adapter", {"lora_name": names["ada"] + "@1"}),):
            for headers in (as_("ada"), as_("bob"), ADMIN):
                self.assertEqual(s.post(call, body, headers=headers).status, 404)
        for lora_name in ("x@1", names["ada"] + "@9"):
            a = s.post("/v1/load_lora_adapter", {"lora_name": lora_name, "lora_path": "a.gguf"}, headers=as_("ada"))
            self.assertEqual((a.status, a.json["error"]["param"]), (400, "lora_name"))
        self.assertEqual(s.post("/v1/learn/rollback", {"tenant": "key-x"}, headers=as_("ada")).status, 403)
        self.stop(s)

    def test_without_keys_requests_name_themselves(self):
        s = self.serve(keys=False)
        self.learn(s, "One", None, user="ada")
        name = self.show(s, None, "?user=ada")["name"]
        self.assertEqual(self.used(s, None, user="ada"), name + "@1")
        self.assertEqual(self.used(s, None, user="ada", model="fake@1"), name + "@1")
        self.assertEqual((self.used(s, None, user="bob"), self.used(s, None)), ("-", "-"))
        for who in ({"user": "bob"}, {}):
            for model in (name + "@1", "fake@1"):
                self.ask(s, who=None, model=model, status=404, **who)
        self.assertEqual(s.get("/lora-adapters").json, [])
        self.assertEqual([m["id"] for m in s.get("/v1/models?user=ada").json["data"]], ["fake", "fake@1"])
        self.assertEqual([m["id"] for m in s.get("/v1/models").json["data"]], ["fake"])
        self.assertEqual(s.post("/v1/learn/rollback", {"user": "ada"}).json, {"object": "learning.rollback", "name": name, "current": 0})
        self.assertEqual(self.used(s, None, user="ada"), "-")
        self.stop(s)

    def test_any_name_that_is_the_models_has_versions(self):
        s = self.serve("--alias", "gpt", "--alias", "*")
        self.learn(s, "One")
        name = self.show(s)["name"] + "@1"
        for model, used, shown in (("gpt", name, "gpt@1"), ("anything", name, "gpt@1"), ("gpt@1", name, "gpt@1"), ("gpt@0", "-", "gpt@0"),
                                   ("llama@7", name, "gpt@1")):
            a = self.ask(s, model=model)
            self.assertEqual((a["choices"][0]["text"].replace("=nan;", ""), a["model"]), (used, shown), model)
        for model in ("gpt@2", "learned-99@1"):
            self.ask(s, model=model, status=404)
        self.stop(s)

    def test_a_lineage_has_names_wherever_models_have(self):
        """learned-N@0 is the base alone as MODEL@0 is, learned-N the current version, also where there are several models; and a version that is
        not there is refused with those that are."""
        other = os.path.join(self.folder.name, "other")
        open(other, "w").close()
        for more in ((), ("--model", "other=" + other)):
            s = self.serve(*more)
            if not more:
                for text in ("One", "[reject kl]", "Two"):
                    self.learn(s, text)
            name, eve, ada = self.show(s)["name"], self.show(s, "eve")["name"], as_("ada")
            for model, used in ((name, name + "@3"), (name + "@1", name + "@1"), (name + "@0", "-"), ("fake@0", "-"), ("fake", name + "@3")):
                self.assertEqual(self.used(s, model=model), used, model)
                shown = s.get("/v1/models/" + model, headers=ada)
                self.assertEqual((shown.status, shown.json["id"]), (200, model), shown.body)
                self.assertEqual(shown.json.get("version"), None if model == "fake" else 0 if used == "-" else int(used[-1]))
            for model in (name, name + "@0", name + "@1"):  # nobody else's
                self.ask(s, who="bob", model=model, status=404)
                self.assertEqual(s.get("/v1/models/" + model, headers=as_("bob")).status, 404)
            for of in ("fake", name):
                said = f"of its versions there are '{of}@3', '{of}@1' and '{of}@0', the base alone"
                for absent in (of + "@2", of + "@17"):
                    self.assertIn(said, self.ask(s, model=absent, status=404)["error"]["message"])
                    self.assertIn(said, s.get("/v1/models/" + absent, headers=ada).json["error"]["message"])
            said = self.ask(s, who="eve", model="fake@2", status=404)["error"]["message"]
            self.assertIn("of its versions there is 'fake@0', the base alone", said)
            self.assertNotIn("versions", self.ask(s, who="eve", model=name + "@2", status=404)["error"]["message"])
            s.post("/v1/learn/rollback", {"to": 0}, headers=ada)
            self.assertEqual((self.used(s, model=name), s.get("/v1/models/" + name, headers=ada).json["version"]), ("-", 0))
            s.post("/v1/learn/rollback", {"to": 3}, headers=ada)
            self.stop(s)

    def test_the_gate_refuses_and_says_why(self):
        s = self.serve()
        self.learn(s, "Mira.")
        refused = self.learn(s, "[reject kl]")
        self.assertEqual((refused["version"], refused["what"], refused["reason"], refused["content"]), (2, "rejected", "kl", ""))
        self.assertEqual(self.show(s)["current"], 1)
        self.ask(s, model="fake@2", status=404)
        self.tell(s, "[fail]")
        self.assertTrue(wait_until(lambda: self.metric(s, 'versions_total{result="failed"}') == 1))
        self.assertEqual(self.metric(s, 'versions_total{result="kl"}'), 1)
        self.assertEqual(self.metric(s, 'versions_total{result="norm"}'), 0)
        self.assertEqual(self.learn(s, "Mira Bell.")["version"], 3)
        self.assertIn("@2 was refused by the gate: kl", self.stop(s))

    def test_going_back(self):
        s = self.serve()
        said = s.post("/v1/learn/rollback", {}, headers=as_("ada"))
        self.assertEqual(said.status, 404)
        for text in ("One", "Two", "Three"):
            self.learn(s, text)
        name = self.show(s)["name"]

        def back(status=200, **body):
            a = s.post("/v1/learn/rollback", body, headers=as_("ada"))
            self.assertEqual(a.status, status, a.body)
            return a.json.get("current")
        self.assertEqual((back(), self.used(s)), (2, name + "@2"))
        self.assertEqual((back(to=3), self.used(s)), (3, name + "@3"))
        self.assertEqual((back(to=1), self.used(s)), (1, name + "@1"))
        n = len(self.show(s)["versions"])
        self.assertEqual((back(to=1), len(self.show(s)["versions"])), (1, n))  # nothing happened
        self.assertEqual((back(to=0), self.used(s)), (0, "-"))
        self.assertEqual(s.get("/v1/models", headers=as_("ada")).json["data"][-1]["id"], "fake")
        for bad in (-1, "1", 1.5, True):
            back(400, to=bad)
        back(404, to=9)
        error = s.post("/v1/learn/rollback", {"to": 9}, headers=as_("ada")).json["error"]
        self.assertEqual(error["param"], "to")
        self.assertIn("no version 9 that was published; there are 3, 2, 1 and 0, the base alone", error["message"])
        back(409)  # the base is before nothing
        self.assertEqual(self.ask(s, model="fake@3")["model"], "fake@3")
        self.assertEqual(self.learn(s, "Four")["parent"], 0)
        self.assertEqual([v["what"] for v in self.show(s)["versions"]][:5], ["published"] + 4 * ["rolled_back"])
        self.assertEqual(self.metric(s, 'versions_total{result="rolled_back"}'), 4)
        root = {"tenant": self.tenant_of(s, "ada"), "to": 2}
        self.assertEqual(s.post("/v1/learn/rollback", root, headers=ADMIN).json["current"], 2)
        self.stop(s)

    def test_what_is_shown_is_what_requests_get(self):
        """While a row is in the store already and nobody is given what it says, the history waits, and answers do not; what it shows then as
        published, gone back to or forgotten is so."""
        s = self.serve()
        self.learn(s, "One")
        name = self.show(s)["name"]
        row, there = self.hold + ".row", self.hold + ".there"
        for change, before, after in ((lambda: self.tell(s, "Two"), 1, 2), (lambda: s.post("/v1/learn/rollback", {"to": 1}, headers=as_("ada")), 2, 1)):
            open(row, "w").close()
            threads, shown = [threading.Thread(target=change)], []
            threads[0].start()
            self.assertTrue(wait_until(lambda: os.path.exists(there)))
            threads.append(threading.Thread(target=lambda: shown.append((self.show(s), self.used(s)))))
            threads[1].start()
            for _ in range(20):  # who does not wait is seen by then
                self.assertEqual(self.used(s), f"{name}@{before}")
            os.remove(row)
            for t in threads:
                t.join()
            os.remove(there)
            (told, used), = shown
            self.assertEqual((told["versions"][0]["version"], told["current"], used), (after, after, f"{name}@{after}"))
        self.stop(s)

    def tenant_of(self, s, who):
        return "key-" + hashlib.sha256(KEYS[who].encode()).hexdigest()[:12]

    def test_a_request_keeps_the_version_that_it_began_with(self):
        s = self.serve()
        for delay in (100, 400, 1600, 6400):  # until the next version comes while the request runs
            first, answers = self.learn(s, f"One {delay}")["version"], []
            name = self.show(s)["name"]
            asking = threading.Thread(target=lambda: answers.append(self.ask(s, f"[adapters][delay {delay}]")))
            asking.start()
            self.assertTrue(wait_until(lambda: "weft_running 1" in s.get("/metrics", headers=ADMIN).body.decode()))
            self.assertEqual(self.learn(s, f"Two {delay}")["version"], first + 1)
            self.assertEqual(self.used(s), f"{name}@{first + 1}")
            meanwhile = not answers
            asking.join()
            self.assertEqual((answers[0]["model"], answers[0]["choices"][0]["text"]), (f"fake@{first}", f"{name}@{first}=nan;"))
            if meanwhile:
                break
        self.assertTrue(meanwhile)
        self.stop(s)

    def in_engine(self, s):
        return sorted(int(a["name"].split("@")[1]) for a in s.get("/lora-adapters", headers=ADMIN).json)

    def test_versions_that_nobody_uses_leave_the_engine(self):
        """However many were published; each answers as it did when it is asked for again. What a request runs with stays."""
        s, answers = self.serve(), []
        for i in range(1, 13):
            self.learn(s, f"Mira {i}.")
            self.assertEqual(self.in_engine(s), [i])
        name = self.show(s)["name"]
        for i in (1, 5, 5, 11):
            self.assertEqual(self.used(s, model=f"fake@{i}"), f"{name}@{i}")
            self.assertEqual(self.in_engine(s), [i, 12])
        asking = threading.Thread(target=lambda: answers.append(self.ask(s, "[adapters][delay 200]", model="fake@3")))
        asking.start()
        self.assertTrue(wait_until(lambda: "weft_running 1" in s.get("/metrics", headers=ADMIN).body.decode()))
        self.assertTrue(self.used(s, model=f"fake@{s.post('/v1/learn/rollback', {'to': 2}, headers=as_('ada')).json['current']}"))
        self.assertIn(self.in_engine(s), ([2, 3],) if not answers else ([2], [2, 3]))
        asking.join()
        self.assertEqual(answers[0]["choices"][0]["text"], name + "@3=nan;")
        self.learn(s, "Mira 13.")
        self.assertEqual(self.in_engine(s), [13])
        self.learn(s, "Bell.", "bob")
        self.learn(s, "Bell", "bob")
        self.used(s, "bob", model="fake@1")
        self.used(s, model="fake@4")  # not for it does another's go
        self.assertEqual(self.in_engine(s), [1, 2, 4, 13])
        s.post("/v1/learn/rollback", {"to": 0}, headers=as_("ada"))
        self.assertEqual(self.in_engine(s), [1, 2])
        self.assertEqual(self.used(s, model="fake@13"), name + "@13")
        self.stop(s)

    def test_earlier_versions_of_many_are_few_in_the_engine(self):
        s, users = self.serve("--feedback-per-hour", "100000", keys=False), [f"user{i}" for i in range(36)]
        for text in ("One", "Two"):
            for u in users:
                self.tell(s, text, None, user=u)
        for u in users:
            self.assertTrue(wait_until(lambda: self.show(s, None, "?user=" + u)["current"] == 2))
        n = lambda: int(re.search(r"^weft_adapters (\d+)", s.get("/metrics").body.decode(), re.M)[1])
        self.assertEqual(n(), len(users))
        for u in users[:20]:  # who has gone back has none
            s.post("/v1/learn/rollback", {"user": u, "to": 0})
        self.assertEqual(n(), len(users) - 20)
        for u in users:
            self.assertRegex(self.used(s, None, user=u, model="fake@1"), "@1$")
        self.assertLessEqual(n(), len(users) - 20 + 33)  # with the one that was just asked for
        self.stop(s)

    def test_without_a_share_it_waits_until_nothing_runs(self):
        s, answers = self.serve(share="0"), []
        a = self.ask(s, "Who is it?", "bob")
        asking = threading.Thread(target=lambda: answers.append(self.ask(s, "[adapters][delay 100]")))
        asking.start()
        runs = lambda: "weft_running 1" in s.get("/metrics", headers=ADMIN).body.decode()
        self.assertTrue(wait_until(runs))
        s.post("/v1/feedback", {"request_id": a["id"], "correction": "Mira."}, headers=as_("bob"))
        self.assertTrue(wait_until(lambda: answers or self.show(s, "bob")["waiting"] == 1))
        self.assertTrue(wait_until(lambda: self.show(s, "bob")["current"]))
        self.assertFalse(runs())
        asking.join()
        self.stop(s)

    def test_what_waits_is_told_and_given_up(self):
        """By forgetting its tenant, and by the server's end, at once; another process learns it then."""
        s = self.serve()
        self.holding()
        self.tell(s, "One", "ada")
        self.tell(s, "Two", "ada")
        self.tell(s, "Three", "bob")
        self.assertTrue(wait_until(lambda: (self.show(s)["waiting"], self.show(s, "bob")["waiting"]) == (2, 1)))
        self.assertEqual(self.metric(s, "corrections_waiting"), 3)
        self.assertEqual(self.used(s), "-")  # answers wait for nothing of it
        self.assertEqual(s.post("/v1/learn/forget", {}, headers=as_("ada")).json["events"], 2)
        self.assertEqual((self.show(s)["waiting"], self.show(s)["versions"], self.show(s, "bob")["waiting"]), (0, [], 1))
        began = time.monotonic()
        self.assertNotIn("learning failed", self.stop(s))
        self.assertLess(time.monotonic() - began, 60)
        os.remove(self.hold)
        s = self.serve()
        self.assertTrue(wait_until(lambda: self.show(s, "bob")["current"] == 1))
        self.assertEqual(self.show(s)["versions"], [])
        self.stop(s)

    def test_forgetting_takes_versions_and_files(self):
        s = self.serve()
        self.learn(s, "One", "ada")
        self.learn(s, "Two", "bob")
        names = {who: self.show(s, who)["name"] for who in ("ada", "bob")}
        had = s.post("/v1/learn/forget", {}, headers=as_("ada")).json
        self.assertEqual((had["object"], had["versions"]), ("deletion", 1))
        self.assertEqual((self.used(s), self.used(s, "bob")), ("-", names["bob"] + "@1"))
        self.ask(s, model=names["ada"] + "@1", status=404)
        self.assertEqual([a["name"] for a in s.get("/lora-adapters", headers=ADMIN).json], [names["bob"] + "@1"])
        files = [f for _, _, fs in os.walk(os.path.join(self.dir, "tenants")) for f in fs]
        self.assertEqual(files, [names["bob"] + "@1.gguf"])
        again = self.learn(s, "Three", "ada")  # from nothing, and under another name
        self.assertEqual((again["version"], again["parent"]), (1, 0))
        self.assertNotEqual(self.show(s)["name"], names["ada"])
        self.assertEqual(self.used(s), self.show(s)["name"] + "@1")
        self.stop(s)

    def test_learning_anew(self):
        s = self.serve()
        self.assertEqual(s.post("/v1/learn/consolidate", {}, headers=as_("ada")).status, 404)
        self.learn(s, "One")
        self.learn(s, "[kl 0.01] Two")
        a = s.post("/v1/learn/consolidate", None, headers=as_("ada"))
        self.assertEqual((a.status, a.json["object"]), (202, "learning.consolidate"))
        self.assertTrue(wait_until(lambda: self.show(s)["current"] == 3))
        last = self.show(s)["versions"][0]
        self.assertEqual((last["parent"], last["last_event"] - last["first_event"]), (0, 1))
        self.assertEqual((last["by"], last["why"]), ("retrained", "by kl: retrained; current"))
        self.assertNotIn("why", self.show(s)["versions"][1])
        self.stop(s)

    def test_whom_a_body_means_is_not_guessed(self):
        s = self.serve()
        self.learn(s, "One")
        for call in ("forget", "rollback", "consolidate"):
            for body, headers in (([], as_("ada")), ({"user": 5}, as_("ada")), ({"tenant": ["x"]}, ADMIN), ({"tenant": False}, ADMIN)):
                self.assertEqual(s.post("/v1/learn/" + call, body, headers=headers).status, 400, (call, body))
        self.assertEqual(self.show(s)["counts"]["versions"], 1)
        self.stop(s)

    def test_an_unknown_word_is_refused_and_changes_nothing(self):
        """Of every call about what is kept: a member or an argument that is not known, one that is given twice, or two that differ, are 400 by
        name; an argument that is known means what the member means."""
        s = self.serve("--memories", "1", keys=False)
        for who in ({}, {"user": "ann"}):
            self.learn(s, "One", None, **(who or {"user": "bob"}))
            a = s.post(TEXT, {"prompt": "Who is it?", **who})
            told = {"request_id": a.json["id"], "thumb": "up"}
            s.post("/v1/memories" + ("?user=ann" if who else ""), {"kind": "semantic", "text": "kept"})
        memory = {"kind": "semantic", "text": "more"}
        all_of = lambda: [s.get(path + who).json for path in ("/v1/learn", "/v1/memories") for who in ("", "?user=ann", "?user=bob")]
        before = all_of()
        calls = {"/v1/learn/forget": {}, "/v1/learn/rollback": {"to": 0}, "/v1/learn/consolidate": {}, "/v1/feedback": told, "/v1/memories": memory}
        for path, body in calls.items():
            for bad in ({"tennant": "x"}, {"too": 0}, {"usr": "ann"}, {"teacher": "x"}):
                a = s.post(path, {**body, **bad})
                self.assertEqual((a.status, a.json["error"]["param"]), (400, *bad), (path, bad, a.body))
            for bad, name in (("usr=ann", "usr"), ("to=0", "to"), ("x", "x"), ("user=ann&user=bob", "user"), ("user=ann&usr=ann", "usr")):
                a = s.post(f"{path}?{bad}", body)
                self.assertEqual((a.status, a.json["error"]["param"]), (400, name), (path, bad, a.body))
            if path != "/v1/memories":
                a = s.post(path + "?user=bob", {**body, "user": "ann"})
                self.assertEqual((a.status, a.json["error"]["param"]), (400, "user"), (path, a.body))
        for path in ("/v1/learn", "/v1/memories"):
            self.assertEqual(s.get(path + "?usr=ann").status, 400)
        self.assertEqual(s.ask("DELETE", f"/v1/memories/{before[3]['data'][0]['id']}?usr=ann").status, 400)
        said = s.post("/v1/learn/forget", {"tennant": "x"}).json["error"]["message"]
        self.assertIn("did you mean 'tenant'?", said)
        self.assertIn("did you mean 'to'?", s.post("/v1/learn/rollback", {"too": 0}).json["error"]["message"])
        self.assertEqual(all_of(), before)
        # the query's is the body's
        self.assertEqual(s.post("/v1/feedback?user=ann", told).status, 200)
        self.assertEqual(s.post("/v1/learn/rollback?user=ann", {"to": 0, "user": "ann"}).json["current"], 0)
        self.assertEqual(s.post("/v1/learn/forget?user=ann", {}).json["versions"], 2)
        self.assertEqual((s.get("/v1/memories?user=ann").json["data"], s.get("/v1/learn?user=ann").json["counts"]["answers"]), ([], 0))
        for path in ("/v1/learn", "/v1/memories"):
            i = 0 if path == "/v1/learn" else 3
            self.assertEqual([s.get(path + who).json for who in ("", "?user=bob")], [before[i], before[i + 2]])
        self.stop(s)

    def test_an_admin_names_another_by_the_query(self):
        s = self.serve()
        self.learn(s, "One")
        tenant = "key-" + hashlib.sha256(KEYS["ada"].encode()).hexdigest()[:12]
        self.assertEqual(s.post("/v1/learn/rollback?tenant=" + tenant, {"to": 0}, headers=as_("bob")).status, 403)
        self.assertEqual(s.post("/v1/learn/rollback?tenant=" + tenant, {"tenant": "key-x"}, headers=ADMIN).status, 400)
        self.assertEqual(s.post("/v1/learn/rollback?tenant=" + tenant, {"to": 0}, headers=ADMIN).json["current"], 0)
        self.assertEqual(s.post("/v1/learn/forget?tenant=" + tenant, None, headers=ADMIN).json["versions"], 2)
        self.assertEqual(self.show(s)["versions"], [])
        self.ask(s, who="bob")
        bob = self.tenant_of(s, "bob")
        self.assertTrue(wait_until(lambda: self.show(s, "bob")["counts"]["answers"]))
        self.assertEqual(s.get("/v1/learn?tenant=" + bob, headers=ADMIN).json["counts"]["answers"], 1)
        for absent in ("key-x", tenant, "(no%20key)", "y" * 70):
            a = s.get("/v1/learn?tenant=" + absent, headers=ADMIN)
            self.assertEqual((a.status, a.json["error"]["param"]), (404, "tenant"), a.body)
            if len(absent) < 64:
                self.assertIn(f"there is '{bob}'", a.json["error"]["message"])
        self.assertEqual(s.get("/v1/learn", headers=ADMIN).status, 200)  # who asks for itself needs not be known
        self.stop(s)
        s = self.serve(keys=False)
        self.ask(s, who=None)
        self.assertTrue(wait_until(lambda: self.show(s, None)["counts"]["answers"]))
        self.stop(s)
        s = self.serve()
        self.assertEqual(s.get("/v1/learn?tenant=(no%20key)", headers=ADMIN).json["counts"]["answers"], 1)
        self.assertIn(f"there are '(no key)', '{bob}'", s.get("/v1/learn?tenant=key-x", headers=ADMIN).json["error"]["message"])
        self.stop(s)

    def test_the_base_alone_is_asked_without_corrections(self):
        s = self.serve()
        tokens = lambda **more: self.ask(s, "Who is it?", path=CHAT, **more)["usage"]["prompt_tokens"]
        plain = tokens(model="fake")
        self.learn(s, "Mira.")
        self.assertEqual([tokens(model="fake@0", store=store) for store in (True, False)], [plain] * 2)
        self.assertEqual(tokens(model=self.show(s)["name"] + "@0"), plain)
        self.assertGreater(tokens(model="fake"), plain)
        self.assertGreater(tokens(model="fake@1"), plain)
        self.stop(s)

    def test_learning_anew_waits_once(self):
        s = self.serve()
        self.learn(s, "One")
        self.holding()
        for _ in range(5):
            a = s.post("/v1/learn/consolidate", {}, headers=as_("ada"))
            self.assertEqual(a.status, 202)
            self.assertLessEqual(a.json["waiting"], 2)  # one in work, and one after it
        os.remove(self.hold)
        self.stop(s)

    def test_all_at_once(self):
        """Corrections, questions, going back and forgetting of several callers together: everybody's answers are of their own versions."""
        s, end = self.serve("--feedback-per-hour", "100000"), time.monotonic() + 1.5
        faults, names = [], {who: set() for who in KEYS}

        def work(who, seed):
            rng = random.Random(seed)
            while time.monotonic() < end:
                way = rng.random()
                if way < 0.4:
                    a = s.post(TEXT, {"prompt": "[adapters]", "max_tokens": 200, "model": rng.choice(("fake", "fake@0"))}, headers=as_(who))
                    if a.status != 200:
                        faults.append((who, a.status, a.body))
                    else:
                        names[who].add(a.json["choices"][0]["text"].split("@")[0])
                elif way < 0.7:
                    a = s.post(TEXT, {"prompt": "Who?"}, headers=as_(who))
                    s.post("/v1/feedback", {"request_id": a.json["id"], "correction": f"{who} {rng.random()}"}, headers=as_(who))
                elif way < 0.9:
                    s.post("/v1/learn/rollback", {}, headers=as_(who))
                elif way < 0.97:
                    s.get("/v1/learn", headers=as_(who))
                else:
                    s.post("/v1/learn/forget", {}, headers=as_(who))
        threads = [threading.Thread(target=work, args=(who, 7 * i + k)) for i, who in enumerate(KEYS) for k in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(faults, [])
        for who in KEYS:
            for other in KEYS:
                if who < other:
                    self.assertLessEqual(names[who] & names[other], {"-"})
        self.stop(s)

    def test_forgetting_at_once_leaves_nothing_in_the_engine(self):
        """Calls to forget one caller, while versions of it come: whichever they find is gone."""
        s = self.serve("--feedback-per-hour", "100000")

        def forget():
            s.post("/v1/learn/forget", {}, headers=as_("ada"))
        for _ in range(200):
            time.sleep(0.002)  # what began in the millisecond of forgetting is not kept
            self.tell(s, "Mira.")
            threads = [threading.Thread(target=forget) for _ in range(2)]
            for t in threads:
                t.start()
            a = s.post(TEXT, {"prompt": "Who?"}, headers=as_("ada"))
            s.post("/v1/feedback", {"request_id": a.json["id"], "correction": "Bell."}, headers=as_("ada"))
            for t in threads:
                t.join()
            forget()
        self.assertEqual(s.get("/lora-adapters", headers=ADMIN).json, [])
        self.stop(s)

    def test_without_it_nothing_is_learned(self):
        self.servers.append(s := Server(FAKE + ["--learn", self.dir]))
        for method, path in (("GET", "/v1/learn"), ("POST", "/v1/learn/rollback"), ("POST", "/v1/learn/consolidate")):
            a = s.ask(method, path, None if method == "GET" else {})
            self.assertEqual(a.status, 501)
            self.assertIn("--learn-share", a.json["error"]["message"])
        self.ask(s, who=None, model="fake@0", status=404)
        self.assertNotIn("weft_learn_versions", s.get("/metrics").body.decode())
        self.stop(s)

    def test_what_cannot_be(self):
        model = os.path.join(self.folder.name, "m.gguf")
        open(model, "w").close()
        for options, words in ((["--learn-share", "0.5"], "learn_dir"), (["--learn", self.dir, "--learn-share", "1.5"], "from 0 to 1"),
                               (["--learn", self.dir, "--learn-share", "0.5", "--without-model", "1", "--model", "m=" + model], "own model")):
            with self.assertRaisesRegex(RuntimeError, words):
                Server(FAKE + options)

    def test_learning_is_of_the_servers_memory(self):
        """What it takes, and what its adapters may, counts as the model's, and is refused where that is more than there is."""
        def reserved(*more):
            s = Server(FAKE + ["--memory", "160000000", *more])
            found = re.search(r"^weft_memory_reserved_bytes (\S+)$", s.get("/metrics").body.decode(), re.M)
            self.stop(s)
            return float(found[1])
        learns = ["--learn", self.dir, "--learn-share", "0.5"]
        self.assertEqual(reserved(*learns) - reserved(), 7000000 + 160000000 // 16)  # of the double; a 16th for adapters
        with self.assertRaisesRegex(RuntimeError, "learning takes 7.0 and its adapters 0.4: more than the 6.4 MB of --memory.*weft learn teach"):
            Server(FAKE + ["--memory", "6400000", *learns])

    def test_answers_are_what_the_document_says(self):
        s = self.serve()
        self.learn(s, "One")
        self.learn(s, "[reject kl]")
        for method, path, body in (("get", "/v1/learn", None), ("post", "/v1/learn/rollback", {}), ("post", "/v1/learn/rollback", {"to": 7}),
                                   ("post", "/v1/learn/rollback", {"too": 7}), ("post", "/v1/learn/consolidate", {}), ("get", "/v1/learn", None),
                                   ("post", "/v1/learn/forget", {}), ("get", "/v1/models", None)):
            self.is_as_told(method, path, s.ask(method.upper(), path, body, headers=as_("ada")))
        self.learn(s, "One", "bob")
        told = [s.post("/v1/learn/rollback", {"to": i % 2}, headers=as_("bob")) for i in range(61)]
        self.assertEqual([a.status for a in told], [200] * 60 + [429])
        self.is_as_told("post", "/v1/learn/rollback", told[-1])
        self.stop(s)


if __name__ == "__main__":
    unittest.main()
