# SPDX-License-Identifier: Apache-2.0
"""Claims about deploy/haproxy with three replicas of `weft serve` behind it: a session stays with the replica that has its prefix, as the
replicas' own counters of hits say; one of them that is killed under load costs no request that is no stream, and no answer is another. Keys stay
together, and what changes a replica is not sent twice.

usage: test_haproxy.py build/weft"""
import collections
import concurrent.futures
import http.client
import http.server
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

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "cli"), os.path.join(ROOT, "tests", "server")]
import common
from common import PATIENCE
from telemetry import MODELS, Server, samples

HAPROXY = shutil.which("haproxy") or (os.path.exists("/usr/sbin/haproxy") and "/usr/sbin/haproxy")
SESSIONS, TURNS, CLIENTS, REQUESTS = 12, 4, 8, 240
PREFIX = "%d of the people by the river told a story every evening, and once upon a time it was of a village far away. " * 4


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Behind(common.InFolder):
    """HAProxy with our configuration in front of three addresses."""

    def begin(self, addresses, **changes):
        self.port = free_port()
        with open(os.path.join(ROOT, "deploy", "haproxy", "haproxy.cfg")) as file:
            config = file.read().replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
        for number, address in zip((8081, 8082, 8083), addresses):
            config = config.replace(f"127.0.0.1:{number}", address)
        for word, value in changes.items():
            config = re.sub(rf"{word.replace('_', '-')} .*", f"{word.replace('_', '-')} {value}", config)
        config = config.replace("/run/haproxy/admin.sock", self.path("admin.sock"))
        with open(self.path("haproxy.cfg"), "w") as file:
            file.write(config)
        checked = subprocess.run([HAPROXY, "-c", "-f", self.path("haproxy.cfg")], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertNotIn("WARNING", checked.stderr)
        with open(self.path("haproxy.log"), "w") as log:
            process = subprocess.Popen([HAPROXY, "-db", "-f", self.path("haproxy.cfg")], stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (process.terminate(), process.wait()))
        until = time.time() + PATIENCE
        while self.ask("GET", "/health")[0] != 200 and time.time() < until:
            time.sleep(0.05)

    def ask(self, method, path, body=None, **headers):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}})
            r = c.getresponse()
            return r.status, r.read()
        except OSError:
            return 0, b""
        finally:
            c.close()


class Double(http.server.ThreadingHTTPServer):
    """A replica that is well, notes what it is sent, and answers with its number; or goes away without an answer, where it `breaks`."""

    def __init__(self, number, seen):
        self.number, self.seen, self.breaks = number, seen, False
        super().__init__(("127.0.0.1", 0), Answering)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """HAProxy drops the connections of its health checks."""


