# SPDX-License-Identifier: Apache-2.0
"""Claims about --provider: a plugin computes the ops that it ranks above the CPU, whatever command runs the model, and what comes out is what
came out without it. The plugin is plugins/test, which tells in its log how many nodes it ran. usage: test_provider.py build/weft"""
import json
import os
import pathlib
import re
import subprocess
import urllib.request

from common import PATIENCE, WEFT, InFolder, check_report, main, weft

MODEL, ADAPTER = "models/alderbrook.gguf", "p=models/pirate.gguf"
PLUGINS = os.path.join(os.path.dirname(WEFT[-1]), "plugins")
PLUGIN = os.path.join(PLUGINS, "weft-test.so")
LOGGING = {**os.environ, "WEFT_LOG": "debug"}


class Provider(InFolder):
    def nodes(self, err):
        """That the plugin ran."""
        check_report(err)
        told = re.findall(rb"test plugin ran (\d+) nodes", err)
        self.assertTrue(told, err)
        return sum(map(int, told))

    def both(self, *args, stdin=b"", env=LOGGING):
        """The output, which is the same with the plugin."""
        without, with_it = weft(*args, stdin=stdin, env=env), weft(*args, "--provider", PLUGIN, stdin=stdin, env=env)
        self.assertEqual((without.returncode, with_it.returncode), (0, 0), with_it.stderr)
        self.assertNotIn(b"test plugin", without.stderr)
        self.assertEqual(with_it.stdout, without.stdout)
        self.assertGreater(self.nodes(with_it.stderr), 0)
        return with_it.stdout

    def test_commands_run_its_ops(self):
        self.assertGreater(len(self.both("run", MODEL, "Once upon a time", "-n", "12", "--temp", "0", "-q")), 20)
        self.both("run", MODEL, "Once upon a time", "-n", "12", "--temp", "0", "-q", "--adapter", ADAPTER)
        self.both("chat", MODEL, "-n", "8", "--temp", "0", stdin=b"Hello!\n")
        self.both("compare", MODEL, "Hello!", "--adapter", ADAPTER, "-n", "4", "--temp", "0")
        text = self.path("text")
        with open(text, "w") as f:
            f.write("Once upon a time there was a mill by the river. " * 20)
        self.both("eval", "documents", MODEL, "-f", text, "-c", "64", "--json")
        self.both("eval", "perplexity", MODEL, "-f", text, "-c", "64", "--json")
        logits = [self.path(name) for name in ("without", "with")]
        for out, more in zip(logits, ([], ["--provider", PLUGIN])):
            self.assertEqual(weft("eval", "logits", MODEL, "--tokens", "1 403 407", "-o", out, *more).returncode, 0)
        self.assertEqual(*(pathlib.Path(out).read_bytes() for out in logits))
        p = weft("bench", MODEL, "-p", "8", "-n", "2", "-r", "1", "--provider", PLUGIN, env=LOGGING)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreater(self.nodes(p.stderr), 0)
        plan = weft("info", MODEL, "--plan", "--provider", PLUGIN)
        self.assertEqual((plan.returncode, b"test" in plan.stdout, b"test" in weft("info", MODEL, "--plan").stdout), (0, True, False))

    def test_a_server_runs_its_ops(self):
        body, told = json.dumps({"prompt": "Once upon a time", "temperature": 0, "max_tokens": 12}).encode(), []
        for more in ([], ["--provider", "weft-test"]):  # by its name
            p = subprocess.Popen(
                WEFT + ["serve", MODEL, "--port", "-1", *more],
                stderr=subprocess.PIPE,
                env={**LOGGING, "WEFT_PLUGIN_PATH": "/nowhere:" + PLUGINS},
            )
            self.addCleanup(p.kill)
            while not (found := re.search(rb"http://\S+", line := p.stderr.readline())):
                self.assertTrue(line, "it ended")
            with urllib.request.urlopen(
                urllib.request.Request(
                    found.group().decode() + "/v1/completions", body, {"Content-Type": "application/json"}
                ),
                timeout=PATIENCE,
            ) as r:
                told.append(json.load(r)["choices"])
            p.terminate()
            _, err = p.communicate(timeout=PATIENCE)
            self.assertEqual(p.returncode, 0, err)
            if more:
                self.assertGreater(self.nodes(err), 0)
            else:
                self.assertNotIn(b"test plugin", err)
        self.assertEqual(*told)

    def test_one_that_cannot_be_used_is_refused(self):
        plan = self.path("model.plan")
        self.assertEqual(weft("compile", MODEL, plan).returncode, 0)
        for model, provider, words in (
            (MODEL, "nobody", b"no nobody.so in WEFT_PLUGIN_PATH (not set)"),
            (MODEL, "./nowhere.so", b"plugin ./nowhere.so cannot be loaded"),
            (MODEL, os.path.join(PLUGINS, "weft-test-major.so"), b"it was built for plugin ABI"),
            (MODEL, os.path.join(PLUGINS, "weft-test-abi1.so"), b"it was built for plugin ABI 1.6, this core has 2."),
            (MODEL, MODEL, b"cannot be loaded"),
            (plan, PLUGIN, b"a compiled plan is packed for the CPU alone; give the model that it was made from"),
        ):
            p = weft("run", model, "x", "-n", "1", "--provider", provider, env={k: v for k, v in os.environ.items() if k != "WEFT_PLUGIN_PATH"})
            self.assertEqual((p.returncode, p.stdout), (1, b""), p.stderr)
            self.assertIn(words, p.stderr)
        self.assertEqual(weft("run", plan, "x", "-n", "1", "--provider", "cpu").returncode, 0)


if __name__ == "__main__":
    main()
