# SPDX-License-Identifier: Apache-2.0
"""Claims about the folder of adapters of the real `weft serve`: what of it is served at the start, under which paths, and what is left out; and
that adapters come, change and go while requests run. Most files are empty: none is read before somebody asks for it. And that hundreds lie there
while there is memory for tens.

usage: test_folder.py build/weft"""
import concurrent.futures
import http.client
import json
import os
import random
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import real
from servers import EMULATOR, PATIENCE, PROGRAM, SANITIZED, TEXT, of_one_thread, request

STRING = 8  # GGUF's type of a value
LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"


def write_adapter(path, a=0.0, b=0.0, rank=1, **shapes):
    """For matrices of the model's first layer, given as NAME=(inputs, outputs), by default attn_q: all of A and of B the same, or what calls return."""
    def text(s):
        return struct.pack("<Q", len(s)) + s.encode()

    meta = {"general.architecture": "llama", "general.type": "adapter", "adapter.type": "lora"}
    tensors, values = [], b""
    for name, (n_in, n_out) in (shapes or {"attn_q": (real.WIDTH, real.WIDTH)}).items():
        for half, dims, value in (("a", (n_in, rank), a), ("b", (rank, n_out), b)):
            n = dims[0] * dims[1]
            data = struct.pack("<%df" % n, *(value() if callable(value) else value for _ in range(n)))
            tensors.append(text(f"blk.0.{name}.weight.lora_{half}") + struct.pack("<IQQIQ", 2, *dims, 0, len(values)))
            values += data + bytes(-len(data) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta)) + b"".join(text(k) + struct.pack("<I", STRING) + text(v) for k, v in meta.items())
    head += b"".join(tensors)
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32) + values)


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.inside = os.path.join(self.folder, "inside")
        os.makedirs(os.path.join(self.inside, "peft"))
        os.makedirs(os.path.join(self.inside, "leads-out"))
        for path in ("inside/a.gguf", "inside/gpt-4.gguf", "inside/peft/adapter_config.json", "outside.gguf"):
            open(os.path.join(self.folder, path), "w").close()
        os.symlink("../outside.gguf", os.path.join(self.inside, "link.gguf"))
        os.symlink("a.gguf", os.path.join(self.inside, "within.gguf"))
        os.symlink("../../outside.gguf", os.path.join(self.inside, "leads-out", "adapter_config.json"))

    def listed(self, folder, **more):
        server = real.serve("--alias", "gpt-4", "--adapter-dir", folder, **more)
        entries = server.get("/lora-adapters").json
        return [(e["name"], e["path"]) for e in entries], real.checked_stop(server)

    @of_one_thread
    def test_links_out_of_the_folder_and_names_of_the_model_are_left_out(self):
        os.symlink("inside", os.path.join(self.folder, "linked"))
        wanted = [("a", "a.gguf"), ("peft", "peft"), ("within", "within.gguf")]
        for folder in (self.inside, os.path.join(self.folder, "linked"), os.path.relpath(self.inside)):
            entries, err = self.listed(folder)
            self.assertEqual(entries, wanted, folder)
            for name in ("link.gguf", "leads-out", "gpt-4.gguf"):
                self.assertIn(name + " is left out", err)

    @of_one_thread
    def test_who_loads_a_file_learns_no_path(self):
        server = real.serve("--adapter-dir", self.inside)
        said = server.post("/v1/load_lora_adapter", {"lora_name": "mine", "lora_path": "a.gguf"})
        self.assertEqual((said.status, said.json["error"]["param"]), (400, "lora_path"))
        self.assertRegex(said.json["error"]["message"], "^adapter mine: .")
        self.assertNotIn(self.folder, said.body.decode())
        self.assertIn(os.path.join(self.inside, "a.gguf"), real.checked_stop(server))  # the log says it

    @of_one_thread
    def test_another_bases_adapter_is_its_files_fault(self):
        write_adapter(os.path.join(self.inside, "other.gguf"), attn_q=(real.WIDTH // 2, real.WIDTH // 2))
        server = real.serve("--adapter-dir", self.inside)
        said = server.post(LOAD, {"lora_name": "mine", "lora_path": "other.gguf"})
        self.assertEqual((said.status, said.json["error"]["param"]), (400, "lora_path"))
        for words in ("adapter mine: blk.0.attn_q.weight", "128 x 128", "256 x 256", "another base"):
            self.assertIn(words, said.json["error"]["message"])
        for name in ("../mine", ".mine", "m" * 129):
            said = server.post(LOAD, {"lora_name": name, "lora_path": "other.gguf"})
            self.assertEqual((said.status, said.json["error"]["param"]), (400, "lora_name"), name)
        real.checked_stop(server)

    @of_one_thread
    def test_values_too_large_to_compute_with_are_refused(self):
        """Finite ones, whatever type they are kept in: when they are loaded, or of those that lie in the folder by the first request, with the
        tensor and the remedy; and a scale that makes them too large, in the request that has it."""
        huge = (("a", 1e30, 1, "half A holds 1e+30"), ("b", 1, 1e30, "B up to 1e+30"), ("both", 5e5, 5e5, "A up to 500000, B up to 500000"))
        for name, a, b, _ in huge:
            write_adapter(os.path.join(self.inside, f"huge-{name}.gguf"), a, b)
        write_adapter(os.path.join(self.inside, "ill-scaled.gguf"), 1e-20, 1e20)  # the product is what counts
        write_adapter(os.path.join(self.inside, "good.gguf"), 100, 100)
        for kept in ("q8_0", "f32"):
            server = real.serve("--adapter-dir", self.inside, "--adapter-type", kept)
            for name, _, _, words in huge:
                said = server.post(LOAD, {"lora_name": "mine", "lora_path": f"huge-{name}.gguf"})
                self.assertEqual((said.status, said.json["error"]["param"]), (400, "lora_path"))
                asked = server.post(TEXT, {"prompt": "x", "max_tokens": 1, "model": f"huge-{name}"})
                self.assertEqual(asked.status, 500)  # who asks for a name chose no file
                for called, r in (("mine", said), (f"huge-{name}", asked)):
                    for part in (f"adapter {called}: blk.0.attn_q.weight: ", words, "train it again with a lower learning rate"):
                        self.assertIn(part, r.json["error"]["message"])
            for name in ("ill-scaled", "good"):
                self.assertEqual(server.post(TEXT, {"prompt": "x", "max_tokens": 1, "model": name}).status, 200, name)
            ids = {x["name"]: x["id"] for x in server.get("/lora-adapters").json}
            said = server.post(TEXT, {"prompt": "x", "max_tokens": 1, "lora": [{"id": ids["ill-scaled"], "scale": 1}, {"id": ids["good"], "scale": -1e6}]})
            self.assertEqual(said.status, 400)
            self.assertRegex(said.json["error"]["message"], r"^adapter good: blk\.0\.attn_q\.weight: at a scale of -1e\+06, .* give a smaller scale")
            said = server.post(LOAD, {"lora_name": "mine", "lora_path": "good.gguf", "scale": 1e6})  # of those who give none: when it is loaded
            self.assertEqual(said.status, 400)
            self.assertRegex(said.json["error"]["message"], r"^adapter mine: blk\.0\.attn_q\.weight: at a scale of 1e\+06, .* give a smaller scale")
            real.checked_stop(server)
        p = subprocess.run(
            [*EMULATOR, PROGRAM, "serve", real.MODEL, "--port", "0", "--adapter", f"mine={self.inside}/good.gguf:1e6"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.assertEqual(p.returncode, 1)
        self.assertIn("at a scale of 1e+06", p.stderr)
        p = subprocess.run(
            [*EMULATOR, PROGRAM, "run", real.MODEL, "x", "-n", "1", "--adapter", f"mine={self.inside}/huge-b.gguf"],
            capture_output=True,
            text=True,
        )
        self.assertEqual(p.returncode, 1)
        self.assertIn(f"adapter {self.inside}/huge-b.gguf: blk.0.attn_q.weight: A up to 1, B up to 1e+30", p.stderr)

    @of_one_thread
    def test_values_that_are_no_numbers_are_told_by_the_first_request(self):
        """Nothing of the folder is read before: the request that asks for it learns which adapter and which tensor, the log also which file."""
        for name, halves, _, _ in (bad := (("nan-a", (float("nan"), 1), "a", "NaN"), ("inf-b", (1, float("-inf")), "b", "infinity"))):
            write_adapter(os.path.join(self.inside, name + ".gguf"), *halves)
        write_adapter(os.path.join(self.inside, "good.gguf"), 1, 1)
        server = real.serve("--adapter-dir", self.inside)
        ids = {x["name"]: x["id"] for x in server.get("/lora-adapters").json}
        for name, _, half, what in bad:
            for body in ({"model": name}, {"model": name}, {"lora": [{"id": ids["good"], "scale": 1}, {"id": ids[name], "scale": 1}]}):
                said = server.post(TEXT, {"prompt": "x", "max_tokens": 1, **body})
                self.assertEqual(said.status, 500, said.body)
                self.assertRegex(said.json["error"]["message"], f"^adapter {name}: tensor blk.0.attn_q.weight.lora_{half} holds {what} at element 0")
        self.assertEqual(server.post(TEXT, {"prompt": "x", "max_tokens": 1, "model": "good"}).status, 200)
        err = real.checked_stop(server)
        for name, *_ in bad:
            self.assertIn(f"adapter {os.path.join(self.inside, name)}.gguf: tensor", err)

    @of_one_thread
    def test_an_adapter_that_leaves_no_numbers_is_named(self):
        """Each change is one that can be computed with, all together are not: that is found while the request runs."""
        wide = 3 * real.WIDTH
        write_adapter(
            os.path.join(self.inside, "strong.gguf"),
            1,
            4e9,
            128,
            ffn_gate=(real.WIDTH, wide),
            ffn_up=(real.WIDTH, wide),
            ffn_down=(wide, real.WIDTH),
        )
        write_adapter(os.path.join(self.inside, "weak.gguf"))
        server = real.serve("--adapter-dir", self.inside)
        ids = {x["name"]: x["id"] for x in server.get("/lora-adapters").json}
        asks = (({"model": "strong"}, "^adapter strong: "), ({"lora": [{"id": ids[n], "scale": 1} for n in ("weak", "strong")]}, "^adapters weak, strong: "))
        for path, body, what in (
            (TEXT, {"prompt": "x", "max_tokens": 4}, "no token can be picked"),
            ("/v1/embeddings", {"input": "x"}, "hidden states are no finite numbers"),
        ):
            for ask, named in asks if path == TEXT else asks[:1]:
                said = server.post(path, {**body, **ask})
                self.assertEqual(said.status, 400, said.body)
                self.assertRegex(said.json["error"]["message"], f"{named}.*{what}.*give a smaller scale")
            self.assertEqual(server.post(path, body).status, 200)
        real.checked_stop(server)
        strong, weak = (f"{name}={self.inside}/{name}.gguf" for name in ("strong", "weak"))
        for command, adapters, named in (("run", (strong,), "adapter {0}/strong.gguf"), ("run", (weak, strong), "adapters {0}/weak.gguf, {0}/strong.gguf"),
                                         ("run", (weak + ":0", strong), "adapter {0}/strong.gguf"), ("chat", (strong,), "adapter {0}/strong.gguf")):
            options = [x for a in adapters for x in ("--adapter", a)]
            p = subprocess.run([*EMULATOR, PROGRAM, command, real.MODEL, "-n", "4", *options], input="x\n", capture_output=True, text=True)
            self.assertEqual(p.returncode, 1, p.stderr)
            self.assertRegex(p.stderr, f"weft {command}: {re.escape(named.format(self.inside))}: no token can be picked.*give a smaller scale")

    def test_adapters_come_change_and_go_while_requests_run(self):
        """Those that run finish with the content that they began with; a changed file is another adapter, once it is loaded again."""
        style, other = os.path.join(self.inside, "style.gguf"), os.path.join(self.inside, "other")
        server = real.serve("--adapter-dir", self.inside)
        body = {"prompt": "Once upon a time", "max_tokens": 400, "temperature": 0, "ignore_eos": True}

        def text(**more):
            said = server.post(TEXT, {**body, **more})
            self.assertEqual(said.status, 200, said.body)
            return said.json["choices"][0]["text"]

        def change(url, **more):
            said = server.post(url, {"lora_name": "style", **more})
            self.assertEqual(said.status, 200, said.body)

        def begun():
            """An answer under the adapter, four times, of which something is there."""
            c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
            c.request("POST", TEXT, json.dumps({**body, "model": "style", "n": 4, "stream": True}))
            answer = c.getresponse()
            return c, answer, answer.readline()

        def finished(c, answer, line):
            """The four texts; it was running when this was asked for."""
            self.assertGreater(server.metric("weft_running"), 0)
            texts = [""] * 4
            while line.strip() != b"data: [DONE]":
                for choice in json.loads(line[6:])["choices"] if line.startswith(b"data: ") else []:
                    texts[choice["index"]] += choice["text"]
                line = answer.readline()
            c.close()
            return texts

        plain = text()
        write_adapter(style, 0.5, 4)
        change(LOAD, lora_path="style.gguf")
        loud = text(model="style")
        self.assertNotEqual(loud, plain)
        running = begun()
        write_adapter(other)  # of zeros: the model alone
        os.replace(other, style)
        change(LOAD, lora_path="style.gguf", load_inplace=True)
        self.assertEqual(finished(*running), [loud] * 4)
        self.assertEqual(text(model="style"), plain)
        write_adapter(other, 0.5, 4)
        os.replace(other, style)
        change(LOAD, lora_path="style.gguf", load_inplace=True)
        running = begun()
        change(UNLOAD)
        self.assertEqual(finished(*running), [loud] * 4)
        self.assertEqual((server.post(TEXT, {**body, "model": "style"}).status, text()), (404, plain))
        real.checked_stop(server)

    @of_one_thread
    def test_an_adapter_given_by_name_is_not_called_as_the_model(self):
        adapter = os.path.join(self.folder, "adapter.gguf")
        write_adapter(adapter)
        with self.assertRaises(RuntimeError) as refused:
            real.serve("--alias", "gpt-4", "--adapter", "gpt-4=" + adapter).kill()  # it is read at once
        self.assertIn("'gpt-4' has a name of the model itself", str(refused.exception))

    @of_one_thread
    def test_a_slot_that_ran_with_adapters_is_not_saved(self):
        """What is cached of its tokens is the adapter's: nothing that the model alone has computed of them is given out for it."""
        adapter = os.path.join(self.folder, "adapter.gguf")
        write_adapter(adapter)
        server = real.serve("--adapter", "zero=" + adapter, "--store", os.path.join(self.folder, "store"))
        body = {"prompt": "Once upon a time there was a cat " * 12, "n_predict": 4, "id_slot": 0}
        for more, status in (({}, 200), ({"lora": [{"id": 0, "scale": 1}]}, 400), ({}, 200)):
            self.assertEqual(server.post("/completion", {**body, **more}).status, 200)
            said = server.post("/slots/0?action=save", {"filename": "kept"})
            self.assertEqual(said.status, status, said.body)
            if status == 400:
                self.assertIn("ran with adapters", said.json["error"]["message"])
        real.checked_stop(server)


class Hundreds(unittest.TestCase):
    """300 adapters on disk, each of its own, and a budget of two megabytes, which has room for some tens of them."""
    N, SAMPLE = 300, 4 if SANITIZED else 12
    ASK = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0, "ignore_eos": True}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for i in range(cls.N):
            dice = random.Random(i)
            write_adapter(cls.path(i), lambda: dice.uniform(-1, 1), lambda: dice.uniform(-0.5, 0.5), 2, ffn_down=(3 * real.WIDTH, real.WIDTH))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def path(cls, i):
        return os.path.join(cls.folder.name, f"n{i}.gguf")

    def text(self, server, i):
        r = server.post(TEXT, {**self.ASK, "model": f"n{i}"})
        self.assertEqual(r.status, 200, r.body)
        return r.json["choices"][0]["text"]

    def test_each_answers_as_it_does_alone(self):
        server = real.serve("--adapter-dir", self.folder.name, "--adapter-mb", 2, "--slots", 8, "--queue", 64)
        order = list(range(self.N))
        random.Random(1).shuffle(order)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            first = dict(zip(order, pool.map(lambda i: self.text(server, i), order)))
            n_ready, n_bytes = server.metric("weft_adapters_ready"), server.metric("weft_adapter_bytes")
            loads, evictions = server.metric("weft_adapter_loads_total"), server.metric("weft_adapter_evictions_total")
            self.assertEqual(server.metric("weft_adapters"), self.N)
            self.assertTrue(20 <= n_ready <= 99, n_ready)
            self.assertLessEqual(n_bytes, 2 << 20)
            self.assertEqual(loads, self.N)
            self.assertEqual(evictions, self.N - n_ready)
            sample = order[:self.SAMPLE]  # those that were let go long ago
            again = list(pool.map(lambda i: self.text(server, i), sample))
        self.assertEqual(server.metric("weft_adapter_loads_total"), loads + len(sample))
        self.assertGreater(server.metric("weft_adapter_evictions_total"), evictions)
        self.assertGreater(len(set(first.values())), self.N * 0.9)  # or it would not be seen whose answer one is
        self.assertEqual(again, [first[i] for i in sample])
        last = order[-1]  # it is ready: used last
        self.assertEqual(self.text(server, last), first[last])
        self.assertEqual(server.metric("weft_adapter_loads_total"), loads + len(sample))
        real.checked_stop(server)
        for i in sample:
            alone = real.serve("--adapter", f"n{i}={self.path(i)}")
            self.assertEqual(self.text(alone, i), first[i], i)
            real.checked_stop(alone)

    def test_what_waits_for_a_slot_is_ready_before_it(self):
        """Its adapter is read while another has the slot, wherever in the queue it is."""
        server = real.serve("--adapter-dir", self.folder.name, "--slots", 1, "--queue", 32)
        with server.connect() as long, concurrent.futures.ThreadPoolExecutor(6) as pool:
            long.sendall(request({**self.ASK, "max_tokens": 100000, "n": 8, "stream": True}, TEXT))  # one after the other
            self.assertEqual(server.wait_metric("weft_waiting", 7), 7)
            waiting = [pool.submit(self.text, server, i) for i in range(6)]
            self.assertEqual(server.wait_metric("weft_adapters_ready", 6), 6)
            self.assertGreater(server.metric("weft_waiting"), 6)
            tiers = [server.metric('weft_adapter_hits_total{tier="%s"}' % t) for t in ("packed", "read", "disk")]
            self.assertEqual((tiers[0], tiers[1] + tiers[2]), (0, 6))  # which one is the system's affair
            self.assertEqual((server.metric("weft_running"), [w.done() for w in waiting]), (1, [False] * 6))
            long.close()
            texts = [w.result() for w in waiting]
        self.assertEqual([self.text(server, i) for i in range(6)], texts)
        self.assertEqual(server.metric('weft_adapter_hits_total{tier="packed"}'), 6)
        real.checked_stop(server)


if __name__ == "__main__":
    unittest.main(verbosity=1)
