# SPDX-License-Identifier: Apache-2.0
"""Claims about weft adapter train. usage: test_adapter_train.py build/weft"""
import json
import math
import os
import pathlib
import re
import shutil
import struct

import gguf_maker
from common import main, repeated, weft
from training_case import SHAPE, TEMPLATE, TEXT, Training, of_files


class Adapters(Training):
    @of_files
    def test_the_help_says_the_defaults(self):
        """A run of the rate and the epochs that it names is that without any; an adapter's epochs follow the data, and are said before the first step."""
        for out, command in (
            ("usual-model", ["train", self.text, "--base", self.model]),
            ("usual-adapter", ["adapter", "train", self.model, "--data", self.chats, "--rank", "2"]),
        ):
            text = weft(*command[:1 if command[0] == "train" else 2], "--help").stdout.decode()
            lr = re.search(r"--lr X .*\(([0-9.e-]+)\)", text).group(1)
            p = weft(*command, "--out", self.path(out + "unsaid"), "-c", "48", "-b", "96")
            self.assertEqual(p.returncode, 0, p.stderr)
            said = re.search(r"steps of about 96 tokens \(([0-9.]+) epochs?\)\n.*?step 1 of", p.stderr.decode() + "step 1 of", re.S).group(1)
            if command[0] == "train":
                self.assertEqual(said, re.search(r"--epochs X .*\(([0-9.]+)\)", text).group(1))
            p = weft(*command, "--out", self.path(out + "said"), "-c", "48", "-b", "96", "--lr", lr, "--epochs", said)
            self.assertEqual(p.returncode, 0, p.stderr)
            points = [[{k: v for k, v in p.items() if k != "seconds"} for p in self.points(out + name)] for name in ("said", "unsaid")]
            self.assertEqual(*points)

    def test_defaults_follow_the_data(self):
        """A few hundred records of a line make as many steps as leave a trace; long ones as large steps as ever, and no more of them."""
        if not repeated(1, 0, 0):
            return  # hundreds of steps, of which the other tests take a few
        words = ("mill", "fox", "cat", "toad")
        few = self.write(
            "few.jsonl",
            "".join(
                json.dumps({"prompt": f"Who sat by the {words[i % 4]}?", "completion": f"The owl, {words[i % 4]}!"})
                + "\n"
                for i in range(336)
            ),
        )
        p = weft("adapter", "train", self.model, "--data", few, "--out", self.path("few-records"), "-c", "48")
        self.assertEqual(p.returncode, 0, p.stderr)
        said = re.search(r"336 texts of (\d+) tokens, .*; (\d+) steps of about (\d+) tokens \((\d+) epochs\)\n.*?step ", p.stderr.decode(), re.S)
        mean, n_steps, batch, epochs = map(int, said.groups())
        losses = [point["loss"] for point in self.points("few-records")]
        self.assertEqual(len(losses), n_steps)
        self.assertTrue(200 <= n_steps <= 240 and abs(batch - 16 * mean) <= 16 and epochs > 2, said.group(0))
        self.assertLess(sum(losses[-10:]) / 10, 0.3 * losses[0])
        many = self.write("many.txt", TEXT * 70)
        p = weft("adapter", "train", self.model, "--data", many, "--out", self.path("many-texts"), "-c", "48", "--rank", "2", "--targets", "attn_q")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertRegex(p.stderr.decode(), r"\(2 epochs\)\n")
        given = weft("adapter", "train", self.model, "--data", few, "--out", self.path("given"), "-c", "48", "-b", "96", "--steps", "3")
        self.assertRegex(given.stderr.decode(), r"; 3 steps of about 96 tokens\n")

    def test_an_adapter_learns_answers(self):
        self.adapt("owl", "--data", self.chats, "--rank", "8", "--epochs", "60", "--lr", "2e-2")
        self.assertLess(self.points("owl")[-1]["loss"], 0.3)
        merged = self.path("owl.gguf")
        p = weft("adapter", "merge", self.model, merged, "--adapter", "owl=" + self.path("owl/adapter.gguf"))
        self.assertEqual(p.returncode, 0, p.stderr)
        refused = weft("adapter", "merge", self.path("owl"), self.path("no.gguf"), "--adapter", "owl=" + self.path("owl/adapter.gguf"))
        self.assertEqual((refused.returncode, b"weft convert" in refused.stderr), (2, True), refused.stderr)
        base, owl = (json.loads(weft("compare", m, "Who sat by the duck?", "-n", "8", "--temp", "0", "--json").stdout)[0]["text"] for m in (self.model, merged))
        self.assertEqual(owl, "The owl!")
        self.assertNotEqual(base, owl)
        p = weft("compare", self.model, "Who sat by the duck?", "--adapter", "owl=" + self.path("owl/adapter.gguf"), "-n", "8", "--temp", "0", "--json")
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertEqual([(r["adapter"], r["text"]) for r in json.loads(p.stdout)], [("base", base), ("owl", owl)])

    def test_a_saved_chat_is_learned(self):
        """What /save writes is a record, under whatever name, and so is the list of messages that it once was; and so are others' forms."""
        told = [{"role": "user", "content": "Who sat by the mill?"}, {"role": "assistant", "content": "The owl!"}]
        files = [
            self.write("once.json", json.dumps(told, indent=2) + "\n"),
            self.write("once.jsonl", json.dumps(told, indent=2) + "\n"),
            self.write(
                "share.json",
                json.dumps(
                    [
                        {
                            "conversations": [
                                {"from": "human", "value": "Who sat by the mill?"},
                                {"from": "gpt", "value": "The owl!"},
                            ]
                        }
                    ]
                ),
            ),
            self.write(
                "alpaca.jsonl",
                json.dumps({"instruction": "Who sat by the mill?", "input": "", "output": "The owl!"}) + "\n",
            ),
        ]
        losses = []
        for file in files:
            self.adapt(os.path.basename(file) + "-out", "--data", file, "--steps", "2")
            losses.append([p["loss"] for p in self.points(os.path.basename(file) + "-out")])
        self.assertEqual(losses, [losses[0]] * len(files))
        for name in ("saved.json", "saved.jsonl"):
            p = weft("chat", self.model, "-n", "4", "--temp", "0", stdin=f"hello\n/save {self.path(name)}\n".encode())
            self.assertEqual(p.returncode, 0, p.stderr)
            self.adapt(name + "-out", "--data", self.path(name), "--steps", "1")

    def test_conversations_for_a_model_without_a_template(self):
        """They get ChatML, as it is served; a line says so once, and none where prompts and answers are strings."""
        vocab, chats = self.path("bare-vocab.gguf"), self.path("bare-chats.jsonl")
        self.assertEqual(weft("train-tokenizer", self.text, "-o", vocab, "--vocab", "320").returncode, 0)
        pathlib.Path(chats).write_text("".join(json.dumps({"messages": [{"role": "user", "content": w}, {"role": "assistant", "content": "The owl!"}]}) + "\n"
                                               for w in ("mill", "fox")), encoding="utf-8")
        p = weft("train", self.text, "--tokenizer", vocab, "--out", self.path("bare"), *SHAPE, "--steps", "2")
        self.assertEqual((p.returncode, b"chat template" in p.stderr), (0, False), p.stderr)
        line = b"bare/model.gguf: the model has no chat template; it gets ChatML (another one: --chat-template FILE)"
        model, template, learned = self.path("bare/model.gguf"), self.write("bare.jinja", TEMPLATE), []
        for out, data, more, told in (("no", chats, ("--heldout", chats), 1), ("own", chats, ("--chat-template", template), 0), ("text", self.chats, (), 0)):
            p = weft("adapter", "train", model, "--data", data, "--out", self.path("bare-" + out), "-c", "48", "-b", "96", "--steps", "1", *more)
            self.assertEqual((p.returncode, p.stderr.count(line)), (0, told), p.stderr)
            learned.append([point["loss"] for point in self.points("bare-" + out) if "loss" in point])
        self.assertEqual(learned[0][-1], learned[1][-1])  # the same tokens

    def test_an_adapter_knows_its_base(self):
        self.adapt("known", "--data", self.chats, "--rank", "4", "--steps", "2")
        adapter, other, small = self.path("known/adapter.gguf"), self.train("stranger", "--steps", "2", "--seed", "5"), self.path("known-q8.gguf")
        self.assertEqual(weft("quantize", self.model, small, "Q8_0").returncode, 0)
        merged, folder, back = self.path("known-merged.gguf"), self.path("known-peft"), self.path("known-back.gguf")
        self.assertEqual(weft("adapter", "merge", small, merged, "--adapter", "a=" + adapter).returncode, 0)
        for base in (self.model, small, merged):
            p = weft("run", base, "Who?", "-n", "1", "--adapter", "a=" + adapter)
            self.assertEqual(p.returncode, 0, p.stderr)
        for args in (("run", other, "Who?", "-n", "1", "--adapter", "a=" + adapter), ("adapter", "info", adapter, "--base", other),
                     ("adapter", "merge", other, self.path("no.gguf"), "--adapter", "a=" + adapter)):
            p = weft(*args)
            self.assertEqual(p.returncode, 1, args)
            self.assertIn(b"was trained on another model than", p.stderr)
        self.assertEqual(weft("adapter", "convert", adapter, folder, "--base", self.model).returncode, 0)  # the remedy that is named
        self.assertEqual(weft("adapter", "convert", folder, back, "--base", other).returncode, 0)
        p = weft("run", other, "Who?", "-n", "1", "--adapter", "a=" + back)
        self.assertEqual(p.returncode, 0, p.stderr)

    def test_it_learns_over_a_quantized_base(self):
        small = self.path("q8.gguf")
        self.assertEqual(weft("quantize", self.model, small, "Q8_0").returncode, 0)
        p = weft(
            "adapter",
            "train",
            small,
            "--data",
            self.chats,
            "--out",
            self.path("small"),
            "-c",
            "48",
            "-b",
            "96",
            "--rank",
            "8",
            "--epochs",
            "60",
            "--lr",
            "2e-2",
            "--json",
        )
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(json.loads(p.stdout)["loss"], self.points("small")[0]["loss"] / 2)

    @of_files
    def test_a_checkpoint_knows_its_base(self):
        other = self.train("other", "--steps", "2")
        args = ("--data", self.chats, "--rank", "4", "--steps", "2")
        self.adapt("mine", *args)
        p = weft("adapter", "train", other, "--out", self.path("mine"), "-c", "48", "-b", "96", "--resume", *args)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"another model", p.stderr)

    @of_files
    def test_a_checkpoint_knows_every_number_of_its_base(self):
        base, tensors = bytearray(pathlib.Path(self.model).read_bytes()), json.loads(weft("info", self.model, "--json").stdout)["tensors"]
        at = len(base) - sum(t["bytes"] for t in tensors) + tensors[0]["bytes"] // 2  # the embedding comes first: far from its ends
        self.assertEqual((tensors[0]["name"], tensors[0]["bytes"]), ("token_embd.weight", 40960))
        args = ("--data", self.chats, "--rank", "4", "--steps", "2", "-c", "48", "-b", "96", "--out", self.path("inside"))
        copy = self.path("inside.gguf")
        pathlib.Path(copy).write_bytes(base)
        self.assertEqual(weft("adapter", "train", copy, *args).returncode, 0)
        self.assertEqual(weft("adapter", "train", copy, "--resume", *args).returncode, 0)
        base[at] ^= 1
        pathlib.Path(copy).write_bytes(base)
        p = weft("adapter", "train", copy, "--resume", *args)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"another model", p.stderr)

    @of_files
    def test_more_tokens_than_the_model_has_are_refused(self):
        model = gguf_maker.Model()
        for name in ("token_embd.weight", "output.weight"):
            model.tensor(name).dims[1] = 290
        base = self.path("few.gguf")
        pathlib.Path(base).write_bytes(bytes(model))
        p = weft(
            "adapter",
            "train",
            base,
            "--data",
            self.write("short.jsonl", "{\"text\": \"ABCDEFG\"}\n"),
            "--out",
            self.path("few"),
            "-c",
            "16",
            "-b",
            "16",
            "--steps",
            "1",
        )
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"its tokenizer has 300 tokens, its embedding 290", p.stderr)

    def test_preferences_are_learned(self):
        pairs = self.write(
            "pairs.jsonl",
            "".join(
                json.dumps({"prompt": f"Who sat by the {w}?", "chosen": "The owl!", "rejected": "The fox."}) + "\n"
                for w in ("mill", "fox", "cat")
            ),
        )
        self.adapt("kinder", "--dpo", "--data", pairs, "--rank", "4", "--epochs", "15", "--lr", "1e-2")
        points = self.points("kinder")
        self.assertAlmostEqual(points[0]["loss"], math.log(2), places=4)
        self.assertLess(points[-1]["loss"], 0.3)
        self.assertEqual(points[-1]["better"], 1.0)

    def test_heldout_preferences_are_measured(self):
        """The pair that is learned, and the same the other way round: after a step its loss is what the next step finds."""
        pair = {"prompt": "Who sat by the mill?", "chosen": "The owl!", "rejected": "The fox."}
        one = self.write("pair.jsonl", json.dumps(pair) + "\n")
        both = self.write("both-ways.jsonl", json.dumps(pair) + "\n" + json.dumps({**pair, "chosen": pair["rejected"], "rejected": pair["chosen"]}) + "\n")
        p = self.adapt("held-pairs", "--dpo", "--data", one, "--heldout", both, "--heldout-every", "1", "--rank", "4", "--steps", "6", "--lr", "1e-2", "--json")
        points = self.points("held-pairs")
        self.assertEqual((points[0]["step"], points[0]["heldout_better"]), (0, 0))
        self.assertAlmostEqual(points[0]["heldout"], math.log(2), places=6)
        for now, after in zip(points[1:], points[2:]):
            margin = -math.log(math.expm1(after["loss"]))  # from -log sigmoid(margin)
            self.assertAlmostEqual(now["heldout"], (after["loss"] + math.log1p(math.exp(margin))) / 2, places=5)
            self.assertEqual(now["heldout_better"], 0.5)
        self.assertGreater(points[-1]["heldout"], points[1]["heldout"])
        self.assertEqual(json.loads(p.stdout)["heldout_better"], 0.5)

    @of_files
    def test_records_that_lose_their_end_are_counted_each_once(self):
        long = "The owl sat by the mill. " * 9
        chats = self.write("long.jsonl", "".join(json.dumps({"prompt": f"Who is the {w}?", "completion": long}) + "\n" for w in ("fox", "owl", "cat")))
        pairs = self.write(
            "long-pairs.jsonl",
            "".join(
                json.dumps({"prompt": f"Who is the {w}?", "chosen": "The " + long, "rejected": long}) + "\n"
                for w in ("fox", "owl")
            ),
        )
        for out, n, data, more in (("cut-chats", 3, chats, ()), ("cut-pairs", 2, pairs, ("--dpo",))):
            p = self.adapt(out, "--data", data, "--rank", "2", "--steps", "1", *more)
            self.assertIn(f"\n{n} records are longer than 48 tokens and lose their end (-c N)\n".encode(), p.stderr)

    @of_files
    def test_pairs_without_a_difference_are_not_learned(self):
        alike, unlike = {"prompt": "Who?", "chosen": "The owl!", "rejected": "The owl!"}, {"prompt": "Who?", "chosen": "The owl!", "rejected": "The fox."}
        long = "The owl sat by the mill. " * 9
        some = self.write("some-alike.jsonl", "".join(json.dumps(r) + "\n" for r in (alike, unlike, alike)))
        p = self.adapt("some-alike", "--dpo", "--data", some, "--rank", "2", "--steps", "1")
        self.assertIn(b"2 pairs hold nothing to prefer and are left out", p.stderr)
        for name, pair, words in (("alike", alike, b"of every pair the two answers are the same\n"),
                                  ("cut-alike", {"prompt": "Who?", "chosen": long + "a", "rejected": long + "b"}, b"the same as far as they fit\n")):
            p = self.adapt(name, "--dpo", "--data", self.write(name + ".jsonl", json.dumps(pair) + "\n"), "--rank", "2", "--steps", "1", status=1)
            self.assertIn(words, p.stderr)
            self.assertFalse(os.path.exists(self.path(name + "/adapter.gguf")))

    @of_files
    def test_adapters_resume_too(self):
        args = ("--data", self.chats, "--rank", "4", "--steps", "6", "--save-every", "3")
        self.adapt("whole-adapter", *args)
        self.adapt("cut-adapter", *args)
        os.remove(self.path("cut-adapter/adapter.gguf"))  # as if it had been killed while writing
        self.adapt("cut-adapter", "--resume", *args)
        self.assertEqual(self.bytes_of("whole-adapter", "adapter.gguf"), self.bytes_of("cut-adapter", "adapter.gguf"))

    @of_files
    def test_a_spoiled_batch_takes_its_step_s_others_with_it(self):
        model = gguf_maker.Model()
        data = bytearray(bytes(model))
        at = len(data) - sum(t.size() for t in model.tensors) + (3 + ord("Q")) * gguf_maker.D * 4  # the embedding comes first
        data[at:at + 4] = struct.pack("<f", math.nan)
        base = self.path("odd.gguf")
        pathlib.Path(base).write_bytes(data)

        def run(out, spoiled, *args):
            texts = ["ABCDEFGHIJKLM"[:n] for n in range(8, 14)]
            records = self.write(
                out + ".jsonl",
                "".join(
                    json.dumps({"text": t[:2] + ("Q" if i in spoiled else t[2]) + t[3:]}) + "\n"
                    for i, t in enumerate(texts)
                ),
            )
            p = weft("adapter", "train", base, "--data", records, "--out", self.path(out), "-c", "16", "-b", "16", "--rank", "2", *args)
            self.assertEqual(p.returncode, 0, p.stderr)
            return [{k: v for k, v in point.items() if k != "seconds"} for point in self.points(out)], self.bytes_of(out, "adapter.gguf")

        tokens = [0] + [p["tokens"] for p in run("order", (), "--steps", "6")[0]]
        lengths = [b - a for a, b in zip(tokens, tokens[1:])]
        order = [sorted(lengths).index(n) for n in lengths]  # texts of different lengths, each a batch
        self.assertEqual(sorted(order), list(range(6)))
        second, both = (run(out, spoiled, "--steps", "1", "--accumulate", "2") for out, spoiled in (("second", order[1:2]), ("both", order[:2])))
        self.assertEqual(second, both)
        self.assertEqual(second[0][0]["tokens"], lengths[2] + lengths[3])
        p = weft(
            "adapter",
            "train",
            base,
            "--data",
            self.path("both.jsonl"),
            "--out",
            self.path("never"),
            "-c",
            "16",
            "-b",
            "16",
            "--rank",
            "2",
            "--steps",
            "1",
            "--accumulate",
            "9",
        )
        self.assertIn(b"not finite", p.stderr)  # of twelve batches in a row four are spoiled: no step comes about

    @of_files
    def test_what_is_read_is_not_written_over(self):
        self.adapt("read", "--data", self.chats, "--rank", "2", "--steps", "1")
        adapter, model, link, folder = self.path("read/adapter.gguf"), self.path("model-copy.gguf"), self.path("linked.gguf"), self.path("read-peft")
        shutil.copy(self.model, model)
        self.assertEqual(weft("adapter", "convert", adapter, folder, "--base", model).returncode, 0)
        os.symlink(adapter, link)
        curve = self.write("read/loss.jsonl", "{\"text\": \"the owl\"}\n")
        def state():
            return (
                {
                    os.path.join(d, f): pathlib.Path(d, f).read_bytes()
                    for top in (self.path("read"), folder)
                    for d, _, names in os.walk(top)
                    for f in names
                },
                self.bytes_of("model-copy.gguf"),
                os.readlink(link),
            )
        before, use, read, other = state(), ("--adapter", "a=" + adapter), b" is what is read", b"would be written over it"
        for args, words in (
                (("adapter", "merge", model, model, *use), read), (("adapter", "merge", model, adapter, *use), read),
                (("adapter", "merge", model, adapter, *use, "--method", "cat"), read), (("adapter", "merge", model, link, *use, "--method", "cat"), read),
                (("adapter", "merge", model, self.model, *use, "--method", "cat"), other),
                (("adapter", "merge", model, self.path("read/adapter.gguf"), "--adapter", "a=" + folder), other),
                (("adapter", "merge", model, folder, "--adapter", "a=" + folder, "--method", "cat"), read),
                (("adapter", "convert", adapter, adapter, "--base", model), read), (("adapter", "convert", folder, folder, "--base", model), read),
                (("adapter", "convert", folder, model, "--base", model), read), (("adapter", "convert", folder, self.model, "--base", model), other),
                (("adapter", "train", model, "--data", curve, "--out", self.path("read"), "-c", "48", "-b", "96", "--steps", "1", "--resume"), read),
                (("adapter", "train", model, "--data", self.chats, "--heldout", curve, "--out", self.path("read")), read),
                (("train", self.text, "--base", model, "--tokenizer", self.vocab, "--out", os.path.dirname(model)), b"give --tokenizer"),
                (("train", self.text, "--base", self.model, "--out", os.path.dirname(self.model)), read)):
            p = weft(*args)
            self.assertNotEqual(p.returncode, 0, args)
            self.assertIn(words, p.stderr, args)
            self.assertEqual(state(), before, args)
        again = ("adapter", "convert", folder, self.path("again.GGUF"), "--base", model)
        self.assertEqual([weft(*again).returncode, weft(*again).returncode], [0, 0])  # an adapter over an adapter, as ever
        self.assertTrue(os.path.isfile(self.path("again.GGUF")))  # the ending says what it is, in any case

    @of_files
    def test_options_that_a_merge_does_not_use_are_refused(self):
        for args, words in (
            (("--method", "cat", "--density", "0.5"), b"--density is for --method ties and dare"),
            (("--density", "1"), b"--density is for"),
            (("--method", "linear", "--seed", "0"), b"--seed is for --method dare"),
            (("--method", "ties", "--density", "0.5", "--seed", "3"), b"--seed is for"),
            (("--seed", "3"), b"--seed is for"),
        ):
            p = weft("adapter", "merge", self.model, self.path("unmerged.gguf"), "--adapter", "a=" + self.path("nowhere.gguf"), *args)
            self.assertEqual(p.returncode, 2, args)
            self.assertIn(words, p.stderr, args)

    @of_files
    def test_wrong_data_are_named(self):
        self.assertIn(b"the record is a completion; pairs are wanted", self.adapt("x", "--dpo", "--data", self.chats, status=1).stderr)
        self.assertIn(b"--data is missing", self.adapt("x", status=2).stderr)
        self.assertIn(b"--beta is for --loss dpo, reward", self.adapt("x", "--data", self.chats, "--beta", "0.5", status=2).stderr)
        self.assertIn(b"attn_x", self.adapt("x", "--data", self.chats, "--targets", "attn_x", status=1).stderr)


if __name__ == "__main__":
    main()
