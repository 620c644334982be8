# SPDX-License-Identifier: Apache-2.0
"""What weft.yaml says counts: presets are models with fields of their own, keys have roles and limits that teams and organisations share, and
SIGHUP reads it again, whole or not at all. Over a scripted model (fake_engine.c), with a clock that the test sets.

usage: test_config.py build/fake_server"""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import servers as base
from servers import CHAT, FAKE, LLAMA, PATIENCE, TEXT, wait_until

KEYS = {name: f"key-of-{name}-0123" for name in ("anna", "bert", "cleo", "root")}
LOAD = "/v1/load_lora_adapter"


def hashed(name):
    return "sha256:" + hashlib.sha256(KEYS[name].encode()).hexdigest()


def key(name, **more):
    return {"name": name, "hash": hashed(name), **more}


def who(name):
    return {"headers": {"Authorization": "Bearer " + KEYS[name]}}


class Config(base.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name in ("law.gguf", "med.gguf", "mine.gguf"):
            open(os.path.join(cls.folder, name), "w").close()

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.now = 10 ** 13  # beyond what the machine's own clock says

    def write(self, **config):
        """JSON is YAML."""
        path = os.path.join(self.folder, "weft.yaml")
        with open(path + ".new", "w") as f:
            f.write(config["text"] if "text" in config else json.dumps(config))
        os.replace(path + ".new", path)
        return path

    def tick(self, seconds):
        self.now += int(seconds * 1000)
        with open(os.path.join(self.folder, "clock.new"), "w") as f:
            f.write(str(self.now))
        os.replace(os.path.join(self.folder, "clock.new"), os.path.join(self.folder, "clock"))

    def start(self, *options, **config):
        self.tick(0)
        self.server = self.own("--config", self.write(**config), "--adapter-dir", self.folder, *options,
                               env={**os.environ, "WEFT_FAKE_CLOCK": os.path.join(self.folder, "clock")})

    def tearDown(self):
        server = getattr(self, "server", None)
        if server and not server.process.stdout.closed:
            status, err = server.stop()
            self.assertEqual(status, 0, err)  # 3: memory was not freed

    def again(self, said=None, **config):
        """Reads it again, until what is said on stderr was said, or all is new."""
        self.server.err.clear()
        self.write(**config)
        self.server.process.send_signal(signal.SIGHUP)
        if said and not wait_until(lambda: said in "".join(self.server.err)):
            self.fail(f"nothing says {said!r}: {self.server.err}\n" + self.where_signals_are())

    def where_signals_are(self):
        """Of a server that does not say that it read its file: whether the signal waits, in which thread, and what a second one does."""
        with open(f"/proc/{self.server.process.pid}/status") as f:
            status = "".join(line for line in f if re.match("State|Threads|SigQ|ShdPnd|Sig", line))
        waits = []
        for task in sorted(os.listdir(f"/proc/{self.server.process.pid}/task")):
            with open(f"/proc/{self.server.process.pid}/task/{task}/status") as f:
                waits.append(" ".join(line.strip() for line in f if re.match("Name|State|SigPnd|SigBlk", line)))
        self.server.process.send_signal(signal.SIGHUP)
        heard = wait_until(lambda: self.server.err, patience=10)
        return status + "\n".join(waits) + f"\na second signal is {'heard' if heard else 'not heard'}: {self.server.err}"

    def chat(self, text="[sampler]", status=200, name=None, **more):
        answer = self.server.post(CHAT, {"messages": base.user(text), **more}, **(who(name) if name else {}))
        self.assertEqual(answer.status, status, answer.body)
        return answer.json["choices"][0]["message"]["content"] if status == 200 else answer.json["error"]["message"]

    def models(self, name=None):
        return [m["id"] for m in self.server.get("/v1/models", **(who(name) if name else {})).json["data"]]

    # ---- presets ----

    def test_presets_are_models(self):
        self.start("--adapter", os.path.join(self.folder, "mine.gguf"),
                   presets={"cold": {"sampling": {"temperature": 0.25, "top_k": 7, "max_tokens": 200}},
                            "tale": {"system": "[say told]", "adapters": {"mine": 0.5}}, "bare": {"adapters": []}})
        names = self.models()
        self.assertEqual(names[1:], ["mine", "cold", "tale", "bare"])
        shown = self.server.get("/v1/models/tale").json
        self.assertEqual((shown["id"], shown["parent"], shown["meta"]), ("tale", names[0], {"preset": True}))
        self.assertEqual(self.server.get("/v1/models/tele").status, 404)
        answer = self.post(CHAT, {"messages": base.user("[sampler]"), "model": "cold"}).json
        self.assertEqual((answer["model"], answer["choices"][0]["message"]["content"].split()[:2]), ("cold", ["0.25", "7"]))
        self.assertEqual(self.chat().split()[:2], ["1", "0"])  # the base as ever
        # What a request says itself wins.
        self.assertEqual(self.chat(model="cold", temperature=0.75).split()[:2], ["0.75", "7"])
        self.assertEqual(self.chat(model="cold", temperature=None).split()[:2], ["0.25", "7"])
        self.assertEqual(self.post(TEXT, {"prompt": "[sampler]", "model": "cold", "top_k": 3}).json["choices"][0]["text"].split()[:2], ["0.25", "3"])
        self.assertEqual(self.post(LLAMA, {"prompt": "[sampler]", "model": "cold"}).json["content"].split()[:2], ["0.25", "7"])

    def test_one_field_of_several_names(self):
        self.start(presets={"short": {"sampling": {"max_tokens": 2, "repetition_penalty": 1.5, "stop": ["c"]}}})
        self.assertEqual(self.chat("[say xyz]", model="short"), "xy")
        self.assertEqual(self.chat("[say xyz]", model="short", max_completion_tokens=3), "xyz")
        self.assertEqual(self.chat("[say xyz]", model="short", max_tokens=1), "x")
        self.assertEqual(self.post(LLAMA, {"prompt": "[say xyz]", "model": "short"}).json["content"], "xy")
        self.assertEqual(self.post(LLAMA, {"prompt": "[say xyz]", "model": "short", "n_predict": 3}).json["content"], "xyz")
        self.assertEqual(self.chat("[say abcd]", model="short", max_tokens=9), "ab")
        self.assertEqual(self.chat("[say abcd]", model="short", max_tokens=9, stop=["b"]), "a")
        self.assertEqual(self.post("/v1/embeddings", {"input": "x", "model": "short"}).json["model"], "short")

    def prompt(self, messages, **more):
        return self.post("/apply-template", {"messages": messages, **more}).json["prompt"]

    def test_its_system_prompt_goes_first(self):
        with open(os.path.join(self.folder, "t.jinja"), "w") as f:
            f.write("#own")
        self.start(presets={"tale": {"system": "You tell."}, "other": {"chat-template": os.path.join(self.folder, "t.jinja")}})
        self.assertEqual(self.chat("[say yes]", model="tale"), "yes")
        shown = self.prompt(base.user("hi"), model="tale")
        self.assertLess(shown.index("You tell."), shown.index("hi"))
        for role in ("system", "developer"):
            shown = self.prompt([{"role": role, "content": "Be."}, *base.user("hi")], model="tale")
            self.assertNotIn("You tell.", shown)
        self.assertNotIn("You tell.", self.prompt(base.user("hi")))
        self.assertIn("#own", self.prompt(base.user("hi"), model="other"))
        self.assertNotIn("#own", self.prompt(base.user("hi"), model="tale"))
        self.assertEqual(self.chat("[say yes]", model="other"), "yes")

    def test_its_adapters(self):
        self.start("--adapter", os.path.join(self.folder, "mine.gguf"),
                   presets={"half": {"adapters": {"mine": 0.5}}, "own": {"adapters": ["mine"]}, "bare": {"adapters": []}, "gone": {"adapters": ["nope"]}})
        used = {name: self.chat("[adapters]", model=name, max_tokens=99) for name in ("half", "own", "bare")}
        self.assertEqual(used, {"half": "mine=0.5;", "own": "mine=1;", "bare": "-"})
        self.assertEqual(self.chat("[adapters]", model="half", lora=[{"id": 0, "scale": 2}], max_tokens=99), "mine=2;")
        self.assertIn("wants the adapter 'nope'", self.chat(status=503, model="gone"))

    def test_what_cannot_be_a_preset(self):
        for config, words in (
            ({"presets": {"x": {"base": "nowhere"}}}, "presets.x: its base 'nowhere' is not served"),
            ({"presets": {"m": {}}}, "presets.m: a model or an adapter has that name"),
            ({"presets": {"mine": {}}}, "presets.mine: a model or an adapter has that name"),
            ({"presets": {"x": {"sampling": {"logit_bias": {"300": 1}}}}}, "presets.x: 'logit_bias' must have token ids from 0 to 299"),
            ({"presets": {"x": {"chat-template": "/nonexistent/t"}}}, "presets.x: /nonexistent/t"),
            ({"presets": {"x": {"bse": "m"}}}, "weft.yaml:1:20: presets.x: there is no 'bse' here; did you mean 'base'?"),
        ):
            p = subprocess.run([*FAKE, "--config", self.write(**config), "--alias", "m", "--adapter", os.path.join(self.folder, "mine.gguf")],
                               capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((p.returncode, words in p.stderr), (1, True), p.stderr)

    # ---- keys ----

    def test_keys_have_roles(self):
        self.start(keys=[key("anna"), key("root", role="admin")])
        self.assertEqual(self.server.get("/props").status, 401)
        self.assertEqual(self.server.get("/props", **who("bert")).status, 401)
        self.assertEqual(self.server.post("/lora-adapters", [], **who("anna")).status, 403)
        self.assertEqual(self.server.post("/lora-adapters", [], **who("root")).status, 200)
        self.chat(name="anna")
        self.assertIn('weft_key_requests_total{key="anna",adapter=""} 1', self.server.get("/metrics", **who("anna")).body.decode())

    def test_what_a_key_may_not_use_is_not_there(self):
        self.start("--alias", "m", "--alias", "also", "--adapter", os.path.join(self.folder, "mine.gguf"),
                   presets={"tale": {"adapters": ["mine"]}, "cold": {}},
                   organisations={"acme": {"limits": {"models": ["m", "tale"], "adapters": ["law"]}}},
                   keys=[key("anna", organisation="acme"), key("bert", organisation="acme", limits={"models": ["tale", "cold"]}),
                         key("cleo", limits={"models": ["m"], "adapters": []}), key("root", role="admin")])
        for adapter in ("law", "med"):
            load = {"lora_name": adapter, "lora_path": adapter + ".gguf", "publish": True}
            self.assertEqual(self.server.post(LOAD, load, **who("root")).status, 200)
        self.assertEqual(sorted(self.models("root")[1:4]), ["law", "med", "mine"])
        self.assertEqual(self.models("root"), ["m", "mine", "law", "med", "tale", "cold"])
        self.assertEqual(self.models("anna"), ["m", "law", "tale"])
        self.assertEqual(self.models("bert"), ["tale"])
        self.assertEqual(self.models("cleo"), ["m"])
        for name, good, bad in (("anna", (None, "m", "also", "tale", "law", "m:law"), ("cold", "med", "m:med", "mine")),
                                ("bert", ("tale",), (None, "m", "also", "cold", "law", "m:law")),
                                ("cleo", (None, "m", "also"), ("tale", "law", "m:law", "nope"))):
            for model in good:
                self.chat(name=name, model=model)
            for model in bad:
                answer = self.server.post(CHAT, {"messages": base.user("x"), "model": model}, **who(name))
                self.assertEqual((answer.status, answer.json["error"]["code"]), (404, "model_not_found"), (name, model))
                if model:
                    self.assertEqual(self.server.get("/v1/models/" + model, **who(name)).status, 404)
        self.assertEqual(self.chat("[adapters]", name="bert", model="tale", max_tokens=99), "mine=1;")  # the operator's choice
        ids = {a["name"]: a["id"] for a in self.server.get("/lora-adapters", **who("root")).json}
        self.assertEqual([a["name"] for a in self.server.get("/lora-adapters", **who("anna")).json], ["law"])
        self.chat(name="anna", lora=[{"id": ids["law"], "scale": 1}])
        self.assertIn("which no adapter has", self.chat(status=400, name="anna", lora=[{"id": ids["med"], "scale": 1}]))
        load = {"lora_name": "med", "lora_path": "med.gguf"}
        self.assertEqual(self.server.post(LOAD, load, **who("anna")).status, 403)
        self.assertEqual(self.server.post(LOAD, {**load, "lora_name": "law"}, **who("anna")).status, 200)

    def test_a_key_for_an_alias_may_ask_for_versions_by_it(self):
        self.start("--alias", "m", "--alias", "also", "--learn", os.path.join(self.folder, "learned"), "--learn-share", "0.5",
                   keys=[key("anna", limits={"models": ["also"]}), key("cleo", limits={"models": ["m"]}), key("root", role="admin")])
        ask = lambda model, name: self.server.post(CHAT, {"messages": base.user("x"), "model": model}, **who(name)).status
        self.assertEqual([ask(model, "anna") for model in ("also", "also@0", "also@1", "m", "m@0")], [200, 200, 404, 404, 404])
        self.assertEqual([ask(model, "cleo") for model in ("m", "also", "m@0", "also@0", "nope@0")], [200, 200, 200, 200, 404])

    # ---- limits ----

    def refused(self, name, level, limit, retry, path=CHAT, body=None):
        answer = self.server.post(path, body or {"messages": base.user("x"), "max_tokens": 1}, **who(name))
        self.assertEqual((answer.status, answer.headers.get("retry-after")), (429, str(retry)), answer.body)
        self.assertEqual(answer.json["error"]["message"], f"the {level} is at its limit of {limit}; try again in {retry} s")
        return answer

    def test_requests_per_minute(self):
        self.start(keys=[key("anna", limits={"requests-per-minute": 2}), key("bert")])
        for _ in range(2):
            self.chat(name="anna")
        answer = self.refused("anna", "key 'anna'", "2 requests per minute", 30)
        self.assertEqual((answer.json["error"]["type"], answer.json["error"]["code"]), ("rate_limit_error", "rate_limit_exceeded"))
        self.refused("anna", "key 'anna'", "2 requests per minute", 30, LLAMA, {"prompt": "x"})
        self.chat(name="bert")
        self.assertEqual(self.server.get("/v1/models", **who("anna")).status, 200)
        self.chat(status=400, name="anna", temperature=9)  # what is wrong is told first, and costs nothing
        self.tick(29)
        self.refused("anna", "key 'anna'", "2 requests per minute", 1)
        self.tick(1)
        self.chat(name="anna")

    def test_tokens_per_minute(self):
        """Those of the prompt and those generated: three and nine bytes, and an end."""
        self.start(keys=[key("anna", limits={"tokens-per-minute": 60})])
        answer = self.server.post(LLAMA, {"prompt": "[say 123456789]"}, **who("anna")).json
        used = answer["tokens_evaluated"] + answer["tokens_predicted"]
        self.assertTrue(20 < used < 60, answer)
        text = "x" * 50
        n = len(self.server.post("/tokenize", {"content": text, "add_special": True}, **who("anna")).json["tokens"])
        retry = -(-(n - (60 - used)) // 1)
        self.refused("anna", "key 'anna'", "60 tokens per minute", retry, LLAMA, {"prompt": text, "n_predict": 1})
        self.tick(retry)
        self.assertEqual(self.server.post(LLAMA, {"prompt": text, "n_predict": 1}, **who("anna")).status, 200)

    def stream(self, name, text="[loop x] [delay 5]"):
        """One that runs until it is closed."""
        s = self.server.connect()
        s.sendall(base.request({"messages": base.user(text), "stream": True}, more=f"Authorization: Bearer {KEYS[name]}\r\n".encode()))
        self.addCleanup(s.close)
        self.assertTrue(wait_until(lambda: b"data:" in self.seen(s)))
        return s

    def seen(self, s):
        return s.recv(65536, 2)  # MSG_PEEK

    def test_requests_at_once(self):
        self.start(organisations={"acme": {"teams": {"lab": {"limits": {"concurrent": 2}}}}},
                   keys=[key(name, organisation="acme", team="lab") for name in ("anna", "bert")] + [key("root", role="admin")])
        first, second = self.stream("anna"), self.stream("bert")
        self.refused("anna", "team 'acme/lab'", "2 requests at once", 1)
        running = 'weft_account_running{level="team",name="acme/lab"}'
        rows = self.rows()
        self.assertEqual((rows[running], rows['weft_account_running{level="key",name="bert"}']), (2, 1))
        first.close()
        self.assertTrue(wait_until(lambda: self.rows()[running] == 1))
        body = {"messages": base.user("[say x]"), "max_tokens": 1}
        for _ in range(30):  # one after the other is one at once: who has the answer may ask again
            for stream in (False, True):
                self.assertEqual(self.server.post(CHAT, {**body, "stream": stream}, **who("anna")).status, 200)
        second.close()
        self.assertTrue(wait_until(lambda: self.rows()[running] == 0))
        self.assertEqual(self.rows()['weft_account_refused_total{level="team",name="acme/lab",limit="concurrent"}'], 1)

    def test_a_team_is_the_sum_of_its_keys(self):
        self.start(organisations={"acme": {"limits": {"requests-per-minute": 4}, "teams": {"lab": {"limits": {"requests-per-minute": 3}}}}},
                   keys=[key("anna", organisation="acme", team="lab", limits={"requests-per-minute": 2}),
                         key("bert", organisation="acme", team="lab"), key("cleo", organisation="acme")])
        self.chat(name="anna")
        self.chat(name="anna")
        self.refused("anna", "key 'anna'", "2 requests per minute", 30)
        self.chat(name="bert")
        self.refused("bert", "team 'acme/lab'", "3 requests per minute", 20)
        self.chat(name="cleo")
        self.refused("cleo", "organisation 'acme'", "4 requests per minute", 15)

    def test_what_the_queue_refuses_costs_nothing(self):
        self.start(keys=[key("anna", limits={"requests-per-minute": 1, "concurrent": 1})])
        for _ in range(3):
            answer = self.server.post(CHAT, {"messages": base.user("[busy]")}, **who("anna"))
            self.assertEqual((answer.status, "limit" in answer.json["error"]["message"]), (429, False), answer.body)
        self.chat(name="anna")
        self.refused("anna", "key 'anna'", "1 requests per minute", 60)

    def rows(self, name="root"):
        page = self.server.get("/metrics", **who(name)).body.decode()
        return {m[1]: int(m[2]) for m in re.finditer(r"^(weft_account_\S+) (\d+)$", page, re.M)}

    def test_accounts(self):
        self.start(organisations={"acme": {"teams": {"lab": {}}}},
                   keys=[key("anna", organisation="acme", team="lab"), key("bert", organisation="acme"), key("root", role="admin")])
        self.assertEqual(self.chat("[say abc]", name="anna"), "abc")
        self.assertEqual(self.chat("[say ab]", name="bert"), "ab")
        rows = self.rows()
        def of(what, level, name):
            return rows[f'weft_account_{what}{{level="{level}",name="{name}"}}']
        generated = [of("generated_tokens_total", *where) for where in (("key", "anna"), ("key", "bert"), ("team", "acme/lab"), ("organisation", "acme"))]
        self.assertEqual((generated[2], generated[3], generated[0] > generated[1] > 0), (generated[0], generated[0] + generated[1], True))
        self.assertEqual([of("requests_total", *where) for where in (("key", "anna"), ("team", "acme/lab"), ("organisation", "acme"))], [1, 1, 2])
        self.assertGreater(of("prompt_tokens_total", "organisation", "acme"), of("prompt_tokens_total", "team", "acme/lab"))
        self.assertEqual(self.rows("anna"), {})

    def test_without_memory(self):
        """Whichever allocation fails: an answer, and nothing stays behind (tearDown)."""
        for every in (7, 50, 211):
            with self.subTest(every=every):
                self.start("--fail-every", every, presets={"p": {"system": "Be.", "sampling": {"top_k": 3, "stop": ["x"]}, "adapters": []}},
                           organisations={"acme": {"teams": {"lab": {"limits": {"tokens-per-minute": 100000}}}}},
                           keys=[key("anna", organisation="acme", team="lab"), key("root", role="admin")])
                for i in range(60):
                    if i % 10 == 0:
                        self.server.process.send_signal(signal.SIGHUP)
                    for path, body in ((CHAT, {"messages": base.user("x"), "model": "p"}), (LLAMA, {"prompt": "x", "model": "p"})):
                        try:
                            status = self.server.post(path, body, **who("anna")).status
                        except (OSError, base.http.client.HTTPException):
                            continue  # there was no memory for the connection
                        self.assertIn(status, (200, 401, 500, 503))
                self.tearDown()

    # ---- reading it again ----

    def test_it_is_read_again(self):
        limits = {"requests-per-minute": 3}
        self.start(presets={"old": {}}, keys=[key("anna", limits=limits), key("bert"), key("root", role="admin")])
        self.chat(name="anna", model="old")
        self.chat(name="anna")
        running = self.stream("bert", "[loop x] [delay 1]")
        self.again(server={"port": 9}, presets={"new": {}}, keys=[key("anna", limits=limits), key("cleo"), key("root", role="admin")])
        self.assertTrue(wait_until(lambda: self.server.get("/props", **who("cleo")).status == 200))
        self.assertEqual(self.server.get("/props", **who("bert")).status, 401)
        self.assertEqual(self.models("anna")[-1], "new")
        self.chat(name="anna", model="new")
        self.assertEqual(self.chat(status=429, name="anna"), "the key 'anna' is at its limit of 3 requests per minute; try again in 20 s")  # as before
        self.assertEqual(self.rows()['weft_account_requests_total{level="key",name="anna"}'], 3)
        self.assertEqual(self.server.post(CHAT, {"messages": base.user("x"), "model": "old"}, **who("root")).status, 404)
        self.assertTrue(wait_until(lambda: "'server' of the settings has changed" in "".join(self.server.err)))
        before = len(self.seen(running))
        self.assertTrue(wait_until(lambda: len(self.seen(running)) > before or before == 65536))  # what runs goes on
        running.close()

    def test_what_is_wrong_changes_nothing(self):
        good = {"presets": {"old": {}}, "keys": [key("anna"), key("root", role="admin")]}
        self.start(**good)
        for wrong, words in (
            ({"keys": [{"name": "x"}, {"hash": 7}]}, "weft.yaml:1:11: keys[0]: 'hash' is missing; the keys stay as they were"),
            ({"text": "keys: ["}, "not YAML"),
            ({"text": ""}, "no key is left"),
            ({**good, "presets": {"p": {"base": "nowhere"}}}, "its base 'nowhere' is not served"),
            ({**good, "presets": {"p": {"chat-template": "/nonexistent/t"}}}, "/nonexistent/t"),
        ):
            self.again("stay as they were, and presets and limits", **wrong)
            self.assertIn(words, "".join(self.server.err))
            self.assertEqual(self.models("anna")[-1], "old")
        self.again("keys[1].hash: must be sha256:", **{"keys": [{"name": "x"}, {"hash": 7}]})  # all that is wrong
        os.remove(os.path.join(self.folder, "weft.yaml"))
        self.server.err.clear()
        self.server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: "stay as they were" in "".join(self.server.err)))
        self.chat(name="anna", model="old")

    def test_the_first_keys_want_a_new_start(self):
        self.start(presets={"old": {}})
        self.chat(model="old")
        self.again("the first keys of a server want a new start", keys=[key("anna")])
        self.chat(model="old")
        self.again(presets={"new": {}})
        self.assertTrue(wait_until(lambda: self.models()[-1] == "new"))

    def test_it_is_read_again_while_many_call(self):
        """No request is lost, and each sees one file or the other."""
        def config(temperature):
            return {"presets": {"p": {"sampling": {"temperature": temperature, "top_k": int(temperature * 100)}}}, "keys": [key("anna")]}
        self.start(**config(0.25))
        seen, over = set(), threading.Event()
        def ask():
            while not over.is_set():
                seen.add(" ".join(self.chat(name="anna", model="p").split()[:2]))
        threads = self.run_all(3, ask)
        for i in range(20):
            self.again(**config(0.5 if i % 2 == 0 else 0.25))
            time.sleep(0.01)
        over.set()
        for t in threads:
            t.join()
        self.assertTrue({"0.25 25", "0.5 50"} >= seen and seen, seen)


if __name__ == "__main__":
    base.unittest.main(verbosity=1)
