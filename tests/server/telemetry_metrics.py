# SPDX-License-Identifier: Apache-2.0
"""Counts, stages of requests, memory by owner, and the file of metrics."""
import csv
import ctypes
import json
import os
import re
import resource
import threading
import time
import urllib.error

from telemetry import CHUNK, HISTOGRAMS, MODELS, SLOTS, STAGES, Case, Server, samples
import common
from common import PATIENCE, weft


class Metrics(Case):
    def test_counts(self):
        """Everything that happened is counted, once: two requests of which the second finds the first's prompt, and a refused one."""
        server = self.serve("--slots", SLOTS, "--spec", "off")  # what was guessed is rows, too
        before = samples(server.ask("/metrics"))
        prompt = [5 + i % 300 for i in range(100)]
        server.complete(prompt, 10)
        server.complete(prompt, 10)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.ask("/completion", {"prompt": 7})
        refused.exception.close()
        until, now = time.time() + PATIENCE, {}
        while sum(v for k, v in now.items() if k.startswith('weft_http_responses_total{path="/completion"')) < 3 and time.time() < until:
            text = server.ask("/metrics")  # an answer counts when all of it is sent, which its reader may learn first
            now = samples(text)
        gained = {k: v - before.get(k, 0) for k, v in now.items()}
        self.assertEqual(gained["weft_prompt_tokens_total"], 200)
        self.assertEqual(gained["weft_generated_tokens_total"], 20)
        self.assertEqual(gained["weft_prefix_asked_tokens_total"], 200)
        self.assertGreater(gained["weft_prefix_hit_tokens_total"], 60)
        self.assertEqual(gained["weft_cached_tokens_total"], gained["weft_prefix_hit_tokens_total"])
        self.assertEqual(gained['weft_requests_total{finish="length"}'], 2)
        self.assertEqual(gained['weft_http_responses_total{path="/completion",status="400"}'], 1)
        self.assertEqual(gained['weft_http_responses_total{path="/completion",status="200"}'], 2)
        self.assertEqual(gained['weft_rows_total{kind="decode"}'], 18)
        self.assertEqual(gained['weft_rows_total{kind="prompt"}'], 200 - gained["weft_prefix_hit_tokens_total"])
        self.assertEqual((now["weft_slots"], now["weft_running"], now["weft_waiting"], now["weft_kv_pages_used"]), (SLOTS, 0, 0, 0))
        self.assertGreater(now["weft_kv_pages_cached"], 0)
        self.assertTrue(0 < gained["weft_model_seconds_total"] <= gained["weft_step_seconds_sum"])
        counts = {"weft_time_to_first_token_seconds": 2, "weft_time_between_tokens_seconds": 18, "weft_queue_seconds": 2, "weft_request_seconds": 2,
                  "weft_step_rows": gained["weft_steps_total"], "weft_step_seconds": gained["weft_steps_total"]}
        self.assertEqual({name: gained[name + "_count"] for name in HISTOGRAMS}, counts)
        for name in HISTOGRAMS:
            self.assertIn(f"# TYPE {name} histogram", text)
            buckets = [v for k, v in now.items() if k.startswith(name + "_bucket")]
            self.assertEqual((buckets, buckets[-1]), (sorted(buckets), now[name + "_count"]))
        self.assertEqual(server.stop(), 0)


    def watched(self, server, begin, wanted):
        """What metrics gained while a request ran that begin(attempt) starts, once wanted(that, attempt) is true, and what they gained when it had
        ended. A look may
        come too late, as a machine has it: then begin is called again, to take longer."""
        def look():
            return samples(server.ask("/metrics"))
        for attempt in range(40):
            before = look()

            def gained(now):
                return {k: v - before.get(k, 0) for k, v in now.items()}
            runs = threading.Thread(target=begin, args=(attempt,))
            runs.start()
            until, seen = time.time() + PATIENCE, None
            while seen is None and runs.is_alive() and time.time() < until:
                now = look()
                more = gained(now)
                if now["weft_running"] == 1 and wanted(more, attempt) and not sum(v for k, v in more.items() if k.startswith("weft_requests_total")):
                    seen = more
            runs.join()
            if seen is not None:
                break
        return seen, gained(look()), attempt

    def test_counters_move_with_steps(self):
        """Tokens, and the time for them, count as they come, not when their request ends; at its end nothing has counted twice."""
        server = self.serve("--slots", SLOTS, "-c", 8192, "--rope-scale", 64, "--chunk", CHUNK)
        counters = (
            "weft_generated_tokens_total",
            "llamacpp:tokens_predicted_total",
            "llamacpp:tokens_predicted_seconds_total",
            "llamacpp:prompt_seconds_total",
        )

        def length(attempt):
            return 200 * (attempt + 1)
        seen, end, attempt = self.watched(server, lambda k: server.complete([5, 6, 7, 8], length(k)),
                                           lambda more, k: 20 < more["weft_generated_tokens_total"] < length(k))  # all may be counted just before the end
        self.assertIsNotNone(seen, "no token was counted before the end")
        for name in counters:
            self.assertTrue(0 < seen[name] <= end[name], (name, seen[name], end[name]))
        self.assertEqual((end["weft_generated_tokens_total"], end["weft_prompt_tokens_total"]), (length(attempt), 4))
        self.assertEqual((end["weft_queue_seconds_count"], samples(server.ask("/metrics"))["llamacpp:n_tokens_max"]), (1, length(attempt) + 4))

        def prompt(attempt):  # of which nothing is cached
            return [3 + (i * 7 + attempt + 1) % 500 for i in range(length(attempt))]
        seen, end, attempt = self.watched(server, lambda k: server.complete(prompt(k), 1), lambda more, k: 0 < more["weft_prompt_tokens_total"] < length(k))
        self.assertIsNotNone(seen, "no token of the prompt was counted before the end")
        self.assertEqual(
            (end["weft_prompt_tokens_total"], end["weft_cached_tokens_total"], end["llamacpp:prompt_tokens_total"]),
            (length(attempt), 0, length(attempt)),
        )
        before = samples(server.ask("/metrics"))
        server.complete(prompt(attempt), 1)  # now most is there
        end = {k: v - before.get(k, 0) for k, v in samples(server.ask("/metrics")).items()}
        self.assertEqual(
            (end["weft_prompt_tokens_total"], end["weft_cached_tokens_total"] + end["llamacpp:prompt_tokens_total"]),
            (length(attempt), length(attempt)),
        )
        self.assertGreater(end["weft_cached_tokens_total"], 60)
        self.assertEqual(server.stop(), 0)

    def test_bytes_by_owner(self):
        """Who holds how much, now and at most: pages and scratch rise while a request runs, before it ends."""
        server = self.serve("--slots", SLOTS, "-c", 4096, "--rope-scale", 64, "--spec", "off")  # what a slot guesses with, it keeps
        owners = ("weights", "pages", "adapters", "scratch")
        rest = samples(server.ask("/metrics"))
        now, peak = ({o: rest['weft_memory_%s{owner="%s"}' % (what, o)] for o in owners} for what in ("bytes", "peak_bytes"))
        self.assertEqual((now, now["pages"], now["adapters"]), (peak, 0, 0))
        self.assertTrue(0 < now["weights"] <= os.path.getsize(self.path("tiny.gguf")) and now["scratch"] > 0)
        seen, _, _ = self.watched(
            server,
            lambda k: server.complete([5, 6 + k, 7, 8], 100 * (k + 1)),
            lambda more, k: more['weft_memory_bytes{owner="scratch"}'] > 0,
        )
        self.assertIsNotNone(seen, "nothing was held before the end")
        until = time.time() + PATIENCE
        while samples(server.ask("/metrics"))['weft_memory_bytes{owner="scratch"}'] != now["scratch"] and time.time() < until:
            time.sleep(0.01)  # its answer comes before it is forgotten
        end = samples(server.ask("/metrics"))
        self.assertEqual(end['weft_memory_bytes{owner="scratch"}'], now["scratch"])
        for owner in owners:
            self.assertGreaterEqual(end['weft_memory_peak_bytes{owner="%s"}' % owner], seen['weft_memory_bytes{owner="%s"}' % owner])
        self.assertGreater(end['weft_memory_peak_bytes{owner="pages"}'], 0)
        self.assertEqual(server.stop(), 0)


