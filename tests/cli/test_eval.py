# SPDX-License-Identifier: Apache-2.0
"""Claims about weft eval kv: what a type of keys and values costs is measured, by depth, drawn, held against a gate, and kept, so that
weft serve warns. usage: test_eval.py build/weft"""
import json
import os
import re
import signal
import subprocess
import unittest
import urllib.request
import xml.etree.ElementTree

from common import PATIENCE, WEFT, InFolder, check_report, main, weft

MODEL = os.path.join("models", "alderbrook.gguf")


class Kv(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.path("text"), "w", encoding="utf-8") as f:
            f.write("Once upon a time there was a village with a mill, and a cat who lived in it. " * 12)

    def kv(self, *args, status=0, cache="cache"):
        p = weft("eval", "kv", MODEL, "-f", self.path("text"), *args, env={**os.environ, "WEFT_CACHE": self.path(cache)})
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def json(self, *args, **more):
        return json.loads(self.kv("--json", *args, **more).stdout)

    def test_f16_is_nothing_from_f16_and_f32_hardly(self):
        same = self.json("--kv-type", "f16", "-c", "128", "--tries", "0")
        self.assertEqual((same["kld_max"] < 1e-12, same["same_top"], same["passed"]), (True, 1, True))
        a = self.json("--kv-type", "f32", "-c", "128", "--tries", "0")
        self.assertEqual((a["kv_type"], a["base"], a["n_ctx"], a["passed"]), ("f32", "f16", 128, True))
        self.assertTrue(0 < a["kld_mean"] <= a["kld_p999"] <= a["kld_max"] < 0.1, a)
        self.assertGreater(a["same_top"], 0.95)
        self.assertEqual([d["from"] for d in a["by_depth"]], [0, 64])
        self.assertEqual(sum(d["tokens"] for d in a["by_depth"]), a["tokens"])
        self.assertAlmostEqual(sum(d["tokens"] * d["kld_mean"] for d in a["by_depth"]) / a["tokens"], a["kld_mean"], delta=1e-8)
        self.assertNotIn("f32", a)
        q8 = self.json("--kv-type", "q8", "-c", "128", "--tries", "0", "--max-kld", "1", "--min-top", "0")
        self.assertEqual((q8["f32"]["kld_mean"], q8["f32"]["same_top"], q8["f32"]["tokens"]), (a["kld_mean"], a["same_top"], a["tokens"]))
        self.assertGreater(q8["kld_mean"], a["kld_mean"])
        self.assertEqual(same["f32"]["kld_mean"], a["kld_mean"])
        few = self.json("--kv-type", "f32", "-c", "128", "--tries", "0", "--tokens", "100")
        self.assertEqual((few["n_texts"], len(few["by_depth"])), (1, 2))
        self.assertLessEqual(few["tokens"], 101)

    def test_what_is_found_again_is_counted_for_both_types(self):
        a = self.json("--kv-type", "f32", "-c", "300", "--tries", "2", "--tokens", "200")
        self.assertEqual([r["depth"] for r in a["copy"]], [64, 128, 256])
        self.assertEqual([r["n"] for r in a["copy"]], [56, 64, 35])  # 8 are the cue; the last is as long as the context allows
        self.assertEqual([(r["depth"], r["n"]) for r in a["passkey"]], [(64, 2), (128, 2)])
        for r in a["copy"] + a["passkey"]:
            self.assertTrue(0 <= r["base"] <= r["n"] and 0 <= r["type"] <= r["n"], r)
            self.assertLessEqual(abs(r["base"] - r["type"]), 2, r)
        self.assertEqual(a["copy"], self.json("--kv-type", "f32", "-c", "300", "--tries", "2", "--tokens", "200")["copy"])
        text = self.kv("--kv-type", "f32", "-c", "300", "--tries", "2", "--tokens", "200").stdout.decode()
        for words in ("f32 against f16", "Mean    KLD", "pass keys found", "tokens copied", "The gate is kept."):
            self.assertIn(words, text)

    def test_the_picture(self):
        self.kv("--kv-type", "f32", "-c", "300", "--tries", "1", "--svg", self.path("kv.svg"))
        root = xml.etree.ElementTree.parse(self.path("kv.svg")).getroot()
        said = " ".join(t.text for t in root.iter("{http://www.w3.org/2000/svg}text"))
        self.assertIn("keys and values in f32 against f16", said)
        lines = [p.get("d") for p in root.iter("{http://www.w3.org/2000/svg}path") if "L" in p.get("d")]
        self.assertEqual(len(lines), 6)  # mean and 99.9 %; two tests of two types
        for x, y in re.findall(r"([\d.]+) ([\d.]+)", " ".join(lines)):
            self.assertTrue(0 <= float(x) <= 860 and 0 <= float(y) <= 560, (x, y))

    def test_a_gate_that_is_exceeded_is_told_and_kept_and_warned_of(self):
        args = ("--kv-type", "f32", "-c", "64", "--tries", "0", "--tokens", "64")
        self.assertIn(b"further from f16 than the gate allows", self.kv(*args, "--max-kld", "0", status=1).stderr)
        with open(self.path("cache/kv-gates.json"), encoding="utf-8") as f:
            (key, kept), = json.load(f).items()
        self.assertRegex(key, "^[0-9a-f]{32} f32$")
        self.assertEqual((kept["exceeded"], kept["max_kld"], kept["tokens"]), (True, 0, 66))  # with BOS in both contexts
        self.assertIn("keys and values in f32 were measured on this model", self.serve("--kv-type", "f32"))
        self.assertNotIn("measured", self.serve("--kv-type", "f16"))
        # One that a request has loaded later is warned of by its name then.
        said = self.serve("--kv-type", "f32", "--model", "later=" + os.path.abspath(MODEL), asked="later")
        self.assertRegex(said, r"weft serve: keys and values in f32 were measured on this model")
        self.assertRegex(said, r"weft serve: later: keys and values in f32 were measured on this model")
        self.kv(*args)  # measured again, with a gate that is kept
        self.assertNotIn("measured", self.serve("--kv-type", "f32"))

    def serve(self, *args, asked=None):
        """What the server says until it answers; and then, of a model that it is asked for."""
        p = subprocess.Popen([*WEFT, "serve", MODEL, "--port", "-1", "-c", "64", "--slots", "1", *args], stderr=subprocess.PIPE,
                             env={**os.environ, "WEFT_CACHE": self.path("cache")})
        try:
            said = b""
            for line in p.stderr:
                said += line
                if b"stop with Ctrl-C" in line:
                    break
            if asked:
                url = re.search(rb"http://[^\s/]+", said).group().decode()
                body = json.dumps({"model": asked, "prompt": "a", "max_tokens": 1}).encode()
                urllib.request.urlopen(urllib.request.Request(url + "/v1/completions", body), timeout=PATIENCE).read()
        finally:
            p.send_signal(signal.SIGTERM)
            rest = p.communicate(timeout=PATIENCE)[1]
        check_report(said + rest)
        self.assertEqual(p.returncode, 0, said)
        return (said + rest).decode()

    def test_what_is_wrong_is_named(self):
        for args, status, says in (
            (("--kv-type", "f32", "-c", "100000"), 1, b"trained for"),
            (("--kv-type", "q9"), 2, b"--kv-type"),
            ((), 2, b"--kv-type TYPE is missing"),
            (("--kv-type", "f32", "--svg", self.path("no/kv.svg")), 1, b"no/kv.svg"),
            (("--kv-type", "f32", "--min-top", "101"), 2, b"--min-top"),
        ):
            self.assertIn(says, self.kv(*args, status=status).stderr, args)
        p = weft("eval", "kv", MODEL, "-f", self.path("none"), "--kv-type", "f32")
        self.assertEqual((p.returncode, b"none" in p.stderr), (1, True))
        p = weft("eval", "kv", MODEL, "-f", os.devnull, "--kv-type", "f32")
        self.assertEqual((p.returncode, b"two at least" in p.stderr), (1, True))


