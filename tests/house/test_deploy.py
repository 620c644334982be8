# SPDX-License-Identifier: Apache-2.0
"""Claims about deploy/: what is there is what the programs that read it take: systemd's unit and socket.

usage: test_deploy.py build/weft"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
import common
from common import needs

DEPLOY = os.path.join(ROOT, "deploy")
EXPOSURE = 20  # tenths; systemd calls up to 2.0 OK


def text_of(*names):
    with open(os.path.join(DEPLOY, *names)) as file:
        return file.read()


def tool(name):
    return needs(shutil.which(name), f"there is no {name}: scripts/setup deploy")


class Documents(unittest.TestCase):
    def test_all_is_told_of(self):
        """docs/howto/operate.md names every file of deploy/, or its folder."""
        with open(os.path.join(ROOT, "docs", "howto", "operate.md")) as file:
            document = file.read()
        for folder, _, names in os.walk(DEPLOY):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                self.assertTrue(path in document or os.path.dirname(path) + "/`" in document, path)


def expanded(words, environment):
    """As systemd does: ${NAME} is one argument, empty where it is not set; $NAME is as many as it has words."""
    out = []
    for word in words:
        if word.startswith("${"):
            out.append(environment.get(word[2:-1], ""))
        else:
            out += environment.get(word[1:], "").split() if word.startswith("$") else [word]
    return out


class Started(unittest.TestCase):
    def test_the_unit_takes_its_environment(self):
        """WEFT_MODEL may hold blanks, and may be missing where WEFT_OPTIONS says what is served."""
        line = next(x for x in text_of("systemd", "weft.service").splitlines() if x.startswith("ExecStart="))
        words = line.partition("=")[2].split()
        with tempfile.TemporaryDirectory() as folder:
            model, gone = os.path.join(folder, "a model.gguf"), os.path.join(folder, "no", "socket")
            config = os.path.join(folder, "weft.yaml")
            with open(config, "w") as file:
                file.write(f"models:\n  a: {model}\n")
            p = common.weft("bench", "--synthetic", "tiny", "--write", model)
            self.assertEqual(p.returncode, 0, p.stderr)
            for environment in ({"WEFT_MODEL": model, "WEFT_OPTIONS": f"--unix {gone}"}, {"WEFT_OPTIONS": f"--unix {gone} --models {folder}"},
                                {"WEFT_OPTIONS": f"--unix {gone} --config {config}"}, {"WEFT_MODEL": "", "WEFT_OPTIONS": f"--unix {gone} --config {config}"}):
                p = common.weft(*expanded(words[1:], environment))  # it goes as far as its socket
                self.assertEqual((p.returncode, gone.encode() in p.stderr), (1, True), (environment, p.stderr))


@tool("systemd-analyze")
class Systemd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.files = [os.path.join(folder.name, name) for name in ("weft.service", "weft.socket")]
        for path in self.files:
            with open(path, "w") as file:
                file.write(text_of("systemd", os.path.basename(path)).replace("/usr/bin/weft", common.WEFT[-1]))

    def ask(self, *args):
        p = subprocess.run(["systemd-analyze", *args], capture_output=True, text=True)
        return p.returncode, p.stdout + p.stderr

    def test_verify(self):
        """systemd knows every line of both, and finds nothing to say."""
        self.assertEqual(self.ask("verify", "--man=no", *self.files), (0, ""))
        with open(self.files[0], "a") as file:
            file.write("[Service]\nMemoryDenyWriteExec=yes\n")
        self.assertIn("MemoryDenyWriteExec", self.ask("verify", "--man=no", *self.files)[1])

    def test_exposure(self):
        """What the service may do of what it does not need comes to 2.0 at most, and memory that is written is never executed."""
        code, said = self.ask("security", "--offline=true", f"--threshold={EXPOSURE}", self.files[0])
        self.assertEqual(code, 0, said)
        self.assertIn("MemoryDenyWriteExecute=yes", text_of("systemd", "weft.service"))
        with open(self.files[0]) as file:
            open_one = file.read().replace("CapabilityBoundingSet=\n", "").replace("SystemCallFilter=", "#")
        with open(self.files[0], "w") as file:
            file.write(open_one)
        self.assertNotEqual(self.ask("security", "--offline=true", f"--threshold={EXPOSURE}", self.files[0])[0], 0)


if __name__ == "__main__":
    common.main()
