# SPDX-License-Identifier: Apache-2.0
"""What the tests of numbers share: weft serve as a program, with metrics, log and trace to look at."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import common  # noqa: E402
from common import PATIENCE, WEFT, weft  # noqa: E402

MODELS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "models")
CHUNK, SLOTS, LONG = 64, 6, 400 if common.SANITIZED else 8000
HISTOGRAMS = ("weft_time_to_first_token_seconds", "weft_time_between_tokens_seconds", "weft_queue_seconds", "weft_request_seconds",
              "weft_step_rows", "weft_step_seconds")
STAGES = ("reading", "template", "tokenizer", "grammar", "queue", "scheduler", "model", "sampling", "writing")


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
