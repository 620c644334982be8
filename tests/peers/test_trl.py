# SPDX-License-Identifier: Apache-2.0
"""SFT and DPO of weft adapter train beside TRL's own trainers over PEFT: the same F16 base, tokens, first adapter and optimizer, one seed, and a
step over all the data each, so that no order shows. Exact products follow TRL to rounding; rounded ones within noise.
usage: test_trl.py build/weft

Needs python3-numpy, trl, peft, transformers and torch (tests/peers/run installs them). Skipped where one of them is absent."""
import itertools
import json
import os
import shutil
import sys
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model")]
import hf_cases as folders  # noqa: E402
import numpy as np  # noqa: E402

try:
    import datasets
    import peft
    import torch
    import transformers
    import trl
except ImportError:
    trl = None

if trl:  # names of caches, made of pickled columns: some releases cannot pickle theirs, and nothing is kept here
    NAMES = itertools.count()
    datasets.fingerprint.Hasher.hash = classmethod(lambda *_: f"{next(NAMES):016x}")

STEPS, RATE, BETA = 8, 0.01, 0.3
LINEARS = 7  # of a layer
CASE = folders.Case("llama-f16", "LlamaForCausalLM", {"model_type": "llama", "head_dim": 16}, dtype="F16")
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
WORDS = "the theater her nation hello world mill owl fox in at".split()


def records(seed, *answers):
    rng = np.random.default_rng(seed)
    text = lambda n: "".join(" " + WORDS[i] for i in rng.integers(0, len(WORDS), n))
    for _ in range(8):
        yield {"prompt": text(3), **{name: text(int(rng.integers(2, 6))) for name in answers}}


@unittest.skipUnless(trl, "trl, peft, transformers and torch are not installed")
class Trl(folders.Folder):
    def setUp(self):
        super().setUp()
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        CASE.write(self.folder)
        self.template = self.path("template.jinja")
        with open(self.template, "w", encoding="utf-8") as f:
            f.write(TEMPLATE)

    def weft(self, *args, exact=True):
        """Exact ones by the reference kernels, so that what is compared is what the trainer does; rounded ones by those of this processor."""
        p = folders.weft(*args) if exact else folders.common.weft(*args)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return p.stdout

    def shown(self, data, *options):
        """The texts: ids, and which of them are learned."""
        said = self.weft("adapter", "train", self.folder, "--data", data, "--chat-template", self.template, "--show", "100", "--json", "-c", "64", *options)
        texts = [json.loads(line)["tokens"] for line in said.splitlines()]
        return [([t["id"] for t in text], [int(t["weight"] > 0) for t in text]) for text in texts]

    def train(self, data, rows, steps, exact, *options):
        out = self.path(f"run{steps}{'e' if exact else 'r'}{options[-1]}")
        self.weft("adapter", "train", self.folder, "--data", data, "--out", out, "--steps", str(steps), "--rank", "4", "--alpha", "8", "--lr", str(RATE),
                  "--schedule", "constant", "--warmup", "0", "--weight-decay", "0", "--clip", "0", "-c", "64", "-b", str(rows), "--chat-template",
                  self.template, *(("--exact",) if exact else ()), *options, exact=exact)
        with open(os.path.join(out, "loss.jsonl"), encoding="utf-8") as f:
            return os.path.join(out, "adapter.gguf"), [json.loads(line)["loss"] for line in f]

    def adapter(self, gguf):
        folder = gguf + "-folder"
        self.weft("adapter", "convert", gguf, folder, "--base", self.folder)
        base = transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32, attn_implementation="eager")
        return peft.PeftModel.from_pretrained(base, folder, is_trainable=True)

    def settings(self, kind, n, **more):
        return kind(output_dir=self.path("trl"), per_device_train_batch_size=n, gradient_accumulation_steps=1, max_steps=STEPS, learning_rate=RATE,
                    lr_scheduler_type="constant", warmup_steps=0, weight_decay=0, adam_beta1=0.9, adam_beta2=0.95, adam_epsilon=1e-8, max_grad_norm=0,
                    logging_steps=1, save_strategy="no", report_to=[], seed=1, use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False,
                    dataloader_pin_memory=False, max_length=64, disable_tqdm=True, **more)

    def compare(self, data, rows, trainer_of, *options):
        first, _ = self.train(data, rows, 1, True, *options)
        model = self.adapter(first)  # the first step leaves A as it was, since B is zero then
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_B" in key:
                    p.zero_()
        began = {key: p.detach().clone() for key, p in model.named_parameters() if p.requires_grad}
        self.assertEqual(len(began), 2 * LINEARS * 2)
        trainer = trainer_of(model)
        trainer.train()
        theirs = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
        learned = {key: p for key, p in trainer.model.named_parameters() if key in began}
        for exact, of_losses, of_adapter in ((True, 1e-5, 1e-6), (False, 1e-2, 5e-2)):
            last, ours = self.train(data, rows, STEPS, exact, *options)
            got = dict(self.adapter(last).named_parameters())
            moved = lambda of: np.concatenate([(of[key].detach() - began[key]).double().numpy().ravel() for key in sorted(began)])
            error = folders.nmse(moved(got), moved(learned))
            print("exact" if exact else "rounded", "losses", [round(x, 5) for x in ours], "TRL's", [round(x, 5) for x in theirs], f"apart {error:.1e}")
            self.assertLess(theirs[-1], 0.9 * theirs[0], "it learns")
            self.assertEqual(len(ours), len(theirs))
            for a, b in zip(ours, theirs):
                self.assertLess(abs(a - b), of_losses * theirs[0])
            self.assertLess(error, of_adapter)

    def tokenizer(self):
        return transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(self.folder, "tokenizer.json"), bos_token="<s>", eos_token="</s>",
                                                    pad_token="</s>")

    def data(self, name, seed, *answers):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for r in records(seed, *answers))
        return path

    def test_sft(self):
        data = self.data("records.jsonl", 1, "completion")
        texts = self.shown(data)
        columns = datasets.Dataset.from_list([{"input_ids": ids, "completion_mask": mask} for ids, mask in texts])
        self.compare(data, sum(len(ids) for ids, _ in texts), lambda model: trl.SFTTrainer(
            model=model, args=self.settings(trl.SFTConfig, len(texts), completion_only_loss=True, packing=False, loss_type="nll"),
            train_dataset=columns, processing_class=self.tokenizer()), "--loss", "sft")

    def test_dpo(self):
        data = self.data("pairs.jsonl", 2, "chosen", "rejected")
        texts = self.shown(data, "--loss", "dpo")
        split = [(ids[:mask.index(1)], ids[mask.index(1):]) for ids, mask in texts]
        columns = datasets.Dataset.from_list([{"prompt_ids": a[0], "chosen_ids": a[1], "rejected_ids": b[1]} for a, b in zip(split[::2], split[1::2])])
        self.assertEqual([a[0] for a in split[::2]], [b[0] for b in split[1::2]])

        class Given(trl.DPOTrainer):  # the tokens that are learned here
            def _prepare_dataset(self, dataset, *_):
                return dataset

        self.compare(data, sum(len(ids) for ids, _ in texts), lambda model: Given(
            model=model, args=self.settings(trl.DPOConfig, len(columns), beta=BETA, loss_type="sigmoid"),
            train_dataset=columns, processing_class=self.tokenizer()), "--beta", str(BETA), "--loss", "dpo")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["Trl"]))
