# SPDX-License-Identifier: Apache-2.0
"""Claims about deploy/prometheus and deploy/grafana: promtool finds nothing wrong with the rules, whose own tests pass; Debian's Prometheus scrapes a
server under load by the configuration that stands there, and every query of the dashboard and of the rules that is no alert returns data.

usage: test_prometheus.py build/weft"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "server")]
import common
from common import PATIENCE
from telemetry import MODELS, Server

RULES = os.path.join(ROOT, "deploy", "prometheus")
DASHBOARD = os.path.join(ROOT, "deploy", "grafana", "weft.json")
DIGIT = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["n"]}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": DIGIT}}


def queries():
    with open(DASHBOARD) as file:
        panels = json.load(file)["panels"]
    for panel in panels:
        for target in panel["targets"]:
            yield f'{panel["title"]}: {target["legendFormat"]}', target["expr"]
    with open(os.path.join(RULES, "weft.rules.yml")) as file:
        for name in re.findall(r"record: (\S+)", file.read()):
            yield name, name


@common.needs(shutil.which("prometheus") and shutil.which("promtool"), "there is no prometheus: scripts/setup deploy")
class Prometheus(common.InFolder):
    def test_rules(self):
        for what in (("check", "config", "prometheus.yml"), ("check", "rules", "weft.rules.yml"), ("test", "rules", "weft.rules.test.yml")):
            p = subprocess.run(["promtool", *what], cwd=RULES, capture_output=True, text=True)
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)

    def load(self, server):
        """What makes each number move, until the test ends."""
        n = 0
        while not self.ended.is_set():
            n += 1
            for path, body in (
                ("/completion", {"prompt": "Once upon a time there was a river " * 5, "n_predict": 20, "ignore_eos": True}),
                ("/completion", {"prompt": f"Once {n}", "n_predict": 10, "model": ("pirate", "poem")[n % 2]}),
                ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Tell"}], "max_tokens": 10, "response_format": SCHEMA}),
            ):
                server.ask(path, body)

    def query(self, expr):
        data = urllib.parse.urlencode({"query": expr}).encode()
        with urllib.request.urlopen(self.address + "/api/v1/query", data, timeout=PATIENCE) as answer:
            return json.load(answer)["data"]["result"]

    def start(self, target):
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        with open(os.path.join(RULES, "prometheus.yml")) as file:
            config = re.sub(r"targets: .*", f'targets: ["{target}"]', file.read()).replace(": 15s", ": 1s")
        with open(self.path("prometheus.yml"), "w") as file:
            file.write(config)
        shutil.copy(os.path.join(RULES, "weft.rules.yml"), self.path("weft.rules.yml"))
        with open(self.path("prometheus.log"), "w") as log:
            process = subprocess.Popen(["prometheus", f"--config.file={self.path('prometheus.yml')}", f"--storage.tsdb.path={self.path('data')}",
                                        f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (process.terminate(), process.wait()))

    def test_queries(self):
        adapters = [a for name in ("pirate", "poem") for a in ("--adapter", f"{name}={os.path.join(MODELS, name)}.gguf")]
        server = Server(MODELS, *adapters, model="alderbrook.gguf")
        self.addCleanup(server.end)
        self.ended = threading.Event()
        loader = threading.Thread(target=self.load, args=(server,))
        self.start(server.address.split("//")[1])
        loader.start()
        self.addCleanup(loader.join)
        self.addCleanup(self.ended.set)
        wanted = {name: expr.replace("$__rate_interval", "5s").replace("$instance", ".*") for name, expr in queries()}
        self.assertGreater(len(wanted), 30)
        until, empty = time.time() + PATIENCE / 4, dict(wanted)
        while empty and time.time() < until:  # rates need two scrapes
            time.sleep(0.5)
            try:
                empty = {name: expr for name, expr in wanted.items() if not any(float(r["value"][1]) == float(r["value"][1]) for r in self.query(expr))}
            except OSError:
                pass  # it has not begun to answer
        self.assertEqual(empty, {})
        self.assertEqual(self.query('up{job="weft"}')[0]["value"][1], "1")


if __name__ == "__main__":
    common.main()
