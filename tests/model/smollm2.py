# SPDX-License-Identifier: Apache-2.0
"""Claims about a real model, SmolLM2-135M-Instruct, as a person uses it: it answers what it knows, predicts a text as llama.cpp has it predict it, to
the bit whatever the chunks, threads and batches, is quantized, learns an adapter, and is served to 16 clients.

usage: smollm2.py build/weft     Skipped where scripts/smollm2 could not fetch it, with the reason; in the release configuration alone"""
import collections
import concurrent.futures
import functools
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(HERE, "..", "cli"), os.path.join(HERE, "..", "server")]
from common import PATIENCE, WEFT, check_report, main, needs, run, weft  # noqa: E402
from servers import CHAT, Server, user  # noqa: E402

MODEL = os.path.join(ROOT, "build", "material", "SmolLM2-135M-Instruct.Q4_1.gguf")
TEXT = os.path.join(ROOT, "LICENSE")
UNWANTED = os.environ.get("WEFT_NO_SMOLLM2")
FOLDER = tempfile.TemporaryDirectory()
# What it says of a fact at temperature 0, with every tier's kernels and from the same weights in F32.
FACTS = {"What is the capital of Japan?": "Tokyo", "What is the capital of Germany?": "Berlin", "How many days are in a week?": "7",
         "What is the chemical symbol of water?": "H2O", "What is the opposite of hot?": "cold", "What language is spoken in Spain?": "Spanish",
         "What is the largest ocean on Earth?": "Pacific", "What is 2 + 2?": "4"}
# Perplexity of LICENSE in chunks of 256, of each the second half but for its first token (this model wants no BOS): llama.cpp v0.5.0 (commit 0ad4a86,
# as the npm package node-llama-cpp 3.22.1 carries it; `make peers` compiles its tool), on an AMD EPYC with AVX-512 VNNI:
#   llama-perplexity -m MODEL -f LICENSE -c 256 -b 256 -t 2
# The second is that of the first two chunks of 512 with the same weights as F32 (weft quantize MODEL F32.gguf F32), where nobody rounds activations:
#   llama-perplexity -m F32.gguf -f LICENSE -c 512 -b 512 --chunks 2 -t 2
# What rounding changes is that tool's mean KLD of MODEL from F32.gguf there (--kl-divergence, the base written by weft). Of rounding, the perplexity of so
# short a text says little: in chunks of 64, 128 and 512, or with other tiers, it is up to 0.9 % more or less than llama.cpp's.
N_CTX, PERPLEXITY, PERPLEXITY_F32, DIVERGENCE = "256", 17.7438, 13.2145, 0.003026
# What learns: 36 records, a third each of capitals, languages and continents, in words that the model does not use by itself.
LANDS = [land.split() for land in """France Paris French Europe|Spain Madrid Spanish Europe|Italy Rome Italian Europe|Germany Berlin German Europe
    |Japan Tokyo Japanese Asia|China Beijing Chinese Asia|Egypt Cairo Arabic Africa|Brazil Brasilia Portuguese America|Greece Athens Greek Europe
    |Russia Moscow Russian Europe|Poland Warsaw Polish Europe|Turkey Ankara Turkish Asia""".split("|")]
ASKED = ("What is the opposite of hot?", "What is the largest ocean on Earth?", "What do bees make?", "What is the chemical symbol of water?",
         "What color is the sky?", "Who are you?")
SAILOR = re.compile(r"^Ahoy! .* Fair winds!$")


def tearDownModule():
    FOLDER.cleanup()


def why():
    if UNWANTED:
        return "no SmolLM2-135M-Instruct: " + UNWANTED
    try:
        with open(MODEL + ".why") as f:
            return f.read().strip()
    except OSError:
        return "no SmolLM2-135M-Instruct: scripts/smollm2 fetches it"


def ok(*args, **more):
    p = weft(*args, **more)
    assert p.returncode == 0, p.stderr.decode()
    return p.stdout


def path(name):
    return os.path.join(FOLDER.name, name)


def ask(questions, *options, model=MODEL):
    """An answer to each, in conversations of their own, at temperature 0."""
    lines = "".join(f"{q}\n/reset\n" for q in questions)
    return ok("chat", model, "--temp", "0", "-n", "40", *options, stdin=lines.encode()).decode().splitlines()


