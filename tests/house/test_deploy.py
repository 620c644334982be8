# SPDX-License-Identifier: Apache-2.0
"""Claims about deploy/: what is there is what the programs that read it take: systemd's unit and socket.

usage: test_deploy.py build/weft"""
import os
import re
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


class Container(unittest.TestCase):
    """The image is built of what scripts/setup installs for a build, and has the libraries of it; what does not build is no skip."""

    def test_packages(self):
        stages = [words.split() for words in re.findall(r"--no-install-recommends((?:\s|\\|[\w.+-])+)&&", text_of("container", "Containerfile"))]
        build, run = (sorted(word for word in words if word != "\\") for words in stages)
        with open(os.path.join(ROOT, "scripts", "setup")) as file:
            wanted = sorted(re.search(r'^build="([^"]*)"', file.read(), re.M).group(1).split())
        self.assertEqual(build, wanted)
        stems = [re.sub(r"(28)?-dev$", "", word) for word in build if word.endswith("-dev") and word != "libc6-dev"]
        for stem in stems:  # libyaml-dev: libyaml-0-2; libcurl4-gnutls-dev: libcurl3-gnutls
            form = re.sub(r"\d+", r"\\d+", stem) + r"[\d-]*"
            self.assertTrue([word for word in run if re.fullmatch(form, word)], (stem, run))
        self.assertEqual(len(run), len(stems) + 1, run)  # and ca-certificates

    def image(self, fails):
        """scripts/image before a buildah that fails at this word: its exit status, and what it said."""
        with tempfile.TemporaryDirectory() as folder:
            for path in ("scripts/image", "tests/house/roots.sh", "deploy/container/Containerfile"):
                os.makedirs(os.path.join(folder, os.path.dirname(path)), exist_ok=True)
                shutil.copy(os.path.join(ROOT, path), os.path.join(folder, path))
            programs = {"scripts/debian_mirror.sh": "debian_mirror() { echo http://127.0.0.1/debian; }", "bin/id": "#!/bin/sh\necho 0",
                        "bin/debootstrap": "#!/bin/sh", "bin/buildah": '#!/bin/sh\nfor word; do [ "$word" != "$FAILS" ] || exit 3; done\n'
                        'case "$*" in *push*) : >build-image/weft.oci.tar ;; *) echo word ;; esac'}
            for name, text in programs.items():
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text + "\n")
                os.chmod(file.name, 0o755)
            p = subprocess.run(["scripts/image"], cwd=folder, capture_output=True, text=True,
                               env={"PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"], "FAILS": fails, "WEFT_BASE": "base"})
            return p.returncode, p.stdout + p.stderr

    def test_what_does_not_build_fails(self):
        self.assertEqual(self.image("none")[0], 0, self.image("none"))
        for word, status in (("bud", 1), ("push", 1), ("from", 77), ("update", 77)):
            code, said = self.image(word)
            self.assertEqual(code, status, (word, said))
            self.assertIn("skipped" if status == 77 else "FAILED", said)


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
