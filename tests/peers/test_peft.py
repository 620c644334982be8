# SPDX-License-Identifier: Apache-2.0
"""Adapters that PEFT makes give PEFT's logits, merged as it merges them and with each other as it mixes them; and a step of training has
torch's loss and gradient. usage: test_peft.py build/weft

Needs python3-numpy, peft, transformers and torch (tests/peers/run installs them). Skipped where one of them is absent."""
import json
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "model"))
import hf_cases as folders  # noqa: E402
import numpy as np  # noqa: E402

try:
    import peft
    import torch
    import transformers
except ImportError:
    peft = torch = transformers = None

CASES = ("llama",)
ATTENTION, FEED_FORWARD = ["q_proj", "k_proj", "v_proj", "o_proj"], ["gate_proj", "up_proj", "down_proj"]
LINEARS = ATTENTION + FEED_FORWARD
KINDS = {
    "lora": dict(r=4, lora_alpha=8, target_modules=LINEARS),
    "rslora": dict(r=8, lora_alpha=6, target_modules=["q_proj", "v_proj"], use_rslora=True),
    "dora": dict(r=4, lora_alpha=4, target_modules=LINEARS, use_dora=True),
    "dora, rslora": dict(r=3, lora_alpha=4, target_modules=FEED_FORWARD, use_dora=True, use_rslora=True),
    "patterns": dict(r=2, lora_alpha=3, target_modules=LINEARS, rank_pattern={"layers.0.self_attn.q_proj": 6, r"^model\.layers\.1\..*up_proj": 5},
                     alpha_pattern={"down_proj": 9, "layers.1.self_attn.k_proj": 1}),
    "some layers": dict(r=4, lora_alpha=8, target_modules=LINEARS, layers_to_transform=[1]),
    "a pattern of modules": dict(r=4, lora_alpha=8, target_modules=r".*\.0\..*(q|up)_proj"),
    "embedding": dict(r=4, lora_alpha=8, target_modules=["embed_tokens", "v_proj"]),
    "head": dict(r=4, lora_alpha=8, target_modules=["lm_head", "q_proj"]),
    "dora, embedding": dict(r=4, lora_alpha=8, target_modules=["embed_tokens", "v_proj"], use_dora=True),
    "dora, head": dict(r=4, lora_alpha=8, target_modules=["lm_head", "q_proj"], use_dora=True),
}


def draw(model, name, seed):
    """Values for all that adapter `name` has; what PEFT begins with changes nothing."""
    rng = np.random.default_rng(seed)
    for key, p in model.named_parameters():
        if "lora_" not in key or name not in key.split("."):
            continue
        if "magnitude" in key:
            p.copy_(p * torch.tensor(rng.uniform(0.6, 1.5, tuple(p.shape)), dtype=p.dtype))
        else:
            p.copy_(torch.tensor(rng.normal(0, 0.15, tuple(p.shape)), dtype=p.dtype))


@unittest.skipUnless(peft, "peft, transformers and torch are not installed")
class Beside(folders.Folder):
    def begin(self, name):
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        case = folders.NAMED[name]
        case.write(self.folder)
        self.tokens = folders.tokens_for(case)
        return case

    def load(self):
        return transformers.AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32, attn_implementation="eager")

    def theirs(self, model):
        return model(torch.tensor([self.tokens])).logits[0].double().numpy()

    def save(self, model, name):
        """The folder of adapter `name`, as PEFT saves it by itself: beside a changed embedding or head, the base's own."""
        model.save_pretrained(self.path("saved"), selected_adapters=[name])
        return self.path("saved") if name == "default" else os.path.join(self.path("saved"), name)

    def weft(self, *args):
        p = folders.weft(*args)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return p.stdout

    def same(self, got, expected, what, bound=1e-8):
        error = folders.nmse(got, expected)
        print(f"{what}: {error:.1e}")
        self.assertLess(error, bound, what)


