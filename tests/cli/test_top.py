# SPDX-License-Identifier: Apache-2.0
"""Claims about weft top before a server whose numbers are known: keys and adapters, live rates, q, TLS, and what is wrong with an address or a key.
usage: test_top.py build/weft"""
import http.server
import json
import os
import re
import signal
import ssl
import sys
import tempfile
import threading
import unittest
import urllib.parse

from common import WEFT, main, run

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from certificate import make_certificate  # noqa: E402
from screen import Program  # noqa: E402

PLAIN = """# HELP weft_slots Requests that may run at once.
weft_slots 2
weft_running 1
weft_prompt_tokens_total 100
weft_cached_tokens_total 25
weft_generated_tokens_total {generated}
weft_steps_total 7
weft_requests_total{{finish="failed"}} 3
"""
LABELLED = """weft_slots 2
weft_running 1
weft_prompt_tokens_total 100
weft_generated_tokens_total {generated}
weft_requests_total{{finish="end"}} 2
weft_requests_total{{finish="failed"}} 1
weft_key_prompt_tokens_total{{key="team-a",adapter="pirate"}} 60
weft_key_prompt_tokens_total{{key="te}}am \\"b\\"\x1b[31m",adapter=""}} 40
weft_key_generated_tokens_total{{key="team-a",adapter="pirate"}} {generated}
weft_key_generated_tokens_total{{key="te}}am \\"b\\"\x1b[31m",adapter=""}} 5
weft_key_requests_total{{key="team-a",adapter="pirate"}} 3
weft_time_to_first_token_seconds_bucket{{path="a",le="0.01"}} 1
weft_time_to_first_token_seconds_bucket{{path="a",le="0.5"}} 2
weft_time_to_first_token_seconds_bucket{{path="a",le="+Inf"}} 2
weft_time_to_first_token_seconds_count{{path="a"}} 2
weft_draft_tokens_total{{drafter="suffix"}} 40
weft_draft_tokens_total{{drafter="prediction"}} 0
weft_draft_tokens_total{{drafter="model"}} 60
weft_draft_accepted_tokens_total{{drafter="suffix"}} 10
weft_draft_accepted_tokens_total{{drafter="model"}} 45
"""
SLOTS = [{"id": i, "n_ctx": 512, "is_processing": i == 0, "n_prompt_tokens": 7, "next_token": [{"n_decoded": 9}]} for i in range(2)]


class Server(http.server.ThreadingHTTPServer):
    """models: of /v1/models, where there are several: then /slots wants ?model=, which may be one of `slots`."""

    def __init__(self, metrics, context=None, key=None, models=None, slots=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.metrics, self.key, self.asked = metrics, key, 0
        self.models, self.slots, self.wanted = models, slots, []
        if context:
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.address = f"http{'s' if context else ''}://localhost:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        s = self.server
        if s.key and self.headers["Authorization"] != "Bearer " + s.key:
            self.send_response(401)
            self.end_headers()
            return
        if not s.metrics:
            return
        if self.path.endswith("/metrics"):
            s.asked += 1
            body = s.metrics.format(generated=1000 * s.asked)
        elif s.models is None and self.path != "/slots":
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        elif self.path.endswith("/v1/models"):
            body = json.dumps({"object": "list", "data": s.models})
        elif s.models is None:
            body = json.dumps(SLOTS)
        else:
            name = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("model", [""])[0]
            s.wanted.append(name)
            status = 200 if name in s.slots else 409 if name else 400
            body = json.dumps(SLOTS if status == 200 else {"error": {"code": status}})
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *args):
        pass


class Case(unittest.TestCase):
    def serve(self, *args, **kwargs):
        server = Server(*args, **kwargs)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def live(self, *words, columns=110, rows=30, env=(), **kwargs):
        p = Program([*WEFT, "top", *words], columns, rows, env={**os.environ, "TERM": "xterm", **dict(env)}, **kwargs)
        self.addCleanup(p.close)
        return p

    def once(self, *words, **env):
        p = run([*WEFT, "top", *words], env={**os.environ, **env})
        return p.returncode, p.stdout.decode(), p.stderr.decode()


