# SPDX-License-Identifier: Apache-2.0
"""The web page at /: its files, their headers, what they may not hold, and how it is left out.

usage: test_page.py build/fake_server"""
import gzip
import html.parser
import os
import re
import shutil
import subprocess
import unittest

from servers import FAKE, ROOT, Case, Server

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FILES = sorted(os.listdir(os.path.join(ROOT, "web")))
WEIGHT = 200 * 1000
MAKES_HTML = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc|setAttribute\(\"on|@import"
NAMESPACE = "http://www.w3.org/2000/svg"


def source(name):
    with open(os.path.join(ROOT, "web", name), "rb") as f:
        return f.read()


def path_of(name):
    return "/" if name == "index.html" else "/page/" + name


class Tags(html.parser.HTMLParser):
    """Everything of HTML that the policy forbids, and what the page refers to."""

    def __init__(self):
        super().__init__()
        self.faults, self.refers, self.tag = [], [], ""

    def handle_starttag(self, tag, attrs):
        self.tag = tag
        given = dict(attrs)
        if tag in ("style", "base", "iframe", "object", "embed") or (tag == "script" and "src" not in given):
            self.faults.append(tag)
        self.faults += [name for name in given if name.startswith("on") or name == "style"]
        self.refers += [given[name] for name in ("src", "href") if name in given and tag != "a"]

    def handle_data(self, data):
        if self.tag == "script" and data.strip():
            self.faults.append(data)


class Page(Case):
    options = ("--api-key", "key-of-someone")

    def test_files(self):
        """Each file of web/ is served to whom has no key, byte for byte, with its type, and all of them weigh less than 200 KB."""
        for name in FILES:
            got = self.server.get(path_of(name))
            self.assertEqual((got.status, got.headers["content-type"], got.body), (200, TYPES[name.rsplit(".", 1)[1]] + "; charset=utf-8", source(name)), name)
        self.assertLess(sum(len(source(name)) for name in FILES), WEIGHT)
        self.assertEqual(self.server.get("/page/index.html").body, source("index.html"))
        self.assertEqual(self.server.get("/v1/models").status, 401)

    def test_headers(self):
        """Scripts and styles are the server's own files, nothing is fetched from elsewhere, framed, or made HTML of text."""
        for name in FILES:
            headers = self.server.get(path_of(name)).headers
            policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
            self.assertEqual(policy["default-src"], "'none'")
            for what in ("script-src", "style-src", "connect-src", "img-src"):
                self.assertEqual(policy[what], "'self'", what)
            for what in ("base-uri", "form-action", "frame-ancestors", "trusted-types"):
                self.assertEqual(policy[what], "'none'", what)
            self.assertEqual(policy["require-trusted-types-for"], "'script'")
            self.assertEqual((headers["x-content-type-options"], headers["referrer-policy"]), ("nosniff", "no-referrer"))
            self.assertEqual((headers["cross-origin-opener-policy"], headers["cross-origin-resource-policy"]), ("same-origin", "same-origin"))

    def test_what_changed(self):
        """A file is sent again only when it changed: 304 without a body, for either of its forms, by its own tag alone."""
        seen = set()
        for name in FILES:
            plain = self.server.get(path_of(name))
            packed = self.server.get(path_of(name), headers={"Accept-Encoding": "br, gzip;q=0.8"})
            self.assertEqual(plain.headers["cache-control"], "no-cache")
            self.assertNotIn("content-encoding", plain.headers)
            self.assertEqual(packed.headers.get("content-encoding"), "gzip")
            self.assertEqual(gzip.decompress(packed.body), plain.body)
            self.assertEqual((packed.headers["vary"], plain.headers["vary"]), ("Accept-Encoding", "Accept-Encoding"))
            for got, encoding in ((plain, "identity"), (packed, "gzip")):
                tag = got.headers["etag"]
                self.assertNotIn(tag, seen)
                seen.add(tag)
                for given in (tag, f'"x", W/{tag}', "*"):
                    again = self.server.get(path_of(name), headers={"Accept-Encoding": encoding, "If-None-Match": given})
                    self.assertEqual((again.status, again.body, again.headers["etag"]), (304, b"", tag), given)
                    self.assertNotIn("content-length", again.headers)
                    self.assertIn("content-security-policy", again.headers)
                other = self.server.get(path_of(name), headers={"Accept-Encoding": encoding, "If-None-Match": '"x"'})
                self.assertEqual((other.status, other.body), (200, got.body))
        for refused in ("gzip;q=0", "gzip;q=0.0", "br", "xgzip"):
            self.assertNotIn("content-encoding", self.server.get("/", headers={"Accept-Encoding": refused}).headers, refused)
        head = self.server.ask("HEAD", "/")
        self.assertEqual((head.status, head.body, head.headers["content-length"]), (200, b"", str(len(source("index.html")))))

    def test_what_is_not_there(self):
        for path in ("/page/", "/page/x.js", "/page/index.html/", "/page/../app.js", "/page/App.js", "/page/app.js%00", "/index.html", "/favicon.ico"):
            got = self.server.get(path)
            self.assertIn(got.status, (400, 404), path)
            self.assertNotIn("content-security-policy", got.headers)
        self.assertEqual(self.server.post("/", {}).status, 405)

    def test_html(self):
        """No script or style stands within the page; what it refers to, and what its scripts import, is served."""
        tags = Tags()
        tags.feed(source("index.html").decode())
        self.assertEqual(tags.faults, [])
        self.assertGreater(len(tags.refers), 4)
        refers = [ref.removeprefix("page/") for ref in tags.refers]
        for name in FILES:
            if name.endswith(".js"):
                refers += re.findall(r'from "\./([^"]+)"', source(name).decode())
        for name in refers:
            self.assertIn(name, FILES)
        self.assertEqual(set(FILES) - {"index.html"} - set(refers), set(), "files that nothing uses")

    def test_sources(self):
        """The sources name no other host, and nothing in them makes HTML or programs of text."""
        for name in FILES:
            text = source(name).decode().replace(NAMESPACE, "")
            self.assertEqual(re.findall(r"(?:https?|wss?):\\?/\\?/[A-Za-z0-9]", text), [], name)
            self.assertEqual(re.findall(r"""(?:url\(|src=|href=)["']?//""", text), [], name)
            found = re.findall(MAKES_HTML, text)
            self.assertEqual(found, [], name)


class Modules(unittest.TestCase):
    @unittest.skipUnless(shutil.which("node"), "there is no node (Debian: apt-get install nodejs)")
    def test_models(self):
        """Which models the page names and asks for, without a browser: tests/page/models.test.mjs."""
        p = subprocess.run(["node", "--test", "tests/page/models.test.mjs"], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)


class Roles(Case):
    options = ("--api-key", "key-of-someone", "--api-key", "key-of-another", "--admin-key", "key-of-admin")

    def test_what_a_key_sees(self):
        """What the page shows of the server: the totals to every key, of slots and of use by key what is its own; to an admin all."""
        def as_key(name):
            return {"X-Api-Key": "key-of-" + name}
        self.server.post("/completion", {"prompt": "[say abc]"}, headers=as_key("someone"))
        seen = {}
        for name in ("someone", "another", "admin"):
            slots = self.server.get("/slots", headers=as_key(name)).json
            metrics = self.server.get("/metrics", headers=as_key(name)).body.decode()
            seen[name] = (sum("n_tokens" in s and s["n_tokens"] > 0 for s in slots), len(re.findall(r"^weft_key_requests_total\{", metrics, re.M)))
            self.assertIn("weft_generated_tokens_total 3\n", metrics)
            self.assertRegex(metrics, r"(?m)^weft_waiting \d")
            self.assertEqual({s["is_processing"] for s in slots}, {False})
        self.assertEqual(seen, {"someone": (1, 1), "another": (0, 0), "admin": (1, 1)})


class Without(unittest.TestCase):
    def test_no_page(self):
        """With --no-page there is none, and the rest answers as before."""
        server = Server([*FAKE, "--no-page", "1"])
        try:
            for path in ("/", "/page/app.js", "/page/index.html"):
                got = server.get(path)
                self.assertEqual((got.status, "without its page" in got.json["error"]["message"]), (404, True), path)
            self.assertEqual(server.get("/v1/models").status, 200)
        finally:
            server.stop()


if __name__ == "__main__":
    unittest.main(verbosity=1)
