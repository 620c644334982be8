# SPDX-License-Identifier: Apache-2.0
"""Claims about `weft eval task`: that a run which was stopped goes on to the same bytes, that how a continuation is scored changes no bit, that
comparisons are paired, and that what llama-perplexity reads is read. usage: test_eval_task.py build/weft"""
import json
import math
import os
import struct
import xml.dom.minidom

from common import InFolder, main, weft

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "alderbrook.gguf")
ADAPTER = "a=" + os.path.join(os.path.dirname(MODEL), "pirate.gguf")
TASK = """task: places
dataset_path: json
dataset_kwargs: {data_files: {test: docs.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{question}}\\nAnswer:"
doc_to_target: label
doc_to_choice: choices
num_fewshot: 2
fewshot_split: test
metadata: {version: 3}
"""
PLACES = ["in the mill", "by the river", "at the inn", "up on the hill"]
DOCS = [{"question": f"Where does {name} live?", "choices": PLACES, "label": i % 4, "answer": PLACES[i % 4]}
        for i, name in enumerate("Anna Bella Carl Dora Emil Frida".split())]


class EvalTask(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.write("docs.jsonl", "".join(json.dumps(d) + "\n" for d in DOCS))
        cls.write("places.yaml", TASK)
        cls.write("answers.yaml", TASK.replace("multiple_choice", "generate_until").replace("doc_to_choice: choices\n", "")
                  .replace("doc_to_target: label", "doc_to_target: '{{answer}}'")
                  + "generation_kwargs: {until: ['\\n'], max_gen_toks: 8, temperature: 0.9}\nrepeats: 2\nfilter_list:\n"
                  "- {name: first, filter: [{function: take_first}]}\n- {name: last, filter: [{function: regex, group_select: -1, "
                  "regex_pattern: '(\\w+)'}, {function: majority_vote}, {function: take_first}]}\n")

    @classmethod
    def write(cls, name, text):
        with open(cls.path(name), "wb" if isinstance(text, bytes) else "w") as f:
            f.write(text)

    def run_task(self, task, *more, fails=None):
        p = weft("eval", "task", MODEL, self.path(task), "--ctx", "256", "--slots", "4", "--threads", "2", *more)
        if fails is not None:
            self.assertEqual(p.returncode, fails)
            return p.stderr.decode()
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return json.loads(p.stdout) if "--json" in more else p.stdout.decode()

    def read(self, name):
        with open(self.path(name)) as f:
            return f.read()

    def test_a_stopped_run_goes_on_to_the_same_bytes(self):
        for task in ("places.yaml", "answers.yaml"):
            whole, part = task + ".whole", task + ".part"
            report = self.run_task(task, "--samples", self.path(whole), "--json")
            text = self.read(whole)
            lines = text.splitlines(keepends=True)
            self.assertEqual(len(lines), 7)
            for cut in (lines[0], "".join(lines[:4]), "".join(lines[:3]) + lines[3][:40]):
                self.write(part, cut)
                again = self.run_task(task, "--samples", self.path(part), "--json")
                self.assertEqual(self.read(part), text)
                self.assertEqual(again["results"], report["results"])
            self.assertIn("another run", self.run_task(task, "--samples", self.path(part), "--fewshot", "1", fails=1))
            self.assertEqual(self.read(part), text)
            self.run_task(task, "--samples", self.path("other"), "--slots", "1")  # nor does what runs beside it change a bit
            self.assertEqual(self.read("other"), text)
            os.remove(self.path("other"))

    def test_what_is_scored_is_what_logits_say(self):
        """The sum of a choice, from `weft eval logits` over the same tokens."""
        self.run_task("places.yaml", "--samples", self.path("scored"))
        sample = json.loads(self.read("scored").splitlines()[1])
        bos = [int(t) for t in weft("tokenize", MODEL, "a").stdout.split()][0]

        def ids(text):
            return [int(t) for t in weft("tokenize", MODEL, "--no-bos", text).stdout.split()]
        context, whole = [bos] + ids(sample["prompt"]), [bos] + ids(sample["prompt"] + " " + PLACES[1])
        p = weft("eval", "logits", MODEL, "--tokens", " ".join(map(str, whole)), "--kv-type", "f16", "-o", self.path("logits"))
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        with open(self.path("logits"), "rb") as f:
            data = f.read()
        n = len(data) // 4 // len(whole)
        total = 0.0
        for at in range(len(context), len(whole)):
            row = struct.unpack_from(f"<{n}f", data, (at - 1) * n * 4)
            most = max(row)
            total += row[whole[at]] - most - math.log(sum(math.exp(v - most) for v in row))
        self.assertAlmostEqual(total, sample["resps"][1][0], delta=1e-4)
        self.assertEqual(sample["resps"][1][2], len(whole) - len(context))

    def test_comparisons_are_paired(self):
        self.run_task("places.yaml", "--samples", self.path("base"))
        report = self.run_task("places.yaml", "--samples", self.path("adapted"), "--adapter", ADAPTER, "--baseline", self.path("base"), "--json",
                               "--svg", self.path("picture.svg"))
        base, here = ([json.loads(line)["scores"]["none"]["acc"] for line in self.read(name).splitlines()[1:]] for name in ("base", "adapted"))
        row = report["results"][0]
        self.assertEqual((row["metric"], row["test"]), ("acc", "mcnemar"))
        self.assertAlmostEqual(row["value"], sum(here) / 6)
        self.assertAlmostEqual(row["baseline"], sum(base) / 6)
        self.assertEqual(row["only_here"], sum(a > b for a, b in zip(here, base)))
        self.assertEqual(row["only_there"], sum(a < b for a, b in zip(here, base)))
        labels = [t.firstChild.data for t in xml.dom.minidom.parse(self.path("picture.svg")).getElementsByTagName("text")]
        self.assertIn("none · acc", labels)
        self.assertTrue(any("(was " in label for label in labels), labels)
        self.write("docs2.jsonl", "".join(json.dumps({**d, "question": "?"}) + "\n" for d in DOCS))
        said = self.run_task("places.yaml", "--data", "test=" + self.path("docs2.jsonl"), "--baseline", self.path("base"), fails=1)
        self.assertIn("another document", said)

    def test_files_of_llama_perplexity(self):
        self.write("swag", "".join(f"{d['question']} She lives\n{d['label']}\n" + "\n".join(PLACES) + "\n" for d in DOCS))
        self.write("grande", "".join(
            f'{i},"{d["question"]} In _ you may find them there, at last.",the mill,the inn,{i % 2 + 1}\n' for i, d in enumerate(DOCS)))

        def text(s):
            return struct.pack("<I", len(s)) + s.encode()
        tasks = [text(d["question"]) + struct.pack("<I", 4) + b"".join(map(text, PLACES)) + struct.pack("<4i", *(j == d["label"] for j in range(4)))
                 + struct.pack("<I", 0) for d in DOCS]
        self.write("choice", struct.pack("<I", len(tasks)) + bytes(4 * len(tasks)) + b"".join(tasks))
        for name, form, metric in (("swag", "hellaswag", "acc_norm"), ("grande", "winogrande", "acc"), ("choice", "multiple-choice", "acc_norm")):
            report = self.run_task(name, "--form", form, "--json", "--limit", "5")
            self.assertEqual((report["n"], report["results"][0]["metric"]), (5, metric))

    def test_predictions_are_for_judges_elsewhere(self):
        self.write("code", "".join(json.dumps({"task_id": f"T/{i}", "prompt": "def f():\n", "entry_point": "f", "test": ""}) + "\n" for i in range(2)))
        self.write("repos", json.dumps({"instance_id": "a__b-1", "problem_statement": "It breaks."}) + "\n")
        self.assertIn("--predictions", self.run_task("code", "--form", "humaneval", fails=1))
        self.run_task("code", "--form", "humaneval", "--predictions", self.path("out"), "--repeats", "2", "--temp", "1", "-n", "4")
        lines = [json.loads(line) for line in self.read("out").splitlines()]
        self.assertEqual([line["task_id"] for line in lines], ["T/0", "T/0", "T/1", "T/1"])
        self.assertEqual(set(lines[0]), {"task_id", "completion"})
        self.run_task("repos", "--form", "swebench", "--predictions", self.path("out"), "-n", "4")
        self.assertEqual(set(json.loads(self.read("out"))), {"instance_id", "model_name_or_path", "model_patch"})

    def test_what_is_wrong_is_told(self):
        self.write("bad.yaml", TASK.replace("num_fewshot", "num_fewshots"))
        self.assertIn("bad.yaml:9:1: there is no 'num_fewshots' here; did you mean 'num_fewshot'?", self.run_task("bad.yaml", fails=1))
        self.write("bad.jsonl", '{"prompt": "x", "answer": "y"}\n{"prompt": \n')
        self.assertIn("bad.jsonl:2:", self.run_task("bad.jsonl", fails=1))
        self.assertIn("raise --ctx", self.run_task("places.yaml", "--fewshot", "0", "--data", "test=" + self.long_document(), fails=1))
        self.assertIn("examples are wanted", self.run_task("places.yaml", "--fewshot", "9", fails=1))
        self.assertIn("--chat", self.run_task("places.yaml", "--multiturn", fails=2))

    def long_document(self):
        self.write("long.jsonl", json.dumps({**DOCS[0], "choices": ["far " * 400, "near"], "label": 0}) + "\n")
        return self.path("long.jsonl")

    def test_prompts_are_shown(self):
        said = self.run_task("answers.yaml", "--show", "1", "--chat")
        self.assertIn("Where does Anna live?", said)
        self.assertIn("<|im_start|>assistant", said)


if __name__ == "__main__":
    main()
