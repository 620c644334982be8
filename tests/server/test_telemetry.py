# SPDX-License-Identifier: Apache-2.0
"""Claims about what `weft serve` tells of itself: /metrics, the log of requests, the trace, and `weft top`, over a small real model.

usage: test_telemetry.py build/weft"""
import csv
import ctypes
import http.client
import json
import os
import pty
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import common
from common import PATIENCE, WEFT, weft

MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "models")
CHUNK, SLOTS, LONG = 64, 6, 400 if common.SANITIZED else 8000
HISTOGRAMS = ("weft_time_to_first_token_seconds", "weft_time_between_tokens_seconds", "weft_queue_seconds", "weft_request_seconds",
              "weft_step_rows", "weft_step_seconds")


class Server:
    def __init__(self, folder, *options, model="tiny.gguf"):
        self.process = subprocess.Popen([*WEFT, "serve", os.path.join(folder, model), "--port", "-1", "-t", "1", *map(str, options)],
                                        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        lines = iter(self.process.stderr.readline, "")  # others may stand before it
        self.address = next(found.group(0) for found in (re.search(r"http://\S+", line) for line in lines) if found)

    def ask(self, path, body=None, **headers):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json", **headers})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            self.id = answer.headers["X-Request-Id"]
            return answer.read().decode()

    def complete(self, prompt, n, **more):
        return json.loads(self.ask("/completion", {"prompt": prompt, "n_predict": n, "ignore_eos": True, **more}))

    def stream(self, prompt, n, began):
        """Calls began() when the first token is there; returns how many there were."""
        body = json.dumps({"prompt": prompt, "n_predict": n, "ignore_eos": True, "stream": True}).encode()
        last = None
        with urllib.request.urlopen(urllib.request.Request(self.address + "/completion", body), timeout=PATIENCE) as answer:
            for line in answer:
                if line.startswith(b"data: "):
                    if not last:
                        began()
                    last = line
        return json.loads(last[6:])["tokens_predicted"]

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self.process.stderr.close()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=PATIENCE)
        common.check_report(err.encode())
        return self.process.returncode


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        p = weft("bench", "--synthetic", "tiny", "--type", "q4_0", "--write", os.path.join(cls.folder.name, "tiny.gguf"))
        assert p.returncode == 0, p.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def serve(self, *options):
        server = Server(self.folder.name, *options)
        self.addCleanup(server.end)
        return server

    def path(self, name):
        return os.path.join(self.folder.name, name)


def samples(text):
    """{name with labels: number} of a page of metrics; every line is checked for its form."""
    out = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            found = re.fullmatch(r'([a-zA-Z_:][\w:]*(?:\{(?:\w+="[^"]*",?)+\})?) (\S+)', line)
            assert found, line
            out[found.group(1)] = float(found.group(2))
    return out


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


STAGES = ("reading", "template", "tokenizer", "grammar", "queue", "scheduler", "model", "sampling", "writing")
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
        for run in (1, 2):
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
            starts = sum(row["steps"] == "0" for row in rows)
            self.assertGreaterEqual(starts, run)
        p = weft("serve", self.path("tiny.gguf"), "--metrics-file", self.path("no/such/folder.csv"))
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"no/such", p.stderr)
        p = weft("serve", self.path("tiny.gguf"), "--metrics-file", self.path("tiny.gguf"))
        self.assertEqual(p.returncode, 1)


