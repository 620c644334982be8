# SPDX-License-Identifier: Apache-2.0
"""Hugging Face folders of every kind that is read, as cases; and what the tests over them share.

Exit status 77: NumPy is missing."""
import copy
import json
import os
import shutil
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    print("SKIP: python3-numpy is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "cli")]
import common  # noqa: E402
import hf_folder as hf  # noqa: E402

ENV = dict(os.environ, WEFT_CPU="ref")
TEXTS = ["hello world", "  The  theater, in her nation\n\n1234 567 <|end|></s><s>x", "\u2581 caf\u00e9 \U0001f600 the", ""]


def weft(*args, stdin=b""):
    return common.weft(*args, stdin=stdin, env=ENV)


def nmse(a, b):
    return float(np.sum((a - b) ** 2) / np.sum(b ** 2))


BASE = {"vocab_size": hf.V, "hidden_size": hf.D, "intermediate_size": hf.F, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": False, "hidden_act": "silu", "bos_token_id": 0, "eos_token_id": 1}
LLAMA3_ROPE = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
SHARP_YARN = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16, "beta_fast": 1.0, "beta_slow": 0.25}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
GEMMA2 = {"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 16, "sliding_window": 8,
          "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": True}
GEMMA3 = {"model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 16, "sliding_window": 8,
          "rope_local_base_freq": 10000.0, "rope_theta": 1000000.0, "tie_word_embeddings": True, "num_hidden_layers": 7}
LONGROPE = {"type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.5, 1.9, 2.4], "long_factor": [1.0, 1.5, 2.5, 4.0, 8.0, 16.0]}


class Case:
    """A folder: class in `architectures`, fields of config.json, how the weights are stored, which tokenizer."""

    def __init__(self, name, class_name, fields, dtype="F32", tokenizer="bpe", arch=None, **how):
        self.name, self.class_name, self.dtype, self.tokenizer, self.how = name, class_name, dtype, tokenizer, how
        self.arch = arch or fields["model_type"]
        self.config = {**BASE, **fields}

    def write(self, folder):
        """Returns the weights as stored."""
        c = self.how.get("rewrite", lambda c: c)({"architectures": [self.class_name], **self.config})
        with open(os.path.join(folder, "config.json"), "w") as f:
            json.dump(c, f)
        tensors = hf.random_weights(self.config, sum(map(ord, self.name)))
        renamed = {self.how.get("rename", lambda n: n)(n): a for n, a in tensors.items()}
        renamed.update(self.how.get("extra", {}))
        values = hf.write_weights(folder, renamed, self.dtype, self.how.get("shards", 1), self.how.get("pad", True))
        self.write_tokenizer(folder)
        return {n: values[self.how.get("rename", lambda n: n)(n)] for n in tensors}

    def write_tokenizer(self, folder):
        config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "chat_template": "{{ bos_token }}old"}
        if self.tokenizer == "spm":
            with open(os.path.join(folder, "tokenizer.model"), "wb") as f:
                f.write(hf.spm_model())
            config["added_tokens_decoder"] = {"310": {"content": "<|end|>", "special": True}}
        else:
            byte_level = {"bpe": lambda: hf.byte_level_tokenizer(hf.LLAMA3, ["<s>", "</s>", "<|end|>"], True, "<s>"),
                          "qwen": lambda: hf.byte_level_tokenizer(hf.QWEN2, ["<s>", "</s>", "<|end|>"]),
                          "spm-json": hf.spm_style_tokenizer, "spm-json-bare": lambda: hf.spm_style_tokenizer(False)}
            with open(os.path.join(folder, "tokenizer.json"), "w") as f:
                json.dump(byte_level[self.tokenizer](), f)
        with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
            json.dump(config, f)
        with open(os.path.join(folder, "chat_template.jinja"), "w") as f:
            f.write("{{ bos_token }}new")
        with open(os.path.join(folder, "generation_config.json"), "w") as f:
            json.dump({"eos_token_id": [2, 310] if "spm" in self.tokenizer else [1, 290]}, f)


def nested(c):
    """As Gemma 3 with eyes: the language model's fields in text_config."""
    text = {k: v for k, v in c.items() if k not in ("architectures", "tie_word_embeddings")}
    return {"architectures": c["architectures"], "model_type": "gemma3", "text_config": text, "vision_config": {}}


def rope_parameters(c):
    """As newer configurations have it."""
    c = copy.deepcopy(c)
    c["rope_parameters"] = {**(c.pop("rope_scaling", None) or {"rope_type": "default"}), "rope_theta": c.pop("rope_theta")}
    return c


EYES = {"vision_tower.patch.weight": np.ones((3, 3)), "multi_modal_projector.mm.weight": np.ones((2, 2))}
CASES = [
    Case("llama", "LlamaForCausalLM", {"model_type": "llama", "rope_scaling": LLAMA3_ROPE, "attention_bias": True}, shards=3),
    Case("llama-tied", "LlamaForCausalLM", {"model_type": "llama", "tie_word_embeddings": True, "num_key_value_heads": 4,
         "rope_scaling": {"type": "linear", "factor": 2.0}}, dtype="BF16", tokenizer="spm"),
    Case("llama-unaligned", "LlamaForCausalLM", {"model_type": "llama", "head_dim": 24}, tokenizer="spm-json", pad=False),
    Case("mistral", "MistralForCausalLM", {"model_type": "mistral", "sliding_window": 8, "head_dim": 24}, dtype="F16", tokenizer="spm-json",
         arch="llama"),
    Case("mixtral", "MixtralForCausalLM", {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": None},
         dtype="BF16", tokenizer="spm-json", arch="llama"),
    Case("mixtral-window", "MixtralForCausalLM", {"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 1, "sliding_window": 7,
         "rope_scaling": {**YARN, "factor": 2.0}, "rope_theta": 500.0}, tokenizer="spm-json", arch="llama"),
    Case("llama-yarn", "LlamaForCausalLM", {"model_type": "llama", "rope_scaling": SHARP_YARN, "head_dim": 32}),
    Case("qwen2", "Qwen2ForCausalLM", {"model_type": "qwen2", "tie_word_embeddings": True, "rope_scaling": YARN, "use_sliding_window": False,
         "sliding_window": 8}, tokenizer="qwen"),
    Case("qwen3", "Qwen3ForCausalLM", {"model_type": "qwen3", "head_dim": 32}, dtype="BF16", tokenizer="qwen"),
    Case("qwen3-new", "Qwen3ForCausalLM", {"model_type": "qwen3", "rope_scaling": {**YARN, "attention_factor": 1.25}}, tokenizer="qwen",
         rewrite=rope_parameters),
    Case("qwen3moe", "Qwen3MoeForCausalLM", {"model_type": "qwen3_moe", "num_experts": 6, "num_experts_per_tok": 3,
         "moe_intermediate_size": 32, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}, tokenizer="qwen", arch="qwen3moe"),
    Case("phi3", "Phi3ForCausalLM", {"model_type": "phi3", "sliding_window": 8, "pad_token_id": 1}, dtype="BF16", tokenizer="spm-json"),
    Case("phi3-long", "Phi3ForCausalLM", {"model_type": "phi3", "rope_scaling": LONGROPE, "original_max_position_embeddings": 32,
         "partial_rotary_factor": 0.75, "pad_token_id": 1, "tie_word_embeddings": True}, tokenizer="qwen"),
    Case("gemma2", "Gemma2ForCausalLM", GEMMA2, dtype="BF16", tokenizer="spm-json-bare"),
    Case("gemma3", "Gemma3ForCausalLM", {**GEMMA3, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, tokenizer="spm-json-bare", arch="gemma3"),
    Case("gemma3-eyes", "Gemma3ForConditionalGeneration", GEMMA3, dtype="BF16", tokenizer="spm-json-bare", arch="gemma3", rewrite=nested,
         rename=lambda n: "language_model." + n, extra=EYES),
    Case("gemma3-eyes-new", "Gemma3ForConditionalGeneration", GEMMA3, tokenizer="spm-json-bare", arch="gemma3", rewrite=nested,
         rename=lambda n: n.replace("model.", "model.language_model.", 1), extra={"model." + n: a for n, a in EYES.items()}),
]


NAMED = {case.name: case for case in CASES}


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="weft-hf-")
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.folder = os.path.join(self.dir, "model")
        os.mkdir(self.folder)

    def path(self, name):
        return os.path.join(self.dir, name)

    def logits(self, model, tokens, *options):
        out = self.path("logits.f32")
        p = weft("eval", "logits", model, "--tokens", " ".join(map(str, tokens)), "-o", out, *options)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return np.fromfile(out, dtype="<f4").astype(np.float64).reshape(len(tokens), -1)

    def convert(self, *options, name="out.gguf"):
        out = self.path(name)
        p = weft("convert", self.folder, out, *options)
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return out

    def tokenize(self, model, text, *options):
        p = weft("tokenize", model, "-", *options, stdin=text.encode())
        self.assertEqual(p.returncode, 0, p.stderr.decode())
        return p.stdout


def tokens_for(case):
    return [int(i) for i in np.random.default_rng(len(case.name)).integers(0, hf.V, 24)]