class Peft(Beside):
    def setUp(self):
        super().setUp()
        torch.set_grad_enabled(False)

    def test_same_logits_alone_and_merged(self):
        for name in CASES:
            case = self.begin(name)
            plain = self.theirs(self.load())
            for i, (kind, options) in enumerate(KINDS.items()):
                if kind.endswith("head") and case.config["tie_word_embeddings"]:
                    continue
                with self.subTest(name, kind=kind):
                    model = peft.get_peft_model(self.load(), peft.LoraConfig(task_type="CAUSAL_LM", **options))
                    draw(model, "default", i)
                    expected, adapter = self.theirs(model), self.save(model, "default")
                    self.assertGreater(folders.nmse(plain, expected), 1e-4, "it shows")
                    self.same(self.logits(self.folder, self.tokens, "--adapter", f"a={adapter}"), expected, f"{name}, {kind}")
                    if kind.endswith("embedding") and case.config["tie_word_embeddings"]:
                        continue  # PEFT's merge changes the head that is tied to it; its forward pass does not
                    self.weft("adapter", "merge", self.convert("--type", "f32"), self.path("merged.gguf"), "--adapter", f"a={adapter}")
                    merged = self.logits(self.path("merged.gguf"), self.tokens)
                    self.same(merged, self.theirs(model.merge_and_unload()), f"{name}, {kind}, merged")
                    os.remove(self.path("merged.gguf"))

    def test_adapters_with_each_other(self):
        self.begin("llama")
        base = self.convert("--type", "f32")
        model = peft.get_peft_model(self.load(), peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=LINEARS), adapter_name="a")
        model.add_adapter("b", peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=2, target_modules=["q_proj", "down_proj"]))
        model.add_adapter("c", peft.LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=4, target_modules=LINEARS, use_rslora=True))
        for i, name in enumerate("abc"):
            draw(model, name, 20 + i)
        places = {name: self.save(model, name) for name in "abc"}
        for i, (names, weights, method, options) in enumerate((
                ("ab", (0.7, 0.4), "cat", {}), ("abc", (1, 0.5, 0.25), "cat", {}), ("ac", (0.7, 0.4), "linear", {}),
                ("ac", (0.7, 0.4), "ties", {"density": 0.5}), ("abc", (0.7, 0.4, 1), "ties", {"density": 0.6}))):
            mixed = f"mixed{i}"
            model.add_weighted_adapter(list(names), list(weights), mixed, combination_type=method, **options)
            model.set_adapter(mixed)
            expected, uses = self.theirs(model), [o for n, w in zip(names, weights) for o in ("--adapter", f"{n}={places[n]}:{w}")]
            if method == "cat":
                self.same(self.logits(self.folder, self.tokens, *uses), expected, f"{names} stacked")
            out = self.path(mixed + ".gguf")
            self.weft("adapter", "merge", base, out, *uses, "--method", method, *(x for k, v in options.items() for x in ("--" + k, str(v))))
            self.same(self.logits(base, self.tokens, "--adapter", f"m={out}"), expected, f"{names} by {method}")

    def test_what_is_converted_is_read_by_peft(self):
        self.begin("llama")
        model = peft.get_peft_model(
            self.load(),
            peft.LoraConfig(
                task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules=LINEARS + ["embed_tokens"], use_dora=False
            ),
        )
        draw(model, "default", 3)
        expected, adapter = self.theirs(model), self.save(model, "default")
        self.weft("adapter", "convert", adapter, self.path("a.gguf"), "--base", self.folder)
        self.weft("adapter", "convert", self.path("a.gguf"), self.path("again"), "--base", self.folder)
        self.same(self.theirs(peft.PeftModel.from_pretrained(self.load(), self.path("again"))), expected, "converted twice, in PEFT")


class Training(Beside):
    """weft adapter train beside torch: a text of 40 tokens, once a step, from the same adapter."""
    STEPS, RATE = 3, 0.01

    def setUp(self):
        super().setUp()
        torch.set_grad_enabled(True)

    def train(self, base, steps, *options):
        out = self.path(f"run{steps}-{'-'.join(options)}".replace(" ", ""))
        self.weft("adapter", "train", base, "--data", self.ids, "--out", out, "--steps", str(steps), "--rank", "4", "--alpha", "8", "--lr", str(self.RATE),
                  "--schedule", "constant", "--warmup", "0", "--weight-decay", "0", "--clip", "0", "-c", "64", "-b", "64", "--exact", *options)
        with open(os.path.join(out, "loss.jsonl"), encoding="utf-8") as f:
            return os.path.join(out, "adapter.gguf"), [json.loads(line)["loss"] for line in f]

    def adapter(self, gguf):
        """Trainable, in PEFT."""
        folder = gguf + "-folder"
        self.weft("adapter", "convert", gguf, folder, "--base", self.folder)
        return peft.PeftModel.from_pretrained(self.load(), folder, is_trainable=True)

    def compare(self, name, optimizer, ours):
        self.begin(name)
        base, ids = self.convert("--type", "f32"), np.random.default_rng(7).integers(2, 280, 40)
        self.ids = self.path("ids.u16")
        ids.astype("<u2").tofile(self.ids)
        first, losses = self.train(base, 1, *ours)
        last, losses = self.train(base, self.STEPS, *ours)
        after_one = dict(self.adapter(first).named_parameters())
        model = self.adapter(first)  # the first step leaves A as it was, since B is zero then
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_B" in key:
                    p.zero_()
        learned = {k: p for k, p in model.named_parameters() if p.requires_grad}
        self.assertEqual(len(learned), 2 * len(LINEARS) * 2)
        steps, theirs, input_ids = optimizer(learned.values()), [], torch.tensor(ids[None].astype(np.int64))
        for step in range(self.STEPS):
            steps.zero_grad()
            loss = model(input_ids=input_ids, labels=input_ids).loss
            loss.backward()
            steps.step()
            theirs.append(loss.item())
            for key, p in learned.items():
                if step == 0:
                    self.near(after_one[key], p, f"{key} after a step")
        print(name, "losses", losses, theirs)
        self.assertLess(theirs[-1], theirs[0] - 1e-3, "it learns")
        for a, b in zip(losses, theirs):
            self.assertLess(abs(a - b), 1e-5 * abs(b))
        for key, p in self.adapter(last).named_parameters():
            if key in learned:
                self.near(p, learned[key], f"{key} after {self.STEPS} steps")

    def near(self, got, expected, what):
        got, expected = got.detach().double().numpy(), expected.detach().double().numpy()
        self.assertTrue(np.any(expected != 0), what)
        self.assertLess(folders.nmse(got, expected), self.bound, what)

    def test_gradients(self):
        """Plain descent: what the matrices B become in a step is their gradient."""
        self.bound = 1e-8
        for name in CASES:
            self.compare(name, lambda p: torch.optim.SGD(list(p), lr=self.RATE, momentum=0.9), ("--optimizer", "sgd"))

    def test_adamw(self):
        self.bound = 1e-5  # a gradient that is nearly zero may have either sign
        self.compare("llama", lambda p: torch.optim.AdamW(list(p), lr=self.RATE, betas=(0.9, 0.95), eps=1e-8, weight_decay=0), ())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + (sys.argv[1:] or ["Peft", "Training"]))
