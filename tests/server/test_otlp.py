# SPDX-License-Identifier: Apache-2.0
"""Claims about `weft serve --otlp`: a collector (this program) gets a span for each request that asks for an answer and one for each of its
phases, in the trace of the client; no request waits for a collector that is slow or gone. What it gets is also read by the messages of
opentelemetry-proto, where that can be had.

usage: test_otlp.py build/weft"""
import base64
import glob
import http.server
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import common
from common import PATIENCE
from telemetry import MODELS, STAGES, Server, samples

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CHAT = {"messages": [{"role": "user", "content": "Tell me of the river."}], "max_tokens": 20}
ENVIRONMENT = os.path.join(os.path.dirname(MODELS), "build", "clients")


class Collector:
    """statuses: what it answers, one after the other; the last for ever."""

    def __init__(self, *statuses):
        self.bodies, self.heads, self.statuses, collector = [], [], list(statuses or [200]), self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = collector.statuses.pop(0) if len(collector.statuses) > 1 else collector.statuses[0]
                collector.heads.append((self.path, self.headers["Content-Type"], status))
                if status == 200:
                    collector.bodies.append(json.loads(body))
                self.send_response(status)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *args):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @property
    def spans(self):
        return [s for body in self.bodies for s in body["resourceSpans"][0]["scopeSpans"][0]["spans"]]


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}


