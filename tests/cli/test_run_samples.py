# SPDX-License-Identifier: Apache-2.0
"""Claims about scripts/run-samples: right code passes, wrong code and hostile code do not, and nothing of it gets out of the sandbox.

usage: test_run_samples.py build/weft. Needs bubblewrap (Debian's package), and a system that lets people make namespaces."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from common import main, needs

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RUN = os.path.join(ROOT, "scripts", "run-samples")
PROBLEM = {"task_id": "T/0", "prompt": "def add(a, b):\n", "entry_point": "add", "test": "def check(f):\n    assert f(2, 3) == 5\n    assert f(-1, 1) == 0\n"}


def judge(folder, completions, *more, problem=PROBLEM):
    problems, samples, out = (os.path.join(folder, name) for name in ("problems.jsonl", "samples.jsonl", "out.jsonl"))
    with open(problems, "w") as f:
        f.write(json.dumps(problem) + "\n")
    with open(samples, "w") as f:
        f.writelines(json.dumps({"task_id": "T/0", "completion": c}) + "\n" for c in completions)
    p = subprocess.run([sys.executable, RUN, problems, samples, "--out", out, *more], capture_output=True, text=True, timeout=300)
    if p.returncode:
        return p, None
    with open(out) as f:
        return json.loads(p.stdout), [json.loads(line) for line in f]


def works():
    with tempfile.TemporaryDirectory() as folder:
        p, results = judge(folder, ["    return a + b\n"])
    return results is not None or p.returncode != 3, "" if results is not None else p.stderr.strip()


HAS_SANDBOX, WHY = works()


class RunSamples(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    @needs(HAS_SANDBOX, WHY)
    def test_what_is_right_passes(self):
        figures, results = judge(self.folder.name, ["    return a + b\n"] * 3 + ["    return a - b\n", "    return a +\n", ""], "-k", "1,2,100")
        self.assertEqual([r["passed"] for r in results], [True] * 3 + [False] * 3)
        self.assertEqual((figures["passed"], figures["samples"], figures["problems"]), (3, 6, 1))
        self.assertAlmostEqual(figures["pass@1"], 0.5)
        self.assertAlmostEqual(figures["pass@2"], 0.8)  # 1 - C(3,2)/C(6,2)
        self.assertNotIn("pass@100", figures)
        self.assertIn("AssertionError", results[3]["result"])
        self.assertIn("SyntaxError", results[4]["result"])

    @needs(HAS_SANDBOX, WHY)
    def test_what_is_hostile_fails_and_stays_inside(self):
        outside = os.path.join(self.folder.name, "outside")
        os.chmod(self.folder.name, 0o777)
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            listener.setblocking(False)
            port = listener.getsockname()[1]
            hostile = {
                "ends before its tests": "    return 0\nimport sys\nsys.exit(0)\n",
                "ends at once": "    return 0\nimport os\nos._exit(0)\n",
                "says that it passed": "    return 0\nimport os\nfor fd in range(64):\n    try: os.write(fd, b'passed')\n    except OSError: pass\n"
                "os._exit(0)\n",
                "never ends": "    while True: pass\n",
                "sleeps": "    import time; time.sleep(1000)\n",
                "takes memory": "    return len(bytearray(10 << 30)) and a + b\n",
                "forks without end": "    import os\n    while True: os.fork()\n",
                "writes outside": f"    open({outside!r}, 'w').write('x'); return a + b\n",
                "writes to the system": "    open('/usr/weft-was-here', 'w').write('x'); return a + b\n",
                "reads the accounts": "    open('/etc/passwd').read(); return a + b\n",
                "connects": f"    import socket; socket.create_connection(('127.0.0.1', {port}), 2); return a + b\n",
                "fills the disk": "    f = open('/tmp/x', 'wb')\n    for _ in range(64): f.write(bytes(1 << 20)); f.flush()\n    return a + b\n",
                "ends its parent": "    import os, signal; os.kill(os.getppid(), signal.SIGKILL); os.kill(1, signal.SIGKILL); return 0\n",
                "has a thousand threads": "    import threading, time\n    for _ in range(1000): threading.Thread(target=time.sleep, args=(9,)).start()\n"
                "    return a + b\n",
            }
            figures, results = judge(self.folder.name, list(hostile.values()), "-k", "1", "-j", "4", "--timeout", "4")
            for name, r in zip(hostile, results):
                with self.subTest(name):
                    self.assertFalse(r["passed"], r)
            self.assertEqual(figures["passed"], 0)
            self.assertFalse(os.path.exists(outside) or os.path.exists("/usr/weft-was-here"))
            with self.assertRaises(BlockingIOError):
                listener.accept()

    def test_files_that_cannot_be_used_are_told(self):
        p, _ = judge(self.folder.name, ["x"], problem={"task_id": "T/1", "prompt": ""})
        self.assertEqual(p.returncode, 1)
        self.assertIn("T/0", p.stderr)

    def test_without_bubblewrap_the_reason_is_told(self):
        path = os.environ["PATH"]
        try:
            os.environ["PATH"] = self.folder.name
            p, _ = judge(self.folder.name, ["x"])
        finally:
            os.environ["PATH"] = path
        self.assertEqual(p.returncode, 3)
        self.assertIn("apt-get install bubblewrap", p.stderr)


if __name__ == "__main__":
    main()