class Numbers(Case):
    def test_keys_and_adapters_have_lines(self):
        server = self.serve(LABELLED)
        status, out, err = self.once(server.address)
        self.assertEqual((status, err), (0, ""))
        self.assertIn("1 run of 2", out)
        self.assertIn("total    1000 generated, 100 of prompts", out)
        self.assertIn("1 failed", out)
        self.assertIn("guesses       55 of 100 tokens right (55 %), suffix 10 of 40, model 45 of 60\n", out)
        self.assertIn("first token   half within 10 ms, 99 % within 500 ms", out)
        self.assertRegex(out, r"(?m)^key +adapter +generated t/s +prompt t/s +generated +prompts +requests$")
        self.assertRegex(out, r"(?m)^team-a +pirate +- +- +1000 +60 +3$")
        self.assertRegex(out, r'(?m)^te}am "b"\\x1b\[31 +\(none\) +- +- +5 +40 +0$')
        self.assertNotIn("\x1b", out)

    def test_without_them_there_are_none(self):
        out = self.once(self.serve(PLAIN).address)[1]
        self.assertNotIn("adapter", out)
        self.assertIn("total    1000 generated, 100 of prompts, 25.0 % of them cached, 7 steps", out)
        self.assertIn("3 failed", out)
        self.assertRegex(out, r"(?m)^   0  runs          7          9        512$")

    def test_each_loaded_model_has_its_slots(self):
        """Nothing is asked of those that are not loaded, and what one does not tell does not end it."""
        odd = "b/c&d#\n\x1b[1m"
        models = [{"id": "a", "status": {"value": "loaded"}}, {"id": odd, "status": {"value": "loaded"}}, {"id": "departed", "status": {"value": "loaded"}},
                  {"id": "later", "status": {"value": "unloaded"}}, {"id": "lora", "parent": "a", "meta": {"adapter_id": 0}}]
        server = self.serve(PLAIN, models=models, slots=("a", odd))
        status, out, err = self.once(server.address)
        self.assertEqual((status, err, server.wanted), (0, "", ["a", odd, "departed"]))
        self.assertRegex(out, r"(?m)^a +\nslot  state.*\n   0  runs .*\n   1  idle .*\n\nb/c&d#.*x1b\[1m *\nslot  state")
        self.assertNotIn("departed", out)
        self.assertNotIn("\x1b", out)

    def test_where_no_model_is_loaded(self):
        server = self.serve(PLAIN, models=[{"id": "a", "status": {"value": "unloaded"}}])
        status, out, err = self.once(server.address)
        self.assertEqual((status, err, server.wanted), (0, "", []))
        self.assertIn("no model is loaded\n", out)

    def test_a_key_of_presets_alone(self):
        """What they are of is not listed: the first of each is asked for, and has no name where there is no other."""
        server = self.serve(PLAIN, models=[{"id": "p", "parent": "a"}, {"id": "q", "parent": "a"}], slots=("p", "q"))
        status, out, err = self.once(server.address)
        self.assertEqual((status, err, server.wanted), (0, "", ["p"]))
        self.assertRegex(out, r"(?m)^\nslot  state")

    def test_a_server_of_one_has_no_names_for_slots(self):
        server = self.serve(PLAIN, models=[{"id": "a"}, {"id": "alias"}, {"id": "lora", "parent": "a"}], slots=("",))
        status, out, err = self.once(server.address)
        self.assertEqual((status, err, server.wanted, out.count("slot  state")), (0, "", [""], 1))

    def test_rates_are_live(self):
        for metrics in (PLAIN, LABELLED):
            p = self.live(self.serve(metrics).address)
            p.wait(
                lambda text: re.search(r"^now +[1-9]\d*\.\d generated t/s", text, re.M)
                and (metrics == PLAIN or re.search(r"^team-a +pirate +[1-9]\d*\.\d ", text, re.M))
            )
            p.press("q")
            self.assertEqual(p.end(), 0)


