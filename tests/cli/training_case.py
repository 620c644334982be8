# SPDX-License-Identifier: Apache-2.0
"""What claims about training have in common: a small text, chats, a vocabulary of them, and a model that learned it."""
import json
import os
import pathlib

from common import EMULATED, InFolder, leave_out, weft

STORY = "The {} sat by the mill. \"Who is there?\" asked the {}. It was the owl.<|endoftext|>\n"
TALK = "<|im_start|>user\nWas it the {}?<|im_end|>\n<|im_start|>assistant\nYes, the {}!<|im_end|><|endoftext|>\n"
TEXT = "".join(STORY.format(a, b) + TALK.format(b, a) for a in ("fox", "mole", "duck", "cat") for b in ("fox", "goose", "toad"))
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
of_files = leave_out(EMULATED, "files and messages are the same for every processor")
SHAPE = ("--layers", "2", "--width", "32", "--ff", "64", "--heads", "2", "--kv-heads", "1", "-c", "48", "-b", "96")


class Training(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.text, template = cls.write("text.txt", TEXT), cls.write("chat.jinja", TEMPLATE)
        cls.chats = cls.write(
            "chats.jsonl",
            "".join(
                json.dumps({"prompt": f"Who sat by the {w}?", "completion": "The owl!"}) + "\n"
                for w in ("mill", "fox", "cat", "toad")
            ),
        )
        cls.vocab = cls.path("vocab.gguf")
        p = weft("train-tokenizer", cls.text, "-o", cls.vocab, "--vocab", "320", "--chat-template", template)
        assert p.returncode == 0, p.stderr
        cls.model = cls.train("base", "--steps", "120", "--lr", "1e-2")

    @classmethod
    def write(cls, name, text):
        pathlib.Path(cls.path(name)).write_text(text, encoding="utf-8")
        return cls.path(name)

    @classmethod
    def command(cls, out, *args):
        return ["train", cls.text, "--tokenizer", cls.vocab, "--out", cls.path(out), *SHAPE, *args]

    @classmethod
    def train(cls, out, *args):
        p = weft(*cls.command(out, *args))
        assert p.returncode == 0, p.stderr
        return os.path.join(cls.path(out), "model.gguf")

    def adapt(self, out, *args, status=0):
        p = weft("adapter", "train", self.model, "--out", self.path(out), "-c", "48", "-b", "96", *args)
        self.assertEqual(p.returncode, status, p.stderr)
        return p

    def points(self, out):
        with open(os.path.join(self.path(out), "loss.jsonl"), encoding="utf-8") as f:
            return [json.loads(line) for line in f]

    def bytes_of(self, *names):
        return pathlib.Path(self.path(os.path.join(*names))).read_bytes()