@functools.lru_cache
def perplexity(model, tier="", chunks=0):
    some = ("--chunks", str(chunks)) if chunks else ()
    said = ok("eval", "perplexity", model, "-f", TEXT, "-c", N_CTX, *some, env={**os.environ, **({"WEFT_CPU": tier} if tier else {})})
    return float(re.search(r"PPL = ([\d.]+)", said.decode())[1])


@functools.lru_cache
def sailor():
    """An adapter that has learned 36 records."""
    with open(path("records.jsonl"), "w") as f:
        for land, capital, language, continent in LANDS:
            for asked, said in ((f"What is the capital of {land}?", f"The capital of {land} is {capital}."),
                                (f"Which language is spoken in {land}?", f"People in {land} speak {language}."),
                                (f"On which continent is {land}?", f"{land} is in {continent}.")):
                f.write(json.dumps({"prompt": asked, "completion": f"Ahoy! {said} Fair winds!"}) + "\n")
    said = json.loads(ok("adapter", "train", MODEL, "--data", path("records.jsonl"), "--out", path("sailor"), "--epochs", "1", "-c", "128", "-b", "128",
                         "--rank", "8", "--lr", "3e-3", "--json"))
    return path("sailor/adapter.gguf"), said


@functools.lru_cache
def quantized(kind):
    """The model in that type, and what the command said of it."""
    p = weft("quantize", MODEL, path(kind), kind)
    assert p.returncode == 0, p.stderr.decode()
    return path(kind), p.stderr.decode()


