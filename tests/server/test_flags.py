# SPDX-License-Identifier: Apache-2.0
"""What options of `weft serve` do, with the real program: keys, origins, hosts, TLS, and the limits on connections and their times. What is behind
them is claimed over a scripted model (test_hostile.py, test_clients.py), whose program has options of its own.

usage: test_flags.py build/weft [CLASS ...]"""
import hashlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest

import real
from certificate import make_certificate
from servers import CHAT, EMULATOR, PATIENCE, PROGRAM, Answer, request, user, wait_until

HASHED = "second-key-of-two"
KEY = {"Authorization": "Bearer first-key-of-two"}
ADMIN = {"X-Api-Key": "admin-key-of-all"}
PAGE, OTHER_PAGE, EVIL_PAGE = ({"Origin": f"https://{name}.example", "Access-Control-Request-Method": "POST"} for name in ("app", "other", "evil"))
SOON = 25  # seconds: less than what a time is when it is not set, 60 s idle and 30 s slow, and many times what is set here


class Case(unittest.TestCase):
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.server = real.serve("--slots", 2, "--ctx", 256, *cls.options)

    @classmethod
    def tearDownClass(cls):
        real.checked_stop(cls.server)

    def ask(self, method, path, body=None, headers=None):
        return self.server.ask(method, path, body, headers)


# ---- who may call ----

class Doors(Case):
    scheme = "http"

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        keys = cls.path("keys")
        with open(keys, "w") as file:
            file.write(f"# who may call\nfirst-key-of-two\nsha256:{hashlib.sha256(HASHED.encode()).hexdigest()}\n")
        cls.options = (
            "--api-key-file",
            keys,
            "--admin-key",
            ADMIN["X-Api-Key"],
            "--proxy",
            "10.0.0.1",
            "--cors-origin",
            PAGE["Origin"],
            "--cors-origin",
            OTHER_PAGE["Origin"],
            "--allow-host",
            "ai.example",
            "--allow-host",
            "weft.example",
            "--no-page",
            *cls.more_options(),
        )
        super().setUpClass()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def more_options(cls):
        return ()

    def test_who_knows_a_key_of_the_file_may_call(self):
        self.assertTrue(self.server.address.startswith(self.scheme + "://"), self.server.address)
        for headers in (KEY, {"X-Api-Key": HASHED}):
            self.assertEqual(self.ask("GET", "/v1/models", headers=headers).status, 200, headers)
        for headers in ({}, {"X-Api-Key": "third-key-of-two"}, {"X-Api-Key": "# who may call"}):
            answer = self.ask("GET", "/v1/models", headers=headers)
            self.assertEqual((answer.status, answer.json["error"]["code"]), (401, "invalid_api_key"), headers)
        answer = self.ask("POST", CHAT, {"messages": user("Hello"), "max_tokens": 2}, KEY)
        self.assertEqual((answer.status, answer.json["usage"]["completion_tokens"]), (200, 2))
        self.assertEqual(self.ask("POST", CHAT, {"messages": user("Hello"), "max_tokens": 2}).status, 401)

    def test_keys_have_roles_and_are_read_again(self):
        """An admin's key comes from the command line or, at SIGHUP, from the file as it is now; another key changes nothing for all."""
        new = {"X-Api-Key": "fourth-key-of-all"}
        self.assertEqual([self.ask("POST", "/lora-adapters", [], who).status for who in (KEY, ADMIN, new)], [403, 200, 401])
        with open(self.path("keys"), "a") as file:
            file.write(new["X-Api-Key"] + " admin name=new\n")
        self.server.process.send_signal(signal.SIGHUP)
        looks = []
        if not wait_until(lambda: looks.append(self.ask("GET", "/v1/models", headers=new).status) or looks[-1] == 200):
            self.fail(f"{len(looks)} answers, the last {looks[-1]}; the server said: {''.join(self.server.err)}")
        self.assertEqual([self.ask("POST", "/lora-adapters", [], who).status for who in (KEY, ADMIN, new)], [403, 200, 200])
        self.assertEqual(self.ask("POST", CHAT, {"messages": user("Hello"), "max_tokens": 2}, new).status, 200)
        self.assertIn(b'\nweft_key_requests_total{key="new",adapter=""} 1\n', self.ask("GET", "/metrics", headers=ADMIN).body)

    def test_pages_of_the_origins_may_call(self):
        for page in (PAGE, OTHER_PAGE):
            answer = self.ask("OPTIONS", CHAT, headers=page)
            self.assertEqual((answer.status, answer.headers.get("access-control-allow-origin")), (204, page["Origin"]))
            read = self.ask("GET", "/v1/models", headers={**KEY, **page})
            self.assertEqual((read.status, read.headers.get("access-control-allow-origin")), (200, page["Origin"]))
        for method, path in (("OPTIONS", CHAT), ("GET", "/v1/models")):
            answer = self.ask(method, path, headers={**KEY, **EVIL_PAGE})
            self.assertEqual(answer.status, 403)
            self.assertNotIn("access-control-allow-origin", answer.headers)
            self.assertIn("--cors-origin", answer.json["error"]["message"])

    def test_the_page_is_left_out(self):
        for path in ("/", "/page/app.js"):
            self.assertEqual(self.ask("GET", path).status, 404)

    def test_names_of_this_machine(self):
        for host in ("ai.example", "weft.example:1234", "localhost"):
            self.assertEqual(self.ask("GET", "/v1/models", headers={**KEY, "Host": host}).status, 200, host)
        for host in ("evil.example", "ai.example.evil.example"):
            answer = self.ask("GET", "/v1/models", headers={**KEY, "Host": host})
            self.assertEqual(answer.status, 403, host)
            self.assertIn("--allow-host", answer.json["error"]["message"])


