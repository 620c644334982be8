# SPDX-License-Identifier: Apache-2.0
"""Who may ask: keys, tenants, origins, hosts, sockets, ports."""
import hashlib
import os
import re
import socket
import subprocess
import tempfile

from servers import CHAT, FAKE, LLAMA, PATIENCE, TEXT, Case, of_one_thread, wait_until


@of_one_thread
class Access(Case):
    options = ("--api-key", "correct-horse-battery", "--api-key", "sha256:" + "ab" * 32, "--origin", "https://app.example", "--allow-host", "ai.example")

    def test_keys(self):
        body = {"prompt": "[say ok]"}
        good = {"Authorization": "Bearer correct-horse-battery"}
        self.assertEqual(self.server.post(TEXT, body, headers=good).status, 200)
        self.assertEqual(self.server.post(LLAMA, body, headers={"X-Api-Key": "correct-horse-battery"}).status, 200)
        for key in ("", "correct-horse-batter", "correct-horse-batteryy", "ab" * 32, "sha256:" + "ab" * 32, "CORRECT-HORSE-BATTERY"):
            for path in (TEXT, LLAMA, "/slots/0?action=erase"):
                answer = self.server.post(path, body, headers={"Authorization": "Bearer " + key})
                self.assertEqual(answer.status, 401, key)
                self.assertEqual(answer.json["error"]["type"], "authentication_error")
        for path in ("/v1/models", "/metrics", "/slots", "/props"):
            self.assertEqual(self.server.get(path).status, 401)
            self.assertEqual(self.server.get(path).headers["www-authenticate"], "Bearer")
        self.assertEqual(self.server.get("/health").status, 200)

    def test_all_of_a_hash_counts(self):
        """A key whose hash differs from a key's in one digit, wherever, is none."""
        key = "a-key-of-somebody"
        right = hashlib.sha256(key.encode()).hexdigest()
        near = [right[:i] + ("1" if right[i] == "0" else "0") + right[i + 1:] for i in (0, 1, 31, 32, 62, 63)]
        for hashes, status in ((near, 401), ([*near, right], 200), ([right, *near], 200)):
            server = self.own(*(option for h in hashes for option in ("--api-key", "sha256:" + h)))
            self.assertEqual(server.get("/props", headers={"X-Api-Key": key}).status, status)
            server.stop()

    def test_bodies_want_a_key(self):
        """Nothing is kept of a body whose head has no key that counts; its sender still reads why."""
        key = b"Authorization: Bearer correct-horse-battery\r\n"
        good = {"Authorization": "Bearer correct-horse-battery"}
        def held():
            return float(re.search(rb"^weft_http_body_bytes (\S+)$", self.server.get("/metrics", headers=good).body, re.M).group(1))
        for head, kept in ((b"", 0), (b"X-Api-Key: rubbish-rubbish\r\n", 0), (key, (1 << 20) - 1)):
            for path in (b"/tokenize", b"/nowhere", b"/health"):
                with self.server.connect() as s:
                    s.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n" % (path, head, 1 << 20) + b"x" * ((1 << 20) - 1))
                    wait_until(lambda: held() == (kept or -1), 0.02, PATIENCE if kept else 0.2)  # nothing is nothing for a while
                    self.assertEqual(held(), kept)
                    s.sendall(b"x")
                    status = s.recv(65536).split()[1]
                    self.assertEqual(status, b"404" if path == b"/nowhere" else b"405" if path == b"/health" else b"400" if kept else b"401")

    def test_key_files(self):
        """What is read as a key is what stands there as one."""
        def file(text):
            f = tempfile.NamedTemporaryFile("w")
            self.addCleanup(f.close)
            f.write(text)
            f.flush()
            return f.name
        server = self.own("--api-key-file", file("#a-comment\n  # another-one\nkey#with-a-hash # and a comment\nlast-key-of-all"))
        for key, status in (("key#with-a-hash", 200), ("last-key-of-all", 200), ("key", 401), ("a-comment", 401), ("another-one", 401), ("#a-comment", 401)):
            self.assertEqual(server.get("/props", headers={"X-Api-Key": key}).status, status, key)
        for text in ("good-key-here\n# " + "x" * 1021 + "tail-of-the-comment\n", "good-key-here\n\0" + "x" * 1022 + "tail-behind-a-nul\n"):
            p = subprocess.run([*FAKE, "--api-key-file", file(text)], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(p.returncode, 1, p)
            self.assertIn("line 2: longer than 1022 bytes", p.stderr)

    def test_slots_belong_to_their_tenant(self):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("# keys\nfirst-key-of-two\n  second-key-of-two  # of Bob\n")
            f.flush()
            server = self.own("--api-key-file", f.name)
        first, second = ({"Authorization": "Bearer %s-key-of-two" % who} for who in ("first", "second"))
        self.assertEqual(server.post(LLAMA, {"prompt": "[say abc]"}, headers=first).status, 200)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}, headers=second).status, 400)
        self.assertEqual(server.post("/slots/0?action=erase", {}, headers=second).status, 400)
        self.assertEqual(server.post("/slots/0?action=save", {"filename": "mine"}, headers=first).status, 200)
        # Nor is another's file found, written over, or put in another's slot.
        self.assertEqual(server.post("/slots/1?action=restore", {"filename": "mine"}, headers=second).status, 404)
        self.assertEqual(server.post(LLAMA, {"prompt": "[say abcdef]", "id_slot": 1}, headers=second).status, 200)
        longer = server.post("/slots/1?action=save", {"filename": "mine"}, headers=second).json["n_saved"]
        shorter = server.post("/slots/2?action=restore", {"filename": "mine"}, headers=first).json["n_restored"]
        self.assertLess(shorter, longer)
        answer = server.post("/slots/0?action=restore", {"filename": "mine"}, headers=second)
        self.assertEqual((answer.status, answer.json["error"]["message"]), (400, "slot 0 holds nothing of yours to restore over; slot 3 may be restored over"))
        self.assertEqual(server.post("/slots/0?action=erase", {}, headers=first).json["n_erased"], shorter)
        self.assertEqual(server.post("/slots/0?action=restore", {"filename": "mine"}, headers=second).json["n_restored"], longer)
        for n, status in ((111, 404), (112, 400)):
            self.assertEqual(server.post("/slots/3?action=restore", {"filename": "x" * n}, headers=first).status, status)

    def test_unix_sockets_have_no_addresses(self):
        """Who comes by a unix socket comes from everywhere: a limit per address is none there."""
        with tempfile.TemporaryDirectory() as folder:
            server = self.own("--unix", folder + "/s", "--per-ip", 2)
            for s in [server.connect() for _ in range(4)]:
                with s:
                    s.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    self.assertTrue(s.recv(1000).startswith(b"HTTP/1.1 200 "))
            server.stop()

    def test_sockets_of_others_stay(self):
        """Only what a server that was killed left behind is replaced; at the end only what is still ours is removed."""
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/s"
            for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
                with socket.socket(socket.AF_UNIX, kind) as other:
                    other.bind(path)
                    if kind == socket.SOCK_STREAM:
                        other.listen(0)
                        waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
                        for s in waiting:  # its backlog is full
                            s.setblocking(False)
                            s.connect_ex(path)
                    file = os.stat(path).st_ino
                    ended = subprocess.run([*FAKE, "--unix", path], capture_output=True, text=True, timeout=PATIENCE)
                    self.assertEqual((ended.returncode, "another program's socket" in ended.stderr), (1, True), ended.stderr)
                    self.assertEqual(os.stat(path).st_ino, file)
                    if kind == socket.SOCK_DGRAM:
                        os.unlink(path)
            for s in waiting:
                s.close()
            server = self.own("--unix", path)  # left behind
            os.rename(path, path + ".old")
            with socket.socket(socket.AF_UNIX) as other:
                other.bind(path)
                server.stop()
                self.assertTrue(os.path.exists(path))

    def test_mapped_loopback(self):
        """127.0.0.1 written as an address of IPv6 is loopback all the same: pages that point their name at it stay out."""
        try:
            with socket.create_server(("::ffff:127.0.0.1", 0), family=socket.AF_INET6, dualstack_ipv6=True):
                pass
        except OSError as e:
            self.skipTest(f"no IPv6 here: {e}")
        server = self.own("--host", "::ffff:127.0.0.1")
        for host, status in (("evil.example", 403), ("localhost", 200), ("127.0.0.1:80", 200), ("[::ffff:127.0.0.1]:80", 200)):
            self.assertEqual(server.get("/health", headers={"Host": host}).status, status, host)

    def test_cors(self):
        origin = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        answer = self.server.ask("OPTIONS", CHAT, headers=origin)
        self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (204, "https://app.example"))
        self.assertIn("Authorization", answer.headers["access-control-allow-headers"])
        for asked, allowed in (
            ("x-stainless-lang, content-type", "x-stainless-lang, content-type"),
            ("a\tb", "Authorization, Content-Type, X-Api-Key"),
            ("x" * 2000, "Authorization, Content-Type, X-Api-Key"),
        ):
            self.assertEqual(
                self.server.ask("OPTIONS", CHAT, headers={**origin, "Access-Control-Request-Headers": asked}).headers[
                    "access-control-allow-headers"
                ],
                allowed,
            )
        read = self.server.get("/health", headers=origin).headers
        self.assertEqual((read["access-control-allow-origin"], read["access-control-expose-headers"]), ("https://app.example", "X-Request-Id, Retry-After"))
        other = self.server.ask("OPTIONS", CHAT, headers={"Origin": "https://evil.example"})
        self.assertEqual(other.status, 403)
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertNotIn("access-control-allow-origin", self.server.get("/health").headers)
        same = self.server.get("/health", headers={"Origin": "http://127.0.0.1:%d" % self.server.port})
        self.assertEqual(same.status, 200)

    def test_hosts(self):
        for host, status in (
            ("ai.example", 200),
            ("AI.example:80", 200),
            ("localhost:1", 200),
            ("[::1]", 200),
            ("127.3.2.1", 200),
            ("me.localhost", 200),
            ("ai.example.org", 403),
        ):
            self.assertEqual(self.server.get("/health", headers={"Host": host}).status, status, host)

    def test_aliases(self):
        server = self.own("--alias", "gpt-4o", "--alias", "other")
        self.assertEqual([(m["id"], m["aliases"]) for m in server.get("/v1/models").json["data"]], [("gpt-4o", ["other"])])
        self.assertEqual(server.get("/v1/models/other").json["id"], "other")
        self.assertEqual(server.post(TEXT, {"model": "other", "prompt": "x"}).json["model"], "other")
        self.assertEqual(server.post(TEXT, {"prompt": "x"}).json["model"], "gpt-4o")
        self.assertEqual(server.post(TEXT, {"model": "third", "prompt": "x"}).status, 404)

    def test_bad_settings(self):
        for options, words in (
            (("--api-key", "short"), "shorter than 8"),
            (("--api-key", "sha256:xyz"), "64 hexadecimal"),
            (("--api-key-file", "/nonexistent"), "/nonexistent"),
            (("--port", 70000), "port 70000"),
            (("--cert", "x"), "both a certificate and a key"),
            (("--slow", -1), "slow_s -1"),
            (("--host", "no.such.host.invalid"), "no.such.host"),
            (("--unix", "/nonexistent/x.sock"), "/nonexistent/x.sock"),
            (("--unix", "/tmp/" + "x" * 200), "longer than"),
        ):
            p = subprocess.run([*FAKE, *map(str, options)], capture_output=True, text=True, timeout=PATIENCE)
            self.assertEqual(p.returncode, 1, options)
            self.assertIn(words, p.stderr)

    def test_port_taken(self):
        p = subprocess.run([*FAKE, "--port", str(self.server.port)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual(p.returncode, 1)
        self.assertIn("in use by another program; take another port", p.stderr)
