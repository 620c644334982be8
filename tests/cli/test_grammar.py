# SPDX-License-Identifier: Apache-2.0
"""Claims about grammars on the command line: what a model writes under one follows it. usage: test_grammar.py build/weft"""
import json
import os
import re
import tempfile
import unittest

from common import STORIES, TINY_LLAMA, main, needs_models, repeated, shared, weft

MODELS = [STORIES, TINY_LLAMA, shared("models", "tiny-qwen3.f16.gguf"), shared("models", "tiny-llama3.f16.gguf")][:repeated(4, 4, 2)]


def run(model, *args, grammar=None):
    """The answer of weft run --json, and its standard error when it failed."""
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "rules.gbnf")
        if grammar is not None:
            with open(path, "w") as f:
                f.write(grammar)
            args += ("--grammar", path)
        p = weft("run", model, "Once upon a time", "--json", *args)
    return (json.loads(p.stdout), "") if p.returncode == 0 else (None, p.stderr.decode())


@needs_models
class Grammar(unittest.TestCase):
    def test_json_object_parses_unless_it_was_cut(self):
        finished = 0
        for model in MODELS:
            for seed in range(repeated(8, 4, 2)):
                p = weft("run", model, "Once upon a time", "--json", "--json-object", "-n", "300", "--seed", str(seed), "--temp", "0.1" if seed == 0 else "1.5")
                out = json.loads(p.stdout)
                if out["finish_reason"] == "stop":
                    finished += 1
                    self.assertEqual(p.returncode, 0, p.stderr)
                    self.assertIsInstance(json.loads(out["text"], strict=True), dict)
                else:
                    self.assertEqual(p.returncode, 1)
                    self.assertIn(b"before the JSON object is complete", p.stderr)
                    self.assertEqual(out["finish_reason"], "length")
                    self.assertEqual(len(out["tokens"]), 300)
                    self.assertRegex(out["text"], r"^(\{|$)")
        self.assertGreater(finished, 0)

    def test_text_follows_a_gbnf(self):
        rules = 'root ::= " "? name ("," name){2,4} "."  # names\nname ::= [A-Z] [a-z\\u00e4\\u00f6\\u00fc]{1,6}\n'
        for model in MODELS:
            for seed in range(repeated(4, 4, 1)):
                out, err = run(model, "-n", "60", "--seed", str(seed), "--temp", "1", "--ignore-eos", grammar=rules)
                self.assertIsNotNone(out, err)
                self.assertEqual(out["finish_reason"], "stop")
                self.assertRegex(out["text"], r"^ ?[A-Z][a-zäöü]{1,6}(,[A-Z][a-zäöü]{1,6}){2,4}\.$")

    def test_a_leading_space_that_the_grammar_wants_is_there(self):
        for model in MODELS:
            out, err = run(model, "-n", "20", "--temp", "0", grammar='root ::= " the end"')
            self.assertIsNotNone(out, err)
            self.assertEqual(out["text"], " the end")

    def test_characters_of_several_tokens_are_whole(self):
        for model in MODELS:
            out, err = run(model, "-n", "40", "--seed", "3", "--temp", "2", grammar="root ::= [\\U0001F600-\\U0001F64F\\u4e00-\\u9fff]{3}")
            self.assertIsNotNone(out, err)
            self.assertRegex(out["text"], "^[\U0001F600-\U0001F64F\u4e00-\u9fff]{3}$")

    def test_end_token_ends_a_text_that_may_go_on(self):
        out, err = run(STORIES, "-n", "200", "--seed", "1", "--temp", "1", grammar='root ::= [a-z ]*')
        self.assertIsNotNone(out, err)
        self.assertRegex(out["text"], r"^[a-z ]*$")

    def test_schema_holds_what_is_said(self):
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 1, "maximum": 99},
                                                   "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
                                                   "born": {"type": "string", "format": "date"}},
                  "required": ["name", "age", "tags"], "additionalProperties": False}
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "person.json")
            with open(path, "w") as f:
                json.dump(schema, f)
            for model in MODELS + ["models/alderbrook.gguf"]:
                p = weft("run", model, "Once upon a time", "--json", "--schema", path, "-n", "200", "--seed", "2", "--temp", "1")
                self.assertEqual(p.returncode, 0, p.stderr)
                out = json.loads(json.loads(p.stdout)["text"])
                self.assertIn(list(out), (["name", "age", "tags"], ["name", "age", "tags", "born"]))
                self.assertLessEqual(len(out["name"]), 8)
                self.assertIn(out["age"], range(1, 100))
                self.assertLessEqual(set(out["tags"]), {"a", "b"})
            schema["properties"]["age"]["format"] = "x"
            schema["properties"]["name"]["pattern"] = "(a)\\1"
            with open(path, "w") as f:
                json.dump(schema, f)
            for command in ("run", "chat"):
                p = weft(command, "models/alderbrook.gguf", *(["x"] if command == "run" else []), "--schema", path)
                self.assertEqual(p.returncode, 1)
                self.assertIn(b"person.json: schema: #/properties/name/pattern: references to groups", p.stderr)
            self.assertEqual(weft("chat", "models/alderbrook.gguf", "--schema", path, "--grammar", path).returncode, 2)

    def test_expressions_choices_and_lark(self):
        rules = '%import common.INT\nstart: person (", " person)~1..2 "."\nperson: NAME " (" INT ")"\nNAME: "A".."Z" ("a".."z")~2..5\n'
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "rules.lark")
            with open(path, "w") as f:
                f.write(rules)
            for model in MODELS + ["models/alderbrook.gguf"]:
                for option, form in ((("--regex", "[A-Z][a-z]{2,5}( and [A-Z][a-z]{2,5})?\\."), r"[A-Z][a-z]{2,5}( and [A-Z][a-z]{2,5})?\."),
                                     (("--choices", "yes,no,perhaps not"), "yes|no|perhaps not"), (("--choices", '["a, b", "c"]'), "a, b|c"),
                                     (("--grammar", path), r"[A-Z][a-z]{2,5} \([0-9]+\)(, [A-Z][a-z]{2,5} \([0-9]+\)){1,2}\.")):
                    p = weft("run", model, "Once upon a time", "--json", *option, "-n", "200", "--seed", "4", "--temp", "0.7")
                    out = json.loads(p.stdout)
                    if out["finish_reason"] == "stop":
                        self.assertEqual(p.returncode, 0, p.stderr)
                        self.assertRegex(out["text"], f"^(?:{form})$")
                    else:  # numbers have no bound
                        self.assertIn("rules.lark", option[1])
                        self.assertIn(b"before what the grammar wants is complete", p.stderr)
        for command in ("run", "chat"):
            prompt = ["x"] if command == "run" else []
            for option, words in ((("--regex", "(a)\\1"), b"--regex: regex: near byte 5: references to groups"),
                                  (("--choices", "[1]"), b"--choices: choices: #/0: must be a string")):
                p = weft(command, "models/alderbrook.gguf", *prompt, *option)
                self.assertEqual((p.returncode, words in p.stderr), (1, True), p.stderr)
            self.assertEqual(weft(command, "models/alderbrook.gguf", *prompt, "--regex", "a", "--choices", "b").returncode, 2)

    def test_what_is_empty_is_refused(self):
        """By run and chat, as wrong usage: an empty word of a list is one only where JSON says so."""
        for command in (("run", "models/alderbrook.gguf", "x"), ("chat", "models/alderbrook.gguf")):
            for option, words in (("", "JSON array"), ("yes,no,", "JSON array"), ("a,,b", "JSON array"), (",a", "JSON array"), (",", "JSON array")):
                p = weft(*command, "--choices", option)
                self.assertEqual((p.returncode, p.stdout), (2, b""), (option, p.stderr))
                self.assertIn(b"--choices: a word is empty", p.stderr)
                self.assertIn(words.encode(), p.stderr)
            p = weft(*command, "--regex", "")
            self.assertEqual((p.returncode, p.stdout), (2, b""), p.stderr)
            self.assertIn(b"--regex: the expression is empty", p.stderr)
        p = weft("run", "models/alderbrook.gguf", "x", "--json", "--temp", "0", "--choices", '["", "yes,,no"]')
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn(json.loads(p.stdout)["text"], ("", "yes,,no"))

    def test_an_option_of_a_file_says_so(self):
        for command in (("run", "models/alderbrook.gguf", "x"), ("chat", "models/alderbrook.gguf")):
            for option, value, words in (("--schema", '{"type":"object"}', "--schema wants the name of a FILE, not what stands in it"),
                                         ("--grammar", 'root ::= "a"', "--grammar wants the name of a FILE, not what stands in it"),
                                         ("--schema", "nofile.json", "--schema FILE: nofile.json: No such file"),
                                         ("--grammar", "/nonexistent.lark", "--grammar FILE: /nonexistent.lark: No such file")):
                p = weft(*command, option, value)
                self.assertEqual((p.returncode, p.stdout), (1, b""), p.stderr)
                self.assertIn(words.encode(), p.stderr)

    def test_another_notation_is_told_where_it_is_read(self):
        out, err = run(STORIES, grammar='start: "a"\n')
        self.assertIsNone(out)
        self.assertIn("a rule must begin with its name and '::=' at 'start: \"a\"'; this was read as GBNF, and a file named .lark is read as Lark's EBNF", err)
        self.assertNotIn("Lark", run(STORIES, grammar='root ::= b')[1])

    def test_refusals_come_before_the_first_token(self):
        for rules, words in ((('root ::= "a"\nx ::= y "b"\n'), ["rules.gbnf", "'y'", "line 2", "not defined"]),
                             (('root ::= root "a" | "b"'), ["'root'", "left-recursive"]),
                             (('root ::= "a" root'), ["no finite text"])):
            out, err = run(STORIES, grammar=rules)
            self.assertIsNone(out)
            for word in words:
                self.assertIn(word, err)
        out, err = run(STORIES, "--grammar", "/nonexistent.gbnf")
        self.assertIn("/nonexistent.gbnf", err)
        self.assertEqual(weft("run", STORIES, "x", "--grammar", "f", "--json-object").returncode, 2)


if __name__ == "__main__":
    main()
