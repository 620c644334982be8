"""Claims about weft pull, list and rm against a server that behaves, and against many that do not.

usage: test_pull.py build/weft"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from common import EMULATED, STORIES, WEFT, check_report, main, needs, needs_models, run  # noqa: E402
from pull_server import PullServer, entry, tree  # noqa: E402

TOKEN = "hf_secretsecretsecret"


def some(cases):
    """All of them, or a few where starting the program takes long."""
    return cases[::5] if EMULATED else cases


def noise(seed, n):
    return random.Random(seed).randbytes(n)


class Case(unittest.TestCase):
    """Each test has a cache and a server of its own."""
    repos = {}

    def setUp(self):
        self.cache = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.cache)
        self.server = PullServer({name: dict(files) for name, files in self.repos.items()}).__enter__()
        self.addCleanup(self.server.__exit__)

    def environment(self, **more):
        ours = ("HF_TOKEN", "XDG_CACHE_HOME", "WEFT_LOG")
        out = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy") and k not in ours}
        return {**out, "HF_ENDPOINT": self.server.url, "WEFT_CACHE": self.cache, "WEFT_PULL_TIMEOUT": "5",
                "WEFT_PULL_RETRIES": "2", **more}

    def weft(self, *args, **more):
        return run(WEFT + list(args), stdin=subprocess.DEVNULL, timeout=120, env=self.environment(**more))

    def start(self, *args):
        return subprocess.Popen(WEFT + list(args), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env=self.environment())

    def place(self, *path):
        return os.path.join(self.cache, "models", *path)

    def files(self):
        """Everything below models/ but the records."""
        out = []
        for folder, _, names in os.walk(self.place()):
            names = [n for n in names if not n.startswith(".") and not n.endswith(".json")]
            out += [os.path.relpath(os.path.join(folder, n), self.place()) for n in names]
        return sorted(out)

    def pulled(self, name, want, **more):
        """Pulls, and the path that is printed holds exactly `want`."""
        p = self.weft("pull", name, **more)
        self.assertEqual(p.returncode, 0, p.stderr)
        path = p.stdout.decode().rstrip("\n")
        with open(path, "rb") as f:
            self.assertEqual(hashlib.sha256(f.read()).hexdigest(), hashlib.sha256(want).hexdigest())
        self.assertFalse(os.path.exists(path + ".part") or os.path.exists(path + ".part.json"))
        return path

    def refused(self, name, *words, **more):
        """Pulling fails with a message that has these words, and keeps no file."""
        p = self.weft("pull", name, **more)
        self.assertEqual(p.returncode, 1, p.stderr)
        for word in words:
            self.assertIn(word.encode(), p.stderr)
        self.assertEqual([f for f in self.files() if not f.endswith(".part")], [])
        self.assertEqual(p.stdout, b"")
        return p


MODEL = noise(1, 300_000)
BIG = noise(2, 3_000_000)


class Good(Case):
    repos = {"owner/name": {"model-Q4_K_M.gguf": MODEL, "model-Q8_0.gguf": BIG, "README.md": b"hello", ".gitattributes": b"x",
                            "mmproj-Q4_K_M.gguf": b"eyes"},
             "owner/split": {f"big/m-Q6_K-0000{i}-of-00003.gguf": noise(i, 1000 * i) for i in (1, 2, 3)},
             "owner/hf": {"config.json": b"{}", "tokenizer.json": b"{ }", "model-00001-of-00002.safetensors": noise(5, 5000),
                          "model-00002-of-00002.safetensors": noise(6, 5000), "model.safetensors.index.json": b"{  }",
                          "consolidated.safetensors": noise(7, 5000), "training.py": b"print()", "original/x.safetensors": b"no"}}

    def test_default_quantization(self):
        path = self.pulled("owner/name", MODEL)
        self.assertEqual(path, self.place("owner", "name", "model-Q4_K_M.gguf"))
        self.assertEqual(self.files(), ["owner/name/model-Q4_K_M.gguf"])

    def test_quantization_and_file(self):
        self.pulled("owner/name:q8_0", BIG)
        self.pulled("owner/name:model-Q4_K_M.gguf", MODEL)
        self.pulled("owner/name:mmproj-Q4_K_M.gguf", b"eyes")

    def test_second_pull_fetches_nothing(self):
        self.pulled("owner/name", MODEL)
        seen = len(self.server.log)
        self.pulled("owner/name", MODEL)
        self.assertEqual([p for p in self.server.paths()[seen:] if "resolve" in p], [])

    def test_changed_model_is_fetched_again(self):
        self.pulled("owner/name", MODEL)
        self.server.repos["owner/name"]["model-Q4_K_M.gguf"] = BIG
        self.pulled("owner/name", BIG)

    def test_damaged_file_of_other_size_is_fetched_again(self):
        path = self.pulled("owner/name", MODEL)
        with open(path, "ab") as f:
            f.write(b"x")
        self.pulled("owner/name", MODEL)

    def test_split_file(self):
        path = self.pulled("owner/split", noise(1, 1000))
        self.assertEqual(os.path.basename(path), "m-Q6_K-00001-of-00003.gguf")
        self.assertEqual(len(self.files()), 3)
        for name in ("owner/split:Q6_K", "owner/split:m-Q6_K-00002-of-00003.gguf", "owner/split:big/m-Q6_K-00003-of-00003.gguf"):
            self.pulled(name, noise(1, 1000))
        listed = json.loads(self.weft("list", "--json").stdout)
        self.assertEqual([(m["files"], m["bytes"], m["complete"]) for m in listed], [(3, 6000, True)])

    def test_split_file_with_a_hole_in_the_listing(self):
        del self.server.repos["owner/split"]["big/m-Q6_K-00002-of-00003.gguf"]
        self.refused("owner/split", "00002-of-00003", "missing")

    def test_folder_without_gguf(self):
        p = self.weft("pull", "owner/hf")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stdout.decode().strip(), self.place("owner", "hf"))
        have = {n for n in os.listdir(self.place("owner", "hf")) if not n.startswith(".")}
        self.assertEqual(have, {"config.json", "tokenizer.json", "model-00001-of-00002.safetensors",
                                "model-00002-of-00002.safetensors",
                                "model.safetensors.index.json"})
        listed = json.loads(self.weft("list", "--json").stdout)
        self.assertEqual([(m["name"], m["files"], m["complete"]) for m in listed], [("owner/hf", 5, True)])
        os.remove(self.place("owner", "hf", "model-00002-of-00002.safetensors"))
        self.assertFalse(json.loads(self.weft("list", "--json").stdout)[0]["complete"])
        p = self.weft("info", "owner/hf")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"model-00002-of-00002.safetensors", p.stderr)

    def test_places(self):
        """WEFT_CACHE, then XDG_CACHE_HOME, then HOME."""
        with tempfile.TemporaryDirectory() as d:
            base = self.environment()
            for change, want in (({"WEFT_CACHE": d + "/w"}, "w/models"), ({"WEFT_CACHE": "", "XDG_CACHE_HOME": d + "/x"},
                                                                          "x/weft/models"),
                                 ({"WEFT_CACHE": "", "XDG_CACHE_HOME": "relative", "HOME": d + "/h"}, "h/.cache/weft/models")):
                p = run(WEFT + ["pull", "owner/name"], env={**base, **change}, timeout=60)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertEqual(p.stdout.decode().strip(), f"{d}/{want}/owner/name/model-Q4_K_M.gguf")

    def test_mirror_with_siblings_only(self):
        def api(request, path):
            if path.endswith("/tree/main"):
                request.reply(404)
            else:
                request.reply_json({"id": "owner/name", "siblings": [{"rfilename": "model-Q4_K_M.gguf"},
                                                                     {"rfilename": "README.md"}]})
        self.server.on_api = api
        self.pulled("owner/name", MODEL)
        self.pulled("owner/name", MODEL)

    def test_listing_in_pages(self):
        files = tree(self.server.repos["owner/name"])

        def api(request, path):
            at = int(request.path.split("cursor=")[1]) if "cursor=" in request.path else 0
            more = {"Link": f'<{self.server.url}{path}?cursor={at + 1}>; rel="next"'} if at + 1 < len(files) else None
            request.reply_json(files[at:at + 1], more)
        self.server.on_api = api
        self.pulled("owner/name", MODEL)

    def test_text_for_scripts(self):
        p = self.weft("pull", "owner/name")
        self.assertNotIn(b"\r", p.stderr)
        self.assertNotIn(b"\x1b", p.stderr)
        self.assertEqual(p.stdout.count(b"\n"), 1)


class Token(Case):
    repos = {"owner/name": {"model.gguf": MODEL}}

    def test_token_goes_to_the_endpoint(self):
        self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
        self.assertEqual(set(self.server.tokens()), {"Bearer " + TOKEN})

    def test_without_one_none_is_sent(self):
        self.pulled("owner/name", MODEL)
        self.assertEqual(set(self.server.tokens()), {None})

    def test_same_origin_redirect_keeps_it(self):
        self.server.on_file = lambda r, path, n: r.redirect("/stored") if path == "model.gguf" else r.send_file(MODEL)
        self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
        self.assertEqual(set(self.server.tokens()), {"Bearer " + TOKEN})

    def hop(self, target):
        """The file lies at `target`; the listing's server redirects there."""
        self.server.on_file = lambda r, path, n: r.redirect(target + "/stored")
        return target

    def test_other_port_does_not_see_it(self):
        with PullServer() as other:
            other.on_file = lambda r, path, n: r.send_file(MODEL)
            self.hop(other.url)
            self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
            self.assertEqual(other.tokens(), [None])
        self.assertEqual(set(self.server.tokens()), {"Bearer " + TOKEN})

    def test_other_host_name_does_not_see_it(self):
        self.server.on_file = lambda r, path, n: (r.redirect(f"http://localhost:{self.server.port}/stored")
                                                  if path == "model.gguf"
                                                  else r.send_file(MODEL))
        self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
        seen = {path: headers.get("Authorization") for path, headers in self.server.log}
        self.assertIsNone(seen["/stored"])
        self.assertEqual(seen["/owner/name/resolve/main/model.gguf"], "Bearer " + TOKEN)

    def test_there_and_back_does_not_bring_it_back(self):
        with PullServer() as other:
            other.on_file = lambda r, path, n: r.redirect(self.server.url + "/back")
            self.server.on_file = lambda r, path, n: (r.redirect(other.url + "/there") if path == "model.gguf"
                                                      else r.send_file(MODEL))
            self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
            self.assertEqual(other.tokens(), [None])
        self.assertIsNone(self.server.log[-1][1].get("Authorization"))

    def test_listing_that_redirects_does_not_leak_it(self):
        with PullServer() as other:
            other.on_api = lambda r, path: r.reply_json(tree(self.server.repos["owner/name"]))
            self.server.on_api = lambda r, path: r.redirect(other.url + "/api/elsewhere", 307)
            self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
            self.assertEqual(other.tokens(), [None])

    def test_listing_that_continues_elsewhere_is_refused(self):
        with PullServer() as other:
            self.server.on_api = lambda r, path: r.reply_json(tree(self.server.repos["owner/name"]),
                                                              {"Link": f'<{other.url}/api/x>; rel="next"'})
            self.refused("owner/name", "another server", HF_TOKEN=TOKEN)
            self.assertEqual(other.log, [])

    def test_credentials_in_a_redirect_are_refused(self):
        with PullServer() as other:
            self.hop(f"http://user:word@127.0.0.1:{other.port}")
            self.refused("owner/name", "refused", HF_TOKEN=TOKEN)
            self.assertEqual(other.log, [])

    def test_other_schemes_are_refused(self):
        for target in ("file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/x"):
            self.server.on_file = lambda r, path, n, target=target: r.redirect(target)
            self.refused("owner/name", "refused")

    def test_token_with_a_line_end_is_refused(self):
        p = self.refused("owner/name", "HF_TOKEN", HF_TOKEN="abc\r\nX-Evil: 1")
        self.assertNotIn(b"abc", p.stderr)
        self.assertEqual(self.server.log, [])

    def test_token_is_never_printed(self):
        self.server.on_file = lambda r, path, n: r.reply(403)
        p = self.refused("owner/name", "terms", HF_TOKEN=TOKEN, WEFT_LOG="debug")
        self.assertNotIn(TOKEN.encode(), p.stderr)

    @needs(shutil.which("openssl"), "no openssl to make a certificate")
    def test_https_to_http_is_refused(self):
        with tempfile.TemporaryDirectory() as d:
            key, cert = d + "/key.pem", d + "/cert.pem"
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                            "2", "-subj",
                            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
            with PullServer(self.repos, (cert, key)) as secure:
                p = self.weft("pull", "owner/name", HF_TOKEN=TOKEN, **{"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"})
                self.assertEqual(p.returncode, 0, p.stderr)  # the plain server is still the endpoint
                shutil.rmtree(self.place())
                self.server.log.clear()
                old, self.server.url = self.server.url, secure.url
                self.refused("owner/name", "certificate", HF_TOKEN=TOKEN)
                self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN, SSL_CERT_FILE=cert)
                shutil.rmtree(self.place())
                secure.on_file = lambda r, path, n: r.redirect(old + "/stored")
                self.refused("owner/name", "unprotected", HF_TOKEN=TOKEN, SSL_CERT_FILE=cert)
                self.assertEqual(self.server.log, [])