class Answering(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1")
        self.end_headers()
        self.wfile.write(b"%d" % self.server.number)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append(self.path)
        if self.server.breaks:
            self.close_connection = True
        else:
            self.do_GET()

    def log_message(self, *_):
        pass


@common.needs(HAPROXY, "there is no haproxy: scripts/setup deploy")
class Rules(Behind):
    def setUp(self):
        self.seen = []
        self.doubles = [Double(n, self.seen) for n in range(3)]
        for double in self.doubles:
            self.addCleanup(double.server_close)
            self.addCleanup(double.shutdown)
        # No bound of loads: what answers at once may count as busy a moment longer, and its next request goes elsewhere.
        self.begin([f"127.0.0.1:{double.server_port}" for double in self.doubles], hash_balance_factor=0)

    def test_what_stays_together(self):
        """A key's requests come to one replica, whichever header has it; a session goes before it; keys are on more than one."""
        def where(**headers):
            places = {self.ask("POST", "/completion", {"prompt": "x"}, **headers)[1] for _ in range(6)}
            self.assertEqual(len(places), 1, headers)
            return places.pop()
        for header in ("X_Api_Key", "Authorization", "X_Prefix_Id", "X_Session_Id"):
            self.assertGreater(len({where(**{header: f"one of those {n}"}) for n in range(8)}), 1, header)
        one = {"X_Session_Id": "a session"}
        for n in range(8):
            self.assertEqual(where(**one), where(X_Api_Key=f"some key {n}", **one))
            self.assertEqual(where(X_Api_Key=f"some key {n}"), where(X_Api_Key=f"some key {n}", X_Weft_Affinity="what a client says"))

    def test_what_is_not_done_twice(self):
        """A request whose replica goes away is sent to another one, but for those that change a replica."""
        for double in self.doubles:
            double.breaks = True
        once = ("/models/load", "/models/unload", "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/lora-adapters", "/slots/0?action=save")
        for path in (*once, "/completion"):
            del self.seen[:]
            until = time.time() + PATIENCE
            while not self.seen and time.time() < until:  # those that broke count as down until they are found well again
                self.assertNotEqual(self.ask("POST", path, {"model": "x"})[0], 200)
            self.assertEqual(len(self.seen) == 1, path in once, self.seen)


@common.needs(HAPROXY, "there is no haproxy: scripts/setup deploy")
class Haproxy(Behind):
    def setUp(self):
        self.replicas = [Server(MODELS, "--proxy", "127.0.0.1", "--allow-host", "weft", "--slots", 4, model="alderbrook.gguf") for _ in range(3)]
        for replica in self.replicas:
            self.addCleanup(replica.end)
        self.begin([replica.address.split("//")[1] for replica in self.replicas])

    def hits(self):
        return [samples(r.ask("/metrics"))["weft_prefix_hit_tokens_total"] for r in self.replicas]

    def talk(self, first, **header):
        """Sessions that say a little more each time, side by side. Returns how many turns but the first found all that was said before, and what
        the replicas counted of hits."""
        before, n_found = self.hits(), 0
        for turn in range(TURNS):
            for s in range(first, first + SESSIONS):
                name = {k: f"{v}-{s}" for k, v in header.items()}
                body = {"prompt": PREFIX % ((s,) * 4) + "So it goes on. " * turn, "max_tokens": 2}
                status, answer = self.ask("POST", "/v1/completions", body, **name)
                self.assertEqual(status, 200)
                usage = json.loads(answer)["usage"]
                n_found += turn > 0 and usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] * 3 // 4
        return n_found, [now - was for now, was in zip(self.hits(), before)]

    def test_affinity(self):
        """A session's prefix is found again at nine in ten of its turns but the first, wherever its replica is; so is one that is named; without a header
        turns go to any replica, and many find nothing. Sessions are on more than one replica."""
        n_scattered, scattered = self.talk(100)
        n_together, together = self.talk(0, X_Session_Id="session")
        n_named, named = self.talk(200, X_Prefix_Id="prefix")
        n_most = SESSIONS * (TURNS - 1)  # one that is busy for a moment longer passes on (hash-balance-factor)
        self.assertGreaterEqual(min(n_together, n_named), n_most * 9 // 10, (scattered, together, named))
        self.assertLess(n_scattered, n_together * 3 // 4)
        self.assertGreater(sum(together), sum(scattered))
        self.assertGreater(sum(n > 0 for n in together), 1, together)

    def test_one_is_killed(self):
        """kill -9 of a replica while eight clients ask: every answer comes, whole, and is the one that a server gives alone."""
        asked = [{"prompt": f"Once upon a time {i % 10}", "n_predict": 40, "temperature": 0, "ignore_eos": True} for i in range(REQUESTS)]
        alone = [json.loads(self.replicas[0].ask("/completion", body))["content"] for body in asked[:10]]
        n_done = 0

        def one(i):
            nonlocal n_done
            status, body = self.ask("POST", "/completion", asked[i], X_Session_Id=f"s{i}")
            n_done += 1
            if n_done == REQUESTS // 3:
                self.replicas[1].process.send_signal(signal.SIGKILL)
            return status, status == 200 and json.loads(body)["content"]
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            answers = list(pool.map(one, range(REQUESTS)))
        self.replicas[1].process.wait(PATIENCE)
        self.assertEqual([(i, a) for i, a in enumerate(answers) if a != (200, alone[i % 10])], [])
        with open(self.path("haproxy.log")) as file:
            served = re.findall(r" replicas/([abc]) ", file.read())
        self.assertEqual(set(served), {"a", "b", "c"})  # the one that was killed had its share

    def test_one_ends(self):
        """A replica that is told to end lets its requests end, and the others go on: nothing is lost, streams neither."""
        def one(i):
            body = {"prompt": f"Once {i}", "n_predict": 60, "temperature": 0, "ignore_eos": True, "stream": i % 2 == 0}
            status, got = self.ask("POST", "/completion", body, X_Session_Id=f"s{i}")
            return status, b'"stop":true' in got.replace(b" ", b"")
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            answers = [pool.submit(one, i) for i in range(REQUESTS // 2)]
            answers[REQUESTS // 8].result()
            self.replicas[2].process.send_signal(signal.SIGTERM)
            self.assertEqual({a.result() for a in answers}, {(200, True)})
        self.assertEqual(self.replicas[2].process.wait(PATIENCE), 0)

    def test_what_is_not_for_clients(self):
        self.assertEqual(self.ask("GET", "/metrics")[0], 403)
        status, _ = self.ask("POST", "/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "a"})
        self.assertGreaterEqual(status, 400)


if __name__ == "__main__":
    common.main()
