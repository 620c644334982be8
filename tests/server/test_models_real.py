# SPDX-License-Identifier: Apache-2.0
"""Five real models in one server with memory for two: every answer is that of a server with that model alone, bit by bit, and what /metrics
counts stays within --memory; adapters go and come with their model.

usage: PROGRAM build/weft [--seconds S --clients N]: for so long, with the clients that an hour of use brings together"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import unittest

options = argparse.ArgumentParser()
options.add_argument("--seconds", type=float, default=0)
options.add_argument("--clients", type=int, default=8)
options.add_argument("--model", action="append", default=[], help="NAME=PATH: one more")
given, rest = options.parse_known_args()
sys.argv[1:] = rest

from real import MODEL, ROOT, models  # noqa: E402
from servers import EMULATOR, PROGRAM, SANITIZED, Server, wait_until  # noqa: E402

PROMPTS = ("Once upon a time", "The village lies", "Tell me of the", "In the morning the")
N_TOKENS = 12
SLOW = bool(SANITIZED or EMULATOR)
TYPES = ("Q4_0",) if SLOW else ("Q4_K_M", "Q4_0")  # beside the file as it is: three models or five, and room for two


def shared(name):
    where = os.environ.get("WEFT_SHARED") or os.path.join(ROOT, "..", "shared")
    return [p for p in glob.glob(os.path.join(where, "models", name)) if os.path.exists(p)]


def completion(server, model, prompt, seed):
    body = {"prompt": prompt, "n_predict": N_TOKENS, "seed": seed, "temperature": 0.8, "n_probs": 2, "post_sampling_probs": False}
    if model:
        body["model"] = model
    return server.post("/completion", body)


def essence(answer):
    """What must be the same bit by bit."""
    a = answer.json
    return a["content"], a.get("completion_probabilities")


def serve(*arguments):
    return Server([*EMULATOR, PROGRAM, "serve", *arguments, "--port", -1, "--threads", 2, "--ctx", 256, "--slots", 4, "--queue", 400])


class TestManyModels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.paths = {"alderbrook": MODEL}
        for kind in TYPES:
            path = os.path.join(cls.folder.name, kind + ".gguf")
            subprocess.run([*EMULATOR, PROGRAM, "quantize", MODEL, path, kind], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            cls.paths[kind] = path
        copy = os.path.join(cls.folder.name, "copy.gguf")  # a model more where there is no other
        with open(MODEL, "rb") as a, open(copy, "wb") as b:
            b.write(a.read())
        cls.paths["stories"] = (shared("stories260K.gguf") or [copy])[0]
        if not SLOW:
            cls.paths["other"] = (shared("tiny-llama.Q4_K_S.gguf") or [copy])[0]
        if given.seconds:  # the long version has a real one
            fetched = subprocess.run([os.path.join(ROOT, "scripts", "smollm2")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            last = fetched.stdout.strip().splitlines()[-1:]
            if fetched.returncode == 0:
                cls.paths.pop("other", None)
                cls.paths["smollm2"] = os.path.join(ROOT, last[0])
            else:
                print("without SmolLM2:", *last, flush=True)
        for text in given.model:
            name, _, path = text.partition("=")
            cls.paths[name] = path
        cls.asked = [(prompt, seed) for prompt in PROMPTS for seed in (1, 2)][:2 if SLOW else 8]
        cls.alone, cls.size = {}, {}
        for name, path in cls.paths.items():
            server = serve(path)
            cls.alone[name] = {q: essence(completion(server, None, *q)) for q in cls.asked}
            text = server.get("/metrics").body.decode()
            cls.size[name] = sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("weft_memory_peak_bytes{"))
            status, err = server.stop()
            assert status == 0, err

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def several(self, *more):
        named = [x for name, path in self.paths.items() for x in ("--model", f"{name}={path}")]
        server = serve(*named, *more)

        def stop():
            status, err = server.stop()
            self.assertTrue(status == 0 and "Sanitizer" not in err and "runtime error" not in err, (status, err))
        self.addCleanup(stop)
        return server

    def limit(self, server, *names):
        """Room for the two largest (of those named), as a server that may have all of them counts them."""
        sizes = []
        for name in names or self.paths:
            self.assertEqual(completion(server, name, *self.asked[0]).status, 200)
            sizes.append({m["id"]: m for m in server.get("/v1/models").json["data"]}[name]["memory"])
        return int(sum(sorted(sizes)[-2:]) * 1.05)

    def test_answers_and_memory(self):
        first = self.several("--memory", "1T")
        limit = self.limit(first)
        server = self.several("--memory", limit)
        names, wrong, most, n = list(self.paths), [], [0], [0]
        until = time.monotonic() + given.seconds
        per_client = 2 if SLOW else 12
        done = threading.Event()

        def client(seed):
            chance = random.Random(seed)
            k = 0
            while k < per_client or time.monotonic() < until:
                k += 1
                name, q = chance.choice(names), chance.choice(self.asked)
                answer = completion(server, name, *q)
                n[0] += 1
                if answer.status != 200 or essence(answer) != self.alone[name][q]:
                    wrong.append((name, q, answer.status, answer.body[:300]))

        def watch():
            while not done.wait(0.01):
                text = server.get("/metrics").body.decode()
                held = sum(float(line.split()[1]) for line in text.splitlines() if line.startswith("weft_memory_bytes{"))
                most[0] = max(most[0], held)
        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(given.clients)]
        watcher = threading.Thread(target=watch)
        watcher.start()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for name in names:  # each once more, one after the other: there is room for two of them
            self.assertEqual(essence(completion(server, name, *self.asked[0])), self.alone[name][self.asked[0]])
        done.set()
        watcher.join()
        self.assertEqual(wrong[:3], [])
        self.assertTrue(0 < most[0] <= limit, (most, limit))
        loads = sum(server.metric(f'weft_model_loads_total{{model="{name}"}}') for name in names)
        self.assertGreater(loads, len(names))  # they made room for each other
        if given.seconds:
            print(f"{n[0]} requests, {loads:.0f} loads, at most {most[0] / limit:.3f} of the limit", flush=True)

    def test_adapters_come_again(self):
        """A model that was unloaded and loaded answers with its adapters as before."""
        server = self.several("--adapter-dir", models(""))
        body = {"model": "alderbrook:pirate", "prompt": "Once", "max_tokens": N_TOKENS, "temperature": 0}
        before = server.post("/v1/completions", body)
        self.assertEqual(before.status, 200, before.body)
        plain = server.post("/v1/completions", {**body, "model": "alderbrook"}).json["choices"][0]["text"]
        server.post("/models/unload", {"model": "alderbrook"})
        self.assertTrue(wait_until(lambda: server.metric('weft_model_loaded{model="alderbrook"}') == 0))
        after = server.post("/v1/completions", body)
        self.assertEqual(after.json["choices"][0]["text"], before.json["choices"][0]["text"])
        self.assertNotEqual(plain, before.json["choices"][0]["text"])

    def test_adapters_take_what_is_free(self):
        """Adapters have their budget, and what nobody wants of --memory: they give that back for a model."""
        options = "--adapter-dir", models(""), "--adapter-mb", 1

        def ask(name, adapters=()):
            body = {"model": name, "prompt": "Once", "max_tokens": 1, **({"lora": [{"id": i, "scale": 1} for i in adapters]} if adapters else {})}
            answer = server.post("/v1/completions", body)
            self.assertEqual(answer.status, 200, answer.body)

        def metric(name):
            return server.metric(f'weft_{name}{{model="alderbrook"}}')
        server = self.several("--memory", "1T", *options)
        limit = self.limit(server, "alderbrook", TYPES[0])  # beside a larger one of --seconds there would be room for all
        ids = {m["id"].split(":")[-1]: m["meta"]["adapter_id"] for m in server.get("/v1/models").json["data"] if m.get("parent") == "alderbrook"}
        ids = [ids[name] for name in ("letter", "pirate", "poem")]
        stacks = [[i for k, i in enumerate(ids) if bits >> k & 1] for bits in range(1, 8)]  # as many as seven adapters, but larger
        server = self.several("--memory", limit, *options)

        def all_are_ready():
            for adapters in stacks:
                ask("alderbrook", adapters)
            return metric("adapters_ready") == len(stacks)
        self.assertTrue(wait_until(all_are_ready))
        self.assertGreater(metric("adapter_bytes"), 2 << 20)
        self.assertGreater(metric("adapter_evictions_total"), 0)
        self.assertLessEqual(server.metric("weft_memory_reserved_bytes"), limit)
        ask(TYPES[0])  # for which there is room when they give it back
        self.assertLessEqual(server.metric("weft_memory_reserved_bytes"), limit)
        self.assertEqual(metric("model_loaded"), 1)
        self.assertLessEqual(metric("adapter_bytes"), 1 << 20)

    def test_a_folder_is_served(self):
        """By the names of what lies in it; adapters are no models, and what is broken says so."""
        with open(os.path.join(self.folder.name, "broken.gguf"), "wb") as f:
            f.write(b"GGUF and nothing more")
        with open(models("pirate.gguf"), "rb") as a, open(os.path.join(self.folder.name, "pirate.gguf"), "wb") as b:
            b.write(a.read())
        server = serve("--models", self.folder.name)
        self.addCleanup(server.stop)
        listed = sorted(m["id"] for m in server.get("/v1/models").json["data"])
        self.assertEqual(listed, sorted(["broken", "copy", *TYPES]))
        q = self.asked[0]
        self.assertEqual(essence(completion(server, "Q4_0", *q)), self.alone["Q4_0"][q])
        answer = completion(server, "broken", *q)
        self.assertEqual(answer.status, 500)
        self.assertIn("broken.gguf", json.dumps(answer.json))


if __name__ == "__main__":
    unittest.main()