class Log(Case):
    def test_lines(self):
        """A line of JSON per request, with the id that the client was given, who asked, and what it cost."""
        server = self.serve("--log-file", self.path("log"), "--api-key", "secret-of-one")
        headers = {"Authorization": "Bearer secret-of-one"}
        server.ask("/completion", {"prompt": [5, 6, 7, 8], "n_predict": 3, "ignore_eos": True}, **headers)
        done = server.id
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.ask("/completion", {"prompt": [5]})
        refused.exception.close()
        self.assertEqual(server.stop(), 0)
        with open(self.path("log")) as file:
            text = file.read()
        lines = {line["id"]: line for line in map(json.loads, text.splitlines())}
        line = lines[done]
        self.assertEqual((line["method"], line["path"], line["peer"], line["status"], line["complete"], line["finish"], line["choices"]),
                         ("POST", "/completion", "127.0.0.1", 200, True, "length", 1))
        self.assertEqual((line["prompt_tokens"], line["cached_tokens"], line["generated_tokens"]), (4, 0, 3))
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertTrue(line["ms"] > 0 and line["queue_ms"] >= 0 and line["bytes_in"] > 10 and line["bytes_out"] > 100 and line["tenant"])
        self.assertEqual(lines[refused.exception.headers["X-Request-Id"]]["status"], 401)
        self.assertNotIn("secret", text)
        again = self.serve("--log-file", self.path("log"))  # appended, and no id comes twice
        again.ask("/completion", {"prompt": [5], "n_predict": 1})
        self.assertEqual(again.stop(), 0)
        self.assertNotIn(again.id, lines)

    def test_who_leaves(self):
        """The line of a stream that its client cut says whose it was and what it cost."""
        server = self.serve("--log-file", self.path("left"), "-c", 4096, "--rope-scale", 2)
        answer = urllib.request.urlopen(
            server.address + "/completion",
            json.dumps({"prompt": [5, 6, 7, 8], "n_predict": 4000, "ignore_eos": True, "stream": True}).encode(),
            timeout=PATIENCE,
        )
        answer.readline()
        answer.close()
        self.assertEqual(server.stop(), 0)
        with open(self.path("left")) as file:
            line, = map(json.loads, file)
        self.assertEqual((line["status"], line["complete"], line["finish"], line["prompt_tokens"]), (200, False, "cancelled", 4))
        self.assertTrue(line["model"] and 0 < line["generated_tokens"] < 4000)

    def test_a_reader_that_stalls(self):
        """Whoever reads the log may stop: no request waits for that, lines beyond some memory are lost and counted, and the server ends in time.
        Lines that were written are whole."""
        for end in ("stalled", "read again")[common.repeated(0, 0, 1):]:
            out, into = os.pipe()
            process = subprocess.Popen(
                [*WEFT, "serve", self.path("tiny.gguf"), "--port", "-1", "-t", "1", "--drain", "2", "--log-file", "-"],
                stderr=into,
                stdout=subprocess.DEVNULL,
            )
            self.addCleanup(os.close, out)
            self.addCleanup(lambda p=process: (p.kill(), p.wait()))
            os.close(into)
            text = b""
            while not (found := re.search(rb"http://(\S+):(\d+)", text)):
                text += os.read(out, 1000)
            client = http.client.HTTPConnection(found.group(1).decode(), int(found.group(2)), timeout=PATIENCE)
            self.addCleanup(client.close)
            path, lost, n = "/" + "x" * 8000, 0, 0
            while lost == 0 and n < 100000:
                for i in range(200):
                    client.request("GET", path)
                    self.assertEqual(len(client.getresponse().read()) > 0, True)
                    n += 1
                client.request("GET", "/metrics")
                lost = samples(client.getresponse().read().decode())["weft_log_lines_lost_total"]
            self.assertGreater(lost, 0)
            if end == "read again":
                got, until = [b""], time.time() + PATIENCE
                reader = threading.Thread(target=lambda: [got.append(b) for b in iter(lambda: os.read(out, 65536), b"")])
                reader.start()
                while time.time() < until and b"".join(got).count(b'"/metrics"') == 0:
                    client.request("GET", "/metrics")
                    client.getresponse().read()
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE), 0)
            if end == "read again":
                reader.join()
                lines = [line for line in b"".join(got).decode().splitlines() if not line.startswith("weft serve: ")]
                self.assertEqual({len(json.loads(line)["path"]) for line in lines} - {len("/metrics")}, {512})

    def test_it_is_opened_anew(self):
        """SIGHUP, for whoever renames the file: nothing is lost; and without a log it is nothing."""
        server = self.serve("--log-file", self.path("rotated"))
        server.ask("/health")
        old = server.id
        until = time.time() + PATIENCE
        while os.path.getsize(self.path("rotated")) == 0 and time.time() < until:
            time.sleep(0.01)
        os.rename(self.path("rotated"), self.path("rotated.1"))
        server.process.send_signal(signal.SIGHUP)
        while not os.path.exists(self.path("rotated")) and time.time() < until:
            time.sleep(0.01)
        server.ask("/health")
        self.assertEqual(server.stop(), 0)
        for name, wanted in (("rotated.1", old), ("rotated", server.id)):
            with open(self.path(name)) as file:
                self.assertEqual([json.loads(line)["id"] for line in file], [wanted])
        server = self.serve()
        server.process.send_signal(signal.SIGHUP)
        server.ask("/health")
        self.assertEqual(server.stop(), 0)


