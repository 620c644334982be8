# SPDX-License-Identifier: Apache-2.0
"""weft top, once and live."""
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from telemetry import SLOTS, Case
import common
from common import PATIENCE, WEFT, weft


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
