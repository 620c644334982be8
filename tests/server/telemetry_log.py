# SPDX-License-Identifier: Apache-2.0
"""The log of requests, and the trace of steps."""
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from telemetry import CHUNK, LONG, SLOTS, Case, samples
import common
from common import PATIENCE, WEFT


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