class Trace(Case):
    def test_long_prompt(self):
        """The trace has steps, their ops and requests; and it shows that a long prompt that arrives takes one chunk of each step, in which all
        who generate have their row."""
        server = self.serve("--trace", self.path("trace"), "--slots", SLOTS, "-c", LONG + 64, "--rope-scale", 4, "--chunk", CHUNK, "--spec", "off")
        n_tokens = LONG * 3 // 4
        everybody, results = threading.Barrier(SLOTS), []
        streams = [threading.Thread(target=lambda i=i: results.append(server.stream([9 + i, 8, 7, 6], n_tokens, everybody.wait))) for i in range(SLOTS - 1)]
        for s in streams:
            s.start()
        everybody.wait(PATIENCE) # each of them generates
        guest = server.complete([3 + i * 7 % 500 for i in range(LONG)], 1)
        for s in streams:
            s.join()
        self.assertEqual(results, [n_tokens] * (SLOTS - 1))
        self.assertEqual((guest["tokens_evaluated"], guest["tokens_predicted"]), (LONG, 1))
        self.assertEqual(server.stop(), 0)
        with open(self.path("trace")) as file:
            events = json.load(file)["traceEvents"]
        steps = [e for e in events if e["cat"] == "step"]
        self.check_form(events, steps)
        mixed = [e["args"] for e in steps if e["args"]["rows"] > SLOTS and e["args"]["sequences"] == SLOTS]
        self.assertGreaterEqual(len(mixed), LONG // CHUNK - 2)
        for step in mixed: # one chunk, and a row for each of the others, all of whom get their logits
            self.assertLessEqual(step["rows"], CHUNK + SLOTS - 1)
            self.assertGreaterEqual(step["wanted"], SLOTS - 1)

    def check_form(self, events, steps):
        ops = [e for e in events if e["cat"] == "op"]
        self.assertGreater(len(ops), 10 * len(steps))
        self.assertLessEqual({"embed", "linear", "attention"}, {e["name"] for e in ops})
        self.assertEqual(len([e for e in events if e["cat"] == "request"]), SLOTS)
        for e in events:
            self.assertTrue(e["ph"] == "X" and e["ts"] >= 0 and e["dur"] >= 0)
        for a, b in zip(steps, steps[1:]):
            self.assertLessEqual(a["ts"] + a["dur"], b["ts"] + 0.01)


@common.leave_out(common.THREADS_WATCHED and not common.WHOLE, "weft top has one thread")
class Top(Case):
    def test_once(self):
        """Where standard output is no terminal: what the numbers are now, once."""
        server = self.serve("--slots", SLOTS)
        server.complete([5 + i % 300 for i in range(100)], 10)
        p = weft("top", server.address)
        self.assertEqual((p.returncode, p.stderr), (0, b""))
        text = p.stdout.decode()
        for pattern in (
            rf"0 run of {SLOTS}, 0 wait",
            r"total +10 generated, 100 of prompts, 0\.0 % of them cached",
            r"first token +half within \d+ ms, 99 % within \d+ ms",
            r"between them +half within \d+ ms",
            r"KV pages +0 of \d+ in use, [1-9]\d* hold prefixes",
            r"trouble +0 refused, 0 preempted, 0 failed",
        ):
            self.assertRegex(text, pattern)
        self.assertEqual(len(re.findall(r"^ +\d+  idle", text, re.M)), SLOTS)
        self.assertRegex(text, r"(?m)^ +0  idle +100 +10 ")
        self.assertNotIn("\033", text)

    def test_keys_and_sockets(self):
        server = self.serve("--api-key", "key-of-someone")
        p = weft("top", server.address)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"the server wants a key: --api-key", p.stderr)
        body = urllib.request.Request(server.address + "/completion", json.dumps({"prompt": [5, 6, 7], "n_predict": 4, "ignore_eos": True}).encode(),
                                      {"Authorization": "Bearer key-of-someone"})
        urllib.request.urlopen(body, timeout=PATIENCE).read()
        p = weft("top", server.address, "--api-key", "key-of-someone")
        self.assertEqual(p.returncode, 0)
        self.assertRegex(p.stdout.decode(), r"(?m)^key-\w+ +\(none\) +- +- +4 +3 +1$")
        self.assertEqual(weft("top", server.address[len("http://"):] + "/", "--api-key", "key-of-someone").returncode, 0)
        long = "k" * 1022  # as long as a line of a file of keys
        server = self.serve("--api-key", long)
        self.assertEqual(weft("top", server.address, "--api-key", long).returncode, 0)
        self.assertIn(b"--api-key: longer than", weft("top", server.address, "--api-key", "k" * 5000).stderr)
        socket = self.path("socket")
        over_socket = subprocess.Popen([*WEFT, "serve", self.path("tiny.gguf"), "--unix", socket], stderr=subprocess.PIPE)
        self.addCleanup(over_socket.communicate)
        self.addCleanup(over_socket.terminate)
        while b"unix:" not in over_socket.stderr.readline():
            pass
        self.assertEqual(weft("top", "unix:" + socket).returncode, 0)

    def test_wrong_addresses(self):
        for address, message in (
            ("https://localhost:1", b"localhost port 1"),
            ("http://:80", b"must be http://HOST:PORT"),
            ("http://127.0.0.1:1", b"127.0.0.1 port 1"),
            ("unix:/nowhere/at/all", b"/nowhere/at/all"),
            ("http://[::1", b"must be http://HOST:PORT"),
            ("http://localhost:80x", b"must be http://HOST:PORT"),
            ("http://[::1]80", b"must be http://HOST:PORT"),
        ):
            p = weft("top", address)
            self.assertEqual(p.returncode, 1, address)
            self.assertIn(message, p.stderr)

    def test_live_while_a_request_runs(self):
        """A long answer shows in the rates while it comes, not when it is over."""
        server = self.serve("--slots", 1, "-c", 100000, "--rope-scale", 64)
        body = json.dumps({"prompt": [5, 6, 7, 8], "n_predict": 99000, "ignore_eos": True, "stream": True}).encode()
        answer = urllib.request.urlopen(urllib.request.Request(server.address + "/completion", body), timeout=PATIENCE)
        seen, ended = threading.Event(), []

        def read():
            while not seen.is_set() and answer.readline():
                pass
            ended.append(not seen.is_set())
            answer.close()
        reader = threading.Thread(target=read)
        reader.start()
        ours, theirs = pty.openpty()
        top = subprocess.Popen([*WEFT, "top", server.address], stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        text, until = "", time.time() + PATIENCE
        while not re.search(r"now +[1-9][\d.]* generated t/s", text) and reader.is_alive() and time.time() < until:
            if select.select([ours], [], [], 0.2)[0]:
                text += os.read(ours, 65536).decode()
        seen.set()
        reader.join()
        top.send_signal(signal.SIGINT)
        top.communicate()
        os.close(ours)
        self.assertEqual(ended, [False], "nothing was shown before the end")
        self.assertRegex(text, r"now +[1-9][\d.]* generated t/s")
        self.assertEqual(server.stop(), 0)

    def test_live(self):
        """On a terminal it is redrawn, with rates, until Ctrl-C."""
        server = self.serve()
        ours, theirs = pty.openpty()
        top = subprocess.Popen([*WEFT, "top", server.address], stdout=theirs, stderr=subprocess.PIPE)
        os.close(theirs)
        text, until = "", time.time() + PATIENCE
        while "generated t/s" not in text and time.time() < until:
            if select.select([ours], [], [], 0.2)[0]:
                text += os.read(ours, 65536).decode()
        self.assertGreaterEqual(text.count("\033[H\033[2J"), 2)
        self.assertRegex(text, r"now +0\.0 generated t/s, 0\.0 prompt t/s")
        top.send_signal(signal.SIGINT)
        _, err = top.communicate(timeout=PATIENCE)
        self.assertEqual((top.returncode, err), (0, b""))
        os.close(ours)

    def test_top_ends_while_it_waits(self):
        """For a server that takes the connection and answers nothing: Ctrl-C ends it, as it ends what prints once, before its patience of ten seconds does."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            top = subprocess.Popen([*WEFT, "top", f"http://127.0.0.1:{silent.getsockname()[1]}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            taken, _ = silent.accept()
            taken.recv(4096)  # it has asked
            top.send_signal(signal.SIGINT)
            out, err = top.communicate(timeout=PATIENCE)
            self.assertEqual((top.returncode, out, err), (-signal.SIGINT, b"", b""))  # 1 with a message: it waited to the end
            taken.close()


if __name__ == "__main__":
    common.main()