class Bad(Case):
    """Servers that drop, lie, change their mind or stall."""
    repos = {"owner/name": {"model.gguf": BIG}}

    def ranges(self):
        return [headers.get("Range") for path, headers in self.server.log if "resolve" in path]

    def test_dropped_connection_is_resumed(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG, stop_after=1_000_000 if n == 1 else None)
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges()[0], None)
        self.assertRegex(self.ranges()[1], r"bytes=\d{5,}-")
        self.assertEqual(len(self.ranges()), 2)

    def test_dropped_many_times(self):
        """More often than the tries that are allowed without progress."""
        self.server.on_file = lambda r, path, n: r.send_file(BIG, stop_after=400_000)
        self.pulled("owner/name", BIG)
        self.assertGreaterEqual(len(self.ranges()), 7)

    def test_dropped_for_good_leaves_a_part_that_the_next_run_uses(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG, stop_after=1_000_000 if n == 1 else 0)
        self.refused("owner/name", "broke off")
        part = self.place("owner", "name", "model.gguf.part")
        self.assertEqual(os.path.getsize(part), 1_000_000)
        self.server.log.clear()
        self.server.on_file = None
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges(), ["bytes=1000000-"])
        self.assertTrue([h for _, h in self.server.log if h.get("If-Range", "").startswith('"')])

    def leave_part(self, n=1_000_000, data=BIG, etag=None):
        """An unfinished download of n bytes, as a run that was cut off leaves it."""
        self.server.on_file = lambda r, path, k: r.send_file(data, etag, stop_after=n if k == 1 else 0)
        self.refused("owner/name")
        self.server.on_file = None
        self.server.log.clear()
        self.server.counts.clear()
        return self.place("owner", "name", "model.gguf.part")

    def test_server_without_ranges(self):
        self.leave_part()
        self.server.on_file = lambda r, path, n: r.send_file(BIG, ranges=False)
        self.pulled("owner/name", BIG)

    def test_changed_etag_between_ranges_starts_over(self):
        """The content changes while it is fetched, and so do listing and ETag: the old bytes are dropped."""
        new = noise(3, len(BIG))

        def serve(r, path, n):
            if n == 1:
                return r.send_file(BIG, '"one"', stop_after=1_000_000)
            return r.send_file(new, '"two"')
        self.server.on_file = serve
        self.server.on_api = lambda r, path: r.reply_json([{**entry("model.gguf", new), "lfs": None}])
        self.pulled("owner/name", new)

    def test_changed_etag_in_a_partial_answer_starts_over(self):
        """A server that ignores If-Range and sends a range of the new content."""
        new = noise(4, len(BIG))

        def serve(r, path, n):
            if n == 1:
                return r.send_file(BIG, '"one"', stop_after=1_000_000)
            del r.headers["If-Range"]
            return r.send_file(new, '"two"')
        self.server.on_file = serve
        self.server.on_api = lambda r, path: r.reply_json([{**entry("model.gguf", new), "lfs": None}])
        self.pulled("owner/name", new)
        self.assertEqual(self.ranges()[-1], None)

    def test_part_of_other_content_is_found_out_by_the_hash(self):
        """No usable ETag anywhere: the hash fails, and one try from the start sets it right."""
        self.server.on_file = lambda r, path, n: r.send_file(BIG, 'W/"x"', stop_after=1_000_000 if n == 1 else 0)
        self.refused("owner/name")
        part = self.place("owner", "name", "model.gguf.part")
        with open(part, "r+b") as f:
            f.write(b"damaged")
        self.server.on_file = lambda r, path, n: r.send_file(BIG, 'W/"x"')
        self.pulled("owner/name", BIG)

    def test_part_without_record_is_not_trusted(self):
        part = self.leave_part()
        os.remove(part + ".json")
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges(), [None])

    def test_part_longer_than_the_file(self):
        part = self.leave_part()
        with open(part, "ab") as f:
            f.write(b"x" * len(BIG))
        self.pulled("owner/name", BIG)

    def test_complete_part_is_only_checked(self):
        part = self.leave_part()
        with open(part, "wb") as f:
            f.write(BIG)
        self.pulled("owner/name", BIG)
        self.assertEqual(self.ranges(), [])

    def test_wrong_hash_is_refused_and_not_kept(self):
        bad = bytearray(BIG)
        bad[12345] ^= 1
        self.server.on_file = lambda r, path, n: r.send_file(bytes(bad))
        self.refused("owner/name", "SHA-256", hashlib.sha256(BIG).hexdigest())
        self.assertEqual(self.files(), [])
        self.assertFalse(os.path.exists(self.place("owner")))

    def test_hash_in_the_header_of_the_answer(self):
        """Without one in the listing, X-Linked-Etag of the endpoint counts; not that of another host."""
        self.server.on_api = lambda r, path: r.reply_json([{**entry("model.gguf", BIG), "lfs": None}])
        wrong = {"X-Linked-Etag": '"%s"' % ("0" * 64)}
        self.server.on_file = lambda r, path, n: r.send_file(BIG, headers=wrong)
        self.refused("owner/name", "SHA-256", "0" * 64)
        right = {"X-Linked-Etag": '"%s"' % hashlib.sha256(BIG).hexdigest()}
        with PullServer() as other:
            other.on_file = lambda r, path, n: r.send_file(BIG, headers=wrong)
            self.server.on_file = lambda r, path, n: r.redirect(other.url + "/x", headers=right)
            self.pulled("owner/name", BIG)

    def test_listing_and_answer_disagree_on_the_hash(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG, headers={"X-Linked-Etag": '"%s"' % ("0" * 64)})
        self.refused("owner/name", "changed on the server")

    def test_no_hash_at_all_says_so(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "size": len(BIG), "type": "file"}])
        p = self.weft("pull", "owner/name")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(b"no SHA-256", p.stderr)

    def test_longer_than_listed(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG + b"more")
        self.refused("owner/name", "3000004", "3000000")

    def test_shorter_than_listed(self):
        self.server.on_file = lambda r, path, n: r.send_file(BIG[:-4])
        self.refused("owner/name", "2999996", "3000000")

    def chunked(self, r, data):
        r.send_response(200)
        r.send_header("Transfer-Encoding", "chunked")
        r.end_headers()
        try:
            for at in range(0, len(data), 65536):
                piece = data[at:at + 65536]
                r.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
            r.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass

    def test_without_a_length(self):
        self.server.on_file = lambda r, path, n: self.chunked(r, BIG)
        self.pulled("owner/name", BIG)

    def test_without_a_length_and_too_long(self):
        self.server.on_file = lambda r, path, n: self.chunked(r, BIG + b"more")
        self.refused("owner/name", "more than the 3000000")

    def test_without_any_length_at_all(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "type": "file"}])
        self.server.on_file = lambda r, path, n: self.chunked(r, BIG)
        self.refused("owner/name", "does not say how long")

    def test_wrong_range_starts_over(self):
        self.leave_part()

        def serve(r, path, n):
            if n == 1:
                return r.reply(206, BIG[500_000:], {"ETag": '"x"', "Content-Range": f"bytes 500000-{len(BIG) - 1}/{len(BIG)}"})
            return r.send_file(BIG)
        self.server.on_file = serve
        self.pulled("owner/name", BIG)

    def test_range_of_another_length_is_refused(self):
        self.leave_part()
        self.server.on_file = lambda r, path, n: r.reply(206, BIG[1_000_000:], {"Content-Range": "bytes 1000000-8999999/9000000"})
        self.refused("owner/name", "9000000")

    def test_partial_answer_that_nobody_asked_for(self):
        self.server.on_file = lambda r, path, n: r.reply(206, BIG[5:], {"Content-Range": f"bytes 5-{len(BIG) - 1}/{len(BIG)}"})
        self.refused("owner/name", "another range")

    def test_range_not_satisfiable_starts_over(self):
        self.leave_part()
        self.server.on_file = lambda r, path, n: (r.reply(416) if n == 1 else r.send_file(BIG))
        self.pulled("owner/name", BIG)

    def test_server_errors_pass(self):
        self.server.on_file = lambda r, path, n: (r.reply(503) if n <= 2 else r.send_file(BIG))
        self.pulled("owner/name", BIG)
        self.server.on_file = lambda r, path, n: r.reply(500)
        shutil.rmtree(self.place())
        self.refused("owner/name", "500")

    def test_slow_server_times_out(self):
        def serve(r, path, n):
            r.send_response(200)
            r.send_header("Content-Length", str(len(BIG)))
            r.end_headers()
            r.wfile.write(BIG[:100_000])
            r.wfile.flush()
            time.sleep(5)
        self.server.on_file = serve
        began = time.time()
        self.refused("owner/name", "WEFT_PULL_TIMEOUT", WEFT_PULL_TIMEOUT="1", WEFT_PULL_RETRIES="0")
        self.assertLess(time.time() - began, 30)

    def test_slow_listing_times_out(self):
        self.server.on_api = lambda r, path: time.sleep(5)
        self.refused("owner/name", "WEFT_PULL_TIMEOUT", WEFT_PULL_TIMEOUT="1", WEFT_PULL_RETRIES="0")

    def test_redirects_end(self):
        self.server.on_file = lambda r, path, n: r.redirect(f"/again{n}")
        self.refused("owner/name", "redirects")
        self.assertLess(len(self.server.log), 15)

    def test_headers_without_end(self):
        def serve(r, path, n):
            r.send_response(200)
            for i in range(4000):
                r.send_header(f"X-{i}", "y" * 200)
            r.end_headers()
        self.server.on_file = serve
        self.refused("owner/name")

    def test_disk_space(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "size": 10 ** 18, "type": "file"}])
        self.refused("owner/name", "GB", "WEFT_CACHE")
        self.assertEqual([p for p in self.server.paths() if "resolve" in p], [])
        self.server.on_api = lambda r, path: r.reply_json([{"path": f"m-0000{i}-of-00003.gguf", "size": 2 ** 63 - 1,
                                                            "type": "file"} for i in (1, 2, 3)])
        self.refused("owner/name", "more bytes than there can be")

    def test_disk_space_told_late(self):
        self.server.on_api = lambda r, path: r.reply_json([{"path": "model.gguf", "type": "file"}])
        self.server.on_file = lambda r, path, n: r.reply(200, b"x", {}, 10 ** 17)
        self.refused("owner/name", "GB", "WEFT_CACHE")


