# SPDX-License-Identifier: Apache-2.0
"""Each request of the table in docs/http.md gets the status that stands there, as JSON of the dialect, and its connection is closed.

usage: test_heads.py build/fake_server"""
import json
import os
import re
import unittest

from servers import ROOT, Case

GET, POST = b"GET /health HTTP/1.1\r\n", b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
HOST = b"Host: localhost\r\n"
ROWS = {
    "a NUL in a header's value": GET + b"Host: localhost\0.evil.com\r\n\r\n",
    "a bare LF": GET + b"Host: localhost\n\r\n",
    "a bare CR": GET + HOST + b"X: a\rb\r\n\r\n",
    "a folded header": GET + HOST + b"X: a\r\n b\r\n\r\n",
    "more than 4 KB of chunk extensions": CHUNKED + b"2;" + b"x" * 5000 + b"\r\n{}\r\n0\r\n\r\n",
    "the same over many chunks": CHUNKED + (b"1;" + b"x" * 900 + b"\r\n \r\n") * 6 + b"0\r\n\r\n",
    "two Content-Lengths": POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a length with chunked": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "two Hosts": GET + HOST + HOST + b"\r\n",
    "a blank before the colon": GET + b"Host : localhost\r\n\r\n",
    "a header without a colon": GET + HOST + b"rubbish\r\n\r\n",
    "a chunk's size that is no number": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n",
    "a blank behind a chunk's size": CHUNKED + b"2 \r\n{}\r\n0\r\n\r\n",
    "a bare LF behind a chunk's size": CHUNKED + b"2\n{}\r\n0\r\n\r\n",
    "a bare LF behind a chunk": CHUNKED + b"2\r\n{}\n0\r\n\r\n",
    "a chunk longer than its size": CHUNKED + b"2\r\n{}}\r\n0\r\n\r\n",
    "a chunk's size beyond 64 bits": CHUNKED + b"f" * 17 + b"\r\n",
    "a trailer without a colon": CHUNKED + b"2\r\n{}\r\n0\r\nx\r\n\r\n",
    "Transfer-Encoding: chunked, identity": POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "Content-Length: +2": POST + b"Content-Length: +2\r\n\r\n{}",
    "Content-Length: -2": POST + b"Content-Length: -2\r\n\r\n{}",
    "Content-Length: 0x2": POST + b"Content-Length: 0x2\r\n\r\n{}",
    "a line that is too long": b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "a head that is too long": GET + HOST + b"X: " + b"a" * 40000 + b"\r\n\r\n",
    "bytes over 0x7f in the request line": b"GET /\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n",
    "HTTP/0.9": b"GET /health\r\n\r\n",
    "HTTP/2.0": b"GET /health HTTP/2.0\r\n" + HOST + b"\r\n",
    "a blank in the target": b"GET /hea lth HTTP/1.1\r\n" + HOST + b"\r\n",
    "two blanks in the request line": b"GET  /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "a malformed escape": b"GET /health%zz HTTP/1.1\r\n" + HOST + b"\r\n",
    "an escape in the target's host": b"GET http://localhost%2Fhealth HTTP/1.1\r\n" + HOST + b"\r\n",
    "an escape in the target's scheme": b"GET http:%2F/localhost/health HTTP/1.1\r\n" + HOST + b"\r\n",
    "an escaped slash that begins the target": b"GET %2Fhealth HTTP/1.1\r\n" + HOST + b"\r\n",
}


class Heads(Case):
    def test_the_table(self):
        with open(os.path.join(ROOT, "docs", "http.md"), encoding="utf-8") as f:
            text = f.read()
        statuses = {name: int(status) for name, status in re.findall(r"^\| ([^|]+) \| (\d+) \|$", text, re.M)}
        self.assertEqual(set(statuses), set(ROWS))
        measured = re.findall(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \| [^|]+ \| [^|]+ \|$", text, re.M)  # with the libraries
        self.assertLessEqual(set(ROWS), set(measured), "run bench/http_candidates/measure")
        for name, data in ROWS.items():
            with self.subTest(name):
                out = self.server.raw(data + GET + HOST + b"\r\n")  # what stands behind it is not answered; raw waits for the end
                self.assertEqual([int(s) for s in re.findall(rb"HTTP/1\.1 (\d+) ", out)], [statuses[name]], out[:300])
                self.assertIn(b"\r\nConnection: close\r\n", out)
                error = json.loads(out[out.index(b"\r\n\r\n"):])["error"]
                self.assertEqual(error["code"], statuses[name])

    def test_what_is_well_formed(self):
        for data in (CHUNKED + b'f;x="y"\r\n{"content":"a"}\r\n0\r\nX-Sum: 1\r\n\r\n', CHUNKED + b'00f\r\n{"content":"a"}\r\n0\r\n\r\n',
                     POST + b"Expect: 100-continue\r\nContent-Length: 15\r\n\r\n" + b'{"content":"a"}'):
            out = self.server.raw(data + GET + HOST + b"Connection: close\r\n\r\n")
            self.assertEqual([s for s in re.findall(rb"HTTP/1\.1 (\d+) ", out) if s != b"100"], [b"200", b"200"], out[:300])

    def test_close_counts_before_keep_alive(self):
        for version in (b"1.0", b"1.1"):
            get = b"GET /health HTTP/" + version + b"\r\n" + HOST + b"Connection: %s\r\n\r\n"
            for said in (b"close, keep-alive", b"keep-alive, close"):
                self.assertEqual(self.server.raw(get % said + get % b"close").count(b"HTTP/1.1 200 "), 1, said)
            self.assertEqual(self.server.raw(get % b"keep-alive" + get % b"close").count(b"HTTP/1.1 200 "), 2)


if __name__ == "__main__":
    unittest.main(verbosity=1)
