# SPDX-License-Identifier: Apache-2.0
"""The llama.cpp endpoints as scripts call them: curl against the real program.

usage: test_curl.py build/weft"""
import filecmp
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import real
from servers import PATIENCE, ROOT

if not shutil.which("curl"):
    print("skipped: there is no curl; scripts/setup test installs it")
    sys.exit(77)

STORY = "Once upon a time there was a little girl named Lily. She liked to play in the park with her mom and her big red ball. "


class Curl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.key = "curl-0123456789"
        cls.server = real.serve("--store", os.path.join(cls.folder.name, "store"), "--slots", 4, "--api-key", cls.key,
                                "--chat-template", real.write_template(cls.folder.name))

    @classmethod
    def tearDownClass(cls):
        real.checked_stop(cls.server)
        cls.folder.cleanup()

    def curl(self, path, body=None, status=200, key=True, more=()):
        command = ["curl", "-sS", "--max-time", str(PATIENCE), "-w", "\n%{http_code}", self.server.address + path, *more]
        if key:
            command += ["-H", "Authorization: Bearer " + self.key]
        if body is not None:
            command += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        p = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(p.returncode, 0, p.stderr)
        text, code = p.stdout.rsplit("\n", 1)
        self.assertEqual(int(code), status, text)
        return text

    def json(self, *args, **more):
        return json.loads(self.curl(*args, **more))

    def events(self, body):
        lines = self.curl("/completion", {**body, "stream": True}, more=["-N"]).split("\n")
        return [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    def test_health_props_metrics(self):
        self.assertEqual(self.json("/health", key=False), {"status": "ok"})
        self.curl("/props", key=False, status=401)
        props = self.json("/props")
        self.assertEqual(props["total_slots"], 4)
        self.assertIn("raise_exception", props["chat_template"])
        self.assertGreater(props["default_generation_settings"]["n_ctx"], 0)
        before = self.json("/completion", {"prompt": "Lily", "n_predict": 4, "temperature": 0})
        self.assertEqual(before["tokens_predicted"], 4)
        self.assertRegex(self.curl("/metrics"), r"(?m)^llamacpp:tokens_predicted_total [1-9]")

    def test_completion(self):
        body = {"prompt": "Once upon a time", "n_predict": 20, "temperature": 0, "seed": 1}
        a = self.json("/completion", {**body, "return_tokens": True, "n_probs": 3})
        self.assertIn("there was", a["content"])
        self.assertEqual((a["stop"], a["stop_type"], a["tokens_predicted"], len(a["tokens"])), (True, "limit", 20, 20))
        self.assertEqual([p["id"] for p in a["completion_probabilities"]], a["tokens"])
        for p in a["completion_probabilities"]:  # greedy: the likeliest is the one
            self.assertEqual(p["top_logprobs"][0]["id"], p["id"])
            self.assertEqual(len(p["top_logprobs"]), 3)
        self.assertTrue(all(k in a["timings"] for k in ("prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "predicted_per_second")))
        events = self.events(body)
        self.assertEqual("".join(e["content"] for e in events), a["content"])
        self.assertEqual([e["stop"] for e in events], [False] * (len(events) - 1) + [True])
        word = a["content"].split()[3]
        cut = self.json("/completion", {**body, "stop": [word]})
        self.assertEqual((cut["content"], cut["stop_type"], cut["stopping_word"]), (a["content"][:a["content"].index(word)], "word", word))

    def test_a_raw_completion_goes_on_where_the_prompt_ends(self):
        """Word by word as in one piece: the space between prompt and answer is the answer's."""
        whole = self.json("/completion", {"prompt": "Once upon a time", "n_predict": 12, "temperature": 0})["content"]
        self.assertTrue(whole.startswith((" ", ",")), whole)
        ids = self.json("/tokenize", {"content": "Once upon a time", "add_special": True})["tokens"]
        self.assertEqual(self.json("/completion", {"prompt": ids, "n_predict": 12, "temperature": 0})["content"], whole)

    def test_grammar(self):
        a = self.json("/completion", {"prompt": "Lily said", "n_predict": 40, "grammar": "root ::= \" \" (\"yes\" | \"no\") \".\""})
        self.assertIn(a["content"], (" yes.", " no."))

    def test_lazy_grammar(self):
        """Free up to a trigger, which is written here by the first full stop."""
        lazy = {"grammar": "root ::= \".\" \" Yes\"", "grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": "."}]}
        a = self.json("/completion", {"prompt": "Once upon a time", "n_predict": 60, "temperature": 0, **lazy})
        free = self.json("/completion", {"prompt": "Once upon a time", "n_predict": 60, "temperature": 0})["content"]
        self.assertEqual(a["content"], free[: free.index(".")] + ". Yes")
        self.assertEqual(a["stop_type"], "eos")
        # The same by patterns: the group of one of any part, one of all of the text, streamed, with choices, a stop string and logprobs.
        for kind, value in ((2, "[A-Za-z](\\.)"), (2, "[^]*?(\\.)$"), (3, "[^.]*(\\.)[^]*")):
            triggers = [{"type": 1, "value": "never"}, {"type": kind, "value": value}]
            body = {"prompt": "Once upon a time", "temperature": 0, **lazy, "grammar": "root ::= \".\" \" Yes\" | \"never\"",
                    "grammar_triggers": triggers}
            self.assertEqual(self.json("/completion", {**body, "n_predict": 60})["content"], a["content"], value)
            events = self.events({**body, "n_predict": 60, "n_probs": 2})
            self.assertEqual("".join(e["content"] for e in events), a["content"])
            self.assertEqual(self.json("/completion", {**body, "n_predict": 60, "stop": [" Ye"]})["content"], a["content"][:-4])
            two = self.json("/v1/completions", {**body, "max_tokens": 60, "n": 2})["choices"]
            self.assertEqual([c["text"] for c in two], [a["content"]] * 2)
        wrong = {"prompt": "x", **lazy, "grammar_triggers": [{"type": 2, "value": "a(?!b)"}]}
        error = self.json("/completion", wrong, status=400)["error"]
        self.assertIn("'grammar_triggers': grammar: the trigger pattern 'a(?!b)': near byte 2: groups that begin with '(?'", error["message"])

    def test_structured_outputs(self):
        """vLLM's forms hold the answers of OpenAI's endpoints, with several choices, streamed and at a limit of tokens; what is wrong is named."""
        lark = "start: \" \" NAME (\",\" NAME)~1..2 \".\"\nNAME: \"A\"..\"Z\" /[a-z]{1,4}/"
        for form, want in (({"regex": " (yes|no)\\."}, " (yes|no)\\."), ({"choice": [" red", " blue"]}, " (red|blue)"),
                           ({"grammar": lark}, " [A-Z][a-z]{1,4}(,[A-Z][a-z]{1,4}){1,2}\\."), ({"grammar": "root ::= \" \" [a-c]{3}"}, " [a-c]{3}"),
                           ({"grammar": "# a ::= b\nstart: \"::= x ::=\""}, "::= x ::=")):
            for body in ({"structured_outputs": form}, {"guided_" + name: value for name, value in form.items()}):
                a = self.json("/v1/completions", {"prompt": "Lily said", "max_tokens": 40, "n": 2, "temperature": 1, **body})
                for choice in a["choices"]:
                    self.assertRegex(choice["text"], f"^{want}$")
                    self.assertEqual(choice["finish_reason"], "stop")
        streamed = self.curl("/v1/completions", {"prompt": "Lily said", "max_tokens": 3, "stream": True, "structured_outputs": {"regex": "( [a-z]{4}){9}"}})
        events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
        self.assertRegex("".join(e["choices"][0]["text"] for e in events), "^[a-z ]+$")
        self.assertEqual(events[-1]["choices"][0]["finish_reason"], "length")
        for form, words in (({"regex": "(a)\\1"}, "'structured_outputs.regex': regex: near byte 5"), ({"choice": ["a", 2]}, "choices: #/1: must be a string"),
                            ({"grammar": "start: \"a\"\nb: <x>"}, "'structured_outputs.grammar': grammar: line 2: special tokens"),
                            ({"json": {"type": "strin"}}, "'structured_outputs.json': schema: #/type: ")):
            refused = self.json("/v1/completions", {"prompt": "x", "structured_outputs": form}, status=400)
            self.assertIn(words, refused["error"]["message"])

    def test_schema(self):
        """An answer that ends by itself is valid under the schema, in every field that takes one, whole and streamed; a part that cannot be held to is
        refused by its place."""
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 3, "maximum": 9}},
                  "required": ["name", "age"], "additionalProperties": False}
        named = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
        messages = {"messages": [{"role": "user", "content": "Tell of Lily."}]}
        for path, body in (
            ("/v1/chat/completions", {**messages, "response_format": named}),
            ("/v1/completions", {"prompt": "A girl:", "max_tokens": 100, "response_format": named}),
            ("/v1/chat/completions", {**messages, "response_format": {"type": "json_object", "schema": schema}}),
            ("/v1/chat/completions", {**messages, "response_format": {"type": "json_schema", "schema": schema}}),
            ("/completion", {"prompt": "A girl:", "json_schema": schema}),
            ("/completion", {"prompt": "A girl:", "response_format": named}),
            ("/completion", {"prompt": "A girl:", "structured_outputs": {"json": schema}}),
            ("/completion", {"prompt": "A girl:", "guided_json": schema}),
        ):
            a = self.json(path, body)
            text = a["content"] if path == "/completion" else a["choices"][0].get("text") or a["choices"][0]["message"]["content"]
            person = json.loads(text)
            self.assertEqual(list(person), ["name", "age"], text)
            self.assertTrue(len(person["name"]) <= 8 and 3 <= person["age"] <= 9, text)
        streamed = self.curl("/v1/chat/completions", {**messages, "response_format": named, "stream": True, "seed": 1})
        events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
        text = "".join(e["choices"][0]["delta"].get("content") or "" for e in events)
        self.assertEqual(list(json.loads(text)), ["name", "age"], text)
        wrong = {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a)\\1"}}}
        refused = self.json("/v1/chat/completions", {**messages, "response_format": {"type": "json_schema", "json_schema": {"schema": wrong}}}, status=400)
        self.assertIn("'response_format': schema: #/properties/a/pattern", refused["error"]["message"])

    def test_tokenize_and_back(self):
        tokens = self.json("/tokenize", {"content": "Lily liked her ball."})["tokens"]
        self.assertEqual(self.json("/detokenize", {"tokens": tokens})["content"].strip(), "Lily liked her ball.")
        self.assertEqual(self.json("/tokenize", {"content": "Lily liked her ball.", "add_special": True})["tokens"], [real.BOS] + tokens)
        pieces = self.json("/tokenize", {"content": "Lily", "with_pieces": True})["tokens"]
        self.assertEqual("".join(p["piece"] for p in pieces).strip(), "Lily")
        parts = self.json("/tokenize", {"content": ["Lily liked", " her ball."], "add_special": True})["tokens"]  # one text, as with ids among them
        self.assertEqual(parts.count(real.BOS), 1)
        self.assertEqual(len(self.json("/tokenize", {"content": ["a"] * 200})["tokens"]), 200 * len(self.json("/tokenize", {"content": ["a"]})["tokens"]))
        self.curl("/tokenize", {"content": ["a", ["b"]]}, status=400)

    def test_offsets_of_a_prompt_of_ids(self):
        text = "Lily liked her ball."
        ids = self.json("/tokenize", {"content": text, "add_special": True})["tokens"]
        a = self.json("/v1/completions", {"prompt": ids, "echo": True, "logprobs": 0, "max_tokens": 1, "temperature": 0})["choices"][0]
        self.assertTrue(a["text"].startswith(real.BOS_TEXT + text), a["text"])
        pieces = [p["piece"] for p in self.json("/tokenize", {"content": text, "with_pieces": True})["tokens"]]
        at, wanted = len(real.BOS_TEXT), []
        for piece in pieces:
            wanted.append(at)
            at += len(piece)
        self.assertEqual(a["logprobs"]["text_offset"][:len(ids)], [0, *wanted])

    def test_apply_template(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Tell of Lily."}]
        self.assertEqual(self.json("/apply-template", {"messages": messages}), {"prompt": real.BOS_TEXT + "Be brief.\nTell of Lily.\nOnce"})

    def test_embedding(self):
        a = self.json("/embedding", {"content": "Lily"})[0]["embedding"][0]
        self.assertEqual(self.json("/embedding", {"content": ["Lily", "Tom"]})[0]["embedding"][0], a)
        self.assertAlmostEqual(sum(x * x for x in a), 1, places=5)

    def test_what_the_recipe_shows(self):
        """Each call of docs/howto/serve.md to localhost:8080 works as it stands there."""
        with open(os.path.join(ROOT, "docs", "howto", "serve.md")) as f:
            lines = [line.strip() for line in f if line.startswith("curl ") and "localhost:8080" in line and "https:" not in line]
        self.assertGreater(len(lines), 12)
        for line in lines:
            with self.subTest(line):
                line = line.replace("localhost:8080", self.server.address).replace("curl ", "curl -H 'Authorization: Bearer %s' " % self.key, 1)
                p = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=PATIENCE)
                self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
                self.assertTrue(p.stdout)

    def test_slots(self):
        body = {"prompt": STORY * 2, "n_predict": 20, "id_slot": 2, "temperature": 0}
        first = self.json("/completion", body)
        slots = self.json("/slots")
        self.assertEqual((len(slots), slots[2]["id"], slots[2]["is_processing"]), (4, 2, False))
        saved = self.json("/slots/2?action=save", {"filename": "lily.bin"})
        self.assertEqual((saved["id_slot"], saved["filename"]), (2, "lily.bin"))
        self.assertGreaterEqual(saved["n_saved"], first["tokens_evaluated"])
        tenant = "key-" + hashlib.sha256(self.key.encode()).hexdigest()[:12]  # each key has names of its own
        self.assertTrue(os.path.exists(os.path.join(self.folder.name, "store", "s-%s.lily.bin.kv" % tenant)))
        erased = self.json("/slots/2?action=erase", {})
        self.assertEqual((erased["id_slot"], erased["n_erased"]), (2, saved["n_saved"] + 1))
        restored = self.json("/slots/1?action=restore", {"filename": "lily.bin"})
        self.assertEqual((restored["n_restored"], restored["n_read"]), (saved["n_saved"], saved["n_written"]))
        self.assertEqual(self.json("/slots/1?action=save", {"filename": "lily-2.bin"})["n_saved"], saved["n_saved"])  # before a request ran in it
        files = [os.path.join(self.folder.name, "store", "s-%s.%s.kv" % (tenant, name)) for name in ("lily.bin", "lily-2.bin")]
        self.assertTrue(filecmp.cmp(*files, shallow=False))
        again = self.json("/completion", body)
        self.assertEqual(again["content"], first["content"])
        self.assertEqual(again["timings"]["prompt_n"], 1)  # all but the last token of the prompt were there
        for name in ("..", "a/b", "/etc/passwd"):
            self.curl("/slots/1?action=save", {"filename": name}, status=400)
        self.curl("/slots/1?action=restore", {"filename": "never"}, status=404)


if __name__ == "__main__":
    unittest.main(verbosity=1)