class Listing(Case):
    repos = {"owner/name": {"model.gguf": MODEL}}

    def answer(self, body):
        self.server.on_api = lambda r, path: r.reply(200, body if isinstance(body, bytes) else json.dumps(body).encode())

    def test_paths_that_leave_the_folder(self):
        for path in some(("../evil.gguf", "a/../../evil.gguf", "/etc/evil.gguf", "..", "a/..", "a\\..\\evil.gguf",
                          "C:\\evil.gguf", "evil\0.gguf", "a//b.gguf",
                     "./evil.gguf", "", "x" * 5000 + ".gguf", "y" * 250 + ".gguf", "line\nend.gguf", "\x1b[2Jevil.gguf",
                     "a\u202efugg.gguf", "a/./b.gguf", "a/")):
            self.answer([entry("model.gguf", MODEL), {"type": "file", "path": path, "size": 3}])
            p = self.refused("owner/name", "refused")
            self.assertNotIn(b"\x1b", p.stderr)
            self.assertEqual(p.stderr.count(b"\n"), 1, p.stderr)
            self.assertEqual(os.listdir(os.path.dirname(self.cache)).count("evil.gguf"), 0)
        self.assertEqual([p for p in self.server.paths() if "resolve" in p], [])

    def test_hostile_json(self):
        for body in some((b"", b"[", b"{}", b"null", b"7", b'"x"', b"\xff\xfe", b"[1]", b"[null]", b'[{"path": 5}]',
                          b'[{"path": "m.gguf", "size": -1}]',
                     b'[{"path": "m.gguf", "size": 1.5}]', b'[{"path": "m.gguf", "size": 1e300}]',
                     b'[{"path": "m.gguf", "size": 18446744073709551617}]',
                     b'[{"path": "m.gguf", "lfs": 1}]', b'[{"path": "m.gguf", "lfs": {"oid": "zz", "size": 1}}]',
                     b'[{"path": "m.gguf", "size": 1, "lfs": {"oid": "' + b"0" * 64 + b'", "size": 2}}]',
                     b'[{"path": "m.gguf"}, {"path": "m.gguf"}]', b'{"siblings": {}}', b"[" * 100000, b'[{"path": "m.gguf"}] x')):
            self.answer(body)
            self.refused("owner/name")

    def test_huge_listing(self):
        self.answer(b'["' + b"x" * (17 << 20) + b'"]')
        self.refused("owner/name", "longer than 16 MB")
        self.answer(json.dumps([{"path": f"f{i}", "type": "file"} for i in range(50001)]).encode())
        self.refused("owner/name", "50000")

    def test_listing_without_end(self):
        def api(r, path):
            r.reply_json([{"path": f"f{len(self.server.log)}", "type": "file"}],
                         {"Link": f'<{self.server.url}{path}?c={len(self.server.log)}>; rel="next"'})
        self.server.on_api = api
        self.refused("owner/name", "refused")
        self.assertLess(len(self.server.log), 100)

    def test_nothing_to_run(self):
        self.answer([{"path": "pytorch_model.bin", "type": "file", "size": 1}])
        self.refused("owner/name", "neither")
        self.answer([])
        self.refused("owner/name", "neither")

    def test_several_models_ask_which(self):
        self.answer([entry("a.gguf", b"1"), entry("b.gguf", b"2")])
        self.refused("owner/name", "a.gguf, b.gguf")

    def test_unknown_quantization_names_those_there(self):
        self.answer([entry("m-Q4_0.gguf", b"1"), entry("m-Q8_0.gguf", b"2")])
        self.refused("owner/name:Q3_K", "Q3_K", "m-Q4_0.gguf, m-Q8_0.gguf")