NEAR = 0.05  # of a request's time


class Stages(Case):
    def requests(self, server):
        """A chat, one that is held to a schema, a stream with log-probabilities, three answers at once, an embedding."""
        chat = {"messages": [{"role": "user", "content": "Tell me of the river. " * 8}], "max_tokens": 40, "ignore_eos": True}
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}}, "required": ["name"]}
        for path, body in (
            ("/v1/chat/completions", chat),
            ("/v1/chat/completions", {**chat, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}),
            ("/completion", {"prompt": "Once upon a time", "n_predict": 60, "ignore_eos": True, "n_probs": 5, "stream": True}),
            ("/v1/completions", {"prompt": "Once", "max_tokens": 30, "n": 3, "seed": 1}),
            ("/v1/embeddings", {"input": ["Once upon a time there was a river"] * 6}),
        ):
            server.ask(path, {k: v for k, v in body.items() if k != "ignore_eos" or path == "/completion"})

    def test_they_add_up(self):
        """The stages of a request come to its time, in the log and on /metrics, and each stands where something was done: a template is rendered
        for chats alone, a grammar is none where none was given."""
        server = Server(MODELS, "--log-file", self.path("stages.log"), model="alderbrook.gguf")
        self.addCleanup(server.end)
        self.requests(server)
        until, now = time.time() + PATIENCE, {}
        while now.get('weft_stage_seconds_count{stage="model"}', 0) < 5 and time.time() < until:
            now = samples(server.ask("/metrics"))
        self.assertEqual(server.stop(), 0)
        with open(self.path("stages.log")) as file:
            lines = [line for line in map(json.loads, file) if "stages" in line]
        self.assertEqual([tuple(line["stages"]) for line in lines], [STAGES] * 5)
        chat, held, stream, several, embedded = (line["stages"] for line in lines)
        all_ms, counted = sum(line["ms"] for line in lines), sum(sum(line["stages"].values()) for line in lines)
        self.assertLess(abs(counted - all_ms), NEAR * all_ms, lines)
        for stages in (chat, held, stream, several, embedded):
            self.assertGreater(min(stages[s] for s in ("reading", "tokenizer", "queue", "model", "writing")), 0)
            self.assertEqual(stages["grammar"] > 0, stages is held)
            self.assertEqual(stages["template"] > 0, stages in (chat, held))
        for stage in STAGES:
            self.assertEqual(now['weft_stage_seconds_count{stage="%s"}' % stage], 5)
            self.assertAlmostEqual(now['weft_stage_seconds_sum{stage="%s"}' % stage], sum(line["stages"][stage] for line in lines) / 1e3, 6)