class Windows(Case):
    def leave(self, p, keys="q", status=0):
        if isinstance(keys, str):
            p.press(keys)
        else:
            p.process.send_signal(keys)
        self.assertEqual(p.end(), status)
        self.assertEqual((p.after, p.screen.unknown, p.screen.modes), (p.before, [], {1049: False, 25: True}))

    def test_q_and_signals_leave_and_give_the_terminal_back(self):
        server = self.serve(PLAIN)
        for keys, status in (
            ("q", 0),
            ("Q", 0),
            ("xyz\x04", 0),
            ("\x03", 0),
            (signal.SIGINT, 0),
            (signal.SIGTERM, -signal.SIGTERM),
            (signal.SIGHUP, -signal.SIGHUP),
        ):
            p = self.live(server.address, "--every", "3600")
            p.wait("q leaves")
            self.leave(p, keys, status)

    def test_what_does_not_fit_is_left_out(self):
        server = self.serve(PLAIN)
        p = self.live(server.address, "--every", "3600", columns=30, rows=6)
        text = p.wait(r"\.\.\. \d+ more$")
        self.assertEqual((len(text.split("\n")), max(map(len, text.split("\n")))), (6, 30))
        p.size(110, 30)
        p.wait("q leaves")  # drawn anew at once
        self.assertEqual(server.asked, 1)
        self.leave(p)

    def test_a_server_that_comes_and_goes(self):
        server = self.serve(PLAIN)
        p = self.live(server.address)
        p.wait("q leaves")
        server.metrics = ""  # the connection breaks off
        p.wait("^no answer, asking again: ")
        server.metrics = PLAIN
        p.wait(lambda text: "no answer" not in text and "q leaves" in text)
        self.leave(p)

    def test_a_terminal_that_cannot_draw(self):
        p = self.live(self.serve(PLAIN).address, env={"TERM": "dumb"})
        p.wait(lambda text: text.count("q leaves") == 2)
        p.press("q")
        self.assertEqual(p.end(), 0)
        self.assertNotIn(b"\x1b", p.raw)


class Doors(Case):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.cert, cls.key, cls.keys = (os.path.join(folder.name, name) for name in ("cert.pem", "key.pem", "keys"))
        make_certificate(cls.cert, cls.key)

    def test_certificates_are_checked(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        server = self.serve(PLAIN, context, "some-key")
        self.assertEqual(self.once(server.address, "--tls-ca", self.cert, "--api-key", "some-key")[::2], (0, ""))
        self.assertEqual(self.once(server.address + "/metrics", "--api-key", "some-key", SSL_CERT_FILE=self.cert)[0], 0)
        status, out, err = self.once(server.address, "--api-key", "some-key")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("the certificate of localhost is not trusted", err)
        self.assertIn("--tls-ca", err)
        status, _, err = self.once(server.address.replace("localhost", "127.0.0.1"), "--tls-ca", self.cert, "--api-key", "some-key")
        self.assertEqual(status, 1)  # the certificate is of another name
        self.assertEqual(self.once(server.address, "--tls-ca", self.keys)[0], 1)

    def test_keys(self):
        server = self.serve(PLAIN, key="some-key")
        with open(self.keys, "w") as f:
            f.write("# who may call\n\nsha256:00\nsome-key \r\nother-key\n")
        self.assertEqual(self.once(server.address, "--api-key-file", self.keys)[0], 0)
        for words, message in (
            ((), "the server wants a key"),
            (("--api-key", "other"), "the server wants a key"),
            (("--api-key", "a\r\nX: y"), "control characters"),
            (("--api-key-file", "/nowhere"), "/nowhere"),
            (("--api-key-file", "/dev/null"), "has no key"),
        ):
            status, _, err = self.once(server.address, *words)
            self.assertEqual(status, 1, words)
            self.assertIn(message, err)

    def test_a_proxy_is_not_asked_for_this_machine(self):
        self.assertEqual(self.once(self.serve(PLAIN).address, http_proxy="http://127.0.0.1:1", ALL_PROXY="http://127.0.0.1:1")[0], 0)


if __name__ == "__main__":
    main()
