# SPDX-License-Identifier: Apache-2.0
"""Claims about the tasks that corpus/ makes: any seed is a set of its own, what is tested on is not learned from, verifiers are exact, and weft trains on
the files and judges them as the verifiers do. usage: test_tasks.py build/weft"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from common import InFolder, main, weft

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODEL = os.path.join(ROOT, "models", "alderbrook.gguf")
sys.dont_write_bytecode = True
sys.path.insert(0, "corpus")
import facts  # noqa: E402
from grammar import Dice, every, say  # noqa: E402
from tasks import TASKS  # noqa: E402


def make(folder, *args):
    p = subprocess.run([sys.executable, os.path.join("corpus", "make-tasks"), "--out", folder, *args], capture_output=True, text=True)
    if p.returncode:
        raise AssertionError(p.stderr)
    return p.stdout


def lines(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


class Sets(InFolder):
    def test_the_seed_decides_every_byte_and_no_seed_learns_what_another_tests(self):
        said = [make(self.path(name), "-n", "120", "--seed", seed) for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))]
        self.assertEqual(said[0], said[1])
        learned, tested = set(), set()
        for name in TASKS:
            for part in ("train", "test"):
                a, b, c = (lines(self.path(folder), f"{name}.{part}.jsonl") for folder in "abc")
                self.assertEqual(a, b)
                self.assertNotEqual(a, c)
                (learned if part == "train" else tested).update(json.dumps(r, sort_keys=True) for r in a + c)
        self.assertEqual(len(learned & tested), 0)
        self.assertGreater(len(tested), 8 * 120 * 0.1)

    def test_what_the_parts_share_is_told(self):
        """By subject nothing; by record, wordings of the same: the numbers are those of the files."""
        for by in ("record", "subject"):
            make(self.path(by), "-n", "600", "--by", by, "--task", "facts", "--task", "preferences", "--task", "arithmetic")
            with open(os.path.join(self.path(by), "overlap.json")) as f:
                told = json.load(f)["tasks"]
            for name, numbers in told.items():
                learned, tested = (lines(self.path(by), f"{name}.{part}.jsonl") for part in ("train", "test"))
                subjects = {r["subject"] for r in learned}
                self.assertEqual((len(learned), len(tested)), (numbers["train"], numbers["test"]))
                self.assertEqual(sum(r["subject"] in subjects for r in tested), numbers["subjects"])
                self.assertEqual(sum(r in learned for r in tested), numbers["records"])
                self.assertEqual(numbers["records"], 0)
            self.assertEqual(told["facts"]["subjects"] > 0, by == "record")
        self.assertIn("of 600 there are 540", make(self.path("all"), "-n", "600", "--task", "facts"))

    def test_every_sentence_is_what_the_grammar_says(self):
        text = "[a|b [c|{x}]|]!"
        self.assertEqual(set(every(text, {"x": "d"})), {say(text, Dice(i), {"x": "d"}) for i in range(200)})
        self.assertEqual(len(every(text, {"x": "d"})), 4)


class Verifiers(unittest.TestCase):
    def test_what_is_right_is_and_nothing_else(self):
        for name, task in TASKS.items():
            made = [task.make(Dice("verify", name, i)) for i in range(60)]
            for r, other in zip(made, made[1:]):
                for right in (r["answer"], r["answer"][0]):  # a verifier that is told one right answer knows the others
                    for said in r["answer"][:1 if name == "tool_calls" else None]:
                        self.assertTrue(task.is_right(r["prompt"], right, said), (name, r, said))
                    cut = r["answer"][0][:-2] if name not in ("counting", "arithmetic") else "-"  # there the last number counts, whatever is before it
                    for wrong in ("", "I do not know.", cut, *([] if same(r, other) else other["answer"][:1])):
                        self.assertFalse(task.is_right(r["prompt"], right, wrong), (name, r, wrong))

    def test_forms_of_an_answer(self):
        for name, right, said, yes in (
                ("json", '{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True), ("json", '{"a": 1}', '{"a": 1.0}', False),
                ("json", '{"a": 1}', '{"a": 1, "a": 1}', False), ("json", '{"a": 1}', '{"a": NaN}', False), ("json", '{"a": 1}', 'so {"a": 1}', False),
                ("counting", "3", "one 1, two 2. There are 3.", True), ("counting", "3", "There are 3 of 4", False), ("counting", "3", "many", False),
                ("arithmetic", "5 minus 9 is -4.", "-4", True), ("arithmetic", "-4", "4", False), ("copying", "a b", " a b\n", True),
                ("copying", "a b", "a b.", False), ("tool_calls", '{"name": "f", "arguments": {"a": 1, "b": 2}}',
                                                    '<tool_call>{"arguments": {"b": 2, "a": 1}, "name": "f"}</tool_call>', True),
                ("tool_calls", '{"name": "f", "arguments": {}}', '{"name": "f", "arguments": {}}', False),
                ("preferences", "Gladly! It is so.", "Of course! It is so.", True), ("preferences", "Gladly! It is so.", "It is so.", False)):
            self.assertEqual(TASKS[name].is_right("?", right, said), yes, (name, said))

    def test_a_program_for_training_judges_so(self):
        r = TASKS["two_hop"].make(Dice(1))
        asked = "".join(json.dumps({"prompt": r["prompt"], "answer": a, "reference": r["completion"]}) + "\n" for a in [*r["answer"], "nobody"])
        p = subprocess.run([sys.executable, "corpus/make-tasks", "--verify", "two_hop"], input=asked, capture_output=True, text=True)
        self.assertEqual(p.stdout.split(), ["1", "1", "1", "0"])


def same(a, b):
    return a["prompt"] == b["prompt"] or set(a["answer"]) & set(b["answer"])


class Corrections(unittest.TestCase):
    """What an edit of one fact is held against (facts.py)."""
    def test_a_correction_changes_one_thing(self):
        world = {(p.name, r): facts.ask(p, r) for p in facts.PEOPLE for r in facts.RELATIONS}
        for i in range(60):
            c = facts.correction(Dice("correction", i))
            self.assertEqual([q for q, _ in c.wordings], [q for q, _ in world[c.before.name, c.relation]])
            for (_, now), (_, before) in zip(c.wordings, world[c.before.name, c.relation]):
                self.assertFalse(set(now) & set(before), c.record)
                self.assertIn(c.value, now[0])
            self.assertTrue(facts.is_right(c.record["completion"], c.wordings[0][1]))
            known = {q: right for asked in world.values() for q, right in asked}
            for q, right in c.own + c.near + c.far:
                self.assertEqual(known[q], right)
            self.assertGreaterEqual(len(c.own), 8)
            of = lambda questions: {p.name for p in facts.PEOPLE for q, _ in questions if q in dict(world[p.name, c.relation])}
            near, far = of(c.near), of(c.far)
            self.assertEqual((len(near), len(far), near & far), (5, 5, set()))
            self.assertFalse((near | far) & {c.before.name, c.source.name, c.before.friend_name})

    def test_two_steps_end_where_the_facts_lead(self):
        for subject, prompt, answers in facts.hops():
            _, name, step = subject.split()
            self.assertEqual(answers[-1], getattr(facts.BY_NAME[name], step))
            self.assertTrue(all(answers[-1] in a for a in answers))
            self.assertNotIn(name, prompt.replace("'s", " ").rstrip("?").split())


class Asked(InFolder):
    """Files and verifiers against weft, on the shipped model."""
    def test_weft_judges_as_the_verifiers_do(self):
        n = 40
        make(self.path("t"), "-n", str(2 * n), "--split", "0.5")
        for name, task in TASKS.items():
            samples, records = self.path(name + ".samples"), lines(self.path("t"), name + ".test.jsonl")
            p = weft("eval", "task", MODEL, os.path.join(self.path("t"), name + ".yaml"), "--chat", "--slots", "8", "--threads", "2", "--limit", str(n),
                     "--samples", samples, "--json")
            self.assertEqual(p.returncode, 0, p.stderr.decode())
            metric = task.metrics[-1]
            for sample, record in zip(lines(samples)[1:], records):
                self.assertIn(record["prompt"], sample["prompt"])
                answer = sample["resps"][0]
                found = {f: scores[metric] for f, scores in sample["scores"].items()}
                right = bool(task.is_right(record["prompt"], record["answer"], answer))
                # Strict, or what is made of the answer: an answer that is right is found to be, and of numbers all that is found is right.
                self.assertEqual(right, bool(max(found.values()) if name in ("counting", "arithmetic", "tool_calls") else found["strict"]), (name, sample))

    def test_weft_learns_from_them(self):
        make(self.path("l"), "-n", "40")
        for name in TASKS:
            more = ["--loss", "dpo"] if name == "preferences" else []
            p = weft("adapter", "train", MODEL, "--data", os.path.join(self.path("l"), name + ".train.jsonl"), "--show", "1", "--out", self.path("none"), *more)
            self.assertEqual(p.returncode, 0, p.stderr.decode())
            self.assertIn("⟦", p.stdout.decode())


if __name__ == "__main__":
    main()