RESIDENT = ("scratch", "weights", "pages", "adapters", "buffers", "program", "rest")
OFF = 0.02  # of resident memory


class Memory(Case):
    def of_process(self, server, file, name):
        with open(f"/proc/{server.process.pid}/{file}") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))

    def of_mapping(self, server, name):
        """Resident bytes of the mappings of a file."""
        with open(f"/proc/{server.process.pid}/smaps") as lines:
            text = lines.read()
        return sum(int(n) * 1024 for n in re.findall(r"^\S+-.* \S*/" + re.escape(name) + r"\n(?:.*:.*\n)*?Rss: +(\d+)", text, re.M))

    @common.leave_out(common.SANITIZED or common.EMULATED, "what is resident is the sanitizer's above all, or the emulator's")
    def test_resident(self):
        """The bytes by owner come to what the system says is resident; packed weights and what is read of the file, the rows of the embeddings, are what
        the engine counts; used pages and adapters are there."""
        server = Server(MODELS, "--adapter", "pirate=" + os.path.join(MODELS, "pirate.gguf"), model="alderbrook.gguf")
        self.addCleanup(server.end)
        for i in range(6):
            server.ask("/completion", {"prompt": f"Once upon a time {i}", "n_predict": 60, "ignore_eos": True, "model": ("pirate", "")[i % 2]})
        tensors = json.loads(weft("info", os.path.join(MODELS, "alderbrook.gguf"), "--json").stdout)["tensors"]
        rows, n_vocab = next((t["bytes"], t["shape"][1]) for t in tensors if t["name"] == "token_embd.weight")
        for first in range(0, n_vocab, 500):  # each row of the embeddings is read
            server.complete(list(range(first, min(first + 500, n_vocab))), 1)

        def look():
            now = samples(server.ask("/metrics"))
            resident = {owner: now['weft_resident_bytes{owner="%s"}' % owner] for owner in RESIDENT}
            return now, resident, self.of_process(server, "smaps_rollup", "Rss")
        until = time.monotonic() + PATIENCE
        now, resident, all_bytes = look()
        while abs(sum(resident.values()) - all_bytes) >= OFF * all_bytes and time.monotonic() < until:
            time.sleep(0.1)  # what the server tells may be a second old, and it has just gone idle
            now, resident, all_bytes = look()
        self.assertLess(abs(sum(resident.values()) - all_bytes), OFF * all_bytes, resident)
        self.assertEqual(sum(k.startswith("weft_resident_bytes") for k in now), len(RESIDENT))
        held, mapped = now['weft_memory_bytes{owner="weights"}'], self.of_mapping(server, "alderbrook.gguf")  # the system maps more than what is read
        self.assertLess(abs(resident["weights"] - mapped + rows - held), OFF * held, (resident, mapped, rows))
        self.assertGreaterEqual(mapped, rows)
        for owner in ("pages", "adapters"):
            self.assertGreaterEqual(resident[owner], now['weft_memory_bytes{owner="%s"}' % owner] * 0.9, owner)
        self.assertGreater(min(resident["program"], resident["rest"], resident["scratch"]), 0)
        self.assertEqual(server.stop(), 0)

    def test_lock(self):
        """--lock keeps weights and pages in memory; where RLIMIT_MEMLOCK is too small it says so, with the limit and what raises it."""
        plain, locked = self.serve(), self.serve("--lock")
        self.assertEqual(self.of_process(plain, "status", "VmLck"), 0)
        self.assertGreater(self.of_process(locked, "status", "VmLck"), samples(locked.ask("/metrics"))['weft_memory_bytes{owner="weights"}'])
        locked.complete([5, 6, 7], 4)
        self.assertEqual(locked.stop(), 0)

        def limit():  # root may lock what it likes, but for what its children cannot get back
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
            ctypes.CDLL(None).prctl(24, 14, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_IPC_LOCK
        p = weft("serve", self.path("tiny.gguf"), "--port", "-1", "--lock", preexec_fn=limit)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr.decode(), r"cannot keep [\d.]+ MB in memory: .*RLIMIT_MEMLOCK is 64 KB: raise it \(ulimit -l unlimited")