class Otlp(common.InFolder):
    def collector(self, *statuses):
        collector = Collector(*statuses)
        self.addCleanup(collector.close)
        return collector

    def serve(self, url):
        server = Server(MODELS, "--otlp", url, model="alderbrook.gguf")
        self.addCleanup(server.end)
        return server

    def refused(self, server, body):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.ask("/v1/chat/completions", body, traceparent="00-" + "0" * 32 + f"-{SPAN}-01")
        refused.exception.close()

    def check_request(self, span, phases, usage):
        """Phases follow each other within the request, from its beginning to its end."""
        self.assertEqual([p["name"] for p in phases], ["read", "template", "tokenizer", "prepare", "queue", "prompt", "generate", "write"])
        at = int(span["startTimeUnixNano"])
        for p in phases:
            self.assertEqual((p["traceId"], p["parentSpanId"], p["kind"], int(p["startTimeUnixNano"])), (span["traceId"], span["spanId"], 1, at), p)
            at = int(p["endTimeUnixNano"])
        self.assertEqual(at, int(span["endTimeUnixNano"]))
        self.assertLess(abs(int(span["endTimeUnixNano"]) / 1e9 - time.time()), 86400)  # of this day, not since the machine began
        told = attributes(span)
        self.assertEqual((told["http.request.method"], told["url.path"], told["http.response.status_code"]), ("POST", "/v1/chat/completions", "200"))
        self.assertEqual((told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"], told["gen_ai.request.model"]),
                         (str(usage["prompt_tokens"]), str(usage["completion_tokens"]), "alderbrook"))
        self.assertLessEqual({f"weft.stage.{s}_ms" for s in STAGES}, set(told))

    def test_spans(self):
        """The client's trace goes on, one that is not sampled is left alone, a traceparent that is none begins a new one; a request that was
        refused is a span without phases, and looks at /metrics are none. A collector that is not there at first gets all of it later."""
        collector = self.collector(503, 200)
        server = self.serve(collector.url)
        answer = json.loads(server.ask("/v1/chat/completions", CHAT, traceparent=f"00-{TRACE}-{SPAN}-01"))
        server.ask("/v1/chat/completions", CHAT, traceparent=f"00-{TRACE}-{SPAN}-00")
        self.refused(server, {"messages": 7})
        server.ask("/metrics")
        until = time.time() + PATIENCE
        while len(collector.spans) < 10 and time.time() < until:
            time.sleep(0.05)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(set(collector.heads[:1]), {("/v1/traces", "application/json", 503)})
        self.assertEqual({a["key"] for a in collector.bodies[0]["resourceSpans"][0]["resource"]["attributes"]}, {"service.name", "service.version"})
        roots = [s for s in collector.spans if s["kind"] == 2]
        self.assertEqual([s["name"] for s in roots], ["POST /v1/chat/completions"] * 2)
        self.assertEqual((roots[0]["traceId"], roots[0]["parentSpanId"]), (TRACE, SPAN))
        self.check_request(roots[0], [s for s in collector.spans if s.get("parentSpanId") == roots[0]["spanId"]], answer["usage"])
        self.assertNotIn("parentSpanId", roots[1])
        self.assertRegex(roots[1]["traceId"], "^(?!0{32})[0-9a-f]{32}$")
        self.assertEqual(attributes(roots[1])["http.response.status_code"], "400")
        self.assertEqual(len(collector.spans), 10)
        self.assertEqual(len({s["spanId"] for s in collector.spans}), 10)

    def test_nobody_waits(self):
        """Of a collector that takes connections and answers nothing no request waits, nor does the end; one that refuses loses spans, which are
        counted and told once."""
        with socket.create_server(("127.0.0.1", 0), backlog=64) as silent:
            server = self.serve(f"http://127.0.0.1:{silent.getsockname()[1]}/own/path")
            for _ in range(40):
                server.ask("/completion", {"prompt": [5], "n_predict": 1})
            self.assertEqual(server.stop(), 0)  # before PATIENCE is over
        collector = self.collector(400)
        server = self.serve(collector.url + "/own/path")
        server.ask("/completion", {"prompt": [5], "n_predict": 1})
        until, now = time.time() + PATIENCE, {}
        while not now.get("weft_traces_dropped_total") and time.time() < until:
            now = samples(server.ask("/metrics"))
        self.assertEqual((now["weft_traces_sent_total"], now["weft_traces_dropped_total"]), (0, 1))
        self.assertEqual(collector.heads, [("/own/path", "application/json", 400)])
        self.assertEqual(server.stop(), 0)

    def test_addresses(self):
        for url in ("localhost:4318", "ftp://localhost", "http://user:word@localhost"):
            p = common.weft("serve", os.path.join(MODELS, "alderbrook.gguf"), "--port", "-1", "--otlp", url)
            self.assertEqual(p.returncode, 2)
            self.assertIn(b"must be http://HOST", p.stderr)

    @common.needs(glob.glob(os.path.join(ENVIRONMENT, "lib", "*", "site-packages", "opentelemetry", "proto")),
                  "there is no opentelemetry-proto in build/clients: make clients installs it there")
    def test_proto(self):
        """opentelemetry-proto reads all of it: every field is one that it knows, of the type it has."""
        collector = self.collector()
        server = self.serve(collector.url)
        server.ask("/v1/chat/completions", CHAT, traceparent=f"00-{TRACE}-{SPAN}-01")
        self.assertEqual(server.stop(), 0)
        body = json.dumps(collector.bodies[0])
        for key in ("traceId", "spanId", "parentSpanId"):  # protobuf's own mapping has base64 for bytes, OTLP has not
            body = re.sub(rf'"{key}": "([0-9a-f]+)"', lambda m: f'"{key}": "{base64.b64encode(bytes.fromhex(m[1])).decode()}"', body)
        code = """
import sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
spans = json_format.Parse(sys.stdin.read(), ExportTraceServiceRequest()).resource_spans[0].scope_spans[0].spans
print(len(spans), spans[0].trace_id.hex(), spans[0].parent_span_id.hex(), spans[0].kind, sum(s.end_time_unix_nano >= s.start_time_unix_nano > 0 for s in spans))
"""
        p = subprocess.run([os.path.join(ENVIRONMENT, "bin", "python"), "-c", code], input=body, text=True, capture_output=True)
        self.assertEqual(p.stdout.split(), ["9", TRACE, SPAN, "2", "9"], p.stderr)


if __name__ == "__main__":
    common.main()
