# SPDX-License-Identifier: Apache-2.0
"""A server over a scripted model that keeps answers and feedback in a folder of its own, and what its callers and `weft learn` do. No tests."""
import os
import sqlite3
import subprocess
import tempfile
import unittest

from servers import CHAT, FAKE, Server, user

WEFT = FAKE[:-1] + [os.path.join(os.path.dirname(FAKE[-1]), "weft")]
KEYS = {"ada": "ada-secret-key", "bob": "bob-secret-key"}


def as_(who):
    return {"Authorization": "Bearer " + KEYS[who]}


def files_with(folder, text):
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                if text.encode() in f.read():
                    found.append(name)
    return found


class Keeping(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.addCleanup(self.folder.cleanup)
        self.dir = os.path.join(self.folder.name, "learned")
        self.servers = []
        self.addCleanup(self.end)

    def end(self):
        for s in self.servers:
            if s.process.poll() is None:
                s.process.terminate()
            s.process.wait()
            s.process.stdout.close()
            s.process.stderr.close()

    def serve(self, *more, keys=True):
        command = FAKE + ["--learn", self.dir, "--log-sync", "1"]
        for k in KEYS.values() if keys else ():
            command += ["--api-key", k]
        self.servers.append(Server(command + list(more)))
        return self.servers[-1]

    def stop(self, s):
        s.process.terminate()
        self.assertEqual(s.process.wait(), 0)

    def rows(self, sql, *values):
        db = sqlite3.connect(os.path.join(self.dir, "learn.db"))
        try:
            return db.execute(sql, values).fetchall()
        finally:
            db.close()

    def weft(self, *args, rc=0):
        p = subprocess.run([*WEFT, *args], capture_output=True, text=True)
        self.assertEqual(p.returncode, rc, p.stderr)
        return p

    def ask(self, s, text, who="ada", path=CHAT, **more):
        body = {"messages": user(text)} if path == CHAT else {"prompt": text}
        a = s.post(path, {**body, **more}, headers=as_(who))
        self.assertEqual(a.status, 200, a.body)
        return a.json

    def feedback(self, s, body, who="ada", status=200):
        a = s.post("/v1/feedback", body, headers=as_(who))
        self.assertEqual(a.status, status, a.body)
        return a.json