class Refusals(Case):
    repos = {"owner/name": {"model.gguf": MODEL}}

    def test_names(self):
        for name in some(("", "name", "/name", "owner/", "../name", "owner/..", "owner/../x", "owner/name/more", "owner/name:",
                          "owner/name:../x", "owner/name:/etc/x",
                     "owner/name:a/../../x", "owner/name:a\\x", "-o/name", ".o/name", "owner/.git", "o wner/name",
                     "owner/na\nme", "owner/" + "n" * 97,
                     "owner/name:" + "x" * 2000, "owner/name:\x1b[2J", "https://huggingface.co/owner/name")):
            p = self.weft("pull", "--", name)
            self.assertEqual(p.returncode, 1, name)
            self.assertNotIn(b"\x1b", p.stderr)
            p = self.weft("rm", "--", name)
            self.assertEqual(p.returncode, 1, name)
        self.assertEqual(self.server.log, [])
        self.assertFalse(os.path.exists(self.place()))

    def test_absent_model(self):
        p = self.refused("owner/nam", "not found", "did you mean owner/name")
        self.assertNotIn(b"HF_TOKEN", p.stderr)

    def test_unauthorized(self):
        self.server.on_api = lambda r, path: r.reply(401, b"", {"X-Error-Message": "Invalid username or password."})
        self.refused("owner/name", "set HF_TOKEN", "Invalid username")
        self.refused("owner/name", "does not accept HF_TOKEN", HF_TOKEN=TOKEN)

    def test_gated(self):
        self.server.on_api = lambda r, path: r.reply(403)
        self.refused("owner/name", "terms", f"{self.server.url}/owner/name")

    def test_gated_file(self):
        self.server.on_file = lambda r, path, n: r.reply(403)
        self.refused("owner/name", "terms", "HF_TOKEN")

    def test_file_vanished(self):
        self.server.on_file = lambda r, path, n: r.reply(404)
        self.refused("owner/name", "model.gguf", "not found")

    def test_no_network(self):
        self.server.url = "http://host.invalid"
        self.refused("owner/name", "host.invalid", "network", WEFT_PULL_RETRIES="0")
        self.server.url = "http://127.0.0.1:9"
        self.refused("owner/name", "connect", WEFT_PULL_RETRIES="0")

    def test_bad_environment(self):
        for url in some(("ftp://127.0.0.1", "http://u:p@127.0.0.1", "127.0.0.1:80 x", "http://127.0.0.1/?q", "/path")):
            self.server.url = url
            self.refused("owner/name", "HF_ENDPOINT")
        self.server.url = "http://127.0.0.1:9"
        for name in ("WEFT_PULL_TIMEOUT", "WEFT_PULL_RETRIES"):
            for value in some(("x", "-1", "1.5", "99999999999999999999")):
                self.assertIn(name.encode(), run(WEFT + ["pull", "owner/name"], env={**self.environment(), name: value}).stderr)

    def test_cache_that_cannot_be_written(self):
        with open(os.path.join(self.cache, "file"), "w"):
            pass
        p = run(WEFT + ["pull", "owner/name"], env={**self.environment(), "WEFT_CACHE": self.cache + "/file"})
        self.assertEqual(p.returncode, 1)
        self.assertIn((self.cache + "/file").encode(), p.stderr)


