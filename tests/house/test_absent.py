# SPDX-License-Identifier: Apache-2.0
"""Without hub, server and weft.yaml their libraries are not linked, and nothing listens; what is absent says so. usage: test_absent.py [Absent | Alone]

Builds in build-bare/ (the preset `bare`), or in build-no-hub/ and build-no-server/, where the compiler cache has most of it and a second run
nearly all."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BARE = os.path.join(ROOT, "build-bare")
WEFT, LIBRARY = os.path.join(BARE, "weft"), os.path.join(BARE, "library")
PATIENCE = 1800  # seconds that end a hang
LIBRARIES = "libcurl"
CALLS = r"\b(curl_|accept4\b|epoll_wait\b)"
PROGRAM = """
#include <stdio.h>
#include <weft/server.h>
#include <weft/weft.h>
static void each(void *arg, const weft_pulled *model) { (void)arg, (void)model; }
static void say(const char *name, weft_status st, const weft_error *err)
{
    printf("%s: %s\\n", name, st == WEFT_UNSUPPORTED ? err->message : st ? "another status" : "ok");
}
int main(int argc, char **argv)
{
    weft_error err = {0};
    weft_pull_params pull;
    weft_server_params serve;
    weft_pull_result result;
    weft_server *server = NULL;
    char path[256] = "";
    uint64_t n = 0;
    weft_pull_params_default(&pull);
    weft_server_params_default(&serve);
    if (pull.size != sizeof pull || serve.size != sizeof serve || argc != 2) return 1;
    say("pull", weft_pull("fox/den", &pull, &result, &err), &err);
    say("each", weft_pulled_each(each, NULL, &err), &err);
    say("remove", weft_pulled_remove("fox/den", &n, &err), &err);
    say("resolve", weft_resolve_model("fox/den", path, sizeof path, &err), &err);
    say("file", weft_resolve_model(argv[1], path, sizeof path, &err), &err);
    say("server", weft_server_new(NULL, NULL, &serve, &server, &err), &err);
    weft_server_free(&server);
    return 0;
}
"""


def run(*command, ok=True, **more):
    p = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, **more)
    if ok and p.returncode:
        raise AssertionError(f"{command}: status {p.returncode}\n{p.stdout[-3000:]}{p.stderr[-3000:]}")
    return p


class Absent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run("cmake", "--preset", "bare")
        run("cmake", "--build", "--preset", "bare", "-j", len(os.sched_getaffinity(0)))

    def test_neither_library_is_linked(self):
        for path in (WEFT, os.path.join(LIBRARY, "libweft.so")):
            self.assertNotRegex(run("ldd", path).stdout, LIBRARIES)
            self.assertNotRegex(run("nm", "-D", "--undefined-only", path).stdout, CALLS)
        self.assertNotRegex(run("nm", "-u", os.path.join(LIBRARY, "libweft.a")).stdout, CALLS)
        with open(os.path.join(LIBRARY, "weft.pc")) as f:
            self.assertNotRegex(f.read(), "curl")

    def test_the_symbols_are_those_of_the_whole_library(self):
        names = set(run(sys.executable, "scripts/api-reference", "--functions").stdout.split())
        listing = run("nm", "-D", "--defined-only", os.path.join(LIBRARY, "libweft.so")).stdout
        self.assertEqual({line.split()[2] for line in listing.splitlines()} ^ names, set())

    def test_commands_say_what_is_absent(self):
        for command in ("pull fox/den", "list", "rm fox/den", "top", "serve x.gguf"):
            remedy = "SERVER=ON" if command.startswith("serve") else "HUB=ON, which needs libcurl"
            p = run(WEFT, *command.split(), ok=False)
            self.assertEqual((p.returncode, p.stdout), (1, ""), command)
            self.assertRegex(p.stderr, f"^weft {command.split()[0]}: .*-DWEFT_{remedy}\n$")
        said = run(WEFT, "--help").stdout
        self.assertRegex(said, "not in this build: pull, push, list, rm and top .*-DWEFT_HUB=ON")
        self.assertRegex(said, "not in this build: serve .*-DWEFT_SERVER=ON")

    def test_a_model_of_the_hub_is_refused_and_a_file_runs(self):
        p = run(WEFT, "run", "fox/den:Q4_0", "x", ok=False)
        self.assertEqual(p.returncode, 1)
        self.assertRegex(p.stderr, "fox/den:Q4_0: no such file or folder, and this build pulls no .*-DWEFT_HUB=ON")
        self.assertRegex(run(WEFT, "info", "absent.gguf", ok=False).stderr, "absent.gguf: No such file")
        self.assertNotEqual(run(WEFT, "run", "models/alderbrook.gguf", "Once", "-n", 4, "--temp", 0).stdout, "")

    def test_functions_answer_with_the_remedy(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            with open(program + ".c", "w") as f:
                f.write(PROGRAM)
            run("cc", "-Wall", "-Werror", program + ".c", "-Iinclude", "-L" + LIBRARY, "-lweft", "-o", program)
            said = run(program, "models/alderbrook.gguf", env={**os.environ, "LD_LIBRARY_PATH": LIBRARY}).stdout
        for name in ("pull", "each", "remove", "resolve"):
            self.assertRegex(said, re.compile(f"^{name}: .*this build pulls no models .*-DWEFT_HUB=ON", re.M))
        self.assertRegex(said, re.compile("^server: this build has no server .*-DWEFT_SERVER=ON", re.M))
        self.assertIn("file: ok\n", said)


class Alone(unittest.TestCase):
    """Each of hub, server, weft.yaml and the store may be left out alone: the others are there and work."""

    def built(self, option):
        folder = os.path.join(ROOT, "build-no-" + option.lower())
        run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DWEFT_TESTS=OFF", f"-DWEFT_{option}=OFF")
        run("cmake", "--build", folder, "--target", "weft", "weft_shared", "-j", len(os.sched_getaffinity(0)))
        names = set(run(sys.executable, "scripts/api-reference", "--functions").stdout.split())
        listing = run("nm", "-D", "--defined-only", os.path.join(folder, "library", "libweft.so")).stdout
        self.assertEqual({line.split()[2] for line in listing.splitlines()} ^ names, set())
        weft = os.path.join(folder, "weft")
        self.assertNotEqual(run(weft, "run", "models/alderbrook.gguf", "Once", "-n", 4, "--temp", 0).stdout, "")
        return weft

    def test_without_the_hub_it_serves(self):
        weft = self.built("HUB")
        self.assertRegex(run(weft, "pull", "fox/den", ok=False).stderr, "^weft pull: .*-DWEFT_HUB=ON")
        self.assertNotRegex(run("ldd", weft).stdout, LIBRARIES)
        with subprocess.Popen([weft, "serve", "models/alderbrook.gguf", "--port", "0"], cwd=ROOT, stderr=subprocess.PIPE, text=True) as p:
            try:
                address = re.search(r"http://[\d.:]+", p.stderr.readline()).group()
                with urllib.request.urlopen(address + "/health", timeout=PATIENCE) as answer:
                    self.assertEqual(answer.read(), b'{"status":"ok"}')
            finally:
                p.terminate()
            self.assertEqual(p.wait(PATIENCE), 0)

    def test_without_weft_yaml_it_serves(self):
        weft = self.built("CONFIG")
        for args in (("--config", "x.yaml"), ("--check",), ("--check", "--config", "README.md")):
            said = run(weft, "serve", *args, ok=False).stderr
            self.assertRegex(said, "^weft serve: (.*-DWEFT_CONFIG=ON, which needs libyaml|.*No such file or directory)\n$")
        self.assertRegex(run(weft, "--help").stdout, "not in this build: weft.yaml [^.]*\\(-DWEFT_CONFIG=ON")
        self.assertNotRegex(run("ldd", weft).stdout, "libyaml")
        self.assertRegex(run(weft, "key", "new").stdout, "^weft-")

    def test_without_yaml_it_learns_and_measures(self):
        """No stages and no task files, which say so; one training by its options, and questions of JSONL."""
        weft, model = self.built("CONFIG"), "models/alderbrook.gguf"
        needs = "this build reads no YAML .*-DWEFT_CONFIG=ON, which needs libyaml\n$"
        with tempfile.TemporaryDirectory() as folder:
            job, task, asked, out = (os.path.join(folder, name) for name in ("job.yaml", "task.yaml", "asked.jsonl", "out"))
            for path, text in ((job, "stages: {a: {command: train, data: x.txt}}\n"), (task, "output_type: generate_until\n"),
                               (asked, '{"prompt": "Where does Mira live?", "answer": "in the old mill", "completion": "in the old mill"}\n')):
                with open(path, "w", encoding="utf-8") as f:
                    f.write(text)
            self.assertRegex(run(weft, "train", "--config", job, "--out", out, ok=False).stderr, "^weft train: .*" + needs)
            self.assertFalse(os.path.exists(out))
            self.assertRegex(run(weft, "eval", "task", model, task, ok=False).stderr, "^weft eval task: .*" + needs)
            self.assertIn("exact_match", run(weft, "eval", "task", model, asked, "--chat", "-n", 8).stdout)
            run(weft, "adapter", "train", model, "--data", asked, "--out", out, "--steps", 1, "--save-every", 0)
            self.assertTrue(os.path.exists(os.path.join(out, "adapter.gguf")))

    def test_without_the_store_it_serves_and_keeps_nothing(self):
        weft = self.built("LEARN")
        with tempfile.TemporaryDirectory() as folder:
            learned = os.path.join(folder, "learned")
            said = run(weft, "serve", "models/alderbrook.gguf", "--port", "0", "--learn", learned, ok=False).stderr
            self.assertRegex(said, "-DWEFT_LEARN=ON, which needs libsqlite3")
            self.assertFalse(os.path.exists(learned))
            self.assertRegex(run(weft, "learn", "status", folder, ok=False).stderr, "-DWEFT_LEARN=ON")
        self.assertRegex(run(weft, "--help").stdout, "not in this build: learn .*-DWEFT_LEARN=ON")
        self.assertNotRegex(run("ldd", weft).stdout, "sqlite")

    def test_without_the_server_it_has_a_cache_of_models(self):
        weft = self.built("SERVER")
        self.assertRegex(run(weft, "serve", "x.gguf", ok=False).stderr, "^weft serve: .*-DWEFT_SERVER=ON")
        self.assertRegex(run("ldd", weft).stdout, LIBRARIES)
        with tempfile.TemporaryDirectory() as folder:
            p = run(weft, "list", env={**os.environ, "WEFT_CACHE": folder})
        self.assertEqual(p.returncode, 0)


if __name__ == "__main__":
    for tool in ("cmake", "ninja", "cc", "nm", "ldd"):
        if not shutil.which(tool):
            print(f"SKIP: no {tool}")
            sys.exit(77)
    unittest.main()
