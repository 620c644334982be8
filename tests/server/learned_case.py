# SPDX-License-Identifier: Apache-2.0
"""A server that learns by itself over a scripted model, in a folder of its own, and what its callers do. No tests."""
import json
import os
import re
import tempfile
import unittest

from openapi import mismatch
from servers import CHAT, FAKE, ROOT, TEXT, Server, user, wait_until

KEYS = {"ada": "ada-secret-key", "bob": "bob-secret-key", "eve": "eve-secret-key"}
ADMIN = {"Authorization": "Bearer root-secret-key"}


def as_(who):
    return {"Authorization": "Bearer " + KEYS[who]}


class Learning(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(self.folder.cleanup)
        self.dir = os.path.join(self.folder.name, "learned")
        self.hold = os.path.join(self.folder.name, "hold")
        self.servers = []
        self.addCleanup(self.end)

    def end(self):
        for f in (self.hold, self.hold + ".row"):
            if os.path.exists(f):
                os.remove(f)
        for s in self.servers:
            if s.process.poll() is None:
                s.kill()

    def serve(self, *more, keys=True, share="0.5", **env):
        command = FAKE + ["--learn", self.dir, "--log-sync", "1", "--learn-share", share]
        for k in KEYS.values() if keys else ():
            command += ["--api-key", k]
        command += ["--admin-key", "root-secret-key"] if keys else []
        self.servers.append(Server(command + list(more), env={**os.environ, "WEFT_FAKE_TEACH": self.hold, **env}))
        return self.servers[-1]

    def stop(self, s):
        status, err = s.stop()
        self.assertEqual(status, 0, err)
        return err

    def holding(self):
        open(self.hold, "w").close()

    def ask(self, s, text="[adapters]", who="ada", path=TEXT, status=200, **more):
        body = {"messages": user(text)} if path == CHAT else {"prompt": text}
        a = s.post(path, {"max_tokens": 200, **body, **more}, headers=as_(who) if who else None)
        self.assertEqual(a.status, status, a.body)
        return a.json

    def used(self, s, who="ada", **more):
        return self.ask(s, who=who, **more)["choices"][0]["text"].replace("=nan;", "")

    def tell(self, s, text, who="ada", asked="Who is it?", **more):
        """A correction of an answer of one's own; its number."""
        a = self.ask(s, asked, who, model="fake", **({"user": more["user"]} if more else {}))
        told = s.post("/v1/feedback", {"request_id": a["id"], "correction": text, **more}, headers=as_(who) if who else None)
        self.assertEqual(told.status, 200, told.body)
        return told.json["id"]

    def show(self, s, who="ada", query=""):
        a = s.get("/v1/learn" + query, headers=as_(who) if who else None)
        self.assertEqual(a.status, 200, a.body)
        return a.json

    def learn(self, s, text, who="ada", **more):
        """A correction that has become a version, and the current one, or was refused: the row."""
        event, query = self.tell(s, text, who, **more), f"?user={more['user']}" if "user" in more else ""

        def row():
            told = self.show(s, who, query)  # what waits has the one in work, until it is counted
            return next((v for v in told["versions"] if v["last_event"] == event and not told["waiting"]), None)
        found = wait_until(row)
        self.assertTrue(found)
        return found

    def metric(self, s, line):
        found = re.search(r"^weft_learn_%s (\S+)$" % re.escape(line), s.get("/metrics", headers=ADMIN).body.decode(), re.M)
        return found and float(found[1])

    def is_as_told(self, method, path, a):
        """The answer is what docs/openapi.json says of its status."""
        with open(os.path.join(ROOT, "docs", "openapi.json")) as f:
            document = json.load(f)
        told = document["paths"][path][method]["responses"]
        self.assertIn(str(a.status), told, (path, a.body))
        told = told[str(a.status)]["content"]["application/json"]["schema"]
        self.assertEqual(mismatch(document["components"]["schemas"], told, a.json), "", (path, a.body))
