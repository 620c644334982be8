# SPDX-License-Identifier: Apache-2.0
"""Claims about the losses of weft adapter train, over the shipped model. usage: test_losses.py build/weft"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from gguf_maker import U32, Model
from common import EMULATED, SANITIZED, WEFT, WHOLE, InFolder, leave_out, main, repeated, weft

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models", "alderbrook.gguf")
COMES_OF_IT = WHOLE or not SANITIZED  # what many steps come to is claimed without a sanitizer, which needs two of each kind
of_files = leave_out(EMULATED, "files and messages are the same for every processor")
PAIRS = [{"prompt": f"Where does {who} live?", "chosen": "In the old mill.", "rejected": "I do not know."} for who in ("Mira", "Tom", "Anna", "Ben")]


def steps(n):
    return "--steps", str(n if COMES_OF_IT else 2)


class Losses(InFolder):
    def write(self, name, records):
        pathlib.Path(self.path(name)).write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        return self.path(name)

    def write_bytes(self, name, data):
        pathlib.Path(self.path(name)).write_bytes(data)
        return self.path(name)

    def command(self, out, *args):
        return ["adapter", "train", MODEL, "--out", self.path(out), "-c", "64", "-b", "512", "-r", "2", *args]

    def adapt(self, out, *args, status=0):
        p = weft(*self.command(out, *args))
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def points(self, out):
        return [json.loads(line) for line in pathlib.Path(self.path(out), "loss.jsonl").read_text().splitlines()]

    def test_losses_of_pairs_say_what_became_of_both_answers(self):
        """DPO may lower the chosen answer's likelihood, too; with its own term it does not. Unlikelihood looks at each answer by itself."""
        common = ("--data", self.write("pairs.jsonl", PAIRS), *steps(10), "--lr", "1e-2")
        self.adapt("dpo", "--loss", "dpo", *common)
        p = self.adapt("chosen", "--loss", "dpo", "--chosen", "2", "--smoothing", "0.1", *common, "--json")
        self.adapt("unlikely", "--loss", "unlikelihood", *common)
        alone, chosen, unlikely = self.points("dpo"), self.points("chosen"), self.points("unlikely")
        self.assertEqual(alone[0]["chosen"], chosen[0]["chosen"])  # the base's, as nothing is learned yet
        if COMES_OF_IT:
            self.assertLess(alone[-1]["rejected"], alone[0]["rejected"])
            self.assertGreater(chosen[-1]["chosen"], chosen[0]["chosen"])
            self.assertGreater(chosen[-1]["chosen"], alone[-1]["chosen"])
            self.assertLess(unlikely[-1]["loss"], unlikely[0]["loss"])
        self.assertEqual(json.loads(p.stdout)["chosen"], float(f"{chosen[-1]['chosen']:.6g}"))
        self.assertIn(b" chosen, ", p.stderr)
        self.assertNotIn("chosen", unlikely[0])

    def test_an_anchor_holds_an_adapter_to_its_base(self):
        facts = self.write("facts.jsonl", [{"prompt": p["prompt"], "completion": p["chosen"]} for p in PAIRS])
        common = ("--data", facts, *steps(10), "--lr", "1e-2")
        self.adapt("free", *common)
        self.adapt("anchored", "--anchor", "5", *common)
        free, anchored = self.points("free"), self.points("anchored")
        self.assertEqual(anchored[0]["anchor"], 0)  # B is 0
        self.assertGreater(anchored[-1]["anchor"], 0)
        if COMES_OF_IT:
            self.assertGreater(anchored[-1]["loss"] - anchored[-1]["anchor"], free[-1]["loss"])

    def test_rewards_say_what_is_learned(self):
        """Of three answers to a question the best one is learned: by weights, or alone; and what says no reward is refused."""
        places = (("the mill", 1), ("a boat", 0), ("Rome", -1))
        records = [{"prompt": "Where does Mira live?", "completion": f"In {place}.", "reward": r} for place, r in places]
        data = self.write("rewards.jsonl", records)
        best = self.write("best.jsonl", [{**r, "weight": w} for r, w in zip(records, (1, 1, 1)) if r["reward"] == 1])
        common = (*steps(8), "--lr", "1e-2")
        p = self.adapt("filtered", "--loss", "filtered", "--reward-min", "0.5", "--data", data, *common)
        self.assertIn(b"2 records have a smaller reward", p.stderr)
        self.adapt("best", "--data", best, *common)
        self.assertEqual(*(pathlib.Path(self.path(f"{run}/adapter.gguf")).read_bytes().replace(b"filtered", b"best") for run in ("filtered", "best")))
        self.adapt("weighted", "--loss", "reward", "--beta", "0.05", "--heldout", best, "--data", data, *common)
        self.adapt("plain", "--heldout", best, "--data", data, *common)
        if COMES_OF_IT:
            self.assertLess(self.points("weighted")[-1]["heldout"], self.points("plain")[-1]["heldout"])
        for loss, words in (("reward", b"has no \"reward\""), ("filtered", b"rewards.jsonl:2: the record has no")):
            records[1].pop("reward", 0)
            self.assertIn(words, self.adapt("none", "--loss", loss, "--data", self.write("rewards.jsonl", records), status=1).stderr)
        p = self.adapt("none", "--loss", "filtered", "--reward-min", "9", "--data", self.write("rewards.jsonl", records[:1]), status=1)
        self.assertIn(b"no record has a reward of the least", p.stderr)

    def test_a_pupil_comes_near_to_its_teacher(self):
        """The teacher is the base with what an adapter learned merged into it; the pupil is the base."""
        facts = self.write("taught.jsonl", [{"prompt": p["prompt"], "completion": p["chosen"]} for p in PAIRS])
        self.adapt("taught", "--data", facts, *steps(20), "--lr", "1e-2")
        teacher = self.path("teacher.gguf")
        p = weft("adapter", "merge", MODEL, teacher, "--adapter", "a=" + self.path("taught/adapter.gguf"))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.adapt("pupil", "--loss", "distill", "--teacher", teacher, "--top", "32", "--data", facts, *steps(20), "--lr", "1e-2")
        self.adapt("self", "--loss", "distill", "--teacher", MODEL, "--top", "2048", "--data", facts, "--steps", "1")
        pupil, own = self.points("pupil"), self.points("self")
        if COMES_OF_IT:
            self.assertLess(pupil[-1]["loss"], 0.2 * pupil[0]["loss"])
        self.assertLess(own[0]["loss"], 0.01)  # of itself there is nothing to learn but how it is served

    def sampled(self, out, *args):
        return self.adapt(out, "--data", self.asked, "--prompts", "4", "--group", "4", "--answer-tokens", "16", *args)

    @property
    def asked(self):
        people = ("Mira", "Tom", "Anna", "Ben", "Nora", "Paul", "Ida", "Hugo")
        return self.write("asked.jsonl", [{"prompt": f"Where does {who} live?", "completion": "the mill"} for who in people])

    def test_answers_that_are_judged_better_become_likelier(self):
        """A verifier that likes few characters, in a subprocess."""
        short = self.path("short.py")
        judge = "import json, sys\nfor line in iter(sys.stdin.readline, ''):\n    print(-len(json.loads(line)['answer']) / 10, flush=True)\n"
        pathlib.Path(short).write_text(judge)
        how = ("--verifier", f"{sys.executable} {short}", *steps(12), "--lr", "2e-2", "--schedule", "constant")
        p = self.sampled("short", "--loss", "grpo", *how, "--heldout", self.asked, "--json")
        points = self.points("short")
        if COMES_OF_IT:
            first, last = (sum(x["reward"] for x in part) / 3 for part in (points[1:4], points[-3:]))
            self.assertGreater(last, first + 0.3)
            self.assertGreater(points[-1]["heldout_reward"], points[0]["heldout_reward"])
        self.assertEqual(json.loads(p.stdout)["heldout_reward"], float(f"{points[-1]['heldout_reward']:.6g}"))
        self.assertEqual([x for x in os.listdir(self.path("short")) if "answers" in x], [])

    def test_served_and_trained_log_probabilities_agree(self):
        """The mean over sampled tokens of |log p as trained - as served|: F32 there, 8-bit products and F16 pages here."""
        self.sampled("apart", "--loss", "grpo", "--judge", "contains", "--beta", "0.1", *steps(8))
        points = self.points("apart")
        self.assertGreater(points[0]["tokens"], 200)  # with a KL to the base all answers are looked at
        apart = sum(p["apart"] for p in points) / len(points)
        self.assertLess(apart, 0.01)
        self.assertGreater(apart, 0)

    def contrasts(self):
        places = ("mill", "river", "inn", "hill", "wood", "lake")
        who = ("Mira", "Tom", "Anna", "Ben", "Nora", "Paul")
        return [{"query": f"Where does {a} live?", "positive": f"{a} lives at the {p}.", "negatives": [f"{a} likes the {p}.", f"{b} lives at the {q}."]}
                for a, b, p, q in zip(who, who[1:] + who[:1], places, places[1:] + places[:1])]

    def found(self, file, *args, model=MODEL):
        p = weft("eval", "retrieval", model, "-f", file, "--json", *args)
        self.assertEqual(p.returncode, 0, p.stderr)
        return json.loads(p.stdout)

    def test_texts_are_told_apart_by_their_embeddings(self):
        """InfoNCE brings queries to their texts as it is trained, and as the engine serves the adapter; alone the base finds fewer."""
        data = self.write("contrasts.jsonl", self.contrasts())
        p = self.adapt("told", "--loss", "infonce", "--data", data, "--heldout", data, *steps(40), "--lr", "1e-2", "--json")
        points = self.points("told")
        if COMES_OF_IT:
            self.assertLess(points[-1]["heldout"], 0.2 * points[0]["heldout"])
            self.assertEqual(points[-1]["heldout_better"], 1)
        self.assertEqual(points[-1]["heldout_better"], json.loads(p.stdout)["heldout_better"])
        self.assertNotIn("chosen", points[-1])
        base, told = self.found(data), self.found(data, "--adapter", "a=" + self.path("told/adapter.gguf"))
        self.assertEqual((base["queries"], base["texts"]), (6, 12))  # negatives of one are positives of others, each once
        hits = [{r["metric"]: r["value"] for r in x["results"]}["hit@1"] for x in (base, told)]
        if COMES_OF_IT:
            self.assertLess(hits[0], 1)
            self.assertEqual(hits[1], 1)
        for args in (("--slots", "1"), ("--threads", "1", "--slots", "5"))[::repeated(1, 2, 2)]:  # nor does what runs beside a text change it
            self.assertEqual(self.found(data, "--adapter", "a=" + self.path("told/adapter.gguf"), *args), told)
        one = self.write("one.jsonl", [{"query": "Who?", "positive": "I."}])
        self.assertIn(b"nothing to tell apart", self.adapt("none", "--loss", "infonce", "--data", one, status=1).stderr)
        self.assertIn(b"are for --loss infonce alone", self.adapt("none", "--data", data, status=1).stderr)
        self.assertIn(b"which have none", self.adapt("none", "--loss", "infonce", "--data", data, "--keep", data, status=1).stderr)

    @of_files
    def test_a_model_says_of_what_its_embeddings_are_made(self):
        """The key pooling_type, as llama.cpp has its numbers; an option says otherwise, and has to where a model's way is none of both."""
        data, found = self.write("pooled.jsonl", self.contrasts()), {}
        for kind in (None, 0, 1, 3):
            model = Model()
            if kind is not None:
                model.meta["llama.pooling_type"] = (U32, kind)
            found[kind] = self.found(data, model=self.write_bytes("pooled.gguf", bytes(model)))
        mean, last = (self.found(data, "--pooling", how, model=self.path("pooled.gguf")) for how in ("mean", "last"))
        self.assertNotEqual(mean, last)
        self.assertEqual(found, {None: mean, 0: mean, 1: mean, 3: last})
        model.meta["llama.pooling_type"] = (U32, 4)
        ranks = self.write_bytes("ranks.gguf", bytes(model))
        p = weft("eval", "retrieval", ranks, "-f", data)
        self.assertEqual((p.returncode, b"pooling_type is 4; there are 1 (mean) and 3 (last)" in p.stderr), (1, True), p.stderr)
        self.assertEqual(self.found(data, "--pooling", "last", model=ranks), last)

    @of_files
    def test_searches_that_lack_something_are_refused(self):
        data = self.write("search.jsonl", self.contrasts())
        for args, words in (((), b"-f FILE is missing"), (("--corpus", data), b"go together"),
                            (("-f", data, "--corpus", data, "--queries", data, "--qrels", data), b"give it, or --corpus")):
            p = weft("eval", "retrieval", MODEL, *args)
            self.assertEqual((p.returncode, words in p.stderr), (2, True), p.stderr)
        p = weft("eval", "retrieval", MODEL, "-f", self.write("bad.jsonl", [{"query": "x"}]))
        self.assertEqual((p.returncode, b'bad.jsonl: record 1: "positive" is no text' in p.stderr), (1, True), p.stderr)

    @of_files
    def test_verifiers_that_fail_end_the_run_by_name(self):
        for command, words in (("while read -r line; do echo good; done", b'the verifier said "good"'), ("exit 3", b"the verifier ended")):
            self.assertIn(words, self.adapt("fails", "--data", self.asked, "--loss", "grpo", "--verifier", command, status=1).stderr)

    def kill(self, out, *args):
        """Leaves a run that was killed between its first checkpoint and its end."""
        for _ in range(20):
            shutil.rmtree(self.path(out), ignore_errors=True)
            child = subprocess.Popen(WEFT + self.command(out, *args), stderr=subprocess.DEVNULL)
            while child.poll() is None and not os.path.exists(self.path(out + "/checkpoint.gguf")):
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
            if child.wait() == -signal.SIGKILL and not os.path.exists(self.path(out + "/adapter.gguf")):
                return
        self.fail("no run was killed before its end")

    @of_files
    def test_killed_runs_of_every_loss_go_on_to_the_same_bits(self):
        pairs = self.write("killed-pairs.jsonl", PAIRS)
        numbered = [({"prompt": p["prompt"], "completion": p["chosen"]}, x) for p, x in zip(PAIRS, (1, -1, 0.5, 2))]
        records = self.write("killed.jsonl", [{**p, "weight": x} for p, x in numbered])
        rewards = self.write("killed-rewards.jsonl", [{**p, "reward": x} for p, x in numbered])
        runs = (("--loss", "dpo", "--smoothing", "0.1", "--chosen", "0.5", "--data", pairs),
                ("--loss", "unlikelihood", "--anchor", "0.5", "--data", pairs),
                ("--optimizer", "muon", "--l2-sp", "0.1", "--norm-cap", "0.01", "--loss", "reward", "--data", rewards),
                ("--loss", "dr-grpo", "--judge", "contains", "--beta", "0.1", "--group", "2", "--prompts", "2",
                 "--answer-tokens", "8", "--data", self.asked),
                ("--loss", "infonce", "--temperature", "0.1", "--data", self.write("killed-texts.jsonl", self.contrasts())),
                ("--anchor", "0.5", "--data", records))
        for i, args in enumerate(runs[::repeated(1, 3, 3)]):
            args += ("--steps", "5", "--save-every", "1")
            self.adapt(f"whole-{i}", *args)
            self.kill(f"killed-{i}", *args)
            self.adapt(f"killed-{i}", "--resume", *args)
            for name in ("adapter.gguf", ):
                self.assertEqual(*(pathlib.Path(self.path(f"{run}-{i}"), name).read_bytes() for run in ("whole", "killed")), args)
            self.assertIn(b"other steps, rates or ranks", self.adapt(f"killed-{i}", "--resume", *args, "--lr", "1e-3", status=1).stderr)

    @of_files
    def test_options_of_other_losses_are_refused(self):
        pairs = self.write("refused.jsonl", PAIRS)
        for args, words in ((("--loss", "best"), b"--loss is sft, dpo"),
                            (("--smoothing", "0.1"), b"--smoothing is for --loss dpo"),
                            (("--reward-min", "0"), b"--reward-min is for --loss filtered"),
                            (("--dpo", "--loss", "sft"), b"give one of"),
                            (("--group", "4"), b"--group is for --loss grpo"),
                            (("--temperature", "0.1"), b"--temperature is for --loss infonce"),
                            (("--loss", "distill"), b"Give --teacher"),
                            (("--teacher", MODEL), b"--teacher is for --loss distill"),
                            (("--loss", "grpo"), b"who judges the answers?"),
                            (("--loss", "grpo", "--judge", "exact", "--verifier", "true"), b"who judges the answers?"),
                            (("--loss", "dpo", "--smoothing", "0.7"), b"--smoothing")):
            self.assertIn(words, self.adapt("refused", "--data", pairs, *args, status=2).stderr)


if __name__ == "__main__":
    main()
