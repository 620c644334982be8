# SPDX-License-Identifier: Apache-2.0
"""Claims about weft pull: which files a name means, who sees the token, listings that lie, and what is refused with which words.

usage: test_pull.py build/weft"""
import json
import os
import shutil
import tempfile

from common import PATIENCE, WEFT, main, run
from pull_case import BIG, MODEL, TOKEN, Case, noise, some
from certificate import make_certificate  # pull_case says where
from pull_server import PullServer, entry, tree


# Where several would do, the machine is measured, to choose what is fast enough (test_default_quantization, test_fit.py).
NAMED = "owner/name:q4_k_m"


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
        self.pulled(NAMED, MODEL)
        seen = len(self.server.log)
        self.pulled(NAMED, MODEL)
        self.assertEqual([p for p in self.server.paths()[seen:] if "resolve" in p], [])

    def test_changed_model_is_fetched_again(self):
        self.pulled(NAMED, MODEL)
        self.server.repos["owner/name"]["model-Q4_K_M.gguf"] = BIG
        self.pulled(NAMED, BIG)

    def test_damaged_file_of_other_size_is_fetched_again(self):
        path = self.pulled(NAMED, MODEL)
        with open(path, "ab") as f:
            f.write(b"x")
        self.pulled(NAMED, MODEL)

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
                p = run(WEFT + ["pull", NAMED], env={**base, **change}, timeout=PATIENCE)
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
            self.assertEqual(set(other.tokens()), {None})
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
            self.assertEqual(set(other.tokens()), {None})
        self.assertIsNone(self.server.log[-1][1].get("Authorization"))

    def test_listing_that_redirects_does_not_leak_it(self):
        with PullServer() as other:
            other.on_api = lambda r, path: r.reply_json(tree(self.server.repos["owner/name"]))
            self.server.on_api = lambda r, path: r.redirect(other.url + "/api/elsewhere", 307)
            self.pulled("owner/name", MODEL, HF_TOKEN=TOKEN)
            self.assertEqual(set(other.tokens()), {None})

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

    def test_https_to_http_is_refused(self):
        with tempfile.TemporaryDirectory() as d:
            key, cert = d + "/key.pem", d + "/cert.pem"
            make_certificate(cert, key)
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


if __name__ == "__main__":
    main()
