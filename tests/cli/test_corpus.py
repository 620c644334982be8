# SPDX-License-Identifier: Apache-2.0
"""Claims about the corpus of the repository's own model. usage: test_corpus.py build/weft"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from common import main, needs

MAKE = os.path.join("corpus", "make")
END = "<|endoftext|>\n"
sys.dont_write_bytecode = True
sys.path.insert(0, "corpus")
from grammar import Dice, say  # noqa: E402
from story import PLOTS, tell  # noqa: E402
from talk import CHATS, markup  # noqa: E402


def make(out, *args):
    subprocess.run(
        [
            sys.executable,
            MAKE,
            "--out",
            out,
            "--size",
            "0.3",
            "--heldout",
            "0.05",
            "--styled",
            "30",
            "--chats",
            "50",
            "--echoes",
            "700",
            "--talks",
            "600",
            *args,
        ],
        check=True,
    )
    return {name: pathlib.Path(out, name).read_text(encoding="utf-8") for name in sorted(os.listdir(out))}


class Corpus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.files = make(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_seed_decides_every_byte(self):
        with tempfile.TemporaryDirectory() as d:
            self.assertEqual(make(d), self.files)
        with tempfile.TemporaryDirectory() as d:
            self.assertNotEqual(make(d, "--seed", "2")["train.txt"], self.files["train.txt"])
        with tempfile.TemporaryDirectory() as d:
            self.assertTrue(make(d, "--size", "0.5")["train.txt"].startswith(self.files["train.txt"]))

    def test_nothing_held_out_is_trained_on(self):
        heldout = self.files["heldout.txt"].split(END)[:-1]
        self.assertGreater(len(heldout), 30)
        self.assertEqual([text for text in heldout if text in self.files["train.txt"]], [])
        with tempfile.TemporaryDirectory() as d:
            files = make(d, "--size", "1", "--styled", "600")
        self.assertEqual([text for text in files["heldout.txt"].split(END)[:-1] if text in files["train.txt"]], [])
        for name in ("echo", "talk"):
            trained = "\0".join(markup(json.loads(line)) for line in files[name + ".jsonl"].splitlines())
            self.assertEqual([text for text in files["heldout.txt"].split(END)[:-1] if text.strip("\n") in trained], [], name)
        for style in ("pirate", "poem", "letter"):
            records = [json.loads(line) for line in files[style + ".heldout.jsonl"].splitlines()]
            self.assertEqual(len({json.dumps(r) for r in records}), 50)
            trained = "".join(markup(json.loads(line)) for line in files[style + ".jsonl"].splitlines())
            self.assertEqual([r for r in records if markup(r) in trained], [], style)

    def test_every_record_is_one(self):
        for name, n in (("chat", 50), ("echo", 700), ("talk", 600), ("pirate", 30), ("poem", 30), ("letter", 30), ("pirate.heldout", 50)):
            records = [json.loads(line) for line in self.files[name + ".jsonl"].splitlines()]
            self.assertEqual(len(records), n)
            self.assertTrue(all(r["messages"][-1]["role"] == "assistant" for r in records))
        for line in self.files["prefer.jsonl"].splitlines():
            self.assertEqual(set(json.loads(line)), {"prompt", "chosen", "rejected"})

    def test_tool_calls_in_the_text_are_json(self):
        calls = [part.split("</tool_call>")[0] for part in self.files["train.txt"].split("<tool_call>")[1:]]
        self.assertGreater(len(calls), 20)
        for call in calls:
            self.assertEqual(set(json.loads(call)), {"name", "arguments"})


class Stories(unittest.TestCase):
    def test_a_story_answers_its_questions(self):
        for plot in PLOTS:
            for i in range(20):
                s = tell(Dice("test", plot, i), plot=plot)
                self.assertGreaterEqual(len(s.text.split()), 100, s.text)
                self.assertNotRegex(s.text, r"[\[\]{}|]")
                for question, short, _ in s.questions:
                    said = short.split(" named ")[-1].removesuffix("'s").removeprefix("to ").removeprefix("from ")
                    for part in said.split(" and "):
                        self.assertIn(part.split(" ", 1)[1] if part.startswith(("a ", "an ")) else part, s.text, question)

    def test_the_grammar_chooses_within_choices(self):
        said = {say("[a|b [c|{x}]|]!", Dice(i), {"x": "d"}) for i in range(200)}
        self.assertEqual(said, {"a!", "b c!", "b d!", "!"})


@needs(importlib.util.find_spec("jinja2"), "no python3-jinja2")
class Template(unittest.TestCase):
    def test_the_text_is_what_the_chat_template_makes_of_the_records(self):
        import jinja2
        env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
        env.policies["json.dumps_kwargs"] = {"sort_keys": False}
        env.filters["tojson"] = lambda v: json.dumps(v)  # as Hugging Face has it: no HTML escapes
        with open("corpus/chat.jinja", encoding="utf-8") as f:
            template = env.from_string(f.read())
        for chat in CHATS:
            for i in range(60):
                record = chat(Dice("test", chat.__name__, i))
                self.assertEqual(template.render(**record), markup(record))


if __name__ == "__main__":
    main()
