# SPDX-License-Identifier: Apache-2.0
"""What the tests of the server share: a server as a process (Server), its answers, and one that is scripted (Case: fake_server.c).

usage: PROGRAM build/fake_server"""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EMULATOR = os.environ.get("WEFT_EMULATOR", "").split()
# Seconds that end a hang: what is waited for comes much sooner, but on a slow machine not soon; a test that must outwait it sets more.
PATIENCE = float(os.environ.get("WEFT_PATIENCE") or 600)
LOOK = 5
THREADS_WATCHED = "TSAN_OPTIONS" in os.environ
SANITIZED = "ASAN_OPTIONS" in os.environ or THREADS_WATCHED
CHAT, TEXT, LLAMA = "/v1/chat/completions", "/v1/completions", "/completion"
PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
FAKE = EMULATOR + [PROGRAM]
SWEEPS = os.environ.get("WEFT_SWEEPS") == "1"  # make test-all: claims are repeated as often as there is something to repeat them on


def of_one_thread(test):
    """Marks a test, or all of a class, in which the server does one thing after the other: what the thread sanitizer may see there, it sees in
    the others; it looks into these in make test-all."""
    return unittest.skipIf(THREADS_WATCHED and not SWEEPS, "one thing after the other")(test)


def wait_until(condition, every=0.01, patience=PATIENCE):
    """Waits until the condition holds, for so many seconds at most; whether it did. A look counts for LOOK seconds at most: a machine that
    was stopped and goes on has not waited. Looks become rarer, to a tenth: where little of a machine is there, they take what is waited for."""
    before, most = time.monotonic(), 10 * every
    while not (holds := condition()) and patience > 0:
        time.sleep(every)
        every = min(1.2 * every, most)
        now = time.monotonic()
        patience -= min(now - before, LOOK)
        before = now
    return holds


def user(text):
    return [{"role": "user", "content": text}]


def request(body, path=CHAT, more=b""):
    data = json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), more, len(data)) + data


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The data of each event of a stream; "[DONE]" stays text."""
        out = []
        for line in self.body.decode().split("\n\n"):
            if line.startswith("data: "):
                out.append(line[6:] if line[6:] == "[DONE]" else json.loads(line[6:]))
        return out


class Server:
    """A program that tells its address in a line of its output, and serves until SIGTERM."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace", **more)
        self.err, self.address, told = [], "", threading.Event()
        self.readers = [threading.Thread(target=self.read, args=(stream, told), daemon=True) for stream in (self.process.stdout, self.process.stderr)]
        for reader in self.readers:
            reader.start()
        while not told.wait(0.05) and any(reader.is_alive() for reader in self.readers):
            pass
        if not self.address:
            raise RuntimeError("".join(self.err) or "no address, and no message")
        self.port = int(self.address.rsplit(":", 1)[1]) if self.address.startswith("http") else 0

    def read(self, stream, told):
        for line in stream:
            found = None if self.address else re.search(r"https?://\S+:\d+|unix:\S+", line)
            if found:
                self.address = found.group()
                told.set()
            elif stream is self.process.stderr:
                self.err.append(line)

    def connect(self, timeout=PATIENCE, source="127.0.0.1"):
        """source: the address that it comes from; any of 127.0.0.0/8 is loopback."""
        if self.port:
            return socket.create_connection(("127.0.0.1", self.port), timeout=timeout, source_address=(source, 0))
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(self.address[len("unix:"):])
        return s

    def ask(self, method, path, body=None, headers=None, timeout=PATIENCE, source="127.0.0.1"):
        c = http.client.HTTPConnection("127.0.0.1", self.port or 80, timeout=timeout)
        c.sock = self.connect(timeout, source)
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        c.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
        r = c.getresponse()
        answer = Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        c.close()
        return answer

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def raw(self, data):
        """Everything that comes back for these bytes until the server closes, which it must."""
        out = b""
        with self.connect() as s:
            try:
                s.sendall(data)
            except ConnectionError:
                pass  # refused before all was sent
            try:
                while got := s.recv(65536):
                    out += got
            except ConnectionError:
                pass
        return out

    def metric(self, name):
        found = re.search(r"^%s (\S+)$" % re.escape(name), self.get("/metrics").body.decode(), re.M)
        return float(found.group(1))

    def metric_sum(self, name):
        """Of what has labels."""
        return sum(float(n) for n in re.findall(r"^%s\{.*\} (\S+)$" % re.escape(name), self.get("/metrics").body.decode(), re.M))

    def wait_metric(self, name, want):
        """What it is when it is as wanted, or at last."""
        got = None

        def found():
            nonlocal got
            got = self.metric(name)
            return got == want
        wait_until(found, 0.02)
        return got  # asked again, it may count the one who asked before

    def is_closed(self):
        try:
            self.connect().close()
        except OSError:
            return True
        return False

    def wait_closed(self):
        """Waits until it takes no more connections, as after SIGTERM."""
        if not wait_until(self.is_closed):
            raise RuntimeError("it still takes connections")

    def stop(self):
        """Exit status and what stood on stderr."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self):
        self.process.kill()
        return self.ended()

    def ended(self):
        try:
            self.process.wait(timeout=PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
        for reader in self.readers:
            reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.returncode, "".join(self.err)


class Case(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server([*FAKE, *cls.options])

    @classmethod
    def tearDownClass(cls):
        status, err = cls.server.stop()
        assert status == 0, err  # 3: memory was not freed

    def post(self, path, body, status=200, **more):
        answer = self.server.post(path, body, **more)
        self.assertEqual(answer.status, status, answer.body)
        return answer

    def own(self, *options, **more):
        server = Server([*FAKE, *options], **more)
        self.addCleanup(lambda: server.process.stdout.closed or server.stop())
        return server

    def own_held(self, *options):
        """A server, and a file: as long as that is there, a grammar with "held" is compiled, a slot is saved as "hung", and a text that
        begins with "[held]" is made tokens, by a worker."""
        folder = tempfile.TemporaryDirectory()
        server = self.own(*options, env={**os.environ, "WEFT_FAKE_HOLD": os.path.join(folder.name, "hold")})
        self.addCleanup(folder.cleanup)
        return server, os.path.join(folder.name, "hold")

    def run_all(self, n, what):
        """So many threads that do it."""
        threads = [threading.Thread(target=what, daemon=True) for _ in range(n)]
        for t in threads:
            t.start()
        return threads