class Together(Case):
    repos = {"owner/name": {"model.gguf": BIG}}

    def slow(self, gate):
        """The first half at once, the second when the gate opens."""
        def serve(r, path, n):
            first = r.first_byte()
            r.send_response(206 if first else 200)
            r.send_header("ETag", '"e"')
            if first:
                r.send_header("Content-Range", f"bytes {first}-{len(BIG) - 1}/{len(BIG)}")
            r.send_header("Content-Length", str(len(BIG) - first))
            r.end_headers()
            middle = max(first, len(BIG) // 2)
            try:
                r.wfile.write(BIG[first:middle])
                r.wfile.flush()
                gate.wait(60)
                r.wfile.write(BIG[middle:])
            except OSError:
                pass
        self.server.on_file = serve

    def wait_for(self, condition):
        for _ in range(600):
            if condition():
                return
            time.sleep(0.05)
        self.fail("it never came")

    def part_has(self, n):
        part = self.place("owner", "name", "model.gguf.part")
        return os.path.exists(part) and os.path.getsize(part) >= n

    def test_two_at_once(self):
        gate = threading.Event()
        self.slow(gate)
        a = self.start("pull", "owner/name")
        self.wait_for(lambda: self.part_has(1_000_000))
        b = self.start("pull", "owner/name")
        self.wait_for(lambda: len([p for p in self.server.paths() if "/api/" in p]) == 2)
        time.sleep(0.3)
        self.assertIsNone(b.poll())
        self.assertIn(b"another process", self.weft("rm", "owner/name").stderr)
        gate.set()
        for p in (a, b):
            out, err = p.communicate(timeout=60)
            check_report(err)
            self.assertEqual(p.returncode, 0, err)
            with open(out.decode().strip(), "rb") as f:
                self.assertEqual(f.read(), BIG)
        self.assertEqual(len([p for p in self.server.paths() if "resolve" in p]), 1)

    def interrupt(self, signal_number):
        gate = threading.Event()
        self.slow(gate)
        p = self.start("pull", "owner/name")
        self.wait_for(lambda: self.part_has(1_000_000))
        p.send_signal(signal_number)
        out, err = p.communicate(timeout=60)
        check_report(err)
        gate.set()
        self.assertEqual(self.files(), ["owner/name/model.gguf.part"])
        self.server.log.clear()
        self.server.on_file = lambda r, path, n: r.send_file(BIG, '"e"')
        return p, out, err

    def test_interrupt_leaves_a_part(self):
        p, out, err = self.interrupt(signal.SIGINT)
        self.assertEqual((p.returncode, out), (1, b""))
        self.assertIn(b"continues", err)
        listed = json.loads(self.weft("list", "--json").stdout)
        self.assertEqual([(m["name"], m["complete"]) for m in listed], [("owner/name:model.gguf", False)])
        self.assertEqual(self.weft("info", "owner/name").returncode, 1)
        self.pulled("owner/name", BIG)
        self.assertRegex([h.get("Range") for path, h in self.server.log if "resolve" in path][0], r"bytes=\d{7}-")

    def test_killed_leaves_a_part(self):
        self.interrupt(signal.SIGKILL)
        self.pulled("owner/name", BIG)
        self.assertRegex([h.get("Range") for path, h in self.server.log if "resolve" in path][0], r"bytes=\d{7}-")

    def test_interrupt_while_waiting_for_the_other(self):
        gate = threading.Event()
        self.slow(gate)
        a = self.start("pull", "owner/name")
        self.wait_for(lambda: self.part_has(1_000_000))
        b = self.start("pull", "owner/name")
        self.wait_for(lambda: len([p for p in self.server.paths() if "/api/" in p]) == 2)
        time.sleep(0.3)
        b.send_signal(signal.SIGINT)
        check_report(b.communicate(timeout=60)[1])
        self.assertEqual(b.returncode, 1)
        gate.set()
        check_report(a.communicate(timeout=60)[1])
        self.assertEqual(a.returncode, 0)


class Cache(Case):
    repos = {"owner/name": {"a-Q4_0.gguf": MODEL, "sub/b-Q8_0.gguf": MODEL}, "owner/second": {"c.gguf": MODEL}}

    def test_list(self):
        self.assertEqual((self.weft("list").returncode, self.weft("list").stdout), (0, b""))
        self.assertEqual(json.loads(self.weft("list", "--json").stdout), [])
        for name in ("owner/second", "owner/name:q8_0", "owner/name:q4_0"):
            self.pulled(name, MODEL)
        listed = json.loads(self.weft("list", "--json").stdout)
        self.assertEqual([m["name"] for m in listed], ["owner/name:a-Q4_0.gguf", "owner/name:sub/b-Q8_0.gguf",
                                                       "owner/second:c.gguf"])
        for m in listed:
            self.assertTrue(os.path.samefile(m["path"], self.place(*m["name"].replace(":", "/").split("/"))))
            self.assertEqual(m["bytes"], len(MODEL))
        self.assertEqual(self.weft("list").stdout.count(b"complete"), 3)

    def test_rm(self):
        for name in ("owner/second", "owner/name:q8_0", "owner/name:q4_0"):
            self.pulled(name, MODEL)
        self.assertEqual(self.weft("rm", "owner/name:Q8_0").returncode, 0)
        self.assertEqual(self.files(), ["owner/name/a-Q4_0.gguf", "owner/second/c.gguf"])
        self.assertFalse(os.path.exists(self.place("owner", "name", "sub")))
        self.assertEqual(self.weft("rm", "owner/name:a-Q4_0.gguf").returncode, 0)
        self.assertFalse(os.path.exists(self.place("owner", "name")))
        p = self.weft("rm", "owner/name")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"was not pulled", p.stderr)
        self.assertEqual(self.weft("rm", "owner/second").returncode, 0)
        self.assertEqual(os.listdir(self.place()), [])

    def test_rm_of_what_is_not_there(self):
        self.pulled("owner/second", MODEL)
        self.assertEqual(self.weft("rm", "owner/second:Q2_K").returncode, 1)
        self.assertEqual(self.files(), ["owner/second/c.gguf"])

    def test_rm_stays_in_the_cache(self):
        """Symbolic links in the cache are removed as links, or refused; what they lead to stays."""
        with tempfile.TemporaryDirectory() as outside:
            precious = os.path.join(outside, "precious.gguf")
            with open(precious, "wb") as f:
                f.write(b"x")
            self.pulled("owner/second", MODEL)
            os.symlink(outside, self.place("owner", "second", "dir"))
            os.symlink(precious, self.place("owner", "second", "link.gguf"))
            self.assertEqual(self.weft("rm", "owner/second:link.gguf").returncode, 1)
            self.assertEqual(self.weft("rm", "owner/second:dir/precious.gguf").returncode, 1)
            self.assertEqual(self.weft("rm", "owner/second").returncode, 0)
            self.assertTrue(os.path.exists(precious))
            os.makedirs(self.place("owner"), exist_ok=True)
            os.symlink(outside, self.place("owner", "linked"))
            p = self.weft("rm", "owner/linked")
            self.assertEqual(p.returncode, 1)
            self.assertIn(b"symbolic link", p.stderr)
            os.symlink(self.place("owner"), self.place("alias"))
            self.assertEqual(self.weft("rm", "alias/linked").returncode, 1)
            self.assertTrue(os.path.exists(precious))
            self.server.repos["owner/linked"] = {"precious.gguf": MODEL}
            self.assertEqual(self.weft("pull", "owner/linked").returncode, 1)
            with open(precious, "rb") as f:
                self.assertEqual(f.read(), b"x")

    def test_pull_does_not_write_through_a_link(self):
        with tempfile.TemporaryDirectory() as outside:
            precious = os.path.join(outside, "precious")
            with open(precious, "wb") as f:
                f.write(b"x")
            os.makedirs(self.place("owner", "second"))
            os.symlink(precious, self.place("owner", "second", "c.gguf.part"))
            self.assertEqual(self.weft("pull", "owner/second").returncode, 1)
            os.makedirs(self.place("owner", "second"), exist_ok=True)
            os.symlink(precious, self.place("owner", "second", "c.gguf"))
            self.pulled("owner/second", MODEL)  # the link is replaced
            os.makedirs(self.place("owner", "name"))
            os.symlink(outside, self.place("owner", "name", "sub"))
            self.assertEqual(self.weft("pull", "owner/name:q8_0").returncode, 1)
            self.assertEqual(os.listdir(outside), ["precious"])
            with open(precious, "rb") as f:
                self.assertEqual(f.read(), b"x")

    def test_damaged_records_are_no_hindrance(self):
        self.pulled("owner/second", MODEL)
        for text in (b"", b"{", b"[]", b'{"files": 5, "folder": {}}', b'{"files": {"c.gguf": 1}, "folder": ["../../x", 5]}',
                     b"\xff"):
            with open(self.place("owner", "second", ".weft.json"), "wb") as f:
                f.write(text)
            self.assertEqual(self.weft("list").returncode, 0)
            self.pulled("owner/second", MODEL)


