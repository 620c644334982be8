# SPDX-License-Identifier: Apache-2.0
"""Several models in one server: each request is answered by the model that it names, whatever is loaded and unloaded meanwhile; what is held
stays within --memory; waiting has bounds, deadlines and an end; files that are broken say so."""
import csv
import os
import random
import signal
import tempfile
import threading
import unittest

from servers import CHAT, EMULATOR, FAKE, LLAMA, SANITIZED, SWEEPS, TEXT, Server, request, wait_until

WEIGHTS, PAGES = 1000, 100  # bytes of each model of the double: its file, and the pages of one request


class Many(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.hold = os.path.join(self.folder.name, "hold")

    def file(self, name, text="x" * WEIGHTS):
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def own(self, *options, first=False, **models):
        """A server with these models, by name and text; with one of its own besides, where `first` says so."""
        named = [x for name, text in models.items() for x in ("--model", f"{name}={self.file(name, text)}")]
        server = Server([*FAKE, "--without-model", int(not first), *named, *options], env={**os.environ, "WEFT_FAKE_HOLD": self.hold})

        def stop():
            status, err = server.stop()
            self.assertEqual(status, 0, err)
            self.assertNotIn("Sanitizer", err)
        self.addCleanup(stop)
        return server

    def held(self):
        """Loading of models whose text says so waits until the end of the block."""
        test = self

        class Hold:
            def __enter__(self):
                test.file("hold", "")

            def __exit__(self, *args):
                os.unlink(test.hold)
        return Hold()

    def ask(self, server, model, text="[model]", status=200, **more):
        answer = server.post(TEXT, {"model": model, "prompt": text, "max_tokens": 100, **more})
        if status:
            self.assertEqual(answer.status, status, answer.body)
        return answer

    def said(self, answer):
        return os.path.basename(answer.json["choices"][0]["text"])

    def later(self, *args, **more):
        """Asks on a thread of its own: the answer, when it is there, stands in the list."""
        out = []
        t = threading.Thread(target=lambda: out.append(self.ask(*args, **more)), daemon=True)
        t.start()
        out_of = (t, out)
        self.addCleanup(t.join)
        return out_of

    def state(self, server, model):
        return {m["id"]: m for m in server.get("/v1/models").json["data"]}[model]

    def value(self, server, model):
        return self.state(server, model)["status"]["value"]

    def wait_value(self, server, model, want):
        self.assertTrue(wait_until(lambda: self.value(server, model) == want), self.state(server, model))


TEXT_OF_ONE = "x" * WEIGHTS


class TestWhich(Many):
    def test_each_answers_for_itself(self):
        """Whichever are there."""
        server = self.own(a=TEXT_OF_ONE, b=TEXT_OF_ONE)
        for name in ("a", "b", "a"):
            self.assertEqual(self.said(self.ask(server, name)), name)
        self.assertEqual([self.value(server, n) for n in "ab"], ["loaded", "loaded"])
        chat = server.post(CHAT, {"model": "b", "messages": [{"role": "user", "content": "[model]"}]})
        self.assertIn("/b", chat.json["choices"][0]["message"]["content"])
        tokens = server.post("/tokenize", {"model": "a", "content": "hello"})
        self.assertTrue(tokens.json["tokens"])
        self.assertEqual(server.get("/props?model=b").json["default_generation_settings"]["n_ctx"], 2048)

    def test_a_name_is_wanted(self):
        """Where no model is meant by none; and one that is not there is told from those that are."""
        server = self.own(a=TEXT_OF_ONE, b=TEXT_OF_ONE)
        answer = server.post(TEXT, {"prompt": "x"})
        self.assertEqual((answer.status, answer.json["error"]["param"]), (400, "model"))
        answer = self.ask(server, "c", status=404)
        self.assertEqual(answer.json["error"]["code"], "model_not_found")
        self.assertIn("'a', 'b'", answer.json["error"]["message"])
        self.assertEqual([self.value(server, n) for n in "ab"], ["unloaded"] * 2)
        self.assertEqual(server.get("/slots?model=a").status, 409)  # who looks loads nothing

    def test_the_servers_own_is_meant_by_none(self):
        server = self.own(first=True, a=TEXT_OF_ONE)
        answer = server.post(TEXT, {"prompt": "[say own]"})
        self.assertEqual(answer.json["choices"][0]["text"], "own")
        self.assertEqual(self.said(self.ask(server, "a")), "a")
        self.assertTrue(self.state(server, "fake")["pinned"])
        self.assertEqual(server.post("/models/unload", {"model": "fake"}).status, 400)

    def test_a_name_twice_is_refused(self):
        path = self.file("a")
        with self.assertRaisesRegex(RuntimeError, "two models have the name 'a'"):
            Server([*FAKE, "--without-model", 1, "--model", f"a={path}", "--model", f"a={path}"])


class TestLoading(Many):
    def test_one_load_for_all_that_wait(self):
        server = self.own(a="held" + TEXT_OF_ONE, b=TEXT_OF_ONE)
        with self.held():
            waiting = [self.later(server, "a") for _ in range(8)]
            self.assertEqual(server.wait_metric("weft_models_waiting", 8), 8)
            self.assertTrue(wait_until(lambda: self.state(server, "a")["status"] == {"value": "loading", "progress": 0.5}), self.state(server, "a"))
        for thread, out in waiting:
            thread.join()
            self.assertEqual(self.said(out[0]), "a")
        self.assertEqual(server.metric('weft_model_loads_total{model="a"}'), 1)

    def test_others_are_answered_meanwhile(self):
        server = self.own(first=True, a="held" + TEXT_OF_ONE)
        with self.held():
            waiting = self.later(server, "a")
            self.wait_value(server, "a", "loading")
            for _ in range(20):
                self.assertEqual(server.post(TEXT, {"prompt": "[say own]"}).status, 200)
            self.assertEqual(waiting[1], [])

    def nices(self, server):
        """How far each thread gives way to others, by its name; a thread that ends meanwhile has none."""
        out = []
        for task in os.listdir(f"/proc/{server.process.pid}/task"):
            try:
                with open(f"/proc/{server.process.pid}/task/{task}/stat") as f:
                    name, _, fields = f.read().partition("(")[2].rpartition(")")
            except (FileNotFoundError, ProcessLookupError):
                continue
            out.append((name, int(fields.split()[16])))
        return out

    @unittest.skipIf(EMULATOR, "the emulator's threads are others")
    def test_only_what_loads_gives_way(self):
        """A thread of low precedence loads; the threads that a model brings with it have that of all others."""
        server = self.own(a="held" + TEXT_OF_ONE)
        own = min(nice for _, nice in self.nices(server))
        with self.held():
            waiting = self.later(server, "a")
            behind = {"weft-behind"} if own < 19 else set()
            self.assertTrue(wait_until(lambda: {name for name, nice in self.nices(server) if nice > own} == behind), self.nices(server))
        waiting[0].join()
        self.assertEqual(self.said(waiting[1][0]), "a")
        self.assertTrue(wait_until(lambda: all(name != "weft-behind" for name, _ in self.nices(server))))
        self.assertEqual({nice for _, nice in self.nices(server)}, {own})

    def test_a_client_may_leave(self):
        """Its place is another's then, and the model comes nevertheless."""
        server = self.own(a="held" + TEXT_OF_ONE)
        with self.held():
            clients = [server.connect() for _ in range(5)]
            for c in clients:
                c.sendall(request({"model": "a", "prompt": "x"}, TEXT))
            self.assertEqual(server.wait_metric("weft_models_waiting", 5), 5)
            for c in clients:
                c.close()
            self.assertEqual(server.wait_metric("weft_models_waiting", 0), 0)
        self.wait_value(server, "a", "loaded")
        self.assertEqual(self.said(self.ask(server, "a")), "a")

    def test_a_deadline_holds(self):
        server = self.own(a="held" + TEXT_OF_ONE)
        with self.held():
            answer = self.ask(server, "a", status=504, timeout_ms=30)
            self.assertIn("before its model was loaded", answer.json["error"]["message"])
        self.assertEqual(self.said(self.ask(server, "a", timeout_ms=60000)), "a")

    def test_an_unload_ends_the_loading(self):
        server = self.own(a="held" + TEXT_OF_ONE)
        with self.held():
            waiting = self.later(server, "a", status=503)
            self.wait_value(server, "a", "loading")
            self.assertEqual(server.post("/models/unload", {"model": "a"}).json, {"success": True})
            waiting[0].join()
            self.assertIn("could not be loaded", waiting[1][0].json["error"]["message"])
            self.wait_value(server, "a", "unloaded")
        self.assertEqual(self.said(self.ask(server, "a")), "a")

    def test_a_broken_file_says_so(self):
        """By its name and what is wrong, to all that wait; the next request tries again."""
        server = self.own(a="broken" + TEXT_OF_ONE, b=TEXT_OF_ONE)
        for _ in range(2):
            message = self.ask(server, "a", status=500).json["error"]["message"]
            self.assertIn(os.path.join(self.folder.name, "a") + ": it is broken", message)
            status = self.state(server, "a")["status"]
            self.assertEqual((status["value"], status["failed"]), ("unloaded", True))
            self.assertIn("it is broken", status["message"])
        os.unlink(os.path.join(self.folder.name, "a"))
        self.assertIn("no such file", self.ask(server, "a", status=500).json["error"]["message"])
        self.file("a")
        self.assertEqual(self.said(self.ask(server, "a")), "a")
        self.assertEqual(self.said(self.ask(server, "b")), "b")

    def test_places_have_bounds(self):
        """One client leaves some to others; all get their answers in the end."""
        server = self.own("--queue", 10, a="held" + TEXT_OF_ONE)  # 26 places, of which one client gets 24, and an address 25
        with self.held():
            waiting = [self.later(server, "a", status=None) for _ in range(24)]
            self.assertEqual(server.wait_metric("weft_models_waiting", 24), 24)
            full = self.ask(server, "a", status=429)
            self.assertEqual(full.headers["retry-after"], "5")
            waiting.append(self.later(server, "a", status=None, user="another"))
            self.assertEqual(server.wait_metric("weft_models_waiting", 25), 25)
        for thread, out in waiting:
            thread.join()
            self.assertIn(out[0].status, (200, 429))

    def test_stopping_refuses_who_waits(self):
        path = self.file("a", "held" + TEXT_OF_ONE)
        server = Server([*FAKE, "--without-model", 1, "--model", f"a={path}", "--drain", 1],
                        env={**os.environ, "WEFT_FAKE_HOLD": self.hold})
        with self.held():
            waiting = self.later(server, "a", status=503)
            self.wait_value(server, "a", "loading")
            status, err = server.stop()
        self.assertEqual(status, 0, err)
        waiting[0].join()
        self.assertEqual(waiting[1][0].status, 503)


class TestUnloading(Many):
    def test_by_the_router_s_endpoints(self):
        server = self.own(a=TEXT_OF_ONE)
        self.assertEqual(server.post("/models/unload", {"model": "a"}).status, 400)
        self.assertEqual(server.post("/models/load", {"model": "a"}).json, {"success": True})
        self.wait_value(server, "a", "loaded")
        self.assertEqual(server.post("/models/load", {"model": "a"}).status, 400)
        self.assertEqual(server.post("/models/load", {"model": "b"}).status, 404)
        self.assertEqual(server.post("/models/unload", {"model": "a"}).json, {"success": True})
        self.wait_value(server, "a", "unloaded")

    def test_what_is_on_its_way_already(self):
        """Loading twice is refused while it comes, too; what goes, or whose loading is given up, comes again when it is asked for meanwhile."""
        server = self.own(a="held" + TEXT_OF_ONE)
        ask = lambda what: server.post("/models/" + what, {"model": "a"}).status  # noqa: E731
        with self.held():
            self.assertEqual(ask("load"), 200)
            self.wait_value(server, "a", "loading")
            self.assertEqual(ask("load"), 400)
            self.assertEqual((ask("unload"), ask("load")), (200, 200))
        self.wait_value(server, "a", "loaded")
        running = self.later(server, "a", "[loop abc][delay 5]")
        self.assertTrue(wait_until(lambda: server.metric("weft_running") == 1))
        self.assertEqual((ask("unload"), ask("load")), (200, 200))
        running[0].join()
        self.assertEqual(running[1][0].status, 200)
        self.assertEqual(server.wait_metric('weft_model_loads_total{model="a"}', 2), 2)
        self.assertEqual(self.value(server, "a"), "loaded")

    def test_an_unload_refuses_who_waits_then(self):
        """Those that come behind it wait until the model is there."""
        server = self.own(a="held" + TEXT_OF_ONE)
        with self.held():
            before = self.later(server, "a", status=503)
            self.wait_value(server, "a", "loading")
            server.post("/models/unload", {"model": "a"})
            before[0].join()
            behind = self.later(server, "a")
            self.assertEqual(server.wait_metric("weft_models_waiting", 1), 1)
        behind[0].join()
        self.assertEqual(self.said(behind[1][0]), "a")

    def test_nothing_is_loaded_where_a_request_says_so(self):
        server = self.own(a=TEXT_OF_ONE)
        path = TEXT + "?autoload=false"
        self.assertEqual(server.post(path, {"model": "a", "prompt": "x"}).status, 409)
        self.assertEqual(self.value(server, "a"), "unloaded")
        self.ask(server, "a")
        self.assertEqual(server.post(path, {"model": "a", "prompt": "x"}).status, 200)

    def test_other_names(self):
        """A model is listed once, with its aliases, and goes by each of them; by those of its adapters, too."""
        server = self.own("--alias", "main", "--alias", "gpt-4o", "--alias", "*", "--adapter-dir", self.folder.name, first=True, a=TEXT_OF_ONE)
        listed = {m["id"]: m.get("aliases") for m in server.get("/v1/models").json["data"]}
        self.assertEqual(listed, {"main": ["gpt-4o"], "a": None})
        self.assertEqual(server.post("/models/load", {"model": "gpt-4o"}).json["error"]["message"], "the model 'main' is loaded already")
        self.assertEqual(server.post("/models/load", {"model": "a:one"}).json, {"success": True})
        self.wait_value(server, "a", "loaded")

    def test_only_admins_may(self):
        path = self.file("a")
        server = Server([*FAKE, "--without-model", 1, "--model", f"a={path}", "--api-key", "ordinary-key", "--admin-key", "admins-key"])
        self.addCleanup(server.stop)
        for key, status in (("ordinary-key", 403), ("admins-key", 200)):
            answer = server.post("/models/load", {"model": "a"}, headers={"Authorization": "Bearer " + key})
            self.assertEqual(answer.status, status, answer.body)
        listed = server.get("/v1/models", headers={"Authorization": "Bearer ordinary-key"}).json["data"][0]
        self.assertNotIn("path", listed)

    def test_what_is_in_use_stays_until_its_end(self):
        server = self.own(a=TEXT_OF_ONE)
        self.ask(server, "a")
        running = self.later(server, "a", "[loop abc][delay 5]")
        self.assertTrue(wait_until(lambda: server.metric("weft_running") == 1))
        server.post("/models/unload", {"model": "a"})
        again = self.later(server, "a")  # comes when the model is loaded again
        for thread, out in (running, again):
            thread.join()
            self.assertEqual(out[0].status, 200)
        self.assertEqual(running[1][0].json["usage"]["completion_tokens"], 100)
        self.assertEqual(self.said(again[1][0]), "a")
        self.assertEqual(server.metric('weft_model_unloads_total{model="a"}'), 1)

    def test_keep_alive(self):
        """0: it goes after the request; a time: after that; below 0: it stays, whatever the server does otherwise."""
        server = self.own("--idle-unload", 3600, a=TEXT_OF_ONE)
        for given in (0, "0s", "10ms", 0.01):
            self.ask(server, "a", keep_alive=given)
            self.wait_value(server, "a", "unloaded")
        self.ask(server, "a", keep_alive=-1)
        self.ask(server, "a", keep_alive="1h30m")
        self.assertEqual(self.value(server, "a"), "loaded")
        for wrong in ("soon", "", "1x", [], True):
            self.assertEqual(self.ask(server, "a", status=400, keep_alive=wrong).json["error"]["param"], "keep_alive")
        llama = server.post(LLAMA, {"model": "a", "prompt": "x", "n_predict": 1, "keep_alive": 0})
        self.assertEqual(llama.status, 200)
        self.wait_value(server, "a", "unloaded")

    def test_unused_ones_go(self):
        server = self.own("--idle-unload", 1, "--pin", "b", a=TEXT_OF_ONE, b=TEXT_OF_ONE)
        self.wait_value(server, "b", "loaded")  # it is pinned, and comes at the start
        self.ask(server, "a")
        self.wait_value(server, "a", "unloaded")
        self.assertEqual(self.value(server, "b"), "loaded")
        self.assertEqual(server.post("/models/unload", {"model": "b"}).status, 400)

    def test_counters_go_on(self):
        server = self.own(a=TEXT_OF_ONE)
        name = "weft_generated_tokens_total"  # one model is served: names as they are
        for n in (1, 2, 3):
            self.ask(server, "a", "[say abc]", keep_alive=0)
            self.assertEqual(server.wait_metric(name, 3 * n), 3 * n)
            self.wait_value(server, "a", "unloaded")

    def counts(self, server):
        """What only grows: counters, and what histograms have counted."""
        out, counting = {}, False
        for line in server.get("/metrics").body.decode().splitlines():
            if line.startswith("# TYPE"):
                counting = line.split()[3] in ("counter", "histogram")
            elif counting and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                out[name] = float(value)
        return out

    def test_no_counter_ever_falls(self):
        """While its model ends, when it has gone, and when it is there again; no metric goes away."""
        path = os.path.join(self.folder.name, "numbers.csv")
        server = self.own("--metrics-file", path, a="lingers" + TEXT_OF_ONE, b=TEXT_OF_ONE)
        for name in "ab":
            self.ask(server, name, "[say abc]")
        seen = [self.counts(server)]
        self.assertTrue(all(seen[0].get('weft_%s{model="a"}' % name) for name in ("steps_total", "step_rows_count", "store_written_total")), seen)
        for _ in range(2):
            with self.held():
                server.post("/models/unload", {"model": "a"})
                self.wait_value(server, "a", "unloaded")
                seen.append(self.counts(server))
            self.assertTrue(wait_until(lambda: server.metric('weft_model_unloads_total{model="a"}') == len(seen) // 2), self.counts(server))
            seen.append(self.counts(server))
            self.ask(server, "a", "[say abc]")
            seen.append(self.counts(server))
        for before, after in zip(seen, seen[1:]):
            self.assertEqual({k: (v, after.get(k)) for k, v in before.items() if after.get(k, -1) < v}, {})
        for name in "ab":
            self.ask(server, name, "[say abc]", keep_alive=0)
            self.wait_value(server, name, "unloaded")
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
        with open(path) as f:
            rows = [{k: float(v) for k, v in row.items() if k != "time"} for row in csv.DictReader(f)]
        self.assertEqual((rows[-1]["requests"], rows[-1]["generated_tokens"]), (6, 18))
        for column in ("requests", "prompt_tokens", "cached_tokens", "generated_tokens", "refused", "preempted", "steps", "model_seconds"):
            values = [row[column] for row in rows]
            self.assertEqual(values, sorted(values), column)
            self.assertTrue(values[-1] > 0 or column == "cached_tokens", column)

    def test_the_most_held_is_kept(self):
        """What a model held at the most is told when it has gone, too; and drafts are counted once, as steps are."""
        server = self.own(a=TEXT_OF_ONE, b=TEXT_OF_ONE)
        held, peak = ('weft_memory_%s{model="a",owner="weights"}' % what for what in ("bytes", "peak_bytes"))
        drafts, steps = 'weft_draft_tokens_total{model="a",drafter="suffix"}', 'weft_steps_total{model="a"}'
        for _ in range(3):
            self.ask(server, "a", "[say abc]")
            most = server.metric(held)
            self.assertGreater(most, 0)
            server.post("/models/unload", {"model": "a"})
            self.wait_value(server, "a", "unloaded")
            self.assertTrue(wait_until(lambda: server.metric(held) == 0))
            self.assertEqual(server.metric(peak), most)
            self.assertGreater(server.metric(steps), 0)
            self.assertEqual(server.metric(drafts), server.metric(steps))

    def test_stages_are_of_a_model(self):
        server = self.own(a=TEXT_OF_ONE, b=TEXT_OF_ONE)
        for name in "aab":
            self.ask(server, name)
        for name, n in (("a", 2), ("b", 1)):
            for stage in ("reading", "model", "writing"):
                metric = f'weft_stage_seconds_count{{model="{name}",stage="{stage}"}}'
                self.assertEqual(server.wait_metric(metric, n), n, metric)

    def test_adapters_come_again(self):
        """Those that were loaded while it ran, and the scales for all."""
        server = self.own("--adapter-dir", self.folder.name, a=TEXT_OF_ONE)
        for name in ("one", "two"):
            self.file(name, "")
        self.ask(server, "a")
        for name in ("one", "two"):
            self.assertEqual(server.post("/v1/load_lora_adapter?model=a", {"lora_name": name, "lora_path": name}).status, 200)
        server.post("/v1/unload_lora_adapter?model=a", {"lora_name": "one"})
        server.post("/lora-adapters?model=a", [{"id": 1, "scale": 0.5}])
        server.post("/models/unload", {"model": "a"})
        self.wait_value(server, "a", "unloaded")
        self.assertEqual(self.ask(server, "a:two", "[adapters]").json["choices"][0]["text"], "two=nan;")  # its own scale
        self.assertEqual([a["scale"] for a in server.get("/lora-adapters?model=a").json], [0.5])


class TestMemory(Many):
    def test_the_least_recently_used_goes(self):
        server = self.own("--memory", 2 * (WEIGHTS + PAGES) + 50, a=TEXT_OF_ONE, b=TEXT_OF_ONE, c=TEXT_OF_ONE)
        for name in "abac":
            self.ask(server, name)
        self.assertEqual([self.value(server, n) for n in "abc"], ["loaded", "unloaded", "loaded"])

    def test_what_never_fits_is_refused(self):
        server = self.own("--memory", 1500, "--pin", "a", a="x" * 200, b="x" * 1200)
        self.wait_value(server, "a", "loaded")
        message = self.ask(server, "b", status=503).json["error"]["message"]
        self.assertRegex(message, r"--memory leaves .* beside what is pinned")
        server = self.own("--memory", 1500, b="x" * 2000)  # where nothing is pinned
        self.assertIn(", and --memory is 0.0 MB", self.ask(server, "b", status=503).json["error"]["message"])

    def test_who_is_always_asked_gives_way(self):
        """A model that is never idle does not keep others out."""
        server = self.own("--memory", WEIGHTS + PAGES + 50, a=TEXT_OF_ONE, b=TEXT_OF_ONE)
        self.ask(server, "a")
        stop = threading.Event()

        def go_on():
            while not stop.is_set():
                self.ask(server, "a", "[loop ab][delay 1]")
        threads = [threading.Thread(target=go_on) for _ in range(3)]
        for t in threads:
            t.start()
        try:
            for _ in range(3):
                self.assertEqual(self.said(self.ask(server, "b")), "b")
        finally:
            stop.set()
            for t in threads:
                t.join()

    def test_many_at_random(self):
        """Five models, room for two, many clients: each gets its own model's answer, and memory stays within its limit."""
        names = "abcde"
        limit = 2 * (WEIGHTS + PAGES) + 50
        server = self.own("--memory", limit, **{n: TEXT_OF_ONE for n in names})
        wrong, most, done = [], [0], threading.Event()

        def client(seed):
            chance = random.Random(seed)
            for _ in range((400 if SWEEPS else 30) // (4 if SANITIZED else 1)):
                name = chance.choice(names)
                answer = server.post(TEXT, {"model": name, "prompt": "[model]", "max_tokens": 100, "stream": chance.random() < 0.3})
                text = answer.body.decode() if answer.status == 200 else ""
                if f"/{name}" not in text and "".join(e["choices"][0]["text"] for e in answer.events[:-1] if e["choices"])[-2:] != f"/{name}":
                    wrong.append((name, answer.status, answer.body))

        def watch():
            while not done.is_set():
                held = sum(float(line.split()[1]) for line in server.get("/metrics").body.decode().splitlines()
                           if line.startswith("weft_memory_bytes{"))
                most[0] = max(most[0], held, server.metric("weft_memory_reserved_bytes"))
        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(16)]
        watcher = threading.Thread(target=watch)
        watcher.start()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        done.set()
        watcher.join()
        self.assertEqual(wrong, [])
        self.assertTrue(0 < most[0] <= limit, most)


if __name__ == "__main__":
    unittest.main()