class Tls(Doors):
    """Keys, origins and hosts over TLS."""
    scheme = "https"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.context = ssl.create_default_context(cafile=cls.path("cert.pem"))

    @classmethod
    def more_options(cls):
        cert, key = cls.path("cert.pem"), cls.path("key.pem")
        make_certificate(cert, key)
        return "--tls-cert", cert, "--tls-key", key

    def ask(self, method, path, body=None, headers=None):
        c = http.client.HTTPSConnection("localhost", self.server.port, timeout=PATIENCE, context=self.context)
        c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json", **(headers or {})})
        r = c.getresponse()
        answer = Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())
        c.close()
        return answer

    def test_the_certificate_is_shown(self):
        with self.context.wrap_socket(self.server.connect(), server_hostname="localhost") as s, open(self.path("cert.pem")) as file:
            self.assertEqual(s.getpeercert(binary_form=True), ssl.PEM_cert_to_DER_cert(file.read()))

    def test_plain_http_is_not_answered(self):
        self.assertNotIn(b"HTTP/", self.server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        self.assertEqual(self.ask("GET", "/health").status, 200)  # nor did that harm it

    def test_what_is_no_certificate_is_refused(self):
        cert, key = self.path("cert.pem"), self.path("key.pem")
        none = self.path("none.pem")
        for options, status, words in ((("--tls-cert", cert), 2, "--tls-cert does nothing without --tls-key"),
                                       (("--tls-key", key), 2, "--tls-key does nothing without --tls-cert"),
                                       (("--tls-cert", none, "--tls-key", key), 1, "none.pem"), (("--tls-cert", key, "--tls-key", key), 1, "PEM")):
            p = subprocess.run([*EMULATOR, PROGRAM, "serve", real.MODEL, "--port", "-1", "--threads", "1", *options], capture_output=True, text=True,
                               timeout=PATIENCE)
            self.assertEqual(p.returncode, status, options)
            self.assertIn(words, p.stderr)


# ---- where ----

class Port(unittest.TestCase):
    def test_any_port(self):
        """0 is any that is free, as with other programs, and no other word for the default."""
        for port in (0, -1):
            server = real.serve("--slots", 1, "--ctx", 64, "--port", port)
            self.assertNotIn(server.port, (0, 8080))
            real.checked_stop(server)


class Ranges(unittest.TestCase):
    def test_beyond_what_there_is(self):
        """The option is named, before the model is read; what is just within serves."""
        for option, value in (("--slots", 129), ("--queue", 32769), ("--chunk", 513), ("--ctx", (1 << 24) + 1), ("--kv-type", "q8_0"),
                              ("--threads", 1025)):
            p = subprocess.run([*EMULATOR, PROGRAM, "serve", "/no/such/model", option, str(value)], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual((p.returncode, option in p.stderr, "/no/such" in p.stderr), (2, True, False), p.stderr)
        real.checked_stop(real.serve("--slots", 128, "--queue", 32768, "--chunk", 512, "--ctx", 64))

    def test_draft_and_pace(self):
        """A draft model, and steps that keep to their time, change no answer; the metrics know of both."""
        ask = {"prompt": "Once upon a time", "n_predict": 24, "temperature": 0.9, "seed": 5}
        contents = []
        for options in (("--spec", "off"), ("--draft", real.MODEL), ("--draft", real.MODEL, "--spec", "draft", "--chunk", "auto"), ("--steady", 40)):
            server = real.serve("--ctx", 128, *options)
            contents.append(server.post("/completion", ask).json["content"])
            self.assertEqual({s["speculative"] for s in server.get("/slots").json}, {"off" not in options})
            metrics = server.get("/metrics").body.decode()
            for name in ('weft_draft_tokens_total{drafter="model"} ', "weft_draft_seconds_total ", "weft_chunk_rows "):
                self.assertIn(name, metrics)
            real.checked_stop(server)
        self.assertEqual(len(set(contents)), 1, contents)

    def test_what_is_read_is_not_written_over(self):
        """Neither log nor trace is the model (which the server has mapped), its keys or an adapter: refused before anything is written."""
        with tempfile.TemporaryDirectory() as folder:
            model, keys = os.path.join(folder, "model"), os.path.join(folder, "keys")
            for path in (model, keys):
                with open(path, "w") as file:
                    file.write("precious")
            for option in ("--trace", "--log-file"):
                for path, more in ((model, ()), (keys, ("--api-key-file", keys)), (keys, ("--adapter", f"a={keys}"))):
                    p = subprocess.run([*EMULATOR, PROGRAM, "serve", model, option, path, *more], capture_output=True, text=True, timeout=PATIENCE)
                    self.assertEqual((p.returncode, "would be written over" in p.stderr, path in p.stderr), (1, True, True), p.stderr)
                    with open(path) as file:
                        self.assertEqual(file.read(), "precious")


# ---- how many, and for how long ----

class Crowd(Case):
    """Of two addresses each may have two connections (a quarter of four would be one), and both together fill the server."""
    options = ("--max-connections", 4, "--max-per-ip", 2)

    def comer(self, last):
        """A connection from 127.0.0.LAST that stays, and the status of its first answer."""
        s = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE, source_address=(f"127.0.0.{last}", 0))
        self.addCleanup(s.close)
        s.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = s.recv(65536)
        return s, int(answer.split()[1]), answer

    def test_a_server_and_an_address_have_their_limits(self):
        places = [self.comer(last) for last in (1, 1, 2, 2)]
        self.assertEqual([status for _, status, _ in places], [200] * 4)
        s, status, answer = self.comer(3)
        self.assertEqual((status, b"too many connections" in answer), (503, True), answer)
        self.assertEqual(s.recv(1), b"")  # it is closed
        for s, _, _ in places[2:]:
            s.close()
        self.assertTrue(wait_until(lambda: self.comer(1)[1] == 429, 0.3))  # 503: closed, but not gone yet
        self.assertTrue(wait_until(lambda: self.comer(3)[1] == 200, 0.3))

    def test_without_options_pages_and_hosts_are_refused_and_keys_are_not_asked_for(self):
        """What is let in above is let in by the options."""
        def status(headers):
            got = None

            def is_let_in():
                nonlocal got
                got = self.server.get("/v1/models", headers=headers).status
                return got not in (429, 503)
            wait_until(is_let_in, 0.3)
            return got
        self.assertEqual([status(headers) for headers in ({}, PAGE, {"Host": "ai.example"})], [200, 403, 403])


class Idle(Case):
    options = ("--idle", 1)

    def kept(self):
        """How long a connection lives behind its second answer, for which it was kept; None where this program was too slow for one."""
        def ask():
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return s.recv(65536)
        with self.server.connect() as s:
            s.settimeout(SOON)
            try:
                self.assertTrue(ask().startswith(b"HTTP/1.1 200 "))
                began = time.monotonic()
                if not (second := ask()):
                    return None
            except ConnectionError:
                return None
            self.assertTrue(second.startswith(b"HTTP/1.1 200 "), second)
            try:
                self.assertEqual(s.recv(65536), b"")
            except ConnectionError:
                pass
            return time.monotonic() - began

    def test_a_connection_that_is_kept_is_closed_when_nothing_comes(self):
        took = wait_until(self.kept)
        self.assertGreater(took, 0.5)

    def test_who_sends_a_head_byte_by_byte_is_cut(self):
        with self.server.connect() as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
            with self.assertRaises(OSError):
                for _ in range(10 * SOON):
                    s.sendall(b"x")
                    time.sleep(0.1)


class Slow(Case):
    options = ("--slow", 1)

    def test_who_does_not_read_is_cut(self):
        self.assertEqual(self.server.metric("weft_http_cut_slow_total"), 0)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(("127.0.0.1", self.server.port))
            s.sendall(request({"content": "a b c d " * 4700, "with_pieces": True}, "/tokenize"))  # 450 KB: seven seconds
            self.assertTrue(wait_until(lambda: self.server.metric("weft_http_cut_slow_total") == 1, 0.05, SOON))


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    for test, why in result.skipped:
        print(f"SKIP: {test}: {why}")
    sys.exit(0 if result.wasSuccessful() and not result.skipped else 77 if result.wasSuccessful() else 1)