@needs_models
class Use(Case):
    def setUp(self):
        super().setUp()
        with open(STORIES, "rb") as f:
            self.server.repos["owner/stories"] = {"stories-Q8_0.gguf": f.read()}

    def test_pulled_name_is_a_model(self):
        p = self.weft("info", "owner/stories")
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"weft pull", p.stderr)
        self.assertEqual(self.weft("pull", "owner/stories").returncode, 0)
        for name in ("owner/stories", "owner/stories:q8_0", "owner/stories:stories-Q8_0.gguf"):
            p = self.weft("tokenize", name, "Once upon a time")
            self.assertEqual((p.returncode, p.stdout), (0, self.weft("tokenize", STORIES, "Once upon a time").stdout), p.stderr)
        self.assertEqual(self.weft("info", "owner/stories:Q4_0").returncode, 1)
        p = self.weft("run", "owner/stories", "Once", "-n", "4", "--temp", "0")
        self.assertEqual(p.returncode, 0, p.stderr)
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        text, matrix, out = (os.path.join(folder, name) for name in ("text", "matrix", "out.gguf"))
        with open(text, "w") as f:
            f.write("Once upon a time there was a little girl. " * 8)
        for command in (["imatrix", "owner/stories", "-f", text, "-o", matrix, "-c", "16"], ["eval", "perplexity", "owner/stories", "-f", text, "-c", "16"],
                        ["quantize", "owner/stories", out, "Q4_0", "--imatrix", matrix]):
            p = self.weft(*command)
            self.assertEqual(p.returncode, 0, p.stderr)

    def test_an_existing_file_comes_first(self):
        self.assertEqual(self.weft("pull", "owner/stories").returncode, 0)
        with tempfile.TemporaryDirectory() as d:
            os.makedirs(d + "/owner")
            with open(d + "/owner/stories", "wb") as f:
                f.write(b"no model")
            p = run(WEFT + ["info", "owner/stories"], cwd=d, env=self.environment(), timeout=60)
            self.assertEqual(p.returncode, 1)


if __name__ == "__main__":
    main()
