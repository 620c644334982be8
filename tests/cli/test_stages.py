# SPDX-License-Identifier: Apache-2.0
"""Claims about weft train --config: stages that go on from each other, and what steers a training. usage: test_stages.py build/weft"""
import json
import os
import pathlib
import signal
import subprocess
import time

from common import WEFT, InFolder, main, weft

STORY = "The {} sat by the mill. \"Who is there?\" asked the {}. It was the owl.<|endoftext|>\n"
TEXT = "".join(STORY.format(a, b) for a in ("fox", "mole", "duck") for b in ("fox", "goose", "toad"))
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
STAGES = """\
defaults: {{ctx: 32, batch: 64, save-every: 1, seed: 4}}
stages:
  words:
    command: train
    data: {text}
    tokenizer: {vocab}
    layers: 1
    width: 16
    ff: 16
    heads: 2
    kv-heads: 1
    steps: {steps}
    lr: 1e-2
  chat:
    command: adapter train
    data: [{chats}]
    heldout: {chats}
    heldout-every: 2
    best: true
    rank: 4
    steps: {steps}
  taste:
    command: adapter train
    loss: dpo
    data: {pairs}
    steps: {steps}
"""


class Stages(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.names = {"text": cls.write("text.txt", TEXT), "steps": "8"}
        cls.names["chats"] = cls.write("chats.jsonl", "".join(
            json.dumps({"prompt": f"Who sat by the {w}?", "completion": "The owl!"}) + "\n" for w in ("mill", "fox", "cat")))
        cls.names["pairs"] = cls.write("pairs.jsonl", "".join(
            json.dumps({"prompt": f"Who sat by the {w}?", "chosen": "The owl!", "rejected": "The fox."}) + "\n" for w in ("mill", "cat")))
        cls.names["vocab"] = cls.path("vocab.gguf")
        p = weft("train-tokenizer", cls.names["text"], "-o", cls.names["vocab"], "--vocab", "300", "--chat-template", cls.write("t.jinja", TEMPLATE))
        assert p.returncode == 0, p.stderr
        cls.config = cls.write("job.yaml", STAGES.format(**cls.names))

    @classmethod
    def write(cls, name, text):
        pathlib.Path(cls.path(name)).write_text(text, encoding="utf-8")
        return cls.path(name)

    def job(self, out, *args, config=None, status=0):
        p = weft("train", "--config", config or self.config, "--out", self.path(out), *args)
        self.assertEqual(p.returncode, status, p.stderr)
        return p.stderr.decode()

    def results(self, out):
        return [pathlib.Path(self.path(out), folder, name).read_bytes()
                for folder, name in (("1-words", "model.gguf"), ("2-chat", "adapter.gguf"), ("3-taste", "adapter.gguf"))]

    def test_a_job_that_is_killed_again_and_again_has_the_bits_of_one_run(self):
        self.job("whole", "-t", "1")
        whole = self.results("whole")
        kept = pathlib.Path(self.path("whole/config.yaml"))
        command = WEFT + ["train", "--config", self.config, "--out", self.path("killed"), "-t", "2"]
        kills, args = 0, []
        while True:
            child = subprocess.Popen(command + args, stderr=subprocess.DEVNULL)
            time.sleep(0.02 + 0.01 * kills)
            child.send_signal(signal.SIGKILL)
            if child.wait() != -signal.SIGKILL:
                break
            kills += 1
            args = ["--resume"] if os.path.exists(self.path("killed/config.yaml")) else []
        self.assertGreater(kills, 1)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(self.results("killed"), whole)
        self.assertEqual(pathlib.Path(self.path("killed/config.yaml")).read_bytes(), kept.read_bytes())
        said = self.job("killed", "--resume")  # done: looked at again, and the same
        self.assertEqual(said.count("going on after step 8"), 3)
        self.assertEqual(self.results("killed"), whole)
        # what stands beside the results makes them again, and stands there again
        self.job("again", config=str(kept))
        self.assertEqual(self.results("again"), whole)
        self.assertEqual(pathlib.Path(self.path("again/config.yaml")).read_bytes(), kept.read_bytes())
        # other settings, and other data, are another job
        other = self.write("other.yaml", pathlib.Path(self.config).read_text().replace("rank: 4", "rank: 5"))
        said = self.job("killed", "--resume", config=other, status=1)
        self.assertRegex(said, r"config\.yaml, with which the job was begun, says otherwise in line \d+")
        self.assertIn("holds a job already", self.job("killed", status=1))
        self.assertIn("holds no job", self.job("nothing", "--resume", status=1))
        chats = pathlib.Path(self.names["chats"])
        before = chats.read_bytes()
        try:
            chats.write_bytes(before + before)
            self.assertIn("was made with other data", self.job("killed", "--resume", status=1))
        finally:
            chats.write_bytes(before)

    def test_a_file_that_is_wrong_is_refused_with_key_and_line(self):
        right = pathlib.Path(self.config).read_text()
        cases = (
            ("    lr: 1e-2\n", "    lr: fast\n", ":13:5: stages.words.lr: lr fast: "),
            ("    layers: 1\n", "    layer: 1\n", ":7:5: stages.words.layer: there is no 'layer'; did you mean 'layers'?"),
            ("    layers: 1\n", "    layers: 0\n", ":7:5: stages.words.layers: layers 0: "),
            ("command: train", "command: trian", ":4:14: stages.words.command: must be 'train' or 'adapter train', not 'trian'"),
            ("    best: true\n", "    out: x\n", ":19:5: stages.chat.out: 'out' is for the command line alone"),
            ("    best: true\n", "    best: 7\n", ":19:5: stages.chat.best: best: must be true or false"),
            ("    rank: 4\n", "    layers: 4\n", ":20:5: stages.chat.layers: there is no 'layers'"),
            ("    loss: dpo\n", "    loss: kto\n", ":22:3: stages.taste"),
            ("    heldout: ", "    heldout: absent-", ":17:5: stages.chat.heldout: absent-"),
            ("seed: 4", "seeds: 4", ":1:47: defaults.seeds: there is no 'seeds'"),
            ("    tokenizer: ", "    # ", "stages.words: in this stage"),
            ("  taste:\n    command: adapter train\n    loss: dpo\n", "  taste:\n    command: train\n", "the stage before makes an adapter"),
        )
        for what, instead, words in cases:
            self.assertIn(what, right)
            status = 2 if "tokenizer" in what or "kto" in instead else 1
            said = self.job("refused", config=self.write("wrong.yaml", right.replace(what, instead, 1)), status=status)
            self.assertIn(words, said)
            self.assertFalse(os.path.exists(self.path("refused")))
        p = weft("train", "--config", self.config, "--out", self.path("refused"), "--lr", "1")
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"--lr belongs into the file of --config", p.stderr)

    def test_what_is_learned_is_shown(self):
        self.job("shown")
        model = self.path("shown/1-words/model.gguf")
        p = weft("adapter", "train", model, "--data", self.names["pairs"], "--loss", "dpo", "--show", "1")
        self.assertEqual(p.returncode, 0, p.stderr)
        text = p.stdout.decode()
        self.assertIn("<|im_start|>user\nWho sat by the mill?<|im_end|>\n<|im_start|>assistant\n⟦The owl!<|im_end|>⟧\n", text)
        self.assertIn("⟦The fox.<|im_end|>⟧", text.split("(rejected)")[1])
        p = weft("train", self.names["text"], "--base", model, "--show", "2", "--json")
        lines = [json.loads(line) for line in p.stdout.decode().splitlines()]
        self.assertEqual(len(lines), 2)
        self.assertEqual("".join(t["text"] for t in lines[0]["tokens"] if t["weight"]), TEXT.split("\n")[0])
        asked = ("--answers", self.names["chats"], "--keep", self.names["chats"])
        p = weft("adapter", "train", model, "--data", self.names["chats"], "--out", self.path("sample"), "--steps", "2", "-c", "32", *asked,
                 "--sample-prompt", "Who sat by the mill?", "--sample-tokens", "4", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual(p.stderr.count(b": Who sat by the mill?\n  > "), 2)
        said = json.loads(p.stdout)
        self.assertEqual((said["answers"], said["result_step"], said["scale"]), (3, 2, 1))
        with open(self.path("sample/loss.jsonl"), encoding="utf-8") as f:
            self.assertEqual([json.loads(line).get("answers") is not None for line in f], [True] * 3)
        p = weft("adapter", "train", model, "--data", self.names["chats"], "--out", self.path("x"), "--stop", "answers")
        self.assertEqual((p.returncode, b"--stop answers needs --answers F" in p.stderr), (2, True))
        p = weft("adapter", "train", model, "--data", self.names["chats"], "--out", self.path("x"), *asked, "--scales", "1,a")
        self.assertEqual((p.returncode, b"--scales are numbers" in p.stderr), (2, True))


if __name__ == "__main__":
    main()
