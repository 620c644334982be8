# SPDX-License-Identifier: Apache-2.0
"""Claims about what a server learned when it is started again: all of it is known after a kill, also of learning anew and its figures, the same
again gives the same, what was learned over other weights is no version of these, and a file that is gone costs no answers.

usage: test_learned_restarts.py build/fake_server"""
import json
import os
import resource
import signal
import time
import unittest

from learned_case import ADMIN, Learning, as_
from servers import CHAT, LLAMA, TEXT, of_one_thread, wait_until


class Restarts(Learning):
    def test_another_process_knows_all_of_it(self):
        """After a kill: the same history and the same version, which the engine gets when it is asked for."""
        s = self.serve()
        for text in ("One", "Two", "[reject kl]", "Three"):
            self.learn(s, text)
        self.learn(s, "Four", "bob")
        s.post("/v1/learn/rollback", {"to": 2}, headers=as_("ada"))
        before = {who: self.show(s, who) for who in ("ada", "bob")}
        s.process.send_signal(signal.SIGKILL)
        s.kill()
        s = self.serve()
        self.assertEqual({who: self.show(s, who) for who in ("ada", "bob")}, before)
        self.assertEqual(s.get("/lora-adapters", headers=ADMIN).json, [])
        name = before["ada"]["name"]
        a = self.ask(s)
        self.assertEqual((a["model"], a["choices"][0]["text"]), ("fake@2", name + "@2=nan;"))
        self.assertEqual(self.used(s, model="fake@4"), name + "@4")
        self.ask(s, model="fake@3", status=404)  # it was refused
        self.assertEqual(self.learn(s, "Five")["parent"], 2)
        self.stop(s)

    def test_what_was_learned_over_another_model_is_no_version_of_this(self):
        """The weights were changed: who has versions of the old is answered, and learns from the base; with the old ones all is as it was."""
        s = self.serve()
        self.learn(s, "One")
        self.learn(s, "Two")
        self.learn(s, "[reject kl]")
        for to in (1, 2):
            self.assertEqual(s.post("/v1/learn/rollback", {"to": to}, headers=as_("ada")).json["current"], to)
        before = self.show(s)
        self.assertNotIn("other_model", json.dumps(before))
        self.stop(s)
        s = self.serve(WEFT_FAKE_BASE="f" * 32)
        self.assertEqual((self.used(s), self.show(s)["current"]), ("-", 0))
        self.ask(s, model="fake@2", status=404)
        self.assertEqual([m["id"] for m in s.get("/v1/models", headers=as_("ada")).json["data"]], ["fake"])
        new = self.learn(s, "Three")
        self.assertEqual((new["version"], new["parent"]), (4, 0))
        rows = [(v["version"], v["what"], v.get("other_model")) for v in self.show(s)["versions"]]
        self.assertEqual(rows, [(4, "published", None)] + [(v["version"], v["what"], True) for v in before["versions"]])
        self.is_as_told("get", "/v1/learn", s.get("/v1/learn", headers=as_("ada")))
        self.assertEqual(self.used(s), before["name"] + "@4")
        self.assertEqual(s.post("/v1/learn/rollback", {"to": 2}, headers=as_("ada")).status, 404)
        self.assertEqual(s.post("/v1/learn/rollback", {}, headers=as_("ada")).json["current"], 0)
        self.stop(s)
        s = self.serve()
        self.assertEqual((self.used(s), self.show(s)["current"]), (before["name"] + "@2", 2))
        self.ask(s, model="fake@4", status=404)
        self.assertEqual(self.learn(s, "Four")["version"], 5)
        self.stop(s)

    def test_a_version_whose_file_is_gone_costs_no_answers(self):
        s = self.serve()
        content = self.learn(s, "One")["content"]
        self.stop(s)
        files = [os.path.join(d, f) for d, _, fs in os.walk(os.path.join(self.dir, "tenants")) for f in fs]
        for spoil in (lambda f: os.truncate(f, 1), os.remove):
            spoil(files[0])
            s = self.serve()
            self.assertEqual(s.get("/v1/models/fake@1", headers=as_("ada")).json["content"], content)  # before its first use
            for path in (TEXT, CHAT, LLAMA):
                a = self.ask(s, path=path)
                self.assertEqual(a["model"], "fake")
            self.assertGreaterEqual(s.post(TEXT, {"prompt": "x", "model": "fake@1"}, headers=as_("ada")).status, 400)
            self.stop(s)

    def test_once_a_day_what_was_learned_is_learned_anew(self):
        """At its time, of those who were taught something since, refused or not; not twice, whoever starts again; and what was killed at it is done."""
        clock, began = os.path.join(self.folder.name, "clock"), time.time()
        at = time.strftime("%H:%M", time.gmtime(began + 12 * 3600))

        def set_clock(ms):
            with open(clock + ".new", "w") as f:
                f.write(str(ms))
            os.replace(clock + ".new", clock)

        def start(due, ms):
            """What a server makes of a moment: who was due, and that all were looked at."""
            s = self.serve("--learn-consolidate", at, WEFT_FAKE_NIGHT=clock, TZ="UTC0")
            self.looked(s, due, ms)
            return s
        set_clock(int(began * 1000))
        s = self.serve("--learn-consolidate", at, WEFT_FAKE_NIGHT=clock, TZ="UTC0")
        for text, who in (("One", "ada"), ("Two", "ada"), ("[reject kl]", "bob")):
            self.learn(s, text, who)
        self.ask(s, "Who is it?", "eve")
        told = self.show(s)["consolidation"]
        night = told["next_ms"]
        self.assertEqual(told, {"at": at, "next_ms": night, "last": None})
        self.assertEqual(time.strftime("%H:%M:%S", time.gmtime(night / 1000)), at + ":00")
        self.assertTrue(0 < night - began * 1000 <= 12 * 3600 * 1000 + 1)
        self.assertEqual(self.metric(s, "consolidations_due_total"), 0)
        self.holding()
        set_clock(night)
        self.looked(s, 2, night)
        s.kill()
        os.remove(self.hold)
        s = start(2, night)
        self.assertTrue(wait_until(lambda: all(self.show(s, who)["consolidation"]["last"] for who in ("ada", "bob"))))
        shown = {who: self.show(s, who) for who in ("ada", "bob", "eve")}
        self.assertEqual([[v.get("by", "") for v in shown[who]["versions"]] for who in shown], [["retrained", "", ""], ["retried", ""], []])
        for who in ("ada", "bob"):
            self.assertEqual(shown[who]["consolidation"]["last"], shown[who]["versions"][0])
        self.assertEqual(shown["ada"]["consolidation"]["next_ms"] - night, 24 * 3600000)
        self.is_as_told("get", "/v1/learn", s.get("/v1/learn", headers=as_("ada")))
        self.stop(s)
        s = start(0, night)  # nobody twice
        tomorrow = shown["ada"]["consolidation"]["next_ms"]
        set_clock(tomorrow + 5 * 3600 * 1000)  # nor who was taught nothing
        self.looked(s, 0, tomorrow)
        self.learn(s, "Three")
        self.looked(s, 0, tomorrow)
        self.assertEqual(self.show(s)["consolidation"]["last"], shown["ada"]["consolidation"]["last"])
        set_clock(self.show(s)["consolidation"]["next_ms"])
        self.assertTrue(wait_until(lambda: self.show(s)["consolidation"]["last"]["version"] > 3))
        self.assertEqual(self.metric(s, "consolidations_due_total"), 1)
        self.assertEqual({who: self.show(s, who)["versions"] for who in ("bob", "eve")}, {who: shown[who]["versions"] for who in ("bob", "eve")})
        self.stop(s)
        s = self.serve()
        self.assertEqual(list(self.show(s)["consolidation"]), ["last"])
        self.assertIsNone(self.metric(s, "consolidations_due_total"))
        self.stop(s)

    def test_what_is_learned_after_the_hour_waits_for_the_next(self):
        """Whoever starts again meanwhile; by the system's own clock."""
        began = int(time.time()) // 60 * 60 - 120
        for turn in range(2):
            s = self.serve("--learn-consolidate", time.strftime("%H:%M", time.gmtime(began)), TZ="UTC0")
            self.looked(s, 0, began * 1000)
            self.assertEqual(self.show(s)["consolidation"]["next_ms"], (began + 86400) * 1000)
            if not turn:
                self.learn(s, "One")
            self.assertEqual([v["version"] for v in self.show(s)["versions"]], [1])
            self.stop(s)

    def looked(self, s, due, ms):
        self.assertTrue(wait_until(lambda: self.metric(s, "consolidated_timestamp_seconds") == ms // 1000))
        self.assertEqual(self.metric(s, "consolidations_due_total"), due)

    def test_on_a_full_disk_answers_go_on_and_learning_waits(self):
        """Versions, memories and the router's log: what answered goes on, and when there is room what waited is learned, in its order, once."""
        config = os.path.join(self.folder.name, "weft.yaml")
        with open(config, "w") as f:
            json.dump({"presets": {"calm": {"sampling": {"temperature": 0}}}}, f)
        s = self.serve("--memories", "1", "--config", config, "--alias", "fake", "--route", "fake", "--route", "calm")
        row = self.learn(s, "One")
        name = self.show(s)["name"]
        self.holding()
        events = [self.tell(s, text) for text in ("Two", "Three")]
        self.tell(s, "Four", "bob")
        limit = resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, (1000, limit[1]))
        os.remove(self.hold)
        self.assertTrue(wait_until(lambda: self.metric(s, 'versions_total{result="failed"}') >= 2))
        self.assertEqual(self.used(s), name + "@1")
        self.ask(s, "Who is it?", path=CHAT, memory=True)
        self.assertEqual(s.post("/v1/memories", {"kind": "semantic", "text": "x"}, headers=as_("ada")).status, 503)
        routed = s.post(TEXT, {"model": "auto", "prompt": "[say a]"}, headers=as_("ada"))
        self.assertEqual((routed.status, routed.headers["x-weft-routed"]), (200, "fake;p=1"))
        self.assertEqual(self.show(s)["versions"][0]["version"], 1)
        resource.prlimit(s.process.pid, resource.RLIMIT_FSIZE, limit)
        self.assertTrue(wait_until(lambda: self.show(s)["current"] == 3 and self.show(s, "bob")["current"] == 1))
        self.assertEqual([v["last_event"] for v in self.show(s)["versions"]], [events[1], events[0], row["last_event"]])
        self.assertEqual(self.used(s), name + "@3")
        self.stop(s)

    def test_of_learning_anew_what_is_farther_from_the_base_does_not_stay(self):
        """By the KL of the current version, whichever that is, which the next process knows, too."""
        s = self.serve()
        for text in ("[kl 0.009] One", "[kl 0.001] Two", "[kl 0.02] Three"):
            self.learn(s, text)
        s.post("/v1/learn/rollback", {"to": 2}, headers=as_("ada"))

        def anew(s, n):
            self.assertEqual(s.post("/v1/learn/consolidate", {}, headers=as_("ada")).status, 202)
            self.assertTrue(wait_until(lambda: self.show(s)["versions"][0]["version"] == n))
            return self.show(s)["versions"][0]
        self.assertEqual(anew(s, 4)["reason"], "not_better")
        self.stop(s)
        s = self.serve()
        self.assertEqual(anew(s, 5)["reason"], "not_better")
        s.post("/v1/learn/rollback", {"to": 3}, headers=as_("ada"))
        self.assertEqual(anew(s, 6)["what"], "published")
        self.stop(s)

    def test_what_was_refused_by_itself_is_tried_beside_others(self):
        """When all is learned anew: what the gate lets pass together is learned, and the history says which came in, also of another process,
        which does the same again. What stays out is tried once more; a question whose answer is known by then is not."""
        def anew(s):
            n = self.show(s)["versions"][0]["version"]
            self.assertEqual(s.post("/v1/learn/consolidate", {}, headers=as_("ada")).status, 202)
            self.assertTrue(wait_until(lambda: self.show(s)["versions"][0]["version"] > n))
            row = self.show(s)["versions"][0]
            return row["what"], row.get("by"), row.get("came_in"), row["content"]
        s, events = self.serve(), []
        for i, text in enumerate(("One", "[alone kl] Two", "[reject facts] Three", "[alone norm] Four", "[alone kl] One again")):
            row = self.learn(s, text, asked=f"Who is number {i % 4}?")
            events.append(row["last_event"])
            self.assertEqual(row["what"], "rejected" if i else "published")
        newer = anew(s)
        self.assertEqual(newer[:3], ("published", "retried", [events[3]]))
        row = self.show(s)["versions"][0]
        self.assertEqual((row["first_event"], row["last_event"], row["parent"]), (events[0], events[3], 0))
        self.is_as_told("get", "/v1/learn", s.get("/v1/learn", headers=as_("ada")))
        older = anew(s)
        self.assertEqual(older[:3], ("published", "retried", [events[1]]))
        self.assertEqual(anew(s)[:3], ("rejected", "retried", None))  # what no company helps
        before = self.show(s)
        s.process.send_signal(signal.SIGKILL)
        s.kill()
        s = self.serve()
        self.assertEqual(self.show(s), before)
        self.assertEqual(anew(s)[:3], ("rejected", "retried", None))
        for to, came in ((1, newer), (6, older)):
            self.assertEqual(s.post("/v1/learn/rollback", {"to": to}, headers=as_("ada")).json["current"], to)
            self.assertEqual(anew(s), came)
        for text in "[alone kl] One", "[alone kl] Two":  # who has no version yet
            self.learn(s, text, "bob", asked=text)
        self.assertEqual(self.show(s, "bob")["current"], 0)
        s.post("/v1/learn/consolidate", {}, headers=as_("bob"))
        self.assertTrue(wait_until(lambda: self.show(s, "bob")["current"] == 3))
        self.assertEqual(len(self.show(s, "bob")["versions"][0]["came_in"]), 2)
        self.stop(s)

    @of_one_thread
    def test_the_same_again_gives_the_same_contents(self):
        contents = []
        for turn in range(2):
            self.dir = os.path.join(self.folder.name, f"learned-{turn}")
            s = self.serve()
            for text, who in (("One", "ada"), ("Two", "bob"), ("Three", "ada")) if turn else (("Two", "bob"), ("One", "ada"), ("Three", "ada")):
                self.learn(s, text, who)
            contents.append({who: [v["content"] for v in self.show(s, who)["versions"]] for who in ("ada", "bob")})
            self.stop(s)
        self.assertEqual(*contents)


if __name__ == "__main__":
    unittest.main()
