# SPDX-License-Identifier: Apache-2.0
"""Who may change what others get, and see what they do: keys have roles, names of their own for adapters, slots that nobody else takes, and their
own part of the counters; SIGHUP reads them again. Over a scripted model (fake_engine.c).

usage: test_roles.py build/fake_server"""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import servers as base
from servers import FAKE, LLAMA, PATIENCE, TEXT, wait_until

LOAD, UNLOAD, LIST = "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/lora-adapters"
A, B, ADMIN = ({"X-Api-Key": f"key-of-{who}-0123"} for who in ("anna", "bert", "admin"))


def tenant(key):
    return "key-" + hashlib.sha256(key["X-Api-Key"].encode()).hexdigest()[:12]


class Roles(base.Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = os.path.realpath(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        for name in ("a.gguf", "b.gguf", "mine.gguf"):
            open(os.path.join(cls.folder, name), "w").close()
        with open(os.path.join(cls.folder, "bad.gguf"), "w") as f:
            f.write("malformed")

    @classmethod
    def tearDownClass(cls):
        pass

    def setUp(self):
        self.server = self.own("--adapter-dir", self.folder, "--adapter", os.path.join(self.folder, "mine.gguf"), "--alias", "fake", "--alias", "*",
                               "--api-key", A["X-Api-Key"], "--api-key", B["X-Api-Key"], "--admin-key", ADMIN["X-Api-Key"])

    def load(self, who, name, path="a.gguf", status=200, **more):
        answer = self.server.post(LOAD, {"lora_name": name, "lora_path": path, **more}, headers=who)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def unload(self, who, name, status=200):
        answer = self.server.post(UNLOAD, {"lora_name": name}, headers=who)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def used(self, who, status=200, **body):
        """The adapters that the engine was asked for, by their names there."""
        answer = self.server.post(TEXT, {"prompt": "[adapters]", "max_tokens": 200, **body}, headers=who)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json["choices"][0]["text"] if status == 200 else answer.json["error"]["message"]

    def names(self, who):
        listed = [x["name"] for x in self.server.get(LIST, headers=who).json]
        models = [m["id"] for m in self.server.get("/v1/models", headers=who).json["data"]]
        return listed, models[1:]

    def test_adapters_of_all_want_an_admin(self):
        for who in (A, B):
            answer = self.server.post(LIST, [{"id": 0, "scale": 1}], headers=who)
            self.assertEqual((answer.status, answer.json["error"]["type"]), (403, "permission_error"))
            self.assertIn("--admin-key", answer.json["error"]["message"])
            self.assertEqual(self.used(A), "-")
            self.load(who, "all", publish=True, status=403)
            self.unload(who, "mine", 403)
        self.assertEqual(self.server.post(LIST, [{"id": 0, "scale": 0.5}], headers=ADMIN).status, 200)
        self.assertEqual((self.used(A), self.used(B)), ("mine=0.5;", "mine=0.5;"))
        self.assertEqual(self.server.post(LIST, [], headers=B).status, 403)
        self.assertEqual(self.used(A), "mine=0.5;")

    def test_naming_the_base_means_the_base(self):
        """Whatever was set for requests that name no model; by its own name, an alias, or any that stands for it."""
        self.server.post(LIST, [{"id": 0, "scale": 0.5}], headers=ADMIN)
        for model in ("fake", "gpt-4o"):
            self.assertEqual(self.used(A, model=model), "-")
            self.assertEqual(self.server.post(LLAMA, {"prompt": "[adapters]", "model": model, "n_predict": 99}, headers=A).json["content"], "-")
            chat = {"messages": base.user("[adapters]"), "model": model}
            self.assertEqual(self.server.post(base.CHAT, chat, headers=A).json["choices"][0]["message"]["content"], "-")
        for more in ({}, {"model": None}, {"model": ""}):
            self.assertEqual(self.used(A, **more), "mine=0.5;")
        self.assertEqual(self.used(A, model="mine"), "mine=nan;")

    def test_a_key_is_told_of_the_adapters_that_it_may_use(self):
        self.server = self.own("--adapter-dir", self.folder, "--adapter", os.path.join(self.folder, "mine.gguf"),
                               "--api-key", A["X-Api-Key"], "--api-key", B["X-Api-Key"])
        self.load(A, "style")
        said = "the model 'nope' does not exist; this server has 'fake' and the adapter"
        self.assertEqual(self.used(A, 404, model="nope"), said + "s 'mine', 'style'")
        self.assertEqual(self.used(B, 404, model="nope"), said + " 'mine'")

    def test_what_a_key_loads_is_its_own(self):
        first = self.load(A, "style")
        self.assertEqual((first["name"], first["version"]), ("style", 1))
        self.assertEqual(self.names(A), (["mine", "style"], ["mine", "style"]))
        self.assertEqual(self.names(B), (["mine"], ["mine"]))
        self.assertEqual(self.used(A, model="style"), tenant(A) + ".style=nan;")
        self.assertEqual(self.used(A, model="fake:style"), tenant(A) + ".style=nan;")
        # Another key finds it by no name and no number; what it names so is the base, as any name here, or nothing.
        for model in ("style", tenant(A) + ".style", "fake:" + tenant(A) + ".style"):
            self.assertEqual(self.used(B, model=model), "-")
        self.assertIn("which no adapter has", self.used(B, 400, lora=[{"id": first["id"], "scale": 1}]))
        self.unload(B, "style", 404)
        self.unload(B, tenant(A) + ".style", 404)
        # The same name is another adapter of another key; put in the place of what there is, it is still only that key's.
        second = self.load(B, "style", "b.gguf")
        self.assertNotEqual(second["id"], first["id"])
        self.assertEqual(self.load(B, "style", load_inplace=True)["version"], 2)
        self.assertEqual(self.load(B, "mine", load_inplace=True)["version"], 1)
        self.assertEqual((self.used(A, model="mine"), self.used(B, model="mine")), ("mine=nan;", tenant(B) + ".mine=nan;"))
        self.assertEqual(self.used(B, lora=[{"id": second["id"], "scale": 2}]), tenant(B) + ".style=2;")
        self.unload(B, "style")
        self.unload(B, "mine")
        self.unload(B, "mine", 403)  # the operator's, again
        self.assertEqual(self.used(A, model="style"), tenant(A) + ".style=nan;")
        self.assertIn("'style' already", self.load(A, "style", status=400)["error"]["message"])
        self.assertEqual(self.load(A, "worse", "bad.gguf", 400)["error"]["message"], "adapter worse: it is malformed")
        self.load(A, "x" * 111)
        self.assertIn("at most 111 bytes", self.load(A, "x" * 112, status=400)["error"]["message"])

    def test_what_an_admin_publishes_is_everybodys(self):
        mine = self.load(ADMIN, "plan")
        self.assertEqual(self.names(A), (["mine"], ["mine"]))
        answer = self.server.post(LIST, [{"id": mine["id"], "scale": 1}], headers=ADMIN)
        self.assertEqual((answer.status, "'publish'" in answer.json["error"]["message"]), (400, True))
        self.load(ADMIN, "style", publish=True)
        self.assertEqual((self.used(A, model="style"), self.used(B, model="style")), ("style=nan;",) * 2)
        self.assertEqual(self.names(A)[0], ["mine", "style"])
        self.load(ADMIN, tenant(A) + ".x", publish=True, status=400)
        listed = {x["name"]: x for x in self.server.get(LIST, headers=A).json}
        self.assertNotIn("requests", listed["style"])  # they are others', too
        self.load(A, "own")
        listed = {x["name"]: (x["published"], "requests" in x) for x in self.server.get(LIST, headers=A).json}
        self.assertEqual(listed, {"mine": (True, False), "style": (True, False), "own": (False, True)})
        self.assertEqual(self.names(ADMIN)[0], ["mine", "plan", "style", tenant(A) + ".own"])
        self.unload(ADMIN, tenant(A) + ".own")
        self.assertEqual(self.names(A)[0], ["mine", "style"])
        self.unload(A, "style", 403)
        self.unload(ADMIN, "style")
        self.assertEqual(self.used(A, model="style"), "-")

    def test_one_key_leaves_names(self):
        for i in range(48):
            self.load(A, f"n{i}")
        self.assertIn("48 adapters of its own", self.load(A, "one-more", status=400)["error"]["message"])
        self.load(A, "n7", load_inplace=True)
        self.load(B, "one-more")
        self.unload(A, "n0")
        self.load(A, "one-more")

    def test_slots_of_others(self):
        """Nobody sees what runs there for another, takes one that holds what another left, or pushes out who runs little by running much."""
        def say(who, **more):
            self.assertEqual(self.server.post(LLAMA, {"prompt": "[say abc]", **more}, headers=who).status, 200)
        say(A)
        say(A)
        seen = {who["X-Api-Key"]: self.server.get("/slots", headers=who).json for who in (A, B, ADMIN)}
        for slot in seen[B["X-Api-Key"]][:2]:
            self.assertEqual(set(slot), {"id", "n_ctx", "speculative", "is_processing"})
        for who in (A, ADMIN):
            self.assertEqual([s["n_tokens"] > 0 for s in seen[who["X-Api-Key"]]], [True, True] + [False] * 6)
        say(B, id_slot=1)
        for _ in range(20):
            say(B)
        mine = [s["n_tokens"] for s in self.server.get("/slots", headers=A).json if s.get("n_tokens")]
        self.assertEqual(len(mine), 2)
        self.assertEqual(self.server.post("/slots/1?action=save", {"filename": "x"}, headers=A).status, 200)
        say(A, id_slot=1)  # its own it may

    def test_restoring_where_one_key_has_all_slots(self):
        """Over the one that a request would take, and no other; it is told which; what the other left there is not had or lost otherwise."""
        def say(who, **more):
            self.assertEqual(self.server.post(LLAMA, {"prompt": "[say abc]", **more}, headers=who).status, 200)
        def act(action, i, name, who=B):
            answer = self.server.post(f"/slots/{i}?action={action}", {"filename": name} if name else {}, headers=who)
            return answer.status, answer.json.get("error", {}).get("message", "")
        def held(who):
            return [s["id"] for s in self.server.get("/slots", headers=who).json if s.get("n_tokens")]
        say(B)
        self.assertEqual(act("save", 0, "mine")[0], 200)
        self.assertEqual(act("erase", 0, None)[0], 200)
        for i in (*range(8), 0, 1, 2):  # 3 is the one used least recently
            say(A, id_slot=i)
        self.assertEqual(held(A), list(range(8)))
        for i in (0, 2, 4, 7):
            status, message = act("restore", i, "mine")
            self.assertEqual((status, "nothing of yours" in message, "slot 3 may be" in message), (400, True, True), message)
        for i in range(8):
            self.assertEqual((act("erase", i, None)[0], act("save", i, "stolen")[0]), (400, 400))
        self.assertEqual(held(A), list(range(8)))
        self.assertEqual(act("restore", 3, "none")[0], 404)
        self.assertEqual(held(A), list(range(8)))  # what is not there takes nothing
        self.assertEqual(act("restore", 3, "mine")[0], 200)
        self.assertEqual((held(B), held(A)), ([3], [0, 1, 2, 4, 5, 6, 7]))
        self.assertEqual(act("restore", 3, "mine", A)[0], 400)
        self.assertEqual(act("restore", 3, "mine")[0], 200)  # its own by now

    def rows(self, who, server=None):
        page = (server or self.server).get("/metrics", headers=who).body.decode()
        return {(m[1], m[2]): int(m[3]) for m in re.finditer(r'^weft_key_requests_total\{key="([^"]*)",adapter="([^"]*)"\} (\d+)$', page, re.M)}, page

    def test_counters_by_key_and_adapter(self):
        """A key sees its own, an admin all; whatever names adapters get, there is a bound to how many are told apart."""
        self.load(A, "style")
        for _ in range(2):
            self.used(A)
        self.used(A, model="style")
        self.used(B, model="mine")
        self.used(B, lora=[{"id": 0, "scale": 2}])
        own = {(tenant(A), ""): 2, (tenant(A), "style"): 1}
        rows, page = self.rows(A)
        self.assertEqual(rows, own)
        self.assertNotIn(tenant(B), page)
        self.assertEqual(self.rows(ADMIN)[0], {**own, (tenant(B), "mine"): 2})
        generated = dict(re.findall(r'^weft_key_generated_tokens_total\{key="%s",adapter="(.*)"\} (\d+)$' % tenant(A), page, re.M))
        self.assertEqual(generated[""], "2")  # "-", twice
        for i in range(20):
            self.load(A, f"n{i}")
            self.used(A, model=f"n{i}")
        rows = self.rows(A)[0]
        self.assertEqual((len(rows), rows[tenant(A), "(other)"]), (9, 14))
        self.assertEqual(self.rows(B)[0], {(tenant(B), "mine"): 2})

    def key_file(self, text):
        path = os.path.join(self.folder, "keys")
        with open(path, "w") as f:
            f.write(text)
        return path

    def test_keys_are_read_again(self):
        """At SIGHUP: who is new may call, who is gone may not and has no adapters any more, roles change; a file that is wrong changes nothing."""
        keys = {k: v["X-Api-Key"] for k, v in (("a", A), ("b", B), ("admin", ADMIN))}
        path = self.key_file(f"{keys['a']} name=anna\n{keys['admin']} admin # may all\n")
        server = self.server = self.own("--adapter-dir", self.folder, "--api-key-file", path)
        def statuses():
            return [server.get("/props", headers=who).status for who in (A, B, ADMIN)]
        def again(text):
            self.key_file(text)
            server.process.send_signal(signal.SIGHUP)
        self.assertEqual(statuses(), [200, 401, 200])
        self.load(A, "style")
        self.assertEqual(self.used(A, model="style"), tenant(A) + ".style=nan;")
        self.assertEqual(self.rows(ADMIN)[0], {("anna", "style"): 1})
        again(f"{keys['b']} admin\n{keys['admin']}\n")
        self.assertTrue(wait_until(lambda: statuses() == [401, 200, 200]))
        self.assertTrue(wait_until(lambda: self.names(B)[0] == []))
        self.load(ADMIN, "all", publish=True, status=403)
        self.load(B, "all", publish=True)
        for wrong in ("", f"{keys['a']} root\n", f"{keys['a']}\nshort\n"):
            again(wrong)
            self.assertTrue(wait_until(lambda: "the keys stay as they were" in "".join(server.err)))
            server.err.clear()
            self.assertEqual(statuses(), [401, 200, 200])
        os.remove(path)
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: "the keys stay as they were" in "".join(server.err)))
        self.assertEqual(statuses(), [401, 200, 200])

    def test_lines_of_a_key_file(self):
        for line, words in (
            ("good-key-here root", "not 'root'"),
            ("good-key-here name=", "1 to 31 letters"),
            ("good-key-here name=a/b", "1 to 31 letters"),
            ("good-key-here name=" + "x" * 32, "1 to 31 letters"),
            ("good-key-here\tadmin name=x short", "not 'short'"),
        ):
            p = subprocess.run([*FAKE, "--api-key-file", self.key_file(f"# keys\n{line}\n")], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((p.returncode, "line 2" in p.stderr, words in p.stderr), (1, True, True), p.stderr)
        hashed = hashlib.sha256(B["X-Api-Key"].encode()).hexdigest()
        server = self.own("--api-key-file", self.key_file(f"{A['X-Api-Key']}\tname=a.b_c-d   admin\r\nsha256:{hashed} name=bert # x"))
        for who, status in ((A, 200), (B, 403)):
            self.assertEqual(server.post(LIST, [], headers=who).status, status)
            self.assertEqual(server.post(TEXT, {"prompt": "x"}, headers=who).status, 200)
        self.assertEqual(self.rows(A, server)[0], {("a.b_c-d", ""): 1, ("bert", ""): 1})

    def test_without_keys_who_is_here_is_admin(self):
        """And nobody from elsewhere; who comes through a proxy is not here."""
        server = self.own("--adapter-dir", self.folder, "--proxy", "127.0.0.1")
        load = {"lora_name": "a", "lora_path": "a.gguf"}
        for path, body in ((LIST, []), (LOAD, load), (UNLOAD, {"lora_name": "a"})):
            self.assertEqual(server.post(path, body, source="127.0.0.2").status, 200, path)
        server.post(LOAD, load, source="127.0.0.2")
        for path, body in ((LIST, []), (LOAD, {**load, "lora_name": "b"}), (UNLOAD, {"lora_name": "a"})):
            answer = server.post(path, body)
            self.assertEqual((answer.status, "on the server's machine" in answer.json["error"]["message"]), (403, True), answer.body)
        self.assertEqual(server.post(TEXT, {"prompt": "[adapters]", "model": "a"}).json["choices"][0]["text"], "a=nan;")
        unix = self.own("--unix", os.path.join(self.folder, "socket"), "--adapter-dir", self.folder)
        for here, who in ((unix, {}), (server, {"source": "127.0.0.2"})):
            self.assertEqual(here.post(LIST, [], **who).status, 200)
            self.assertEqual(here.post(LIST, [], headers={"X-Real": "1.2.3.4"}, **who).status, 200)
            for name in ("Forwarded", "X-Forwarded-For", "X-Real-IP", "x-real-ip", "Via", "X-Forwarded-Proto"):
                for value in ("1.2.3.4", "127.0.0.1", ""):
                    self.assertEqual(here.post(LIST, [], headers={name: value}, **who).status, 403, name)


if __name__ == "__main__":
    unittest.main(verbosity=1)
