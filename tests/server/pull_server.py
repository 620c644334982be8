# SPDX-License-Identifier: Apache-2.0
"""A small Hugging Face server for tests: listings, files with ranges and ETags, and every way to misbehave.

    with PullServer({"owner/name": {"model.gguf": b"..."}}) as server:
        server.url, server.log                       # requests seen: (path, headers)
        server.on_file = lambda request, path, n: ...   # answers the n-th request (from 1) for that file in its own way
        server.on_api = lambda request, path: ...       # the same for /api/

A request offers reply(status, body, headers) and send_file(data, etag, ...)."""
import base64
import hashlib
import http.server
import json
import re
import ssl
import threading
import urllib.parse


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", headers=None, length=None):
        """length: what Content-Length claims; a lie closes the connection."""
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        try:
            self.wfile.write(body)
            self.wfile.flush()
        except OSError:
            pass  # the client has seen enough
        if length is not None and length != len(body):
            self.close_connection = True

    def reply_json(self, value, headers=None):
        self.reply(200, json.dumps(value).encode(), headers)

    def first_byte(self):
        match = re.fullmatch(r"bytes=(\d+)-(?:\d+)?", self.headers.get("Range", ""))
        return int(match.group(1)) if match else 0

    def end(self, n):
        """Behind the last byte that is asked for, of n."""
        match = re.fullmatch(r"bytes=\d+-(\d+)", self.headers.get("Range", ""))
        return min(n, int(match.group(1)) + 1) if match else n

    def send_file(self, data, etag=None, ranges=True, stop_after=None, headers=None):
        """Answers as a good server does; stop_after: the connection breaks after so many bytes of the body."""
        etag = etag or '"%s"' % hashlib.md5(data).hexdigest()
        first = self.first_byte() if ranges else 0
        if first and self.headers.get("If-Range", etag) != etag:
            first = 0
        if first > len(data) or (first and first == len(data)):
            return self.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
        all_headers = {"ETag": etag, **(headers or {})}
        end = self.end(len(data)) if ranges else len(data)
        part = first > 0 or end < len(data)
        if part:
            all_headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
        body = data[first:end]
        with self.server.owner.lock:
            self.server.owner.sent += len(body)
        cut = body if stop_after is None else body[:stop_after]
        return self.reply(206 if part else 200, cut, all_headers, len(body))

    def redirect(self, url, status=302, headers=None):
        self.reply(status, b"", {"Location": url, **(headers or {})})

    def do_GET(self):
        server = self.server.owner
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        with server.lock:
            server.log.append((self.path, dict(self.headers)))
            server.counts[path] = n = server.counts.get(path, 0) + 1
        if path.startswith("/api/"):
            return server.on_api(self, path) if server.on_api else self.api(server, path)
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/main/(.*)", path)
        if server.on_file:
            return server.on_file(self, match.group(2) if match else path, n)
        data = server.repos.get(match.group(1), {}).get(match.group(2)) if match else None
        if data is None:
            self.reply(404, b"Entry not found", {"X-Error-Message": "Entry not found"})
        else:
            self.send_file(data)

    def do_POST(self):
        self.take()

    def do_PUT(self):
        self.take()

    def take(self):
        """A repository takes files as the real server does: which go by LFS, where those are put, and the commit."""
        server = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with server.lock:
            server.log.append((self.path, dict(self.headers)))
            server.bodies.append((self.command, self.path, body))
        if server.on_push and server.on_push(self, self.path, body):
            return
        match = re.fullmatch(r"/(?:api/models/)?([^/]+/[^/]+?)(?:\.git)?/(preupload/main|commit/main|info/lfs/objects/batch|verify)", self.path)
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = asked["organization"] + "/" + asked["name"]
            if name in server.repos:
                return self.reply(409, b"{}")
            server.repos[name] = {}
            return self.reply_json({"url": server.url + "/" + name})
        if self.path.startswith("/store/"):
            server.objects[self.path[7:]] = body
            return self.reply(200)
        if not match or match.group(1) not in server.repos:
            return self.reply(404, b"{}", {"X-Error-Message": "Repository not found"})
        name, what = match.groups()
        if what == "preupload/main":
            lfs = lambda f: f["path"].endswith((".gguf", ".safetensors"))
            return self.reply_json({"files": [{"path": f["path"], "uploadMode": "lfs" if lfs(f) else "regular", "shouldIgnore": False}
                                              for f in json.loads(body)["files"]]})
        if what == "info/lfs/objects/batch":
            objects = []
            for o in json.loads(body)["objects"]:
                actions = {"upload": {"href": f"{server.store or server.url}/store/{o['oid']}", "header": {"X-Signed": "yes"}},
                           "verify": {"href": f"{server.url}/{name}/verify"}}
                objects.append({**o, **({} if o["oid"] in server.objects else {"actions": actions})})
            return self.reply_json({"transfer": "basic", "objects": objects})
        if what == "verify":
            return self.reply(200 if json.loads(body)["oid"] in server.objects else 404)
        for line in map(json.loads, body.decode().splitlines()):
            v = line["value"]
            if line["key"] == "file":
                server.repos[name][v["path"]] = base64.b64decode(v["content"])
            elif line["key"] == "lfsFile":
                server.repos[name][v["path"]] = server.objects[v["oid"]]
        self.reply_json({"commitOid": "0" * 40})

    def api(self, server, path):
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/main", path)
        if match and match.group(1) in server.repos:
            self.reply_json(tree(server.repos[match.group(1)]))
        elif path == "/api/models":
            self.reply_json([{"id": name} for name in server.repos])
        else:
            self.reply(404, b"{}", {"X-Error-Message": "Repository not found"})


def entry(path, data, lfs=True):
    out = {"type": "file", "path": path, "size": len(data), "oid": hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()}
    if lfs:
        out["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
    return out


def tree(files):
    """As the real server: only large or binary files carry a SHA-256; here those of models."""
    out = [{"type": "directory", "path": "folder", "oid": "0" * 40, "size": 0}]
    return out + [entry(path, data, path.endswith((".gguf", ".safetensors"))) for path, data in files.items()]


class PullServer:
    def __init__(self, repos=None, certificate=None):
        self.repos, self.log, self.counts, self.lock, self.sent = repos or {}, [], {}, threading.Lock(), 0
        self.on_file = self.on_api = self.on_push = self.store = None
        self.bodies, self.objects = [], {}
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Request)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *args: None  # clients break off in these tests
        self.http.owner = self
        self.port = self.http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
            self.url = f"https://localhost:{self.port}"

    def __enter__(self):
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *args):
        self.http.shutdown()
        self.http.server_close()

    def paths(self):
        return [path for path, _ in self.log]

    def tokens(self):
        """The Authorization header of each request, or None."""
        return [headers.get("Authorization") for _, headers in self.log]