class MetricsFile(Case):
    def test_rows(self):
        """A row per interval and one at the end, with what /metrics has then; the file goes on behind what is there, under the names it has."""
        path = self.path("numbers.csv")
        before = ""
        for _ in range(2):
            server = self.serve("--metrics-file", path, "--metrics-every", 1)
            server.complete([5 + i for i in range(40)], 10)
            until = time.time() + PATIENCE
            rows = []
            while not any(row["generated_tokens"] == "10" for row in rows[-1:]) and time.time() < until:
                time.sleep(0.05)
                with open(path) as file:
                    rows = list(csv.DictReader(file))
            now = samples(server.ask("/metrics"))
            self.assertEqual(server.stop(), 0)
            with open(path) as file:
                rows = list(csv.DictReader(file))
            last = {k: v if k == "time" else float(v) for k, v in rows[-1].items()}
            self.assertRegex(last["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            for column, name in (("prompt_tokens", "weft_prompt_tokens_total"), ("generated_tokens", "weft_generated_tokens_total"),
                                 ("steps", "weft_steps_total"), ("kv_pages", "weft_kv_pages"), ("kv_pages_cached", "weft_kv_pages_cached"),
                                 ("weights_bytes", 'weft_memory_bytes{owner="weights"}'), ("pages_bytes", 'weft_memory_bytes{owner="pages"}')):
                self.assertEqual(last[column], now[name], column)
            self.assertEqual(last["requests"], 1)
            self.assertGreater(last["resident_bytes"], last["weights_bytes"])
            self.assertEqual(sum(row["time"] == "time" for row in rows), 0)  # the names stand there once
            with open(path) as file:
                text = file.read()
            self.assertTrue(text.startswith(before) and len(text) > len(before))
            before = text
        p = weft("serve", self.path("tiny.gguf"), "--metrics-file", self.path("no/such/folder.csv"))
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"no/such", p.stderr)
        p = weft("serve", self.path("tiny.gguf"), "--metrics-file", self.path("tiny.gguf"))
        self.assertEqual(p.returncode, 1)