class Adapters(InFolder):
    """What adapters do to a text and make a model forget."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with open(cls.path("a"), "w", encoding="utf-8") as f:
            f.write("Once upon a time there was a cat. " * 30)
        with open(cls.path("b"), "w", encoding="utf-8") as f:
            f.write("The mill stands by the river.<|endoftext|>\nThe baker is out.<|endoftext|>\n")

    def run_json(self, *args):
        p = weft("eval", *args, "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    PIRATE = ("--adapter", "pirate=" + os.path.join("models", "pirate.gguf"))

    def test_texts_have_a_number_each_and_all_of_them_one(self):
        both = self.run_json("documents", MODEL, "-f", self.path("a"), "-f", self.path("b"))
        each = [self.run_json("documents", MODEL, "-f", self.path(name)) for name in "ab"]
        for whole, one, name in zip(both["texts"], each, "ab"):
            self.assertEqual(whole, {"file": self.path(name), **one})
        self.assertEqual(both["documents"], 3)
        self.assertEqual(both["tokens"], sum(e["tokens"] for e in each))
        self.assertAlmostEqual(both["nll"], sum(e["tokens"] * e["nll"] for e in each) / both["tokens"], delta=1e-5)
        text = weft("eval", "documents", MODEL, "-f", self.path("a"), "-f", self.path("b")).stdout.decode()
        self.assertRegex(text, r"a +1 documents, +\d+ tokens: PPL = .*\n.*b +2 documents, +\d+ tokens: PPL = .*\nFinal estimate: PPL")
        p = weft("eval", "documents", MODEL, "-f", self.path("a"), "-f", self.path("none"))
        self.assertEqual((p.returncode, b"none: No such file" in p.stderr), (1, True))

    def test_adapters_count(self):
        plain = self.run_json("documents", MODEL, "-f", self.path("a"))
        changed = self.run_json("documents", MODEL, "-f", self.path("a"), *self.PIRATE)
        self.assertNotEqual(plain["nll"], changed["nll"])
        nothing = self.run_json("documents", MODEL, "-f", self.path("a"), "--adapter", self.PIRATE[1] + ":0")
        self.assertEqual(plain, nothing)
        ppl = [self.run_json("perplexity", MODEL, "-f", self.path("a"), "-c", "64", *more)["perplexity"] for more in ((), self.PIRATE)]
        self.assertNotEqual(*ppl)

    def test_forgetting_is_the_divergence_from_the_model_alone(self):
        args = ("perplexity", MODEL, "-f", self.path("a"), "-c", "64")
        direct = self.run_json(*args, *self.PIRATE, "--against-alone")
        base = self.path("base")
        self.run_json(*args, "--kl-base", base)
        filed = self.run_json("perplexity", MODEL, "--kl-against", base, *self.PIRATE)
        self.assertGreater(direct["kld_mean"], 1e-3)
        for name, delta in (("kld_mean", 1e-3), ("perplexity", 1e-6), ("same_top", 1e-9)):  # a file rounds, and clips
            self.assertAlmostEqual(direct[name], filed[name], delta=delta * max(1, filed[name]), msg=name)
        half = self.run_json(*args, "--adapter", self.PIRATE[1] + ":0.5", "--against-alone")
        self.assertLess(half["kld_mean"], direct["kld_mean"])
        none = self.run_json(*args, "--adapter", self.PIRATE[1] + ":0", "--against-alone")
        self.assertLess(abs(none["kld_mean"]), 1e-12)
        for wrong in ((), ("--kl-base", base, *self.PIRATE)):
            p = weft("eval", *args, "--against-alone", *wrong)
            self.assertEqual((p.returncode, b"--against-alone" in p.stderr), (2, True))


class Shift(InFolder):
    """A text whose context is full stops, or goes on and says so."""
    def run_json(self, *args):
        p = weft("run", MODEL, "Once upon a time", "--temp", "0", "--ignore-eos", "-c", "96", "-n", "200", "--json", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_run(self):
        plain = self.run_json()
        self.assertEqual((len(plain["tokens"]) < 96, plain["finish_reason"], plain["dropped_tokens"]), (True, "length", 0))
        self.assertEqual(self.run_json("--overflow", "stop")["tokens"], plain["tokens"])
        gone_on = self.run_json("--overflow", "shift")
        self.assertEqual((len(gone_on["tokens"]), gone_on["finish_reason"]), (200, "length"))
        shared = len(plain["tokens"]) - 1  # the last one is there without a place to be evaluated at
        self.assertEqual(gone_on["tokens"][:shared], plain["tokens"][:shared])
        self.assertEqual(gone_on["dropped_tokens"] % 46, 0)  # 92 beside the sinks, half of which go
        self.assertGreater(gone_on["dropped_tokens"], 100)
        self.assertNotEqual(gone_on["tokens"], self.run_json("--overflow", "shift", "--keep", "40")["tokens"])

    def test_run_says_it(self):
        p = weft("run", MODEL, "Once upon a time", "--temp", "0", "--ignore-eos", "-c", "64", "-n", "100", "--overflow", "shift")
        self.assertRegex(p.stderr.decode(), r"the context of 64 tokens was full: \d+ of the text were left out")
        p = weft("run", MODEL, "x", "-c", "64", "--overflow", "shift", "--keep", "33")
        self.assertEqual((p.returncode, b"first 33 tokens" in p.stderr), (1, True))
        p = weft("run", MODEL, "x", "--overflow", "jump")
        self.assertEqual((p.returncode, b"--overflow" in p.stderr), (2, True))

    def test_a_conversation_goes_on(self):
        """Beyond the context, of the prompt and of answers; without it, it ends there."""
        said = b"".join(b"Tell me about the mill and the river, and who lives there.\n" for _ in range(6))
        args = ("chat", MODEL, "--temp", "0", "-c", "128", "-n", "60")
        p = weft(*args, stdin=said)
        self.assertEqual((p.returncode, b"context's 128" in p.stderr or b"do not fit" in p.stderr), (1, True), p.stderr)
        p = weft(*args, "--overflow", "shift", stdin=said)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreater(p.stderr.count(b"tokens of the conversation were left out]"), 1)


if __name__ == "__main__":
    main()