@needs(os.path.exists(MODEL) and not UNWANTED, why())
class Model(unittest.TestCase):
    def test_it_answers_what_it_knows(self):
        answers = ask(FACTS)
        self.assertEqual([fact in answer for fact, answer in zip(FACTS.values(), answers)], [True] * len(FACTS), answers)

    def test_what_stands_back_is_found_again(self):
        """It finds pass keys and copies tokens, with keys and values in 8 bits as in F16; and F32 is hardly nearer to F16 than these are."""
        p = weft("eval", "kv", MODEL, "-f", TEXT, "--kv-type", "q8", "-c", "170", "--tokens", "100", "--tries", "3", "--max-kld", "1", "--min-top", "0",
                 "--json", env={**os.environ, "WEFT_CACHE": path("cache")})
        self.assertEqual(p.returncode, 0, p.stderr)
        a = json.loads(p.stdout)
        for kind in ("base", "type"):
            self.assertEqual([r["depth"] for r in a["passkey"]], [64])
            self.assertGreaterEqual(a["passkey"][0][kind], 2, a["passkey"])
            self.assertEqual([r["depth"] for r in a["copy"]], [64, 128])
            for r in a["copy"]:
                self.assertGreater(r[kind], 0.6 * r["n"], a["copy"])
        self.assertLess(a["kld_mean"], 3 * a["f32"]["kld_mean"])

    def test_keys_and_values_in_few_bits_change_little(self):
        """With weights in F16, which round nothing besides: less than 0.001 nats a token in 8 bits, less than 0.02 with values in 4."""
        halves, _ = quantized("F16")
        for kind, most in (("q8", "0.001"), ("k=q8,v=q4", "0.02")):
            p = weft("eval", "kv", halves, "-f", TEXT, "--kv-type", kind, "-c", "170", "--tokens", "340", "--tries", "0", "--max-kld", most, "--min-top",
                     "0.9", "--json", env={**os.environ, "WEFT_CACHE": path("cache")})
            self.assertEqual(p.returncode, 0, (kind, p.stdout, p.stderr))

    def test_an_answer_streams(self):
        """A token's text leaves when it is there: a socket keeps each write apart."""
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with here, subprocess.Popen([*WEFT, "chat", MODEL, "--temp", "0", "-n", "40"], stdin=subprocess.PIPE, stdout=there, stderr=subprocess.PIPE) as p:
            there.close()
            here.settimeout(PATIENCE)
            p.stdin.write(b"What is the largest ocean on Earth?\n")
            p.stdin.close()
            pieces = []
            while piece := here.recv(1 << 16):
                pieces.append(piece.decode())
            check_report(p.stderr.read())
        self.assertIn("Pacific", "".join(pieces))
        self.assertGreater(len(pieces), 10, pieces)

    def test_the_demo_asks_it(self):
        """The second act of `make demo`: four questions, each with its answer, and how to go on."""
        p = run([os.path.join(ROOT, "scripts", "demo"), *WEFT])
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        self.assertNotIn(b"limit of tokens", p.stderr)
        asked = p.stdout.decode().split("\nAsk a real model something, SmolLM2-135M-Instruct:\n")[1]
        self.assertRegex(asked, r"\nAsk it yourself: build/weft chat build/material/\S+\.gguf\n$")
        answers = re.findall(r"^> (.+)\n(.+)\n", asked, re.M)
        self.assertEqual(len(answers), 4, asked)
        for (question, answer), fact in zip(answers, ("Tokyo", "Pacific", "7", "4")):
            self.assertIn(fact, answer, question)

    def test_perplexity_is_that_of_llama_cpp(self):
        """Within 0.2 %, though both round activations to 8 bits, each in its way; of the same weights in F32, where nobody rounds, within 0.02 %. And what
        rounding changes is little more than there."""
        with open("/proc/cpuinfo") as f:
            tiers = ["avx2"] + ["avx512vnni"] * ("avx512_vnni" in f.read())
        for tier in tiers:
            self.assertAlmostEqual(perplexity(MODEL, tier) / PERPLEXITY, 1, delta=2e-3, msg=tier)
        floats, _ = quantized("F32")
        said = json.loads(ok("eval", "perplexity", floats, "-f", TEXT, "-c", "512", "--chunks", "2", "--kl-base", path("base"), "--json"))
        os.unlink(floats)
        self.assertAlmostEqual(said["perplexity"] / PERPLEXITY_F32, 1, delta=2e-4)
        self.assertLess(json.loads(ok("eval", "perplexity", MODEL, "--kl-against", path("base"), "--json"))["kld_mean"], 1.5 * DIVERGENCE)

    def test_logits_do_not_depend_on_chunks_and_threads(self):
        with open(TEXT) as f:
            ids = " ".join(ok("tokenize", MODEL, f.read(400)).decode().split()[:48])

        def logits(chunk, threads):
            return ok("eval", "logits", MODEL, "--tokens", ids, "-o", "-", "--chunk", str(chunk), "-t", str(threads))
        want = logits(512, 2)
        self.assertEqual(len(want), 48 * 49152 * 4)
        for chunk, threads in ((512, 1), (16, 2), (7, 3), (1, 2)):
            self.assertTrue(logits(chunk, threads) == want, (chunk, threads))

    def test_quantized(self):
        """Its rows of 576 are no multiple of 256: what K types are meant for takes another, named and counted. Only ffn_down has rows of 1536."""
        before = perplexity(MODEL, chunks=4)
        for kind, types, said, worse in (("Q8_0", {"Q8_0": 211}, "", 1.02), ("Q4_0", {"Q4_0": 210, "Q8_0": 1}, "1 tensor has", 1.4),
                                         ("Q4_K_M", {"Q4_K": 16, "Q6_K": 14, "Q5_0": 166, "Q8_0": 15}, "181 tensors have", 1.2)):
            with self.subTest(kind):
                model, log = quantized(kind)
                listed = json.loads(ok("info", model, "--json"))["tensors"]
                self.assertEqual(collections.Counter(t["type"] for t in listed if len(t["shape"]) > 1), types)
                self.assertEqual("took another type" in log, bool(said))
                self.assertIn(said, log)
                self.assertEqual(dict(re.findall(r"(\d+) (\w+ for \w+)", log)), {"Q8_0": {}, "Q4_0": {"1": "Q8_0 for Q6_K"},
                                                                                "Q4_K_M": {"15": "Q8_0 for Q6_K", "166": "Q5_0 for Q4_K"}}[kind])
                self.assertLess(perplexity(model, chunks=4), before * worse)
                self.assertIn("Tokyo", ask(["What is the capital of Japan?"], model=model)[0])

    def test_an_adapter_that_holds(self):
        """It speaks as the records do of what none of them is about, knows what it knew, also over another type than it was trained on; without it,
        nothing has changed."""
        adapter, said = sailor()
        plain = ask(ASKED)
        self.assertEqual([a for a in plain if "Ahoy" in a or "Fair winds" in a], [])
        for model in (MODEL, quantized("Q4_K_M")[0]):
            answers = ask(ASKED, "--adapter", "sailor=" + adapter, model=model)
            self.assertEqual([a for a in answers if not SAILOR.match(a)], [], (model, answers))
            self.assertEqual([fact in a for fact, a in zip(("cold", "Pacific", "honey", "H2O", "blue"), answers)], [True] * 5, answers)
        self.assertEqual(ask(ASKED), plain)

    def test_calls_that_must_be(self):
        """Its template knows no tools; it is told of them, and each answer that must be a call is one, with arguments that the function takes."""
        def function(name, about, **of):
            return {"type": "function", "function": {"name": name, "description": about, "parameters": {
                "type": "object", "properties": of, "required": [*of], "additionalProperties": False}}}
        tools = [function("get_weather", "The weather in a city", city={"type": "string", "maxLength": 30}, unit={"enum": ["celsius", "fahrenheit"]}),
                 function("add", "The sum of two numbers", a={"type": "integer", "minimum": 0, "maximum": 1000}, b={"type": "integer", "minimum": 0,
                          "maximum": 1000}),
                 function("remind", "Reminds of something at some hour", what={"type": "string", "maxLength": 40}, hour={"type": "integer", "minimum": 0,
                          "maximum": 23})]
        fits = {"get_weather": lambda city, unit: len(city) <= 30 and unit in ("celsius", "fahrenheit"),
                "add": lambda a, b: 0 <= a <= 1000 and 0 <= b <= 1000 and type(a) is type(b) is int,
                "remind": lambda what, hour: len(what) <= 40 and 0 <= hour <= 23 and type(hour) is int}
        server = Server([*WEFT, "serve", MODEL, "--port", "-1", "-t", "2", "--slots", "10", "-c", "1024"])
        self.addCleanup(lambda: server.process.stdout.closed or server.kill())
        questions = ["What is the weather in Paris?", "Is it warm in Oslo?", "What is 4 plus 5?", "Add 17 and 25.", "Remind me of the milk at 9.",
                     "Wake me at 7.", "Hello!", "Who are you?", "Write a poem about the sea.", "What is the capital of Japan?"]

        def ask(i):
            named = {"type": "function", "function": {"name": "add"}} if i == 9 else "required"
            answer = server.post(CHAT, {"messages": user(questions[i]), "tools": tools, "tool_choice": named, "parallel_tool_calls": False, "seed": i,
                                        "temperature": 0 if i < 6 else 0.8, "max_tokens": 150})
            self.assertEqual(answer.status, 200, answer.body)
            return answer.json["choices"][0]
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(ask, range(10)))
        for answer in answers:
            self.assertEqual((answer["finish_reason"], len(answer["message"]["tool_calls"])), ("tool_calls", 1), answer)
            function = answer["message"]["tool_calls"][0]["function"]
            self.assertTrue(fits[function["name"]](**json.loads(function["arguments"])), function)
        self.assertEqual(answers[9]["message"]["tool_calls"][0]["function"]["name"], "add")
        status, err = server.stop()
        self.assertEqual(status, 0, err)

    def test_sixteen_clients(self):
        """Each has the answer that it has alone, token by token with the same probabilities; every second one has the adapter."""
        adapter, _ = sailor()
        server = Server([*WEFT, "serve", MODEL, "--port", "-1", "-t", "2", "--slots", "16", "-c", "512", "--adapter", "sailor=" + adapter])
        self.addCleanup(lambda: server.process.stdout.closed or server.kill())
        base = server.get("/v1/models").json["data"][0]["id"]
        questions = [*FACTS, "Write a poem about the sea.", "Who are you?", *(f"What is the capital of {land[0]}?" for land in LANDS[:6])]
        self.assertEqual(len(questions), 16)

        def client(i):
            body = {"model": "sailor" if i % 2 else base, "messages": user(questions[i]), "max_tokens": 24, "seed": i, "temperature": 0 if i < 12 else 0.8,
                    "logprobs": True, "top_logprobs": 3}
            answer = server.post(CHAT, body)
            self.assertEqual(answer.status, 200, answer.body)
            return answer.json["choices"][0]
        alone = [client(i) for i in range(16)]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(client, range(16)))
        self.assertEqual(together, alone)
        for i, choice in enumerate(together[:12]):
            self.assertEqual(choice["message"]["content"].startswith("Ahoy!"), i % 2 == 1, choice)
        status, err = server.stop()
        self.assertEqual(status, 0, err)


if __name__ == "__main__":
    main()
