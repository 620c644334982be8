# SPDX-License-Identifier: Apache-2.0
"""What the tests of weft pull share: a cache and a server for each test, and what it means that a pull worked or was refused."""
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from common import PATIENCE, WEFT, repeated, run  # noqa: E402
from pull_server import PullServer  # noqa: E402

TOKEN = "hf_secretsecretsecret"


def some(cases):
    """All of them, or a few where starting the program takes long; hub_names, hub_listing and their fuzz targets have more."""
    return cases[::repeated(1, 3, 5)]


def noise(seed, n):
    return random.Random(seed).randbytes(n)


MODEL = noise(1, 300_000)
BIG = noise(2, 3_000_000)


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
        return {**out, "HF_ENDPOINT": self.server.url, "WEFT_CACHE": self.cache, "WEFT_PULL_TIMEOUT": "120",
                "WEFT_PULL_RETRIES": "2", **more}

    def weft(self, *args, **more):
        return run(WEFT + list(args), stdin=subprocess.DEVNULL, timeout=PATIENCE, env=self.environment(**more))

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
