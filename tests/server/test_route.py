# SPDX-License-Identifier: Apache-2.0
"""The model `auto` stands for one of the server's arms: until there is feedback for the first that the caller may use, whatever kind of thing it
is, and its answer is the one that its own name gets; arms that are nothing, and names that are taken, are told at the start. Over a scripted model
(fake_engine.c).

usage: test_route.py build/fake_server"""
import hashlib
import json
import os
import re
import subprocess
import tempfile

import servers as base
from servers import CHAT, FAKE, LLAMA, TEXT, Server

KEYS = {name: f"key-of-{name}-0123" for name in ("anna", "bert")}


def as_(name):
    return {"Authorization": "Bearer " + KEYS[name]}


class Route(base.Case):
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def config(self, **sections):
        file = tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False)
        self.addCleanup(os.unlink, file.name)
        with file as f:
            json.dump(sections, f)
        return file.name

    def start(self, *options, **config):
        given = ["--config", self.config(**config)] if config else []
        server = self.own(*given, *options)
        self.addCleanup(lambda: self.assertEqual(server.stop()[0], 0))
        return server

    def test_stands_for_the_first(self):
        server = self.start("--alias", "one", "--route", "calm", "--route", "one=0.5", presets={"calm": {"sampling": {"temperature": 0.25, "top_k": 7}}})
        body = {"model": "auto", "prompt": "[sampler]"}
        answer = server.post(LLAMA, body)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers["x-weft-routed"], "calm;p=1")
        named = server.post(LLAMA, {**body, "model": "calm"})
        self.assertNotIn("x-weft-routed", named.headers)
        self.assertEqual(answer.json["content"], named.json["content"])
        self.assertEqual(*({k: v for k, v in a.json["generation_settings"].items() if k != "seed"} for a in (answer, named)))
        for path, more in ((TEXT, {"prompt": "[say a]"}), (CHAT, {"messages": [{"role": "user", "content": "[say a]"}]})):
            answer = server.post(path, {"model": "auto", **more})
            self.assertEqual(answer.json["model"], "calm")
            self.assertRegex(answer.json["id"], r"^(chat)?cmpl-[0-9a-f]{24}$")
            self.assertEqual(server.post(path, {"model": "one", **more}).json["model"], "one")
        streamed = server.post(TEXT, {"model": "auto", "prompt": "[say a]", "stream": True})
        self.assertEqual(streamed.headers["x-weft-routed"], "calm;p=1")
        self.assertEqual({e["model"] for e in streamed.events if e != "[DONE]"}, {"calm"})
        listed = [m["id"] for m in server.get("/v1/models").json["data"]]
        self.assertIn("auto", listed)
        self.assertEqual(server.get("/v1/models/auto").json["id"], "auto")
        # what nobody rewards is answered by the first, and counts as no choice
        self.assertEqual(server.post("/tokenize", {"model": "auto", "content": "a"}).status, 200)
        self.assertEqual(server.metric('weft_routed_total{arm="calm"}'), 4)
        self.assertEqual(server.metric('weft_routed_total{arm="one"}'), 0)

    def test_callers_get_what_they_may_use(self):
        keys = self.keyed(anna={"models": ["calm"]})
        server = self.start("--alias", "one", "--route", "one", "--route", "calm", presets={"calm": {"sampling": {"temperature": 0}}}, keys=keys)
        for name, arm in (("anna", "calm"), ("bert", "one")):
            answer = server.post(TEXT, {"model": "auto", "prompt": "[say a]"}, headers=as_(name))
            self.assertEqual(answer.json["model"], arm, answer.body)

    def test_several_models(self):
        with tempfile.TemporaryDirectory() as folder:
            models = []
            for name in ("small", "large"):
                with open(os.path.join(folder, name), "w") as f:
                    f.write("x" * 1000)
                models += ["--model", f"{name}={f.name}"]
            server = Server([*FAKE, "--without-model", "1", *models, "--route", "large", "--route", "small", "--route-embed", "1"])
            self.addCleanup(lambda: self.assertEqual(server.stop()[0], 0))
            answer = server.post(TEXT, {"model": "auto", "prompt": "[model]", "max_tokens": 100})  # waits until that is loaded
            self.assertEqual(answer.json["model"], "large", answer.body)
            self.assertEqual(os.path.basename(answer.json["choices"][0]["text"]), "large")
            self.assertEqual(answer.headers["x-weft-routed"], "large;p=1")
            # a model that is not there is not waited for to make an embedding
            self.assertEqual([server.metric('weft_route_embeddings_total{by="%s"}' % by) for by in ("words", "embedding")], [1, 0])
            self.assertEqual(server.post(TEXT, {"model": "auto", "prompt": "[model]", "max_tokens": 100}).json["model"], "large")
            self.assertEqual([server.metric('weft_route_embeddings_total{by="%s"}' % by) for by in ("words", "embedding")], [1, 1])

    def keyed(self, **limits):
        return [{"name": n, "hash": "sha256:" + hashlib.sha256(k.encode()).hexdigest(), "limits": limits.get(n, {})} for n, k in KEYS.items()]

    def two_arms(self, start, *options, **limits):
        config = self.config(presets={"calm": {"sampling": {"temperature": 0}}}, keys=self.keyed(**limits))
        return start("--config", config, "--alias", "one", "--route", "one", "--route", "calm", "--route-embed", "1", *options)

    def rows(self, server):
        """What bert sees of /metrics; which requests of all were seen by an embedding and by words."""
        page = server.get("/metrics", headers=as_("bert")).body.decode()
        rows = {name: int(value) for name, value in re.findall(r"^(weft_\S+) (\d+)$", page, re.M)}
        return rows, [rows['weft_route_embeddings_total{by="%s"}' % by] for by in ("embedding", "words")]

    def test_embeds_what_limits_have_room_for(self):
        """Who is at a limit, or brings a body that is refused, costs no embedding; those that there are count as prompts do."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        clock = os.path.join(folder.name, "clock")
        with open(clock, "w") as f:
            f.write("1")
        server = self.two_arms(lambda *o: self.own(*o, env={**os.environ, "WEFT_FAKE_CLOCK": clock}),
                               anna={"requests-per-minute": 1}, bert={"tokens-per-minute": 200})
        used = 'weft_key_prompt_tokens_total{key="bert",adapter=""}'

        def ask(name, status, embedded, **more):
            before, by = self.rows(server)
            answer = server.post(TEXT, {"model": "auto", "prompt": "[say a]", **more}, headers=as_(name))
            self.assertEqual(answer.status, status, answer.body)
            after, now = self.rows(server)
            self.assertEqual([b - a for a, b in zip(by, now)], [embedded, 1 - embedded], (name, more))
            return after.get(used, 0) - before.get(used, 0)
        ask("anna", 200, 1)
        ask("anna", 429, 0)
        self.assertEqual(ask("bert", 400, 0, max_tokens="many"), 0)
        self.assertEqual(ask("bert", 200, 0, prompt="[say a]" + "x" * 93), 101)  # there is no room for twice as much
        both = ask("bert", 200, 1)
        self.assertEqual(both, 2 * ask("bert", 200, 0, stop="y" * 60))  # so long a body might take all of the 80 that are left
        self.assertEqual(ask("bert", 429, 0, prompt="x" * 150), 0)

    def test_who_waits_for_embeddings_waits_at_the_disk(self):
        """Of four workers three wait for the one or the other, for one client two; who comes meanwhile is answered."""
        server, hold = self.two_arms(self.own_held)
        for name in KEYS:
            self.assertEqual(server.post(LLAMA, {"prompt": "[say x]"}, headers=as_(name)).status, 200)
        mine = [s["id"] for s in server.get("/slots", headers=as_("anna")).json if s.get("n_tokens")][0]
        answers, held = [], {"model": "auto", "messages": [{"role": "user", "content": "[held]"}]}
        ask = {"model": "auto", "messages": [{"role": "user", "content": "[say x]"}]}

        def save(name):
            return server.post(f"/slots/{mine}?action=save", {"filename": "hung"}, headers=as_(name))
        open(hold, "w").close()
        try:
            waiting = self.run_all(3, lambda: answers.append(server.post(CHAT, held, headers=as_("anna")).status))
            self.assertTrue(base.wait_until(lambda: answers, patience=30))
            self.assertEqual((answers, self.rows(server)[1]), ([200], [0, 1]))
            self.assertEqual(save("anna").status, 429)
            self.assertEqual(server.post(CHAT, ask, headers=as_("bert")).status, 200)
            self.assertEqual(self.rows(server)[1], [1, 1])
            waiting += self.run_all(2, lambda: answers.append(server.post(CHAT, held, headers=as_("bert")).status))
            self.assertTrue(base.wait_until(lambda: len(answers) == 2, patience=30))  # the one without a place
            self.assertEqual((save("bert").status, answers, self.rows(server)[1]), (503, [200] * 2, [1, 2]))
        finally:
            os.remove(hold)
        for t in waiting:
            t.join()
        self.assertEqual(answers, [200] * 5)

    def test_without_it_there_is_no_such_model(self):
        server = self.start()
        self.assertEqual(server.post(TEXT, {"model": "auto", "prompt": "[say a]"}).status, 404)
        self.assertNotIn("auto", [m["id"] for m in server.get("/v1/models").json["data"]])

    def test_is_wrong_in_these_ways(self):
        for options, said in ((("--route", "none"), "'none' is no model, adapter or preset"), (("--route", "one", "--route", "one=1"), "twice"),
                              (("--route", "one=1.5"), "cost from 0 to 1"), (("--route", "=1"), "cost from 0 to 1"),
                              (("--route", "one", "--alias", "auto"), "is called 'auto'"),
                              (("--route", "one", "--route-by", "luck"), "linucb")):
            p = subprocess.run([*FAKE, "--alias", "one", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(said, p.stderr)


if __name__ == "__main__":
    base.unittest.main(verbosity=1)
