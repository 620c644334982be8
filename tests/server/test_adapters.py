# SPDX-License-Identifier: Apache-2.0
"""Claims about adapters over HTTP, over a scripted model (fake_engine.c): which adapters a request means, how they are listed, loaded and
unloaded, and that no client leaves the folder for them.

usage: test_adapters.py build/fake_server"""
import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
import unittest

import servers as base

LOAD, UNLOAD, LIST = "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/lora-adapters"


class Adapters(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.inside = os.path.join(self.folder, "inside")
        os.makedirs(os.path.join(self.inside, "deep"))
        for path in ("a.gguf", "b.gguf", "deep/c.gguf", "../outside.gguf"):
            open(os.path.join(self.inside, path), "w").close()
        os.symlink("../outside.gguf", os.path.join(self.inside, "link.gguf"))
        self.server = base.Server([*base.FAKE, "--adapter-dir", self.inside])

    def tearDown(self):
        status, err = self.server.stop()
        shutil.rmtree(self.folder)
        self.assertEqual(status, 0, err)

    def load(self, name, path, **more):
        return self.server.post(LOAD, {"lora_name": name, "lora_path": path, **more})

    @contextlib.contextmanager
    def held(self):
        """Nothing slow is ready meanwhile."""
        hold = os.path.join(self.inside, "hold")
        open(hold, "w").close()
        try:
            yield
        finally:
            os.remove(hold)

    def used(self, path=base.TEXT, **body):
        """The adapters that the engine was asked for."""
        body = {"prompt": "[adapters]", **body} if path != base.CHAT else {"messages": base.user("[adapters]"), **body}
        r = self.server.post(path, {"max_tokens": 200, **body})
        self.assertEqual(r.status, 200, r.body)
        if path == base.LLAMA:
            return r.json["content"]
        choice = r.json["choices"][0]
        return choice["text"] if path == base.TEXT else choice["message"]["content"]

    def test_a_model_may_be_an_adapter(self):
        self.assertEqual(self.load("a", "a.gguf").status, 200)
        self.assertEqual(self.load("c", "deep/c.gguf", scale=0.5).status, 200)
        for path in (base.TEXT, base.CHAT, base.LLAMA):
            self.assertEqual(self.used(path), "-")
            self.assertEqual(self.used(path, model="a"), "a=nan;")
            self.assertEqual(self.used(path, model="fake:c"), "c=nan;")
            self.assertEqual(self.used(path, model="fake"), "-")
        for name in ("b", "fake:b", "other:a", "a:a", "fake:"):
            r = self.server.post(base.TEXT, {"prompt": "x", "model": name})
            self.assertEqual((r.status, r.json["error"]["code"]), (404, "model_not_found"), name)
        models = [m["id"] for m in self.server.get("/v1/models").json["data"]]
        self.assertEqual(models, ["fake", "a", "c"])
        self.assertEqual(self.server.get("/v1/models/fake:a").json["parent"], "fake")
        self.assertEqual(self.server.get("/v1/models/b").status, 404)

    def test_a_model_that_is_not_there_is_told_what_is(self):
        def told(model="nope"):
            r = self.server.post(base.TEXT, {"prompt": "x", "model": model})
            self.assertEqual((r.status, r.json["error"]["param"]), (404, "model"))
            return r.json["error"]["message"]

        said = "the model 'nope' does not exist; this server has 'fake'"
        self.assertEqual(told(), said)
        self.load("a", "a.gguf")
        self.assertEqual(told(), said + " and the adapter 'a'")
        self.load("b", "b.gguf")
        self.assertEqual(told(), said + " and the adapters 'a', 'b'")
        for i in range(20):  # over more than one page of them
            self.load(f"n{i}", "a.gguf")
        self.assertEqual(told(), said + " and the adapters 'a', 'b', " + ", ".join(f"'n{i}'" for i in range(6)) + " and 14 more")
        for name in ("a", "b", *(f"n{i}" for i in range(20))):
            self.server.post(UNLOAD, {"lora_name": name})
        for i in range(3):  # long names are counted where they leave no room
            self.load(str(i) * 100, "a.gguf")
        self.assertEqual(told(), said + f" and the adapters '{'0' * 100}' and 2 more")
        self.assertEqual(told("x" * 200), said.replace("nope", "x" * 100) + f" and the adapters '{'0' * 100}' and 2 more")

    def test_lora_field_and_scales_for_all(self):
        self.load("a", "a.gguf")
        self.load("b", "b.gguf")
        listed = self.server.get(LIST).json
        self.assertEqual([(x["id"], x["name"], x["scale"], os.path.basename(x["path"])) for x in listed], [(0, "a", 0, "a.gguf"), (1, "b", 0, "b.gguf")])
        for path in (base.TEXT, base.CHAT, base.LLAMA):
            self.assertEqual(self.used(path, lora=[{"id": 1, "scale": 0.5}, {"id": 0, "scale": -2}]), "b=0.5;a=-2;")
            self.assertEqual(self.used(path, lora=[]), "-")
        self.assertEqual(self.server.post(LIST, [{"id": 1, "scale": 0.25}]).json, {"success": True})
        self.assertEqual([x["scale"] for x in self.server.get(LIST).json], [0, 0.25])
        self.assertEqual(self.used(), "b=0.25;")
        self.assertEqual(self.used(model="a"), "a=nan;")
        self.assertEqual(self.used(lora=[{"id": 0, "scale": 1}]), "a=1;")
        self.server.post(UNLOAD, {"lora_name": "b"})
        self.assertEqual(self.used(), "-")
        self.assertEqual(self.load("b", "b.gguf").json["id"], 2)  # a number is never given twice
        self.assertEqual(self.used(), "-")

    def test_what_was_chosen_is_what_computes(self):
        """Its name unloaded and loaded again while the request's grammar is compiled: by name or by number, and for each of its answers."""
        known = self.load("a", "a.gguf").json["id"]
        slow = {"prompt": "[versions]", "n": 2, "max_tokens": 9}
        for way in ("model", "lora", "set"):
            for wait in (0.03, 0.06, 0.1, 0.5, 2, 8, 30):  # until the request is there before the name is gone
                chosen = {"model": "a"} if way == "model" else {"lora": [{"id": known, "scale": 1}]} if way == "lora" else {}
                if way == "set":
                    self.server.post(LIST, [{"id": known, "scale": 1}])
                answers, expected = [], [f"{known}.1;"] * 2
                fields = {**slow, **chosen, "grammar": f"root ::= slow # {way}, {wait}"}  # compiled anew each time
                asking = threading.Thread(target=lambda: answers.append(self.server.post(base.TEXT, fields).json))
                asking.start()
                time.sleep(wait)
                self.assertEqual(self.server.post(UNLOAD, {"lora_name": "a"}).status, 200)
                fresh = self.load("a", "b.gguf").json["id"]
                asking.join()
                self.assertGreater(fresh, known)
                known, texts = fresh, [c["text"] for c in answers[0].get("choices", ())]
                self.assertLessEqual(len(set(texts)), 1)
                if way != "model":  # a name may stand for what it is by then
                    self.assertNotIn(f"{fresh}.1;", texts)
                if texts == expected:
                    break
            self.assertEqual(texts, expected, way)
        self.assertEqual(self.used(prompt="[versions]"), "Hello, world!")  # whose scale was set is gone

    def test_bad_fields_are_named(self):
        self.load("a", "a.gguf")
        good = {"id": 0, "scale": 1}
        for lora, words in (("a", "array of objects"), ([1], "'lora[0]'"), ([{"id": 0}], "'lora[0]'"), ([good, {"id": "0", "scale": 1}], "'lora[1]'"),
                            ([good, good], "id 0 twice"), ([{"id": 7, "scale": 1}], "id 7"), ([{"id": -1, "scale": 1}], "id -1"),
                            ([{"id": 0, "scale": 1e300}], "'lora[0]'"), ([{"id": i, "scale": 1} for i in range(9)], "at most 8")):
            for path, body in ((base.TEXT, {"prompt": "x"}), (base.LLAMA, {"prompt": "x"})):
                r = self.server.post(path, {**body, "lora": lora})
                self.assertEqual(r.status, 400, lora)
                self.assertIn(words, r.json["error"]["message"])
            r = self.server.post(LIST, lora)
            self.assertEqual(r.status, 400, lora)
        r = self.server.post(base.TEXT, {"prompt": "x", "model": "a", "lora": [good]})
        self.assertEqual((r.status, r.json["error"]["param"]), (400, "lora"))
        self.assertEqual(self.server.ask("POST", LIST, b"{").status, 400)

    def test_who_waits_for_adapters_stops_nobody(self):
        """Those that are read one after the other occupy no worker: who needs none of them is answered, and deadlines hold meanwhile."""
        self.load("a", "a.gguf")
        for i in range(6):
            self.load(f"slow{i}", "b.gguf")
        answers = []
        asking = [threading.Thread(target=lambda i=i: answers.append(self.used(model=f"slow{i}"))) for i in range(6)]
        with self.held():
            for t in asking:
                t.start()
            self.assertEqual(self.server.wait_metric("weft_http_requests", 7), 7)  # and the one that asks
            self.assertEqual((self.used(), self.used(model="a")), ("-", "a=nan;"))
            late = self.server.post(base.TEXT, {"prompt": "x", "model": "slow5", "timeout_ms": 20})
            self.assertEqual((late.status, late.json["error"]["message"]), (504, "the deadline passed before its adapter was ready"))
            self.assertEqual(answers, [])
        for t in asking:
            t.join()
        self.assertEqual(sorted(answers), [f"slow{i}=nan;" for i in range(6)])
        self.assertEqual(self.used(model="slow3"), "slow3=nan;")
        self.assertEqual(self.used(lora=[{"id": 0, "scale": 1}, {"id": 6, "scale": 2}]), "a=1;slow5=2;")

    def test_files_are_asked_for_before_their_turn(self):
        """Those of the first eight that wait, while another is read; not for a client who has left."""
        names = [f"slow{i}" for i in range(11)]
        files = [os.path.join(self.inside, f"w{i}.gguf") for i in range(11)]
        for name, file in zip(names, files):
            for path in (file, file + ".hold"):  # it is not ready before the second one is gone
                open(path, "w").close()
            self.load(name, os.path.basename(file))
        asked = "weft_adapter_asked_ahead_total"
        answers = []
        asking = [threading.Thread(target=lambda name=name: answers.append(self.used(model=name))) for name in names if name != names[9]]
        with self.server.connect() as leaves:
            for n, t in enumerate(asking[:9]):
                t.start()
                self.assertEqual(self.server.wait_metric(asked, n), n)  # all but the one that is read
            leaves.sendall(base.request({"prompt": "x", "model": names[9]}, base.TEXT))
            asking[9].start()
            self.assertEqual(self.server.wait_metric("weft_http_requests", 12), 12)  # and the one that asks
        self.assertEqual(self.server.wait_metric("weft_http_gone_total", 1), 1)
        self.assertEqual(self.server.metric(asked), 8)  # two wait behind them
        for file in files[:2]:  # now both are near
            os.remove(file + ".hold")
        self.assertTrue(base.wait_until(lambda: self.server.metric(asked) >= 9))
        for file in files[2:]:
            os.remove(file + ".hold")
        for t in asking:
            t.join()
        self.assertEqual(sorted(answers), sorted(f"{n}=nan;" for n in names if n != names[9]))
        self.assertEqual(self.server.metric(asked), 9)

    def test_who_finds_no_room_waits_for_it(self):
        """Until what is in use is given back, or the deadline; a client who leaves holds up nobody."""
        for name in ("a", "full1", "full2"):
            self.load(name, "a.gguf")
        answers = []
        with self.server.connect() as long:
            long.sendall(base.request({"prompt": "[delay 60000][loop x]", "max_tokens": 2000}, base.TEXT))
            self.assertEqual(self.server.wait_metric("weft_running", 1), 1)
            with self.server.connect() as s:
                s.sendall(base.request({"prompt": "x", "model": "full1"}, base.TEXT))
            full = [threading.Thread(target=lambda i=i: answers.append(self.used(model=f"full{i}"))) for i in (1, 2)]
            for t in full:
                t.start()
            late = self.server.post(base.TEXT, {"prompt": "x", "model": "full1", "timeout_ms": 100})
            self.assertEqual((late.status, late.json["error"]["message"]), (504, "the deadline passed before its adapter was ready"))
            self.assertEqual((self.used(), self.used(model="a")), ("-", "a=nan;"))
            self.assertEqual(answers, [])
        for t in full:
            t.join()
        self.assertEqual(sorted(answers), ["full1=nan;", "full2=nan;"])

    def test_who_finds_no_room_holds_up_nobody(self):
        """Who needs an adapter for which there is room is not behind who waits for room."""
        for name in ("full1", "full2", "slow1", "slow2"):
            self.load(name, "a.gguf")
        with self.server.connect() as long, self.server.connect() as full, self.server.connect() as more:
            long.sendall(base.request({"prompt": "[delay 60000][loop x]", "max_tokens": 2000}, base.TEXT))
            self.assertEqual(self.server.wait_metric("weft_running", 1), 1)
            for s, name in ((full, "full1"), (more, "full2")):
                s.sendall(base.request({"prompt": "x", "model": name}, base.TEXT))
            self.assertEqual(self.server.wait_metric("weft_http_requests", 4), 4)  # and the one that asks
            for source, name in (("127.0.0.1", "slow1"), ("127.0.0.2", "slow2")):
                r = self.server.post(base.TEXT, {"prompt": "x", "model": name, "timeout_ms": 20000}, source=source)
                self.assertEqual(r.status, 200, r.body)

    def test_what_is_unloaded_while_it_is_waited_for(self):
        """Is missing then: the base does not answer in its name."""
        self.load("full1", "a.gguf")
        answers = []
        with self.server.connect() as long:
            long.sendall(base.request({"prompt": "[delay 60000][loop x]", "max_tokens": 2000}, base.TEXT))
            self.server.wait_metric("weft_running", 1)
            waiting = threading.Thread(target=lambda: answers.append(self.server.post(base.TEXT, {"prompt": "[adapters]", "model": "full1"})))
            waiting.start()
            self.assertEqual(self.server.wait_metric("weft_http_requests", 3), 3)  # and the one that asks
            self.assertEqual(self.server.post(UNLOAD, {"lora_name": "full1"}).status, 200)
        waiting.join()
        self.assertEqual(answers[0].status, 404, answers[0].body)

    def test_as_many_wait_for_adapters_as_for_a_slot(self):
        server = base.Server([*base.FAKE, "--adapter-dir", self.inside, "--queue", "1"])
        try:
            server.post(LOAD, {"lora_name": "slow", "lora_path": "a.gguf"})
            answers = []
            ask = {"prompt": "[say x]", "model": "slow"}
            asking = [threading.Thread(target=lambda: answers.append(server.post(base.TEXT, ask))) for _ in range(14)]
            with self.held():
                for t in asking:
                    t.start()
                base.wait_until(lambda: answers)
            for t in asking:
                t.join()
            # 1: as many of an address as may be here; 7: the engine's queue
            refused = {(a.status, a.headers["retry-after"], re.sub(r"\d+", "N", a.json["error"]["message"])) for a in answers if a.status != 200}
            self.assertEqual(refused - {(429, "1", "N requests of this address are here already; try again in N s"),
                                        (429, "7", "the queue is full; try again in N seconds")},
                             {(429, "2", "too many requests wait for adapters to be read; try again in N s")})
        finally:
            server.stop()

    def test_loading_leaves_a_worker(self):
        open(os.path.join(self.inside, "slow.gguf"), "w").close()
        answers = []
        loading = [threading.Thread(target=lambda i=i: answers.append(self.load(f"x{i}", "slow.gguf"))) for i in range(6)]
        with self.held():
            for t in loading:
                t.start()
            base.wait_until(lambda: len(answers) >= 4)
            self.assertEqual([(a.status, a.headers.get("retry-after")) for a in answers], [(429, "1")] * 4)
            self.assertEqual(self.used(), "-")
            ask = {"lora_name": "y", "lora_path": "slow.gguf"}
            for source in ("127.0.0.2", "127.0.0.3"):  # there is one place at the disk that no address alone gets
                loading.append(threading.Thread(target=lambda source=source: answers.append(self.server.post(LOAD, ask, source=source))))
                loading[-1].start()
            base.wait_until(lambda: len(answers) >= 5)
            self.assertEqual([(a.status, a.headers.get("retry-after")) for a in answers[4:]], [(503, "1")])
        for t in loading:
            t.join()
        self.assertEqual([a.status for a in answers[5:]], [200] * 3)

    def test_load_and_unload(self):
        r = self.load("a", "a.gguf")
        self.assertEqual((r.status, r.json), (200, {"status": "ok", "id": 0, "name": "a", "version": 1}))
        r = self.load("a", "b.gguf")
        self.assertEqual((r.status, r.json["error"]["param"]), (400, "lora_name"))
        self.assertIn("set 'load_inplace'", r.json["error"]["message"])
        self.assertEqual(self.load("a", "a.gguf", load_inplace=True).json["version"], 2)
        self.assertEqual(self.server.post(UNLOAD, {"lora_name": "a"}).status, 200)
        self.assertEqual(self.server.post(UNLOAD, {"lora_name": "a"}).status, 404)
        self.assertEqual(self.server.get(LIST).json, [])
        r = self.load("fake", "a.gguf")  # nobody could ask for it
        self.assertEqual((r.status, r.json["error"]["param"]), (400, "lora_name"))
        self.assertEqual(self.load("a", "nowhere.gguf").status, 404)
        for body in ({}, {"lora_name": "a"}, {"lora_path": "a.gguf"}, {"lora_name": 1, "lora_path": "a"}):
            self.assertEqual(self.server.post(LOAD, body).status, 400, body)

    def test_the_field_that_is_wrong_is_blamed(self):
        """What is wrong with a name is not said of its file, nor the other way round; the name is looked at first."""
        for name, data in (("other.gguf", ""), ("bad.gguf", "malformed")):
            with open(os.path.join(self.inside, name), "w") as f:
                f.write(data)
        for name, path, param, words in (("x/y", "a.gguf", "lora_name", "no name for an adapter"), ("x/y", "other.gguf", "lora_name", "no name for an adapter"),
                                         ("x", "other.gguf", "lora_path", "another base"), ("x", "bad.gguf", "lora_path", "malformed")):
            r = self.load(name, path)
            self.assertEqual((r.status, r.json["error"]["param"]), (400, param), (name, path))
            self.assertIn(words, r.json["error"]["message"])
        for i in range(64):  # as many as the double has room for
            self.assertEqual(self.load(f"n{i}", "a.gguf").status, 200)
        r = self.load("one-more", "a.gguf")
        self.assertEqual((r.status, r.json["error"]["param"]), (400, "lora_name"))
        self.assertEqual(self.load("n0", "b.gguf", load_inplace=True).status, 200)

    def test_no_adapter_takes_a_name_of_the_model(self):
        server = base.Server([*base.FAKE, "--adapter-dir", self.inside, "--alias", "first", "--alias", "gpt-4", "--alias", "*"])
        try:
            for name in ("first", "gpt-4"):
                for inplace in (False, True):
                    r = server.post(LOAD, {"lora_name": name, "lora_path": "a.gguf", "load_inplace": inplace})
                    self.assertEqual((r.status, r.json["error"]["param"]), (400, "lora_name"), name)
                r = server.post(base.TEXT, {"prompt": "[adapters]", "model": name, "max_tokens": 200})
                self.assertEqual((r.status, r.json["choices"][0]["text"]), (200, "-"), name)
            self.assertEqual(server.post(LOAD, {"lora_name": "b", "lora_path": "b.gguf"}).status, 200)
            for model, used in (("b", "b=nan;"), ("gpt-4:b", "b=nan;"), ("other", "-")):
                r = server.post(base.TEXT, {"prompt": "[adapters]", "model": model, "max_tokens": 200})
                self.assertEqual((r.status, r.json["choices"][0]["text"]), (200, used), model)
        finally:
            server.stop()

    def test_nobody_leaves_the_folder(self):
        outside = os.path.join(self.folder, "outside.gguf")
        for path in (outside, "../outside.gguf", "deep/../../outside.gguf", "link.gguf", "..", "deep/..", "/etc/passwd", ".", "",
                     "deep\\..\\..\\outside.gguf", "../inside/../outside.gguf"):
            r = self.load("x", path)
            self.assertEqual(r.status, 400, path)
            self.assertNotIn(self.folder, r.body.decode())
        for member in ("adapter_config.json", "adapter_model.safetensors"):  # a folder within, whose files are not
            peft = os.path.join(self.inside, member + ".peft")
            os.makedirs(peft)
            os.symlink("../../outside.gguf", os.path.join(peft, member))
            r = self.load("x", os.path.basename(peft))
            self.assertEqual((r.status, r.json["error"]["param"]), (400, "lora_path"), member)
        self.assertEqual(self.server.get(LIST).json, [])
        os.makedirs(os.path.join(self.inside, "peft"))
        os.symlink("../a.gguf", os.path.join(self.inside, "peft", "adapter_config.json"))
        self.assertEqual(self.load("x", "peft").status, 200)

    def test_nobody_learns_where_the_folder_is(self):
        self.assertEqual(self.load("c", "deep/c.gguf").status, 200)
        r = self.server.get(LIST)
        self.assertEqual(r.json[0]["path"], "deep/c.gguf")
        self.assertNotIn(self.folder, r.body.decode())
        with open(os.path.join(self.inside, "bad.gguf"), "w") as f:
            f.write("malformed")
        r = self.load("x", "bad.gguf")
        self.assertEqual((r.status, r.json["error"]["message"]), (400, "adapter x: it is malformed"))

    def test_nobody_learns_where_the_operators_files_are(self):
        for more in ((), ("--adapter-dir", self.inside)):
            server = base.Server([*base.FAKE, "--adapter", os.path.join(self.folder, "outside.gguf"), *more])
            try:
                r = server.get(LIST)
                self.assertEqual([(x["name"], x["path"]) for x in r.json], [("mine", "outside.gguf")])
            finally:
                server.stop()

    def test_a_file_that_changed_may_be_asked_for_again(self):
        self.load("changed", "a.gguf")
        r = self.server.post(base.TEXT, {"prompt": "x", "model": "changed"})
        self.assertEqual((r.status, r.headers.get("retry-after")), (503, "1"))

    def test_without_a_folder_nothing_is_loaded_or_unloaded(self):
        server = base.Server(base.FAKE)
        try:
            r = server.post(LOAD, {"lora_name": "a", "lora_path": "a.gguf"})
            self.assertEqual(r.status, 403)
            self.assertIn("--adapter-dir", r.json["error"]["message"])
            r = server.post(UNLOAD, {"lora_name": "a"})  # it may be one of the operator's
            self.assertEqual((r.status, r.json["error"]["param"]), (403, "lora_name"))
            self.assertIn("--adapter-dir", r.json["error"]["message"])
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main(verbosity=1)
