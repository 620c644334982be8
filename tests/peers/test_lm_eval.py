# SPDX-License-Identifier: Apache-2.0
"""lm-evaluation-harness, as it is, over `weft serve` gives the scores of `weft eval task` on the same files: each log-probability within 1e-6
and each answer to the byte. usage: test_lm_eval.py build/weft

Needs the program lm_eval: WEFT_LM_EVAL names it (tests/peers/run installs it)."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
sys.dont_write_bytecode = True
LM_EVAL = os.environ.get("WEFT_LM_EVAL", "")
WEFT = os.path.abspath(sys.argv[1])
import real  # noqa: E402  (takes the program from the arguments)

NAMES = "Anna Bella Carl Dora Emil Frida Gustav Hanna Ivo Jana Karl Lotte".split()
PLACES = ["in the mill", "by the river", "at the old inn", "in a blue house"]
HEAD = "dataset_path: json\ndataset_kwargs: {data_files: {test: %s, train: %s}}\ntest_split: test\nmetadata: {version: 2.0}\n"
CHOICE = "output_type: multiple_choice\n"
RATES = "metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}, {metric: acc_norm, aggregation: mean, higher_is_better: true}]\n"
MATCH = """filter_list:
  - name: strict
    filter: [{function: regex, regex_pattern: "lives? ([a-z]+ [a-z]+)"}, {function: take_first}]
  - name: flexible
    filter: [{function: regex, regex_pattern: '(\\w+)(?=[.!?]|$)', group_select: -1}, {function: lowercase}, {function: take_first}]
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true, ignore_case: true, ignore_punctuation: true}]
"""
TASKS = {
    "choice": CHOICE + 'doc_to_text: "{{question}}\\nAnswer:"\ndoc_to_target: label\ndoc_to_choice: "{{choices}}"\n' + RATES,
    "shots": CHOICE + "training_split: train\nfewshot_split: train\nnum_fewshot: 3\n"
    'description: "About {{name}} and others.\\n\\n"\ndoc_to_text: "{{question}} "\ndoc_to_target: "{{label}}"\ndoc_to_choice: choices\n'
    "target_delimiter: ''\n" + RATES,
    "own_shots": CHOICE + 'fewshot_split: test\nnum_fewshot: 2\ndoc_to_text: question\ndoc_to_target: label\ndoc_to_choice: ["the mill", "a river"]\n'
    .replace("doc_to_target: label", "doc_to_target: half") + RATES,
    "inputs": CHOICE + 'doc_to_text: label\ndoc_to_target: "and is well."\ndoc_to_choice: "{{[name ~ \' lives \' ~ choices[0], name ~ \' lives \' ~ '
    "choices[1], name ~ ' sits ' ~ choices[2], name ~ ' stays ' ~ choices[3]]}}\"\n" + RATES.split(", {")[0] + "]\n",
    "last_word": 'output_type: loglikelihood\ndoc_to_text: "{{text.rsplit(\' \', 1)[0]}}"\ndoc_to_target: "{{\' \' ~ text.rsplit(\' \', 1)[1]}}"\n'
    "metric_list: [{metric: perplexity}, {metric: acc}]\n",
    "rolling": 'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{text}}"\n',
    "answers": 'output_type: generate_until\ndoc_to_text: "Once {{name}} said"\ndoc_to_target: "{{choices[label]}}"\n'
    'generation_kwargs: {until: ["\\n", "?"], max_gen_toks: 24, do_sample: false}\n' + MATCH,
}
TALK = 'output_type: generate_until\ndoc_to_text: "{{question}}"\ndoc_to_target: "{{choices[label]}}"\n' \
    'generation_kwargs: {until: ["\\n\\n"], max_gen_toks: 24, temperature: 0.0}\n' + MATCH
CTX = 511  # one token less than the model's, for the one that lm-eval always generates


def documents(seed):
    for i in range(10):
        name, label = NAMES[(i + seed) % len(NAMES)], (i * 3 + seed) % 4
        text = f"Once upon a time {name} lived {PLACES[label]}. It was {'very ' * (i % 3)}late, and the wind came over the hill"
        yield {"name": name, "question": f"Where does {name} live?", "choices": PLACES, "label": label, "half": i % 2,
               "text": text * (20 if i == 7 else 1)}


def write_tasks(folder):
    files = []
    for seed, name in enumerate(("test", "train")):
        files.append(os.path.join(folder, name + ".jsonl"))
        with open(files[-1], "w") as f:
            f.writelines(json.dumps(d) + "\n" for d in documents(seed))
    for name, text in [*TASKS.items(), ("talk", TALK)]:
        with open(os.path.join(folder, name + ".yaml"), "w") as f:
            f.write(f"task: {name}\n" + HEAD % tuple(files) + text)


def lines(path, whole=False):
    with open(path) as f:
        return json.load(f) if whole else [json.loads(line) for line in f]


@unittest.skipUnless(LM_EVAL, "WEFT_LM_EVAL names no lm_eval")
class LmEval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        write_tasks(cls.folder.name)
        cls.server = real.serve("--slots", 8)

    @classmethod
    def tearDownClass(cls):
        real.checked_stop(cls.server)
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def theirs(self, model, endpoint, tasks, *more):
        """Samples by task and filter, and the results."""
        out = self.path("theirs-" + model)
        p = subprocess.run([LM_EVAL, "run", "--model", model, "--batch_size", "1" if "chat" in model else "4", "--tasks", ",".join(tasks),
                            "--model_args", f"model=alderbrook,base_url={self.server.address}{endpoint},max_length={CTX + 1},num_concurrent=1,"
                            f"custom_prefix_token_id={real.BOS}",  # of itself it takes a BOS of id 0 for none
                            "--include_path", self.folder.name, "--log_samples", "--output_path", out, *more], capture_output=True, text=True,
                           env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": self.path("hf")}, timeout=900)
        self.assertEqual(p.returncode, 0, p.stderr[-2000:])
        results = [lines(f, whole=True) for f in glob.glob(os.path.join(out, "**", "results_*.json"), recursive=True)]
        samples = {}
        for f in glob.glob(os.path.join(out, "**", "samples_*.jsonl"), recursive=True):
            task = re.search(r"samples_(.*)_[^_]*\.jsonl$", os.path.basename(f))[1]
            for line in lines(f):
                samples.setdefault((task, line["filter"]), {})[line["doc_id"]] = line
        return samples, results[0]["results"]

    def ours(self, task, *more):
        out = self.path(f"ours-{task}.jsonl")
        p = subprocess.run([WEFT, "eval", "task", real.MODEL, self.path(task + ".yaml"), "--samples", out, "--json", "--ctx", str(CTX), *more],
                           capture_output=True, text=True, timeout=900)
        self.assertEqual(p.returncode, 0, p.stderr)
        return lines(out)[1:], json.loads(p.stdout)

    def check(self, task, theirs, results, *more):
        samples, report = self.ours(task, *more)
        mine = {(r["filter"], r["metric"]): r["value"] for r in report["results"]}
        for (filter_name, metric), value in mine.items():
            self.assertAlmostEqual(results[task][f"{metric},{filter_name}"] / value if value else value + 1, 1, delta=1e-6, msg=(task, metric))
            self.assertIn((task, filter_name), theirs)
        largest = 0
        for (name, filter_name), by_doc in theirs.items():
            if name != task:
                continue
            self.assertEqual(len(by_doc), len(samples))
            for sample in samples:
                line = by_doc[sample["doc_id"]]
                if report["output_type"] == "generate_until":
                    self.assertEqual([sample["resps"]], line["resps"], (task, sample["prompt"]))
                    self.assertEqual([sample["filtered"][filter_name]], line["filtered_resps"], task)
                    continue
                if report["output_type"] == "loglikelihood_rolling":
                    pairs = [(sample["resps"][0][0], float(line["resps"][0][0]))]
                else:
                    self.assertEqual([str(r[1]) for r in sample["resps"]], [str(r[0][1]) for r in line["resps"]], task)
                    pairs = [(r[0], float(t[0][0])) for r, t in zip(sample["resps"], line["resps"])]
                largest = max(largest, max(abs(a - b) for a, b in pairs))
        self.assertLess(largest, 1e-6, task)
        print(f"{task}: {report['n']} documents, largest difference {largest:.1e}, " + ", ".join(f"{m} {v:.6g} ({f})" for (f, m), v in mine.items()))

    def test_completions_give_the_same_scores(self):
        theirs, results = self.theirs("local-completions", "/v1/completions", TASKS)
        for task in TASKS:
            with self.subTest(task):
                self.check(task, theirs, results, "--no-bos")

    def test_chats_give_the_same_answers(self):
        theirs, results = self.theirs("local-chat-completions", "/v1/chat/completions", ["talk"], "--apply_chat_template")
        self.check("talk", theirs, results, "--chat")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
