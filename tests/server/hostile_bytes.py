# SPDX-License-Identifier: Apache-2.0
"""Bodies that are too long, too many or too slow, and heads that are none."""
import json
import re
import socket
import threading
import time

from servers import LLAMA, TEXT, of_one_thread, request, wait_until
from bad_requests import BIG


class Bodies:
    def test_body_too_long(self):
        answer = self.server.post(TEXT, {"prompt": "x", "stop": BIG})  # 10 MB
        self.assertEqual((answer.status, answer.json["error"]["code"]), (413, "request_too_large"))
        chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
        out = self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk * 6 + b"0\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 413 "), out[:100])
        out = self.server.raw(b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\nx")
        self.assertTrue(out.startswith(b"HTTP/1.1 413 "), out[:100])

    def test_bodies_together(self):
        """All bodies that are held have a limit (64 MB here), and one address no more than it leaves the others: who is beyond is told to come again, and
        what is let go counts no more."""
        size, clients, held = 4 << 20, [], 0
        for source, n in (("127.0.0.2", 8), ("127.0.0.3", 4), ("127.0.0.4", 2)):
            for _ in range(n):  # all but the last byte of each
                s = self.server.connect(source=source)
                self.addCleanup(s.close)
                s.sendall(b"POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size + b"x" * (size - 1))
                clients.append(s)
            held += n * (size - 1)
            self.assertTrue(wait_until(lambda: self.server.metric("weft_http_body_bytes") >= held))
            self.assertLessEqual(self.server.metric("weft_http_body_bytes"), 64 << 20)
            refused = self.server.post("/nowhere", b"x" * size, source=source)  # more than is its share
            self.assertEqual((refused.status, refused.headers.get("retry-after")), (429, "1"), refused.body)
            self.assertIn(b"too many bodies at once of this client", refused.body)
        for s in clients:
            s.sendall(b"x")
            self.assertRegex(s.recv(65536), b"^HTTP/1.1 (404|429) ")  # who came first is beyond his share, now that others have theirs
            s.close()
        self.assertEqual(self.server.wait_metric("weft_http_body_bytes", 0), 0)
        self.assertEqual(self.server.post("/nowhere", b"x" * size, source="127.0.0.2").status, 404)

    @of_one_thread
    def test_values_have_a_limit(self):
        """Few bytes can be many values: what their tree would take is bounded before it is made, and what no field wants is not kept."""
        for body in (b'{"content":"x","z":[' + b"{}," * 1000000 + b"0]}", b'{"content":"x"' + b"".join(b',"k%x":0' % i for i in range(300000)) + b"}"):
            answer = self.server.post("/tokenize", body)
            self.assertEqual(answer.status, 413, answer.body)
            self.assertIn("too many values", answer.json["error"]["message"])
        answer = self.server.post("/lora-adapters", b"[" + b"{}," * 1000000 + b"0]")
        self.assertEqual(answer.status, 413, answer.body)
        self.assertEqual(self.server.post("/tokenize", b'{"content":"x","z":[' + b"[]," * 50000 + b"0]}").status, 200)

    @of_one_thread
    def test_a_body_is_let_go_when_it_was_read(self):
        """Neither a request that runs nor an answer that nobody reads keeps it; the answer itself counts, and has a deadline of its own."""
        server = self.own("--slow", 1)
        with server.connect() as s, server.connect() as lazy:
            s.sendall(request({"prompt": "[delay 50][loop a]", "n_predict": 2000, "stream": True, "pad": "x" * 1000000}, LLAMA))
            got = b""
            while b"data: " not in got:
                got += s.recv(1000)
            self.assertEqual((server.metric("weft_running"), server.metric("weft_http_body_bytes")), (1, 0))
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            cut = server.metric("weft_http_cut_slow_total")
            lazy.sendall(request({"content": "a" * 30000, "with_pieces": True, "pad": "x" * 500000}, "/tokenize"))
            self.assertTrue(wait_until(lambda: server.metric("weft_http_answer_bytes") > 300000))
            self.assertEqual(server.metric("weft_http_body_bytes"), 0)
            self.assertEqual(server.wait_metric("weft_http_cut_slow_total", cut + 1), cut + 1)  # at 1 KB/s it had a quarter of an hour

    @of_one_thread
    def test_answers_that_nobody_reads(self):
        """Are memory: who has too many of them asks for nothing more until one has gone, and nobody else is refused because of it."""
        server = self.own("--slow", 60)
        with server.connect() as lazy, server.connect() as lazier:
            for s in (lazy, lazier):
                s.sendall(request({"content": "a" * 3_500_000, "with_pieces": True}, "/tokenize"))
            self.assertTrue(wait_until(lambda: server.metric("weft_http_answer_bytes") >= 128 << 20))
            answer = server.post("/tokenize", {"content": "x"})
            self.assertEqual((answer.status, answer.headers["retry-after"]), (429, "1"), answer.body[:300])
            self.assertIn("read it first", answer.json["error"]["message"])
            self.assertEqual(server.post("/tokenize", {"content": "x"}, source="127.0.0.2").status, 200)
        self.assertEqual(server.wait_metric("weft_http_answer_bytes", 0), 0)
        self.assertEqual(server.post("/tokenize", {"content": "x"}).status, 200)

    @of_one_thread
    def test_slow_bodies(self):
        """Time for a body is by its length, not by the longest there may be: who sends it in drops is cut before it is whole."""
        server = self.own("--idle", 1)
        with server.connect() as s:
            s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
            with self.assertRaises(OSError):
                for _ in range(999):
                    s.sendall(b"x")
                    time.sleep(0.1)

    def test_bodies_do_not_hold_up_health(self):
        """Who asks without a body waits for none that is being parsed."""
        server, answers = self.own("--workers", 1), []
        body = b'{"content":"x"' + b"".join(b',"k%x":0' % i for i in range(40000)) + b"}"
        flood = [threading.Thread(target=lambda: answers.append(server.post("/tokenize", body))) for _ in range(16)]
        for t in flood:
            t.start()
        while not answers:
            time.sleep(0.001)
        for _ in range(3):
            before = len(answers)
            self.assertEqual(server.get("/health").status, 200)
            self.assertLess(len(answers) - before, 8)
        for t in flood:
            t.join()
        self.assertEqual({a.status for a in answers}, {200})


class Heads:
    @of_one_thread
    def test_bad_heads(self):
        """Heads that a proxy might read otherwise, floods, and rubbish: one refusal, and the connection is closed."""
        server = self.own(*self.options)  # whose answers are counted

        def post(head, body=b"{}"):
            return b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n\r\n" + body
        get = b"GET /health HTTP/1.1\r\n"
        smuggled = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        cases = {
            "CL and TE": (post(b"Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + smuggled), (400,)),
            "TE and CL": (post(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled), (400,)),
            "two CL": (post(b"Content-Length: 2\r\nContent-Length: 40", b"{}" + smuggled), (400,)),
            "two equal CL": (post(b"Content-Length: 2\r\nContent-Length: 2", b"{}" + smuggled), (400,)),
            "CL list": (post(b"Content-Length: 2, 2", b"{}" + smuggled), (400,)),
            "CL +2": (post(b"Content-Length: +2", b"{}" + smuggled), (400,)),
            "CL -1": (post(b"Content-Length: -1", b"{}" + smuggled), (400,)),
            "CL hex": (post(b"Content-Length: 0x2", b"{}" + smuggled), (400,)),
            "CL huge": (post(b"Content-Length: 99999999999999999999999", b"{}"), (413,)),
            "CL empty": (post(b"Content-Length:", b"{}" + smuggled), (400,)),
            "CL behind bare LF": (post(b"X: y\nContent-Length: 2\r\nContent-Length: 40", b"{}" + smuggled), (400,)),
            "TE behind bare LF": (
                post(b"X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled),
                (400,),
            ),
            "TE behind bare CR": (
                post(b"X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n" + smuggled),
                (400,),
            ),
            "TE gzip": (post(b"Transfer-Encoding: gzip", b"x"), (400, 501)),
            "TE chunked twice": (
                post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"0\r\n\r\n" + smuggled),
                (400,),
            ),
            "TE xchunked": (post(b"Transfer-Encoding: xchunked", b"0\r\n\r\n" + smuggled), (400, 501)),
            "TE chunked, identity": (
                post(b"Transfer-Encoding: chunked, identity", b"0\r\n\r\n" + smuggled),
                (400, 501),
            ),
            "chunked in HTTP/1.0": (
                b"POST /tokenize HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
                + smuggled,
                (400,),
            ),
            "target of another host": (b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "target of a rebound host": (
                b"GET http://evil.example/health HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                (403,),
            ),
            "target of another scheme": (b"GET ftp://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "space before colon": (post(b"Content-Length : 2", b"{}" + smuggled), (400,)),
            "name with a space": (post(b"Bad Name: x\r\nContent-Length: 2"), (400,)),
            "no colon": (post(b"rubbish\r\nContent-Length: 2"), (400,)),
            "control in a value": (post(b"X: a\x01b\r\nContent-Length: 2"), (400,)),
            "compressed": (post(b"Content-Encoding: gzip\r\nContent-Length: 2"), (415,)),
            "body of a GET": (get + b"Host: localhost\r\nContent-Length: 5\r\n\r\nhello" + smuggled, (400,)),
            "chunked GET": (get + b"Host: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled, (400,)),
            "no Host": (get + b"\r\n", (400,)),
            "Host folded away": (b"GET /health HTTP/1.1\r\nX: y\r\n Host: localhost\r\n\r\n", (400,)),
            "two Hosts": (get + b"Host: localhost\r\nHost: evil.example\r\n\r\n", (400,)),
            "Host with a path": (get + b"Host: localhost/x\r\n\r\n", (400,)),
            "Host with a user": (get + b"Host: localhost@evil.example\r\n\r\n", (400,)),
            "rebinding": (get + b"Host: evil.example\r\n\r\n", (403,)),
            "rebinding with port": (get + b"Host: evil.example:%d\r\n\r\n" % server.port, (403,)),
            "rebinding, lookalike": (get + b"Host: localhost.evil.example\r\n\r\n", (403,)),
            "rebinding, 127.": (get + b"Host: 127.evil.example\r\n\r\n", (403,)),
            "rebinding, suffix": (get + b"Host: xlocalhost\r\n\r\n", (403,)),
            "page of another origin": (post(b"Origin: http://evil.example\r\nContent-Length: 2"), (403,)),
            "page of a file": (post(b"Origin: null\r\nContent-Length: 2"), (403,)),
            "many headers": (
                get + b"Host: localhost\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(60)) + b"\r\n",
                (431,),
            ),
            "long headers": (get + b"Host: localhost\r\nX: " + b"y" * 20000 + b"\r\n\r\n", (431,)),
            "flood of headers": (get + b"Host: localhost\r\n" + b"X: y\r\n" * 200000, (431,)),
            "flood in one header": (get + b"Host: localhost\r\nX: " + b"y" * 2000000, (431,)),
            "long path": (b"GET /" + b"a" * 200000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", (414,)),
            "no method": (b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "rubbish": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", (400,)),
            "a word": (b"HELLO\r\n\r\n", (400,)),
            "no version": (b"GET /health\r\n\r\n", (400,)),
            "another protocol": (b"GET /health FTP/1.1\r\n\r\n", (400,)),
            "blank in the target": (b"GET /health x HTTP/1.1\r\nHost: localhost\r\n\r\n", (400,)),
            "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505,)),
            "HTTP/9": (b"GET /health HTTP/9.9\r\nHost: localhost\r\n\r\n", (505,)),
            "bad chunk": (post(b"Transfer-Encoding: chunked", b"zz\r\n"), (400,)),
            "negative chunk": (post(b"Transfer-Encoding: chunked", b"-5\r\nhello\r\n0\r\n\r\n"), (400,)),
            "huge chunk": (post(b"Transfer-Encoding: chunked", b"ffffffffffffffffff\r\nx"), (413,)),
            "chunk without an end": (post(b"Transfer-Encoding: chunked", b"2\r\n{}xx\r\n0\r\n\r\n"), (400,)),
            "long line of a chunk": (post(b"Transfer-Encoding: chunked", b"2;" + b"x" * 200000), (400,)),
            "rubbish behind the chunks": (
                post(b"Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\nrubbish\r\n\r\n"),
                (400,),
            ),
            "flood behind the chunks": (
                post(b"Transfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n" + b"X: y\r\n" * 200000),
                (431,),
            ),
        }
        before = self.responses(server)
        for name, (data, wanted) in cases.items():
            with self.subTest(name):
                out = server.raw(data)
                statuses = [int(s) for s in re.findall(rb"HTTP/1\.[01] (\d+) ", out)]
                self.assertEqual(len(statuses), 1, out[:600])  # what was smuggled is not answered
                self.assertIn(statuses[0], wanted, out[:300])
                self.assertIn(b"\r\nContent-Type: application/json", out)
                error = json.loads(out[out.index(b"\r\n\r\n"):])["error"]
                self.assertEqual((error["code"], set(error)), (statuses[0], {"code", "message", "type"}))
        self.assertTrue(wait_until(lambda: sum(self.responses(server).values()) - sum(before.values()) >= len(cases)))  # it counts when it is sent
        after = self.responses(server)
        gained = {status: n - before.get(status, 0) for status, n in after.items() if n != before.get(status, 0)}
        self.assertEqual((sum(gained.values()), gained[505], gained[431], gained.get(0)), (len(cases), 2, 5, None), gained)
        self.assertEqual(server.get("/health").status, 200)
        out = server.raw(b"GET http://LOCALHOST/health?x=y HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 200 "), out[:300])  # a whole address is a target, too

    def responses(self, server):
        """How many answers of each status /metrics counts, but for those of /metrics itself."""
        found, out = re.findall(r'^weft_http_responses_total\{path="(.*?)",status="(\d+)"\} (\d+)$', server.get("/metrics").body.decode(), re.M), {}
        for path, status, n in found:
            if path != "/metrics":
                out[int(status)] = out.get(int(status), 0) + int(n)
        return out

    @of_one_thread
    def test_heads_in_the_dialect_of_the_path(self):
        """Also what the HTTP library refuses, before anybody has looked at the request."""
        head = b"POST /v1/completions?x=y HTTP/1.1\r\nHost: localhost\r\n"
        for data, status in ((head + b"rubbish\r\n\r\n", 400), (head + b"Content-Length: x\r\n\r\n", 400), (head + b"X: y\r\n" * 200000, 431),
                             (head + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400)):
            out = self.server.raw(data)
            self.assertTrue(out.startswith(b"HTTP/1.1 %d " % status), out[:300])
            self.assertRegex(out, rb"\r\nX-Request-Id: req-[0-9a-f]{8}-\d+\r\n")
            self.assertEqual(set(json.loads(out[out.index(b"\r\n\r\n"):])["error"]), {"message", "type", "param", "code"})

    @of_one_thread
    def test_what_is_no_request(self):
        """A second one on a connection that is no request is refused, and ends that; who says nothing, or leaves, is told nothing and counts
        as nobody. Nor is anything said behind an answer that ends the connection."""
        server = self.own("--idle", 1)
        get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        for head in (b"", b"Connection: Keep-Alive\r\n"):
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", server.raw(get % head + b"rubbish\r\n\r\n")), [b"200", b"400"])
        for data in (get % b"Connection: x, close\r\n" + b"rubbish\r\n\r\n", get.replace(b"1.1", b"1.0") % b"" + b"rubbish\r\n\r\n", get % b""):
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", server.raw(data)), [b"200"])
        for data in (b"", b"GET /hea"):
            with server.connect() as s:
                s.sendall(data)
        self.assertEqual(server.raw(b""), b"")
        self.assertEqual(server.raw(b"GET /hea"), b"")
        self.assertEqual(server.metric("weft_http_requests_total"), 8)  # /health, what was refused, and the one that asks
        self.assertEqual(server.wait_metric("weft_http_requests", 1), 1)
        self.assertEqual(self.responses(server), {200: 5, 400: 2})

    def test_pipelined(self):
        """Requests one behind the other are answered in order: a body ends where it says."""
        body = b'{"content":"a"}'
        one = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        two = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        out = self.server.raw(one + two)
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", out), [b"200", b"200"])
        self.assertLess(out.index(b'"tokens"'), out.index(b'"status"'))

    def test_head_byte_by_byte(self):
        with self.server.connect() as s:
            for c in b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n":
                s.sendall(bytes([c]))
            self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 "))
